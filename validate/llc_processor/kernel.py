"""The packet processor as a jump process: which of the exponential stages ends next.

All stages are exponential, so that the next event is one of those under way in proportion to their
rates, after a time whose mean is all that averages need: the law of what happens, and less noise than
with drawn times.
"""

from __future__ import annotations

from validate.cache.draw_kernel import zipf_line
from validate.cache.lru_kernel import NONE
from validate.engine.jit import inlined, lean
from validate.engine.streams import uniform
from validate.llc_processor.caches import MISS, fill, found_in_llc, level_of
from validate.llc_processor.memory import BOTH, enter_memory, leave_memory
from validate.llc_processor.state import CORES, EVENTS, LINES, PARTS, World
from validate.llc_processor.stations import end_visit, join_slice, leave_slice, visit

START, L1, L2, LLC, MEMORY, DONE = range(6)
"""Where a core's request goes next."""


@lean
def fill_caches(w: World, requests: int) -> None:
    """Let random cores request lines one after the other, in no time: the caches become stationary."""
    for _ in range(requests):
        core = int(uniform(w.streams, CORES) * w.plan[0]["cores"])
        line = zipf_line(w.law, w.keys, w.streams, LINES)
        level = level_of(w, core, line)
        if level == MISS and w.plan[0]["slices"] > 0:
            found_in_llc(w, line)
        fill(w, core, line, level)


@inlined
def pass_time(w: World, step: float) -> None:
    """Add up what is inside and busy for a time."""
    totals, state = w.totals, w.state
    totals[0]["time"] += step
    totals[0]["number"] += step * state[0]["inside"]
    totals[0]["busy_cores"] += step * state[0]["busy_cores"]
    totals[0]["busy_slices"] += step * state[0]["busy_slices"]
    totals[0]["busy_banks"] += step * (w.in_state[1] + w.in_state[2] + 2 * w.in_state[BOTH])


@inlined
def arrive(w: World) -> int:
    """Let a request arrive; return the core that begins with it, or NONE if it is refused or has to wait."""
    cores, arrived, state, totals = w.cores, w.arrived, w.state, w.totals
    totals[0]["arrivals"] += 1
    if state[0]["inside"] == w.plan[0]["capacity"]:
        totals[0]["blocked"] += 1
        return NONE
    core = int(uniform(w.streams, CORES) * w.plan[0]["cores"])
    state[0]["inside"] += 1
    arrived[core, (cores[core]["head"] + cores[core]["queued"]) % arrived.shape[1]] = totals[0]["time"]
    cores[core]["queued"] += 1
    if cores[core]["queued"] > 1:
        return NONE
    state[0]["busy_cores"] += 1
    return core


@inlined
def depart(w: World, core: int) -> bool:
    """Let a core's request depart with its line; return whether another one waits there."""
    cores, totals, level = w.cores, w.totals, w.cores[core]["level"]
    totals[0]["l1_hits"] += level == 0
    totals[0]["l2_hits"] += level == 1
    totals[0]["served"] += 1
    fill(w, core, cores[core]["line"], level)
    w.state[0]["inside"] -= 1
    cores[core]["head"] = (cores[core]["head"] + 1) % w.arrived.shape[1]
    cores[core]["queued"] -= 1
    if cores[core]["queued"] == 0:
        w.state[0]["busy_cores"] -= 1
    return cores[core]["queued"] > 0


@inlined
def begin(w: World, core: int) -> None:
    """Let a core take the first request of its queue, which wants a line it draws, to its L1."""
    cores, totals = w.cores, w.totals
    line = zipf_line(w.law, w.keys, w.streams, LINES)
    cores[core]["line"], cores[core]["level"] = line, level_of(w, core, line)
    totals[0]["started"] += 1
    totals[0]["waited"] += totals[0]["time"] - w.arrived[core, cores[core]["head"]]
    visit(w, 0, core)


@inlined
def end_stage(w: World, at: float, to_l1: float, to_l2: float) -> tuple[int, int]:
    """End the stage that a point among the rates from L1 on falls on; return its core, and where it goes.

    ``to_l1`` and ``to_l2`` are where the rates of L1 and L2 end.
    """
    plan, cores, in_state = w.plan, w.cores, w.in_state
    if at < to_l1:
        place = min(int((at - plan[0]["arrival_rate"]) / plan[0]["l1_rate"]), w.visiting[0] - 1)
        core = end_visit(w, 0, place)
        return core, DONE if cores[core]["level"] == 0 else L2
    if at < to_l2:
        place = min(int((at - to_l1) / plan[0]["l2_rate"]), w.visiting[1] - 1)
        core = end_visit(w, 1, place)
        if cores[core]["level"] != MISS:
            return core, DONE
        return core, LLC if plan[0]["slices"] > 0 else MEMORY
    to_llc = to_l2 + w.state[0]["busy_slices"] * plan[0]["llc_rate"]
    if at < to_llc:
        place = min(int((at - to_l2) / plan[0]["llc_rate"]), w.state[0]["busy_slices"] - 1)
        core = leave_slice(w, place)
        if not found_in_llc(w, cores[core]["line"]):
            return core, MEMORY
        w.totals[0]["llc_hits"] += 1
        return core, DONE
    to_one = to_llc + in_state[1] * plan[0]["bank_rate"]
    to_other = to_one + in_state[2] * plan[0]["bank_rate"]
    kind, before, rate = BOTH, to_other, 2 * plan[0]["interleaved_bank_rate"]
    if at < to_one:
        kind, before, rate = 1, to_llc, plan[0]["bank_rate"]
    elif at < to_other:
        kind, before, rate = 2, to_one, plan[0]["bank_rate"]
    place = min(int((at - before) / rate), in_state[kind] - 1)
    core = leave_memory(w, kind, place)
    return core, DONE


@lean
def run(w: World, arrivals: int) -> None:
    """Run until so many requests have arrived, refused ones included."""
    plan, state, in_state, streams = w.plan, w.state, w.in_state, w.streams
    while w.totals[0]["arrivals"] < arrivals:
        to_l1 = plan[0]["arrival_rate"] + w.visiting[0] * plan[0]["l1_rate"]
        to_l2 = to_l1 + w.visiting[1] * plan[0]["l2_rate"]
        to_llc = to_l2 + state[0]["busy_slices"] * plan[0]["llc_rate"]
        to_one = to_llc + in_state[1] * plan[0]["bank_rate"]
        to_other = to_one + in_state[2] * plan[0]["bank_rate"]
        every = to_other + in_state[BOTH] * (2 * plan[0]["interleaved_bank_rate"])
        pass_time(w, 1.0 / every)
        at = uniform(streams, EVENTS) * every
        if at < plan[0]["arrival_rate"]:
            core, then = arrive(w), START
            if core == NONE:
                continue
        else:
            core, then = end_stage(w, at, to_l1, to_l2)
            if then == DONE:
                if not depart(w, core):
                    continue
                then = START
        if then == START:
            begin(w, core)
        elif then == L2:
            visit(w, 1, core)
        elif then == LLC:
            number = w.cores[core]["line"] % plan[0]["slices"]
            join_slice(w, number, core)
        else:
            part = int(uniform(streams, PARTS) * 2)
            enter_memory(w, part, core)
