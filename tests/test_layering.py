"""Who may import whom: the table of the design, read from the source."""

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
        named = ("cost", "fields", "pictures", "result", "store", "whole")
        return ("optimize", *(f"qmodels.systems.spec.{name}" for name in named))
    if module.startswith("validate"):
        extra = ("qmodels.solve",) if module.startswith("validate.comparison") else ()
        return ("validate", "qmodels.systems", "qmodels.checks", *extra)
    if module == "qmodels.interactive":  # opens what is on the floor above
        return ("qmodels", "cases.what_if.server", "cases.cli.sizing")
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


def test_imports_follow_the_table():
    found = {}
    for path in SOURCES:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        found[module] = violations(module, path.read_text(encoding="utf-8"))
    assert {module: wrong for module, wrong in found.items() if wrong} == {}


def test_only_one_module_knows_the_modeller():
    users = [path.name for path in SOURCES if "import pulp" in path.read_text(encoding="utf-8")]
    assert users == ["linear.py"]


@pytest.mark.parametrize(
    ("module", "source", "found"),
    [
        ("validate.engine.calendar", "from qmodels import solve", ["qmodels.solve"]),
        ("validate.comparison.model", "def f():\n    from qmodels import solve", []),
        ("validate.engine.calendar", "from qmodels.systems.noc.spec import Noc", []),
        (
            "qmodels.systems.noc.spec",
            "from qmodels.queues.general.mg1 import mg1",
            ["qmodels.queues.general.mg1.mg1"],
        ),
        ("qmodels.solve", "import cases", ["cases"]),
        ("optimize.spaces.space", "from qmodels import checks", ["qmodels.checks"]),
        ("cases.cli.main", "from .study import load", [".study.load"]),
    ],
)
def test_the_check_itself(module, source, found):
    assert violations(module, source) == found


QUANTITIES = frozenset(
    "blocking busy conflict conflicts congestion delay energy hit hits idle latency loss miss overflow power "
    "queueing response saturation slowdown sojourn speedup throughput utilization wait waiting waits".split()
)
"""Words in the names of what a system does under load: computed by models and counted by simulators."""


def formulas(source: str) -> list[str]:
    """Return the functions, variables, arguments and entries named so that are products or quotients."""

    def arithmetic(node: ast.AST) -> bool:
        operations = (inner.op for inner in ast.walk(node) if isinstance(inner, ast.BinOp))
        return any(isinstance(one, ast.Mult | ast.Div | ast.Pow) for one in operations)

    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        named: list[tuple[str, ast.AST]] = []
        if isinstance(node, ast.FunctionDef):
            named = [(node.name, node)]
        elif isinstance(node, ast.Assign):
            named = [(one.id, node.value) for one in node.targets if isinstance(one, ast.Name)]
        elif isinstance(node, ast.keyword) and node.arg:
            named = [(node.arg, node.value)]
        elif isinstance(node, ast.Dict):
            entries = zip(node.keys, node.values, strict=True)
            named = [(str(k.value), value) for k, value in entries if isinstance(k, ast.Constant)]
        found += [name for name, value in named if QUANTITIES & set(name.split("_")) and arithmetic(value)]
    return found


def test_systems_hold_no_formula():
    """Structure that model and simulator both read must not contain what either computes."""
    sources = sorted((ROOT / "qmodels/systems").rglob("*.py"))
    found = {path.name: formulas(path.read_text(encoding="utf-8")) for path in sources}
    assert {name: names for name, names in found.items() if names} == {}


@pytest.mark.parametrize("room", ["queues", "memory", "noc", "packet_processor", "llc"])
def test_the_rooms_of_formulas_have_many(room):
    found = [formulas(path.read_text(encoding="utf-8")) for path in (ROOT / "qmodels" / room).rglob("*.py")]
    assert sum(map(len, found)) >= 20


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def energy_per_packet(a, b):\n    return a * b", ["energy_per_packet"]),
        ("mean_waiting_time = load / (1 - load)", ["mean_waiting_time"]),
        ("answer(write_latency=2 * cycles)", ["write_latency"]),
        ("metrics = {'blocking_probability': a / b}", ["blocking_probability"]),
        ("latency = cycles + other", []),
        ("rate = packets / seconds", []),
    ],
)
def test_the_search_for_formulas_itself(source, found):
    assert formulas(source) == found
