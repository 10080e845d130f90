"""How variability passes through programs: from what starts a job to each request that it makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qmodels.composed.plan import Ask, Choice, Copies, Delay, Node, Rounds, Series, Take, Together, Travel
from qmodels.composed.streams import Response


def scvs_of(
    node: Node, scv: float, responses: Mapping[int, Response], raised: Mapping[int, float]
) -> tuple[dict[int, float], float]:
    r"""Return the squared coefficients of variation of a program's streams, and of its end.

    Parameters
    ----------
    node : Node
        The program.
    scv : float
        Of the times between jobs that begin it.
    responses : mapping of int to Response
        What parts answer to its sites, among it the variability of what leaves them.
    raised : mapping of int to float
        By which factor the variability that sites were asked with is above that of the stream itself.

    Notes
    -----
    As in Whitt's network analyzer: what leaves a site arrives at the next; a share p of a stream of SCV
    :math:`c^2` has :math:`p c^2 + 1 - p`; choices that come together again have changed the stream by what
    they changed in their shares of it. Time that passes and the network leave it as it is.

    References
    ----------
    .. [1] W. Whitt, "The queueing network analyzer", Bell System Technical Journal 62(9), 1983.
    """
    found: dict[int, float] = {}
    return found, _walk(node, scv, responses, raised, found)


def _walk(
    node: Any,
    scv: float,
    responses: Mapping[int, Response],
    raised: Mapping[int, float],
    found: dict[int, float],
) -> float:
    match node:
        case Ask():
            number = node.site.number
            found[number] = max(scv, 0.0)
            return responses[number].departure_scv / raised.get(number, 1.0) if number in responses else scv
        case Series():
            for inside in node.nodes:
                scv = _walk(inside, scv, responses, raised, found)
        case Choice():
            change = 0.0
            for share, inside in zip(node.shares, node.nodes, strict=True):
                split = share * scv + 1 - share
                change += share * (_walk(inside, split, responses, raised, found) - split)
            return scv + change
        case Together():
            ends = [_walk(inside, scv, responses, raised, found) for inside in node.nodes]
            return sum(ends) / len(ends)
        case Copies() | Rounds():
            return _walk(node.node, scv, responses, raised, found)
        case Take() | Delay() | Travel() | _:
            pass
    return scv
