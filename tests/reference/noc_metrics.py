"""Parts and quantiles of the latency by flit-level simulation, also of priorities and bursts.

``python tests/reference/noc_metrics.py simulate`` writes `noc_metrics.csv` in five minutes. Networks of
one kind of packets are those of booksim_latency.py and long rings held out of ring_saturation.py, at
parts of their kept saturation rates; mixes of short urgent and long lazy packets and bursty sources
run at parts of the model's. Of mixes there are two more rows, the urgent packets' and the lazy ones'.
`errors` compares the model with them. Run from the root of the repository, with it on the path.
"""

import csv
import importlib.util
import random
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from qmodels import Noc
from qmodels.noc import PacketClass, bursts
from qmodels.noc.solve_noc import solve_noc

HERE = Path(__file__).parent
FILE = HERE / "noc_metrics.csv"
BANDS = (0.2, 0.4, 0.6, 0.75, 0.85, 0.95)
"""Loads up to which errors count together, in parts of the model's saturation rate."""
LEAST = 0.5
"""Delays of which an error is worth a number. [cycles]"""
LOADS = (0.1, 0.3, 0.5, 0.7, 0.85, 0.95)
METRICS = (
    "packet_latency", "packet_latency_p95", "packet_latency_p99", "source_queue_delay", "traversal_delay",
)  # fmt: skip
HEADER = (
    "topology", "radix", "dimensions", "traffic", "flits", "virtual_channels", "buffer_flits",
    "urgent_flits", "urgent_share", "scv", "part", "load", "injection_rate", "packets_of", *METRICS,
    "half_width",
)  # fmt: skip


def references(name: str = "booksim_latency") -> Any:
    """Return a module of this folder."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@dataclass(frozen=True)
class Case:
    """A network, and what is special about its packets; ``scv`` 1 is Bernoulli."""

    setting: Any
    urgent_flits: int = 0
    urgent_share: float = 0.0
    scv: float = 1.0
    part: str = "fit"

    def noc(self, rate: float = 0.01) -> Noc:
        """Return the spec."""
        noc: Noc = self.setting.noc(rate)
        if self.scv != 1:
            noc = replace(noc, process=bursts(scv=self.scv))
        if self.urgent_flits:
            mix = (
                PacketClass(flits=self.urgent_flits, share=self.urgent_share, priority=0),
                PacketClass(flits=self.setting.flits, share=1 - self.urgent_share, priority=1),
            )
            router = replace(noc.router, arbitration="priority")
            noc = replace(noc, mix=mix, router=router, flits_per_packet=0)
        return noc


NETS = (("mesh", 4, 2), ("torus", 4, 2), ("ring", 12, 1), ("spidergon", 16, 1), ("mesh", 6, 2))


def cases() -> Iterator[tuple[Case, float]]:
    """Yield the cases and the rate that is load 1."""
    made = references()
    for path in (made.BOOKSIM_FILE, made.FLIT_FILE):
        for setting, row in made.read(path):
            if row["load"] == 0.1:
                part = "held out" if path == made.FLIT_FILE else "fit"
                yield Case(setting, part=part), row["saturation_rate"]
    for setting, part, rate, _ in references("ring_saturation").read():
        if part == "held out" and setting.radix >= 24:
            yield Case(setting, part="long ring"), rate
    dice = random.Random(31)
    for k in range(50):
        vcs, buffer = dice.choice([2, 2, 4]), dice.choice([4, 6, 8, 16])
        long, short = dice.choice([5, 9, 9, 16]), dice.choice([1, 1, 2, 5])
        share, scv = dice.choice([0.2, 0.5, 0.8]), dice.choice([2.5, 4.0, 8.0, 12.0])
        net = NETS[k // 2 % len(NETS)]
        setting = made.Setting(*net, "uniform", long, vcs, buffer)
        part = "held out" if k % 6 > 3 else "fit"
        case = Case(setting, short, share, part=part) if k % 2 else Case(setting, scv=scv, part=part)
        yield case, solve_noc(case.noc()).saturation_rate


def simulate() -> None:
    """Simulate and write, row by row."""
    import validate

    with FILE.open("w", newline="", encoding="utf-8") as file:
        file.write("# Of our flit simulator: tests/reference/noc_metrics.py simulate; scv 1: Bernoulli\n")
        table = csv.writer(file, lineterminator="\n")
        table.writerow(HEADER)
        for case, saturation in cases():
            s = case.setting
            plain = case.urgent_flits == 0 and case.scv == 1
            for load in LOADS if plain else LOADS[1:-1]:
                packets = 10_000 if load <= 0.5 and plain else 30_000
                rate = load * saturation
                result = validate.simulate(case.noc(rate), replications=4, packets=packets)
                if not result.stable:
                    continue
                fields = (
                    s.topology, s.radix, s.dimensions, s.traffic, s.flits, s.virtual_channels,
                    s.buffer_flits, case.urgent_flits, case.urgent_share, case.scv, case.part, load,
                    f"{rate:.6f}",
                )  # fmt: skip
                half = f"{result.packet_latency.half_width:.3f}"
                values = [f"{result[name].best:.4f}" for name in METRICS]
                table.writerow((*fields, "all", *values, half))
                if case.urgent_flits:
                    for name, means in by_class(result).items():
                        table.writerow((*fields, name, *means, "nan"))
                file.flush()


def by_class(result: Any) -> dict[str, list[str]]:
    """Return the means of urgent and of lazy packets; there are no quantiles of them."""
    flows = result.flows
    rate, level, latency, source = (
        flows[name] for name in ("delivered_rate", "packet_class", "packet_latency", "source_queue_delay")
    )
    found = {}
    for number, name in enumerate(("urgent", "lazy")):
        part = np.where((level == number) & (rate > 0), rate, 0.0)
        used = part > 0
        whole = float(part[used] @ latency[used] / part.sum())
        wait = float(part[used] @ source[used] / part.sum())
        found[name] = [f"{whole:.4f}", "nan", "nan", f"{wait:.4f}", f"{whole - wait:.4f}"]
    return found


Row = tuple[Case, dict[str, str]]


def read() -> Iterator[Row]:
    """Yield the cases and rows of the file."""
    make = references().Setting
    with FILE.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            whole = [int(row[name]) for name in ("flits", "virtual_channels", "buffer_flits")]
            size = int(row["radix"]), int(row["dimensions"])
            setting = make(row["topology"], *size, row["traffic"], *whole)
            special = int(row["urgent_flits"]), float(row["urgent_share"]), float(row["scv"])
            yield Case(setting, *special, row["part"]), row


def solved(case: Case, row: dict[str, str]) -> dict[str, float]:
    """Return what the model says about a row."""
    answer = solve_noc(case.noc(float(row["injection_rate"])))
    if row["packets_of"] == "all":
        return {name: float(answer[name]) for name in METRICS}
    flows = answer.flows
    mine = flows["packet_class"] == ("urgent", "lazy").index(row["packets_of"])
    part = flows["rate"][mine] / flows["rate"][mine].sum()
    return {name: float(part @ flows[name][mine]) for name in METRICS if row[name] != "nan"}


def region_of(case: Case) -> str:
    """Return what a case is told from others by."""
    if case.scv != 1 or case.urgent_flits:
        return "bursts" if case.scv != 1 else "priorities"
    kind = "rings" if case.setting.topology in ("ring", "spidergon") else "meshes"
    return f"{kind}, {'single flits' if case.setting.flits == 1 else 'packets'}"


@cache
def saturation(case: Case) -> float:
    """Return the model's saturation rate."""
    return float(solve_noc(case.noc()).saturation_rate)


def errors(rows: Iterable[Row]) -> dict[tuple[str, str, str, float], Any]:
    """Return errors by region, packets of, metric and upper end of the load [% of the simulated value].

    Loads are parts of the model's saturation rate.
    """
    found: dict[tuple[str, str, str, float], list[float]] = {}
    for case, row in rows:
        load = float(row["injection_rate"]) / saturation(case)
        for band in [band for band in BANDS if load <= band][:1]:
            for name, value in solved(case, row).items():
                simulated = float(row[name])
                if simulated >= LEAST and np.isfinite(value):
                    key = region_of(case), row["packets_of"], name, band
                    found.setdefault(key, []).append(100 * (value / simulated - 1))
    return {key: np.array(values) for key, values in found.items()}


if __name__ == "__main__":
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command != "simulate":
        raise SystemExit("simulate?")
    simulate()
