"""Zero-load times of a packet: exact for all widths, wires, buffers and lengths."""

from __future__ import annotations

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.noc.router import Router
from qmodels.systems.noc.routes import INJECTION, Integers, PathTable, along_paths

INJECTION_WIRE = 2
"""From a source to its router, whatever the pipeline of the routers. [cycles]"""


def credit_loops(table: PathTable, router: Router) -> FloatArray:
    """Return the cycles from a flit's start on each channel until the next one can start into its place."""
    ahead = np.where(np.asarray(table.channel_kind) == INJECTION, INJECTION_WIRE, router.pipeline_cycles)
    wires = 2 * np.asarray(table.channel_delay) + np.asarray(table.channel_cycles_per_flit) - 1
    loops: FloatArray = np.asarray(ahead + wires + router.credit_cycles - router.pipeline_cycles, dtype=float)
    return loops


def head_times(table: PathTable, router: Router) -> FloatArray:
    """Return when the head of a packet of each flow, alone, is at its sink [cycles]."""
    wires = np.asarray(table.channel_delay) + np.asarray(table.channel_cycles_per_flit, dtype=float) - 1
    routers = np.diff(table.path_start) - 1
    return np.asarray(INJECTION_WIRE + router.pipeline_cycles * routers + along_paths(np.add, table, wires))


def busy_times(table: PathTable, router: Router, flits: Integers) -> tuple[FloatArray, FloatArray]:
    r"""Return the cycles in which the tail of a packet follows its head, and the cycles of the last flit.

    The sum of both is how long the packet keeps the slowest channel of its path.

    ``flits``: flits of the packet of each flow.

    Let flit *k* start on channel *j* of the path at :math:`s_j(k)`. A channel takes :math:`w_j` cycles
    per flit, a head :math:`d_j` until it can start on the next one, and the place of a flit in one of the
    *B* slots behind the channel is free again :math:`r_j` after the flit has left it:

    .. math:: s_j(k) = \max\{s_{j-1}(k) + d_{j-1},\; s_j(k-1) + w_j,\; s_{j+1}(k-B) + r_j\}.

    The longest chain of these steps from the first start to the last flit at the sink takes every
    :math:`d_j` once. Of the other steps each :math:`w_j` advances by one flit and each step back,
    which comes with a second step ahead, by *B* in :math:`d_j + r_j`; any number of each fits in. So the
    tail is behind the head by

    .. math:: (L-1) W + \left\lfloor\frac{L-1}{B}\right\rfloor \max(0, R - BW), \qquad
              W = \max_j w_j, \quad R = \max_j (d_j + r_j),

    exactly.

    >>> from qmodels.systems.noc.spec import Noc
    >>> from qmodels.systems.noc.patterns import uniform
    >>> from qmodels.systems.noc.topology import mesh
    >>> noc = Noc(topology=mesh(2, 2), traffic=uniform(nodes=4), router=Router(buffer_flits=4))
    >>> table = noc.flow_table()
    >>> behind, last = busy_times(table, noc.router, table.flits)
    >>> float(behind[0]), float(last[0])  # 9 flits, two of them held up for a credit
    (10.0, 1.0)
    """
    slowest = along_paths(np.maximum, table, np.asarray(table.channel_cycles_per_flit, dtype=float))
    loop = along_paths(np.maximum, table, credit_loops(table, router))
    late = np.maximum(loop - router.buffer_flits * slowest, 0.0)
    return (flits - 1) * slowest + (flits - 1) // router.buffer_flits * late, slowest
