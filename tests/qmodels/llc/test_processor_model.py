"""The queueing model of the packet processor with LLC slices."""

from dataclasses import replace
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qmodels as qm
from qmodels import LlcProcessor
from qmodels.llc.bounded_queues import Stages, conditional_rates
from qmodels.llc.processor_hits import HitRatios
from qmodels.llc.processor_queues import _hypoexponential, channels_with_both_busy, dram_rates, memory_path
from qmodels.llc.solve_processor import llc_skip_threshold, solve_llc_processor
from qmodels.markov import CTMC
from qmodels.queues import mmck
from qmodels.systems.cache.llc_processor import ARCHITECTURES
from qmodels.traffic import Zipf

NONE = HitRatios(l1=0.0, l2=0.0, llc=0.0, slice_shares=np.ones((1, 1)))
FAST = 1e7
"""A rate at which a stage takes no time."""


def without_caches(**fields):
    return LlcProcessor(architecture="none", l1_rate=FAST, l2_rate=FAST, **fields)


@given(cores=st.integers(1, 28), capacity=st.integers(1, 150), load=st.floats(0.1, 2.0))
def test_exponential_services_have_a_product_form(cores, capacity, load):
    """Where a request is a DRAM access alone, n requests have the weight comb(n + C - 1, n) rho^n."""
    spec = without_caches(cores=cores, capacity=capacity, load=load * cores / 32)
    weights = np.array([comb(n + cores - 1, n) * load**n for n in range(capacity + 1)], dtype=float)
    weights /= weights.sum()
    answer = solve_llc_processor(spec, hits=NONE)
    assert answer.blocking_probability == pytest.approx(weights[-1], rel=1e-4, abs=1e-9)
    assert answer.mean_number_in_system == pytest.approx(weights @ np.arange(capacity + 1), rel=1e-4)


def test_one_core_is_m_m_1_k():
    answer = solve_llc_processor(without_caches(cores=1, capacity=7, load=0.9 / 32), hits=NONE)
    queue = mmck(arrival_rate=0.9, service_rate=1.0, servers=1, capacity=7)
    assert answer.blocking_probability == pytest.approx(float(queue.blocking_probability), rel=1e-5)
    waiting = float(queue.mean_waiting_time) / answer.spec.clock_ghz
    assert answer.waiting_latency == pytest.approx(waiting, rel=1e-5)


def test_stages_against_the_balance_equations():
    """Conditional rates of a core from the full generator of its states."""
    stages = Stages(rates=np.array([3.0, 1.0, 2.0]), onward=np.array([0.5, 0.8, 0.0]))
    arrivals = np.array([1.0, 0.7, 0.4, 0.9, 0.0])
    size, most = 3, len(arrivals) - 1
    states = [(0, 0), *((k, s) for k in range(1, most + 1) for s in range(size))]
    number = {state: i for i, state in enumerate(states)}
    q = np.zeros((len(states), len(states)))
    for (k, s), i in number.items():
        if arrivals[k]:
            q[i, number[k + 1, s]] += arrivals[k]
        if k:
            if s < size - 1:
                q[i, number[k, s + 1]] += stages.rates[s] * stages.onward[s]
            q[i, number[k - 1, 0]] += stages.rates[s] * (1 - stages.onward[s])
    q -= np.diag(q.sum(axis=1))
    law = np.linalg.lstsq(np.vstack((q.T, np.ones(len(states)))), np.eye(len(states) + 1)[-1], rcond=None)[0]
    levels = np.array([law[[i for (k, _), i in number.items() if k == n]].sum() for n in range(most + 1)])
    expected = arrivals[:-1] * levels[:-1] / levels[1:]
    assert conditional_rates(stages, arrivals) == pytest.approx(expected, rel=1e-9)


def test_memory_path_against_mva():
    """The closed network by another algorithm."""
    from qmodels.networks.closed.mva import mva

    spec = LlcProcessor(cores=9, slices=3, channels=16)
    hits = HitRatios(l1=0.1, l2=0.2, llc=0.3, slice_shares=np.array([[0.5, 0.3, 0.2]]))
    a1, a2, a3 = hits.misses
    path = memory_path(spec, hits)
    for jobs in (1, 4, 9):
        network = mva(
            population=jobs,
            mean_service_time=[0.1, 0.1, 0.1, 1.0],
            visits=[0.5 * a2, 0.3 * a2, 0.2 * a2, a3],
            servers=[1, 1, 1, 16],
            think_time=0.01 + 0.02 * a1,
        )
        assert path.throughput[jobs] == pytest.approx(float(network.system_throughput), rel=1e-9)


def test_dram():
    spec = LlcProcessor(channels=3, cores=40)
    rates, banks = dram_rates(spec, request_rate=1.0, replaced=0.2)
    assert rates[:2] == pytest.approx([0, 1])
    assert 1.9 < rates[2] < 2 and 2.8 < rates[3] < 3
    assert np.all(np.diff(rates) > 0) and np.all(np.diff(banks) > 0)
    assert rates[-1] == pytest.approx(6 * 0.7, rel=0.03) and rates[-1] < 6 * 0.7
    assert banks[-1] == pytest.approx(6, rel=0.03)
    # As many channels as cores: nothing is ever shared.
    alone, _ = dram_rates(LlcProcessor(channels=8, cores=8), request_rate=1.0, replaced=0.2)
    assert alone == pytest.approx(np.arange(9))


def test_channels_against_the_balance_equations():
    """With two channels and four cores, from the full generator of (requests, channels with both busy)."""
    spec, arrivals, replaced = LlcProcessor(channels=2, cores=4), 1.5, 0.3
    one, two = spec.bank_rate, 2 * spec.interleaved_bank_rate
    new = arrivals * (1 - replaced)
    rates = {
        ((0, 0), (1, 0)): new,
        ((1, 0), (2, 0)): new,
        ((2, 0), (3, 1)): new,
        ((2, 1), (3, 1)): new,
        ((3, 1), (4, 2)): new,
        ((1, 0), (0, 0)): (1 - replaced) * one,
        ((2, 0), (1, 0)): (1 - replaced) * 2 * one,
        ((2, 1), (1, 0)): (1 - replaced) * two,
        ((2, 1), (2, 0)): replaced * two,
        ((3, 1), (2, 1)): (1 - replaced) * one,
        ((3, 1), (2, 0)): (1 - replaced) * two,
        ((4, 2), (3, 1)): (1 - replaced) * 2 * two,
    }

    def moves(state):
        yield from ((to, rate) for (start, to), rate in rates.items() if start == state)

    law = CTMC.from_transitions(initial_state=(0, 0), transitions=moves).stationary()
    expected = [
        sum(law.probability(s) * s[1] for s in law.states if s[0] == n)
        / sum(law.probability(s) for s in law.states if s[0] == n)
        for n in range(5)
    ]
    found = channels_with_both_busy(spec, request_rate=arrivals, replaced=replaced)
    assert found == pytest.approx(expected, rel=1e-9)


@given(mean=st.floats(0.01, 100), scv=st.floats(0.25, 1.0))
def test_stages_of_a_visit_have_its_moments(mean, scv):
    times = 1 / np.array(_hypoexponential(mean, scv))
    assert times.sum() == pytest.approx(mean)
    assert (times**2).sum() == pytest.approx(scv * mean**2)


@given(
    architecture=st.sampled_from(ARCHITECTURES),
    cores=st.integers(1, 40),
    capacity=st.integers(1, 200),
    load=st.floats(0.05, 3.0),
    channels=st.integers(1, 40),
)
def test_laws(architecture, cores, capacity, load, channels):
    spec = LlcProcessor(
        architecture=architecture, cores=cores, capacity=capacity, load=load, channels=channels
    )
    answer = solve_llc_processor(spec)
    assert all(np.isfinite(value) and value >= 0 for value in answer.metrics.values())
    carried = spec.arrival_rate * (1 - answer.blocking_probability)
    assert answer.data_rate == pytest.approx(spec.gbps(carried))
    assert answer.mean_number_in_system <= capacity * (1 + 1e-9)
    # Another unit of time changes times alone.
    scaled = {name: 3 * getattr(spec, name) for name in RATES}
    other = solve_llc_processor(replace(spec, **scaled))
    assert other.blocking_probability == pytest.approx(answer.blocking_probability, rel=1e-4, abs=1e-9)
    assert 3 * other.waiting_latency == pytest.approx(answer.waiting_latency, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize(
    "spec",
    [
        LlcProcessor(architecture="shared", cores=1, capacity=300, load=0.6),
        LlcProcessor(architecture="none", cores=3, channels=4, load=10.0, capacity=400),
        LlcProcessor(cores=3, slices=59, channels=1, capacity=4, popularity=Zipf(entries=1, exponent=1.0)),
        LlcProcessor(architecture="none", cores=60, channels=2, popularity=Zipf(entries=300, exponent=1.0)),
        LlcProcessor(llc_hit="remove", cores=41, slices=64, capacity=2, load=0.01, interleaved_bank_rate=1.2),
        LlcProcessor(architecture="shared", llc_rate=0.1, capacity=1000, load=5.0),
    ],
)
def test_extremes(spec):
    """Nothing fails, is negative or is above what there is."""
    answer = solve_llc_processor(spec)
    assert all(np.isfinite(value) and value >= 0 for value in answer.metrics.values())
    assert max(answer.utilization.values()) <= 1 + 1e-9 and answer.blocking_probability <= 1


RATES = ("l1_rate", "l2_rate", "llc_rate", "bank_rate", "interleaved_bank_rate")


def test_more_load_waits_longer():
    waits = [solve_llc_processor(LlcProcessor(load=load)).waiting_latency for load in (0.2, 0.4, 0.6, 0.9)]
    assert waits == sorted(waits)


def test_skip_rule():
    """Where slices never wait a visit pays if it saves more DRAM time than it takes."""
    light = LlcProcessor(load=0.05)
    assert llc_skip_threshold(light) == pytest.approx(0.9, abs=0.01)
    assert llc_skip_threshold(LlcProcessor(architecture="shared")) == 0.0
    fast = LlcProcessor(llc_rate=1e6)
    assert llc_skip_threshold(fast) > 0.99


@pytest.mark.parametrize(
    ("architecture", "first"), [("slices", "cores"), ("shared", "LLC"), ("none", "cores")]
)
def test_what_fills_up_first(architecture, first):
    answer = qm.solve(LlcProcessor(architecture=architecture))
    assert answer.bottleneck == first and ("LLC" in answer.utilization) == (architecture != "none")


def test_published_design():
    spec = LlcProcessor()
    assert (spec.l1_lines, spec.l2_lines, spec.slice_lines.tolist()) == (2, 8, [2] * 28)
    shared, none = (replace(spec, architecture=name) for name in ("shared", "none"))
    assert (shared.llc_slices, shared.slice_lines.tolist()) == (1, [64])
    assert (none.llc_slices, none.slice_lines.tolist()) == (0, [])
    assert spec.gbps(spec.arrival_rate) == pytest.approx(91.75, abs=0.01)


def test_capacities_that_are_not_used_may_be_anything():
    assert LlcProcessor(architecture="none", slice_bytes=1, llc_bytes=1).slice_lines.size == 0


def test_slices_of_different_numbers_of_lines():
    """28 slices of 146 bytes hold 63 whole lines of 64 together, and 2.25 each; one alone is as before."""
    spec = LlcProcessor(whole_lines="total")
    assert spec.slice_lines.tolist() == [3] * 7 + [2] * 21
    assert replace(spec, slice_bytes=128).slice_lines.tolist() == [2] * 28
    for architecture in ("shared", "none"):
        same = (replace(spec, architecture=architecture, whole_lines=whole) for whole in ("slice", "total"))
        assert len({tuple(one.slice_lines.tolist()) for one in same}) == 1
