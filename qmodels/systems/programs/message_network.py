"""The flows of a message-passing program: who sends to whom with which service, and on which channels."""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from qmodels.systems.noc.flows import FlowTable
from qmodels.systems.noc.patterns import uniform
from qmodels.systems.noc.router import Router
from qmodels.systems.noc.routes import PathTable
from qmodels.systems.noc.spec import Noc
from qmodels.systems.noc.topology import Topology
from qmodels.systems.programs.message_steps import PRIORITIES
from qmodels.systems.programs.messaging import MessageProgram


class Service(NamedTuple):
    """Key of a program's packet in the network."""

    # source, target: processes.
    source: int
    target: int
    priority: int  # its priority: 7 unless the switches know priorities
    circuit: bool  # whether it goes through a circuit


def services(program: MessageProgram) -> tuple[tuple[int, ...], tuple[Service, ...]]:
    """Return the service of every step that sends, process by process, as numbers of a list; and the list.

    Steps that send nothing have -1. The packet that opens a circuit travels outside it, the one that
    closes it inside.
    """
    known: dict[Service, int] = {}
    numbers = []
    by_priority = program.router.arbitration == "priority"
    for process, (steps, first) in enumerate(zip(program.steps, program.first_priorities, strict=True)):
        level, circuits = first, set[int]()
        for step in steps:
            if step.action == "priority":
                level = step.level
            if step.action not in ("send", "signal", "open", "close"):
                numbers.append(-1)
                continue
            service = Service(
                process, step.peer, level if by_priority else PRIORITIES - 1, step.peer in circuits
            )
            numbers.append(known.setdefault(service, len(known)))
            if step.action in ("open", "close"):
                circuits ^= {step.peer}
    return tuple(numbers), tuple(known)


def service_table(program: MessageProgram) -> PathTable:
    """Return the services of a program with their paths, in the order of `services`.

    Where a routing gives several paths between two nodes, messages take the first.
    """
    _, known = services(program)
    table, first = _all_pairs(program.topology, program.routing, program.router, program.link_width)
    chosen = [first[program.nodes[s.source], program.nodes[s.target]] for s in known]
    hops = [np.arange(table.path_start[flow], table.path_start[flow + 1]) for flow in chosen]
    places = np.concatenate([np.zeros(0, dtype=np.int64), *hops]).astype(np.int64)
    whole = (
        "virtual_channels",
        *(item.name for item in fields(PathTable) if item.name.startswith("channel_")),
    )
    return PathTable(
        **{name: getattr(table, name) for name in whole},
        source=table.source[chosen],
        target=table.target[chosen],
        flits=np.ones(len(known), dtype=np.int32),
        priority=np.array([s.priority for s in known], dtype=np.int32),
        weight=np.ones(len(known)),
        circuit=np.array([s.circuit for s in known], dtype=bool),
        path_start=np.concatenate([[0], np.cumsum([hop.size for hop in hops])]).astype(np.int64),
        path_channel=table.path_channel[places],
        path_vc_low=table.path_vc_low[places],
        path_vc_high=table.path_vc_high[places],
    )


@lru_cache(maxsize=16)
def _all_pairs(
    topology: Topology, routing: str, router: Router, link_width: int
) -> tuple[FlowTable, dict[tuple[int, int], int]]:
    noc = Noc(
        topology=topology,
        routing=routing,
        router=router,
        link_width=link_width,
        traffic=uniform(nodes=topology.nodes),
        injection_rate=0.0,
    )
    table = noc.flow_table()
    first: dict[tuple[int, int], int] = {}
    for flow, pair in enumerate(zip(table.source.tolist(), table.target.tolist(), strict=True)):
        first.setdefault(pair, flow)
    return table, first
