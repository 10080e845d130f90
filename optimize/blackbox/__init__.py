"""Search of a black box that is dear: what to simulate next, learned from a model and what was simulated."""
