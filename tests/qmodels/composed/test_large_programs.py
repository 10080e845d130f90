"""Programs as large as they may be: solved at once, or refused before any work."""

from time import process_time

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom

from qmodels import Flow, Station, System, Tokens, dram, solve
from qmodels.laws import Exponential
from qmodels.steps import Acquire, Each, Fork, Read, Release, Repeat, Visit
from qmodels.systems.composed.lower import Here
from qmodels.systems.composed.parts import ONE, compound
from qmodels.traffic import Poisson


def system(*program):
    flow = Flow(name="f", arrivals=Poisson(), rate=1e-9, program=program)
    return System(parts={"dram": dram("DDR4-3200", channels=4)}, flows=flow)


@pytest.mark.parametrize(
    ("program", "opens"), [((Read("dram", 65536),), False), ((Each((Read("dram", 16),), 4096),), True)]
)
def test_the_longest_reads_take_what_their_bus_or_their_rows_take(program, opens):
    # Reads of 16 blocks at random addresses each open rows of their own, one for a block in each bank.
    answer = solve(system(*program))
    timing = answer.spec.parts["dram"].timing
    each = max(timing.t_faw / 4, timing.t_rrd_s) if opens else timing.burst
    least = 65536 / 4 * each / timing.clock_ghz
    assert least < answer.latency < 1.3 * least


@pytest.mark.parametrize(
    ("program", "at_once"),
    [
        ((Each((Read("dram", 4),), 65536),), 262144),
        ((Fork(((Each((Read("dram"),), 40000),),) * 2),), 80000),
    ],
)
def test_more_at_once_than_any_memory_is_asked_for_is_refused(program, at_once):
    with pytest.raises(ValueError, match=rf"at most 65536 blocks or copies at once.*got {at_once}$"):
        system(*program)


def test_a_fork_of_many_branches_is_checked_in_no_time():
    begin = process_time()
    assert len(system(Fork(((Read("dram"),),) * 5000)).flows[0].program[0].branches) == 5000
    assert process_time() - begin < 3  # 6 s if each branch were compared with all others


def test_thinned_bursts_are_binomial():
    here = Here(flow=None, times=1.0, place=np.zeros(0), burst=np.eye(5001)[5000], copies=ONE)
    assert_allclose(here.thinned(0.3).burst, binom.pmf(np.arange(5001), 5000, 0.3), atol=1e-12)


def test_laws_are_compounded_by_transforms_as_by_sums(monkeypatch):
    rng = np.random.default_rng(1)
    outer, inner = (law / law.sum() for law in (rng.random(30), rng.random(7)))
    plain = compound(outer, inner)
    monkeypatch.setattr("qmodels.systems.composed.parts.MOST_CONVOLVED", 0)
    assert_allclose(compound(outer, inner), plain, atol=1e-14)
    assert_allclose(compound(outer, np.eye(4)[3])[::3], outer)


def nested(depth):
    names = [f"p{k}" for k in range(depth)]
    inside = (*map(Acquire, names[1:]), Visit("s"), *map(Release, names[1:]))
    flow = Flow(arrivals=Poisson(), rate=0.1, program=(Acquire("p0"), Repeat(inside, 2), Release("p0")))
    return System(parts={"s": STATION} | {name: Tokens(count=4) for name in names}, flows=flow)


def several(count, program, window=None, **pools):
    shared = {"arrivals": Poisson(), "rate": 1e-6, "program": program, "window": window}
    return System(parts={"s": STATION} | pools, flows=[Flow(name=f"f{k}", **shared) for k in range(count)])


STATION = Station(service=Exponential(mean=2.0))
HELD = (Acquire("p"), Visit("s"), Release("p"))


@pytest.mark.parametrize(
    ("large", "field"),
    [
        (nested(7), "flows.jobs.program"),
        (several(60, HELD[1:2], window=4), "flows"),
        (several(300, HELD, p=Tokens(count=4)), "flows"),
    ],
)
def test_pools_that_would_take_minutes_are_refused_at_once(large, field):
    # They took 79, 100 and 150 s.
    begin = process_time()
    with pytest.raises(ValueError, match=rf"^{field} must ask for at most 30 seconds"):
        solve(large)
    assert process_time() - begin < 2
