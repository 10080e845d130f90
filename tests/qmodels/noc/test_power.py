"""Power of routers: linear in what it is made of, and a calibration that finds what was put in."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmodels import Noc, ring
from qmodels.noc import Router, permutation, transactions
from qmodels.noc.power import PowerParameters, calibrate_power, router_power

positive = st.floats(0.01, 10)
TECHNOLOGY = PowerParameters(width_mw=0.05, buffer_mw=0.002, hop_pj=0.25)
LOOP = Noc(topology=ring(4), traffic=transactions(initiators=[0], channels=[2], read_fraction=0.25))


def test_counted_by_hand():
    # A ring of 4: 8 links and 4 injections are 12 input ports of 64 bits, 2 x 3 flits of buffer each. One
    # flow over 2 links and 3 routers, 0.1 packets of 5 flits.
    noc = Noc(
        topology=ring(4), router=Router(buffer_flits=3), traffic=permutation([2, 1, 0, 3]), link_width=8,
        flits_per_packet=5, injection_rate=0.1, clock_ghz=2.0,
    )  # fmt: skip
    power = router_power(noc, TECHNOLOGY)
    assert power.width == pytest.approx(12 * 64 * 0.05e-3)
    assert power.buffers == pytest.approx(12 * 6 * 64 * 0.002e-3)
    assert power.traffic == pytest.approx(2 * 0.1 * 5 * 3 * 64 * 2.0 * 0.25e-3)
    assert power.total == pytest.approx(power.width + power.buffers + power.traffic)


@given(rate=st.floats(0.0, 0.05), factor=positive)
def test_traffic_counts_in_proportion(rate, factor):
    one, more = (router_power(LOOP, TECHNOLOGY, rate=r) for r in (rate, rate * factor))
    assert more.traffic == pytest.approx(factor * one.traffic)
    assert (more.width, more.buffers) == (one.width, one.buffers)


def test_transactions_by_hand():
    # 9 + 1 flits over 3 routers there and back, reads the other way round; 128 bits.
    assert router_power(LOOP, TECHNOLOGY, rate=0.01).traffic == pytest.approx(0.01 * 10 * 3 * 128 * 0.25e-3)


@given(width=positive, buffers=positive, hop=positive)
def test_calibration_finds_what_was_put_in(width, buffers, hop):
    truth = PowerParameters(width_mw=width, buffer_mw=buffers, hop_pj=hop)
    nocs = [
        Noc(injection_rate=rate, link_width=w, router=Router(buffer_flits=b))
        for rate, w, b in [(0.0, 8, 4), (0.02, 8, 8), (0.01, 16, 4), (0.02, 32, 6), (0.03, 16, 8)]
    ]
    fit = calibrate_power(nocs, [router_power(noc, truth).total for noc in nocs])
    for name in ("width_mw", "buffer_mw", "hop_pj"):
        assert getattr(fit.parameters, name) == pytest.approx(getattr(truth, name), rel=1e-6)
    assert np.abs(fit.residual).max() < 1e-9


def test_standard_errors_are_those_of_a_regression():
    rng = np.random.default_rng(3)
    nocs = [
        Noc(injection_rate=rate, link_width=w, router=Router(buffer_flits=b))
        for rate in (0.01, 0.02, 0.03)
        for w, b in [(8, 4), (16, 8), (32, 6), (8, 9)]
    ]
    watts = np.array([router_power(noc, TECHNOLOGY).total for noc in nocs])
    fits = [calibrate_power(nocs, watts * (1 + 0.02 * rng.standard_normal(watts.size))) for _ in range(60)]
    scatter = np.std([fit.parameters.hop_pj for fit in fits])
    stated = np.sqrt(np.mean([fit.standard_error.hop_pj**2 for fit in fits]))
    assert scatter == pytest.approx(stated, rel=0.3)  # 60 draws know it to 9 %
    assert np.allclose(np.diag(fits[0].correlation), 1)
    assert "+-" in repr(fits[0]) and "residuals" in repr(fits[0])
