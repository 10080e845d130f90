"""Execution of each instruction of a program, and of the event that a task has waited for."""

from __future__ import annotations

from validate.composed import state
from validate.composed.blocks import first_block, locate
from validate.composed.memories.banks import come_to_bank, leave_bank
from validate.composed.pools import acquire, drop_tokens, release
from validate.composed.state import Core
from validate.composed.strands import (
    begin,
    charge,
    count_of,
    end,
    enter,
    go_on,
    join_up,
    leave,
    mark,
    split,
    wake_at,
)
from validate.composed.visits import ask, enquire, operate, pass_by, pick, serve, travel
from validate.engine.jit import lean_part
from validate.engine.sampling import draw
from validate.engine.streams import uniform
from validate.network.calendar import drop
from validate.network.state import World


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
