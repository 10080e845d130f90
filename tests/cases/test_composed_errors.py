"""The error map of systems of parts is what the kept simulations and the model of today say."""

import pytest

from cases.composed_errors.accuracy import FILE, METRICS, SATURATION, rows_in, solved, summary, usable
from cases.composed_errors.drawn import LOTS
from cases.tables import load_table
from qmodels.composed.errors import ERRORS
from qmodels.evidence.error_map import summarize

TABLE = load_table(FILE)


def test_the_map_is_made_of_what_is_kept(tmp_path):
    again = type(ERRORS)(tmp_path / "map.csv")
    again.write(summary(TABLE), about="again", command="none")
    lines = [path.read_text().splitlines() for path in (again.path, ERRORS.path)]
    kept, made = ([line for line in each if not line.startswith("#")] for each in lines)
    assert kept == made and len(made) > 60


@pytest.mark.parametrize("lot", LOTS, ids=lambda lot: lot.name)
def test_the_model_says_today_what_is_kept(lot):
    rows = [row for row in rows_in(TABLE) if row["lot"] == lot.name and row["number"] % 11 == 3]
    assert rows
    for row in solved(rows):
        kept = next(r for r in rows if (r["number"], r["metric"]) == (row["number"], row["metric"]))
        assert row["model"] == pytest.approx(kept["model"], rel=1e-4)


def test_another_system_than_the_simulated_one_is_refused():
    row = rows_in(TABLE)[0] | {"key": "another"}
    with pytest.raises(RuntimeError, match="simulate it anew"):
        solved([row])


def test_every_lot_was_simulated_whole():
    for lot in LOTS:
        mine = TABLE["lot"] == lot.name
        assert len(set(TABLE["number"][mine])) == lot.count
        for metric in METRICS:
            assert (TABLE["metric"][mine] == metric).sum() == lot.count


def errors(lot, metric, *, above):
    mine = usable(TABLE) & (TABLE["lot"] == lot) & (TABLE["metric"] == metric)
    mine &= (TABLE["load"] > 0.8) == above
    return summarize(TABLE["error"][mine], decimals=2)


@pytest.mark.parametrize("lot", [lot.name for lot in LOTS[:3]])
def test_latency_and_saturation_are_within_their_bars(lot):
    assert errors(lot, "latency", above=False)["mean"] <= 5.0
    assert errors(lot, "latency", above=True)["mean"] <= 10.0
    for above in (False, True):
        assert errors(lot, SATURATION, above=above)["mean"] <= 5.0
