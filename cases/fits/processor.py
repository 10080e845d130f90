"""Fits of the packet processor: conflicts with open pages over `cases.joint_errors.trial_plane`."""

from __future__ import annotations

import numpy as np

from cases.fits.fit import Fit, Problem
from cases.joint_errors.trial_plane import READS, WRITES, planes
from qmodels.checks import FloatArray
from qmodels.packet_processor.design import columns
from qmodels.packet_processor.load import conflict_parts, operate
from qmodels.packet_processor.trials import conflicts


def conflict(metric: str) -> Problem:
    """Relative errors of the conflict probabilities of writes or reads; only trials differ within a group."""
    kept = planes()
    designs = [columns(plane.spec) for plane in kept]
    points = [operate(c, c.packet_rate) for c in designs]
    # What reads meet before trials spread them does not depend on the constants; it is not kept.
    met = []
    for point in points:
        parts, law = conflict_parts(point), conflicts.LAW
        rest = parts.spread + law.read_cut * (parts.forced + parts.starts)
        met.append((point.conflicts[1] - rest) / law.read_kept)
    truth = np.concatenate([plane.simulated[metric] for plane in kept])
    where = [
        np.stack([plane.where[name] for name in ("load", "channels", "interleaving_step")]) for plane in kept
    ]
    labels = np.concatenate([np.vstack([at, np.full(at.shape[1], k)]) for k, at in enumerate(where)], axis=1)

    def errors() -> FloatArray:
        parts = [conflict_parts(point, anew=True) for point in points]
        found = [one.write if metric == WRITES else one.read(m) for one, m in zip(parts, met, strict=True)]
        return np.concatenate(found) / truth - 1

    return Problem(errors=errors, groups=np.unique(labels, axis=1, return_inverse=True)[1].ravel())


FITS = tuple(
    Fit(
        name=f"packet_processor.{name}",
        named="packet_processor.conflicts",
        module=conflicts,
        fields=fields,
        data="cases/data/trial-plane.csv",
        problem=lambda metric=metric: conflict(metric),  # type: ignore[misc]
    )
    for name, metric, fields in (
        ("writes", WRITES, ("old_run",)),
        ("reads", READS, ("read_kept", "read_cut")),
    )
)
