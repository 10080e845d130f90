"""Parts that others fill: what needs them waits without end, and no field of the spec is blamed for it."""

from dataclasses import replace

import numpy as np
import pytest

import qmodels as qm
import qmodels.composed.solve as solving
from qmodels import Flow, Noc, Station, System, Tokens, dram, mesh
from qmodels.laws import Deterministic, Exponential
from qmodels.steps import Acquire, Each, Hold, Read, Release, Visit
from qmodels.traffic import Poisson

FULL = Flow(name="full", arrivals=Poisson(), rate=0.15, program=(Visit("s"), Visit("s")))
HELD = (Acquire("pool"), Visit("s"), Release("pool"))
THINK = Exponential(mean=100.0)
PARTS = {"s": Station(service=Deterministic(mean=5.0)), "pool": Tokens(count=2)}


@pytest.mark.parametrize(
    "other",
    [
        Flow(name="other", population=2, think=THINK, program=(Visit("s"),)),
        Flow(name="other", population=2, think=THINK, program=HELD),
        Flow(name="other", arrivals=Poisson(), rate=0.01, program=HELD),
        Flow(name="other", arrivals=Poisson(), rate=0.01, window=2, program=(Visit("s"),)),
    ],
    ids=["closed", "closed in a pool", "open in a pool", "window"],
)
def test_above_saturation_the_answer_is_saturated(other):
    parts = PARTS if other.program == HELD else {"s": PARTS["s"]}
    answer = qm.solve(System(parts=parts, flows=(FULL, other)))
    assert not answer.stable and answer.metrics["saturation_factor"] < 1
    assert answer.metrics["latency[full]"] == answer.metrics["latency[other]"] == np.inf
    assert not any(np.isnan(value) or value < 0 for value in answer.metrics.values())


@pytest.mark.parametrize("source", [{"population": 3}, {"arrivals": Poisson(), "rate": 1e-4}])
def test_copies_that_each_take_a_token_join(source):
    """They stay at the pool together: the times of branches that join are not those that tokens are held."""
    program = (Each((Acquire("pool"), Read("dram"), Release("pool"), Hold(Deterministic(mean=50.0))), 3),)
    parts = {"pool": Tokens(count=3), "dram": dram("DDR4-3200")}
    answer = qm.solve(System(parts=parts, flows=Flow(program=program, **source)))
    assert answer.stable and 100 < answer.latency < 250


def test_copies_of_a_part_that_nobody_goes_to_answer_nothing():
    """Each job goes to the copy at its own node: that at the other one has no job."""
    parts = {"noc": Noc(topology=mesh(2, 2)), "s": Station(service=Exponential(mean=5.0), servers=2)}
    flow = Flow(arrivals=Poisson(), rate=0.1, at=(0,), program=(Visit("s"), Hold(THINK), Visit("s")))
    alone = qm.solve(System(parts=parts, flows=flow, place={"s": (0,)}))
    beside = qm.solve(System(parts=parts, flows=flow, place={"s": (0, 1)}))
    assert beside.latency == pytest.approx(alone.latency)


def test_a_window_of_many_jobs_that_loses_them():
    """Its speeds are found for the first of them: more leave no faster."""
    parts = {name: Station(service=Deterministic(mean=1.0)) for name in ("s", "t")}
    program = (Visit("s"), Visit("t"))
    flows = (
        Flow(arrivals=Poisson(), rate=0.5, window=window, when_full="loss", program=program)
        for window in (200, 3000)
    )
    few, many = (qm.solve(System(parts=parts, flows=flow)) for flow in flows)
    assert many.stable and many.metrics["blocking_probability"] < 1e-9
    assert many.latency == pytest.approx(few.latency)


def test_the_saturation_factor_is_found_when_it_is_read(monkeypatch):
    asked, found = [], solving.saturation_factor
    monkeypatch.setattr(solving, "saturation_factor", lambda *known: asked.append(known) or found(*known))
    answer = qm.solve(System(parts={"s": PARTS["s"]}, flows=replace(FULL, rate=np.array([0.02, 0.05]))))
    assert answer.latency.shape == (2,) and not asked
    assert answer.saturation_factor == pytest.approx([5.0, 2.0]) and len(asked) == 2
