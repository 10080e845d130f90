"""Captures in Endace's Extensible Record Format (ERF): times, sizes and flows of packets."""

from __future__ import annotations

import struct
from typing import BinaryIO

from qmodels.systems.traffic.readers.captures import ETHERNET, RAW, flow_key
from qmodels.systems.traffic.readers.interfaces import Captured

HEADER = 16
"""Bytes before a record's extension headers: time, type, flags, record length, lost or color, wire length."""

ON_ETHERNET, ON_IP, ON_HDLC = (2, 11, 16, 20), (22, 23), (1, 5, 10, 15, 17, 19)
"""Types of records that hold a packet, by what it begins with."""

SKIPPED = (48, 27)
"""Types of records that hold none: padding and metadata."""

_PRINTABLE = {*range(32, 127), *b"\t\r\n"}
_TYPES = {*ON_ETHERNET, *ON_IP, *ON_HDLC, *SKIPPED}
_EVERY_TYPE = {*range(1, 30), *SKIPPED}
_ALLOWED = (
    f"Ethernet {', '.join(map(str, ON_ETHERNET))}, IP {', '.join(map(str, ON_IP))}, "
    f"HDLC {', '.join(map(str, ON_HDLC))}, or {' and '.join(map(str, SKIPPED))}, which are skipped"
)


def looks_like_erf(head: bytes) -> bool:
    r"""Tell whether the first bytes of a file may be records: ERF has no magic number.

    >>> looks_like_erf(bytes(8) + bytes([2, 4, 0, 80, 0, 0, 0, 64])), looks_like_erf(b"0.001 64\n" * 10)
    (True, False)
    """
    at = 0
    if not set(head[:64]) - _PRINTABLE:
        return False
    while len(head) - at >= HEADER:
        length = struct.unpack_from(">H", head, at + 10)[0]
        if head[at + 8] & 127 not in _EVERY_TYPE or length < HEADER or head[at + 9] & 64:
            return False
        at += length
    return at > 0


def read_erf(file: BinaryIO) -> Captured:
    """Return the packets of an ERF file.

    A record is a time (little-endian, in 2^-32 s since 1970), a type, whose highest bit says that extension
    headers of 8 bytes follow, flags, the two lowest of them the interface, and big-endian the length of the
    record with all its headers, a counter and the length on the wire [1]_. That of Ethernet has the 4 bytes
    of the frame check sequence, which pcap files leave out; it is used as it stands.

    References
    ----------
    .. [1] Endace, "ERF Types Reference Guide", EDM11-01, as read by Wireshark's ``wiretap/erf.c``.
    """
    found = Captured()
    number = 0
    while head := file.read(HEADER):
        number += 1
        try:
            _add(found, head, file)
        except ValueError as error:
            raise ValueError(f"{len(found)} packets read: ERF record {number} {error}") from None
    return found


def _add(found: Captured, head: bytes, file: BinaryIO) -> None:
    """Read the rest of a record and append its packet, if it holds one."""
    if len(head) < HEADER:
        raise ValueError(f"is cut off: {len(head)} of {HEADER} bytes of its header")
    ticks, kind, flags = struct.unpack("<QBB", head[:10])
    length, _, wire = struct.unpack(">HHH", head[10:])
    if kind & 127 not in _TYPES:
        raise ValueError(f"must be of a type that holds a packet ({_ALLOWED}), got type {kind & 127}")
    if length < HEADER:
        raise ValueError(f"must have a length of at least {HEADER} bytes, got {length}")
    body = file.read(length - HEADER)
    if len(body) < length - HEADER:
        raise ValueError(f"is cut off: {HEADER + len(body)} of {length} bytes")
    at, more = 0, kind & 128
    while more:
        if len(body) < at + 8:
            raise ValueError(f"must hold its extension headers, got a length of {length} bytes")
        more, at = body[at] & 128, at + 8
    kind &= 127
    if kind in SKIPPED:
        return
    key = None
    if kind in ON_ETHERNET:
        key = flow_key(body[at + 2 :], ETHERNET)  # after an offset and padding
    elif kind in ON_IP:
        key = flow_key(body[at:], RAW[0])
    # To the nearest nanosecond.
    found.add((ticks * 1_000_000_000 + 2**31) >> 32, wire, key, (flags & 3, ""))
