"""What every simulator is built from: calendar, random streams, draws, histograms, compilation."""
