"""A system that is composed of parts: what its flows do with them, step by step."""
