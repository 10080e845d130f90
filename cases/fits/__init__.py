"""How the constants in the models are fitted: from which data, to what, and how well that determines them."""
