"""Traffic to memory channels: packets to interleaved addresses, and transactions that wait for answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray, IntArray
from qmodels.guarded import guarded
from qmodels.systems.laws.fields import numbers
from qmodels.systems.memory.memory_map import InterleavedRegion, MemoryMap
from qmodels.systems.spec.ranges import Declared, choice, count, nonnegative, probability
from qmodels.systems.spec.text.reading import Place

ADDRESSES = ("sequential", "random")
STARTS = ("same", "spread", "random")
LAWS = ("fixed", "exponential")


class _ToChannels(Declared, prefix="traffic."):
    """Initiators that send to channels in turn or at random."""

    def first_packets(self: Any) -> IntArray:
        """Return for each initiator the packet at which its cycle begins, -1 for a random one."""
        number, step = len(self.initiators), self.step_packets
        if self.starts == "random":
            return np.full(number, -1)
        if self.starts == "same":
            return np.zeros(number, dtype=np.int64)
        return np.arange(number) * step % max(1, step * len(self.targets))

    def check_nodes(self: Any, nodes: int) -> None:
        """Refuse a network that lacks one of the nodes."""
        for name, places in (("initiators", self.initiators), ("channels", self.targets)):
            if max(places) >= nodes:
                raise ValueError(f"traffic.{name} must be nodes in 0..{nodes - 1}, got {max(places)}")

    def matrix(self: Any, nodes: int) -> FloatArray:
        """Return the packets from each node to each, relative: 1 in all for a node that sends."""
        self.check_nodes(nodes)
        matrix = np.zeros((nodes, nodes))
        matrix[np.ix_(self.initiators, self.targets)] = 1 / len(self.targets)
        return matrix


@dataclass(frozen=True, kw_only=True)
class Interleaved(_ToChannels):
    """Initiators that send packets to consecutive or random addresses of a region.

    Examples
    --------
    >>> traffic = interleaved(initiators=range(4), channels=range(4, 8), step=2)
    >>> traffic.step_packets, traffic.targets
    (2, (4, 5, 6, 7))
    """

    initiators: tuple[int, ...]  # Nodes that send
    memory: MemoryMap  # Which node an address is on
    region: int = 0  # The set all of them use
    # Data of a packet: how far each packet's address is from the one before. [bytes]
    stride_bytes: int = count(128)
    # Consecutive ones, or each independently anywhere in the region
    addresses: str = choice("sequential", ADDRESSES)
    # Where consecutive addresses begin: all initiators at the first one, on the channels in turn, or each at
    # a random one
    starts: str = choice("random", STARTS)

    __toml_keys__: ClassVar[tuple[str, ...]] = ("channels", "step", "packet_bytes", "offset", "enabled")

    @classmethod
    def __from_toml__(cls, value: Any, place: Place) -> Any:
        return value if "memory" in value else place.made(value, interleaved)

    def _check_relations(self) -> None:
        _nodes("traffic.initiators", self.initiators)
        checks.count("traffic.region", self.region, minimum=0, maximum=len(self.memory.regions) - 1)
        run = self.memory.regions[self.region].run_bytes
        if run % self.stride_bytes:
            raise ValueError(
                f"traffic.stride_bytes must divide the {run} bytes between changes of channel, "
                f"got {self.stride_bytes!r}"
            )

    @property
    def targets(self) -> tuple[int, ...]:
        """Channels in the order in which consecutive addresses use them."""
        region = self.memory.regions[self.region]
        return region.channels[region.offset :] + region.channels[: region.offset]

    @property
    def step_packets(self) -> int:
        """Packets to a channel before the next one; 0 where each packet's channel is drawn."""
        if self.addresses == "random" or len(self.targets) == 1:
            return 0
        return self.memory.regions[self.region].run_bytes // self.stride_bytes


@dataclass(frozen=True, kw_only=True)
class Transactions(_ToChannels):
    """Initiators that send a request to a channel and wait for the response: a closed loop.

    An initiator thinks, sends a request, and begins the next when the response to it is in; it does
    so ``outstanding`` times side by side. A channel answers requests one at a time in the order in
    which their last flits arrive. Network interfaces have room for all of them.

    References
    ----------
    .. [1] M. D. Grammatikakis et al., "Address Interleaving for Low-Cost NoCs", section V.C (a DMA
       engine begins a request when the acknowledgement of the one before has come).
    """

    initiators: tuple[int, ...]  # Nodes with one DMA engine (or core) each
    channels: tuple[int, ...]  # Nodes with one memory controller each
    # Transactions of an initiator to a channel before the next one; 0 draws each channel
    step: int = count(1, minimum=0)
    starts: str = choice("random", STARTS)  # Where initiators begin, as in `Interleaved`
    outstanding: int = count(1)  # Transactions of an initiator at the same time
    # From a response to the next request of the same engine, mean. [cycles]
    think_cycles: float = nonnegative(0.0)
    # request_bytes, response_bytes: Payload of the request and of the response; 0 is a header alone. [bytes]
    request_bytes: int = count(128, minimum=0)
    response_bytes: int = count(0, minimum=0)
    # Part of the transactions in which the two are exchanged: with a payload of 128 bytes and an
    # acknowledgement without one, the reads among the writes
    read_fraction: float = probability(0.0)
    service_cycles: float = nonnegative(5.0)  # Time of a channel for a request, mean. [cycles]
    # Further time until the response, in which the channel serves others. [cycles]
    latency_cycles: float = nonnegative(0.0)
    # service_law, think_law: Laws of the service and of the thinking
    service_law: str = choice("fixed", LAWS)
    think_law: str = choice("fixed", LAWS)
    # Whether a channel begins with the first flit of a request, and its answer leaves while it is still busy,
    # so that its last flit follows when it is done. Else a request is served when all of it is in, and
    # answered when it is served
    cut_through: bool = False

    def _check_relations(self) -> None:
        _nodes("traffic.initiators", self.initiators)
        _nodes("traffic.channels", self.channels)
        both = sorted(set(self.initiators) & set(self.channels))
        if both:
            raise ValueError(f"traffic.channels must be other nodes than the initiators, got {both[0]}")

    @property
    def targets(self) -> tuple[int, ...]:
        """Channels in the order of use."""
        return self.channels

    @property
    def step_packets(self) -> int:
        """Requests to a channel before the next one; 0 where each one's channel is drawn."""
        return self.step if len(self.channels) > 1 else 0


@guarded
def interleaved(
    *,
    initiators: Sequence[int],
    channels: Sequence[int],
    step: int = 1,
    packet_bytes: int = 128,
    offset: int = 0,
    enabled: bool = True,
    addresses: str = "sequential",
    starts: str = "random",
) -> Interleaved:
    """Return packets to one region that is interleaved over channels.

    Parameters
    ----------
    initiators, channels : sequence of int
        Nodes.
    step : int
        Packets to a channel before the next one. [packets]
    packet_bytes : int
        Data of a packet. [bytes]
    offset : int
        Position in ``channels`` of the one that has the first address.
    enabled : bool
        Whether addresses are interleaved.
    addresses, starts : str
        See `Interleaved`.

    Examples
    --------
    >>> interleaved(initiators=[0], channels=[1, 2], addresses="random").matrix(3)[0]
    array([0. , 0.5, 0.5])
    """
    checks.count("step", step)
    checks.count("packet_bytes", packet_bytes)
    step_bytes = step * packet_bytes
    region = InterleavedRegion(
        start_bytes=0,
        size_bytes=step_bytes * len(channels) * 2**16,
        channels=tuple(channels),
        step_bytes=step_bytes,
        offset=offset,
        enabled=enabled,
    )
    return Interleaved(
        initiators=tuple(initiators),
        memory=MemoryMap(regions=(region,)),
        stride_bytes=packet_bytes,
        addresses=addresses,
        starts=starts,
    )


@guarded
def transactions(
    *, initiators: Sequence[int], channels: Sequence[int], **options: int | float | str
) -> Transactions:
    """Return closed loops of requests and responses, with the options of `Transactions`.

    Examples
    --------
    >>> transactions(initiators=range(7), channels=[8, 9], think_cycles=1000).targets
    (8, 9)
    """
    return Transactions(initiators=tuple(initiators), channels=tuple(channels), **options)  # type: ignore[arg-type]


def _nodes(name: str, nodes: tuple[int, ...]) -> None:
    found = numbers(name, partial(checks.count, minimum=0), nodes, None).tolist()
    if len(set(found)) < len(found):
        raise ValueError(f"{name} must be different nodes, got {nodes!r}")
