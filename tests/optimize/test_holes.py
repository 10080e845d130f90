"""A model that raises at some designs: what it answers is kept, where it does not is told."""

import re
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from optimize import Space, explore


@dataclass(frozen=True)
class Chip:
    width: Any = 1
    trials: Any = 1
    policy: str = "open"

    def __post_init__(self) -> None:
        if np.any(np.equal(self.width, 7) & np.equal(self.trials, 5)):
            raise ValueError(f"trials must be less than 5 where width is 7,\n got {np.max(self.trials)}")


def answers(chip: Chip) -> dict[str, Any]:
    return {
        "latency": np.rint(60 / np.asarray(chip.width)) + chip.trials,
        "cost": chip.width * (1.0 if chip.policy == "open" else 1.5) + 0 * np.asarray(chip.trials),
    }


def solve(chip: Chip) -> dict[str, Any]:
    """Raise at 2 + 8 designs, of which the spec refuses 2, and return NaN at 3 of the others."""
    if np.any(np.equal(chip.width, 3)) and chip.policy == "closed":
        raise ZeroDivisionError("no servers")
    found = answers(chip)
    bad = np.equal(chip.width, 2) & np.greater(chip.trials, 5) & (chip.policy == "open")
    return found | {"latency": np.where(bad, np.nan, found["latency"])[()]}


def space(**options: Any) -> Space:
    return Space(Chip(), policy=["open", "closed"], width=range(1, 9), trials=range(1, 9), **options)


def good() -> Space:
    """The same space without the designs at which there is no answer."""

    def answered(point: dict[str, Any]) -> bool:
        return not (
            (point["width"], point["trials"]) == (7, 5)
            or (point["width"] == 3 and point["policy"] == "closed")
            or (point["width"] == 2 and point["trials"] > 5 and point["policy"] == "open")
        )

    return space(constraints=[answered])


GOALS: dict[str, Any] = {"minimize": ["latency", "cost"]}
HOLES = [
    ("NaN", 3, 13, "evaluate returned NaN for 'latency'"),
    ("ValueError", 2, 52, "trials must be less than 5 where width is 7, got 5"),
    ("ZeroDivisionError", 8, 80, "no servers"),
]


@pytest.fixture(scope="module", params=["none", "threads", "dask"])
def pool(request: pytest.FixtureRequest) -> Iterator[Executor | None]:
    if request.param == "none":
        yield None
    elif request.param == "threads":
        with ThreadPoolExecutor(2) as executor:
            yield executor
    else:
        distributed = pytest.importorskip("distributed")
        local = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": None}
        with distributed.LocalCluster(**local) as cluster, distributed.Client(cluster) as client:
            with client.get_executor() as executor:
                yield executor


KEEPS = ["all", "front"]


def told(found: Any) -> list[tuple[str, int, int, str]]:
    return [
        (hole.error, hole.designs, hole.first, re.sub(r"7, *got.*5: ", "", hole.line).split(": ")[-1])
        for hole in found.holes
    ]


@pytest.mark.parametrize("keep", KEEPS)
@pytest.mark.parametrize("vectorized", ["grid", True, False])
def test_all_other_designs_are_answered_as_if_the_holes_were_excluded(pool, vectorized, keep):
    mode: dict[str, Any] = {"vectorized": vectorized, "chunk": 40, **GOALS}
    found = explore(space(), solve, keep=keep, executor=pool, **mode)
    wanted = explore(good(), answers, keep="all" if keep == "all" else "front", **mode)
    assert told(found) == HOLES
    assert found.evaluations == 128 and found.unseen == 0
    assert (found.feasible_designs, found.distinct, found.duplicates) == (
        115,
        wanted.distinct,
        wanted.duplicates,
    )
    assert list(found.table) == list(wanted.table)
    for name, column in wanted.table.items():
        assert_array_equal(found.table[name], column)
    assert found.knee == wanted.knee
    first = "design 80 (policy='closed', width=3, trials=1): ZeroDivisionError: no servers"
    assert f"no answer at 8 designs, as {first}" in str(found)


def test_processes_tell_the_same_holes():
    with ProcessPoolExecutor(1) as pool:
        for keep in ("all", "front"):
            assert (
                told(explore(space(), solve, keep=keep, executor=pool, vectorized="grid", **GOALS)) == HOLES
            )


@pytest.mark.parametrize("keep", KEEPS)
def test_a_store_keeps_holes_and_what_is_finished(tmp_path, keep):
    calls: list[Chip] = []

    def lost(chip: Chip) -> dict[str, Any]:
        calls.append(chip)
        if len(calls) > 60:
            raise OSError("no space left on device")
        return solve(chip)

    store: dict[str, Any] = {"store": tmp_path / "a.sqlite", "identity": "m"}
    call: dict[str, Any] = {"keep": keep, "chunk": 8, **store, **GOALS}
    with pytest.raises(OSError, match="no space left"):
        explore(space(), lost, **call)
    again = explore(space(), solve, **call)
    assert 40 < again.restored < 64 and again.evaluations + again.restored == 128
    third = explore(space(), lost, **call)
    assert (third.evaluations, third.restored) == (0, 128)
    for found in (again, third):
        assert told(found) == HOLES and found.distinct == explore(space(), solve, **GOALS).distinct
    if keep == "all":
        with pytest.raises(ValueError, match=r"no answer at design \d+ .*: "):
            explore(space(), lost, method="greedy", coordinate=True, restarts=60, **store, **GOALS)


def test_a_model_without_any_answer_is_one_clear_error():
    def broken(chip: Chip) -> dict[str, Any]:
        calls.append(chip)
        raise TypeError("unsupported operand")

    for keep in ("all", "front"):
        calls: list[Chip] = []
        with pytest.raises(ValueError) as caught:
            explore(space(), broken, keep=keep, **GOALS)
        assert str(caught.value).startswith(
            "evaluate answers at none of 32 designs tried: design 0 "
            "(policy='open', width=1, trials=1): TypeError: unsupported operand"
        )
        assert len(calls) <= 33


def test_few_answers_are_answers():
    """The first and the last designs are among those that are tried when all before raise."""

    def rare(chip: Chip) -> dict[str, Any]:
        if chip.width not in (500, 1000):
            raise TypeError("unsupported operand")
        return {"latency": 1.0}

    found = explore(Space(Chip(), width=range(1, 1001)), rare, minimize="latency", keep="front")
    assert (found.feasible_designs, found.duplicates, found.holes[0].designs) == (2, 1, 998)


def test_a_model_that_takes_no_arrays_is_no_hole():
    def scalar(chip: Chip) -> dict[str, Any]:
        return {"latency": 1.0 if chip.width > 4 else 2.0}

    for keep in ("all", "front"):
        for vectorized in ("grid", True):
            with pytest.raises(ValueError, match=r"at none of 32 designs tried: .*truth value of an array"):
                explore(space(), scalar, minimize="latency", vectorized=vectorized, keep=keep)


def test_all_holes_after_all():
    """Nothing could be tried beforehand: what is spread over the space is excluded."""

    def scarce(point: dict[str, Any]) -> bool:
        return point["width"] == 5 and point["trials"] in (2, 3)

    def broken(chip: Chip) -> dict[str, Any]:
        raise KeyError(chip.width)

    message = "evaluate answers at none of 4 designs: design 33 (policy='open', width=5, trials=2): KeyError"
    with pytest.raises(ValueError, match=re.escape(message)):
        explore(space(constraints=[scarce]), broken, keep="front", **GOALS)


@pytest.mark.parametrize("vectorized", [True, False])
def test_what_a_model_masks_is_a_hole(vectorized):
    def masking(chip: Chip) -> dict[str, Any]:
        cost = np.ma.masked_equal(np.asarray(chip.width, dtype=float), 2.0)
        return {"latency": 1.0 / np.asarray(chip.width), "cost": cost if vectorized else cost[()]}

    found = explore(
        Space(Chip(), width=[1, 2, 3]), masking, minimize=["latency", "cost"], vectorized=vectorized
    )
    assert found.table["width"].tolist() == [1, 3]
    assert [(hole.error, hole.designs, hole.first) for hole in found.holes] == [("NaN", 1, 1)]
