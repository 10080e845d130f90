"""An accelerator that is switched off when it has nothing to do, and takes time to wake up."""

from dataclasses import dataclass

import numpy as np

from qmodels.parts import Offered, Served, Service, ServingPart


@dataclass(frozen=True, kw_only=True)
class SleepingAccelerator(ServingPart):
    """One engine with set-up times.

    Parameters
    ----------
    job_ns : float
        Time of a job. [ns]
    setup_ns : float
        Time to wake up. [ns]
    """

    job_ns: float = 20.0
    setup_ns: float = 50.0

    def __post_init__(self):
        if not (self.job_ns > 0 and self.setup_ns >= 0):
            raise ValueError(f"job_ns and setup_ns must be times, got {self.job_ns!r}, {self.setup_ns!r}")

    def served(self, offered: Offered) -> Served:
        """M/G/1 with set-up: to its wait comes the set-up, or what is left of it when others come."""
        rate, job, setup = offered.rate.sum(), self.job_ns, self.setup_ns
        load, each = rate * job, np.ones_like(offered.rate)
        if load >= 1:
            return Served(response=each * np.inf, variance=each * np.inf, intensity={"": load})
        wait = rate * job**2 / (2 * (1 - load))
        more = (setup + rate * setup**2 / 2) / (1 + rate * setup)
        variance = rate * job**3 / (3 * (1 - load)) + wait**2
        variance += (setup**2 + rate * setup**3 / 3) / (1 + rate * setup) - more**2
        return Served(
            response=each * (wait + more + job), variance=each * variance, intensity={"": load},
            departure_scv=offered.arrival_scv,
        )  # fmt: skip

    def service(self) -> Service:
        """Return an engine that sleeps."""
        return Engine(self)


class Engine(Service):
    """When the engine will have done all that it was given."""

    def __init__(self, part):
        self.part, self.done = part, 0.0

    def end(self, now, stream, rng):
        setup = self.part.setup_ns if now >= self.done else 0.0
        self.done = max(now, self.done) + setup + self.part.job_ns
        return self.done
