"""The wormhole model against kept simulations, BookSim2's and our own; see booksim_latency.py."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from qmodels.noc.solve_noc import solve_noc

REFERENCE = Path(__file__).parents[2] / "reference"


def _load(name):
    spec = importlib.util.spec_from_file_location(name, REFERENCE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


references, rings, metrics = (_load(n) for n in ("booksim_latency", "ring_saturation", "noc_metrics"))


@pytest.fixture(scope="module")
def errors():
    return list(references.errors())


@pytest.mark.in_ci(3)
@pytest.mark.parametrize(("load", "allowed"), [(0.1, 1.0), (0.3, 1.0), (0.5, 2.0), (0.7, 4.0), (0.85, 8.0)])
def test_mean_error_of_the_latency(errors, load, allowed):
    size = np.array([abs(latency) for _, at, latency, _ in errors if at == load])
    assert size.size >= 30
    assert np.isfinite(size).mean() > 0.95  # called unstable: a saturation rate more than 15 % too low
    assert size[np.isfinite(size)].mean() <= allowed


def test_mean_error_of_the_saturation_rate(errors):
    by_setting = {setting: abs(saturation) for setting, _, _, saturation in errors}
    assert np.mean(list(by_setting.values())) <= 8.0


def test_overload_is_called_unstable():
    saturation = {setting: row["saturation_rate"] for setting, row in _rows()}
    called = [not solve_noc(s.noc(min(1.0, 1.15 * rate))).stable for s, rate in saturation.items()]
    assert np.mean(called) >= 0.95


@pytest.mark.in_ci(2)
@pytest.mark.parametrize("kind", ["ring", "spidergon"])
@pytest.mark.parametrize("part", ["fit", "held out", "other traffic"])
def test_rings_collapse_where_simulations_do(kind, part):
    sizes, carried = [], []
    for setting, of, rate, congested in rings.read():
        if setting.topology == kind and of == part:
            answer = solve_noc(setting.noc())
            sizes.append(abs(answer.saturation_rate / rate - 1))
            carried.append(abs(answer.congested_rate / congested - 1))
            # Past the collapse nothing is called stable.
            assert not solve_noc(setting.noc(min(1.0, 1.2 * rate))).stable, setting
    assert len(sizes) >= 4
    assert np.mean(sizes) <= 0.08
    # A permutation has few packets that meet in a jam.
    assert np.mean(carried) <= 0.12 or part == "other traffic"


def test_the_kept_networks_are_those_of_the_command():
    assert [(s, part) for s, part, *_ in rings.read()] == rings.settings()


def test_a_jammed_ring_carries_what_the_simulator_says():
    noc = next(s for s, *_ in rings.read() if s.radix == 64 and s.traffic == "uniform").noc()
    rate = solve_noc(noc).saturation_rate
    below, beyond = (
        solve_noc(replace(noc, injection_rate=0.97 * rate)),
        solve_noc(replace(noc, injection_rate=1.2 * rate)),
    )
    assert below.stable and below.notes[0].startswith("metastable: once jammed, the network carries")
    assert not beyond.stable and np.isinf(beyond.packet_latency)
    assert beyond.delivered_rate == pytest.approx(64 * beyond.congested_rate)
    assert beyond.delivered_rate < 0.8 * below.delivered_rate


def _rows():
    for path in (references.BOOKSIM_FILE, references.FLIT_FILE):
        yield from references.read(path)


def test_zero_load_is_that_of_the_simulators():
    for setting, row in _rows():
        if row["load"] == 0.1:
            assert solve_noc(setting.noc()).zero_load_latency < row["packet_latency"] * 1.01


METRIC_REGIONS = ("bursts", "priorities", "rings, single flits")


@pytest.fixture(scope="module")
def metric_errors():
    return metrics.errors([one for one in metrics.read() if metrics.region_of(one[0]) in METRIC_REGIONS])


@pytest.mark.parametrize(
    ("region", "of", "metric", "allowed"),
    [
        ("rings, single flits", "all", "packet_latency_p99", {0.6: 6.5, 0.75: 6.5}),
        ("bursts", "all", "packet_latency", {0.4: 1.5, 0.6: 2.5, 0.75: 5.0}),
        ("priorities", "urgent", "packet_latency", {0.6: 4.5, 0.75: 4.5}),
        ("priorities", "all", "packet_latency", {0.6: 5.5, 0.75: 5.5}),
    ],
)
def test_errors_with_bursts_and_priorities(metric_errors, region, of, metric, allowed):
    for load, most in allowed.items():
        values = metric_errors[region, of, metric, load]
        assert values.size >= 18 and np.abs(values).mean() <= most
