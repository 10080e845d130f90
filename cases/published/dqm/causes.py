"""Which property of the module makes the data-queueing tables differ: one change at a time.

What the variants show:

- The case: overload is steady, and a list that is dry gives each block to the next write. What page control
  saves is the share of these writes, at every number of trials, as in the paper; it follows from the overload
  and the input's speed.
- Whole packets, refused or given up, do not give it: their blocks return together.
- Reads meet fewer conflicts with two trials, as published (from 12.4 to 6.7 %), only where a packet's blocks
  are written in a row, by an input several times as fast as the output. As many writes as published take the
  block just read then at another overload, at which 13 % of the segments are lost instead of 2.45 %.
- Below overload the list is long, and page control saves nothing.

What no variant shows: the 1.7 to 1.9 % of writes with page control that three and more trials leave (ours
fall with each trial), that a larger Vms1Size reduces read conflicts (Table 3), and the conventional
technique's numbers in the last row of that table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cases.published.dqm.specs import PUBLISHED_SEGMENTS, technique
from cases.tables import text_table
from qmodels.systems.packets.data_queueing import DataQueueing
from qmodels.systems.spec.fields import replace_fields
from qmodels.systems.traffic.arrivals import Poisson
from qmodels.systems.traffic.sizes import fixed

if TYPE_CHECKING:
    from qmodels.systems.spec.answer import Answer

TRIALS = (1, 2, 3, 4, 5)


def variants(base: DataQueueing) -> dict[str, DataQueueing]:
    """Return the case with one thing changed at a time, by name."""
    fast = {"input_speed": 5.0, "load_factor": 1.15}
    changes: dict[str, dict[str, Any]] = {
        "the case": {},
        "overload 3 %": {"load_factor": 1.03},
        "overload 6 %": {"load_factor": 1.06},
        "load 0.95": {"load_factor": 0.95},
        "packets given up": {"admission": "segment"},
        "packets admitted whole": {"admission": "packet"},
        "input 3 times as fast as the output": {"input_speed": 3.0},
        "input 5 times as fast, overload 15 %": fast,
        "two inputs 5 times as fast, overload 15 %": {**fast, "input_ports": 2},
        "two input ports": {"input_ports": 2},
        "two output ports": {"output_ports": 2},
        "6 segments each, Poisson": {"traffic.sizes": fixed(bytes=384), "traffic.arrivals": Poisson()},
        "pages of 64 segments": {"page_segments": 64},
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
    simulated: Mapping[DataQueueing, Answer],
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
