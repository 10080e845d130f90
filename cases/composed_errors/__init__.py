"""The measured error of the model of systems of parts, on systems drawn at random."""
