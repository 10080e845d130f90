"""The fixed point of the wormhole model: waits at the turns of a network, load after load."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from qmodels.numerics.kernels import array_part, kernel, part

STABLE, OVERLOADED, BLOCKED, DIVERGED = 0, 1, 2, 3
"""What became of a load: waits found, a channel at its capacity, inputs whose heads block them for good,
no fixed point found."""

MAX_ITERATIONS = 400
TOLERANCE = 1e-6
"""Of the largest change in an iteration, relative to one cycle and the value."""

SOON = 1500
"""Turns, once for each load, up to which plain Python is quick enough to be used instead of compiling."""

SMALL = 1e-9
"""Waits not worth a buffer. [cycles]"""


class Network(NamedTuple):
    """Turns and channels at load 1, see `qmodels.noc.turns.Turns`.

    ``channels`` has a row for each channel: 0 packets per cycle, 1 busy cycles per cycle, 2 virtual
    channels, 3 buffer [flits], 4 credit loop [cycles], 5 flits of a packet, 6 busy cycles per cycle
    of circuits, 7 whether it ends at a router, 8 factor of the waits for it in bursts or with
    flits of others in between, 9 virtual channels by the chance to share one.
    """

    source: Any
    sink: Any
    pair: Any
    level: Any
    weight: Any
    packets: Any
    work: Any
    square: Any
    channels: Any


class Load(NamedTuple):
    """The network at one load.

    Of each turn rate, squares of the work and factor of the wait; of each pair of channels work and squares;
    of each channel packets, work and factors of the waits, see `qmodels.noc.waits` (``smooth``) and
    `qmodels.noc.waits.find_waits` (``alone``).
    """

    rate: Any
    second: Any
    factor: Any
    from_pair: Any
    pair_second: Any
    lam: Any
    rho: Any
    smooth: Any
    alone: Any


class _State(NamedTuple):
    """State of the iteration.

    Of each turn times at the front ``h``, waits for the output alone ``own`` and behind heads ``q``, and
    the part of these by other virtual channels ``front_q``; of each channel the hold-up ``held``, the
    chance of a wait that fills buffers ``long_wait`` and that all are full, and how busy heads keep it.
    """

    own: Any
    h: Any
    q: Any
    front_q: Any
    held: Any
    long_wait: Any
    full: Any
    heads: Any


@kernel(soon=lambda loads, net, *others: loads.size * net.sink.size <= SOON)
def solve_turns(
    loads: Any, net: Network, smooth: Any, alone: Any, law: Any, wait: Any, stall: Any, front: Any, state: Any
) -> None:
    """Fill in waits, stalls, times at the front and the state for each load; loads multiply the rates.

    ``smooth`` and ``alone`` have factors of the waits for each load and channel, ``alone`` those of packets
    that were the only ones of their input; ``law`` is a `qmodels.noc.waits.WormholeLaw`.
    """
    channels, sink = net.channels, net.sink
    turns, count = sink.size, channels.shape[0]
    pairs, levels, fullest = 1, 1, 0.0
    for t in range(turns):
        pairs, levels = max(pairs, net.pair[t] + 1), max(levels, net.level[t] + 1)
    for c in range(count):
        fullest = max(fullest, channels[c, 1] + channels[c, 6])
    for n in range(loads.size):
        load = loads[n]
        state[n] = STABLE
        if load <= 0:
            continue
        if load * fullest >= 1:
            state[n] = OVERLOADED
            continue
        left = 1 - channels[:, 6] * load
        busy = np.zeros(turns)
        at = Load(
            net.packets * load, np.zeros(turns), np.zeros(turns), np.zeros(pairs), np.zeros(pairs),
            channels[:, 0] * load, channels[:, 1] * load / left, smooth[n], alone[n],
        )  # fmt: skip
        for t in range(turns):
            open_to = left[sink[t]]
            busy[t] = net.work[t] * load / open_to
            at.second[t] = net.square[t] * load / (open_to * open_to)
            at.factor[t] = 1.0
            at.from_pair[net.pair[t]] += busy[t]
            at.pair_second[net.pair[t]] += at.second[t]
        _favour(at.factor, sink, net.level, net.weight, busy, at.rho, channels, law, levels)
        # From rest at every load: what is found does not depend on the others of a sweep.
        now = _State(
            output_waits(net, at, busy), np.zeros(turns), np.zeros(turns), np.zeros(turns),
            np.zeros(count), np.zeros(count), np.zeros(count), np.zeros(count),
        )  # fmt: skip
        state[n] = _iterate(net, at, law, now)
        if state[n] != STABLE:
            continue
        for t in range(turns):
            wait[n, t] = now.own[t] + now.q[t]
        for c in range(count):
            front[n, c] = now.heads[c] / at.lam[c] if at.lam[c] > 0 else 0.0
            if channels[c, 5] > channels[c, 3] and channels[c, 7] > 0:
                stall[n, c] = law.tail * now.long_wait[c] * at.rho[c] * channels[c, 5] / 2


@array_part
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


@array_part
def output_waits(net: Network, at: Load, busy: Any) -> Any:
    """Return the waits for the outputs if nothing else held packets up."""
    sink, pair, lam, rho, from_pair = net.sink, net.pair, at.lam, at.rho, at.from_pair
    turns, count = sink.size, lam.size
    squares, paid, spread = np.zeros(count), np.zeros(count), np.zeros(count)
    total_second = np.zeros(count)
    seen = np.zeros(from_pair.size)
    for t in range(turns):
        c, k = sink[t], pair[t]
        total_second[c] += at.second[t]
        if lam[c] <= 0:
            continue
        part = at.rate[t] / lam[c]
        paid[c] += part * (at.pair_second[k] - from_pair[k]) / (2 * (1 - from_pair[k]))
        spread[c] += part * (rho[c] - from_pair[k])
        if seen[k] == 0:
            squares[c] += from_pair[k] * from_pair[k]
            seen[k] = 1
    own = np.zeros(turns)
    for t in range(turns):
        c = sink[t]
        if spread[c] > 1e-14:
            others = (rho[c] * rho[c] - squares[c]) / rho[c]
            together = (total_second[c] - rho[c] + others) / (2 * (1 - rho[c]))
            left = max(0.0, together - paid[c]) * (rho[c] - from_pair[pair[t]]) / spread[c]
            own[t] = left * at.factor[t] * at.alone[c]
    return own


@array_part
def _iterate(net: Network, at: Load, law: Any, now: _State) -> int:
    """Find times at the front, waits behind heads and hold-ups of the channels."""
    change = 0.0
    for _ in range(MAX_ITERATIONS):
        into = np.zeros(at.lam.size)
        change = _fronts(net, at, law, now, into)
        behind = _behind(net, at, law, now, into)
        if behind < 0:
            return BLOCKED
        change = max(change, behind)
        for c in range(at.lam.size):
            new = 0.0
            if now.long_wait[c] > 0:
                new = _hold_up(
                    c, at.lam[c], at.rho[c], now.heads[c], now.long_wait[c], now.full[c], net.channels, law
                )
            change = max(change, abs(new - now.held[c]) / (1 + new))
            now.held[c] += 0.5 * (new - now.held[c])
        if change < TOLERANCE:
            return STABLE
    return STABLE if change < 1e-3 else DIVERGED


@array_part
def _fronts(net: Network, at: Load, law: Any, now: _State, into: Any) -> float:
    """Renew the times at the front and what they come to by channel; return the largest change."""
    channels, h, change = net.channels, now.h, 0.0
    contention, pair_h, pair_wait = (
        np.zeros(into.size),
        np.zeros(at.from_pair.size),
        np.zeros(at.from_pair.size),
    )
    now.heads[:] = 0.0
    for t in range(h.size):
        c, k = net.sink[t], net.pair[t]
        waiting = at.rate[t] * h[t] * at.rho[c] / at.lam[c]
        contention[c] += at.second[t] / 2 + waiting
        pair_h[k] += at.second[t] / 2 + waiting
        pair_wait[k] += waiting
    for t in range(h.size):
        c, i = net.sink[t], net.source[t]
        near = law.beside * (1 - 1 / channels[i, 9]) * pair_wait[net.pair[t]]
        # Where credits come back late packets hold each other up, smooth or not.
        easier = at.smooth[c] if channels[c, 3] >= channels[c, 4] else 1.0
        new = (easier * (contention[c] - pair_h[net.pair[t]]) + near) * at.factor[t]
        change = max(change, abs(new - h[t]) / (1 + new))
        h[t] += 0.5 * (new - h[t])
        at_front = at.rate[t] * (h[t] + now.held[c] + law.passed * now.front_q[t])
        now.heads[i] += at_front
        into[c] += at_front
    return change


@array_part
def _behind(net: Network, at: Load, law: Any, now: _State, into: Any) -> float:
    """Renew the waits behind heads and the chances of full buffers; return the largest change.

    Less than 0 where heads block an input for good.
    """
    channels, q, front_q, change = net.channels, now.q, now.front_q, 0.0
    count = into.size
    other, same, other_load, same_load = np.zeros(count), np.zeros(count), np.zeros(count), np.zeros(count)
    of_pair = np.zeros((at.from_pair.size, 3))
    now.long_wait[:], now.full[:] = 0.0, 0.0
    for t in range(q.size):
        c, i = net.sink[t], net.source[t]
        first, again, load_first, load_again = _blocking(
            c, i, at.rate[t], at.from_pair[net.pair[t]], at.lam, at.rho, into,
            now.h[t] + now.held[c], law.passed * front_q[t], law.clump, law.bunched,
        )  # fmt: skip
        of_pair[net.pair[t], 0] += first
        of_pair[net.pair[t], 1] += again
        of_pair[net.pair[t], 2] += load_first
        other[i] += first
        same[i] += again
        other_load[i] += load_first
        same_load[i] += load_again
    for t in range(q.size):
        c, i = net.sink[t], net.source[t]
        first, again, load_first = of_pair[net.pair[t]]
        one = 1 / channels[i, 9]
        two = law.conflict * (1 - one)
        other_busy, same_busy = two * (other_load[i] - load_first), one * same_load[i]
        if max(other_busy, same_busy) >= 1:
            return -1.0
        new_front = two * (other[i] - first) / (1 - other_busy) * at.factor[t]
        new = new_front + one * (same[i] - again) / (1 - same_busy)
        change = max(change, abs(new - q[t]) / (1 + new))
        front_q[t] += 0.5 * (new_front - front_q[t])
        q[t] += 0.5 * (new - q[t])
        if channels[i, 7] > 0 and now.own[t] + q[t] > SMALL:
            tau = law.typical * at.rho[i] / at.lam[i] + now.own[t] + q[t]
            space = max(0.0, channels[i, 3] - channels[i, 4] + law.room)
            chance = at.rate[t] / at.lam[i] * (now.own[t] + q[t]) / tau * math.exp(-space / tau)
            gaps = at.lam[i] / (1 - at.rho[i]) * tau / channels[i, 9]
            now.long_wait[i] += chance
            now.full[i] += chance * _power(gaps / (1 + gaps), math.floor(channels[i, 3] / channels[i, 5]))
    return change


@part
def _power(x: float, n: int) -> float:
    """Return the power by squaring, which rounds the same with and without the compiler."""
    found = 1.0
    while n > 0:
        if n & 1:
            found *= x
        n >>= 1
        x *= x
    return found


@part
def _blocking(
    c: int, i: int, rate: float, own_load: float, lam: Any, rho: Any, into: Any, at_front: float,
    conflict: float, clump: float, bunched: float,
) -> tuple[float, float, float, float]:  # fmt: skip
    """Wait that the packets of a turn add to the others at their input."""
    gap_rate = lam[i] / (1 - rho[i])
    behind = clump * (rho[i] + bunched * into[i]) / (1 - rho[i])
    part = rate / lam[i]
    x, service = rho[c] - own_load, rho[c] / lam[c]
    spread = x * (service * service) / (3 * (1 - x))
    first = part * (gap_rate * (2 * at_front * at_front + spread + at_front) / 2 + behind * at_front)
    longer = at_front + conflict
    again = part * (gap_rate * (2 * longer * longer + spread + longer) / 2 + behind * longer)
    return first, again, part * gap_rate * at_front, part * gap_rate * longer


@part
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
