"""Strands: how they begin, go on, wait for each other and end, and where their time goes."""

from __future__ import annotations

from typing import Any

from validate.composed import state
from validate.composed.state import Core
from validate.engine.calendar import EARLY, put
from validate.engine.jit import lean_part
from validate.engine.sampling import draw
from validate.engine.streams import uniform
from validate.network.service import (
    catch_up,
    count_time,
    depart,
    free_job,
    join,
    new_job,
    push_back,
    rest,
    serve_next,
    set_pace,
    stop,
    unlink,
)
from validate.network.state import COMPLETED, FORKED, NONE, World


@lean_part
def go_on(w: World, c: Core, j: int) -> None:
    """Let a strand go on now, after those that already do."""
    s = c.state[0]
    w.jobs[j]["phase"] = state.READY
    c.strands[j]["next"] = NONE
    if s["ready"] < 0:
        s["ready"] = j
    else:
        c.strands[s["last_ready"]]["next"] = j
    s["last_ready"] = j


@lean_part
def line_up(w: World, line: Any, j: int) -> None:
    """Let a strand wait behind those that do, in what has a first and a last of them."""
    w.jobs[j]["phase"] = state.QUEUEING
    push_back(w, line, j)


@lean_part
def charge(w: World, c: Core, j: int, column: int) -> None:
    """Count the time of a strand since it was last counted."""
    now = w.state[0]["now"]
    c.times[j, column] += now - c.strands[j]["since"]
    c.strands[j]["since"] = now


@lean_part
def wake_at(w: World, j: int, phase: int, time: float) -> None:
    """Let the event of a strand happen at a time."""
    w.jobs[j]["phase"] = phase
    put(w.heap, w.places, w.classes.size + w.nodes.size + j, time, EARLY)


@lean_part
def enter(w: World, c: Core, part: int, j: int) -> None:
    """Count the beginning of a visit to a part."""
    p, now = c.parts[part], w.state[0]["now"]
    c.strands[j]["asked"] = now
    p["number"] += 1
    p["number_sum"] -= now


@lean_part
def leave(w: World, c: Core, part: int, j: int) -> None:
    """Count the end of a visit to a part."""
    p, now = c.parts[part], w.state[0]["now"]
    p["visits"] += 1
    p["time_sum"] += now - c.strands[j]["asked"]
    p["number"] -= 1
    p["number_sum"] += now


@lean_part
def be_born(w: World, c: Core, f: int, home: int) -> None:
    """Let a job of a flow come in; if the window is full it is lost, or waits outside."""
    flow = c.flows[f]
    if flow["loses"] and flow["inside"] >= flow["window"]:
        flow["born"] += 1
        flow["lost"] += 1
        c.state[0]["born"] += 1
        w.state[0]["ended"] += 1
        return
    j = new_job(w)
    job = w.jobs[j]
    job["job_class"] = job["home"] = f
    c.strands[j]["home"], c.strands[j]["round"] = home, 0
    begin(w, c, j)
    if flow["window"] > 0 and flow["inside"] >= flow["window"]:
        line_up(w, flow, j)
    else:
        flow["inside"] += 1
        go_on(w, c, j)


@lean_part
def begin(w: World, c: Core, j: int) -> None:
    """Put a job at the beginning of its program."""
    strand, flow, now = c.strands[j], c.flows[w.jobs[j]["home"]], w.state[0]["now"]
    w.jobs[j]["entered"] = now
    strand["since"] = now
    strand["place"] = c.places[flow["places_at"] + strand["home"]] if strand["home"] >= 0 else NONE
    strand["at"], strand["root"], strand["lost"] = flow["entry"], j, 0
    c.worked[j, :] = 0.0
    strand["marked"], strand["returns"], strand["returned"] = now, 0, 0
    if flow["sizes"] >= 0:
        strand["bytes"] = int(draw(w.laws, w.numbers, w.streams, flow["sizes"]))
        strand["segments"] = -(-strand["bytes"] // flow["segment_bytes"])
    c.times[j, :] = 0.0
    flow["born"] += 1
    c.state[0]["born"] += 1
    flow["number"] += 1
    flow["number_sum"] -= now


@lean_part
def end(w: World, c: Core, j: int) -> None:
    """End a job; one of a closed flow begins again, the first of those outside a window comes in."""
    f = w.jobs[j]["home"]
    flow, now = c.flows[f], w.state[0]["now"]
    flow["number"] -= 1
    flow["number_sum"] += now
    if c.strands[j]["lost"]:
        flow["lost"] += 1
        flow["lost_segments"] += c.strands[j]["segments"]
    else:
        uncounted = c.times[j, c.state[0]["fork_column"] + state.UNCOUNTED_TIME]
        latency = max(now - w.jobs[j]["entered"] - uncounted, 0.0)
        flow["ended"] += 1
        flow["bytes"] += c.strands[j]["bytes"]
        flow["segments"] += c.strands[j]["segments"]
        flow["last_end"] = now
        flow["latency_sum"] += latency
        flow["uncounted_sum"] += uncounted
        count_time(w, 1 + f, latency)
        for column in range(c.times.shape[1]):
            c.flow_times[f, column] += c.times[j, column]
    w.state[0]["ended"] += 1
    c.strands[j]["round"] += 1
    if flow["population"] > 0 and c.strands[j]["round"] != flow["rounds"]:
        # Also without a pause by an event, so that rounds that take no time come to an end.
        pause = draw(w.laws, w.numbers, w.streams, flow["law"]) if flow["law"] >= 0 else 0.0
        wake_at(w, j, state.THINKING, now + pause)
        return
    free_job(w, j)
    waiting = flow["head"]  # none of a closed flow
    if waiting < 0:
        flow["inside"] -= 1
    else:
        unlink(w, flow, waiting)
        charge(w, c, waiting, c.state[0]["fork_column"] + state.OUTSIDE_TIME)
        go_on(w, c, waiting)


@lean_part
def count_of(c: Core, j: int, size: int) -> int:
    """Return a number of rounds or branches."""
    return c.strands[c.strands[j]["root"]]["segments"] if size == state.BY_SEGMENTS else size


@lean_part
def split(w: World, c: Core, j: int, at: int) -> None:
    """Begin the branches of a fork; its strand waits for the last of them."""
    i = c.code[at]
    several = i["at"] >= 0
    number = i["size"] if several else count_of(c, j, i["size"])
    strand = c.strands[j]
    w.jobs[j]["phase"], w.jobs[j]["tasks"] = FORKED, number
    strand["column"], strand["at"] = i["column"], i["resume"]
    for branch in range(number):
        t = new_branch(w, c, j, branch, c.choices[i["at"] + branch]["at"] if several else at + 1)
        c.strands[t]["block"] = strand["block"]


@lean_part
def new_branch(w: World, c: Core, j: int, number: int, at: int) -> int:
    """Let a branch of a strand begin with an instruction."""
    t = new_job(w)
    task, child, strand = w.jobs[t], c.strands[t], c.strands[j]
    task["job_class"] = task["home"] = w.jobs[j]["home"]
    task["parent"] = j
    child["root"], child["place"] = strand["root"], strand["place"]
    child["number"], child["since"], child["lost"] = number, w.state[0]["now"], 0
    child["line"], child["piece"], child["own"] = strand["line"], strand["piece"], strand["own"]
    child["returns"] = 0
    child["at"] = at
    c.times[t, :] = 0.0
    c.worked[t, :] = 0.0
    go_on(w, c, t)
    return t


@lean_part
def mark(w: World, c: Core, j: int, at: int) -> None:
    """End a stage of a job."""
    stage, strand, now = c.stages[c.code[at]["at"]], c.strands[j], w.state[0]["now"]
    stage["ended"] += 1
    stage["time_sum"] += now - strand["marked"]
    strand["marked"] = now


@lean_part
def join_up(w: World, c: Core, t: int) -> None:
    """End a branch; after the last one the strand that waits goes on."""
    j = w.jobs[t]["parent"]
    strand = c.strands[j]
    w.jobs[j]["tasks"] -= 1
    if w.jobs[j]["tasks"] == 0:
        if strand["column"] == state.PART_TIME:
            for column in range(c.times.shape[1]):
                c.times[j, column] += c.times[t, column]
        else:
            fork = c.state[0]["fork_column"]
            uncounted = c.times[t, fork + state.UNCOUNTED_TIME]
            c.times[j, fork + state.UNCOUNTED_TIME] += uncounted
            c.times[j, fork + state.FORKED_TIME] += w.state[0]["now"] - strand["since"] - uncounted
        strand["since"] = w.state[0]["now"]
        go_on(w, c, j)
    free_job(w, t)


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
