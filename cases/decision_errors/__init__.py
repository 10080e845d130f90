"""How good decisions are: against a simulation of every design, and what their intervals cover."""
