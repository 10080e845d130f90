"""The copies of a part: which share of each stream goes to which of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from qmodels.checks import FloatArray
from qmodels.composed.streams import Added, PartAnswer, Response, Stream
from qmodels.networks.open.qna import split_scv

Respond = Callable[[tuple[Stream, ...]], PartAnswer]


def copy_shares(nodes: Sequence[int], streams: Sequence[Stream]) -> FloatArray:
    """Return the share of each stream that goes to each copy, shape (copies, streams).

    Jobs use the copy at their own place, or else any. A part that is not placed has one copy.

    >>> stream = Stream(flow="jobs", step=None, rate=1.0, batch=np.eye(2)[1], scv=1.0, write=False, bytes=0,
    ...                 sources=np.array([0.5, 0.5, 0.0]))
    >>> copy_shares((1, 2), (stream,)).ravel()
    array([0.75, 0.25])
    """
    if not nodes:
        return np.ones((1, len(streams)))
    at = np.array(nodes)
    there = np.array([(at == node).sum() for node in at])
    columns = []
    for stream in streams:
        own = stream.sources[at] / there
        columns.append(own + (1 - own.sum()) / at.size)
    return np.array(columns).T


def over_copies(nodes: Sequence[int], streams: tuple[Stream, ...], respond: Respond) -> PartAnswer:
    """Return the answer of a part with copies, from that of one copy to its share.

    Copies that are asked the same are asked once, those that nobody goes to not at all. Times are means over
    the copies, intensities the largest.
    """
    shares = copy_shares(nodes, streams)
    kinds, count = np.unique(shares.round(12), axis=0, return_counts=True)
    asked = kinds.any(axis=1)
    kinds, count = kinds[asked], count[asked]
    answers = []
    for row in kinds:
        here = tuple(
            replace(s, rate=s.rate * part, scv=float(split_scv(s.scv, part)))
            for s, part in zip(streams, row, strict=True)
        )
        answers.append(respond(here))
    if len(answers) == 1:
        return answers[0]
    weights = kinds * count[:, None]
    responses = tuple(
        _mean_response([answer.responses[k] for answer in answers], weights[:, k])
        for k in range(len(streams))
    )
    names = {name for answer in answers for name in answer.intensity}
    return PartAnswer(
        responses=responses,
        intensity={name: max(a.intensity.get(name, 0.0) for a in answers) for name in sorted(names)},
        doubts=tuple(dict.fromkeys(doubt for answer in answers for doubt in answer.doubts)),
    )


def _mean_response(each: Sequence[Response], weight: FloatArray) -> Response:
    used = [(r, w) for r, w in zip(each, weight / weight.sum(), strict=True) if w > 0]

    def mixed(name: str) -> float:
        return float(sum(w * getattr(r, name) for r, w in used))

    def spread(mean: str, variance: str) -> float:
        middle = mixed(mean)
        if not np.isfinite(middle):
            return float("inf")
        return float(sum(w * (getattr(r, variance) + (getattr(r, mean) - middle) ** 2) for r, w in used))

    def added(flow: str) -> Added:
        some = [(r.added[flow], w) for r, w in used if flow in r.added]
        own, others = (float(sum(w * a[k] for a, w in some)) for k in (0, 1))
        return Added(own, others, min(a.decay for a, _ in some))

    return Response(
        mean=mixed("mean"),
        variance=spread("mean", "variance"),
        last_mean=mixed("last_mean"),
        last_variance=spread("last_mean", "last_variance"),
        departure_scv=mixed("departure_scv"),
        lost=mixed("lost"),
        queue=used[0][0].queue,
        added={flow: added(flow) for flow in dict.fromkeys(name for r, _ in used for name in r.added)},
    )
