"""The state of one DRAM channel as arrays: what kernels see of a spec."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from qmodels.systems.memory.dram_system import DramSystem

# Numbers of a channel, see `qmodels.systems.memory.dram_timing.DramTiming`; the last are the controller's.
(
    BURST, T_RCD, CL, CWL, T_RP, T_RAS, T_RC, T_RRD_S, T_RRD_L, T_FAW, T_CCD_L, T_WTR_S, T_WTR_L, T_WR,
    T_RTP, T_RTRS, T_REFI, T_RFC, RANKS, GROUPS, BANKS, CLOSED, HITS_FIRST, CAP, HIGH, LOW, ACCESSES, SHIFT,
) = range(28)  # fmt: skip
# Of a bank: when it may take a row command, a column command and be closed; its open row (-1: none)
# and the accesses to it; the access it was opened for, that it was closed for, and what that access
# waited for: the bank, the rank's row commands, a refresh; its rank, and its group in the channel.
(
    ROW_AT, COLUMN_AT, CLOSE_AT, OPEN_ROW, HITS, OPENED_FOR, CLOSED_FOR, ROW_TIME, BANK_TIME, SLOT_TIME,
    REFRESH_TIME, RANK, GROUP,
) = range(13)  # fmt: skip
# Of a queue, one for each direction and bank: first and last access, place among those not empty.
HEAD, TAIL, PLACE = range(3)
# Of a queue that is not empty, at its place: earliest time by its bank, which limit else applies, the
# access that is next, the bank.
OWN, LIMIT, ACCESS, BANK = range(4)
# Kinds of commands; a column command of a write is the next number.
COLUMN, _, ROW, CLOSE = range(4)
# Of a rank: the next refresh, whether one is due; the last one from and until when; which of the last
# four row commands is the oldest; these.
REFRESH_AT, DUE, BLOCKED_FROM, BLOCKED_TO, OLDEST, GIVEN = range(6)
# Of the channel: time, direction served, accesses that came and were served, non-empty queues of each
# direction, waiting accesses of each, ranks due for a refresh.
NOW, MODE, CAME, SERVED, QUEUES, _, WAITING, _, RANKS_DUE = range(9)
# Sums over the accesses of a batch and a direction.
COUNT, LATENCY, ROWS, BANK_WAIT, SLOT_WAIT, BUS_WAIT, REFRESH_WAIT, CONFLICTS, OPENED = range(9)
SUMS = 9

NEVER = 1 << 60
LONGEST = 1 << 15
"""Latencies from here on are counted together. [cycles]"""
BATCHES = 16
"""Least number of batches of the accesses, each a power of two; the first is the warm-up."""


class Channel(NamedTuple):
    """Arrays of one channel; of ``limits`` there is one for each kind of command and bank group."""

    p: Any
    arrival: Any
    bank_of: Any
    row: Any
    write: Any
    following: Any
    banks: Any
    queues: Any
    entries: Any
    limits: Any
    ranks: Any
    clock: Any
    sums: Any
    counts: Any


def batch_shift(accesses: int) -> int:
    """Return the exponent of the accesses of a batch."""
    return max(0, (accesses // BATCHES).bit_length() - 1)


def parameters(spec: DramSystem, accesses: int) -> Any:
    """Return the numbers of a channel in the order of the names above."""
    t, g = spec.timing, spec.geometry
    return np.array(
        [
            t.burst, t.t_rcd, t.cl, t.cwl, t.t_rp, t.t_ras, t.t_rc, t.t_rrd_s, t.t_rrd_l, t.t_faw, t.t_ccd_l,
            t.t_wtr_s, t.t_wtr_l, t.t_wr, t.t_rtp, t.t_rtrs, t.t_refi, t.t_rfc, g.ranks, g.groups, g.banks,
            spec.page_policy == "closed", spec.scheduler == "fr-fcfs", spec.row_hit_cap, spec.write_high,
            spec.write_low, accesses, batch_shift(accesses),
        ],
        dtype=np.int64,
    )  # fmt: skip


def new_channel(spec: DramSystem, *, arrival: Any, bank: Any, row: Any, write: Any, start: float) -> Channel:
    """Return an idle channel and its accesses.

    Parameters
    ----------
    spec : DramSystem
        The system.
    arrival, bank, row, write : arrays of int
        Accesses to the channel, in the order of their arrival.
    start : float
        When in the first refresh interval the run begins, as a share of it.
    """
    g, t = spec.geometry, spec.timing
    total = g.channel_banks
    banks = np.zeros((total, 13), dtype=np.int64)
    banks[:, [OPEN_ROW, OPENED_FOR, CLOSED_FOR]] = -1
    banks[:, RANK] = np.arange(total) // g.rank_banks
    banks[:, GROUP] = np.arange(total) // g.banks
    queues = np.full((2 * total, 3), -1, dtype=np.int64)
    ranks = np.full((g.ranks, GIVEN + 4), -NEVER, dtype=np.int64)
    ranks[:, [DUE, OLDEST]] = 0
    ranks[:, REFRESH_AT] = NEVER
    if t.t_rfc:
        turn = (np.arange(g.ranks) / g.ranks + start) % 1.0
        ranks[:, REFRESH_AT] = (turn * t.t_refi).astype(np.int64)
    return Channel(
        p=parameters(spec, len(arrival)),
        arrival=np.append(arrival, NEVER),
        bank_of=bank,
        row=row,
        write=write,
        following=np.empty(len(arrival), dtype=np.int64),
        banks=banks,
        queues=queues,
        entries=np.zeros((2, total, 4), dtype=np.int64),
        limits=np.zeros(4 * g.ranks * g.groups, dtype=np.int64),
        ranks=ranks,
        clock=np.zeros(9, dtype=np.int64),
        sums=np.zeros((2, (len(arrival) >> batch_shift(len(arrival))) + 1, SUMS), dtype=np.int64),
        counts=np.zeros((2, LONGEST + 1), dtype=np.int64),
    )
