"""From the programs of flows to one table of instructions."""
