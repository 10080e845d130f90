"""Recorded packets: their times and sizes, and the files they are read from."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from hashlib import sha256
from typing import Any, BinaryIO

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray, IntArray
from qmodels.systems.spec.reading import Place
from qmodels.systems.traffic.captures import (
    PCAP_MAGIC,
    PCAPNG_MAGIC,
    Flows,
    number_flows,
    read_pcap,
    read_pcapng,
)
from qmodels.systems.traffic.sizes import LARGEST_PACKET
from qmodels.systems.traffic.trace_statistics import TraceStatistics, trace_statistics

TCP_IP_HEADER_BYTES = 40
"""IPv4 and TCP header without options, which tcpdump summaries leave out of a packet's size. [bytes]"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace:
    """Packets as recorded. Two traces are equal when times, sizes and flows are, whatever their source.

    Parameters
    ----------
    times_ns : array of float
        Arrival times, nondecreasing; kept as time since the first packet. [ns]
    bytes : array of int
        Packet sizes, 1 to 65535. [bytes]
    source : str
        Path of the file, or what else the packets came from.
    flows : array of int, optional
        Number of each packet's flow, at least 0; None where it is not known.

    Raises
    ------
    ValueError
        If there are fewer than two packets or all have the same time, if a time is before the
        one that precedes it, or if a size or a flow is out of range.

    Examples
    --------
    >>> trace = Trace(times_ns=[0, 100, 300], bytes=[64, 64, 1500], source="by hand")
    >>> len(trace), round(trace.mean_gbps, 2)
    (3, 28.94)
    """

    times_ns: FloatArray
    bytes: IntArray
    source: str
    flows: IntArray | None = None

    def __post_init__(self) -> None:
        times = np.asarray(self.times_ns)
        checks.finite("trace.times_ns", times)
        if times.ndim != 1 or times.shape != np.shape(self.bytes):
            raise ValueError(
                "trace.times_ns and trace.bytes must be one list each, of one length, "
                f"got shapes {times.shape} and {np.shape(self.bytes)}"
            )
        if times.size < 2:
            raise ValueError(f"trace must have at least 2 packets, got {times.size}")
        # Subtract before rounding to float, which cannot hold nanoseconds since 1970, and with a sign.
        times = times.astype(np.int64) if times.dtype.kind == "u" else times
        times = (times - times[0]).astype(float)
        back = np.flatnonzero(np.diff(times) < 0)
        if back.size:
            k = int(back[0]) + 1
            raise ValueError(
                "trace.times_ns must not decrease, "
                f"got packet {k + 1} {times[k - 1] - times[k]:g} ns before packet {k}"
            )
        if times[-1] == 0:
            raise ValueError(f"trace.times_ns must not all be the same, got {times.size} packets at one time")
        sizes = checks.finite("trace.bytes", self.bytes)
        bad = np.flatnonzero((sizes < 1) | (sizes > LARGEST_PACKET) | (sizes != np.floor(sizes)))
        if bad.size:
            k = int(bad[0])
            rule = f"whole numbers from 1 to {LARGEST_PACKET}"
            raise ValueError(f"trace.bytes must be {rule}, got {sizes[k]:g} in packet {k + 1}")
        whole = sizes.astype(np.int64)
        times.flags.writeable = whole.flags.writeable = False
        object.__setattr__(self, "times_ns", times)
        object.__setattr__(self, "bytes", whole)
        if self.flows is not None:
            flows = checks.count("trace.flows", self.flows, minimum=0)
            if flows.shape != whole.shape:
                raise ValueError(
                    f"trace.flows must have one number for each of {whole.size} packets, got {flows.size}"
                )
            flows.flags.writeable = False
            object.__setattr__(self, "flows", flows)

    def __len__(self) -> int:
        return int(self.times_ns.size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trace) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Trace({len(self)} packets, {self.times_ns[-1] / 1e9:g} s, source={self.source!r})"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of times, sizes and flows, the same on every machine."""
        content = self.times_ns.astype("<f8").tobytes() + self.bytes.astype("<i8").tobytes()
        if self.flows is not None:
            content += self.flows.astype("<i8").tobytes()
        return sha256(content).hexdigest()

    def __stable_text__(self) -> str:
        return self.digest

    @classmethod
    def __from_toml__(cls, value: Any, place: Place) -> Trace:
        return read_trace(place.folder / place.read(value, str))

    def __to_toml__(self, table: Callable[[], Any], key: str) -> str:
        if not os.path.isfile(self.source):
            raise ValueError(
                f"{key} cannot be written: the trace is from {self.source!r}, which is not a file"
            )
        return os.path.abspath(self.source)

    @property
    def packet_rate(self) -> float:
        """Gaps over duration, in packets/ns: the reciprocal of the mean gap."""
        return (len(self) - 1) / float(self.times_ns[-1])

    @property
    def mean_gbps(self) -> float:
        """Packet rate times mean size, in Gb/s."""
        return 8 * float(self.bytes.mean()) * self.packet_rate

    @property
    def gap_scv(self) -> float:
        """Squared coefficient of variation of the gaps between packets."""
        return float(np.diff(self.times_ns).var()) * self.packet_rate**2

    @cached_property
    def statistics(self) -> TraceStatistics:
        """Rate window by window and dispersion over time scales: what the mean rate hides."""
        return trace_statistics(self.times_ns, self.bytes)

    def window(self, start: int, count: int) -> Trace:
        """Return ``count`` consecutive packets from packet ``start`` (0 is the first); all must exist.

        Examples
        --------
        >>> Trace(times_ns=[0, 5, 9, 20], bytes=[64] * 4, source="by hand").window(1, 3).times_ns
        array([ 0.,  4., 15.])
        """
        checks.count("start", start, minimum=0, maximum=len(self) - 2)
        checks.count("count", count, minimum=2, maximum=len(self) - start)
        stop = start + count
        return Trace(
            times_ns=self.times_ns[start:stop],
            bytes=self.bytes[start:stop],
            source=f"packets {start} to {stop - 1} of {self.source}",
            flows=None if self.flows is None else self.flows[start:stop],
        )


def read_trace(path: str | os.PathLike[str], format: str | None = None) -> Trace:
    r"""Return the packets of a file; what it is shows from its content, not its name.

    Parameters
    ----------
    path : path
        The file.
    format : {"pcap", "pcapng", "time-bytes", "tcpdump-summary", "csv"}, optional
        What the file must be; anything when left out. See Notes.

    Returns
    -------
    Trace
        Sizes are those on the wire, also where the capture kept only the head of a packet.

    Raises
    ------
    ValueError
        One line that names the file, how much of it was read and what is wrong: unreadable,
        empty, of no known or another format, cut off, times that decrease, impossible sizes.

    Notes
    -----
    - *pcap* (micro- or nanoseconds, either byte order) and *pcapng*, read through Scapy.
    - *time-bytes*: two columns, seconds and bytes, as the Bellcore traces [1]_. Their lengths
      are used as they stand (64 to 1518).
    - *tcpdump-summary*: the six columns of ``sanitize-tcp`` [2]_, as in LBL-TCP-3: time, hosts,
      ports, bytes of data. The 40 bytes of IP and TCP headers are added, so that a bare
      acknowledgement is a packet of 40 bytes. The first time may be absolute with all others
      counted from its whole second. The summaries of UDP and of SYN/FIN/RST packets hold no
      sizes and are refused.
    - *csv*: a header line ``time,bytes``, or ``time,flow,bytes`` with any word for a flow; seconds
      and bytes.

    Captures of Ethernet or IP and TCP summaries have flows: packets of one protocol, with the same
    addresses and ports.

    Blank lines and lines that start with ``#`` are skipped.

    References
    ----------
    .. [1] The Internet Traffic Archive, "BC", https://ita.ee.lbl.gov/html/contrib/BC.html
    .. [2] V. Paxson, "Scripts for sanitizing tcpdump traces",
       http://ita.ee.lbl.gov/html/contrib/sanitize-readme.txt

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "three.csv"
    ...     _ = path.write_text("time,bytes\n0.0,64\n1e-6,1500\n3e-6,64\n")
    ...     read_trace(path).times_ns
    array([   0., 1000., 3000.])
    """
    checks.path("path", path)
    if format is not None:
        checks.choice("format", format, _READERS)
    try:
        with _opened(path) as file:
            found = _detect(file.peek(4096)[:4096])
            if format not in (None, found):
                raise ValueError(f"0 packets read: not {format}, it holds {found}")
            times, sizes, flows = _READERS[found](file)
        try:
            return Trace(
                times_ns=np.asarray(times),
                bytes=np.asarray(sizes),
                source=os.fspath(path),
                flows=None if flows is None else np.asarray(flows),
            )
        except ValueError as error:
            raise ValueError(f"{len(sizes)} packets read: {error}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise ValueError(f"{os.fspath(path)}: compressed with gzip, and cut off or damaged") from None
    except OSError as error:
        raise ValueError(f"{os.fspath(path)}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from None


def _opened(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open a file, through gzip if it is compressed."""
    with open(path, "rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    return io.BufferedReader(gzip.GzipFile(path)) if compressed else open(path, "rb")


def _detect(head: bytes) -> str:
    """Return the format of a file by its first bytes or its first line."""
    if not head.strip():
        raise ValueError("0 packets read: the file is empty")
    if head[:4] in PCAP_MAGIC:
        return "pcap"
    if head[:4] == PCAPNG_MAGIC:
        return "pcapng"
    _, first = next(_rows(head.decode("latin-1").splitlines()), (0, ""))
    if [word.strip().lower() for word in first.split(",")] in _HEADERS:
        return "csv"
    words = first.split()
    if not words or _decimal(words[0]) is None:
        raise ValueError(f"0 packets read: starts with {head[:16]!r}, which is none of {', '.join(_READERS)}")
    if len(words) in (5, 8):
        raise ValueError(
            f"0 packets read: a tcpdump summary of {len(words)} columns, which has no packet sizes"
        )
    if len(words) not in (2, 6):
        raise ValueError(f"0 packets read: {len(words)} columns, expected 2 (time, bytes) or 6 (TCP summary)")
    return "time-bytes" if len(words) == 2 else "tcpdump-summary"


def _read_time_bytes(file: BinaryIO) -> tuple[list[float], list[int], Flows]:
    times, sizes, _ = _columns(_text(file), count=2, separator=None, skip=0)
    return _since_first_ns(times), sizes, None


def _read_tcpdump_summary(file: BinaryIO) -> tuple[list[float], list[int], Flows]:
    times, sizes, flows = _columns(_text(file), count=6, separator=None, skip=0)
    if len(times) > 1 and times[0] > times[1]:
        times[0] %= 1
    return _since_first_ns(times), [size + TCP_IP_HEADER_BYTES for size in sizes], number_flows(flows)


def _read_csv(file: BinaryIO) -> tuple[list[float], list[int], Flows]:
    count = len(next(_rows(_text(file)))[1].split(","))
    file.seek(0)
    times, sizes, flows = _columns(_text(file), count=count, separator=",", skip=1)
    return _since_first_ns(times), sizes, number_flows(flows) if count == 3 else None


def _text(file: BinaryIO) -> Iterator[str]:
    return (line.decode("latin-1") for line in file)


def _columns(
    lines: Iterable[str], *, count: int, separator: str | None, skip: int
) -> tuple[list[Decimal], list[int], list[tuple[str, ...]]]:
    """Return the first column (seconds), the last (bytes) and those between of a text file.

    ``skip`` lines come before.
    """
    times: list[Decimal] = []
    sizes: list[int] = []
    between: list[tuple[str, ...]] = []
    rows = _rows(lines)
    for _ in range(skip):
        next(rows)
    for number, row in rows:
        words = row.split(separator)
        time = _decimal(words[0])
        problem = None
        if len(words) != count:
            problem = f"{len(words)} columns instead of {count}"
        elif time is None:
            problem = f"the time must be a finite number, got {words[0]!r}"
        elif time < 0:
            problem = f"the time must be >= 0, got {words[0].strip()}"
        elif not words[-1].strip().isdecimal():
            problem = f"the bytes must be a whole number >= 0, got {words[-1].strip()!r}"
        if problem or time is None:
            raise ValueError(f"{len(sizes)} packets read: line {number}: {problem}")
        times.append(time)
        sizes.append(int(words[-1]))
        between.append(tuple(words[1:-1]))
    return times, sizes, between


def _rows(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that say something, with their numbers."""
    for number, line in enumerate(lines, start=1):
        row = line.strip()
        if row and not row.startswith("#"):
            yield number, row


def _decimal(word: str) -> Decimal | None:
    try:
        value = Decimal(word.strip())
    except InvalidOperation:
        return None
    return value if value.is_finite() else None


def _since_first_ns(seconds: list[Decimal]) -> list[float]:
    return [float((time - seconds[0]) * 1_000_000_000) for time in seconds]


_HEADERS = (["time", "bytes"], ["time", "flow", "bytes"])

_READERS: dict[str, Callable[..., tuple[list[int] | list[float], list[int], Flows]]] = {
    "pcap": read_pcap,
    "pcapng": read_pcapng,
    "time-bytes": _read_time_bytes,
    "tcpdump-summary": _read_tcpdump_summary,
    "csv": _read_csv,
}
