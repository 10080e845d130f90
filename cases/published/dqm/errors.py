"""The model of the data-queueing module against its simulation: ``python -m cases.published.dqm.errors``.

Writes ``data/errors.csv``: one property of a small module changed at a time, with one to five trials;
and the error map of the model, ``qmodels/allocator/error_map.csv``: some 10 minutes of one processor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from cases.published.measurement import Measurement, Row
from cases.published.rows import data_folder
from qmodels.allocator.conflict_errors import ERRORS, REGIONS, is_validated
from qmodels.systems.packets.data_queueing import Allocation, DataMemory, DataQueueing
from qmodels.systems.packets.data_queueing_traffic import QueueTraffic
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

    def traffic(**changes: Any) -> DataQueueing:
        return replace(BASE, traffic=replace(BASE.traffic, **changes))

    def small(largest: int, vms1: int, load: float = 0.95) -> DataQueueing:
        lists = replace(BASE.allocation, small_packet_segments=largest, vms1_size=vms1)
        return replace(traffic(load_factor=load), allocation=lists)

    return {
        "IMIX": BASE,
        **{f"load {load}": traffic(load_factor=load) for load in (0.2, 0.35, 0.5, 0.7, 0.85)},
        **{
            f"{inputs} inputs, {outputs} outputs": traffic(input_ports=inputs, output_ports=outputs)
            for inputs, outputs in ((1, 2), (3, 3), (4, 2), (4, 4))
        },
        "inputs at 0.6": traffic(input_speed=0.6),
        "inputs at 1.66": traffic(input_speed=1.66),
        "4 outputs, inputs at 0.6": traffic(output_ports=4, input_speed=0.6),
        **{
            f"{bytes_} and 1500 bytes": traffic(
                sizes=bimodal(small=bytes_, large=1500, small_fraction=0.3 if bytes_ == 192 else 0.5)
            )
            for bytes_ in (64, 128, 192, 320)
        },
        **{f"{bytes_} bytes": traffic(sizes=fixed(bytes=bytes_)) for bytes_ in (192, 384, 640)},
        "heavy tail": traffic(sizes=heavy_tailed(shape=1.6)),
        "bursts": traffic(arrivals=OnOff(on_packets=8.0, peak_to_mean=2.0)),
        "16 queues": traffic(queues=16),
        "in the order of arrival": traffic(service="arrival-order"),
        "segregated, up to 1": small(1, 3000),
        "segregated, up to 1, load 0.7": small(1, 3000, 0.7),
        "segregated, up to 10": small(10, 2000),
        **{f"{n} banks": replace(BASE, data=replace(BASE.data, banks=n)) for n in (4, 16)},
        "page control": replace(BASE, data=replace(BASE.data, page_control=True)),
    }


def points() -> Iterator[tuple[Row, DataQueueing]]:
    """Yield every design with each number of trials."""
    for name, base in designs().items():
        for trials in TRIALS:
            spec = replace(base, allocation=replace(base.allocation, alloc_trial_count=trials))
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
