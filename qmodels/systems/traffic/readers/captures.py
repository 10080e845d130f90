"""Packet captures: times, sizes and flows, of pcap through dpkt and of pcapng through python-pcapng."""

from __future__ import annotations

import io
import struct
import warnings
from collections.abc import Iterator
from typing import Any, BinaryIO

from qmodels.systems.traffic.readers.interfaces import Captured

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
                ticks, offset = (block.timestamp_high << 32) + block.timestamp_low, _second(interface)
                time = offset * 1_000_000_000 + ticks * 1_000_000_000 // _ticks_per_second(interface)
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


def _ticks_per_second(interface: Any) -> int:
    return round(1.0 / interface.timestamp_resolution)


def _second(interface: Any) -> int:
    return int(interface.options.get("if_tsoffset", 0))
