"""How many simulations reach a share of the best volume: with the model, without it, and by chance.

``python tests/benchmarks/test_bench_blackbox.py [problem ...]`` prints the medians of five seeds.
"""

import sys
import time
import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

from optimize import Between, Domain, Search, compare_fronts, hypervolume, nondominated

SEEDS, BATCH, MOST, SHARES = range(5), 4, 38, (0.8, 0.9, 0.95, 0.98)
NOISE, INPUTS = 0.02, 6
STUDENT_95 = 3.182
"""Half a 95 % interval of four replications over the standard error."""


@dataclass(frozen=True, kw_only=True)
class Function:
    """A test function of numbers between 0 and 1, measured with noise; both objectives are minimised."""

    name: str
    start: int = 14
    names = ("f0", "f1")
    ranges = {}
    model = None
    domain = Domain({f"x{k}": Between(low=0.0, high=1.0) for k in range(INPUTS)})

    def exact(self, x):
        """Return the objectives, by Zitzler, Deb and Thiele (2000) and Deb and others (2005)."""
        if self.name == "dtlz2":
            far = 1 + ((x[:, 1:] - 0.5) ** 2).sum(axis=1)
            return far[:, None] * np.stack([np.cos(x[:, 0] * np.pi / 2), np.sin(x[:, 0] * np.pi / 2)], axis=1)
        first, g = x[:, 0], 1 + 9 * x[:, 1:].mean(axis=1)
        share = first / g
        shape = 1 - np.sqrt(share) - (share * np.sin(10 * np.pi * first) if self.name == "zdt3" else 0)
        return np.stack([first, g * shape], axis=1)

    @cached_property
    def best(self):
        """The exact front."""
        x = np.full((2001, INPUTS), 0.5 if self.name == "dtlz2" else 0.0)
        x[:, 0] = np.linspace(0, 1, 2001)
        front = self.exact(x)
        return front[nondominated(front)]

    def share(self, found, best):
        """Return the share of the volume up to what draws reach at worst."""
        corner = self.exact(np.random.default_rng(0).random((500, INPUTS))).max(axis=0)
        return hypervolume(found, reference=corner) / hypervolume(best, reference=corner)

    def true(self, points):
        return self.exact(np.array([list(point.values()) for point in points]))

    def measured(self, points, rng):
        values = self.true(points) + NOISE * rng.standard_normal((len(points), 2))
        return dict(zip(self.names, values.T, strict=True))


class Table:
    """Designs that were simulated before: what a simulation of one shows is looked up, with its noise."""

    start = 12

    def __init__(self, name, space, designs, true, spread, model, ranges):
        self.name, self.ranges = name, ranges
        self.domain = Domain.of(space)
        self.points = [space.point(int(design)) for design in designs]
        self._row = {tuple(point.values()): k for k, point in enumerate(self.points)}
        self._true, self._spread, self._model = true, spread, model
        self.names = tuple(name for name in true if name not in ranges)

    def share(self, found, best):
        return compare_fronts(found, best).hypervolume_ratio

    def rows(self, points):
        return [self._row[tuple(point.values())] for point in points]

    def model(self, points):
        rows = self.rows(points)
        return {name: column[rows] for name, column in self._model.items()}

    def measured(self, points, rng):
        rows, found = self.rows(points), {}
        for name, column in self._true.items():
            away = self._spread[name][rows] * rng.standard_normal(len(rows))
            found[name] = np.maximum(column[rows] + away, column[rows] / 4)
        return found

    def true(self, points):
        rows = self.rows(points)
        able = np.all([np.isfinite(self._true[name][rows]) for name in self._true], axis=0)
        for name, (_, high) in self.ranges.items():
            able &= self._true[name][rows] <= high
        return np.where(able[:, None], np.stack([self._true[n][rows] for n in self.names], axis=1), np.inf)

    @cached_property
    def best(self):
        values = self.true(self.points)
        return values[nondominated(values)]


def controllers():
    """Return the controllers of one DRAM channel under packets, all simulated now (ten minutes)."""
    import qmodels as qm
    from optimize import Space, replace_fields
    from qmodels.systems.memory.dram_system import Packets
    from validate import simulate

    traffic = Packets(arrival_rate=0.11, blocks=8, spacing=24, write_fraction=0.4)
    space = Space(
        replace_fields(qm.dram("DDR4-3200"), {"traffic": traffic}),
        {
            "page_policy": ["open", "closed"],
            "scheduler": ["oldest-ready-first", "fr-fcfs"],
            "row_hit_cap": [2, 4, 8, 16],
            "write_high": [6, 8, 12, 16, 24, 32, 48, 64],
            "write_low": [0, 2, 4, 8],
            "address_map.bank_step": [1, 4, 16, 128],
        },
        conditions={"row_hit_cap": {"scheduler": ["fr-fcfs"]}},
        constraints=[lambda point: point["write_low"] < point["write_high"]],
    )
    names, designs = ("read_latency", "write_latency"), space.designs()
    specs = [space.spec(int(design)) for design in designs]
    runs = [simulate(spec, accesses=12_000, replications=4, seed=99) for spec in specs]
    answers = [qm.solve(spec) for spec in specs]
    able = np.array([run.stable for run in runs])

    def column(name, value):
        return np.array([value(run.metrics[name]) if run.stable else 0.0 for run in runs])

    true = {name: np.where(able, column(name, lambda one: one.best), np.inf) for name in names}
    # Of one replication: twice the error of the mean of four, whose 95 % interval has Student's factor.
    spread = {name: column(name, lambda one: one.high - one.low) / STUDENT_95 for name in names}
    model = {name: np.array([float(answer.metrics[name]) for answer in answers]) for name in names}
    return Table("controllers", space, designs, true, spread, model, {})


PROBLEMS = {
    "controllers": controllers,
    **{name: (lambda name=name: Function(name=name)) for name in ("zdt1", "zdt3", "dtlz2")},
}


class Run:
    """One method on one problem: the designs asked so far, and the share of the best volume they reach."""

    def __init__(self, problem, seed):
        self.problem, self.seed = problem, seed
        self.rng = np.random.default_rng([seed, 1])
        self.points, self.values = [], {name: [] for name in (*problem.names, *problem.ranges)}

    def measure(self, points):
        """Measure points and return the values, by metric."""
        found = self.problem.measured(points, self.rng)
        self.points += points
        for name, column in self.values.items():
            column += found[name].tolist()
        return found

    @property
    def left(self):
        return MOST - len(self.points)

    def shares(self):
        values = self.problem.true(self.points)
        able = np.isfinite(values).all(axis=1)
        best = self.problem.best
        return np.array(
            [self.problem.share(values[:k][able[:k]], best) for k in range(1, len(self.points) + 1)]
        )

    def reached(self, share):
        rows = np.flatnonzero(self.shares() >= share)
        return int(rows[0]) + 1 if rows.size else MOST + 1


def ours(run, model=True):
    problem = run.problem
    search = Search(
        problem.domain,
        minimize=problem.names,
        subject_to=problem.ranges,
        low=problem.model if model else None,
        seed=run.seed,
    )
    while run.left > 0:
        points = search.ask(min(BATCH, run.left))
        search.tell(points, run.measure(points))


def ours_alone(run):
    ours(run, model=False)


def at_random(run):
    run.measure(run.problem.domain.draw(MOST, np.random.default_rng(run.seed)))


METHODS = {"ours": ours, "ours, model not used": ours_alone, "random": at_random}


def compared(problems):
    """Return ``{(problem, method): [run, ...]}`` of every method, and print the shares that runs reach."""
    found = {}
    for name in problems:
        problem = PROBLEMS[name]()
        for method, play in METHODS.items():
            if problem.model is None and "model" in method:
                continue
            runs, begun = [], time.process_time()
            for seed in SEEDS:
                runs.append(Run(problem, seed))
                play(runs[-1])
            found[name, method] = runs
            seconds = (time.process_time() - begun) / len(SEEDS)
            reached = [int(np.median([run.reached(share) for run in runs])) for share in SHARES]
            words = "  ".join(
                f"{share:.0%}: {'more' if count > MOST else count}"
                for share, count in zip(SHARES, reached, strict=True)
            )
            last = np.median([run.shares()[-1] for run in runs])
            print(f"{name:12} {method:28} {words}  last {last:.4f}  {seconds:.1f} s a run", flush=True)
    return found


@pytest.mark.parametrize("name", ["zdt1", "zdt3", "dtlz2"])
def test_chance_is_nowhere_better(name):
    found = compared([name])
    last = {method: np.median([run.shares()[-1] for run in runs]) for (_, method), runs in found.items()}
    assert last["ours"] >= last["random"]


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    compared(sys.argv[1:] or PROBLEMS)
