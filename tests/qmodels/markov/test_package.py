"""What `import qmodels.markov` brings."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
