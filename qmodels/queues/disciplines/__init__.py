"""One server, many orders of service: priorities, polling, sharing, by size, with vacations."""
