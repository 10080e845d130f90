"""The picture of a workload: its rate over time, its dispersion over time scales, its packet sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cases.study.words.stream import trace_summary
from cases.tables import number
from qmodels.systems.traffic.workload import Workload


def traffic(workload: Workload) -> dict[str, Any]:
    """Return what is offered: of a trace its rate in each window and its dispersion, of all the sizes.

    Times of a trace are those it is replayed at.
    """
    offered = float(workload.offered_gbps * workload.load_factor)
    sizes, share = np.asarray(workload.sizes.bytes), np.asarray(workload.sizes.probability)
    order = np.argsort(sizes)
    found: dict[str, Any] = {
        "offered_gbps": offered,
        "mean_bytes": float(workload.sizes.mean_bytes),
        "size_bytes": sizes[order].tolist(),
        "size_share": np.cumsum(share[order]).tolist(),
    }
    summary = trace_summary(workload)
    if summary is None:
        arrivals = type(workload.arrivals).__name__
        return found | {
            "words": f"{number(offered)} Gb/s offered by a generator ({arrivals}): no recorded trace"
        }
    rates = offered * np.asarray(summary["byte_share"])
    duration_ns = summary["packets"] * float(workload.sizes.mean_bytes) * 8 / offered
    return found | {
        "words": f"{summary['packets']} packets of {Path(summary['source']).name} at {number(offered)} Gb/s "
        f"on average, {number(float(rates.max()))} Gb/s in the busiest of {len(rates)} windows of "
        f"{number(duration_ns / len(rates) / 1000)} us",
        "window_us": duration_ns / len(rates) / 1000,
        "window_gbps": rates.tolist(),
        "scale_gaps": np.asarray(summary["scale_mean_gaps"]).tolist(),
        "packet_dispersion": np.asarray(summary["packet_dispersion"]).tolist(),
        "byte_dispersion": np.asarray(summary["byte_dispersion"]).tolist(),
    }
