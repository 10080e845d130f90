"""What the formulas of laws, chains and stations compute with: roots, inversions, careful sums."""
