"""A design changed by hand, field by field, with its answer beside it: in a browser or in a notebook."""
