"""A study as one self-contained HTML page: the screen as tables, one picture, the rest on request."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from cases.study.details import Section
from cases.study.goals import choice_word, words
from cases.study.plots import PALETTE, View, axis_label, latency_limit
from cases.study.screen import change_rows, screen_of, together
from cases.study.several import Several, several
from cases.study.simulating import how_simulated
from cases.study.stream import part_sections
from cases.study.study import Part, Study
from cases.tables import number
from optimize.search.pareto import FloatArray
from qmodels.systems.spec.metrics import METRICS

HERE = Path(__file__).parent


def page(study: Study) -> str:
    """Return the page of a study."""
    data = [_picture_data(part) for part in study.parts]
    found = several(study)
    done = [how_simulated(part.decision) for part in study.parts if part.decision.results]
    parts = {
        "title": escape(", ".join(part.name for part in study.parts)),
        "style": _text("page.css"),
        "together": "" if found is None else _together(found, study),
        "workloads": "\n".join(_workload(k, part) for k, part in enumerate(study.parts)),
        "effort": escape(f"A simulation: {done[0]}." if done else "Nothing was simulated."),
        # A script ends at the first "</script", also in a string.
        "data": json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
        "script": _text("page.js"),
    }
    return Template(_text("page.html")).substitute(parts)


def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _together(found: Several, study: Study) -> str:
    best, rows = together(found, [screen_of(part) for part in study.parts])
    return _section("One design for all", f'<p class="best">Best: {escape(best)}</p>{_table(rows)}')


def _workload(k: int, part: Part) -> str:
    """Return the answer of one workload, its picture, and what is shown when it is asked for."""
    warnings = Section(title="All warnings", lines=screen_of(part).data()["warnings"])
    asked = "".join(map(_details, [*([warnings] if len(warnings.lines) > 1 else []), *part_sections(part)]))
    axes = "".join(
        f'<label>{word} <select id="{axis}-{k}"></select></label>'
        for axis, word in (("x", "Across"), ("y", "Up"))
    )
    return (
        f"{_section(part.name, _answer(part))}\n"
        f'<figure id="picture-{k}" tabindex="0" aria-label="Designs of {escape(part.name)}; arrow keys step '
        'through the front"></figure>\n'
        f'<p class="shown" id="shown-{k}" role="status"></p>\n'
        f'<details><summary>Other axes</summary><p class="controls">{axes}</p></details>\n{asked}'
    )


def _answer(part: Part) -> str:
    """Return the first screen as HTML."""
    screen = screen_of(part)
    found = screen.data()
    lines = [
        ("preliminary", f"Preliminary: {why}. Settled by {settles}.") for why, settles in found["preliminary"]
    ]
    if found["best"] is None:
        said = "".join(f"<p><b>{head}</b> {escape(what)}</p>" for head, what in screen.nothing(found))
        return _lines(lines) + said
    best = found["best"]
    fields = ", ".join(f"{words(name)} {choice_word(value)}" for name, value in best["fields"].items())
    after = [("", screen.load_words(found)), ("", screen.sure(found)), ("", f"Front: {screen.front(found)}")]
    after += [("warning", f"warning: {one}") for one in found["warnings"][:1]]
    changes = change_rows(found["changes"]) if found["changes"] else []
    return (
        _lines(lines)
        + f'<p class="best">Best: design {best["design"]} ({escape(fields)})</p>'
        + _table(screen.value_rows(found))
        + (_table(changes) if changes else "")
        + _lines(after)
    )


def _lines(lines: Iterable[tuple[str, str]]) -> str:
    return "".join(f'<p class="{kind}">{escape(text)}</p>' for kind, text in lines if text)


def _section(title: str, inside: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{inside}</section>"


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells, the first of them headings."""
    head, *body = [[escape(str(cell)) for cell in row] for row in rows]
    first = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    rest = "".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>'
        for row in body
    )
    return f'<div class="scroll"><table><thead><tr>{first}</tr></thead><tbody>{rest}</tbody></table></div>'


def _details(section: Section) -> str:
    """Return a section that is closed until it is asked for."""
    table = [section.headings, *([number(value) for value in row] for row in section.rows)]
    inside = _lines(("", line) for line in section.lines) + (_table(table) if section.rows else "")
    return f"<details><summary>{escape(section.title)}</summary>{inside}</details>\n"


def _picture_data(part: Part) -> dict[str, Any]:
    """Return the designs of a workload: fields and metrics, each best value in 24 bits; and their marks."""
    decision, view = part.decision, View.of(part)
    table, space, rows = decision.table, part.model.space, decision.simulated.tolist()
    metrics = [name for name in (*part.model.objectives, *table) if name in METRICS]
    names = [*dict.fromkeys((view.x, view.y, *metrics)), *(set(space.choices) - {view.x, view.y})]
    return {
        "name": part.name,
        "axes": {name: axis_label(part, name) for name in names},
        "x": view.x,
        "y": view.y,
        "top": latency_limit(part, view) if view.y in part.model.minimize and decision.front.size else None,
        "better": {name: "up" if name in part.model.maximize else "down" for name in part.model.objectives},
        "fields": {name: [choice_word(one) for one in values] for name, values in space.choices.items()
                   if len(values) > 1},
        "colour": view.colour,
        "palette": PALETTE,
        "count": len(decision.feasible),
        "columns": {name: _packed(view.values(part, name)) for name in names},
        "places": {name: _packed(_places(table[name], space.choices[name])) for name in space.choices},
        "design": _packed(table["design"].astype(float)),
        "feasible": _packed(decision.feasible.astype(float)),
        "front": decision.front.tolist(),
        "chosen": decision.chosen,
        "simulated": rows,
        "intervals": {name: [_finite(decision.interval(name, row)) for row in rows] for name in names
                      if name in decision.corrected},
    }  # fmt: skip


def _finite(values: Iterable[float]) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values]


def _places(column: Any, choices: Sequence[Any]) -> FloatArray:
    places = {choice: float(k) for k, choice in enumerate(choices)}
    return np.array([places[value] for value in column.tolist()])


def _packed(values: FloatArray) -> str:
    """Return a column as text: whole numbers below 256 in a byte each, others as the upper bytes of a float.

    Real numbers are rounded to the upper three bytes of a 32-bit float: to 1.6e-5 of the value.
    """
    if np.all((values == np.floor(values)) & (values >= 0) & (values < 256)):
        return "1" + b64encode(values.astype(np.uint8).tobytes()).decode()
    if np.all((values == np.floor(values)) & (np.abs(values) < 2**31)):
        return "4" + b64encode(values.astype("<f8").astype("<i4").tobytes()).decode()
    bits = values.astype("<f4").view("<u4") + np.uint32(0x80)
    return "3" + b64encode(bits.view(np.uint8).reshape(-1, 4)[:, 1:].tobytes()).decode()
