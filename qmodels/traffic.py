"""Traffic: workloads, arrivals, sizes, popularity of what is looked up, recorded traces."""

from qmodels.systems.traffic.arrivals import OnOff, Poisson, Recorded, Workload
from qmodels.systems.traffic.description import TraceDescription
from qmodels.systems.traffic.popularity import MeasuredPopularity, Zipf
from qmodels.systems.traffic.sizes import SizeLaw, bimodal, fixed, heavy_tailed, imix
from qmodels.systems.traffic.trace import Trace, describe, read_trace

__all__ = [
    "MeasuredPopularity",
    "OnOff",
    "Poisson",
    "Recorded",
    "SizeLaw",
    "Trace",
    "TraceDescription",
    "Workload",
    "Zipf",
    "bimodal",
    "describe",
    "fixed",
    "heavy_tailed",
    "imix",
    "read_trace",
]
