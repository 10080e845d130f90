"""Where a job goes next, and the jobs' memory: parts of the kernel of a queueing network."""

from __future__ import annotations

from typing import Any

from validate.engine.histogram import BINS
from validate.engine.jit import apart, inlined, lean_part
from validate.engine.sampling import bin_of
from validate.engine.streams import uniform
from validate.network.state import BY_STATE, FREE, IN_TURN, NONE, RANDOM, World


@inlined
def choose(w: World, rule: int) -> int:
    """Return the target that a rule names now."""
    r = w.rules[rule]
    if r["kind"] == BY_STATE:
        here = min(w.nodes[r["station"]]["number"], r["size"] - 1)
        r = w.rules[w.targets[r["at"] + here]["rule"]]
    at, size = r["at"], r["size"]
    if size == 1:
        return at
    if r["kind"] == RANDOM:
        u = uniform(w.streams, r["stream"])
        while w.targets[at]["below"] < u:
            at += 1
        return at
    if r["kind"] == IN_TURN:
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
    job["parent"] = NONE
    return j


@lean_part
def free_job(w: World, j: int) -> None:
    """Put a job back."""
    s = w.state[0]
    w.jobs[j]["phase"] = FREE
    w.jobs[j]["next"] = s["free"]
    s["free"] = j
    s["free_jobs"] += 1


@lean_part
def push_back(w: World, queue: Any, j: int) -> None:
    """Put a job behind all of a queue."""
    job, last = w.jobs[j], queue["tail"]
    job["next"], job["previous"] = NONE, last
    queue["tail"] = j
    if last == NONE:
        queue["head"] = j
    else:
        w.jobs[last]["next"] = j


@lean_part
def push_front(w: World, queue: Any, j: int) -> None:
    """Put a job before all of a queue."""
    job, first = w.jobs[j], queue["head"]
    job["next"], job["previous"] = first, NONE
    queue["head"] = j
    if first == NONE:
        queue["tail"] = j
    else:
        w.jobs[first]["previous"] = j


@lean_part
def unlink(w: World, queue: Any, j: int) -> None:
    """Take a job out of its queue."""
    job = w.jobs[j]
    before, after = job["previous"], job["next"]
    if before == NONE:
        queue["head"] = after
    else:
        w.jobs[before]["next"] = after
    if after == NONE:
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
