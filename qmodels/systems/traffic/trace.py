"""Recorded packets: their times and sizes, and the files they are read from."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray, IntArray
from qmodels.systems.spec.docstrings import Documented
from qmodels.systems.spec.text.reading import Place
from qmodels.systems.traffic.files import one_line, packets_of
from qmodels.systems.traffic.sizes import LARGEST_PACKET
from qmodels.systems.traffic.trace_statistics import TraceStatistics, trace_statistics

if TYPE_CHECKING:
    from qmodels.systems.traffic.description import TraceDescription


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace(Documented):
    """Packets as recorded. Two traces are equal when times, sizes and flows are, whatever their source.

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

    times_ns: FloatArray  # Arrival times, nondecreasing; kept as time since the first packet. [ns]
    bytes: IntArray  # Packet sizes, 1 to 65535. [bytes]
    source: str  # Path of the file, or what else the packets came from
    flows: IntArray | None = None  # Number of each packet's flow, at least 0; None where it is not known
    # What had to be said to read the file: ``interface=1`` or ``columns=time=2,bytes=5``; empty for others
    read_as: str = ""

    def __post_init__(self) -> None:
        checks.finite("trace.times_ns", self.times_ns)
        times = np.asarray(self.times_ns)
        sizes = checks.finite("trace.bytes", self.bytes)
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
        if not isinstance(value, dict):
            return read_trace(place.folder / place.read(value, str))
        place.check(value, ("file", "interface", "columns"), ("file",))
        said = {name: place.at(name).read(one, str) for name, one in value.items()}
        return read_trace(place.folder / said.pop("file"), **said)

    def __to_toml__(self, table: Callable[[], Any], key: str) -> Any:
        if not os.path.isfile(self.source):
            raise ValueError(
                f"{key} cannot be written: the trace is from {self.source!r}, which is not a file"
            )
        file = os.path.abspath(self.source)
        name, _, said = self.read_as.partition("=")
        return {"file": file, name: said} if said else file

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

    @cached_property
    def description(self) -> TraceDescription:
        """Description of the trace, in numbers and words; see `qmodels.traffic.describe`."""
        from qmodels.systems.traffic.description import TraceDescription

        names = ("source", "packet_rate", "mean_gbps", "gap_scv")
        known = {name: getattr(self, name) for name in names}
        return TraceDescription.of(self.times_ns, self.bytes, self.statistics, **known)

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


def describe(trace: Trace) -> TraceDescription:
    """Describe a trace: rate, bursts over time scales, steadiness, sizes, gaps and clock.

    Parameters
    ----------
    trace : Trace
        As `qmodels.read_trace` returns it.

    Returns
    -------
    TraceDescription
        Prints as a table in words; ``plot()``, ``warnings()``, ``to_dict()``.

    Examples
    --------
    >>> times = np.concatenate([np.arange(2000) * 100.0, 200_000 + np.arange(2000) * 1000.0])
    >>> found = describe(Trace(times_ns=times, bytes=np.full(4000, 64), source="a change by ten"))
    >>> found.steadiness.steady, round(found.statistics.peak_to_mean, 1), found.resolution_ns
    (False, 5.5, 100.0)
    """
    if not isinstance(trace, Trace):
        raise ValueError(f"trace must be a Trace, such as of read_trace, got {checks.shown(trace)}")
    return trace.description


def read_trace(
    path: str | os.PathLike[str], format: str | None = None, *, interface: str | int = "", columns: str = ""
) -> Trace:
    r"""Return the packets of a file; what it is shows from its content, not its name.

    Parameters
    ----------
    path : path
        The file, compressed with gzip or not.
    format : {"pcap", "pcapng", "erf", "time-bytes", "tcpdump-summary", "csv"}, optional
        What the file must be; anything when left out. See Notes.
    interface : str or int
        Of a pcapng or ERF file: number or name of the interface whose packets are meant, or ``"all"`` to
        merge them by time. Needed where packets came on several.
    columns : str
        Of a text with other columns: which hold what, from 1, as ``"time=2,bytes=5,unit=us"``.

    Returns
    -------
    Trace
        Sizes are those on the wire, also where the capture kept only the head of a packet.

    Raises
    ------
    ValueError
        One line that names the file, how much of it was read and what is wrong: unreadable,
        empty, of no known or another format, cut off, times that decrease, impossible sizes,
        several interfaces and none chosen (they are named).

    Notes
    -----
    - *pcap* (micro- or nanoseconds, either byte order), through dpkt, and *pcapng*, through python-pcapng.
    - *erf*, of Endace's cards: Ethernet, IP and HDLC records. Lengths of Ethernet have the 4 bytes of the
      frame check sequence, as the cards count them.
    - *time-bytes*: two columns, seconds and bytes, as the Bellcore traces [1]_. Their lengths
      are used as they stand (64 to 1518).
    - *tcpdump-summary*: the six columns of ``sanitize-tcp`` [2]_, as in LBL-TCP-3: time, hosts,
      ports, bytes of data. The 40 bytes of IP and TCP headers are added, so that a bare
      acknowledgement is a packet of 40 bytes. The first time may be absolute with all others
      counted from its whole second. The summaries of UDP and of SYN/FIN/RST packets hold no
      sizes and are refused.
    - *csv*: a header line ``time,bytes``, or ``time,flow,bytes`` with any word for a flow; seconds
      and bytes.
    - any other text, by ``columns``: parted by commas, semicolons, tabs or blanks; a first line of words
      is a header.

    Captures of Ethernet or IP and TCP summaries have flows: packets of one protocol, with the same
    addresses and ports. Blank lines and lines that start with ``#`` are skipped.

    References
    ----------
    .. [1] The Internet Traffic Archive, "BC", https://ita.ee.lbl.gov/html/contrib/BC.html
    .. [2] V. Paxson, "Scripts for sanitizing tcpdump traces",
       http://ita.ee.lbl.gov/html/contrib/sanitize-readme.txt

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "three.log"
    ...     _ = path.write_text("# no, us, proto, length\n1 10.0 udp 64\n2 11.0 udp 1500\n3 13.0 udp 64\n")
    ...     read_trace(path, columns="time=2,bytes=4,unit=us").times_ns
    array([   0., 1000., 3000.])
    """
    checks.path("path", path)
    if isinstance(interface, bool) or not isinstance(interface, str | int):
        raise ValueError(f"interface must be a number, a name or all, got {checks.shown(interface)}")
    if not isinstance(columns, str):
        raise ValueError(f"columns must be a text such as 'time=1,bytes=2', got {checks.shown(columns)}")
    interface = str(interface)
    with one_line(path):
        times, sizes, flows = packets_of(path, format, interface, columns)
        try:
            return Trace(
                times_ns=np.asarray(times),
                bytes=np.asarray(sizes),
                source=os.fspath(path),
                flows=None if flows is None else np.asarray(flows),
                read_as=f"interface={interface}" if interface else f"columns={columns}" if columns else "",
            )
        except ValueError as error:
            raise ValueError(f"{len(sizes)} packets read: {error}") from None
