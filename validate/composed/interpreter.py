"""Execution of each instruction of a program, and of the event that a task has waited for."""

from __future__ import annotations

from validate.composed import state
from validate.composed.blocks import first_block, locate
from validate.composed.memories import come_to_bank, leave_bank
from validate.composed.state import TURNING, Core
from validate.composed.strands import (
    ask,
    begin,
    charge,
    count_of,
    end,
    enquire,
    enter,
    go_on,
    join_up,
    leave,
    line_up,
    mark,
    operate,
    pass_by,
    pick,
    serve,
    split,
    travel,
    wake_at,
)
from validate.engine.calendar import drop
from validate.engine.jit import lean_part
from validate.engine.sampling import draw
from validate.engine.streams import uniform
from validate.network.service import unlink
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
    line_up(w, pool, j)
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
        unlink(w, pool, first)
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


@lean_part
def drain(w: World, c: Core) -> bool:
    """Let all strands go on that can now; return False if there is no room for what one may begin."""
    s = c.state[0]
    while w.state[0]["free_jobs"] >= s["most_new_jobs"]:
        if s["ready"] < 0:
            return True
        j = s["ready"]
        s["ready"] = c.strands[j]["next"]
        while step(w, c, j):
            pass
    return False


@lean_part
def step(w: World, c: Core, j: int) -> bool:
    """Do the next instruction of a strand; return whether it goes on at once."""
    strand = c.strands[j]
    at = strand["at"]
    i = c.code[at]
    op = i["op"]
    # An access that is on the score of its bank is finished first.
    if c.strands[strand["root"]]["lost"] and not strand["issued"]:
        if c.varied:
            drop_tokens(w, c, j)
        if strand["blocks"] > 0:
            ask(w, c, j, state.OPERATING, state.GIVING_BACK)
            return False
        op = state.JOIN if w.jobs[j]["parent"] >= 0 else state.END
    if op == state.JOIN and strand["returns"]:
        ask(w, c, j, state.OPERATING, state.GIVING_BACK)
        return False
    strand["at"] = at + 1
    if op == state.END:
        end(w, c, j)
        return False
    if op == state.JOIN:
        join_up(w, c, j)
        return False
    if op == state.FORK or op == state.EACH:
        split(w, c, j, at)
        return False
    if op >= state.FIRST_VISIT:
        return _visit(w, c, j, at)
    _move(w, c, j, at)
    return True


@lean_part
def _visit(w: World, c: Core, j: int, at: int) -> bool:
    """Do an instruction that may take time at a part, or alone; return whether it took none."""
    i, strand = c.code[at], c.strands[j]
    op, part = i["op"], i["part"]
    if op == state.SERVE:
        serve(w, c, j, part)
        return c.strands[strand["root"]]["lost"] > 0
    if c.varied and op == state.PASS:
        pass_by(w, c, j, at)
        return False
    if op == state.TRAVEL:
        return travel(w, c, j, i["size"])
    if c.varied and op == state.ACQUIRE:
        return acquire(w, c, j, at)
    if op == state.LOCATE and strand["issued"]:
        strand["target"] = c.channels[strand["channel"]]["node"]
        return True
    if op == state.LOCATE and not c.parts[part]["scored"]:
        locate(c, j, part, i)
        return True
    if op == state.HOLD:
        wake_at(w, j, state.HOLDING, w.state[0]["now"] + draw(w.laws, w.numbers, w.streams, i["law"]))
    elif op == state.ACCESS:
        enter(w, c, part, j)
        ask(w, c, j, state.ACCESSING, state.MEMORY_ACCESS)
    elif op == state.LOOK:
        ask(w, c, j, state.LOOKING, state.LOOKUP)
    elif op == state.LOCATE:
        ask(w, c, j, state.LOOKING, state.PLACING)
    elif op == state.GIVE:
        ask(w, c, j, state.OPERATING, state.GIVING_BACK)
    elif c.varied and op == state.ENQUIRE:
        enquire(w, c, j, part)
    elif c.varied and op == state.BANK:
        come_to_bank(w, c, j, part)
    else:
        operate(w, c, j, part)
    return False


@lean_part
def _move(w: World, c: Core, j: int, at: int) -> None:
    """Do an instruction that takes no time: most say which one, or which place, is next."""
    i, strand = c.code[at], c.strands[j]
    if i["op"] == state.JUMP:
        strand["at"] = i["at"]
    elif i["op"] == state.CHOOSE:
        u, choice = uniform(w.streams, i["stream"]), i["at"]
        while c.choices[choice]["below"] < u:
            choice += 1
        strand["at"] = c.choices[choice]["at"]
    elif i["op"] == state.COUNT:
        c.slots[j, i["at"]] = count_of(c, j, i["size"])
    elif i["op"] == state.SAVE:
        c.slots[j, i["at"]] = strand["place"]
    elif i["op"] == state.RECALL:
        strand["target"] = c.slots[j, i["at"]]
    elif i["op"] == state.RETURN:
        strand["place"] = c.slots[j, i["at"]]
    elif i["op"] == state.ADDRESS:
        first_block(w, c, j, at)
    elif i["op"] == state.PICK:
        pick(w, c, j, at)
    elif c.varied and i["op"] == state.RELEASE:
        release(w, c, j, at)
    elif i["op"] == state.MARK:
        mark(w, c, j, at)
    elif i["op"] == state.MOVE:
        flow = c.flows[w.jobs[j]["home"]]
        strand["place"] = c.places[flow["places_at"] + int(uniform(w.streams, i["stream"]) * flow["places"])]
    else:
        c.slots[j, i["at"]] -= 1
        if c.slots[j, i["at"]] > 0:
            strand["at"] = i["resume"]


@lean_part
def wake(w: World, c: Core, j: int) -> None:
    """End what a strand has waited for alone: a hold, thinking, tokens that turn, a part."""
    drop(w.heap, w.places, w.classes.size + w.nodes.size + j)
    if w.jobs[j]["phase"] == state.THINKING:
        begin(w, c, j)
    elif w.jobs[j]["phase"] == state.OPERATING:
        ask(w, c, j, state.OPERATING, state.OPERATION)
        return
    elif (
        w.jobs[j]["phase"] == state.ACCESSING
        or w.jobs[j]["phase"] == state.ENQUIRING
        or w.jobs[j]["phase"] == state.BANKING
    ):
        part = c.code[c.strands[j]["at"] - 1]["part"]
        if c.varied and w.jobs[j]["phase"] == state.BANKING:
            leave_bank(w, c, j, part)
        leave(w, c, part, j)
        charge(w, c, j, part)
    elif w.jobs[j]["phase"] == state.TURNING:
        charge(w, c, j, c.code[c.strands[j]["at"] - 1]["part"])
    elif w.jobs[j]["phase"] != state.PASSING:
        charge(w, c, j, c.code[c.strands[j]["at"] - 1]["column"])
    go_on(w, c, j)
