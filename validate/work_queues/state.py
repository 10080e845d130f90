"""Names of the numbers that the kernel of the work queues reads and counts."""

# Options, whole numbers.
GROUP_CORES, CLUSTER_CORES, LOCAL_LENGTH, MINIMUM_LENGTH = 0, 1, 2, 3
THIEVES, VICTIMS, PROTECTED, MOST, PLACEMENT, DATA = 4, 5, 6, 7, 8, 9
OPTIONS = 10

NO_THIEF, SHEPHERD, EVERY = 0, 1, 2
NEAREST, LONGEST, RANDOM = 0, 1, 2
AT_HOME, NEXT, OWN = 0, 1, 2
DATA_HOME, DATA_ONE, DATA_NEAREST = 0, 1, 2

# Costs in cycles, and two shares.
BLOCK, TASK, SPREAD, TRANSFER, QUEUE, LOCAL, SEARCH, ITEM, SHARE = 0, 1, 2, 3, 4, 5, 6, 7, 8
COSTS = 9

# What is counted.
MAKESPAN, COMPUTE, LOCK_WAIT, MEMORY_WAIT, STOLEN, LOCAL_TASKS, THEFTS = 0, 1, 2, 3, 4, 5, 6
COUNTS = 7

# Random streams, in this order.
SOURCES = ("compute", "order of neighbours", "victim")
COMPUTE_STREAM, ORDER_STREAM, VICTIM_STREAM = 0, 1, 2
