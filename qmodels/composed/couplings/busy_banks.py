"""Free lists and the memory that their blocks lie in: blocks are tried until one is on an idle bank."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from qmodels.checks import FloatArray
from qmodels.composed.decomposition import PartResponses
from qmodels.composed.moments import moments_of
from qmodels.composed.parts import trial_law
from qmodels.systems.composed.program_form import ProgramForm
from qmodels.systems.composed.steps import Allocate, Read, Write
from qmodels.systems.composed.system import System


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
