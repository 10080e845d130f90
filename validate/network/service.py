"""Events at a station: jobs join, start, are interrupted, share the servers, leave."""

from __future__ import annotations

from typing import Any

import numpy as np

from validate.engine.calendar import EARLY, drop, pending, put
from validate.engine.histogram import BINS
from validate.engine.jit import apart, inlined, lean_part
from validate.engine.sampling import bin_of, draw
from validate.engine.streams import uniform
from validate.network import state
from validate.network.state import World


@inlined
def choose(w: World, rule: int) -> int:
    """Return the target that a rule names now."""
    r = w.rules[rule]
    if r["kind"] == state.BY_STATE:
        here = min(w.nodes[r["station"]]["number"], r["size"] - 1)
        r = w.rules[w.targets[r["at"] + here]["rule"]]
    at, size = r["at"], r["size"]
    if size == 1:
        return at
    if r["kind"] == state.RANDOM:
        u = uniform(w.streams, r["stream"])
        while w.targets[at]["below"] < u:
            at += 1
        return at
    if r["kind"] == state.IN_TURN:
        turn = r["turn"]
        r["turn"] = turn + 1 if turn + 1 < size else 0
        return at + turn
    return _shortest(w, at, size, r["stream"])


@apart
def _shortest(w: World, at: int, size: int, stream: int) -> int:
    fewest, equals = w.nodes[w.targets[at]["node"]]["number"], 0
    for target in range(at, at + size):
        number = w.nodes[w.targets[target]["node"]]["number"]
        if number < fewest:
            fewest, equals = number, 1
        elif number == fewest:
            equals += 1
    skip = int(uniform(w.streams, stream) * equals) if equals > 1 else 0
    target = at
    while True:
        if w.nodes[w.targets[target]["node"]]["number"] == fewest:
            if skip == 0:
                return target
            skip -= 1
        target += 1


@lean_part
def new_job(w: World) -> int:
    """Take a job out of the pool, which must have one."""
    s = w.state[0]
    j = s["free"]
    job = w.jobs[j]
    s["free"] = job["next"]
    s["free_jobs"] -= 1
    job["serial"] = s["serial"]
    s["serial"] += 1
    job["parent"] = state.NONE
    return j


@lean_part
def free_job(w: World, j: int) -> None:
    """Put a job back."""
    s = w.state[0]
    w.jobs[j]["phase"] = state.FREE
    w.jobs[j]["next"] = s["free"]
    s["free"] = j
    s["free_jobs"] += 1


@lean_part
def push_back(w: World, queue: Any, j: int) -> None:
    """Put a job behind all of a queue."""
    job, last = w.jobs[j], queue["tail"]
    job["next"], job["previous"] = state.NONE, last
    queue["tail"] = j
    if last == state.NONE:
        queue["head"] = j
    else:
        w.jobs[last]["next"] = j


@lean_part
def push_front(w: World, queue: Any, j: int) -> None:
    """Put a job before all of a queue."""
    job, first = w.jobs[j], queue["head"]
    job["next"], job["previous"] = first, state.NONE
    queue["head"] = j
    if first == state.NONE:
        queue["tail"] = j
    else:
        w.jobs[first]["previous"] = j


@lean_part
def unlink(w: World, queue: Any, j: int) -> None:
    """Take a job out of its queue."""
    job = w.jobs[j]
    before, after = job["previous"], job["next"]
    if before == state.NONE:
        queue["head"] = after
    else:
        w.jobs[before]["next"] = after
    if after == state.NONE:
        queue["tail"] = before
    else:
        w.jobs[after]["previous"] = before


@lean_part
def count_time(w: World, row: int, time: float) -> None:
    """Count a time in a histogram: a note of its bin, see `count_noted`."""
    s = w.state[0]
    w.notes[s["noted"]] = row * BINS + bin_of(time * s["per_unit"])
    s["noted"] += 1
    if s["noted"] == w.notes.size:
        count_noted(w)


@apart
def count_noted(w: World) -> None:
    """Count the times noted since the last call: one after another, histograms wait for memory."""
    for k in range(w.state[0]["noted"]):
        w.bins[w.notes[k]] += 1
    w.state[0]["noted"] = 0


@lean_part
def record(w: World, j: int, outcome: int) -> None:
    """Write a visit that ends now, if records are kept."""
    if w.varied and w.records.size:
        s, job = w.state[0], w.jobs[j]
        row = w.records[s["records"]]
        s["records"] += 1
        row["job"] = w.jobs[job["parent"]]["serial"] if job["parent"] >= 0 else job["serial"]
        row["task"] = job["branch"] if job["parent"] >= 0 else state.NONE
        row["job_class"], row["node"] = job["job_class"], job["node"]
        row["arrived"], row["started"], row["left"] = job["arrived"], job["started"], s["now"]
        row["outcome"] = outcome


@lean_part
def speed(w: World, node: int) -> float:
    """Return the rate at which each job in service at a station of its own pace progresses."""
    n = w.nodes[node]
    if n["serving"] == 0:
        return 0.0
    if n["speeds"] > 0:
        rate = w.speeds[n["speeds_at"] + min(n["number"], n["speeds"]) - 1]
    else:
        rate = float(min(n["serving"], n["servers"]))
    return rate / n["serving"]


@lean_part
def catch_up(w: World, node: int) -> None:
    """Bring a station of its own pace to the present; before every change of its jobs."""
    n = w.nodes[node]
    now = w.state[0]["now"]
    passed = now - n["progress_at"]
    n["progress_at"] = now
    if passed > 0 and n["serving"] > 0:
        n["progress"] += speed(w, node) * passed
        servers = 1 if n["speeds"] > 0 else min(n["serving"], n["servers"])
        share = passed * servers / n["serving"]
        for k in range(w.tallies.shape[1]):
            w.tallies[node, k]["serving_sum"] += share * w.tallies[node, k]["serving"]


@lean_part
def set_pace(w: World, node: int) -> None:
    """Schedule the next end of a service at a station of its own pace; after every change."""
    n = w.nodes[node]
    heap = w.shared[n["shared"]]
    event = w.classes.size + node
    if pending(heap, w.shared_places) == 0:
        n["progress"] = 0.0
        if (n["mode"] == state.ON or n["mode"] == state.OFF) and w.places[event] > 0:
            drop(w.heap, w.places, event)
    elif n["mode"] == state.ON:
        left = max(heap[1]["time"] - n["progress"], 0.0)
        put(w.heap, w.places, event, w.state[0]["now"] + left / speed(w, node), EARLY)


@inlined
def start(w: World, node: int, k: int, j: int) -> None:
    """Begin or resume the service of a job of a class; there is room for it."""
    n, job, now = w.nodes[node], w.jobs[j], w.state[0]["now"]
    tally = w.tallies[node, k]
    if job["work"] < 0:
        job["work"] = job["given"]
        if job["work"] <= 0:
            job["work"] = draw(w.laws, w.numbers, w.streams, w.service[node, k])
        job["remaining"] = job["work"]
        job["started"] = now
    job["waited"] += now - job["since"]
    job["phase"] = state.SERVED
    n["busy"] += 1
    tally["serving"] += 1
    if w.varied and n["shared"] >= 0:
        n["serving"] += 1
        put(w.shared[n["shared"]], w.shared_places, j, n["progress"] + job["remaining"], EARLY)
    else:
        tally["serving_sum"] -= now
        put(w.heap, w.places, w.classes.size + w.nodes.size + j, now + job["remaining"], EARLY)
        kind = n["discipline"]
        if w.varied and (kind == state.PRIORITY_PREEMPTIVE or kind == state.LIFO_PREEMPTIVE):
            push_front(w, w.queues[node, n["levels"] + job["level"]], j)


@inlined
def stop(w: World, node: int, k: int, j: int) -> None:
    """End the service of a job, for good or not; its place in service is kept."""
    n, tally = w.nodes[node], w.tallies[node, k]
    tally["serving"] -= 1
    if w.varied and n["shared"] >= 0:
        n["serving"] -= 1
        drop(w.shared[n["shared"]], w.shared_places, j)
    else:
        tally["serving_sum"] += w.state[0]["now"]
        drop(w.heap, w.places, w.classes.size + w.nodes.size + j)
        kind = n["discipline"]
        if w.varied and (kind == state.PRIORITY_PREEMPTIVE or kind == state.LIFO_PREEMPTIVE):
            unlink(w, w.queues[node, n["levels"] + w.jobs[j]["level"]], j)


@inlined
def join(w: World, node: int, j: int) -> None:
    """Let a job arrive at a station that has a place for it."""
    n, job, now = w.nodes[node], w.jobs[j], w.state[0]["now"]
    k = job["job_class"]
    tally = w.tallies[node, k]
    if w.varied and n["shared"] >= 0:
        catch_up(w, node)
    job["node"], job["to"] = node, state.NONE
    job["arrived"] = job["since"] = now
    job["waited"], job["work"], job["started"] = 0.0, -1.0, np.nan
    job["level"] = w.levels[node, k]
    n["number"] += 1
    tally["number"] += 1
    tally["number_sum"] -= now
    if not w.varied:
        # A job that comes straight back finds its server free, and those that wait are before it.
        if n["busy"] < n["slots"] and n["queued"] == 0:
            start(w, node, k, j)
        else:
            wait(w, node, k, j, state.NO)
        return
    free = n["busy"] < n["slots"] and n["mode"] == state.ON
    if free and n["queued"] == 0 and n["looks_ahead"] == 0:
        start(w, node, k, j)
    elif n["mode"] == state.ON and not free and _interrupt(w, node, j):
        start(w, node, k, j)
    else:
        wait(w, node, k, j, n["discipline"] == state.LIFO or n["discipline"] == state.LIFO_PREEMPTIVE)
        serve_next(w, node)
        patience = w.classes[k]["patience"]
        if patience >= 0 and job["phase"] == state.WAITING and job["parent"] < 0:
            limit = now + draw(w.laws, w.numbers, w.streams, patience)
            put(w.heap, w.places, w.classes.size + w.nodes.size + j, limit, EARLY)
    if n["shared"] >= 0:
        set_pace(w, node)


@inlined
def wait(w: World, node: int, k: int, j: int, in_front: bool) -> None:
    """Put a job into the queue."""
    tally = w.tallies[node, k]
    w.jobs[j]["phase"] = state.WAITING
    if w.varied and in_front:
        push_front(w, w.queues[node, w.jobs[j]["level"]], j)
    else:
        push_back(w, w.queues[node, w.jobs[j]["level"]], j)
    w.nodes[node]["queued"] += 1
    tally["queued"] += 1
    tally["queued_sum"] -= w.state[0]["now"]


@inlined
def take(w: World, node: int, k: int, j: int) -> None:
    """Take a job out of the queue."""
    tally = w.tallies[node, k]
    unlink(w, w.queues[node, w.jobs[j]["level"]], j)
    w.nodes[node]["queued"] -= 1
    tally["queued"] -= 1
    tally["queued_sum"] += w.state[0]["now"]


@lean_part
def _interrupt(w: World, node: int, j: int) -> bool:
    """Free a server for a job that goes before one in service, if there is such."""
    n = w.nodes[node]
    last = state.NONE
    if n["discipline"] == state.LIFO_PREEMPTIVE:
        last = 0
    elif n["discipline"] == state.PRIORITY_PREEMPTIVE:
        for level in range(n["levels"] - 1, w.jobs[j]["level"], -1):
            if w.queues[node, n["levels"] + level]["head"] >= 0:
                last = level
                break
    if last == state.NONE:
        return False
    victim = w.queues[node, n["levels"] + last]["head"]
    event, k = w.classes.size + w.nodes.size + victim, w.jobs[victim]["job_class"]
    w.jobs[victim]["remaining"] = w.heap[w.places[event]]["time"] - w.state[0]["now"]
    stop(w, node, k, victim)
    n["busy"] -= 1
    w.jobs[victim]["since"] = w.state[0]["now"]
    wait(w, node, k, victim, state.YES)
    return True


@inlined
def serve_next(w: World, node: int) -> None:
    """Let waiting jobs start as long as there are servers for them."""
    n = w.nodes[node]
    if not w.varied:
        if n["queued"] > 0:
            j = w.queues[node, 0]["head"]
            k = w.jobs[j]["job_class"]
            take(w, node, k, j)
            start(w, node, k, j)
        return
    if n["mode"] != state.ON:
        if n["mode"] == state.OFF and n["queued"] >= n["threshold"]:
            switch(w, node, state.STARTING, n["setup"])
        return
    n["wants"] = state.NONE
    while n["queued"] > 0 and n["busy"] < n["slots"]:
        level = 0
        while w.queues[node, level]["head"] < 0:
            level += 1
        j = w.queues[node, level]["head"]
        if n["looks_ahead"] and not _set_aside(w, node, j):
            return
        k = w.jobs[j]["job_class"]
        if w.classes[k]["patience"] >= 0:
            event = w.classes.size + w.nodes.size + j
            if w.places[event] > 0:
                drop(w.heap, w.places, event)
        take(w, node, k, j)
        start(w, node, k, j)


@lean_part
def _set_aside(w: World, node: int, j: int) -> bool:
    """Set a place aside where the job goes next; note what its station waits for if there is none."""
    n, job = w.nodes[node], w.jobs[j]
    if job["to"] < 0:
        job["to"] = route(w, j)
    place = w.targets[job["to"]]["node"]
    if place == state.NONE or place == node or w.nodes[place]["when_full"] != state.HOLD_BEFORE:
        return True
    d = w.nodes[place]
    if d["number"] + d["reserved"] < d["capacity"]:
        d["reserved"] += 1
        return True
    n["wants"], n["wants_since"] = place, job["since"]
    return False


@inlined
def route(w: World, j: int) -> int:
    """Return the target of a job; it is not counted where it still is."""
    job = w.jobs[j]
    n = w.nodes[job["node"]]
    n["number"] -= 1
    target = choose(w, w.rule_of[job["node"], job["job_class"]])
    n["number"] += 1
    return target


@lean_part
def switch(w: World, node: int, mode: int, law: int) -> None:
    """Start to switch a station on, or let its server leave; until the time is over."""
    w.nodes[node]["mode"] = mode
    event = w.classes.size + node
    put(w.heap, w.places, event, w.state[0]["now"] + draw(w.laws, w.numbers, w.streams, law), EARLY)


@lean_part
def rest(w: World, node: int) -> None:
    """Switch a station off, or let its server leave, if nobody is there to be served."""
    n = w.nodes[node]
    if n["mode"] == state.ON and n["busy"] == 0 and n["queued"] == 0:
        if n["setup"] >= 0:
            n["mode"] = state.OFF
        elif n["vacation"] >= 0:
            switch(w, node, state.AWAY, n["vacation"])


@lean_part
def time_over(w: World, node: int) -> None:
    """End a set-up or a vacation."""
    n = w.nodes[node]
    drop(w.heap, w.places, w.classes.size + node)
    was = n["mode"]
    n["mode"] = state.ON
    if n["shared"] >= 0:
        catch_up(w, node)
    if n["queued"] > 0:
        serve_next(w, node)
    elif was == state.STARTING or n["multiple"]:
        rest(w, node)
    if n["shared"] >= 0:
        set_pace(w, node)


@inlined
def depart(w: World, node: int, k: int, j: int, outcome: int) -> None:
    """Let a job leave its station: after its service, or before it if it gave up."""
    job, now = w.jobs[j], w.state[0]["now"]
    n, tally = w.nodes[node], w.tallies[node, k]
    response = now - job["arrived"]
    n["number"] -= 1
    tally["number"] -= 1
    tally["number_sum"] += now
    waited = job["waited"]
    if w.varied and n["discipline"] == state.SHARING:
        waited = response - job["work"]
        # A job that was alone all the time is off by the rounding of the clock and of the progress.
        if waited < 1e-14 * now + 1e-9 * response:
            waited = 0.0
    tally["departures"] += 1
    tally["wait_sum"] += waited
    tally["delayed"] += waited > 0
    row = w.rows[node, k]
    count_time(w, row, waited)
    count_time(w, w.state[0]["responses_at"] + row, response)
    tally["response_sum"] += response
    record(w, j, outcome)
