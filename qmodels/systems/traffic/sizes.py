"""Packet-size laws: a finite list of sizes with their probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray, IntArray
from qmodels.guarded import guarded
from qmodels.systems.spec.docstrings import Documented
from qmodels.systems.spec.text.reading import Place

LARGEST_PACKET = 65535
"""Largest size of a packet: that of an IPv4 datagram. [bytes]"""


@dataclass(frozen=True, kw_only=True)
class SizeLaw(Documented):
    """Independent packet sizes drawn from a finite list.

    Raises
    ------
    ValueError
        If a size is out of range or out of order, or the probabilities do not fit.

    Examples
    --------
    >>> law = SizeLaw(bytes=(64, 128, 1500), probability=(0.5, 0.25, 0.25))
    >>> law.mean_bytes
    439.0
    >>> law.segments(64)
    (array([ 1,  2, 24]), array([0.5 , 0.25, 0.25]))
    """

    bytes: tuple[int, ...]  # Sizes, ascending, each once, 1 to 65535. [bytes]
    probability: tuple[float, ...]  # Probability of each size; they sum to 1

    __toml_keys__: ClassVar[tuple[str, ...]] = ("law",)

    @classmethod
    def __from_toml__(cls, value: Any, place: Place) -> Any:
        return place.named(value, "law", LAWS)

    def __to_toml__(self, table: Callable[[], Any], key: str) -> Any:
        return "imix" if self == imix() else table()

    def __post_init__(self) -> None:
        sizes = np.atleast_1d(checks.count("sizes.bytes", self.bytes, maximum=LARGEST_PACKET))
        weights = np.atleast_1d(checks.probability("sizes.probability", self.probability))
        if sizes.size == 0 or sizes.ndim > 1 or np.any(np.diff(sizes) <= 0):
            raise ValueError(f"sizes.bytes must be ascending, each size once, got {_shown(sizes)}")
        if weights.shape != sizes.shape:
            raise ValueError(
                f"sizes.probability must have one number for each of {sizes.size} sizes, got {weights.size}"
            )
        if abs(weights.sum() - 1) > 1e-9:
            raise ValueError(f"sizes.probability must sum to 1, got {float(weights.sum())!r}")
        object.__setattr__(self, "bytes", tuple(sizes.tolist()))
        object.__setattr__(self, "probability", tuple(weights.tolist()))

    @classmethod
    def measured(cls, sizes: npt.ArrayLike) -> SizeLaw:
        """Return the histogram of observed sizes [bytes] as a law.

        Examples
        --------
        >>> SizeLaw.measured([64, 1500, 64, 64])
        SizeLaw(bytes=(64, 1500), probability=(0.75, 0.25))
        """
        observed = np.atleast_1d(checks.count("sizes", sizes, maximum=LARGEST_PACKET))
        values, counts = np.unique(observed, return_counts=True)
        if values.size == 0:
            raise ValueError("sizes must hold at least one packet size, got none")
        return cls(bytes=tuple(values.tolist()), probability=tuple((counts / counts.sum()).tolist()))

    @property
    def mean_bytes(self) -> float:
        """Mean size in bytes."""
        return float(np.dot(self.bytes, self.probability))

    def segments(self, segment_bytes: int) -> tuple[IntArray, FloatArray]:
        """Return the numbers of segments of packets (ascending) and the probability of each."""
        counts, of_size = np.unique(segment_count(self.bytes, segment_bytes), return_inverse=True)
        return counts, np.bincount(of_size, weights=self.probability).astype(float)

    def sample(self, rng: np.random.Generator, count: int) -> IntArray:
        """Return n independent sizes, in bytes."""
        cumulative = np.cumsum(self.probability)
        # The largest size takes what rounding leaves; sizes of probability 0 are never drawn.
        drawn = np.searchsorted(cumulative / cumulative[-1], rng.random(count), side="right")
        return np.asarray(self.bytes, dtype=np.int64)[drawn]


def segment_count(packet_bytes: npt.ArrayLike, segment_bytes: int) -> IntArray:
    """Return the segments of each packet: its bytes over the segment's, rounded up."""
    checks.count("segment_bytes", segment_bytes)
    return -(-np.asarray(packet_bytes, dtype=np.int64) // segment_bytes)


@guarded
def fixed(*, bytes: int) -> SizeLaw:
    """Return the law of packets of one size [bytes].

    Examples
    --------
    >>> fixed(bytes=64).mean_bytes
    64.0
    """
    return SizeLaw(bytes=(bytes,), probability=(1.0,))


@lru_cache(maxsize=1)
def imix() -> SizeLaw:
    """Return the simple Internet mix: 64, 594 and 1518 bytes in the proportion 7 : 4 : 1.

    Notes
    -----
    A convention of test equipment, not a standard, and vendors differ in the sizes [1]_. These
    are Ethernet frames: the IP packets of 576 and 1500 bytes with 18 bytes of Ethernet around
    them, and the shortest frame. RFC 6985 says how to state such a mix, it does not define one.

    References
    ----------
    .. [1] Ostinato, "What is IMIX traffic?", https://ostinato.org/blog/imix (the sizes used here).
    .. [2] A. Morton, "IMIX Genome: Specification of Variable Packet Sizes for Additional
       Testing", RFC 6985, 2013.

    Examples
    --------
    >>> round(imix().mean_bytes, 2)
    361.83
    """
    return SizeLaw(bytes=(64, 594, 1518), probability=(7 / 12, 4 / 12, 1 / 12))


@guarded
def bimodal(*, small: int, large: int, small_fraction: float) -> SizeLaw:
    """Return the law of two sizes [bytes], ``small_fraction`` of the packets being small.

    Examples
    --------
    >>> bimodal(small=64, large=1518, small_fraction=0.5).mean_bytes
    791.0
    """
    checks.count("sizes.small", small, maximum=LARGEST_PACKET)
    checks.count("sizes.large", large, maximum=LARGEST_PACKET)
    checks.probability("sizes.small_fraction", small_fraction)
    if small >= large:
        raise ValueError(f"sizes.small must be below sizes.large = {large}, got {small}")
    return SizeLaw(bytes=(small, large), probability=(small_fraction, 1 - small_fraction))


@guarded
def heavy_tailed(*, shape: float, minimum: int = 64, maximum: int = 1518) -> SizeLaw:
    r"""Return a bounded Pareto law in whole bytes.

    Parameters
    ----------
    shape : float
        Exponent :math:`\alpha > 0` of the tail; the smaller, the heavier.
    minimum, maximum : int
        Smallest and largest size (an Ethernet frame's unless said otherwise). [bytes]

    Notes
    -----
    The size is the whole part of a Pareto variable bounded to :math:`[L, H)` with
    :math:`L` = minimum and :math:`H` = maximum + 1,

    .. math:: P(X \le x) = \frac{1 - (L/x)^\alpha}{1 - (L/H)^\alpha}.

    Examples
    --------
    >>> law = heavy_tailed(shape=1.2)
    >>> law.bytes[0], law.bytes[-1], round(law.mean_bytes, 1)
    (64, 1518, 183.8)
    """
    checks.positive("sizes.shape", shape)
    checks.count("sizes.minimum", minimum, maximum=LARGEST_PACKET)
    checks.count("sizes.maximum", maximum, maximum=LARGEST_PACKET)
    if minimum > maximum:
        raise ValueError(f"sizes.minimum must be at most sizes.maximum = {maximum}, got {minimum}")
    edges = np.arange(minimum, maximum + 2, dtype=float)
    below = -np.expm1(-shape * np.log(edges / minimum))
    return SizeLaw(
        bytes=tuple(range(minimum, maximum + 1)), probability=tuple((np.diff(below) / below[-1]).tolist())
    )


LAWS: dict[str, Callable[..., SizeLaw]] = {
    "imix": imix,
    "fixed": fixed,
    "bimodal": bimodal,
    "heavy-tailed": heavy_tailed,
}
"""The laws one can name in a file, with the function that builds each."""


def _shown(sizes: IntArray) -> str:
    return repr(tuple(sizes.ravel()[:8].tolist())) + (" ..." if sizes.size > 8 else "")
