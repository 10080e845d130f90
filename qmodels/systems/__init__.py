"""Structure of systems: specs, topologies, address maps, laws and traces. Never a performance formula."""
