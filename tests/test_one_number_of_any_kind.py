"""A design of any registered kind has one number: alone, in any exploration, after a resume, elsewhere.

Fields are found by introspection and drawn with a seed, so that a new kind or field is looked at as well.
"""

import itertools
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import qmodels as qm
from optimize import Space, explore, field_paths, get_field, replace_fields
from qmodels import PacketProcessor, Workload, dram
from qmodels.memory import StridedBlocks
from qmodels.systems.memory.dram_system import Packets
from qmodels.systems.spec.fields import takes_array
from qmodels.systems.spec.kind import KINDS, kind_named
from qmodels.systems.spec.text.toml import to_toml
from qmodels.traffic import OnOff

EQUAL = 1e-9
SPACES = 1
"""Spaces drawn of each base."""
FIELDS, DESIGNS = 2, 3
"""Fields varied in a space, and designs of it that are looked at alone."""

BASES: dict[str, Any] = {name: kind_named(name).starter for name in KINDS} | {
    "packet-processor, controllers": lambda: PacketProcessor(dram=dram("DDR4-3200")),
    "packet-processor, bursts": lambda: PacketProcessor(
        workload=Workload(arrivals=OnOff(on_packets=10, peak_to_mean=3), hold_ns=300.0, load_factor=0.4)
    ),
    "noc, torus": lambda: qm.Noc(topology=qm.torus(4, 4)),
    "noc, spidergon": lambda: qm.Noc(topology=qm.spidergon(16), link_width=8),
    "dram, in order": lambda: dram(
        "DDR4-3200", scheduler="in-order", traffic=Packets(blocks=7, write_fraction=0.3, arrival_rate=0.01)
    ),
    "dram, strides": lambda: dram(
        "DDR4-3200",
        scheduler="oldest-ready-first",
        traffic=StridedBlocks(stride=5, write_fraction=0.3, arrival_rate=0.01),
    ),
}


def numbers(result: Any) -> dict[str, Any]:
    said = {name: getattr(result, name) for name in ("stable", "bottleneck", "validated")}
    parts = {f"part {name}": value for name, value in result.latency_parts.items()}
    return {name: float(value) for name, value in (dict(result.metrics) | parts).items()} | said


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    for name in one.keys() & other.keys():
        if isinstance(one[name], float):
            assert_allclose(other[name], one[name], rtol=EQUAL, atol=1e-300, err_msg=name)
        else:
            assert other[name] == one[name], name


def near(value: Any) -> list[Any]:
    """Return other values of a field: half, double, a little more."""
    if isinstance(value, int):
        return [v for v in (value // 2, 2 * value, value + 1) if v >= 1]
    return [value * factor for factor in (0.5, 0.8, 1.3, 2.0)]


def solves(spec: Any, changes: dict[str, Any]) -> bool:
    try:
        qm.solve(replace_fields(spec, changes))
    except (ValueError, TypeError):
        return False
    return True


def drawn_space(spec: Any, rng: np.random.Generator, *, swept: bool) -> Space | None:
    """Return a space of a few numeric fields, or of those that may be arrays; every design is allowed."""
    names = [
        name
        for name, value in field_paths(spec).items()
        if isinstance(value, int | float) and not isinstance(value, bool) and value and np.isfinite(value)
        if not swept or takes_array(spec, name)
    ]
    choices: dict[str, list[Any]] = {}
    for name in rng.permutation(names).tolist():
        value = get_field(spec, name)
        if swept and not solves(spec, {name: np.array([value, value])}):
            continue
        other = next((v for v in rng.permutation(near(value)).tolist() if solves(spec, {name: v})), None)
        if other is None:
            continue
        tried = choices | {name: [value, type(value)(other)]}
        if all(
            solves(spec, dict(zip(tried, one, strict=True))) for one in itertools.product(*tried.values())
        ):
            choices = tried
        if len(choices) == FIELDS:
            break
    return Space(spec, **choices) if choices else None


@cache
def spaces(base: str, *, swept: bool = False) -> list[Space]:
    rng = np.random.default_rng(sorted(BASES).index(base))
    found = [drawn_space(BASES[base](), rng, swept=swept) for _ in range(SPACES)]
    return [space for space in found if space is not None]


@pytest.mark.parametrize("base", BASES)
def test_alone_in_any_exploration_and_after_a_resume(base, tmp_path):
    for number, space in enumerate(spaces(base)):
        assert space.size >= 2
        goal = type(space.base).metric_names.both[0]
        designs = np.arange(space.size)
        store = {"store": tmp_path / f"{number}.sqlite", "identity": "test"}
        explore(space, qm.solve, minimize=goal, designs=designs[::2], chunk=1, **store)
        tables = [
            explore(space, qm.solve, minimize=goal).table,
            explore(space, qm.solve, minimize=goal, chunk=3, **store).table,
            explore(space, qm.solve, minimize=goal, designs=designs[::-1], chunk=2).table,
        ]
        for design in designs[-DESIGNS:].tolist():
            alone = numbers(qm.solve(space.spec(design)))
            for table in tables:
                row = int(np.flatnonzero(table["design"] == design)[0])
                found = {name: column[row].item() for name, column in table.items()}
                assert goal in found
                assert_same(alone, found)


@pytest.mark.parametrize("base", BASES)
def test_alone_and_in_a_sweep_of_the_fields_that_may_be_arrays(base):
    """Designs of a space in one call, in both orders."""
    drawn = spaces(base, swept=True)
    if not drawn:
        pytest.skip("no field of this kind may be an array")
    for space in drawn:
        rows = [space.spec(k) for k in range(space.size)]
        values = [{name: get_field(one, name) for name in space.choices} for one in rows]
        alone = [numbers(qm.solve(replace_fields(space.base, fixed))) for fixed in values]
        for order in (slice(None), slice(None, None, -1)):
            arrays = {name: np.array([fixed[name] for fixed in values[order]]) for name in space.choices}
            many = qm.solve(replace_fields(space.base, arrays))
            for k, expected in enumerate(alone[order]):
                place = {
                    name: np.broadcast_to(value, len(rows))[k].item()
                    for name, value in (dict(many.metrics) | {"stable": many.stable}).items()
                }
                assert_same(expected, place)


def test_in_another_process(tmp_path):
    """Written to files, read and solved by another interpreter, with another seed of its hashes."""
    expected, paths = [], []
    for base in BASES:
        spec = spaces(base)[0].spec(1)
        path = tmp_path / f"{len(paths)}.toml"
        path.write_text(to_toml(spec, kind=True), encoding="utf-8")
        paths.append(path)
        expected.append(numbers(qm.solve(spec)))
    code = (
        "import sys, json, qmodels as qm\n"
        "from pathlib import Path\n"
        "from qmodels.systems.spec.text.toml import spec_from_toml\n"
        "for name in sys.argv[1:]:\n"
        "    answer = qm.solve(spec_from_toml(Path(name).read_text()))\n"
        "    print(json.dumps({n: float(v).hex() for n, v in answer.metrics.items()}))\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(qm.__file__).parents[1])}
    lines = subprocess.run(
        [sys.executable, "-c", code, *map(str, paths)],
        env=environment, check=True, capture_output=True, text=True,
    ).stdout.splitlines()  # fmt: skip
    for alone, line in zip(expected, lines, strict=True):
        assert_same(alone, {name: float.fromhex(value) for name, value in json.loads(line).items()})
