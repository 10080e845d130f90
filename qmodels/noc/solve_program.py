"""The analytic answer for a message-passing program: when each process ends, and what holds it up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qmodels.error_map import ErrorMap, MeasuredError
from qmodels.noc.message_flow import course
from qmodels.noc.message_paths import MessagePath, message_paths
from qmodels.systems.noc.deadlock import find_deadlock
from qmodels.systems.programs.message_metrics import PROCESS_METRICS, unit_of
from qmodels.systems.programs.message_network import service_table, services
from qmodels.systems.programs.messaging import MessageProgram

ERRORS = ErrorMap(Path(__file__).with_name("message_error_map.csv"))

MOST_PROCESSES = 16
"""Of the programs on which the error was measured."""

SHOWN = 16
"""Processes that a printed answer shows one by one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ProgramAnswer:
    """Times of a message-passing program.

    Parameters
    ----------
    metrics : mapping of str to float
        By name, see `qmodels.systems.programs.message_metrics.PROGRAM_METRICS`, with the number of the
        process in brackets; also ``answer["finish_time[3]"]``. [cycles]
    contention_time : tuple of float
        Of each process, the part of its network time that others cause. [cycles]
    circuit_latency : mapping of (int, int) to float
        For each circuit, the longest its packets can take from network interface to network
        interface, whatever the others send. [cycles]
    crowding : float
        Most that is asked of a channel at once, as a multiple of what it carries.
    validated : bool
        Whether the crowding and the number of processes lie in the range in which the model's error
        was measured, packets cannot deadlock, they do not share links flit by flit, and no link is
        narrower than the others.
    error : mapping of str to MeasuredError
        By metric, without the number of a process, the error against simulation at such crowding.
    deadlock : tuple of str
        Virtual channels in which packets of the program may wait for each other in a circle if they
        are under way at the same time, empty without one. The times hold only if they never do:
        `validate.simulate` finds out whether the program comes to its end.
    """

    metrics: Mapping[str, float]
    contention_time: tuple[float, ...]
    circuit_latency: Mapping[tuple[int, int], float]
    crowding: float
    validated: bool
    error: Mapping[str, MeasuredError]
    deadlock: tuple[str, ...] = ()

    @property
    def stable(self) -> bool:
        """Whether the program ends for certain."""
        return not self.deadlock

    def __getitem__(self, name: str) -> float:
        return self.metrics[name]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per metric: its name, unit and value."""
        return [{"metric": n, "unit": unit_of(n), "value": value} for n, value in self.metrics.items()]

    def to_pandas(self) -> Any:
        """Return the rows as a tidy DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def __repr__(self) -> str:
        count = len(self.contention_time)
        lines = [f"message-passing program, solved: {count} processes"]
        for name in ("execution_time", "message_latency"):
            lines.append(f"  {name:<36} {self.metrics[name]:>10.0f} cycles")
        names = [name.removesuffix("_time") for name in PROCESS_METRICS]
        lines.append("  process " + "".join(f"{name:>11}" for name in [*names, "contention"]) + "  [cycles]")
        for k in range(min(count, SHOWN)):
            times = [*(self.metrics[f"{n}[{k}]"] for n in PROCESS_METRICS), self.contention_time[k]]
            lines.append(f"  {k:<8}" + "".join(f"{time:>11.0f}" for time in times))
        if count > SHOWN:
            lines.append(f"  ... {count - SHOWN} more processes in metrics")
        for (source, target), bound in self.circuit_latency.items():
            lines.append(f"  circuit {source} to {target}: a packet takes at most {bound:.0f} cycles")
        crowding = f"  most asked of a channel {self.crowding:.2f}"
        lines.append(f"{crowding}; error of finish times at such crowding {self.error['finish_time']}")
        if not self.validated:
            lines.append("  outside the range in which the model's error was measured")
        if self.deadlock:
            number, first = len(self.deadlock), self.deadlock[0]
            lines.append(f"  packets may deadlock: {number} virtual channels in a circle from {first}")
        return "\n".join(lines)


def solve_program(spec: MessageProgram) -> ProgramAnswer:
    """Return the times of a message-passing program.

    Parameters
    ----------
    spec : MessageProgram
        The program.

    Returns
    -------
    ProgramAnswer
        The metrics of `validate.simulate` without intervals, and what others cost each process.

    Notes
    -----
    A fluid model on the level of messages, see `qmodels.noc.message_flow.course` and
    `qmodels.noc.message_rates.transfer_rates`: exact where no two messages meet, an approximation
    under contention. It takes milliseconds where messages do not meet and up to half a second for 16
    processes that all send to one.

    Examples
    --------
    >>> from qmodels.systems.programs.collectives import barrier
    >>> from qmodels.systems.noc.topologies import mesh
    >>> answer = solve_program(MessageProgram(topology=mesh(2, 2), processes=barrier(processes=4)))
    >>> round(answer["execution_time"])
    2861
    """
    paths = message_paths(spec)
    found = course(spec, paths)
    count = len(spec.processes)
    by_process = {
        "finish_time": found.finish,
        "computing_time": found.computing,
        "software_time": found.software,
        "network_time": found.network,
        "blocked_time": found.waiting,
    }
    times = [arrival - beginning for _, _, _, beginning, arrival in found.messages]
    metrics = {
        "execution_time": max(found.finish),
        "message_latency": sum(times) / len(times) if times else 0.0,
        **{f"{name}[{k}]": by_process[name][k] for name in PROCESS_METRICS for k in range(count)},
    }
    error = ERRORS.at(load=found.crowding)
    validated = bool(error["finish_time"].known) and count <= MOST_PROCESSES
    table = service_table(spec)
    deadlock = find_deadlock(table) or ()
    like = spec.router.hold_switch_for_packet or spec.router.virtual_channels == 1
    like &= bool(np.all(table.channel_cycles_per_flit[table.path_channel] == 1))
    return ProgramAnswer(
        metrics=metrics,
        contention_time=found.contention,
        circuit_latency=_circuit_bounds(spec, paths),
        crowding=found.crowding,
        validated=validated and like and not deadlock,
        error=error,
        deadlock=deadlock,
    )


def _circuit_bounds(
    spec: MessageProgram, paths: Mapping[tuple[int, int], MessagePath]
) -> dict[tuple[int, int], float]:
    """Return the zero-load latency of each circuit, plus a packet of every circuit it shares a channel with.

    Packets of circuits pass all others flit by flit; each process has one packet under way at most.
    """
    flits = spec.costs.packet_flits(spec.costs.packet_words, spec.link_width)
    circuits = {(s.source, s.target): paths[s.source, s.target] for s in services(spec)[1] if s.circuit}
    bounds = {}
    for pair, path in circuits.items():
        rivals = [
            other
            for key, other in circuits.items()
            if key != pair and set(other.channels) & set(path.channels)
        ]
        bounds[pair] = path.latency(flits) + sum(
            other.occupancy(flits) * len(set(other.channels) & set(path.channels)) for other in rivals
        )
    return bounds
