"""What the model and the simulator say about a message-passing program."""

from __future__ import annotations

from qmodels.systems.spec.metrics import Metric

PROGRAM_METRICS: dict[str, Metric] = {
    "execution_time": Metric("cycles", "until the last process ends"),
    "message_latency": Metric("cycles", "from the first copied word until the last packet is there, mean"),
    "finish_time": Metric("cycles", "until a process ends"),
    "computing_time": Metric("cycles", "computing steps of a process"),
    "software_time": Metric("cycles", "message software of a process: library code and copying"),
    "network_time": Metric("cycles", "packets of a process under way to their targets and back"),
    "blocked_time": Metric("cycles", "wait of a process for messages of others"),
}
"""Names, units and meaning; the times of a process have its number in brackets: ``finish_time[3]``."""

PROCESS_METRICS = tuple(PROGRAM_METRICS)[2:]
"""Those that each process has."""


def unit_of(metric: str) -> str:
    """Return the unit of a metric, with or without a process."""
    return PROGRAM_METRICS[metric.partition("[")[0]].unit
