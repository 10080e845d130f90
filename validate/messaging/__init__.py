"""Message-passing programs simulated over the flit-level network, packet by packet."""
