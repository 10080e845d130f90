"""Every public name with its docstring, by subject: the groups of `qmodels`, `optimize` and `validate`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

GROUPS = (
    "queues",
    "networks",
    "markov",
    "laws",
    "traffic",
    "noc",
    "memory",
    "packets",
    "steps",
    "parts",
    "symbolic",
)

SUBJECTS = {
    "qmodels": {
        "Verbs and answers": """
            solve simulate compare explore size bounds what_if read load presets Answer Space
        """,
        "Kinds of systems": """
            PacketProcessor DataQueueing Noc DramSystem CacheSystem LlcProcessor NumaMachine
            MessageProgram WorkQueues QueueingNetwork System
        """,
        "What they are made of": """
            dram CacheLevel crossbar mesh ring spidergon torus Flow Tokens JobClass Station
            single_station tandem Workload read_trace
        """,
    },
    "qmodels.optimize": {
        "Spaces and fields": "Space field_paths find_field get_field replace_fields",
        "Exploration": "explore Exploration Exclusion Step simplex_weights Proof ProofStep",
        "Fronts": """
            compare_fronts FrontComparison epsilon_thin hypervolume knee_index nondominated
        """,
        "Decisions by simulation": "decide Decision Interrupted",
        "Search of a black box": "Search Domain Between",
        "Integer programs": """
            Component tabulate choose Choice exact_front ExactFront place Placement
        """,
        "What matters, and how much is needed": """
            sensitivity Elasticity tornado Tornado sobol SobolIndices size Size
        """,
    },
    "qmodels.validate": {
        "Simulation": """
            simulate Estimate Campaign CampaignInterrupted saturation_rate write_parquet
        """,
        "Comparison": "compare Comparison SweepComparison PairComparison",
        "Runs of other simulators": """
            RunSet read_booksim read_dramsim3 read_gem5 read_ramulator read_table
        """,
        "Calibration": "calibrate Calibration",
    },
}
"""The names of packages with several subjects, by subject."""


ORDER = ("qmodels", *(f"qmodels.{group}" for group in GROUPS), "qmodels.optimize", "qmodels.validate")
"""The modules with public names; what stands in several is documented in the first."""


def names(module: str) -> dict[str, Any]:
    """Return the public names of a module, without its groups."""
    found = import_module(module)
    listed = getattr(found, "__all__", None) or [
        name
        for name, value in vars(found).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module
    ]
    values = {name: getattr(found, name) for name in listed}
    return {name: value for name, value in values.items() if not inspect.ismodule(value)}


@cache
def homes() -> dict[int, str]:
    """Return where the object of each public name is documented, by its id."""
    found: dict[int, str] = {}
    for module in ORDER:
        for name, value in names(module).items():
            found.setdefault(id(value), f"{module}.{name}")
    return found


def documented(module: str) -> dict[str, Any]:
    """Return what is documented on the page of a module, by its whole name."""
    found = {f"{module}.{name}": value for name, value in names(module).items()}
    return {home: value for home, value in found.items() if homes()[id(value)] == home}


def pages() -> Iterator[tuple[str, str]]:
    """Yield a page for each module, and their contents."""
    yield (
        "api/index.rst",
        _titled("Names, by subject", "=")
        + "\n".join(["", ".. toctree::", "   :maxdepth: 1", "", *(f"   {module}" for module in ORDER), ""]),
    )
    for module in ORDER:
        yield f"api/{module}.rst", _page(module)


def _titled(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"


def _page(module: str) -> str:
    here = names(module)
    subjects = {title: members.split() for title, members in SUBJECTS.get(module, {}).items()}
    subjects = subjects or {"": sorted(here, key=str.lower)}
    lines = [
        _titled(module, "="),
        inspect.getdoc(import_module(module)) or "",
        "",
        f".. py:module:: {module}",
        "",
    ]
    for subject, members in subjects.items():
        lines += [_titled(subject, "-")] if subject else []
        lines += [".. list-table::", "   :widths: 30 70", ""]
        for name in members:
            lines += [f"   * - :py:obj:`{name} <{homes()[id(here[name])]}>`", f"     - {_first(here[name])}"]
        lines.append("")
    ours = documented(module)
    for home in (f"{module}.{name}" for members in subjects.values() for name in members):
        if home in ours:
            name = home.rpartition(".")[2]
            lines += [_titled(name, "-" if len(subjects) == 1 else "~"), *_directive(home, ours[home])]
    return "\n".join(lines)


def _first(value: Any) -> str:
    text = (inspect.getdoc(value) or "").partition("\n\n")[0]
    return re.sub(r" ?\[\d+\]_", "", " ".join(text.split()))


def _directive(home: str, value: Any) -> list[str]:
    if not callable(value) or type(value).__name__ == "UnionType":
        return [f".. py:data:: {home}", "", f"   {_first(value)}", ""]
    if inspect.isclass(value):
        return [f".. autoclass:: {home}", "   :members:", "   :member-order: bysource", ""]
    return [f".. autofunction:: {home}", ""]
