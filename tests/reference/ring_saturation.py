"""Saturation of rings and Spidergons by flit-level simulation: where they collapse, what they carry jammed.

``python tests/reference/ring_saturation.py simulate`` writes `ring_saturation.csv` (half an hour). The
constants of `qmodels.noc.collapse` were fitted to two thirds of the networks. Run from
the root of the repository, with it on the path.
"""

import csv
import importlib.util
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FILE = HERE / "ring_saturation.csv"
COUNT = 100
OTHERS = [
    (kind, size, traffic)
    for kind in ("ring", "spidergon")
    for size in (16, 64)
    for traffic in ("transpose", "bit-complement")
]
SIZES = (8, 12, 16, 24, 32, 48, 64)
HEADER = (
    "topology", "radix", "dimensions", "traffic", "flits", "virtual_channels", "buffer_flits",
    "part", "low", "high", "congested",
)  # fmt: skip


def setting_type() -> Any:
    """Return the class of the settings, that of the latency references."""
    name = "booksim_latency"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name].Setting


def settings(count: int = COUNT) -> list[tuple[Any, str]]:
    """Return settings and whether they are for the fit or held out: every third, and other traffic."""
    dice = random.Random(17)
    make = setting_type()
    found: list[tuple[Any, str]] = []
    while len(found) < count:
        kind = ("ring", "spidergon")[len(found) % 2]
        traffic = dice.choice(["uniform", "uniform", "uniform", "hotspot"])
        size, flits = dice.choice(SIZES), dice.choice([1, 2, 5, 9, 16])
        vcs, buffer = dice.choice([2, 2, 4, 8]), dice.choice([4, 5, 6, 8, 12, 16])
        one = make(kind, size, 1, traffic, flits, vcs, buffer)
        if all(one != other for other, _ in found):
            found.append((one, "held out" if len(found) % 6 > 3 else "fit"))
    for kind, size, traffic in OTHERS:
        flits, vcs, buffer = dice.choice([1, 2, 5, 9, 16]), dice.choice([2, 4]), dice.choice([4, 6, 8, 12])
        found.append((make(kind, size, 1, traffic, flits, vcs, buffer), "other traffic"))
    return found


def simulate() -> None:
    """Simulate and write, row by row."""
    from validate.noc.saturation import saturation_rate

    with FILE.open("w", newline="", encoding="utf-8") as file:
        file.write("# Of our flit simulator: tests/reference/ring_saturation.py simulate\n")
        file.write("# Rates carried, not carried, and carried when offered 1.2 high [packets/cycle]\n")
        table = csv.writer(file, lineterminator="\n")
        table.writerow(HEADER)
        for s, part in settings():
            found = saturation_rate(s.noc(), precision=0.02, cycles=20_000)
            fields = (s.topology, s.radix, 1, s.traffic, s.flits, s.virtual_channels, s.buffer_flits, part)
            rates = (found.low, found.high, found.congested_rate)
            table.writerow((*fields, *(f"{rate:.6f}" for rate in rates)))
            file.flush()


def read() -> Iterator[tuple[Any, str, float, float]]:
    """Yield setting, part, the rate of saturation and that of the jammed network."""
    make = setting_type()
    with FILE.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            whole = [int(row[name]) for name in ("flits", "virtual_channels", "buffer_flits")]
            setting = make(row["topology"], int(row["radix"]), 1, row["traffic"], *whole)
            rate = (float(row["low"]) + float(row["high"])) / 2
            yield setting, row["part"], rate, float(row["congested"])


if __name__ == "__main__":
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command != "simulate":
        raise SystemExit("simulate?")
    simulate()
