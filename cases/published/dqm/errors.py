"""The model of the data-queueing module against its simulation: ``python -m cases.published.dqm.errors``.

Writes ``data/errors.csv``: one property of a small module changed at a time, with one to five trials;
and the error map of the model, ``qmodels/allocator/error_map.csv``: some 10 minutes of one processor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cases.published.measurement import Measurement, Row
from cases.published.rows import data_folder
from qmodels.allocator.conflict_errors import ERRORS, REGIONS, is_validated
from qmodels.systems.packets.data_queueing import Allocation, DataMemory, DataQueueing
from qmodels.systems.packets.data_queueing_traffic import QueueTraffic
from qmodels.systems.spec.fields import replace_fields
from qmodels.systems.traffic.arrivals import OnOff
from qmodels.systems.traffic.sizes import bimodal, fixed, heavy_tailed

BLOCKS = 4096
TRIALS = (1, 2, 3, 5)
BASE = DataQueueing(
    data=DataMemory(segments=BLOCKS, page_control=False),
    allocation=Allocation(small_packet_segments=0, vms1_size=BLOCKS),
    traffic=QueueTraffic(load_factor=0.95),
)


def designs() -> dict[str, DataQueueing]:
    """Return the designs that are compared, with one trial each, by what is special about them."""
    two_sizes = {
        f"{size} and 1500 bytes": bimodal(small=size, large=1500, small_fraction=0.3 if size == 192 else 0.5)
        for size in (64, 128, 192, 320)
    }
    one_size = {f"{size} bytes": fixed(bytes=size) for size in (192, 384, 640)}
    changes: dict[str, dict[str, Any]] = {
        "IMIX": {},
        **{f"load {load}": {"load_factor": load} for load in (0.2, 0.35, 0.5, 0.7, 0.85)},
        **{
            f"{inputs} inputs, {outputs} outputs": {"input_ports": inputs, "output_ports": outputs}
            for inputs, outputs in ((1, 2), (3, 3), (4, 2), (4, 4))
        },
        "inputs at 0.6": {"input_speed": 0.6},
        "inputs at 1.66": {"input_speed": 1.66},
        "4 outputs, inputs at 0.6": {"output_ports": 4, "input_speed": 0.6},
        **{name: {"traffic.sizes": sizes} for name, sizes in (two_sizes | one_size).items()},
        "heavy tail": {"traffic.sizes": heavy_tailed(shape=1.6)},
        "bursts": {"traffic.arrivals": OnOff(on_packets=8.0, peak_to_mean=2.0)},
        "16 queues": {"queues": 16},
        "in the order of arrival": {"service": "arrival-order"},
        "segregated, up to 1": {"small_packet_segments": 1, "vms1_size": 3000},
        "segregated, up to 1, load 0.7": {"small_packet_segments": 1, "vms1_size": 3000, "load_factor": 0.7},
        "segregated, up to 10": {"small_packet_segments": 10, "vms1_size": 2000},
        **{f"{banks} banks": {"banks": banks} for banks in (4, 16)},
        "page control": {"page_control": True},
    }
    return {name: replace_fields(BASE, change) for name, change in changes.items()}


def points() -> Iterator[tuple[Row, DataQueueing]]:
    """Yield every design with each number of trials."""
    for name, base in designs().items():
        for trials in TRIALS:
            spec = replace_fields(base, {"alloc_trial_count": trials})
            yield {"design": name, "trials": trials, "validated": int(is_validated(spec))}, spec


def where(row: Row) -> Row:
    """Return where a row counts: by trials, with the validated designs or with the others."""
    above = max((0, *(trials for trials in TRIALS if trials < row["trials"])))
    return {"region": REGIONS[row["validated"]], "trials_above": above, "trials_to": row["trials"]}


MEASUREMENT = Measurement(
    errors=ERRORS,
    about="Write conflicts by trials, of designs in the range in which the model is validated, and others.",
    command="cases.published.dqm.errors",
    points=points,
    metrics={"": ("write_conflict_probability", "%")},
    where=where,
    order=lambda row: (-row["validated"], row["trials"]),
    file=data_folder("dqm") / "errors.csv",
    options={"packets": 300_000, "replications": 2},
)

if __name__ == "__main__":
    MEASUREMENT.main()
