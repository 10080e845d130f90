r"""The numbers in the models that no derivation gives: best value, interval, and what each is worth.

With the log ratios :math:`r` of measured to modelled values and their derivatives :math:`J` by the constants
of a group, a step of Gauss and Newton gives the best values; the same step without a tenth of the systems,
ten times, gives the interval of 95 % (jackknife) and the error of what was left out. A constant is worth by
how much the mean size of the errors grows where it takes the better of 0 and 1 instead.
"""

from __future__ import annotations

import csv
import runpy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import qmodels as qm
from cases.evidence.record import Record, spec_of
from cases.tables import columns_of, read_rows, text_table
from qmodels.checks import FloatArray, IntArray
from qmodels.evidence.constants import FILE, Constant, constants, rows
from qmodels.systems.spec.whole import whole

ROOT = Path(__file__).parents[2]
DRAWN, ROUND_ROBIN = ".evidence/drawn.jsonl.xz", "cases/data/round-robin.csv"
RINGS, NOC = "tests/reference/ring_saturation.csv", "tests/reference/noc_metrics.csv"
SYSTEMS, PARTS, SPARSE = 120, 10, 4
"""Drawn systems of a group at most; parts of them that are left out in turn; of so many rows of a table of
references one."""
STEP, DAMPING, MOST = 0.02, 1e-3, 0.3
"""Relative step of a derivative; what is added to its squares; size of an error above which it counts so."""
BAR = 0.01  # growth of the mean error from which on a constant earns its place

Problem = tuple[Callable[[], FloatArray], IntArray]
"""What returns the errors with the constants as they stand, and which of them belong together."""


@dataclass(frozen=True)
class Group:
    """Where a model has constants, and what tells of them."""

    module: str
    kind: str = ""  # of drawn systems
    metrics: tuple[str, ...] = ()
    attribute: str = "LAW"
    data: str = DRAWN

    def problem(self, records: Sequence[Record]) -> Problem:
        """Return the loss that the constants are to minimise."""
        if self.data == ROUND_ROBIN:
            return _round_robin()
        if self.data == RINGS:
            return _rings(self.attribute)
        if self.data == NOC:
            return _noc(*self.metrics, bursts="source" in self.module)
        return _drawn(records, self.kind, self.metrics)

    @contextmanager
    def trying(self) -> Iterator[Callable[[FloatArray], None]]:
        """Yield a function that puts values into the model, and put the kept ones back in the end."""
        module = import_module(self.module)
        law = getattr(module, self.attribute)
        try:
            yield lambda values: setattr(module, self.attribute, type(law)(*map(float, values)))
        finally:
            setattr(module, self.attribute, law)


PP = "packet-processor"
GROUPS = {
    "memory.dram.ready": Group("qmodels.memory.dram.channel_waits", "dram", ("read_latency",)),
    "noc.collapse": Group("qmodels.noc.collapse", attribute="COLLAPSE", data=RINGS),
    "noc.congested": Group("qmodels.noc.collapse", attribute="CONGESTED", data=RINGS),
    "noc.source": Group("qmodels.noc.source_queue", metrics=("packet_latency",), data=NOC),
    "noc.spread": Group("qmodels.noc.delay_law", "", ("packet_latency_p99",), "SPREAD", NOC),
    "noc.transfers": Group("qmodels.noc.message_flow", "message-program", ("execution_time",)),
    "noc.waits": Group("qmodels.noc.waits", metrics=("packet_latency",), data=NOC),
    "packet_processor.conflicts": Group(
        "qmodels.packet_processor.trials.conflicts",
        PP,
        ("write_conflict_probability", "read_conflict_probability"),
    ),
    "packet_processor.responses": Group("qmodels.packet_processor.link_waits", PP, ("packet_latency",)),
    "packet_processor.walk": Group(
        "qmodels.packet_processor.trials.walk", PP, ("write_conflict_probability", "packet_latency")
    ),
    "queues.round_robin": Group("qmodels.queues.disciplines.polling", data=ROUND_ROBIN),
    "work_queues.ring": Group("qmodels.work_queues.growth", "work-queues", ("execution_time", "imbalance")),
}


def _drawn(records: Sequence[Record], kind: str, metrics: tuple[str, ...]) -> Problem:
    """Return the log ratios of metrics of stable drawn systems of a kind, shares with `OFFSET` added."""
    from qmodels.evidence.intervals import offset_of

    found = []
    for record in records:
        simulated = record.get("simulation", {}).get("metrics", {})
        if record["kind"] == kind and record["model"].get("stable") and set(metrics) & set(simulated):
            known = set(record["model"]["metrics"]) & set(simulated)
            found.append((record, {name: simulated[name][0] for name in metrics if name in known}))
    specs = [spec_of(record) for record, _ in found[:SYSTEMS]]
    truth = [values for _, values in found[:SYSTEMS]]

    def errors() -> FloatArray:
        ratios = []
        for spec, values in zip(specs, truth, strict=True):
            answer = qm.solve(spec)
            extra = {name: offset_of(spec, name) or 1e-12 for name in values}
            ratios += [
                (value + extra[name]) / (float(answer[name]) + extra[name]) for name, value in values.items()
            ]
        return np.log(ratios)

    return errors, np.repeat(np.arange(len(truth)), [len(values) for values in truth])


def _round_robin() -> Problem:
    """Return the log ratios of simulated waits under weighted round robin, system by system."""
    from qmodels.queues.disciplines.polling import weighted_round_robin

    kept = {
        name: np.array(values, float) for name, values in columns_of(read_rows(ROOT / ROUND_ROBIN)).items()
    }
    systems = [kept["system"] == number for number in np.unique(kept["system"])]

    def errors() -> FloatArray:
        given = {
            "rate": "arrival_rate",
            "mean": "mean_service_time",
            "scv": "service_scv",
            "weight": "weights",
        }
        waits = [
            weighted_round_robin(**{name: kept[key][mine] for key, name in given.items()}).mean_waiting_time
            for mine in systems
        ]
        return np.asarray(np.log(kept["wait"] / np.concatenate(waits)))

    return errors, kept["system"].astype(np.int64)


@cache
def _reference(data: str) -> Any:
    """Return the rows of a table of references, as the script beside it reads them."""
    return list(runpy.run_path(str((ROOT / data).with_suffix(".py")))["read"]())


def _noc(metric: str, *, bursts: bool) -> Problem:
    """Return the log ratios of a metric of networks, those with bursts or all."""
    from qmodels.noc.solve_noc import solve_noc

    every = [(case, row) for case, row in _reference(NOC) if row["packets_of"] == "all"]
    every = [(case, row) for case, row in every if row["load"] != "0.95" and row[metric] != "nan"]
    every = [(case, row) for case, row in every if case.scv != 1] if bursts else every[::SPARSE]
    names = list(dict.fromkeys(case for case, _ in every))

    def errors() -> FloatArray:
        found = (
            float(row[metric]) / float(solve_noc(case.noc(float(row["injection_rate"])))[metric])
            for case, row in every
        )
        return np.log(list(found))

    return errors, np.array([names.index(case) for case, _ in every])


def _rings(attribute: str) -> Problem:
    """Return the log ratios of the rates at which rings collapse, or that they carry when jammed."""
    from dataclasses import replace

    from qmodels.noc import collapse
    from qmodels.noc.solve_noc import solve_noc
    from qmodels.noc.waits import saturation_load

    kept = _reference(RINGS)
    turns = [solve_noc(setting.noc()).waits.turns for setting, *_ in kept]
    rings = [collapse.find_rings(one) for one in turns]
    jammed = attribute == "CONGESTED"
    most = [row[2] if jammed else saturation_load(replace(t, jam=(np.inf, np.inf)))
            for row, t in zip(kept, turns, strict=True)]  # fmt: skip
    truth = np.array([row[3 if jammed else 2] for row in kept])

    def errors() -> FloatArray:
        law = getattr(collapse, attribute)
        law = law.whole if jammed else law
        carried = [ring.highest(law) for ring in rings if ring is not None]
        return np.asarray(np.log(truth / np.minimum(most, carried)))

    return errors, np.arange(len(kept))


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Evidence on the constants of a group."""

    best: FloatArray
    half: FloatArray  # of the interval of 95 %
    held_out: float  # mean size of the errors of what was left out
    error: float  # mean size of the errors with the kept values
    worth: FloatArray  # by how much it grows without each
    natural: FloatArray  # the better of 0 and 1
    spared: tuple[int, ...]  # those that all together are worth less than `BAR`


def measure(group: Group, problem: Problem, kept: Sequence[float]) -> Measured:
    """Fit the constants of a group to the data; they are left as they were."""
    from scipy.special import stdtrit

    errors, label = problem
    values = np.array(kept, dtype=float)
    with group.trying() as put:

        def at(changed: dict[int, float]) -> FloatArray:
            put(np.array([changed.get(k, value) for k, value in enumerate(values)]))
            try:
                with np.errstate(all="ignore"):
                    return np.clip(np.nan_to_num(errors(), nan=MOST), -MOST, MOST)
            except (ArithmeticError, ValueError, RuntimeError):
                return np.full(label.shape, MOST)  # a value that the model does not take

        now = at({})
        steps = np.maximum(np.abs(values) * STEP, 1e-3)
        ahead = [at({k: value + steps[k]}) for k, value in enumerate(values)]
        slopes = (now - np.array(ahead)).T / steps
        sizes = np.array([[np.abs(at({k: end})).mean() for end in (0.0, 1.0)] for k in range(values.size)])
        natural, worth = sizes.argmin(axis=1).astype(float), sizes.min(axis=1) - np.abs(now).mean()
        spared: list[int] = []
        for k in map(int, np.argsort(worth)):
            if worth[k] > BAR:
                break
            together = {j: natural[j] for j in (*spared, k)}
            if np.abs(at(together)).mean() - np.abs(now).mean() < BAR:
                spared.append(k)
    scale = np.maximum(np.abs(values), 0.05)
    slopes = slopes * scale

    def step(rows_: Any) -> FloatArray:
        j, r = slopes[rows_], now[rows_]
        damped = j.T @ j + DAMPING * max(float(np.trace(j.T @ j)) / values.size, 1e-12) * np.eye(values.size)
        return np.asarray(np.linalg.solve(damped, j.T @ r))

    part = np.random.default_rng(1).permutation(label.max() + 1)[label] % PARTS
    parts = [part == k for k in range(PARTS) if np.any(part == k)]
    without = np.array([step(~rows_) for rows_ in parts])
    missed = np.concatenate([(now - slopes @ one)[rows_] for one, rows_ in zip(without, parts, strict=True)])
    count = len(parts)
    spread = np.sqrt((count - 1) / count * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
    return Measured(
        best=values + step(np.full(now.size, True)) * scale,
        half=float(stdtrit(count - 1, 0.975)) * spread * scale,
        held_out=float(np.abs(missed).mean()),
        error=float(np.abs(now).mean()),
        worth=worth,
        natural=natural,
        spared=tuple(spared),
    )


def report(records: Sequence[Record], names: Sequence[str] = ()) -> str:
    """Measure groups of constants, keep what was found beside their values, and return it as a table."""
    kept = {name: dict(row) for name, row in rows().items()}
    for name in names or GROUPS:
        group = GROUPS[name]
        import_module(group.module)
        fields = [one for one in kept if one.rpartition(".")[0] == name]
        law = getattr(import_module(group.module), group.attribute)
        found = measure(group, group.problem(records), list(law))
        for k, field in enumerate(law._fields):
            row = kept[f"{name}.{field}"]
            best, half = found.best[k], found.half[k]
            numbers = {"best": best, "low": best - half, "high": best + half}
            numbers |= {"held_out": 100 * found.held_out, "worth": 100 * found.worth[k]}
            row |= {key: f"{value:.3g}" for key, value in numbers.items()} | {"data": group.data}
        spared = ", ".join(f"{law._fields[k]} = {found.natural[k]:g}" for k in found.spared)
        print(f"{name}: error {found.error:.2%}; spared: {spared or 'none'} (of {len(fields)})", flush=True)
    with whole(FILE) as part, part.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, list(next(iter(kept.values()))), lineterminator="\n")
        out.writeheader()
        out.writerows(kept.values())
    rows.cache_clear()
    return table()


def loaded() -> list[Constant]:
    """Return the constants of all models, which are imported for it."""
    for group in GROUPS.values():
        import_module(group.module)
    return constants()


def cells() -> list[list[str]]:
    """Return a row for each constant of all models: name, value, best value, its interval, ..."""
    return [
        [one.name, f"{one.value:g}", f"{one.best:.3g}", f"{one.low:.3g} to {one.high:.3g}", one.unit,
         f"{one.held_out:.2g} %", f"{one.worth:.2g} points", one.data]
        for one in loaded()
    ]  # fmt: skip


def table() -> str:
    """Return the constants of all models as text."""
    return text_table(["constant", "value", "best", "interval", "unit", "held out", "worth", "data"], cells())
