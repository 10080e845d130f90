"""Tags of published numbers: every number has one, and the guide's table is made of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cases.published.cases import CASES, published_case
from cases.published.cell import VALUES, Number
from cases.published.numbers import GUIDE, guide_table
from cases.published.rows import data_folder
from cases.published.tags import TAGS, tag_rows, tags


@pytest.mark.parametrize("case", CASES)
def test_every_published_number_has_a_tag_and_every_tag_numbers(case):
    numbers = published_case(case).kept().numbers()
    assert {number.group for number in numbers} == set(tags(case))
    assert all(number.model is not None or number.simulated is not None for number in numbers)


@pytest.mark.parametrize("case", CASES)
def test_no_number_of_the_tables_is_left_out(case):
    kept = published_case(case).kept()
    said = [cell.published for cell in kept.cells if cell.published is not None]
    values = [number.published for number in kept.numbers()]
    assert not set(said) - set(values)


@pytest.mark.parametrize("case", CASES)
def test_a_reproduction_shows_its_tags_and_one_order_of_columns(case):
    text = published_case(case).kept().table()
    for meaning in TAGS.values():
        assert meaning in text
    for line in text.splitlines():
        places = [line.find(word) for word in ("published", "model", "simulated")]
        if "  " in line.strip() and sum(place >= 0 for place in places) > 1 and " | " not in line:
            assert [p for p in places if p >= 0] == sorted(p for p in places if p >= 0), line


def test_the_table_of_the_guide_is_generated():
    text = GUIDE.read_text(encoding="utf-8")
    assert guide_table() in text
    # No other table, and no number in the words below it: what they say is counted nowhere else.
    assert text.count("\n|---|") == 1
    assert not re.search(r"\d", text.partition(guide_table())[2].replace("llc3d", "").replace("16-core", ""))


def test_errors():
    inside = Number(group="g", published=65.0, published_high=70.0, points=True)
    assert [inside.error(value) for value in (60.0, 66.0, 71.5)] == [-5.0, 0.0, 1.5]
    assert Number(group="g", published=50.0).error(55.0) == pytest.approx(10.0)


def test_an_unknown_tag_is_refused(monkeypatch):
    said = {"tags": {"x": {"what": "x", "tag": "true"}}}
    monkeypatch.setattr("cases.published.tags.published", lambda case: said)
    with pytest.raises(ValueError, match=r"tag of odd\.x must be one of fitted, .*, got 'true'"):
        tags("odd")


@pytest.mark.parametrize("case", CASES)
def test_what_is_fitted_is_called_so(case):
    """A cell knows by the name of its group whether it proves anything."""
    for group, tag in tags(case).items():
        assert group.endswith("_fitted") == (tag["tag"] == "fitted"), group


@pytest.mark.parametrize("case", CASES)
def test_what_is_written_is_what_is_read(case, tmp_path):
    """To the last digit, in one form for all cases; and what is kept is what is written."""
    paper = published_case(case)
    found = paper.kept()
    for path in found.write(tmp_path):
        assert path.read_text() == (data_folder(case) / path.name).read_text()
    again = paper.read(tmp_path)
    assert (again.cells, again.claims) == (found.cells, found.claims)
    assert (dict(again.tables), dict(again.run)) == (dict(found.tables), dict(found.run))


@pytest.mark.parametrize("case", CASES)
def test_every_case_has_the_same_columns_after_the_place(case):
    """Place, then what is published and ours: who reads one case's table reads every case's."""
    names = list(published_case(case).kept().columns())
    assert [name for name in names if name in VALUES] == list(VALUES)


@pytest.mark.parametrize("case", [case for case in CASES if case != "dqm"])
def test_a_case_without_packets_refuses_a_trace(case):
    message = r"^trace must be left out, as this case has no packets, got 'x'$"
    with pytest.raises(ValueError, match=message):
        published_case(case).reproduce(Path("x"))


def test_rows_name_the_tag_and_both_errors():
    rows = tag_rows("stnoc", published_case("stnoc").kept().numbers())
    known = {row[0]: row for row in rows}
    assert (
        known["Table II"][2] == "fitted"
        and known["Table II, the row of one channel from the others"][4] == "-"
    )
