"""Files of recorded packets: what they are shows from their content."""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import BinaryIO

from qmodels import checks
from qmodels.systems.traffic.captures import (
    PCAP_MAGIC,
    PCAPNG_MAGIC,
    Captured,
    Flows,
    looks_like_erf,
    number_flows,
    read_erf,
    read_pcap,
    read_pcapng,
)

TCP_IP_HEADER_BYTES = 40
"""IPv4 and TCP header without options, which tcpdump summaries leave out of a packet's size. [bytes]"""

UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""Units of times: powers of ten in a second."""

Read = tuple[list[float], list[int], Flows]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Which columns of a text hold what, by their numbers from 0."""

    # time, bytes: columns of the time and of the length.
    time: int = 0
    bytes: int = 1
    flow: tuple[int, ...] = ()  # columns that name a packet's flow; empty where it is not known
    unit: str = "s"  # unit of the times: s, ms, us or ns
    count: int | None = None  # how many columns a line must have; None for any number that has these
    separator: str | None = None  # what parts the columns; None for blanks
    header: bool = False  # whether the first line names the columns


TIME_BYTES = Layout(count=2)
SUMMARY = Layout(bytes=5, flow=(1, 2, 3, 4), count=6)
HEADERS = {
    ("time", "bytes"): Layout(count=2, separator=",", header=True),
    ("time", "flow", "bytes"): Layout(bytes=2, flow=(1,), count=3, separator=",", header=True),
}


def named_layout(columns: str) -> Layout:
    """Return the layout that ``time=2,bytes=5,unit=us`` names: columns count from 1.

    >>> named_layout("bytes=1, time=3, unit=ms, flow=2")
    Layout(time=2, bytes=0, flow=(1,), unit='ms', count=None, separator=None, header=False)
    """
    rule = (
        "columns must be like 'time=2,bytes=5,unit=us': the numbers of two columns from 1, if known flow=N, "
        f"and the unit of the times, one of {', '.join(UNITS)} (s if left out), got {columns!r}"
    )
    pairs = [(part.partition("=")[0].strip(), part.partition("=")[2].strip()) for part in columns.split(",")]
    given = dict(pairs)
    unit = given.pop("unit", "s")
    good = len(pairs) == len(dict(pairs)) and {"time", "bytes"} <= set(given) <= {"time", "bytes", "flow"}
    if not good or unit not in UNITS:
        raise ValueError(rule)
    places = {k: int(v) - 1 if v.isascii() and v.isdecimal() and len(v) < 5 else -1 for k, v in given.items()}
    if min(places.values()) < 0 or len(set(places.values())) < len(places):
        raise ValueError(rule)
    flow = (places["flow"],) if "flow" in places else ()
    return Layout(time=places["time"], bytes=places["bytes"], flow=flow, unit=unit)


def read_summary(file: BinaryIO) -> Read:
    """Return the packets of a tcpdump summary of TCP; the first time may be absolute."""
    lines = _Lines(_text(file), SUMMARY)
    lines.parse()
    if len(lines.times) > 1 and lines.times[0] > lines.times[1]:
        lines.times[0] %= 1
    times, sizes, flows = lines.result()
    return times, [size + TCP_IP_HEADER_BYTES for size in sizes], flows


def read_csv(file: BinaryIO) -> Read:
    """Return the packets of a text with a known header line."""
    _, first = next(rows(_text(file)))
    file.seek(0)
    return _Lines(_text(file), HEADERS[header_words(first)]).read()


def header_words(line: str) -> tuple[str, ...]:
    """Return the words of a header line."""
    return tuple(word.strip().lower() for word in line.split(","))


def rows(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that say something, with their numbers."""
    for number, line in enumerate(lines, start=1):
        row = line.strip()
        if row and not row.startswith("#"):
            yield number, row


def decimal_of(word: str) -> Decimal | None:
    """Return the finite number that a word is, exactly; None for any other."""
    try:
        value = Decimal(word.strip())
    except InvalidOperation:
        return None
    # Beyond it differences of times would be rounded.
    return value if value.is_finite() and (value == 0 or abs(value.adjusted()) < 20) else None


@dataclass
class _Lines:
    """The lines of a text, read into times, sizes and what names the flows.

    With columns that the user names they are parted by commas, semicolons or blanks: a first line whose time
    is none is then a header, and quotes around what is between commas are taken off.
    """

    lines: Iterable[str]
    layout: Layout
    times: list[Decimal] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    keys: list[tuple[str, ...]] = field(default_factory=list)

    def read(self, *, named: bool = False) -> Read:
        self.parse(named=named)
        return self.result()

    def result(self) -> Read:
        scale = Decimal(10) ** (9 - UNITS[self.layout.unit])
        times = [float((time - self.times[0]) * scale) for time in self.times]
        return times, self.sizes, number_flows(self.keys) if self.layout.flow else None

    def parse(self, *, named: bool = False) -> None:
        found = rows(self.lines)
        if self.layout.header:
            next(found)
        split: Callable[[str], list[str]] = lambda row: row.split(self.layout.separator)  # noqa: E731
        for k, (number, row) in enumerate(found):
            if named and k == 0:
                split = _splitter(row)
            try:
                words = split(row)
                if not (named and k == 0 and self._is_header(words)):
                    self._add(words)
            except (ValueError, csv.Error) as error:
                raise ValueError(f"{len(self.sizes)} packets read: line {number}: {error}") from None

    def _is_header(self, words: list[str]) -> bool:
        """Tell whether a first line names columns: where the numbers should be are words."""
        places = (self.layout.time, self.layout.bytes)
        return max(places) < len(words) and all(
            not any(letter.isdecimal() for letter in words[place]) for place in places
        )

    def _add(self, words: list[str]) -> None:
        layout = self.layout
        least = max(layout.time, layout.bytes, *layout.flow) + 1
        if len(words) != layout.count if layout.count else len(words) < least:
            raise ValueError(f"{len(words)} columns instead of {layout.count or f'at least {least}'}")
        time, size = decimal_of(words[layout.time]), words[layout.bytes].strip()
        if time is None:
            unit = "" if layout.unit == "s" else f" of {layout.unit}"
            raise ValueError(f"the time must be a finite number{unit}, got {words[layout.time].strip()!r}")
        if time < 0:
            raise ValueError(f"the time must be >= 0, got {words[layout.time].strip()}")
        if not (size.isascii() and size.isdecimal() and len(size) < 16):
            raise ValueError(f"the bytes must be a whole number >= 0, got {size!r}")
        self.times.append(time)
        self.sizes.append(int(size))
        self.keys.append(tuple(words[place] for place in layout.flow))


def _splitter(row: str) -> Callable[[str], list[str]]:
    """Return the separator of the columns of a text, by one of its lines."""
    for separator in (",", ";", "\t"):
        if separator in row:
            return lambda line: next(csv.reader([line], delimiter=separator, skipinitialspace=True))
    return str.split


def _text(file: BinaryIO) -> Iterator[str]:
    return (line.decode("latin-1") for line in file)


CAPTURES = {"pcap": read_pcap, "pcapng": read_pcapng, "erf": read_erf}
TEXTS: dict[str, Callable[[BinaryIO], Read]] = {
    "time-bytes": lambda file: _Lines(_text(file), TIME_BYTES).read(),
    "tcpdump-summary": read_summary,
    "csv": read_csv,
}

WITH_INTERFACES = ("pcapng", "erf")

HEAD = 4096
"""First bytes of a file that say what it is."""


def packets_of(
    path: str | os.PathLike[str], format: str | None, interface: str, columns: str
) -> tuple[list[int] | list[float], list[int], Flows]:
    """Return times [ns], bytes and flows of a file's packets; see `read_trace`."""
    if format is not None:
        checks.choice("format", format, [*CAPTURES, *TEXTS])
    layout = named_layout(columns) if columns else None
    with opened(path) as file:
        head = file.peek(HEAD)[:HEAD]
        if not head.strip():
            raise ValueError("0 packets read: the file is empty")
        found = capture_of(head)
        if found is None and layout is None:
            found = _text_of(head)
        if format not in (None, found) or (found and layout):
            wanted = format or "a text with columns"
            raise ValueError(f"0 packets read: not {wanted}, it holds {found or 'a text with other columns'}")
        if interface and found not in WITH_INTERFACES:
            said = f"left out but for {' and '.join(WITH_INTERFACES)} files"
            raise ValueError(
                f"0 packets read: interface must be {said}, got {interface!r} for {found or 'text'}"
            )
        if layout is not None:
            return _Lines(_text(file), layout).read(named=True)
        if found in TEXTS:
            return TEXTS[found](file)
        captured: Captured = CAPTURES[str(found)](file)
        return captured.chosen(interface)


@contextmanager
def one_line(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say of what goes wrong in reading a file which file it is."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise ValueError(f"{os.fspath(path)}: compressed with gzip, and cut off or damaged") from None
    except OSError as error:
        raise ValueError(f"{os.fspath(path)}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from None


def takes_option(path: str | os.PathLike[str]) -> str:
    """Return which option on reading a file may need: ``interface``, ``columns`` or none."""
    with one_line(path), opened(path) as file:
        head = file.peek(HEAD)[:HEAD]
        found = capture_of(head)
        if found is not None:
            return "interface" if found in WITH_INTERFACES else ""
        try:
            _text_of(head)
        except ValueError:
            return "columns"
        return ""


def opened(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open a file, through gzip if it is compressed."""
    with open(path, "rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    return io.BufferedReader(gzip.GzipFile(path)) if compressed else open(path, "rb")


def capture_of(head: bytes) -> str | None:
    """Return which capture a file is by its first bytes; None for a text."""
    if head[:4] in PCAP_MAGIC:
        return "pcap"
    if head[:4] == PCAPNG_MAGIC:
        return "pcapng"
    return "erf" if looks_like_erf(head) else None


def _text_of(head: bytes) -> str:
    """Return which text a file is by its first line."""
    _, first = next(rows(head.decode("latin-1").splitlines()), (0, ""))
    if header_words(first) in HEADERS:
        return "csv"
    words = first.split()
    if not words or decimal_of(words[0]) is None:
        known = ", ".join([*CAPTURES, *TEXTS]) + (_HINT if head.isascii() else "")
        raise ValueError(f"0 packets read: starts with {head[:16]!r}, which is none of {known}")
    if len(words) in (5, 8):
        raise ValueError(
            f"0 packets read: a tcpdump summary of {len(words)} columns, which has no packet sizes"
        )
    if len(words) not in (2, 6):
        expected = "expected 2 (time, bytes) or 6 (TCP summary)"
        raise ValueError(f"0 packets read: {len(words)} columns, {expected}{_HINT}")
    return "time-bytes" if len(words) == 2 else "tcpdump-summary"


_HINT = "; of another text name the columns: time=2,bytes=5,unit=us"
