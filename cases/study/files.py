"""A study on disk: tables, a summary, its picture and a page, and the way back for ``qmodels show``."""

from __future__ import annotations

import json
import platform
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from cases.study.details import Section, full_text, part_sections, trace_summary
from cases.study.goals import choice_tables, choice_word, read_choices, words
from cases.study.screen import Screen, change_rows, study_text, together
from cases.study.study import Part, Runs, Study, how_simulated, our_version, several, several_summary
from cases.tables import (
    ERROR,
    GREEN,
    GREY,
    columns_of,
    csv_text,
    json_text,
    new_figure,
    number,
    plain,
    rows_of,
    save,
)
from optimize.search.pareto import FloatArray, nondominated
from optimize.spaces.space import Space
from qmodels.systems.spec.conditions import unit_of
from qmodels.systems.spec.fields import stable_hash
from qmodels.systems.spec.kind import metric_of
from qmodels.systems.spec.metrics import METRICS, is_relative
from qmodels.systems.spec.text.toml import spec_from_toml, to_toml
from qmodels.systems.spec.whole import naming, whole_directory
from validate.comparison.model import signed_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


PALETTE = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#9d755d", "#e45756", "#72b7b2", "#eeca3b")
"""Colours of the choices of a field."""

COLOURED = "channels"  # the field by whose choices designs are coloured where it varies
TIMES = ("latency", "time", "delay")  # words in the names of metrics that are drawn upwards


@dataclass(frozen=True, kw_only=True)
class View:
    """The two axes of the picture, and the field of the colours."""

    x: str
    y: str
    colour: str = ""

    @classmethod
    def of(cls, part: Part) -> View:
        """Return the view of a workload: a time over the cost, as far as these are objectives."""
        model = part.model
        varied = {name: values for name, values in model.space.choices.items() if len(values) > 1}
        widest = max(varied or model.space.choices, key=lambda name: len(model.space.choices[name]))
        goals = model.objectives
        times = [name for name in goals if any(word in name for word in TIMES)]
        y = (times or [name for name in goals if name != "cost"] or list(goals))[0]
        others = [name for name in goals if name != y]
        x = "cost" if "cost" in others else others[0] if others else widest
        fields = [name for name in varied if name != x]
        fields.sort(key=lambda name: (name.rpartition(".")[2] != COLOURED, -len(varied[name])))
        return cls(x=x, y=y, colour=fields[0] if fields else "")

    def line(self, part: Part) -> Any:
        """Return the rows of the front that no other beats in these two metrics, from left to right."""
        decision, model = part.decision, part.model
        rows = decision.front
        if not rows.size:
            return rows
        up = [name in model.maximize for name in (self.x, self.y)]
        points = np.stack([self.values(part, name)[rows] for name in (self.x, self.y)], axis=1)
        if self.x not in model.objectives:
            return rows[np.argsort(points[:, 0], kind="stable")]
        rows = rows[nondominated(points, maximize=up)]
        return rows[np.argsort(self.values(part, self.x)[rows], kind="stable")]

    def values(self, part: Part, name: str) -> FloatArray:
        """Return a column as numbers: the choices of a field of words by their places."""
        column = part.decision.table[name]
        return column.astype(float) if column.dtype.kind in "iufb" else self.places(part, name)

    @staticmethod
    def places(part: Part, name: str) -> FloatArray:
        """Return the choices of a field by their places."""
        places = {choice: float(k) for k, choice in enumerate(part.model.space.choices[name])}
        return np.array([places[value] for value in part.decision.table[name].tolist()])


def axis_label(part: Part, name: str) -> str:
    """Return a metric or field in words, with its unit."""
    unit = unit_of(part.model.space.base, name)
    return words(name) + ("" if unit == "1" else f" [{unit}]")


def latency_limit(part: Part, view: View) -> float:
    """Return where the upward axis ends: near saturation it would squeeze the front into a corner."""
    values, front = view.values(part, view.y), part.decision.front
    middle = float(np.median(values[front]))
    seen = values[part.decision.simulated]
    largest = float(seen.max(where=np.isfinite(seen), initial=0.0))
    return min(max(2.0 * middle, 1.08 * largest), 5.0 * middle)


def save_plots(study: Study, directory: Path) -> list[Path]:
    """Write the picture of a study into a directory, as PNG and SVG, and return the paths."""
    figure = front_figure(study)
    paths = [directory / "front.png", directory / "front.svg"]
    for path in paths:
        save(figure, path)
        figure.set_layout_engine("none")  # laid out once: the other file is the same picture
    return paths


def front_figure(study: Study) -> Figure:
    """Return all designs, the front, the simulated designs and the star, one picture for each workload."""
    figure, axes = new_figure(8.5, 4.8 * len(study.parts), len(study.parts), 1)
    for part, (one,) in zip(study.parts, axes, strict=True):
        _draw(one, part)
    return figure


def _draw(axes: Axes, part: Part) -> None:
    view, decision = View.of(part), part.decision
    x, y = view.values(part, view.x), view.values(part, view.y)
    shown = decision.feasible & np.isfinite(x) & np.isfinite(y)
    column = decision.table[view.colour] if view.colour else np.zeros(len(x))
    choices = part.model.space.choices[view.colour] if view.colour else (0,)
    for k, choice in enumerate(choices):
        mine = shown & np.array([value == choice for value in column.tolist()], dtype=bool)
        axes.scatter(
            x[mine], y[mine], s=9, color=PALETTE[k % len(PALETTE)], alpha=0.35, lw=0, rasterized=True
        )
        if view.colour:
            text = f"{words(view.colour)} {choice_word(choice)}" if k == 0 else f"{choice_word(choice)}"
            axes.scatter([], [], s=36, color=PALETTE[k % len(PALETTE)], label=text)
    line = view.line(part)
    axes.plot(x[line], y[line], color="black", lw=1.6, label="front")
    rows = decision.simulated
    rows = rows[np.isfinite(x[rows]) & np.isfinite(y[rows])]
    ends = np.array([[decision.interval(name, int(row)) for row in rows] for name in (view.x, view.y)
                     if name in decision.model.table]) if rows.size else np.zeros((0, 0, 3))  # fmt: skip
    if ends.size:
        error = [np.abs(one[:, [0, 2]] - one[:, [1]]).T for one in ends]
        spread = {"xerr": error[0] if len(error) == 2 else None, "yerr": error[-1]}
        spread = {name: one for name, one in spread.items() if one is not None and np.isfinite(one).all()}
        axes.errorbar(x[rows], y[rows], **spread, fmt="o", ms=6, mfc="white", color="black", capsize=3,
                      label="simulated, 90 % interval")  # fmt: skip
    if decision.chosen is not None:
        spot = x[decision.chosen], y[decision.chosen]
        axes.scatter(*spot, marker="*", s=330, color=GREEN, edgecolors="white", zorder=7,
                     label=f"best: design {part.design(decision.chosen)}")  # fmt: skip
    if not decision.front.size:
        axes.set_title(f"{part.name}: no design is feasible", fontsize=14, loc="left")
    else:
        axes.set_title(part.name, fontsize=14, loc="left")
        if view.y in part.model.minimize:
            top = latency_limit(part, view)
            inside = x[shown & (y <= top)]
            margin = 0.04 * float(np.ptp(inside))
            axes.set(ylim=(0, top), xlim=(inside.min() - margin, inside.max() + margin) if margin else None)
    axes.set_xlabel(axis_label(part, view.x), fontsize=13)
    axes.set_ylabel(axis_label(part, view.y), fontsize=13)
    axes.tick_params(labelsize=12, color=GREY)
    source = "dots: model" + (",\ncorrected by simulations" if decision.simulated.size else "")
    axes.legend(fontsize=10, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), title=source)


HERE = Path(__file__).parent


def page(study: Study) -> str:
    """Return the page of a study."""
    data = plain([_picture_data(part) for part in study.parts])
    found = several(study)
    done = [how_simulated(part.decision) for part in study.parts if part.decision.results]
    parts = {
        "title": escape(", ".join(part.name for part in study.parts)),
        "style": _text("page.css"),
        "together": "",
        "workloads": "\n".join(_workload(k, part) for k, part in enumerate(study.parts)),
        "effort": escape(f"A simulation: {done[0]}." if done else "Nothing was simulated."),
        # A script ends at the first "</script", also in a string.
        "data": json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
        "script": _text("page.js"),
    }
    if found is not None:
        best, rows = together(found, [Screen(part=part) for part in study.parts])
        said = f'<p class="best">Best: {escape(best)}</p>{_table(rows)}'
        parts["together"] = _section("One design for all", said)
    return Template(_text("page.html")).substitute(parts)


def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _workload(k: int, part: Part) -> str:
    """Return the answer of one workload, its picture, and what is shown when it is asked for."""
    warnings = Section(title="All warnings", lines=Screen(part=part).data()["warnings"])
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
    screen = Screen(part=part)
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
    names = list(dict.fromkeys((view.x, view.y, *metrics, *space.choices)))
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
        "places": {name: _packed(View.places(part, name)) for name in space.choices},
        "design": _packed(table["design"].astype(float)),
        "feasible": _packed(decision.feasible.astype(float)),
        "front": decision.front.tolist(),
        "chosen": decision.chosen,
        "simulated": rows,
        "intervals": {name: [decision.interval(name, row) for row in rows] for name in names
                      if name in decision.corrected},
    }  # fmt: skip


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


FORMAT = 3
SUMMARY = "study.json"


def save_study(study: Study, out: Path) -> list[Path]:
    """Write a study into a directory and return the paths of its files.

    Each file appears whole or not at all: all are made in a temporary directory and then renamed,
    ``study.json`` last. Files of an earlier study that this one does not have are removed.
    """
    with whole_directory(out, last=SUMMARY) as work:
        texts: dict[str, Callable[[], str]] = {}
        for part in study.parts:
            texts[f"designs-{part.name}.csv"] = lambda part=part: csv_text(design_columns(part))  # type: ignore[misc]
        if any(part.decision.results for part in study.parts):
            texts["simulated.csv"] = lambda: csv_text(columns_of(simulated_rows(study)))
        texts["study.txt"] = lambda: whole_text(study, str(out))
        texts["report.html"] = lambda: page(study)
        for name, make in texts.items():
            with naming(out / name):
                (work / name).write_text(make(), encoding="utf-8")
        names = [*texts, *(path.name for path in save_plots(study, work)), SUMMARY]
        text = json_text({**summary(study), "files": names}, indent=None)
        (work / SUMMARY).write_text(text, encoding="utf-8")
        for stale in _files_of(out):
            if stale not in names:
                (out / stale).unlink(missing_ok=True)
    return [out / name for name in names]


def _files_of(out: Path) -> list[str]:
    """Return the names of the files that an earlier study in the directory says it has."""
    try:
        names = json.loads((out / SUMMARY).read_text(encoding="utf-8"))["files"]
        return [Path(name).name for name in names]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def whole_text(study: Study, where: str) -> str:
    """Return all that a study found."""
    several = [Screen(part=part, study=where).text() for part in study.parts] if len(study.parts) > 1 else []
    return full_text([study_text(study, where), *several], study.parts)


def design_columns(part: Part) -> dict[str, Any]:
    """Return the analytic table of a part, every design a row, with its place in the decision."""
    model, decision = part.model, part.decision
    rows = np.arange(len(model.feasible))
    marks = {"front": model.front, "knee": model.knee, "starred": decision.chosen}
    marks |= {"simulated": decision.simulated, "contradicted": decision.contradicted}
    return {
        **_words(model.table),
        "feasible": model.feasible,
        **{name: np.isin(rows, -1 if which is None else which) for name, which in marks.items()},
    }


def _words(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table whose parts that are choices stand by their words."""
    return {
        name: np.array([choice_word(value) for value in column]) if column.dtype == object else column
        for name, column in table.items()
    }


def front_columns(part: Part) -> dict[str, Any]:
    """Return the rows of the front: of the model, of the metrics that are corrected their best values."""
    return {name: column[part.decision.front] for name, column in _words(part.decision.table).items()}


def fronts_text(study: Study) -> str:
    """Return the front of each workload as CSV; of several the first column says which."""
    if len(study.parts) == 1:
        return csv_text(front_columns(study.parts[0]))
    rows = ({"workload": part.name, **row} for part in study.parts for row in rows_of(front_columns(part)))
    return csv_text(columns_of(rows))


def simulated_rows(study: Study) -> Iterator[dict[str, Any]]:
    """Yield one row per workload, simulated design and metric: analytic beside simulated."""
    for part in study.parts:
        table = part.model.table
        for row, result in sorted(part.decision.results.items()):
            for name, found in result.metrics.items():
                if name not in table:
                    continue
                model, stated = float(table[name][row]), table.get(ERROR + name)
                yield {
                    "workload": part.name,
                    "design": part.design(row),
                    "metric": name,
                    "unit": metric_of(part.model.space.base, name).unit,
                    "analytic": model,
                    "stated_error": "" if stated is None else float(stated[row]) / 100,
                    **{"simulated": found.best, "low": found.low, "high": found.high},
                    "error": float(signed_error(model, found.best, relative=is_relative(name))),
                }


def summary(study: Study) -> dict[str, Any]:
    """Return a study as plain values, for programs and for `load_study`."""
    model, runs = study.parts[0].model, study.runs
    return {
        "format": FORMAT,
        "versions": {"qmodels": our_version(), "python": platform.python_version(), "numpy": np.__version__},
        "objectives": {name: getattr(model, name) for name in ("minimize", "maximize", "subject_to")},
        "simulation": {"packets": runs.packets, "replications": runs.replications, "seed": runs.seed},
        "interrupted": study.interrupted,
        "workloads": [_part_summary(part) for part in study.parts],
        "together": several_summary(study),
    }


def _part_summary(part: Part) -> dict[str, Any]:
    model, decision, base = part.model, part.decision, part.model.space.base
    return {
        "name": part.name,
        "spec": to_toml(base, kind=True),
        "spec_hash": stable_hash(base),
        "space": choice_tables(model.space),
        "designs": model.solved,
        "feasible": model.feasible_designs,
        "distinct": model.distinct,
        "ties": model.duplicates,
        "solve_seconds": part.solve_seconds,
        "trace": trace_summary(getattr(base, "workload", None)),
        "screen": Screen(part=part).data(),
        "knee": part.design(model.knee),
        "front": rows_of(front_columns(part)),
        "excluded": model.excluded,
        "holes": model.holes,
        "closest": part.design(model.closest),
        "simulated": [part.design(row) for row in decision.simulated],
        "contradicted": [part.design(row) for row in decision.contradicted],
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class SavedPart:
    """Data to replay the designs of one workload of a saved study."""

    name: str  # the workload
    space: Space  # the designs
    runs: Runs  # how they were simulated


def load_study(directory: Path) -> list[SavedPart]:
    """Return the parts of the study in a directory, the main one first."""
    path = directory / SUMMARY
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{directory}: holds no study: {SUMMARY} cannot be read: {error.strerror}") from None
    except ValueError:
        raise ValueError(f"{path}: damaged: not valid JSON") from None
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        raise ValueError(f"{path}: not a study of format {FORMAT}")
    try:
        runs = Runs(**saved["simulation"])
        entries = [
            (entry["name"], entry["spec"], entry["spec_hash"], entry["space"]) for entry in saved["workloads"]
        ]
    except (KeyError, TypeError):
        raise ValueError(f"{path}: damaged: incomplete") from None
    parts = []
    for name, text, expected, choices in entries:
        base = spec_from_toml(text)
        if stable_hash(base) != expected:
            raise ValueError(f"{path}: the trace of workload {name!r} has changed since the study was made")
        parts.append(SavedPart(name=name, space=Space(base, read_choices(base, choices)), runs=runs))
    return parts
