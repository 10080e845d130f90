"""Fitted parameters with what is known of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from validate.estimates.statistics import Estimate


@dataclass(frozen=True, kw_only=True)
class LeaveOneOut:
    """How far fits without a group of observations miss that group."""

    # mean, largest: of the sizes of the errors of all observations, each predicted by the fit without its
    # group, in the form of the fit's errors; ``inf`` where too little would be left to fit.
    mean: float
    largest: float
    by_group: Mapping[str, float]  # root mean square of the errors of each group


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """The parameters that bring a model closest to observations.

    Parameters
    ----------
    parameters : mapping of str to Estimate
        Best values with their intervals; without one (confidence 0) at a bound.
    bounds : mapping of str to pair
        Where they were sought.
    at_bound : tuple of str
        Parameters at one of their bounds: the best value may lie beyond.
    covariance : array
        Of the parameters in their order; rows and columns of parameters at a bound are 0.
    errors : str
        Whether errors are relative (shares of the observed value) or absolute, with weights.
    observations : int
        Values fitted.
    rms_error, largest_error : float
        Root mean square and largest size of the errors left.
    leave_one_out : LeaveOneOut
        Errors of the prediction of what was left out.
    evaluations : int
        Times the model was solved.
    spec : object
        The spec with the fitted values, if the model is one.
    """

    parameters: Mapping[str, Estimate]
    bounds: Mapping[str, tuple[float, float]]
    at_bound: tuple[str, ...]
    covariance: FloatArray
    errors: str
    observations: int
    rms_error: float
    largest_error: float
    leave_one_out: LeaveOneOut
    evaluations: int
    spec: Any = None

    @property
    def correlation(self) -> FloatArray:
        """Correlations of the errors of the parameters; 0 for those at a bound."""
        deviations = np.sqrt(np.diag(self.covariance))
        scale = np.where(deviations > 0, deviations, 1.0)
        return self.covariance / np.outer(scale, scale)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the spec as plain dictionaries, lists, numbers and words."""
        return {
            "parameters": {name: asdict(value) for name, value in self.parameters.items()},
            "bounds": {name: list(ends) for name, ends in self.bounds.items()},
            "at_bound": list(self.at_bound),
            "covariance": self.covariance.tolist(),
            "errors": self.errors,
            "observations": self.observations,
            "rms_error": self.rms_error,
            "largest_error": self.largest_error,
            "leave_one_out": asdict(self.leave_one_out),
            "evaluations": self.evaluations,
        }

    def table(self) -> str:
        """Return the parameters as text, one a line, and the errors."""
        lines = [f"{'parameter':<32} {'best':>12} {'interval':>27} {'bounds':>21}"]
        for name, value in self.parameters.items():
            interval = "at its bound" if name in self.at_bound else f"[{value.low:.6g}, {value.high:.6g}]"
            bounds = f"[{self.bounds[name][0]:.5g}, {self.bounds[name][1]:.5g}]"
            lines.append(f"{name:<32} {value.best:>12.6g} {interval:>27} {bounds:>21}")

        def size(error: float) -> str:
            return f"{100 * error:.3g} %" if self.errors == "relative" else f"{error:.4g}"

        lines.append(
            f"{self.errors} error of {self.observations} observations: root mean square "
            f"{size(self.rms_error)}, largest {size(self.largest_error)}; predicted when left out: mean "
            f"{size(self.leave_one_out.mean)}, largest {size(self.leave_one_out.largest)}"
        )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.table()
