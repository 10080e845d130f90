"""Columns as a page carries them: numbers as bytes in base64, words by their place in a list."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import numpy as np


def packed(values: Any, words: Any = None) -> dict[str, Any]:
    """Return a column for JSON: its type, its bytes and the words it counts in; one value if all are equal.

    Real numbers are rounded to the upper three bytes of a 32-bit float: to 1.6e-5 of the value.
    """
    column = np.asarray(values)
    if words is None and column.dtype.kind not in "bf":
        words = np.unique(column).tolist()
    if words is not None:
        places = {word: k for k, word in enumerate(words)}
        column = np.array([places[value] for value in column.tolist()], dtype=int)
    if column.size and (column == column[0]).all():
        column = column[:1]
    if column.dtype.kind == "f":
        bits = column.astype("<f4").view("<u4") + np.uint32(0x80)
        kind, octets = "f3", bits.view(np.uint8).reshape(-1, 4)[:, 1:].tobytes()
    else:
        kind = "u1" if column.max(initial=0) < 256 else "u2"
        octets = column.astype("<" + kind).tobytes()
    found = {"type": kind, "data": b64encode(octets).decode()}
    return found if words is None else {**found, "words": list(words)}


def unpacked(column: dict[str, Any], count: int) -> Any:
    """Return the array of a packed column of so many rows, as the page reads it."""
    octets, kind = np.frombuffer(b64decode(column["data"]), dtype=np.uint8), column["type"]
    if kind == "f3":
        octets, kind = np.pad(octets.reshape(-1, 3), ((0, 0), (1, 0))).ravel(), "f4"
    values = octets.view("<" + kind)
    values = np.broadcast_to(values, count) if values.size == 1 else values
    return values if "words" not in column else np.array(column["words"])[values]
