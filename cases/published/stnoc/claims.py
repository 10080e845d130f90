"""What the STNoC paper claims beside what we find, its contradictions, and what had to be assumed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cases.published.cell import Cell, only
from cases.published.claim import Claim, Value, compared, ratio
from cases.published.rows import published, read_toml
from cases.published.stnoc.calibration import GAIN_LEFT_OUT, said, said_gain
from cases.published.stnoc.specs import (
    CALIBRATED,
    CONTROLLER_CYCLES,
    FILE,
    PAYLOAD,
    TRANSFERS,
    WIDTHS,
    engines_of,
    flits,
)


def assumptions() -> list[str]:
    """Return where the parameters come from, with their values."""
    kept = read_toml(FILE)
    ends = {
        name: f"{value:.4g} ({kept['low'][name]:.4g} to {kept['high'][name]:.4g})"
        for name, value in asdict(CALIBRATED).items()
    }
    return [text.format(controller=CONTROLLER_CYCLES, **ends) for text in published("stnoc")["parameters"]]


def step_rate(grid: Iterable[Mapping[str, Any]]) -> dict[tuple[int, int], float]:
    """Return the simulated rate at which delays rise with 16-byte links, by step and channels."""
    return {
        (row["step"], row["channels"]): (row["low"] + row["high"]) / 2
        for row in grid
        if row["link_width"] == 16
    }


def check_claims(cells: Sequence[Cell], grid: Iterable[Mapping[str, Any]]) -> list[Claim]:
    """Return the statements of the text."""
    said = published("stnoc")["text"]
    rate = step_rate(grid)
    best = max((step for step, channels in rate if channels == 4), key=lambda step: rate[step, 4])
    one, four = (only(cells, table="table1", reading="in turn", channels=n) for n in (1, 4))
    best_rate = ratio(four, one)
    between = {"published": said["step32_above"], "published_high": said["step32_below"]}
    more = {"form": "{:.3f}", "said": "{} to {}".format(*between.values()), **between}
    risen = "Fig. 3: delays rise with 4 channels and step 32 at"
    return [
        Claim(text="Fig. 3: best step, 4 channels", published=1.0, simulated=best),
        Claim(text=risen, group="step32", simulated=rate[32, 4], **more),
        compared(
            "best rate with 4 channels over that with one",
            best_rate,
            **{"group": "ratio", "form": "{:.2f}", "published": best_rate("published")},
        ),
        *_gains(cells),
    ]


def _gains(cells: Sequence[Cell]) -> list[Claim]:
    """Return what 8 channels gain over one, and 32-byte links over 8-byte links."""
    said = published("stnoc")["text"]
    rows: list[tuple[str, Value, dict[str, Any]]] = []
    for width in WIDTHS:
        number = {"published": said_gain(width), "said": f"{said_gain(width)} %"}
        text = f"gain of 8 channels, {width}-byte links"
        rows.append((text, _gain(cells, "table2", width), {"group": "gains_fitted", **number}))
        left = only(cells, table=GAIN_LEFT_OUT, width=width).model
        rows.append((f"{text}, fitted without the row of one channel", _model_only(left), number))
    for transfer in reversed(TRANSFERS):
        narrow, wide = (
            only(cells, table=_table(transfer), transfer=transfer, width=width, channels=8)
            for width in (8, 32)
        )
        below = _percent(narrow, wide, sign=-1)
        number = {"group": "narrow", "published": below("published")} if transfer == PAYLOAD else {}
        text = f"8-byte links with 8 channels stay below 32-byte links by, transfers of {transfer} bytes"
        rows.append((text, below, number))
    for transfer in reversed(TRANSFERS):
        more = _narrow_gains_more(cells, transfer)
        text = f"gain of 8 channels is higher with 8-byte than with 32-byte links by, {transfer} bytes"
        rows.append((text, more, {"said": "above 0", "holds": more("simulated") > 1.0}))
    limit = {"published": 0.0, "published_high": said["gain16"], "said": f"< {said['gain16']:g} %"}
    for transfer in reversed(TRANSFERS):
        for width in WIDTHS:
            text = f"16 nodes, {width}-byte links, transfers of {transfer} bytes: gain of 8 channels"
            group = "nodes16" if transfer == PAYLOAD else "nodes16_short"
            value = _gain(cells, "nodes16", width, transfer=transfer)
            rows.append((text, value, {"group": group, **limit}))
    return [compared(text, value, form="{:.1f} %", points=True, **more) for text, value, more in rows]


def _table(transfer: int) -> str:
    return "table2" if transfer == PAYLOAD else "figure4"


def _narrow_gains_more(cells: Sequence[Cell], transfer: int) -> Value:
    narrow, wide = (_gain(cells, _table(transfer), width, transfer=transfer) for width in (8, 32))
    return lambda which: narrow(which) - wide(which)


def _model_only(value: float | None) -> Value:
    return lambda which: value if which == "model" else None  # type: ignore[return-value]


def _gain(cells: Sequence[Cell], table: str, width: int, *, transfer: int = PAYLOAD) -> Value:
    few, many = (only(cells, table=table, transfer=transfer, width=width, channels=n) for n in (1, 8))
    return _percent(many, few)


def _percent(one: Cell, other: Cell, *, sign: int = 1) -> Value:
    return lambda which: 100 * sign * (ratio(one, other)(which) - 1)


def contradictions() -> list[str]:
    """Return the published numbers that a limit of their own set-up rules out, with the arithmetic."""
    data = published("stnoc")
    one = data["table1"]["rate"][0]
    load = 4 * one * flits(16)
    wide = data["table2"]["width32"][0]
    narrow, middle = data["table2"]["width8"][0], data["table2"]["width16"][0]
    mixed = 2 * PAYLOAD / (flits(8) + 1) * 1000
    engines = engines_of()
    cycles = {width: 1000 * PAYLOAD * engines / said("table2", (width, 8)) for width in WIDTHS}
    more = {width: cycles[width] - cycles[32] for width in WIDTHS}
    longer = {width: flits(width) - flits(32) for width in WIDTHS}
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
        f"Table II, 8 channels: with one transfer at a time {engines} engines take {cycles[8]:.1f}, "
        f"{cycles[16]:.1f} and {cycles[32]:.1f} cycles for one over 8-, 16- and 32-byte links. That is "
        f"{more[8]:.1f} and {more[16]:.1f} cycles more than over 32 bytes, yet a packet alone is "
        f"{longer[8]} and {longer[16]} flits longer: something else must go on while the flits pass. So we "
        "let memories cut through; with whole packets first, 8-byte links end some 3 points further below "
        f"32-byte ones. The headline, {100 * (1 - cycles[32] / cycles[8]):.1f} % below, is of 128 bytes; "
        "what is left of the difference are waits for links, of which the paper has next to none.",
    ]
