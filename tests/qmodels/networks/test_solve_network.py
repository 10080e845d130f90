"""Which model answers for a spec: against closed forms of textbooks, balance equations and the models."""

import math

import numpy as np
import pytest

from qmodels import JobClass, QueueingNetwork, Station, single_station, solve, tandem
from qmodels.laws import (
    MAP,
    Deterministic,
    Empirical,
    Erlang,
    Exponential,
    Geometric,
    HyperExponential,
    LogNormal,
)
from qmodels.networks import linearizer, qna
from qmodels.systems.stations.parts import ForkJoin

INF = math.inf
POISSON, UNIT = Exponential(mean=1.25), Exponential(mean=1.0)
FAST, HALF = Exponential(mean=0.2), Exponential(mean=0.5)
BURSTY = MAP(d0=[[-5, 1], [1, -3]], d1=[[4, 0], [0, 2]])


def one(**changes):
    return single_station(**{"arrivals": POISSON, "service": UNIT, **changes})


def two_classes(discipline="fifo", service=None, **station):
    service = service or {"a": Exponential(mean=0.5), "b": Erlang(mean=2.0, phases=2)}
    return QueueingNetwork(
        stations=[Station(name="q", service=service, discipline=discipline, **station)],
        classes=[
            JobClass(name="a", arrivals=Exponential(mean=2.0)),
            JobClass(name="b", arrivals=Exponential(mean=5.0), priority=1),
        ],
    )


def cpu_and_disk(classes, cpu=FAST, disk=HALF, routing=None, **station):
    return QueueingNetwork(
        stations=[Station(name="cpu", service=cpu), Station(name="disk", service=disk, **station)],
        classes=classes,
        routing=routing or {"cpu": {"disk": 0.5}, "disk": "cpu"},
    )


OPEN = JobClass(arrivals=Exponential(mean=1.0))

# Textbook values at load 0.8 unless said: Pollaczek-Khinchine, Little, Erlang, memorylessness.
STATIONS = [
    (one(), "M/M/c", "exact", {"mean_response_time": 5.0, "mean_number_in_queue": 3.2, "utilization": 0.8}),
    (one(service=Deterministic(mean=1.0)), "M/D/c", "exact", {"mean_waiting_time": 2.0}),
    (one(service=Erlang(mean=1.0, phases=2)), "M/G/1", "exact", {"mean_waiting_time": 3.0}),
    (one(service=LogNormal(mean=1.0, scv=2.0)), "M/G/1", "exact", {"mean_waiting_time": 6.0}),
    (
        one(service=Erlang(mean=1.0, phases=2), discipline="lifo"),
        "M/G/1",
        "exact",
        {"mean_waiting_time": 3.0},
    ),
    (one(discipline="sharing"), "M/M/1 processor sharing", "exact", {"mean_response_time": 5.0}),
    (
        one(discipline="sharing", service=LogNormal(mean=1.0, scv=9.0)),
        "M/G/1 processor sharing",
        "exact",
        {"mean_response_time": 5.0, "mean_number_in_system": 4.0},
    ),
    (
        one(discipline="lifo-preemptive", service=LogNormal(mean=1.0, scv=9.0)),
        "Jackson",
        "exact",
        {"mean_response_time": 5.0},
    ),
    (
        one(servers=INF, service=LogNormal(mean=1.0, scv=9.0)),
        "M/G/inf",
        "exact",
        {"mean_number_in_system": 0.8},
    ),
    (
        one(capacity=2),
        "M/M/c/K",
        "exact",
        {"blocking_probability": 0.64 / 2.44, "throughput": 0.8 * 1.8 / 2.44},
    ),
    (
        one(servers=2, capacity=2, service=LogNormal(mean=1.0, scv=9.0)),
        "M/G/c/c",
        "exact",
        {"blocking_probability": 0.32 / 2.12, "system_loss_probability": 0.32 / 2.12},
    ),
    # Without waiting places a delay is Erlang's loss system; it is never busy by convention.
    (
        one(servers=INF, capacity=2),
        "M/G/c/c",
        "exact",
        {"blocking_probability": 0.32 / 2.12, "utilization": 0.0},
    ),
    (
        one(capacity=2, discipline="sharing", service=Deterministic(mean=1.0)),
        "M/M/c/K",
        "exact",
        {"blocking_probability": 0.64 / 2.44},
    ),
    # M/D/1/2: the embedded chain of two states, by hand.
    (
        one(capacity=2, service=Deterministic(mean=1.0)),
        "M/G/1/K",
        "exact",
        {"blocking_probability": 1 - 1 / (0.8 + math.exp(-0.8))},
    ),
    (
        one(batch=Deterministic(mean=2.0), arrivals=Exponential(mean=2.5)),
        "M^[X]/G/1",
        "exact",
        {"mean_waiting_time": 0.8 / 0.2 + 0.5 / 0.2, "throughput": 0.8},
    ),
    (
        one(vacation=Deterministic(mean=2.0)),
        "M/G/1 with multiple vacations",
        "exact",
        {"mean_waiting_time": 5.0},
    ),
    (one(setup=Exponential(mean=2.0)), "M/G/1 with set-up", "exact", {"mean_waiting_time": 6.0}),
    # Both rates alike, M/M/1+M is M/M/inf.
    (
        one(patience=UNIT),
        "M/M/c+M (Erlang A)",
        "exact",
        {"mean_number_in_system": 0.8, "throughput": 1 - math.exp(-0.8)},
    ),
    # Speeds 1, 2, 2.5 at load 0.8: p0 (1 + 0.8 + 0.32 / (1 - 0.32)) = 1.
    (
        one(rate_multiplier=(1, 2, 2.5)),
        "Jackson",
        "exact",
        {"utilization": 1 - 1 / (1.8 + 0.32 / 0.68)},
    ),
    (one(rate_multiplier=(1, 2), capacity=2), "state-dependent birth-death station", "exact", {}),
    (one(arrivals=Deterministic(mean=1.25), servers=2), "GI/M/c", "exact", {}),
    (one(arrivals=Erlang(mean=1.25, phases=2)), "GI/M/c", "exact", {}),
    (one(arrivals=BURSTY, service=Exponential(mean=0.2)), "MAP/PH/1", "exact", {"utilization": 0.6}),
    (one(service=BURSTY), "MAP/MAP/1", "exact", {"utilization": 0.8 / 3}),
    (one(arrivals=BURSTY, service=Deterministic(mean=0.2), capacity=4), "MAP/G/1/K", "exact", {}),
    (one(service=LogNormal(mean=2.0, scv=2.0), servers=3), "GI/G/c (Kimura)", "approximation", {}),
    (
        one(arrivals=LogNormal(mean=1.25, scv=2.0), service=LogNormal(mean=1.0, scv=2.0)),
        "GI/G/1 (Kraemer and Langenbach-Belz)",
        "approximation",
        {},
    ),
    (
        one(arrivals=Geometric(mean=5.0), service=Deterministic(mean=4.0), clocked=True),
        "Geo/G/1",
        "exact",
        {"mean_waiting_time": 6.0},
    ),
    (
        one(
            arrivals=Geometric(mean=5.0),
            service=Deterministic(mean=2.0),
            batch=Deterministic(mean=2.0),
            clocked=True,
        ),
        "Geo^[X]/G/1",
        "exact",
        # Batches of two in a fifth of the slots: E[A(A-1)] = 0.4 at rate 0.4, service 2.
        {"mean_waiting_time": (0.4 * 2 + 0.4 * 4) / (2 * 0.2) + 0.4 / 0.8 * 2},
    ),
]


@pytest.mark.parametrize(
    ("spec", "model", "kind", "values"), STATIONS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_single_stations(spec, model, kind, values):
    answer = solve(spec)
    assert (answer.model, answer.kind, answer.stable) == (model, kind, True)
    for metric, value in values.items():
        assert answer[metric] == pytest.approx(value, rel=1e-9), metric
    metrics = answer.metrics
    assert (
        metrics["mean_number_in_system"]
        == pytest.approx(metrics["throughput"] * metrics["mean_response_time"], rel=1e-9)
        or "abandonment_probability" in metrics
    )


def test_classes_that_share_a_server():
    """Cobham's waits by hand: W0 = (0.5 * 0.5 + 0.2 * 6) / 2, loads 0.25 and 0.65."""
    wait = (0.5 * 0.5 + 0.2 * 6.0) / 2
    together = solve(two_classes())
    assert together["mean_waiting_time[a]"] == together["mean_waiting_time[b]"] == pytest.approx(wait / 0.35)
    assert together["mean_response_time"] == pytest.approx(wait / 0.35 + (0.5 * 0.5 + 0.2 * 2) / 0.7)
    first = solve(two_classes("priority"))
    assert first["mean_waiting_time[a]"] == pytest.approx(wait / 0.75)
    assert first["mean_waiting_time[b]"] == pytest.approx(wait / 0.75 / 0.35)
    preempt = solve(two_classes("priority-preemptive"))
    assert preempt["mean_response_time[a]"] == pytest.approx(0.5 / 0.75)
    for discipline in ("sharing", "lifo-preemptive"):
        shared = solve(two_classes(discipline))
        assert shared.model == "BCMP" and shared["mean_response_time[b]"] == pytest.approx(2 / 0.35)
    alike = solve(two_classes("priority", service=UNIT, servers=2))
    assert alike.model == "M/M/c non-preemptive priorities"


def test_equal_priorities_are_one_level():
    spec = QueueingNetwork(
        stations=[
            Station(
                name="q",
                service={"a": UNIT, "b": Erlang(mean=2.0, phases=2), "c": UNIT},
                discipline="priority",
            )
        ],
        classes=[
            JobClass(name="a", arrivals=Exponential(mean=5.0)),
            JobClass(name="b", arrivals=Exponential(mean=10.0)),
            JobClass(name="c", arrivals=Exponential(mean=5.0), priority=1),
        ],
    )
    answer = solve(spec)
    wait = (0.2 * 2 + 0.1 * 6 + 0.2 * 2) / 2
    assert answer["mean_waiting_time[a]"] == answer["mean_waiting_time[b]"] == pytest.approx(wait / 0.6)
    assert answer["mean_waiting_time[c]"] == pytest.approx(wait / 0.6 / 0.4)
    assert answer["throughput[b]"] == pytest.approx(0.1)


def test_overload_is_an_answer():
    answer = solve(one(arrivals=Exponential(mean=0.5)))
    assert not answer.stable and answer["mean_response_time"] == INF and answer["utilization"] == 1
    assert "overloaded" in repr(answer)


def test_a_class_that_never_gets_the_server_waits_for_ever():
    spec = QueueingNetwork(
        stations=[Station(name="q", service=UNIT, discipline="priority-preemptive")],
        classes=[
            JobClass(name="a", arrivals=Exponential(mean=0.8)),
            JobClass(name="b", arrivals=Exponential(mean=2.0), priority=1),
        ],
    )
    answer = solve(spec)
    assert answer["throughput[b]"] == 0 and answer["mean_number_in_system[b]"] == INF
    assert answer["mean_response_time"] == INF and not answer.stable


def test_open_networks():
    answer = solve(cpu_and_disk(OPEN))
    # Flows 2 and 1: M/M/1 with loads 0.4 and 0.5.
    assert (answer.model, answer.kind) == ("Jackson", "exact")
    assert answer["mean_response_time[cpu]"] == pytest.approx(1 / 3)
    assert answer["mean_number_in_system[disk]"] == pytest.approx(1.0)
    assert answer["system_response_time"] == pytest.approx(2 / 3 + 1.0)
    assert answer.bottleneck == "disk"
    general = cpu_and_disk(JobClass(arrivals=Erlang(mean=1.0, phases=2)), disk=LogNormal(mean=0.5, scv=2.0))
    same = qna(
        arrival_rate=[1, 0],
        service_rate=[5, 2],
        routing=[[0, 0.5], [1, 0]],
        arrival_scv=[0.5, 0.5],
        service_scv=[1, 2],
    )
    found = solve(general)
    assert (found.model, found.kind) == ("QNA (Whitt)", "approximation")
    assert found["mean_response_time[disk]"] == pytest.approx(same.mean_response_time[1])


def test_jobs_that_change_class():
    spec = cpu_and_disk(
        [JobClass(name="a", arrivals=Exponential(mean=1.0)), JobClass(name="b")],
        routing={("cpu", "a"): ("disk", "b"), ("disk", "b"): {"cpu": 0.2}},
    )
    answer = solve(spec)
    # Flow of b: through the disk 1 / (1 - 0) since b leaves the cpu; the cpu serves 1 of a and 0.2 of b.
    assert answer["throughput[cpu, b]"] == pytest.approx(0.2) and answer[
        "throughput[disk, b]"
    ] == pytest.approx(1)
    assert answer["system_throughput"] == pytest.approx(1)
    assert answer["system_response_time"] == pytest.approx(1.2 * 0.2 / (1 - 0.24) + 0.5 / 0.5)
    assert "system_response_time[a]" not in answer.metrics


def test_closed_network_against_its_balance_equations():
    """Three jobs between an exponential server and two exponential disks, as a chain of four states."""
    spec = cpu_and_disk(
        JobClass(population=3),
        disk=Exponential(mean=3.0),
        cpu=UNIT,
        routing={"cpu": "disk", "disk": "cpu"},
        servers=2,
    )
    rates = np.zeros((4, 4))
    for at_cpu in range(4):
        if at_cpu:
            rates[at_cpu, at_cpu - 1] = 1.0
        if at_cpu < 3:
            rates[at_cpu, at_cpu + 1] = min(3 - at_cpu, 2) / 3.0
    balance = np.vstack([(rates - np.diag(rates.sum(axis=1))).T, np.ones(4)])
    law = np.linalg.lstsq(balance, np.array([0.0, 0, 0, 0, 1]))[0]
    answer = solve(spec)
    assert (answer.model, answer.kind) == ("MVA", "exact")
    assert answer["mean_number_in_system[cpu]"] == pytest.approx(law @ np.arange(4))
    assert answer["system_throughput"] == pytest.approx(1 - law[0])


def test_the_stay_at_a_reference_that_is_a_delay_is_no_response():
    spec = QueueingNetwork(
        stations=[
            Station(name="think", service=LogNormal(mean=5.0, scv=2.0), servers=INF),
            Station(name="disk", service=UNIT),
        ],
        classes=JobClass(population=1),
        routing={"think": "disk", "disk": "think"},
    )
    answer = solve(spec)
    assert answer["system_response_time"] == pytest.approx(1.0)
    assert answer["system_throughput"] == pytest.approx(1 / 6)
    assert answer["mean_number_in_network"] == pytest.approx(1 / 6)


def test_other_closed_and_mixed_networks():
    back = {"cpu": "disk", "disk": "cpu"}
    general = solve(cpu_and_disk(JobClass(population=4), disk=Deterministic(mean=0.5), routing=back))
    same = linearizer(population=4, mean_service_time=[0.2, 0.5], discipline="fcfs", service_scv=[1, 0])
    assert (general.model, general.kind) == (same.model, "approximation")
    assert general["system_throughput"] == pytest.approx(float(same.system_throughput))
    mixture = cpu_and_disk(
        [JobClass(name="a", population=2), JobClass(name="b", arrivals=Exponential(mean=4.0))],
        routing={("cpu", "a"): "disk", ("disk", "a"): "cpu", ("cpu", "b"): "disk"},
    )
    answer = solve(mixture)
    assert answer.model == "mixed BCMP" and answer["system_throughput[b]"] == pytest.approx(0.25)
    assert answer["mean_number_in_network[a]"] == pytest.approx(2)


def test_finite_lines_and_losses():
    line = tandem(arrivals=POISSON, services=[UNIT, UNIT], capacity=[4, 2], when_full="after-service")
    answer = solve(line)
    assert answer.model == "tandem, blocking after-service"
    assert "blocking_probability[2]" not in answer.metrics and answer["blocking_probability[1]"] > 0
    assert answer["system_loss_probability"] == pytest.approx(answer["blocking_probability[1]"], rel=1e-6)
    loss = solve(tandem(arrivals=POISSON, services=[UNIT, UNIT], capacity=[4, 2], servers=[1, 2]))
    assert loss.model == "loss network" and 0 < loss["blocking_probability[2]"] < 1


def test_fork_and_join():
    spec = QueueingNetwork(
        stations=[
            Station(name="a", service=Exponential(mean=0.5)),
            Station(name="b", service=Exponential(mean=0.5)),
        ],
        classes=JobClass(arrivals=Exponential(mean=1.0), entry="f"),
        forks=[ForkJoin(name="f", branches=["a", "b"])],
    )
    answer = solve(spec)
    # Flatto and Hahn: (12 - rho) / 8 of the M/M/1 response.
    assert answer.kind == "exact" and answer["system_response_time"] == pytest.approx((12 - 0.5) / 8)


def test_says_its_method():
    answer = solve(two_classes())
    assert repr(answer).startswith("M/G/1 (exact)\n") and answer.result.model == "M/G/1"


def test_the_answer_of_a_single_queue_keeps_its_quantiles_but_for_another_order():
    assert solve(one()).result.waiting_time_quantile(0.8) == pytest.approx(5 * math.log(0.8 / 0.2))
    with pytest.raises(ValueError, match="no waiting-time distribution is known"):
        solve(one(discipline="lifo")).result.waiting_time_quantile(0.8)


def test_hyperexponential_and_empirical_services_reach_the_models():
    h2 = solve(one(service=HyperExponential(probabilities=[0.5, 0.5], means=[0.5, 1.5])))
    # E[S^2] = 0.5 * 2 * 0.25 + 0.5 * 2 * 2.25 = 2.5.
    assert h2["mean_waiting_time"] == pytest.approx(0.8 * 2.5 / 2 / 0.2)


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_a_random_share_of_a_regular_stream_is_less_regular(share):
    # A share of arrivals 1 apart comes after a geometric number of ticks: GI/M/1 with the root s of
    # s = E[exp(-(1 - s) mu T)], waiting time s / (1 - s) / mu.
    mean = 0.6 / share
    net = QueueingNetwork(
        stations=[Station(name="q", service=Exponential(mean=mean)), Station(name="r", service=FAST)],
        classes=JobClass(arrivals=Deterministic(mean=1.0), entry={"q": share}),
        routing={"q": "r"},
    )
    root = 0.5
    for _ in range(200):
        tick = math.exp(-(1 - root) / mean)
        root = share * tick / (1 - (1 - share) * tick)
    exact = root / (1 - root) * mean
    # Measured: 7.9, 13.5 and 0.2 % off. With the SCV of the undivided stream the first two are 60 and 48 %.
    assert solve(net)["mean_waiting_time[q]"] == pytest.approx(exact, rel=0.14)


@pytest.mark.parametrize("capacity", [3, INF])
def test_arrivals_that_leave_at_once_pass_the_network_in_no_time(capacity):
    whole = tandem(arrivals=Exponential(mean=2.0), services=[UNIT, HALF], capacity=capacity)
    half = QueueingNetwork(
        stations=whole.stations,
        classes=JobClass(arrivals=Exponential(mean=1.0), entry={"1": 0.5}),
        routing={"1": "2"},
    )
    all_come, half_come = solve(whole), solve(half)
    for name, value in all_come.metrics.items():
        if not name.startswith("system"):
            assert half_come[name] == pytest.approx(value, rel=1e-12)
    assert half_come["system_throughput"] == pytest.approx(all_come["system_throughput"] + 0.5)
    if capacity == INF:
        # 1 / (1 - 0.5) + 1 / (2 - 0.5) for those that come in.
        assert half_come["system_response_time"] == pytest.approx((2 + 1 / 1.5) / 2)
    else:
        assert half_come["system_loss_probability"] == pytest.approx(all_come["system_loss_probability"] / 2)


@pytest.mark.parametrize(
    "spec",
    [
        one(service=Deterministic(mean=0)),
        one(service=Deterministic(mean=0), capacity=3),
        tandem(arrivals=POISSON, services=[UNIT, Deterministic(mean=0)]),
        tandem(arrivals=POISSON, services=[UNIT, Deterministic(mean=0)], capacity=3),
    ],
)
def test_services_that_take_no_time_have_no_model(spec):
    with pytest.raises(ValueError, match="no model covers services that take no time at station '.+'; sim"):
        solve(spec)


def test_constant_services_of_several_classes_have_no_spread():
    same = two_classes(service={"a": Deterministic(mean=0.1), "b": Empirical(values=[0.1] * 3)})
    assert solve(same)["mean_waiting_time"] == pytest.approx(0.07 * 0.1 / 2 / (1 - 0.07))
