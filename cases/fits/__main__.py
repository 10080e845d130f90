"""``python -m cases.fits`` lists the constants; with names of fits it runs these.

``--write`` keeps what they find beside the values, ``--adopt`` also as the values, to three digits.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence

from cases.fits import memory, network, processor, queues
from cases.fits.fit import Fit, Found, run
from cases.tables import text_table
from qmodels.evidence.constants import FILE, constants, rows
from qmodels.noc import message_rates
from qmodels.packet_processor.networks import links
from qmodels.packet_processor.trials import walk

ASSUMED = (links, message_rates, walk)
"""Modules with groups of constants of which none is fitted."""
FITS: dict[str, Fit] = {fit.name: fit for room in (network, memory, queues, processor) for fit in room.FITS}


def table() -> str:
    """Return the constants of all models as text."""
    headings = ("constant", "value", "interval", "unit", "held out", "tag", "data", "command")
    lines = [
        (
            one.name,
            one.value,
            f"{one.low:.4g} to {one.high:.4g}" if one.fit else "",
            one.unit,
            f"{one.held_out:.2g} %" if one.fit else "",
            one.tag,
            one.data,
            one.command,
        )
        for one in constants()
    ]
    return text_table(headings, lines, indent="")


def write(fit: Fit, found: dict[str, Found], held_out: float, *, adopt: bool) -> None:
    """Keep what a fit found."""
    rows.cache_clear()  # another fit may have written meanwhile
    kept = {name: dict(row) for name, row in rows().items()}
    for field, one in found.items():
        numbers = {name: f"{value:.4g}" for name, value in one._asdict().items()}
        words = {"held_out": f"{held_out:.3g}", "tag": "fitted", "fit": fit.name, "data": fit.data}
        kept[f"{fit.group}.{field}"].update(numbers | words)
        if adopt:
            kept[f"{fit.group}.{field}"]["value"] = f"{one.best:.3g}"
    with FILE.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, list(next(iter(kept.values()))), lineterminator="\n")
        out.writeheader()
        out.writerows(kept.values())
    rows.cache_clear()


def report(fit: Fit, found: dict[str, Found], held_out: float) -> str:
    """Return what a fit found beside what is kept."""
    lines = [
        (
            f"{fit.group}.{field}",
            value,
            one.best,
            f"{one.low:.4g} to {one.high:.4g}",
            one.low <= value <= one.high,
        )
        for (field, one), value in zip(found.items(), fit.kept.tolist(), strict=True)
    ]
    text = text_table(("constant", "kept", "found", "interval", "inside"), lines, indent="")
    return f"{text}\nheld out: mean size of the error {held_out:.2g} %"


def main(arguments: Sequence[str]) -> None:
    """Run the command."""
    names = [name for name in arguments if not name.startswith("--")]
    for name in names:
        if name not in FITS:
            raise SystemExit(f"fit must be one of {', '.join(FITS)}, got {name!r}")
        found, held_out = run(FITS[name])
        print(report(FITS[name], found, held_out), flush=True)
        if {"--write", "--adopt"} & set(arguments):
            write(FITS[name], found, held_out, adopt="--adopt" in arguments)
    if not names:
        print(table())


if __name__ == "__main__":
    main(sys.argv[1:])
