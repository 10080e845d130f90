"""Area and energy of a DRAM channel by its standard: pins of the interface, currents of the devices."""

from __future__ import annotations

from dataclasses import dataclass, replace

from qmodels.systems.memory.dram_system import DramSystem

CONTROLLER_MM2 = 0.8
"""Area of a controller without its pins, so that a channel of DDR3-1600 has 4 mm2: our assumption."""


@dataclass(frozen=True, kw_only=True)
class ChannelPrice:
    """Area and energy of a channel."""

    area_mm2: float  # controller and interface
    activation_nj: float  # opening and closing a row
    burst_nj: float  # moving a block, mean of reads and writes
    background_mw: float  # devices with a row open, and their refreshes


@dataclass(frozen=True)
class Pin:
    r"""Active area of an input and output by the clock of the bus [mm2], without decoupling and PHY.

    At the clock :math:`f` in MHz it is :math:`c + k_0 / R + (k_1 f + k_2 f^2 + k_3 f^3) / R`; the values are
    those of CACTI 7 [1]_ in ``extio_technology.cc``, with drivers of 34 ohm for DDR3 and DDR4.

    References
    ----------
    .. [1] N. P. Jouppi, A. B. Kahng, N. Muralimanohar and V. Srinivas, "CACTI-IO: CACTI with off-chip
       power-area-timing models", ICCAD 2012. https://github.com/HewlettPackard/cacti
    """

    ohm: float
    constant: float
    by_clock: tuple[float, float, float, float]

    def area(self, mhz: float) -> float:
        """Return the area at a clock of the bus."""
        return self.constant + sum(k * mhz**power for power, k in enumerate(self.by_clock)) / self.ohm


DDR3 = Pin(34.0, 0.01, (0.5, 1.5e-4, 4.5e-8, 1.5e-11))
DDR4 = Pin(34.0, 0.01, (0.35, 8e-5, 3.5e-8, 1e-11))
LPDDR2 = Pin(50.0, 0.01, (0.5, 8e-5, 3e-8, 8e-12))
WIDE_IO = Pin(75.0, 0.003, (0.2, 4e-5, 2e-8, 4e-12))


@dataclass(frozen=True, kw_only=True)
class Devices:
    """Devices of a channel's rank, their currents under their JEDEC names [mA], and the channel's pins."""

    source: str  # where the currents are from
    pin: Pin
    data_bits: int
    other_bits: int  # strobes, clocks, commands and addresses
    count: int
    volts: float
    idd0: float
    idd2n: float
    idd3n: float
    idd4: float  # mean of reads (IDD4R) and writes (IDD4W)
    idd5: float


_FILE = "{}.ini of DRAMsim3 (commit 2981759), https://github.com/umd-memsys/DRAMsim3"
_LPDDR4 = Devices(
    source=_FILE.format("LPDDR4_8Gb_x16_2400"), pin=LPDDR2, data_bits=16, other_bits=14, count=1, volts=1.2,
    idd0=80, idd2n=34, idd3n=47, idd4=235.5, idd5=280,
)  # fmt: skip
_HBM2 = Devices(
    source=_FILE.format("HBM2_8Gb_x128"), pin=WIDE_IO, data_bits=128, other_bits=48, count=1, volts=1.2,
    idd0=65, idd2n=40, idd3n=55, idd4=445, idd5=250,
)  # fmt: skip
DEVICES = {
    "DDR3-1600": Devices(
        source=_FILE.format("DDR3_8Gb_x8_1600"), pin=DDR3, data_bits=64, other_bits=46, count=8, volts=1.35,
        idd0=67, idd2n=36, idd3n=51, idd4=125, idd5=245,
    ),
    "DDR4-3200": Devices(
        source=_FILE.format("DDR4_8Gb_x8_3200"), pin=DDR4, data_bits=64, other_bits=46, count=8, volts=1.2,
        idd0=57, idd2n=37, idd3n=52, idd4=159, idd5=250,
    ),
    "LPDDR4-2400": _LPDDR4,
    "HBM2": _HBM2,
    "HMC-vaults": Devices(
        source=_FILE.format("HMC2_8GB_4Lx16"), pin=WIDE_IO, data_bits=32, other_bits=24, count=1, volts=1.2,
        idd0=25, idd2n=19, idd3n=21, idd4=62.5, idd5=150,
    ),
    "DDR5-6400": Devices(
        source=(
            "DDR5.cpp of Ramulator 2 (commit b272375) for 3200 MT/s, here with twice the current of columns; "
            "pins of DDR4"
        ),
        pin=DDR4, data_bits=32, other_bits=24, count=4, volts=1.1, idd0=60, idd2n=50, idd3n=55, idd4=235,
        idd5=362,
    ),
    "HBM3": replace(
        _HBM2, source="our estimate: those of HBM2 at 1.1 V, the current of columns by the rate of the data",
        data_bits=32, other_bits=14, volts=1.1, idd4=55 + (445 - 55) * 0.8,
    ),
    "LPDDR5-6400": replace(
        _LPDDR4,
        source="our estimate: those of LPDDR4 at 1.05 V, the current of columns by the rate of the data",
        volts=1.05, idd4=47 + (235.5 - 47) * 8 / 3,
    ),
}  # fmt: skip
"""By preset."""


def channel_price(spec: DramSystem) -> ChannelPrice | None:
    r"""Return the area and energy of a channel of a preset's devices; None if no preset has them.

    With the currents :math:`I` and the voltage :math:`U` of n devices a row that opens and closes takes
    :math:`n U (I_{DD0} t_{RC} - I_{DD3N} t_{RAS} - I_{DD2N} (t_{RC} - t_{RAS}))`, a block
    :math:`n U (I_{DD4} - I_{DD3N}) t_{burst}`, and :math:`n U (I_{DD3N} + (I_{DD5} - I_{DD3N}) t_{RFC} /
    t_{REFI})` goes on in each rank [1]_. Termination of the bus is left out.

    References
    ----------
    .. [1] Micron, "TN-41-01: Calculating memory system power for DDR3", 2007.

    Examples
    --------
    >>> from qmodels.systems.memory.dram_system import dram
    >>> for name in ("DDR3-1600", "DDR4-3200", "HBM2"):
    ...     price = channel_price(dram(name))
    ...     print(name, *(float(f"{x:.3g}") for x in (price.area_mm2, price.activation_nj, price.burst_nj)))
    DDR3-1600 4.02 10.7 4.0
    DDR4-3200 3.87 4.2 2.57
    HBM2 1.95 0.828 0.936
    """
    device = DEVICES.get(spec.preset)
    if device is None:
        return None
    timing, geometry = spec.timing, spec.geometry
    words = 8 * geometry.block_bytes / (device.data_bits * timing.burst)
    pins = device.data_bits + device.other_bits
    row = device.idd0 * timing.t_rc - device.idd3n * timing.t_ras
    row -= device.idd2n * (timing.t_rc - timing.t_ras)
    refreshing = timing.t_rfc / timing.t_refi if timing.t_rfc else 0.0
    on = device.idd3n + (device.idd5 - device.idd3n) * refreshing
    milliwatts = device.count * device.volts  # of a mA
    nanojoules = milliwatts / timing.clock_ghz / 1000  # of a mA for a cycle
    return ChannelPrice(
        area_mm2=CONTROLLER_MM2 + pins * device.pin.area(500 * words * timing.clock_ghz),
        activation_nj=nanojoules * row,
        burst_nj=nanojoules * (device.idd4 - device.idd3n) * timing.burst,
        background_mw=geometry.ranks * milliwatts * on,
    )
