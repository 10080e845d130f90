"""Fits of the wormhole model: waits, priorities, bursts, quantiles, and rings that jam."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from cases.fits.data import FOLDER, reference
from cases.fits.fit import Fit, Problem
from qmodels.checks import FloatArray
from qmodels.noc import collapse, delay_law, source_queue, waits
from qmodels.noc.collapse import RingLaw, find_rings
from qmodels.noc.error_map import packets_of
from qmodels.noc.noc_answer import Curve
from qmodels.noc.solve_noc import solve_noc
from qmodels.noc.waits import find_waits, saturation_load
from qmodels.systems.noc.spec import Noc

USUAL_ERROR = {0.1: 0.0015, 0.3: 0.002, 0.5: 0.005, 0.7: 0.012, 0.85: 0.045, 0.95: 0.2}
"""Size of the errors by part of the saturation rate, of the model: each class counts alike."""
UNSTABLE = 0.5
"""Error where the model finds no steady state."""


def finite(errors: FloatArray) -> FloatArray:
    """Return errors with a size where the model finds no steady state."""
    return np.where(np.isfinite(errors), errors, UNSTABLE)


def solver(noc: Noc) -> Callable[[], Any]:
    """Return a function that solves a network anew; what does not depend on constants is done once."""
    first = solve_noc(noc)
    loads, turns = first.waits.loads, first.waits.turns
    return lambda: Curve(noc, find_waits(turns, loads))


def latencies() -> Problem:
    """Latencies of BookSim2, of our simulator, and of long rings: relative errors."""
    made = reference("booksim_latency")
    rows = [
        row
        for row in chain(made.read(made.BOOKSIM_FILE), made.read(made.FLIT_FILE), made.long_rings())
        if np.isfinite(row[1]["packet_latency"])
    ]
    settings = list(dict.fromkeys(setting for setting, _ in rows))
    by = [[row for one, row in rows if one == setting] for setting in settings]
    solve = [
        solver(setting.noc(np.array([row["injection_rate"] for row in mine])))
        for setting, mine in zip(settings, by, strict=True)
    ]
    truth = np.array([row["packet_latency"] for mine in by for row in mine])
    return Problem(
        errors=lambda: finite(np.concatenate([np.ravel(one().packet_latency) for one in solve]) / truth - 1),
        groups=np.repeat(np.arange(len(by)), [len(mine) for mine in by]),
        weights=np.array([1 / USUAL_ERROR[row["load"]] for mine in by for row in mine]),
    )


def kept_rows(kind: str, of: str) -> list[tuple[Any, dict[str, str]]]:
    """Return the rows of noc_metrics.csv about some packets; up to 85 % of the saturation rate."""
    made = reference("noc_metrics")
    return [
        (case, row)
        for case, row in made.read()
        if packets_of(case.noc()) == kind and row["packets_of"] == of and row["load"] != "0.95"
    ]


def problem_of(
    rows: list[tuple[Any, dict[str, str]]], errors: Callable[[], FloatArray], each: int = 1
) -> Problem:
    """Return the problem of rows with some errors each; a case is a group, those to hold out are."""
    cases = {case: number for number, case in enumerate(dict.fromkeys(case for case, _ in rows))}
    groups = np.repeat([cases[case] for case, _ in rows], each)
    return Problem(
        errors=errors, groups=groups, used=np.repeat([c.part != "held out" for c, _ in rows], each)
    )


def means(kind: str, packets_of: str, latency: Callable[[Curve], FloatArray]) -> Problem:
    """Return the relative errors of mean latencies."""
    rows = kept_rows(kind, packets_of)
    cases = list(dict.fromkeys(case for case, _ in rows))
    rows = [one for case in cases for one in rows if one[0] == case]
    rates = [np.array([float(row["injection_rate"]) for one, row in rows if one == case]) for case in cases]
    solve = [solver(case.noc(rate)) for case, rate in zip(cases, rates, strict=True)]
    truth = np.array([float(row["packet_latency"]) for _, row in rows])
    return problem_of(rows, lambda: finite(np.concatenate([latency(one()) for one in solve]) / truth - 1))


def all_packets(answer: Curve) -> FloatArray:
    """Return the mean latency for each rate."""
    return np.ravel(answer.packet_latency)


def urgent_packets(answer: Curve) -> FloatArray:
    """Return the mean latency of the first class of packets for each rate."""
    turns = answer.waits.turns
    hops = np.add.reduceat(answer.waits.at_hop, turns.table.path_start[:-1], axis=1)
    part = np.where(turns.table.packet_class == 0, turns.flow_rate, 0.0)
    return np.asarray((turns.zero_load + answer.source_delay + hops) @ part / part.sum())


def quantiles() -> Problem:
    """Relative errors of the 95th and the 99th percentile; every fourth row, for time."""
    rows = kept_rows("alike", "all")[::4]
    found = [(solve_noc(case.noc(float(row["injection_rate"]))), row) for case, row in rows]
    rows = [one for one, (answer, _) in zip(rows, found, strict=True) if answer.stable]
    found = [one for one in found if one[0].stable]

    def errors() -> FloatArray:
        return np.array(
            [
                float(answer.quantile(percent / 100)) / float(row[f"packet_latency_p{percent}"]) - 1
                for answer, row in found
                for percent in (95, 99)
            ]
        )

    return problem_of(rows, errors, each=2)


def rings(jammed: bool) -> Problem:
    """Errors of the logarithm of the rate at which rings collapse, or that they carry when jammed."""
    kept = list(reference("ring_saturation").read())
    turns = [solve_noc(setting.noc()).waits.turns for setting, *_ in kept]
    found = [find_rings(one) for one in turns]
    most = [rate for _, _, rate, _ in kept]
    truth = np.array([congested for *_, congested in kept] if jammed else most)
    if not jammed:
        most = [saturation_load(replace(one, jam=(np.inf, np.inf))) for one in turns]

    def errors() -> FloatArray:
        law: RingLaw = collapse.CONGESTED if jammed else collapse.COLLAPSE
        return np.log(np.minimum(most, [ring.highest(law) for ring in found if ring is not None]) / truth)

    return Problem(
        errors=errors, groups=np.arange(len(kept)), used=np.array([part == "fit" for _, part, *_ in kept])
    )


FITS = (
    Fit(
        name="noc.waits",
        module=waits,
        fields=waits.WormholeLaw._fields[:11],
        data=f"{FOLDER}/booksim_latency.csv, flit_latency.csv, noc_metrics.csv",
        problem=latencies,
        scale=1.0,
        parts=5,
        slow=True,
    ),
    Fit(
        name="noc.priorities",
        named="noc.waits",
        module=waits,
        fields=("preemption", "together"),
        data=f"{FOLDER}/noc_metrics.csv",
        problem=lambda: means("priorities", "urgent", urgent_packets),
        slow=True,
    ),
    Fit(
        name="noc.bursts",
        named="noc.source",
        module=source_queue,
        fields=("blocked",),
        data=f"{FOLDER}/noc_metrics.csv",
        problem=lambda: means("bursts", "all", all_packets),
        slow=True,
    ),
    Fit(
        name="noc.quantiles",
        named="noc.spread",
        module=delay_law,
        attribute="SPREAD",
        fields=("packet", "mean", "together"),
        data=f"{FOLDER}/noc_metrics.csv",
        problem=quantiles,
        scale=0.01,
        parts=5,
        slow=True,
    ),
    *(
        Fit(
            name=f"noc.{name.lower()}",
            module=collapse,
            attribute=name,
            fields=RingLaw._fields,
            data=f"{FOLDER}/ring_saturation.csv",
            problem=lambda jammed=jammed: rings(jammed),  # type: ignore[misc]
            scale=0.05,
        )
        for name, jammed in (("COLLAPSE", False), ("CONGESTED", True))
    ),
)
