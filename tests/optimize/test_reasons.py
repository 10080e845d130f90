"""Why a decision is what it is: each claim against the table it is made from, and how it follows a change."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from optimize import Decision, Space, explore
from optimize.decisions.decision import alternative, growth, limits_of, moves, simulated_growth

CHANNELS, WIDTHS = [1, 2, 4, 8], [8, 16, 32]


@dataclass(frozen=True)
class Memory:
    channels: int = 1
    width: int = 8
    load: float = 12.0


def model(memory):
    """A queue for a memory of which channels cost more than width."""
    rate = memory.channels * np.asarray(memory.width, dtype=float)
    busy = memory.load / rate
    with np.errstate(divide="ignore"):
        latency = np.where(busy < 1, 640 / rate / np.maximum(1 - busy, 0), np.inf)
    cost = 3 * np.asarray(memory.channels) + np.asarray(memory.width) / 4
    name = np.where(memory.channels * 8 > np.asarray(memory.width), "wires", "bus")
    return {"latency": latency[()], "cost": cost[()], "stable": (busy < 1)[()],
            "bottleneck": name[()], "bottleneck_load": busy[()]}  # fmt: skip


def decided(limits, *, load=12.0, factors=(), **goals):
    """Return the decision of an exploration, its latency corrected by factors in some rows."""
    space = Space(Memory(load=load), channels=CHANNELS, width=WIDTHS)
    found = explore(space, model, subject_to=limits, vectorized=True, **(goals or {"minimize": "cost"}))
    table = {**found.table, "simulated": np.zeros(12, dtype=bool)}
    latency = found.table["latency"].copy()
    for row, factor in dict(factors).items():
        latency[row] *= factor
        table["simulated"][row] = True
    table |= {"latency": latency, "latency_low": 0.9 * latency, "latency_high": 1.1 * latency}
    feasible = found.feasible.copy()
    for metric, (_, most) in limits.items():
        feasible &= table[metric] <= most
    rows = np.flatnonzero(feasible)
    front = rows if goals else rows[table["cost"][rows] == table["cost"][rows].min(initial=np.inf)]
    return Decision(
        model=found,
        table=table,
        corrected=("latency",),
        simulated=np.flatnonzero(table["simulated"]),
        results={},
        feasible=feasible,
        front=front,
        chosen=int(front[0]) if len(front) else None,
        reason="",
        open=np.zeros(0, dtype=int),
        settled=True,
        budget=0.0,
        seconds=0.0,
        interrupted=False,
    )


def at(decision, row):
    return decision.model.space.point(int(decision.table["design"][row]))


def test_the_tightest_limit_is_the_one_with_least_room():
    decision = decided({"latency": (None, 30.0), "cost": (None, 40.0)})
    chosen = decision.chosen
    first, second = limits_of(decision, chosen)
    latency = decision.table["latency"][chosen]
    assert (first.metric, first.room) == ("latency", pytest.approx(1 - latency / 30))
    assert (second.metric, second.room) == (
        "cost",
        pytest.approx(1 - decision.table["cost"][chosen] / 40),
    )
    assert not first.missed and not second.unsure
    assert limits_of(decided({"latency": (None, latency * 1.05)}), chosen)[0].unsure
    assert [
        limit.metric for limit in limits_of(decided({"latency": (None, 200.0), "cost": (None, 6.0)}), 0)
    ] == [
        "latency",
        "cost",
    ]


def test_moves_are_the_neighbouring_choices():
    decision = decided({"latency": (None, 30.0)})
    point, found = at(decision, decision.chosen), moves(decision)
    assert {(move.field, move.after) for move in found} == {
        (name, values[k])
        for name, values in (("channels", CHANNELS), ("width", WIDTHS))
        for k in (values.index(point[name]) - 1, values.index(point[name]) + 1)
        if 0 <= k < len(values)
    }
    for move in found:
        assert at(decision, move.to.row) == {**point, move.field: move.after}


@pytest.mark.parametrize("factor", [1.0, 1.2])
def test_traffic_grows_until_the_corrected_latency_meets_its_limit(factor):
    """There the model's latency times the correction is at the limit; solved here by algebra."""
    limit = {"latency": (None, 30.0)}
    row = decided(limit).chosen
    decision = decided(limit, factors={row: factor})
    assert decision.chosen == row
    found = growth(decision, model, "load")
    rate = at(decision, row)["channels"] * at(decision, row)["width"]
    exact = rate * (1 - factor * 640 / rate / 30.0)
    assert found.most == pytest.approx(exact, rel=1e-3) and found.most <= exact * (1 + 1e-9)
    assert found.change == pytest.approx(exact / 12.0 - 1, abs=1e-3)
    # Without the limit it saturates.
    alone = decided({"cost": (None, 100.0)})
    full, spec = growth(alone, model, "load"), alone.model.spec(alone.chosen)
    stable = [bool(model(replace(spec, load=way * full.most))["stable"]) for way in (1.0, 1.01)]
    assert stable == [True, False]


def test_a_design_that_no_answer_is_for_its_interval_says_the_limit_within():
    decision = decided({"latency": (None, 30.0)})
    row = decision.chosen
    feasible = decision.feasible.copy()
    feasible[row] = False
    unsure = replace(decision, feasible=feasible, chosen=row)
    limit = limits_of(unsure, row)[0]
    assert alternative(unsure, row).fails == limit.unsure


@pytest.mark.parametrize("truth", [1.0, 1.3])
def test_the_traffic_that_is_said_to_be_borne_was_simulated(truth):
    """The simulation is the model times a factor that grows with the load."""
    decision, seen = decided({"latency": (None, 30.0)}), []

    def simulate(memories):
        values = []
        for memory in memories:
            seen.append(memory.load)
            latency = model(memory)["latency"] * (1 + (truth - 1) * (memory.load / 12.0 - 1))
            values.append({"latency": latency, "latency_high": 1.02 * latency, "stable": True})
        return values

    by_model = growth(decision, model, "load")
    found = simulated_growth(decision, model, "load", simulate)
    assert seen[0] == by_model.most and found.most < by_model.most and 2 <= len(seen) <= 3
    low, best, high = found.simulated["latency"]
    assert low <= best <= high <= 30.0
    spec = replace(decision.model.spec(decision.chosen), load=found.most)
    assert simulate([spec])[0]["latency_high"] == high


def test_traffic_that_no_simulation_bears_leaves_it_as_it_is():
    decision = decided({"latency": (None, 30.0)})
    found = simulated_growth(decision, model, "load", lambda memories: [{"latency": np.inf, "stable": False}])
    assert found.change == 0.0
    assert found.simulated["latency"] == decision.interval("latency", decision.chosen)
    assert simulated_growth(decision, model, "load", None, tries=0).simulated is None
