"""A simulation that cannot tell whether a system keeps up says so in every view, and is not feasible."""

import csv
import json
from dataclasses import dataclass

import pytest

from optimize import Space, explore
from qmodels import load, single_station, solve
from qmodels.laws import Exponential
from validate import compare, simulate


@dataclass(frozen=True)
class Load:
    load: float = 0.5


def queue(load):
    return single_station(arrivals=Exponential(mean=1 / load), service=Exponential(mean=1.0))


@pytest.fixture(scope="module")
def campaign():
    return simulate(
        [queue(0.5), queue(1.0), queue(1.5)], passages=4000, replications=4, progress=lambda *_: None
    )


def test_three_answers(campaign):
    assert [one.stable for one in campaign] == [True, None, False]
    assert not campaign[1].validated
    assert "undecided whether it is stable: simulate longer" in str(campaign[1])
    assert campaign[1].mean_response_time.best < float("inf") == campaign[2].mean_response_time.best
    assert "undecided" in repr(campaign).splitlines()[2]


def test_files_and_tables(campaign, tmp_path):
    path = campaign[1].save(tmp_path / "one.json")
    assert json.loads(path.read_text())["stable"] == "undecided"
    assert load(path).stable is None and not load(path).validated
    assert campaign[1].to_dict()["stable"] == "undecided"
    campaign.to_csv(tmp_path / "all.csv")
    with open(tmp_path / "all.csv", newline="") as file:
        assert {row["stable"] for row in csv.DictReader(file)} == {"True", "undecided", "False"}


def test_comparisons(campaign):
    sweep = compare(campaign, model=solve)
    assert sweep.undecided == (1,) and "1 of them stable, 1 undecided" in str(sweep)
    assert set(sweep.to_dict()["stable"]) == {True, "undecided", False}


def test_nothing_undecided_is_feasible(campaign):
    results = dict(zip((0.5, 1.0, 1.5), campaign, strict=True))
    found = explore(
        Space(Load(), load=list(results)), lambda spec: results[spec.load], minimize="mean_response_time"
    )
    assert found.feasible.tolist() == [True, False, False]
