"""What the measurements share: designs solved and simulated in a campaign, and regions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cases.study.check import model_error
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import replace_fields


def at_load(spec: PacketProcessor, load: float) -> PacketProcessor:
    """Return a processor that is offered a part of what the model says it sustains."""
    from qmodels import solve

    full = float(solve(spec).saturation_data_rate)
    return replace_fields(spec, {"workload.offered_gbps": load * full})


def compared(
    points: Iterable[tuple[dict[str, Any], PacketProcessor]], metrics: Sequence[str], **options: Any
) -> list[dict[str, Any]]:
    """Return a row for each point and metric: what it is, model, simulated, its interval, error, stable.

    ``points``: what is said of each design, and the design; ``**options``: of `validate.simulate`; with a
    ``store`` a campaign that was killed resumes.
    """
    from qmodels import solve
    from validate import simulate

    drawn = list(points)
    rows = []
    runs = simulate([spec for _, spec in drawn], **options)
    for (what, spec), run in zip(drawn, runs, strict=True):
        model = solve(spec)
        for metric in metrics:
            estimate, value = run.metrics[metric], float(model.metrics[metric])
            row = {"metric": metric, "model": value, "simulated": estimate.best}
            row |= {"low": estimate.low, "high": estimate.high}
            error = 100.0 * float(model_error(metric, value, estimate.best))
            rows.append({**what, **row, "error": error, "stable": run.stable is True})
    return rows


def within(values: npt.NDArray[Any], above: float, to: float) -> npt.NDArray[np.bool_]:
    """Return which values are in a region."""
    return np.asarray((values > above) & (values <= to))
