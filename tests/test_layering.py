"""Who may import whom: the table of the design, read from the source."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = ("qmodels", "optimize", "validate", "cases")
BESIDE = ("qmodels.optimize", "qmodels.validate", "qmodels.cases")
"""Names under which the other packages are found too; imported when they are asked for."""
SOURCES = sorted(path for package in OURS for path in (ROOT / package).rglob("*.py"))


def allowed(module: str) -> tuple[str, ...]:
    """Return the modules of ours, as prefixes, that a module may import."""
    if module.startswith("cases") or module in BESIDE:
        return OURS
    if module.startswith("optimize"):
        return (
            "optimize",
            *(f"qmodels.systems.spec.{name}" for name in ("cost", "fields", "hashing", "store", "whole")),
        )
    if module.startswith("validate"):
        extra = ("qmodels.solve",) if module.startswith("validate.comparison") else ()
        return ("validate", "qmodels.systems", "qmodels.checks", *extra)
    if module == "qmodels.interactive":  # opens what is on the floor above
        return ("qmodels", "cases.what_if.widget")
    if module.startswith("qmodels.systems"):
        return ("qmodels.systems", "qmodels.checks", "qmodels.guarded")
    return ("qmodels",)


def imported(source: str) -> set[str]:
    """Return every name that the source imports, wherever it does: ``from a import b`` gives a.b."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {"." * node.level + f"{node.module or ''}.{alias.name}" for alias in node.names}
    return names


def violations(module: str, source: str) -> list[str]:
    """Return the imports of ours that the table does not allow, and all relative ones."""

    def within(name: str, prefix: str) -> bool:
        return name == prefix or name.startswith(prefix + ".")

    return sorted(
        name
        for name in imported(source)
        if name.startswith(".")
        or (
            any(within(name, package) for package in OURS)
            and not any(within(name, p) for p in allowed(module))
        )
    )


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_follow_the_table(path):
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    assert violations(module, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("module", "source", "found"),
    [
        ("validate.engine.events", "import qmodels", ["qmodels"]),
        ("validate.engine.events", "from qmodels import solve", ["qmodels.solve"]),
        ("validate.comparison.model", "def f():\n    from qmodels import solve", []),
        ("validate.comparison.runs", "import optimize.spaces.space", ["optimize.spaces.space"]),
        ("validate.engine.events", "from qmodels.systems.noc.spec import Noc", []),
        ("validate.campaigns.simulate", "from qmodels.systems.spec.store import ResultStore", []),
        (
            "validate.campaigns.simulate",
            "from optimize.spaces.store import Store",
            ["optimize.spaces.store.Store"],
        ),
        (
            "qmodels.systems.noc.spec",
            "from qmodels.queues.general.mg1 import mg1",
            ["qmodels.queues.general.mg1.mg1"],
        ),
        ("qmodels.systems.noc.spec", "from qmodels import checks", []),
        ("qmodels.solve", "import cases", ["cases"]),
        ("optimize.spaces.space", "from qmodels import checks", ["qmodels.checks"]),
        ("optimize.spaces.space", "from qmodels.systems.spec.fields import find_field", []),
        (
            "optimize.spaces.space",
            "from qmodels.systems.spec.kind import KINDS",
            ["qmodels.systems.spec.kind.KINDS"],
        ),
        ("cases.cli.main", "from .study import load", [".study.load"]),
        ("cases.cli.main", "import optimizers, validate", []),
    ],
)
def test_the_check_itself(module, source, found):
    assert violations(module, source) == found
