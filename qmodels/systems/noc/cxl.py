"""Memory behind a CXL switch: the fields of a network whose links take as long as published ones."""

from __future__ import annotations

from typing import Any

from qmodels import checks
from qmodels.systems.noc.router import Router
from qmodels.systems.noc.topology import Topology

SLOT_BYTES = 16
"""What a slot of a flit carries: a request, the header of an answer, or a quarter of a line."""
SLOT_WIRE_BYTES = 17
"""The same on the wire: flits of 68 bytes have four slots."""


def cxl_fields(
    hosts: int,
    devices: int,
    *,
    lanes: int = 8,
    gigatransfers: float = 32.0,
    attach_ns: float = 80.0,
    switch_ns: float = 90.0,
) -> dict[str, Any]:
    """Return the fields of a `Noc` of hosts and memory devices around one CXL switch.

    The hosts are the nodes from 0, the devices those behind them, the switch is the last node. A flit of the
    network is a slot of 16 bytes: a request of no payload is one of them, the answer with a line of 64
    bytes five. Virtual channels and their buffers hold what is under way, so that a link can be full.

    ``hosts``, ``devices``: how many of each; ``lanes``: lanes of each link; ``gigatransfers``: rate of a lane
    (CXL 2.0: 32), a bit each [GT/s]; ``attach_ns``: what a link adds to an idle access there and back, the
    ports at both ends included; between 70 and 90 ns without a switch [1]_ [ns]; ``switch_ns``: what the
    switch adds to it, there and back; 90 ns a switch is told of XConn's first one for CXL 2.0 [2]_ [ns].

    Half of the times are the way there, half the way back. Flits of CXL 2.0 have 68 bytes: four slots and
    4 bytes for the protocol and the check sum [3]_.

    References
    ----------
    .. [1] H. Li et al., "Pond: CXL-based memory pooling systems for cloud platforms", ASPLOS 2023.
    .. [2] https://asplos.dev/wiki/pcie-cxl/pcie.html
    .. [3] Compute Express Link specification, revision 2.0, 2020.

    Examples
    --------
    >>> pool = cxl_fields(4, 2)
    >>> pool["topology"].nodes, pool["topology"].route(0, 5)
    (7, (0, 6, 5))
    >>> round(pool["link_width"] * pool["clock_ghz"], 1)
    30.1
    """
    for name, value, most in (("hosts", hosts, 256), ("devices", devices, 256), ("lanes", lanes, 16)):
        checks.one_number(name, value)
        checks.count(name, value, maximum=most)
    checks.positive("gigatransfers", gigatransfers)
    checks.nonnegative("attach_ns", attach_ns)
    checks.nonnegative("switch_ns", switch_ns)
    clock = lanes * gigatransfers / 8 / SLOT_WIRE_BYTES
    pipeline = Router().pipeline_cycles
    own = 3 * pipeline + 2
    wire = round((attach_ns + switch_ns) / 2 * clock) - own
    if wire < 0:
        least = 2 * own / clock
        raise ValueError(
            f"attach_ns and switch_ns must be {least:.3g} ns together or more, got "
            f"{attach_ns + switch_ns:.3g}"
        )
    first, second = wire // 2, wire - wire // 2
    switch = hosts + devices
    ways = [((end, switch), first) for end in range(switch)] + [
        ((switch, end), second) for end in range(switch)
    ]
    ways.sort()
    buffer = 2 * second + pipeline + Router().credit_cycles
    star = Topology(
        kind="custom",
        nodes=switch + 1,
        edges=tuple(way for way, _ in ways),
        edge_delays=tuple(delay for _, delay in ways),
    )
    return {
        "topology": star,
        "router": Router(buffer_flits=buffer),
        "link_width": SLOT_BYTES,
        "header_bytes": SLOT_BYTES,
        "packet_bytes": 64,
        "clock_ghz": clock,
    }
