"""Network-on-chip models."""

from qmodels.noc.link_load import LinkLoad, link_load

__all__ = ["LinkLoad", "link_load"]
