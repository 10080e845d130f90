"""A study on disk: tables, a summary, pictures and a page, and the way back for ``qmodels show``."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cases.study.goals import choice_tables, choice_word, read_choices
from cases.study.packet_processor import ERROR
from cases.study.screen import screen_of, study_text
from cases.study.several import several_summary
from cases.study.simulating import Runs
from cases.study.stream import full_text, trace_summary
from cases.study.study import Part, Study, our_version
from cases.tables import columns_of, csv_text, json_text
from optimize.spaces.space import Space
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.hashing import stable_hash
from qmodels.systems.spec.kind import metric_of
from qmodels.systems.spec.metrics import is_relative
from qmodels.systems.spec.text.toml import spec_from_toml, to_toml
from qmodels.systems.spec.whole import naming, whole_directory
from validate.comparison.model import signed_error

FORMAT = 3
SUMMARY = "study.json"


def save_study(study: Study, out: Path) -> list[Path]:
    """Write a study into a directory and return the paths of its files.

    Each file appears whole or not at all: all are made in a temporary directory and then renamed,
    ``study.json`` last. Files of an earlier study that this one does not have are removed.
    """
    from cases.study.page import page
    from cases.study.plots import save_plots

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
    several = [screen_of(part, where).text() for part in study.parts] if len(study.parts) > 1 else []
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
    decision = part.decision
    return {name: column[decision.front] for name, column in _words(decision.table).items()}


def fronts_text(study: Study) -> str:
    """Return the front of each workload as CSV; of several the first column says which."""
    fronts = [(part.name, front_columns(part)) for part in study.parts]
    if len(fronts) == 1:
        return csv_text(fronts[0][1])
    rows = ({"workload": name, **dict(zip(front, row, strict=True))} for name, front in fronts
            for row in zip(*front.values(), strict=True))  # fmt: skip
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
    front = front_columns(part)
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
        "trace": trace_summary(base.workload) if isinstance(base, PacketProcessor) else None,
        "screen": screen_of(part).data(),
        "knee": part.design(model.knee),
        "front": [{name: column[k] for name, column in front.items()} for k in range(len(decision.front))],
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
