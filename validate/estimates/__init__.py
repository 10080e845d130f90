"""Steady-state estimates from finite runs: intervals, warm-up, stopping, heavy tails."""
