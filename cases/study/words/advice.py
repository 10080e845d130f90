"""The answer of a study in words, for a terminal, the summary and the page; and what a design is to it."""

from __future__ import annotations

from functools import lru_cache

from cases.study.goals import question_text
from cases.study.packet_processor import solved_columns
from cases.study.parts import Part
from cases.study.words.answer import Claim, claims_of
from cases.study.words.section import Section
from cases.study.words.stream import peak_gbps
from optimize.decisions.decision import Decision
from qmodels.systems.spec.conditions import quantity

SHORT = {
    "interleaving_step": "step",
    "alloc_trial_count": "trials",
    "link_width": "link B",
    "packet_latency": "latency ns",
    "packet_latency_p99": "p99 ns",
    "saturation_data_rate": "saturates Gb/s",
    "energy_per_packet": "energy nJ",
    "cost": "cost mm2",
    "write_conflict_probability": "write conflicts",
}


@lru_cache(maxsize=16)
def answer(part: Part) -> tuple[Claim, ...]:
    """Return the answer of one workload: what the terminal, the summary and the page say."""
    decision = part.decision
    base = decision.model.space.base
    mean = float(base.workload.offered_gbps)
    rate = lambda factor: quantity(base, "data_rate", factor * mean)  # noqa: E731
    claims = claims_of(decision, solved_columns, rate, part.growth)
    return claims + _peak(decision)


def _peak(decision: Decision) -> tuple[Claim, ...]:
    """Return whether the busiest twentieth of a trace offers more than the recommended design sustains."""
    base, row = decision.model.space.base, decision.chosen
    peak = float(peak_gbps(base.workload))
    if row is None or decision.table["saturation_data_rate"][row] >= peak:
        return ()
    most = float(decision.table["saturation_data_rate"][row])
    text = (
        f"The busiest twentieth of the trace offers {quantity(base, 'data_rate', peak)}, more than the "
        f"{quantity(base, 'data_rate', most)} that it sustains."
    )
    return (Claim("how sure", text, {"peak": peak, "sustained": most}),)


def recommendation(part: Part) -> Section:
    """Return the answer of one workload as a section: the first thing to read."""
    return answer_section(part.decision, answer(part), part.name)


def answer_section(decision: Decision, claims: tuple[Claim, ...], name: str) -> Section:
    """Return an answer below what was asked."""
    model = decision.model
    goals = {"minimize": model.minimize, "maximize": model.maximize, "subject_to": model.subject_to}
    word = "recommended" if decision.feasible.any() else "feasible"
    title = f"Recommended for {name}" if decision.chosen is not None else f"No design is {word} for {name}"
    asked = f"asked for: {question_text(model.space.base, goals)}"
    return Section(title=title, lines=[asked, *(claim.text for claim in claims)])


def marks(part: Part, row: int) -> str:
    """Return what a design is to the study: starred, knee of the model, contradicted by its simulation."""
    decision = part.decision
    simulated = bool(decision.table["simulated"][row])
    words = [
        "starred" if row == decision.chosen else "",
        "knee" if row == decision.model.knee else "",
        "contradicted" if simulated and decision.feasible[row] != decision.model.feasible[row] else "",
    ]
    return ", ".join(filter(None, words))
