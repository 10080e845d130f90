"""Base of every spec: checks of nested parts, TOML, hashes, metrics, and the store of results."""
