"""What the STNoC paper claims beside what we find, its contradictions, and what had to be assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cases.published.stnoc.specs import CALIBRATED, CONTROLLER_CYCLES, PAYLOAD, flits, published
from cases.published.stnoc.tables import Cell
from cases.tables import text_table

WRITES = f"{100 * CALIBRATED.write_fraction:g} %"

ASSUMPTIONS = f"""Where the parameters come from
  Paper: topologies, across-first, 2 virtual channels, buffers of a packet, 128 bytes and 8 of header,
    1 GHz, numbers of engines, CPUs and channels, one transfer at a time, step 1, contiguous memory nodes.
  gem5's memory controller of January 2013: a fixed latency of {CONTROLLER_CYCLES:g} cycles (12 of 2.5 ns).
  Calibrated on Table II (12 numbers): think time {CALIBRATED.think_cycles:g} cycles, service
    {CALIBRATED.service_cycles:g} cycles (exponential, for bank conflicts), writes {WRITES}. The think time
    takes up what routers of more stages would add.
  Calibrated on Table I, reading "in turn": a packet has a virtual channel to itself, for 6 cycles beyond
    its length. "random channel" takes the 4 of the one-stage router, uncalibrated, and draws channels.
  Calibrated on Table III: three powers of a bit. A constant per router and a power per bit of buffer
    cannot be told apart, since buffers are of one packet at any width.
  Our choice: fewer channels are spread over the memory nodes; CPUs and engines are on the first nodes;
    static VC classes, dateline at node 0; a read is a short request with a long answer, a write
    the opposite; published saturation rates are the nearest points of the grid.
  One router does not give all: with packets that follow one another in a buffer (Tables II and III)
    4 channels carry half as much again as published in Table I; with one packet in a buffer, and no new
    calibration, Table II is missed by up to 10 % (8-byte links, 2 channels)."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One claim.

    Parameters
    ----------
    text, published, model, simulated : str
        What is claimed, and what we find.
    """

    text: str
    published: str
    model: str
    simulated: str


def step_rate(grid: Sequence[Mapping[str, Any]]) -> dict[tuple[float, float], float]:
    """Return the simulated rate at which delays rise with 16-byte links, by step and channels."""
    return {
        (row["step"], row["channels"]): (row["low"] + row["high"]) / 2
        for row in grid
        if row["link_width"] == 16
    }


def check_claims(cells: Sequence[Cell], grid: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """Return the statements of the text."""
    said = published()["text"]
    known = {(cell.table, cell.width, cell.channels): cell for cell in cells if not cell.reading}
    first = {c.channels: c for c in cells if (c.table, c.reading) == ("table1", "in turn")}
    rate = step_rate(grid)

    def gain(table: str, width: int) -> list[str]:
        one, many = known[table, width, 1], known[table, width, 8]
        return [f"{100 * (getattr(many, w) / getattr(one, w) - 1):.1f} %" for w in ("model", "simulated")]

    def close(which: str) -> str:
        narrow, wide = known["table2", 8, 8], known["table2", 32, 8]
        return f"{100 * (1 - getattr(narrow, which) / getattr(wide, which)):.1f} %"

    worst = [max(gain("nodes16", width)[k] for width in (8, 16, 32)) for k in range(2)]
    steps = [step for step, channels in rate if channels == 4]
    one, four = ([getattr(first[c], w) for w in ("model", "simulated")] for c in (1, 4))
    return [
        Claim(
            text="Fig. 3: best step, 4 channels", published="1", model="-",
            simulated=str(max(steps, key=lambda step: rate[step, 4])),
        ),
        Claim(
            text="Fig. 3: delays rise with 4 channels and step 32 at", model="-",
            simulated=f"{rate[32, 4]:.3f}", published=f"{said['step32_above']} to {said['step32_below']}",
        ),
        Claim(
            text="best rate with 4 channels over that with one", published="2.33",
            model=f"{four[0] / one[0]:.2f}", simulated=f"{four[1] / one[1]:.2f}",
        ),
        Claim(
            text="gain of 8 channels, 8-byte links", published=f"{said['gain8']} %",
            model=gain("table2", 8)[0], simulated=gain("table2", 8)[1],
        ),
        Claim(
            text="gain of 8 channels, 32-byte links", published=f"{said['gain32']} %",
            model=gain("table2", 32)[0], simulated=gain("table2", 32)[1],
        ),
        Claim(
            text="8-byte links with 8 channels stay below 32-byte links by",
            published=close("published"), model=close("model"), simulated=close("simulated"),
        ),
        Claim(
            text="16 nodes, 7 engines: largest gain of 8 channels", published=f"< {said['gain16']:g} %",
            model=worst[0], simulated=worst[1],
        ),
    ]  # fmt: skip


def contradictions() -> list[str]:
    """Return the published numbers that a limit of their own set-up rules out, with the arithmetic."""
    data = published()
    one = data["table1"]["rate"][0]
    load = 4 * one * flits(16)
    wide = data["table2"]["width32"][0]
    narrow, middle = data["table2"]["width8"][0], data["table2"]["width16"][0]
    mixed = 2 * PAYLOAD / (flits(8) + 1) * 1000
    return [
        f"Table I, one channel: 4 CPUs x {one} x {flits(16)} flits = {load:.2f} flits/cycle for an ejection "
        f"link of 1; the limit is {1 / (4 * flits(16)):.4f} packets/cycle/CPU, which the grid rounds up.",
        f"Table II, one channel: {narrow:.0f} to {wide:.0f} MB/s are more than the peak of "
        f"{data['text']['peak']:.0f} MB/s that section V.D gives for a channel, with all widths.",
        f"Table II, one channel, 16- and 32-byte links: {middle:.0f} and {wide:.0f} MB/s "
        "are more than gem5's controller lets through, 64 bytes in 5 ns = 12800 MB/s; a transfer of 128 "
        f"bytes must have counted as one request (calibrated: {CALIBRATED.service_cycles:g} ns).",
        f"Table II, one channel, 8-byte links: {narrow:.0f} MB/s does not contradict 8 GB/s a link: writes "
        f"load the ejection link and reads the injection link, together up to {mixed:.0f} MB/s; but it "
        f"cannot be writes alone (at most {1000 * PAYLOAD / flits(8):.0f} MB/s).",
    ]


def claims_text(claims: Sequence[Claim]) -> str:
    """Return claims and contradictions as text."""
    rows = [[claim.text, claim.published, claim.model, claim.simulated] for claim in claims]
    lines = ["Claims", text_table(["claim", "published", "model", "simulated"], rows), "", "Contradictions"]
    return "\n".join(lines + [f"  {text}" for text in contradictions()])
