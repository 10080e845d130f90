"""Single stations: one published model is one pure function over arrays."""

from qmodels.queues.batch import mxg1
from qmodels.queues.erlang import erlang_b, erlang_c, kaufman_roberts
from qmodels.queues.gg1 import gg1_kingman, gg1_klb, gg1_lower_bound, gg1_marchal, gg1_upper_bound
from qmodels.queues.mg1 import mg1

__all__ = [
    "erlang_b",
    "erlang_c",
    "gg1_kingman",
    "gg1_klb",
    "gg1_lower_bound",
    "gg1_marchal",
    "gg1_upper_bound",
    "kaufman_roberts",
    "mg1",
    "mxg1",
]
