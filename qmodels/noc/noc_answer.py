"""The answer to a network-on-chip's spec: latency per flow, load per channel, what saturates first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.noc.delay_law import delay_quantiles
from qmodels.noc.source_queue import source_waits
from qmodels.noc.waits import Waits, find_waits, largest_load, saturation_load
from qmodels.systems.noc.flows import Bernoulli
from qmodels.systems.noc.router import Router
from qmodels.systems.noc.routes import may_deadlock
from qmodels.systems.noc.spec import Noc
from qmodels.systems.spec.answer import Answer, Deferred, Later

METRICS = tuple(
    name for name in (*Noc.metric_names.both, *Noc.metric_names.model) if not name.startswith("transaction_")
)
"""Those of closed loops are `qmodels.noc.closed_loop`'s."""

COMPETING = (
    "flits compete for the switch, solved as if packets held it: latency within 4 % to 70 % of saturation, "
    "up to 16 % too low at 85 %, half or less at 95 %"
)
"""Measured by `tests/validate/noc/test_noc_booksim.py`."""
FIELDS = ("stable", "latency_parts", "bottleneck", "utilization", "traffic_intensity", "doubts")
DETAILS = (
    "waits", "deadlock", "source_delay", "congested_rate", "ideal_saturation_rate", "channels", "flows",
)  # fmt: skip

CURVE_POINTS = 50

SAME = 1e-9
"""Loads of channels that differ by a smaller part are alike."""

NOTICED = 0.95
"""Answers warn of networks that carry less than this part of their saturation rate once jammed."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Steady state of a network-on-chip at one injection rate, or along a load curve.

    What needs more than the waits is computed when it is first asked for. The saturation rate and the
    zero-load latency are one number for a curve.
    """

    spec: Noc
    waits: Waits  # what the fixed point gave, for the injection rates in order
    deadlock: tuple[str, ...] = ()  # see `noc_answer`

    @property
    def _shape(self) -> tuple[int, ...]:
        return np.shape(self.spec.mean_rate)

    def _as_asked(self, values: Any) -> Any:
        """Return values along the loads in the shape of the injection rate."""
        values = np.asarray(values)
        return values.reshape(self._shape + values.shape[1:])[()]

    def _ns(self, cycles: Any) -> Any:
        """Return times along the loads in the shape of the injection rate. [ns]."""
        return self._as_asked(cycles) / self.spec.clock_ghz

    @cached_property
    def _part(self) -> FloatArray:
        """Part of each flow in all packets."""
        rate = self.waits.turns.flow_rate
        total = rate.sum()
        return rate / total if total > 0 else rate

    @cached_property
    def source_delay(self) -> FloatArray:
        """Mean wait of each flow's packets in their source queue, shape (loads, flows) [cycles]."""
        return source_waits(self.spec, self.waits)

    @cached_property
    def _flow_traversal(self) -> FloatArray:
        delay = np.array([self.waits.along(point) for point in range(self.waits.loads.size)])
        return self.waits.turns.zero_load + delay

    @cached_property
    def _mean_traversal(self) -> FloatArray:
        """Of all packets, from the turns: no need to go through the flows."""
        waits, turns = self.waits, self.waits.turns
        if turns.table.circuit.any() or turns.offered <= 0:
            return self._flow_traversal @ self._part
        total = waits.at_turn + waits.stall[:, turns.source]
        return turns.zero_load @ self._part + total @ turns.packets / turns.offered

    @cached_property
    def stable(self) -> Any:
        """Whether all queues have a steady state."""
        return self._as_asked(self.waits.stable)

    @cached_property
    def latency_parts(self) -> Mapping[str, Any]:
        """Mean wait at the sources and time in the network. [ns]."""
        return {"source queue": self.source_queue_delay, "network": self.traversal_delay}

    @property
    def zero_load_latency(self) -> float:
        """Latency of a packet alone in the network, mean over the packets [ns]."""
        return float(self.waits.turns.zero_load @ self._part) / self.spec.clock_ghz

    @property
    def source_queue_delay(self) -> Any:
        """Mean wait in the queue of the network interface [ns]."""
        return self._ns(self.source_delay @ self._part)

    @property
    def traversal_delay(self) -> Any:
        """Mean time from the head leaving the source queue until the tail is out [ns]."""
        return self._ns(self._mean_traversal)

    @property
    def packet_latency(self) -> Any:
        """Mean time from the injection into the source queue until the tail is out [ns]."""
        return self._ns(self.source_delay @ self._part + self._mean_traversal)

    def quantile(self, probability: float) -> Any:
        """Return a quantile of the latency of all packets [ns].

        Notes
        -----
        An approximation on top of the means: the wait of each flow beyond its zero-load latency is
        taken to be gamma distributed, with the variance of waits on its path that are 0 or exponential,
        and more as they come together.
        """
        return self._ns(delay_quantiles(self.waits, self.source_delay, self._part, probability))

    @cached_property
    def packet_latency_p95(self) -> Any:
        """95th percentile of the packet latency [ns]."""
        return self.quantile(0.95)

    @cached_property
    def packet_latency_p99(self) -> Any:
        """99th percentile of the packet latency [ns]."""
        return self.quantile(0.99)

    @cached_property
    def _saturation_load(self) -> float:
        return saturation_load(self.waits.turns)

    @property
    def saturation_rate(self) -> float:
        """Packets of a node that sends, mean, from which queues grow without end [1/ns]."""
        return self._saturation_load * self.spec.clock_ghz

    @property
    def _part_of_saturation(self) -> FloatArray:
        loads, most = self.waits.loads, self._saturation_load
        return loads / most if most > 0 else np.where(loads > 0, np.inf, 0.0)

    @property
    def _congested_load(self) -> float:
        return min(self._saturation_load, self.waits.turns.jam[1])

    @property
    def congested_rate(self) -> float:
        """The same that is carried once all buffers are full [1/ns].

        Below the saturation rate in rings and Spidergons: between the two a network is metastable, and
        keeps up as long as no burst jams it; see `qmodels.noc.collapse`.
        """
        return self._congested_load * self.spec.clock_ghz

    @property
    def ideal_saturation_rate(self) -> float:
        """The same at which the first channel is busy all the time, an upper bound [1/ns]."""
        return largest_load(self.waits.turns) * self.spec.clock_ghz

    @cached_property
    def _busy(self) -> FloatArray:
        """Busy fraction of each channel at an injection rate of 1."""
        channels = self.waits.turns.channels
        return np.asarray(channels[:, 1] + channels[:, 6])

    @cached_property
    def bottleneck(self) -> str:
        """Name of the channel that is busy for most of the time; of those alike the first."""
        if not self._busy.any():
            return ""
        # Sums in another order make channels that are alike differ by rounding.
        return self.waits.turns.table.channel_names[
            int(np.argmax(self._busy > (1 - SAME) * self._busy.max()))
        ]

    @property
    def delivered_rate(self) -> Any:
        """Packets delivered by the whole network [1/ns]."""
        turns, loads = self.waits.turns, self.waits.loads
        stable = self.waits.stable
        carried = loads if stable.all() else np.where(stable, loads, np.minimum(loads, self._congested_load))
        return self._as_asked(carried * turns.offered) * self.spec.clock_ghz

    @property
    def bandwidth(self) -> Any:
        """Payload delivered by the whole network [GB/s]."""
        table, noc = self.waits.turns.table, self.spec
        payload = np.array([noc.class_payload(packet) for packet in noc.packet_classes], dtype=float)
        return self.delivered_rate * (self._part @ payload[table.packet_class])

    @cached_property
    def _utilization(self) -> FloatArray:
        return np.minimum(np.multiply.outer(self.waits.loads, self._busy), 1.0)

    def _by_channel(self, values: FloatArray) -> dict[str, Any]:
        return dict(zip(self.waits.turns.table.channel_names, map(self._as_asked, values.T), strict=True))

    @cached_property
    def utilization(self) -> Mapping[str, Any]:
        """Busy fraction of each channel."""
        return self._by_channel(self._utilization)

    @cached_property
    def traffic_intensity(self) -> Mapping[str, Any]:
        """Share of what each channel carries when the network saturates: before all its time."""
        part = self._busy / (self._busy.max(initial=0.0) or 1.0)
        with np.errstate(invalid="ignore"):  # nothing through a channel of a network that carries nothing
            load = np.multiply.outer(self._part_of_saturation, part)
        return self._by_channel(np.where(part > 0, load, 0.0))

    @property
    def max_utilization(self) -> Any:
        """Busy fraction of the busiest channel."""
        return self._as_asked(self._utilization.max(axis=1, initial=0.0))

    @property
    def channels(self) -> dict[str, Any]:
        """Columns: name, utilization, wait for the channel [ns], buffered flits at its end.

        Arrays of the shape of the injection rate and, last, the channels.
        """
        waits, turns = self.waits, self.waits.turns
        room = turns.table.virtual_channels * self.spec.router.buffer_flits
        sent = turns.flow_rate * turns.table.flits
        carried = turns.table.paths.by_channel(sent, len(turns.table.channel_names))
        flits = np.multiply.outer(waits.loads, carried)
        with np.errstate(invalid="ignore"):  # no packets and endless waits
            filled = np.where(flits > 0, np.minimum(flits * waits.by_channel, room), 0.0)
        return {
            "name": turns.table.channel_names,
            "utilization": self._as_asked(self._utilization),
            "waiting_time": self._ns(waits.for_channel),
            "buffer_occupancy": self._as_asked(filled),
        }

    @property
    def flows(self) -> dict[str, Any]:
        """Columns: source, target, packet class, rate [packets/cycle], delays and quantiles [ns].

        Delays are arrays of the shape of the injection rate and, last, the flows.
        """
        table = self.waits.turns.table
        rate = np.multiply.outer(self.waits.loads, self.waits.turns.flow_rate)
        return {
            "source": table.source,
            "target": table.target,
            "packet_class": table.packet_class,
            "rate": self._as_asked(rate),
            "source_queue_delay": self._ns(self.source_delay),
            "traversal_delay": self._ns(self._flow_traversal),
            "packet_latency": self._ns(self.source_delay + self._flow_traversal),
            "packet_latency_p95": self._ns(delay_quantiles(self.waits, self.source_delay, None, 0.95)),
            "packet_latency_p99": self._ns(delay_quantiles(self.waits, self.source_delay, None, 0.99)),
        }

    @cached_property
    def doubts(self) -> Mapping[str, Any]:
        """Effects that the model leaves out of this network."""
        jammed, noticed = self._congested_load, NOTICED * self._saturation_load
        metastable = f"metastable: once jammed, the network carries {jammed:.4g} packets/cycle only"
        run = int(self.waits.turns.table.source_step.max(initial=0))
        return {
            **may_deadlock(self.deadlock),
            **competing_flits(self.spec.router, self.waits.turns.table.flits),
            metastable: self._as_asked(self.waits.loads > jammed) & (jammed < noticed),
            f"runs of {run} packets to each target in turn: they wait longer than this": run > 1,
        }

    def plot(self) -> Any:
        """Return a matplotlib figure: the latency over the load up to saturation, and the rates asked for."""
        from qmodels.systems.spec.pictures import Shown

        figure = Shown(figsize=(6, 4), layout="constrained")
        axes = figure.add_subplot()
        loads, latency = self.waits.loads, np.ravel(self.packet_latency)
        highest = 1.0 if isinstance(self.spec.process, Bernoulli) else np.inf
        most = self._saturation_load
        if np.isfinite(most):
            rates = np.linspace(0.0, min(0.98 * most, highest), CURVE_POINTS)
            noc, waits = replace(self.spec, injection_rate=rates), find_waits(self.waits.turns, rates)
            curve = Curve(noc, waits)
            axes.plot(rates, curve.packet_latency, color="C0", label="model")
            end = 1.05 * max(most, loads.max(initial=0.0)) or 1.0
            axes.axvspan(most, end, color="#f2e4df", label="saturated")
            axes.set_xlim(0, end)
        axes.plot(loads[np.isfinite(latency)], latency[np.isfinite(latency)], "o", color="C0", markersize=4)
        axes.axhline(self.zero_load_latency, linestyle=":", color="0.5", label="zero load")
        axes.set_xlabel("injection rate [packets/cycle/node]")
        axes.set_ylabel("packet latency [ns]")
        axes.set_ylim(bottom=0)
        axes.legend()
        return figure


def competing_flits(router: Router, flits: npt.NDArray[np.integer[Any]]) -> dict[str, bool]:
    """Doubt about packets of several flits whose flits compete for the switch, if there are any."""
    held = router.hold_switch_for_packet or router.virtual_channels == 1 or int(flits.max(initial=1)) == 1
    return {} if held else {COMPETING: True}


def noc_answer(curve: Curve, *, model: str) -> Answer:
    """Return the answer of a network-on-chip at one injection rate, or along a load curve.

    Packets may wait for each other in a circle in the virtual channels of ``deadlock``; the numbers hold as
    long as they never do, which is likely below saturation and not beyond it.

    Overload: latencies and quantiles are ``inf``, ``stable`` is False, utilizations at most 1, and the
    delivered rate is the offered one up to the saturation rate, from there on that of the congested rate.
    """
    late: Any = {name: Deferred(partial(getattr, curve, name)) for name in FIELDS}
    return Answer(
        model=model,
        spec=curve.spec,
        metrics=Later(METRICS, partial(getattr, curve)),
        details=Later(DETAILS, partial(getattr, curve)),
        quantile=curve.quantile,
        picture=curve.plot,
        **late,
    )
