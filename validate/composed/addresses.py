"""Which blocks a strand reads or writes, and where in the memory they are."""

from __future__ import annotations

from typing import Any

from qmodels.systems.memory import address_map
from qmodels.systems.memory.dram_traffic import SPAN
from validate.composed.state import IN_SEQUENCE, LOOKED_UP, RANDOMLY, Core
from validate.composed.strands import count_of
from validate.dram.addresses import AddressBooks
from validate.dram.addresses import locate as place_of
from validate.engine.jit import lean_part
from validate.engine.streams import uniform
from validate.network.state import World


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


scatter = lean_part(address_map.scatter)


@lean_part
def locate(c: Core, j: int, part: int, i: Any) -> None:
    """Find the channel, bank and row of the block of a strand, or of a branch that has a number.

    That of a line has a row of its own, below those of blocks.
    """
    strand, p = c.strands[j], c.parts[part]
    if i["at"] == LOOKED_UP:
        memory = c.memories[p["member"]]
        spread = scatter(scatter(strand["line"]) + 1) % (memory["channels"] * memory["banks"])
        strand["channel"] = p["first"] + spread % memory["channels"]
        strand["bank"], strand["row"] = spread // memory["channels"], -strand["line"] - 2
        strand["target"] = c.channels[strand["channel"]]["node"]
        return
    block = (strand["block"] + (strand["number"] if i["size"] == 1 else 0)) % SPAN
    books = AddressBooks(c.map_numbers, c.map_images)
    channel, strand["bank"], strand["row"] = place_of(books, p["member"], block)
    strand["channel"] = p["first"] + channel
    strand["target"] = c.channels[strand["channel"]]["node"]
