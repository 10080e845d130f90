"""Exploring a space: exhaustively, greedily, by branch and bound, and the front that is found."""
