"""The house as the code has it; ``python .github/docs/machinery/architecture.py house.svg`` draws it."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
FLOORS = {
    "cases": (0.0, 6.3, 3, 6, "studies, published systems, the command line"),
    "validate": (0.0, 3.35, 2, 4, "simulators, campaigns, comparison"),
    "optimize": (3.6, 6.0, 2, 3, "spaces, search, decisions"),
    "qmodels": (0.35, 5.65, 1, 5, "formulas"),
    "qmodels.systems": (0.0, 6.3, 0, 6, "what a system is: no formula"),
}
"""Of each floor: its left and right end, which one it is from below, rooms in a row, what it holds."""

ARROWS = {
    ("cases", "validate"): 1.65, ("cases", "optimize"): 4.8, ("cases", "qmodels"): 3.47,
    ("cases", "qmodels.systems"): 6.15, ("validate", "qmodels"): 1.65, ("validate", "qmodels.systems"): 0.17,
    ("optimize", "qmodels.systems"): 5.83, ("qmodels", "qmodels.systems"): 3.0,
}  # fmt: skip
"""Where the arrow from a floor to one below it stands; any other import is an error here."""

BASE = {"qmodels.checks": "qmodels.systems.checks", "qmodels.guarded": "qmodels.systems.checks"}
DOORS = ("qmodels.optimize", "qmodels.validate", "qmodels.cases", "qmodels.interactive")
"""Names under which the floors above are found too; left out."""

HEAD = """# The house

Drawn from the imports in the code when this page is built; `python .github/docs/machinery/architecture.py
house.svg` draws the picture alone. In each room stand its lines; at an arrow, how many files of the upper
floor import from the lower one. `tests/test_layering.py` says what a file may import.

![Floors, their rooms and the imports between them](architecture.svg)

| room | holds | lines | imports from |
|---|---|---|---|
"""


def room_of(module: str) -> str:
    """Return the room of a module: ``validate.engine``, ``qmodels.systems.noc``, or its floor."""
    if any(module.startswith(base) for base in BASE):
        return "qmodels.systems.checks"
    names = module.split(".")[: 3 if module.startswith("qmodels.systems") else 2]
    while not (ROOT.joinpath(*names) / "__init__.py").exists():
        names.pop()
    return ".".join(names)


def floor_of(room: str) -> str:
    """Return the floor of a room."""
    return "qmodels.systems" if room.startswith("qmodels.systems") else room.partition(".")[0]


@cache
def house() -> tuple[Counter[str], dict[tuple[str, str], set[str]]]:
    """Return the lines of each room, and the files by the rooms they are in and import from."""
    lines: Counter[str] = Counter()
    files: dict[tuple[str, str], set[str]] = {}
    for path in sorted(path for top in FLOORS for path in (ROOT / top).rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        source, here = path.read_text(encoding="utf-8"), room_of(module)
        lines[here] += len(source.splitlines())
        for node in ast.walk(ast.parse(source)) if module not in DOORS else ():
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{one.name}" for one in node.names]
            for there in {room_of(name) for name in names if name.partition(".")[0] in FLOORS} - {here}:
                files.setdefault((here, there), set()).add(module)
    return lines, files


def between() -> dict[tuple[str, str], int]:
    """Return how many files of a floor import from another."""
    found: dict[tuple[str, str], set[str]] = {}
    for (here, there), modules in house()[1].items():
        if floor_of(here) != floor_of(there):
            found.setdefault((floor_of(here), floor_of(there)), set()).update(modules)
    return {ends: len(modules) for ends, modules in found.items()}


def figure() -> Any:
    """Return the floors with their rooms, and the arrows between them."""
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch

    lines = house()[0]
    drawn = Figure(figsize=(11, 8.5), layout="constrained")
    axes = drawn.subplots()
    axes.set(xlim=(-0.1, 6.4), ylim=(-0.1, 3.85))
    axes.axis("off")
    for floor, (left, right, level, columns, words) in FLOORS.items():
        box = FancyBboxPatch(
            (left, level), right - left, 0.7, boxstyle="round,pad=0.04", fc="#eef2f6", ec="#8a97a5"
        )
        axes.add_patch(box)
        axes.text(left + 0.05, level + 0.65, floor, weight="bold", va="center", size=11)
        axes.text(right - 0.05, level + 0.65, words, ha="right", va="center", size=9, color="#45505c")
        rooms = sorted(room for room in lines if floor_of(room) == floor != room)
        step, height = (right - left) / columns, 0.55 / -(-len(rooms) // columns)
        for k, room in enumerate(rooms):
            at = left + (k % columns + 0.5) * step, level + 0.55 - (k // columns + 0.5) * height
            text = f"{room.rpartition('.')[2].replace('_', ' ')}  {lines[room]:,}"
            box = {"boxstyle": "round,pad=0.3", "fc": "white", "ec": "#1f6fb4"}
            axes.text(*at, text, ha="center", va="center", size=8, bbox=box)
    for (upper, lower), count in between().items():
        x, ends = ARROWS[upper, lower], (FLOORS[lower][2] + 0.74, FLOORS[upper][2] - 0.04)
        arrow = {"arrowstyle": "-|>", "color": "#d1610e", "lw": 1 + count / 60}
        axes.annotate("", xy=(x, ends[0]), xytext=(x, ends[1]), arrowprops=arrow)
        axes.text(x + 0.05, ends[1] - 0.1, str(count), size=9, color="#d1610e", va="center")
    return drawn


def pages() -> Iterator[tuple[str, str]]:
    """Yield the page of the house, and its picture."""
    from cases.tables import save

    lines, files = house()
    rows = []
    for room in sorted(lines, key=lambda room: (-FLOORS[floor_of(room)][2], room)):
        said = (import_module(room).__doc__ or "").partition("\n")[0] if room not in BASE.values() else ""
        others = ", ".join(f"`{there}`" for here, there in sorted(files) if here == room)
        rows.append(f"| `{room}` | {said or 'How arguments are checked.'} | {lines[room]:,} | {others} |")
    yield "architecture.md", HEAD + "\n".join(rows) + "\n"
    with TemporaryDirectory() as folder:
        path = Path(folder) / "architecture.svg"
        save(figure(), path)
        yield path.name, path.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    from cases.tables import save

    save(figure(), Path(sys.argv[1]))
