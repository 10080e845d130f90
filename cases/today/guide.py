"""The guide's page of conclusions: ``python -m cases.today.guide > .github/docs/papers/conclusions.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cases.published import CASES
from cases.published.conclusions import found_of
from cases.published.words import markdown
from cases.tables import read_rows
from cases.today import papers, pointer_banks

HEAD = """# What the papers conclude, computed

`qmodels conclusions [CASE]` asks of each published system whether the paper's conclusion holds, by how much,
what it hangs on, and where it turns (`--plot FILE` draws one paper, `--json` gives all numbers). Positive
margins hold. Models' margins and flips are computed when asked, in about a minute for all; simulations
beside them are kept, with the command that makes them (`python -m cases.published.conclusions`, some
minutes), and left out where a reading has changed since.

"Confirmed" and "contradicted": model and simulation agree. "Depends": they do not, or the simulated interval
has 0 in it, or the conclusion turns at a value that the text leaves open. "Simulated: between a and b" are
the nearest simulated values on both sides of the turn; "otherwise" says that the model's turn is not between
them. A confirmed conclusion is one of the paper's systems as we read them: the last column says what its
published numbers prove."""

TODAY = """## On today's parts

The same conclusions, their systems with today's parts, simulated (`python -m cases.today.papers`). A
margin is as above; what has no such part in its paper, the thesis and message passing, is not asked.
Memories of data queueing are one channel that is never idle; the chip of 64 cores has
all else in proportion to them."""

BANKS = """## The pointer memory at 400 and 800 Gb/s

A packet processor of ports of 100 Gb/s, Internet mix, segments of 64 bytes in DDR5-6400 (two channels a
port), a pointer memory of one access per ns and port, in banks with a free list each (`python -m
cases.today.pointer_banks`): {count} designs by the model, of which those that decide are simulated.
"Enough" is a tenth beyond the line rate. The pointer memory's capacity is simulated at half of the line
rate, by how busy it is; the model's is that of the whole system, so that the two compare where the
pointer memory is the limit. With several trials that flatters it: at half of the rate fewer banks of the
DRAM are busy. A run of finite length cannot tell a queue that grows slowly from a long one."""


def page() -> str:
    """Return the page."""
    return "\n\n".join(
        [
            HEAD,
            markdown({case: found_of(case) for case in CASES}),
            TODAY,
            papers.markdown(read_rows(papers.FILE)),
            *banks(read_rows(pointer_banks.FILE)),
        ]
    )


def banks(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the section on the pointer memory."""
    count = sum(row["small"] == 0 for row in rows)
    return [BANKS.format(count=count), pointer_banks.markdown(rows), pointer_banks.summary(rows), FINDING]


FINDING = """So the data-queueing design becomes one with a bank of the pointer memory for each port of 100
Gb/s and one trial. More trials need twice the banks, and with so many the simulation resolves no gain by
them. Lists for small packets bought latency in the one design of 800 Gb/s in which they were simulated, and
none that is resolved at 400 Gb/s; the model of a system does not see them."""


if __name__ == "__main__":
    print(page())
