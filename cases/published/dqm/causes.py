"""Which property of the traffic makes the data-queueing tables differ: one change at a time.

What the variants show:

- Congestion in bursts makes the lists run dry. Then a write is given a block that has just been
  read: further trials find nothing else, and page control forgives the meeting because the page is
  still open. Bursts of 50 packets at load 3 come near the paper's write conflicts (more than 1/8 with
  one trial and no page control, a rest that no trial removes, most of it saved by page control)
  and its overhead of 3 cycles, but 16 % of the allocations fail then; the paper has 2.5 %.
- Where packets are admitted whole the lists never run dry, and each trial removes more.
- Reads meet fewer conflicts only where the segments of a packet are read one after the other: with
  one output port, an input that writes in bursts, and packets of several segments.

What no variant shows: that a larger Vms1Size reduces read conflicts (Table 3), and the conventional
technique's numbers in the last row of that table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cases.published.dqm.specs import PUBLISHED_SEGMENTS, technique
from cases.tables import text_table
from qmodels.systems.packets.data_queueing import DataQueueing
from qmodels.systems.spec.fields import replace_fields
from qmodels.systems.traffic.arrivals import OnOff, Poisson
from qmodels.systems.traffic.sizes import fixed, imix

if TYPE_CHECKING:
    from validate import DataQueueingSimulation

TRIALS = (1, 2, 3, 4, 5)


def variants(base: DataQueueing) -> dict[str, DataQueueing]:
    """Return the case with one thing changed at a time, by name."""
    load, speed = float(base.traffic.load_factor), float(base.traffic.input_speed)
    poisson = {"traffic.arrivals": Poisson()}
    changes: dict[str, dict[str, Any]] = {
        "the case": {},
        "same sizes, drawn independently, Poisson": {"traffic.sizes": base.traffic.sizes, **poisson},
        "Poisson, IMIX sizes": {"traffic.sizes": imix(), **poisson},
        "Poisson, 1 segment each": {"traffic.sizes": fixed(bytes=64), **poisson},
        "Poisson, 24 segments each": {"traffic.sizes": fixed(bytes=1518), **poisson},
        "bursts of 200 packets at 5 times the rate": {
            "traffic.sizes": base.traffic.sizes,
            "traffic.arrivals": OnOff(on_packets=200, peak_to_mean=5),
        },
        f"bursts of 50 packets at 5 times the rate, load {2 * load:g}": {
            "traffic.sizes": base.traffic.sizes,
            "traffic.arrivals": OnOff(on_packets=50, peak_to_mean=5),
            "load_factor": 2 * load,
        },
        "load 0.9": {"load_factor": 0.9},
        f"load {2 * load:g}": {"load_factor": 2 * load},
        "two input ports": {"input_ports": 2, "input_speed": speed / 2},
        "two output ports": {"output_ports": 2},
        "input as fast as the output": {"input_speed": 1.0},
        "one queue": {"queues": 1},
        "packets admitted whole": {"admission": "packet"},
        "banks busy for 2 accesses": {"busy_accesses": 2},
    }
    return {name: replace_fields(base, change) for name, change in changes.items()}


def cause_specs(base: DataQueueing) -> dict[tuple[str, int, bool], DataQueueing]:
    """Return every variant with 1 to 5 trials, with and without page control."""
    return {
        (name, trials, control): technique(
            spec, trials=trials, small=0, vms1_size=PUBLISHED_SEGMENTS, page_control=control
        )
        for name, spec in variants(base).items()
        for trials in TRIALS
        for control in (True, False)
    }


def cause_rows(
    specs: Mapping[tuple[str, int, bool], DataQueueing],
    simulated: Mapping[DataQueueing, DataQueueingSimulation],
) -> tuple[dict[str, Any], ...]:
    """Return what the simulations of `cause_specs` say: a row for each change and number of trials.

    Conflicts of writes without and with page control and of reads with it are in percent, and so are
    the ``failures`` of allocations with one trial; ``overhead`` is that of a worst-case segment write with 4
    trials [SRAM cycles].
    """

    def value(name: str, trials: int, control: bool, metric: str) -> float:
        return simulated[specs[name, trials, control]].metrics[metric].best

    return tuple(
        {
            "change": name,
            "trials": trials,
            "write_wo": 100 * value(name, trials, False, "write_conflict_probability"),
            "write_with": 100 * value(name, trials, True, "write_conflict_probability"),
            "read_with": 100 * value(name, trials, True, "read_conflict_probability"),
            "failures": 100 * value(name, 1, True, "allocation_failure_probability"),
            "overhead": value(name, 4, True, "enqueue_overhead"),
        }
        for name in dict.fromkeys(name for name, _, _ in specs)
        for trials in TRIALS
    )


def causes_text(causes: Iterable[Mapping[str, Any]]) -> str:
    """Return the variants as a table, write conflicts without / with page control."""
    headings = ["change", *(f"write T={t}" for t in TRIALS), "read T=1", "read T=3", "failures", "overhead"]
    changes: dict[str, dict[int, Mapping[str, Any]]] = {}
    for row in causes:
        changes.setdefault(row["change"], {})[row["trials"]] = row
    rows = [
        [
            name,
            *(f"{one[t]['write_wo']:.2f}/{one[t]['write_with']:.2f}" for t in TRIALS),
            *(f"{one[t]['read_with']:.2f}" for t in (1, 3)),
            f"{one[1]['failures']:.2f}",
            f"{one[1]['overhead']:.2f}",
        ]
        for name, one in changes.items()
    ]
    return (
        "One change at a time (simulated): conflicts and failed allocations in percent, overhead with 4 "
        "trials in SRAM cycles\n" + text_table(headings, rows)
    )
