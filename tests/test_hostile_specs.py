"""Every spec class with every field turned bad, through every door: Python, TOML text, ``--set``, saved JSON.

Classes are found in `qmodels.systems`, an example of each in the kinds, bundled systems and docstrings.
"""

import builtins
import contextlib
import dataclasses
import doctest
import importlib
import inspect
import io
import json
import pkgutil
import random
import re
import signal
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qmodels as qm
from cases.cli.inputs import named_value
from cases.systems import system_files
from optimize import field_paths
from qmodels import systems
from qmodels.memory import RandomBlocks
from qmodels.parts import BankedChannels
from qmodels.systems.memory.dram_system import AddressTrace
from qmodels.systems.noc.patterns import Permutation, RateMatrix
from qmodels.systems.spec.describe import allowed
from qmodels.systems.spec.fields import field_names, is_spec, parts, replace_paths
from qmodels.systems.spec.kind import KINDS, kind_named
from qmodels.systems.spec.named import Named
from qmodels.systems.spec.text.toml import from_toml, spec_from_toml, to_toml
from qmodels.systems.stations.parts import Cyclic, ShortestQueue
from qmodels.systems.traffic.popularity import GeometricPopularity
from qmodels.traffic import MeasuredPopularity

sys.path.append(str(Path(__file__).parent))
from hostile import BAD, problem  # noqa: E402

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no alarm on this system")

OF_NO_USER = (
    "systems.spec", "readers", "trace_facts", "trace_statistics", "description", "steadiness", "Packets",
    "QueuedPackets", "FlowTable", "PathTable", "Networks", "Wiring", "Step", "TaskGraph", "Routes", "_Core",
    "SourceRoute", "DramPreset", "Offered", "Served", "program_form", "composed.lower",
)  # fmt: skip
"""What models and readers make for themselves, and a user does not."""

WORDS = (
    "nan", "inf", "-1", "0", "0.5", "1e308", "1e999", "9e999999", "1" * 400, "9223372036854775807", "x",
    "''", "true", "[]", "[1, 2]", "[[1], [2, 3]]", "{}", "{kind = 'x'}", "1979-05-27", "0x1", "mesh 0 0",
    "'''\n'''",
)  # fmt: skip
"""What is written after ``--set field=``."""

SEED = 20
SAMPLE = 400
"""Calls in CI of each door that is too slow for all; all are made on demand."""


def classes() -> list[type[Any]]:
    """Return the dataclasses of the structure that users make."""
    found = []
    for module in pkgutil.walk_packages(systems.__path__, "qmodels.systems."):
        for one in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(one) and dataclasses.is_dataclass(one) and one.__module__ == module.name:
                name = f"{module.name}.{one.__name__}"
                if not one.__name__.startswith("_") and not any(word in name for word in OF_NO_USER):
                    found.append(one)
    return found


@cache
def exemplars() -> dict[type[Any], Any]:
    """Return a spec of each class."""
    found: dict[type[Any], Any] = {}

    def take(value: Any) -> None:
        if is_spec(value):
            found.setdefault(type(value), value)
        if is_spec(value) or isinstance(value, tuple | list | Named):
            for part in parts(tuple(value) if isinstance(value, list) else value).values():
                take(part)

    for kind in KINDS:
        take(kind_named(kind).starter())
    for file in system_files().values():
        take(spec_from_toml(file))
    for one in classes():
        with contextlib.suppress(Exception):
            take(one())
        names = dict(vars(sys.modules[one.__module__]))
        with contextlib.redirect_stdout(io.StringIO()):
            for part in doctest.DocTestParser().get_examples(inspect.getdoc(one) or ""):
                with contextlib.suppress(Exception):
                    exec(compile(part.source, "example", "single"), names)
                    take(getattr(builtins, "_", None))
        for name, value in names.items():
            if not name.startswith("_"):
                take(value)
    steps = (qm.steps.Visit("a"),)
    law = qm.laws.Exponential(mean=1.0)
    for one in (
        qm.steps.Send("a"), qm.steps.Fork((steps, steps)), qm.steps.Each(steps), qm.steps.Repeat(steps, 2),
        qm.laws.LogNormal(mean=1.0, scv=2.0), qm.laws.Gamma(mean=1.0, scv=2.0), qm.laws.Geometric(mean=2.0),
        qm.laws.Weibull(mean=1.0, shape=2.0), qm.laws.Pareto(mean=1.0, shape=2.5),
        qm.laws.Replay(values=(1.0,)), qm.laws.Empirical(values=(1.0, 2.0)),
        BankedChannels(service=law),
        qm.laws.Uniform(low=0.0, high=1.0), qm.laws.PhaseType(initial=(1.0,), generator=((-1.0,),)),
        AddressTrace(blocks=(1, 2)), Permutation(targets=(1, 0)), RateMatrix(rates=((0.0, 0.1), (0.1, 0.0))),
        GeometricPopularity(entries=50, ratio=0.9), MeasuredPopularity(counts=(3, 1)),
        qm.noc.transactions(initiators=(0,), channels=(1,)), Cyclic(to=("a",)), ShortestQueue(to=("a",)),
    ):  # fmt: skip
        take(one)
    return found


RULES = Path(__file__).parent / "reference" / "field_rules.txt"
"""The class, the rule and the fields that it is of, a line each; but rules that hang on other fields."""

OF_OTHERS = ("InterleavedRegion.offset", "Interleaved.region", "ProcessorNoc.initiators", "System.replies")


def rules() -> dict[tuple[str, str, str], list[str]]:
    """Return the fields of each class whose check states a rule, by that rule."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for kind in sorted(exemplars(), key=lambda kind: (kind.__module__, kind.__name__)):
        for name in field_names(kind):
            rule = allowed(kind, exemplars()[kind], name)
            if kind in classes() and rule and f"{kind.__name__}.{name}" not in OF_OTHERS:
                found.setdefault((kind.__module__.rpartition(".")[2], kind.__name__, rule), []).append(name)
    return found


def around(rule: str) -> tuple[list[Any], list[Any]]:
    """Return values that just keep a rule, and that just break it."""
    if rule.startswith("one of "):
        return rule.removeprefix("one of ").split(", "), ["nothing", "", 3]
    whole, none = rule.startswith("a whole number"), [float("nan"), "x", -5.0]
    bounds = [float(number) for number in re.findall(r"-?\d+", rule)]
    step = 1.0 if whole else 1e-6
    low, outside = bounds[0], [bounds[0] - step]
    if "> " in rule or "above" in rule:
        low, outside = low + step, [low]
    high = bounds[-1] if len(bounds) > 1 else low + step
    outside += [high + step] if len(bounds) > 1 else []
    high -= step if "below" in rule else 0.0
    return [low, high], [*outside, *none, *([low + 0.5] if whole else [])]


def table() -> list[str]:
    """Return the lines of the table; ``python tests/test_hostile_specs.py`` writes them."""
    return [f"{module}.{kind}, {rule}: {' '.join(names)}" for (module, kind, rule), names in rules().items()]


def test_the_rules_of_fields_are_those_of_the_table():
    assert table() == RULES.read_text().splitlines()


def test_a_rule_ends_where_it_says():
    known = {(kind.__module__.rpartition(".")[2], kind.__name__): spec for kind, spec in exemplars().items()}
    for (module, kind, rule), names in rules().items():
        kept, broken = around(rule)
        for name, value in ((name, value) for name in names for value in broken):
            with pytest.raises((ValueError, TypeError), match=rf"{name}\b.* must be .*got"):
                dataclasses.replace(known[module, kind], **{name: value})
        for name, value in ((name, value) for name in names for value in kept):
            try:
                dataclasses.replace(known[module, kind], **{name: value})
            except ValueError as error:
                assert f"{name} must be {rule}, got" not in str(error), (kind, name, value)


def wrong(spec: Any, name: str, value: Any) -> str | None:
    """Return what is wrong with how a class answers a value of a field; None for a good answer."""
    said = problem(lambda: dataclasses.replace(spec, **{name: value}), (), {})
    return said and f"{type(spec).__name__}({name}={value!r}): {said}"


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
def test_a_bad_field_of_a_spec_is_answered_in_a_line(kind):
    if kind not in exemplars():
        pytest.skip("no example of it")
    spec = exemplars()[kind]
    assert [said for name in field_names(kind) for bad in BAD if (said := wrong(spec, name, bad))] == []


def test_most_classes_have_an_example():
    missing = [kind.__name__ for kind in classes() if kind not in exemplars()]
    assert len(missing) <= 8, missing


def solved(spec: Any, path: str, value: Any) -> str | None:
    """Return what is wrong with how a kind answers a value of a field, solved where it is taken."""

    def call() -> None:
        answer = qm.solve(replace_paths(spec, {path: value}))
        for metric, number in answer.to_dict().items():
            if isinstance(number, str) or number is None:
                continue
            assert not np.any(np.asarray(number, dtype=float) < 0), f"{metric} is {number}"

    said = problem(call, (), {})
    return said and f"{path}={value!r}: {said}"


def cases() -> list[tuple[str, str, Any]]:
    """Return every kind, leaf field and value."""
    return [
        (kind, path, value)
        for kind in KINDS
        for path in field_paths(kind_named(kind).starter())
        for value in (*BAD, 10**6, 2**53 - 1, [0.5, 2.0], np.float64(3))
    ]


def answers(sample: list[tuple[str, str, Any]]) -> list[str]:
    specs = {kind: kind_named(kind).starter() for kind in KINDS}
    return [f"{kind} {said}" for kind, path, value in sample if (said := solved(specs[kind], path, value))]


FOUND = (
    ("queueing-network", "routing.0.1", []), ("message-program", "costs.send_cycles", 1e100),
)  # fmt: skip
"""What longer runs found once."""


@pytest.mark.parametrize("kind, path, value", FOUND)
def test_what_was_answered_badly_is_refused(kind, path, value):
    spec = kind_named(kind).starter()
    assert solved(spec, path, value) is None
    with pytest.raises(ValueError, match="must"):
        replace_paths(spec, {path: value})


def test_what_a_spec_takes_is_solved_or_refused_in_a_line():
    assert answers(random.Random(SEED).sample(cases(), SAMPLE)) == []


@pytest.mark.slow
def test_all_that_a_spec_takes_is_solved_or_refused_in_a_line():
    assert answers(cases()) == []


def set_by_hand(text: str, path: str, word: str) -> str | None:
    """Return what is wrong with how ``--set`` answers."""
    said = problem(lambda: spec_from_toml(text, dict([named_value(f"{path}={word}")])), (), {})
    return said and f"--set {path}={word}: {said}"


def written(rng: random.Random, text: str) -> str | None:
    """Return what is wrong with how a TOML text with one value replaced is answered."""
    lines = text.splitlines()
    row = rng.choice([k for k, line in enumerate(lines) if " = " in line])
    word = rng.choice(WORDS)
    lines[row] = f"{lines[row].partition(' = ')[0]} = {word}"
    said = problem(lambda: spec_from_toml("\n".join(lines)), (), {})
    return said and f"{lines[row]}: {said}"


def doors(count: int, seed: int) -> list[str]:
    """Return what is wrong with how files and ``--set`` answer so many changes."""
    rng, found = random.Random(seed), []
    texts = {kind: to_toml(kind_named(kind).starter(), kind=True) for kind in KINDS}
    for _ in range(count):
        kind = rng.choice(KINDS)
        path = rng.choice([*field_paths(kind_named(kind).starter()), "nothing", "a.b", ""])
        found += [set_by_hand(texts[kind], path, rng.choice(WORDS)), written(rng, texts[kind])]
    return [said for said in found if said]


def test_files_and_settings_are_answered_in_a_line():
    assert doors(SAMPLE // 2, SEED) == []


@pytest.mark.slow
def test_many_files_and_settings_are_answered_in_a_line():
    assert doors(20_000, SEED + 1) == []


def test_saved_answers_that_were_changed_are_refused_in_a_line(tmp_path):
    rng, path = random.Random(SEED), tmp_path / "answer.json"
    answer = qm.solve(kind_named("dram").starter())
    document = json.loads(answer.save(path).read_text())
    for _ in range(100):
        changed = dict(document)
        key = rng.choice(list(changed))
        if rng.random() < 0.3:
            del changed[key]
        else:
            changed[key] = rng.choice([None, 1, "x", [], {}, {"a": None}, [1, [2]], True, -1])
        path.write_text(json.dumps(changed))
        assert problem(lambda: type(answer).load(path), (), {}) is None, (key, changed.get(key))


def test_a_value_is_kept_in_the_form_that_its_annotation_says():
    assert type(qm.noc.Router(buffer_flits=np.float64(3.0)).buffer_flits) is int
    assert from_toml("arrival_rate = [0.1, 0.2]", RandomBlocks).arrival_rate.shape == (2,)
    swept = dataclasses.replace(qm.PacketProcessor().dram, clock_ghz=[1.0, 2.0])
    assert qm.solve(dataclasses.replace(qm.PacketProcessor(), dram=swept))["packet_latency"].shape == (2,)
    with pytest.raises(ValueError, match=r"^dram.clock_ghz must hold a number, got \[\]$"):
        dataclasses.replace(qm.PacketProcessor().dram, clock_ghz=[])


if __name__ == "__main__":
    RULES.write_text("\n".join(table()) + "\n")
