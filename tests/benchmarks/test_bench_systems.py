"""The four systems of parts, solved anew: nothing is remembered from one round to the next."""

import gc
from functools import _lru_cache_wrapper

import pytest

from cases.systems import system_files
from qmodels import solve
from qmodels.systems.spec.text.toml import spec_from_toml


def forget():
    gc.unfreeze()  # what is frozen is not among them
    for one in gc.get_objects():
        # Its type, not its class: a weak proxy asks what is gone.
        if type(one) is _lru_cache_wrapper and (one.__module__ or "").startswith("qmodels"):
            one.cache_clear()


@pytest.mark.parametrize("name", system_files())
def test_a_system_is_solved(benchmark, name):
    spec = spec_from_toml(system_files()[name])
    assert benchmark.pedantic(solve, args=(spec,), setup=forget, rounds=3, warmup_rounds=1).stable
