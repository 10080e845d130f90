"""Arithmetic that keeps its digits next to saturation and at the ends of the range."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray

_SPLIT = 134217729.0  # 2**27 + 1, Veltkamp's constant


def _product_error(x: FloatArray, y: FloatArray, product: FloatArray) -> FloatArray:
    """Return ``x * y - product`` without error (Dekker's two-product)."""
    t = _SPLIT * x
    x_high = t - (t - x)
    t = _SPLIT * y
    y_high = t - (t - y)
    x_low, y_low = x - x_high, y - y_high
    return ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


def product_minus(x: FloatArray, y: FloatArray, z: FloatArray) -> FloatArray:
    """Return ``x * y - z`` rounded once.

    The plain expression is wrong by 1e-10 where x y / z differs from 1 by 1e-6, because the
    product is rounded before the subtraction cancels its leading digits.
    """
    product = np.asarray(x * y)
    gap = np.asarray(product - z)
    near = np.abs(gap) < 0.01 * product
    if near.any():
        x, y, product_near = (np.broadcast_to(v, near.shape)[near] for v in (x, y, product))
        with np.errstate(over="ignore", invalid="ignore"):
            error = _product_error(x, y, product_near)
        gap = np.array(np.broadcast_to(gap, near.shape))
        gap[near] += np.where(np.isfinite(error), error, 0.0)
    return gap


def log_ratio(numerator: FloatArray, denominator: FloatArray, gap: FloatArray) -> FloatArray:
    """Return ``log(numerator / denominator)`` given ``gap = denominator - numerator`` with full precision.

    Accurate near a ratio of 1, where the logarithm of the rounded ratio is not. A ratio of 0
    gives -800, whose exponential is 0 but which can be multiplied by 0.
    """
    ratio = numerator / denominator
    far = np.log(np.maximum(ratio, 5e-324))
    near = np.log1p(np.maximum(-gap / denominator, -0.75))
    return np.where(ratio == 0, -800.0, np.where(np.abs(gap) < 0.5 * denominator, near, far))


def geometric_sum(log_ratio: FloatArray, terms: FloatArray) -> FloatArray:
    r"""Return :math:`\sum_{j=0}^{m-1} r^j` for r = exp(log_ratio) <= 1 and m = `terms`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.expm1(terms * log_ratio) / np.expm1(log_ratio)
    return np.where(terms == 0, 0.0, np.where(log_ratio == 0, terms, ratio))


def geometric_mean_index(log_ratio: FloatArray, last: FloatArray) -> FloatArray:
    r"""Return the mean of the geometric distribution r^j on j = 0..last, any r >= 0.

    With x = log r it is half the range plus a difference of Langevin functions, which has no
    cancellation near r = 1; elsewhere the textbook form has none.
    """
    x = log_ratio
    n = last + 1.0
    y = -np.abs(x)
    z = n * y
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        direct = -np.exp(y) / np.expm1(y) + n * np.exp(z) / np.expm1(z)
    centred = last / 2 + 0.5 * (n * _langevin(z / 2) - _langevin(y / 2))
    mean = np.where(z < -1, direct, centred)
    mean = np.where(last == 0, 0.0, mean)
    return np.where(x > 0, last - mean, mean)


def _langevin(z: FloatArray) -> FloatArray:
    """Return coth(z) - 1/z for |z| <= about 1 (larger arguments are not used with full precision)."""
    square = z * z
    series = z / 3 * (1 - square / 15 * (1 - 2 * square / 21 * (1 - square / 10 * (1 - 10 * square / 99))))
    with np.errstate(divide="ignore", invalid="ignore"):
        direct = 1 / np.tanh(z) - 1 / z
    return np.where(np.abs(z) < 0.1, series, direct)


def cumulative_product(ratios: FloatArray) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Return the running products of a vector as mantissas and binary exponents.

    Nothing overflows or underflows, and the relative error grows by one rounding per factor.
    """
    block = 512  # the product of so many mantissas in [1/2, 1) is still a normal number
    mantissas, exponents = np.frexp(ratios)
    padded = np.ones(-(-ratios.size // block) * block)
    padded[: ratios.size] = mantissas
    products = np.cumprod(padded.reshape(-1, block), axis=1)
    carried, extra = np.empty(len(products)), np.empty(len(products), dtype=np.int64)
    mantissa, exponent = 1.0, 0
    for i, last in enumerate(products[:, -1].tolist()):
        carried[i], extra[i] = mantissa, exponent
        mantissa, shift = np.frexp(mantissa * last)
        exponent += int(shift)
    scaled, shift = np.frexp((products * carried[:, None]).ravel()[: ratios.size])
    return scaled, np.cumsum(exponents.astype(np.int64)) + shift + np.repeat(extra, block)[: ratios.size]


def cumulative_ratio(up: FloatArray, down: FloatArray) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Return the running products of up / down; a ratio itself may be no double."""
    up, up_exponent = np.frexp(up)
    down, down_exponent = np.frexp(down)
    mantissa, exponent = cumulative_product(up / down)
    return mantissa, exponent + np.cumsum(up_exponent.astype(np.int64) - down_exponent)


def remaining(
    whole: FloatArray, whole_error: FloatArray, parts: FloatArray, errors: FloatArray
) -> FloatArray:
    """Return `whole` less the running sums of `parts` along the last axis, rounded once.

    The errors are what rounding took from the inputs. `whole` itself stands in front: what is
    left before each part and after the last.
    """
    left = [whole]
    total, lost = np.zeros(parts.shape[:-1]), -whole_error
    for k in range(parts.shape[-1]):
        grown = total + parts[..., k]
        kept = grown - total
        lost = lost + ((total - (grown - kept)) + (parts[..., k] - kept)) + errors[..., k]
        total = grown
        left.append((whole - total) - lost)
    return np.stack(left, axis=-1)


def sum_before(parts: FloatArray) -> FloatArray:
    """Return the running sums along the last axis without the part itself."""
    return np.cumsum(np.concatenate([np.zeros((*parts.shape[:-1], 1)), parts[..., :-1]], axis=-1), axis=-1)
