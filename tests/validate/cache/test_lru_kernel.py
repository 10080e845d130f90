"""The compiled cache against plain Python: every request, every eviction."""

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmodels.systems.cache.spec import HASHES, INCLUSIONS, feistel, line_of, slice_of
from qmodels.traffic import Zipf
from validate.cache import kernels
from validate.engine.jit import jit
from validate.engine.streams import new_streams

find, insert, take, use = (jit(getattr(kernels, name).py_func) for name in ("find", "insert", "take", "use"))
steps = st.lists(st.tuples(st.sampled_from(["ask", "take"]), st.integers(0, 11)), max_size=120)


@pytest.mark.parametrize("lines", [12, 10**8], ids=["direct index", "hashed index"])
@given(st.integers(1, 8), st.booleans(), steps)
def test_against_an_ordered_dict(lines, capacity, lru, moves):
    rule = kernels.LRU if lru else kernels.FIFO
    caches, slots, table = kernels.new_caches([3, capacity], [0, rule], [1.0, 1.0], lines=lines)
    streams = new_streams(seed=1, replication=0, sources=["x"])
    scale = 1 if lines == 12 else 7_654_321
    held: OrderedDict[int, bool] = OrderedDict()
    for move, number in moves:
        line = number * scale
        slot = find(caches, slots, table, 1, line)
        assert (slot != -1) == (line in held)
        if slot != -1 and move == "take":
            take(caches, slots, table, 1, slot)
            del held[line]
        elif slot != -1:
            use(caches, slots, 1, slot)
            if lru:
                held.move_to_end(line)
        else:
            evicted = held.popitem(last=False)[0] if len(held) == capacity else -1
            assert insert(caches, slots, table, streams, 1, line) == evicted
            held[line] = True
        assert caches[1]["used"] == len(held)
    assert caches[0]["used"] == 0


def test_drawn_lines_follow_the_law_and_the_map():
    """Chi-squared of 2e5 draws over 40 lines, below its 99.9 % point of 39 degrees of freedom."""
    entries, per_line = 200, 5
    half, keys = feistel(entries, 3)
    zipf = Zipf(entries=entries, exponent=0.83, shift=0.5)
    law = kernels.zipf_law(zipf, entries_per_line=per_line, half=half, scattered=True)
    streams = new_streams(seed=2, replication=0, sources=["x"])
    drawn = [kernels.zipf_line(law, np.array(keys), streams, 0) for _ in range(200_000)]
    p = zipf.probabilities()
    where = line_of(
        np.arange(entries), entries=entries, entries_per_line=per_line, assignment="random", seed=3
    )
    expected = np.bincount(where, weights=p) * len(drawn)
    assert ((np.bincount(drawn, minlength=40) - expected) ** 2 / expected).sum() < 72.1


@given(st.integers(0, 10**9), st.integers(0, 5), st.sampled_from(HASHES))
def test_the_kernel_hashes_as_the_spec_does(line, bits, hashing):
    code = HASHES.index(hashing)
    expected = slice_of(line, slices=2**bits, hashing=hashing)
    assert kernels.slice_number(line, 2**bits, code) == expected


def plain_hierarchy(inclusion, cores, private, shared, requests):
    """The definition of a hierarchy, with lists from the newest to the oldest line."""
    own = [[[] for _ in private] for _ in range(cores)]
    llc: list[int] = []
    served = []

    def put(level, lines, line):
        if line in level:
            level.remove(line)
        level.insert(0, line)
        return level.pop() if len(level) > lines else None

    for core, line in requests:
        path = [*zip(own[core], private, strict=True), (llc, shared)]
        hit = next((k for k, (level, _) in enumerate(path) if line in level), len(path))
        served.append(hit)
        if inclusion in ("exclusive", "kept"):
            if hit < len(path) and (inclusion == "exclusive" or hit < len(private)):
                path[hit][0].remove(line)
            elif hit < len(path):
                put(*path[hit], line)
                if hit == 0:
                    continue
            for level, lines in path:
                line = put(level, lines, line)
                if line is None:
                    break
            continue
        if hit < len(path):
            put(*path[hit], line)
        for k in reversed(range(hit)):
            evicted = put(*path[k], line)
            if inclusion == "inclusive" and evicted is not None:
                above = own[core][:k] if k < len(private) else [cache for c in own for cache in c]
                for level in above:
                    if evicted in level:
                        level.remove(evicted)
    return served


@pytest.mark.parametrize("inclusion", INCLUSIONS)
@given(
    st.integers(1, 3),
    st.lists(st.integers(1, 3), max_size=2),
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=80),
)
def test_hierarchies_against_their_definition(inclusion, cores, private, shared, requests):
    requests = [(core % cores, line) for core, line in requests]
    plan = np.zeros(1, dtype=kernels.PLAN)
    plan["cores"], plan["private"], plan["slices"] = cores, len(private), 1
    plan["inclusion"] = INCLUSIONS.index(inclusion)
    sizes = private * cores + [shared]
    caches, slots, table = kernels.new_caches(sizes, [0] * len(sizes), [1.0] * len(sizes), lines=10)
    streams = new_streams(seed=1, replication=0, sources=["x"])
    served = [kernels.access(plan, caches, slots, table, streams, core, line) for core, line in requests]
    assert served == plain_hierarchy(inclusion, cores, private, shared, requests)
