"""The packet processor as a jump process: which of the exponential stages ends next.

All stages are exponential, so that the next event is one of those under way in proportion to their
rates, after a time whose mean is all that averages need: the law of what happens, and less noise than
with drawn times.
"""

from __future__ import annotations

from typing import Any

from validate.cache.draw_kernel import zipf_line
from validate.engine.jit import jit, lean
from validate.engine.streams import uniform
from validate.llc_processor.caches import MISS, fill, found_in_llc, level_of
from validate.llc_processor.memory import BOTH, enter_memory, leave_memory
from validate.llc_processor.state import CORES, EVENTS, LINES, PARTS
from validate.llc_processor.stations import end_visit, join_slice, leave_slice, visit

START, L1, L2, LLC, MEMORY, DONE = range(6)
"""Where a core's request goes next."""


@jit
def fill_caches(world: Any, requests: int) -> None:
    """Let random cores request lines one after the other, in no time: the caches become stationary."""
    plan, streams = world.plan, world.streams
    caches, slots, table = world.caches, world.slots, world.table
    for _ in range(requests):
        core = int(uniform(streams, CORES) * plan[0]["cores"])
        line = zipf_line(world.law, world.keys, streams, LINES)
        level = level_of(caches, slots, table, core, line)
        if level == MISS and plan[0]["slices"] > 0:
            found_in_llc(plan, caches, slots, table, line)
        fill(plan, caches, slots, table, streams, core, line, level)


@lean
def _begin(plan: Any, cores: Any, arrived: Any, totals: Any, core: int, line: int, level: int) -> None:
    """Let a core take the first request of its queue, which wants this line."""
    cores[core]["line"], cores[core]["level"] = line, level
    totals[0]["started"] += 1
    totals[0]["waited"] += totals[0]["time"] - arrived[core, cores[core]["head"]]


@jit
def run(world: Any, arrivals: int) -> None:
    """Run until so many requests have arrived, refused ones included."""
    plan, law, keys, streams = world.plan, world.law, world.keys, world.streams
    caches, slots, table = world.caches, world.slots, world.table
    cores, arrived, visitors, visiting = world.cores, world.arrived, world.visitors, world.visiting
    slices, slice_queue, busy_slices = world.slices, world.slice_queue, world.busy_slices
    channels, by_state, in_state, banks = world.channels, world.by_state, world.in_state, world.banks
    parts, part_queue, state, totals = world.parts, world.part_queue, world.state, world.totals
    ring = arrived.shape[1]
    arrival_rate, llc_rate = plan[0]["arrival_rate"], plan[0]["llc_rate"]
    l1_rate, l2_rate = plan[0]["l1_rate"], plan[0]["l2_rate"]
    bank_rate, both_rate = plan[0]["bank_rate"], 2 * plan[0]["interleaved_bank_rate"]
    while totals[0]["arrivals"] < arrivals:
        to_l1 = arrival_rate + visiting[0] * l1_rate
        to_l2 = to_l1 + visiting[1] * l2_rate
        to_llc = to_l2 + state[0]["busy_slices"] * llc_rate
        to_one = to_llc + in_state[1] * bank_rate
        to_other = to_one + in_state[2] * bank_rate
        every = to_other + in_state[BOTH] * both_rate
        step = 1.0 / every
        totals[0]["time"] += step
        totals[0]["number"] += step * state[0]["inside"]
        totals[0]["busy_cores"] += step * state[0]["busy_cores"]
        totals[0]["busy_slices"] += step * state[0]["busy_slices"]
        totals[0]["busy_banks"] += step * (in_state[1] + in_state[2] + 2 * in_state[BOTH])
        at = uniform(streams, EVENTS) * every
        if at < arrival_rate:
            totals[0]["arrivals"] += 1
            if state[0]["inside"] == plan[0]["capacity"]:
                totals[0]["blocked"] += 1
                continue
            core = int(uniform(streams, CORES) * plan[0]["cores"])
            state[0]["inside"] += 1
            arrived[core, (cores[core]["head"] + cores[core]["queued"]) % ring] = totals[0]["time"]
            cores[core]["queued"] += 1
            if cores[core]["queued"] > 1:
                continue
            state[0]["busy_cores"] += 1
            then = START
        elif at < to_l1:
            place = min(int((at - arrival_rate) / l1_rate), visiting[0] - 1)
            core = end_visit(cores, visitors, visiting, 0, place)
            then = DONE if cores[core]["level"] == 0 else L2
        elif at < to_l2:
            place = min(int((at - to_l1) / l2_rate), visiting[1] - 1)
            core = end_visit(cores, visitors, visiting, 1, place)
            then = DONE
            if cores[core]["level"] == MISS:
                then = LLC if plan[0]["slices"] > 0 else MEMORY
        elif at < to_llc:
            place = min(int((at - to_l2) / llc_rate), state[0]["busy_slices"] - 1)
            core = leave_slice(slices, slice_queue, busy_slices, state, place)
            then = MEMORY
            if found_in_llc(plan, caches, slots, table, cores[core]["line"]):
                totals[0]["llc_hits"] += 1
                then = DONE
        else:
            kind, before, rate = BOTH, to_other, both_rate
            if at < to_one:
                kind, before, rate = 1, to_llc, bank_rate
            elif at < to_other:
                kind, before, rate = 2, to_one, bank_rate
            place = min(int((at - before) / rate), in_state[kind] - 1)
            core = leave_memory(
                channels, by_state, in_state, banks, parts, part_queue, streams, PARTS, kind, place
            )
            then = DONE
        if then == DONE:
            level = cores[core]["level"]
            totals[0]["l1_hits"] += level == 0
            totals[0]["l2_hits"] += level == 1
            totals[0]["served"] += 1
            fill(plan, caches, slots, table, streams, core, cores[core]["line"], level)
            state[0]["inside"] -= 1
            cores[core]["head"] = (cores[core]["head"] + 1) % ring
            cores[core]["queued"] -= 1
            if cores[core]["queued"] == 0:
                state[0]["busy_cores"] -= 1
                continue
            then = START
        if then == START:
            line = zipf_line(law, keys, streams, LINES)
            _begin(plan, cores, arrived, totals, core, line, level_of(caches, slots, table, core, line))
            visit(cores, visitors, visiting, 0, core)
        elif then == L2:
            visit(cores, visitors, visiting, 1, core)
        elif then == LLC:
            number = cores[core]["line"] % plan[0]["slices"]
            join_slice(slices, slice_queue, busy_slices, state, number, core)
        else:
            part = int(uniform(streams, PARTS) * 2)
            enter_memory(channels, by_state, in_state, banks, parts, part_queue, part, core)
