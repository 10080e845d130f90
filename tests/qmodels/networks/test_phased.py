"""Closed networks with services of phases against product forms and chains state by state."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels import JobClass, QueueingNetwork, Station, solve
from qmodels.laws import Deterministic, Erlang, Exponential, HyperExponential
from qmodels.laws.of_law import phases
from qmodels.markov import CTMC
from qmodels.networks import flow_equivalent, mva
from qmodels.networks.closed.inputs import describe
from qmodels.networks.closed.phased import Server, chain_states, closed_chain

H2, E4 = HyperExponential.balanced(mean=1.0, scv=9.0), Erlang(mean=1.0, phases=4)
LAWS = (
    lambda mean: Exponential(mean=mean),
    lambda mean: Erlang(mean=mean, phases=3),
    lambda mean: HyperExponential.balanced(mean=mean, scv=4.0),
)


def ring(laws, population, **station):
    names = [f"s{k}" for k in range(len(laws))]
    return QueueingNetwork(
        stations=[Station(name=name, service=law, **station) for name, law in zip(names, laws, strict=True)],
        classes=[JobClass(population=population)],
        routing={a: {b: 1.0} for a, b in zip(names, names[1:] + names[:1], strict=True)},
    )


@given(
    kinds=st.lists(
        st.tuples(st.sampled_from(LAWS), st.sampled_from(["delay", "shared", "fifo"])), min_size=2, max_size=3
    ),
    people=st.integers(1, 5),
    back=st.floats(0.0, 0.8),
    data=st.data(),
)
def test_a_product_form_is_met(kinds, people, back, data):
    """The law of a service does not matter at delays and shared servers; elsewhere it is exponential."""
    means = [data.draw(st.floats(0.2, 2.0)) for _ in kinds]
    servers = [np.inf if how == "delay" else data.draw(st.sampled_from([1.0, 2.0])) for _, how in kinds]
    stations = [
        Server(
            phases("service", Exponential(mean=mean) if how == "fifo" else law(mean)), count, how == "shared"
        )
        for (law, how), mean, count in zip(kinds, means, servers, strict=True)
    ]
    size = len(kinds)
    routing = np.eye(size, k=1)
    routing[-1, :2] = 1 - back, back
    visits = [1.0, *[1 / (1 - back)] * (size - 1)] if size > 2 else [1.0, 1 / (1 - back)]
    network = {"population": [people], "mean_service_time": means, "servers": servers, "visits": visits}
    found = closed_chain(describe(**network), stations, routing)
    exact = mva(**network)
    assert_allclose(found.system_throughput, exact.system_throughput, rtol=1e-9)
    assert_allclose(found.mean_number_in_system, exact.mean_number_in_system, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("people", [1, 2, 5])
def test_first_come_first_served_against_the_chain_state_by_state(people):
    """Two stations, of H2 and E4: jobs at the first, phases of the services under way."""
    p, rates = H2.probabilities, 1 / np.array(H2.means)

    def moves(state):
        first, i, j = state
        starts = ((k, share) for k, share in enumerate(p)) if first > 1 else ((None, 1.0),)
        if first:
            for k, share in starts:
                yield (first - 1, k, 0 if j is None else j), rates[i] * share
        if j is not None and j < 3:
            yield (first, i, j + 1), 4.0
        elif j == 3:
            behind = 0 if people - first > 1 else None
            for k, share in [(i, 1.0)] if first else enumerate(p):
                yield (first + 1, k, behind), 4.0 * share

    chain = CTMC.from_transitions(initial_state=(people, 0, None), transitions=moves).stationary()
    answer = solve(ring([H2, E4], people))
    assert (answer.model, answer.kind, answer.validated) == ("closed network of phases", "exact", True)
    assert answer["mean_number_in_system[s0]"] == pytest.approx(chain.expected(lambda s: s[0]), rel=1e-9)
    assert answer["system_throughput"] == pytest.approx(4.0 * chain.expected(lambda s: s[2] == 3), rel=1e-9)


def test_what_is_no_chain_of_a_size_is_approximated_with_a_doubt_or_an_error():
    large = ring([Erlang(mean=1.0, phases=9)] * 3, 40, servers=3)
    assert chain_states([Server(phases("service", Erlang(mean=1.0, phases=9)), 3, False)] * 3, 40) > 1e5
    assert solve(large).kind == "approximation"
    constant = solve(ring([H2, Deterministic(mean=1.0)], 4))
    assert constant.kind == "approximation" and not constant.validated
    assert any(words.startswith("not measured: scv is 9, drawn up to ") for words in constant.notes)
    known = solve(ring([Deterministic(mean=1.0), Exponential(mean=0.9)], 3))
    low, high = known.interval("system_throughput")
    assert known.kind == "approximation" and known.validated and 0.5 < low < high < 2.0


@given(
    inside=st.lists(st.floats(0.05, 3.0), min_size=1, max_size=4),
    outside=st.lists(st.floats(0.05, 3.0), min_size=1, max_size=3),
    servers=st.lists(st.integers(1, 3), min_size=4, max_size=4),
    people=st.integers(1, 12),
)
def test_aggregation_is_exact_in_a_product_form_network(inside, outside, servers, people):
    counts = servers[: len(inside)]
    rates = flow_equivalent(population=people, mean_service_time=inside, servers=counts)
    whole = mva(
        population=people,
        mean_service_time=[*outside, *inside],
        servers=[1] * len(outside) + counts,
        think_time=0.5,
    )
    last = len(outside)
    small = mva(
        population=people, mean_service_time=[*outside, 1.0], rate_multiplier={last: rates}, think_time=0.5
    )
    assert_allclose(small.system_throughput, whole.system_throughput, rtol=1e-11)
    assert_allclose(small.mean_number_in_system[:last], whole.mean_number_in_system[:last], rtol=1e-10)
    assert_allclose(small.mean_number_in_system[last], whole.mean_number_in_system[last:].sum(), rtol=1e-10)


def test_admission_limit():
    part = {"mean_service_time": [1.0, 3.0, 3.0], "visits": [1, 0.5, 0.5]}
    free = flow_equivalent(population=6, **part)
    held = flow_equivalent(population=6, admitted=2, **part)
    assert_allclose(held[:2], free[:2])
    assert_allclose(held[2:], free[1])
    assert_allclose(flow_equivalent(population=3, admitted=9, **part), free[:3])
    # One at a time: M/M/1 with the whole part as its service.
    assert_allclose(flow_equivalent(population=3, admitted=1, **part), np.full(3, 1 / 4.0))
    with pytest.raises(ValueError, match="admitted must be a whole number >= 1, got 0"):
        flow_equivalent(population=3, admitted=0, **part)
    with pytest.raises(ValueError, match="population must be a whole number >= 1, got 0"):
        flow_equivalent(population=0, **part)
