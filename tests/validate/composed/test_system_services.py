"""Parts of others in a simulated system: asked in Python, served on the same calendar."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from qmodels import Flow, Noc, System, dram, mesh, queues
from qmodels.laws import Deterministic
from qmodels.noc import uniform
from qmodels.parts import Served, Service, ServingPart
from qmodels.steps import Fork, Read, Visit
from qmodels.traffic import Poisson


class Busy(Service):
    def __init__(self, mean, exponential):
        self.mean, self.exponential, self.free = mean, exponential, 0.0

    def end(self, now, stream, rng):
        time = self.mean * (rng.exponential() if self.exponential else 1 + stream)
        self.free = max(self.free, now) + time
        return self.free


@dataclass(frozen=True, kw_only=True)
class Engine(ServingPart):
    mean: float = 1.0
    exponential: bool = True

    def served(self, offered):
        return Served(response=offered.rate, variance=offered.rate, intensity={})

    def service(self):
        return Busy(self.mean, self.exponential)


def test_a_server_of_others_is_the_queue_it_is(simulated):
    flow = Flow(arrivals=Poisson(), rate=0.6, program=(Visit("engine"),))
    result = simulated(System(parts={"engine": Engine()}, flows=flow), replications=8, passages=10_000)
    exact = queues.mm1(arrival_rate=0.6, service_rate=1.0).mean_response_time
    assert exact in result.latency and result.latency.half_width < 0.12 * exact
    assert result["visit_latency[engine]"].best == pytest.approx(result.latency.best, rel=1e-12)


def test_it_is_told_which_stream_asks_and_stands_at_its_nodes(simulated):
    parts = {
        "engine": Engine(mean=10.0, exponential=False),
        "noc": Noc(topology=mesh(2, 1), traffic=uniform(nodes=2)),
        "dram": dram("DDR4-3200", page_policy="closed", t_refi=0, t_rfc=0),
    }
    flow = Flow(
        population=1, think=Deterministic(mean=100.0), at=(0,),
        program=(Visit("engine"), Fork((Visit("engine"), Read("dram")))),
    )  # fmt: skip
    result = simulated(
        System(parts=parts, place={"engine": (0, 1)}, flows=flow), replications=2, passages=1000
    )
    # The first stream takes 10 ns, the second one 20, and neither travels; the fork takes the longer branch.
    read = (22 + 22 + 4) / 1.6
    assert result.latency.best == pytest.approx(10 + max(20, read), rel=1e-9)


@pytest.mark.parametrize("end", [-1.0, float("nan"), float("inf")])
def test_an_end_before_the_beginning_is_refused(simulated, end):
    class Wrong(Engine):
        def service(self):
            class Never(Service):
                def end(self, now, stream, rng):
                    return end

            return Never()

    flow = Flow(arrivals=Poisson(), rate=0.6, program=(Visit("engine"),))
    with pytest.raises(ValueError, match="parts.engine: a service must end at a time from .* on, got"):
        simulated(System(parts={"engine": Wrong()}, flows=flow))


def test_the_randomness_of_others_is_that_of_the_seed(simulated):
    flow = Flow(arrivals=Poisson(), rate=0.6, program=(Visit("engine"),))
    system = System(parts={"engine": Engine()}, flows=flow)
    one, two, other = (simulated(system, replications=2, passages=1000, seed=seed) for seed in (1, 1, 2))
    assert one.latency == two.latency != other.latency
    assert np.isfinite(other.latency.best)
