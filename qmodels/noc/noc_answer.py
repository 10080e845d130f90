"""The answer to a network-on-chip's spec: latency per flow, load per channel, what saturates first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.error_map import MeasuredError
from qmodels.noc.delay_law import delay_quantiles
from qmodels.noc.error_map import interleaved, measured_errors, validated
from qmodels.noc.source_queue import source_waits
from qmodels.noc.waits import Waits, find_waits, largest_load, saturation_load
from qmodels.systems.noc.injection import Bernoulli
from qmodels.systems.noc.spec import NOC_METRICS, Noc

METRICS = (
    "packet_latency",
    "packet_latency_p95",
    "packet_latency_p99",
    "source_queue_delay",
    "traversal_delay",
    "zero_load_latency",
    "throughput",
    "data_throughput",
    "saturation_rate",
    "max_utilization",
)

CURVE_POINTS = 50

SAME = 1e-9
"""Loads of channels that differ by a smaller part are alike."""

NOTICED = 0.95
"""Answers warn of networks that carry less than this part of their saturation rate once jammed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NocAnswer:
    """Steady state of a network-on-chip at one injection rate, or along a load curve.

    Metrics are attributes (``answer.packet_latency``); for a curve they are arrays. What needs more
    than the waits is computed when it is first asked for: quantiles, the saturation rate, flows.

    Parameters
    ----------
    model : str
        The model that answered.
    noc : Noc
        The spec.
    waits : Waits
        What the fixed point gave, for the injection rates in order.
    deadlock : tuple of str
        Virtual channels in which packets may wait for each other in a circle; empty without one. With
        one there is no steady state at any rate, and the saturation rate is 0.

    Notes
    -----
    Overload: latencies and quantiles are ``inf``, ``stable`` is False, utilizations at most 1, and the
    throughput is the offered one up to the saturation rate, from there on that of the congested rate.
    """

    model: str
    noc: Noc
    waits: Waits
    deadlock: tuple[str, ...] = ()

    @property
    def _shape(self) -> tuple[int, ...]:
        return np.shape(self.noc.mean_rate)

    def _as_asked(self, values: Any) -> Any:
        """Return values along the loads in the shape of the injection rate."""
        values = np.asarray(values)
        return values.reshape(self._shape + values.shape[1:])[()]

    @cached_property
    def _part(self) -> FloatArray:
        """Part of each flow in all packets."""
        rate = self.waits.turns.flow_rate
        total = rate.sum()
        return rate / total if total > 0 else rate

    @cached_property
    def source_delay(self) -> FloatArray:
        """Mean wait of each flow's packets in their source queue, shape (loads, flows) [cycles]."""
        return source_waits(self.noc, self.waits)

    @cached_property
    def _flow_traversal(self) -> FloatArray:
        turns = self.waits.turns
        delay = np.add.reduceat(self.waits.at_hop, turns.table.path_start[:-1], axis=1)
        return turns.zero_load + delay

    @cached_property
    def _mean_traversal(self) -> FloatArray:
        """Of all packets, from the turns: no need to go through the flows."""
        waits, turns = self.waits, self.waits.turns
        if turns.table.circuit.any() or turns.offered <= 0:
            return self._flow_traversal @ self._part
        total = waits.at_turn + waits.stall[:, turns.source]
        return turns.zero_load @ self._part + total @ turns.packets / turns.offered

    @property
    def stable(self) -> Any:
        """Whether all queues have a steady state."""
        return self._as_asked(self.waits.stable)

    @property
    def zero_load_latency(self) -> float:
        """Latency of a packet alone in the network, mean over the packets [cycles]."""
        return float(self.waits.turns.zero_load @ self._part)

    @property
    def source_queue_delay(self) -> Any:
        """Mean wait in the queue of the network interface [cycles]."""
        return self._as_asked(self.source_delay @ self._part)

    @property
    def traversal_delay(self) -> Any:
        """Mean time from the head leaving the source queue until the tail is out [cycles]."""
        return self._as_asked(self._mean_traversal)

    @property
    def packet_latency(self) -> Any:
        """Mean time from the injection into the source queue until the tail is out [cycles]."""
        return self._as_asked(self.source_delay @ self._part + self._mean_traversal)

    def quantile(self, probability: float) -> Any:
        """Return a quantile of the latency of all packets [cycles].

        Notes
        -----
        An approximation on top of the means: the wait of each flow beyond its zero-load latency is
        taken to be gamma distributed, with the variance of waits on its path that are 0 or exponential,
        and more as they come together.
        """
        return self._as_asked(delay_quantiles(self, self._part, probability))

    @cached_property
    def packet_latency_p95(self) -> Any:
        """95th percentile of the packet latency [cycles]."""
        return self.quantile(0.95)

    @cached_property
    def packet_latency_p99(self) -> Any:
        """99th percentile of the packet latency [cycles]."""
        return self.quantile(0.99)

    @cached_property
    def saturation_rate(self) -> float:
        """Injection rate from which queues grow without end [packets/cycle]."""
        return 0.0 if self.deadlock else saturation_load(self.waits.turns)

    @property
    def _part_of_saturation(self) -> FloatArray:
        loads, most = self.waits.loads, self.saturation_rate
        return loads / most if most > 0 else np.where(loads > 0, np.inf, 0.0)

    @property
    def congested_rate(self) -> float:
        """Injection rate that is carried once all buffers are full [packets/cycle].

        Below the saturation rate in rings and Spidergons: between the two a network is metastable, and
        keeps up as long as no burst jams it; see `qmodels.noc.collapse`.
        """
        return min(self.saturation_rate, self.waits.turns.jam[1])

    @property
    def ideal_saturation_rate(self) -> float:
        """Injection rate at which the first channel is busy all the time, an upper bound [packets/cycle]."""
        return largest_load(self.waits.turns)

    @property
    def bottleneck(self) -> str:
        """Name of the channel that is busy for most of the time; of those alike the first."""
        channels = self.waits.turns.channels
        load = channels[:, 1] + channels[:, 6]
        if not load.any():
            return ""
        # Sums in another order make channels that are alike differ by rounding.
        return self.waits.turns.table.channel_names[int(np.argmax(load > (1 - SAME) * load.max()))]

    @property
    def throughput(self) -> Any:
        """Packets delivered by the whole network [packets/cycle]."""
        turns, loads = self.waits.turns, self.waits.loads
        stable = self.waits.stable
        carried = loads if stable.all() else np.where(stable, loads, np.minimum(loads, self.congested_rate))
        return self._as_asked(carried * turns.offered)

    @property
    def data_throughput(self) -> Any:
        """Payload delivered by the whole network [GB/s]."""
        table, noc = self.waits.turns.table, self.noc
        payload = np.array([noc.class_payload(packet) for packet in noc.packet_classes], dtype=float)
        mean = self._part @ payload[table.packet_class]
        return self.throughput * mean * noc.clock_ghz

    @cached_property
    def _utilization(self) -> FloatArray:
        channels = self.waits.turns.channels
        return np.minimum(np.multiply.outer(self.waits.loads, channels[:, 1] + channels[:, 6]), 1.0)

    @property
    def max_utilization(self) -> Any:
        """Busy fraction of the busiest channel."""
        return self._as_asked(self._utilization.max(axis=1, initial=0.0))

    @property
    def channels(self) -> dict[str, Any]:
        """Columns: name, utilization, wait for the channel [cycles], buffered flits at its end.

        Arrays of the shape of the injection rate and, last, the channels.
        """
        waits, turns = self.waits, self.waits.turns
        room = turns.table.virtual_channels * self.noc.router.buffer_flits
        sent = np.repeat(turns.flow_rate * turns.table.flits, np.diff(turns.table.path_start))
        carried = np.bincount(turns.table.path_channel, sent, minlength=len(turns.table.channel_names))
        flits = np.multiply.outer(waits.loads, carried)
        with np.errstate(invalid="ignore"):  # no packets and endless waits
            filled = np.where(flits > 0, np.minimum(flits * waits.by_channel, room), 0.0)
        return {
            "name": turns.table.channel_names,
            "utilization": self._as_asked(self._utilization),
            "mean_waiting_time": self._as_asked(waits.for_channel),
            "buffer_occupancy": self._as_asked(filled),
        }

    @property
    def flows(self) -> dict[str, Any]:
        """Columns: source, target, packet class, rate [packets/cycle], delays and quantiles [cycles].

        Delays are arrays of the shape of the injection rate and, last, the flows.
        """
        table = self.waits.turns.table
        rate = np.multiply.outer(self.waits.loads, self.waits.turns.flow_rate)
        return {
            "source": table.source,
            "target": table.target,
            "packet_class": table.packet_class,
            "rate": self._as_asked(rate),
            "source_queue_delay": self._as_asked(self.source_delay),
            "traversal_delay": self._as_asked(self._flow_traversal),
            "packet_latency": self._as_asked(self.source_delay + self._flow_traversal),
            "packet_latency_p95": self._as_asked(delay_quantiles(self, None, 0.95)),
            "packet_latency_p99": self._as_asked(delay_quantiles(self, None, 0.99)),
        }

    @property
    def validated(self) -> Any:
        """Whether the design and load lie in the range in which the error was measured."""
        return self._as_asked(validated(self.noc, self._part_of_saturation) & (not self.deadlock))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the model leaves out of this network, a line each."""
        lines = []
        if self.deadlock:
            number, first = len(self.deadlock), self.deadlock[0]
            lines.append(f"packets may deadlock: {number} virtual channels in a circle from {first}")
        jammed = self.congested_rate
        if self.waits.loads.max(initial=0.0) > jammed and jammed < NOTICED * self.saturation_rate:
            lines.append(f"metastable: once jammed, the network carries {jammed:.4g} packets/cycle only")
        if interleaved(self.noc):
            lines.append("flits compete for the switch one by one: the model lets packets hold it")
        run = int(self.waits.turns.table.source_step.max(initial=0))
        if run > 1:
            lines.append(f"runs of {run} packets to each target in turn: they wait longer than this")
        return tuple(lines)

    @property
    def error(self) -> Mapping[str, MeasuredError]:
        """The error against simulation at such loads of such networks, by metric."""
        found = {} if self.deadlock else measured_errors(self.noc, self._part_of_saturation)
        return {name: error.mapped(self._as_asked) for name, error in found.items()}

    @property
    def metrics(self) -> dict[str, Any]:
        """Values by the names that the simulator uses; units are in `NOC_METRICS`."""
        return {name: getattr(self, name) for name in METRICS}

    @property
    def units(self) -> dict[str, str]:
        """Units of the metrics."""
        return {name: NOC_METRICS[name].unit for name in METRICS}

    def __getitem__(self, metric: str) -> Any:
        return self.metrics[metric]

    def to_pandas(self) -> Any:
        """Return the metrics as a tidy DataFrame, one row per injection rate (needs pandas)."""
        import pandas as pd

        loads = self.waits.loads
        columns = {"injection_rate": loads}
        columns |= {
            name: np.broadcast_to(np.ravel(value), loads.shape) for name, value in self.metrics.items()
        }
        return pd.DataFrame(columns | {"stable": self.waits.stable})

    def plot(self) -> Any:
        """Return a matplotlib figure: the latency over the load up to saturation, and the rates asked for."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.add_subplot()
        loads, latency = self.waits.loads, np.ravel(self.packet_latency)
        highest = 1.0 if isinstance(self.noc.process, Bernoulli) else np.inf
        if np.isfinite(self.saturation_rate):
            rates = np.linspace(0.0, min(0.98 * self.saturation_rate, highest), CURVE_POINTS)
            noc = replace(self.noc, injection_rate=rates)
            curve = replace(self, noc=noc, waits=find_waits(self.waits.turns, rates))
            axes.plot(rates, curve.packet_latency, color="C0", label="model")
            end = 1.05 * max(self.saturation_rate, loads.max(initial=0.0)) or 1.0
            beyond = "deadlock" if self.deadlock else "saturated"
            axes.axvspan(self.saturation_rate, end, color="#f2e4df", label=beyond)
            axes.set_xlim(0, end)
        axes.plot(loads[np.isfinite(latency)], latency[np.isfinite(latency)], "o", color="C0", markersize=4)
        axes.axhline(self.zero_load_latency, linestyle=":", color="0.5", label="zero load")
        axes.set_xlabel("injection rate [packets/cycle/node]")
        axes.set_ylabel("packet latency [cycles]")
        axes.set_ylim(bottom=0)
        axes.legend()
        return figure

    def __repr__(self) -> str:
        if self._shape:
            stable = int(self.waits.stable.sum())
            return (
                f"<{self.model}: {self.waits.loads.size} injection rates, {stable} stable, "
                f"saturation at {self.saturation_rate:.4g} packets/cycle>"
            )
        lines = [self.model]
        errors = self.error
        for name, value in self.metrics.items():
            unit = "" if NOC_METRICS[name].unit == "1" else NOC_METRICS[name].unit
            error = f"  error {errors[name]}" if name in errors and self.stable else ""
            lines.append(f"  {name:<20} {float(value):>10.5g} {unit:<14}{error}".rstrip())
        state = "stable" if self.stable else "deadlock" if self.deadlock else "saturated"
        lines.append(f"  {state}; busiest: {self.bottleneck}")
        if self.stable and errors:
            lines.append("  error: mean size, signed mean and largest at such loads of such networks")
        if not self.validated:
            lines.append("  outside the range in which the model's error was measured")
        lines += [f"  {warning}" for warning in self.warnings]
        return "\n".join(lines)
