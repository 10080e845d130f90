"""Open networks: product form, decomposition, finite buffers, fork and join."""
