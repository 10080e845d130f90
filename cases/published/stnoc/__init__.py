"""Grammatikakis et al.: address interleaving on the Spidergon STNoC."""
