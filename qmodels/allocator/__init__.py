"""Free lists and the data-queueing module around them."""

from qmodels.allocator.data_queueing import solve_data_queueing
from qmodels.allocator.list_memory import FreeListResult, free_list

__all__ = [
    "FreeListResult",
    "free_list",
    "solve_data_queueing",
]
