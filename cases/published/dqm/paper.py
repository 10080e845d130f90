"""The data-queueing case: the tables of Ykman-Couvreur et al. (DAC 2002) published, simulated and solved."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cases.published.dqm.causes import cause_rows, cause_specs, causes_text
from cases.published.dqm.claims import check_claims
from cases.published.dqm.explore import explore_techniques, front_text, greedy_text
from cases.published.dqm.plots import figures
from cases.published.dqm.specs import case_spec, normalised, technique_space
from cases.published.dqm.tables import TITLES, designs, table_cells, table_specs, table_text
from cases.published.reproduction import Paper, Reproduction
from qmodels.systems.packets.data_queueing import DataQueueing
from qmodels.systems.traffic.arrivals import Recorded
from qmodels.systems.traffic.trace import Trace

if TYPE_CHECKING:
    from cases.study.check import Runs


WARM_UP = 0.3
"""Share of the packets: in an overload of 2.5 % the memory fills slowly."""


def simulate(
    *,
    trace: Trace | str | os.PathLike[str] | None = None,
    store: Path | None = None,
    runs: Runs | None = None,
    exploration: bool = True,
    causes: bool = True,
) -> Reproduction:
    """Simulate and solve the paper's Tables 1 to 4.

    ``trace``: recorded packets in place of Poisson arrivals with the sizes of `imix`; ``runs``: how each
    technique is simulated; otherwise 3 replications of 200 000 packets; ``exploration``: whether to explore
    the 180 techniques; ``causes``: whether to change one property of the traffic at a time.
    """
    from cases.study.check import Runs

    runs = runs or Runs(packets=200_000, replications=3)
    base = case_spec(trace)
    wanted = table_specs(base)
    space = technique_space(base)
    if exploration:
        wanted += [normalised(space.spec(design)) for design in range(space.size)]
    changes = cause_specs(base) if causes else {}
    wanted = list(dict.fromkeys([*wanted, *changes.values()]))
    simulated = dict(zip(wanted, runs.simulate(wanted, store=store, warm_up=WARM_UP), strict=True))

    def look_up(spec: DataQueueing) -> dict[str, float]:
        return {name: estimate.best for name, estimate in simulated[normalised(spec)].metrics.items()}

    tables: dict[str, tuple[Any, ...]] = {}
    if exploration:
        tables["techniques"], tables["greedy"] = explore_techniques(base, look_up)
    if causes:
        tables["causes"] = cause_rows(changes, simulated)
    arrivals = base.traffic.arrivals
    source = Path(arrivals.trace.source).name if isinstance(arrivals, Recorded) else "a generator"
    run = {
        "source": source,
        "warm_up": WARM_UP,
        **{name: getattr(runs, name) for name in ("packets", "replications", "seed")},
    }
    return Reproduction(paper=PAPER, run=run, cells=tuple(table_cells(base, simulated)), tables=tables)


def sections(found: Reproduction) -> list[str]:
    """Return the tables, the exploration and the causes."""
    parts = [
        "Data queueing, {packets} packets of {source}, {replications} replications, seed {seed}\n"
        "Every cell: published | model | simulated; conflicts in percent without (wo) and with page "
        "control,\noverflow in percent of the allocations, overhead in SRAM cycles, energy in the paper's "
        "unit, accesses to the pointer memory".format(**found.run),
        *(table_text(found.cells, name) for name in TITLES),
    ]
    if "techniques" in found.tables:
        parts += [greedy_text(found.tables["greedy"]), front_text(found.tables["techniques"])]
    if "causes" in found.tables:
        parts.append(causes_text(found.tables["causes"]))
    return parts


PAPER = Paper(
    name="dqm",
    plays=True,
    simulate=simulate,
    sections=sections,
    designs=designs,
    claims=lambda found: check_claims(found.cells, found.tables.get("techniques", ())),
    figures=figures,
    tables={"techniques": dict, "greedy": dict, "causes": dict},
)
