"""The wormhole model against kept simulations, BookSim2's and our own; see booksim_latency.py."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from qmodels.noc.error_map import error_table, measured_error, reach
from qmodels.noc.solve_noc import solve_noc

FILE = Path(__file__).parents[2] / "reference" / "booksim_latency.py"
spec = importlib.util.spec_from_file_location("booksim_latency", FILE)
references = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = references  # dataclasses look there
spec.loader.exec_module(references)


@pytest.fixture(scope="module")
def errors():
    return list(references.errors())


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
    # The others are metastable rings, whose state without congestion the model takes to last.
    calm = [
        s.topology in ("ring", "spidergon", "torus") or stop
        for s, stop in zip(saturation, called, strict=True)
    ]
    assert np.mean(called) >= 0.85
    assert np.mean(calm) >= 0.95


def _rows():
    for path in (references.BOOKSIM_FILE, references.FLIT_FILE):
        yield from references.read(path)


def test_zero_load_is_that_of_the_simulators():
    for setting, row in _rows():
        if row["load"] == 0.1:
            assert solve_noc(setting.noc()).zero_load_latency < row["packet_latency"] * 1.01


def test_the_error_map_is_that_of_the_references(errors):
    for (family, load), mean in error_table().items():
        size = np.array([abs(latency) for s, at, latency, _ in errors if s.topology == family and at == load])
        size = size[np.isfinite(size)]
        assert size.mean() == pytest.approx(mean, abs=0.011)


def test_the_earliest_saturation_is_that_of_the_references(errors):
    for family, (least, nodes) in reach().items():
        mine = [
            (s.nodes, 1 / (1 + saturation / 100)) for s, _, _, saturation in errors if s.topology == family
        ]
        assert least == pytest.approx(min(1.0, *(part for _, part in mine)), abs=1e-3)
        assert nodes == max(n for n, _ in mine)


def test_stated_errors_hold_for_the_first_to_saturate():
    # At a part of the model's saturation rate a Spidergon may be that much nearer to its own.
    at_half = measured_error("spidergon", np.array([0.5]))["packet_latency"][0]
    assert at_half == pytest.approx(np.interp(0.5 / 0.722, [0.5, 0.7], [0.25, 0.68]), rel=0.02)
