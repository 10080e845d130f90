"""What finite runs say about the steady state: intervals, warm-up, stopping, heavy tails."""
