"""What the screen of a study says holds in simulations of its own, four times as long (by night)."""

from dataclasses import dataclass
from math import hypot

import numpy as np
import pytest

from cases.study.goals import traffic_field, with_values
from cases.study.screen import Screen
from cases.study.study import explore_case
from optimize.decisions.decision import TIED
from optimize.search.pareto import as_costs, ideal_distance, nondominated
from optimize.spaces.evaluation import ends_of, metric_columns
from qmodels.systems.spec.fields import replace_fields
from qmodels.systems.spec.text.toml import spec_from_toml
from validate import simulate

LONG = {"replications": 16, "seed": 1, "confidence": 0.9}
NEAR, SHARE = 0.05, 0.25
"""What a rounded change may be off: five points, or a quarter of it."""


@dataclass(frozen=True)
class Asked:
    """A study: a kind, values of its fields, what varies, objectives."""

    kind: str
    vary: dict
    least: tuple = ()
    most: tuple = ()
    values: tuple = ()


DELAY = (("packet_latency_p99", "cost"), ("saturation_data_rate",))
STUDIES = {
    "noc": Asked("noc", {"link_width": [8, 16]}, ("packet_latency",), ("bandwidth",)),
    "dram": Asked("dram", {"channels": [1, 2]}, ("read_latency",), ("bandwidth",)),
    "cache": Asked("cache", {"entries_per_line": [1, 4]}, ("miss_ratio",)),
    "slices": Asked("llc-processor", {"slices": [2, 4]}, ("response_latency",), ("data_rate",)),
    "numa": Asked("numa", {"dma.channels": [1, 2]}, ("execution_time",)),
    "network": Asked("queueing-network", {"stations.cpu.servers": [1, 2]}, ("system_response_time",)),
    "system": Asked("system", {"parts.mesh.link_width": [8, 16]}, ("latency",)),
    "processor": Asked("packet-processor", {"channels": [2, 4, 6], "link_width": [8, 16]}, *DELAY),
    "trials": Asked("packet-processor", {"alloc_trial_count": [1, 2, 4], "slices": [0, 4]}, *DELAY),
    "steps": Asked(
        "packet-processor", {"interleaving_step": [1, 8], "channels": [3, 4]}, *DELAY, (("load_factor", 1.5),)
    ),
    "bursts": Asked(
        "packet-processor",
        {"channels": [4, 6], "link_width": [8, 16]},
        *DELAY,
        (("workload.arrivals", {"kind": "on-off", "on_packets": 16.0, "peak_to_mean": 4.0}),),
    ),
    "devices": Asked(
        "packet-processor",
        {"geometry.channels": [2, 4], "link_width": [16, 32]},
        *DELAY,
        (("dram", "DDR4-3200"), ("alloc_trial_count", 1)),
    ),
}


def ends(result, metric):
    """Return low, best and high of a metric of a simulation; one without interval thrice."""
    columns = metric_columns(result)
    return tuple(float(columns.get(name, columns[metric])[0]) for name in ends_of(metric))


def statements(part):
    """Yield each statement of a screen in words, and whether long simulations bear it out."""
    decision = part.decision
    found, space = Screen(part=part).data(), decision.model.space
    designs = decision.table["design"].tolist()
    specs = [space.spec(design) for design in designs]
    long = dict(zip(designs, simulate(specs, **LONG), strict=True))

    def value(design, metric):
        exact = metric not in decision.corrected
        row = designs.index(design)
        return (float(decision.table[metric][row]),) * 3 if exact else ends(long[design], metric)

    best = found["best"]["design"]
    for metric, (low, _, high) in found["best"]["values"].items():
        if low < high:
            least, _, most = value(best, metric)
            yield f"{metric} {low:.4g} to {high:.4g}", least <= high and low <= most
    for change in found["changes"]:
        digits = dict(zip(space.choices, space.digits(best), strict=True))
        digits[change["field"]] = space.choices[change["field"]].index(change["after"])
        other = int(space.number_of(digits.values()))
        for metric, share in change["shares"].items():
            (low, now, high), (below, then, above) = value(best, metric), value(other, metric)
            noise = hypot((high - low) / now, (above - below) / then) / 2 * then / now
            off = abs(share - (then / now - 1))
            yield (
                f"{change['field']} -> {change['after']}: {metric} {share:+.0%}",
                off <= max(NEAR, SHARE * abs(share)) + noise,
            )
    goals = decision.model.objectives
    middle = np.array([[value(design, metric)[1] for metric in goals] for design in designs])
    kept = np.array([long[design].stable for design in designs]) & np.isfinite(middle).all(axis=1)
    costs = as_costs(middle, decision.model.maximized)
    front = costs[kept][nondominated(costs[kept])]
    far = ideal_distance(costs[kept], front)
    own = far[np.array(designs)[kept].tolist().index(best)]
    yield f"no other design is better than {best}", own - far.min() <= TIED
    if part.growth is not None and part.growth.change > 0 and part.growth.simulated is not None:
        more = part.growth.now * (1 + 0.95 * part.growth.change)
        grown = simulate(replace_fields(space.spec(best), {traffic_field(decision): more}), **LONG)
        yield f"traffic may grow by {part.growth.change:.0%}", bool(grown.stable)


@pytest.mark.slow
def test_what_the_screens_of_twelve_studies_say_holds_in_long_simulations(run, tmp_path):
    said = []
    for name, asked in STUDIES.items():
        path = tmp_path / f"{name}.toml"
        path.write_text(run("init", asked.kind)[1])
        spec = spec_from_toml(path)
        for field, given in asked.values:
            spec = with_values(spec, {field: given})
        goals = {"minimize": asked.least, "maximize": asked.most}
        study = explore_case(
            {name: spec}, choices=asked.vary, goals=goals, budget_seconds=30.0, enough=3,
            out=tmp_path / name,
        )  # fmt: skip
        for part in study.parts:
            said += [(f"{name}: {words}", holds) for words, holds in statements(part)]
    wrong = [words for words, holds in said if not holds]
    assert len(said) >= 60 and len(wrong) <= 0.05 * len(said), wrong
