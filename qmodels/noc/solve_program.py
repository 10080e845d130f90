"""The analytic answer for a message-passing program: when each process ends, and what holds it up."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from qmodels.noc.message_flow import MessagePath, course, message_paths
from qmodels.systems.noc.routes import find_deadlock, may_deadlock
from qmodels.systems.programs.messaging import PROCESS_TIMES, MessageProgram, service_table, services
from qmodels.systems.spec.answer import Answer


def solve_program(spec: MessageProgram) -> Answer:
    """Return the times of a message-passing program.

    Parameters
    ----------
    spec : MessageProgram
        The program.

    Returns
    -------
    Answer
        The metrics of `validate.simulate` without intervals, and what others cost each process.

    Notes
    -----
    A fluid model on the level of messages, see `qmodels.noc.message_flow.course` and
    `qmodels.noc.message_flow.transfer_rates`: exact where no two messages meet, an approximation
    under contention. It takes milliseconds where messages do not meet and up to half a second for 16
    processes that all send to one.

    Examples
    --------
    >>> from qmodels.systems.programs.collectives import barrier
    >>> from qmodels.systems.noc.topology import mesh
    >>> answer = solve_program(MessageProgram(topology=mesh(2, 2), processes=barrier(processes=4)))
    >>> round(answer["execution_time"])
    2861
    """
    paths = message_paths(spec)
    found = course(spec, paths)
    count, clock = len(spec.processes), spec.clock_ghz
    spent = [found.computing, found.software, found.network, found.waiting]
    by_process = dict(zip(PROCESS_TIMES, [found.finish, *spent], strict=True))
    times = [arrival - beginning for _, _, _, beginning, arrival in found.messages]
    last = int(np.argmax(found.finish))
    cycles = {
        "execution_time": found.finish[last],
        "message_latency": sum(times) / len(times) if times else 0.0,
        **{f"{name}[{k}]": value for name, of in by_process.items() for k, value in enumerate(of)},
    }
    table = service_table(spec)
    deadlock = find_deadlock(table) or ()
    whole = spec.router.hold_switch_for_packet or spec.router.virtual_channels == 1
    even = bool(np.all(table.channel_cycles_per_flit[table.paths.channel] == 1))
    doubts = {
        **may_deadlock(deadlock),
        "packets share links flit by flit": not whole,
        "links of different widths": not even,
    }
    bounds = {ends: bound / clock for ends, bound in _circuit_bounds(spec, paths).items()}
    return Answer(
        model=f"message-passing program, solved: {count} processes",
        spec=spec,
        metrics={name: value / clock for name, value in cycles.items()},
        latency_parts={
            name.removesuffix("_time"): by_process[name][last] / clock for name in PROCESS_TIMES[1:]
        },
        traffic_intensity={"channels": found.crowding},
        doubts=doubts,
        details={
            "contention_time": tuple(cost / clock for cost in found.contention),
            "circuit_latency": bounds,
            "crowding": float(found.crowding),
            "deadlock": deadlock,
        },
        facts=tuple(
            f"circuit {source} to {target}: a packet takes at most {bound:.0f} ns"
            for (source, target), bound in bounds.items()
        ),
    )


def _circuit_bounds(
    spec: MessageProgram, paths: Mapping[tuple[int, int], MessagePath]
) -> dict[tuple[int, int], float]:
    """Return the zero-load cycles of each circuit, plus a packet of every circuit it shares a channel with.

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
