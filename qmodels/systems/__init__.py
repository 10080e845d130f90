"""What a system is: specs, topologies, address maps, laws and traces. Never a performance formula."""
