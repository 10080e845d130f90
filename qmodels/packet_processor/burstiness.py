"""Burstiness of a workload over time scales, which decides whether the model's error on it is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.traffic.arrivals import OnOff, Recorded, modelled
from qmodels.systems.traffic.workload import Workload

ERRORS = 2.0
"""Standard errors by which an estimate is lowered."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Burstiness:
    """Dispersion of the work that arrives; one value per design, 1 for Poisson arrivals."""

    dispersion: FloatArray  # largest over all time scales
    # How many times larger it is on time scales beyond the hold than up to it: bursts as long as the hold
    # come back as bursts of reads.
    outlasting: FloatArray


def burstiness(workload: Workload, shape: tuple[int, ...] = ()) -> Burstiness:
    r"""Return the index of dispersion of a workload's work over that of Poisson packets of its sizes.

    ``shape`` is that of the sweep; the answer has one value per design, flat.

    For the work :math:`Y(t)` that packets of size :math:`V` bring in a time :math:`t`,

    .. math:: D(t) = \frac{\mathrm{Var}\,Y(t)}{\mathrm E[V]\,\mathrm E\,Y(t)\,(1 + c_V^2)}
        = \frac{c_V^2 + I(t)}{c_V^2 + 1},

    the second for sizes that do not depend on the arrivals, whose counts have the index of dispersion
    :math:`I(t)`: 1 for Poisson, and for on/off arrivals (mean rate 1, peak :math:`P`, states that end at
    rates :math:`\alpha` and :math:`\beta`)

    .. math:: I(t) = 1 + \frac{2 P \alpha}{(\alpha + \beta)^2}
        \left(1 - \frac{1 - e^{-(\alpha + \beta) t}}{(\alpha + \beta) t}\right),

    exact (the interrupted Poisson process). Of a recorded trace it is estimated from n blocks
    (`qmodels.systems.traffic.trace_statistics`) and lowered by `ERRORS` of its standard errors, a part
    :math:`\sqrt{2/n}` each, so that the few blocks of the longest scales do not look bursty by chance.
    """
    hold = np.broadcast_to(np.asarray(workload.hold_ns * workload.packet_rate, dtype=float), shape).reshape(
        -1
    )
    arrivals = modelled("workload.arrivals", workload.arrivals)
    if isinstance(arrivals, Recorded):
        found = arrivals.trace.statistics
        if not found.scale_ns.size:  # too few packets for a single scale: anything may be
            return Burstiness(dispersion=np.full(hold.shape, np.inf), outlasting=np.ones(hold.shape))
        sizes = np.asarray(arrivals.trace.bytes, dtype=float)
        scale = found.scale_ns * arrivals.trace.packet_rate
        sure = np.maximum(1.0 - ERRORS * np.sqrt(2.0 * scale / sizes.size), 0.0)
        dispersion = sure * found.byte_dispersion / (1.0 + sizes.var() / sizes.mean() ** 2)
        most = np.maximum.accumulate(dispersion)
        within = np.interp(np.log(np.maximum(hold, 1e-9)), np.log(scale), most)
        return Burstiness(
            dispersion=np.full(hold.shape, most[-1]), outlasting=np.maximum(most[-1] / within, 1.0)
        )
    if isinstance(arrivals, OnOff):
        peak, packets = (
            np.broadcast_to(np.asarray(part, dtype=float), shape).reshape(-1)
            for part in (arrivals.peak_to_mean, arrivals.on_packets)
        )
        bytes_, share = np.asarray(workload.sizes.bytes, dtype=float), workload.sizes.probability
        scv = float(share @ bytes_**2 / workload.sizes.mean_bytes**2 - 1.0)
        change = peak / packets * (1.0 + 1.0 / (peak - 1.0))
        seen = 1.0 - np.divide(
            -np.expm1(-change * hold), change * hold, out=np.ones_like(hold), where=hold > 0
        )
        extra = 2.0 * packets * (1.0 - 1.0 / peak) ** 2
        total, within = (scv + 1.0 + extra * part for part in (1.0, seen))
        return Burstiness(dispersion=total / (scv + 1.0), outlasting=total / within)
    return Burstiness(dispersion=np.ones(hold.shape), outlasting=np.ones(hold.shape))
