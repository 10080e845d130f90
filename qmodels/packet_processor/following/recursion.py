"""Packets on their way, one after the other, through servers of which only the work in front is kept.

A server is the time at which it will have done what has come to it. Work that comes at ``a`` is done at
``max(server, a)`` plus its length: exact for one server, first come first served. Segments of a packet that
come one by one are taken as work that begins with the first of them and is not done before the last has come.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from qmodels.numerics.kernels import kernel, part


@part
def push(times: Any, items: Any, size: Any, time: Any, item: Any) -> Any:
    """Add an item and return how many there are."""
    k = size
    while k > 0:
        up = (k - 1) >> 1
        if times[up] <= time:
            break
        times[k], items[k] = times[up], items[up]
        k = up
    times[k], items[k] = time, item
    return size + 1


@part
def pop(times: Any, items: Any, size: Any) -> Any:
    """Remove the earliest item, which is the first, and return how many are left."""
    size -= 1
    time, item = times[size], items[size]
    k = 0
    while 2 * k + 1 < size:
        down = 2 * k + 1
        if down + 1 < size and times[down + 1] < times[down]:
            down += 1
        if times[down] >= time:
            break
        times[k], items[k] = times[down], items[down]
        k = down
    times[k], items[k] = time, item
    return size


(
    CHANNELS, ENGINES, STEP, BANKS, BANK_STEP, ROW_BLOCKS, BURST, SEGMENT, REQUEST, ENQUEUE, ALLOCATION,
    DEQUEUE, NEXT, RETURN, SMALL, READ_SHARE, PIECE, BUFFER, OPENING, LOOKUP, TABLE, TRIALS, LATE, RUN, INNER,
) = range(25)  # fmt: skip
"""Numbers of a design: times in ns; the bus time of reads, of a piece of a packet in the way of others; the
time of the flits buffered on a path; what an access that opens its row adds; a lookup's least time, and what
it takes longer in DRAM; for how long an access is unfinished beside its time on the bus; blocks of a run, 0
if it never ends; how many times longer than by the flits alone the links in between are taken, where credits
come late."""
INJECT, EJECT = range(2)
TO_CHANNEL, FROM_CHANNEL, ALL, READS = range(4)
WRITE, READ, LOOK, STORE, DRAIN, ALONE, BEYOND = range(7)
COUNT, FIRST, LAST = range(3)
LINE, WORK = range(2)
"""Times of the links in between, and the work that a packet brings to each."""
STRETCH, STRETCH_LEAST = 8, 64
"""Runs of the free list, and their blocks at least, after which it goes on elsewhere."""
JUMP, JUMP_RUNS = 2**32, 2**10
"""Blocks, and runs, in which such stretches of the list are numbered."""
SOON = 20_000
"""Packets up to which plain Python, at 80 us for each, is quick enough to be used instead of compiling."""


class Room(NamedTuple):
    """Arrays of a run, made by `room`: in machine code they would take longer to compile than `allocate`."""

    engine: Any
    channel: Any
    bank: Any
    piece: Any
    line: Any
    first: Any  # the first block of each packet
    # Operations of the pointer memory to come, a heap.
    times: Any
    items: Any


def room(z: Any, count: int, inner: Any) -> Room:
    """Return the arrays for a run of so many packets through a design."""
    engines, channels, banks = int(z[ENGINES]), int(z[CHANNELS]), int(z[BANKS])
    return Room(
        engine=np.zeros((2, engines)),
        channel=np.zeros((4, channels)),
        bank=np.zeros((3, channels, banks)),
        piece=np.zeros((3, channels), dtype=np.int64),
        line=np.zeros((2, int(inner.max()) + 2)),
        first=np.zeros(count, dtype=np.int64),
        times=np.empty(2 * count + 2),
        items=np.empty(2 * count + 2, dtype=np.int64),
    )


@kernel(soon=lambda z, arrive, *others: arrive.size <= SOON)
def follow(z: Any, arrive: Any, sizes: Any, hold: Any, places: Any, inner: Any, room: Room, out: Any) -> None:
    """Fill in what each packet waits on its way.

    Parameters
    ----------
    z : array
        See the names above.
    arrive, sizes, hold : arrays
        Times [ns], segments and holds [ns] of the packets.
    places : array of int, (4, packets)
        Engine, egress, channel of the lookup that misses or -1, and its bank.
    inner : array of int, (engines, channels)
        The fullest link from an engine to a channel but for its first and last; -1 for none. Those on the way
        back are left out: engines that take no more hold responses up in front of them, see `drain`.
    room : Room
        Of this run alone.
    out : array, (7, packets)
        Filled: waits of write, read, lookup, and for the pointer memory to store and to drain; the time to
        write and to read without others; pointer accesses of allocations beyond one for each segment. Writes
        begin when the lookup is done, reads a hold after the last write: a full memory slows down what
        comes to it.
    """
    count, pointer = arrive.size, 0.0
    engine, channel, bank, piece, line, first, times, items = room
    size, following, stretch, passed, taken = 0, 0, 0, 0, 0
    far = STRETCH * max(int(z[RUN]), STRETCH_LEAST)
    while following < count or size > 0:
        # Lookups pass the pointer memory by: they meet the memory as it is when they come.
        if following < count and (size == 0 or arrive[following] <= max(pointer, times[0])):
            p, following = following, following + 1
            first[p], taken = taken // far * JUMP + taken % far, taken + sizes[p]
            asked = arrive[p] + z[LOOKUP]
            if places[2, p] >= 0:
                begin = arrive[p] + z[ENQUEUE] + z[ALLOCATION]
                out[LOOK, p] = look_up(z, begin, places[:, p], inner, engine, channel, bank, line)
                asked += z[TABLE] + out[LOOK, p]
            size = push(times, items, size, asked, 2 * p)
            continue
        now, item = times[0], items[0]
        size = pop(times, items, size)
        p = item >> 1
        begin = max(pointer, now)
        if item & 1:
            spread(z, first[p], sizes[p], piece)
            returns = sizes[p] - 1 if sizes[p] <= z[SMALL] else 0
            pointer = begin + z[DEQUEUE] + sizes[p] * z[NEXT] + returns * z[RETURN]
            out[DRAIN, p] = begin - now
            wait, alone = drain(
                z, begin, places[1, p], first[p], sizes[p], piece, inner, engine, channel, bank, line
            )
            out[READ, p] = wait
        else:
            if first[p] // JUMP != stretch:
                stretch, passed = first[p] // JUMP, 0
            block = first[p] + passed
            first[p], after, out[BEYOND, p] = allocate(z, begin, block, sizes[p], bank)
            passed += after - block - sizes[p]
            spread(z, first[p], sizes[p], piece)
            each = z[ALLOCATION] + out[BEYOND, p] / sizes[p] * z[RETURN]
            pointer = begin + z[ENQUEUE] + sizes[p] * each
            out[STORE, p] = begin - now
            wait, alone = store(
                z, begin, each, places[0, p], first[p], sizes[p], piece, inner, engine, channel, bank, line
            )
            out[WRITE, p] = wait
            size = push(times, items, size, begin + alone + wait + hold[p], 2 * p + 1)
        out[ALONE, p] += alone


@part
def allocate(z: Any, begin: Any, block: Any, count: Any, bank: Any) -> Any:
    """Return the first block of a packet, the next free one, and the accesses of its trials beyond one each.

    Blocks at banks that are busy with another row than that of the last access issued to them go to the tail
    of the list, which takes an access more.
    """
    if count <= z[SMALL] or z[TRIALS] < 2.0:
        return address(z, block), block + count, 0.0
    now, first, start, beyond = begin + z[ENQUEUE], -1, block, 0.0
    step, channels, closed = int(z[STEP]), int(z[CHANNELS]), z[ROW_BLOCKS] == 1.0
    for _ in range(count):
        tried = 0.0
        while True:
            at = address(z, block)
            b, row = place(z, at)
            c = at // step % channels
            if tried + 1.0 >= z[TRIALS]:
                break
            own = closed and block > start and (at % step > 0 or block - start >= step * channels)
            if not own and (bank[2, c, b] == row or bank[0, c, b] + z[LATE] <= now):
                break
            tried, block = tried + 1.0, block + 1
        bank[2, c, b] = row
        if first < 0:
            first = at
        block += 1
        if tried > 0.0:
            tried += 1.0
        beyond += tried
        now += z[ALLOCATION] + tried * z[RETURN]
    return first, block, beyond


@part
def address(z: Any, block: Any) -> Any:
    """Return the address of a block of the list: runs begin anywhere, by multiplicative hashing."""
    length = int(z[RUN])
    run, within = block // JUMP, block % JUMP
    if length > 0:
        further = within // length
        run, within = run * JUMP_RUNS + further, within - further * length
    mixed = run * 1640531527 % 2**31
    return (mixed ^ (mixed >> 15)) * 1812433253 % 2**31 + within


@part
def spread(z: Any, block: Any, count: Any, piece: Any) -> None:
    """Fill in how many of consecutive blocks are on each channel, and which of them is first and last."""
    channels, step = int(z[CHANNELS]), int(z[STEP])
    piece[COUNT] = 0
    chunk = block // step
    c, left, j = chunk % channels, (chunk + 1) * step - block, 0
    while j < count:
        end = min(j + left, count)
        if piece[COUNT, c] == 0:
            piece[FIRST, c] = j
        piece[COUNT, c] += end - j
        piece[LAST, c] = end - 1
        j, left, c = end, step, c + 1
        if c == channels:
            c = 0


@part
def place(z: Any, block: Any) -> Any:
    """Return bank and row of a block; the pieces of a packet on other channels are taken to have the same."""
    channels, step = int(z[CHANNELS]), int(z[STEP])
    chunk = block // step
    index = chunk // channels * step + block - chunk * step
    return index // int(z[BANK_STEP]) % int(z[BANKS]), index // int(z[ROW_BLOCKS])


@part
def occupy(z: Any, c: Any, b: Any, row: Any, end: Any, bank: Any) -> None:
    """Keep a bank: when it has done what came to it, and which row that was."""
    if bank[1, c, b] != row:
        end += z[OPENING]
    bank[0, c, b] = end
    bank[1, c, b] = row


@part
def read_at(z: Any, c: Any, b: Any, row: Any, begin: Any, count: Any, channel: Any, bank: Any) -> Any:
    """Return when the first and the last of some reads have had the bus; they come together.

    Banks take turns on the bus: reads wait for as much of other reads as there are others, and share it with
    the banks at which writes stand, which are the more the longer those wait; at their own bank they
    wait for all that is there.
    """
    s = z[BURST]
    own = count * s
    ahead = max(channel[READS, c] - begin, 0.0)
    writes = max(channel[ALL, c] - max(channel[READS, c], begin), 0.0)
    channel[READS, c] = max(channel[READS, c], begin) + own
    channel[ALL, c] = max(channel[ALL, c], begin) + own
    standing = 1.0 + writes / (z[BANK_STEP] * s)
    held = max(bank[0, c, b] - begin, 0.0)
    one = begin + s + max(min(ahead, ahead / z[PIECE] * s) + min(s * standing, writes), held)
    end = begin + own + max(min(ahead, ahead / z[PIECE] * own) + min(own * standing, writes), held)
    occupy(z, c, b, row, end, bank)
    bank[2, c, b] = row
    return one, end, min(s, ahead + writes)


@part
def queue_up(line: Any, links: Any, piece: Any, at: Any, each: Any) -> None:
    """Bring a packet's pieces to the links in between; ``line[WORK]`` has what it brings to each of them."""
    for c in range(piece.shape[1]):
        line[WORK, links[c]] = 0.0
    for c in range(piece.shape[1]):
        line[WORK, links[c]] += piece[COUNT, c] * each
    for c in range(piece.shape[1]):
        if line[WORK, links[c]] > 0.0:
            line[LINE, links[c]] = max(line[LINE, links[c]], at) + line[WORK, links[c]]
            line[WORK, links[c]] *= -1.0  # once for each link: its work begins that long before its end


@part
def one_more(line: Any, link: Any, at: Any, each: Any) -> Any:
    """Return when one NoC packet begins to cross a link in between."""
    if link < 0:
        return at
    begin = max(line[LINE, link], at)
    line[LINE, link] = begin + each
    return begin


@part
def look_up(
    z: Any, begin: Any, places: Any, inner: Any, engine: Any, channel: Any, bank: Any, line: Any
) -> Any:
    """Return the wait of a lookup's read of DRAM."""
    g, c = places[0], places[2]
    engine[INJECT, g] = max(engine[INJECT, g], begin) + z[REQUEST]
    crossing = one_more(line, inner[g, c], engine[INJECT, g], z[REQUEST] * z[INNER])
    channel[TO_CHANNEL, c] = max(channel[TO_CHANNEL, c], crossing) + z[REQUEST]
    _, end, _ = read_at(z, c, places[3], -1.0, channel[TO_CHANNEL, c], 1, channel, bank)
    channel[FROM_CHANNEL, c] = max(channel[FROM_CHANNEL, c], end) + z[SEGMENT]
    ejecting = max(engine[EJECT, g], channel[FROM_CHANNEL, c])
    engine[EJECT, g] = ejecting + z[SEGMENT]
    channel[FROM_CHANNEL, c] = max(channel[FROM_CHANNEL, c], ejecting - z[BUFFER])
    return engine[EJECT, g] - begin - 2 * z[REQUEST] - z[BURST] - 2 * z[SEGMENT]


@part
def store(
    z: Any,
    begin: Any,
    allocation: Any,
    g: Any,
    block: Any,
    count: Any,
    piece: Any,
    inner: Any,
    engine: Any,
    channel: Any,
    bank: Any,
    line: Any,
) -> Any:
    """Return the wait of a packet's writes, and their time without others, from the pointer operation on.

    Writes of successive packets stand at one bank of a channel after another: they have what the
    reads leave them of the bus.
    """
    s, segment, b_row = z[BURST], z[SEGMENT], place(z, block)
    b, row = b_row[0], float(b_row[1])
    ready, gap = z[ENQUEUE] + allocation, max(allocation, segment)
    out = max(engine[INJECT, g], begin + ready)
    engine[INJECT, g] = out + count * segment
    queue_up(line, inner[g], piece, out + segment, segment * z[INNER])
    later = z[READ_SHARE] / (1.0 - z[READ_SHARE])
    end, alone = begin, 0.0
    for c in range(piece.shape[1]):
        own = piece[COUNT, c] * s
        if own == 0.0:
            continue
        head = max(channel[TO_CHANNEL, c], out + segment + piece[FIRST, c] * gap)
        link, done = inner[g, c], head + piece[COUNT, c] * segment
        channel[TO_CHANNEL, c] = done
        engine[INJECT, g] = max(engine[INJECT, g], done - segment - z[BUFFER])
        if link >= 0 and line[LINE, link] + line[WORK, link] > out + segment:
            head = max(head, line[LINE, link] + line[WORK, link])
            done = max(head + piece[COUNT, c] * segment, line[LINE, link])
        head += segment
        last = max(out + 2 * segment + piece[LAST, c] * gap, done)
        reads = max(channel[READS, c] - head, 0.0)
        free = max(channel[ALL, c], head)
        channel[ALL, c] = free + own
        writes = max(free - head - reads, 0.0)
        standing = 1.0 + writes / (z[BANK_STEP] * s)
        work = own + writes
        at = max(
            last + s + min(s, reads),
            head + work + min(work / standing, reads) + work * later / standing,
            max(bank[0, c, b], head) + own,
        )
        occupy(z, c, b, row, at, bank)
        end = max(end, at)
        came = ready + segment + piece[FIRST, c] * gap
        paced = max(ready + segment + piece[LAST, c] * gap, came + own / s * segment - segment) + segment + s
        alone = max(alone, max(paced, came + segment + own))
    return end - begin - alone, alone


@part
def drain(
    z: Any,
    begin: Any,
    g: Any,
    block: Any,
    count: Any,
    piece: Any,
    inner: Any,
    engine: Any,
    channel: Any,
    bank: Any,
    line: Any,
) -> Any:
    """Return the wait of a packet's reads, and their time without others, from the pointer operation on.

    What an engine does not take stands in the buffers in front of it and then at the channels, which
    send nothing to others meanwhile.
    """
    s, segment, request, b_row = z[BURST], z[SEGMENT], z[REQUEST], place(z, block)
    b, row = b_row[0], float(b_row[1])
    ready, gap = z[DEQUEUE] + z[NEXT], max(z[NEXT], request)
    out = max(engine[INJECT, g], begin + ready)
    engine[INJECT, g] = out + count * request
    queue_up(line, inner[g], piece, out + request, request * z[INNER])
    first, last, first_alone, last_alone, used = np.inf, 0.0, np.inf, 0.0, 0.0
    for c in range(piece.shape[1]):
        number = piece[COUNT, c]
        if number == 0:
            continue
        used += 1.0
        head = max(channel[TO_CHANNEL, c], out + request + piece[FIRST, c] * gap)
        channel[TO_CHANNEL, c] = head + number * request
        if inner[g, c] >= 0:
            head = max(head, line[LINE, inner[g, c]] + line[WORK, inner[g, c]])
        came = max(out + 2 * request + piece[LAST, c] * gap, head + number * request)
        one, end, turn = read_at(z, c, b, row, head + request, number, channel, bank)
        head = max(channel[FROM_CHANNEL, c], one)
        channel[FROM_CHANNEL, c] = head + number * segment
        first = min(first, head + segment)
        last = max(last, max(max(end, came + s + turn) + segment, channel[FROM_CHANNEL, c]))
        asked = ready + 2 * request + piece[FIRST, c] * gap
        served = max(ready + 2 * request + piece[LAST, c] * gap + s, asked + number * s)
        first_alone = min(first_alone, asked + s + segment)
        last_alone = max(last_alone, max(served + segment, asked + s + number * segment))
    engine[EJECT, g] = max(engine[EJECT, g], first) + count * segment
    alone = max(last_alone + segment, first_alone + count * segment)
    for c in range(piece.shape[1]):
        if piece[COUNT, c]:
            stands = engine[EJECT, g] - segment - z[BUFFER] * np.sqrt(used)
            channel[FROM_CHANNEL, c] = max(channel[FROM_CHANNEL, c], stands)
    return max(last + segment, engine[EJECT, g]) - begin - alone, alone
