"""Sensitivity of a metric: derivatives, tornado, Sobol indices, the size that meets a target."""
