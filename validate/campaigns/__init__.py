"""Running simulations: one, or many in parallel, kept as they finish and resumed."""
