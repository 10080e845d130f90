"""Published systems: a file ``data/CASE/paper.toml`` for each, with what it needs of code in ``CASE.py``."""

CASES = ("dqm", "srp", "llc3d", "ocmpi", "stnoc")
