"""Packets refused because the free list they need is too short."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class ListOverflow:
    """Shares of the offered segments that are refused."""

    overflow_probability: float  # of all segments
    # large_probability, small_probability: of the segments of large packets (VMS1), and of small ones (VMS2
    # and VMS3).
    large_probability: float
    small_probability: float
    # Probability that VMS2 has no block when a segment of a small packet asks for one.
    small_empty_probability: float


def refused_fraction(*, load: float, blocks: float, variability: float) -> float:
    r"""Share of the work that a finite store refuses, by a diffusion between two barriers.

    ``load``: segments offered per segment that can be drained, > 0; ``blocks``: segments the store holds, >=
    0; ``variability``: variance of the offered segments per slot, over long times, > 0 [segments^2 / slot].

    Brownian motion with drift :math:`\rho - 1` and variance :math:`V` a slot, reflected at 0 and
    at N, is pushed back from N at the rate

    .. math:: \frac{\rho - 1}{1 - e^{-2 (\rho - 1) N / V}},

    :math:`V / 2N` at load 1 (Harrison 1985, ch. 5, from memory). A share
    :math:`1/\rho` of it is the answer: exact for a fluid in overload, where it is
    :math:`1 - 1/\rho`, and an order of magnitude where it is small.
    """
    if blocks <= 0:
        return 1.0
    drift = load - 1.0
    exponent = 2.0 * drift * blocks / variability
    if abs(exponent) < 1e-8:
        rate = variability / (2.0 * blocks)
    elif exponent < -700:
        rate = 0.0
    else:
        rate = drift / -np.expm1(-exponent)
    return float(min(max(rate / load, 0.0), 1.0))


def list_overflow(
    *, load: float, large_share: float, large_blocks: float, small_blocks: float, variability: float
) -> ListOverflow:
    r"""Overflow of segregated lists that share one drain.

    ``load``: segments offered per segment that can be drained; ``large_share``: share of the segments that
    belong to large packets; ``large_blocks``, ``small_blocks``: blocks of VMS1, and of VMS2 and VMS3
    together; ``variability``: variance of the offered segments per slot [segments^2 / slot].

    Packets leave in the order of their arrival, or nearly so: both classes wait for the same time
    D and hold D times their admitted rates :math:`a_i`. Below load 1 the class that first
    uses up its blocks is the one refused. In overload :math:`a_1 + a_2 = 1`, and a class is refused
    only where :math:`a_i D = V_i`: either both are and :math:`a_i = V_i / (V_1 + V_2)`, or one
    is and the other, offered less than that, is admitted whole. The rate at which work is refused
    is that of `refused_fraction` at this backlog. Priorities among queues are not modelled.
    """
    offered = np.array([large_share, 1.0 - large_share]) * load
    blocks = np.where(offered > 0, [large_blocks, small_blocks], 0.0)
    held = blocks / max(blocks.sum(), 1e-300)
    if load > 1:
        admitted = np.where(held > offered, offered, held)
        whole = admitted == offered
        admitted = np.where(whole, admitted, 1.0 - admitted[whole].sum() if whole.any() else held)
        limit = float(blocks[~whole].sum() / max(admitted[~whole].sum(), 1e-300))
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            backlog = np.where(offered > 0, blocks * load / offered, np.inf)
        limit = float(backlog.min())
        admitted = np.where(backlog == limit, 0.0, offered)
    rate = load * refused_fraction(load=load, blocks=limit, variability=variability)
    refused = np.minimum(rate * (offered - admitted) / max((offered - admitted).sum(), 1e-300), offered)
    fraction = np.divide(refused, offered, out=np.zeros(2), where=offered > 0)
    empty = 0.0
    if offered[1] > 0:
        # VMS2 has half of the blocks and is asked first: what is in use beyond them is on VMS3.
        half = small_blocks / 2
        if load > 1:
            in_use = min(limit * float(admitted[1]), small_blocks)
            empty = max(1.0 - half / in_use, 0.0) if in_use > 0 else 1.0
        else:
            empty = float(np.exp(2.0 * (load - 1.0) * half * load / offered[1] / variability))
    return ListOverflow(
        overflow_probability=float(refused.sum() / load),
        large_probability=float(fraction[0]),
        small_probability=float(fraction[1]),
        small_empty_probability=empty,
    )
