"""What `import qmodels.markov` brings, and that the compiled kernels run as plain Python too."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import qmodels.markov
from qmodels.numerics import kernels


def test_every_public_name_exists():
    assert all(hasattr(qmodels.markov, name) for name in qmodels.markov.__all__)
    assert len(set(qmodels.markov.__all__)) == len(qmodels.markov.__all__)


def test_the_import_leaves_heavy_libraries_out():
    code = "import sys, qmodels.markov; print(*{name.partition('.')[0] for name in sys.modules})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"scipy", "numba", "networkx"}.isdisjoint(run.stdout.split())


def test_small_chains_do_not_wake_the_compiler():
    code = (
        "import sys; from qmodels.markov import CTMC; CTMC(generator=[[-1, 1], [3, -3]]).stationary(); "
        "print('numba' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_the_plain_twin_of_the_censoring_kernel():
    """Blocks of pivots and single pivots give the same censored rates as elimination one by one."""
    from qmodels.markov.chains._sparse_gth import _censor

    rng = np.random.default_rng(5)
    size, pivots = 130, 100
    rates = rng.exponential(size=(size, size)) * (rng.random((size, size)) < 0.3)
    expected = rates.copy()
    for k in range(pivots):
        factor = expected[k + 1 :, k] / expected[k, k + 1 :].sum()
        expected[k + 1 :, k + 1 :] += np.outer(factor, expected[k, k + 1 :])
    for panel in (1, 8, 64):
        for kernel in (_censor, _censor.py_func):
            if kernel is _censor.py_func and panel != 64:
                continue
            front = rates.copy()
            assert kernel(front, pivots, panel) == 0
            inner = ~np.eye(size - pivots, dtype=bool)
            assert_allclose(front[pivots:, pivots:][inner], expected[pivots:, pivots:][inner], rtol=1e-12)


def test_kernels_compile_where_no_cache_can_be_written(monkeypatch):
    import numba

    tried = []

    def without_cache(**options):
        tried.append(options.get("cache", False))
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(numba, "njit", without_cache)

    def double(x):
        return 2 * x

    assert kernels.compiled(double)(4) == 8
    assert tried == [True, False]


@pytest.mark.parametrize("name", ["CTMC", "qbd", "map_g_1_k", "work_stealing"])
def test_public_names_are_documented(name):
    assert len(getattr(qmodels.markov, name).__doc__) > 400
