"""Windows that lose jobs, places without an interconnect, levels that are looked in: model and simulation."""

from dataclasses import dataclass

import numpy as np
import pytest

import qmodels as qm
from qmodels import CacheLevel, CacheSystem, Flow, Noc, Station, System, Tokens, dram, mesh, queues
from qmodels.composed.fixed_point.pool_subnetworks import scattered
from qmodels.laws import Deterministic, Exponential
from qmodels.noc import uniform
from qmodels.parts import BankedChannels, Served, Service, ServingPart
from qmodels.queues.distributions import birth_death_law
from qmodels.steps import Acquire, Fork, Hold, Lookup, Read, Release, Visit
from qmodels.traffic import Poisson, Zipf

INF = float("inf")
WINDOW = 6


def lossy(parts, *program, rate=0.9, at=(), **options):
    flow = Flow(arrivals=Poisson(), rate=rate, window=WINDOW, when_full="loss", at=at, program=program)
    return System(parts=parts, flows=flow, **options)


def station(servers):
    return Station(service=Exponential(mean=2.0), servers=servers)


def after_a_delay(mean, speeds):
    """Return the speeds of a delay and what comes after it together, in product form."""
    number = np.arange(1, WINDOW + 1)
    ahead, behind = (np.append(1.0, np.cumprod(1 / rates)) for rates in (number / mean, speeds))
    weights = np.convolve(ahead, behind)[: WINDOW + 1]
    return weights[:-1] / weights[1:]


COPIES = {"nodes": 4, "at": range(4)}
HELD = (Acquire("core"), Hold(Exponential(mean=4.0)), Release("core"))
SYSTEMS = {
    "delay": (lossy({"s": station(INF)}, Visit("s"), rate=2.0), np.arange(1, WINDOW + 1) / 2),
    "one server": (lossy({"s": station(1)}, Visit("s")), np.full(WINDOW, 0.5)),
    "two servers": (
        lossy({"s": station(2)}, Visit("s"), rate=1.5),
        np.minimum(np.arange(1, WINDOW + 1), 2) / 2,
    ),
    "a station at each place": (
        lossy({"s": station(1)}, Visit("s"), place={"s": range(4)}, **COPIES),
        scattered(np.array([0.5]), 4, WINDOW),
    ),
    "a core at each place": (
        lossy({"core": Tokens(count=1)}, *HELD, place={"core": range(4)}, **COPIES),
        scattered(np.array([0.25]), 4, WINDOW),
    ),
    "two at each place": (
        lossy({"core": Tokens(count=2)}, *HELD, place={"core": range(4)}, **COPIES),
        scattered(np.array([0.25, 0.5]), 4, WINDOW),
    ),
    "a delay before a core": (
        lossy(
            {"core": Tokens(count=1)}, Hold(Exponential(mean=3.0)), *HELD, place={"core": range(4)}, **COPIES
        ),
        after_a_delay(3.0, scattered(np.array([0.25]), 4, WINDOW)),
    ),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_windows_that_lose_jobs(name, simulated):
    """Against the chain of the number inside, with the speeds of a product form."""
    system, speeds = SYSTEMS[name]
    rate = float(system.flows[0].rate)
    law = birth_death_law(np.full(WINDOW, rate), speeds)
    lost, latency = law[-1], law @ np.arange(WINDOW + 1) / (law[1:] @ speeds)
    answer, result = qm.solve(system), simulated(system, passages=30_000)
    assert answer.stable and answer.blocking_probability == pytest.approx(lost, rel=1e-6)
    assert answer.latency == pytest.approx(latency, rel=1e-6)
    assert answer.flow_throughput == pytest.approx(rate * (1 - lost), rel=1e-6)
    assert lost in result.blocking_probability and result.blocking_probability.relative_half_width < 0.05
    assert latency in result.latency and result.stable


def test_an_overloaded_window_loses_what_its_inside_cannot_carry(simulated):
    """Also of cores that are held while all wait for one station: everything stays finite."""
    parts = {"core": Tokens(count=1), "s": station(1)}
    program = (Acquire("core"), Hold(Exponential(mean=1.0)), Visit("s"), Release("core"))
    system = lossy(parts, *program, rate=3.0, place={"core": range(4)}, **COPIES)
    answer, result = qm.solve(system), simulated(system, passages=30_000)
    assert answer.stable and result.stable
    assert answer.blocking_probability == pytest.approx(result.blocking_probability.best, abs=0.003)
    assert answer.latency == pytest.approx(result.latency.best, rel=0.02)
    assert answer.saturation_factor < 1 / 6


def test_the_levels_that_are_looked_in(simulated):
    """One entry more than the first level has: the second is always looked in, and always has it."""
    caches = CacheSystem(
        popularity=Zipf(entries=3, exponent=0.0),
        private=(CacheLevel(lines=1), CacheLevel(lines=2)),
        inclusion="exclusive",
    )
    look = Lookup(
        "caches", further=(Hold(Deterministic(mean=30.0)),), private=(Hold(Deterministic(mean=1.0)),)
    )
    flow = Flow(population=1, think=Deterministic(mean=1.0), program=(look,))
    system = System(parts={"caches": caches}, flows=flow)
    result = simulated(system, passages=20_000)
    assert 1 + 30 * 2 / 3 in result.latency
    assert qm.solve(system).latency == pytest.approx(1 + 30 * 2 / 3, rel=1e-3)


def test_lines_that_stay_and_slices_at_places(simulated):
    """A look-up is at the slice of its line, wherever that is: hits wait there, and go home in no time."""
    caches = CacheSystem(
        popularity=Zipf(entries=400, exponent=0.6),
        cores=4,
        private=(CacheLevel(lines=8),),
        shared=CacheLevel(lines=100, slices=5),
        inclusion="kept",
    )
    parts = {"caches": caches, "slice": Station(service=Exponential(mean=2.0)), "core": Tokens(count=1)}
    look = Lookup("caches", hit=(Visit("slice"),), miss=(Visit("slice"), Hold(Deterministic(mean=20.0))))
    flow = Flow(arrivals=Poisson(), rate=0.05, at=range(4), program=(Acquire("core"), look, Release("core")))
    place = {"caches": range(5), "slice": range(5), "core": range(4)}
    system = System(parts=parts, flows=flow, place=place, nodes=5)
    answer, result = qm.solve(system), simulated(system, passages=20_000)
    assert answer.metrics["hit_ratio[caches]"] == pytest.approx(
        result.metrics["hit_ratio[caches]"].best, abs=0.005
    )
    assert answer.latency == pytest.approx(result.latency.best, rel=0.02)
    assert sum(result.utilization[f"slice {k}"].best for k in range(5)) == pytest.approx(0.1, rel=0.2)


@pytest.mark.parametrize("speeds", [(1.0,), (1.0, 0.5)])
@pytest.mark.parametrize("law", [Exponential(mean=4.0), Deterministic(mean=4.0)])
def test_banks(law, speeds, simulated):
    """Few requests of many channels take their service; more are slowed down and wait."""
    few = lossy({"dram": BankedChannels(service=law, channels=8, speeds=speeds)}, Visit("dram"), rate=0.4)
    result = simulated(few, passages=20_000)
    assert result.metrics["visit_latency[dram]"].best == pytest.approx(4.0, rel=0.02)
    assert qm.solve(few).latency == pytest.approx(4.0, rel=0.01)
    one = lossy({"dram": BankedChannels(service=law, speeds=speeds)}, Visit("dram"), rate=0.25)
    result, answer = simulated(one, passages=20_000), qm.solve(one)
    busy = result.utilization["dram"].best * 2
    # A bank is busy for the mean service, longer by what both slow each other down.
    work = float(result.metrics["flow_throughput"].best) * 4.0
    assert work <= busy * (1 + 1e-2) and busy <= work / speeds[-1] * (1 + 1e-2)
    if isinstance(law, Exponential):
        assert answer.latency == pytest.approx(result.latency.best, rel=0.03)


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
