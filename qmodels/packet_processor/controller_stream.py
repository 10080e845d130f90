"""Sample of the accesses of packets to the channels of a `DramSystem`, followed at any rate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.numerics.kernels import compiled
from qmodels.packet_processor.following.recording import rotation
from qmodels.systems.memory.dram_system import DramSystem
from qmodels.systems.traffic.arrivals import Recorded, Workload

NEVER = 1 << 60
(
    BURST, T_RCD, CL, CWL, T_RP, T_RAS, T_RC, T_RRD_S, T_RRD_L, T_FAW, T_CCD_L, T_WTR_S, T_WTR_L, T_WR, T_RTP,
    T_RTRS, T_REFI, T_RFC, RANKS, GROUPS, BANKS, CLOSED, CAP, HIGH, LOW, CONTROLLER, TO_WRITE, TO_READ_RANK,
) = range(28)  # fmt: skip
COLUMN, ROW, CLOSE = range(3)
OPEN_ROW, ROW_AT, COLUMN_AT, CLOSE_AT, HITS, LAST_END, LAST_ROW = range(7)


def numbers(spec: DramSystem) -> Any:
    """Numbers of a system that the recursion takes, in the order of the names above."""
    t, g = spec.timing, spec.geometry
    return np.array(
        [
            t.burst, t.t_rcd, t.cl, t.cwl, t.t_rp, t.t_ras, t.t_rc, t.t_rrd_s, t.t_rrd_l, t.t_faw, t.t_ccd_l,
            t.t_wtr_s, t.t_wtr_l, t.t_wr, t.t_rtp, t.t_rtrs, t.t_refi if t.t_rfc else NEVER, t.t_rfc, g.ranks,
            g.groups, g.banks, spec.page_policy == "closed",
            spec.row_hit_cap if spec.scheduler == "fr-fcfs" else 0, spec.write_high, spec.write_low,
            spec.controller_cycles, t.read_to_write, max(t.burst, t.cwl + t.burst + t.t_rtrs - t.cl),
        ],
        dtype=np.int64,
    )  # fmt: skip


@compiled
def follow(n: Any, arrival: Any, bank: Any, row: Any, write: Any) -> tuple[Any, Any, Any]:
    """Return when each access of a channel ends [cycles], and whether it met a conflict and opened its row.

    Parameters
    ----------
    n : array of int
        See `numbers`.
    arrival, bank, row, write : arrays of int
        Accesses in the order of their arrival [cycles], their banks and rows, 1 for a write.

    Notes
    -----
    Of the banks' next accesses of the direction that is served the one goes first whose command may be given
    first, column commands before others and then older accesses before younger ones; row hits pass older
    accesses to their bank up to the cap. Writes are served when no read waits or there are ``write_high``,
    until ``write_low`` are left. A rank is refreshed on time, open rows being closed first. An access
    meets a conflict if its bank has an unfinished one and, with open pages, the one before it was to
    another row.
    """
    groups = n[RANKS] * n[GROUPS]
    banks, size = groups * n[BANKS], arrival.size
    s = np.zeros((banks, 7), dtype=np.int64)
    s[:, OPEN_ROW] = -1
    s[:, LAST_ROW] = -1
    head = np.full((2, banks), -1, dtype=np.int64)
    tail = np.full((2, banks), -1, dtype=np.int64)
    used = np.zeros((2, banks), dtype=np.int64)
    chosen = np.full((2, banks), -1, dtype=np.int64)
    count, waiting = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    following = np.full(size, -1, dtype=np.int64)
    columns, rows = np.zeros((2, groups), dtype=np.int64), np.zeros(groups, dtype=np.int64)
    four, oldest = np.full((n[RANKS], 4), -NEVER, dtype=np.int64), np.zeros(n[RANKS], dtype=np.int64)
    refresh = np.empty(n[RANKS], dtype=np.int64)
    for r in range(n[RANKS]):
        refresh[r] = NEVER if n[T_RFC] == 0 else n[T_REFI] * (r + 1) // n[RANKS]
    end, busy = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.bool_)
    opened = np.zeros(size, dtype=np.bool_)
    now, came, left, mode = 0, 0, size, 0
    while left > 0:
        best, best_kind, best_k, best_place = NEVER, CLOSE, size, -1
        for place in range(count[mode]):
            b = used[mode, place]
            k = chosen[mode, b]
            if k < 0:
                k = head[mode, b]
                if n[CAP] > 0 and s[b, OPEN_ROW] >= 0 and s[b, HITS] < n[CAP]:
                    other = k
                    while other >= 0 and row[other] != s[b, OPEN_ROW]:
                        other = following[other]
                    if other >= 0:
                        k = other
                chosen[mode, b] = k
            time, kind = max(now, arrival[k]), CLOSE
            if s[b, OPEN_ROW] < 0:
                kind = ROW
                time = max(time, max(s[b, ROW_AT], rows[b // n[BANKS]]))
            elif s[b, OPEN_ROW] == row[k]:
                kind = COLUMN
                time = max(time, max(s[b, COLUMN_AT], columns[mode, b // n[BANKS]]))
            else:
                time = max(time, s[b, CLOSE_AT])
            first = time < best or (time == best and (kind > COLUMN) < (best_kind > COLUMN))
            if first or (time == best and (kind > COLUMN) == (best_kind > COLUMN) and k < best_k):
                best, best_kind, best_k, best_place = time, kind, k, place
        due = 0
        for r in range(1, n[RANKS]):
            if refresh[r] < refresh[due]:
                due = r
        arrives = arrival[came] if came < size else NEVER
        if refresh[due] <= min(best, arrives):
            begin = max(refresh[due], now)
            for b in range(due * n[GROUPS] * n[BANKS], (due + 1) * n[GROUPS] * n[BANKS]):
                free = s[b, CLOSE_AT] + n[T_RP] if s[b, OPEN_ROW] >= 0 else s[b, ROW_AT]
                begin = max(begin, free)
            for b in range(due * n[GROUPS] * n[BANKS], (due + 1) * n[GROUPS] * n[BANKS]):
                s[b, OPEN_ROW] = -1
                s[b, ROW_AT] = begin + n[T_RFC]
                chosen[:, b] = -1
            refresh[due] += n[T_REFI]
            continue
        if arrives <= best:
            k, b, m = came, bank[came], write[came]
            unfinished = head[0, b] >= 0 or head[1, b] >= 0 or s[b, LAST_END] > arrival[k]
            busy[k] = unfinished and (n[CLOSED] == 1 or s[b, LAST_ROW] != row[k])
            s[b, LAST_ROW] = row[k]
            if head[m, b] < 0:
                head[m, b] = k
                used[m, count[m]] = b
                count[m] += 1
            else:
                following[tail[m, b]] = k
            tail[m, b] = k
            if row[k] == s[b, OPEN_ROW]:
                chosen[m, b] = -1
            waiting[m] += 1
            came += 1
            before = mode
            if mode == 0 and (waiting[1] >= n[HIGH] or (waiting[0] == 0 and waiting[1] > 0)):
                mode = 1
            elif mode == 1 and (waiting[1] == 0 or (waiting[0] > 0 and waiting[1] <= n[LOW])):
                mode = 0
            if mode != before:
                now = max(now, arrives)
            continue
        b, k = used[mode, best_place], best_k
        g = b // n[BANKS]
        r = g // n[GROUPS]
        now = best + 1
        chosen[:, b] = -1
        if best_kind == CLOSE:
            s[b, OPEN_ROW] = -1
            s[b, ROW_AT] = max(s[b, ROW_AT], best + n[T_RP])
        elif best_kind == ROW:
            four[r, oldest[r]] = best
            oldest[r] = (oldest[r] + 1) & 3
            after = max(best + n[T_RRD_S], four[r, oldest[r]] + n[T_FAW])
            for other in range(r * n[GROUPS], (r + 1) * n[GROUPS]):
                rows[other] = max(rows[other], after)
            rows[g] = max(rows[g], best + n[T_RRD_L])
            s[b, OPEN_ROW], s[b, HITS] = row[k], 0
            s[b, ROW_AT], s[b, COLUMN_AT], s[b, CLOSE_AT] = best + n[T_RC], best + n[T_RCD], best + n[T_RAS]
            opened[k] = True
            if n[T_RCD] == 0:
                now = best
        else:
            for other in range(groups):
                same = other // n[GROUPS] == r
                again = n[T_CCD_L] if other == g else n[BURST] + (0 if same else n[T_RTRS])
                turned = n[TO_WRITE]
                if mode == 1 and same:
                    turned = n[CWL] + n[BURST] + (n[T_WTR_L] if other == g else n[T_WTR_S])
                elif mode == 1:
                    turned = n[TO_READ_RANK]
                columns[mode, other] = max(columns[mode, other], best + again)
                columns[1 - mode, other] = max(columns[1 - mode, other], best + turned)
            data = best + (n[CWL] if mode else n[CL]) + n[BURST]
            end[k] = data + n[CONTROLLER]
            s[b, LAST_END] = max(s[b, LAST_END], end[k])
            s[b, HITS] += 1
            s[b, CLOSE_AT] = max(s[b, CLOSE_AT], data + n[T_WR] if mode else best + n[T_RTP])
            if n[CLOSED]:
                s[b, OPEN_ROW] = -1
                s[b, ROW_AT] = max(s[b, ROW_AT], s[b, CLOSE_AT] + n[T_RP])
            left -= 1
            waiting[mode] -= 1
            if head[mode, b] == k:
                head[mode, b] = following[k]
            else:
                before = head[mode, b]
                while following[before] != k:
                    before = following[before]
                following[before] = following[k]
                if following[k] < 0:
                    tail[mode, b] = before
            if head[mode, b] < 0:
                count[mode] -= 1
                used[mode, best_place] = used[mode, count[mode]]
            if mode == 0 and (waiting[1] >= n[HIGH] or (waiting[0] == 0 and waiting[1] > 0)):
                mode = 1
            elif mode == 1 and (waiting[1] == 0 or (waiting[0] > 0 and waiting[1] <= n[LOW])):
                mode = 0
    return end, busy, opened


ACCESSES, FEWEST = 40_000, 3_000
"""Accesses of a sample, about, and its fewest packets."""
SEED = 1
"""Of all that is drawn for a sample."""
WARM_UP = 0.2
"""Part of the time of a sample that is not measured."""
TABLE_ROWS = 1 << 40
"""Rows of table entries begin here, apart from those of blocks."""


class Pace(NamedTuple):
    """Order of the accesses of a packet; times in ns."""

    # write_gap, request_gap: between its writes, and between its reads.
    write_gap: float
    request_gap: float
    delivery: float  # time of one of its segments on the last link
    misses: float  # lookups of a packet that go to DRAM
    hold: float  # mean time between its writes and its reads
    # store, drain: time of the pointer memory to store and to drain a packet, without its segments.
    store: float
    drain: float
    # store_segment, drain_segment: and for each of its segments.
    store_segment: float
    drain_segment: float


class Ends(NamedTuple):
    """When the accesses of a sample came and ended, each flat. [ns]."""

    arrival: FloatArray
    end: FloatArray
    conflict: Any
    opened: Any
    time: float


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Packets whose accesses are followed; the same ones for every rate.

    Packets take consecutive blocks of runs that begin anywhere, are written at their pace, and are read
    an exponential hold later, one packet after the other as the pointer memory has it; times go round, so
    that the sample is stationary. Trials are left out: blocks are taken as they come.
    """

    dram: DramSystem  # the memory
    workload: Workload  # packets, in which rates do not matter
    # blocks, run_length: blocks of the free list, and mean length of the runs in which they are taken.
    blocks: float
    run_length: float
    pace: Pace  # how a packet's accesses follow one another
    times: int = 1  # how many times as large the sample is as others

    @cached_property
    def packets(self) -> Any:
        """The realised packets, at one packet a ns."""
        rng = np.random.default_rng([SEED, 0])
        mean = float(np.dot(*self.workload.segment_law))
        count = self.times * max(FEWEST, int(ACCESSES / (2 * mean + self.pace.misses)))
        if isinstance(self.workload.arrivals, Recorded):
            return rotation(self.workload.arrivals.trace, int(self.workload.segment_bytes)).sample(count)
        one = 8 * self.workload.sizes.mean_bytes
        return replace(self.workload, offered_gbps=one, load_factor=1.0).packets(rng, count)

    @cached_property
    def _drawn(self) -> dict[str, Any]:
        """Everything that does not depend on the rate: packets of the accesses, places, holds."""
        rng = np.random.default_rng([SEED, 1])
        sizes, count = self.packets.segments, self.packets.segments.size
        packet = np.repeat(np.arange(count), sizes)
        within = np.arange(packet.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        block = self._blocks(packet.size, rng)
        places = self.dram.address_map.locate(block, self.dram.geometry)
        channel, bank, row = (np.broadcast_to(part, block.shape) for part in places[:3])
        misses = np.floor(self.pace.misses + rng.random(count)).astype(np.int64)
        asking = np.repeat(np.arange(count), misses)
        g = self.dram.geometry
        return {
            "packet": packet,
            "within": within,
            "hold": rng.exponential(size=count),
            "asking": asking,
            "channel": np.concatenate([channel, channel, rng.integers(g.channels, size=asking.size)]),
            "bank": np.concatenate([bank, bank, rng.integers(g.channel_banks, size=asking.size)]),
            "row": np.concatenate([row, row, TABLE_ROWS + np.arange(asking.size)]),
            "write": np.repeat([1, 0, 0], [packet.size, packet.size, asking.size]),
        }

    def _blocks(self, count: int, rng: np.random.Generator) -> IntArray:
        """Return so many blocks in the order in which they are taken."""
        fresh = rng.random(count) < (1.0 / self.run_length if np.isfinite(self.run_length) else 0.0)
        fresh[0] = True
        first = np.flatnonzero(fresh)
        start = rng.integers(int(self.blocks), size=first.size)
        run = np.cumsum(fresh) - 1
        return np.asarray((start[run] + np.arange(count) - first[run]) % int(self.blocks), dtype=np.int64)

    @property
    def segments(self) -> IntArray:
        """Segments of each packet."""
        return np.asarray(self.packets.segments)

    def follow(self, rate: float, *, ahead: int = 0) -> Ends:
        """Return waits of writes, reads and lookups, in that order, at a rate of packets per ns.

        With ``ahead`` nothing is held, and reads are so many packets ahead of writes: those of the first
        ones wait when it begins.
        """
        d, pace, n = self._drawn, self.pace, numbers(self.dram)
        time = (self.packets.times_ns[-1] + 1.0) / rate
        begin = self.packets.times_ns / rate
        written = begin + self.segments * pace.write_gap + self._alone
        if ahead:
            read = np.concatenate([np.zeros(ahead), begin[: begin.size - ahead]])
        else:
            begin, read = self._through_pointers(begin, (written + d["hold"] * pace.hold) % time)
        arrival = np.concatenate(
            [
                begin[d["packet"]] + d["within"] * pace.write_gap,
                read[d["packet"]] + d["within"] * pace.request_gap,
                begin[d["asking"]],
            ]
        )
        ghz = self.dram.clock_ghz
        cycle = np.floor(arrival * ghz).astype(np.int64)
        ends, busy, opened = np.zeros(cycle.size, dtype=np.int64), *np.zeros((2, cycle.size), dtype=bool)
        order = np.lexsort((np.arange(cycle.size), cycle, d["channel"]))
        edges = np.searchsorted(d["channel"][order], np.arange(self.dram.geometry.channels + 1))
        for low, high in zip(edges[:-1], edges[1:], strict=True):
            here = order[low:high]
            one = (d[name][here] for name in ("bank", "row", "write"))
            ends[here], busy[here], opened[here] = follow(n, cycle[here], *one)
        return Ends(arrival, arrival + (ends - cycle) / ghz, busy, opened, time)

    def _through_pointers(self, store: FloatArray, drain: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return when the pointer memory begins with packets that come to be stored and to be drained."""
        pace, coming = self.pace, np.concatenate([store, drain])
        order = np.argsort(coming, kind="stable")
        work = np.concatenate(
            [pace.store + self.segments * pace.store_segment, pace.drain + self.segments * pace.drain_segment]
        )[order]
        done = np.cumsum(work)
        started = np.empty(coming.size)
        started[order] = done - work + np.maximum.accumulate(coming[order] - (done - work))
        return started[: store.size], started[store.size :]

    @property
    def _alone(self) -> float:
        """Time of a write in an idle memory, about. [ns]."""
        t = self.dram.timing
        return (self.dram.controller_cycles + t.t_rcd + t.cwl + t.burst) / t.clock_ghz
