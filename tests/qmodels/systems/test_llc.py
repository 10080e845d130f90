"""Messages of the LLC spec."""

from __future__ import annotations

import pytest

from qmodels.systems.cache.spec import Llc


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"slices": -1}, "llc.slices must be a whole number from 0 to 64, got -1"),
        ({"slices": 65}, "llc.slices must be a whole number from 0 to 64, got 65"),
        ({"slice_lines": 0}, "llc.slice_lines must be a whole number >= 1, got 0"),
        ({"access_cycles": 0}, "llc.access_cycles must be finite and > 0, got 0"),
        ({"bus_cycles": -1}, "llc.bus_cycles must be finite and >= 0, got -1"),
        ({"clock_ghz": float("inf")}, "llc.clock_ghz must be finite and > 0, got inf"),
    ],
)
def test_messages(arguments, message):
    with pytest.raises(ValueError, match=message):
        Llc(**arguments)


def test_no_slices_is_an_architecture():
    assert Llc(slices=0).slices == 0
