"""What the formulas of stations compute with: roots, inversions, sums that keep their digits."""
