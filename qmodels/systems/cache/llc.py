"""Last-level-cache slices that hold table lines for the lookups."""

from __future__ import annotations

from dataclasses import dataclass

from qmodels.checks import Numeric
from qmodels.systems.spec.ranges import Declared, count, nonnegative, positive


@dataclass(frozen=True, kw_only=True)
class Llc(Declared, prefix="llc."):
    """Address-hashed LRU slices on the bus between the packet engines.

    A lookup crosses the bus, waits for its slice (first come, first served), and returns on a
    hit; a miss is read from a DRAM channel over the network and then held. One table entry
    fills one line. With no slices every lookup goes to DRAM, as in the architecture without
    LLC of [1]_. Numeric fields may be arrays (a sweep).

    Parameters
    ----------
    slices : int
        Slices, 0 for none ([1]_: up to one for each of 28 cores).
    slice_lines : int
        Lines of one slice (our assumption: 2048 lines of 64 bytes, 128 KiB). [lines]
    access_cycles : float
        Time a lookup holds its slice (our assumption). [cycles]
    bus_cycles : float
        One way over the bus, without contention (our assumption). [cycles]
    clock_ghz : float
        Clock of slices and bus (that of the network). [GHz]

    References
    ----------
    .. [1] T. Korikawa, A. Kawabata, F. He, E. Oki, "Packet Processing Architecture Using
       Last-Level-Cache Slices and Interleaved 3D-Stacked DRAM", IEEE Access, 2020.
    """

    slices: Numeric = count(4, minimum=0, maximum=64)
    slice_lines: Numeric = count(2048)
    access_cycles: Numeric = positive(8)
    bus_cycles: Numeric = nonnegative(6)
    clock_ghz: Numeric = positive(1.0)
