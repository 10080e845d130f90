"""The data-queueing case: published numbers as they are printed, and a small reproduction."""

from __future__ import annotations

import numpy as np
import pytest

from cases.published.cell import only
from cases.published.dqm.causes import cause_rows, cause_specs, variants
from cases.published.dqm.explore import METRICS, OBJECTIVES, explore_techniques
from cases.published.dqm.paper import PAPER
from cases.published.dqm.specs import (
    PUBLISHED_SEGMENTS,
    case_spec,
    greedy_space,
    normalised,
    scaled,
    technique,
    technique_space,
)
from cases.published.dqm.tables import COLUMNS, TITLES, rows_of
from cases.published.rows import data_folder, published
from cases.study.check import Runs
from qmodels.systems.traffic.arrivals import Recorded
from qmodels.systems.traffic.trace import Trace
from validate import simulate

RNG = np.random.default_rng(1)
BY_HAND = Trace(
    times_ns=np.cumsum(RNG.exponential(size=4000)),
    bytes=RNG.choice([64, 576, 1500], size=4000),
    source="by hand",
)


@pytest.fixture(scope="module")
def small():
    """Return a reproduction of a few packets, with everything in it."""
    return PAPER.reproduce(BY_HAND, runs=Runs(packets=2000, replications=2))


@pytest.fixture(scope="module")
def committed():
    """Return the committed numbers of the tables."""
    return PAPER.kept().cells


def test_published_numbers_agree_with_each_other():
    """The same technique has the same numbers in two tables, and the claims follow from them."""
    one, two, three, four, claims = (published("dqm")[k] for k in (*TITLES, "claims"))
    for column in ("write_wo", "write_with", "read_wo", "read_with"):
        assert two[column][0] == one[column][2]
        assert three[column][0] == two[column][2]
    assert four["write_with"][-1] == one["write_with"][0]
    assert four["read_with"][-1] == one["read_with"][0]
    assert four["read_with"][-2] == one["read_with"][3]
    assert 100 * (1 - 1.9 / 11.9) == pytest.approx(claims["write_saved_at_2"], abs=0.5)
    assert 100 * (1 - 6.7 / 12.4) == pytest.approx(claims["read_saved_at_2"], abs=0.5)
    assert 100 * (1 - min(four["write_with"]) / 11.9) == pytest.approx(claims["write_saved"], abs=0.5)
    assert 100 * (1 - min(four["read_with"]) / 12.4) == pytest.approx(claims["read_saved"], abs=0.5)
    for table, columns in COLUMNS.items():
        assert {len(published("dqm")[table][column]) for column in columns} == {len(rows_of(table))}


def test_energy_is_proportional_to_the_overhead():
    """Energy over that of the conventional technique gives overheads that round as printed."""
    four = published("dqm")["table4"]
    for overhead, energy in zip(four["overhead"], four["energy"], strict=True):
        assert round(8 * energy / 337) == overhead


def test_techniques():
    base = case_spec(BY_HAND)
    assert technique_space(base).size == 180 == published("dqm")["claims"]["techniques"]
    assert greedy_space(base).size == 200
    assert greedy_space(base).base.allocation.vms1_size == 2048
    every = {normalised(technique_space(base).spec(k)) for k in range(180)}
    assert len(every) == 165
    for table in TITLES:
        for row in rows_of(table):
            assert technique(base, **row) in every
    assert scaled(PUBLISHED_SEGMENTS, 65_536) == 65_536


def test_everything_is_there(small):
    assert len(small.cells) == 5 * 6 + 5 * 6 + 8 * 5 + 6 * 5
    assert all(cell.low <= cell.simulated <= cell.high and np.isfinite(cell.model) for cell in small.cells)
    text = small.table()
    for title in TITLES.values():
        assert title in text
    assert "by hand" in text and "Greedy" in text and "Claims" in text and "the case" in text
    plain = small.to_dict()
    assert len(plain["techniques"]) == 180 and len(plain["cells"]) == len(small.cells)
    assert len(small.to_pandas()) == len(small.cells)
    access = [c for c in small.cells if c["table"] == "table1" and c["column"] == "max_accesses"]
    assert all(cell.simulated <= cell.published for cell in access)


def test_files(small, tmp_path):
    paths = small.save(tmp_path / "out")
    assert sorted(path.name for path in paths) == [
        "dqm-causes.csv",
        "dqm-causes.png",
        "dqm-cells.csv",
        "dqm-greedy.csv",
        "dqm-run.toml",
        "dqm-techniques.csv",
        "dqm-techniques.png",
        "dqm-trials.png",
        "dqm.txt",
    ]
    assert all(path.stat().st_size > 0 for path in paths)


def test_numbers_come_back_from_their_files(small, tmp_path):
    """To the last digit, so that the fronts and the greedy path are those of the simulation."""
    small.write(tmp_path)
    again = PAPER.read(tmp_path)
    assert again.run == {"source": "by hand", "warm_up": 0.3, "packets": 2000, "replications": 2, "seed": 0}
    assert again.cells == small.cells
    assert set(again.tables) == {"techniques", "greedy", "causes"}
    assert again.tables == small.tables


def test_parts_may_be_left_out_and_a_reproduction_resumes(tmp_path, monkeypatch):
    options = {"exploration": False, "causes": False, "store": tmp_path / "new" / "runs.sqlite"}
    runs = Runs(packets=1000, replications=2)
    result = PAPER.reproduce(BY_HAND, runs=runs, **options)
    assert not result.tables
    assert [path.name for path in result.write(tmp_path, prefix="dqm-")] == ["dqm-run.toml", "dqm-cells.csv"]
    assert result.to_dict()["techniques"] == []

    def broken(job):
        raise AssertionError("a finished replication was run again")

    monkeypatch.setattr(
        "validate.data_queueing.simulate.DataQueueingExperiment.run_replication", staticmethod(broken)
    )
    monkeypatch.setattr(broken, "__module__", "validate.data_queueing.run")
    monkeypatch.setattr(broken, "__qualname__", "run_replication")
    assert PAPER.reproduce(BY_HAND, runs=runs, **options).cells == result.cells


def test_front_and_survivors_by_their_definitions():
    """Against an evaluation made up so that the answer is known."""
    base = case_spec(BY_HAND)

    def made_up(spec):
        a = normalised(spec).allocation
        metrics = dict.fromkeys((*OBJECTIVES, "read_conflict_probability"), 0.0)
        return metrics | {
            "enqueue_overhead": float(a.alloc_trial_count),
            "deletion_overhead": float(a.small_packet_segments),
            "allocation_failure_probability": 0.0,
            "write_conflict_probability": abs(a.alloc_trial_count - 3) + 0.1,
        }

    techniques, greedy = explore_techniques(base, made_up)
    # One trial and a single list: four grid points.
    overall = [tuple(row.values())[:3] for row in techniques if row["optimal_overall"]]
    assert set(overall) == {(1, 0, PUBLISHED_SEGMENTS)} and len(overall) == 4
    # Nothing is better in the overflows: the paper's rule drops nothing.
    assert sum(row["survivor"] for row in techniques) == 180
    steps = [row for row in greedy if row["scan"] == "alloc_trial_count"]
    assert [row["alloc_trial_count"] for row in steps if row["kept"]] == [3]
    assert [row["alloc_trial_count"] for row in steps] == [1, 2, 3, 4]
    assert sum(row["pareto"] for row in techniques) == 4


def test_causes_change_one_thing():
    base = case_spec(BY_HAND)
    named = variants(base)
    for name, spec in named.items():
        changed = [
            (part, field)
            for part in ("data", "allocation", "pointer", "traffic")
            for field in getattr(spec, part).__dataclass_fields__
            if getattr(getattr(spec, part), field) != getattr(getattr(base, part), field)
        ]
        limit = 3 if name.startswith("two inputs") else 2
        assert len(changed) <= limit and (changed or name == "the case"), name


def test_steady_overload_gives_writes_the_block_just_read():
    """What page control saves is that share at any number of trials: (load - 1) / (speed - 1) of the writes.

    Whole packets that return together do not give it, nor does a list that is long.
    """
    base = case_spec(segments=1024)
    names = ("overload 6 %", "load 0.95", "packets admitted whole")
    changes = {key: spec for key, spec in cause_specs(base).items() if key[0] in names}
    simulated = simulate(list(changes.values()), packets=60_000, replications=3, warm_up=0.3)
    causes = cause_rows(changes, dict(zip(changes.values(), simulated, strict=True)))
    for row in causes:
        saved, steady = row["write_wo"] - row["write_with"], row["change"] == "overload 6 %"
        # Losses of a run this long vary by a tenth; the share follows them.
        expected = row["failures"] / (1 - row["failures"] / 100) / (base.traffic.input_speed - 1)
        assert saved == pytest.approx(expected, rel=0.1) if steady else saved < 0.6, row
        assert not steady or saved > 6


def test_a_trace_is_played(tmp_path):
    assert not isinstance(case_spec().traffic.arrivals, Recorded)
    (tmp_path / "few.TL").write_text("0.0 64\n0.001 1500\n0.002 64\n")
    spec = case_spec(tmp_path / "few.TL")
    assert isinstance(spec.traffic.arrivals, Recorded) and len(spec.traffic.arrivals.trace) == 3


def test_committed_numbers_cover_the_tables(committed):
    assert len(committed) == 130
    conventional = only(
        committed, table="table1", column="write_with", trials=1, small=0, vms1_size=PUBLISHED_SEGMENTS
    )
    assert conventional.published == 11.9
    assert conventional.simulated == pytest.approx(12.0, abs=0.2)
    for cell in committed:
        assert cell.published in published("dqm")[cell["table"]][cell["column"]]
        assert cell.low <= cell.simulated <= cell.high


def test_what_is_kept_is_whole():
    result = PAPER.kept()
    assert (result.run["source"], result.run["packets"]) == ("a generator", 200_000)
    rows = result.tables["techniques"]
    base = case_spec()  # the techniques do not depend on the traffic
    known = {
        (
            row["alloc_trial_count"],
            row["small_packet_segments"],
            scaled(row["vms1_size"], base.data.segments),
        ): row
        for row in rows
    }

    def look_up(spec):
        a = normalised(spec).allocation
        row = known[a.alloc_trial_count, a.small_packet_segments, a.vms1_size]
        return {name: row[name] for name in METRICS}

    assert explore_techniques(base, look_up) == (rows, result.tables["greedy"])
    changes = [(row["change"], row["trials"]) for row in result.tables["causes"]]
    assert len(set(changes)) == len(changes) == 5 * len(variants(case_spec()))


def test_committed_numbers_are_those_of_the_case(committed):
    """Two techniques again, with another seed: the intervals overlap."""
    for trials in (1, 3):
        cell = only(committed, table="table1", column="read_with", trials=trials)
        spec = technique(case_spec(), trials=trials, small=0, vms1_size=PUBLISHED_SEGMENTS)
        again = simulate(spec, replications=3, seed=1, warm_up=0.3).read_conflict_probability
        assert 100 * again.low <= cell.high and cell.low <= 100 * again.high
        assert cell.high - cell.low < 1.0


@pytest.mark.parametrize("which", ["model", "simulated"])
def test_writes_are_as_published_with_up_to_two_trials(committed, which):
    """The bar of Table 1, and of the shares that page control and two trials save."""
    cells = {
        (trials, column): only(committed, table="table1", column=column, trials=trials)
        for trials in (1, 2)
        for column in ("write_wo", "write_with")
    }
    for cell in cells.values():
        assert getattr(cell, which) == pytest.approx(cell.published, rel=0.25)
    wo, by_page = cells[2, "write_wo"], cells[2, "write_with"]
    one = cells[1, "write_with"]
    for other, said in ((wo, 69.4), (one, 84.0)):
        saved = 100 * (1 - getattr(by_page, which) / getattr(other, which))
        assert saved == pytest.approx(said, abs=5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trace": "missing.pcap"}, "missing.pcap: cannot be read: No such file or directory"),
        (
            {"trace": BY_HAND, "store": data_folder("dqm") / "cells.csv"},
            "store '.*' is not a store of finished results.*",
        ),
    ],
)
def test_messages(options, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        PAPER.reproduce(**options)
