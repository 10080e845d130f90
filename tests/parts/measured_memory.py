"""A memory that is known by its latencies at some bandwidths, as a load generator measures them."""

from dataclasses import dataclass

import numpy as np

from qmodels.parts import Offered, Served, Service, ServingPart


@dataclass(frozen=True, kw_only=True)
class MeasuredMemory(ServingPart):
    """A curve of latencies.

    Parameters
    ----------
    gbytes : tuple of float
        Bandwidths, ascending; the last is the most it gives. [GB/s]
    ns : tuple of float
        Latency at each. [ns]
    block_bytes : int
        What a visit asks for. [bytes]
    window_ns : float
        Time over which the simulation measures the bandwidth. [ns]
    """

    gbytes: tuple[float, ...]
    ns: tuple[float, ...]
    block_bytes: int = 64
    window_ns: float = 2000.0

    def __post_init__(self):
        if len(self.gbytes) != len(self.ns) or np.any(np.diff(self.gbytes) <= 0):
            raise ValueError(f"gbytes must ascend, one for each of ns, got {self.gbytes!r} and {self.ns!r}")

    def served(self, offered: Offered) -> Served:
        """Read the latency off the curve; there is none beyond its end."""
        bandwidth, each = offered.rate.sum() * self.block_bytes, np.ones_like(offered.rate)
        latency = np.interp(bandwidth, self.gbytes, self.ns, right=np.inf)
        load = {"": bandwidth / self.gbytes[-1]}
        return Served(response=each * latency, variance=0 * each, intensity=load, departure_scv=each)

    def service(self) -> Service:
        """Return a memory that nobody has asked yet."""
        return Recent(self)


class Recent(Service):
    """The bandwidth asked for of late, older visits counting less and less."""

    def __init__(self, part):
        self.part, self.bandwidth, self.last = part, 0.0, 0.0

    def end(self, now, stream, rng):
        self.bandwidth *= np.exp((self.last - now) / self.part.window_ns)
        latency = np.interp(self.bandwidth, self.part.gbytes, self.part.ns)
        self.bandwidth += self.part.block_bytes / self.part.window_ns
        self.last = now
        return now + float(latency)
