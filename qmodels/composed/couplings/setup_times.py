"""Tokens that turn from one use to another: how often, by what was done with them before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qmodels.composed.moments import NOTHING, Moments
from qmodels.systems.composed.parts import Tokens
from qmodels.systems.composed.program_form import Site


def setup_times(
    takes: Sequence[Site], pools: dict[str, Tokens], rate_of: Callable[[Site], float]
) -> dict[int, Moments]:
    r"""Return the time that the tokens of each take need to turn, by its number.

    ``takes``: where programs take tokens; ``pools``: those whose tokens turn; ``rate_of``: how often a take
    is done [1/ns].

    A token was last used as any of its pool is, at random: a take turns it with :math:`1 - p`, p being the
    share of the takes of its own use. Where several tokens are free one of its own use is preferred, and
    programs that alternate turn theirs more often than at random: neither is seen.
    """
    found = {}
    for take in takes:
        if take.part in pools:
            beside = [other for other in takes if other.part == take.part]
            total = sum(map(rate_of, beside))
            same = sum(rate_of(other) for other in beside if other.step.use == take.step.use)
            time, share = pools[take.part].turning, 1 - same / total if total > 0 else 0.0
            found[take.number] = (
                Moments(share * time, share * (1 - share) * time**2) if share > 0 else NOTHING
            )
    return found
