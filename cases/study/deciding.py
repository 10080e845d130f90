"""The decision of a study: the model's designs with intervals, corrected by what was simulated."""

from __future__ import annotations

import numpy as np

from cases.study.analysis import Analysis
from cases.study.check import Check
from cases.study.packet_processor import BIAS, ERROR, SUBJECT_TO
from cases.study.recommendation import Recommendation
from optimize.decisions.decision import Decision
from optimize.search.exploration import conclude
from optimize.search.pareto import FloatArray
from optimize.search.uncertain import front_membership
from optimize.spaces.numbering import Columns
from qmodels.systems.spec.metrics import is_relative

SPREAD = 2.06
"""Half a 90 % interval over the mean magnitude, of a normal distribution."""


def stated(table: Columns, metric: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return low, best and high of a metric by the error that the model states of itself."""
    model = table[metric].astype(float)
    error, bias = (np.asarray(table[name + metric], dtype=float) / 100 for name in (ERROR, BIAS))
    known = np.isfinite(error) & np.isfinite(bias)
    error, bias = np.where(known, error, 0.0), np.where(known, bias, 0.0)
    half = SPREAD * np.maximum(error - np.abs(bias), error / 2)
    if is_relative(metric):
        ends = [model / np.maximum(1 + bias + part, 0.05) for part in (half, 0 * half, -half)]
        low, best, high = (np.where(np.isfinite(model), end, model) for end in ends)
        return np.where(known, low, 0.0), best, np.where(known, high, np.inf)
    low, best, high = (np.clip(model - bias + part, 0.0, 1.0) for part in (-half, 0 * half, half))
    return np.where(known, low, 0.0), best, np.where(known, high, 1.0)


def decision_of(analysis: Analysis, check: Check | None, star: Recommendation) -> Decision:
    """Return the decision of an analysis and its check."""
    model = analysis.exploration
    table = dict(model.table)
    corrected = tuple(name for name in table if ERROR + name in table)
    for name in corrected:
        table[f"{name}_low"], table[name], table[f"{name}_high"] = stated(model.table, name)
    rows = np.zeros(0, dtype=np.int64) if check is None else check.rows
    if check is not None and len(rows):
        for name in (*corrected, "stable"):
            for end in ("",) if name == "stable" else ("_low", "", "_high"):
                table[name + end] = table[name + end].copy()
                table[name + end][rows] = check.simulated.table[name + end]
    table["simulated"] = np.isin(np.arange(len(model.feasible)), rows)
    found = conclude(
        minimize=model.minimize,
        maximize=model.maximize,
        subject_to=dict(SUBJECT_TO),
        table=table,
        excluded=(),
        space=model.space,
        method=model.method,
        evaluations=0,
        restored=0,
    )
    low, high = (
        np.stack([table[name + end if name in corrected else name] for name in model.objectives], axis=1)
        for end in ("_low", "_high")
    )
    member = front_membership(
        low, high, maximize=model.maximized, admitted=found.feasible, possible=found.feasible
    )
    able = np.flatnonzero(~member.off & ~table["simulated"])
    return Decision(
        model=model,
        table=table,
        corrected=corrected,
        simulated=rows,
        results={} if check is None else check.results,
        feasible=found.feasible,
        front=found.front,
        chosen=star.row,
        reason=star.basis,
        open=able,
        settled=not len(able),
        budget=0.0,
        seconds=0.0 if check is None else check.seconds,
        interrupted=check is not None and check.interrupted,
    )
