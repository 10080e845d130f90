"""Energy and cost: what one event and one part is charged, and the bill of the parts."""

from __future__ import annotations

from dataclasses import dataclass

from qmodels.checks import Numeric
from qmodels.systems.spec.ranges import Declared, nonnegative


@dataclass(frozen=True, kw_only=True)
class Energy(Declared, prefix="energy."):
    """Energy per event and background power; replace what you know better.

    Prices only: the model and the simulator each count the events, and add them up, for themselves.

    The router figures are a least-squares reading of [1]_, Tables II and III (32 routers,
    12 powers): power = 32 (15 mW + 1.9 mW per byte of link) + 20 pJ per transported byte over
    about 5.5 routers. The DRAM figures are rounded datasheet magnitudes of a rank of eight
    DDR2-800 devices, the SRAM figures 28 nm magnitudes: our assumptions.

    Parameters
    ----------
    activation_nj : float
        Opening and closing one DRAM row. [nJ]
    burst_nj : float
        Moving one segment over a channel's data bus. [nJ]
    hop_pj_per_byte : float
        One byte of link width through one router and link, charged per flit. [pJ/byte]
    pointer_nj, lookup_nj : float
        One pointer-memory access; one lookup in a slice. [nJ]
    channel_mw, slice_mw : float
        Background power of a channel with its rank; of an LLC slice. [mW]
    router_mw, router_mw_per_byte : float
        Background power of a router, and per byte of link width. [mW, mW/byte]

    References
    ----------
    .. [1] M. D. Grammatikakis et al., "Address Interleaving for Low-Cost NoCs".
    """

    activation_nj: Numeric = nonnegative(15.0)
    burst_nj: Numeric = nonnegative(12.0)
    hop_pj_per_byte: Numeric = nonnegative(3.6)
    pointer_nj: Numeric = nonnegative(0.05)
    lookup_nj: Numeric = nonnegative(0.1)
    channel_mw: Numeric = nonnegative(300.0)
    slice_mw: Numeric = nonnegative(10.0)
    router_mw: Numeric = nonnegative(15.0)
    router_mw_per_byte: Numeric = nonnegative(1.9)


@dataclass(frozen=True, kw_only=True)
class Cost(Declared, prefix="cost."):
    """Silicon area equivalent of each part; replace what you know better.

    All figures are our assumptions, of the magnitude of a 28 nm process.

    Parameters
    ----------
    channel : float
        Memory controller and its pins. [mm2]
    router, router_per_byte : float
        A router, and its buffers and switch per byte of link width. [mm2, mm2/byte]
    wire_per_byte : float
        One directed link's wires, per byte of link width, requests and responses together. [mm2/byte]
    slice_per_kib : float
        LLC slice. [mm2/KiB]
    pointer_per_mib : float
        Pointer memory (8 bytes a block, off-chip SRAM). [mm2/MiB]
    trial : float
        Logic for each further allocation trial. [mm2]
    """

    channel: Numeric = nonnegative(4.0)
    router: Numeric = nonnegative(0.02)
    router_per_byte: Numeric = nonnegative(0.006)
    wire_per_byte: Numeric = nonnegative(0.002)
    slice_per_kib: Numeric = nonnegative(0.003)
    pointer_per_mib: Numeric = nonnegative(0.05)
    trial: Numeric = nonnegative(0.02)
