"""Tenants of one cache: sharing it, or dividing its ways or slices among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray, IntArray
from qmodels.llc.characteristic_time import hit_ratios


@dataclass(frozen=True, kw_only=True, eq=False)
class Division:
    """Lines of each tenant and what they give."""

    lines: FloatArray  # lines of each tenant; of a cache that is shared, those it holds on average
    hit_ratios: FloatArray  # hit ratio of each tenant
    hit_ratio: float  # hit ratio of all requests


def shared_cache(*, shares: npt.ArrayLike, popularities: Sequence[npt.ArrayLike], lines: int) -> Division:
    """Return what each tenant gets of an LRU cache that all use without limits.

    Parameters
    ----------
    shares : array_like
        Share of the requests of each tenant.
    popularities : sequence of array_like
        Probability that a request of a tenant is for each of its lines; tenants share no line.
    lines : int
        Lines of the cache.

    Notes
    -----
    One LRU cache of the mixture, by characteristic time (approximation).

    Examples
    --------
    A tenant that asks more often holds more lines:

    >>> both = shared_cache(shares=[0.8, 0.2], popularities=[np.ones(50) / 50] * 2, lines=40)
    >>> both.lines.round(1)
    array([29.8, 10.2])
    """
    share, laws = _tenants(shares, popularities)
    mixture = np.concatenate([s * p for s, p in zip(share, laws, strict=True)])
    hits = hit_ratios(popularity=mixture, capacity=int(checks.count("lines", lines, minimum=0)))
    parts = np.split(hits, np.cumsum([len(p) for p in laws])[:-1])
    each = np.array([p @ h for p, h in zip(laws, parts, strict=True)])
    return Division(lines=np.array([h.sum() for h in parts]), hit_ratios=each, hit_ratio=float(share @ each))


def divided_cache(
    *, shares: npt.ArrayLike, popularities: Sequence[npt.ArrayLike], lines: npt.ArrayLike
) -> Division:
    """Return what each tenant gets of LRU partitions.

    Parameters
    ----------
    shares, popularities
        See `shared_cache`.
    lines : array_like of int
        Lines of each tenant's partition.

    Examples
    --------
    >>> divided_cache(shares=[0.5, 0.5], popularities=[[0.6, 0.4], [0.5, 0.5]], lines=[2, 0]).hit_ratio
    0.5
    """
    share, laws = _tenants(shares, popularities)
    sizes = checks.count("lines", lines, minimum=0)
    if sizes.shape != share.shape:
        raise ValueError(f"lines must have one number for each of {len(share)} tenants, got {lines!r}")
    each = np.array([p @ hit_ratios(popularity=p, capacity=int(c)) for p, c in zip(laws, sizes, strict=True)])
    return Division(lines=sizes.astype(float), hit_ratios=each, hit_ratio=float(share @ each))


def best_division(
    *, shares: npt.ArrayLike, popularities: Sequence[npt.ArrayLike], lines: int, unit: int = 1
) -> Division:
    """Return the partitions with the highest hit ratio of all requests.

    Parameters
    ----------
    shares, popularities
        See `shared_cache`.
    lines : int
        Lines to divide.
    unit : int
        Lines of one way or slice: what can be given to a tenant; a divisor of ``lines``.

    Notes
    -----
    Unit by unit to the tenant that gains most. Hit ratios by characteristic time are concave in the
    capacity, so that this is the optimum.

    Examples
    --------
    >>> weak, strong = np.ones(64) / 64, np.arange(1, 65) ** -1.2
    >>> best_division(shares=[0.5, 0.5], popularities=[weak, strong / strong.sum()], lines=32, unit=8).lines
    array([16., 16.])
    """
    share, laws = _tenants(shares, popularities)
    total, step = int(checks.count("lines", lines)), int(checks.count("unit", unit))
    if total % step:
        raise ValueError(f"unit must divide the {total} lines, got {unit!r}")
    sizes: IntArray = np.zeros(len(laws), dtype=np.int64)

    def worth(tenant: int, size: int) -> float:
        return float(share[tenant] * (laws[tenant] @ hit_ratios(popularity=laws[tenant], capacity=size)))

    gains = np.array([worth(k, step) for k in range(len(laws))])
    for _ in range(total // step):
        winner = int(gains.argmax())
        sizes[winner] += step
        gains[winner] = worth(winner, sizes[winner] + step) - worth(winner, sizes[winner])
    return divided_cache(shares=share, popularities=laws, lines=sizes)


def _tenants(
    shares: npt.ArrayLike, popularities: Sequence[npt.ArrayLike]
) -> tuple[FloatArray, list[FloatArray]]:
    share = checks.nonnegative("shares", shares)
    if share.ndim != 1 or not np.isclose(share.sum(), 1.0, rtol=0, atol=1e-9):
        raise ValueError(f"shares must be one row that sums to 1, got {shares!r}")
    if len(popularities) != len(share):
        raise ValueError(
            f"popularities must have one law for each of {len(share)} tenants, got {len(popularities)}"
        )
    return share, [np.asarray(p, dtype=float) for p in popularities]
