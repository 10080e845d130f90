"""The joint exploration: from traffic and questions to a recommended design, checked by simulation."""
