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
    said = {words: k for words, k in doubts.items() if k}
    return [f"{words} ({k} of {count} {what})" if k < count else words for words, k in said.items()]


def sweep_doubts(answer: Any) -> Section | None:
    """Return the doubts of a sweep; None without any."""
    lines = doubt_lines(_counts(answer), np.size(answer.stable), "systems")
    return Section(title="Doubts of the model", lines=lines) if lines else None


@lru_cache(maxsize=16)
def front_doubts(decision: Decision) -> tuple[str, ...]:
    """Return the doubts of the model about the front of a decision; of any other kind, about its choice.

    Directions along fields that do not vary there, or of metrics that are not asked for, are left out.
    """
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
    asked = {words: count for words, count in counts.items() if _concerns(words, decision)}
    return tuple(doubt_lines(asked, len(rows), "designs of the front"))


def _concerns(words: str, decision: Decision) -> bool:
    """Return whether a doubt concerns what is asked: a direction if its metric is and its field varies."""
    model = decision.model
    metric, along, field = words.partition(" along ")
    varied = {name.rpartition(".")[2] for name, choices in model.space.choices.items() if len(choices) > 1}
    asked = {*model.objectives, *model.subject_to}
    return not along or (metric in asked and field.partition(":")[0].rpartition(".")[2] in varied)


def _counts(answer: Any) -> dict[str, int]:
    """Return the systems of a sweep that each doubt is about."""
    shape = np.shape(answer.stable)
    return {words: int(np.broadcast_to(mask, shape).sum()) for words, mask in answer.against.items()}
