"""Nodes of an interconnect, as numbers or as text: ``"0..7, 56..63"``."""

from __future__ import annotations

import re
from typing import Any

from qmodels import checks

MOST = 65536
"""Nodes that a text may name."""

LONG = 3
"""Nodes in a row from which they are written as a range."""


def read_nodes(name: str, value: Any) -> tuple[int, ...]:
    """Return node numbers: of one, of several, or of a text of numbers and ranges with both their ends.

    >>> read_nodes("place.dram", "0..3, 8"), read_nodes("place.dram", range(2)), read_nodes("place.dram", 5)
    ((0, 1, 2, 3, 8), (0, 1), (5,))
    """
    if isinstance(value, str):
        return tuple(node for part in value.split(",") for node in _range(name, part.strip(), value))
    nodes = tuple(value) if isinstance(value, list | tuple | range) else (value,)
    for node in nodes:
        checks.one_number(name, node)
    return tuple(checks.count(name, nodes, minimum=0).tolist())


def _range(name: str, part: str, whole: str) -> range:
    found = re.fullmatch(r"(\d{1,9})(?:\.\.(\d{1,9}))?", part)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if not first <= last < first + MOST:
        raise ValueError(f"{name} must be nodes such as 0..7, 12, got {whole!r}")
    return range(first, last + 1)


def nodes_text(nodes: tuple[int, ...]) -> Any:
    """Return nodes as files have them: a text where some stand in a row, or else the list of them.

    >>> nodes_text((0, 1, 2, 3, 8)), nodes_text((5, 7))
    ('0..3, 8', [5, 7])
    """
    runs: list[list[int]] = []
    for node in nodes:
        if runs and node == runs[-1][-1] + 1:
            runs[-1].append(node)
        else:
            runs.append([node])
    if all(len(run) < LONG for run in runs):
        return list(nodes)
    texts = ([f"{run[0]}..{run[-1]}"] if len(run) >= LONG else map(str, run) for run in runs)
    return ", ".join(text for run in texts for text in run)
