"""What the 16-SRP paper measured with small benchmarks, beside the model and our simulation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cases.published.srp.blurring import Cell
from cases.published.srp.specs import LOADS, Costs, benchmark, blurring, chip, loads, published
from cases.tables import text_table
from qmodels.systems.memory.numa import NumaMachine

LEADERS = (0, 5, 10, 15)
"""The corners of the mesh: a core of each cluster, equally far from its memory."""
OWN = tuple(core // 4 for core in range(16))
SWAPPED = tuple((2, 3, 0, 1)[cluster] for cluster in OWN)
OPPOSITE = tuple(3 - cluster for cluster in OWN)
ROUND = tuple(tuple((core + k) % 4 for k in range(4)) for core in range(16))
EVERYONE = tuple(range(16))
READINGS = {
    "as many loads: 1/3": 1 / 3,
    "loads, additions and one scaling and store each (7/19)": 7 / 19,
    "the same, with equal additions (13/19)": 13 / 19,
}
"""Computing of the optimal over the non-optimal version if not as the bytes moved (1/2)."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One statement.

    Parameters
    ----------
    text : str
        What is stated, with its unit.
    published : float or None
        The paper's number; None where its text has none.
    model, simulated : float
        Ours.
    """

    text: str
    published: float | None
    model: float
    simulated: float


def claim_specs(costs: Costs) -> dict[str, NumaMachine]:
    """Return the benchmarks by name."""
    names: dict[str, tuple[Sequence[int | Sequence[int]], Sequence[int], str]] = {
        "alone": (OWN, (0,), "paired"),
        "alone swapped": (SWAPPED, (0,), "paired"),
        "alone opposite": (OPPOSITE, (0,), "paired"),
        "four nearest": (OWN, LEADERS, "paired"),
        "four swapped": (SWAPPED, LEADERS, "paired"),
        "four opposite": (OPPOSITE, LEADERS, "paired"),
        "four at one": ((0,) * 16, LEADERS, "paired"),
        "sixteen nearest": (OWN, EVERYONE, "paired"),
        "sixteen swapped": (SWAPPED, EVERYONE, "paired"),
        "sixteen opposite": (OPPOSITE, EVERYONE, "paired"),
        "sixteen at one": ((0,) * 16, EVERYONE, "paired"),
        "enumerated at one": ((0,) * 16, EVERYONE, "enumerated"),
        "enumerated nearest": (OWN, EVERYONE, "enumerated"),
        "paired round": (ROUND, EVERYONE, "paired"),
        "enumerated round": (ROUND, EVERYONE, "enumerated"),
    }
    specs = {
        name: benchmark(costs, memories, cores=cores, assignment=assignment)
        for name, (memories, cores, assignment) in names.items()
    }
    specs["blurring at one"] = blurring(costs, "non-optimal", "one")
    for core in range(4):
        for memory in range(4):
            specs[f"loads {core} {memory}"] = loads(costs, core, memory)
    for text, ratio in READINGS.items():
        changed = replace(costs, compute_per_byte=2 * ratio * costs.compute_per_byte)
        specs[text] = blurring(changed, "optimal", "clustered")
    return specs


def check_claims(costs: Costs, cells: Iterable[Cell], simulated: Mapping[NumaMachine, float]) -> list[Claim]:
    """Return the statements, from the execution times of `claim_specs` [cycles]."""
    from qmodels import solve
    from qmodels.memory.numa.solve import placement_speedup

    specs = claim_specs(costs)
    times = {name: (float(solve(spec).execution_time), simulated[spec]) for name, spec in specs.items()}

    def over(name: str, other: str) -> tuple[float, float]:
        return times[name][0] / times[other][0], times[name][1] / times[other][1]

    factors = [
        over(f"loads {core} {memory}", f"loads {core} 0") for core in range(4) for memory in range(1, 4)
    ]
    scratchpad = LOADS * chip(costs).scratchpad_cycles
    nearest = [[time / scratchpad for time in times[f"loads {core} 0"]] for core in range(4)]
    said = published()
    claims: list[tuple[str, float | None, tuple[float, float]]] = [
        ("least NUMA factor of a load", said["numa"]["least_factor"], min(factors)),
        ("largest NUMA factor of a load", said["numa"]["largest_factor"], max(factors)),
        ("load from the nearest memory over the scratchpad, least",
         said["numa"]["memory_over_scratchpad"][0], (min(nearest)[0], min(nearest)[1])),
        ("load from the nearest memory over the scratchpad, most",
         said["numa"]["memory_over_scratchpad"][1], (max(nearest)[0], max(nearest)[1])),
        ("four cores at their nearest memories, time over one alone",
         said["congestion"]["four_cores_own_memories"], over("four nearest", "alone")),
        ("four cores, memories swapped on a side, over one alone",
         said["congestion"]["four_cores_own_memories"], over("four swapped", "alone swapped")),
        ("four cores, opposite memories, over one alone",
         said["congestion"]["four_cores_own_memories"], over("four opposite", "alone opposite")),
        ("four cores at one memory, over one alone (congested)", None, over("four at one", "alone")),
        ("sixteen cores, memories swapped, over nearest",
         said["congestion"]["sixteen_cores_way"], over("sixteen swapped", "sixteen nearest")),
        ("sixteen cores, opposite memories, over nearest",
         said["congestion"]["sixteen_cores_way"], over("sixteen opposite", "sixteen nearest")),
        ("sixteen cores at nearest memories, over four (congested)", None,
         over("sixteen nearest", "four nearest")),
        ("paired channels, clustered: speed-up over one memory", said["channels"]["paired_clustered"],
         over("sixteen at one", "sixteen nearest")),
        ("enumerated channels, memories in turn: speed-up", said["channels"]["enumerated_iterative"],
         over("enumerated at one", "enumerated round")),
        ("paired channels, memories in turn: speed-up", None, over("sixteen at one", "paired round")),
        ("enumerated channels, clustered: speed-up", None, over("enumerated at one", "enumerated nearest")),
    ]  # fmt: skip
    for text, value, name in (
        ("most that any placement can gain, all cores fetching", said["channels"]["most"], "sixteen at one"),
        ("most that any placement can gain, non-optimal blurring", None, "blurring at one"),
    ):
        most = placement_speedup(specs[name])
        claims.append((text, value, (most, most * times[name][1] / times[name][0])))
    mine = {(c.algorithm, c.placement): c for c in cells if c.fitted_on == "non-optimal"}
    for placement in ("clustered", "all"):
        for algorithm in ("non-optimal", "optimal"):
            one, cell = mine[algorithm, "one"], mine[algorithm, placement]
            claims.append(
                (f"{algorithm} blurring, {placement} over one memory: speed-up",
                 said["speedups"][placement][algorithm],
                 (one.model / cell.model, one.simulated / cell.simulated))
            )  # fmt: skip
    published_time = said["table61"]["clustered"]["optimal"]
    claims += [
        (f"optimal, clustered [million cycles] if computing goes {text}", published_time,
         (times[text][0] / 1e6, times[text][1] / 1e6))
        for text in READINGS
    ]  # fmt: skip
    return [Claim(text=t, published=p, model=float(m), simulated=float(s)) for t, p, (m, s) in claims]


def claims_text(claims: Iterable[Claim]) -> str:
    """Return the statements as a table."""
    rows = [
        [
            claim.text,
            "-" if claim.published is None else f"{claim.published:.3g}",
            f"{claim.model:.3g}",
            f"{claim.simulated:.3g}",
        ]
        for claim in claims
    ]
    return "Statements of the text, and other readings of the computing (costs fitted to non-optimal)\n" + (
        text_table(["statement", "published", "model", "simulated"], rows)
    )
