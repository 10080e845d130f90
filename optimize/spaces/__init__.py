"""The designs to choose from, and their evaluation by any model."""
