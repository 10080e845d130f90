"""Pools of tokens: who takes them, who waits, who gives them back."""

from __future__ import annotations

from validate.composed.state import QUEUEING, TURNING, Core
from validate.composed.strands import charge, enter, go_on, leave, wake_at
from validate.engine.jit import lean_part
from validate.network.state import NONE, World


@lean_part
def acquire(w: World, c: Core, j: int, at: int) -> bool:
    """Let a strand take tokens, or wait for them; return whether it has them and goes on."""
    i = c.code[at]
    q = c.parts[i["part"]]["first"] + c.strands[j]["copy"]
    pool = c.pools[q]
    enter(w, c, i["part"], j)
    c.strands[j]["wants"], c.strands[j]["use"] = i["size"], i["at"]
    if pool["head"] < 0 and pool["free"] >= i["size"]:
        return not _take(w, c, i["part"], q, j)
    w.jobs[j]["phase"], w.jobs[j]["next"] = QUEUEING, NONE
    if pool["head"] < 0:
        pool["head"] = j
    else:
        w.jobs[pool["tail"]]["next"] = j
    pool["tail"] = j
    return False


@lean_part
def _take(w: World, c: Core, part: int, q: int, j: int) -> bool:
    """Take the tokens that a strand wants; return whether it waits until they have turned."""
    pool, tokens = c.pools[q], c.strands[j]["wants"]
    pool["free"] -= tokens
    pool["held_sum"] -= tokens * w.state[0]["now"]
    c.holds[j, q] += tokens
    leave(w, c, part, j)
    if pool["tokens_at"] < 0 or not _turns(c, q, j):
        return False
    c.parts[part]["turns"] += 1
    if pool["turning"] > 0:
        wake_at(w, j, TURNING, w.state[0]["now"] + pool["turning"])
    return bool(pool["turning"] > 0)


@lean_part
def _turns(c: Core, q: int, j: int) -> bool:
    """Give a strand tokens: of its use, then new ones, then others; return whether one was of another use."""
    pool, use, turns = c.pools[q], c.strands[j]["use"], False
    for _ in range(c.strands[j]["wants"]):
        best, rank = pool["tokens_at"], 0
        for k in range(pool["tokens_at"], pool["tokens_at"] + pool["tokens"]):
            if c.tokens[k]["holder"] == NONE:
                last = c.tokens[k]["use"]
                found = 3 if last == use else (2 if last == NONE else 1)
                if found > rank:
                    best, rank = k, found
        turns = turns or rank == 1
        c.tokens[best]["use"], c.tokens[best]["holder"] = use, j
    return turns


@lean_part
def release(w: World, c: Core, j: int, at: int) -> None:
    """Let a strand give tokens back: those of the pool where it is first, then those it took elsewhere.

    Those that a strand does not have itself are of the one it is a branch of.
    """
    i = c.code[at]
    part, left = i["part"], i["size"]
    owner = j
    while left > 0 and owner >= 0:
        left -= _give_back(w, c, part, c.strands[j]["copy"], owner, left)
        copy = 0
        while left > 0 and copy < c.parts[part]["copies"]:
            left -= _give_back(w, c, part, copy, owner, left)
            copy += 1
        owner = w.jobs[owner]["parent"]


@lean_part
def drop_tokens(w: World, c: Core, j: int) -> None:
    """Give back all tokens of a strand that ends before it has."""
    for part in range(c.parts.size):
        first = c.parts[part]["first"]
        for copy in range(c.parts[part]["copies"] if c.parts[part]["pools"] else 0):
            _give_back(w, c, part, copy, j, c.holds[j, first + copy])


@lean_part
def _give_back(w: World, c: Core, part: int, copy: int, j: int, most: int) -> int:
    q = c.parts[part]["first"] + copy
    tokens = min(c.holds[j, q], most)
    if tokens == 0:
        return 0
    pool = c.pools[q]
    c.holds[j, q] -= tokens
    if pool["tokens_at"] >= 0:
        _put_down(c, q, j, tokens)
    pool["free"] += tokens
    pool["held_sum"] += tokens * w.state[0]["now"]
    while pool["head"] >= 0 and pool["free"] >= c.strands[pool["head"]]["wants"]:
        first = pool["head"]
        pool["head"] = w.jobs[first]["next"]
        charge(w, c, first, part)
        if not _take(w, c, part, q, first):
            go_on(w, c, first)
    return tokens


@lean_part
def _put_down(c: Core, q: int, j: int, tokens: int) -> None:
    """Let a strand have n tokens less of those that have uses."""
    k = c.pools[q]["tokens_at"]
    while tokens > 0:
        if c.tokens[k]["holder"] == j:
            c.tokens[k]["holder"] = NONE
            tokens -= 1
        k += 1
