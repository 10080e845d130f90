"""DRAM devices as data, with where the numbers are from."""

from __future__ import annotations

from dataclasses import dataclass

from qmodels.systems.memory.dram_map import DramGeometry
from qmodels.systems.memory.dram_timing import DramTiming, abstract


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
