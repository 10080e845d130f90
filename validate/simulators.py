"""The simulator of each kind of system."""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any

from qmodels import checks
from qmodels.systems.spec.kind import kind_of
from validate.campaigns.experiment import UNITS

SIMULATORS = {
    "packet-processor": "packet_processor.simulate:PacketExperiment",
    "queueing-network": "network.run:NetworkExperiment",
    "data-queueing": "data_queueing.simulate:DataQueueingExperiment",
    "noc": "noc.experiment:NocExperiment",
    "message-program": "messaging:ProgramExperiment",
    "dram": "dram.experiment:DramExperiment",
    "cache": "cache.experiment:CacheExperiment",
    "llc-processor": "llc_processor:LlcProcessorExperiment",
    "numa": "numa:NumaExperiment",
    "system": "composed.experiment:SystemExperiment",
    "work-queues": "work_queues:WorkQueuesExperiment",
}
"""The experiment of each of our kinds, imported when it is asked for."""


def simulator_of(spec: Any) -> type[Any]:
    """Return the experiment that simulates specs of this one's kind; only what is asked for is imported.

    Raises
    ------
    TypeError
        If the spec is of no kind that has a simulator.
    """
    kind = kind_of(spec)
    if kind.simulator is not None:
        return kind.simulator()
    if kind.name not in SIMULATORS:
        raise TypeError(f"simulate needs a kind with a simulator, got {kind.name!r}")
    found: type[Any] = resolve_name(f"validate.{SIMULATORS[kind.name]}")
    return found


def own_options(spec: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of a simulator by its own names: ``packets`` is of any kind how long a replication is.

    Raises
    ------
    TypeError
        If the spec's kind has no simulator, or its simulator no such option, or one is given by both names.
    """
    known, name = simulator_of(spec).options(), type(spec).__name__
    unit = next((one for one in UNITS if one in known), UNITS[0])
    if unit != UNITS[0] and {unit, UNITS[0]} <= given.keys():
        raise TypeError(f"simulate takes {UNITS[0]} or {unit} for a {name}, which are the same, got both")
    own = {unit if option == UNITS[0] else option: value for option, value in given.items()}
    for option in own:
        if option not in known:
            why = checks.nearest(option, known)
            if option == UNITS[0]:
                why = ": a replication ends when all of it is done"
            has = f"its options are {', '.join(known)}" if known else "it has no options"
            raise TypeError(f"simulate has no option {option!r} for a {name}{why}; {has}")
    return own
