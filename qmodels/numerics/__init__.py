"""Numerics of the formulas of laws, chains and stations: roots, inversions, careful sums."""
