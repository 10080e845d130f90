"""What speaks against a model's numbers, below a table of them: each doubt with the rows that it is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from cases.study.words.section import Section
from optimize.decisions.decision import Decision
from qmodels.systems.packets.packet_processor import PacketProcessor


def doubt_lines(doubts: Mapping[str, int], count: int, what: str) -> list[str]:
    """Return a line for each doubt, with how many of so many rows of a table it is about.

    >>> doubt_lines({"load above 80%": 1, "short runs": 3}, 3, "systems")
    ['load above 80% (1 of 3 systems)', 'short runs']
    """
    return [f"{words} ({k} of {count} {what})" if k < count else words for words, k in doubts.items() if k]


def sweep_doubts(answer: Any) -> Section | None:
    """Return the doubts of a sweep; None without any."""
    lines = doubt_lines(_counts(answer), np.size(answer.stable), "systems")
    return Section(title="Doubts of the model", lines=lines) if lines else None


@lru_cache(maxsize=16)
def front_doubts(decision: Decision) -> tuple[str, ...]:
    """Return the doubts of the model about the front of a decision; of any other kind, about its choice."""
    from qmodels import solve

    space, rows = decision.model.space, decision.front
    if isinstance(space.base, PacketProcessor):
        designs = np.sort(decision.table["design"][rows])
        specs = [space.batch(group) for group in space.groups(designs, space.numeric)]
    else:
        rows = rows[rows == decision.chosen]
        specs = [decision.model.spec(int(row)) for row in rows]
    counts: Counter[str] = Counter()
    for spec in specs:
        counts.update(_counts(solve(spec)))
    return tuple(doubt_lines(counts, len(rows), "designs of the front"))


def _counts(answer: Any) -> dict[str, int]:
    """Return the systems of a sweep that each doubt is about."""
    shape = np.shape(answer.stable)
    return {words: int(np.broadcast_to(mask, shape).sum()) for words, mask in answer.doubts.items()}
