from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from validate import RunSet, calibrate

RATES = np.linspace(0.02, 0.2, 8)
BOUNDS = {"pipeline": (0.0, 50.0), "service": (1.0, 4.9)}


def link(rate, pipeline, service):
    """Latency of a link as M/D/1 behind a pipeline."""
    return {
        "latency": pipeline + service + rate * service**2 / (2 * (1 - rate * service)),
        "busy": rate * service,
    }


def observed(pipeline=8.0, service=4.0, noise=0.0, seed=0, rates=RATES):
    values = np.array([link(rate, pipeline, service)["latency"] for rate in rates])
    values = values * (1 + noise * np.random.default_rng(seed).standard_normal(len(rates)))
    return RunSet.from_columns(settings={"rate": rates}, metrics={"latency": values})


@given(st.floats(1.0, 45.0), st.floats(1.2, 4.8))
def test_recovers_known_parameters(pipeline, service):
    fit = calibrate(link, observed(pipeline, service), BOUNDS)
    assert fit.parameters["pipeline"].best == pytest.approx(pipeline, rel=1e-5)
    assert fit.parameters["service"].best == pytest.approx(service, rel=1e-5)
    assert fit.rms_error < 1e-6 and fit.leave_one_out.largest < 1e-5 and fit.at_bound == ()


def test_intervals_cover_the_truth_at_the_nominal_rate():
    """Of 100 fits, 90 % intervals miss 10 on average; 2 to 20 is 99.8 % of the binomial law."""
    misses = {"pipeline": 0, "service": 0}
    for seed in range(100):
        runs = observed(noise=0.01, seed=seed)
        fit = calibrate(link, runs, BOUNDS, confidence=0.9, leave_out="metric")
        misses["pipeline"] += 8.0 not in fit.parameters["pipeline"]
        misses["service"] += 4.0 not in fit.parameters["service"]
    assert all(2 <= missed <= 20 for missed in misses.values()), misses


def test_the_covariance_is_that_of_linear_least_squares():
    """A straight line, against the textbook's closed forms for slope and intercept."""
    x = np.array([1.0, 2.0, 4.0, 5.0, 8.0])
    y = np.array([2.1, 3.9, 8.3, 9.8, 16.2])
    runs = RunSet.from_columns(settings={"x": x}, metrics={"y": y})
    fit = calibrate(
        lambda x, slope, shift: slope * x + shift,
        runs,
        {"slope": (-5, 5), "shift": (-5, 5)},
        errors="absolute",
    )
    spread = np.sum((x - x.mean()) ** 2)
    slope = np.sum((x - x.mean()) * y) / spread
    shift = y.mean() - slope * x.mean()
    variance = np.sum((y - slope * x - shift) ** 2) / 3
    assert fit.parameters["slope"].best == pytest.approx(slope, rel=1e-6)
    assert fit.parameters["shift"].best == pytest.approx(shift, rel=1e-5)
    assert fit.covariance[0, 0] == pytest.approx(variance / spread, rel=1e-5)
    assert fit.covariance[1, 1] == pytest.approx(variance * (1 / 5 + x.mean() ** 2 / spread), rel=1e-5)
    assert fit.correlation[0, 1] == pytest.approx(-x.mean() / np.sqrt(np.mean(x**2)), rel=1e-5)
    # Student's t with 3 degrees of freedom at 97.5 %.
    assert fit.parameters["slope"].half_width == pytest.approx(
        3.182446 * np.sqrt(variance / spread), rel=1e-5
    )


def test_the_error_of_what_is_left_out_is_that_of_fits_without_it():
    runs = observed(noise=0.02, seed=3)
    fit = calibrate(link, runs, BOUNDS)
    errors = []
    for k, run in enumerate(runs):
        rest = replace(runs, runs=tuple(one for one in runs if one is not run))
        without = calibrate(link, rest, BOUNDS)
        values = {name: value.best for name, value in without.parameters.items()}
        errors.append(abs(link(run.settings["rate"], **values)["latency"] / run.metrics["latency"].best - 1))
        assert fit.leave_one_out.by_group[f"run {k}"] == pytest.approx(errors[-1], rel=1e-3)
    assert fit.leave_one_out.mean == pytest.approx(np.mean(errors), rel=1e-3)
    assert (
        fit.leave_one_out.largest == pytest.approx(max(errors), rel=1e-3)
        and fit.leave_one_out.mean > fit.rms_error
    )


def test_groups_are_left_out_together():
    rates = np.repeat([0.05, 0.1, 0.15, 0.2], 2)
    fit = calibrate(link, observed(noise=0.01, rates=rates), BOUNDS, leave_out="rate")
    assert list(fit.leave_one_out.by_group) == ["rate 0.05", "rate 0.1", "rate 0.15", "rate 0.2"]


def test_metrics_and_weights():
    both = RunSet.from_columns(
        settings={"rate": RATES},
        metrics={"latency": [20.0] * 8, "busy": RATES * 3, "other": np.ones(8)},
    )
    light = calibrate(link, both, BOUNDS, metrics={"latency": 1e-4, "busy": 1.0})
    assert light.parameters["service"].best == pytest.approx(3.0, rel=1e-3) and light.observations == 16
    heavy = calibrate(link, both, BOUNDS, metrics={"latency": 1.0, "busy": 1e-4})
    assert abs(heavy.parameters["service"].best - 3.0) > 0.5
    assert calibrate(link, both, BOUNDS).observations == 16


def test_a_parameter_at_its_bound_is_flagged_and_has_no_interval():
    fit = calibrate(link, observed(noise=0.001), BOUNDS | {"pipeline": (0.0, 7.0)})
    assert fit.at_bound == ("pipeline",) and fit.parameters["pipeline"].best == pytest.approx(7.0)
    assert fit.parameters["pipeline"].confidence == 0 and fit.parameters["service"].half_width > 0
    assert np.all(fit.covariance[0] == 0) and "at its bound" in repr(fit)


@dataclass(frozen=True, kw_only=True)
class Wire:
    cycles: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Chip:
    wire: Wire = field(default_factory=Wire)
    port: float = 1.0
    hops: float = 1.0


def test_fields_of_a_spec():
    hops = np.array([1.0, 2.0, 3.0, 5.0])
    runs = RunSet.from_columns(settings={"hops": hops, "seed": [1] * 4}, metrics={"latency": 6 + 2.5 * hops})

    def solve(chip):
        return {"latency": 2 * chip.port + chip.hops * chip.wire.cycles}

    fit = calibrate(Chip(hops=9.0), runs, {"wire.cycles": (0, 10), "port": (0, 10)}, solve=solve)
    assert fit.spec.port == pytest.approx(3.0) and fit.spec.wire.cycles == pytest.approx(2.5)
    assert fit.spec.hops == 9.0


def test_the_librarys_own_model_of_a_spec():
    """A processor's own answers, recovered through ``qmodels.solve``."""
    from qmodels import solve
    from qmodels.systems.cache.llc_processor import LlcProcessor
    from qmodels.systems.spec.fields import replace_fields

    truth = replace_fields(LlcProcessor(), {"popularity.exponent": 0.75})
    loads = [0.3, 0.7]
    values = [solve(replace_fields(truth, {"load": load})).waiting_latency for load in loads]
    runs = RunSet.from_columns(settings={"load": loads}, metrics={"waiting_latency": values})
    fit = calibrate(LlcProcessor(), runs, {"popularity.exponent": (0.6, 0.9)}, leave_out="metric")
    assert fit.parameters["popularity.exponent"].best == pytest.approx(0.75, rel=1e-4)
    assert fit.spec.popularity.exponent == fit.parameters["popularity.exponent"].best


def test_prints_and_becomes_a_dictionary():
    fit = calibrate(link, observed(noise=0.01), BOUNDS)
    text = repr(fit)
    assert text.splitlines()[1].startswith("pipeline ") and "relative error of 8 observations" in text
    plain = fit.to_dict()
    assert plain["parameters"]["service"]["best"] == fit.parameters["service"].best
    assert plain["leave_one_out"]["by_group"]["run 0"] >= 0 and plain["at_bound"] == []


def test_parts_of_a_network():
    """Service times of a closed network found from its cycle times, through ``qmodels.solve``."""
    from qmodels import solve
    from qmodels.systems.laws.times import Exponential
    from qmodels.systems.stations.parts import JobClass, Station
    from qmodels.systems.stations.queueing_network import QueueingNetwork

    def network(jobs, disk):
        return QueueingNetwork(
            stations=[
                Station(name="cpu", service=Exponential(mean=1.0)),
                Station(name="disk", service=Exponential(mean=disk)),
            ],
            classes=JobClass(population=jobs),
            routing={"cpu": "disk", "disk": "cpu"},
        )

    jobs = [1, 2, 5]
    runs = RunSet.from_columns(
        settings={"population": jobs},
        metrics={"system_response_time": [solve(network(n, 2.5))["system_response_time"] for n in jobs]},
    )
    fit = calibrate(network(1, 1.0), runs, {"disk.service.mean": (0.5, 5.0)})
    assert fit.spec == network(1, fit.parameters["disk.service.mean"].best)
    assert fit.parameters["disk.service.mean"].best == pytest.approx(2.5, rel=1e-6)


@settings(max_examples=15)
@given(st.floats(1.5, 8.0), st.floats(1.5, 8.0), st.floats(0.0, 0.05))
def test_refuses_a_product_whatever_its_factors(a, b, noise):
    rng = np.random.default_rng(7)
    values = [link(rate, a * b, 3.0)["latency"] * (1 + noise * rng.standard_normal()) for rate in RATES]
    runs = RunSet.from_columns(settings={"rate": RATES}, metrics={"latency": values})

    def model(rate, first, second, service):
        return link(rate, first * second, service)

    with pytest.raises(ValueError, match="first and second cannot be told apart"):
        calibrate(model, runs, {"first": (1, 9), "second": (1, 9), "service": (1, 4.9)})


def product(rate, a, b, c):
    return {"latency": c + 100 * rate * a * b}


def test_observations_at_one_load_cannot_tell_pipeline_from_service():
    with pytest.raises(ValueError, match="pipeline and service cannot be told apart"):
        calibrate(link, observed(noise=0.01, rates=[0.1] * 8), BOUNDS)
