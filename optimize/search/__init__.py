"""Exploring a space: exhaustively, greedily, by the exact method, and the front that is found."""
