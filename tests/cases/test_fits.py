"""Kept constants are those that the commands find, and every one is listed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from cases.fits.__main__ import FITS, main, table
from cases.fits.fit import Fit, Problem, run
from qmodels.evidence.constants import TAGS, Constant, constants, described, kept, rows

BY_FIT = {name: [one for one in constants() if one.fit == name] for name in FITS}
ROOT = Path(__file__).parents[2]


def test_every_constant_is_listed_with_unit_and_meaning() -> None:
    found = constants()
    assert sorted(one.name for one in found) == sorted(rows())
    assert all(one.tag in TAGS and one.unit and len(one.meaning) > 20 for one in found)
    assert all(one.name in table() for one in found)
    # Whatever the packages read is imported by the fits, and so listed.
    used = {
        name
        for path in (ROOT / "qmodels").rglob("*.py")
        for name in re.findall(r'^\w+ = kept\(\w+, "([\w.]+)"\)', path.read_text(encoding="utf-8"), re.M)
    }
    assert used == {one.name.rpartition(".")[0] for one in found}


def test_what_is_fitted_has_data_a_command_and_an_interval() -> None:
    for one in constants():
        if one.tag == "fitted":
            assert one.command == f"python -m cases.fits {one.fit}" and one.low < one.best < one.high
            first, *others = one.data.split(", ")
            assert all((ROOT / first).with_name(Path(name).name).exists() for name in (first, *others))
            assert one.held_out > 0
        else:
            assert not one.fit and np.isnan(one.best)
    assert {one.fit for one in constants()} - {""} == set(FITS)


def check(name: str) -> None:
    """What a fit finds today is what is kept of it."""
    found, held_out = run(FITS[name])
    for one in BY_FIT[name]:
        now, wide = found[one.name.rpartition(".")[2]], one.high - one.low
        assert now.best == pytest.approx(one.best, abs=0.05 * wide), one.name
        assert now.high - now.low == pytest.approx(wide, rel=0.2), one.name
    assert held_out == pytest.approx(BY_FIT[name][0].held_out, rel=0.05)


@pytest.mark.parametrize("name", [name for name, fit in FITS.items() if not fit.slow])
def test_the_command_finds_what_is_kept(name: str) -> None:
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, fit in FITS.items() if fit.slow])
def test_the_command_finds_what_is_kept_of_slow_fits(name: str) -> None:
    check(name)


@pytest.mark.parametrize("one", [one for one in constants() if one.tag == "fitted"], ids=lambda one: one.name)
def test_the_value_is_within_the_interval(one: Constant) -> None:
    assert one.low <= one.value <= one.high


class _Line(tuple):
    _fields = ("slope",)
    slope = property(lambda self: self[0])

    def _replace(self, slope: float) -> _Line:
        return _Line((slope,))


def test_intervals_cover_the_truth_and_the_model_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 60 fits, 95 % intervals miss 3 on average; up to 9 is 99.8 % of the binomial law."""
    import types

    dice = np.random.default_rng(4)
    missed, errors = 0, []
    for _ in range(60):
        x = dice.uniform(1, 2, 40)
        y = 2.0 * x + 0.1 * dice.standard_normal(40)
        model = types.ModuleType("model")
        model.LAW = before = _Line((1.9,))  # type: ignore[attr-defined]
        fit = Fit(
            name="line",
            module=model,
            fields=("slope",),
            data="",
            problem=lambda x=x, y=y, model=model: Problem(  # type: ignore[misc]
                errors=lambda: model.LAW.slope * x - y, groups=np.arange(40)
            ),
        )
        found, held_out = run(fit)
        assert model.LAW is before
        assert found["slope"].best == pytest.approx(x @ y / (x @ x), rel=1e-6)
        missed += not found["slope"].low <= 2.0 <= found["slope"].high
        errors.append(held_out)
    assert missed <= 9
    # The mean size of normal errors is 0.8 deviations.
    assert np.mean(errors) == pytest.approx(100 * 0.1 * (2 / np.pi) ** 0.5, rel=0.1)


def test_errors() -> None:
    with pytest.raises(SystemExit, match="^fit must be one of noc.waits, .*, got 'noc'$"):
        main(["noc"])
    with pytest.raises(KeyError, match=r"nowhere\.value"):
        kept(type("Law", (tuple,), {"_fields": ("value",)}), "nowhere")  # type: ignore[type-var]
    with pytest.raises(ValueError, match="^docstring of Law must describe value, got None$"):
        described(type("Law", (), {}), "value")
