"""The state of one DRAM channel, and address maps, as arrays: what kernels see of a spec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from qmodels.systems.memory import dram_map, memory_map
from qmodels.systems.memory.dram_map import PERMUTATIONS, BitFields, Interleaved
from qmodels.systems.memory.dram_system import DramSystem
from validate.engine.jit import lean, lean_part

# Numbers of a channel, see `qmodels.systems.memory.dram_timing.DramTiming`, and of its controller; the least
# time from a column command to the end of its access; accesses of a batch, as a power of two.
(
    BURST, T_RCD, CL, CWL, T_RP, T_RAS, T_RC, T_RRD_S, T_RRD_L, T_FAW, T_CCD_L, T_WTR_S, T_WTR_L, T_WR,
    T_RTP, T_RTRS, T_REFI, T_RFC, RANKS, GROUPS, BANKS, CLOSED, IN_ORDER, HITS_FIRST, CAP, HIGH, LOW,
    CONTROLLER, LEAST, SHIFT,
) = range(30)  # fmt: skip
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
# access that is next, its number in the order of arrival, the bank.
OWN, LIMIT, ACCESS, NUMBER, BANK = range(5)
# Kinds of commands; a column command of a write is the next number.
COLUMN, _, ROW, CLOSE = range(4)
# Of a rank: the next refresh, whether one is due; the last one from and until when; which of the last
# four row commands is the oldest; these.
REFRESH_AT, DUE, BLOCKED_FROM, BLOCKED_TO, OLDEST, GIVEN = range(6)
# Of the channel: time, direction served, non-empty queues of each direction, waiting accesses of each, ranks
# due for a refresh; accesses that are not served; the next and the last one that will come, the first and the
# last one that ended (-1: none).
NOW, MODE, QUEUES, _, WAITING, _, RANKS_DUE, LEFT, CAME, LAST, ENDED, LAST_ENDED = range(12)
# Sums over the accesses of a batch and a direction.
COUNT, LATENCY, ROWS, BANK_WAIT, SLOT_WAIT, BUS_WAIT, REFRESH_WAIT, CONFLICTS, OPENED = range(9)
SUMS = 9

NEVER = 1 << 60
LONGEST = 1 << 15
"""Latencies from here on are counted together. [cycles]"""
BATCHES = 16
"""Least number of batches of the accesses, each a power of two; the first is the warm-up."""

NONE = np.empty(0, dtype=np.int64)


class Channel(NamedTuple):
    """Arrays of one channel."""

    p: Any  # numbers of the channel
    # arrival, bank_of, row, write, number, following, end: of each access: cycle of arrival, bank, row,
    # whether it is a write, its number in the order of arrival, the one behind it in its queue, when it ends.
    # The last ``arrival`` is `NEVER`, that of the access -1. Without ``number`` accesses have that of their
    # place, without ``end`` it is not kept.
    arrival: Any
    bank_of: Any
    row: Any
    write: Any
    number: Any
    following: Any
    end: Any
    # banks, queues, entries, limits, ranks, clock: see the names above; of ``limits`` there is one for each
    # kind of command and bank group.
    banks: Any
    queues: Any
    entries: Any
    limits: Any
    ranks: Any
    clock: Any
    # sums, counts: sums over the accesses of each direction and batch, and those after the first by latency.
    sums: Any
    counts: Any


def batch_shift(accesses: int) -> int:
    """Return the exponent of the accesses of a batch."""
    return max(0, (accesses // BATCHES).bit_length() - 1)


def parameters(spec: DramSystem, shift: int) -> Any:
    """Return the numbers of a channel in the order of the names above."""
    t, g = spec.timing, spec.geometry
    least = min(t.cl, t.cwl) + t.burst + spec.controller_cycles
    return np.array(
        [
            t.burst, t.t_rcd, t.cl, t.cwl, t.t_rp, t.t_ras, t.t_rc, t.t_rrd_s, t.t_rrd_l, t.t_faw, t.t_ccd_l,
            t.t_wtr_s, t.t_wtr_l, t.t_wr, t.t_rtp, t.t_rtrs, t.t_refi, t.t_rfc, g.ranks, g.groups, g.banks,
            spec.page_policy == "closed", spec.scheduler == "in-order", spec.scheduler == "fr-fcfs",
            spec.row_hit_cap, spec.write_high, spec.write_low, spec.controller_cycles, least, shift,
        ],
        dtype=np.int64,
    )  # fmt: skip


def idle_state(spec: DramSystem, start: float) -> dict[str, Any]:
    """Return the state of a channel without accesses, by the names of `Channel`.

    ``start``: when in the first refresh interval the run begins, as a share of it.
    """
    g, t = spec.geometry, spec.timing
    total = g.channel_banks
    banks = np.zeros((total, 13), dtype=np.int64)
    banks[:, [OPEN_ROW, OPENED_FOR, CLOSED_FOR]] = -1
    banks[:, RANK] = np.arange(total) // g.rank_banks
    banks[:, GROUP] = np.arange(total) // g.banks
    ranks = np.full((g.ranks, GIVEN + 4), -NEVER, dtype=np.int64)
    ranks[:, [DUE, OLDEST]] = 0
    ranks[:, REFRESH_AT] = NEVER
    if t.t_rfc:
        turn = (np.arange(g.ranks) / g.ranks + start) % 1.0
        ranks[:, REFRESH_AT] = (turn * t.t_refi).astype(np.int64)
    clock = np.zeros(12, dtype=np.int64)
    clock[[CAME, LAST, ENDED, LAST_ENDED]] = -1
    return {
        "banks": banks,
        "queues": np.full((2 * total, 3), -1, dtype=np.int64),
        "entries": np.zeros((2, total, 5), dtype=np.int64),
        "limits": np.zeros(4 * g.ranks * g.groups, dtype=np.int64),
        "ranks": ranks,
        "clock": clock,
    }


def new_channel(spec: DramSystem, *, arrival: Any, bank: Any, row: Any, write: Any, start: float) -> Channel:
    """Return an idle channel and all accesses that will come.

    ``arrival``, ``bank``, ``row``, ``write``: accesses to the channel, in the order of their arrival;
    ``start``: when in the first refresh interval the run begins, as a share of it.
    """
    count = len(arrival)
    state, shift = idle_state(spec, start), batch_shift(count)
    if count:
        state["clock"][[LEFT, CAME, LAST]] = count, 0, count - 1
    return Channel(
        p=parameters(spec, shift),
        arrival=np.append(arrival, NEVER),
        bank_of=bank,
        row=row,
        write=write,
        number=NONE,
        following=np.append(np.arange(1, count), -1),
        end=NONE,
        sums=np.zeros((2, (count >> shift) + 1, SUMS), dtype=np.int64),
        counts=np.zeros((2, LONGEST + 1), dtype=np.int64),
        **state,
    )


# Numbers of an interleaving map; sizes and distances of its three digits follow.
STEP, OF_CHANNELS, BANK_STEP, OF_BANKS, ROW_BLOCKS, PERMUTATION, SIZES = range(7)
DISTANCES = SIZES + 3
BYTES = 5
"""Bytes of a block's number that a linear map may use."""
FIELD = 16
"""Bits of the channel, and of the bank, in a place that is packed into a word; the row is above them."""

channel_of = lean_part(memory_map.channel_of)
index_in_channel = lean_part(memory_map.index_in_channel)
index_in_bank = lean_part(memory_map.index_in_bank)
bank_of = lean_part(memory_map.bank_of)
permuted = lean_part(dram_map.permuted)
mixed_radix = lean_part(dram_map.mixed_radix)


class AddressBooks(NamedTuple):
    """Address maps of some systems."""

    numbers: Any  # of a map that interleaves: see the names above; a step of 0 marks one that is linear
    # Of a linear map: the places of numbers of one byte, at each of its positions, packed. Of bit fields
    # every bit of the place is an exclusive or of bits of the block, so that the place of a block is the
    # exclusive or of those of its bytes; interleaving by powers of two is of this kind.
    images: Any


def new_books(specs: Sequence[Any]) -> AddressBooks:
    """Return the address maps of some systems, which have a geometry."""
    numbers = np.zeros((len(specs), DISTANCES + 3), dtype=np.int64)
    images = np.zeros((len(specs), BYTES, 256), dtype=np.int64)
    for k, spec in enumerate(specs):
        plan, g = spec.address_map, spec.geometry
        if _is_linear(spec):
            place = plan.locate(np.arange(256) << 8 * np.arange(BYTES)[:, None], g)
            images[k] = place.row << 2 * FIELD | place.bank << FIELD | place.channel
        elif isinstance(plan, Interleaved):
            sizes, distances = plan.digits(g)
            permutation = PERMUTATIONS.index(plan.permute)
            numbers[k] = (
                *(plan.step, g.channels, plan.bank_step, g.channel_banks, g.row_blocks, permutation),
                *(*sizes, *distances),
            )
    return AddressBooks(numbers, images)


def _is_linear(spec: Any) -> bool:
    plan, g = spec.address_map, spec.geometry
    if isinstance(plan, BitFields):
        return True
    sizes = (plan.step, plan.bank_step, g.channels, g.ranks, g.groups, g.banks, g.row_blocks)
    return plan.permute != "rotate" and all(size & (size - 1) == 0 for size in sizes)


@lean
def locate(books: AddressBooks, k: int, block: Any) -> tuple[Any, Any, Any]:
    """Return channel, bank of the channel, and row of a block of a system, as its address map does."""
    p = books.numbers[k]
    if p[STEP] == 0:
        place = np.int64(0)
        for byte in range(BYTES):
            place ^= books.images[k, byte, block >> 8 * byte & 255]
        mask = (1 << FIELD) - 1
        return place & mask, place >> FIELD & mask, place >> 2 * FIELD
    index = index_in_channel(block, p[STEP], p[OF_CHANNELS])
    row = index_in_bank(index, p[BANK_STEP], p[OF_BANKS]) // p[ROW_BLOCKS]
    turn = permuted(bank_of(index, p[BANK_STEP], p[OF_BANKS]), row, p[OF_BANKS], p[PERMUTATION])
    bank = mixed_radix(turn, p[SIZES:DISTANCES], p[DISTANCES:])
    return channel_of(block, p[STEP], p[OF_CHANNELS]), bank, row
