"""The cheap model of a search: its answers for designs, finite, and over the whole domain."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from optimize import checks
from optimize.blackbox.domain import Domain, Low
from optimize.search.pareto import FloatArray

WORKS = "works"
"""The metric that is 1 where all others are finite and 0 elsewhere."""


class Cheap:
    """A model's answers on some metrics; those that are not finite are the worst of the others.

    ``low``: points to ``{metric: values}``; ``domain``: turns codes into points; ``worse``: ``{metric:
    sign}`` of what is wanted: 1 where larger is worse; ``everywhere``: designs all over the domain. The
    answers on them are kept.
    """

    def __init__(
        self, low: Low | None, domain: Domain, worse: Mapping[str, int], everywhere: FloatArray
    ) -> None:
        self._low, self._domain, self._worse = low, domain, worse
        self._kept: dict[bytes, FloatArray] = {}
        self._worst: dict[str, float] = {}
        answers = self._asked(everywhere)
        self._kept = {bytes(row): answer for row, answer in zip(everywhere + 0.0, answers, strict=True)}
        for k, (name, sign) in enumerate(worse.items()):
            finite = answers[np.isfinite(answers[:, k]), k]
            if finite.size:
                self._worst[name] = float(sign * (sign * finite).max())
        self.scale = self(everywhere)
        """The answers all over the domain, of the metrics that the model knows."""

    @property
    def complete(self) -> bool:
        """Whether the model knows all metrics."""
        return set(self._worse) <= set(self.scale)

    def __call__(self, codes: FloatArray) -> dict[str, FloatArray]:
        """Return the model's answers on designs, and whether it has them all."""
        if not self._worst:
            return {}
        keys = [bytes(row) for row in codes + 0.0]
        new = [k for k, key in enumerate(keys) if key not in self._kept]
        asked = iter(self._asked(codes[new]))
        rows = [self._kept[key] if key in self._kept else next(asked) for key in keys]
        answers = dict(zip(self._worse, np.reshape(rows, (len(codes), len(self._worse))).T, strict=True))
        finite = {name: np.isfinite(answers[name]) for name in self._worst}
        result = {name: np.where(finite[name], answers[name], worst) for name, worst in self._worst.items()}
        return result | {WORKS: np.all(list(finite.values()), axis=0).astype(float)}

    def _asked(self, codes: FloatArray) -> FloatArray:
        answers = np.full((len(codes), len(self._worse)), np.nan)
        if self._low is None or not len(codes):
            return answers
        found = self._low(self._domain.points(codes))
        for k, name in enumerate(self._worse):
            if name in found:
                column = checks.reals(f"low[{name!r}]", found[name])
                if column.shape != (len(codes),):
                    raise ValueError(
                        f"low must give {name!r} for each of {len(codes)} points, got {column.size} values"
                    )
                answers[:, k] = column
        return answers
