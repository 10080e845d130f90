"""Fitting parameters of a model to observations."""
