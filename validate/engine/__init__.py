"""Base of every simulator: calendar, random streams, draws, histograms, compilation."""
