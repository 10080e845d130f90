"""Files of recorded packets: what they are shows from their content."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from qmodels import checks
from qmodels.systems.traffic.readers.captures import (
    PCAP_MAGIC,
    PCAPNG_MAGIC,
    Captured,
    Flows,
    looks_like_erf,
    read_erf,
    read_pcap,
    read_pcapng,
)
from qmodels.systems.traffic.readers.columns import (
    HEADERS,
    decimal_of,
    header_words,
    named_layout,
    read_csv,
    read_named,
    read_summary,
    read_time_bytes,
    rows,
)

CAPTURES = {"pcap": read_pcap, "pcapng": read_pcapng, "erf": read_erf}
TEXTS = {"time-bytes": read_time_bytes, "tcpdump-summary": read_summary, "csv": read_csv}

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
            return read_named(file, layout)
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
