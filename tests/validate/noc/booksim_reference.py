"""Latencies of BookSim2 for the networks in ``booksim_latency.csv``, which this makes.

    BOOKSIM=path/to/booksim python tests/validate/noc/booksim_reference.py

BookSim2 is github.com/booksim/booksim2, commit 28f43299. Each row is the mean of 6 seeds of its
own, each of 10,000 cycles of warm-up and 30,000 measured ones, at 30, 50, 70 and 85 % of the
saturation rate that
`saturation_rate` found. The standard error is that of the 6 means. Rows with
``hold_switch_for_packet`` 0 are the same networks in which each flit competes for the switch, at rates
of the same table; they and those at 95 % are there for networks in which that makes a difference.
"""

import csv
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from qmodels import Noc, mesh, ring, torus
from qmodels.noc import Router, transpose, uniform

FILE = Path(__file__).with_name("booksim_latency.csv")
FIELDS = (
    "network", "virtual_channels", "buffer_flits", "flits", "traffic", "load", "injection_rate",
    "latency", "standard_error", "hold_switch_for_packet",
)  # fmt: skip

ROUTER = {
    "wait_for_tail_credit": 0,
    "vc_allocator": "piggyback",
    "speculative": 1,
    "spec_sw_allocator": "prio",
    "sw_allocator": "separable_input_first",
    "arb_type": "round_robin",
    "alloc_iters": 1,
    "credit_delay": 0,
    "routing_delay": 0,
    "vc_alloc_delay": 1,
    "sw_alloc_delay": 1,
    "st_final_delay": 1,
    "use_noc_latency": 0,
    "injection_rate_uses_flits": 0,
}
"""A one-stage router: a head takes a virtual channel of the output when it wins the switch."""

TOPOLOGIES = {
    "mesh 4x4": (mesh(4, 4), {"topology": "mesh", "k": 4, "n": 2, "routing_function": "dor"}),
    "mesh 8x8": (mesh(8, 8), {"topology": "mesh", "k": 8, "n": 2, "routing_function": "dor"}),
    "torus 4x4": (torus(4, 4), {"topology": "torus", "k": 4, "n": 2, "routing_function": "dim_order"}),
    "ring 8": (ring(8), {"topology": "torus", "k": 8, "n": 1, "routing_function": "dim_order"}),
}
TRAFFIC = {"uniform": uniform, "transpose": transpose}

SETTINGS = (
    ("mesh 4x4", 1, 8, 1, "uniform"),
    ("mesh 4x4", 2, 8, 1, "uniform"),
    ("mesh 4x4", 1, 8, 5, "uniform"),
    ("mesh 4x4", 2, 8, 5, "uniform"),
    ("mesh 4x4", 2, 4, 9, "uniform"),
    ("mesh 4x4", 4, 9, 9, "uniform"),
    ("mesh 4x4", 3, 6, 5, "transpose"),
    ("torus 4x4", 2, 8, 5, "uniform"),
    ("torus 4x4", 4, 8, 9, "uniform"),
    ("ring 8", 2, 8, 1, "uniform"),
    ("ring 8", 2, 8, 9, "uniform"),
    ("ring 8", 4, 5, 5, "uniform"),
)
LOADS = (0.3, 0.5, 0.7, 0.85)
SHARED = tuple(s for s in SETTINGS if s[1] > 1 and s[3] > 1 and s[4] == "uniform")
"""Networks in which packets meet on a link in several virtual channels, with several flits each."""
MORE = [(0.95, 1), (0.5, 0), (0.7, 0), (0.85, 0), (0.95, 0)]
"""Loads of these, and whether packets hold the switch."""
SEEDS = 6


def noc(row: dict[str, str]) -> Noc:
    """Return the network of a row."""
    topology = TOPOLOGIES[row["network"]][0]
    return Noc(
        topology=topology,
        ties="split",
        router=Router(
            virtual_channels=int(row["virtual_channels"]),
            buffer_flits=int(row["buffer_flits"]),
            hold_switch_for_packet=row["hold_switch_for_packet"] == "1",
        ),
        traffic=TRAFFIC[row["traffic"]](nodes=topology.nodes, self_traffic=True),
        flits_per_packet=int(row["flits"]),
        injection_rate=float(row["injection_rate"]),
    )


def booksim(row: dict[str, str], *, seed: int, period: int = 10_000, samples: int = 3) -> tuple[float, str]:
    """Return the mean packet latency of a run of BookSim2, and all that it printed."""
    options = ROUTER | TOPOLOGIES[row["network"]][1] | {
        "hold_switch_for_packet": row["hold_switch_for_packet"],
        "num_vcs": row["virtual_channels"],
        "vc_buf_size": row["buffer_flits"],
        "packet_size": row["flits"],
        "traffic": row["traffic"],
        "injection_rate": f"{float(row['injection_rate']):.8f}",
        "sim_type": "latency",
        "sample_period": period,
        "max_samples": samples,
        "warmup_periods": 1,
        "latency_thres": "100000.0",
        "seed": seed,
    }  # fmt: skip
    # Neither converged nor unstable before all samples are taken.
    options |= {f"{which}warmup_thres": 0.9 for which in ("", "acc_")}
    options |= {f"{which}stopping_thres": 0.0000001 for which in ("", "acc_")}
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as file:
        file.writelines(f"{name} = {value};\n" for name, value in options.items())
        file.flush()
        done = subprocess.run([os.environ["BOOKSIM"], file.name], capture_output=True, text=True, check=False)
    found = re.findall(r"Packet latency average = ([\d.]+)", done.stdout)
    if not found:
        raise RuntimeError(f"BookSim2 found no latency: {done.stdout[-300:]}")
    return float(found[-1]), done.stdout


def points() -> Iterator[dict[str, str]]:
    """Yield the rows of the table without what BookSim2 says."""
    from validate.noc.saturation import saturation_rate

    rates = {}
    for setting in SETTINGS:
        row = dict(zip(FIELDS, (str(value) for value in setting), strict=False))
        row["hold_switch_for_packet"] = "1"
        rates[setting] = saturation_rate(noc(row | {"injection_rate": "0.01"})).low
        for load in LOADS:
            yield row | {"load": str(load), "injection_rate": f"{load * rates[setting]:.6f}"}
    for setting in SHARED:
        row = dict(zip(FIELDS, (str(value) for value in setting), strict=False))
        for load, hold in MORE:
            rate = f"{load * rates[setting]:.6f}"
            yield row | {"load": str(load), "injection_rate": rate, "hold_switch_for_packet": str(hold)}


def main() -> None:
    """Make the file anew."""
    with FILE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        seed = 1000
        for row in points():
            # Rows with the same seeds would err to the same side.
            means = np.array([booksim(row, seed=seed + k)[0] for k in range(SEEDS)])
            seed += SEEDS
            error = means.std(ddof=1) / np.sqrt(means.size)
            writer.writerow(row | {"latency": f"{means.mean():.4f}", "standard_error": f"{error:.4f}"})
            file.flush()


if __name__ == "__main__":
    main()
