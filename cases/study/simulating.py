"""The simulation side of a study: runs, stores, what a simulation corrects, kernels compiled meanwhile."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cases.study import PACKETS
from cases.tables import ERROR
from optimize.decisions.decision import LEVEL, Decision, Interrupted
from optimize.search.exploration import Exploration
from qmodels import checks
from qmodels.numerics.kernels import another_python
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.traffic.arrivals import Recorded

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Options of the simulations of designs."""

    # packets: length of a replication, by default the simulator's own, but `PACKETS` of a packet processor; a
    # recorded trace is simulated whole in any case.
    packets: int | None = None
    # replications, seed: as `validate.simulate` takes them
    replications: int = 4
    seed: int = 0
    workers: int | None = None  # threads; None for one per core. Results do not depend on it

    def __post_init__(self) -> None:
        if self.packets is not None:
            checks.count("packets", self.packets, minimum=1000)
        checks.count("replications", self.replications, minimum=2)
        checks.seed(self.seed)
        if self.workers is not None:
            checks.count("workers", self.workers)

    def simulate(
        self, specs: Any, *, store: Path | None = None, progress: Progress | None = None, **options: Any
    ) -> Any:
        """Simulate one design or several, as `validate.simulate` does with these and other options."""
        from validate import simulate

        one = specs[0] if isinstance(specs, list) else specs
        packets = self.packets or (PACKETS if isinstance(one, PacketProcessor) else None)
        own: dict[str, Any] = {"replications": self.replications, "seed": self.seed, "confidence": LEVEL}
        own |= {} if packets is None else {"packets": packets}
        with ThreadPoolExecutor(self.workers or os.cpu_count()) as pool:
            return simulate(specs, executor=pool, store=store, progress=progress, **(own | options))

    def batch(self, specs: list[Any], store: Path | None) -> list[Any]:
        """Simulate designs; an interrupted batch hands over what is finished."""
        from validate import CampaignInterrupted

        if store is not None:
            store.parent.mkdir(parents=True, exist_ok=True)
        try:
            return list(self.simulate(specs, store=store, progress=lambda done, total: None))
        except CampaignInterrupted as stop:
            campaign = stop.campaign
            raise Interrupted(dict(zip(campaign.points, campaign, strict=True))) from stop


def stated_errors(model: Exploration) -> dict[str, npt.ArrayLike | None]:
    """Return the metrics that a simulation corrects, with the mean error that the model states of each.

    Those with a stated error, and the objectives and limits that the simulator estimates; a cost is exact.
    """
    estimated = set(type(model.space.base).metric_names.both) - {"cost"}
    errors: dict[str, npt.ArrayLike | None] = {
        name.removeprefix(ERROR): np.asarray(column) / 100
        for name, column in model.table.items()
        if name.startswith(ERROR) and name.removeprefix(ERROR) in estimated
    }
    asked = (*model.objectives, *model.subject_to)
    return {**{name: None for name in asked if name in estimated}, **errors}


def how_simulated(decision: Decision) -> str:
    """Return the length of each design's simulation; of a recorded trace whole rotations."""
    one = next(iter(decision.results.values()))
    effort = "".join(f", {count} {name}" for name, count in one.effort.items() if name != "events")
    workload = getattr(decision.model.space.base, "workload", None)
    recorded = isinstance(getattr(workload, "arrivals", None), Recorded)
    whole = " in whole rotations of the trace" * recorded
    return f"{one.replications} replications{effort}{whole}, seed {one.seed}"


CODE = """
import pickle, sys
from validate import simulate
simulate(pickle.load(sys.stdin.buffer), packets=1000, replications=2, saturation=False)
"""


def background_compile(spec: Any) -> subprocess.Popen[bytes] | None:
    """Start a process that compiles the simulation of a packet processor; None if it is on the disk.

    Whoever simulates waits for it first. One that fails leaves the work to who waited.
    """
    from validate.engine.jit import PACKAGE, PLACE, cache_name

    kept = PLACE / cache_name(PACKAGE / "composed" / "machine.py")
    if any(kept.rglob("*.nbc")) or getattr(sys, "frozen", False):
        return None
    try:
        process = another_python(CODE, stdin=subprocess.PIPE)
        with process.stdin as file:  # type: ignore[union-attr]
            file.write(pickle.dumps(spec))
    except OSError:
        return None
    return process
