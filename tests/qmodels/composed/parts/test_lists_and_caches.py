"""Free lists, caches and parts of others as parts of a system."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels import CacheLevel, CacheSystem, Flow, System, queues
from qmodels.composed.parts import (
    lookup_shares,
    lost_jobs,
    respond,
    trial_law,
)
from qmodels.composed.parts.free_list import pointer_memory
from qmodels.composed.streams import Stream
from qmodels.llc.solve_cache import solve_cache
from qmodels.parts import FreeList, Served, ServingPart
from qmodels.steps import Allocate, Free, Visit
from qmodels.traffic import Poisson, Zipf

LISTS = FreeList(segments=4096, alloc_trial_count=3, clock_ghz=0.5)


def stream(step, rate, *, blocks=1, scv=1.0, trials=(1.0,)):
    return Stream(
        flow="jobs", step=step, rate=rate, batch=np.eye(blocks + 1)[blocks], scv=scv, write=False, bytes=0,
        sources=np.zeros(0), trials=np.array(trials),
    )  # fmt: skip


def test_the_pointer_memory_is_a_queue_of_operations():
    """An allocation of 4 blocks: 2 + 4 (1 + 1) accesses of 2 ns, a return 3 + 4."""
    both = (stream(Allocate("lists", 4), 0.01, blocks=4), stream(Free("lists"), 0.01, blocks=4))
    answer = pointer_memory(LISTS, both)
    times = np.array([20.0, 14.0])
    queue = queues.mg1(arrival_rate=0.02, mean_service_time=17.0, service_scv=9.0 / 17.0**2)
    wait = float(queue.mean_waiting_time)
    assert_allclose([r.mean for r in answer.responses], wait + times)
    assert answer.intensity[""] == pytest.approx(0.34)
    assert not answer.doubts
    double = pointer_memory(LISTS, tuple(replace(s, rate=2 * s.rate) for s in both))
    assert double.intensity[""] == pytest.approx(0.68)
    assert double.responses[0].mean > answer.responses[0].mean
    assert np.isinf(pointer_memory(LISTS, tuple(replace(s, rate=5 * s.rate) for s in both)).responses[0].mean)


def test_rejections_take_accesses():
    law = trial_law(LISTS, busy=0.3, busy_again=0.5)
    # Of three trials the second is reached with 0.3, the third with 0.15; they take 1, 3 and 4 accesses.
    assert_allclose(law, [0.7, 0.15, 0.15])
    mean, square = law @ [1, 3, 4], law @ [1, 9, 16]
    few, many = (
        pointer_memory(LISTS, (stream(Allocate("lists"), 1e-9, trials=t),)).responses[0]
        for t in ((1.0,), law)
    )
    assert many.mean - few.mean == pytest.approx((mean - 1) / 0.5)
    assert many.variance == pytest.approx((square - mean**2) / 0.25, rel=1e-6)


def test_jobs_that_find_too_few_blocks_are_those_of_a_loss_link():
    lists = FreeList(segments=20)
    one = stream(Allocate("lists"), 0.1)
    (lost,), doubts = lost_jobs(lists, (one,), [150.0])
    assert_allclose(lost, queues.erlang_b(servers=20, offered_load=15.0), rtol=1e-4)
    assert not doubts
    (rare,), _ = lost_jobs(FreeList(segments=4096), (one,), [150.0])
    assert rare == 0.0
    pair, _ = lost_jobs(lists, (one, stream(Allocate("lists", 4), 0.01, blocks=4)), [50.0, 50.0])
    assert pair[0] < pair[1]
    assert lost_jobs(lists, (stream(Allocate("lists", 30), 0.01, blocks=30),), [1.0])[0] == (1.0,)
    assert lost_jobs(lists, (one,), [np.inf])[0] == (1.0,)
    assert "Poisson" in lost_jobs(lists, (replace(one, scv=4.0),), [150.0])[1][0]


CACHES = CacheSystem(
    popularity=Zipf(entries=5000, exponent=0.9),
    cores=4,
    private=(CacheLevel(lines=50), CacheLevel(lines=100)),
    shared=CacheLevel(lines=800, slices=4),
)


def test_look_ups_find_what_the_caches_alone_say():
    shares, alone = lookup_shares(CACHES), solve_cache(CACHES)
    assert shares.private + shares.hit + shares.miss == pytest.approx(1.0)
    assert shares.miss == pytest.approx(alone.metrics["miss_ratio"])
    first, second = (alone.metrics[f"hit_ratio[{name}]"] for name in ("l1", "l2"))
    assert shares.private == pytest.approx(first + (1 - first) * second)
    assert_allclose(shares.slices, alone.slice_shares)
    assert shares.slices.sum() == pytest.approx(1.0) and np.ptp(shares.slices) > 0


def test_fewer_cores_share_the_last_level():
    assert lookup_shares(replace(CACHES, cores=1)).miss < lookup_shares(CACHES).miss
    only = lookup_shares(replace(CACHES, private=(), shared=CacheLevel(lines=500)))
    assert only.private == 0.0 and only.hit > 0.0 and only.slices.tolist() == [1.0]


@dataclass(frozen=True, kw_only=True)
class Pipe(ServingPart):
    """A wire of a fixed time and a rate that it carries."""

    ns: float = 3.0

    def served(self, offered):
        zero = np.zeros_like(offered.rate)
        return Served(
            response=zero + self.ns, variance=zero, intensity={"": float(offered.rate.sum() * self.ns)}
        )

    def service(self):
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Wrong(Pipe):
    """A part that answers one number for all streams."""

    def served(self, offered):
        return replace(super().served(offered), response=np.array([1.0, 2.0, 3.0]))


def serving(part):
    return System(parts={"part": part}, flows=Flow(arrivals=Poisson(), rate=0.1, program=(Visit("part"),)))


def test_parts_of_others_are_asked():
    one, two = stream(Visit("part"), 0.1), stream(Visit("part"), 0.02, blocks=3)
    answer = respond("part", serving(Pipe()), (one, two))
    assert [r.mean for r in answer.responses] == [3.0, 3.0]
    assert answer.intensity == {"": pytest.approx(0.48)}
    assert answer.responses[1].last_mean == 3.0 and "independent" in answer.doubts[0]
    with pytest.raises(ValueError, match=r"Wrong.served must answer a response for each of 2 streams, got"):
        respond("part", serving(Wrong()), (one, two))
