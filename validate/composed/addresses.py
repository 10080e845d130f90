"""Which blocks a strand reads or writes, and where in the memory they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels.systems.memory import address_map
from qmodels.systems.memory.dram_map import FIELDS, LEVELS, BitFields, DramGeometry, Interleaved
from qmodels.systems.memory.dram_traffic import SPAN
from validate.composed.state import IN_SEQUENCE, RANDOMLY, Core
from validate.composed.strands import count_of
from validate.engine.jit import lean, lean_part
from validate.engine.streams import uniform
from validate.network.state import World

# Of a map: whether it is of bit fields; the numbers of interleaving; of bit fields the masks of each field from
# there on, ended by 0.
(
    BY_BITS, CHANNELS, STEP, BANK_STEP, BANKS, ROW_BLOCKS, PERMUTE, RANKS, GROUPS, GROUP_BANKS, ORDER,
) = range(11)  # fmt: skip
MASKS = ORDER + len(LEVELS)
PERMUTATIONS = ("none", "rotate", "xor")
GROUP, BANK, RANK = range(len(LEVELS))

channel_of = lean_part(address_map.channel_of)
index_in_channel = lean_part(address_map.index_in_channel)
bank_of = lean_part(address_map.bank_of)
index_in_bank = lean_part(address_map.index_in_bank)


def map_row(plan: Interleaved | BitFields, geometry: DramGeometry) -> list[int]:
    """Return an address map as numbers for `place_of`."""
    g = geometry
    row = [0] * MASKS
    row[CHANNELS], row[BANKS], row[ROW_BLOCKS] = g.channels, g.channel_banks, g.row_blocks
    row[RANKS], row[GROUPS], row[GROUP_BANKS] = g.ranks, g.groups, g.banks
    if isinstance(plan, Interleaved):
        row[STEP], row[BANK_STEP] = plan.step, plan.bank_step
        row[PERMUTE] = PERMUTATIONS.index(plan.permute)
        row[ORDER:MASKS] = [LEVELS.index(level) for level in plan.order]
        return row
    row[BY_BITS] = 1
    for name in FIELDS:
        row += [*getattr(plan, name), 0]
    return row


def map_table(rows: list[list[int]]) -> Any:
    """Return the maps of all parts, those of parts that have none empty."""
    table = np.zeros((len(rows), max(map(len, rows), default=1)), dtype=np.int64)
    for line, row in zip(table, rows, strict=True):
        line[: len(row)] = row
    return table


@lean_part
def first_block(w: World, c: Core, j: int, at: int) -> None:
    """Choose the first of the blocks that a strand reads or writes."""
    i = c.code[at]
    strand = c.strands[j]
    if i["at"] == RANDOMLY:
        strand["block"] = int(uniform(w.streams, i["stream"]) * SPAN)
    elif i["at"] == IN_SEQUENCE:
        strand["block"] = c.sequences[i["resume"]]
        c.sequences[i["resume"]] = (strand["block"] + count_of(c, j, i["size"])) % SPAN


@lean_part
def locate(c: Core, j: int, part: int, branch: int) -> None:
    """Find the channel, bank and row of the block of a strand, or of a branch that has a number."""
    strand, p = c.strands[j], c.parts[part]
    block = (strand["block"] + (strand["number"] if branch else 0)) % SPAN
    channel, strand["bank"], strand["row"] = place_of(c.maps[part], block)
    strand["channel"] = p["first"] + channel
    strand["target"] = c.channels[strand["channel"]]["node"]


@lean
def place_of(plan: Any, block: int) -> tuple[int, int, int]:
    """Return channel, bank and row of a block, as `qmodels.systems.memory.dram_map` has them.

    Examples
    --------
    >>> plan = np.array(map_row(Interleaved(step=2), DramGeometry(channels=4)))
    >>> place_of(plan, 9)
    (0, 12, 0)
    """
    if plan[BY_BITS]:
        return _place_by_bits(plan, block)
    index = index_in_channel(block, plan[STEP], plan[CHANNELS])
    turn = bank_of(index, plan[BANK_STEP], plan[BANKS])
    row = index_in_bank(index, plan[BANK_STEP], plan[BANKS]) // plan[ROW_BLOCKS]
    if plan[PERMUTE] == 1:
        turn = (turn + row) % plan[BANKS]
    elif plan[PERMUTE] == 2:
        turn ^= row % plan[BANKS]
    group = bank = rank = 0
    for k in range(3):
        level = plan[ORDER + k]
        if level == GROUP:
            group, turn = turn % plan[GROUPS], turn // plan[GROUPS]
        elif level == BANK:
            bank, turn = turn % plan[GROUP_BANKS], turn // plan[GROUP_BANKS]
        else:
            rank, turn = turn % plan[RANKS], turn // plan[RANKS]
    number = (rank * plan[GROUPS] + group) * plan[GROUP_BANKS] + bank
    return channel_of(block, plan[STEP], plan[CHANNELS]), number, row


@lean
def _place_by_bits(plan: Any, block: int) -> tuple[int, int, int]:
    at = MASKS
    channel, at = _field(plan, at, block)
    rank, at = _field(plan, at, block)
    group, at = _field(plan, at, block)
    bank, at = _field(plan, at, block)
    row, at = _field(plan, at, block)
    return channel, (rank * plan[GROUPS] + group) * plan[GROUP_BANKS] + bank, row


@lean
def _field(plan: Any, at: int, block: int) -> tuple[int, int]:
    """Return the value of the field whose masks begin there, and where those of the next one do."""
    value, bit = 0, 0
    while plan[at] != 0:
        parity = block & plan[at]
        for shift in (32, 16, 8, 4, 2, 1):
            parity ^= parity >> shift
        value |= (parity & 1) << bit
        bit += 1
        at += 1
    return value, at + 1
