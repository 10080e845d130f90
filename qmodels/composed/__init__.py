"""The analytic answer to a system of parts: streams, what parts answer to them, and what couples parts."""
