"""Pools of tokens: who takes them, who waits, who gives them back."""

from __future__ import annotations

from validate.composed.state import QUEUEING, Core
from validate.composed.strands import charge, enter, go_on, leave
from validate.engine.jit import lean_part
from validate.network.state import NONE, World


@lean_part
def acquire(w: World, c: Core, j: int, at: int) -> bool:
    """Let a strand take tokens, or wait for them; return whether it has them."""
    i = c.code[at]
    q = c.parts[i["part"]]["first"] + c.strands[j]["copy"]
    pool = c.pools[q]
    enter(w, c, i["part"], j)
    c.strands[j]["wants"] = i["size"]
    if pool["head"] < 0 and pool["free"] >= i["size"]:
        _take(w, c, i["part"], q, j)
        return True
    w.jobs[j]["phase"], w.jobs[j]["next"] = QUEUEING, NONE
    if pool["head"] < 0:
        pool["head"] = j
    else:
        w.jobs[pool["tail"]]["next"] = j
    pool["tail"] = j
    return False


@lean_part
def _take(w: World, c: Core, part: int, q: int, j: int) -> None:
    pool, tokens = c.pools[q], c.strands[j]["wants"]
    pool["free"] -= tokens
    pool["held_sum"] -= tokens * w.state[0]["now"]
    c.holds[j, q] += tokens
    leave(w, c, part, j)


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
        for copy in range(c.parts[part]["copies"]):
            left -= _give_back(w, c, part, copy, owner, left)
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
    pool["free"] += tokens
    pool["held_sum"] += tokens * w.state[0]["now"]
    while pool["head"] >= 0 and pool["free"] >= c.strands[pool["head"]]["wants"]:
        first = pool["head"]
        pool["head"] = w.jobs[first]["next"]
        _take(w, c, part, q, first)
        charge(w, c, first, part)
        go_on(w, c, first)
    return tokens
