"""The kept table of coverage: every system named, none that misses without saying so."""

from __future__ import annotations

import pytest

from cases.coverage.hardware import EXCLUDED, VARIED
from cases.coverage.study import BAR, FILE, Trial, observe, summary, trials, verdict
from cases.tables import read_rows
from qmodels.systems.laws.times import Exponential
from qmodels.systems.spec.kind import KINDS
from qmodels.systems.stations.queueing_network import single_station

ROWS = read_rows(FILE)
FIRST = {row["system"]: row for row in reversed(ROWS)}


def test_it_has_every_system_of_the_study_and_every_kind():
    assert {trial.name for trial in trials()} == set(FIRST) and len(FIRST) >= 80
    assert {*VARIED, *EXCLUDED, "queueing-network"} == set(KINDS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['system']}: {row['metric']}")
def test_intervals_cover_or_say_that_they_do_not(row):
    assert verdict(row) != "misses"
    assert row["said"] + row["trusted"] == row["seeds"]
    assert row["covered"] + row["below"] + row["above"] == row["trusted"]


def test_all_systems_together_are_within_the_bar():
    trusted = sum(row["trusted"] for row in FIRST.values())
    assert BAR[0] <= sum(row["covered"] for row in FIRST.values()) / trusted <= BAR[1]
    # Where a result says that it has no upper end, its lower end holds.
    said = sum(row["said"] for row in FIRST.values())
    assert sum(row["said_covered"] for row in FIRST.values()) >= BAR[0] * said
    assert len(summary(ROWS).splitlines()) > 5


def test_an_observation_itself():
    spec = single_station(arrivals=Exponential(mean=2.0), service=Exponential(mean=1.0))
    options = {"passages": 20_000}
    right, wrong = ({"mean_waiting_time": (value, 0.0)} for value in (1.0, 1.2))
    (row,) = observe(Trial("", "one", spec, options, 20, lambda: right))
    # A run in 200 grows by chance for certain, and says then that it is undecided.
    assert verdict(row) == "covers" and row["seeds"] == 20 and row["trusted"] >= 19
    (row,) = observe(Trial("", "one", spec, options, 20, lambda: wrong))
    assert verdict(row) == "misses" and row["below"] == row["trusted"] >= 19
