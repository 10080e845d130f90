"""A design changed by hand, field by field, with its answer beside it: in a browser or in a notebook."""

from cases.what_if.session import Session
from cases.what_if.widget import what_if

__all__ = ["Session", "what_if"]
