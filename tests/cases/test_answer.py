"""The words of an answer: each claim says the value it was made from, and follows a changed input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cases.cli.exploring import columns_of_answer
from cases.study.check import Runs
from cases.study.deciding import decide_case
from cases.study.goals import chosen_space, goals_of, question_text
from cases.study.packet_processor import solved_columns
from cases.study.proving import proven_case
from cases.study.words.answer import claims_of, question_of
from cases.study.words.doubts import front_doubts
from cases.study.words.findings import trust
from cases.study.words.section import Section
from optimize import Space, explore
from qmodels import Noc, PacketProcessor, solve, spidergon
from qmodels.systems.spec.conditions import quantity
from qmodels.systems.spec.fields import replace_fields

WIDTHS = [4, 8, 16, 32]
NOC = Noc(topology=spidergon(8), injection_rate=0.01, packet_bytes=64)


def solved_only(exploration):
    return decide_case(exploration, runs=Runs(), store=None, budget_seconds=0)


def decided(limit, *, rate=0.01, widths=WIDTHS, minimize="link_width"):
    """Return the decision on the link width of a network, under a condition."""
    base = replace_fields(NOC, {"injection_rate": rate})
    goals = goals_of(base, {"minimize": minimize, "subject_to": [limit]})
    return solved_only(explore(Space(base, link_width=widths), columns_of_answer, **goals))


def said(decision, about):
    """Return the sentences of an answer about something, joined."""
    return " ".join(claim.text for claim in claims_of(decision, columns_of_answer) if claim.about == about)


def latency(width, rate=0.01):
    return solve(replace_fields(NOC, {"link_width": width, "injection_rate": rate})).packet_latency


def between(width, rate=0.01):
    """Return a condition that a width meets and half of it does not."""
    return f"packet_latency < {(latency(width, rate) * latency(width // 2, rate)) ** 0.5}ns"


@pytest.mark.parametrize("width", [8, 16, 32])
def test_the_recommendation_and_what_the_next_better_fails_on_follow_the_limit(width):
    decision = decided(between(width))
    words = said(decision, "recommended")
    assert words.startswith(f"design {WIDTHS.index(width)} (link width {width}): link width {width}, ")
    assert f"packet latency {quantity(NOC, 'packet_latency', latency(width))}" in words
    words, half = said(decision, "better"), latency(width // 2)
    limit = decision.model.subject_to["packet_latency"][1]
    assert f"design {WIDTHS.index(width) - 1} (link width {width // 2})" in words
    assert quantity(NOC, "packet_latency", half) in words
    assert f", {100 * (half / limit - 1):.3g} % over the limit" in words
    room = 100 * (1 - latency(width) / limit)
    assert f"packet latency at most {quantity(NOC, 'packet_latency', limit)}: {room:.3g} % of room" in said(
        decision, "limited by"
    )
    assert f"would be chosen: link width {width // 2} (-50 %)" in said(decision, "limit")
    assert f"({quantity(NOC, 'packet_latency', half)})" in said(decision, "limit")


def test_the_fullest_resource_is_the_models():
    for rate in (0.01, 0.02):
        decision = decided("packet_latency < 1us", rate=rate)
        answer = solve(decision.model.spec(decision.chosen))
        load = f"{answer.bottleneck} at {100 * answer.bottleneck_load:.0f} %"
        assert f"The fullest resource is {load}." in said(decision, "limited by")


def test_what_buys_most_is_the_largest_change_of_a_neighbour():
    decision = decided(between(16))
    words = said(decision, "buys most")
    more = 100 * (latency(32) / latency(16) - 1)
    assert "Link width 32 instead of 16 improves the packet latency most: packet latency " in words
    assert f"({more:.3g} %)" in words
    words = said(decided(between(32)), "buys most")
    assert "No neighbouring choice of one field improves the packet latency." in words
    assert "Link width 16 instead of 32 improves the link width most" in words


@pytest.mark.parametrize("width", [8, 16])
def test_the_growth_of_traffic_is_where_the_limit_is_met(width):
    decision = decided(between(width))
    (claim,) = (one for one in claims_of(decision, columns_of_answer) if one.about == "traffic")
    limit, rate = decision.model.subject_to["packet_latency"][1], claim.values["most"]
    assert latency(width, rate) <= limit < latency(width, rate * 1.01)
    growth = f"by {100 * claim.values['change']:.3g} % (to injection rate {rate:.3g})"
    assert f"By the model alone the traffic may grow {growth}" in claim.text
    assert f"until packet latency exceeds {quantity(NOC, 'packet_latency', limit)}" in claim.text


def test_nothing_is_feasible_names_limit_resource_and_smallest_change():
    decision = decided("packet_latency < 5ns")
    assert said(decision, "not feasible") == "No design is feasible: none meets packet latency at most 5 ns."
    nearest = said(decision, "nearest")
    assert "design 3 (link width 32)" in nearest and f"{100 * (latency(32) / 5 - 1):.0f} % over" in nearest
    assert str(solve(decision.model.spec(3)).bottleneck) in nearest
    assert f"packet latency of {quantity(NOC, 'packet_latency', latency(32))} allowed" in said(
        decision, "feasible with"
    )
    decision = decided(f"packet_latency < {latency(32)}ns", widths=[4, 8])
    wider = next(width for width in range(33, 64) if latency(width) < latency(32))
    assert f"Feasible by the model with link width {wider}, beyond its choices (up to 8)" in said(
        decision, "feasible with"
    )


def test_too_much_traffic_says_how_much_less_would_do():
    decision = decided("packet_latency < 1us", rate=0.5)
    assert said(decision, "not feasible") == "No design is feasible: none keeps up with the traffic."
    (claim,) = (one for one in claims_of(decision, columns_of_answer) if "less traffic" in one.text)
    change = claim.values["change"]
    assert solve(replace_fields(NOC, {"link_width": 32, "injection_rate": change.after})).stable
    assert not solve(replace_fields(NOC, {"link_width": 32, "injection_rate": change.after * 1.01})).stable


def corrected(decision, row, factor, spread, **changes):
    """Return a decision with simulated latencies."""
    latency = decision.table["packet_latency"] * np.where(np.arange(4) == row, factor, 1.0)
    table = decision.table | {
        "packet_latency": latency,
        "packet_latency_low": latency * (1 - spread),
        "packet_latency_high": latency * (1 + spread),
        "simulated": np.arange(4) == row,
    }
    return replace(decision, table=table, corrected=("packet_latency",), simulated=np.array([row]), **changes)


def test_how_sure_it_is_follows_simulation_interval_and_what_is_open():
    decision = decided(between(16))
    words = said(decision, "how sure")
    assert words.startswith("It is the model's word: not simulated; the limit packet latency at most")
    assert f"Not settled: {len(decision.open)} designs that were not simulated" in words
    close = corrected(decision, 2, 1.0, 0.01, settled=True, open=np.zeros(0, dtype=int))
    assert said(close, "how sure") == (
        "The recommended design was simulated. "
        "Settled: within the intervals no other design could enter the front (1 simulated)."
    )
    low, high = (quantity(NOC, "packet_latency", latency(16) * end) for end in (0.99, 1.01))
    assert f"({low} to {high})" in said(close, "recommended")
    wide = corrected(decision, 2, 1.0, 0.9, settled=False, open=np.array([0, 1]))
    assert "simulated; the limit packet latency at most" in said(wide, "how sure")
    assert "Not settled: 2 designs that were not simulated could still enter" in said(wide, "how sure")


def test_the_models_own_choice_is_said_to_be_overruled_and_why():
    decision = decided(between(16))
    assert said(decision, "overruled") == ""
    worse = corrected(decision, 2, 2.0, 0.01, chosen=3, feasible=np.array([False, False, False, True]))
    words = said(worse, "overruled")
    assert words.startswith("The model alone would have chosen design 2 (link width 16); simulated, ")
    assert f"is {quantity(NOC, 'packet_latency', 2 * latency(16))}, " in words


def test_feasible_by_their_values_yet_none_borne_out_is_no_recommendation():
    none = replace(decided(between(16)), chosen=None, reason="no simulated design is feasible")
    (claim,) = claims_of(none, columns_of_answer)
    assert claim.text.startswith("No design is recommended: no simulated design is feasible. 2 designs keep")


def test_with_two_objectives_the_next_cheaper_is_a_trade():
    base = PacketProcessor()
    goals = goals_of(base, {"minimize": ["packet_latency", "cost"]})
    space = chosen_space(base, {"channels": [2, 4, 8]})
    decision = solved_only(explore(space, columns_of_answer, **goals))
    words = said(decision, "better")
    cost = decision.table["cost"]
    cheaper = max(value for value in cost[decision.front] if value < cost[decision.chosen])
    assert "on the front that are cheaper the next is design" in words
    assert f"cost {quantity(base, 'cost', cheaper)}" in words and "packet latency" in words


@pytest.mark.parametrize(
    ("channels", "limit", "words"),
    [
        ([2], None, "There is no design that is cheaper."),
        ([2, 4], "channels >= 4", "The only design that is cheaper fails: "),
    ],
)
def test_one_cheaper_design_is_one(channels, limit, words):
    base = PacketProcessor()
    goals = goals_of(base, {"minimize": "cost", "subject_to": [limit] if limit else []})
    decision = solved_only(explore(chosen_space(base, {"channels": channels}), columns_of_answer, **goals))
    assert said(decision, "better").startswith(words)


def test_goals_are_said_as_asked_and_have_defaults_only_where_nothing_is_asked():
    base = PacketProcessor()
    asked = goals_of(base, {"maximize": "data_rate", "subject_to": ["overflow_probability <= 1%"]})
    assert (asked["minimize"], asked["subject_to"]) == ((), {"overflow_probability": (None, 0.01)})
    assert question_text(base, asked) == "most data rate, with overflow probability at most 0.01"
    assert goals_of(base)["maximize"] == ("saturation_data_rate",)
    added = goals_of(base, {"minimize": "cost"})
    assert question_text(base, added).endswith("overflow probability at most 0.001 (by default)")
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


def test_what_an_answer_names_is_simulated_and_so_is_its_traffic(tmp_path):
    goals = goals_of(NOC, {"minimize": "link_width", "subject_to": [between(16)]})
    solved = explore(Space(NOC, link_width=WIDTHS), columns_of_answer, **goals)
    runs = Runs(packets=2000, replications=3)
    decision, grown = proven_case(
        solved, columns_of_answer, runs=runs, store=tmp_path / "store", budget_seconds=600, enough=1
    )
    assert question_of(decision).named() and set(question_of(decision).named()) <= set(decision.results)
    claims = claims_of(decision, columns_of_answer, grown=grown)
    text = " ".join(claim.text for claim in claims)
    assert "not simulated" not in text and "model alone" not in text
    (claim,) = (claim for claim in claims if claim.about == "traffic")
    assert claim.values["most"] == grown.most and "simulated there, packet latency" in claim.text
    limit = decision.model.subject_to["packet_latency"][1]
    assert grown.simulated["packet_latency"][2] <= limit
    more = replace_fields(decision.model.spec(decision.chosen), {"injection_rate": grown.most})
    # Another seed: as near to the limit as it may be, but for the noise of either.
    again = replace(runs, seed=7).simulate(more).packet_latency
    assert again.low <= limit
    alone, none = proven_case(
        solved, columns_of_answer, runs=runs, store=tmp_path / "store", budget_seconds=None, points=1
    )
    assert len(alone.results) == 1 and none is None
    assert "By the model alone the traffic may grow" in said(alone, "traffic")


def test_the_front_says_where_the_model_doubts_its_directions():
    base = replace_fields(PacketProcessor(), {"offered_gbps": 60.0})
    goals = goals_of(base, {"minimize": ["packet_latency_p99", "cost"]})
    trials = chosen_space(base, {"alloc_trial_count": [1, 2]})
    decision = solved_only(explore(trials, solved_columns, vectorized=True, **goals))
    said = [words.partition(" (")[0] for words in front_doubts(decision)]
    direction = "the model ranks alloc_trial_count opposite to the simulation in packet latency p99 here"
    doubts = solve(replace_fields(base, {"alloc_trial_count": 1})).notes
    along = "packet_latency_p99 along alloc_trial_count"
    assert len(said) == len([one for one in doubts if one.startswith(along)])
    assert direction in said and direction in " ".join(trust(decision).text().split())
    light = replace_fields(base, {"offered_gbps": 20.0})
    space = chosen_space(light, {"alloc_trial_count": [1, 2]})
    assert front_doubts(solved_only(explore(space, solved_columns, vectorized=True, **goals))) == ()
