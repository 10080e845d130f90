"""One verb for every spec: ``solve(spec)``."""

from __future__ import annotations

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any

from qmodels.guarded import of_spec
from qmodels.systems.spec.answer import Answer
from qmodels.systems.spec.kind import BoxBounds, kind_of

MODELS = {
    "packet-processor": "packet_processor:solve_packet_processor",
    "queueing-network": "networks.solve:solve_network",
    "data-queueing": "allocator:solve_data_queueing",
    "noc": "noc.solve_noc:solve_noc",
    "message-program": "noc.solve_program:solve_program",
    "dram": "memory.dram.solve:solve_dram",
    "cache": "llc.solve_cache:solve_cache",
    "llc-processor": "llc.solve_processor:solve_llc_processor",
    "numa": "memory.numa:solve_numa",
    "work-queues": "work_queues.solve:solve_work_queues",
    "system": "composed.solve:solve_system",
}
"""The model of each of our kinds, imported when it is asked for."""


def solve(spec: Any) -> Answer:
    """Return the analytic answer of a system spec.

    Parameters
    ----------
    spec : dataclass
        A frozen spec of a registered kind (`qmodels.systems.spec.kind.kinds`). Numeric fields that may
        be arrays (``qmodels describe`` says which) are a sweep: the answer has their broadcast shape.

    Returns
    -------
    Answer
        Metrics by name, where the time goes, the bottleneck, how far to trust it.

    Raises
    ------
    TypeError
        If the spec is of no kind that has a model.
    ValueError
        If no model covers the spec; the message says what is covered.

    Examples
    --------
    >>> from qmodels.systems.packets.packet_processor import PacketProcessor
    >>> bool(solve(PacketProcessor()).stable)
    True
    """
    from qmodels.evidence.intervals import with_evidence

    return with_evidence(of_spec(model_of(spec), spec))


def bounds(spec: Any) -> BoxBounds:
    """Bounds of the metrics of a kind over boxes of specs, for `optimize.explore`.

    Parameters
    ----------
    spec : dataclass
        What the specs of all boxes have in common.

    Returns
    -------
    BoxBounds
        Which metrics have bounds derived from the model's formulas, over which fields, and the functions.

    Raises
    ------
    TypeError
        If nothing was derived for the kind of the spec.
    ValueError
        If it was not for this spec.

    Examples
    --------
    The least and the most latency of processors with 1 to 8 slices:

    >>> from qmodels.systems.packets.packet_processor import PacketProcessor
    >>> from qmodels.systems.spec.fields import replace_fields
    >>> few, many = (replace_fields(PacketProcessor(), {"llc.slices": slices}) for slices in (1, 8))
    >>> least, most = bounds(few).stages[0](few, many)["packet_latency"]
    >>> bool(least[0] < solve(many).packet_latency < solve(few).packet_latency < most[0])
    True
    """
    kind = kind_of(spec)
    if kind.name != "packet-processor":
        raise TypeError(f"bounds needs a kind with bounds, the packet processor, got {kind.name!r}")
    from qmodels.packet_processor.bounds import packet_processor_bounds

    return packet_processor_bounds(spec)


def model_of(spec: Any) -> Callable[[Any], Answer]:
    """Return the function that solves specs of this one's kind; only what is asked for is imported."""
    kind = kind_of(spec)
    if kind.model is not None:
        return kind.model()
    if kind.name not in MODELS:
        raise TypeError(f"solve needs a kind with a model, got {kind.name!r}")
    found: Callable[[Any], Answer] = resolve_name(f"qmodels.{MODELS[kind.name]}")
    return found
