"""Networks with finite buffers: loss and blocking."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.networks.open.jackson import OneClass
from qmodels.networks.open.traffic import solve_traffic
from qmodels.networks.result import NetworkResult
from qmodels.networks.words import described
from qmodels.queues.markovian.mmck import mmck

LEAST_SCV = 0.1  # of a service time or a time between arrivals: ten phases
_LEAST_WAIT_SCV = 0.25  # of the rest of a time that a neighbour waits for: four phases


class Law(NamedTuple):
    """A phase-type law."""

    initial: FloatArray  # probabilities to start in each phase
    rates: FloatArray  # generator of the phases

    @property
    def exits(self) -> FloatArray:
        """Rate of completion in each phase."""
        return np.asarray(np.maximum(-self.rates.sum(axis=1), 0.0))

    def moments(self) -> tuple[float, float]:
        """Return the first two moments."""
        once = np.linalg.solve(-self.rates, np.ones(self.initial.size))
        return float(self.initial @ once), float(2 * self.initial @ np.linalg.solve(-self.rates, once))


class Wait(NamedTuple):
    """A wait that a job meets with some probability."""

    probability: float  # of meeting it
    # mean, second: first two moments where it is met [time, time^2].
    mean: float
    second: float


NEVER = Wait(0.0, 0.0, 0.0)


class Station(NamedTuple):
    """State of a station of the tandem, and its messages to its neighbours."""

    throughput: float  # jobs that leave [jobs / time]
    mean_number: float  # jobs in its places
    refused: float  # probability that a job finds no place, at its first attempt
    starved: Wait  # what its server waits for a job after one has left
    blocked: Wait  # what the server upstream waits for a place


def two_moment_law(mean: float, scv: float, least_scv: float = LEAST_SCV) -> Law:
    """Return a phase-type law of given mean and SCV, at least the least one."""
    from qmodels.markov.processes.moment_fits import ph_from_moments

    scv = max(scv, least_scv)
    fit = ph_from_moments(mean=mean, scv=1.0 if abs(scv - 1) < 1e-9 else scv)
    return Law(np.asarray(fit.initial, dtype=float), np.asarray(fit.generator, dtype=float))


def _sequence(first: Law, second: Law, onward: float, start: float) -> Law:
    """Return the first law, begun with probability `start`, then with probability `onward` the second."""
    k, n = first.initial.size, first.initial.size + second.initial.size
    rates = np.zeros((n, n))
    rates[:k, :k], rates[k:, k:] = first.rates, second.rates
    rates[:k, k:] = onward * np.outer(first.exits, second.initial)
    return Law(np.concatenate([start * first.initial, (1 - start) * second.initial]), rates)


def wait_then_serve(wait: Wait, service: Law) -> Law:
    """Return the wait, where it is met, and then the service."""
    return _sequence(_wait_law(wait), service, 1.0, wait.probability)


def serve_then_wait(service: Law, wait: Wait) -> Law:
    """Return the service and then the wait, where it is met."""
    return _sequence(service, _wait_law(wait), wait.probability, 1.0)


def _wait_law(wait: Wait) -> Law:
    """Return the law of a wait that is met, without a phase if it never is."""
    if wait.probability <= 0:
        return Law(np.zeros(0), np.zeros((0, 0)))
    return two_moment_law(wait.mean, wait.second / wait.mean**2 - 1, _LEAST_WAIT_SCV)


def _wait(starts: FloatArray, throughput: float, rates: FloatArray) -> Wait:
    flow = float(starts.sum())
    if flow <= 1e-14 * throughput:
        return NEVER
    return Wait(min(flow / throughput, 1.0), *Law(starts / flow, rates).moments())


class _Full(NamedTuple):
    """Phases of the upstream server while the station is full."""

    rates: FloatArray  # generator of these phases
    enter: FloatArray  # rates from its usual phases to these, by a delivery that takes the last place
    leave: FloatArray  # probabilities from these to its usual phases, when a place gets free
    stay: FloatArray  # probabilities from these to these, when a place gets free and is taken at once
    fails: FloatArray  # rate at which a delivery first meets the full station, per phase
    # Rate at which the delivery of the last place blocks the next one, per usual phase.
    fails_at_once: FloatArray


def _full(upstream: Law, starved: Wait, service: Law, blocking: str) -> _Full:
    k, exits = upstream.initial.size, upstream.exits
    enter = np.outer(exits, upstream.initial)
    none, never = np.zeros((k, k)), np.zeros(k)
    if blocking == "loss":
        return _Full(upstream.rates + enter, enter, np.eye(k), none, exits, never)
    if blocking == "repetitive-service":
        # The last phases are those of repeated services: which failures are first ones stays visible.
        again = np.concatenate([np.zeros(k - service.initial.size), service.initial])
        first = np.where(np.arange(k) < k - service.initial.size, exits, 0.0)
        return _Full(upstream.rates + np.outer(exits, again), enter, np.eye(k), none, first, never)
    if blocking == "after-service":
        # One more phase: the server holds a finished job.
        rates = np.pad(upstream.rates, (0, 1))
        rates[:k, k] = exits
        stay = np.zeros((k + 1, k + 1))
        stay[k, :k] = upstream.initial
        leave = np.eye(k + 1, k)
        return _Full(rates, np.pad(enter, ((0, 0), (0, 1))), leave, stay, np.append(exits, 0.0), never)
    # Before service: it may wait for a job, but not start to serve it.
    w = k - service.initial.size
    waiting = Law(upstream.initial[:w], upstream.rates[:w, :w])
    rates = np.pad(waiting.rates, (0, 1))
    rates[:w, w] = waiting.exits
    ready = 1 - starved.probability
    enter = np.outer(exits, np.append(waiting.initial, ready))
    leave = np.zeros((w + 1, k))
    leave[:w, :w], leave[w, w:] = np.eye(w), service.initial
    return _Full(rates, enter, leave, np.zeros((w + 1, w + 1)), np.append(waiting.exits, 0.0), exits * ready)


def solve_station(*, starved: Wait, service: Law, downstream: Law, places: int, blocking: str) -> Station:
    """Solve the Markov chain of a station between an upstream and a downstream server.

    ``starved``: what the upstream server waits for a job after a delivery; ``service``: service of the
    upstream server; ``downstream``: time a job holds the station's own server; ``places``: jobs in the
    station, including the one in service; ``blocking``: what happens to a delivery without a place,
    "loss", "after-service", "before-service" or "repetitive-service".
    """
    upstream = wait_then_serve(starved, service)
    if blocking == "repetitive-service":
        upstream = _sequence(upstream, service, 0.0, 1.0)
    full = _full(upstream, starved, service, blocking)
    law = _stationary(_levels(upstream, full, downstream, places))

    done, start = downstream.exits, downstream.initial
    boxes = [part.reshape(-1, start.size) for part in law[1:]]
    leaving = sum(float((box @ done).sum()) for box in boxes)
    counts = sum(n * float(box.sum()) for n, box in enumerate(boxes, start=1))
    emptying = boxes[0] @ done @ full.leave if places == 1 else boxes[0] @ done
    last = np.outer(law[0], start) if places == 1 else boxes[-2]
    failing = full.fails @ boxes[-1] + full.fails_at_once @ last
    refused = float(failing.sum()) / leaving
    blocked = _wait(failing, leaving, downstream.rates)
    if blocking == "loss":
        refused, blocked = refused / (1 + refused), NEVER
    elif blocking == "repetitive-service":
        blocked = _repetition(service, downstream, failing, leaving)
    return Station(leaving, counts, refused, _wait(emptying, leaving, upstream.rates), blocked)


def _repetition(service: Law, downstream: Law, failing: FloatArray, throughput: float) -> Wait:
    """Return the time from a first failure to the end of the service that finds a place."""
    k, m = service.initial.size, downstream.initial.size
    full = np.kron(service.rates + np.outer(service.exits, service.initial), np.eye(m))
    full += np.kron(np.eye(k), downstream.rates)
    rates = np.zeros((k * m + k, k * m + k))
    rates[: k * m, : k * m], rates[k * m :, k * m :] = full, service.rates
    rates[: k * m, k * m :] = np.kron(np.eye(k), downstream.exits[:, None])
    return _wait(np.concatenate([np.outer(service.initial, failing).ravel(), np.zeros(k)]), throughput, rates)


Level = tuple[Any, Any, Any]


def _levels(upstream: Law, full: _Full, downstream: Law, places: int) -> list[Level]:
    """Return for 0, ..., `places` jobs the rates within the level, to the level above and to that below."""
    up, down = np.eye(upstream.initial.size), np.eye(downstream.initial.size)
    arrive = np.outer(upstream.exits, upstream.initial)
    begin, served = downstream.initial[None, :], np.outer(downstream.exits, downstream.initial)
    nothing = np.zeros((0, 0))
    inside = np.kron(upstream.rates, down) + np.kron(up, downstream.rates)
    between, back_between = np.kron(arrive, down), np.kron(up, served)
    levels: list[Level] = []
    for n in range(places):
        above = between
        if n in (0, places - 1):
            above = np.kron(full.enter if n == places - 1 else arrive, begin if n == 0 else down)
        below = nothing if n == 0 else back_between
        if n == 1:
            below = np.kron(up, downstream.exits[:, None])
        levels.append((upstream.rates if n == 0 else inside, above, below))
    top = np.kron(full.rates, down) + np.kron(np.eye(len(full.rates)), downstream.rates)
    top += np.kron(full.stay, served)
    back = np.kron(full.leave, downstream.exits[:, None] if places == 1 else served)
    levels.append((top, nothing, back))
    return levels


def _stationary(levels: list[Level]) -> list[FloatArray]:
    """Return the stationary probabilities of a chain that moves by one level at a time.

    Elimination of the levels from the top: with S the rates within a level seen while the chain
    is not below it, the law of a level is that of the level below times (rates up) (-S)^-1.
    """
    ratios: list[FloatArray] = []
    censored, _, back = levels[-1]
    for local, above, below in reversed(levels[:-1]):
        ratio = np.linalg.solve(-censored.T, above.T).T
        ratios.append(ratio)
        censored, back = local + ratio @ back, below
    system = np.vstack([censored.T[1:], np.ones(len(censored))])
    law: list[Any] = [np.linalg.solve(system, np.eye(len(censored))[-1])]
    for ratio in reversed(ratios):
        law.append(law[-1] @ ratio)
    total = sum(float(part.sum()) for part in law)
    return [np.maximum(part, 0.0) / total for part in law]


BLOCKING = ("loss", "after-service", "before-service", "repetitive-service")

_SWEEPS = 500
_TOLERANCE = 1e-9


@described("dallery1993 (the scheme, exponential)", "perros1994 (the kinds of blocking)", raises="iteration")
def tandem_blocking(
    *,
    arrival_rate: float,
    service_rate: npt.ArrayLike,
    capacity: npt.ArrayLike,
    blocking: str = "after-service",
    arrival_scv: float = 1.0,
    service_scv: npt.ArrayLike = 1.0,
) -> NetworkResult:
    r"""Tandem of single servers with finite buffers, by two-moment decomposition.

    Jobs that find the first station full are lost. What happens to a job that has no place at a
    later one is the `blocking`:

    - ``"after-service"`` (transfer, manufacturing): the finished job stays on its server, which
      stands still, until there is a place;
    - ``"before-service"`` (service, communication): a server starts a job only when there is a place
      for it downstream;
    - ``"repetitive-service"`` (rejection): a finished job without a place is served again, with a
      new service time, until it finds one;
    - ``"loss"``: the job leaves the network.

    Parameters
    ----------
    arrival_rate : float
        Arrivals at the first station; ``inf`` keeps it full. [jobs / time]
    service_rate : array_like
        Rate of the server of each station. [jobs / time]
    capacity : int or array_like
        Places of each station, the one in service included.
    blocking : {"after-service", "before-service", "repetitive-service", "loss"}
        See above.
    arrival_scv, service_scv : float or array_like, optional
        Squared coefficients of variation of the times between arrivals and of the service times;
        1 by default. Below 0.1 they are taken as 0.1.

    Returns
    -------
    Kind "approximation". A blocked job counts at the station whose server holds it
    (upstream), and its waiting there to that station's response time; the server is not
    counted as busy meanwhile, nor with repeated services. `blocking_probability` is that of
    a job that wants to enter the station to find it full, at the first attempt: at the
    first station the loss, later what `blocking` says.

    Notes
    -----
    Each station is solved alone as a Markov chain between an upstream and a downstream server
    [1]_. The time of the downstream server is its service and, with the probability found at the
    next station, the rest of the time for which that one is full; the time of the upstream server
    is its service and, with the probability found at the station before, the rest of the time
    for which that one is empty. These waits are fitted by two moments, services by phase-type
    laws; forth and back through the line until nothing changes. The throughput then is the same
    at every station, except with loss.

    Approximation. Lines of 2 to 4 stations with 1 to 5 places and SCVs of 0.5, 1 and 3, against the
    CTMC of the whole line: throughput within 3 % (mean 0.4 %), mean numbers within 6 % of the
    capacity (mean 0.3 %). One station, and two of which the first is always full, are exact for
    exponential service. "before-service" and "repetitive-service" then are the same system.

    Examples
    --------
    Parser, lookup and egress with a few buffers between them:

    >>> line = tandem_blocking(arrival_rate=0.8, service_rate=[1.5, 1.0, 1.2], capacity=[8, 4, 4])
    >>> line.throughput.round(3), line.blocking_probability.round(3)
    (array([0.782, 0.782, 0.782]), array([0.023, 0.217, 0.082]))
    """
    rate = float(arrival_rate)
    if not (rate > 0):
        raise ValueError(f"arrival_rate must be > 0 or inf, got {arrival_rate!r}")
    mu, places, scv = np.broadcast_arrays(
        np.atleast_1d(checks.positive("service_rate", service_rate)),
        checks.count("capacity", capacity, maximum=10_000),
        checks.nonnegative("service_scv", service_scv),
    )
    if mu.ndim != 1:
        raise ValueError(f"service_rate must list the rate of each station, got shape {mu.shape}")
    checks.choice("blocking", blocking, BLOCKING)
    source_scv = float(checks.nonnegative("arrival_scv", arrival_scv))
    source = None if np.isinf(rate) else two_moment_law(1 / rate, source_scv)
    services = [two_moment_law(1 / m, c) for m, c in zip(mu.tolist(), scv.tolist(), strict=True)]
    stations = _sweep(source, services, places.tolist(), blocking)
    x = np.array([s.throughput for s in stations])
    number = np.array([s.mean_number for s in stations])
    size = mu.size
    return NetworkResult(
        model=f"tandem, blocking {blocking}" if blocking != "loss" else "tandem with loss",
        kind="approximation",
        stations=tuple(range(size)),
        throughput=x,
        utilization=x / mu,
        visits=np.ones(size),
        mean_response_time=number / x,
        mean_number_in_system=number,
        system_throughput=float(x[-1]),
        stable=np.ones(size, dtype=bool),
        blocking_probability=np.array([s.refused for s in stations]),
        routing=np.eye(size, k=1),
    )


def _sweep(source: Law | None, services: list[Law], places: list[int], blocking: str) -> list[Station]:
    """Solve the stations in turn, forth and back, until their waits for each other agree."""
    last = len(services) - 1
    starved = [NEVER] * (last + 1)
    blocked = [NEVER] * (last + 2)

    def solve(i: int) -> Station:
        own = services[i]
        if blocking == "before-service":
            down = wait_then_serve(blocked[i + 1], own)
        else:
            down = serve_then_wait(own, blocked[i + 1])
        if i > 0:
            return solve_station(
                starved=starved[i - 1],
                service=services[i - 1],
                downstream=down,
                places=places[i],
                blocking=blocking,
            )
        if source is not None:
            return solve_station(
                starved=NEVER, service=source, downstream=down, places=places[0], blocking="loss"
            )
        return Station(1 / down.moments()[0], float(places[0]), 0.0, NEVER, NEVER)

    before = 0.0
    for _ in range(_SWEEPS):
        for i in [*range(last + 1), *range(last, 0, -1)]:
            one = solve(i)
            starved[i], blocked[i] = one.starved, one.blocked
        now = one.throughput
        if abs(now - before) <= _TOLERANCE * now:
            return [solve(i) for i in range(last + 1)]
        before = now
    raise RuntimeError(
        f"decomposition did not converge in {_SWEEPS} sweeps (throughput {before:.6g}, then {now:.6g})"
    )


@described("gross2008, section 2.5 (the station)", routing="open")
def loss_network(
    *, arrival_rate: Any, service_rate: Any, routing: Any, capacity: Any, servers: Any = 1
) -> NetworkResult:
    r"""Open network of M/M/c/K stations in which jobs that find a station full are lost.

    Parameters
    ----------
    arrival_rate : array_like or mapping
        Poisson arrivals from outside, per station. [jobs / time]
    capacity : int, array_like or mapping
        Places of each station, those in service included.
    servers : int, array_like or mapping, optional
        Servers per station.

    Returns
    -------
    Kind "approximation"; `blocking_probability` is the share of the jobs that want to enter
    a station and are lost, times are those of the jobs that enter.

    Raises
    ------
    ValueError
        If an argument is out of range, or a capacity is below the number of servers.
    RuntimeError
        If the iteration does not converge.

    Notes
    -----
    Every flow is taken as Poisson: :math:`\lambda_j = \gamma_j + \sum_i \lambda_i (1 - B_i)
    p_{ij}` with the blocking :math:`B_i` of M/M/c/K, by substitution from the largest flows
    downwards. Exact where only stations that jobs enter from outside are ever full.
    Approximation otherwise; for lines with two moments see `tandem_blocking`.

    Examples
    --------
    >>> line = [[0, 1], [0, 0]]
    >>> r = loss_network(arrival_rate=[0.9, 0], service_rate=[1, 1], routing=line, capacity=[5, 3])
    >>> r.blocking_probability.round(4), round(r.system_throughput, 4)
    (array([0.126 , 0.1683]), 0.6542)
    """
    net = OneClass.read(routing, arrival_rate, service_rate)
    gamma, mu = net.entering, net.service_rate
    places = net.per("capacity", capacity, checks.count)
    count = net.per("servers", servers, checks.count)
    offered = rates = solve_traffic(gamma, net.routing)
    for _ in range(_SWEEPS):
        q = mmck(arrival_rate=rates, service_rate=mu, servers=count, capacity=places)
        following = gamma + q.throughput @ net.routing
        change = float(np.max(np.abs(following - rates), initial=0.0))
        rates = following
        if change <= _TOLERANCE * rates.max(initial=0.0):
            break
    else:
        raise RuntimeError(
            f"loss network did not converge in {_SWEEPS} sweeps (change of a flow {change:.3g})"
        )
    q = mmck(arrival_rate=rates, service_rate=mu, servers=count, capacity=places)
    return net.result(
        model="loss network",
        kind="approximation",
        offered=offered,
        throughput=q.throughput,
        utilization=q.utilization,
        response=q.mean_response_time,
        mean_number_in_system=q.mean_number_in_system,
        blocking_probability=q.blocking_probability,
    )
