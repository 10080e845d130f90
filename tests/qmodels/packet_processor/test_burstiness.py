"""Burstiness: on/off arrivals against their own counts, recorded ones against what they were drawn from."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import qmodels as qm
from qmodels import traffic
from qmodels.packet_processor.burstiness import burstiness
from qmodels.systems.traffic.workload import Workload

TRACES = Path(os.environ.get("QMODELS_TRACES", Path(__file__).parents[4] / "shared" / "traces"))
BELLCORE = TRACES / "BC-pAug89-100k.TL"


def recorded(times: np.ndarray, sizes: Any, **changes: Any) -> Workload:
    return Workload.from_trace(
        traffic.Trace(times_ns=times - times[0], bytes=sizes, source="test"), **changes
    )


def test_poisson_has_dispersion_one_and_nothing_outlasts_anything() -> None:
    found = burstiness(Workload(), (3,))
    assert found.dispersion.tolist() == found.outlasting.tolist() == [1.0] * 3


@pytest.mark.parametrize(("packets", "peak"), [(4, 2.0), (10, 3.0), (200, 5.0)])
def test_on_off_arrivals_have_the_dispersion_of_what_they_draw(packets: float, peak: float) -> None:
    """Counts of 2,000 blocks of a realisation, at the scale of the hold and at a long one."""
    arrivals = traffic.OnOff(on_packets=packets, peak_to_mean=peak)
    times = np.cumsum(arrivals.gaps(np.random.default_rng(3), 2_000_000))
    long = 1000.0 if packets < 100 else 20_000.0
    for hold, rtol in ((20.0, 0.1), (long, 0.35)):
        counts = np.histogram(times, bins=int(times[-1] / hold), range=(0, times[-1] // hold * hold))[0]
        expected = float(counts.var() / counts.mean())
        workload = Workload(arrivals=arrivals, sizes=traffic.fixed(bytes=64))
        workload = replace(workload, hold_ns=hold / workload.packet_rate)
        found = burstiness(workload, (1,))
        assert_allclose(found.dispersion / found.outlasting, expected, rtol=rtol)
    assert_allclose(found.dispersion, arrivals.scv)


def test_sizes_that_vary_dilute_bursts() -> None:
    burst = traffic.OnOff(on_packets=10, peak_to_mean=3)
    same, mixed = (
        burstiness(Workload(arrivals=burst, sizes=sizes), (1,)).dispersion[0]
        for sizes in (traffic.fixed(bytes=64), traffic.imix())
    )
    assert 1 < mixed < same


def test_a_recorded_stream_is_as_bursty_as_its_law() -> None:
    for law in (
        traffic.Poisson(),
        traffic.OnOff(on_packets=4, peak_to_mean=2),
        traffic.OnOff(on_packets=10, peak_to_mean=3),
    ):
        workload = Workload(arrivals=law)
        drawn = workload.packets(np.random.default_rng(5), 100_000)
        found = burstiness(recorded(drawn.times_ns, drawn.bytes, hold_ns=10_000.0), (1,))
        # The largest of eight estimates, the last from a few dozen blocks.
        assert_allclose(found.dispersion, burstiness(workload, (1,)).dispersion, rtol=0.35)
        assert found.outlasting[0] < 1.5


def test_bursts_that_outlast_the_hold_are_told_from_short_ones() -> None:
    arrivals = traffic.OnOff(on_packets=5000, peak_to_mean=2)
    holds = np.array([0.0, 1e3, 1e5, 1e9])
    found = burstiness(Workload(arrivals=arrivals, hold_ns=holds), (4,))
    assert np.all(np.diff(found.outlasting) < 0) and found.outlasting[0] > 100
    assert_allclose(found.outlasting[-1], 1.0, rtol=1e-2)
    # One slow change of the rate: a quarter of the time at four times the rate of the rest.
    rng = np.random.default_rng(1)
    gaps = rng.exponential(size=40_000) * np.where(np.arange(40_000) < 23_000, 0.4, 1.6) * 40.0
    slow = burstiness(recorded(np.cumsum(gaps), rng.choice([64, 576], 40_000)), (1,))
    assert slow.outlasting[0] > 1.5


def answer(arrivals: Any, **changes: Any) -> Any:
    base = qm.PacketProcessor()
    workload = replace(base.workload, arrivals=arrivals, offered_gbps=20.0, **changes)
    return qm.solve(replace(base, workload=workload))


def said(result: Any, words: str) -> bool:
    return any(words in doubt and applies for doubt, applies in result.doubts.items())


def test_an_answer_knows_bursts_beyond_those_measured_and_names_them() -> None:
    assert not said(answer(traffic.Poisson()), "bursts")
    wild = answer(traffic.OnOff(on_packets=400, peak_to_mean=4))
    assert not wild.validated
    assert said(wild, "bursts beyond those measured: arrivals") and said(wild, "outlast the hold")
    assert "bursts beyond those measured" in repr(wild) and "outside the range" in repr(wild)
    assert not wild.error["packet_latency"].known
    lengths = answer(traffic.OnOff(on_packets=np.array([1.0, 400.0]), peak_to_mean=4))
    assert lengths.validated.shape == (2,) and not lengths.validated[1]
    beyond = next(mask for words, mask in lengths.doubts.items() if "beyond those measured" in words)
    assert beyond.tolist() == [False, True]


@pytest.mark.skipif(not BELLCORE.exists(), reason="needs the Bellcore trace")
def test_bellcore_is_not_called_validated() -> None:
    """At 40 Gb/s, step 16: 477 ns where the simulation has 781."""
    lines = np.loadtxt(BELLCORE)
    trace = traffic.Trace(
        times_ns=(lines[:, 0] - lines[0, 0]) * 1e9, bytes=lines[:, 1].astype(int), source="BC"
    )
    base = qm.PacketProcessor()
    for gbps, channels, step in ((25.0, 4, 4), (40.0, 4, 1), (40.0, 8, 16)):
        result = qm.solve(
            replace(
                base,
                workload=Workload.from_trace(trace, offered_gbps=gbps),
                dram=replace(base.dram, channels=channels, interleaving_step=step),
            )
        )
        assert not result.validated
        assert said(result, "bursts beyond those measured") and said(result, "outlast the hold")
