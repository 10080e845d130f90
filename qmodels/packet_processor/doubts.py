"""Effects that the model of a packet processor leaves out of a design."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qmodels.packet_processor.balance import Balance
from qmodels.packet_processor.controllers.errors import behind_controllers
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.following.recording import overloaded, rotation_of
from qmodels.systems.traffic.arrivals import Recorded

VALIDATED_RUN = 32.0
VALIDATED_BANKS = 4.0
FEW_TRIALS, BUSY = 2.0, 0.75
"""Trials, and load of the DRAM buses, above which trials even out channels; the model knows nothing of it."""
LONG_PACKET, LONG_LOAD = 12.0, 0.5
"""Segments of a packet, and load, from which conflicts are off on few channels."""


def doubts(c: Columns, point: Balance) -> dict[str, npt.NDArray[np.bool_]]:
    """Effects that the model leaves out, in words, and the designs they apply to."""
    load = point.load
    router = c.spec.noc.router
    few = router.virtual_channels < 2 or router.buffer_flits < 8
    memory = _of_banks(c, point) if c.memory is None else behind_controllers(c, load)
    memory = memory | _overloaded(c, point)
    found = memory | {
        f"free-list runs shorter than {VALIDATED_RUN:g} blocks": c.run_length < VALIDATED_RUN,
        "blocks that do not return together leave no runs in a list once it is used up": (
            np.full(load.shape, c.spec.free_list.return_order != "together") & (c.run_length > 1.0)
        ),
        "routers with fewer than 2 virtual channels of 8 flits, or another arbitration than round robin": (
            np.full(load.shape, few or router.arbitration != "round_robin")
        ),
        "routers in which flits compete for the switch one by one": (
            np.full(load.shape, not router.hold_switch_for_packet)
        ),
        "credits that come back later than a buffer is empty, for which the model does not stop": (
            np.full(load.shape, c.late_credits)
        ),
    }
    return {words: mask for words, mask in found.items() if words and mask.any()}


def _overloaded(c: Columns, point: Balance) -> dict[str, npt.NDArray[np.bool_]]:
    """Return the designs that stretches of a trace overload, and in words how far at most."""
    if not isinstance(c.spec.workload.arrivals, Recorded):
        return {}
    stream = rotation_of(c.spec.workload)
    part, backlog = overloaded(stream, point.load, c.hold * point.rate)
    some = (part > 0) & (point.load < 1.0)
    worst = int(np.argmax(part * some))
    name = max(point.loads, key=lambda group: float(point.loads[group][worst]))
    words = (
        f"stretches of the trace, up to {100 * part[worst]:.2g} % of its time, offer more than the {name} "
        f"carry: a backlog of up to {backlog[worst] / point.rate[worst] / 1000.0:.3g} us"
    )
    return {words: some, stream.doubt: np.ones_like(part, dtype=bool)}


def _of_banks(c: Columns, point: Balance) -> dict[str, npt.NDArray[np.bool_]]:
    """Effects that the model leaves out of a memory of banks."""
    load, closed = point.load, c.closed_pages
    evened = (c.trials > FEW_TRIALS) & (c.channels > 1) & (point.loads["dram buses"] > BUSY) & (load < 1.0)
    return {
        f"more than {FEW_TRIALS:g} trials, DRAM buses above {BUSY:.0%}: latency up to 16 % too high, "
        "conflicts up to 45 % too low, so that the model orders trials wrongly": evened & (not closed),
        f"fewer than {VALIDATED_BANKS:g} banks a channel": c.banks < VALIDATED_BANKS,
        "closed pages where consecutive blocks share a bank": closed & (c.bank_step != 1),
        "closed pages with several trials": closed & (c.trials > 1),
        "blocks of a row on several banks": (not closed) & (c.bank_step < c.row_blocks),
        "long packets in steps of at most 4 on at most 2 channels: conflicts up to 20 % too low": (
            (c.mean_segments > LONG_PACKET) & (c.step <= 4) & (c.channels <= 2) & (load >= LONG_LOAD)
        ),
    }
