"""Model and simulator against the exact Markov chain of small processors, core by core."""

from dataclasses import dataclass

import numpy as np
import pytest

from qmodels import LlcProcessor
from qmodels.llc.processor_hits import HitRatios
from qmodels.llc.solve_processor import solve_llc_processor
from qmodels.markov import CTMC
from qmodels.traffic import Zipf
from validate import simulate

IDLE, L1, L2, LLC, WAIT, MEMORY = range(6)
NOWHERE = Zipf(entries=10_000_000, exponent=0.0)
"""So many entries, all alike, that no cache ever has one."""


@dataclass(frozen=True)
class State:
    """Requests and stage of each core, cores in each slice's queue, cores at banks and waiting for a part."""

    requests: tuple[int, ...]
    stage: tuple[int, ...]
    slices: tuple[tuple[int, ...], ...]
    channels: tuple[tuple[int | None, int | None], ...]
    waiting: tuple[tuple[int, ...], tuple[int, ...]]


def put(values, where, value):
    return (*values[:where], value, *values[where + 1 :])


def chain(spec: LlcProcessor, hits: tuple[float, float, float]) -> dict[str, float]:
    """Return blocking probability, mean number and busy cores from the balance of all states."""

    def at(state, **changes):
        return State(**{name: changes.get(name, getattr(state, name)) for name in State.__dataclass_fields__})

    def to_stage(state, core, stage):
        return at(state, stage=put(state.stage, core, stage))

    def done(state, core):
        left = state.requests[core] - 1
        state = at(state, requests=put(state.requests, core, left))
        return to_stage(state, core, L1 if left else IDLE)

    def to_memory(state, core, rate):
        for part in (0, 1):
            idle = [k for k, banks in enumerate(state.channels) if banks == (None, None)]
            free = idle or [k for k, banks in enumerate(state.channels) if banks[part] is None]
            if free:
                channels = put(state.channels, free[0], put(state.channels[free[0]], part, core))
                yield to_stage(at(state, channels=channels), core, MEMORY), rate / 2
            else:
                waiting = put(state.waiting, part, (*state.waiting[part], core))
                yield to_stage(at(state, waiting=waiting), core, WAIT), rate / 2

    def after_l2(state, core, rate):
        if not spec.llc_slices:
            yield from to_memory(state, core, rate)
        for k in range(spec.llc_slices):
            joined = at(state, slices=put(state.slices, k, (*state.slices[k], core)))
            yield to_stage(joined, core, LLC), rate / spec.llc_slices

    def moves(state):
        if sum(state.requests) < spec.capacity:
            for core, had in enumerate(state.requests):
                more = at(state, requests=put(state.requests, core, had + 1))
                yield more if had else to_stage(more, core, L1), spec.arrival_rate / spec.cores
        for core, stage in enumerate(state.stage):
            if stage == L1:
                yield done(state, core), hits[0] * spec.l1_rate
                yield to_stage(state, core, L2), (1 - hits[0]) * spec.l1_rate
            if stage == L2:
                yield done(state, core), hits[1] * spec.l2_rate
                yield from after_l2(state, core, (1 - hits[1]) * spec.l2_rate)
        for k, queue in enumerate(state.slices):
            if queue:
                left = at(state, slices=put(state.slices, k, queue[1:]))
                yield done(left, queue[0]), hits[2] * spec.llc_rate
                yield from to_memory(left, queue[0], (1 - hits[2]) * spec.llc_rate)
        for k, banks in enumerate(state.channels):
            rate = spec.bank_rate if None in banks else spec.interleaved_bank_rate
            for part, core in enumerate(banks):
                if core is None:
                    continue
                behind = state.waiting[part]
                left = at(
                    state, channels=put(state.channels, k, put(banks, part, behind[0] if behind else None))
                )
                if behind:
                    left = to_stage(at(left, waiting=put(left.waiting, part, behind[1:])), behind[0], MEMORY)
                yield done(left, core), rate

    def merged(state):
        rates: dict[State, float] = {}
        for target, rate in moves(state):
            if rate > 0:
                rates[target] = rates.get(target, 0.0) + rate
        yield from rates.items()

    empty = State(
        requests=(0,) * spec.cores,
        stage=(IDLE,) * spec.cores,
        slices=((),) * spec.llc_slices,
        channels=((None, None),) * spec.channels,
        waiting=((), ()),
    )
    law = CTMC.from_transitions(initial_state=empty, transitions=merged).stationary()
    return {
        "blocking_probability": law.expected(lambda s: float(sum(s.requests) == spec.capacity)),
        "mean_number_in_system": law.expected(lambda s: float(sum(s.requests))),
        "core_utilization": law.expected(lambda s: sum(n > 0 for n in s.requests) / spec.cores),
    }


NO_HITS = {
    "shared": LlcProcessor(
        architecture="shared", cores=2, channels=2, capacity=4, load=0.5, llc_rate=2.0, popularity=NOWHERE
    ),
    "slices": LlcProcessor(
        cores=2, slices=2, channels=2, capacity=4, load=0.6, llc_rate=2.0, l1_rate=20.0, popularity=NOWHERE
    ),
    "interleaved": LlcProcessor(
        architecture="none", cores=3, channels=1, capacity=4, load=1.2, popularity=NOWHERE
    ),
}


@pytest.mark.in_ci(1)
@pytest.mark.parametrize("name", NO_HITS)
def test_simulation_is_exact(name):
    """Intervals of 99.9 % that are narrow cover what the balance equations give."""
    spec = NO_HITS[name]
    exact = chain(spec, (0.0, 0.0, 0.0))
    result = simulate(spec, requests=40_000, replications=20, confidence=0.999)
    for metric, value in exact.items():
        estimate = result.metrics[metric]
        assert value in estimate, metric
        assert estimate.relative_half_width < 0.025, metric


def test_model_of_one_core_is_exact():
    """All stages, all hit ratios, with an LLC that nobody else uses."""
    for architecture in ("shared", "none"):
        hits = (0.3, 0.4, 0.5 if architecture == "shared" else 0.0)
        spec = LlcProcessor(
            architecture=architecture, cores=1, channels=2, capacity=6, load=0.4, llc_rate=2.0
        )
        found = HitRatios(l1=hits[0], l2=hits[1], llc=hits[2], slice_shares=np.ones((1, 1)))
        answer = solve_llc_processor(spec, hits=found)
        for metric, value in chain(spec, hits).items():
            assert answer.metrics[metric] == pytest.approx(value, rel=1e-9)


HITS = [
    ({"architecture": "shared", "cores": 2, "channels": 2, "load": 0.5}, (0.3, 0.4, 0.5)),
    ({"architecture": "slices", "cores": 2, "slices": 2, "channels": 2, "load": 0.8}, (0.3, 0.3, 0.3)),
    ({"architecture": "none", "cores": 2, "channels": 2, "load": 0.8}, (0.4, 0.4, 0.0)),
    ({"architecture": "none", "cores": 3, "channels": 1, "load": 1.0}, (0.1, 0.1, 0.0)),
]


@pytest.mark.parametrize(("design", "hits"), HITS)
def test_model_is_near(design, hits):
    """Measured: at most 1.0 points of blocking and 3.0 % of the requests inside, of at most 5 of them."""
    spec = LlcProcessor(capacity=5, llc_rate=1.0, **design)
    slices = max(spec.llc_slices, 1)
    found = HitRatios(l1=hits[0], l2=hits[1], llc=hits[2], slice_shares=np.full((1, slices), 1 / slices))
    exact, answer = chain(spec, hits), solve_llc_processor(spec, hits=found)
    assert answer.blocking_probability == pytest.approx(exact["blocking_probability"], abs=0.0105)
    assert answer.mean_number_in_system == pytest.approx(exact["mean_number_in_system"], rel=0.031)
    assert answer.core_utilization == pytest.approx(exact["core_utilization"], rel=0.02)
