"""Published systems: a folder for each, with specs, numbers in ``data``, and its `Paper` in ``paper.py``."""
