"""Every design in constant memory: the front that is kept is that of the whole table, in any cut."""

import re
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from optimize import Space, decide, explore
from optimize.search import explore as exploring
from optimize.search.explore import words
from optimize.spaces.numbering import Cuts


@dataclass(frozen=True)
class Chip:
    width: Any = 16
    trials: Any = 1
    banks: Any = 1
    policy: str = "open"
    trace: Any = None


def solve(chip: Chip) -> dict[str, Any]:
    load = 1.0 * chip.trials * chip.banks / (np.asarray(chip.width) / 4)
    price = 1 if chip.policy == "open" else 1.25
    return {
        "latency": np.where(load < 3, np.rint(64 / np.asarray(chip.width) + chip.trials), np.inf),
        "cost": price * np.rint(np.asarray(chip.width) * chip.banks / 3),
        "gain": np.minimum(chip.trials * chip.banks, 7.0),
        "stable": load < 4,
        "bottleneck": np.where(chip.trials > np.asarray(chip.width) / 8, "trials", "link"),
        "bottleneck_load": load / 4,
    }


def affordable(point: dict[str, Any]) -> bool:
    return point["width"] * point["banks"] <= 120


def space(**options: Any) -> Space:
    return Space(
        Chip(),
        width=[4, 8, 16, 32],
        policy=["open", "closed"],
        trials=range(1, 6),
        banks=range(1, 8),
        **options,
    )


SPACES = {
    "free": space(),
    "constrained": space(constraints=[affordable, lambda p: p["trials"] != 3]),
    "conditional": space(conditions={"trials": {"policy": ["open"]}}, constraints=[affordable]),
    "empty": space(constraints=[lambda p: False]),
}
GOALS: list[dict[str, Any]] = [
    {"minimize": ["latency", "cost"], "maximize": "gain"},
    {"minimize": ["cost", "banks"], "subject_to": {"latency": (None, 9.0), "trials": (2, None)}, "digits": 1},
    {"minimize": "cost", "subject_to": {"gain": (9.0, None)}},
    {"minimize": "latency", "subject_to": {"stable": (None, None), "latency": (0.0, 1.0)}},
]


def assert_front_of(kept: Any, whole: Any) -> None:
    """Everything that is kept is what the whole table says."""
    assert (kept.evaluations + kept.restored, kept.feasible_designs, kept.distinct, kept.duplicates) == (
        whole.evaluations,
        whole.feasible_designs,
        whole.distinct,
        whole.duplicates,
    )
    assert kept.excluded == whole.excluded and kept.unseen == whole.unseen == 0
    rows = whole.front if whole.feasible.any() else [] if whole.closest is None else [whole.closest]
    if whole.feasible.any():
        values = whole.values
        first = {}
        for row in rows:
            first.setdefault(tuple(values[row]), []).append(row)
        rows = [group[0] for group in first.values()] if kept.table["ties"].sum() == len(rows) else rows
        if whole.distinct == len(first):  # without rounding the values themselves tie
            assert kept.table["ties"].tolist() == [len(group) for group in first.values()]
            assert kept.table["design"].tolist() == whole.table["design"][rows].tolist()
        assert kept.table["ties"].sum() == len(whole.front)
        assert kept.table["design"][kept.knee] == whole.table["design"][whole.knee]
    elif whole.closest is not None:
        assert kept.table["design"][kept.closest] == whole.table["design"][whole.closest]
    places = np.searchsorted(whole.table["design"], kept.table["design"])
    for name, column in whole.table.items() if kept.table["design"].size else ():
        assert_array_equal(kept.table[name], column[places])


CUTS: list[tuple[Any, int | None]] = [
    ("grid", None),
    ("grid", 13),
    (True, 64),
    (False, 1),
    (["banks"], 13),
    ("grid", 1),
]


@cache
def whole_of(name: str, goals: int) -> Any:
    return explore(SPACES[name], solve, **GOALS[goals])


@given(name=st.sampled_from(sorted(SPACES)), which=st.integers(0, len(GOALS) - 1), cut=st.sampled_from(CUTS))
def test_the_front_that_is_kept_is_that_of_all_designs(name, which, cut):
    vectorized, chunk = cut
    goals, whole = GOALS[which], whole_of(name, which)
    kept = explore(SPACES[name], solve, keep="front", chunk=chunk, vectorized=vectorized, **goals)
    assert not kept.complete and whole.complete
    assert_front_of(kept, whole)
    assert str(kept) == re.sub(r", \d+ distinct,", ",", str(whole))  # known where every design is kept


def test_random_objectives_with_many_ties():
    rng = np.random.default_rng(5)
    for _ in range(12):
        levels = int(rng.integers(2, 6))
        tables = rng.integers(0, levels, (3, 4, 2, 5, 7)).astype(float)
        tables[0][rng.random(tables[0].shape) < 0.1] = np.inf
        given = space()

        def model(chip, tables=tables, given=given):
            place = [given.choices[n].index(getattr(chip, n)) for n in ("width", "policy", "trials", "banks")]
            return {f"f{k}": table[tuple(place)] for k, table in enumerate(tables)}

        goals: dict[str, Any] = {"minimize": ["f0", "f1"], "maximize": ["f2"]}
        kept = explore(given, model, keep="front", chunk=int(rng.integers(1, 90)), **goals)
        assert_front_of(kept, explore(given, model, **goals))


def test_workers_make_no_difference_and_what_they_share_travels_once(monkeypatch, tmp_path):
    (tmp_path / "counted_chip.py").write_text(
        "import os, pathlib\n"
        "from dataclasses import dataclass\n"
        "class Trace:\n"
        "    def __init__(self, folder):\n        self.folder = folder\n"
        "    def __setstate__(self, state):\n"
        "        self.__dict__.update(state)\n"
        "        with open(pathlib.Path(self.folder) / str(os.getpid()), 'a') as log:\n"
        "            log.write('.')\n"
        "@dataclass(frozen=True)\n"
        "class Chip:\n    width: object = 8\n    lanes: object = 1\n    trace: object = None\n"
        "def solve(chip):\n"
        "    return {'latency': 64 / chip.width + chip.lanes, 'cost': chip.width * chip.lanes}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import counted_chip as counted

    log = tmp_path / "unpickled"
    log.mkdir()
    own: Any = Space(
        counted.Chip(trace=counted.Trace(str(log))),
        width=range(1, 31),
        lanes=range(1, 31),
        constraints=[lambda p: p["width"] != p["lanes"]],
    )
    goals: dict[str, Any] = {"minimize": ["latency", "cost"], "vectorized": "grid", "chunk": 30}
    serial = explore(own, counted.solve, keep="front", **goals)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        kept = explore(own, counted.solve, keep="front", executor=pool, **goals)
        front_only = [len(file.read_text()) for file in log.iterdir()]
        # A table of designs is admitted here; boxes are looked at by the workers: functions would travel.
        untold = Space(own.base, own.choices, constraints=[lambda p: (p | {})["width"] > 4])
        assert untold.tables["<lambda> #1"][1] is None
        whole = explore(untold, counted.solve, executor=pool, **goals)
        with pytest.raises(ValueError, match="a process pool needs .* that can be pickled: .*lambda"):
            explore(untold, counted.solve, keep="front", executor=pool, **goals)
    with ThreadPoolExecutor(3) as threads:
        other = explore(own, counted.solve, keep="front", executor=threads, **goals)
    assert front_only and set(front_only) == {1}  # thirty tasks, one spec for each process
    for one in (kept, other):
        assert str(one) == str(serial)
        for name, column in serial.table.items():
            assert_array_equal(one.table[name], column)
    assert str(whole) == str(explore(untold, counted.solve, **goals))
    sys.modules.pop("counted_chip")


class Failing:
    """Fails once it has been called so often."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self, chip: Chip) -> dict[str, Any]:
        if not self.left:
            raise OSError("lost the machine")
        self.left -= 1
        return solve(chip)


@pytest.mark.parametrize("name", ["free", "conditional"])
def test_a_front_resumes_with_what_was_finished(name, tmp_path):
    call: dict[str, Any] = {"keep": "front", "vectorized": "grid", "chunk": 7, **GOALS[0]}
    store: dict[str, Any] = {"store": tmp_path / "front.sqlite", "identity": "m"}
    reference = explore(SPACES[name], solve, **call)
    with pytest.raises(OSError, match="lost the machine"):
        explore(SPACES[name], Failing(9), **store, **call)
    again = Failing(1000)
    resumed = explore(SPACES[name], again, **store, **call)
    assert resumed.restored > 0 and resumed.evaluations + resumed.restored == reference.evaluations
    assert 1000 - again.left < len(Cuts(SPACES[name].shape, 7))
    assert_front_of(resumed, explore(SPACES[name], solve, **GOALS[0]))
    for column in reference.table:
        assert_array_equal(resumed.table[column], reference.table[column])
    assert explore(SPACES[name], Failing(0), **store, **call).evaluations == 0
    others: list[dict[str, Any]] = [{"chunk": 8}, {"digits": 3}, {"subject_to": {"cost": (0, 50)}}]
    for other in others:
        assert explore(SPACES[name], solve, **store, **call | other).restored == 0
    assert explore(SPACES["constrained"], solve, **store, **call).restored == 0
    assert explore(SPACES[name], solve, **store | {"identity": "n"}, **call).restored == 0


def test_a_front_is_decided_on_as_one():
    kept = explore(space(), solve, keep="front", **GOALS[0])
    whole = explore(space(), solve, **GOALS[0])
    found, other = (
        decide(one, lambda specs: [solve(spec) for spec in specs], stated={"latency": 0.1}, points=6)
        for one in (kept, whole)
    )
    assert found.table["design"][found.chosen] == other.table["design"][other.chosen]
    assert f"{kept.distinct} designs by the model of its front alone" in str(found)


def test_what_makes_no_sense_is_refused(tmp_path):
    goals = GOALS[0]
    with pytest.raises(ValueError, match="keep must be one of all, front, got 'fronts'"):
        explore(space(), solve, keep="fronts", **goals)
    for more in ({"designs": [1]}, {"method": "greedy"}):
        with pytest.raises(ValueError, match="keep must be 'all' for other methods than exhaustive"):
            explore(space(), solve, keep="front", **goals, **more)
    with pytest.raises(ValueError, match="identity must be a text that names the model of a store"):
        explore(space(), solve, keep="front", store=tmp_path / "a.sqlite", **goals)
    assert not list(tmp_path.iterdir())
    nan = lambda chip: solve(chip) | {"cost": np.nan}  # noqa: E731
    with pytest.raises(
        ValueError, match="at none of 32 designs tried: design 0 .*: evaluate returned NaN for 'cost'"
    ):
        explore(space(), nan, keep="front", **goals)
    with pytest.raises(ValueError, match="no metric 'costs'; did you mean 'cost'"):
        explore(space(), solve, keep="front", minimize="costs")
    uneven = lambda chip: solve(chip) | ({"more": 1} if chip.width == 8 else {})  # noqa: E731
    with pytest.raises(ValueError, match="metric 'more' of design 70 .* is missing at design 0 "):
        explore(space(), uneven, keep="front", chunk=1, minimize=["latency", "width"])
    with pytest.raises(ValueError, match="metric or field 'ties' has the name of a column"):
        explore(space(), lambda chip: {"cost": 1, "ties": 2}, keep="front", minimize="cost")
    huge: dict[str, Any] = dict.fromkeys(("width", "trials", "banks"), range(1, 10**4))
    with pytest.raises(ValueError, match="chunk of 1 for 999700029999 designs must ask for at most .* bytes"):
        explore(Space(Chip(), huge), solve, keep="front", chunk=1, minimize="cost")


def test_boxes_make_up_a_grid():
    for shape in [(1,), (7,), (2, 3), (3, 4, 5), (6, 6, 5, 3)]:
        for chunk in (1, 2, 5, 11, 60, 1000):
            seen = np.zeros(shape, dtype=int)
            cuts = Cuts(shape, chunk)
            for k in range(len(cuts)):
                box = seen[tuple(slice(*ends) for ends in cuts[k])]
                assert 0 < box.size <= chunk
                box += 1
            assert (seen == 1).all()


def test_memory_does_not_grow_with_the_space():
    """Designs of which no array as long as the space could be held: ten thousand times a chunk."""
    import tracemalloc

    def model(chip: Chip) -> dict[str, Any]:
        return {
            "a": chip.width + 0.0 * chip.trials + 0.0 * chip.banks,
            "b": -chip.trials - chip.banks + 0 * chip.width,
        }

    peaks = []
    for length in (20, 100):
        large = Space(Chip(), width=range(length), trials=range(100), banks=range(1, 101))
        tracemalloc.start()
        found = explore(large, model, minimize=["a", "b"], keep="front", vectorized="grid", chunk=10_000)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert found.evaluations == large.size and found.distinct == 1
    assert peaks[1] < 1.2 * peaks[0] < 8 * 1_000_000


@pytest.mark.parametrize("keep", ["all", "front"])
@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_is_told_how_long_it_takes_once_it_begins(monkeypatch, capsys, keep, terminal):
    """The clock is the model's own: two seconds each; what is quick says nothing."""
    now = [0.0]
    monkeypatch.setattr(exploring, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    own = Space(Chip(), width=[4, 8], trials=[1, 2, 3, 4])

    def slow(chip: Chip) -> dict[str, Any]:
        now[0] += seconds
        return solve(chip)

    for each, told in ((2.0, "8 designs: at most about 16 s\n" if terminal else ""), (1.0, "")):
        seconds = each
        explore(own, slow, keep=keep, chunk=1, **GOALS[0])
        assert capsys.readouterr().err == told
    explore(own, slow, keep=keep, chunk=1, progress=lambda done, total: None, **GOALS[0])
    assert capsys.readouterr().err == ""


def test_progress_says_how_long_it_takes(capsys):
    seen: list[tuple[int, int]] = []
    explore(space(), solve, keep="front", chunk=40, progress=lambda *one: seen.append(one), **GOALS[0])
    assert seen[0] == (0, 280) and seen[-1] == (280, 280) and seen == sorted(seen)
    explore(space(), solve, keep="front", progress=True, **GOALS[0])
    assert capsys.readouterr().err.endswith("100.0 % of 280 designs\n")
    assert words(10, 1010, 10, 4.0) == "1.0 % of 1,010 designs, 6 min 40 s left"
    assert "at most about" not in capsys.readouterr().err
    assert words(10, 1010, 10, 0.1) == "1.0 % of 1,010 designs, 10 s left"
