"""How far the model of systems of parts was found to be from their simulation, and where."""

from __future__ import annotations

from qmodels.systems.cache.spec import CacheSystem
from qmodels.systems.composed.parts import ServingPart
from qmodels.systems.composed.steps import all_steps
from qmodels.systems.composed.system import System
from qmodels.systems.memory.banked_channels import BankedChannels
from qmodels.systems.memory.dram_presets import PRESETS
from qmodels.systems.memory.dram_system import DramSystem
from qmodels.systems.packets.free_list import FreeList
from qmodels.systems.stations.parts import Station
from qmodels.systems.traffic.arrivals import Recorded

UNMEASURED = (BankedChannels, ServingPart)
FEW = ("several flows", "caches", "free lists")
"""What was measured on a few systems with one of them each."""
MEMORIES = ("DDR4-3200", "HBM2")
"""Presets of the memories in what was measured."""
MOST_LOAD = 0.95
"""Of the fullest resource, with which the error was measured."""

BURSTIEST, MOST_VARIABLE = 6.4, 4.0
"""Largest SCV of the times between arrivals, and of services, with which the error was measured."""


def _beside(system: System) -> list[str]:
    """Return what a system has that most of those measured have not."""
    parts = system.parts.values()
    has = (
        len(system.flows) > 1,
        *(any(isinstance(p, kind) for p in parts) for kind in (CacheSystem, FreeList)),
    )
    return [name for name, there in zip(FEW, has, strict=True) if there]


def error_doubts(system: System, load: float, *, exact: bool) -> tuple[str, ...]:
    """Return what keeps a system from being like those that the errors were measured on, in words.

    ``exact``: whether all but the percentiles is.
    """
    doubts = _variable_times(system)
    if exact:
        return tuple(f"percentiles: {words}" for words in doubts)
    if load > MOST_LOAD:
        doubts.append(f"a load above {MOST_LOAD:.0%}, which was not measured")
    beside = _beside(system)
    if beside:
        alone = "on a few systems" if len(beside) == 1 else "without, or with one of them on a few systems"
        doubts.append(f"{' and '.join(beside)}: the error was measured {alone}")
    if any(isinstance(part, UNMEASURED) for part in system.parts.values()):
        doubts.append("banked channels or parts of others: the error was measured without")
    memories = [part.timing for part in system.parts.values() if isinstance(part, DramSystem)]
    if any(timing not in [PRESETS[name].timing for name in MEMORIES] for timing in memories):
        doubts.append(f"a memory other than {' and '.join(MEMORIES)}: the error was measured with these")
    if any(flow.loses for flow in system.flows):
        doubts.append("a window that loses jobs: the error was measured without")
    if system.turning:
        doubts.append("tokens that turn, as if their uses came at random: the error was measured without")
    if any(getattr(step, "same", False) for flow in system.flows for step in all_steps(flow.program)):
        doubts.append("visits that take the same time, as if they did not: the error was measured without")
    return tuple(doubts)


def _variable_times(system: System) -> list[str]:
    """Return what times of a system vary more than those that the errors were measured with."""
    doubts = []
    gaps = [float(flow.arrivals.scv) for flow in system.flows if hasattr(flow.arrivals, "scv")]
    if any(isinstance(flow.arrivals, Recorded) for flow in system.flows):
        doubts.append("recorded arrivals: the error was measured without")
    elif max(gaps, default=0.0) > BURSTIEST:
        doubts.append(f"arrivals with an SCV of {max(gaps):.3g}: the error was measured up to {BURSTIEST:g}")
    stations = [part for part in system.parts.values() if isinstance(part, Station)]
    laws = [station.service_law(flow.name) for station in stations for flow in system.flows]
    services = max((float(law.scv) for law in laws if law is not None), default=0.0)
    if services > MOST_VARIABLE:
        doubts.append(
            f"services with an SCV of {services:.3g}: the error was measured up to {MOST_VARIABLE:g}"
        )
    return doubts
