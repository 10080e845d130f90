"""Decisions: a model everywhere, simulations where they decide, an interval on every number."""
