"""What the data-queueing paper concludes (Ykman-Couvreur et al., DAC 2002), as margins of its own module.

The packets are generated (`cases.published.dqm.specs.GENERATOR`), so that the answers are the same with and
without the recorded trace.
"""

from __future__ import annotations

from typing import Any

from cases.published.conclusions.conclusion import Parameter, Reading, same, saved, stated
from cases.published.dqm.specs import VMS1, case_spec, technique
from qmodels.systems.packets.data_queueing import DataQueueing
from qmodels.systems.spec.fields import replace_fields

BASE = case_spec()
OPTIONS = {"packets": 100_000, "replications": 4}
WRITES, READS = "write_conflict_probability", "read_conflict_probability"
WHOLE = VMS1[-1]
SEGMENT_BITS, SEGMENT_NS = 512, 4 / 0.133
"""A segment, and four cycles of 133 MHz that it takes (sec. 4.1)."""
NEEDED = 15.0
"""What the module must carry (sec. 3). [Gb/s]"""


def single(trials: int, *, page_control: bool = True, **changes: Any) -> DataQueueing:
    """Return one list of all blocks, with other fields changed."""
    one = technique(BASE, trials=trials, small=0, vms1_size=WHOLE, page_control=page_control)
    return replace_fields(one, changes)


def lists(trials: int, small: int, size: int, **changes: Any) -> DataQueueing:
    """Return a technique with lists for small packets."""
    return replace_fields(technique(BASE, trials=trials, small=small, vms1_size=size), changes)


def conflicts(*designs: DataQueueing) -> list[Reading]:
    """Return the shares of writes that conflict, to be read."""
    return same(designs, WRITES)


def saved_share(after: float, before: float) -> float:
    """Return the share that is saved in percent, 0 of nothing."""
    return saved(after, before) if before else 0.0


def carried(fit: float) -> list[Reading]:
    """Return the mean cycles of an access to a segment, and how many pointer accesses fit beside one."""
    accesses: dict[str, Any] = {"free_accesses": round(fit), "conflict_accesses": round(3 * fit)}
    return [(single(2, **accesses), "cycles_per_segment_access"), fit]


BUSY = Parameter(
    name="accesses for which a bank stays busy", value=int(BASE.data.busy_accesses), values=(1, 2, 3),
    whole=True, open=(1, 2),
)  # fmt: skip
"""A conflict delays an access by 8 cycles (sec. 4.1), two accesses of 4; one gives the reads of Table 1."""
BANKS = Parameter(name="banks", value=int(BASE.data.banks), values=(2, 3, 4, 6, 8, 16), whole=True)
INPUTS = Parameter(
    name="input ports", value=int(BASE.traffic.input_ports), values=(1, 2, 4, 8), whole=True, open=(1, 2)
)
LOAD = Parameter(
    name="load",
    value=float(BASE.traffic.load_factor),
    values=(0.5, 0.9, 1.05, 1.2, 2.0, 3.0),
    open=(1.05, 3.0),
)

conclusion = stated("dqm", options=OPTIONS)

CONCLUSIONS = (
    conclusion(
        "two trials",
        margin="write conflicts avoided by two trials, with page control, beyond 75 [points]",
        parameter=BUSY,
        readings=lambda n: conflicts(*(single(trials, busy_accesses=round(n)) for trials in (2, 1))),
        of=lambda two, one: saved_share(two, one) - 75,
    ),
    conclusion(
        "three trials",
        margin="0.5 less what five trials avoid beyond three, without page control [points of all writes]",
        parameter=BANKS,
        readings=lambda n: conflicts(
            *(single(trials, page_control=False, banks=round(n)) for trials in (3, 5))
        ),
        of=lambda three, five: 0.5 - 100 * (three - five),
    ),
    conclusion(
        "page control",
        margin="write conflicts avoided by page control with two trials, beyond 50 [points]",
        parameter=INPUTS,
        readings=lambda ports: conflicts(
            *(single(2, page_control=on, input_ports=round(ports)) for on in (True, False))
        ),
        of=lambda on, off: saved_share(on, off) - 50,
    ),
    conclusion(
        "reads",
        margin="read conflicts avoided by two trials, beyond 36 [points]",
        parameter=Parameter(
            name="output ports", value=int(BASE.traffic.output_ports), values=(1, 2, 4, 8), whole=True,
            open=(1, 2),
        ),
        readings=lambda ports: same(
            [single(trials, output_ports=round(ports)) for trials in (2, 1)], READS
        ),
        of=lambda two, one: saved_share(two, one) - 36,
    ),
    conclusion(
        "ninety",
        margin="write conflicts avoided by the best of Table 4's first two techniques, beyond 80 [points]",
        parameter=LOAD,
        readings=lambda load: conflicts(
            lists(3, 1, VMS1[0], load_factor=load),
            lists(4, 1, VMS1[1], load_factor=load),
            single(1, load_factor=load),
        ),
        of=lambda one, other, before: saved_share(min(one, other), before) - 80,
    ),
    conclusion(
        "average",
        margin="1.5 less the mean pointer accesses of an allocation with five trials",
        parameter=BANKS,
        readings=lambda n: [(single(5, banks=round(n)), "pointer_accesses_per_allocation")],
        of=lambda accesses: 1.5 - accesses,
    ),
    conclusion(
        "lists",
        margin="1 less what three lists avoid beyond one [points of all writes]",
        parameter=BANKS,
        readings=lambda n: conflicts(
            single(3, banks=round(n)), lists(3, 2, VMS1[0], banks=round(n))
        ),
        of=lambda one, three: 1 - 100 * (one - three),
    ),
    conclusion(
        "overhead",
        margin="worst-case overhead saved by 4/0/4194304, beyond 45 [points]",
        parameter=Parameter(
            name="cost of a conflict", unit="SRAM cycles", value=float(BASE.pointer.conflict_overhead_cycles),
            values=(2.0, 3.0, 4.0, 6.0, 10.0, 14.0),
        ),
        readings=lambda cycles: same(
            [single(trials, conflict_overhead_cycles=cycles) for trials in (4, 1)], "enqueue_overhead"
        ),
        of=lambda four, one: saved_share(four, one) - 45,
    ),
    conclusion(
        "bandwidth",
        margin="what is carried with two trials and segments of 64 bytes, beyond 15 [Gb/s]",
        parameter=Parameter(
            name="pointer accesses that fit beside a segment", value=int(BASE.pointer.free_accesses),
            values=(4, 5, 6, 8), whole=True,
        ),
        readings=carried,
        of=lambda cycles, fit: SEGMENT_BITS / (cycles / fit * SEGMENT_NS) - NEEDED,
    ),
)  # fmt: skip

CONTRADICTIONS = (
    "Sec. 6, Table 1: page control and trials. The difference 'without - with page control' is 3.6 to 4.3 "
    "points at every number of trials, so that 'up to 70 %' is one difference over ever fewer conflicts.",
    "Sec. 6: 'three VMSs instead of only one does not allow to further reduce' conflicts, below Table 2, "
    "in which they fall from 5.5/1.9 to 3.5/1.2 % of the writes.",
    "Sec. 6: 'from AllocTrialCount = 3 no further reduction', and Table 4 recommends four and five trials.",
    "Sec. 5.2: 'less than AllocTrialCount + 1' accesses; Table 1 prints AllocTrialCount + 1 as the most.",
)
