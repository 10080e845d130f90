"""The workload: rates, segments and realised packets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from qmodels import Workload
from qmodels.traffic import OnOff, Poisson, Recorded, SizeLaw, Trace, bimodal, fixed, imix


def trace(seed: int = 1, count: int = 500) -> Trace:
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.exponential(1e5, size=count))
    return Trace(times_ns=times, bytes=rng.choice([40, 70, 1514], size=count), source="generated")


@given(gbps=st.floats(0.01, 1000), factor=st.floats(0.1, 10), size=st.integers(1, 9000))
def test_rate_times_size_is_the_offered_load(gbps: float, factor: float, size: int) -> None:
    workload = Workload(sizes=fixed(bytes=size), offered_gbps=gbps, load_factor=factor)
    assert_allclose(workload.packet_rate * size * 8, gbps * factor, rtol=1e-12)


def test_rate_may_be_a_sweep() -> None:
    loads = np.array([0.5, 1.0, 2.0])
    sweep = Workload(load_factor=loads)
    assert_allclose(sweep.packet_rate, [Workload(load_factor=x).packet_rate for x in loads], rtol=1e-15)


def test_scalars_stay_what_they_are() -> None:
    workload = Workload(lookups_per_packet=2, table_entries=100, segment_bytes=128)
    assert type(workload.lookups_per_packet) is int and type(workload.segment_bytes) is int
    assert isinstance(workload.packet_rate, float)
    assert workload == Workload(lookups_per_packet=2, table_entries=100, segment_bytes=128)
    assert hash(workload) == hash(replace(workload, arrivals=Poisson()))


def test_segment_law_and_popularity() -> None:
    workload = Workload(segment_bytes=512, table_entries=10, zipf_exponent=0.0)
    counts, probabilities = workload.segment_law
    assert counts.tolist() == [1, 2, 3]
    assert_allclose(probabilities, [7 / 12, 4 / 12, 1 / 12])
    assert_allclose(workload.popularity.probabilities(), np.full(10, 0.1))


@pytest.mark.parametrize("arrivals", [Poisson(), OnOff(on_packets=4, peak_to_mean=3)])
def test_generated_packets_have_the_offered_rate(arrivals: Poisson | OnOff) -> None:
    workload = Workload(arrivals=arrivals, offered_gbps=20.0, load_factor=1.5)
    n = 200_000
    packets = workload.packets(np.random.default_rng(4), n)
    assert packets.times_ns.shape == packets.bytes.shape == packets.segments.shape == (n,)
    assert np.all(np.diff(packets.times_ns) >= 0)
    assert_array_equal(packets.segments, np.ceil(packets.bytes / 64))
    # Five standard errors of the mean gap, whose squared coefficient of variation is scv.
    assert packets.times_ns[-1] * workload.packet_rate / n == pytest.approx(
        1, abs=5 * np.sqrt(arrivals.scv / n)
    )
    assert 8 * packets.bytes.sum() / packets.times_ns[-1] == pytest.approx(30, rel=0.02)


def test_load_factor_divides_time_and_changes_nothing_else() -> None:
    for workload in (Workload(), Workload.from_trace(trace())):
        slow = workload.packets(np.random.default_rng(8), 200)
        fast = replace(workload, load_factor=4.0).packets(np.random.default_rng(8), 200)
        assert_allclose(fast.times_ns * 4, slow.times_ns, rtol=1e-12)
        assert_array_equal(fast.bytes, slow.bytes)


def test_a_trace_is_rescaled_to_the_offered_rate() -> None:
    recorded = trace()
    workload = Workload.from_trace(recorded, offered_gbps=100.0, load_factor=0.5)
    whole = workload.packets(np.random.default_rng(0), len(recorded))
    rate = (len(recorded) - 1) / whole.times_ns[-1]
    assert 8 * rate * whole.bytes.mean() == pytest.approx(50.0, rel=1e-12)
    assert_array_equal(whole.bytes, recorded.bytes)
    assert whole.times_ns[0] == 0
    assert workload.packet_rate == pytest.approx(rate, rel=1e-12)


def test_a_part_of_a_trace_is_consecutive_and_starts_anywhere() -> None:
    recorded = trace()
    workload = Workload.from_trace(recorded)
    scale = recorded.packet_rate / workload.packet_rate
    rng = np.random.default_rng(9)
    starts = set()
    for _ in range(50):
        part = workload.packets(rng, 100)
        matches = [
            k
            for k in range(401)
            if np.array_equal(recorded.bytes[k : k + 100], part.bytes)
            and np.allclose(
                (recorded.times_ns[k : k + 100] - recorded.times_ns[k]) * scale, part.times_ns, rtol=1e-12
            )
        ]
        assert len(matches) == 1
        starts.add(matches[0])
    assert len(starts) > 30


def test_a_trace_is_not_repeated() -> None:
    recorded = trace(count=50)
    packets = Workload.from_trace(recorded).packets(np.random.default_rng(0), 1000)
    assert packets.bytes.size == 50


def test_drawn_arrays_are_the_callers_own() -> None:
    recorded = trace(count=50)
    packets = Workload.from_trace(recorded).packets(np.random.default_rng(0), 50)
    for array in (packets.times_ns, packets.bytes, packets.segments):
        assert array.flags.writeable and array.flags.c_contiguous
    packets.bytes[:] = 1
    assert recorded.bytes.max() == 1514


def test_a_trace_brings_its_sizes() -> None:
    recorded = Recorded(trace=trace())
    assert Workload(arrivals=recorded).sizes == SizeLaw.measured(recorded.trace.bytes)
    assert replace(Workload(), arrivals=recorded) == Workload.from_trace(recorded.trace)
    back = replace(Workload.from_trace(recorded.trace), arrivals=Poisson())
    assert back.sizes == recorded.sizes  # the same packets, Poisson instead of recorded gaps
    assert Workload(sizes=imix()) == Workload()


BAD = [
    ({"sizes": "imix"}, "workload.sizes must be a SizeLaw, got 'imix'"),
    (
        {"arrivals": "poisson"},
        "workload.arrivals must be Poisson, OnOff, Recorded, Deterministic, Exponential, Erlang, Gamma, "
        "LogNormal, Weibull, Pareto, Uniform, Geometric, HyperExponential, PhaseType, MAP, Empirical "
        "or Replay, got 'poisson'",
    ),
    (
        {"arrivals": Recorded(trace=trace()), "sizes": bimodal(small=64, large=1500, small_fraction=0.5)},
        "workload.sizes must be left out or be the trace's own with recorded arrivals, "
        "got 2 sizes with a mean of 782 bytes",
    ),
]


@pytest.mark.parametrize(("fields", "message"), BAD)
def test_bad_workloads_say_what_is_wrong(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        Workload(**fields)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_a_place_of_the_trace_can_be_chosen():
    trace = Trace(times_ns=np.arange(10) * 100.0, bytes=np.arange(64, 74), source="test")
    load = Workload.from_trace(trace)
    rng = np.random.default_rng(0)
    assert load.packets(rng, 4, place=0.0).bytes.tolist() == [64, 65, 66, 67]
    assert load.packets(rng, 4, place=1.0).bytes.tolist() == [70, 71, 72, 73]
    with pytest.raises(ValueError, match=r"place must be in \[0, 1\], got 1.5"):
        load.packets(rng, 4, place=1.5)


@given(small=st.floats(0, 1e-100, exclude_max=True))
def test_what_no_unit_can_tell_from_0_is_0(small):
    """In every field that may be 0; one that may not refuses it."""
    assert Workload(hold_ns=small) == Workload(hold_ns=0.0)
    assert Workload(hold_ns=np.array([small, 3.0])).hold_ns.tolist() == [0.0, 3.0]
    assert Workload(zipf_exponent=small).zipf_exponent == 0
    with pytest.raises(ValueError, match=r"^workload.offered_gbps must be (finite and > 0|>= 1e-100), got"):
        Workload(offered_gbps=small)
