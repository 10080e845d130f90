"""Run queues and work stealing, simulated core by core."""
