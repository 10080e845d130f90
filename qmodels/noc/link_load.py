"""Which share of the traffic crosses each link, and from how many sides it comes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from qmodels._check import FloatArray
from qmodels.systems.processor_noc import link_names, link_path
from qmodels.systems.topology import Topology


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkLoad:
    """Traffic of one network when every source sends evenly to every target.

    Parameters
    ----------
    names : tuple of str
        The links, see `qmodels.systems.processor_noc.link_names`.
    share : ndarray
        Probability that a NoC packet crosses the link.
    contention : ndarray
        Probability that two packets on the link came by different links: packets that already
        follow one another on the link before cannot meet again (0 for injection links).
    same_source, same_target : ndarray
        Probability that another NoC packet crosses the link as well, given that one did: one of
        the same source to a random target, and one to the same target from a random source.
    mean_links : float
        Links of a path, injection and ejection included.
    """

    names: tuple[str, ...]
    share: FloatArray
    contention: FloatArray
    same_source: FloatArray
    same_target: FloatArray
    mean_links: float


@lru_cache(maxsize=256)
def link_load(topology: Topology, sources: tuple[int, ...], targets: tuple[int, ...]) -> LinkLoad:
    """Return the link loads of even traffic from sources to targets (node numbers).

    Examples
    --------
    >>> load = link_load(Topology(kind="ring", nodes=4), (0, 1), (2,))
    >>> dict(zip(load.names, load.share.tolist()))["1->2"]
    1.0
    """
    names = link_names(topology)
    share = np.zeros(len(names))
    by_input: dict[tuple[int, int], float] = {}
    from_source = np.zeros((len(sources), len(names)))
    to_target = np.zeros((len(targets), len(names)))
    weight = 1.0 / (len(sources) * len(targets))
    for s, source in enumerate(sources):
        for t, target in enumerate(targets):
            path = link_path(topology, source, target)
            from_source[s, list(path)] += 1.0 / len(targets)
            to_target[t, list(path)] += 1.0 / len(sources)
            for before, link in zip((-1, *path), path, strict=False):
                share[link] += weight
                by_input[before, link] = by_input.get((before, link), 0.0) + weight
    together = np.zeros(len(names))
    for (_, link), part in by_input.items():
        together[link] += (part / share[link]) ** 2
    used = np.where(share > 0, share, 1.0)
    return LinkLoad(
        names=names,
        share=share,
        contention=np.where(share > 0, 1.0 - together, 0.0),
        same_source=(from_source**2).mean(axis=0) / used,
        same_target=(to_target**2).mean(axis=0) / used,
        mean_links=float(share.sum()),
    )
