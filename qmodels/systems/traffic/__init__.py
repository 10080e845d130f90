"""Traffic: arrivals, sizes, popularity, recorded traces."""
