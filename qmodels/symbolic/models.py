"""Construction of each closed form from symbols; see `qmodels.symbolic`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from qmodels import checks
from qmodels.libraries import sympy
from qmodels.networks.closed.mva import mva_recursion
from qmodels.networks.open.fork_join import nelson_tantawi_factor, two_branch_response
from qmodels.queues.disciplines.priority import priority_waiting_time
from qmodels.queues.general.discrete import geoxg1_waiting_time
from qmodels.queues.general.gg1 import (
    daley_bound,
    kingman_waiting_time,
    klb_exponent,
    marchal_waiting_time,
    marshall_bound,
)
from qmodels.queues.general.ggc import allen_cunneen_waiting_time
from qmodels.queues.general.mg1 import mg1_waiting_time, mg1_waiting_time_variance, mxg1_waiting_time
from qmodels.queues.markovian.erlang import erlang_b_step, erlang_c_from_b
from qmodels.queues.markovian.mmc import mm1_waiting_time, mmc_waiting_time
from qmodels.queues.markovian.mmck import mmck_blocking, mmck_waiting_time

_NAMES = {
    "arrival_rate": "lambda",
    "service_rate": "mu",
    "mean_service_time": "m_1",
    "arrival_scv": "c_a^2",
    "service_scv": "c_s^2",
    "service_third_moment": "m_3",
    "batch_mean": "g_1",
    "batch_second_moment": "g_2",
    "arrival_variance": "sigma_A^2",
    "think_time": "Z",
}


class Parameters:
    """Hands out values, makes symbols of what is not given, and knows what was asked for."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = dict(given)
        self.used: dict[str, Any] = {}
        self.whole: set[str] = set()

    def __call__(self, name: str, suffix: str = "") -> Any:
        """Value of an argument: the one given, or a symbol."""
        key = name + suffix
        default = sympy.Symbol(_NAMES.get(name, name) + suffix, positive=True)
        value = self.given.get(key, default)
        if not isinstance(value, sympy.Basic):
            checks.one_number(key, value)
            checks.finite(key, value)
        self.used[key] = sympy.sympify(value)
        return self.used[key]

    def count(self, name: str, minimum: int = 1) -> int:
        """Return a whole number that was given."""
        if name not in self.given:
            raise ValueError(f"{name} must be given as a whole number, got a symbol")
        self.whole.add(name)
        return int(checks.count(name, self.given[name], minimum=minimum))

    def flag(self, name: str, default: bool) -> bool:
        """Return a choice that was given, or its default."""
        self.whole.add(name)
        return bool(self.given.get(name, default))

    def finish(self) -> None:
        """Refuse arguments that the model does not have."""
        known = [*self.used, *self.whole]
        for name in self.given:
            checks.choice("parameter", name, known)


Built = tuple[dict[str, Any], Any]


def _station(lam: Any, m1: Any, wait: Any, servers: Any = 1, admitted: Any = 1, **more: Any) -> Built:
    """Derive the other metrics by Little's law."""
    throughput = lam * admitted
    response = wait + m1
    metrics = {
        "throughput": throughput,
        "utilization": throughput * m1 / servers,
        "mean_waiting_time": wait,
        "mean_response_time": _tidy(response),
        "mean_number_in_queue": _tidy(throughput * wait),
        "mean_number_in_system": _tidy(throughput * response),
    }
    finite = "blocking_probability" in more
    return metrics | more, _true() if finite else lam * m1 < servers


def _tidy(expression: Any) -> Any:
    return sympy.factor(expression) if expression.is_rational_function() else expression


def _true() -> Any:
    return sympy.true


def _mm1(p: Parameters) -> Built:
    lam, mu = p("arrival_rate"), p("service_rate")
    return _station(lam, 1 / mu, mm1_waiting_time(lam / mu, mu - lam), waiting_probability=lam / mu)


def _erlang_b(load: Any, servers: int) -> Any:
    blocking: Any = 1
    for n in range(1, servers + 1):
        # At once: SymPy asks nested fractions for their signs again at every level.
        blocking = _tidy(erlang_b_step(n, load, blocking))
    return blocking


def _mmc_wait(lam: Any, mu: Any, c: int) -> tuple[Any, Any]:
    waiting = _tidy(erlang_c_from_b(_erlang_b(lam / mu, c), lam / (c * mu)))
    return _tidy(mmc_waiting_time(1 / mu, c, waiting, 1 - lam / (c * mu))), waiting


def _mmc(p: Parameters) -> Built:
    lam, mu, c = p("arrival_rate"), p("service_rate"), p.count("servers")
    wait, waiting = _mmc_wait(lam, mu, c)
    return _station(lam, 1 / mu, wait, c, waiting_probability=waiting)


def _finite(lam: Any, mu: Any, c: int, capacity: int) -> Built:
    b, rho = _erlang_b(lam / mu, c), lam / (c * mu)
    powers = [rho**j for j in range(capacity - c + 1)]
    queue, below = sum(powers), 1 - b
    blocking = _tidy(mmck_blocking(below, b, queue, powers[-1]))
    index = sum(j * w for j, w in enumerate(powers)) / queue
    wait = mmck_waiting_time(lam, below + b * (queue - powers[-1]), b, queue, index)
    return _station(lam, 1 / mu, _tidy(wait), c, 1 - blocking, blocking_probability=blocking)


def _mmck(p: Parameters) -> Built:
    c = p.count("servers")
    return _finite(p("arrival_rate"), p("service_rate"), c, p.count("capacity", minimum=c))


def _mm1k(p: Parameters) -> Built:
    return _finite(p("arrival_rate"), p("service_rate"), 1, p.count("capacity"))


def _mmcc(p: Parameters) -> Built:
    c = p.count("servers")
    return _finite(p("arrival_rate"), p("service_rate"), c, c)


def _mg1(p: Parameters) -> Built:
    lam, mu, scv = p("arrival_rate"), p("service_rate"), p("service_scv")
    m1, m2 = 1 / mu, (1 + scv) / mu**2
    variance = mg1_waiting_time_variance(lam, m1, m2, p("service_third_moment"))
    return _station(lam, m1, mg1_waiting_time(lam, m1, m2), waiting_time_variance=variance)


def _md1(p: Parameters) -> Built:
    lam, mu = p("arrival_rate"), p("service_rate")
    return _station(lam, 1 / mu, mg1_waiting_time(lam, 1 / mu, 1 / mu**2))


def _mxg1(p: Parameters) -> Built:
    g1, mu, scv = p("batch_mean"), p("service_rate"), p("service_scv")
    lam, m2 = p("arrival_rate") * g1, (1 + scv) / mu**2
    return _station(lam, 1 / mu, mxg1_waiting_time(lam, 1 / mu, m2, g1, p("batch_second_moment")))


def _geog1(p: Parameters) -> Built:
    lam, m1 = p("arrival_rate"), p("mean_service_time")
    return _station(lam, m1, geoxg1_waiting_time(lam, 0, m1, m1**2 * (1 + p("service_scv"))))


def _geoxg1(p: Parameters) -> Built:
    lam, m1 = p("arrival_rate"), p("mean_service_time")
    pairs = p("arrival_variance") + lam**2 - lam
    return _station(lam, m1, geoxg1_waiting_time(lam, pairs, m1, m1**2 * (1 + p("service_scv"))))


def _two_moments(wait: Callable[..., Any]) -> Callable[[Parameters], Built]:
    def build(p: Parameters) -> Built:
        lam, mu = p("arrival_rate"), p("service_rate")
        return _station(lam, 1 / mu, wait(lam, 1 / mu, p("arrival_scv"), p("service_scv")))

    return build


def _gg1_klb(p: Parameters) -> Built:
    smooth = p.flag("smooth", True)

    def wait(lam: Any, m1: Any, ca: Any, cs: Any) -> Any:
        exponent = klb_exponent(lam * m1, ca, cs, smooth=smooth)
        return kingman_waiting_time(lam, m1, ca, cs) * sympy.exp(exponent)

    return _two_moments(wait)(p)


def _ggc_allen_cunneen(p: Parameters) -> Built:
    lam, mu, c = p("arrival_rate"), p("service_rate"), p.count("servers")
    wait, _ = _mmc_wait(lam, mu, c)
    return _station(lam, 1 / mu, allen_cunneen_waiting_time(wait, p("arrival_scv"), p("service_scv")), c)


def _mg1_nonpreemptive(p: Parameters) -> Built:
    names = [f"_{k}" for k in range(1, p.count("classes") + 1)]
    rates = [p("arrival_rate", k) for k in names]
    means = [p("mean_service_time", k) for k in names]
    seconds = [m**2 * (1 + p("service_scv", k)) for m, k in zip(means, names, strict=True)]
    residual = sum(lam * m2 for lam, m2 in zip(rates, seconds, strict=True)) / 2
    metrics, before = {}, 1
    for name, lam, m1 in zip(names, rates, means, strict=True):
        after = before - lam * m1
        metrics[f"mean_waiting_time{name}"] = priority_waiting_time(residual, before, after)
        metrics[f"mean_response_time{name}"] = metrics[f"mean_waiting_time{name}"] + m1
        before = after
    return metrics, before > 0


def _fork_join(p: Parameters) -> Built:
    lam, mu, n = p("arrival_rate"), p("service_rate"), p.count("branches")
    rho = lam / mu
    response = mm1_waiting_time(rho, mu - lam) + 1 / mu
    if n > 1:
        response = two_branch_response(response, rho)
    if n > 2:
        response *= nelson_tantawi_factor(rho, sympy.harmonic(n) / sympy.harmonic(2))
    return {"throughput": lam, "utilization": rho, "mean_response_time": _tidy(response)}, lam < mu


def _mva(p: Parameters) -> Built:
    demands = [p("mean_service_time", f"_{i}") for i in range(1, p.count("stations") + 1)]
    x, times = mva_recursion(demands, p("think_time"), p.count("population"))
    metrics = {"system_throughput": _tidy(x), "system_response_time": _tidy(sum(times))}
    for i, (demand, time) in enumerate(zip(demands, times, strict=True), start=1):
        metrics[f"mean_number_in_system_{i}"] = _tidy(x * time)
        metrics[f"utilization_{i}"] = _tidy(x * demand)
    return metrics, _true()


MODELS: dict[str, Callable[[Parameters], Built]] = {
    "mm1": _mm1,
    "mmc": _mmc,
    "mmcc": _mmcc,
    "mm1k": _mm1k,
    "mmck": _mmck,
    "mg1": _mg1,
    "md1": _md1,
    "mxg1": _mxg1,
    "geog1": _geog1,
    "geoxg1": _geoxg1,
    "gg1_kingman": _two_moments(kingman_waiting_time),
    "gg1_klb": _gg1_klb,
    "gg1_marchal": _two_moments(marchal_waiting_time),
    "gg1_upper_bound": _two_moments(daley_bound),
    "gg1_lower_bound": _two_moments(lambda lam, m1, ca, cs: marshall_bound(lam, m1, cs)),
    "ggc_allen_cunneen": _ggc_allen_cunneen,
    "mg1_nonpreemptive": _mg1_nonpreemptive,
    "fork_join": _fork_join,
    "mva": _mva,
}
