"""The compiled fixed point of the wormhole model: waits at the turns of a network, load after load.

Import it inside functions: Numba is slow to load.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from qmodels.markov.chains.compiled import compiled

STABLE, OVERLOADED, BLOCKED, DIVERGED = 0, 1, 2, 3
"""What became of a load: waits found, a channel at its capacity, inputs whose heads block them for good,
no fixed point found."""

MAX_ITERATIONS = 400
TOLERANCE = 1e-6
"""Of the largest change in an iteration, relative to one cycle and the value."""

SMALL = 1e-9
"""Waits not worth a buffer. [cycles]"""


@compiled
def solve_turns(
    loads: Any,
    source: Any,
    sink: Any,
    pair: Any,
    level: Any,
    weight: Any,
    packets: Any,
    work: Any,
    square: Any,
    channels: Any,
    smooth: Any,
    law: Any,
    wait: Any,
    stall: Any,
    front: Any,
    state: Any,
) -> None:
    """Fill in waits, stalls, times at the front and the state for each load; loads multiply the rates.

    ``channels`` has a row for each channel: 0 packets per cycle, 1 busy cycles per cycle, 2 virtual
    channels, 3 buffer [flits], 4 credit loop [cycles], 5 flits of a packet, 6 busy cycles per cycle
    of circuits, 7 whether it ends at a router, 8 factor of the waits for it in bursts or with
    flits of others in between, 9 virtual channels by the chance to share one. ``smooth`` has factors
    of the waits for each load and channel, see `qmodels.noc.turn_taking`; ``law`` is a
    `qmodels.noc.waits.WormholeLaw`.
    """
    turns, count = source.size, channels.shape[0]
    pairs, levels = 1, 1
    for t in range(turns):
        pairs, levels = max(pairs, pair[t] + 1), max(levels, level[t] + 1)
    h, q, front_q = np.zeros(turns), np.zeros(turns), np.zeros(turns)
    held = np.zeros(count)
    long_wait, heads = np.zeros(count), np.zeros(count)
    for n in range(loads.size):
        load = loads[n]
        state[n] = STABLE
        # From rest at every load: what is found does not depend on the others of a sweep.
        h[:], q[:], front_q[:], held[:] = 0.0, 0.0, 0.0, 0.0
        if load <= 0:
            continue
        lam, left = channels[:, 0] * load, 1 - channels[:, 6] * load
        if load * np.max(channels[:, 1] + channels[:, 6]) >= 1:
            state[n] = OVERLOADED
            continue
        rho = channels[:, 1] * load / left
        rate, busy, second = packets * load, work * load / left[sink], square * load / left[sink] ** 2
        factor = np.ones(turns)
        _favour(factor, sink, level, weight, busy, rho, channels, law, levels)
        from_pair = np.zeros(pairs)
        pair_second = np.zeros(pairs)
        for t in range(turns):
            from_pair[pair[t]] += busy[t]
            pair_second[pair[t]] += second[t]
        own = _output_waits(sink, pair, rate, busy, second, from_pair, pair_second, lam, rho, factor)
        for t in range(turns):
            own[t] *= channels[sink[t], 8] * smooth[n, sink[t]]
        state[n] = _iterate(
            source, sink, pair, rate, second, from_pair, pair_second, lam, rho, channels, smooth[n],
            factor, own, law, h, q, front_q, held, long_wait, heads,
        )  # fmt: skip
        if state[n] != STABLE:
            continue
        for t in range(turns):
            wait[n, t] = own[t] + q[t]
        for c in range(count):
            front[n, c] = heads[c] / lam[c] if lam[c] > 0 else 0.0
            if channels[c, 5] > channels[c, 3] and channels[c, 7] > 0:
                stall[n, c] = law.tail * long_wait[c] * rho[c] * channels[c, 5] / 2


@compiled
def _favour(
    factor: Any, sink: Any, level: Any, weight: Any, busy: Any, rho: Any, channels: Any, law: Any, levels: int
) -> None:  # fmt: skip
    """Multiply in how much longer packets wait for their priority and weight."""
    count = rho.size
    loads, over, total = np.zeros((count, levels)), np.zeros(count), np.zeros(count)
    for t in range(factor.size):
        loads[sink[t], level[t]] += busy[t]
        over[sink[t]] += busy[t] / weight[t]
    for t in range(factor.size):
        c = sink[t]
        if rho[c] <= 0:
            continue
        before = 0.0
        for k in range(level[t]):
            before += loads[c, k]
        upto = before + loads[c, level[t]]
        late = min(1.0, law.preemption * (channels[c, 4] / channels[c, 3]) ** law.together)
        factor[t] = (1 - late * (1 - upto / rho[c])) / ((1 - before) * (1 - upto))
        total[c] += busy[t] / rho[c] * factor[t]
    for t in range(factor.size):
        c = sink[t]
        if rho[c] > 0:
            factor[t] *= (1 + rho[c] * (rho[c] / over[c] / weight[t] - 1)) / total[c]


@compiled
def _output_waits(
    sink: Any, pair: Any, rate: Any, busy: Any, second: Any, from_pair: Any, pair_second: Any,
    lam: Any, rho: Any, factor: Any,
) -> Any:  # fmt: skip
    """Return the waits for the outputs if nothing else held packets up."""
    turns, count = sink.size, lam.size
    squares, paid, spread = np.zeros(count), np.zeros(count), np.zeros(count)
    total_second = np.zeros(count)
    seen = np.zeros(from_pair.size)
    for t in range(turns):
        c, k = sink[t], pair[t]
        total_second[c] += second[t]
        if lam[c] <= 0:
            continue
        part = rate[t] / lam[c]
        paid[c] += part * (pair_second[k] - from_pair[k]) / (2 * (1 - from_pair[k]))
        spread[c] += part * (rho[c] - from_pair[k])
        if seen[k] == 0:
            squares[c] += from_pair[k] ** 2
            seen[k] = 1
    own = np.zeros(turns)
    for t in range(turns):
        c = sink[t]
        if spread[c] > 1e-14:
            together = (total_second[c] - rho[c] + (rho[c] ** 2 - squares[c]) / rho[c]) / (2 * (1 - rho[c]))
            own[t] = max(0.0, together - paid[c]) * (rho[c] - from_pair[pair[t]]) / spread[c] * factor[t]
    return own


@compiled
def _iterate(
    source: Any, sink: Any, pair: Any, rate: Any, second: Any, from_pair: Any, pair_second: Any,
    lam: Any, rho: Any, channels: Any, smooth: Any, factor: Any, own: Any, law: Any,
    h: Any, q: Any, front_q: Any, held: Any, long_wait: Any, heads: Any,
) -> int:  # fmt: skip
    """Find times at the front ``h``, waits behind heads ``q`` and hold-ups of the channels ``held``."""
    passed_on = law.passed
    turns, count = source.size, lam.size
    contention = np.zeros(count)
    pair_h, pair_wait = np.zeros(from_pair.size), np.zeros(from_pair.size)
    into = np.zeros(count)
    same, other, same_load, other_load = np.zeros(count), np.zeros(count), np.zeros(count), np.zeros(count)
    full = np.zeros(count)
    pair_part = np.zeros((from_pair.size, 3))
    for _ in range(MAX_ITERATIONS):
        change = 0.0
        contention[:], heads[:], into[:], long_wait[:], full[:] = 0.0, 0.0, 0.0, 0.0, 0.0
        same[:], other[:], same_load[:], other_load[:] = 0.0, 0.0, 0.0, 0.0
        pair_h[:], pair_wait[:] = 0.0, 0.0
        pair_part[:] = 0.0
        for t in range(turns):
            c = sink[t]
            waiting = rate[t] * h[t] * rho[c] / lam[c]
            contention[c] += second[t] / 2 + waiting
            pair_h[pair[t]] += second[t] / 2 + waiting
            pair_wait[pair[t]] += waiting
        for t in range(turns):
            c = sink[t]
            near = law.beside * (1 - 1 / channels[source[t], 9]) * pair_wait[pair[t]]
            # Where credits come back late packets hold each other up, smooth or not.
            easier = smooth[c] if channels[c, 3] >= channels[c, 4] else 1.0
            new = (easier * (contention[c] - pair_h[pair[t]]) + near) * factor[t]
            change = max(change, abs(new - h[t]) / (1 + new))
            h[t] += 0.5 * (new - h[t])
            at_front = rate[t] * (h[t] + held[c] + passed_on * front_q[t])
            heads[source[t]] += at_front
            into[c] += at_front
        for t in range(turns):
            c, i = sink[t], source[t]
            first, again, load_first, load_again = _blocking(
                c,
                i,
                rate[t],
                from_pair[pair[t]],
                lam,
                rho,
                into,
                h[t] + held[c],
                passed_on * front_q[t],
                law.clump,
                law.bunched,
            )
            pair_part[pair[t], 0] += first
            pair_part[pair[t], 1] += again
            pair_part[pair[t], 2] += load_first
            other[i] += first
            same[i] += again
            other_load[i] += load_first
            same_load[i] += load_again
        for t in range(turns):
            c, i = sink[t], source[t]
            first, again, load_first = pair_part[pair[t]]
            one = 1 / channels[i, 9]
            two = law.conflict * (1 - one)
            other_busy, same_busy = two * (other_load[i] - load_first), one * same_load[i]
            if max(other_busy, same_busy) >= 1:
                return BLOCKED
            new_front = two * (other[i] - first) / (1 - other_busy) * factor[t]
            new = new_front + one * (same[i] - again) / (1 - same_busy)
            change = max(change, abs(new - q[t]) / (1 + new))
            front_q[t] += 0.5 * (new_front - front_q[t])
            q[t] += 0.5 * (new - q[t])
            if channels[i, 7] > 0 and own[t] + q[t] > SMALL:
                tau = law.typical * rho[i] / lam[i] + own[t] + q[t]
                space = max(0.0, channels[i, 3] - channels[i, 4] + law.room)
                chance = rate[t] / lam[i] * (own[t] + q[t]) / tau * math.exp(-space / tau)
                gaps = lam[i] / (1 - rho[i]) * tau / channels[i, 9]
                long_wait[i] += chance
                full[i] += chance * (gaps / (1 + gaps)) ** math.floor(channels[i, 3] / channels[i, 5])
        for c in range(count):
            new = 0.0
            if long_wait[c] > 0:
                new = _hold_up(c, lam[c], rho[c], heads[c], long_wait[c], full[c], channels, law)
            change = max(change, abs(new - held[c]) / (1 + new))
            held[c] += 0.5 * (new - held[c])
        if change < TOLERANCE:
            return STABLE
    return STABLE if change < 1e-3 else DIVERGED


@compiled
def _blocking(
    c: int, i: int, rate: float, own_load: float, lam: Any, rho: Any, into: Any, at_front: float,
    conflict: float, clump: float, bunched: float,
) -> tuple[float, float, float, float]:  # fmt: skip
    """Return what the packets of a turn add to the waits of the others at their input."""
    gap_rate = lam[i] / (1 - rho[i])
    behind = clump * (rho[i] + bunched * into[i]) / (1 - rho[i])
    part = rate / lam[i]
    x = rho[c] - own_load
    spread = x * (rho[c] / lam[c]) ** 2 / (3 * (1 - x))
    first = part * (gap_rate * (2 * at_front * at_front + spread + at_front) / 2 + behind * at_front)
    longer = at_front + conflict
    again = part * (gap_rate * (2 * longer * longer + spread + longer) / 2 + behind * longer)
    return first, again, part * gap_rate * at_front, part * gap_rate * longer


@compiled
def _hold_up(
    c: int, lam: float, rho: float, heads: float, long_wait: float, full: float, channels: Any, law: Any
) -> float:  # fmt: skip
    """Return by how much full buffers behind a channel hold up a packet that goes there."""
    exit_time = law.typical * rho / lam + heads / lam
    vcs = channels[c, 2]
    shared = full ** (law.others * (vcs - 1)) / vcs
    own = law.hold * exit_time * full * shared
    if channels[c, 5] > channels[c, 3]:
        own = max(own, law.hold * exit_time * long_wait / vcs)
    # Those of another class have virtual channels of their own.
    fellows = lam * vcs / channels[c, 9]
    held: float = own + law.fellow * fellows * own * exit_time * shared
    return held
