"""What is asked of a system, what its answer has simulated, and where its front is doubted."""

from dataclasses import replace

import pytest

from cases.study.details import Section, front_doubts, trust
from cases.study.goals import goals_of, space_of
from cases.study.screen import Screen
from cases.study.study import Part, Runs, decided, solved
from optimize import Space, replace_fields
from qmodels import Noc, PacketProcessor, solve, spidergon
from qmodels.evidence import intervals

WIDTHS = [4, 8, 16, 32]
NOC = Noc(topology=spidergon(8), injection_rate=0.01, packet_bytes=64)


def solved_only(space, goals):
    return decided(solved(space, goals))[0]


def latency(width, rate=0.01):
    return solve(replace_fields(NOC, {"link_width": width, "injection_rate": rate})).packet_latency


def between(width, rate=0.01):
    """Return a condition that a width meets and half of it does not."""
    return f"packet_latency < {(latency(width, rate) * latency(width // 2, rate)) ** 0.5}ns"


def test_goals_have_defaults_only_where_nothing_is_asked():
    base = PacketProcessor()
    asked = goals_of(base, {"maximize": "data_rate", "subject_to": ["overflow_probability <= 1%"]})
    assert (asked["minimize"], asked["subject_to"]) == ((), {"overflow_probability": (None, 0.01)})
    assert goals_of(base)["maximize"] == ("saturation_data_rate",)
    with pytest.raises(ValueError, match="--minimize or --maximize must name a metric, such as packet_l"):
        goals_of(NOC)
    with pytest.raises(ValueError, match="goals must be one of .*, got 'minimise'"):
        goals_of(base, {"minimise": "cost"})


def test_lines_end_between_words_and_not_before_a_unit():
    text = Section(title="T", lines=["word " * 20 + "latency 788 ns (-3 %) and more"]).text()
    assert all(len(line) <= 110 for line in text.splitlines())
    assert "788 ns (-3 %)" in text.replace("\n    ", " ") and not any(
        line.strip().startswith(("ns", "%")) for line in text.splitlines()
    )


def test_the_choice_is_simulated_and_so_is_its_traffic(tmp_path):
    goals = goals_of(NOC, {"minimize": "link_width", "subject_to": [between(16)]})
    model = solved(Space(NOC, link_width=WIDTHS), goals)
    runs = Runs(packets=2000, replications=3)
    decision, grown = decided(model, runs, out=tmp_path, budget_seconds=600, enough=1)
    assert decision.chosen in decision.results
    share = Screen(part=Part(name="noc", decision=decision, growth=grown)).data()["growth"]
    assert share == grown.change == pytest.approx(grown.most / NOC.injection_rate - 1)
    limit = decision.model.subject_to["packet_latency"][1]
    assert grown.simulated["packet_latency"][2] <= limit
    more = replace_fields(decision.model.spec(decision.chosen), {"injection_rate": grown.most})
    # Another seed: as near to the limit as it may be, but for the noise of either.
    again = replace(runs, seed=7).simulate(more).packet_latency
    assert again.low <= limit
    alone, none = decided(model, runs, out=tmp_path, budget_seconds=None, points=1)
    assert len(alone.results) == 1 and none is None


def test_the_front_says_where_the_model_orders_wrongly(monkeypatch):
    known = intervals.measured()
    wrong = {"free_list.alloc_trial_count": {"packet_latency_p99": [2, 8], "energy_per_packet": [1, 8]}}
    mine = known | {"packet-processor": known["packet-processor"] | {"directions": wrong}}
    monkeypatch.setattr(intervals, "measured", lambda: mine)
    base = replace_fields(PacketProcessor(), {"offered_gbps": 60.0})
    goals = goals_of(base, {"minimize": ["packet_latency_p99", "cost"]})
    decision = solved_only(space_of(base, {"alloc_trial_count": [1, 2]}), goals)
    direction = "the model ranks alloc trial count opposite to the simulation in packet latency p99 (2 of 8"
    assert [words for words in front_doubts(decision) if words.startswith(direction)]
    assert direction in " ".join(trust(decision).text().split())
    assert not [words for words in front_doubts(decision) if "energy" in words]
    found = front_doubts(solved_only(space_of(base, {"channels": [2, 4]}), goals))
    assert not [words for words in found if "ranks" in words]
