"""What every spec shares: checks of nested parts, TOML, hashes, metrics, and the store of results."""
