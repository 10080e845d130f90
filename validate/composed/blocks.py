"""Free lists under way: operations of the pointer memory, and the banks that trials find busy.

This is where the free lists of a system and the memory that their blocks are in meet: every access to such a
memory stands on the score of its bank from when it is issued until its data are there.
"""

from __future__ import annotations

from typing import Any

from qmodels.systems.memory import memory_map
from qmodels.systems.memory.dram_system import SPAN
from validate.composed import state
from validate.composed.state import Core
from validate.composed.strands import count_of, end_operation, go_on, new_branch, wake_at
from validate.data_queueing.free_lists import (
    BlockPools,
    begin_access,
    chain,
    free_blocks,
    give_back,
    take_block,
)
from validate.dram.state import AddressBooks
from validate.dram.state import locate as place_of
from validate.engine.jit import lean_part
from validate.engine.streams import uniform
from validate.network.state import NONE, World


@lean_part
def operate(w: World, c: Core, b: BlockPools, j: int) -> None:
    """Go on with the operation of a strand: its first accesses, a block, or the end."""
    strand = c.strands[j]
    i = c.code[strand["at"] - 1]
    server = c.servers[c.parts[i["part"]]["first"]]
    if strand["done"] < 0:
        begun = c.operations[2 * c.parts[i["part"]]["first"] + (i["op"] != state.ALLOCATE)]
        begun["begun"] += 1
        begun["waited"] += w.state[0]["now"] - strand["asked"]
        strand["began"], strand["refused"], w.jobs[j]["tasks"] = w.state[0]["now"], 0, 1
    if i["op"] == state.ALLOCATE:
        accesses = _allocate(w, c, b, j, count_of(c, j, i["size"]))
    elif i["stream"] != state.AT_ONCE:
        accesses = _follow(w, c, b, j)
    elif strand["done"] < 0:
        number = c.strands[strand["root"]]["blocks"]
        accesses = server["dequeue_packet"] + number * server["dequeue"]
        if number <= server["small"]:
            accesses += number - 1
        strand["done"] = 0
    else:
        give_all_back(w, c, b, strand["root"])
        accesses = -1.0
    if accesses < 0:
        end_operation(w, c, j)
    else:
        wake_at(w, j, state.OPERATING, w.state[0]["now"] + accesses * server["period"])


@lean_part
def _follow(w: World, c: Core, b: BlockPools, j: int) -> float:
    """Do what is next of following the blocks of a job; return the accesses it takes, -1 after the last."""
    strand = c.strands[j]
    i = c.code[strand["at"] - 1]
    server, job = c.servers[c.parts[i["part"]]["first"]], c.strands[strand["root"]]
    if strand["done"] < 0:
        strand["done"], strand["block"] = 0, job["first_block"]
        further = job["blocks"] - 1 if job["blocks"] <= server["small"] else 0
        return server["dequeue_packet"] + further
    if strand["done"] > 0:
        child = _begin_branch(w, c, j, strand["block"], 0)
        c.strands[child]["returns"] = server["order"] == state.AS_READ
        strand["block"] = b.blocks[strand["block"]]["next"]
    if strand["done"] == job["blocks"]:
        return -1.0
    strand["done"] += 1
    return server["dequeue"]


@lean_part
def _begin_branch(w: World, c: Core, j: int, block: int, issued: int) -> int:
    """Let the branch of the block that an operation is done with begin."""
    strand = c.strands[j]
    t = new_branch(w, c, j, strand["done"] - 1, strand["at"])
    child = c.strands[t]
    child["own"], child["issued"] = block, issued
    if issued:
        child["channel"], child["bank"], child["row"] = strand["channel"], strand["bank"], strand["row"]
    w.jobs[j]["tasks"] += 1
    return t


@lean_part
def _find(c: Core, b: BlockPools, j: int, memory: int, block: int) -> None:
    """Find where a block is in a memory."""
    strand, first, banks = c.strands[j], b.boards[memory, 0], b.boards[memory, 1]
    score = b.blocks[block]["bank"] - first
    strand["channel"] = c.memories[memory]["first"] + score // banks
    strand["bank"], strand["row"] = score % banks, b.blocks[block]["page"]
    strand["target"] = c.channels[strand["channel"]]["node"]


@lean_part
def _allocate(w: World, c: Core, b: BlockPools, j: int, count: int) -> float:
    """Do what is next of taking n blocks; return the accesses that this takes, -1 after the last."""
    strand = c.strands[j]
    i = c.code[strand["at"] - 1]
    p = c.parts[i["part"]]
    server, job = c.servers[p["first"]], c.strands[strand["root"]]
    if strand["done"] < 0:
        strand["refused"] = free_blocks(b, p["member"], count) < count
        strand["done"] = 0
        return server["enqueue_packet"]
    if strand["refused"]:
        job["lost"] = 1
        return -1.0
    scored = int(i["stream"] == state.BRANCHING_SCORED)
    if strand["done"] > 0 and i["stream"] != state.AT_ONCE:
        _begin_branch(w, c, j, job["last_block"], scored)
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
    server["taken_blocks"] += 1
    server["accesses"] += accesses
    server["most_accesses"] = max(server["most_accesses"], accesses)
    if scored:
        memory = b.memory_of[p["member"]]
        _find(c, b, j, memory, block)
        channel = strand["channel"] - c.memories[memory]["first"]
        begin_access(b, memory, channel, strand["bank"], strand["row"])
    return accesses + server["enqueue"]


@lean_part
def give_all_back(w: World, c: Core, b: BlockPools, j: int) -> None:
    """Return all blocks of a job that have not returned one by one."""
    job = c.strands[j]
    if job["blocks"] > job["returned"]:
        server = c.servers[job["holder"]]
        if server["order"] == state.RANDOM_ORDER:
            _shuffle(w, c, b, j, server["stream"])
        give_back(b, job["holder"], job["first_block"], job["last_block"], job["blocks"])
    job["blocks"] = job["returned"] = 0


@lean_part
def give_own_back(c: Core, b: BlockPools, j: int) -> None:
    """Return the block of a branch that is done with it."""
    strand = c.strands[j]
    job, block = c.strands[strand["root"]], strand["own"]
    give_back(b, job["holder"], block, block, 1)
    strand["returns"] = 0
    job["returned"] += 1


@lean_part
def _shuffle(w: World, c: Core, b: BlockPools, j: int, stream: int) -> None:
    """Put the chain of a job's blocks in random order."""
    job = c.strands[j]
    rest, first, last = job["first_block"], job["first_block"], job["first_block"]
    for left in range(job["blocks"], 0, -1):
        before, block = NONE, rest
        for _ in range(int(uniform(w.streams, stream) * left)):
            before, block = block, b.blocks[block]["next"]
        if before == NONE:
            rest = b.blocks[block]["next"]
        else:
            chain(b, before, b.blocks[block]["next"])
        if left == job["blocks"]:
            first = block
        else:
            chain(b, last, block)
        last = block
    job["first_block"], job["last_block"] = first, last


@lean_part
def place(w: World, c: Core, b: BlockPools, j: int) -> None:
    """Find where the block of a strand is, and put its access on the score of the bank."""
    strand = c.strands[j]
    i = c.code[strand["at"] - 1]
    p = c.parts[i["part"]]
    if i["at"] == state.AS_ALLOCATED:
        job = c.strands[strand["root"]]
        block = strand["own"] if i["size"] == state.OWN_BLOCK else job["first_block"]
        # Behind a job's last block there is none, or one of others: more accesses go round its own.
        for _ in range(strand["number"] % max(job["blocks"], 1) if i["size"] == 1 else 0):
            block = b.blocks[block]["next"]
        _find(c, b, j, p["member"], block)
    else:
        locate(c, j, i["part"], i)
    strand["issued"] = 1
    begin_access(b, p["member"], strand["channel"] - p["first"], strand["bank"], strand["row"])
    go_on(w, c, j)


@lean_part
def first_block(w: World, c: Core, j: int, at: int) -> None:
    """Choose the first of the blocks that a strand reads or writes."""
    i = c.code[at]
    strand = c.strands[j]
    if i["at"] == state.RANDOMLY:
        strand["block"] = int(uniform(w.streams, i["stream"]) * SPAN)
    elif i["at"] == state.IN_SEQUENCE:
        strand["block"] = c.sequences[i["resume"]]
        c.sequences[i["resume"]] = (strand["block"] + count_of(c, j, i["size"])) % SPAN


scatter = lean_part(memory_map.scatter)


@lean_part
def locate(c: Core, j: int, part: int, i: Any) -> None:
    """Find the channel, bank and row of the block of a strand, or of a branch that has a number.

    That of a line has a row of its own, below those of blocks.
    """
    strand, p = c.strands[j], c.parts[part]
    if i["at"] == state.LOOKED_UP:
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
