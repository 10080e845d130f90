"""The answer of a single-station model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.spec.result import Result

Law = Callable[..., FloatArray]

_METRICS = (
    "arrival_rate", "throughput", "utilization", "waiting_probability", "blocking_probability",
    "abandonment_probability", "mean_waiting_time", "waiting_time_variance", "mean_service_time",
    "mean_response_time", "response_time_variance", "mean_number_in_queue", "mean_number_in_system",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class QueueResult(Result):
    """Steady state of one station; stores the minimum and derives the rest by Little's law.

    All fields are brought to one shape: scalars stay (NumPy) scalars, arrays get the broadcast
    shape of the model's inputs. A metric the model does not give is ``None``. Where no steady
    state exists the waiting time is ``inf``, `stable` is False, the utilization 1 and the
    throughput the largest one.

    Parameters
    ----------
    model : str
        Kendall's name of the model, with the author where it is an approximation.
    arrival_rate : float or array
        Jobs offered to the station, lost ones included. [jobs / time]
    throughput : float or array
        Jobs that leave after their service. [jobs / time]
    utilization : float or array
        Mean busy fraction of a server, at most 1.
    mean_waiting_time : float or array
        Time from arrival to the start of service of the jobs that enter; with preemption or
        sharing, the response time less the service time; with impatient jobs the mean over
        those that wait to the end and those that give up. [time]
    mean_service_time : float or array
        Mean service time of a job on one server. [time]
    waiting_probability : float or array, optional
        Probability that a job that enters has to wait.
    blocking_probability : float or array, optional
        Probability that an arriving job is lost before it enters.
    abandonment_probability : float or array, optional
        Probability that a job that enters leaves before its service.
    waiting_time_variance, response_time_variance : float or array, optional
        Variances of waiting and response time. [time^2]
    number_pmf, waiting_tail, response_tail, waiting_quantile, response_quantile : callable, optional
        What the methods below evaluate.
    """

    spec: None = field(default=None, init=False)
    bottleneck: str = field(default="", init=False)
    validated: bool = field(default=True, init=False)
    traffic_intensity: Mapping[str, Any] = field(default_factory=dict, init=False)
    error: Mapping[str, Any] = field(default_factory=dict, init=False)

    model: str
    arrival_rate: FloatArray
    throughput: FloatArray
    utilization: FloatArray
    mean_waiting_time: FloatArray
    mean_service_time: FloatArray
    waiting_probability: FloatArray | None = None
    blocking_probability: FloatArray | None = None
    abandonment_probability: FloatArray | None = None
    waiting_time_variance: FloatArray | None = None
    response_time_variance: FloatArray | None = None
    number_pmf: Law | None = field(default=None, repr=False)
    waiting_tail: Law | None = field(default=None, repr=False)
    response_tail: Law | None = field(default=None, repr=False)
    waiting_quantile: Law | None = field(default=None, repr=False)
    response_quantile: Law | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        stored = {n: v for n, v in vars(self).items() if n in _METRICS and v is not None}
        shape = np.broadcast_shapes(*(np.shape(value) for value in stored.values()))
        for name, value in stored.items():
            object.__setattr__(self, name, np.broadcast_to(np.asarray(value, dtype=float), shape)[()])

    @property
    def stable(self) -> npt.NDArray[np.bool_]:
        """Whether a steady state exists."""
        return np.isfinite(self.mean_waiting_time)

    @property
    def mean_response_time(self) -> FloatArray:
        """Mean time [time] from arrival to departure of the jobs that enter."""
        if self.abandonment_probability is None:
            return self.mean_waiting_time + self.mean_service_time
        return self.mean_waiting_time + (1 - self.abandonment_probability) * self.mean_service_time

    @property
    def mean_number_in_queue(self) -> FloatArray:
        """Mean number of jobs that wait."""
        entering = self.throughput
        if self.abandonment_probability is not None:
            entering = entering / (1 - self.abandonment_probability)
        # A class without arrivals has no jobs even where its wait would be endless.
        wait = np.where(entering > 0, self.mean_waiting_time, 0.0)
        return (entering * wait)[()]

    @property
    def mean_number_in_system(self) -> FloatArray:
        """Mean number of jobs that wait or are served."""
        return self.mean_number_in_queue + self.throughput * self.mean_service_time

    def number_in_system_probability(self, n: npt.ArrayLike) -> FloatArray:
        """Return the probability that `n` jobs are in the system (0 where no steady state exists)."""
        law = self._law("number_pmf", "distribution of the number in system")
        return law(checks.count("n", n, minimum=0))[()]

    def waiting_time_tail(self, t: npt.ArrayLike) -> FloatArray:
        """Return the probability that a job waits longer than `t` (1 where overloaded)."""
        return self._law("waiting_tail", "waiting-time distribution")(checks.nonnegative("t", t))[()]

    def response_time_tail(self, t: npt.ArrayLike) -> FloatArray:
        """Return the probability that a job's response takes longer than `t` (1 where overloaded)."""
        return self._law("response_tail", "response-time distribution")(checks.nonnegative("t", t))[()]

    def waiting_time_quantile(self, p: npt.ArrayLike) -> FloatArray:
        """Return the smallest time that a fraction `p` of the jobs does not wait beyond.

        By formula where the model has one, otherwise the tail probability is inverted
        numerically to 1e-12; ``inf`` where overloaded and at `p` = 1.
        """
        return self._quantile("waiting", p)

    def response_time_quantile(self, p: npt.ArrayLike) -> FloatArray:
        """Return the smallest time within which a fraction `p` of the jobs responds.

        See `waiting_time_quantile`.
        """
        return self._quantile("response", p)

    def _quantile(self, kind: str, p: npt.ArrayLike) -> FloatArray:
        level = checks.probability("p", p)
        formula = getattr(self, f"{kind}_quantile")
        if formula is not None:
            return np.asarray(formula(level))[()]
        from qmodels.numerics.quantile import quantile

        tail = self._law(f"{kind}_tail", f"{kind}-time distribution")
        return quantile(tail, level, scale=self.mean_response_time)

    def _law(self, name: str, what: str) -> Law:
        law: Law | None = getattr(self, name)
        if law is None:
            raise ValueError(f"no {what} is known for {self.model} from the parameters given")
        return law

    @property
    def metrics(self) -> dict[str, FloatArray]:
        """Every known metric by name."""
        values = {name: getattr(self, name) for name in _METRICS}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def latency_parts(self) -> dict[str, FloatArray]:
        """Components of the mean response time."""
        return {
            "waiting": self.mean_waiting_time,
            "service": self.mean_response_time - np.where(self.stable, self.mean_waiting_time, 0.0),
        }

    @property
    def title(self) -> str:
        """Model and, of several points, how many."""
        points = f", {'x'.join(map(str, self.shape))} points (least .. largest)" if self.shape else ""
        return self.model + points

    @property
    def main(self) -> str:
        """The metric that a picture of a sweep shows."""
        return "mean_response_time"

    def swept(self) -> dict[str, Any]:
        """Return the arrival rate where that differs from point to point."""
        differs = np.ptp(self.arrival_rate) > 0
        return {"arrival_rate": self.arrival_rate} if differs else {}
