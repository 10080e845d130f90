"""The adapter of the modeller: run under both of its generations by installing one or the other."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

from optimize.programs.linear import Model, solver_name


def test_the_solver_writes_nothing():
    """JSON on the standard output must be that alone; HiGHS 1.16 introduces itself there."""
    program = (
        "from optimize.programs.linear import Model; m = Model(); m.binary(1.0); print(m.solve().status)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("optimal\n", "")


def test_a_mixed_program():
    model = Model()
    taken = [model.binary(cost) for cost in (-5.0, -4.0, -3.0)]
    rest = model.continuous(0.5, 2.0, cost=-1.0)
    model.at_most({**dict(zip(taken, (2.0, 3.0, 1.0), strict=True)), rest: 1.0}, 5.0)
    outcome = model.solve()
    assert outcome.status == "optimal"
    # 5 + 3 + 2 = 10 with the rest at its limit; 5 + 4 leaves no room for the rest's 0.5.
    np.testing.assert_allclose(outcome.values, [1, 0, 1, 2], atol=1e-9)
    assert outcome.bound == pytest.approx(-10)


def test_a_program_is_solved_again_after_another_constraint():
    model = Model()
    x, y = model.binary(-2.0), model.binary(-1.0)
    assert model.solve().values == [1, 1]
    model.at_most({x: 1.0, y: 1.0}, 1.0)
    assert model.solve().values == [1, 0]
    model.equal({x: 1.0}, 0.0)
    assert model.solve().values == [0, 1]
    model.equal({y: 1.0}, 0.0)
    outcome = model.solve()
    assert outcome.status == "optimal" and outcome.values == [0, 0]
    model.at_most({x: -1.0}, -1.0)
    assert model.solve().status == "infeasible"
    with pytest.raises(RuntimeError, match="variables must be added before the first solve"):
        model.binary()


def test_an_unbounded_program_is_an_error_with_the_word_of_the_solver():
    model = Model()
    model.binary()
    model.continuous(cost=-1.0)
    with pytest.raises(RuntimeError, match="HiGHS stopped with status 'Unbounded'"):
        model.solve()


def test_neither_generation_warns_or_prints(capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Model()
        model.equal({model.binary(1.0): 1.0}, 1.0)
        assert model.solve(10.0).values == [1]
    assert capfd.readouterr() == ("", "")


def test_the_generation_is_named():
    import pulp

    assert solver_name().endswith(f"through PuLP {pulp.__version__}")
