"""Packet captures: times, sizes and flows, of pcap through dpkt and of pcapng through python-pcapng."""

from __future__ import annotations

import io
import struct
import warnings
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

Flows = list[int] | None
"""Number of each packet's flow, in the order of their first packets; None where it is not known."""

ALL = "all"
"""The word that stands for every interface."""


def number_flows(keys: Iterable[Hashable]) -> list[int]:
    """Return the number of each packet's flow.

    >>> number_flows(["b", "a", "b"])
    [0, 1, 0]
    """
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


@dataclass
class Captured:
    """Packets in the order of the file: time [ns], bytes on the wire, what names the flow, the interface.

    An interface is its number and its name, which may be empty. Sections of a file that give one number and
    one name mean one interface.
    """

    times: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    ports: list[tuple[int, str]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.times)

    def add(self, time: int, size: int, key: bytes | None, port: tuple[int, str] = (0, "")) -> None:
        """Append a packet."""
        self.times.append(time)
        self.sizes.append(size)
        self.keys.append(key)
        self.ports.append(port)

    def chosen(self, interface: str = "") -> tuple[list[int], list[int], Flows]:
        """Return times, sizes and flows of the packets of an interface, by its number or name, or of `ALL`.

        Raises
        ------
        ValueError
            If there are several interfaces and none is chosen, or if it has no packets.
        """
        counts = {port: self.ports.count(port) for port in dict.fromkeys(self.ports)}
        wanted = {port for port in counts if interface and interface in (ALL, str(port[0]), port[1])}
        if not interface and len(counts) <= 1:
            wanted = set(counts)
        if (not wanted and (counts or interface)) or (interface != ALL and len(wanted) > 1):
            known = ", ".join(f"{_said(port)} with {count} packets" for port, count in counts.items())
            rule = (
                f"interface must be the number or name of one of {known or 'none'}; or {ALL}, merged by time"
            )
            raise ValueError(f"{len(self)} packets read: {rule}; got {interface or 'none'!r}")
        rows = [row for row, port in enumerate(self.ports) if port in wanted]
        if interface == ALL and all(map(self._in_order, wanted)):
            rows.sort(key=self.times.__getitem__)
        keys = [self.keys[row] for row in rows]
        flows = None if None in keys else number_flows(keys)
        return [self.times[row] for row in rows], [self.sizes[row] for row in rows], flows

    def _in_order(self, port: tuple[int, str]) -> bool:
        times = [time for time, one in zip(self.times, self.ports, strict=True) if one == port]
        return all(a <= b for a, b in zip(times, times[1:], strict=False))


def _said(port: tuple[int, str]) -> str:
    return f"{port[0]} ({port[1]})" if port[1] else str(port[0])


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


PCAP_MAGIC = (b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1")
"""First bytes of a pcap file: micro- and nanoseconds, either byte order."""

PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"
"""First bytes of a pcapng file."""


ETHERNET, RAW = 1, (12, 101)
"""Link types whose packets name their flow."""

_VLAN, _MPLS = (b"\x81\x00", b"\x88\xa8"), (b"\x88\x47", b"\x88\x48")
_TCP, _UDP = 6, 17


def flow_key(frame: bytes, link: int) -> bytes | None:
    """Return the key of a packet's flow: protocol, addresses and, of TCP and UDP, ports.

    ``frame``: the packet as captured; where the head is cut off the key is shorter; ``link``: link type of
    the capture: Ethernet (1, with VLAN tags and MPLS labels skipped) or raw IP (12, 101). A packet that
    is not IP gives the head of its frame, another link type None.
    """
    if link != ETHERNET and link not in RAW:
        return None
    at = 0
    if link == ETHERNET:
        kind, at = frame[12:14], 14
        while kind in _VLAN:
            kind, at = frame[at + 2 : at + 4], at + 4
        while kind in _MPLS:
            bottom, at = frame[at + 2 : at + 3], at + 4
            if not bottom or bottom[0] & 1:
                break
    version = frame[at] >> 4 if len(frame) > at else 0
    if version == 4:
        end = at + 4 * (frame[at] & 15)
        protocol, addresses = frame[at + 9 : at + 10], frame[at + 12 : at + 20]
        # Only the first fragment of a datagram has the ports.
        whole = frame[at + 6 : at + 8] in (b"\x00\x00", b"\x40\x00")
    elif version == 6:
        end, protocol, addresses, whole = at + 40, frame[at + 6 : at + 7], frame[at + 8 : at + 40], True
    else:
        return frame[:14]
    ports = frame[end : end + 4] if whole and protocol in (bytes([_TCP]), bytes([_UDP])) else b""
    return protocol + addresses + ports


def read_pcap(file: BinaryIO) -> Captured:
    """Return the packets of a pcap file."""
    from dpkt import pcap

    found = Captured()
    head = file.read(pcap.FileHdr.__hdr_len__)
    if len(head) < pcap.FileHdr.__hdr_len__:
        raise ValueError("0 packets read: cut off or damaged in the file header")
    magic = pcap.FileHdr(head).magic
    header = pcap.MAGIC_TO_PKT_HDR[magic]
    unit = 1 if magic in (pcap.TCPDUMP_MAGIC_NANO, pcap.PMUDPCT_MAGIC_NANO) else 1000
    little = magic in (pcap.PMUDPCT_MAGIC, pcap.PMUDPCT_MAGIC_NANO)
    link = (pcap.LEFileHdr if little else pcap.FileHdr)(head).linktype
    # dpkt's own iteration tells neither wire lengths nor a cut file, and its times are floats.
    while head := file.read(header.__hdr_len__):
        packet = header(head) if len(head) == header.__hdr_len__ else None
        frame = b"" if packet is None else file.read(packet.caplen)
        if packet is None or len(frame) < packet.caplen:
            raise ValueError(f"{len(found)} packets read: cut off or damaged in the next one")
        time = packet.tv_sec * 1_000_000_000 + packet.tv_usec * unit
        found.add(time, packet.len, flow_key(frame, link))
    return found


def read_pcapng(file: io.BufferedReader) -> Captured:
    """Return the packets of a pcapng file, whose interfaces may have clocks of their own."""
    from pcapng.blocks import EnhancedPacket, ObsoletePacket, SimplePacket

    found = Captured()
    for block in _blocks(file, found):
        if isinstance(block, SimplePacket):
            raise ValueError(f"{len(found)} packets read: the next one has no time (a simple packet block)")
        if isinstance(block, EnhancedPacket | ObsoletePacket):
            try:
                interface = block.interface
                ticks = (block.timestamp_high << 32) + block.timestamp_low
                time = int(interface.options.get("if_tsoffset", 0)) * 1_000_000_000
                time += ticks * 1_000_000_000 // round(1 / interface.timestamp_resolution)
                wire, key = block.packet_len, flow_key(block.packet_data, interface.link_type)
                port = int(block.interface_id), str(interface.options.get("if_name", ""))
            except _damage():
                raise ValueError(f"{len(found)} packets read: the next one is damaged") from None
            found.add(time, wire, key, port)
    return found


def _blocks(file: io.BufferedReader, found: Captured) -> Iterator[Any]:
    """Yield the blocks of a file; where one is broken, say how many packets came before it."""
    from pcapng import FileScanner

    blocks = iter(FileScanner(file))
    try:
        while file.peek(1):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # python-pcapng warns of its own schema
                block = next(blocks)  # an end before that of the file is a block cut short
                if getattr(block, "version_major", 1) != 1:
                    raise ValueError
            yield block
    except _damage():
        raise ValueError(f"{len(found)} packets read: cut off or damaged in the next block") from None


def _damage() -> tuple[type[Exception], ...]:
    """Return the exceptions of python-pcapng for a damaged block, endless recursion among them."""
    from pcapng.exceptions import PcapngException

    ours = (LookupError, ArithmeticError, AttributeError, TypeError, ValueError, RecursionError)
    return (PcapngException, StopIteration, struct.error, *ours)
