"""What each instruction of a program does, and each event that a strand waits for."""

from __future__ import annotations

from validate.composed import state
from validate.composed.addresses import first_block, locate
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
    split,
    wake_at,
)
from validate.engine.jit import lean_part
from validate.engine.sampling import draw
from validate.engine.streams import uniform
from validate.network.calendar import drop
from validate.network.service import (
    catch_up,
    depart,
    join,
    rest,
    serve_next,
    set_pace,
    stop,
)
from validate.network.state import COMPLETED, NONE, World


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
        drop_tokens(w, c, j)
        if strand["blocks"] > 0:
            ask(w, c, j, state.OPERATING, state.GIVING_BACK)
            return False
        op = state.JOIN if w.jobs[j]["parent"] >= 0 else state.END
    strand["at"] = at + 1
    if op == state.SERVE:
        _serve(w, c, j, i["part"])
        return c.strands[strand["root"]]["lost"] > 0
    if op == state.PICK:
        _pick(w, c, j, at)
    elif op == state.HOLD:
        wake_at(w, j, state.HOLDING, w.state[0]["now"] + draw(w.laws, w.numbers, w.streams, i["law"]))
        return False
    elif op == state.ACQUIRE:
        return acquire(w, c, j, at)
    elif op == state.TRAVEL:
        return _travel(w, c, j, i["size"])
    elif op == state.ACCESS:
        enter(w, c, i["part"], j)
        ask(w, c, j, state.ACCESSING, state.MEMORY_ACCESS)
        return False
    elif op == state.LOOK:
        ask(w, c, j, state.LOOKING, state.LOOKUP)
        return False
    elif op == state.LOCATE and c.parts[i["part"]]["scored"]:
        ask(w, c, j, state.LOOKING, state.PLACING)
        return False
    elif op == state.ALLOCATE or op == state.FREE:
        _operate(w, c, j, i["part"])
        return False
    elif op == state.ENQUIRE:
        _enquire(w, c, j, i["part"])
        return False
    elif op == state.RELEASE:
        release(w, c, j, at)
    elif op == state.END:
        end(w, c, j)
        return False
    elif op == state.JOIN:
        join_up(w, c, j)
        return False
    elif op == state.FORK or op == state.EACH:
        split(w, c, j, at)
        return False
    else:
        _move(w, c, j, at)
    return True


@lean_part
def _move(w: World, c: Core, j: int, at: int) -> None:
    """Do an instruction that only says which one is next."""
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
    elif i["op"] == state.LOCATE:
        locate(c, j, i["part"], i["size"])
    else:
        c.slots[j, i["at"]] -= 1
        if c.slots[j, i["at"]] > 0:
            strand["at"] = i["resume"]


@lean_part
def _pick(w: World, c: Core, j: int, at: int) -> None:
    """Choose the copy of a part at the place of a strand, or else any."""
    i, strand = c.code[at], c.strands[j]
    p = c.parts[i["part"]]
    copy = c.copy_at[i["part"], strand["place"]] if strand["place"] >= 0 else NONE
    if copy < 0:
        several = max(p["copies"], p["places"])
        copy = int(uniform(w.streams, i["stream"]) * several) if several > 1 else 0
    strand["copy"] = copy
    strand["target"] = c.places[p["places_at"] + copy] if p["places_at"] >= 0 else NONE


@lean_part
def _travel(w: World, c: Core, j: int, flits: int) -> bool:
    """Send a strand to its target; return whether it is there."""
    strand = c.strands[j]
    if strand["target"] == strand["place"]:
        return True
    strand["flits"] = flits
    enter(w, c, c.state[0]["interconnect"], j)
    ask(w, c, j, state.TRAVELLING, state.PACKET)
    return False


@lean_part
def arrive(w: World, c: Core, j: int) -> None:
    """Let a strand be where it was sent."""
    part = c.state[0]["interconnect"]
    c.strands[j]["place"] = c.strands[j]["target"]
    leave(w, c, part, j)
    charge(w, c, j, part)
    go_on(w, c, j)


@lean_part
def ask(w: World, c: Core, j: int, phase: int, kind: int) -> None:
    """Write a letter to the kernel of a part."""
    s = c.state[0]
    w.jobs[j]["phase"] = phase
    letter = c.letters[s["letters"]]
    letter["kind"], letter["strand"] = kind, j
    s["letters"] += 1


@lean_part
def _operate(w: World, c: Core, j: int, part: int) -> None:
    """Let a strand come to a pointer memory, which serves one operation at a time."""
    server = c.servers[c.parts[part]["first"]]
    enter(w, c, part, j)
    if server["taken"]:
        w.jobs[j]["phase"], w.jobs[j]["next"] = state.QUEUEING, NONE
        if server["head"] < 0:
            server["head"] = j
        else:
            w.jobs[server["tail"]]["next"] = j
        server["tail"] = j
        return
    server["taken"] = 1
    server["busy_sum"] -= w.state[0]["now"]
    c.strands[j]["done"] = NONE
    ask(w, c, j, state.OPERATING, state.OPERATION)


@lean_part
def end_operation(w: World, c: Core, j: int) -> None:
    """Let a strand leave a pointer memory, and the next one begin."""
    part = c.code[c.strands[j]["at"] - 1]["part"]
    server = c.servers[c.parts[part]["first"]]
    leave(w, c, part, j)
    charge(w, c, j, part)
    go_on(w, c, j)
    first = server["head"]
    if first < 0:
        server["taken"] = 0
        server["busy_sum"] += w.state[0]["now"]
        return
    server["head"] = w.jobs[first]["next"]
    c.strands[first]["done"] = NONE
    ask(w, c, first, state.OPERATING, state.OPERATION)


@lean_part
def _enquire(w: World, c: Core, j: int, part: int) -> None:
    """Note that a part of others is to be asked when a strand will be done."""
    enter(w, c, part, j)
    w.jobs[j]["phase"] = state.ENQUIRING
    c.enquiries[c.state[0]["enquiries"]] = j
    c.state[0]["enquiries"] += 1


@lean_part
def _serve(w: World, c: Core, j: int, part: int) -> None:
    """Let a strand arrive at a station; its job is lost if that is full."""
    node = c.parts[part]["first"] + c.strands[j]["copy"]
    n, tally = w.nodes[node], w.tallies[node, w.jobs[j]["job_class"]]
    tally["arrivals"] += 1
    if n["number"] < n["capacity"]:
        w.jobs[j]["step"] = part
        enter(w, c, part, j)
        join(w, node, j)
    else:
        tally["losses"] += 1
        c.strands[c.strands[j]["root"]]["lost"] = 1


@lean_part
def finish(w: World, c: Core, j: int) -> None:
    """End a service at a station: the strand goes on, and so does the next one there."""
    job = w.jobs[j]
    node, part = job["node"], job["step"]
    n = w.nodes[node]
    if n["shared"] >= 0:
        catch_up(w, node)
    stop(w, node, j)
    w.tallies[node, job["job_class"]]["completions"] += 1
    n["busy"] -= 1
    depart(w, j, COMPLETED)
    leave(w, c, part, j)
    charge(w, c, j, part)
    go_on(w, c, j)
    serve_next(w, node)
    rest(w, node)
    if n["shared"] >= 0:
        set_pace(w, node)


@lean_part
def finish_shared(w: World, c: Core, node: int) -> None:
    """End the service that is over first at a station of its own pace."""
    n = w.nodes[node]
    heap = w.shared[n["shared"]]
    catch_up(w, node)
    n["progress"] = heap[1]["time"]
    finish(w, c, heap[1]["event"])


@lean_part
def wake(w: World, c: Core, j: int) -> None:
    """End what a strand has waited for alone: a hold, thinking, an access to a memory, a part of others."""
    drop(w.heap, w.places, w.classes.size + w.nodes.size + j)
    if w.jobs[j]["phase"] == state.THINKING:
        begin(w, c, j)
    elif w.jobs[j]["phase"] == state.OPERATING:
        ask(w, c, j, state.OPERATING, state.OPERATION)
        return
    elif w.jobs[j]["phase"] == state.ACCESSING or w.jobs[j]["phase"] == state.ENQUIRING:
        part = c.code[c.strands[j]["at"] - 1]["part"]
        leave(w, c, part, j)
        charge(w, c, j, part)
    else:
        charge(w, c, j, c.code[c.strands[j]["at"] - 1]["column"])
    go_on(w, c, j)
