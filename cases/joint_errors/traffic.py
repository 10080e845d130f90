"""Traffic as it is: the joint model against simulations of recorded and generated streams of packets.

``python -m cases.joint_errors.traffic`` simulates a dozen designs at loads from 10 to 92 % under each stream
of `streams` and writes ``cases/data/traffic.csv`` (simulated with its interval); it takes six minutes on
one core. With ``--summary`` it solves the kept designs again and prints how far the model is, of the designs
that were looked at while it was made and of the others. The streams are drawn from a seed;
`BELLCORE`, where the environment names its file, comes on top.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cases.joint_errors.measured import at_load
from cases.study.packet_processor import DATA, default_processor
from cases.tables import Table, as_columns, load_table, markdown_table, write_table
from qmodels.checks import FloatArray
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import replace_fields
from qmodels.systems.traffic.sizes import bimodal, imix
from qmodels.systems.traffic.trace import Trace, read_trace
from qmodels.systems.traffic.workload import Workload

FILE = DATA / "traffic.csv"
BELLCORE = "QMODELS_BELLCORE"
"""Environment variable with the path of the Bellcore trace BC-pAug89."""
PACKETS, SEED = 16_000, 17
"""Packets of a generated stream, and the seed of all of them."""
SIZES = {"mmpp": imix(), "on-off": bimodal(small=64, large=576, small_fraction=0.6), "step": imix()}
LOADS = (0.1, 0.3, 0.45, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.88, 0.92)
"""Parts of the capacity offered on average."""
STEP_LOADS = (0.05, 0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.43, 0.46, 0.5, 0.65, 0.8)
"""The same of a stream whose busy half has 1.8 times the mean rate: the last two overload it then."""
CHOICES: dict[str, tuple[int, ...]] = {
    "dram.interleaving_step": (1, 2, 4, 8, 16, 32),
    "dram.channels": (2, 3, 4, 4, 6, 8),
    "free_list.alloc_trial_count": (1, 2, 3, 5),
    "noc.link_width": (8, 16, 32),
    "llc.slices": (0, 2, 4, 8),
}
METRICS = (
    "packet_latency",
    "packet_latency_p99",
    "lookup_latency",
    "write_latency",
    "read_latency",
    "write_conflict_probability",
    "read_conflict_probability",
    "saturation_data_rate",
)
BARS = {(0.0, 0.8): (10.0, 15.0), (0.8, 0.93): (10.0, 20.0)}
"""Largest mean error of the mean and of the 99th percentile of the latency by part of the capacity. [%]"""
REPLICATIONS = 2


def mmpp(rng: np.random.Generator, count: int = PACKETS) -> FloatArray:
    """Return times of packets whose rate jumps between 0.5 and 1.5, each for 300 mean gaps on average."""
    ends = np.cumsum(rng.exponential(300.0, size=count // 50))
    work = np.cumsum(rng.exponential(size=count))  # time in which the rate is 1
    rates = np.where(np.arange(ends.size) % 2, 1.5, 0.5)
    done = np.cumsum(np.diff(ends, prepend=0.0) * rates)
    return np.interp(work, np.append(0.0, done), np.append(0.0, ends))


def on_off(rng: np.random.Generator, count: int = PACKETS) -> FloatArray:
    """Return times of packets of 16 sources whose ON and OFF periods have Pareto tails of exponent 1.5."""
    number, mean_on, mean_off, gap = 16, 60.0, 90.0, 6.4  # each is ON for 0.4 of the time: 16 * 0.4 / 6.4 = 1
    times: list[FloatArray] = []
    end = count * 1.6
    for _ in range(number):
        periods = (rng.pareto(1.5, size=(2 * int(end / (mean_on + mean_off)), 2)) + 1.0) / 3.0
        on, off = periods[:, 0] * mean_on, periods[:, 1] * mean_off
        starts = np.cumsum(off) + np.cumsum(on) - on
        age = np.cumsum(rng.exponential(gap, size=int(end / gap)))  # time ON
        before = np.cumsum(on) - on
        period = np.searchsorted(before, age, side="right") - 1
        times.append(starts[period] + age - before[period])
    merged = np.sort(np.concatenate(times))
    begin = np.searchsorted(merged, count * 0.2)
    return np.asarray(merged[begin : begin + count])


def step(rng: np.random.Generator, count: int = PACKETS) -> FloatArray:
    """Return times of packets whose rate grows tenfold in the middle of the time."""
    low = count // 11
    slow = np.cumsum(rng.exponential(10.0, size=low))
    return np.concatenate([slow, slow[-1] + np.cumsum(rng.exponential(size=count - low))])


GENERATED = {"mmpp": mmpp, "on-off": on_off, "step": step}


def streams() -> dict[str, PacketProcessor]:
    """Return the default processor under every stream there is here."""
    found = {name: default_processor(name) for name in ("small-packets", "large-packets")}
    for number, (name, times) in enumerate(GENERATED.items()):
        rng = np.random.default_rng((SEED, number))
        trace = Trace(times_ns=times(rng), bytes=SIZES[name].sample(rng, PACKETS), source=name)
        found[name] = PacketProcessor(workload=Workload.from_trace(trace))
    if os.environ.get(BELLCORE):
        trace = read_trace(os.environ[BELLCORE]).window(0, 2 * PACKETS)
        found["bellcore"] = PacketProcessor(workload=Workload.from_trace(trace))
    return found


def points(name: str) -> Iterator[dict[str, Any]]:
    """Yield the decisions and the load of every design that is simulated under a stream.

    Each decision takes its choices in turn, in an order of its own; every other design in the order of
    loads is held out.
    """
    rng = np.random.default_rng((SEED, *name.encode()))
    loads = STEP_LOADS if name == "step" else LOADS
    columns = {
        field: rng.permutation(np.resize(rng.permutation(choices), len(loads)))
        for field, choices in CHOICES.items()
    }
    for k, load in enumerate(loads):
        drawn = {field: int(values[k]) for field, values in columns.items()}
        yield {"load": load, "held_out": bool(k % 2), **drawn}


def measure(**options: Any) -> Table:
    """Return a table with a row per design and metric, simulated with options of `validate.simulate`."""
    from validate import simulate

    rows = []
    for name, base in streams().items():
        drawn = list(points(name))
        specs = [at_load(replace_fields(base, {f: what[f] for f in CHOICES}), what["load"]) for what in drawn]
        packets = 2 * PACKETS if name == "bellcore" else PACKETS  # of a trace all
        usual = {"packets": packets, "replications": REPLICATIONS, "seed": SEED}
        for what, spec, run in zip(drawn, specs, simulate(specs, **usual | options), strict=True):
            where = {"stream": name, **what, "gbps": float(f"{float(spec.workload.offered_gbps):.8g}")}
            for metric in METRICS:
                found = run.metrics[metric]
                values = {"simulated": found.best, "low": found.low, "high": found.high}
                rows.append(
                    {**where, "metric": metric}
                    | {key: float(f"{value:.6g}") for key, value in values.items()}
                    | {"stable": run.stable is True}
                )
            print(where, run.stable, f"{run.seconds:.1f} s", flush=True)
    return as_columns(rows)


def kept() -> Table:
    """Return the kept simulations of the streams there are here."""
    table = load_table(FILE)
    here = table["stream"] != "bellcore" if not os.environ.get(BELLCORE) else slice(None)
    return {name: column[here] for name, column in table.items()}


@dataclass(frozen=True, kw_only=True, eq=False)
class Errors:
    """The model beside the simulation; arrays, one element a design, errors in % and infinite if unstable."""

    stream: npt.NDArray[Any]
    load: FloatArray
    held_out: npt.NDArray[np.bool_]
    simulated_stable: npt.NDArray[np.bool_]
    stable: npt.NDArray[np.bool_]
    validated: npt.NDArray[np.bool_]
    overloaded: npt.NDArray[np.bool_]
    mean: FloatArray
    p99: FloatArray

    def chosen(self, stream: str, above: float, to: float) -> npt.NDArray[np.bool_]:
        """Return the designs of a stream in a region of load that keep up in the simulation."""
        inside = (self.load > above) & (self.load <= to) & self.simulated_stable
        return np.asarray(inside & (self.stream == stream))


def errors(table: Table) -> Errors:
    """Solve the designs of a table again, a sweep for each stream, and return how far the model is."""
    from qmodels import solve

    parts = []
    for name, base in streams().items():
        mean, p99 = (
            {
                key: column[(table["stream"] == name) & (table["metric"] == metric)]
                for key, column in table.items()
            }
            for metric in METRICS[:2]
        )
        fields = {field: mean[field].astype(int) for field in CHOICES}
        model = solve(replace_fields(base, fields | {"workload.offered_gbps": mean["gbps"]}))
        said = [mask for words, mask in model.doubts.items() if words.startswith("stretches of the trace")]
        with np.errstate(invalid="ignore"):
            off = [
                100.0 * (model.metrics[metric] / rows["simulated"] - 1.0)
                for metric, rows in zip(METRICS, (mean, p99), strict=False)
            ]
        parts.append(
            {
                "stream": mean["stream"],
                "load": mean["load"],
                "held_out": mean["held_out"].astype(bool),
                "simulated_stable": mean["stable"].astype(bool),
                "stable": np.asarray(model.stable),
                "validated": np.asarray(model.validated),
                "overloaded": np.any([np.zeros(mean["load"].shape, dtype=bool), *said], axis=0),
                "mean": off[0],
                "p99": off[1],
            }
        )
    return Errors(**{name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def summary(found: Errors) -> str:
    """Return the mean error of mean and tail by stream and region, of all designs and of those held out."""
    rows = []
    for name in dict.fromkeys(found.stream.tolist()):
        for above, to in BARS:
            all_of = found.chosen(name, above, to) & np.isfinite(found.mean)
            cells = [name, f"{above:.0%} to {to:.0%}", str(all_of.sum())]
            for error in (found.mean, found.p99):
                for mine in (all_of, all_of & found.held_out):
                    cells.append(f"{np.abs(error[mine]).mean():.1f}" if mine.any() else "")
            rows.append(cells)
    headings = ["stream", "load", "designs", "mean", "held out", "p99", "held out"]
    return markdown_table(headings, rows)


def main() -> None:
    """Measure and write the table, and print how far the model is."""
    if "--summary" not in sys.argv:
        store = FILE.with_suffix(".sqlite")
        write_table(FILE, measure(store=store))
        store.unlink()
    print(summary(errors(kept())))


if __name__ == "__main__":
    main()
