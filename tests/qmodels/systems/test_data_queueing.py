from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmodels import DataQueueing
from qmodels.systems.packets.data_queueing import (
    Allocation,
    DataMemory,
    QueueTraffic,
    SelfSimilar,
    padded_pitch,
)
from qmodels.traffic import Poisson, Recorded, Trace, imix

TRACE = Trace(times_ns=[0, 100, 300, 900], bytes=[64, 1500, 64, 640], source="by hand")


def test_other_policies_do_not_look_at_vms1():
    DataQueueing(data=DataMemory(segments=100), allocation=Allocation(policy="lifo"))


@given(
    banks=st.sampled_from([2, 3, 4, 8, 16]),
    step=st.integers(1, 5),
    page=st.integers(1, 9),
    pitch=st.integers(1, 6),
)
def test_places_of_blocks(banks, step, page, pitch):
    memory = DataMemory(banks=banks, bank_step=step, page_segments=page, block_pitch=pitch)
    blocks = np.arange(banks * step * page * 3)
    where = list(zip(memory.bank_of(blocks).tolist(), memory.page_of(blocks).tolist(), strict=True))
    assert all(0 <= bank < banks for bank, _ in where)
    # Without gaps between blocks every page is full.
    if pitch == 1:
        assert {where.count(one) for one in set(where)} == {page}
    padded = replace(memory, bank_step=1, block_pitch=padded_pitch(pitch, banks))
    assert sorted(padded.bank_of(np.arange(banks)).tolist()) == list(range(banks))


def test_random_mapping_is_even():
    counts = np.bincount(DataMemory(mapping="random").bank_of(np.arange(80_000)), minlength=8)
    # 8 standard deviations of a binomial count.
    assert np.abs(counts - 10_000).max() < 8 * np.sqrt(80_000 * 7 / 64)


@given(load=st.floats(0.1, 3), count=st.integers(2, 300), seed=st.integers(0, 9))
def test_load_is_that_asked_for(load, count, seed):
    for arrivals in (Poisson(), SelfSimilar(shape=1.3), Recorded(trace=TRACE)):
        traffic = QueueTraffic(arrivals=arrivals, load_factor=load, queues=5)
        packets = traffic.packets(np.random.default_rng(seed), count, 64)
        assert packets.times[0] == 0 and (np.diff(packets.times) >= 0).all()
        # Segments of all packets but the last, in the time between the first and the last.
        assert packets.segments[:-1].sum() / packets.times[-1] == pytest.approx(load)
        assert packets.queues.min() >= 0 and packets.queues.max() < 5
        assert (packets.moved_to == -1).all()


def test_trace_brings_its_sizes():
    traffic = QueueTraffic(arrivals=Recorded(trace=TRACE))
    assert traffic.sizes.bytes == (64, 640, 1500)
    packets = traffic.packets(np.random.default_rng(0), 6, 64)
    assert packets.segments.tolist() == [1, 24, 1, 10, 1, 24]
    # The first packet comes again a mean gap after the last.
    gaps = np.diff(packets.times)
    assert gaps[3] == pytest.approx(gaps[:3].mean()) and gaps[4] == pytest.approx(gaps[0])


def test_moved_fraction_and_popular_queues():
    traffic = QueueTraffic(moved_fraction=0.25, queues=1000, queue_exponent=1.0, sizes=imix())
    packets = traffic.packets(np.random.default_rng(0), 20_000, 64)
    assert (packets.moved_to >= 0).mean() == pytest.approx(0.25, abs=0.02)
    shares = np.bincount(packets.queues, minlength=1000) / 20_000
    assert shares[0] == pytest.approx(1 / (1 / np.arange(1, 1001)).sum(), abs=0.015)


def test_self_similar_counts_are_rougher_than_poisson():
    """Variance of counts over long windows grows faster than the mean, as H = 0.8 asks."""

    def index_of_dispersion(gaps, window):
        counts = np.bincount((np.cumsum(gaps) / window).astype(int))[1:-1]
        return counts.var() / counts.mean()

    rng = np.random.default_rng(2)
    rough = SelfSimilar(shape=1.4, sessions=16).gaps(rng, 200_000)
    smooth = Poisson().gaps(rng, 200_000)
    assert index_of_dispersion(smooth, 1000) < 2
    assert index_of_dispersion(rough, 1000) > 2 * index_of_dispersion(rough, 50) > 4
