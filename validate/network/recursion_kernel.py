"""A first-come first-served station customer by customer: no calendar, constant memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from validate.engine.bins import bin_of
from validate.engine.jit import jit, lean_part
from validate.engine.sampling import draw_block

BLOCK = 1024
"""Customers drawn at once: two blocks fit into the first-level cache."""

SPAN, WAITED, SERVED, DELAYED, CUSTOMERS, IDLE, IDLE_SQUARED = range(7)
TOTALS = 7
"""Columns of the totals of a batch: time between the first customer's start of service and the next
batch's, waiting and service time, customers that waited, customers; of one server the sums of its idle
times and of their squares."""


@jit
def serve_batches(
    rows: Any,
    numbers: Any,
    streams: Any,
    free_at: Any,
    sizes: Any,
    totals: Any,
    unit: float,
    waiting: Any,
    response: Any,
) -> None:
    """Serve batches of customers.

    ``rows``, ``numbers``: law table: law 0 gives the gaps between arrivals, law 1 the service times;
    ``streams``: random streams of the two laws; ``free_at``: when each server is free, in ascending order,
    relative to the latest arrival; carries the station's state from call to call. Zeros are an empty station;
    ``sizes``: customers of each batch; ``totals``: filled with the totals of each batch; ``unit``: unit of
    the histograms; ``waiting``, ``response``: counts of the histograms, added to.

    The next customer starts on the server that is free first, Kiefer and Wolfowitz' recursion. With one
    server that is Lindley's.
    """
    gaps, services = np.empty(BLOCK), np.empty(BLOCK)
    for k in range(len(totals)):
        left = sizes[k]
        before = max(free_at[0], 0.0)
        while left > 0:
            count = min(left, BLOCK)
            draw_block(rows, numbers, streams, 0, gaps[:count])
            draw_block(rows, numbers, streams, 1, services[:count])
            if free_at.size == 1:
                _serve_one(gaps[:count], services, free_at, totals[k], unit, waiting, response)
            else:
                _serve_many(gaps[:count], services, free_at, totals[k], unit, waiting, response)
            left -= count
        totals[k, CUSTOMERS] = sizes[k]
        totals[k, SPAN] += max(free_at[0], 0.0) - before


@lean_part
def _serve_one(
    gaps: Any, services: Any, free_at: Any, totals: Any, unit: float, waiting: Any, response: Any
) -> None:
    """Lindley's recursion: the work found is the work left then less the gap."""
    per_unit = 1 / unit
    work, span, waited, served, delayed = free_at[0], 0.0, 0.0, 0.0, 0
    idle, squared = 0.0, 0.0
    for i in range(gaps.size):
        span += gaps[i]
        wait = max(work - gaps[i], 0.0)
        empty = max(gaps[i] - work, 0.0)
        idle += empty
        squared += empty * empty
        work = wait + services[i]
        waited += wait
        served += services[i]
        delayed += wait > 0
        waiting[bin_of(wait * per_unit)] += 1
        response[bin_of(work * per_unit)] += 1
    free_at[0] = work
    totals[SPAN] += span
    totals[WAITED] += waited
    totals[SERVED] += served
    totals[DELAYED] += delayed
    totals[IDLE] += idle
    totals[IDLE_SQUARED] += squared


@lean_part
def _serve_many(
    gaps: Any, services: Any, free_at: Any, totals: Any, unit: float, waiting: Any, response: Any
) -> None:
    per_unit = 1 / unit
    servers = free_at.size
    now, waited, served, delayed = 0.0, 0.0, 0.0, 0
    for i in range(gaps.size):
        now += gaps[i]
        wait = max(free_at[0] - now, 0.0)
        spent = wait + services[i]
        waited += wait
        served += services[i]
        delayed += wait > 0
        waiting[bin_of(wait * per_unit)] += 1
        response[bin_of(spent * per_unit)] += 1
        # One pass of exchanges keeps the vector ordered; without branches, which would be mispredicted.
        latest = now + spent
        for server in range(1, servers):
            other = free_at[server]
            free_at[server - 1] = min(other, latest)
            latest = max(other, latest)
        free_at[servers - 1] = latest
    # A clock that starts anew with each block keeps its precision in a run of any length.
    for server in range(servers):
        free_at[server] -= now
    totals[SPAN] += now
    totals[WAITED] += waited
    totals[SERVED] += served
    totals[DELAYED] += delayed
