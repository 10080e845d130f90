"""What a metric depends on: sensitivity, tornado, Sobol indices, the size that meets a target."""
