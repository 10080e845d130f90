"""The times between the jobs of an open flow, as a law."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from qmodels.systems.composed.flow import Flow
from qmodels.systems.laws.kinds import LAWS, scaled
from qmodels.systems.laws.phases import HyperExponential
from qmodels.systems.laws.times import Deterministic, Exponential
from qmodels.systems.traffic.arrivals import OnOff, Poisson


def arrival_law(flow: Flow) -> Any:
    """Return the law of the times between jobs of an open flow; None if it is not known as one."""
    mean = 1 / float(flow.mean_rate)
    match flow.arrivals:
        case Poisson():
            return Exponential(mean=mean)
        case OnOff():
            share, fast, slow = flow.arrivals.phases
            return HyperExponential(
                probabilities=(float(share), 1 - float(share)), means=(mean / float(fast), mean / float(slow))
            )
        case law if isinstance(law, LAWS):
            own = float(law.mean)
            if isinstance(law, Deterministic | Exponential):
                return replace(law, mean=mean)
            return law if own == mean else scaled(law, mean / own)
    return None
