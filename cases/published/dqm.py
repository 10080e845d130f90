"""Ykman-Couvreur et al. (DAC 2002): the exploration of techniques for a queue manager."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np

from optimize.search.explore import explore
from optimize.spaces.space import Space
from qmodels.systems.traffic.sizes import SizeLaw

WHOLE = 4_194_304  # segments of the paper's memory: Vms1Size of this size is a single list
TRIALS, SMALL = (1, 2, 3, 4, 5), (1, 2, 3, 4)
VMS1 = (2_097_152, 3_145_728, 3_495_232, 3_670_016, 3_774_848, 3_984_576, 4_054_528, 4_089_472, WHOLE)
OBJECTIVES = (
    "vms1_overflow_probability", "vms2_overflow_probability", "vms3_overflow_probability", "enqueue_overhead",
    "deletion_overhead",
)  # fmt: skip
"""The five dimensions of the paper's curve: overflows of the three lists, and both worst cases (sec. 5.3)."""
GREEDY = ("write_conflict_probability", "read_conflict_probability")
"""What the greedy exploration improves, weighted alike, to a tenth of a percent, as the paper prints them."""
FAILURES = "allocation_failure_probability"
METRICS = (*OBJECTIVES, FAILURES, *GREEDY)  # what is kept of each technique


@dataclass(frozen=True, kw_only=True)
class Technique:
    """A technique as the paper names it, in the order in which its greedy exploration decides."""

    alloc_trial_count: int = 1
    small_packet_segments: int = 0
    vms1_size: int = VMS1[0]

    def normalised(self) -> Technique:
        """Return it as a single list of all blocks where small packets have none of their own."""
        single = self.small_packet_segments == 0 or self.vms1_size == WHOLE
        return Technique(alloc_trial_count=self.alloc_trial_count, vms1_size=WHOLE) if single else self


ORDER = tuple(asdict(Technique()))


def packet_sizes(single: float, decay: float, longest: int = 9) -> SizeLaw:
    """Return packets of 1 to some segments: so many of one, the others falling by a ratio."""
    others = decay ** np.arange(longest - 1.0)
    share = np.append(single, (1.0 - single) * others / others.sum())
    share /= share.sum()
    return SizeLaw(bytes=tuple(64 * (np.arange(longest) + 1)), probability=tuple(share))


def simulated_techniques(
    make: Callable[..., Any], simulate: Callable[..., Any], options: Mapping[str, Any]
) -> tuple[dict[str, Any], ...]:
    """Simulate and explore the 180 techniques, see `explored`."""
    every = [Technique(**dict(zip(ORDER, one, strict=True))) for one in product(TRIALS, SMALL, VMS1)]
    wanted = list(dict.fromkeys(one.normalised() for one in every))
    results = simulate([make(*asdict(one).values()) for one in wanted], **options)
    found = dict(zip(wanted, results, strict=True))
    return explored(lambda one: {name: found[one].metrics[name].best for name in METRICS})


def explored(evaluate: Callable[[Technique], Mapping[str, float]]) -> tuple[dict[str, Any], ...]:
    """Return the 180 techniques with their metrics and the fronts that they are on.

    ``pareto`` in the five `OBJECTIVES`; ``survivor`` of the paper's rule, which drops a technique only if
    another is better in *all* objectives; ``optimal_overall`` in failed allocations of all lists together and
    both worst cases.

    The paper explores 180 and does not list them. The values of its tables give that number when
    SmallPktSize 0, which uses one list, is taken together with the Vms1Size of the whole memory, which
    leaves nothing for the other two: then 20 of the 180 are 5 single lists, four times each.
    """
    space = Space(Technique(), alloc_trial_count=TRIALS, small_packet_segments=SMALL, vms1_size=VMS1)
    found = explore(space, lambda one: evaluate(one.normalised()), minimize=OBJECTIVES)
    known = found.table
    costs, three = (
        np.stack([known[name] for name in names], axis=1)
        for names in (OBJECTIVES, (FAILURES, *OBJECTIVES[3:]))
    )
    beaten = np.any(np.all(costs[None] < costs[:, None], axis=2), axis=1)
    no_worse = np.all(three[None] <= three[:, None], axis=2)
    dominated = np.any(no_worse & np.any(three[None] < three[:, None], axis=2), axis=1)
    pareto = np.isin(np.arange(known["design"].size), found.front)
    fronts = {"pareto": pareto, "survivor": ~beaten, "optimal_overall": ~dominated}
    return tuple(
        {
            **asdict(space.spec(design).normalised()),
            **{name: float(known[name][row]) for name in METRICS},
            **{name: bool(front[row]) for name, front in fronts.items()},
        }
        for row, design in enumerate(known["design"].tolist())
    )


def greedy(techniques: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return the paper's greedy path, which starts with a single list, step by step.

    Vms1Size is that of the first row of Table 3 while the other parameters are decided.
    """
    known = {Technique(**{name: row[name] for name in ORDER}): row for row in techniques}
    space = Space(
        Technique(), alloc_trial_count=TRIALS, small_packet_segments=(0, *SMALL), vms1_size=VMS1[:-1]
    )

    def as_printed(one: Technique) -> dict[str, float]:
        return {name: round(known[one.normalised()][name], 3) for name in GREEDY}

    found = explore(space, as_printed, minimize=GREEDY, method="greedy", order=ORDER, weights=[(0.5, 0.5)])
    return tuple(
        {
            "scan": step.field or "start",
            **asdict(found.space.spec(step.design).normalised()),
            **dict(zip(("write", "read"), step.costs, strict=True)),
            "kept": step.kept,
        }
        for step in found.history
    )


def distinct(techniques: Iterable[Mapping[str, Any]], front: str = "") -> int:
    """Return the number of techniques that differ in any of the `METRICS`; of one front if it is named."""
    return len({tuple(row[n] for n in METRICS) for row in techniques if not front or row[front]})


def front_rows(techniques: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the techniques that are optimal in failures and worst cases, the same single list once."""
    return list({tuple(row[n] for n in ORDER): row for row in techniques if row["optimal_overall"]}.values())
