"""Free lists: trials of blocks on busy banks, jobs that are lost for want of blocks or places."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from qmodels.checks import FloatArray
from qmodels.composed.decomposition import Decomposition, PartResponses
from qmodels.composed.moments import moments_of
from qmodels.composed.parts import lost_jobs, trial_law
from qmodels.systems.composed.program_form import ProgramForm
from qmodels.systems.composed.steps import Allocate, Read, Write
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


def trials_of(
    system: System, form: ProgramForm, rates: Mapping[str, float], answers: PartResponses
) -> dict[int, FloatArray]:
    """Return for each allocation how many blocks are rejected before one is taken.

    ``rates``: jobs of each flow that begin [1/ns]; ``answers``: what its parts answer.

    A bank is busy while an access to it is under way: with Poisson numbers there, with the probability
    :math:`1 - e^{-L}` for L accesses a bank in the mean. The next block of a list is on another bank, as
    likely to be busy. Rows that stay open are left out, and so is what the choice spares the memory.
    """
    found = {}
    for site in form.sites:
        if isinstance(site.step, Allocate):
            memory = _memory(form, site.flow)
            if memory is not None:
                busy = 1.0 - float(np.exp(-_accesses_a_bank(system, form, rates, answers, memory)))
                found[site.number] = trial_law(system.parts[site.part], busy=busy)
    return found


def _memory(form: ProgramForm, flow: str) -> str | None:
    """Return the memory that a flow accesses with allocated addresses."""
    for site in form.sites:
        if site.flow == flow and isinstance(site.step, Read | Write) and site.step.addresses == "allocated":
            return site.part
    return None


def _accesses_a_bank(
    system: System, form: ProgramForm, rates: Mapping[str, float], answers: PartResponses, memory: str
) -> float:
    geometry = system.parts[memory].geometry
    banks = float(geometry.channels * geometry.channel_banks)
    under_way = 0.0
    for site in form.sites:
        answer = answers.responses.get(site.number)
        if site.part == memory and answer is not None and np.isfinite(answer.mean):
            under_way += rates[site.flow] * site.visits * moments_of(site.batch)[0] * answer.mean
    return under_way / banks
