"""The kinds of systems by name: where the spec of each is, and an example of it.

A package of others adds a kind by an entry point of the group ``qmodels.kinds`` that gives a `Kind`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import entry_points
from pkgutil import resolve_name
from typing import Any

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.spec.metrics import METRICS, Metric

GROUP = "qmodels.kinds"
"""Entry points of this group give kinds of other packages."""

_SPECS = {
    "packet-processor": "packets.packet_processor:PacketProcessor",
    "queueing-network": "stations.queueing_network:QueueingNetwork",
    "data-queueing": "packets.data_queueing:DataQueueing",
    "noc": "noc.spec:Noc",
    "message-program": "programs.messaging:MessageProgram",
    "dram": "memory.dram_system:DramSystem",
    "cache": "cache.spec:CacheSystem",
    "llc-processor": "cache.llc_processor:LlcProcessor",
    "numa": "memory.numa_system:NumaMachine",
    "work-queues": "programs.work_queues:WorkQueues",
    "system": "composed.system:System",
}
KINDS = tuple(_SPECS)
"""The names of our kinds."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of system; whatever it names is imported when it is called for.

    Examples
    --------
    >>> kind = kind_named("noc")
    >>> kind.spec().__name__, kind.starter().topology.kind
    ('Noc', 'spidergon')
    """

    name: str  # What it is called in files and on the command line, in kebab case
    spec: Callable[[], type[Any]]  # Returns the frozen dataclass of its specs
    starter: Callable[[], Any]  # Returns a small example
    # Returns the function from a spec to an analytic answer; of a kind that is not ours
    model: Callable[[], Callable[..., Any]] | None = None
    # Returns the class of the experiment that simulates a spec; of a kind that is not ours
    simulator: Callable[[], type[Any]] | None = None
    # Metrics that are not among ours, see `qmodels.systems.spec.metrics.METRICS`
    metrics: Mapping[str, Metric] = field(default_factory=dict)


def kind_named(name: str) -> Kind:
    """Return the kind of a name.

    Raises
    ------
    ValueError
        If there is none; the nearest name is suggested.
    """
    if name in KINDS:
        return _ours(name)
    known = kinds()
    return known[checks.choice("kind", name, known)]


def kind_of(spec: Any) -> Kind:
    """Return the kind of a spec, or of a class of specs.

    Raises
    ------
    TypeError
        If it is of none.

    Examples
    --------
    >>> from qmodels.systems.noc.spec import Noc
    >>> kind_of(Noc()).name
    'noc'
    """
    bases = (spec if isinstance(spec, type) else type(spec)).__mro__
    for known in (_ours_by_spec, _others_by_spec):
        found = known()
        for base in bases:
            if base in found:
                return found[base]
    raise TypeError(f"a system spec must be of a kind ({', '.join(kinds())}), got a {bases[0].__name__}")


def metric_of(spec: Any, name: str) -> Metric:
    """Return the declaration of a metric of a spec, whatever place its name has in brackets.

    Examples
    --------
    >>> metric_of(None, "mean_response_time[disk, read]").unit
    'time'
    """
    name = name.partition("[")[0]
    return METRICS[name] if name in METRICS else kind_of(spec).metrics[name]


def kinds() -> dict[str, Kind]:
    """Return all kinds by name: ours, then those of other packages.

    Raises
    ------
    ValueError
        If two have one name, or an entry point gives no kind.
    """
    return {name: _ours(name) for name in KINDS} | _others()


@cache
def _others() -> dict[str, Kind]:
    found: dict[str, Kind] = {}
    for point in entry_points(group=GROUP):
        kind = point.load()
        if not isinstance(kind, Kind):
            raise ValueError(f"entry point {point.name} = {point.value} must give a Kind, got {kind!r}")
        if kind.name in found or kind.name in KINDS:
            raise ValueError(f"entry point {point.name} = {point.value}: the kind {kind.name!r} is taken")
        found[kind.name] = kind
    return found


@cache
def _ours_by_spec() -> dict[type[Any], Kind]:
    return {_spec(name): _ours(name) for name in KINDS}


@cache
def _others_by_spec() -> dict[type[Any], Kind]:
    return {kind.spec(): kind for kind in _others().values()}


@cache
def _ours(name: str) -> Kind:
    return Kind(name=name, spec=partial(_spec, name), starter=partial(_starter, name))


def _spec(name: str) -> type[Any]:
    found: type[Any] = resolve_name(f"qmodels.systems.{_SPECS[name]}")
    return found


def _starter(name: str) -> Any:
    """Return the example of a kind, or its defaults."""
    made = resolve_name("qmodels.systems.starters:STARTERS").get(name, _spec(name))
    return made()


Ends = Mapping[str, tuple[FloatArray, FloatArray]]
"""The least and the most that every metric may be, one value per box."""


@dataclass(frozen=True, kw_only=True)
class BoxBounds:
    """Bounds of a kind's metrics over boxes: all specs between one of lowest and one of highest fields.

    Parameters
    ----------
    derived : tuple of str
        Metrics whose bounds follow from the formulas; of others nothing is known.
    spans : tuple of str
        Dotted names of the fields that may differ within a box. All others have one value in each.
    early : tuple of str
        Those of them that later stages need at one value.
    idle : mapping of str to tuple of str
        Metrics, of these or others, that do not depend on some of these fields at all.
    stages : tuple of callable
        Each takes the specs of the lowest and of the highest corners, fields that vary as flat arrays with
        one element per box, and returns the ends of the `derived` metrics, and of ``stable`` (0 to 1). The
        first is the cheapest, each later one at least as tight.
    assumes : str
        What the bounds hold for, in words.
    """

    derived: tuple[str, ...]
    spans: tuple[str, ...]
    early: tuple[str, ...]
    idle: Mapping[str, tuple[str, ...]]
    stages: tuple[Callable[[Any, Any], Ends], ...]
    assumes: str
