"""Networks of stations: exact, approximate and bounding solutions of open, closed and mixed ones."""

from qmodels.networks.closed.amva import bard_schweitzer, linearizer
from qmodels.networks.closed.bounds import (
    NetworkBounds,
    asymptotic_bounds,
    balanced_job_bounds,
    geometric_bounds,
    proportional_bounds,
)
from qmodels.networks.closed.convolution import (
    convolution,
    flow_equivalent,
    log_normalising_constant,
    marginal_distribution,
    throughput_curve,
)
from qmodels.networks.closed.mva import mva
from qmodels.networks.mixed import mixed
from qmodels.networks.open.bcmp import bcmp
from qmodels.networks.open.blocking import loss_network, tandem_blocking
from qmodels.networks.open.fork_join import ForkJoinResult, fork_join, fork_join_unequal, split_merge
from qmodels.networks.open.jackson import jackson
from qmodels.networks.open.qna import qna
from qmodels.networks.open.traffic import routing_matrix, traffic_equations, visit_ratios
from qmodels.networks.result import NetworkResult

__all__ = [
    "ForkJoinResult",
    "NetworkBounds",
    "NetworkResult",
    "asymptotic_bounds",
    "balanced_job_bounds",
    "bard_schweitzer",
    "bcmp",
    "convolution",
    "flow_equivalent",
    "fork_join",
    "fork_join_unequal",
    "geometric_bounds",
    "jackson",
    "linearizer",
    "log_normalising_constant",
    "loss_network",
    "marginal_distribution",
    "mixed",
    "mva",
    "proportional_bounds",
    "qna",
    "routing_matrix",
    "split_merge",
    "tandem_blocking",
    "throughput_curve",
    "traffic_equations",
    "visit_ratios",
]
