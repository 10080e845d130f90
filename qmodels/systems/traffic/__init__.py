"""What a system is offered: arrivals, sizes, popularity, recorded traces."""
