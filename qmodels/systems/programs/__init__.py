"""Programs that run on a machine: messages between processes, and tasks in run queues."""
