"""One verb for every simulator: ``simulate(spec)``, or a campaign over many specs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import is_dataclass, replace
from pkgutil import resolve_name
from typing import Any

from qmodels import checks
from qmodels.systems.spec.cost import afford
from qmodels.systems.spec.kind import kind_of
from qmodels.systems.spec.store import ResultStore
from validate.campaigns.experiment import UNITS, Campaign, CampaignInterrupted, Experiment
from validate.campaigns.run import Point, Progress, Replicator, TerminalProgress, announce

SIMULATORS = {
    "packet-processor": "packet_processor:PacketExperiment",
    "queueing-network": "network.run:NetworkExperiment",
    "data-queueing": "data_queueing.simulate:DataQueueingExperiment",
    "noc": "noc.experiment:NocExperiment",
    "message-program": "messaging:ProgramExperiment",
    "dram": "dram.experiment:DramExperiment",
    "cache": "cache.experiment:CacheExperiment",
    "llc-processor": "composed.kinds:LlcProcessorExperiment",
    "numa": "composed.kinds:NumaExperiment",
    "system": "composed.experiment:SystemExperiment",
    "work-queues": "work_queues:WorkQueuesExperiment",
}
"""The experiment of each of our kinds, imported when it is asked for."""


def simulator_of(spec: Any) -> type[Any]:
    """Return the experiment that simulates specs of this one's kind; only what is asked for is imported.

    Raises
    ------
    TypeError
        If the spec is of no kind that has a simulator.
    """
    kind = kind_of(spec)
    if kind.simulator is not None:
        return kind.simulator()
    if kind.name not in SIMULATORS:
        raise TypeError(f"simulate needs a kind with a simulator, got {kind.name!r}")
    found: type[Any] = resolve_name(f"validate.{SIMULATORS[kind.name]}")
    return found


def own_options(spec: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of a simulator by its own names: ``packets`` is of any kind how long a replication is.

    Raises
    ------
    TypeError
        If the spec's kind has no simulator, or its simulator no such option, or one is given by both names.
    """
    known, name = simulator_of(spec).options(), type(spec).__name__
    unit = next((one for one in UNITS if one in known), UNITS[0])
    if unit != UNITS[0] and {unit, UNITS[0]} <= given.keys():
        raise TypeError(f"simulate takes {UNITS[0]} or {unit} for a {name}, which are the same, got both")
    own = {unit if option == UNITS[0] else option: value for option, value in given.items()}
    for option in own:
        if option not in known:
            why = checks.nearest(option, known)
            if option == UNITS[0]:
                why = ": a replication ends when all of it is done"
            has = f"its options are {', '.join(known)}" if known else "it has no options"
            raise TypeError(f"simulate has no option {option!r} for a {name}{why}; {has}")
    return own


def simulate(
    spec: Any,
    *,
    replications: int = 8,
    precision: float | Mapping[str, float] | None = None,
    max_replications: int = 64,
    seed: int = 0,
    confidence: float = 0.95,
    executor: Executor | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """Simulate a system, or each of many, event by event.

    Parameters
    ----------
    spec : spec or iterable of specs
        One design without array fields, or several, of registered kinds (`qmodels.systems.spec.kind.kinds`).
    replications : int
        Independent replications of each to begin with, at least 2.
    precision : float or mapping of str to float, optional
        Add replications in rounds until the half-width of the interval of every metric named is at
        most this fraction of it. One number stands for the simulator's main metric, such as the
        packet latency. A system that does not keep up gets none.
    max_replications : int
        Replications beyond which a precision that is not reached adds no more.
    seed : int
        Everything random follows from it. Designs simulated with the same seed meet the same random
        numbers, so that their difference is known better than either.
    confidence : float
        Coverage of the intervals.
    executor : concurrent.futures.Executor, optional
        Where replications run; it is not shut down. Otherwise as many threads as there are cores:
        the compiled kernels, nine tenths of a replication, run outside the interpreter's lock, so
        that up to about ten cores threads do as much as processes and need neither start-up nor
        copies. A Dask cluster is ``client.get_executor()``.
    store : path, optional
        An SQLite file in which each finished replication is committed at once. What is found there
        is not run again, so that a campaign that was killed resumes with the same call. Several
        processes may share it.
    progress : callable, optional
        Called with (runs finished, runs in all as far as known), at least every second; otherwise
        there is a bar on a terminal, before it how long long runs will take, and nothing in a pipe.
    **options
        Of the simulator, see its experiment, for example
        `validate.packet_processor.PacketExperiment` or `validate.noc.experiment.NocExperiment`.
        ``packets`` is taken for every kind that has a length: how many packets, passages (jobs), accesses or
        requests a replication simulates.

    Returns
    -------
    Simulation or Campaign
        The result of one spec, or those of several, in their order. It is the same to the last bit
        for a seed, whatever the executor and however often the campaign was interrupted.

    Raises
    ------
    ValueError
        If an argument is out of range, or the store is damaged or foreign.
    TypeError
        If there is no simulator for the spec, or it has no such option.
    CampaignInterrupted
        On Ctrl-C, a `KeyboardInterrupt`, after the replications under way are finished and kept:
        its ``campaign`` has the points that are finished, and those under way as their last whole
        round left them.

    Notes
    -----
    A replication is stored under a hash of all it depends on: the spec, the seed, its number, the
    options, and the source of the simulators, so that an edit of those runs everything anew.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from qmodels.systems.packets.packet_processor import PacketProcessor
    >>> from qmodels.systems.traffic.arrivals import Workload
    >>> loads = [PacketProcessor(workload=Workload(load_factor=load)) for load in (0.2, 0.9)]
    >>> low, high = simulate(loads, packets=2000, replications=2, saturation=False)
    >>> low.packet_latency.best < high.packet_latency.best
    True
    """
    checks.count("replications", replications, minimum=2)
    checks.count("max_replications", max_replications, minimum=2)
    single = is_dataclass(spec) or not isinstance(spec, Iterable)
    specs = [spec] if single else list(spec)
    points = []
    for one in specs:
        experiment = _experiment(one, {"seed": seed, "confidence": confidence}, options)
        targets = _targets(precision, experiment)
        field, value, jobs = experiment.work()
        afford(field, value, jobs=jobs)
        afford("replications", replications, jobs=replications * float(jobs))
        points.append(
            Point(experiment, replications=replications, precision=targets, maximum=max_replications)
        )
    if progress is None and store is None:

        def pilot(experiment: Experiment, short: dict[str, int]) -> Campaign:
            brief = Point(replace(experiment, **short), replications=2, precision={}, maximum=2)
            return _run([experiment.spec], [brief], executor, None, lambda *_: None)

        cores = getattr(executor, "_max_workers", None) or os.cpu_count() or 1
        announce(pilot, [point.experiment for point in points], replications=replications, cores=cores)
    campaign = _run(specs, points, executor, store, progress)
    return campaign[0] if single else campaign


def _run(
    specs: list[Any],
    points: list[Point],
    executor: Executor | None,
    store: str | os.PathLike[str] | None,
    progress: Progress | None,
) -> Campaign:
    started = time.perf_counter()
    with ExitStack() as stack:
        opened = None if store is None else stack.enter_context(ResultStore(store))
        replicator = Replicator(
            points,
            executor=executor or stack.enter_context(ThreadPoolExecutor(os.cpu_count())),
            store=opened,
            progress=progress or stack.enter_context(TerminalProgress()),
        )

        def so_far() -> Campaign:
            done = [k for k, point in enumerate(points) if point.result is not None]
            return Campaign(
                points=tuple(done),
                specs=tuple(specs[k] for k in done),
                results=tuple(points[k].result for k in done),
                restored=replicator.restored,
                simulated=replicator.simulated,
                seconds=time.perf_counter() - started,
            )

        try:
            replicator.run()
        except KeyboardInterrupt as interrupt:
            how = "give a store to be able to resume" if store is None else "the same call resumes"
            message = f"{sum(p.finished for p in points)} of {len(points)} points are finished; {how}"
            raise CampaignInterrupted(so_far(), message) from interrupt
        return so_far()


def _experiment(spec: Any, common: Mapping[str, Any], options: Mapping[str, Any]) -> Experiment:
    return simulator_of(spec)(spec=spec, **common, **own_options(spec, options))


def _targets(precision: float | Mapping[str, float] | None, experiment: Experiment) -> Mapping[str, float]:
    if precision is None:
        return {}
    if not isinstance(precision, Mapping):
        checks.positive("precision", precision)
        return dict.fromkeys(experiment.precise, precision)
    for metric, target in precision.items():
        checks.positive(f"precision[{metric!r}]", target)
    return precision
