"""Collective operations of a message-passing library, as the steps of every process.

All are made of point-to-point messages. ``flat`` ones go straight to or from the root (master and
slaves), ``tree`` ones along a binomial tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from qmodels import checks
from qmodels.systems.programs.messaging import compute, receive, send, signal, wait

Processes = tuple[tuple[str, ...], ...]
SHAPES = ("flat", "tree")


def ping_pong(*, words: int, rounds: int = 1) -> Processes:
    """Return two processes that send a message to and fro.

    The second says that it is ready before each message it is sent.

    Examples
    --------
    >>> ping_pong(words=1)
    (('wait 1', 'send 1 1', 'receive 1'), ('signal 0', 'receive 0', 'send 0 1'))
    """
    checks.count("rounds", rounds)
    return (
        (wait(1), send(1, words=words), receive(1)) * rounds,
        (signal(0), receive(0), send(0, words=words)) * rounds,
    )


def barrier(*, processes: int, root: int = 0, shape: str = "flat") -> Processes:
    """Return a barrier: all notify the root, which then releases all.

    Assigning ranks when a program starts exchanges the same notifications.

    Examples
    --------
    >>> barrier(processes=3)
    (('wait 1', 'wait 2', 'signal 1', 'signal 2'), ('signal 0', 'wait 0'), ('signal 0', 'wait 0'))
    """
    steps = _empty(processes, root)
    for child, parent in _upwards(processes, root, shape):
        steps[child].append(signal(parent))
        steps[parent].append(wait(child))
    for parent, child in _downwards(processes, root, shape):
        steps[parent].append(signal(child))
        steps[child].append(wait(parent))
    return _frozen(steps)


def broadcast(*, processes: int, words: int, root: int = 0, shape: str = "flat") -> Processes:
    """Return a broadcast of the root's words to all.

    Examples
    --------
    >>> broadcast(processes=4, words=8, shape="tree")
    (('send 2 8', 'send 1 8'), ('receive 0',), ('receive 0', 'send 3 8'), ('receive 2',))
    """
    steps = _empty(processes, root)
    for parent, child in _downwards(processes, root, shape):
        steps[parent].append(send(child, words=words))
        steps[child].append(receive(parent))
    return _frozen(steps)


def scatter(*, processes: int, words: int, root: int = 0, shape: str = "flat") -> Processes:
    """Return a scatter: each process gets its own words; a tree passes on those of the whole branch."""
    steps = _empty(processes, root)
    sizes = _branch_sizes(processes, root, shape)
    for parent, child in _downwards(processes, root, shape):
        steps[parent].append(send(child, words=words * sizes[child]))
        steps[child].append(receive(parent))
    return _frozen(steps)


def gather(*, processes: int, words: int, root: int = 0, shape: str = "flat") -> Processes:
    """Return a gather of the words of all at the root: the narrowcast, if it is flat.

    Examples
    --------
    >>> gather(processes=3, words=16)
    (('receive 1', 'receive 2'), ('send 0 16',), ('send 0 16',))
    """
    steps = _empty(processes, root)
    sizes = _branch_sizes(processes, root, shape)
    for child, parent in _upwards(processes, root, shape):
        steps[child].append(send(parent, words=words * sizes[child]))
        steps[parent].append(receive(child))
    return _frozen(steps)


def reduce(
    *, processes: int, words: int, cycles_per_word: float = 0.0, root: int = 0, shape: str = "flat"
) -> Processes:
    """Return a reduction: what arrives is combined with what is there, word by word."""
    checks.nonnegative("cycles_per_word", cycles_per_word)
    steps = _empty(processes, root)
    for child, parent in _upwards(processes, root, shape):
        steps[child].append(send(parent, words=words))
        steps[parent] += [receive(child), compute(cycles_per_word * words)]
    return _frozen(steps)


def scan(*, processes: int, words: int, cycles_per_word: float = 0.0, shape: str = "flat") -> Processes:
    """Return a scan: process k gets the combination of processes 0 to k.

    Flat, it goes from each process to the next; as a tree it takes log2(processes) rounds, in each
    of which every process sends to the one twice as far away as before.

    Examples
    --------
    >>> scan(processes=3, words=4)
    (('send 1 4',), ('receive 0', 'compute 0', 'send 2 4'), ('receive 1', 'compute 0'))
    """
    checks.nonnegative("cycles_per_word", cycles_per_word)
    checks.choice("shape", shape, SHAPES)
    steps = _empty(processes, 0)
    combined = compute(cycles_per_word * words)
    if shape == "flat":
        for before, after in pairwise(range(processes)):
            steps[before].append(send(after, words=words))
            steps[after] += [receive(before), combined]
        return _frozen(steps)
    distance = 1
    while distance < processes:
        for k in range(processes - distance):
            steps[k].append(send(k + distance, words=words))
        for k in range(distance, processes):
            steps[k] += [receive(k - distance), combined]
        distance *= 2
    return _frozen(steps)


def _empty(processes: int, root: int) -> list[list[str]]:
    checks.count("processes", processes)
    checks.count("root", root, minimum=0, maximum=processes - 1)
    return [[] for _ in range(processes)]


def _frozen(steps: list[list[str]]) -> Processes:
    return tuple(map(tuple, steps))


def _downwards(processes: int, root: int, shape: str) -> Iterator[tuple[int, int]]:
    """Yield (parent, child) of the tree in an order in which every parent is reached before it sends."""
    checks.choice("shape", shape, SHAPES)
    if shape == "flat":
        yield from ((root, k) for k in range(processes) if k != root)
        return
    distance = 1
    while distance < processes:
        distance *= 2
    while distance > 1:
        half = distance // 2
        for parent in range(0, processes, distance):
            if parent + half < processes:
                yield (root + parent) % processes, (root + parent + half) % processes
        distance = half


def _upwards(processes: int, root: int, shape: str) -> Iterator[tuple[int, int]]:
    """Yield (child, parent), the leaves first."""
    edges = list(_downwards(processes, root, shape))
    for parent, child in edges if shape == "flat" else reversed(edges):
        yield child, parent


def _branch_sizes(processes: int, root: int, shape: str) -> list[int]:
    """Return the number of processes below each, itself included."""
    sizes = [1] * processes
    if shape == "tree":
        for child, parent in _upwards(processes, root, shape):
            sizes[parent] += sizes[child]
    return sizes
