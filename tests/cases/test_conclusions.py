"""Conclusions of papers: how margins become verdicts and flips, and that the guide is what the code says."""

import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from cases.cli.main import main
from cases.published import CASES as PAPERS
from cases.published import conclusions as checks
from cases.published.conclusions import (
    CONFIRMED,
    CONTRADICTED,
    DEPENDS,
    Check,
    Conclusion,
    Found,
    Parameter,
    conclusions_of,
    find,
    found_of,
    kept,
    key,
    points,
    read,
    simulated,
    turns_of,
)
from cases.published.paper import published_case
from cases.published.words import data, flip_text, markdown, text
from qmodels import LlcProcessor

GUIDE = Path(__file__).parents[2] / ".github" / "docs" / "papers" / "conclusions.md"
LINE = Parameter(name="x", value=1.0, values=(0.0, 2.0, 4.0))


def conclusion(parameter: Parameter = LINE, turn: float = 3.0) -> Conclusion:
    """Return a conclusion that holds below a value of its parameter."""
    return Conclusion(
        name="line",
        words="it holds",
        section="sec. 1",
        margin="what is left",
        assumption="nothing",
        parameter=parameter,
        readings=lambda value: [],
        of=lambda value: turn - value,
    )


def test_a_margin_turns_where_it_is_zero():
    found = find(conclusion())
    assert found.margin == 2.0
    assert found.flip == pytest.approx((3.0, 3.0))
    assert find(conclusion(turn=9.0)).flip is None


def test_every_turn_is_found_the_nearest_to_the_paper_first():
    """Of three the one on the other side is nearer; a bracket at the paper's value is nearest."""
    line = Parameter(name="x", value=3.0, values=(0.0, 1.0, 2.0, 4.0, 9.0, 10.0))

    def margin(x: float) -> float:
        return (x - 0.5) * (9.5 - x) * (2.5 - x)

    found = turns_of(margin, tuple((x, margin(x)) for x in line.grid), line)
    assert [one[0] for one in found] == pytest.approx([2.5, 0.5, 9.5], abs=1e-3)
    assert all(low == high and times == 1 for low, high, times in found)


def test_turns_that_are_close_are_told_as_their_range():
    """A margin that is a saw near 3 changes its sign several times."""
    line = Parameter(name="x", value=1.0, values=(0.0, 2.0, 4.0), fine=200)

    def margin(x: float) -> float:
        return 3.0 - x + 0.1 * (x % 0.02 > 0.01)

    ((low, high, times),) = turns_of(margin, tuple((x, margin(x)) for x in line.grid), line)
    assert times > 5 and 2.95 < low <= 3.0 and 3.05 < high < 3.15
    found = Found(conclusion=conclusion(line), curve=(), margin=2.0, turns=((low, high, times),))
    assert flip_text(found).startswith(f"flips {times} times between ")


def test_whole_numbers_turn_between_neighbours():
    whole = Parameter(name="n", value=1, values=(1, 2, 4, 8), whole=True)
    assert find(conclusion(whole)).flip == (2, 4)


def test_verdicts():
    here = Check(value=1.0, margin=2.0, half_width=0.1)
    assert find(conclusion()).verdict == CONFIRMED
    assert find(conclusion(), [here]).verdict == CONFIRMED
    assert find(conclusion(turn=0.5)).verdict == CONTRADICTED
    # Numbers of NumPy compare as others do.
    assert find(replace(conclusion(), of=lambda x: np.float64(3.0) - x), [here]).verdict == CONFIRMED
    # The simulation differs, or does not decide.
    assert find(conclusion(), [replace(here, margin=-2.0)]).verdict == DEPENDS
    assert find(conclusion(), [replace(here, half_width=3.0)]).verdict == DEPENDS


@pytest.mark.parametrize(("allowed", "verdict"), [((0.0, 2.0), CONFIRMED), ((2.0, 4.0), DEPENDS)])
def test_what_turns_in_what_the_text_leaves_open_depends(allowed, verdict):
    assert find(conclusion(replace(LINE, open=allowed))).verdict == verdict


@pytest.mark.parametrize(("most", "verdict"), [(2, CONFIRMED), (4, DEPENDS)])
def test_a_whole_number_turns_at_the_first_value_that_differs(most, verdict):
    """It holds up to 2 and fails from 4."""
    whole = Parameter(name="n", value=1, values=(1, 2, 4, 8), whole=True, open=(1, most))
    assert find(conclusion(whole)).verdict == verdict


def test_a_turn_is_confirmed_by_a_simulated_one_within_a_tenth():
    """Where the simulation turns is interpolated: half a width of the interval either way."""

    def found(*places: float, turn: float = 3.2) -> Found:
        return find(conclusion(), [Check(value=x, margin=turn - x, half_width=0.05) for x in places])

    assert found().flip_confirmed is None
    assert found(1.0, 2.9, 3.5).flip_confirmed
    assert found(1.0, 2.9, 3.5).simulated_flip == pytest.approx((3.15, 3.25))
    assert found(1.0, 2.9, 3.18, 3.5).simulated_flip == pytest.approx((3.15, 3.25))
    assert not found(1.0, 3.1, 3.9, turn=3.6).flip_confirmed
    assert "simulated otherwise: between 3.55 and 3.65" in flip_text(found(1.0, 3.1, 3.9, turn=3.6))
    assert not found(1.0, 2.0).flip_confirmed
    assert flip_text(found(1.0, 2.0)).endswith("simulated: no turn is decided")
    nowhere = find(conclusion(turn=9.0), [Check(value=x, margin=1.0, half_width=0.1) for x in (0.0, 4.0)])
    assert nowhere.flip_confirmed


@pytest.mark.parametrize(
    ("turn", "shift", "simulated", "verdict"),
    [
        (0.5, -1.0, 1.0, DEPENDS),
        (0.5, -1.0, None, DEPENDS),
        (0.5, -1.0, -1.0, CONTRADICTED),
        (0.5, 0.1, -1.0, CONTRADICTED),
        (3.0, 5.0, -1.0, DEPENDS),
        (3.0, 0.1, 1.0, CONFIRMED),
    ],
)
def test_a_conclusion_is_contradicted_only_where_no_reading_confirms_it(turn, shift, simulated, verdict):
    """Another reading moves the system; it counts if its simulation, where there is one, agrees."""
    other = {"moved": lambda value: value + shift}
    asked = replace(
        conclusion(turn=turn),
        readings=lambda value: [(value, "x")],
        of=lambda value, moved: turn - moved,
        others=other,
    )

    class Solved(dict):
        def __getitem__(self, name):
            return super().__getitem__("spec")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qmodels.solve", lambda spec: Solved(spec=spec))
        checks = (
            [] if simulated is None else [Check(value=1.0, margin=simulated, half_width=0.1, reading="moved")]
        )
        found = find(asked, checks)
    assert found.verdict == verdict
    assert "moved: " in text({"llc3d": [found]})


def test_both_sides_of_a_turn_are_simulated_further_and_further_from_it():
    sides = list(points(find(conclusion())))
    assert sides[0] == (1.0,)
    assert sides[1] == pytest.approx((2.85, 2.7, 2.4, 1.8))
    assert sides[2] == pytest.approx((3.05, 3.1, 3.2, 3.4))
    assert list(points(find(conclusion(turn=9.0)))) == [(1.0,), (0.0,), (4.0,)]


def test_a_system_is_asked_once_for_all_that_is_read_of_it():
    asked = []

    def numbers(spec, metrics):
        asked.append((spec, metrics))
        return [(float(len(metric)), 0.1) for metric in metrics]

    assert read([("a", "x"), ("a", "xyz")], numbers) == [(1.0, 0.1), (3.0, 0.1)]
    assert asked == [("a", ["x", "xyz"])]


def test_the_interval_of_a_margin_is_that_of_its_numbers(monkeypatch):
    @dataclass
    class Estimate:
        best: float
        half_width: float

    monkeypatch.setattr("validate.simulate", lambda spec, **_: {"y": Estimate(spec, 0.1 * spec)})
    ratio = replace(conclusion(), readings=lambda x: [(30.0, "y"), (10.0, "y")], of=lambda x, a, b: a - b)
    found = simulated(ratio, 1.0)
    assert (found.margin, found.half_width) == pytest.approx((20.0, (3.0**2 + 1.0**2) ** 0.5))


def test_a_key_names_systems_and_not_their_last_digits():
    one = LlcProcessor()
    assert key([(one, "m")]) == key([(replace(one, load=0.7 * (1 + 1e-12)), "m")])
    assert key([(one, "m")]) != key([(replace(one, load=0.701), "m")])
    assert key([(one, "m")]) != key([(one, "n")])


def test_simulations_of_other_systems_are_left_out(monkeypatch):
    first = conclusions_of("llc3d")[0]
    found, stale = kept("llc3d", replace(first, others={}))
    assert found and not stale
    quiet = LlcProcessor(cores=4)
    asked = {"readings": lambda x: [(quiet, "waiting_latency")], "of": lambda x, waiting: waiting}
    other = replace(first, others={}, **asked)
    assert kept("llc3d", other) == ([], len(found))
    monkeypatch.setattr(checks, "conclusions_of", lambda case: (other,))
    assert f"{len(found)} kept simulations are of other systems" in text({"llc3d": found_of("llc3d")})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": (1.0,)}, r"values of x must be at least two, ascending, got \(1\.0,\)"),
        ({"values": (2.0, 0.0)}, r"values of x must be at least two, ascending, got \(2\.0, 0\.0\)"),
        ({"value": 5.0}, r"value of x must be from 0 to 4, got 5\.0"),
        ({"whole": True}, r"value of x must be one of \(0\.0, 2\.0, 4\.0\), got 1\.0"),
    ],
)
def test_parameters_are_checked(change, message):
    with pytest.raises(ValueError, match=message):
        replace(LINE, **change)


@pytest.mark.parametrize("case", PAPERS)
def test_conclusions_are_whole_and_their_simulations_are_of_today(case):
    mine = conclusions_of(case)
    assert 5 <= len(mine) <= 10
    assert len({one.name for one in mine}) == len(mine)
    for one in mine:
        assert not one.group or one.group in published_case(case).tags
        found, stale = kept(case, one)
        assert not stale, f"{one.name}: python -m cases.published.conclusions {case}"
        own = [check.value for check in found if not check.reading]
        assert one.parameter.value in own and len(own) >= 2
        assert sorted(check.reading for check in found if check.reading) == sorted(one.others)


found_once = cache(found_of)


@pytest.mark.parametrize(
    "case", [pytest.param(one, marks=[pytest.mark.slow] * (one != "llc3d")) for one in PAPERS]
)
def test_the_guide_is_what_the_code_says(case):
    assert markdown({case: found_once(case)}) in GUIDE.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("case", PAPERS)
def test_kept_margins_are_simulated_again(case):
    for one in conclusions_of(case):
        value = one.parameter.value
        (before,) = [c for c in kept(case, one)[0] if c.value == value and not c.reading]
        again = simulated(one, value)
        assert again.margin == pytest.approx(before.margin, abs=1e-6 + 1e-6 * abs(before.margin))


def test_the_command(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "found_of", found_once)
    picture = tmp_path / "llc3d.png"
    with pytest.raises(SystemExit) as end:
        main(["conclusions", "llc3d", "--json", "--plot", str(picture)])
    assert end.value.code == 0
    shown = json.loads(capsys.readouterr().out)
    findings = {"llc3d": found_once("llc3d")}
    assert [row["verdict"] for row in shown["llc3d"]["conclusions"]] == [
        one.verdict for one in findings["llc3d"]
    ]
    assert len(shown["llc3d"]["conclusions"]) == len(data(findings)["llc3d"]["conclusions"])
    assert picture.stat().st_size > 50_000


@pytest.mark.parametrize(
    ("words", "message"),
    [(["llc"], "case must be one of dqm"), (["--plot", "x.png"], "--plot needs one CASE")],
)
def test_the_command_says_what_is_wrong(capsys, words, message):
    with pytest.raises(SystemExit) as end:
        main(["conclusions", *words])
    assert end.value.code == 2
    assert message in capsys.readouterr().err
