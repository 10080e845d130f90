"""Where trials, pace, row changes and busy banks of a packet processor settle, at one packet rate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.link_waits import PATH_LINKS, PIPELINE
from qmodels.packet_processor.numbers import REQUEST_GAP, REQUESTS, RESPONSES, TRAINS, Shared, numbers
from qmodels.packet_processor.ring import (
    ACCESSES,
    ALLOCATION,
    BLOCKED,
    EJECT_INTENSITY,
    EJECT_WAIT,
    HELD_UP,
    INJECT_INTENSITY,
    INJECT_WAIT,
    READ_OPENS,
    REQUEST_BLOCKED,
    REQUEST_PEAK,
    REQUEST_USED,
    REQUEST_WAIT,
    RESPONSE_BLOCKED,
    RESPONSE_PEAK,
    RESPONSE_USED,
    RESPONSE_WAIT,
    REST,
    SEGMENT_GAP,
    WRITE_OPENS,
    settle,
)  # fmt: skip


class Network(NamedTuple):
    """Waits of NoC packets in one network between the engines' own links; one value per design, in ns."""

    peak: FloatArray  # traffic intensity of the most loaded link
    used: FloatArray  # the same as a part of the intensity at which the network saturates
    wait: FloatArray  # waits for busy links along a path, without the engine's own injection or ejection link
    blocked: FloatArray  # what blocked heads and full buffers add to these when packets come one by one
    links: FloatArray  # links of a path, mean
    pipeline: FloatArray  # time of a head flit from the start of injection to the start of ejection


class Engine(NamedTuple):
    """State of an engine's links as a packet finds it; one value per design, times in ns."""

    # inject_wait, eject_wait: others' work in front of the injection link (requests) and the ejection link
    # (responses).
    inject_wait: FloatArray
    eject_wait: FloatArray
    # inject_intensity, eject_intensity: traffic intensities of the two.
    inject_intensity: FloatArray
    eject_intensity: FloatArray
    held_up: FloatArray  # time a response waits behind those that full buffers hold up


@dataclass(frozen=True, kw_only=True, eq=False)
class Balance:
    """Where the ring of trials, pace, row changes and busy banks settles; one value per design.

    Times in ns, rates per ns.
    """

    c: Columns
    rate: FloatArray  # packets offered
    z: FloatArray  # numbers of the designs, see `qmodels.packet_processor.numbers`
    shared: Shared
    met: FloatArray  # what accesses meet behind controllers, see `qmodels.packet_processor.ring`
    found: FloatArray  # what the ring found, see `qmodels.packet_processor.ring`, (designs, names)
    busy: FloatArray  # how long the reads of a visit keep their places busy, (designs, arcs)

    @property
    def accesses(self) -> FloatArray:
        """Pointer accesses of an allocation, mean over all segments."""
        return self.found[:, ACCESSES]

    @property
    def allocation(self) -> FloatArray:
        """Pointer-memory time of one stored segment, mean."""
        return self.found[:, ALLOCATION]

    @property
    def segment_gap(self) -> FloatArray:
        """Time between the segments of a packet on the request network."""
        return self.found[:, SEGMENT_GAP]

    @property
    def request_gap(self) -> FloatArray:
        """Time between the reads of a packet."""
        return self.z[:, REQUEST_GAP]

    @property
    def trains(self) -> FloatArray:
        """Rows a packet visits in one direction: trains of accesses."""
        return self.z[:, TRAINS]

    @property
    def blocked(self) -> FloatArray:
        """Accesses of an allocation beyond one; with closed pages how often the first block is rejected."""
        return self.found[:, BLOCKED]

    @property
    def changes(self) -> FloatArray:
        """Probability that an access opens its row, for writes and for reads, (2, designs)."""
        return self.found[:, [WRITE_OPENS, READ_OPENS]].T

    @property
    def engine(self) -> Engine:
        """An engine's own links."""
        names = [INJECT_WAIT, EJECT_WAIT, INJECT_INTENSITY, EJECT_INTENSITY, HELD_UP]
        return Engine(*self.found.T[names])

    @cached_property
    def request(self) -> Network:
        """The network of requests between the engines' own links."""
        names = [REQUEST_PEAK, REQUEST_USED, REQUEST_WAIT, REQUEST_BLOCKED]
        return Network(*self.found.T[names], *self.z.T[[REQUESTS + PATH_LINKS, REQUESTS + PIPELINE]])

    @cached_property
    def response(self) -> Network:
        """The network of responses."""
        names = [RESPONSE_PEAK, RESPONSE_USED, RESPONSE_WAIT, RESPONSE_BLOCKED]
        return Network(*self.found.T[names], *self.z.T[[RESPONSES + PATH_LINKS, RESPONSES + PIPELINE]])

    @cached_property
    def intensity(self) -> dict[str, FloatArray]:
        """Traffic intensity of the most loaded resource of each group."""
        c, rate, mean = self.c, self.rate, self.c.mean_segments
        data_work = 2 * mean * c.burst + self.changes.sum(axis=0) * mean * (c.opening - c.burst)
        banks = {"dram banks": rate * (data_work / c.places + c.miss_rate * c.miss_bank_peak * c.opening)}
        return {
            "pointer memory": rate * sum(pointer_work(c, self.accesses)),
            "llc slices": rate * c.lookups * c.slice_time * c.slice_peak,
            "request links": self.request.peak,
            "response links": self.response.peak,
            "dram buses": rate * c.burst * (2 * mean / c.channels + c.miss_rate * c.miss_channel_peak),
            **(banks if c.memory is None else {}),
        }

    @cached_property
    def available(self) -> FloatArray:
        """Part of the time in which a channel is not refreshed.

        Behind controllers the part of the bus that is used when the memory carries no more.
        """
        c = self.c
        if c.memory is not None:
            return np.asarray(self.intensity["dram buses"] * c.memory.capacity / self.rate)
        return 1.0 - c.refreshing

    @cached_property
    def loads(self) -> dict[str, FloatArray]:
        """Share of its capacity that each group uses.

        Networks fill up before their links do, and DRAM is not there while it is refreshed; behind
        controllers the bus is full when the memory carries no more.
        """
        memory = [name for name in ("dram buses", "dram banks") if name in self.intensity]
        carried = {name: self.intensity[name] / self.available for name in memory}
        return (
            self.intensity
            | carried
            | {"request links": self.request.used, "response links": self.response.used}
        )

    @cached_property
    def load(self) -> FloatArray:
        """Share of its capacity that the fullest resource uses."""
        return np.asarray(np.max(list(self.loads.values()), axis=0))

    def at(self, rate: FloatArray, designs: IntArray) -> Balance:
        """Return where some designs settle at other rates, from where they are; the others stay."""
        there = replace(
            self, rate=rate, met=_met(self.c, rate), found=self.found.copy(), busy=self.busy.copy()
        )
        settle(designs, rate, self.z, self.shared, there.met, there.found, there.busy)
        return there


def balance(c: Columns, rate: FloatArray) -> Balance:
    """Return where all designs settle at the given packet rates, from the empty system."""
    z, shared = numbers(c)
    found = np.zeros((rate.size, REST + 1))
    found[:, WRITE_OPENS] = found[:, READ_OPENS] = z[:, TRAINS] / c.mean_segments
    busy = np.zeros(shared.arcs.shape)
    empty = Balance(c=c, rate=rate, z=z, shared=shared, met=busy, found=found, busy=busy)
    return empty.at(rate, np.arange(rate.size))


def _met(c: Columns, rate: FloatArray) -> FloatArray:
    """Return waits of accesses behind controllers, zeros without."""
    if c.memory is None:
        return np.zeros((rate.size, 4))
    met = c.memory.at(rate)
    return np.stack([met[name] for name in ("read", "write", "write_opened", "read_opened")], axis=1)


def pointer_work(c: Columns, accesses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the time the pointer memory works to store a packet, and to drain it, mean."""
    mean = c.mean_segments
    enqueue = c.enqueue_packet_accesses + mean * (accesses + c.enqueue_accesses)
    dequeue = c.dequeue_packet_accesses + mean * c.dequeue_accesses + returns(c) @ c.size_share
    return enqueue * c.pointer_time, dequeue * c.pointer_time


def returns(c: Columns) -> FloatArray:
    """Return the pointer accesses that return a packet's blocks, beyond one, by size."""
    return np.asarray(np.where(c.is_small, c.segments - 1.0, 0.0))
