"""Steady state of a tandem M/M/5/K with blocking, beside SciPy's direct solver in the same run.

``OPENBLAS_NUM_THREADS=1 pytest tests/benchmarks/test_bench_markov.py --benchmark-enable -m ""``
"""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve

from qmodels.laws import MAP, Erlang
from qmodels.markov import CTMC, map_ph_1
from qmodels.markov.chains.stationary import balance_residual, solve_irreducible

SIZES = [
    pytest.param(315, id="1e5", marks=pytest.mark.benchmark(group="tandem 1e5")),
    pytest.param(1000, id="1e6", marks=[pytest.mark.slow, pytest.mark.benchmark(group="tandem 1e6")]),
]


def tandem(places, arrival_rate=4.0, servers=5):
    """Rates of two M/M/c/K stations; the first stops while the second is full."""
    first, second = np.divmod(np.arange((places + 1) ** 2), places + 1)
    state = np.arange(first.size)
    moves = [
        (first < places, places + 1, np.full(state.size, arrival_rate)),
        ((first > 0) & (second < places), -places, np.minimum(first, servers) * 1.0),
        (second > 0, -1, np.minimum(second, servers) * 1.0),
    ]
    rows = np.concatenate([state[go] for go, _, _ in moves])
    columns = np.concatenate([state[go] + by for go, by, _ in moves])
    values = np.concatenate([rate[go] for go, _, rate in moves])
    return sp.csr_array((values, (rows, columns)), shape=(state.size, state.size))


@pytest.fixture(scope="module", autouse=True)
def compiled():
    for method in ("direct", "iterative"):
        solve_irreducible(tandem(15), method=method)


@pytest.mark.parametrize("method", ["direct", "iterative"])
@pytest.mark.parametrize("places", SIZES)
def test_tandem(benchmark, places, method):
    rates = tandem(places)
    generator = (rates - sp.diags_array(rates.sum(axis=1))).tocsr()

    def solve():
        return CTMC(generator=generator).stationary(method=method)

    law = benchmark.pedantic(solve, rounds=3 if places < 1000 else 1)
    assert law.residual <= 1e-10


@pytest.mark.parametrize("places", SIZES)
def test_tandem_with_scipy(benchmark, places):
    rates = tandem(places)
    balance = (rates - sp.diags_array(rates.sum(axis=1))).T.tocsc()

    def solve():
        return np.append(spsolve(balance[:-1, :-1], -balance[:-1, [-1]].toarray().ravel()), 1.0)

    law = benchmark.pedantic(solve, rounds=3 if places < 1000 else 1)
    assert balance_residual(rates, law / law.sum()) <= 1e-10


@pytest.mark.benchmark(group="state space")
def test_building_a_state_space(benchmark):
    def moves(state):
        first, second = state
        if first < 99:
            yield (first + 1, second), 4.0
        if first and second < 99:
            yield (first - 1, second + 1), float(min(first, 5))
        if second:
            yield (first, second - 1), float(min(second, 5))

    chain = benchmark.pedantic(
        lambda: CTMC.from_transitions(initial_state=(0, 0), transitions=moves), rounds=3
    )
    assert len(chain.states) == 10_000


@pytest.mark.benchmark(group="MAP/PH/1")
@pytest.mark.parametrize("phases", [2, 10, 50])
def test_map_ph_1(benchmark, phases):
    arrivals = MAP.mmpp(generator=[[-0.1, 0.1], [0.3, -0.3]], rates=[1.5, 0.1])
    service = Erlang(mean=0.6, phases=phases)
    found = benchmark.pedantic(lambda: map_ph_1(arrivals=arrivals, service=service), rounds=3)
    assert found.stable
