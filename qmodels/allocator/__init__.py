"""Free lists and the data-queueing module around them."""

from qmodels.allocator.data_queueing import solve_data_queueing
from qmodels.allocator.lists.list_memory import FreeListResult, free_list
from qmodels.allocator.trials import TrialResult, allocation_trials

__all__ = [
    "FreeListResult",
    "TrialResult",
    "allocation_trials",
    "free_list",
    "solve_data_queueing",
]
