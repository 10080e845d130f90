"""Jobs that are lost where there is no place for them, and all that they then do not ask for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from qmodels.composed.decomposition import Decomposition, PartResponses
from qmodels.composed.parts import lost_jobs
from qmodels.systems.composed.program_form import ProgramForm
from qmodels.systems.composed.steps import Allocate
from qmodels.systems.composed.system import System

SMALL = 1e-15


def losses_of(
    system: System,
    form: ProgramForm,
    parts: Decomposition,
    answers: PartResponses,
    times: Mapping[str, float],
) -> dict[int, float]:
    """Return by site the probability that a request, and its job with it, is lost there.

    ``answers``: of parts: stations of finite capacity say how many they lose; ``times``: mean time of the
    program of each flow: blocks are taken to be in use for all of it [ns].
    """
    found = {n: answer.lost for n, answer in answers.responses.items() if answer.lost > SMALL}
    lists = dict.fromkeys(site.part for site in form.sites if isinstance(site.step, Allocate))
    for part in lists:
        sites = [s for s in form.sites if s.part == part and isinstance(s.step, Allocate)]
        streams = [answers.asked[site.number] for site in sites]
        holds = [times[site.flow] for site in sites]
        if np.isfinite(holds).all():
            lost, _ = lost_jobs(system.parts[part], tuple(streams), holds)
            found |= {s.number: p for s, p in zip(sites, lost, strict=True) if p > SMALL}
    return found


def surviving(
    form: ProgramForm, losses: Mapping[int, float], entering: Mapping[str, float]
) -> tuple[dict[int, float], dict[str, float]]:
    """Return the share of the jobs that come as far as each site, and as far as the end of each flow.

    ``entering`` is the share that begins, of flows of which some jobs do not.
    """
    left = {site.flow: entering.get(site.flow, 1.0) for site in form.sites} | dict(entering)
    shares = {}
    for site in form.sites:
        shares[site.number] = left[site.flow]
        left[site.flow] *= 1.0 - min(site.visits, 1.0) * losses.get(site.number, 0.0)
    return shares, left
