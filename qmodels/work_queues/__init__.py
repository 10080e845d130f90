"""Run queues and work stealing: how long a set of tasks takes that may grow while it is worked on."""
