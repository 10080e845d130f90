"""Jobs per second on one core, beside other simulators where they are installed.

``pytest tests/benchmarks/test_bench_engine.py --benchmark-enable``; SimPy, Ciw and LINE's ``ldes`` are
skipped where they are missing. Every test times the run alone, without set-up and compilation, in seconds
of processor time, those of subprocesses included: the ratios then hold on a busy machine too.
"""

import random
import resource
import subprocess
from pathlib import Path

import numpy as np
import pytest

from qmodels import JobClass, QueueingNetwork, Station, single_station
from qmodels.laws import Exponential
from validate.engine.histogram import BINS
from validate.engine.sampling import law_table
from validate.engine.streams import new_streams
from validate.network.recursions import TOTALS, serve_batches
from validate.network.replication import advance
from validate.network.world import new_world


def processor_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


pytestmark = pytest.mark.benchmark(timer=processor_seconds)
LOAD = 0.8
STATIONS, FEEDBACK = 5, 0.2


def report(benchmark, jobs, **more):
    if benchmark.stats is not None:
        benchmark.extra_info["jobs_per_second"] = jobs / benchmark.stats["min"]
        benchmark.extra_info |= {name: value / benchmark.stats["min"] for name, value in more.items()}


def five_stations():
    """Return a line of five stations for two classes, of whose jobs a fifth goes through again."""
    names = [str(k) for k in range(STATIONS)]
    routing = dict(zip(names[:-1], names[1:], strict=True)) | {names[-1]: {names[0]: FEEDBACK}}
    return QueueingNetwork(
        stations=[Station(name=name, service=Exponential(mean=1.0)) for name in names],
        classes=[JobClass(name=c, arrivals=Exponential(mean=1 / 0.3)) for c in "ab"],
        routing=routing,
    )


def mmc(servers):
    return single_station(
        arrivals=Exponential(mean=1 / (LOAD * servers)), service=Exponential(mean=1.0), servers=servers
    )


@pytest.mark.parametrize(("name", "spec"), [("M/M/1", mmc(1)), ("M/M/3", mmc(3)), ("five", five_stations())])
def test_engine(benchmark, name, spec):
    """Bars: five times `ldes`, 40 times SimPy, 100 times Ciw; five stations: 5 million events/s."""
    jobs = 1_000_000

    def simulate(world):
        return int(advance(world, ended=jobs).state["events"][0])

    def setup():
        return (new_world(spec, seed=1, replication=0),), {}

    events = benchmark.pedantic(simulate, setup=setup, rounds=3, warmup_rounds=1)
    report(benchmark, jobs, events_per_second=events)


@pytest.mark.parametrize("servers", [1, 3, 8])
def test_recursion(benchmark, servers):
    """Bar: 30 million customers/s for one server."""
    jobs = 10_000_000
    table = law_table([Exponential(mean=1 / (LOAD * servers)), Exponential(mean=1.0)])
    waiting, response = np.zeros(BINS, dtype=np.int64), np.zeros(BINS, dtype=np.int64)
    totals = np.zeros((100, TOTALS))

    def setup():
        streams = new_streams(seed=1, replication=0, sources=["arrivals", "service"])
        totals[:] = 0
        return (
            *table,
            streams,
            np.zeros(servers),
            np.full(100, jobs // 100),
            totals,
            1.0,
            waiting,
            response,
        ), {}

    benchmark.pedantic(serve_batches, setup=setup, rounds=3, warmup_rounds=1)
    report(benchmark, jobs)


@pytest.mark.parametrize("servers", [1, 3])
def test_simpy(benchmark, servers):
    simpy = pytest.importorskip("simpy")
    jobs = 100_000

    def simulate():
        rng, env = random.Random(1), simpy.Environment()
        station = simpy.Resource(env, capacity=servers)
        waited = [0.0]

        def job():
            arrived = env.now
            with station.request() as turn:
                yield turn
                waited[0] += env.now - arrived
                yield env.timeout(rng.expovariate(1.0))

        def source():
            for _ in range(jobs):
                yield env.timeout(rng.expovariate(LOAD * servers))
                env.process(job())

        env.process(source())
        env.run()

    benchmark.pedantic(simulate, rounds=2)
    report(benchmark, jobs)


@pytest.mark.parametrize("servers", [1, 3])
def test_ciw(benchmark, servers):
    ciw = pytest.importorskip("ciw")
    jobs = 50_000
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(LOAD * servers)],
        service_distributions=[ciw.dists.Exponential(1.0)],
        number_of_servers=[servers],
    )

    def setup():
        ciw.seed(1)
        return (ciw.Simulation(network),), {}

    benchmark.pedantic(
        lambda simulation: simulation.simulate_until_max_customers(jobs, method="Finish"),
        setup=setup,
        rounds=2,
    )
    report(benchmark, jobs)


@pytest.mark.parametrize("name", ["M/M/1", "M/M/3", "five"])
def test_ldes(benchmark, name, tmp_path):
    """The binary alone, on a model written by LINE once; a job passes five stations 1.25 times there."""
    line = pytest.importorskip("line_solver")
    visits = STATIONS / (1 - FEEDBACK) if name == "five" else 1
    jobs = 2_000_000
    model = line_model(line, name)
    command = ldes_command(line, model, tmp_path, int(jobs * visits))
    benchmark.pedantic(
        lambda: subprocess.run(command, check=True, capture_output=True), rounds=3, warmup_rounds=1
    )
    report(benchmark, jobs, completions_per_second=jobs * visits)


def line_model(line, name):
    model = line.Network("model")
    source, sink = line.Source(model, "source"), line.Sink(model, "sink")
    count, classes, servers = (STATIONS, 2, 1) if name == "five" else (1, 1, int(name[-1]))
    stations = [line.Queue(model, f"q{k}", line.SchedStrategy.FCFS) for k in range(count)]
    for k in range(classes):
        job_class = line.OpenClass(model, f"c{k}")
        source.setArrival(job_class, line.Exp(0.3 if name == "five" else LOAD * servers))
        for station in stations:
            station.setService(job_class, line.Exp(1.0))
            station.setNumberOfServers(servers)
    if count == 1:
        model.link(line.Network.serialRouting(source, *stations, sink))
        return model
    routing = model.initRoutingMatrix()
    for job_class in model.getClasses():
        routing.set(job_class, job_class, source, stations[0], 1.0)
        for here, there in zip(stations[:-1], stations[1:], strict=True):
            routing.set(job_class, job_class, here, there, 1.0)
        routing.set(job_class, job_class, stations[-1], stations[0], FEEDBACK)
        routing.set(job_class, job_class, stations[-1], sink, 1 - FEEDBACK)
    model.link(routing)
    return model


def ldes_command(line, model, folder, completions):
    """Let LINE write the model for its binary, and return the command that runs it."""
    from line_solver.solvers.wrappers.solver_ldes import solver_ldes

    kept: list[list[str]] = []
    real = subprocess.run

    def spy(command, *args, **kwargs):
        source = next(part for part in command if str(part).endswith("model.json"))
        (folder / "model.json").write_bytes(Path(source).read_bytes())
        kept.append([str(folder / "model.json") if part == source else str(part) for part in command])
        return real(command, *args, **kwargs)

    solver_ldes.subprocess.run = spy
    try:
        line.SolverLDES(model, samples=20_000, seed=1, verbose=False).getAvgTable()
    finally:
        solver_ldes.subprocess.run = real
    command = kept[0]
    command[command.index("-o") + 1] = str(folder / "result.json")
    command[command.index("-s") + 1] = str(completions)
    return command
