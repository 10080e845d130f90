"""The arrays of a network's simulation: channels, virtual channels, packets, sources and wheels of time."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from qmodels import checks
from qmodels.checks import IntArray
from qmodels.systems.noc.router import ARBITRATIONS, PRIORITIES, Router
from qmodels.systems.noc.routes import PathTable

CHANNEL = np.dtype(
    [
        # As an input of the router it leads to: its virtual channels as bits, what it is connected to.
        ("body", "u8"),
        ("head", "u8"),
        ("circuit", "u8"),
        ("occupancy", "i8"),
        ("held_vc", "i4"),
        ("stored", "i4"),
        *((name, "i2") for name in ("place_in", "inputs", "next_out", "next_vc")),
        ("credit_delay", "i4"),
        ("listed", "i4"),
        ("sink", "i4"),
        # As an output of the router it comes from.
        ("free", "u8"),
        *((name, "i8") for name in ("key", "busy_until", "flits", "fair_time")),
        ("winner", "i4"),
        ("held_by", "i4"),
        *((name, "i2") for name in ("place_out", "outputs", "next_in", "next_free")),
        ("delay", "i4"),
        ("cycles", "i4"),
    ],
    align=True,
)
"""A channel: source to router, router to router, or router to sink.

``body`` has the virtual channels whose next flit is there and has a credit, ``head`` those whose
front packet has no virtual channel yet, ``circuit`` those of circuits; ``free`` those that no packet
is being sent into and that have a credit. ``occupancy`` is the sum over flits of the cycles in the
buffers. A record is two cache lines.
"""

VC = np.dtype(
    [
        ("rank", "i8"),
        ("came", "i8"),
        *((name, "i4") for name in ("flit", "owner", "out", "out_vc", "first_slot", "waited")),
        *((name, "i2") for name in ("front", "count", "credits", "allowed", "leaving")),
    ],
    align=True,
)
"""A virtual channel of a channel.

Downstream ``count`` flits, the first in ``flit`` and those behind it in a ring from ``front`` on, and
what the front packet asks for: the output channel, the place in ``masks`` of the virtual channels it
may take there, its rank among rivals (lowest first), and the one it has. Upstream the free slots
(``credits``) and the virtual channel whose packet is being sent into this one (``owner``).

A packet whose flits follow one another, one a cycle, with nobody to come between them, is a *train*:
its flits are counted where its head is, when the head is there. ``came`` is when the head of the train in
front came, ``leaving`` says that a train is under way from here; ``waited`` how long the one that is being
sent into this one did, or which source queue it comes from.
"""

PACKET = np.dtype(
    [
        *((name, "i4") for name in ("flow", "flits", "hop", "following")),
        ("created", "i8"),
        ("injected", "i8"),
        ("tag", "i8"),
    ],
    align=True,
)
"""A packet under way; ``hop`` is the place in the paths of the channel its head took last."""

FLOW = np.dtype([("first_hop", "i4"), ("hops", "i4"), ("flits", "i4"), ("queue", "i4")], align=True)
"""Where a flow's packets queue, and its path."""

SERVICE = np.dtype([("weight", "f8"), ("priority", "i4"), ("circuit", "i4")], align=True)
"""How a flow is served; ``circuit`` is its number on its channels, -1 without one."""

MASK_BITS = 8
"""The bits of a hop that say which virtual channels are usable; the others are its channel."""

QUEUE = np.dtype([("first", "i4"), ("last", "i4"), ("sent", "i4"), ("vc", "i4"), ("node", "i4")], align=True)
"""A source queue: first and last packet, flits of the first that are sent, and their virtual channel."""

NODE = np.dtype(
    [
        *((name, "i4") for name in ("channel", "first_queue", "queues", "circuits", "current", "waiting")),
        *((name, "i4") for name in ("listed", "last_vc")),
    ],
    align=True,
)
"""A source: its channel, its queues (those of circuits first), the one whose packet is being sent."""

HEAD, TAIL, WHOLE, FLAGS = 1, 2, 3, 2
"""Flags of a flit below the number of its packet. With both it is a whole packet: one flit, or a train."""

(
    SHIFT, WHEEL, VCS, BUFFER, ARBITRATION, LAST_MOVE, IN_NETWORK, WAITING, FREE_PACKET, FREE_PACKETS,
    DELIVERED, ACTIVE, SENDING, CLOSED, NOW, CIRCUITS, HOLDS, SPAN, TRAIN, CLOCK_SIZE,
) = range(20)  # fmt: skip
"""Places in ``clock``; IN_NETWORK counts flits, WAITING packets at the sources.

SPAN: cycles after which what moved last has had all its effect; TRAIN: flits of the longest train.
"""

ROUND_ROBIN, FCFS, PRIORITY, WEIGHTED = range(4)
"""As `qmodels.systems.noc.router.ARBITRATIONS`."""
NO_KEY = 1 << 62
"""Of an output that nobody asks for."""
LONGEST_TRAIN = 64
"""The wheels of time are so much longer."""
SCALE = 256
"""Ticks of fair-share time per flit of weight 1."""


class World(NamedTuple):
    """All a network is: see the types of its arrays.

    ``hop`` has the paths: for each channel its number and its place in ``masks``, the sets of virtual
    channels. ``finish`` says for each when the flow's last packet ends in fair shares, where they are
    used. ``slots`` holds the rings of flits, ``arrivals`` and ``credits`` a row per cycle modulo their
    number of rows: how many, then who (credits: and how many in a row, one a cycle); ``ends`` the virtual
    channels into which the last flit of a train is sent then; ``lists`` the inputs with something to
    send, the sources with something to send, the outputs asked for in this cycle and the connections
    given up in it; ``delivered`` the packets of the cycle.
    """

    channel: Annotated[Any, CHANNEL, 1]
    vc: Annotated[Any, VC, 1]
    slots: Annotated[Any, "i4", 1]
    packet: Annotated[Any, PACKET, 1]
    flow: Annotated[Any, FLOW, 1]
    service: Annotated[Any, SERVICE, 1]
    hop: Annotated[Any, "i4", 1]
    masks: Annotated[Any, "u8", 1]
    finish: Annotated[Any, "i8", 1]
    queue: Annotated[Any, QUEUE, 1]
    node: Annotated[Any, NODE, 1]
    arrivals: Annotated[Any, "i8", 2]
    credits: Annotated[Any, "i8", 2]
    ends: Annotated[Any, "i4", 2]
    lists: Annotated[Any, "i4", 2]
    delivered: Annotated[Any, "i4", 1]
    clock: Annotated[Any, "i8", 1]


def _power_of_two(n: int) -> int:
    return 1 << max(0, (n - 1).bit_length())


def new_world(table: PathTable, router: Router, *, packets: int) -> World:
    """Return an empty network of channels, flows and their paths.

    ``packets`` can be under way, those in source queues included; see `grown`.
    """
    circuit_of = _circuit_numbers(table)
    circuits = int(circuit_of.max(initial=-1)) + 1
    per_channel = router.virtual_channels + circuits
    checks.count("virtual channels, those of circuits included", per_channel, maximum=63)
    stride = _power_of_two(per_channel)

    channel = _channels(table, router, per_channel)
    count = channel.size
    vc = np.zeros(count * stride, dtype=VC)
    vc["credits"] = router.buffer_flits
    vc["owner"] = vc["out_vc"] = vc["out"] = -1
    vc["first_slot"] = np.arange(vc.size) * router.buffer_flits

    flow, service, queue, node = _sources(table, circuit_of, router.arbitration)
    hop, masks = _hops(table, circuit_of, router.virtual_channels)
    longest = int(np.max(channel["delay"] + channel["credit_delay"] + channel["cycles"])) + 1
    # Ranks may let another packet come between the flits of one, and so may circuits.
    in_turn = router.arbitration == "round_robin" and circuits == 0
    train = min(router.buffer_flits, LONGEST_TRAIN) if in_turn else 1
    rows = _power_of_two(longest + train)
    clock = np.zeros(CLOCK_SIZE, dtype=np.int64)
    clock[SHIFT], clock[WHEEL] = stride.bit_length() - 1, rows - 1
    clock[VCS], clock[BUFFER] = router.virtual_channels, router.buffer_flits
    clock[ARBITRATION] = ARBITRATIONS.index(router.arbitration)
    clock[FREE_PACKET], clock[CIRCUITS] = -1, circuits
    clock[HOLDS] = router.hold_switch_for_packet
    clock[SPAN], clock[TRAIN] = longest, train
    clock[LAST_MOVE] = -rows
    world = World(
        channel=channel,
        vc=vc,
        slots=np.zeros(vc.size * router.buffer_flits, dtype=np.int32),
        packet=np.zeros(0, dtype=PACKET),
        flow=flow,
        service=service,
        hop=hop,
        masks=masks,
        finish=np.zeros(hop.size if router.arbitration == "weighted" else 0, dtype=np.int64),
        queue=queue,
        node=node,
        arrivals=np.zeros((rows, count + 1), dtype=np.int64),
        credits=np.zeros((rows, count + 1), dtype=np.int64),
        ends=np.zeros((rows, count + 1), dtype=np.int32),
        lists=np.zeros((4, count), dtype=np.int32),
        delivered=np.zeros(count, dtype=np.int32),
        clock=clock,
    )
    return grown(world, packets)


def grown(world: World, packets: int) -> World:
    """Return the world with room for n packets; only its packets are copied."""
    old = world.packet.size
    packet = np.zeros(packets, dtype=PACKET)
    packet[:old] = world.packet
    # The new ones go in front of those that are free.
    packet["following"][old:] = np.arange(old + 1, packets + 1)
    packet["following"][-1] = world.clock[FREE_PACKET]
    world.clock[FREE_PACKET] = old
    world.clock[FREE_PACKETS] += packets - old
    return world._replace(packet=packet)


def _circuit_numbers(table: Any) -> IntArray:
    """Return a number for each circuit, different from all it shares a channel with; -1 for other flows."""
    numbers = np.full(len(table.source), -1, dtype=np.int64)
    taken: dict[int, set[int]] = {}
    for flow in np.flatnonzero(table.circuit):
        channels = table.paths.channel[table.paths.start[flow] : table.paths.start[flow + 1]].tolist()
        used = set().union(*(taken.get(c, set()) for c in channels))
        number = next(k for k in range(len(used) + 1) if k not in used)
        numbers[flow] = number
        for c in channels:
            taken.setdefault(c, set()).add(number)
    return numbers


def _channels(table: PathTable, router: Router, per_channel: int) -> Any:
    kind = np.asarray(table.channel_kind)
    count = kind.size
    extra = np.asarray(table.channel_delay, dtype=np.int64)
    cycles = np.asarray(table.channel_cycles_per_flit, dtype=np.int64)
    channel = np.zeros(count, dtype=CHANNEL)
    channel["held_vc"] = channel["held_by"] = -1
    channel["free"] = np.uint64((1 << per_channel) - 1)
    channel["circuit"] = np.uint64((1 << per_channel) - (1 << router.virtual_channels))
    channel["key"] = NO_KEY
    # The wire from a source takes its two cycles whatever the pipeline of the routers.
    channel["delay"] = np.where(kind == 0, 2, router.pipeline_cycles) + extra + cycles - 1
    # A sink returns the credit of a flit when it gets it.
    channel["credit_delay"] = router.credit_cycles - router.pipeline_cycles + extra
    channel["cycles"] = cycles
    channel["sink"] = kind == 2
    ins, outs = np.asarray(table.channel_to), np.asarray(table.channel_from)
    for place, number, where in (("place_in", "inputs", ins), ("place_out", "outputs", outs)):
        order = np.argsort(where, kind="stable")
        places = np.arange(count) - np.searchsorted(where[order], where[order])
        channel[place][order] = places
        channel[number] = np.bincount(where + 1, minlength=where.max() + 2)[where + 1]
    return channel


def _hops(table: Any, circuit_of: IntArray, vcs: int) -> tuple[Any, Any]:
    low, high = (np.asarray(x, dtype=np.uint64) for x in (table.paths.low, table.paths.high))
    one = np.uint64(1)
    flow_of = np.repeat(np.arange(circuit_of.size), np.diff(table.paths.start))
    number = circuit_of[flow_of]
    reserved = one << (vcs + np.maximum(number, 0)).astype(np.uint64)
    masks, place = np.unique(
        np.where(number >= 0, reserved, (one << high) - (one << low)), return_inverse=True
    )
    if masks.size > 1 << MASK_BITS:
        raise ValueError(f"paths must use at most 256 sets of virtual channels, got {masks.size}")
    hop = np.asarray(table.paths.channel, dtype=np.int64) << MASK_BITS | place
    return hop.astype(np.int32), masks


def _sources(table: Any, circuit_of: IntArray, arbitration: str) -> tuple[Any, Any, Any, Any]:
    """Return flows, their services, queues and nodes: a queue per circuit, then one, or one per priority."""
    starts = np.asarray(table.paths.start)
    flow = np.zeros(circuit_of.size, dtype=FLOW)
    flow["first_hop"], flow["hops"] = starts[:-1], np.diff(starts)
    flow["flits"] = table.flits
    service = np.zeros(circuit_of.size, dtype=SERVICE)
    service["weight"], service["priority"], service["circuit"] = table.weight, table.priority, circuit_of
    first_channel = np.asarray(table.paths.channel)[starts[:-1]]
    nodes = int(np.max(table.source, initial=-1)) + 1
    node = np.zeros(nodes, dtype=NODE)
    node["channel"] = node["current"] = node["last_vc"] = -1
    node["channel"][table.source] = first_channel
    classes = PRIORITIES if arbitration == "priority" else 1
    is_circuit = circuit_of >= 0
    node["circuits"] = np.bincount(np.asarray(table.source)[is_circuit], minlength=nodes)
    node["queues"] = node["circuits"] + classes
    node["first_queue"] = np.cumsum(node["queues"]) - node["queues"]
    place = np.minimum(service["priority"], classes - 1) + node["circuits"][table.source]
    for f in np.flatnonzero(is_circuit):
        earlier = is_circuit[:f] & (np.asarray(table.source)[:f] == table.source[f])
        place[f] = np.count_nonzero(earlier)
    flow["queue"] = node["first_queue"][table.source] + place
    queue = np.zeros(int(node["queues"].sum()), dtype=QUEUE)
    queue["first"] = queue["last"] = queue["vc"] = -1
    queue["node"] = np.repeat(np.arange(nodes), node["queues"])
    return flow, service, queue, node
