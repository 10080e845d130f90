"""Why an answer is not validated: what sets a design apart from those on which the error was measured."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qmodels.packet_processor.balance import Balance
from qmodels.packet_processor.burstiness import Burstiness
from qmodels.packet_processor.controllers.errors import behind_controllers
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.error_map import wrong_directions
from qmodels.packet_processor.following.recording import overloaded, rotation_of
from qmodels.systems.traffic.arrivals import Recorded

VALIDATED_LOAD = 0.8
VALIDATED_RUN = 32.0
VALIDATED_BANKS = 4.0
POINTER_LOAD, LONG_PACKET, LONG_LOAD = 0.75, 12.0, 0.5
"""Loads, and segments of a packet, from which conflicts are off in two regions of the plane of trials."""
BEYOND = (
    "; under four such traces the mean was 37 % too low to 14 % too high, p99 45 % too low to 36 % too high"
)
"""Largest errors against whole rotations: Bellcore (40,000 packets), a capture of 10,507, two generated ones
of 10,000 (rates that switch; a busy stretch), 25 and 40 Gb/s, 26 points of up to six designs each."""
MOST_DISPERSED = 8.0
"""Dispersion of the arrivals over that of Poisson packets with which the model was made."""
VALIDATED_OUTLASTING = 1.5
"""Growth of the dispersion beyond the hold that a recorded stream of independent packets shows by chance."""


def doubts(c: Columns, point: Balance, bursts: Burstiness) -> dict[str, npt.NDArray[np.bool_]]:
    """Doubts about the measured error, in words, and the designs they hold for.

    Only what applies to a design of the sweep is listed; a design without doubts is validated.
    """
    load = point.load
    router = c.spec.noc.router
    few = router.virtual_channels < 2 or router.buffer_flits < 8
    credits = router.credit_cycles + 2 * max(c.spec.noc.topology.link_delays, default=0)
    largest = np.max(bursts.dispersion, initial=0.0)
    beyond = BEYOND if isinstance(c.spec.workload.arrivals, Recorded) and c.memory is None else ""
    memory = _of_banks(c, point) if c.memory is None else behind_controllers(c, load, bursts.dispersion)
    memory = memory | _overloaded(c, point)
    found = memory | {
        f"load above {VALIDATED_LOAD:.0%}": load > VALIDATED_LOAD,
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
            np.full(load.shape, credits > router.buffer_flits)
        ),
        (
            f"bursts beyond those measured: arrivals {largest:.3g} times as dispersed as Poisson, "
            f"measured to {MOST_DISPERSED:.3g}{beyond}"
            if np.isfinite(largest)
            else "a recorded trace with too few packets to tell how dispersed it is"
        ): bursts.dispersion > MOST_DISPERSED,
        "bursts that outlast the hold, so that they come back as bursts of reads": (
            bursts.outlasting > VALIDATED_OUTLASTING
        ),
    }
    return {words: mask for words, mask in found.items() if words and mask.any()}


def _overloaded(c: Columns, point: Balance) -> dict[str, npt.NDArray[np.bool_]]:
    """Return the designs that stretches of a trace overload, and in words how far at most."""
    if not isinstance(c.spec.workload.arrivals, Recorded):
        return {}
    stream = rotation_of(c.spec.workload)
    part, backlog = overloaded(stream, point.load, c.hold * point.rate)
    worst = int(np.argmax(part * (point.load < 1.0)))
    name = max(point.loads, key=lambda group: float(point.loads[group][worst]))
    words = (
        f"stretches of the trace, up to {part[worst]:.0%} of its time, offer more than the {name} carry: "
        f"a backlog of up to {backlog[worst] / point.rate[worst] / 1000.0:.3g} us"
    )
    return {words: part > 0, stream.doubt: np.ones_like(part, dtype=bool)}


def _of_banks(c: Columns, point: Balance) -> dict[str, npt.NDArray[np.bool_]]:
    """Reasons why a memory of banks is unlike those the error was measured on.

    Four of them are regions in which conflicts are off by more than 15 % in ``cases/data/trial-plane.csv``,
    or where that plane says nothing.
    """
    load, closed = point.load, c.closed_pages
    return {
        f"fewer than {VALIDATED_BANKS:g} banks a channel": c.banks < VALIDATED_BANKS,
        "closed pages where consecutive blocks share a bank": closed & (c.bank_step != 1),
        "closed pages with several trials": closed & (c.trials > 1),
        "blocks of a row on several banks": (not closed) & (c.bank_step < c.row_blocks),
        f"pointer memory fullest, above {POINTER_LOAD:.0%}: write conflicts up to 32 % too high": (
            (point.loads["pointer memory"] >= load) & (load > POINTER_LOAD)
        ),
        "long packets in steps of at most 4 on at most 2 channels: conflicts up to 20 % too low": (
            (c.mean_segments > LONG_PACKET) & (c.step <= 4) & (c.channels <= 2) & (load >= LONG_LOAD)
        ),
        **wrong_directions(load=load, step=c.step),
    }
