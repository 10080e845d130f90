"""The workload and its laws: rates, segments, arrivals, sizes, popularity and realised packets."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from qmodels import Workload
from qmodels.systems.traffic.sizes import LAWS, segment_count
from qmodels.traffic import OnOff, Poisson, Recorded, SizeLaw, Trace, Zipf, bimodal, fixed, heavy_tailed, imix


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


def gap_moment(on_packets: float, peak: float, order: int) -> float:
    """Moment of the gap from the generator of the modulating chain: after an arrival the source is ON."""
    mean_on = on_packets / peak  # so many packets at the peak rate
    mean_off = mean_on * (peak - 1)  # so that the source is ON for 1/peak of the time
    silent = np.array([[-(peak + 1 / mean_on), 1 / mean_on], [1 / mean_off, -1 / mean_off]])
    power = np.linalg.matrix_power(np.linalg.inv(-silent), order)
    return float(np.array([1.0, 0.0]) @ power @ np.ones(2)) * (1, 1, 2)[order]


@given(on_packets=st.floats(1, 1e3), peak=st.floats(1.05, 50))
def test_gaps_have_the_moments_of_the_modulated_process(on_packets: float, peak: float) -> None:
    law = OnOff(on_packets=on_packets, peak_to_mean=peak)
    probability, fast, slow = law.phases
    assert 0 <= probability <= 1 and fast >= slow > 0
    # Measured over 20,000 laws: 4e-13 for the phases, 2e-15 for the closed form of the scv.
    assert_allclose(gap_moment(on_packets, peak, 1), 1, rtol=1e-13)
    assert_allclose(probability / fast + (1 - probability) / slow, 1, rtol=2e-12)
    second = gap_moment(on_packets, peak, 2)
    assert_allclose(2 * (probability / fast**2 + (1 - probability) / slow**2), second, rtol=2e-12)
    assert_allclose(law.scv, second - 1, rtol=1e-13)


@pytest.mark.parametrize("law", [Poisson(), OnOff(on_packets=5, peak_to_mean=3)])
def test_generated_gaps_follow_the_law(law: Poisson | OnOff) -> None:
    gaps = law.gaps(np.random.default_rng(11), 100_000)
    probability, fast, slow = law.phases if isinstance(law, OnOff) else (1.0, 1.0, 1.0)

    def distribution(t: np.ndarray) -> np.ndarray:
        return 1 - probability * np.exp(-fast * t) - (1 - probability) * np.exp(-slow * t)

    assert stats.kstest(gaps, distribution).pvalue > 1e-3
    assert abs(gaps.mean() - 1) < 5 * np.sqrt(law.scv / gaps.size)


def test_burstiness_may_be_a_sweep() -> None:
    law = OnOff(on_packets=np.array([1.0, 10.0]), peak_to_mean=2.0)
    singles = [OnOff(on_packets=n, peak_to_mean=2.0) for n in (1.0, 10.0)]
    assert_allclose(law.scv, [one.scv for one in singles], rtol=1e-15)
    assert_allclose(np.array(law.phases), np.array([one.phases for one in singles]).T, rtol=1e-15)


def test_recorded_arrivals_report_their_trace() -> None:
    trace = Trace(times_ns=np.array([0, 1, 4]), bytes=np.array([64, 64, 1500]), source="by hand")
    recorded = Recorded(trace=trace)
    assert recorded.scv == pytest.approx(0.25)  # gaps 1 and 3: variance 1, mean 2
    assert recorded.sizes == SizeLaw(bytes=(64, 1500), probability=(2 / 3, 1 / 3))
    same = Trace(times_ns=trace.times_ns + 7, bytes=trace.bytes, source="elsewhere")
    assert recorded == Recorded(trace=same) and hash(recorded) == hash(Recorded(trace=same))


def test_poisson_has_scv_one_and_repeats_with_the_seed() -> None:
    assert Poisson().scv == 1.0
    assert_array_equal(
        Poisson().gaps(np.random.default_rng(2), 9), Poisson().gaps(np.random.default_rng(2), 9)
    )


packets = st.lists(st.integers(1, 65535), min_size=1, max_size=60)


@given(sizes=packets, segment=st.integers(1, 2048))
def test_law_of_observed_packets_counts_them(sizes: list[int], segment: int) -> None:
    law = SizeLaw.measured(sizes)
    assert_allclose(law.mean_bytes, sum(sizes) / len(sizes), rtol=1e-12)
    assert law.bytes == tuple(sorted(set(sizes)))

    counts, probabilities = law.segments(segment)
    by_hand = [math.ceil(size / segment) for size in sizes]
    assert counts.tolist() == sorted(set(by_hand))
    assert_allclose(probabilities, [by_hand.count(n) / len(sizes) for n in counts], rtol=1e-12)
    assert_array_equal(segment_count(sizes, segment), by_hand)


@given(sizes=packets, seed=st.integers(0, 2**32 - 1))
def test_samples_come_from_the_law_and_repeat_with_the_seed(sizes: list[int], seed: int) -> None:
    law = SizeLaw.measured(sizes)
    drawn = law.sample(np.random.default_rng(seed), 50)
    assert set(drawn.tolist()) <= set(sizes)
    assert_array_equal(drawn, law.sample(np.random.default_rng(seed), 50))


def test_sample_frequencies_are_the_probabilities() -> None:
    law = SizeLaw(bytes=(64, 128, 594, 1518), probability=(0.5, 0.0, 0.3, 0.2))
    n = 200_000
    drawn = law.sample(np.random.default_rng(3), n)
    for size, p in zip(law.bytes, law.probability, strict=True):
        # Five standard deviations of a binomial share; exactly 0 where the probability is.
        assert abs(np.mean(drawn == size) - p) <= 5 * math.sqrt(p * (1 - p) / n)


def test_imix_is_seven_four_one() -> None:
    law = imix()
    assert law.bytes == (64, 594, 1518)
    assert_allclose(np.array(law.probability) * 12, [7, 4, 1], rtol=1e-15)


def test_fixed_and_bimodal() -> None:
    assert fixed(bytes=100) == SizeLaw(bytes=(100,), probability=(1.0,))
    assert bimodal(small=70, large=1514, small_fraction=0.25).mean_bytes == 0.25 * 70 + 0.75 * 1514
    assert bimodal(small=70, large=1514, small_fraction=1.0).mean_bytes == 70


@given(shape=st.floats(0.05, 5), low=st.integers(1, 500), span=st.integers(1, 3000))
def test_heavy_tail_is_a_bounded_pareto_law(shape: float, low: int, span: int) -> None:
    law = heavy_tailed(shape=shape, minimum=low, maximum=low + span)
    reference = stats.truncpareto(b=shape, c=(low + span + 1) / low, scale=low)
    edges = np.arange(low, low + span + 1)
    assert law.bytes == tuple(edges.tolist())
    # Measured over 2,000 laws: 2e-14.
    assert_allclose(np.cumsum(law.probability), reference.cdf(edges + 1.0), atol=1e-12)
    assert sum(law.probability) == pytest.approx(1, abs=1e-12)


def test_equal_laws_are_equal_and_hash_alike() -> None:
    ours = SizeLaw(bytes=(64, 1500), probability=(0.5, 0.5))
    theirs = SizeLaw(bytes=np.array([64, 1500]), probability=np.array([0.5, 0.5]))  # type: ignore[arg-type]
    assert ours == theirs and hash(ours) == hash(theirs)
    assert all(type(size) is int for size in theirs.bytes)


def test_the_largest_size_can_be_drawn_although_the_sum_is_not_quite_one() -> None:
    law = SizeLaw(bytes=(1, 2), probability=(0.5, 0.5 - 1e-10))
    almost_one = type("Rng", (), {"random": lambda self, count: np.full(count, 1 - 1e-16)})()
    assert law.sample(almost_one, 1).tolist() == [2]


def test_every_named_law_can_be_made() -> None:
    arguments = {"fixed": {"bytes": 64}, "bimodal": {"small": 1, "large": 2, "small_fraction": 0.5}}
    for name, make in LAWS.items():
        assert isinstance(
            make(**arguments.get(name, {"shape": 1} if name == "heavy-tailed" else {})), SizeLaw
        )


@given(entries=st.integers(1, 300), exponent=st.floats(0, 3))
def test_probabilities_fall_as_a_power_of_the_rank(entries: int, exponent: float) -> None:
    law = Zipf(entries=entries, exponent=exponent)
    p = law.probabilities()
    assert math.fsum(p) == pytest.approx(1, abs=1e-12)
    ranks = range(1, entries + 1)
    assert_allclose(p, [p[0] * rank**-exponent for rank in ranks], rtol=1e-12)
    assert [law.top_share(k) for k in (0, 1, entries, entries + 5)] == pytest.approx([0, p[0], 1, 1])


def test_published_example() -> None:
    # 20,000 entries with exponent 0.83 (Korikawa et al., sec. V); the sum by hand, in another order.
    law = Zipf(entries=20_000, exponent=0.83)
    total = math.fsum(i**-0.83 for i in range(20_000, 0, -1))
    assert law.top_share(2048) == pytest.approx(
        math.fsum(i**-0.83 for i in range(1, 2049)) / total, rel=1e-12
    )


def test_samples_follow_the_probabilities() -> None:
    law = Zipf(entries=50, exponent=0.83)
    n = 400_000
    drawn = law.sample(np.random.default_rng(7), n)
    assert drawn.min() == 0 and drawn.max() == 49
    share = np.bincount(drawn, minlength=50) / n
    p = law.probabilities()
    assert np.all(np.abs(share - p) < 5 * np.sqrt(p * (1 - p) / n))
    assert_array_equal(drawn[:100], law.sample(np.random.default_rng(7), n)[:100])


def test_the_last_entry_takes_the_largest_random_number() -> None:
    largest = type("Rng", (), {"random": lambda self, count: np.full(count, np.nextafter(1, 0))})()
    for entries in (1, 3, 1000, 20_000):
        assert Zipf(entries=entries, exponent=0.83).sample(largest, 1).tolist() == [entries - 1]


def test_probabilities_are_shared_and_read_only() -> None:
    law = Zipf(entries=10, exponent=1)
    assert law.probabilities() is Zipf(entries=10, exponent=1.0).probabilities()
    with pytest.raises(ValueError, match="read-only"):
        law.probabilities()[0] = 0.0


def test_bad_count_of_top_entries() -> None:
    with pytest.raises(ValueError, match=r"count must be a whole number >= 0, got -1\.0"):
        Zipf(entries=10, exponent=1).top_share(-1)
