"""What the answer to a system asks for, by its sizes and before it is begun.

Times are twice those of one core of a virtual machine of 2.x GHz, memory 1.3 times.
"""

from __future__ import annotations

from typing import Any

from qmodels.systems.composed.steps import Fork, inner_steps
from qmodels.systems.composed.system import System
from qmodels.systems.noc.size import afford_routes
from qmodels.systems.spec.cost import afford

STEP_STEP = 3e-6
"""For each pair of steps of one program: forks of 1,600 branches, 3,200 visits in a row. [s]"""
STEP_FLOW = 4e-5
"""For each step of all programs and each flow: 640 flows to a station, 80 to one and a memory. [s]"""
JOB_PART = 2e-4
"""For each job of a closed flow and each part: 20,000 jobs at a station and a memory. [s]"""
NODE_BYTES = 400
"""For each pair of nodes of an interconnect, whatever is sent: meshes of 32 x 32 and 64 x 64. [bytes]"""
PLACE_BYTES = 40
"""For each pair of nodes without one, where parts are placed. [bytes]"""


def afford_answer(system: System) -> None:
    """Refuse a system whose answer would ask for more time or memory than is allowed, by its field."""
    steps = {flow.name: _asked(flow.program) for flow in system.flows}
    afford("flows", len(steps), seconds=STEP_FLOW * sum(steps.values()) * len(steps))
    for flow in system.flows:
        program = steps[flow.name]
        afford(f"flows.{flow.name}.program", program, seconds=STEP_STEP * program**2)
        work = JOB_PART * flow.population * min(program, len(system.parts))
        afford(f"flows.{flow.name}.population", flow.population, seconds=work)
    if system.network is None:
        afford("nodes", system.nodes, bytes=PLACE_BYTES * system.nodes**2 if system.place else 0)
        return
    field, topology = f"parts.{system.interconnect}.topology", system.network.topology
    afford(field, topology.nodes, bytes=NODE_BYTES * topology.nodes**2)
    away = {node for at in system.place.values() for node in at}
    pairs = len({node for flow in system.flows for node in flow.at} | away) * len(away)
    afford_routes(field, topology, min(2 * pairs, topology.nodes**2))


def _asked(program: tuple[Any, ...]) -> int:
    """Return the steps of a program, those of equal branches once."""
    count = 0
    for step in program:
        inside = dict.fromkeys(step.branches) if isinstance(step, Fork) else inner_steps(step)
        count += 1 + sum(map(_asked, inside))
    return count
