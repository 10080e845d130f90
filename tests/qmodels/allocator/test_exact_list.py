"""The whole list's chain against its simulation and a closed form."""

from __future__ import annotations

import pytest
from numpy.testing import assert_allclose

from tests.qmodels.allocator import exact_list
from tests.qmodels.allocator.exact_list import exact_free_list

SMALL = {"banks": 3, "blocks_per_bank": 3, "in_use": 3, "alloc_trial_count": 2}


@pytest.mark.in_ci(2)
@pytest.mark.parametrize(
    ("banks", "per_bank", "in_use", "busy", "trials"),
    [(3, 3, 3, 1, 2), (2, 4, 3, 1, 3), (3, 4, 4, 1, 3), (3, 4, 6, 1, 2), (4, 2, 3, 2, 2)],
)
def test_against_simulation(simulate_list, banks, per_bank, in_use, busy, trials):
    exact = exact_free_list(
        banks=banks, blocks_per_bank=per_bank, in_use=in_use, alloc_trial_count=trials, busy_accesses=busy
    )
    taken, _, _ = simulate_list(
        banks=banks,
        busy=busy,
        trials=trials,
        blocks=banks * per_bank,
        stored=in_use - 1,
        allocations=2_000_000,
    )
    assert_allclose(exact, taken, rtol=0.02, atol=1e-4)


@pytest.mark.parametrize("in_use", [2, 3, 5])
def test_one_trial_in_closed_form(in_use):
    # The block taken before is in use or, returned at once, the last one in the list.
    exact = exact_free_list(banks=3, blocks_per_bank=3, in_use=in_use, alloc_trial_count=1)
    assert_allclose(exact, 2 / 8, rtol=1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"in_use": 9}, "in_use must be below the 9 blocks, got 9"),
        ({"alloc_trial_count": 8}, "alloc_trial_count must be at most the 7 blocks of the list, got 8"),
    ],
)
def test_nonsense(change, message):
    with pytest.raises(ValueError, match=message):
        exact_free_list(**(SMALL | change))


def test_too_many_states(monkeypatch):
    monkeypatch.setattr(exact_list, "MOST_STATES", 5)
    with pytest.raises(ValueError, match="5"):
        exact_free_list(**SMALL)
