"""Visit of a task to a part: it chooses a copy, goes there, is served, and leaves."""

from __future__ import annotations

from validate.composed import state
from validate.composed.state import Core
from validate.composed.strands import charge, enter, go_on, leave, line_up, wake_at
from validate.engine.jit import lean_part
from validate.engine.sampling import draw
from validate.engine.streams import uniform
from validate.network.routes import unlink
from validate.network.service import catch_up, depart, join, rest, serve_next, set_pace, stop
from validate.network.state import COMPLETED, FORKED, NONE, World


@lean_part
def pick(w: World, c: Core, j: int, at: int) -> None:
    """Choose the copy of a part at the place of a strand, or that of its line, or else any."""
    i, strand = c.code[at], c.strands[j]
    p = c.parts[i["part"]]
    if i["size"]:
        strand["copy"] = strand["piece"] % max(p["copies"], 1)
        strand["target"] = c.places[p["places_at"] + strand["copy"]] if p["places_at"] >= 0 else NONE
        return
    copy = c.copy_at[i["part"], strand["place"]] if strand["place"] >= 0 else NONE
    if copy < 0:
        several = max(p["copies"], p["places"])
        copy = int(uniform(w.streams, i["stream"]) * several) if several > 1 else 0
    strand["copy"] = copy
    strand["target"] = c.places[p["places_at"] + copy] if p["places_at"] >= 0 else NONE


@lean_part
def travel(w: World, c: Core, j: int, flits: int) -> bool:
    """Send a strand to its target; return whether it is there."""
    strand, connected = c.strands[j], c.state[0]["connected"]
    if strand["target"] == strand["place"] or max(strand["target"], strand["place"]) >= connected:
        strand["place"] = strand["target"]
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
def operate(w: World, c: Core, j: int, part: int) -> None:
    """Let a strand come to a pointer memory, which serves one operation at a time."""
    server = c.servers[c.parts[part]["first"]]
    enter(w, c, part, j)
    if server["taken"]:
        line_up(w, server, j)
        return
    server["taken"] = 1
    server["busy_sum"] -= w.state[0]["now"]
    c.strands[j]["done"] = NONE
    ask(w, c, j, state.OPERATING, state.OPERATION)


@lean_part
def end_operation(w: World, c: Core, j: int) -> None:
    """Let a strand leave a pointer memory, and the next one begin."""
    strand = c.strands[j]
    i = c.code[strand["at"] - 1]
    part = i["part"]
    server = c.servers[c.parts[part]["first"]]
    leave(w, c, part, j)
    charge(w, c, j, part)
    if not strand["refused"]:
        done = c.operations[2 * c.parts[part]["first"] + (i["op"] == state.FREE)]
        done["served"] += 1
        done["service"] += w.state[0]["now"] - strand["began"]
    if i["stream"] != state.AT_ONCE:
        strand["at"], strand["column"] = i["resume"], c.state[0]["fork_column"]
        w.jobs[j]["tasks"] -= 1
        w.jobs[j]["phase"] = FORKED
    if i["stream"] == state.AT_ONCE or w.jobs[j]["tasks"] == 0:
        go_on(w, c, j)
    first = server["head"]
    if first < 0:
        server["taken"] = 0
        server["busy_sum"] += w.state[0]["now"]
        return
    unlink(w, server, first)
    c.strands[first]["done"] = NONE
    ask(w, c, first, state.OPERATING, state.OPERATION)


@lean_part
def enquire(w: World, c: Core, j: int, part: int) -> None:
    """Note that a part of others is to be asked when a strand will be done."""
    enter(w, c, part, j)
    w.jobs[j]["phase"] = state.ENQUIRING
    c.enquiries[c.state[0]["enquiries"]] = j
    c.state[0]["enquiries"] += 1


@lean_part
def serve(w: World, c: Core, j: int, part: int) -> None:
    """Let a strand arrive at a station; its job is lost if that is full."""
    node = c.parts[part]["first"] + c.strands[j]["copy"]
    n, tally = w.nodes[node], w.tallies[node, w.jobs[j]["job_class"]]
    tally["arrivals"] += 1
    if not w.varied or n["number"] < n["capacity"]:
        w.jobs[j]["step"] = part
        again = c.code[c.strands[j]["at"] - 1]["at"]
        w.jobs[j]["given"] = c.worked[j, part] if again else 0.0
        enter(w, c, part, j)
        join(w, node, j)
    else:
        tally["losses"] += 1
        c.strands[c.strands[j]["root"]]["lost"] = 1


@lean_part
def pass_by(w: World, c: Core, j: int, at: int) -> None:
    """Let a strand visit a station that knows when it will be done, and let time pass after it, at once.

    Everything is in the books when it begins: for systems that are looked at when all has ended.
    """
    i, strand, now = c.code[at], c.strands[j], w.state[0]["now"]
    part, job_class = i["part"], w.jobs[j]["job_class"]
    p = c.parts[part]
    node = p["first"] + (strand["copy"] if p["copies"] > 1 else 0)
    service = i["service"]
    if i["at"] and c.worked[j, part] > 0:
        service = c.worked[j, part]
    elif service < 0:
        service = draw(w.laws, w.numbers, w.streams, w.service[node, job_class])
    if c.worked.shape[1] > 0:
        c.worked[j, part] = service
    done = max(now, c.free_at[node]) + service
    c.free_at[node] = done
    tally = w.tallies[node, job_class]
    tally["serving_sum"] += service
    p["visits"] += 1
    p["time_sum"] += done - now
    p["number_sum"] += done - now
    c.times[j, part] += done - now
    c.times[j, i["column"]] += i["time"]
    strand["since"] = done + i["time"]
    wake_at(w, j, state.PASSING, strand["since"])


@lean_part
def pass_again(w: World, c: Core, j: int) -> bool:
    """Let a strand begin the next round of a loop of which a visit is all; return False if there is none."""
    strand = c.strands[j]
    i = c.code[strand["at"]]
    if i["op"] != state.REPEAT or i["resume"] != strand["at"] - 1 or c.strands[strand["root"]]["lost"]:
        return False
    if c.slots[j, i["at"]] <= 1:
        return False
    c.slots[j, i["at"]] -= 1
    pass_by(w, c, j, i["resume"])
    return True


@lean_part
def finish(w: World, c: Core, j: int) -> None:
    """End a service at a station: the strand goes on, and so does the next one there."""
    job = w.jobs[j]
    node, part = job["node"], job["step"]
    n = w.nodes[node]
    if w.varied and n["shared"] >= 0:
        catch_up(w, node)
    k = job["job_class"]
    stop(w, node, k, j)
    w.tallies[node, k]["completions"] += 1
    n["busy"] -= 1
    if c.worked.shape[1] > 0:
        c.worked[j, part] = job["work"]
    depart(w, node, k, j, COMPLETED)
    leave(w, c, part, j)
    charge(w, c, j, part)
    go_on(w, c, j)
    serve_next(w, node)
    if w.varied:
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
