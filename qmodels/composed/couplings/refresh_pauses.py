"""Parts that stand still now and then, and jobs of a limited number: one that waits meets no second pause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import expm1

from qmodels.composed.decomposition import PartResponses
from qmodels.systems.composed.program_form import Site


def pause_share(pause: float, between: float) -> float:
    r"""Return how much is waited for pauses, over what arrivals at random would wait.

    ``pause``: how long a part stands still [ns]; ``between``: mean time from one request of a job to its next
    one [ns].

    In a pause each job comes once, and then waits for the rest of it:
    :math:`E[(r - T)^+]` with an exponential T of mean t is, over the :math:`r^2 / 2t` of a Poisson stream of
    the same rate, :math:`2 (x - 1 + e^{-x}) / x^2`, :math:`x = r/t`. Derived here.
    """
    x = pause / between
    return 2 * (x + expm1(-x)) / x**2 if x > 1e-3 else 1 - x / 3


def limited_pauses(
    answers: PartResponses, sites: Sequence[Site], rates: Mapping[str, float], jobs: float
) -> PartResponses:
    """Return what parts answer to jobs of a limited number.

    ``answers``: those to streams; ``sites``: visits of these jobs; ``rates``: at which jobs of each flow
    begin [1/ns]; ``jobs``: how many there are.
    """
    asked = _asked(answers, sites, rates)
    found = dict(answers.responses)
    for site in sites:
        if asked.get(site.part, 0.0) > 0:
            answer = found[site.number]
            less = 1 - pause_share(answer.pause, jobs / asked[site.part])
            found[site.number] = replace(
                answer,
                mean=answer.mean - less * answer.paused,
                last_mean=answer.last_mean - less * answer.paused,
                alone_mean=answer.alone_mean - less * answer.alone_paused,
                alone_last=answer.alone_last - less * answer.alone_paused,
            )
    return replace(answers, responses=found) if asked else answers


def stalled(answers: PartResponses, sites: Sequence[Site], rates: Mapping[str, float], jobs: float) -> float:
    r"""Return the mean wait for pauses in which all of so many jobs wait, by others who come at random.

    Parameters are those of `limited_pauses`. Of a pause r all wait for :math:`D = E[(r - T)^+]`, which one
    who comes at random meets for :math:`D/2` with :math:`D` over the time from pause to pause.
    """
    found = 0.0
    for part, asked in _asked(answers, sites, rates).items():
        known = [answers.responses[site.number] for site in sites if site.part == part]
        for answer in (each for each in known if each.pause > 0):
            x = answer.pause * asked / jobs
            found = max(found, answer.alone_paused * (pause_share(x, 1.0) * x / 2) ** 2)
    return found


def _asked(answers: PartResponses, sites: Sequence[Site], rates: Mapping[str, float]) -> dict[str, float]:
    """Return how often each part is asked that stands still now and then. [1/ns]."""
    asked: dict[str, float] = {}
    for site in sites:
        if site.number in answers.responses and answers.responses[site.number].pause > 0:
            asked[site.part] = asked.get(site.part, 0.0) + rates[site.flow] * site.visits
    return asked
