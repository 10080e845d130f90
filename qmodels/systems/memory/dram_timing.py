"""Timing of DRAM in cycles of its clock, and the presets of the standards."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial

from qmodels import checks
from qmodels.systems.memory.dram_map import DramGeometry
from qmodels.systems.spec.ranges import Declared, count, positive

MOST_CYCLES = 10**6
_cycles = partial(count, minimum=0, maximum=MOST_CYCLES)
"""Beyond a millisecond a time between commands is a slip."""


@dataclass(frozen=True, kw_only=True)
class DramTiming(Declared, prefix="timing."):
    """Least times between commands, under their JEDEC names; all in cycles of the command clock.

    Raises
    ------
    ValueError
        If a time is not a whole number, or the times contradict each other.

    Examples
    --------
    >>> abstract(burst=4, bank_busy=12).t_rc
    12
    """

    # Command clock; a double-data-rate bus moves two words in each cycle. [GHz]
    clock_ghz: float = positive()
    # Data-bus time of one block (tBL, also the least time between column commands of different bank groups,
    # tCCD_S). [cycles]
    burst: int = count(maximum=MOST_CYCLES)
    t_rcd: int = _cycles()  # From a row command to the column command. [cycles]
    # cl, cwl: From a column command to the first data, of a read and of a write. [cycles]
    cl: int = _cycles()
    cwl: int = _cycles()
    t_rp: int = _cycles()  # Time to close a row. [cycles]
    t_ras: int = _cycles()  # Least time a row is open. [cycles]
    t_rc: int = _cycles()  # Between row commands of one bank, at least ``t_ras + t_rp``. [cycles]
    # t_rrd_s, t_rrd_l: Between row commands of different bank groups, and of the same. [cycles]
    t_rrd_s: int = _cycles()
    t_rrd_l: int = _cycles()
    t_faw: int = _cycles()  # Time in which a rank takes at most four row commands; 0 if any number. [cycles]
    t_ccd_l: int = _cycles()  # Between column commands of the same bank group, at least ``burst``. [cycles]
    # t_wtr_s, t_wtr_l: From the end of written data to a read: other bank groups, and the same. [cycles]
    t_wtr_s: int = _cycles()
    t_wtr_l: int = _cycles()
    # t_wr, t_rtp: From the end of written data, and from a read command, until the row may be closed.
    # [cycles]
    t_wr: int = _cycles()
    t_rtp: int = _cycles()
    t_rtrs: int = _cycles()  # Gap on the data bus when the rank or the direction changes. [cycles]
    # t_refi, t_rfc: Mean time between refreshes of a rank and how long one takes; 0 without refresh. [cycles]
    t_refi: int = _cycles()
    t_rfc: int = _cycles()

    def of_bursts(self, count: int) -> DramTiming:
        """Return the times where an access is n bursts to one open row, ``t_ccd_l`` apart.

        The last data come ``(count - 1) t_ccd_l`` later; the bus is busy for all bursts.
        """
        later = (count - 1) * self.t_ccd_l
        behind = later - (count - 1) * self.burst
        return replace(
            self, burst=count * self.burst, t_ccd_l=count * self.t_ccd_l, cl=self.cl + behind,
            cwl=self.cwl + behind, t_rtp=self.t_rtp + later,
        )  # fmt: skip

    def _check_relations(self) -> None:
        for name, least, rule in (
            ("t_rc", self.t_ras + self.t_rp, "t_ras + t_rp"),
            ("t_ras", self.t_rcd, "t_rcd"),
            ("t_rrd_l", self.t_rrd_s, "t_rrd_s"),
            ("t_ccd_l", self.burst, "burst"),
            ("t_wtr_l", self.t_wtr_s, "t_wtr_s"),
        ):
            if getattr(self, name) < least:
                raise ValueError(
                    f"timing.{name} must be at least {rule} = {least}, got {getattr(self, name)!r}"
                )
        if self.t_rfc:
            if self.t_refi <= self.t_rfc:
                raise ValueError(f"timing.t_refi must be above t_rfc = {self.t_rfc}, got {self.t_refi!r}")
            for item in fields(self)[1:-2]:
                value = getattr(self, item.name)
                if value > self.t_refi - self.t_rfc:
                    most = f"t_refi - t_rfc = {self.t_refi - self.t_rfc}"
                    raise ValueError(f"timing.{item.name} must be at most {most}, got {value!r}")

    @property
    def row_gap(self) -> float:
        """Mean time between row commands that a rank sustains, in cycles."""
        return max(self.t_faw / 4, self.t_rrd_s, 1)

    @property
    def read_cycle(self) -> int:
        """Least time between accesses to different rows of a bank, the first a read, in cycles."""
        return max(self.t_rc, self.t_rcd + self.t_rtp + self.t_rp)

    @property
    def write_cycle(self) -> int:
        """Least time between accesses to different rows of a bank, the first a write, in cycles."""
        return max(self.t_rc, self.t_rcd + self.cwl + self.burst + self.t_wr + self.t_rp)

    @property
    def read_to_write(self) -> int:
        """From a read command to a write command of the channel, in cycles."""
        return max(self.cl + self.burst + self.t_rtrs - self.cwl, self.burst)

    @property
    def write_to_read(self) -> int:
        """From a write command to a read command of another bank group of the rank, in cycles."""
        return self.cwl + self.burst + self.t_wtr_s


def abstract(
    *, burst: int, bank_busy: int, latency: int = 0, clock_ghz: float = 1.0, turnaround: int = 0
) -> DramTiming:
    """Return the timing of banks that are busy for a fixed time from when they get the bus.

    ``burst``: bus time of an access [cycles]; ``bank_busy``: time a bank needs for an access to another row,
    at least ``burst`` [cycles]; ``latency``: from the start of an access to its first data [cycles];
    ``clock_ghz``: clock [GHz]; ``turnaround``: gap on the bus when its direction changes [cycles].
    """
    checks.count("bank_busy", bank_busy, minimum=int(checks.count("burst", burst)))
    after = max(0, bank_busy - burst - latency)
    return DramTiming(
        clock_ghz=clock_ghz, burst=burst, t_rcd=0, cl=latency, cwl=latency, t_rp=0, t_ras=0, t_rc=bank_busy,
        t_rrd_s=0, t_rrd_l=0, t_faw=0, t_ccd_l=burst, t_wtr_s=0, t_wtr_l=0, t_wr=after, t_rtp=bank_busy,
        t_rtrs=turnaround, t_refi=0, t_rfc=0,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class DramPreset:
    """A device with the controller it is usually modelled with."""

    source: str  # where the numbers are from
    # timing, geometry, page_policy, scheduler, controller_cycles: fields of `DramSystem`.
    timing: DramTiming
    geometry: DramGeometry
    page_policy: str = "open"
    scheduler: str = "fr-fcfs"
    controller_cycles: int = 0


_FILES = "file {} of DRAMsim3 (commit 2981759), https://github.com/umd-memsys/DRAMsim3"

PRESETS: dict[str, DramPreset] = {
    "gem5-DDR2-800": DramPreset(
        source=(
            "RubyMemoryControl.py of gem5, January 2013, in memory cycles of 2.5 ns: bank_busy_time 11, "
            "basic_bus_busy_time 2, read_write_delay 2, mem_ctl_latency 12, 8 banks, 2 ranks, 2 DIMMs. Its "
            "staggered refresh of single banks (11 cycles of a bank every 48 cycles) is not modelled, and "
            "its banks are all in one rank here"
        ),
        timing=abstract(burst=2, bank_busy=11, latency=0, clock_ghz=0.4, turnaround=2),
        geometry=DramGeometry(groups=1, banks=32),
        page_policy="closed",
        scheduler="oldest-ready-first",
        controller_cycles=12,
    ),
    "DDR3-1600": DramPreset(
        source=_FILES.format("DDR3_8Gb_x8_1600.ini"),
        timing=DramTiming(
            clock_ghz=0.8, burst=4, t_rcd=11, cl=11, cwl=8, t_rp=11, t_ras=28, t_rc=39, t_rrd_s=6, t_rrd_l=6,
            t_faw=32, t_ccd_l=4, t_wtr_s=6, t_wtr_l=6, t_wr=12, t_rtp=6, t_rtrs=1, t_refi=6240, t_rfc=280,
        ),
        geometry=DramGeometry(groups=1, banks=8, row_blocks=256),
    ),
    "DDR4-3200": DramPreset(
        source=_FILES.format("DDR4_8Gb_x8_3200.ini") + ", with tRTRS 2 as in Ramulator",
        timing=DramTiming(
            clock_ghz=1.6, burst=4, t_rcd=22, cl=22, cwl=16, t_rp=22, t_ras=52, t_rc=74, t_rrd_s=4, t_rrd_l=8,
            t_faw=34, t_ccd_l=8, t_wtr_s=4, t_wtr_l=12, t_wr=24, t_rtp=12, t_rtrs=2, t_refi=12480, t_rfc=560,
        ),
        geometry=DramGeometry(groups=4, banks=4, row_blocks=128),
    ),
    "LPDDR4-2400": DramPreset(
        source=(
            "JESD209-4, 8 Gb of a 16-bit channel, bursts of 16 words: tRCD and tRPpb 18 ns, tRAS 42 ns, tRRD "
            "10 ns, tFAW 40 ns, tWTR 10 ns, tWR 18 ns, tRTP 7.5 ns, tREFI 3904 ns, tRFCab 280 ns, read "
            "latency 24 and write latency 12 (set A); the same in JEDEC_512Mbx16_LPDDR4-2666.json of DRAMSys "
            "(commit 2107966). The delay of the data's strobe after the read latency (tDQSCK) is left "
            "out. LPDDR4_8Gb_x16_2400.ini of DRAMsim3 (commit 2981759) has the times of DDR4-2400"
        ),
        timing=DramTiming(
            clock_ghz=1.2, burst=8, t_rcd=22, cl=24, cwl=12, t_rp=22, t_ras=51, t_rc=73, t_rrd_s=12,
            t_rrd_l=12, t_faw=48, t_ccd_l=8, t_wtr_s=12, t_wtr_l=12, t_wr=22, t_rtp=9, t_rtrs=1, t_refi=4685,
            t_rfc=336,
        ),
        geometry=DramGeometry(groups=1, banks=8, row_blocks=64, block_bytes=32),
    ),
    "HBM2": DramPreset(
        source=(
            _FILES.format("HBM2_8Gb_x128.ini") + "; legacy mode: a channel of 128 bits, bursts of 4 words in "
            "2 cycles, pages of 2 KB (JESD235A; 1 KB, as in that file, is the page of a pseudo channel)"
        ),
        timing=DramTiming(
            clock_ghz=1.0, burst=2, t_rcd=14, cl=14, cwl=4, t_rp=14, t_ras=34, t_rc=48, t_rrd_s=4, t_rrd_l=6,
            t_faw=30, t_ccd_l=2, t_wtr_s=6, t_wtr_l=8, t_wr=16, t_rtp=6, t_rtrs=1, t_refi=3900, t_rfc=260,
        ),
        geometry=DramGeometry(channels=8, groups=4, banks=4, row_blocks=32),
    ),
    "HMC-vaults": DramPreset(
        source=_FILES.format("HMC2_8GB_4Lx16.ini") + "; vaults only: no links, no crossbar",
        timing=DramTiming(
            clock_ghz=1.25, burst=4, t_rcd=17, cl=17, cwl=17, t_rp=17, t_ras=34, t_rc=51, t_rrd_s=6,
            t_rrd_l=6, t_faw=27, t_ccd_l=6, t_wtr_s=3, t_wtr_l=3, t_wr=19, t_rtp=10, t_rtrs=0, t_refi=9364,
            t_rfc=420,
        ),
        geometry=DramGeometry(channels=32, groups=1, banks=16, row_blocks=8, block_bytes=32),
        page_policy="closed",
    ),
    "DDR5-6400": DramPreset(
        source=(
            "JESD79-5, speed bin 6400AN (46-46-46) and 16 Gb x8 devices: tREFI 3.9 us and tRFC1 295 ns, the "
            "normal refresh; tRAS 32 ns, tFAW of 1 KB pages 32 cycles, tRRD_L and tCCD_L 5 ns, tWTR 2.5 and "
            "10 ns, tWR 30 ns, tRTP 7.5 ns. Also in ddr5.py of Ramulator 2 (commit 02568b0) and of gem5's "
            "DRAM interfaces. One DIMM: two subchannels of 32 bits, bursts of 16 words; writes to "
            "one bank group are as far apart as reads here (in truth 20 ns), commands take one cycle"
        ),
        timing=DramTiming(
            clock_ghz=3.2, burst=8, t_rcd=46, cl=46, cwl=44, t_rp=46, t_ras=103, t_rc=149, t_rrd_s=8,
            t_rrd_l=16, t_faw=32, t_ccd_l=16, t_wtr_s=8, t_wtr_l=32, t_wr=96, t_rtp=24, t_rtrs=2,
            t_refi=12480, t_rfc=944,
        ),
        geometry=DramGeometry(channels=2, groups=8, banks=4, row_blocks=64),
    ),
    "HBM3": DramPreset(
        source=(
            "JESD238: 6.4 Gb/s, 16 channels of two pseudo channels of 32 bits, bursts of 8 words, pages of "
            "1 KB, 4 groups of 4 banks, tREFI 3.9 us, tRFC 350 ns of 8 Gb channels. The standard leaves "
            "array timings to vendors: these are estimates, those of hbm3.py (6400Mbps) in Ramulator 2.1, "
            "tRCD that of reads. A stack of one rank; refreshes of single banks are not modelled"
        ),
        timing=DramTiming(
            clock_ghz=1.6, burst=2, t_rcd=31, cl=20, cwl=10, t_rp=26, t_ras=45, t_rc=72, t_rrd_s=4, t_rrd_l=5,
            t_faw=24, t_ccd_l=4, t_wtr_s=7, t_wtr_l=10, t_wr=33, t_rtp=9, t_rtrs=2, t_refi=6240, t_rfc=560,
        ),
        geometry=DramGeometry(channels=32, groups=4, banks=4, row_blocks=32, block_bytes=32),
    ),
    "LPDDR5-6400": DramPreset(
        source=(
            "JESD209-5, 8 Gb devices of 16 bits in bank group mode: command clock of a quarter of the write "
            "clock (CKR 4:1), bursts of 16 words, 2 KB pages; tRCD and tRPpb 18 ns, tRAS 42 ns, read latency "
            "17 (set 0), write latency 9 (set A), tRRD 5 ns, tFAW 20 ns, tWTR 6.25 and 12 ns, tWR 34 ns, "
            "tREFI 3.9 us, tRFCab 210 ns. All but the write latency also in lpddr5.py of gem5's DRAM "
            "interfaces (LPDDR5_6400_1x16_BG_BL16). One 16-bit channel; the clock of the data is always on"
        ),
        timing=DramTiming(
            clock_ghz=0.8, burst=2, t_rcd=15, cl=17, cwl=9, t_rp=15, t_ras=34, t_rc=49, t_rrd_s=4, t_rrd_l=4,
            t_faw=16, t_ccd_l=4, t_wtr_s=5, t_wtr_l=10, t_wr=28, t_rtp=6, t_rtrs=1, t_refi=3120, t_rfc=168,
        ),
        geometry=DramGeometry(groups=4, banks=4, row_blocks=64, block_bytes=32),
    ),
}  # fmt: skip
"""By name. Rows are in blocks of one burst."""
