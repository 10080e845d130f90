"""Row changes and conflicts of the write and the read stream at the banks.

An access continues the row of an earlier access of its stream, right after the block before it or after a
round over the other channels, in the same packet or an earlier one; or it starts on a row of its own. Writes
are one walk along the runs of the free list, packet after packet; each packet is read on its own, long after
it was written.
"""

from __future__ import annotations

import math
from typing import Any

from qmodels.numerics.kernels import part
from qmodels.packet_processor.numbers import (
    AROUND,
    FAR_PACKETS,
    HOLD,
    IN_ROW,
    MEAN,
    MISSES,
    NEIGHBOURS,
    OWN_BEFORE,
    OWN_CUT,
    PLACES,
    READ_FAR,
    READ_NEAR,
    REQUEST_GAP,
    TRAINS,
    WRITE_FAR,
    WRITE_FAR_OWN,
    WRITE_NEAR,
    WRITE_NEAR_OWN,
)  # fmt: skip


@part
def visits_at_bank(rate: Any, z: Any) -> Any:
    """Return the visits to a bank per time by reads and lookups, and by these and writes."""
    from_reads = rate * (z[TRAINS] + z[MISSES]) / z[PLACES]
    return from_reads, from_reads + rate * z[TRAINS] / z[PLACES]


@part
def write_changes(z: Any, gap: Any, others: Any, later: Any) -> Any:
    """Return the probability that others' visits, at a rate per bank, leave the row of a write closed.

    ``later``: see `open_for_later`.
    """
    near = z[WRITE_NEAR] * z[WRITE_NEAR_OWN] * math.exp(-others * gap)
    return 1.0 - (near + z[WRITE_FAR] * z[WRITE_FAR_OWN] * math.exp(-others * gap * z[AROUND]) + later)


@part
def open_for_later(rate: Any, z: Any) -> Any:
    """Return the probability that a write continues a row of an earlier packet, which is still open."""
    between = rate / (rate + visits_at_bank(rate, z)[0])
    near = z[WRITE_NEAR] * (1.0 - z[WRITE_NEAR_OWN]) * between
    return near + z[WRITE_FAR] * (1.0 - z[WRITE_FAR_OWN]) * between ** z[FAR_PACKETS]


@part
def read_changes(rate: Any, z: Any) -> Any:
    r"""Return the probability that others' visits leave the row of a read closed.

    The last visit to the bank may have been that of a packet in store whose blocks are in the same row.
    These neighbours leave the store at rate :math:`k e^{-t/h}/h`, the access itself after an exponential
    time; with others at rate :math:`\nu` and :math:`\kappa = k/(h \nu)` the probability is
    :math:`1 - \ln(1 + \kappa)/\kappa`. A bank has no other row in use with probability :math:`e^{-r}` for r
    rows in use on average; the others' visits fall on the other banks.
    """
    _, others = visits_at_bank(rate, z)
    hold, gap = max(z[HOLD], 1e-9), z[REQUEST_GAP]
    lone = 1.0 - math.exp(-(rate * z[MEAN] * hold / z[IN_ROW] + rate * z[MISSES] * hold) / z[PLACES])
    odds = z[NEIGHBOURS] / max(hold * (others / max(lone, 1e-300)), 1e-300)
    kept = odds / 2.0 if odds < 1e-6 else 1.0 - math.log1p(odds) / odds
    near = z[READ_NEAR] * math.exp(-others * gap)
    far = z[READ_FAR] * math.exp(-others * (gap * z[AROUND]))
    return 1.0 - (near + far + (1.0 - z[READ_NEAR] - z[READ_FAR]) * (1.0 - lone * (1.0 - kept)))


@part
def writes_meet(rate: Any, z: Any, gap: Any, others: Any, memory: Any) -> Any:
    """Return the probability that a write meets a visit, its own too, not older than ``memory``."""
    near = z[WRITE_NEAR] * clear_after(rate, others, memory, gap, z[WRITE_NEAR_OWN])
    far = z[WRITE_FAR] * clear_after(rate, others, memory, gap * z[AROUND], z[WRITE_FAR_OWN])
    fresh = 1.0 - z[WRITE_NEAR] - z[WRITE_FAR]
    return 1.0 - (near + far + row_miss_bank_free(z, fresh, gap, others, memory))


@part
def reads_meet(z: Any, others: Any, memory: Any, own_too: Any) -> Any:
    """Return the probability that a read meets a visit of others not older than ``memory``.

    Only visits after the row's own last use count; with ``own_too`` (closed pages) that last use itself
    counts as well.
    """
    gap, far_gap = z[REQUEST_GAP], z[REQUEST_GAP] * z[AROUND]
    if own_too:
        near = clear_after(0.0, others, memory, gap, 1.0)
        far = clear_after(0.0, others, memory, far_gap, 1.0)
    else:
        near, far = math.exp(-others * min(gap, memory)), math.exp(-others * min(far_gap, memory))
    fresh = 1.0 - z[READ_NEAR] - z[READ_FAR]
    return 1.0 - (z[READ_NEAR] * near + z[READ_FAR] * far + row_miss_bank_free(z, fresh, gap, others, memory))


@part
def clear_after(rate: Any, others: Any, memory: Any, gap: Any, own: Any) -> Any:
    """Return the probability that the bank is free that the stream used last, with ``own`` in this packet."""
    within = own * math.exp(-others * memory) if gap > memory else 0.0
    return within + (1.0 - own) * math.exp(-(rate + others) * memory)


@part
def row_miss_bank_free(z: Any, fresh: Any, gap: Any, others: Any, memory: Any) -> Any:
    """Return the probability that an access is on a row of its own, and its bank is free."""
    seen = min(z[OWN_BEFORE], memory / max(gap, 1e-9))
    return fresh * math.exp(-z[OWN_CUT] * fresh * seen / z[PLACES]) * math.exp(-others * memory)
