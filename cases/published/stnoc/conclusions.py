"""What the STNoC paper concludes (Grammatikakis et al.), as margins of its own set-ups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cases.published.conclusions.conclusion import Parameter, Reading, gained, same, saved, stated
from cases.published.stnoc.claims import contradictions
from cases.published.stnoc.specs import CALIBRATED, closed_noc, open_noc
from qmodels.systems.noc.spec import Noc
from qmodels.systems.spec.fields import replace_fields

SATURATION: dict[str, Any] = {"precision": 0.02, "replications": 3, "cycles": 20_000}
OPEN: dict[str, Any] = {"replications": 4, "cycles": 30_000}
CLOSED: dict[str, Any] = {"replications": 4, "packets": 40_000}
THINK = Parameter(
    name="think time of an engine",
    unit="cycles",
    value=CALIBRATED.think_cycles,
    values=(10.0, 20.0, 30.0, 45.0, 60.0, 80.0, 100.0, 140.0, 200.0),
)
HANGS = "the think time of an engine, which the paper does not give and we fitted to Table II"


def loop(width: int, channels: int, *, think: float = CALIBRATED.think_cycles, nodes: int = 32) -> Noc:
    """Return a set-up with engines that think for another time."""
    changed = replace(CALIBRATED, think_cycles=think)
    return closed_noc(channels=channels, link_width=width, nodes=nodes, loop=changed)


def transfers(width: int, channels: int, transfer: int) -> Noc:
    """Return the set-up of 32 nodes with transfers of another length."""
    sizes = {"packet_bytes": transfer, "traffic.request_bytes": transfer}
    return replace_fields(loop(width, channels), sizes)


def rates(*nocs: Noc) -> list[Reading]:
    """Return the throughputs to be read."""
    return same(nocs, "bandwidth")


conclusion = stated("stnoc", options=CLOSED)

CONCLUSIONS = (
    conclusion(
        "twice",
        margin="highest rate with 4 channels over that with one, less 2",
        parameter=Parameter(
            name="cycles beyond its length for which a packet keeps its channel",
            unit="cycles", value=6, values=(1, 2, 4, 6, 10, 15, 20, 30, 40), whole=True,
        ),
        readings=lambda more: same(
            [open_noc(channels=channels, one_packet=round(more)) for channels in (4, 1)], "saturation_rate"
        ),
        of=lambda four, one: four / one - 2,
        options=SATURATION,
    ),
    conclusion(
        "step",
        margin="delay with a step of 32 over that with 1, 4 channels, less 1 [%]",
        parameter=Parameter(
            name="rate of a CPU", unit="packets/cycle", value=0.04, values=(0.03, 0.04, 0.05, 0.06),
        ),
        readings=lambda rate: same(
            [open_noc(channels=4, step=step, rate=rate) for step in (32, 1)], "packet_latency"
        ),
        of=gained,
        options=OPEN,
    ),
    conclusion(
        "gain",
        margin="throughput gained by 8 channels over one with 8-byte links, less 60 [points]",
        assumption=HANGS,
        parameter=THINK,
        readings=lambda think: rates(*(loop(8, channels, think=think) for channels in (8, 1))),
        of=lambda eight, one: gained(eight, one) - 60,
    ),
    conclusion(
        "narrow",
        margin="gain of 8 channels with 8-byte links less that with 32-byte links [points]",
        assumption=HANGS,
        parameter=THINK,
        readings=lambda think: rates(
            *(loop(width, channels, think=think) for width in (8, 32) for channels in (8, 1))
        ),
        of=lambda n8, n1, w8, w1: gained(n8, n1) - gained(w8, w1),
    ),
    conclusion(
        "close",
        margin="10 less what 8-byte links with 8 channels lack of 32-byte links [%]",
        assumption=f"'close' taken for 10 % (Table II: 5.8 %); {HANGS}",
        parameter=THINK,
        readings=lambda think: rates(*(loop(width, 8, think=think) for width in (8, 32))),
        of=lambda narrow, wide: 10 - saved(narrow, wide),
    ),
    conclusion(
        "transfers",
        margin="10 less what 8-byte links with 8 channels lack of 32-byte links [%]",
        parameter=Parameter(
            name="transfer", unit="bytes", value=64, values=(16, 32, 64, 128, 256), whole=True
        ),
        readings=lambda size: rates(*(transfers(width, 8, round(size)) for width in (8, 32))),
        of=lambda narrow, wide: 10 - saved(narrow, wide),
    ),
    conclusion(
        "saturates",
        margin="2 less the throughput gained by 8 channels over 4, 32-byte links [%]",
        assumption=f"{HANGS}: with it the engines themselves are the limit",
        parameter=THINK,
        readings=lambda think: rates(*(loop(32, channels, think=think) for channels in (8, 4))),
        of=lambda eight, four: 2 - gained(eight, four),
    ),
    conclusion(
        "sixteen",
        margin="2 less the largest gain of 8 channels over one of the three widths [points]",
        parameter=THINK,
        readings=lambda think: rates(
            *(loop(w, channels, think=think, nodes=16) for w in (8, 16, 32) for channels in (8, 1))
        ),
        of=lambda *found: 2 - max(gained(*pair) for pair in zip(found[::2], found[1::2], strict=True)),
    ),
)  # fmt: skip

CONTRADICTIONS = tuple(contradictions())
