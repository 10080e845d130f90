"""Timing of a DRAM device, in cycles of its command clock."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial

from qmodels import checks
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
