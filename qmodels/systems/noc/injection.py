"""When the nodes of a network-on-chip inject packets."""

from __future__ import annotations

from dataclasses import dataclass

from qmodels import checks
from qmodels.guarded import guarded
from qmodels.systems.laws.kinds import LAWS, require_law
from qmodels.systems.laws.times import Geometric, Law
from qmodels.systems.traffic.arrivals import OnOff, Poisson


@dataclass(frozen=True, kw_only=True)
class Bernoulli:
    """One packet with the same probability in every cycle, independently.

    The gaps are geometric; their squared coefficient of variation is 1 minus the rate.
    """


InjectionProcess = Bernoulli | Poisson | OnOff | Law
"""All packets but those of `Bernoulli` arrive in continuous time and are injected in the next cycle.

Of a law of their gaps the shape counts, not the mean."""


@guarded
def bursts(*, scv: float, peak_to_mean: float = 4.0) -> OnOff:
    """Return the on/off process whose gaps have a squared coefficient of variation.

    Parameters
    ----------
    scv : float
        Squared coefficient of variation of the gaps, above 1.
    peak_to_mean : float
        Rate in a burst over the mean rate.

    Raises
    ------
    ValueError
        If the SCV is too small: bursts have at least one packet on average.

    Examples
    --------
    >>> bursts(scv=12.25).on_packets
    10.0
    """
    for name, value in (("scv", scv), ("peak_to_mean", peak_to_mean)):
        checks.one_number(name, value)
        checks.positive(name, value)
    if not scv > 1:
        raise ValueError(f"scv of bursts must be > 1, got {scv!r}")
    if not peak_to_mean > 1:
        raise ValueError(f"peak_to_mean must be > 1, got {peak_to_mean!r}")
    quiet = (1 - 1 / peak_to_mean) ** 2
    least = 1 + 2 * quiet
    if scv < least:
        raise ValueError(f"scv must be >= {least:g} with peak_to_mean {peak_to_mean:g}, got {scv!r}")
    return OnOff(on_packets=(scv - 1) / (2 * quiet), peak_to_mean=peak_to_mean)


def injection_process(value: object) -> InjectionProcess:
    """Return a process by its name, ``"bernoulli"`` or ``"poisson"``, or as it is."""
    if isinstance(value, str):
        word = checks.choice("process", value, ("bernoulli", "poisson"))
        return Poisson() if word == "poisson" else Bernoulli()
    if isinstance(value, LAWS):
        require_law("process", value, tuple(law for law in LAWS if law is not Geometric))
    elif not isinstance(value, Bernoulli | Poisson | OnOff):
        rule = "Bernoulli, Poisson, OnOff or a law of gaps"
        raise ValueError(f"process must be {rule}, got {checks.shown(value)}")
    return value
