"""The memory of a simulated queueing network: what the kernel reads and writes, as arrays.

Event slots: the arrivals of class k are event k, what a station as a whole waits for (the end of
a set-up, of a vacation, of the next shared service) is the number of classes plus its number, and
what job j waits for (the end of its service or of its patience) comes after those.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from validate.engine.calendar import ENTRY
from validate.engine.sampling import ROW


def constants(first: int, count: int) -> Any:
    """Return numbers as NumPy's integers: functions are compiled anew for each plain one they get."""
    return map(np.int64, range(first, first + count))


NONE: Any = np.int64(-1)
YES: Any = np.bool_(True)
NO: Any = np.bool_(False)

# Phases of a job.
FREE, WAITING, SERVED, BLOCKED, FORKED = constants(0, 5)
# What a full station does to jobs of the network.
LOSE, HOLD_AFTER, HOLD_BEFORE = constants(0, 3)
# States of a station's server as a whole.
ON, STARTING, AWAY, OFF = constants(0, 4)
# Disciplines.
FIFO, LIFO, LIFO_PREEMPTIVE, PRIORITY, PRIORITY_PREEMPTIVE, SHARING = constants(0, 6)
# Routing rules.
RANDOM, IN_TURN, SHORTEST, BY_STATE = constants(0, 4)
# Why the kernel returned.
REACHED, POOL_FULL, BUFFER_FULL, STUCK = constants(0, 4)
# How a job left a node.
COMPLETED, LOST, RENEGED = constants(0, 3)

JOB = np.dtype(
    [
        ("arrived", "f8"),  # at the node
        ("entered", "f8"),  # the network, or its last cycle
        ("since", "f8"),  # beginning of the present wait
        ("waited", "f8"),  # at the node before that
        ("started", "f8"),  # first service at the node
        ("work", "f8"),  # service time at the node, -1 before it is drawn
        ("given", "f8"),  # service time that it takes instead of a draw, 0 for none
        ("remaining", "f8"),
        ("serial", "i8"),
        ("phase", "i8"),
        ("node", "i8"),
        ("job_class", "i8"),
        ("home", "i8"),  # class it began in
        ("next", "i8"),
        ("previous", "i8"),
        ("to", "i8"),  # target drawn, -1 before
        ("parent", "i8"),  # of a task
        ("branch", "i8"),
        ("step", "i8"),
        ("tasks", "i8"),  # still out
        ("level", "i8"),
    ]
)
NODE = np.dtype(
    [
        ("slots", "i8"),  # jobs that can be in service at once
        ("servers", "i8"),
        ("capacity", "i8"),
        ("when_full", "i8"),
        ("discipline", "i8"),
        ("levels", "i8"),
        ("shared", "i8"),  # its own heap of services that depend on the number of jobs, or -1
        ("speeds_at", "i8"),
        ("speeds", "i8"),
        ("setup", "i8"),  # law, or -1
        ("threshold", "i8"),
        ("vacation", "i8"),  # law, or -1
        ("multiple", "i8"),
        ("looks_ahead", "i8"),
        ("fork", "i8"),  # its branches, or -1
        ("number", "i8"),
        ("queued", "i8"),
        ("busy", "i8"),  # places in service taken, by blocked jobs too
        ("serving", "i8"),
        ("reserved", "i8"),
        ("mode", "i8"),
        ("wants", "i8"),  # full station that its first job waits for, or -1
        ("wants_since", "f8"),
        ("blocked_head", "i8"),  # jobs elsewhere that wait for a place here
        ("blocked_tail", "i8"),
        ("progress", "f8"),  # service that a job present all the time would have got
        ("progress_at", "f8"),
        ("blocked_sum", "f8"),  # see `Tally`: servers here that are held by blocked jobs
        ("blocked", "i8"),
    ]
)
QUEUE = np.dtype([("head", "i8"), ("tail", "i8")])
"""Jobs of a level that wait; behind all levels those in service, newest first, that may be interrupted."""

TALLY = np.dtype(
    [
        ("arrivals", "i8"),
        ("losses", "i8"),
        ("reneges", "i8"),
        ("completions", "i8"),
        ("departures", "i8"),  # after service or by reneging; the sums below are over them
        ("delayed", "i8"),  # of them after a wait longer than 0
        ("wait_sum", "f8"),
        ("response_sum", "f8"),
        ("number", "i8"),
        ("number_sum", "f8"),
        ("queued", "i8"),
        ("queued_sum", "f8"),
        ("serving", "i8"),
        ("serving_sum", "f8"),
    ]
)
"""Counts of a class at a node. The time integral of a number n up to t is ``n_sum + n t``."""

CLASS = np.dtype(
    [
        ("arrivals", "i8"),
        ("losses", "i8"),
        ("reneges", "i8"),
        ("completions", "i8"),
        ("response_sum", "f8"),
        ("number", "i8"),
        ("number_sum", "f8"),
        # What does not change:
        ("law", "i8"),
        ("batch", "i8"),
        ("patience", "i8"),
        ("entry", "i8"),
        ("population", "i8"),
        ("reference", "i8"),
        ("thinks", "i8"),  # the reference is a delay, time there does not count
        ("left", "i8"),  # jobs of the present batch that have not come in yet
    ]
)
RULE = np.dtype(
    [("kind", "i8"), ("at", "i8"), ("size", "i8"), ("turn", "i8"), ("stream", "i8"), ("station", "i8")]
)
TARGET = np.dtype([("node", "i8"), ("job_class", "i8"), ("below", "f8"), ("rule", "i8")])
"""A destination (-1: outside, -1: same class), its cumulative probability, or a rule by state."""

STATE = np.dtype(
    [
        ("now", "f8"),
        ("begun", "i8"),
        ("events", "i8"),
        ("ended", "i8"),  # jobs that left in any way, cycles of closed ones
        ("free", "i8"),
        ("free_jobs", "i8"),
        ("serial", "i8"),
        ("most_new_jobs", "i8"),  # one event can need
        ("most_rows", "i8"),  # one event can write
        ("records", "i8"),
        ("noted", "i8"),  # bins of times that are yet to be counted
        ("per_unit", "f8"),  # of the histograms
        ("responses_at", "i8"),  # their rows: waits, then responses, then whole passages
        ("passages_at", "i8"),
    ]
)
RECORD = np.dtype(
    [
        ("job", "i8"),
        ("job_class", "i4"),
        ("node", "i4"),
        ("arrived", "f8"),
        ("started", "f8"),
        ("left", "f8"),
        ("outcome", "i4"),
        ("task", "i4"),
    ],
    align=True,
)
"""A visit of a job to a node; ``started`` is NaN where no service began, ``task`` -1 for a whole job."""


class World(NamedTuple):
    """All of it."""

    heap: Annotated[Any, ENTRY, 1]
    places: Annotated[Any, "i8", 1]
    jobs: Annotated[Any, JOB, 1]
    nodes: Annotated[Any, NODE, 1]
    queues: Annotated[Any, QUEUE, 2]
    tallies: Annotated[Any, TALLY, 2]
    classes: Annotated[Any, CLASS, 1]
    service: Annotated[Any, "i8", 2]
    levels: Annotated[Any, "i8", 2]
    rule_of: Annotated[Any, "i8", 2]
    rules: Annotated[Any, RULE, 1]
    targets: Annotated[Any, TARGET, 1]
    laws: Annotated[Any, ROW, 1]
    numbers: Annotated[Any, "f8", 1]
    streams: Annotated[Any, "u8", 2]
    shared: Annotated[Any, ENTRY, 2]
    shared_places: Annotated[Any, "i8", 1]
    speeds: Annotated[Any, "f8", 1]
    branches: Annotated[Any, "i8", 3]
    rows: Annotated[Any, "i8", 2]
    bins: Annotated[Any, "i8", 1]
    notes: Annotated[Any, "i8", 1]
    state: Annotated[Any, STATE, 1]
    records: Annotated[Any, RECORD, 1]
    table: Any
    """Of the addresses of the others, see `validate.engine.pointers`."""
    histograms: Any
    """The bins, a row for each."""
    varied: Any = True
    """Whether there is more than first-come first-served stations of one speed with room for everybody."""
