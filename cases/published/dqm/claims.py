"""What the data-queueing paper claims, beside what our simulation and the model find."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cases.published.dqm.explore import Techniques
from cases.published.dqm.specs import published
from cases.published.dqm.tables import Cell
from cases.tables import text_table


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One claim.

    Parameters
    ----------
    text : str
        What is claimed, with its unit.
    published : float
        The paper's number.
    model : float or None
        The model's, None where it was not asked.
    simulated : float
        The simulation's.
    """

    text: str
    published: float
    model: float | None
    simulated: float


def check_claims(cells: Sequence[Cell], techniques: Techniques | None) -> list[Claim]:
    """Return the claims of the paper's section 6."""
    known = {(c.table, c.column, c.trials, c.small, c.vms1_size): c for c in cells}
    whole = 4_194_304
    said = published()["claims"]

    def saved(after: list[Cell], before: Cell) -> tuple[float, float]:
        """Return the largest share saved [percent], simulated and by the model."""
        return (
            max(_saved(one.simulated, before.simulated) for one in after),
            max(_saved(one.model, before.model) for one in after),
        )

    def first(column: str, trials: int) -> Cell:
        return known["table1", column, trials, 0, whole]

    def last(column: str) -> tuple[list[Cell], Cell]:
        rows = [cell for cell in cells if cell.table == "table4" and cell.column == column]
        return rows[:-1], rows[-1]

    three, five = first("write_with", 3), first("write_with", 5)
    pages = [saved([first("write_with", t)], first("write_wo", t)) for t in range(1, 6)]
    overheads, conventional = last("overhead")
    claims: list[tuple[str, float, float, float | None]] = [
        ("write conflicts avoided by 2 trials, %", said["write_saved_at_2"],
         *saved([first("write_with", 2)], first("write_with", 1))),
        ("read conflicts avoided by 2 trials, %", said["read_saved_at_2"],
         *saved([first("read_with", 2)], first("read_with", 1))),
        ("write conflicts avoided by 5 trials of those left by 3, %",
         _saved(five.published, three.published), *saved([five], three)),
        ("the same in points of all writes", three.published - five.published,
         three.simulated - five.simulated, three.model - five.model),
        ("write conflicts avoided by page control, at most, %", said["page_control_saves"],
         max(one for one, _ in pages), max(one for _, one in pages)),
        ("write conflicts avoided by an optimised technique, at most, %", said["write_saved"],
         *saved(*last("write_with"))),
        ("read conflicts avoided by an optimised technique, at most, %", said["read_saved"],
         *saved(*last("read_with"))),
        ("worst-case overhead of the conventional technique, cycles", said["overhead_conventional"],
         conventional.simulated, conventional.model),
        ("worst-case overhead of the optimised techniques, cycles", said["overhead_optimised"],
         sum(one.simulated for one in overheads) / len(overheads),
         sum(one.model for one in overheads) / len(overheads)),
    ]  # fmt: skip
    if techniques is not None:
        claims += [
            ("grid points explored", said["techniques"], len(techniques.exhaustive.table["design"]), None),
            ("techniques on the Pareto curve (five objectives)", said["pareto"],
             len(techniques.exhaustive.front), None),
            ("the same for all failures together and both worst cases", said["pareto"],
             techniques.overall.size, None),
        ]  # fmt: skip
    return [Claim(text=t, published=p, model=m, simulated=float(s)) for t, p, s, m in claims]


def _saved(after: float, before: float) -> float:
    """Return the share saved in percent; of nothing nothing is saved."""
    return 100 * (1 - after / before) if before else 0.0


def claims_text(claims: Iterable[Claim]) -> str:
    """Return the claims as a table."""
    rows = [
        [
            claim.text,
            f"{claim.published:.3g}",
            "-" if claim.model is None else f"{claim.model:.3g}",
            f"{claim.simulated:.3g}",
        ]
        for claim in claims
    ]
    return "Claims\n" + text_table(["claim", "published", "model", "simulated"], rows)
