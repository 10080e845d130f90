"""How far the model of systems of parts was found to be from their simulation, and where."""

from __future__ import annotations

from pathlib import Path

from qmodels.evidence.error_map import ErrorMap, MeasuredError
from qmodels.systems.cache.spec import CacheSystem
from qmodels.systems.composed.parts import ServingPart
from qmodels.systems.composed.steps import all_steps
from qmodels.systems.composed.system import System
from qmodels.systems.memory.banked_channels import BankedChannels
from qmodels.systems.memory.dram_presets import PRESETS
from qmodels.systems.memory.dram_system import DramSystem
from qmodels.systems.noc.spec import Noc
from qmodels.systems.packets.free_list import FreeList
from qmodels.systems.stations.parts import Station
from qmodels.systems.traffic.arrivals import Recorded

ERRORS = ErrorMap(Path(__file__).with_name("error_map.csv"))
UNMEASURED = (BankedChannels, ServingPart)
FEW = ("several flows", "caches", "free lists")
"""What was measured on a few systems with one of them each."""
MEMORIES = ("DDR4-3200", "HBM2")
"""Presets of the memories in what was measured."""
LOADS = ((0.0, 0.4), (0.4, 0.6), (0.6, 0.78), (0.78, 0.95))
"""Loads of the fullest resource, above the first and up to the second, of the regions."""


BURSTIEST, MOST_VARIABLE = 6.4, 4.0
"""Largest SCV of the times between arrivals, and of services, with which the error was measured."""


def region_of(system: System) -> str:
    """Return the region of the error map in which a system lies.

    >>> from qmodels.systems.composed.flow import Flow
    >>> from qmodels.systems.composed.steps import Visit
    >>> from qmodels.systems.laws.times import Exponential
    >>> from qmodels.systems.stations.parts import Station
    >>> flow = Flow(population=2, program=(Visit("disk"),))
    >>> region_of(System(parts={"disk": Station(service=Exponential(mean=1.0))}, flows=flow))
    'closed, stations'
    """
    beside = _beside(system)
    if beside:
        return " and ".join(beside)
    hardware = any(isinstance(part, DramSystem | Noc) for part in system.parts.values())
    if all(flow.closed for flow in system.flows):
        source = "closed"
    else:
        source = "window" if any(flow.window for flow in system.flows) else "open"
    return f"{source}, {'with a memory' if hardware else 'stations'}"


def _beside(system: System) -> list[str]:
    """Return what a system has that most of those measured have not."""
    parts = system.parts.values()
    has = (
        len(system.flows) > 1,
        *(any(isinstance(p, kind) for p in parts) for kind in (CacheSystem, FreeList)),
    )
    return [name for name, there in zip(FEW, has, strict=True) if there]


def measured_errors(system: System, load: float) -> dict[str, MeasuredError]:
    """Return the errors measured on systems like one at a load."""
    return ERRORS.at(region=region_of(system), load=load)


def error_doubts(system: System, load: float, *, exact: bool) -> tuple[str, ...]:
    """Return what keeps a system from being like those that the errors were measured on, in words.

    ``exact``: whether all but the percentiles is.
    """
    doubts = _variable_times(system)
    if exact:
        return tuple(f"percentiles: {words}" for words in doubts)
    if load > LOADS[-1][1]:
        doubts.append(f"a load above {LOADS[-1][1]:.0%}, which was not measured")
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
