"""The model against simulation where segments are lost alone: ``python -m cases.published.dqm.lossy_errors``.

Writes ``data/lossy_errors.csv``: overload, blocks, speed, sizes and ports of a small module changed one at a
time, with one to five trials; and the map ``qmodels/allocator/lossy_map.csv``: 5 minutes of one processor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cases.published.dqm.specs import case_spec
from cases.published.measurement import Measurement, Row
from cases.published.rows import data_folder
from qmodels.allocator.conflict_errors import LOSSY_ERRORS, is_validated, lossy_region
from qmodels.systems.packets.data_queueing import DataQueueing
from qmodels.systems.spec.fields import replace_fields
from qmodels.systems.traffic.sizes import bimodal, fixed

TRIALS = (1, 2, 3, 5)


def designs() -> dict[str, DataQueueing]:
    """Return the designs that are compared, with one trial each, by what is special about them."""
    few: dict[str, Any] = {"segments": 1024, "vms1_size": 1024}
    changes: dict[str, dict[str, Any]] = {
        "the case": {},
        "page control": {"page_control": True},
        "page control, overload 6 %": {"page_control": True, "load_factor": 1.06},
        "page control, load 0.95": {"page_control": True, "load_factor": 0.95},
        "load 0.8": {"load_factor": 0.8},
        "load 0.98": {"load_factor": 0.98},
        "1024 blocks, overload 0.5 %": {"load_factor": 1.005, **few},
        "1024 blocks": few,
        "overload 1.5 %": {"load_factor": 1.015},
        "overload 6 %": {"load_factor": 1.06},
        "16384 blocks, overload 6 %": {"load_factor": 1.06, "segments": 16_384, "vms1_size": 16_384},
        "input at 1.25": {"input_speed": 1.25},
        "input at 3": {"input_speed": 3.0},
        "input at 5": {"input_speed": 5.0},
        "384 bytes": {"traffic.sizes": fixed(bytes=384)},
        "64 and 1500 bytes": {"traffic.sizes": bimodal(small=64, large=1500, small_fraction=0.5)},
        "2 inputs": {"input_ports": 2},
        "2 inputs, 2 outputs": {"input_ports": 2, "output_ports": 2},
    }
    base = replace_fields(case_spec(), {"page_control": False})
    return {name: replace_fields(base, change) for name, change in changes.items()}


def points() -> Iterator[tuple[Row, DataQueueing]]:
    """Yield every design with each number of trials."""
    for name, base in designs().items():
        for trials in TRIALS:
            spec = replace_fields(base, {"alloc_trial_count": trials})
            row = {"design": name, "trials": trials, "validated": int(is_validated(spec))}
            yield row | {"region": str(lossy_region(spec))}, spec


def where(row: Row) -> Row:
    """Return where a row counts: by region and trials."""
    above = max((0, *(trials for trials in TRIALS if trials < row["trials"])))
    return {"region": row["region"], "trials_above": above, "trials_to": row["trials"]}


MEASUREMENT = Measurement(
    errors=LOSSY_ERRORS,
    about="Write conflicts and failed allocations where segments are lost alone, by trials.",
    command="cases.published.dqm.lossy_errors",
    points=points,
    metrics={
        "": ("write_conflict_probability", "%"),
        "failure_": ("allocation_failure_probability", "points"),
        "read_": ("read_conflict_probability", "%"),
    },
    where=where,
    order=lambda row: (row["region"], row["trials"]),
    file=data_folder("dqm") / "lossy_errors.csv",
    options={"packets": 800_000, "replications": 2, "warm_up": 0.15},
)

if __name__ == "__main__":
    MEASUREMENT.main()
