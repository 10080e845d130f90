"""The kinds of systems by name: where the spec of each is, and an example of it.

A package of others adds a kind by an entry point of the group ``qmodels.kinds`` that gives a `Kind`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Any, TypeVar

from qmodels import checks
from qmodels.systems.spec.metrics import METRICS, Metric

Value = TypeVar("Value")


class Named(Mapping[str, Value]):
    """A mapping that does not change, for fields of frozen specs.

    The walker of fields goes into it as into a spec: its parts go by their names.

    Parameters
    ----------
    values : mapping
        ``{name: value}``; names are words without a dot.

    Raises
    ------
    ValueError
        If a name is none.

    Examples
    --------
    >>> named = Named({"near": 1, "far": 2})
    >>> named["far"], list(named), named == {"near": 1, "far": 2}
    (2, ['near', 'far'], True)
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Value]) -> None:
        for name in values:
            if not isinstance(name, str) or not name or not name.isprintable() or "." in name:
                raise ValueError(f"a name must be a text without a dot and not empty, got {name!r}")
        self._values = dict(values)

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self._values == dict(other)

    def __repr__(self) -> str:
        return repr(self._values)

    def __reduce__(self) -> tuple[Any, ...]:
        return Named, (self._values,)


def attached(
    package: str, homes: Mapping[str, str], groups: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    ``homes``: the names that each module gives; those of the package itself are its modules; ``groups``:
    packages in it where a name that it has not is looked for, to say so.
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def look_up(name: str) -> Any:
        if name not in home:
            hint = "" if name.startswith("_") or find_spec(f"{package}.{name}") else elsewhere(name)
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        module = home[name]
        value = (
            import_module(f"{module}.{name}") if module == package else getattr(import_module(module), name)
        )
        setattr(sys.modules[package], name, value)
        return value

    def elsewhere(name: str) -> str:
        found = [group for group in groups if name in import_module(f"{package}.{group}").__all__]
        return f"; it is {package}.{found[0]}.{name}" if found else ""

    return look_up, lambda: sorted(home), sorted(home)


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
