"""The door of formulas and specs: a size is blamed only where a change of it cures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import qmodels as qm
from qmodels.guarded import guarded, of_spec

FAR = replace(qm.Noc(injection_rate=0.02), injection_rate=1e-90)


@guarded
def fails(*, rate, shape=1.0):
    return np.ones(1) / (np.zeros(1) if shape < 1e30 else np.ones(1)) * rate


@pytest.mark.parametrize("rate", [100.0, 1e9])
def test_an_argument_that_is_innocent_is_not_blamed(rate):
    with pytest.raises(FloatingPointError, match="divide by zero"):
        fails(rate=rate)


def test_a_field_that_is_innocent_is_not_blamed():
    def model(spec):
        return 1 / 0

    with pytest.raises(ZeroDivisionError):
        of_spec(model, FAR)


def test_a_field_that_is_too_small_is_blamed():
    def model(spec):
        return 1 / (spec.injection_rate**4)

    with pytest.raises(ValueError, match=r"^injection_rate must be of a size .* carry, got 1e-90$"):
        of_spec(model, FAR)


def test_too_little_memory_is_blamed_on_the_size_that_needs_it():
    def model(spec):
        if spec.packet_bytes > 10**6:
            raise MemoryError

    with pytest.raises(ValueError, match=r"^packet_bytes must be of a size .* carry, got 1000000000$"):
        of_spec(model, qm.Noc(injection_rate=0.02, packet_bytes=10**9))


def test_a_model_that_takes_one_kind_for_another_is_not_the_fault_of_a_field():
    def model(spec):
        return min(spec.injection_rate)

    with pytest.raises(TypeError, match="not iterable"):
        of_spec(model, FAR)
