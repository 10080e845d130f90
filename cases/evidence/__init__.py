"""The evidence for the models: systems drawn at random, solved and simulated, and kept to compare with."""
