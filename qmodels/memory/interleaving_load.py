"""How evenly interleaving spreads packets over channels, and in what bursts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.systems.memory.address_map import channel_of


@dataclass(frozen=True, kw_only=True, eq=False)
class InterleavingLoad:
    """What packets are to channels, for each interleaving step.

    Parameters
    ----------
    channels_touched : float or array
        Channels that a packet uses, mean.
    batch : float or array
        Blocks of a packet at a channel that it uses, mean.
    burstiness : float or array
        Variance over mean of the blocks that reach a channel in a long time, packets arriving as a
        Poisson process; 1 for single blocks.
    imbalance : float or array
        Most blocks of a packet at one channel over the mean of all channels: how much longer a packet
        occupies its busiest channel than if it were spread evenly.
    """

    channels_touched: Any
    batch: Any
    burstiness: Any
    imbalance: Any


def interleaving_load(*, blocks: int, step: npt.ArrayLike, channels: int) -> InterleavingLoad:
    r"""Return how packets of consecutive blocks at random places load interleaved channels.

    Parameters
    ----------
    blocks : int
        Blocks of a packet.
    step : array_like of int
        Consecutive blocks in a channel before the next one.
    channels : int
        Channels.

    Returns
    -------
    InterleavingLoad
        Values of the shape of ``step``.

    Raises
    ------
    ValueError
        If an argument is not a whole number of at least 1.

    Notes
    -----
    Exact: the mean over all places at which a packet can start. A channel gets :math:`k` blocks of a
    packet, so that its arrivals are a compound Poisson process with dispersion
    :math:`E[k^2] / E[k]`.

    Examples
    --------
    >>> load = interleaving_load(blocks=24, step=[1, 4, 24], channels=4)
    >>> load.burstiness, load.imbalance
    (array([ 6.        ,  6.45833333, 16.01388889]), array([1.        , 1.33333333, 3.        ]))
    """
    n, c = int(checks.count("blocks", blocks)), int(checks.count("channels", channels))
    steps = checks.count("step", step)
    found = [_of_step(n, int(s), c) for s in steps.ravel()]
    touched, batch, burst, imbalance = (
        np.array(column).reshape(steps.shape)[()] for column in zip(*found, strict=True)
    )
    return InterleavingLoad(channels_touched=touched, batch=batch, burstiness=burst, imbalance=imbalance)


def _of_step(blocks: int, step: int, channels: int) -> tuple[float, float, float, float]:
    # All starts within a chunk are alike up to a turn of the channels.
    place = channel_of(np.arange(step)[:, None] + np.arange(blocks), step, channels)
    counts = np.zeros((step, channels))
    np.add.at(counts, (np.repeat(np.arange(step), blocks), place.ravel()), 1)
    touched = (counts > 0).sum(axis=1).mean()
    dispersion = (counts**2).sum() / counts.sum()
    peak = counts.max(axis=1).mean() * channels / blocks
    return float(touched), float(blocks * step / (counts > 0).sum()), float(dispersion), float(peak)
