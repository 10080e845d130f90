"""What no argument may be, at whichever door it comes in."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import qmodels as qm
from qmodels import checks
from qmodels.guarded import guarded, of_spec
from qmodels.networks import mva
from qmodels.queues import mmc
from qmodels.systems.spec.text.toml import from_toml


@pytest.mark.parametrize("value", [Decimal("0.5"), Fraction(1, 2), np.float16(0.5), [Fraction(1, 2), 0.5]])
def test_real_numbers_of_every_kind_are_taken(value):
    assert np.all(mmc(arrival_rate=value, service_rate=1, servers=1).mean_waiting_time == 1)


@pytest.mark.parametrize("large", [2**53, 2**53 + 1, 2**63 - 1, 2**63, 10**30, 2.0**64, np.uint64(2**63)])
def test_counts_that_no_double_tells_from_their_neighbours_are_refused(large):
    rule = f"must be a whole number from [01] to {2**53 - 1}, got [0-9.e+]+"
    with pytest.raises(ValueError, match=f"^servers {rule}$"):
        mmc(arrival_rate=1e25, service_rate=1, servers=large)
    with pytest.raises(ValueError, match=f"^servers {rule}$"):
        mva(population=3, mean_service_time=[1, 2], servers=[1, large])
    with pytest.raises(ValueError, match=f"^topology.delay {rule}$"):
        qm.mesh(4, 4, delay=large)


def test_a_document_refuses_them_as_the_shell_does():
    text = "[topology]\nkind = 'mesh'\nnodes = 16\nshape = [4, 4]\ndelay = 9223372036854775807"
    with pytest.raises(ValueError, match="topology.delay must be a whole number from 0 to"):
        from_toml(text, qm.Noc)
    small = from_toml(text.replace("9223372036854775807", "0"), qm.Noc)
    assert small.topology.delay == 0
    with pytest.raises(ValueError, match="topology.delay must be a whole number from 0 to"):
        from_toml(text, qm.Noc, overrides={"topology.delay": 2**63})


def test_counts_are_exact_to_the_last_one():
    assert checks.count("n", 2**53 - 1) == 2**53 - 1
    assert checks.count("n", np.array([2**53 - 1, 1])).tolist() == [2**53 - 1, 1]


def test_seeds_may_be_longer_than_any_count():
    checks.seed(2**128 - 1)
    for bad in (-1, True, 1.5, "1"):
        with pytest.raises(ValueError, match="^seed must be a whole number >= 0, got"):
            checks.seed(bad)


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
