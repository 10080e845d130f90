"""Symbols and numbers come from the same functions: they agree, and the calculus is right."""

import sys

import mpmath
import numpy as np
import pytest
import sympy
from numpy.testing import assert_allclose

from qmodels import networks, queues
from qmodels.symbolic import symbolic

TWO = {"arrival_rate": 0.6, "service_rate": 1.1, "arrival_scv": 0.7, "service_scv": 1.6}
MM = {"arrival_rate": 1.4, "service_rate": 1.1}

# name, whole numbers and options, values of the symbols
MODELS = [
    ("mm1", {}, {"arrival_rate": 0.6, "service_rate": 1.1}),
    ("mmc", {"servers": 1}, {"arrival_rate": 0.6, "service_rate": 1.1}),
    ("mmc", {"servers": 5}, MM),
    ("mmcc", {"servers": 4}, MM),
    ("mm1k", {"capacity": 1}, MM),
    ("mm1k", {"capacity": 6}, MM),
    ("mmck", {"servers": 3, "capacity": 7}, MM),
    ("md1", {}, {"arrival_rate": 0.6, "service_rate": 1.1}),
    ("mg1", {}, {"arrival_rate": 0.6, "service_rate": 1.1, "service_scv": 2.5, "service_third_moment": 40.0}),
    (
        "mxg1",
        {},
        {
            "arrival_rate": 0.2,
            "service_rate": 1.1,
            "service_scv": 0.5,
            "batch_mean": 3.0,
            "batch_second_moment": 12.0,
        },
    ),
    ("geog1", {}, {"arrival_rate": 0.2, "mean_service_time": 3.5, "service_scv": 0.3}),
    (
        "geoxg1",
        {},
        {"arrival_rate": 0.2, "arrival_variance": 0.4, "mean_service_time": 3.5, "service_scv": 0.3},
    ),
    ("gg1_kingman", {}, TWO),
    ("gg1_klb", {}, TWO),
    ("gg1_klb", {"smooth": False}, TWO | {"arrival_scv": 3.0}),
    ("gg1_marchal", {}, TWO),
    ("gg1_upper_bound", {}, TWO),
    ("gg1_lower_bound", {}, TWO | {"service_scv": 8.0}),
    ("ggc_allen_cunneen", {"servers": 3}, TWO | {"arrival_rate": 2.0}),
]


@pytest.mark.parametrize(("name", "whole", "values"), MODELS)
def test_expressions_are_the_numbers(name, whole, values):
    q = symbolic(name, **whole)
    numeric = {k: v for k, v in whole.items() if k != "smooth"}
    r = getattr(queues, name)(**numeric, **values)
    shared = [metric for metric in q.metrics if getattr(r, metric, None) is not None]
    assert {"throughput", "utilization", "mean_response_time", "mean_number_in_system"} <= set(shared)
    for metric in shared:
        assert_allclose(float(q.evaluate(metric, **values)), getattr(r, metric), rtol=1e-13, err_msg=metric)
        used = {k: v for k, v in values.items() if k in q.parameters}
        assert_allclose(q.function(metric)(**used), getattr(r, metric), rtol=1e-11, err_msg=metric)
    assert q.stable.subs({q.parameters[k]: v for k, v in values.items()}) == sympy.true


def test_priorities_are_the_numbers():
    q = symbolic("mg1_nonpreemptive", classes=3)
    rates, means, scvs = [0.1, 0.2, 0.05], [1.0, 2.0, 3.0], [0.5, 1.0, 4.0]
    r = queues.mg1_nonpreemptive(arrival_rate=rates, mean_service_time=means, service_scv=scvs)
    values = {}
    for k in range(3):
        values |= {f"arrival_rate_{k + 1}": rates[k], f"mean_service_time_{k + 1}": means[k]}
        values[f"service_scv_{k + 1}"] = scvs[k]
    for k in range(3):
        assert_allclose(
            float(q.evaluate(f"mean_waiting_time_{k + 1}", **values)), r.mean_waiting_time[k], rtol=1e-13
        )


@pytest.mark.parametrize("branches", [1, 2, 7])
def test_fork_join_is_the_number(branches):
    q = symbolic("fork_join", branches=branches)
    r = networks.fork_join(arrival_rate=0.6, service_rate=1.1, branches=branches)
    found = q.evaluate("mean_response_time", arrival_rate=0.6, service_rate=1.1)
    assert_allclose(float(found), r.mean_response_time, rtol=1e-13)


def test_mva_is_the_number_and_a_ratio_of_polynomials():
    q = symbolic("mva", stations=2, population=3)
    values = {"mean_service_time_1": 0.5, "mean_service_time_2": 1.25, "think_time": 2.0}
    r = networks.mva(population=3, mean_service_time=[0.5, 1.25], think_time=2.0)
    assert_allclose(float(q.evaluate("system_throughput", **values)), r.system_throughput, rtol=1e-13)
    assert_allclose(float(q.evaluate("system_response_time", **values)), r.system_response_time, rtol=1e-13)
    for i in (1, 2):
        number = q.evaluate(f"mean_number_in_system_{i}", **values)
        assert_allclose(float(number), r.mean_number_in_system[i - 1], rtol=1e-13)
        assert_allclose(float(q.evaluate(f"utilization_{i}", **values)), r.utilization[i - 1], rtol=1e-13)
    first, second, think = (q.parameters[k] for k in values)
    assert (
        sympy.simplify(
            q.metrics["mean_number_in_system_1"].subs(think, 0)
            + q.metrics["mean_number_in_system_2"].subs(think, 0)
        )
        == 3
    )
    balanced = q.system_throughput.subs({second: first, think: 0})
    assert sympy.simplify(balanced - 3 / (4 * first)) == 0


def test_textbook_forms():
    q = symbolic("mm1")
    lam, mu = q.parameters["arrival_rate"], q.parameters["service_rate"]
    rho = lam / mu
    assert sympy.simplify(q.mean_number_in_system - rho / (1 - rho)) == 0
    assert sympy.simplify(q.mean_waiting_time - rho / (mu - lam)) == 0
    assert sympy.simplify(symbolic("mg1", service_scv=1).mean_waiting_time - q.mean_waiting_time) == 0
    assert sympy.simplify(symbolic("mmc", servers=1).mean_waiting_time - q.mean_waiting_time) == 0
    md1 = symbolic("md1").mean_waiting_time
    assert sympy.simplify(md1 / q.mean_waiting_time) == sympy.Rational(1, 2)
    poisson = symbolic("gg1_klb", arrival_scv=1)
    assert sympy.simplify(poisson.mean_waiting_time - symbolic("mg1").mean_waiting_time) == 0
    full = symbolic("mm1k", capacity=3).blocking_probability
    assert sympy.simplify(full - rho**3 / (1 + rho + rho**2 + rho**3)) == 0


def test_limits():
    q = symbolic("mmc", servers=3)
    mu = q.parameters["service_rate"]
    assert q.limit("mean_waiting_time", by="arrival_rate", to=3 * mu) == sympy.oo
    assert q.limit("mean_response_time", by="arrival_rate", to=0, side="+") == 1 / mu
    finite = symbolic("mmcc", servers=2)
    assert finite.limit("blocking_probability", by="arrival_rate", to=sympy.oo) == 1


@pytest.mark.in_ci(5)
@pytest.mark.parametrize(("name", "whole", "values"), MODELS)
def test_derivatives_and_elasticities_by_differences(name, whole, values):
    q = symbolic(name, **whole)
    values = {k: v for k, v in values.items() if k in q.parameters}
    step = sympy.Rational(1, 10**8)
    for parameter in values:
        point = {k: sympy.Rational(v) for k, v in values.items()}
        up = q.evaluate("mean_response_time", **point | {parameter: point[parameter] + step})
        down = q.evaluate("mean_response_time", **point | {parameter: point[parameter] - step})
        slope = (up - down) / (2 * step)
        at = {q.parameters[k]: v for k, v in point.items()}
        found = q.derivative("mean_response_time", by=parameter).subs(at).evalf(30)
        assert_allclose(float(found), float(slope), rtol=1e-12, atol=1e-13)
        here = q.evaluate("mean_response_time", **point)
        relative = q.elasticity("mean_response_time", by=parameter).subs(at).evalf(30)
        assert_allclose(float(relative), float(slope * point[parameter] / here), rtol=1e-12, atol=1e-13)


def test_many_servers_are_one_fraction():
    """Not one inside another: twelve of them took SymPy minutes to hours."""
    rate = 9.0
    waiting = symbolic("mmc", servers=12, service_rate=1).evaluate("mean_waiting_time", arrival_rate=rate)
    numeric = queues.mmc(arrival_rate=rate, service_rate=1.0, servers=12)
    assert_allclose(float(waiting), numeric.mean_waiting_time, rtol=1e-12)


def test_solving_for_a_rate_that_meets_a_target():
    q = symbolic("mm1")
    lam, mu = q.parameters["arrival_rate"], q.parameters["service_rate"]
    target = sympy.Symbol("T", positive=True)
    assert q.solve_for("service_rate", mean_response_time=target) == [lam + 1 / target]
    assert q.solve_for("arrival_rate", mean_response_time=target) == [mu - 1 / target]
    # Quadratic: only the stable root is kept, and it meets the target.
    for name, whole in (("mg1", {"service_scv": 3}), ("mmc", {"servers": 2}), ("md1", {})):
        q = symbolic(name, **whole)
        for unknown in ("service_rate", "arrival_rate"):
            (root,) = q.solve_for(unknown, mean_waiting_time=2)
            other = "arrival_rate" if unknown == "service_rate" else "service_rate"
            value = float(root.subs(q.parameters[other], 0.75).evalf())
            point = {unknown: value, other: 0.75}
            assert_allclose(float(q.evaluate("mean_waiting_time", **point)), 2.0, rtol=1e-12)
            assert q.stable.subs({q.parameters[k]: v for k, v in point.items()}) == sympy.true
    # Of degree 9 in numbers only.
    many = symbolic("mmc", servers=8, service_rate=1)
    (rate,) = many.solve_for("arrival_rate", mean_waiting_time=sympy.Rational(1, 2))
    numeric = queues.mmc(arrival_rate=float(rate), service_rate=1.0, servers=8)
    assert_allclose(numeric.mean_waiting_time, 0.5, rtol=1e-11)
    (load,) = symbolic("mmcc", servers=1).solve_for(
        "arrival_rate", blocking_probability=sympy.Rational(1, 100)
    )
    assert sympy.simplify(load - mu / 99) == 0


def test_parameters_may_be_numbers_and_expressions():
    cycles = sympy.Symbol("n", positive=True)
    q = symbolic("md1", service_rate=1 / cycles, arrival_rate=0.1)
    assert q.mean_waiting_time.free_symbols == {cycles}
    slope = q.derivative("mean_waiting_time", by=cycles).subs(cycles, 4)
    exact = symbolic("md1", service_rate=1 / cycles, arrival_rate=sympy.Rational(1, 10))
    wanted = sympy.diff(cycles**2 / 10 / (2 * (1 - cycles / 10)), cycles).subs(cycles, 4)
    assert exact.derivative("mean_waiting_time", by=cycles).subs(cycles, 4) == wanted
    assert_allclose(float(slope), float(wanted))


def test_high_precision_is_the_reference_next_to_saturation():
    rate = 1 - 2.0**-40
    for name, whole in (("mm1", {}), ("mmc", {"servers": 3}), ("md1", {})):
        servers = whole.get("servers", 1)
        values = {"arrival_rate": rate * servers, "service_rate": 1.0}
        exact = symbolic(name, **whole).evaluate("mean_waiting_time", **values, digits=40)
        number = getattr(queues, name)(**whole, **values).mean_waiting_time
        assert abs(float(number / exact) - 1) < 1e-12
    with mpmath.workdps(30):
        wanted = (1 - mpmath.mpf(2) ** -40) * 2**40
        assert mpmath.almosteq(
            mpmath.mpf(str(symbolic("mm1").evaluate("mean_waiting_time", arrival_rate=rate, service_rate=1))),
            wanted,
            1e-25,
        )


def test_functions_take_arrays():
    wait = symbolic("mmc", servers=2).function("mean_waiting_time")
    rates = np.linspace(0.1, 1.9, 7)
    numeric = queues.mmc(arrival_rate=rates, service_rate=1.0, servers=2).mean_waiting_time
    assert_allclose(wait(arrival_rate=rates, service_rate=1.0), numeric, rtol=1e-11)


def test_printing():
    q = symbolic("mm1")
    assert repr(q).splitlines()[0] == "mm1, lambda/mu < 1"
    assert "mean_waiting_time = " in repr(q)
    assert "\\lambda" in q.latex("mean_response_time")
    assert symbolic("mmcc", servers=2).stable == sympy.true


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="SymbolicModel has no metric 'wait'"):
        symbolic("mm1").wait  # noqa: B018


def test_without_sympy_the_extra_is_named(monkeypatch):
    from qmodels import libraries

    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(ImportError, match=r"qmodels-toolkit\[symbolic\]"):
        libraries._Library("sympy", "symbolic").symbols("x")
