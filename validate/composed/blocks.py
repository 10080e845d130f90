"""Free lists under way: operations of the pointer memory, and the banks that trials find busy.

This is where the free lists of a system and the memory that their blocks are in meet: every access to such a
memory stands on the score of its bank from when it is issued until its data are there.
"""

from __future__ import annotations

from validate.composed.addresses import locate
from validate.composed.state import ALLOCATE, AS_ALLOCATED, OPERATING, Core
from validate.composed.strands import count_of, go_on, wake_at
from validate.composed.visits import end_operation
from validate.data_queueing.block_pools import (
    BlockPools,
    begin_access,
    chain,
    free_blocks,
    give_back,
    take_block,
)
from validate.engine.jit import lean_part
from validate.network.state import World


@lean_part
def operate(w: World, c: Core, b: BlockPools, j: int) -> None:
    """Go on with the operation of a strand: its first accesses, a block, or the end."""
    strand = c.strands[j]
    i = c.code[strand["at"] - 1]
    server = c.servers[c.parts[i["part"]]["first"]]
    if i["op"] == ALLOCATE:
        accesses = _allocate(c, b, j, count_of(c, j, i["size"]))
    elif strand["done"] < 0:
        number = c.strands[strand["root"]]["blocks"]
        accesses = server["dequeue_packet"] + number * server["dequeue"]
        if number <= server["small"]:
            accesses += number - 1
        strand["done"] = 0
    else:
        give_all_back(c, b, strand["root"])
        accesses = -1.0
    if accesses < 0:
        end_operation(w, c, j)
    else:
        wake_at(w, j, OPERATING, w.state[0]["now"] + accesses * server["period"])


@lean_part
def _allocate(c: Core, b: BlockPools, j: int, count: int) -> float:
    """Do what is next of taking so many blocks; return the accesses that this takes, -1 after the last."""
    strand = c.strands[j]
    p = c.parts[c.code[strand["at"] - 1]["part"]]
    server, job = c.servers[p["first"]], c.strands[strand["root"]]
    if strand["done"] < 0:
        strand["refused"] = free_blocks(b, p["member"], count) < count
        strand["done"] = 0
        return server["enqueue_packet"]
    if strand["refused"]:
        job["lost"] = 1
        return -1.0
    if strand["done"] == count:
        return -1.0
    block, accesses = take_block(b, p["member"], count)
    if job["blocks"] == 0:
        job["first_block"] = block
    else:
        chain(b, job["last_block"], block)
    job["last_block"] = block
    job["blocks"] += 1
    job["holder"] = p["member"]
    strand["done"] += 1
    return accesses + server["enqueue"]


@lean_part
def give_all_back(c: Core, b: BlockPools, j: int) -> None:
    """Return all blocks of a job."""
    job = c.strands[j]
    if job["blocks"] > 0:
        give_back(b, job["holder"], job["first_block"], job["last_block"], job["blocks"])
        job["blocks"] = 0


@lean_part
def place(w: World, c: Core, b: BlockPools, j: int) -> None:
    """Find where the block of a strand is, and put its access on the score of the bank."""
    strand = c.strands[j]
    i = c.code[strand["at"] - 1]
    p = c.parts[i["part"]]
    if i["at"] == AS_ALLOCATED:
        block = c.strands[strand["root"]]["first_block"]
        for _ in range(strand["number"] if i["size"] else 0):
            block = b.blocks[block]["next"]
        score = b.blocks[block]["bank"] - b.boards[p["member"], 0]
        strand["channel"] = p["first"] + score // b.boards[p["member"], 1]
        strand["bank"] = score % b.boards[p["member"], 1]
        strand["row"] = b.blocks[block]["page"]
        strand["target"] = c.channels[strand["channel"]]["node"]
    else:
        locate(c, j, i["part"], i["size"])
    strand["issued"] = 1
    begin_access(b, p["member"], strand["channel"] - p["first"], strand["bank"], strand["row"])
    go_on(w, c, j)
