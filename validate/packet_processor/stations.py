"""Resources and energy of a packet processor, from a replication of its system."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.composed.system import System
from qmodels.systems.memory.dram import Dram
from qmodels.systems.packets.packet_processor import PacketProcessor
from validate.composed.replication import resources
from validate.dram.state import COUNT, LATENCY

POINTER_MEMORY = 0
"""Number of the station that serves operations of the free list."""

PARTS = ("pointers", "slice", "requests", "responses", "dram")
"""Parts of the system in the order of the stations' numbers."""


@lru_cache(maxsize=4)
def stations(spec: PacketProcessor) -> dict[str, tuple[str, ...]]:
    """Return the names of the stations of each group, in the order of their numbers."""
    links, channels = spec.noc.networks(int(spec.channels)).link_names, range(int(spec.channels))
    # Banks behind a controller are no stations.
    banks = range(int(spec.dram.banks) if isinstance(spec.dram, Dram) else 0)
    return {
        "pointer memory": ("pointer memory",),
        "llc slices": tuple(f"llc slice {k}" for k in range(int(spec.llc.slices))),
        "request links": tuple(f"request {link}" for link in links),
        "response links": tuple(f"response {link}" for link in links),
        "dram buses": tuple(f"channel {c} bus" for c in channels),
        "dram banks": tuple(f"channel {c} bank {b}" for c in channels for b in banks),
    }


def station_groups(spec: PacketProcessor) -> dict[str, slice]:
    """Return the station numbers of each group."""
    sizes = [len(names) for names in stations(spec).values()]
    ends = np.cumsum(sizes).tolist()
    return {
        group: slice(end - size, end) for group, size, end in zip(stations(spec), sizes, ends, strict=True)
    }


def by_station(spec: PacketProcessor, system: System, busy: FloatArray) -> FloatArray:
    """Return the counts of a run of the system by resource, in the order of the stations' numbers."""
    owners = np.array([name for name, _ in resources(system)])
    found = [busy[owners == part] for part in PARTS]
    unused = np.zeros(int(spec.llc.slices) if not found[1].size else 0)
    return np.concatenate([found[0], found[1], unused, *found[2:]])


def waits(spec: PacketProcessor, machine: Any) -> FloatArray:
    """Return for each station up to now the sum of the waits at it, and how many they are; 0 of links.

    The wait of an access to a channel behind a controller is its time there but for the column access and the
    burst.
    """
    c, groups = machine.core, station_groups(spec)
    found = np.zeros((2, groups["dram banks"].stop))
    found[:, POINTER_MEMORY] = c.operations["waited"].sum(), c.operations["begun"].sum()
    slices = machine.world.tallies[: c.state["stations"][0], 0]
    first = groups["llc slices"].start
    found[:, first : first + slices.size] = slices["wait_sum"], slices["departures"]
    if isinstance(spec.dram, Dram):
        for group, table in (("dram buses", c.channels), ("dram banks", c.rows)):
            found[:, groups[group]] = table["waited"], table["served"]
    else:
        found[:, groups["dram buses"]] = _waits_at_controllers(spec.dram, machine.kernels.channels.sums)
    return found


def _waits_at_controllers(memory: Any, by_channel: Any) -> Any:
    sums, t = by_channel[:, :, 0], memory.timing
    number = sums[:, :, COUNT]
    alone = number[:, 0] * (t.cl + t.burst) + number[:, 1] * (t.cwl + t.burst)
    return (sums[:, :, LATENCY].sum(axis=1) - alone) / t.clock_ghz, number.sum(axis=1)


def energy_per_packet(spec: PacketProcessor, run: Any) -> float:
    """Return the energy of a carried packet [nJ] in a replication; ``inf`` if none was carried.

    Every event is one that the kernel counted as it happened; the pointer memory makes an access in each
    cycle in which it was busy.
    """
    n = run.sums
    if n["packets"] == 0:
        return float("inf")
    price, width = spec.prices[0], float(spec.noc.link_width)
    spent = float(run.busy[POINTER_MEMORY] * spec.free_list.clock_ghz * price.pointer_nj)  # [nJ]
    for events, nanojoules in (
        (n["accesses"] - n["row hits"], price.activation_nj),
        (n["accesses"], price.burst_nj),
        (n["flit hops"], price.hop_pj_per_byte * width * 1e-3),
        (n["lookups"] if spec.llc.slices else 0, price.lookup_nj),
    ):
        spent += events * float(nanojoules)
    on = float(price.router_mw + price.router_mw_per_byte * width) * spec.noc.topology.nodes  # [mW]
    for part, milliwatts in ((spec.channels, price.channel_mw), (spec.llc.slices, price.slice_mw)):
        on += int(part) * float(milliwatts)
    return (spent + on * run.duration * 1e-3) / n["packets"]  # a mW for a ns is a pJ
