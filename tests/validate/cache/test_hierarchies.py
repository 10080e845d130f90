"""Lookups one at a time, of several systems side by side."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from qmodels import CacheLevel, CacheSystem
from qmodels.systems.cache.lines import slice_of
from qmodels.systems.cache.spec import INCLUSIONS
from qmodels.traffic import Zipf
from validate import simulate
from validate.cache.hierarchies import (
    SOURCES,
    draw_core,
    draw_line,
    look_up,
    new_hierarchies,
    request,
    warm_up,
)
from validate.engine.streams import new_streams

LINES = Zipf(entries=3000, exponent=0.8)
SYSTEMS = [
    *(
        CacheSystem(
            popularity=LINES,
            cores=3,
            private=(CacheLevel(lines=8), CacheLevel(lines=40)),
            shared=CacheLevel(lines=500, slices=6, hashing="mixed"),
            inclusion=inclusion,
        )
        for inclusion in INCLUSIONS
    ),
    CacheSystem(popularity=LINES, shared=CacheLevel(lines=300, slices=4, replacement="random")),
    CacheSystem(popularity=Zipf(entries=20_000_000, exponent=1.1), cores=2, private=(CacheLevel(lines=50),)),
]


def hierarchies(*systems, seed=5):
    # Streams are named by the system, so that one alone draws what it draws beside others.
    names = [f"{source} {SYSTEMS.index(system)}" for system in systems for source in SOURCES]
    return new_hierarchies(systems, new_streams(seed=seed, replication=0, sources=names))


def test_systems_side_by_side_answer_as_they_do_alone():
    together = hierarchies(*SYSTEMS)
    rng = np.random.default_rng(1)
    turns = rng.integers(len(SYSTEMS), size=6000)
    answers = {k: [] for k in range(len(SYSTEMS))}
    for k in turns.tolist():
        core, line = draw_core(together, k), draw_line(together, k)
        answers[k].append((core, line, *look_up(together, k, core, line)))
    for k, system in enumerate(SYSTEMS):
        alone = hierarchies(system)
        for core, line, *found in answers[k]:
            assert (draw_core(alone, 0), draw_line(alone, 0)) == (core, line)
            assert list(look_up(alone, 0, core, line)) == found
        assert alone.hits.sum() == len(answers[k]) and np.array_equal(alone.hits[0], together.hits[k])


@pytest.mark.parametrize("system", SYSTEMS[:5])
def test_the_answer_names_the_slice_and_where_the_line_was(system):
    h = hierarchies(system)
    seen = Counter()
    for line in [7, 7, *range(100, 180), 7, *range(180, 800), 7]:
        level, home = look_up(h, 0, 0, line)
        assert home == slice_of(line, slices=system.shared.slices, hashing=system.shared.hashing)
        seen[line, level] += 1
    shared = len(system.private)
    assert seen[7, shared + 1] >= 1 and seen[7, shared] >= 1
    # At once again in the first level; after 80 others only below, if anywhere.
    assert [seen[7, level] for level in range(shared)] == [1, 0][:shared]
    assert h.hits[0].sum() == sum(seen.values())


def test_without_a_shared_level_the_rest_is_in_memory():
    h = hierarchies(SYSTEMS[5])
    assert [look_up(h, 0, 1, 12) for _ in range(2)] == [(2, 0), (0, 0)]
    assert look_up(h, 0, 0, 12) == (2, 0)


@pytest.mark.in_ci(1)
@pytest.mark.parametrize("system", SYSTEMS[:5])
def test_a_warm_system_hits_as_one_that_ran_for_long(system):
    known = simulate(system, requests=400_000, replications=4, confidence=0.999).hit_ratio
    assert known.half_width < 0.01
    ratios = []
    for seed in range(20):
        h = hierarchies(system, seed=seed)
        assert warm_up(h, 0) >= 2 * system.shared.lines
        served, _ = request(h, 0, 2000)
        ratios.append(1 - served[:, -1].sum() / 2000)
    # Neither colder nor warmer: 20 short stretches right after the warm-up.
    error = np.std(ratios, ddof=1) / np.sqrt(len(ratios))
    assert error < 0.01
    assert abs(np.mean(ratios) - known.best) < 3.9 * error + known.half_width
    cold, _ = request(hierarchies(system), 0, 300)
    assert 1 - cold[:, -1].sum() / 300 < known.low - 0.05


def test_warming_up_ends_where_caches_cannot_fill():
    """A private cache of an inclusive system that is as large as its slices never fills."""
    system = CacheSystem(
        popularity=LINES,
        cores=2,
        private=(CacheLevel(lines=100),),
        shared=CacheLevel(lines=100, slices=2),
        inclusion="inclusive",
    )
    h = new_hierarchies([system], new_streams(seed=1, replication=0, sources=SOURCES))
    assert warm_up(h, 0) == 20 * 300
    assert (h.caches["used"][:2] < 100).all()
