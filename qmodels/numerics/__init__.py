"""What the formulas of laws, chains and stations compute with: roots, inversions, sums that keep their digits."""
