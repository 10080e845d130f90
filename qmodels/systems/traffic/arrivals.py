"""When packets arrive: Poisson, on/off bursts, as recorded, or with gaps of any law.

Time is in mean interarrival times: only the shape of a law of the gaps counts, the rate is the spec's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray, Numeric
from qmodels.systems.laws.kinds import is_exponential
from qmodels.systems.laws.phases import HyperExponential
from qmodels.systems.laws.times import Law
from qmodels.systems.spec.ranges import Declared
from qmodels.systems.traffic.sizes import SizeLaw, imix
from qmodels.systems.traffic.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Poisson:
    """Independent exponential gaps.

    Examples
    --------
    >>> Poisson().gaps(np.random.default_rng(1), 3).shape
    (3,)
    """

    @property
    def scv(self) -> float:
        """Squared coefficient of variation of the gaps."""
        return 1.0

    def gaps(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Return n gaps between packets, of mean 1."""
        return rng.exponential(size=count)


def interrupted_phases(on_packets: Numeric, peak: Numeric) -> tuple[Numeric, Numeric, Numeric]:
    """Return the law of the gaps of an interrupted Poisson process of rate 1, see `OnOff`."""
    off = peak / on_packets
    on = off / (peak - 1)
    half = (peak + off + on) / 2
    fast = half + np.sqrt(half**2 - peak * on)
    slow = peak * on / fast
    return (peak - slow) / (fast - slow), fast, slow


@dataclass(frozen=True, kw_only=True)
class OnOff(Declared, prefix="arrivals."):
    r"""Bursts: Poisson arrivals while a two-state Markov chain is ON, none while it is OFF.

    Notes
    -----
    The interrupted Poisson process [1]_. With mean rate 1, rate :math:`P` while ON and :math:`N`
    packets in an ON period, ON ends at rate :math:`\alpha = P/N` and OFF at rate
    :math:`\beta = \alpha/(P - 1)`. The gaps are independent and hyperexponential of order 2 with
    rates the roots of

    .. math:: \gamma^2 - (P + \alpha + \beta)\gamma + P\beta = 0,

    the larger with probability :math:`(P - \gamma_2)/(\gamma_1 - \gamma_2)`, and their squared
    coefficient of variation is :math:`1 + 2N(1 - 1/P)^2`. Exact.

    References
    ----------
    .. [1] A. Kuczura, "The interrupted Poisson process as an overflow process", Bell System
       Technical Journal 52(3), 1973 (derived again here; equation numbers not checked).

    Examples
    --------
    >>> bursts = OnOff(on_packets=10, peak_to_mean=4)
    >>> bursts.scv
    12.25
    >>> probability, fast, slow = bursts.phases
    >>> round(float(probability / fast + (1 - probability) / slow), 12)
    1.0
    """

    on_packets: Numeric  # Mean number of packets in an ON period, at least 1
    # Arrival rate while ON over the mean rate, above 1. The source is ON for a fraction 1 / peak_to_mean of
    # the time
    peak_to_mean: Numeric

    def _check_relations(self) -> None:
        checks.at_least("arrivals.on_packets", checks.finite("arrivals.on_packets", self.on_packets), 1)
        peak = checks.finite("arrivals.peak_to_mean", self.peak_to_mean)
        if np.any(peak <= 1):
            raise ValueError(f"arrivals.peak_to_mean must be > 1, got {float(np.min(peak))!r}")

    @property
    def scv(self) -> Numeric:
        """Squared coefficient of variation of the gaps."""
        return 1 + 2 * self.on_packets * (1 - 1 / self.peak_to_mean) ** 2

    @property
    def phases(self) -> tuple[Numeric, Numeric, Numeric]:
        """Law of the gaps: probability of the fast exponential, its rate, and the rate of the slow one.

        Rates are per mean gap: an arrival rate times them gives rates per unit of time.
        """
        return interrupted_phases(self.on_packets, self.peak_to_mean)

    def gaps(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Return n gaps between packets, of mean 1."""
        probability, fast, slow = self.phases
        rate = np.where(rng.random(count) < probability, fast, slow)
        return rng.exponential(size=count) / rate


@dataclass(frozen=True, kw_only=True)
class Recorded(Declared, prefix="arrivals."):
    """Packets as a trace has them, sizes included; only the unit of time is the user's."""

    trace: Trace  # The recorded packets

    @property
    def scv(self) -> float:
        """Squared coefficient of variation of the trace's gaps (they may be far from independent)."""
        return self.trace.gap_scv

    @cached_property
    def sizes(self) -> SizeLaw:
        """Histogram of the trace's packet sizes."""
        return SizeLaw.measured(self.trace.bytes)


Arrivals = Poisson | OnOff | Recorded | Law


def modelled(name: str, arrivals: Any) -> Any:
    """Return arrivals as the models of systems take them, whose simulators draw gaps of any law.

    Exponential gaps are `Poisson`, a mixture of two exponentials is `OnOff` [1]_; `Poisson`, `OnOff`
    and what is no law of times is returned as it is.

    References
    ----------
    .. [1] A. Kuczura, "The interrupted Poisson process as an overflow process", Bell System
       Technical Journal 52(3), 1973.
    """
    if not isinstance(arrivals, get_args(Law)):
        return arrivals
    if is_exponential(arrivals):
        return Poisson()
    if isinstance(arrivals, HyperExponential) and len(arrivals.means) == 2:
        (p, q), (fast, slow) = arrivals.probabilities, (arrivals.mean / m for m in arrivals.means)
        peak = p * fast + q * slow
        off = fast + slow - peak - fast * slow / peak
        if peak >= off > 0:
            return OnOff(on_packets=peak / off, peak_to_mean=peak)
    raise ValueError(
        f"{name} must be Poisson, OnOff, recorded, Exponential or a HyperExponential of two branches for "
        f"the model (the simulator takes every law), got {arrivals!r}"
    )


def take_recorded_sizes(spec: Any, prefix: str) -> None:
    """Give a spec the sizes of its recorded arrivals; others than `imix`, which gives way, are refused."""
    if isinstance(spec.arrivals, Recorded) and spec.sizes != spec.arrivals.sizes:
        if spec.sizes != imix():
            raise ValueError(
                f"{prefix}sizes must be left out or be the trace's own with recorded arrivals, "
                f"got {len(spec.sizes.bytes)} sizes with a mean of {spec.sizes.mean_bytes:g} bytes"
            )
        object.__setattr__(spec, "sizes", spec.arrivals.sizes)


def gaps_of(arrivals: Any, rng: np.random.Generator, gaps: FloatArray | None, count: int) -> FloatArray:
    """Return n gaps of mean 1: those given, or those of arrivals that draw their own."""
    if gaps is not None:
        return gaps
    if isinstance(arrivals, get_args(Law)):
        raise ValueError(
            f"gaps must be given with {type(arrivals).__name__} arrivals: see validate.engine.sampling"
        )
    drawn: FloatArray = arrivals.gaps(rng, count)
    return drawn
