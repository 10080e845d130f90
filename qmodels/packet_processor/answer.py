"""The analytic answer for a packet processor: metrics, breakdown, saturation."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray, Numeric
from qmodels.guarded import explain_error
from qmodels.packet_processor.balance import Balance, returns
from qmodels.packet_processor.design import Columns, columns
from qmodels.packet_processor.following.recording import overloaded, rotation_of
from qmodels.packet_processor.following.waits import PILED_UP
from qmodels.packet_processor.latency import Latency, latency
from qmodels.packet_processor.link_waits import link_shares
from qmodels.packet_processor.load import OperatingPoint, blocking, operate
from qmodels.systems.memory.dram_map import Interleaved
from qmodels.systems.memory.dram_timing import PRESETS
from qmodels.systems.packets.free_list import allocation_accesses
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.answer import Answer, Deferred, Later
from qmodels.systems.traffic.arrivals import OnOff, Recorded, modelled


def energy_per_packet(
    spec: PacketProcessor,
    *,
    activations: Numeric,
    bursts: Numeric,
    flit_hops: Numeric,
    pointer_accesses: Numeric,
    lookups: Numeric,
    packet_rate: Numeric,
) -> Numeric:
    """Return the energy of one carried packet, in nJ.

    ``activations``, ``bursts``: rows opened and segments moved over a data bus, per carried packet;
    ``flit_hops``: flits per carried packet, each counted once per link it holds; ``pointer_accesses``,
    ``lookups``: pointer-memory accesses, and lookups, per carried packet; lookups cost nothing without
    slices; ``packet_rate``: carried packets, which share the background power [packets/ns].
    """
    price, width = spec.prices[0], spec.noc.link_width
    dynamic = (
        activations * price.activation_nj
        + bursts * price.burst_nj
        + flit_hops * width * price.hop_pj_per_byte / 1000
        + pointer_accesses * price.pointer_nj
        + lookups * price.lookup_nj * (spec.llc.slices > 0)
    )
    background_mw = (
        spec.channels * price.channel_mw
        + spec.llc.slices * price.slice_mw
        + spec.noc.topology.nodes * (price.router_mw + width * price.router_mw_per_byte)
    )
    return dynamic + background_mw / 1000 / packet_rate


VALIDATED_RUN = 32.0
VALIDATED_BANKS = 4.0
FEW_TRIALS, BUSY = 2.0, 0.75
"""Trials, and load of the DRAM buses, above which trials even out channels; the model knows nothing of it."""
LONG_PACKET, LONG_LOAD = 12.0, 0.5
"""Segments of a packet, and load, from which conflicts are off on few channels."""


def doubts(c: Columns, point: Balance) -> dict[str, npt.NDArray[np.bool_]]:
    """Effects that the model leaves out, in words, and the designs they apply to."""
    load = point.load
    router = c.spec.noc.router
    few = router.virtual_channels < 2 or router.buffer_flits < 8
    memory = _of_banks(c, point) if c.memory is None else behind_controllers(c, load)
    memory = memory | _overloaded(c, point)
    found = memory | {
        f"free-list runs shorter than {VALIDATED_RUN:g} blocks": c.run_length < VALIDATED_RUN,
        "blocks that do not return together leave no runs in a list once it is used up": (
            np.full(load.shape, c.spec.free_list.return_order != "together") & (c.run_length > 1.0)
        ),
        "routers with fewer than 2 virtual channels of 8 flits, or another arbitration than round robin": (
            np.full(load.shape, few or router.arbitration != "round_robin")
        ),
        "routers in which flits compete for the switch one by one": (
            np.full(load.shape, not router.hold_switch_for_packet)
        ),
        "credits that come back later than a buffer is empty, for which the model does not stop": (
            np.full(load.shape, c.late_credits)
        ),
    }
    return {words: mask for words, mask in found.items() if words and mask.any()}


def _overloaded(c: Columns, point: Balance) -> dict[str, npt.NDArray[np.bool_]]:
    """Return the designs that stretches of a trace overload, and in words how far at most."""
    if not isinstance(c.spec.workload.arrivals, Recorded):
        return {}
    stream = rotation_of(c.spec.workload)
    part, backlog = overloaded(stream, point.load, c.hold * point.rate)
    some = (part > 0) & (point.load < 1.0)
    worst = int(np.argmax(part * some))
    name = max(point.loads, key=lambda group: float(point.loads[group][worst]))
    words = (
        f"stretches of the trace, up to {100 * part[worst]:.2g} % of its time, offer more than the {name} "
        f"carry: a backlog of up to {backlog[worst] / point.rate[worst] / 1000.0:.3g} us"
    )
    return {words: some, stream.doubt: np.ones_like(part, dtype=bool)}


def _of_banks(c: Columns, point: Balance) -> dict[str, npt.NDArray[np.bool_]]:
    """Effects that the model leaves out of a memory of banks."""
    load, closed = point.load, c.closed_pages
    evened = (c.trials > FEW_TRIALS) & (c.channels > 1) & (point.loads["dram buses"] > BUSY) & (load < 1.0)
    return {
        f"more than {FEW_TRIALS:g} trials, DRAM buses above {BUSY:.0%}: latency up to 16 % too high, "
        "conflicts up to 45 % too low, so that the model orders trials wrongly": evened & (not closed),
        f"fewer than {VALIDATED_BANKS:g} banks a channel": c.banks < VALIDATED_BANKS,
        "closed pages where consecutive blocks share a bank": closed & (c.bank_step != 1),
        "closed pages with several trials": closed & (c.trials > 1),
        "blocks of a row on several banks": (not closed) & (c.bank_step < c.row_blocks),
        "long packets in steps of at most 4 on at most 2 channels: conflicts up to 20 % too low": (
            (c.mean_segments > LONG_PACKET) & (c.step <= 4) & (c.channels <= 2) & (load >= LONG_LOAD)
        ),
    }


STEPS = 60
TOLERANCE = 1e-6
OVERSHOOT = 0.02


def saturation_rate(point: Balance) -> FloatArray:
    """Return the largest packet rate at which every resource keeps up, from a balance at any rate.

    The load of the fullest resource is nearly proportional to the rate: the secant through the
    last two loads leads past 1, then false position (the Illinois rule, which halves the weight of
    an end that stays) narrows the bracket to `TOLERANCE`. Only designs that have not got there are
    computed again. Where a load jumps, the rate of the jump is the answer.
    """
    count = point.rate.size
    low, low_gap = np.zeros(count), np.full(count, -1.0)
    high, high_gap = np.full(count, np.inf), np.ones(count)
    rate, gap = point.rate.copy(), point.load - 1.0
    kept_low, kept_high = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    todo = np.arange(count)
    for _ in range(STEPS):
        now, off = rate[todo], gap[todo]
        below = off < 0.0
        up, down = todo[below], todo[~below]
        slope = np.maximum(off[below] - low_gap[up], 1e-12) / (now[below] - low[up])
        beyond = now[below] - off[below] * (1.0 + OVERSHOOT) / slope + 1e-4 * now[below]
        high_gap[up[kept_high[up]]] /= 2.0
        low_gap[down[kept_low[down]]] /= 2.0
        low[up], low_gap[up] = now[below], off[below]
        high[down], high_gap[down] = now[~below], off[~below]
        kept_high[up], kept_low[up] = True, False
        kept_high[down], kept_low[down] = False, True
        following = np.empty_like(now)
        following[below] = np.minimum(beyond, 4.0 * now[below])
        bracketed = np.isfinite(high[todo])
        both = todo[bracketed]
        part = -low_gap[both] / (high_gap[both] - low_gap[both])
        following[bracketed] = low[both] + (high[both] - low[both]) * np.clip(part, 0.01, 0.99)
        rate[todo] = following
        open_still = ~bracketed | (high[todo] - low[todo] > TOLERANCE * rate[todo])
        todo = todo[open_still]
        if todo.size == 0:
            break
        point = point.at(rate, todo)
        gap[todo] = point.load[todo] - 1.0
    return np.where(np.isfinite(high), (low + high) / 2, low)


def solve_packet_processor(spec: PacketProcessor) -> Answer:
    r"""Analytic answer for a packet processor, or for a sweep of them.

    Parameters
    ----------
    spec : PacketProcessor
        The system; numeric fields may be arrays that broadcast against one another.

    Returns
    -------
    Answer
        Where the offered load exceeds a resource, or a recorded trace piles up packets up to its end,
        latencies are ``inf`` and ``stable`` is False.

    Notes
    -----
    The packet latency is that of a lone packet in an idle system (its critical path through
    pointer memory, links, banks and buses, `qmodels.packet_processor.lone_packet`) plus the mean work of
    other packets it finds at each of them: as Poisson packets bring it, interpolated between light and
    heavy traffic of each resource (`qmodels.packet_processor.heavy_traffic`), and what bursts of on-off
    arrivals add (`qmodels.packet_processor.bursts`); or as the packets of a trace do, which are followed
    (`qmodels.packet_processor.following`), if that is more. Percentiles follow from the mean waits
    (`qmodels.numerics.quantile`), those of a trace from its packets. Row visits, allocation
    trials and the pace of segments depend on one another and are iterated. Sustainable
    throughput is the largest offered load that leaves every resource below its capacity at the
    operating point of that very load. A memory behind controllers has no such law: a sample of packets
    is followed through its commands (`qmodels.packet_processor.controller_waits`), half a second to two for
    each pace at which packets come to it, whatever else varies; another sample gives latencies that are 1 to
    3 % (the percentile 1 to 4 %) apart, and parts of accesses that are 2 to 15 % apart (standard deviations).

    Approximation. Assumes packets that arrive independently of the memory's state, engines
    chosen at random, free-list runs that start at random addresses (rejected blocks do not come
    back within the horizon), and a memory whose banks see visits as a Poisson stream.

    Examples
    --------
    >>> result = solve_packet_processor(PacketProcessor())
    >>> bool(result.stable), result.bottleneck
    (True, 'dram buses')
    """
    c = columns(spec)
    point = operate(c, np.asarray(c.packet_rate))
    modelled("workload.arrivals", c.spec.workload.arrivals)  # refuses what no latency is known for
    doubted = doubts(c, point)
    groups, loads = np.array(list(point.loads)), np.array(list(point.loads.values()))

    def shown(value: Any) -> Any:
        return _plain(_wide(c, value))

    # Packets of a trace are followed for a latency, and not for what speaks against the numbers.
    parts = cache(lambda: latency(c, point))
    stable = cache(lambda: (point.load < 1.0) & (parts().growth <= PILED_UP))
    metrics = cache(lambda: _metrics(c, point, parts(), stable()))

    def explained(value: Callable[[], Any], same: Callable[[Answer], Any]) -> Any:
        return explain_error(value, spec, lambda other: same(solve_packet_processor(other)))

    def metric(name: str) -> Any:
        def value() -> Any:
            found = metrics()[name]
            return shown(found() if callable(found) else found)

        return explained(value, lambda other: other.metrics[name])

    def latency_parts() -> dict[str, Any]:
        found = _latency_parts(c, parts())
        return {name: shown(_where(stable(), part)) for name, part in found.items()}

    late: Any = {
        "latency_parts": Deferred(lambda: explained(latency_parts, lambda other: other.latency_parts)),
        "stable": Deferred(lambda: explained(lambda: shown(stable()), lambda other: other.stable)),
    }
    return Answer(
        model="packet processor, analytic",
        spec=spec,
        metrics=Later(spec.metric_names.both, metric),
        utilization={name: shown(np.minimum(value, 1.0)) for name, value in point.intensity.items()},
        traffic_intensity={name: shown(value) for name, value in point.loads.items()},
        bottleneck=shown(groups[loads.argmax(axis=0)]),
        details={"resources": {} if c.full_shape else _resources(c, point)},
        doubts={words: shown(mask) for words, mask in doubted.items()},
        **late,
    )


def _where(stable: Any, value: Any) -> Any:
    return np.where(stable, value, np.inf)


def _wide(c: Columns, value: Any) -> Any:
    """Return a column in the broadcast shape of the whole sweep, without a copy."""
    value = np.asarray(value)
    return np.broadcast_to(value if value.shape == c.full_shape else value.reshape(c.shape), c.full_shape)


def _plain(value: Any) -> Any:
    """Return the number where there is only one design."""
    return value if np.ndim(value) else np.asarray(value).item()


def _metrics(c: Columns, point: OperatingPoint, parts: Latency, stable: Any) -> dict[str, Any]:
    """Return every metric, or a function that does: for what takes more than the rest together."""
    spec, share, events = c.spec, c.size_share, _events(c, point, parts.accesses)
    total = _where(stable, parts.total @ share)
    with np.errstate(invalid="ignore"):  # of an overloaded design both times are infinite
        time = np.where(stable, total - parts.lookup + c.hold, 0.0)

    @cache
    def saturation() -> FloatArray:
        return saturation_rate(point)

    @cache
    def refused() -> tuple[FloatArray, FloatArray]:
        return _refused(c, point, time, saturation())

    def carried() -> FloatArray:
        return np.asarray(_wide(c, point.rate) * (1.0 - refused()[0]))

    def energy() -> Any:
        wide = {name: _wide(c, value) for name, value in events.items()}
        with np.errstate(divide="ignore"):
            return energy_per_packet(spec, **wide, packet_rate=carried())

    return {
        "packet_latency": total,
        "packet_latency_p99": lambda: _where(stable, parts.tail()),
        "lookup_latency": _where(stable, parts.lookup),
        "write_latency": _where(stable, parts.store_wait + (parts.allocation + parts.write) @ share),
        "read_latency": _where(stable, parts.drain_wait + (parts.dequeue + parts.read) @ share),
        "data_rate": lambda: carried() * c.mean_bytes * 8,
        "saturation_data_rate": lambda: saturation() * c.mean_bytes * 8,
        "write_conflict_probability": point.conflicts[0],
        "read_conflict_probability": point.conflicts[1],
        "row_hit_ratio": 1.0 - events["activations"] / events["bursts"],
        "pointer_accesses_per_allocation": parts.accesses,
        "max_pointer_accesses_per_allocation": np.where(
            c.small_part < 1.0, allocation_accesses(c.trials - 1.0), 1.0
        ),
        "llc_hit_ratio": np.where(c.lookups > 0, c.hit_ratio, 0.0),
        "overflow_probability": lambda: refused()[1],
        "blocking_probability": lambda: refused()[0],
        "max_utilization": np.minimum(np.max(list(point.intensity.values()), axis=0), 1.0),
        "energy_per_packet": energy,
        "cost": np.broadcast_to(np.asarray(spec.area, dtype=float), c.full_shape),
    }


def _refused(
    c: Columns, point: OperatingPoint, time: FloatArray, saturation: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the parts of the packets and of the segments that are refused, stored for such a time."""
    stable, free = point.load < 1.0, c.spec.free_list
    stored = point.rate * time
    own, every, small = (
        np.broadcast_to(np.asarray(part, dtype=float), c.full_shape).reshape(-1)
        for part in (free.vms1_segments, free.segments, free.small_packet_segments)
    )
    blocked = blocking(c, small=small, own=own, others=every - own, stored=_wide(c, stored).reshape(-1))
    # What an overloaded design cannot carry is refused in the end: its blocks never come back.
    excess = 1.0 - np.minimum(saturation / point.rate, 1.0)
    packets, segments = (
        np.where(_wide(c, stable), part.reshape(c.full_shape), _wide(c, excess)) for part in blocked
    )
    return packets, segments


def _latency_parts(c: Columns, parts: Latency) -> dict[str, FloatArray]:
    share = c.size_share
    return {
        "lookup": parts.lookup,
        "write: pointer memory wait": parts.store_wait,
        "write: allocation": parts.allocation @ share,
        "write: network and dram": parts.write @ share,
        "read: pointer memory wait": parts.drain_wait,
        "read: dequeue": parts.dequeue @ share,
        "read: network and dram": parts.read @ share,
    }


def _events(c: Columns, point: OperatingPoint, accesses: FloatArray) -> dict[str, FloatArray]:
    """Return the events of one carried packet that cost energy."""
    mean = c.mean_segments
    reads = mean + c.miss_rate
    data_flits, request_flits = c.spec.segment_flits, c.spec.request_flits
    flits = np.broadcast_to(np.asarray(data_flits, dtype=float), c.shape).reshape(-1)
    requests = np.broadcast_to(np.asarray(request_flits, dtype=float), c.shape).reshape(-1)
    return {
        "activations": point.changes.sum(axis=0) * mean + c.miss_rate,
        "bursts": 2 * mean + c.miss_rate,
        "flit_hops": (mean * flits + reads * requests) * point.request.links
        + reads * flits * point.response.links,
        "pointer_accesses": c.enqueue_packet_accesses
        + c.dequeue_packet_accesses
        + returns(c) @ c.size_share
        + mean * (accesses + c.enqueue_accesses + c.dequeue_accesses),
        "lookups": c.lookups,
    }


def _resources(c: Columns, point: OperatingPoint) -> dict[str, float]:
    """Return the traffic intensity of every resource of one design."""
    spec = c.spec
    rate, mean, misses = float(point.rate[0]), c.mean_segments, float(c.miss_rate[0])
    channels, banks = int(c.channels[0]), int(c.banks[0])
    request, response = link_shares(spec.noc.structure, channels)
    reads = mean + misses
    work = mean * float(c.segment_time[0]) + reads * float(c.request_time[0])
    table: dict[str, float] = {"pointer memory": float(point.intensity["pointer memory"][0])}
    slices = int(c.slices[0])
    for k in range(slices):
        table[f"llc slice {k}"] = rate * float(c.lookups[0] * c.slice_time[0]) / slices
    for network, load, per_packet in (
        ("request", request, work),
        ("response", response, reads * float(c.segment_time[0])),
    ):
        for name, part in zip(load.names, load.share, strict=True):
            if part > 0:
                table[f"{network} {name}"] = rate * per_packet * float(part)
    bus = rate * float(c.burst[0]) * (2 * mean + misses) / channels
    opening = float(c.opening[0])
    data = float(point.changes.sum()) * mean * (opening - float(c.burst[0])) + 2 * mean * float(c.burst[0])
    bank = rate * (data + misses * opening) / (channels * banks)
    for k in range(channels):
        table[f"channel {k} bus"] = bus
        for b in range(banks if c.memory is None else 0):
            table[f"channel {k} bank {b}"] = bank
    return table


DEVICES = ("DDR4-3200", "DDR5-6400")
"""Presets with whose timings it was measured."""
TRIALS_LOAD = 0.55
"""Load from which trials, which the followed sample does without, save so many conflicts that it shows."""


def behind_controllers(c: Columns, load: FloatArray) -> dict[str, npt.NDArray[np.bool_]]:
    """Reasons why designs are unlike those that were simulated, and which designs."""
    memory: Any = c.spec.dram
    known = any(memory.timing == PRESETS[name].timing for name in DEVICES)
    plan = memory.address_map
    permuted = isinstance(plan, Interleaved) and plan.permute != "none"
    everywhere = np.ones(load.shape, dtype=bool)
    return {
        f"timings of a memory other than {' or '.join(DEVICES)}": everywhere & (not known),
        "closed pages behind controllers: saturation up to 27 % off": everywhere & c.closed_pages,
        "banks that are permuted by the row": everywhere & permuted,
        "a scheduler other than fr-fcfs": everywhere & (memory.scheduler != "fr-fcfs"),
        "lists for small packets with a memory behind controllers": c.small > 0,
        f"several trials over banks in turn, above {TRIALS_LOAD:.0%}: latency up to 31 % too high": (
            (c.trials > 1) & (c.bank_step < c.row_blocks) & (load > TRIALS_LOAD)
        ),
        "bursts with a memory behind controllers": everywhere
        & isinstance(c.spec.workload.arrivals, OnOff | Recorded),
    }
