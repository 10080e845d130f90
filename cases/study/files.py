"""A study on disk: tables, a summary, plots and a page, and the way back for ``qmodels show``."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from cases.study import PACKETS
from cases.study.check import Runs
from cases.study.parts import Part, Study
from cases.study.tables import design_columns, error_ranges, error_rows, simulated_rows
from cases.study.words.doubts import front_doubts
from cases.study.words.screen import screen_of
from cases.study.words.several import several_summary
from cases.study.words.stream import trace_summary
from cases.tables import columns_of, csv_text, json_text
from optimize.spaces.space import Space
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.hashing import stable_hash
from qmodels.systems.spec.text.toml import from_toml, to_toml
from qmodels.systems.spec.whole import naming, whole_directory

FORMAT = 2
SUMMARY = "study.json"


def save_study(study: Study, out: Path) -> list[Path]:
    """Write a study into a directory and return the paths of its files.

    Each file appears whole or not at all: all are made in a temporary directory and then renamed,
    ``study.json`` last. Files of an earlier study that this one does not have are removed.
    """
    from cases.study.page.page import page
    from cases.study.plots import save_plots
    from cases.study.words.findings import full_text

    with whole_directory(out, last=SUMMARY) as work:
        texts: dict[str, Callable[[], str]] = {}
        for part in study.parts:
            texts[f"designs-{part.name}.csv"] = lambda part=part: csv_text(design_columns(part))  # type: ignore[misc]
        if any(part.check and len(part.check.rows) for part in study.parts):
            texts["simulated.csv"] = lambda: csv_text(columns_of(simulated_rows(study)))
            texts["errors.csv"] = lambda: csv_text(columns_of(error_rows(study)))
        texts["study.txt"] = lambda: full_text(study, str(out))
        texts["report.html"] = lambda: page(study)
        for name, make in texts.items():
            with naming(out / name):
                (work / name).write_text(make(), encoding="utf-8")
        pictures = save_plots(study, work)
        names = [*texts, *(path.name for path in pictures), SUMMARY]
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


def summary(study: Study) -> dict[str, Any]:
    """Return what a program needs to know of a study, and what `load_study` needs to replay a design."""
    return {
        "format": FORMAT,
        "versions": {"qmodels": our_version(), "python": platform.python_version(), "numpy": np.__version__},
        "objectives": _goals(study),
        "simulation": {
            "packets": PACKETS if study.runs.packets is None else study.runs.packets,
            "replications": study.runs.replications,
            "seed": study.runs.seed,
        },
        "interrupted": study.interrupted,
        "workloads": [_part_summary(part) for part in study.parts],
        "together": several_summary(study),
    }


def _goals(study: Study) -> dict[str, Any]:
    model = study.parts[0].decision.model
    return {"minimize": model.minimize, "maximize": model.maximize, "subject_to": model.subject_to}


def _part_summary(part: Part) -> dict[str, Any]:
    analysis, check = part.analysis, part.check
    exploration = analysis.exploration
    table = exploration.table

    def designs(rows: Any) -> list[dict[str, Any]]:
        return [{name: column[row] for name, column in table.items()} for row in rows]

    return {
        "name": part.name,
        "spec": to_toml(exploration.space.base),
        "spec_hash": stable_hash(exploration.space.base),
        "space": exploration.space.choices,
        "designs": len(table["design"]),
        "saturated": int((~table["stable"]).sum()),
        "solve_seconds": analysis.seconds,
        "trace": trace_summary(exploration.space.base.workload),
        "screen": screen_of(part).data(),
        "doubts": front_doubts(part.decision),
        "star": {
            "design": None if part.star.row is None else int(table["design"][part.star.row]),
            "basis": part.star.basis,
            "against_knee": part.star.against_knee,
            "contradicted": part.star.contradicted,
        },
        "knee": None if exploration.knee is None else int(table["design"][exploration.knee]),
        "front": designs(exploration.front),
        "excluded": exploration.excluded,
        "holes": exploration.holes,
        "closest": None if exploration.closest is None else int(table["design"][exploration.closest]),
        "simulated": None if check is None else check.simulated.table["design"],
        "disputed": None if check is None else check.disputed,
        "errors": None
        if check is None
        else {region: {error.metric: error for error in errors} for region, errors in error_ranges(check)},
    }


def our_version() -> str:
    """Return the version of qmodels."""
    try:
        return version("qmodels-toolkit")
    except PackageNotFoundError:  # a source tree that was not installed
        return "unknown"


@dataclass(frozen=True, kw_only=True, eq=False)
class SavedPart:
    """What is needed to replay the designs of one workload of a saved study."""

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
        base = from_toml(text, PacketProcessor)
        if stable_hash(base) != expected:
            raise ValueError(f"{path}: the trace of workload {name!r} has changed since the study was made")
        parts.append(SavedPart(name=name, space=Space(base, choices), runs=runs))
    return parts
