"""Error of the wormhole model for sources that send to their targets in turn, or to random ones.

``python tests/reference/turn_taking.py`` prints what `qmodels.noc.solve_noc` says of it: the mean size of
the error of the latency on 16 networks, by packets in a run (0: random targets) and part of the model's
saturation rate for random targets. It takes a minute.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from qmodels import Noc, crossbar, mesh, ring, spidergon
from qmodels.noc import Router, interleaved
from qmodels.noc.solve_noc import solve_noc
from validate import simulate

INNER = (5, 6, 9, 10)
PLACES = (
    (spidergon(16), range(8), range(8, 16)),
    (mesh(4, 4), range(8), range(8, 16)),
    (spidergon(16), range(12), range(12, 16)),
    (mesh(4, 4), [n for n in range(16) if n not in INNER], INNER),
    (mesh(6, 6), range(6, 36), range(6)),
    (ring(8), range(4), range(4, 8)),
    (spidergon(32), range(0, 32, 2), range(1, 32, 4)),
    (crossbar(16), range(8), range(8, 16)),
)
LOADS = (0.4, 0.6, 0.75, 0.9)


def networks(run: int) -> Iterator[Noc]:
    """Yield the networks, with so many packets in a run."""
    options = {"step": run} if run else {"addresses": "random"}
    for virtual_channels, flits in ((2, 4), (4, 9)):
        for topology, initiators, channels in PLACES:
            yield Noc(
                topology=topology,
                traffic=interleaved(initiators=initiators, channels=channels, **options),
                router=Router(virtual_channels=virtual_channels),
                flits_per_packet=flits,
            )


def errors(run: int, load: float) -> list[float]:
    """Return the errors of the latencies that are finite in both [%]."""
    found = []
    for noc, random in zip(networks(run), networks(0), strict=True):
        at = replace(noc, injection_rate=load * solve_noc(random).saturation_rate)
        result = simulate(at, packets=5000, replications=4, cycles=8000, progress=lambda done, total: None)
        error = 100 * (float(solve_noc(at).packet_latency) / result.packet_latency.best - 1)
        if result.stable and np.isfinite(error):
            found.append(error)
    return found


if __name__ == "__main__":
    for run in (0, 1, 4, 16):
        for load in LOADS:
            error = np.array(errors(run, load))
            print(
                f"{run:2} {load:.2f}: mean size {abs(error).mean():.1f} %, bias {error.mean():.1f} %, "
                f"largest {abs(error).max():5.1f} %, {error.size} networks"
            )
