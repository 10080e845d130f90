"""How many simulations it takes to reach a share of the best volume: ours beside Optuna, pymoo and BoTorch.

``python tests/benchmarks/test_bench_blackbox.py [TABLE.csv [problem ...]]`` runs all methods from the same
first designs and prints the medians; peers that are not installed are left out. Half an hour of one core,
most of it in BoTorch.
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

from optimize.blackbox.domain import Between, Domain
from optimize.blackbox.search import Search
from optimize.search.pareto import compare_fronts, nondominated

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
        points = [space.point(int(design)) for design in designs]
        self.codes = self.domain.codes(points)
        self._row = {bytes(row + 0.0): k for k, row in enumerate(self.codes)}
        self._true, self._spread, self._model = true, spread, model
        self.names = tuple(name for name in true if name not in ranges)

    def rows(self, points):
        return [self._row[bytes(row + 0.0)] for row in self.domain.codes(points)]

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
        values = self.true(self.domain.points(self.codes))
        return values[nondominated(values)]


def joint():
    """Return the default study's 2,700 designs as simulated (`cases.decision_errors.kept`)."""
    from cases.decision_errors.kept import Kept

    kept = Kept.load("small-packets")
    names, spread = ("packet_latency", "write_conflict_probability", "overflow_probability"), {}
    for name in names:
        ends = kept.table[f"{name}_high"] - kept.table[f"{name}_low"]
        spread[name] = np.where(np.isfinite(ends), ends, 0) / 2 / STUDENT_95
    true = {name: kept.table[name] for name in names} | {"cost": kept.model.table["cost"]}
    spread["cost"] = np.zeros(len(true["cost"]))
    model = {name: kept.model.table[name] for name in true}
    ranges = {"write_conflict_probability": (None, 0.02), "overflow_probability": (None, 1e-3)}
    return Table("joint", kept.model.space, kept.model.table["design"], true, spread, model, ranges)


def controllers():
    """Return the controllers of one DRAM channel under packets, all simulated now (ten minutes)."""
    import qmodels as qm
    from optimize import Space, replace_fields
    from qmodels.systems.memory.dram_traffic import Packets
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
    "joint": joint,
    "controllers": controllers,
    **{name: (lambda name=name: Function(name=name)) for name in ("zdt1", "zdt3", "dtlz2")},
}


class Run:
    """One method on one problem: the designs asked so far, and the share of the best volume they reach."""

    def __init__(self, problem, seed):
        self.problem, self.seed = problem, seed
        self.rng = np.random.default_rng([seed, 1])
        self.points, self.values = [], {name: [] for name in (*problem.names, *problem.ranges)}

    @cached_property
    def first(self):
        return self.problem.domain.points(
            self.problem.domain.draw(self.problem.start, np.random.default_rng([self.seed, 0]))
        )

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

    def targets(self):
        """Return objectives and excess over constraints; the worst seen in place of what is not finite."""
        columns = {name: np.array(column) for name, column in self.values.items()}
        for name, column in columns.items():
            finite = np.isfinite(column)
            columns[name] = np.where(finite, column, column[finite].max(initial=0.0))
        over = [columns[name] - high for name, (_, high) in self.problem.ranges.items()]
        return np.stack([columns[name] for name in self.problem.names], 1), np.array(over).T

    def shares(self):
        values = self.problem.true(self.points)
        able = np.isfinite(values).all(axis=1)
        best = self.problem.best
        return np.array(
            [
                compare_fronts(values[:k][able[:k]], best).hypervolume_ratio
                for k in range(1, len(self.points) + 1)
            ]
        )

    def reached(self, share):
        rows = np.flatnonzero(self.shares() >= share)
        return int(rows[0]) + 1 if rows.size else MOST + 1


def reference_of(problem):
    best = problem.best
    return best.max(axis=0) + 0.1 * np.ptp(best, axis=0)


def ours(run, model=True, shared=True):
    problem = run.problem
    search = Search(
        problem.domain,
        minimize=problem.names,
        subject_to=problem.ranges,
        low=problem.model if model else None,
        reference=dict(zip(problem.names, reference_of(problem), strict=True)),
        start=0 if shared else None,
        seed=run.seed,
    )
    points = run.first if shared else search.ask(BATCH)
    while True:
        search.tell(points, run.measure(points))
        if run.left <= 0:
            return
        points = search.ask(min(BATCH, run.left))


def ours_alone(run):
    ours(run, model=False)


def ours_from_the_model(run):
    ours(run, shared=False)


def at_random(run):
    run.measure(run.first)
    run.measure(run.problem.domain.points(run.problem.domain.draw(run.left, np.random.default_rng(run.seed))))


def optuna(run):
    import optuna as library

    library.logging.set_verbosity(library.logging.ERROR)
    domain, ranges = run.problem.domain, list(run.problem.ranges.items())
    sampler = library.samplers.TPESampler(
        seed=run.seed,
        multivariate=True,
        group=True,
        constant_liar=True,
        n_startup_trials=run.problem.start,
        constraints_func=lambda trial: trial.user_attrs["over"],
    )
    study = library.create_study(directions=["minimize"] * len(run.problem.names), sampler=sampler)

    def suggested(trial):
        point = {}
        for field in domain.fields:
            if field.continuous:
                point[field.name] = trial.suggest_float(field.name, 0.0, 1.0)
            else:
                point[field.name] = field.value(trial.suggest_int(field.name, 0, field.count - 1))
        return point

    for point in run.first:
        study.enqueue_trial(
            {f.name: point[f.name] if f.continuous else int(f.code(point[f.name])) for f in domain.fields}
        )
    count = len(run.first)
    while run.left > 0:
        trials = []
        while len(trials) < count:
            trial = study.ask()
            point = suggested(trial)
            if not len(domain.admitted(domain.codes([point]))):
                trial.set_user_attr("over", [1e9] * max(len(ranges), 1))
                study.tell(trial, [1e9] * len(run.problem.names))
                continue
            trials.append((trial, point))
        run.measure([point for _, point in trials])
        values, over = run.targets()
        excess = over[-count:] if ranges else np.zeros((count, 1))
        for (trial, _), row, own in zip(trials, values[-count:], excess, strict=True):
            trial.set_user_attr("over", list(own))
            study.tell(trial, list(row))
        count = min(BATCH, run.left)


def pymoo(run):
    from pymoo.algorithms.moo.nsga2 import RankAndCrowdingSurvival
    from pymoo.core.mixed import MixedVariableGA
    from pymoo.core.population import Population
    from pymoo.core.problem import Problem
    from pymoo.core.variable import Integer, Real

    domain = run.problem.domain

    class Box(Problem):
        def __init__(self):
            kinds = {
                f.name: Real(bounds=(0.0, 1.0)) if f.continuous else Integer(bounds=(0, f.count - 1))
                for f in domain.fields
            }
            limits = len(run.problem.ranges) + 1
            super().__init__(vars=kinds, n_obj=len(run.problem.names), n_ieq_constr=limits)

    coded = [
        {f.name: p[f.name] if f.continuous else int(f.code(p[f.name])) for f in domain.fields}
        for p in run.first
    ]
    algorithm = MixedVariableGA(
        pop_size=run.problem.start,
        n_offsprings=BATCH,
        survival=RankAndCrowdingSurvival(),
        sampling=Population.new("X", np.array(coded, dtype=object)),
    )
    algorithm.setup(Box(), termination=("n_gen", 10**6), seed=run.seed, verbose=False)
    while run.left > 0:
        asked = algorithm.ask()
        points = [
            {f.name: float(x[f.name]) if f.continuous else f.value(int(x[f.name])) for f in domain.fields}
            for x in asked.get("X")
        ]
        valid = np.array([len(domain.admitted(domain.codes([point]))) > 0 for point in points])
        valid &= np.cumsum(valid) <= run.left
        values = np.full((len(points), len(run.problem.names)), 1e9)
        over = np.full((len(points), len(run.problem.ranges) + 1), 1e9)
        if valid.any():
            run.measure([point for point, good in zip(points, valid, strict=True) if good])
            found, excess = run.targets()
            values[valid] = found[-valid.sum() :]
            over[valid] = 0
            if run.problem.ranges:
                over[valid, :-1] = excess[-valid.sum() :]
        asked.set("F", values, "G", over)
        algorithm.tell(infills=asked)


def botorch(run):
    import torch
    from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
    from botorch.acquisition.multi_objective.objective import IdentityMCMultiOutputObjective
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms import Standardize
    from botorch.optim import optimize_acqf, optimize_acqf_discrete
    from botorch.sampling import SobolQMCNormalSampler
    from gpytorch.mlls import SumMarginalLogLikelihood

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.double)
    torch.manual_seed(run.seed)
    domain, objectives = run.problem.domain, len(run.problem.names)
    corner = torch.tensor(-reference_of(run.problem))
    smooth = all(field.continuous for field in domain.fields)

    def inputs(codes):
        return torch.tensor(codes if smooth else domain.features(codes) / np.sqrt(12) + 0.5)

    listed = domain.listed()
    run.measure(run.first)
    while run.left > 0:
        codes = domain.codes(run.points)
        values, over = run.targets()
        x, y = inputs(codes), torch.tensor(-np.hstack([values, over]) if over.size else -values)
        model = ModelListGP(
            *[SingleTaskGP(x, y[:, k : k + 1], outcome_transform=Standardize(1)) for k in range(y.shape[1])]
        )
        fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
        acquisition = qLogNoisyExpectedHypervolumeImprovement(
            model,
            ref_point=corner,
            X_baseline=x,
            prune_baseline=True,
            sampler=SobolQMCNormalSampler(torch.Size([64]), seed=run.seed),
            objective=IdentityMCMultiOutputObjective(outcomes=list(range(objectives))),
            constraints=[
                (lambda samples, k=k: -samples[..., k]) for k in range(objectives, y.shape[1])
            ] or None,
        )  # fmt: skip
        count = min(BATCH, run.left)
        if smooth:
            box = torch.stack([torch.zeros(x.shape[1]), torch.ones(x.shape[1])])
            found, _ = optimize_acqf(
                acquisition, box, q=count, num_restarts=4, raw_samples=128, sequential=True,
                options={"maxiter": 60, "batch_limit": 4},
            )  # fmt: skip
            chosen = found.numpy()
        else:
            taken = set(map(bytes, codes + 0.0))
            fresh = listed[[bytes(row) not in taken for row in listed + 0.0]]
            choices = inputs(fresh)
            found, _ = optimize_acqf_discrete(
                acquisition, q=count, choices=choices, max_batch_size=256, unique=True
            )
            chosen = fresh[[int((choices - row).abs().sum(1).argmin()) for row in found]]
        run.measure(domain.points(chosen))


METHODS = {
    "ours": ours,
    "ours, model not used": ours_alone,
    "ours, first from the model": ours_from_the_model,
    "botorch": botorch,
    "optuna": optuna,
    "pymoo": pymoo,
    "random": at_random,
}
PEERS = ("botorch", "optuna", "pymoo")


def compared(problems, out=None):
    """Return ``{(problem, method): [run, ...]}`` of every method, and write the shares that runs reach."""
    found = {}
    for name in problems:
        problem = PROBLEMS[name]()
        for method, play in METHODS.items():
            if problem.model is None and "model" in method:
                continue
            runs, begun = [], time.process_time()
            try:
                for seed in SEEDS:
                    runs.append(Run(problem, seed))
                    play(runs[-1])
            except ModuleNotFoundError as error:
                print(f"{name}: {method} left out, {error}")
                continue
            found[name, method] = runs
            seconds = (time.process_time() - begun) / len(SEEDS)
            reached = [int(np.median([run.reached(share) for run in runs])) for share in SHARES]
            words = "  ".join(
                f"{share:.0%}: {'more' if count > MOST else count}"
                for share, count in zip(SHARES, reached, strict=True)
            )
            last = np.median([run.shares()[-1] for run in runs])
            print(f"{name:12} {method:28} {words}  last {last:.4f}  {seconds:.1f} s a run", flush=True)
            if out is not None:
                with out.open("a") as file:
                    for run in runs:
                        shares = " ".join(f"{share:.4f}" for share in run.shares())
                        file.write(f"{name},{method},{run.seed},{shares}\n")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_fewer_simulations_than_every_peer_for_what_it_reaches_at_last(name):
    for module in PEERS:
        pytest.importorskip(module)
    found = compared([name])
    for peer in PEERS:
        reached = np.median([run.shares()[-1] for run in found[name, peer]])
        assert np.median([run.reached(reached) for run in found[name, "ours"]]) < MOST, peer


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    compared(sys.argv[2:] or PROBLEMS, Path(sys.argv[1]) if len(sys.argv) > 1 else None)
