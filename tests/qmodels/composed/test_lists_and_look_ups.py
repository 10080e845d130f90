"""Whole systems of free lists and of caches: Erlang's loss formula, and the sum of what each level takes."""

import pytest

from qmodels import CacheLevel, CacheSystem, Flow, System, queues, solve
from qmodels.composed.latency import association
from qmodels.laws import Deterministic, Exponential
from qmodels.llc.solve_cache import solve_cache
from qmodels.parts import FreeList
from qmodels.steps import Allocate, Free, Hold, Lookup
from qmodels.traffic import Poisson, Zipf


@pytest.mark.parametrize("hold", [50.0, 150.0, 400.0])
def test_jobs_without_a_block_are_lost_by_erlangs_formula(hold):
    program = (Allocate("lists"), Hold(Exponential(mean=hold)), Free("lists"))
    lists = FreeList(segments=20, clock_ghz=1000.0)
    answer = solve(System(parts={"lists": lists}, flows=Flow(arrivals=Poisson(), rate=0.1, program=program)))
    lost = float(queues.erlang_b(servers=20, offered_load=0.1 * hold))
    assert answer.blocking_probability == pytest.approx(lost, rel=0.02, abs=1e-12)
    assert answer.flow_throughput == pytest.approx(0.1 * (1 - lost), rel=1e-3)


@pytest.mark.parametrize("private", [(), (50,), (50, 100)])
def test_a_look_up_takes_what_is_done_where_its_line_is(private):
    caches = CacheSystem(
        popularity=Zipf(entries=5000, exponent=0.9),
        cores=4,
        private=tuple(CacheLevel(lines=lines) for lines in private),
        shared=CacheLevel(lines=800, slices=4),
    )
    steps = {"private": 10.0, "hit": 20.0, "miss": 100.0, "further": 3.0}
    done = {name: (Hold(Deterministic(mean=time)),) for name, time in steps.items()}
    flow = Flow(arrivals=Poisson(), rate=1e-3, program=(Lookup("caches", **done),))
    answer = solve(System(parts={"caches": caches}, flows=flow))
    alone, left, expected = solve_cache(caches), 1.0, 0.0
    for level in range(len(private)):
        found = left * alone.metrics[f"hit_ratio[l{level + 1}]"]
        expected += found * (10.0 + 3.0 * level)
        left -= found
    beyond = 3.0 * max(len(private) - 1, 0)
    found = left * alone.metrics["hit_ratio[llc]"]
    expected += found * (20.0 + beyond) + (left - found) * (100.0 + beyond)
    assert answer.latency == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("blocks", "accesses"), [((4,), 10 + 7), ((1, 3), 4 + 8 + 7), ((2, 1, 2), 6 + 4 + 6 + 8)]
)
def test_blocks_of_several_allocations_are_given_back_together(blocks, accesses):
    """An allocation of k blocks takes 2 + 2 k accesses, their return 3 + k, one a cycle."""
    program = (*(Allocate("lists", number) for number in blocks), Free("lists"))
    flow = Flow(arrivals=Poisson(), rate=1e-9, program=program)
    answer = solve(System(parts={"lists": FreeList(segments=4096, clock_ghz=1.0)}, flows=flow))
    assert answer.latency == pytest.approx(accesses, rel=1e-6)


def test_two_branches_are_associated_exactly_as_published():
    """Of the excess of the later of two over one, 1/2, a quarter of the load is less (Nelson and Tantawi)."""
    assert association(2, 1.0) == pytest.approx(0.75, rel=1e-12)
