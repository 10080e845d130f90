"""Packet latencies of one-stage routers by flit-level simulation: the references of the wormhole model.

``python tests/reference/booksim_latency.py booksim`` writes `booksim_latency.csv` with BookSim2
(commit 28f43299 of github.com/booksim/booksim2), whose program the environment variable BOOKSIM names;
``... simulate`` writes `flit_latency.csv` with `validate.simulate`, other settings and Spidergons among
them; `errors` compares the model with both, and with the long rings and Spidergons of noc_metrics.py.

Loads are parts of the saturation rate, found by bisection with our simulator. Kept of BookSim2 are the
22 settings that were finished, with saturation rates from an earlier flit simulator of the same router
(the highest rate at which no source lags behind by more than 2 % of the time).

Run from the root of the repository, with it on the path. The first takes an hour.
"""

import csv
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from qmodels import Noc, mesh, ring, spidergon, torus
from qmodels.noc import Router
from qmodels.noc.solve_noc import solve_noc
from qmodels.systems.noc.patterns import Pattern

HERE = Path(__file__).parent
BOOKSIM_FILE = HERE / "booksim_latency.csv"
FLIT_FILE = HERE / "flit_latency.csv"
METRIC_FILE = HERE / "noc_metrics.csv"
LOADS = (0.1, 0.3, 0.5, 0.7, 0.85, 0.95)
HOT = 4
"""Packets to the hot node, relative to any other."""

ROUTER = """
wait_for_tail_credit = 0; hold_switch_for_packet = 1;
vc_allocator = piggyback; speculative = 1; spec_sw_allocator = prio;
sw_allocator = separable_input_first; arb_type = round_robin; alloc_iters = 1;
credit_delay = 0; routing_delay = 0; vc_alloc_delay = 1; sw_alloc_delay = 1;
st_prepare_delay = 0; st_final_delay = 1; output_delay = 0;
input_speedup = 1; output_speedup = 1; internal_speedup = 1.0; output_buffer_size = -1;
use_noc_latency = 0; priority = none; include_queuing = 1; injection_process = bernoulli;
injection_rate_uses_flits = 0; warmup_periods = 1; max_samples = 3; latency_thres = 2000.0;
"""
"""The one-stage router: 3 cycles a router, a credit loop of 5, heads bid for switch and channel at once."""


@dataclass(frozen=True)
class Setting:
    """One network and its traffic."""

    topology: str
    radix: int
    dimensions: int
    traffic: str
    flits: int
    virtual_channels: int
    buffer_flits: int

    @property
    def nodes(self) -> int:
        """Nodes, one per router."""
        return int(self.radix**self.dimensions)

    def noc(self, rate: float = 0.01) -> Noc:
        """Return the spec; like BookSim2, nodes send to themselves and ties are broken at random."""
        n, spot = self.nodes, self.nodes // 2 + 1
        make: Any = {"mesh": mesh, "torus": torus, "ring": ring, "spidergon": spidergon}[self.topology]
        hot: dict[str, Any] = {}
        if self.traffic == "hotspot":
            hot = {"spots": (spot,), "fraction": (HOT / (n + HOT - 1) - 1 / n) / (1 - 1 / n)}
        pattern = Pattern(pattern=self.traffic, nodes=n, self_traffic=True, **hot)
        return Noc(
            topology=make(*[self.radix] * self.dimensions),
            ties="split" if self.topology in ("torus", "ring") else "first",
            router=Router(virtual_channels=self.virtual_channels, buffer_flits=self.buffer_flits),
            traffic=pattern,
            flits_per_packet=self.flits,
            injection_rate=rate,
        )


def booksim_settings() -> list[Setting]:
    """Return the settings of the BookSim2 runs, small networks first."""
    dice = random.Random(5)
    settings: list[Setting] = []
    nets = [("mesh", 4, 2), ("mesh", 8, 2), ("torus", 4, 2), ("torus", 8, 2), ("ring", 16, 1), ("ring", 8, 1)]
    for net in nets:
        for flits in (1, 5, 9):
            for traffic in ("uniform", "transpose", "hotspot"):
                if traffic == "transpose" and net == ("ring", 8, 1):
                    continue
                vcs = dice.choice([1, 2, 3, 4] if net[0] == "mesh" else [2, 4])
                settings.append(Setting(*net, traffic, flits, vcs, dice.choice([4, 5, 6, 8, 9])))
    dice.shuffle(settings)
    return sorted(settings, key=lambda s: (s.nodes > 16) * (1 + (s.flits == 9)))


def flit_settings(count: int = 35) -> list[Setting]:
    """Return settings for our own simulator."""
    dice = random.Random(99)
    nets = [("mesh", 4, 2), ("spidergon", 16, 1), ("torus", 4, 2), ("ring", 12, 1), ("mesh", 6, 2)]
    nets += [("spidergon", 12, 1), ("torus", 6, 2), ("spidergon", 24, 1), ("mesh", 3, 2), ("ring", 10, 1)]
    settings: list[Setting] = []
    while len(settings) < count:
        net = nets[len(settings) % len(nets)]
        square = net[2] == 2 or net[1] == 16
        traffic = dice.choice(["uniform", "transpose", "hotspot"] if square else ["uniform", "hotspot"])
        vcs = dice.choice([1, 2, 3, 4] if net[0] == "mesh" else [2, 4])
        settings.append(Setting(*net, traffic, dice.choice([1, 5, 9]), vcs, dice.choice([4, 5, 6, 7, 8, 9])))
    return settings


def run_booksim(setting: Setting, *, rate: float, cycles: int, seed: int) -> float:
    """Return BookSim2's mean packet latency, ``inf`` where it calls the network unstable. [cycles]"""
    s = setting
    grid = s.topology if s.topology in ("mesh", "torus") else "torus"
    traffic = s.traffic
    if traffic == "hotspot":
        weights = [HOT if node == s.nodes // 2 + 1 else 1 for node in range(s.nodes)]
        traffic = f"hotspot({{{{{_list(range(s.nodes))}}},{{{_list(weights)}}}}})"
    options = {
        "topology": grid,
        "k": s.radix,
        "n": s.dimensions,
        "routing_function": "dor" if grid == "mesh" else "dim_order",
        "traffic": traffic,
        "num_vcs": s.virtual_channels,
        "vc_buf_size": s.buffer_flits,
        "packet_size": s.flits,
        "injection_rate": rate,
        "sample_period": cycles,
        "seed": seed,
    }
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as file:
        file.write(ROUTER + "".join(f"{name} = {value};\n" for name, value in options.items()))
        file.flush()
        run = subprocess.run([os.environ["BOOKSIM"], file.name], capture_output=True, text=True, check=False)
    latency = float("nan")
    for line in run.stdout.splitlines():
        if "unstable" in line or "Aborting" in line:
            return float("inf")
        if line.startswith("Packet latency average"):
            latency = float(line.split()[4])
    return latency


def _list(values: Iterable[int]) -> str:
    return ",".join(map(str, values))


HEADER = (
    "topology", "radix", "dimensions", "traffic", "flits", "virtual_channels", "buffer_flits",
    "saturation_rate", "load", "injection_rate", "packet_latency", "standard_error",
)  # fmt: skip


def read(path: Path) -> Iterator[tuple[Setting, dict[str, float]]]:
    """Yield the settings and numbers of a file."""
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            numbers = {name: float(row[name]) for name in HEADER[7:]}
            whole = [int(row[name]) for name in ("flits", "virtual_channels", "buffer_flits")]
            yield (
                Setting(row["topology"], int(row["radix"]), int(row["dimensions"]), row["traffic"], *whole),
                numbers,
            )


def write(path: Path, remark: str, settings: list[Setting], tool: str) -> None:
    """Simulate and write, row by row."""
    from validate import simulate
    from validate.noc.saturation import saturation_rate

    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(remark)
        table = csv.writer(file, lineterminator="\n")
        table.writerow(HEADER)
        for s in settings:
            found = saturation_rate(s.noc(), precision=0.015, cycles=30_000)
            for load in LOADS:
                rate = found.rate * load
                if tool == "booksim":
                    packets = 30_000 if load <= 0.5 else 60_000
                    cycles = max(3000, int(packets / (s.nodes * rate) / 3))
                    runs = [
                        run_booksim(s, rate=rate, cycles=cycles, seed=k)
                        for k in range(1 if load <= 0.5 else 2)
                    ]
                    latency, error = (
                        np.mean(runs),
                        np.std(runs, ddof=1) / len(runs) ** 0.5 if len(runs) > 1 else np.nan,
                    )
                else:
                    result = simulate(s.noc(rate), replications=4, packets=20_000 if load <= 0.5 else 60_000)
                    latency = result.packet_latency.best
                    error = (result.packet_latency.high - result.packet_latency.low) / 2 / 3.18
                fields = (
                    s.topology,
                    s.radix,
                    s.dimensions,
                    s.traffic,
                    s.flits,
                    s.virtual_channels,
                    s.buffer_flits,
                )
                table.writerow(
                    (*fields, f"{found.rate:.5f}", load, f"{rate:.6f}", f"{latency:.4f}", f"{error:.4f}")
                )
                file.flush()


def long_rings() -> Iterator[tuple[Setting, dict[str, float]]]:
    """Yield the settings and numbers of the long rings and Spidergons of noc_metrics.py."""
    with METRIC_FILE.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            if row["part"] == "long ring":
                whole = [int(row[name]) for name in ("flits", "virtual_channels", "buffer_flits")]
                setting = Setting(row["topology"], int(row["radix"]), 1, row["traffic"], *whole)
                numbers = {name: float(row[name]) for name in ("load", "injection_rate", "packet_latency")}
                yield setting, numbers | {"saturation_rate": numbers["injection_rate"] / numbers["load"]}


def errors() -> Iterator[tuple[Setting, float, float, float]]:
    """Yield setting, load, error of the latency and error of the saturation rate. [% of the reference]"""
    for setting, row in chain(read(BOOKSIM_FILE), read(FLIT_FILE), long_rings()):
        if not np.isfinite(row["packet_latency"]):
            continue
        answer = solve_noc(setting.noc(row["injection_rate"]))
        yield (
            setting,
            row["load"],
            100 * (float(answer.packet_latency) / row["packet_latency"] - 1),
            100 * (answer.saturation_rate / row["saturation_rate"] - 1),
        )


if __name__ == "__main__":
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command == "booksim":
        write(
            BOOKSIM_FILE,
            "# BookSim2, commit 28f43299: booksim_latency.py booksim\n",
            booksim_settings(),
            "booksim",
        )
    elif command == "simulate":
        write(FLIT_FILE, "# Our flit simulator: booksim_latency.py simulate\n", flit_settings(), "simulate")
    else:
        raise SystemExit("booksim or simulate?")
