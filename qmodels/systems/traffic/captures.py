"""Packet captures: times, sizes and flows from pcap and pcapng files, through Scapy's low-level readers."""

from __future__ import annotations

import logging
import os
import struct
import warnings
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

PCAP_MAGIC = (b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1")
"""First bytes of a pcap file: micro- and nanoseconds, either byte order."""

PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"
"""First bytes of a pcapng file."""

_PACKET_BLOCKS = (2, 3, 6)  # pcapng block types: packet (obsolete), simple packet, enhanced packet


Flows = list[int] | None
"""Number of each packet's flow, in the order of their first packets; None where it is not known."""

_ETHERNET, _RAW = 1, (12, 101)
_VLAN, _MPLS = (b"\x81\x00", b"\x88\xa8"), (b"\x88\x47", b"\x88\x48")
_TCP, _UDP = 6, 17


def number_flows(keys: Iterable[Hashable]) -> list[int]:
    """Return the number of each packet's flow.

    Examples
    --------
    >>> number_flows(["b", "a", "b"])
    [0, 1, 0]
    """
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def flow_key(frame: bytes, link: int) -> bytes | None:
    """Return what names a packet's flow: protocol, addresses and, of TCP and UDP, ports.

    Parameters
    ----------
    frame : bytes
        The packet as captured; where the head is cut off the key is shorter.
    link : int
        Link type of the capture: Ethernet (1, with VLAN tags and MPLS labels skipped) or raw IP (12, 101).

    Returns
    -------
    bytes or None
        Of a packet that is not IP the head of its frame; None for other link types.
    """
    if link != _ETHERNET and link not in _RAW:
        return None
    at = 0
    if link == _ETHERNET:
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


def _flows(keys: list[bytes | None]) -> Flows:
    return None if None in keys else number_flows(keys)


def read_pcap(path: str | os.PathLike[str]) -> tuple[list[int], list[int], Flows]:
    """Return times [ns since 1970], wire lengths [bytes] and flows of a pcap file's packets.

    Raises
    ------
    ValueError
        If the file ends in the middle of a packet or its header is damaged.
    """
    times: list[int] = []
    sizes: list[int] = []
    keys: list[bytes | None] = []
    with _reader("RawPcapReader", path) as reader:
        unit = 1 if reader.nano else 1000
        file_size, end = os.stat(path).st_size, 24
        for frame, packet in reader:
            end += 16 + packet.caplen
            if end > file_size:
                break
            times.append(packet.sec * 1_000_000_000 + packet.usec * unit)
            sizes.append(packet.wirelen)
            keys.append(flow_key(frame, reader.linktype))
    # Scapy takes what there is of a packet, and a part of a packet's header for the end.
    if end != file_size:
        raise ValueError(f"{len(times)} packets read: cut off or damaged in the next one")
    return times, sizes, _flows(keys)


def read_pcapng(path: str | os.PathLike[str]) -> tuple[list[int], list[int], Flows]:
    """Return times [ns since 1970], wire lengths [bytes] and flows of a pcapng file's packets.

    Raises
    ------
    ValueError
        If the file ends in the middle of a block, a packet block is damaged or has no time, or there
        is more than one section.
    """
    with open(path, "rb") as file:
        packets, whole = _packet_blocks(file)
    if not whole:
        raise ValueError(f"{packets} packets read: cut off or damaged in the next block")
    times: list[int] = []
    sizes: list[int] = []
    keys: list[bytes | None] = []
    with _reader("RawPcapNgReader", path) as reader:
        for frame, packet in reader:
            if packet.tshigh is None:
                raise ValueError(
                    f"{len(times)} packets read: the next one has no time (a simple packet block)"
                )
            ticks = (packet.tshigh << 32) + packet.tslow
            times.append(ticks * 1_000_000_000 // packet.tsresol)
            sizes.append(packet.wirelen)
            keys.append(flow_key(frame, packet.linktype))
    # Scapy skips a packet block it cannot make sense of, or ends there, without a word.
    if len(times) != packets:
        raise ValueError(f"{len(times)} of {packets} packets read: the rest is damaged")
    return times, sizes, _flows(keys)


def _packet_blocks(file: BinaryIO) -> tuple[int, bool]:
    """Return the packet blocks before the end or the first broken block, and whether all are whole."""
    packets, order, offset = 0, "<", 0
    file_size = os.fstat(file.fileno()).st_size
    while offset < file_size:
        file.seek(offset)
        head = file.read(12)
        if len(head) < 12:
            return packets, False
        if head[:4] == PCAPNG_MAGIC:
            if offset:
                # Scapy would read the second section with the clocks of the first one's interfaces.
                raise ValueError(f"{packets} packets read: a second section follows, only one can be read")
            order = ">" if head[8:12] == b"\x1a\x2b\x3c\x4d" else "<"
        kind, length = struct.unpack(order + "II", head[:8])
        file.seek(offset + max(length - 4, 0))
        if length < 12 or file.read(4) != head[4:8]:
            return packets, False
        packets += kind in _PACKET_BLOCKS
        offset += length
    return packets, True


@contextmanager
def _reader(name: str, path: str | os.PathLike[str]) -> Iterator[Any]:
    """Open a capture with one of Scapy's readers, keeping Scapy's own messages off the terminal."""
    loggers = [logging.getLogger("scapy.loading"), logging.getLogger("scapy.runtime")]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import scapy.utils
        with open(path, "rb") as file:
            try:
                reader = getattr(scapy.utils, name)(file)
            except scapy.error.Scapy_Exception:
                raise ValueError("0 packets read: cut off or damaged in the file header") from None
            yield reader
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled
