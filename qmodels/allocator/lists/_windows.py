"""Windows of recent banks up to a renaming of the banks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

Window = tuple[int, ...]
Draw = tuple[Window, float]
"""Banks drawn at random and the probability of the draw."""


def canonical(banks: Iterable[Hashable]) -> Window:
    """Return the banks renamed 0, 1, ... in the order of their first appearance.

    All banks are alike, so that only equality between places matters.
    """
    names: dict[Hashable, int] = {}
    return tuple(names.setdefault(bank, len(names)) for bank in banks)


def distinct(window: Window) -> Window:
    """Return the banks of a window, each once, in the order of their first appearance."""
    return tuple(dict.fromkeys(window))


def draw_any(known: int, count: int, banks: int) -> list[Draw]:
    """Return all draws of independent banks; banks 0 to ``known`` - 1 have names, others get new ones."""
    draws: list[tuple[Window, float, int]] = [((), 1.0, known)]
    for _ in range(count):
        longer = []
        for drawn, chance, named in draws:
            longer += [((*drawn, bank), chance / banks, named) for bank in range(named)]
            if banks > named:
                longer.append(((*drawn, named), chance * (banks - named) / banks, named + 1))
        draws = longer
    return [(drawn, chance) for drawn, chance, _ in draws]


def draw_others(known: int, excluded: Window, banks: int) -> list[tuple[int, float]]:
    """Return all draws of one bank that is not among those excluded (which are distinct)."""
    left = banks - len(excluded)
    if left <= 0:
        return []
    draws = [(bank, 1.0 / left) for bank in range(known) if bank not in excluded]
    if banks > known:
        draws.append((known, (banks - known) / left))
    return draws


def draw_window(known: int, length: int, banks: int, start: Window = ()) -> list[Draw]:
    """Return all draws of a window, after its given start, of banks that differ as far as there are banks."""
    draws: list[tuple[Window, float, int]] = [(start, 1.0, known)]
    for _ in range(length - len(start)):
        longer = []
        for drawn, chance, named in draws:
            others = draw_others(named, distinct(drawn), banks) or [(drawn[0], 1.0)]
            longer += [((*drawn, bank), chance * part, max(named, bank + 1)) for bank, part in others]
        draws = longer
    return [(drawn, chance) for drawn, chance, _ in draws]
