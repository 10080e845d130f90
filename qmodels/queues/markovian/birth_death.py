"""Stationary law of a finite birth-death chain."""

from __future__ import annotations

import numpy as np

from qmodels.checks import FloatArray
from qmodels.numerics.digits import cumulative_ratio


def birth_death_law(births: FloatArray, deaths: FloatArray) -> FloatArray:
    """Return the probabilities of 0..K from the rates up from 0..K-1 and down from 1..K.

    Products of ratios with separate exponents: any spread of rates, one rounding per state.
    """
    mantissa, exponent = cumulative_ratio(births, deaths)
    mantissa, exponent = np.concatenate([[1.0], mantissa]), np.concatenate([[0], exponent])
    shift = exponent - exponent[mantissa > 0].max()
    weights = np.where(mantissa > 0, np.ldexp(mantissa, np.maximum(shift, -2000)), 0.0)
    return np.asarray(weights / weights.sum())
