"""Measure DRAMsim3 and Ramulator 1 on random DDR4-3200 accesses; writes dram_latency.csv beside this file.

Usage: ``DRAMSIM3=<its source directory> RAMULATOR=<its source directory> python dram_latency.py``.

Both are compiled into small drivers (directory ``dram``) that offer Poisson arrivals to random banks
and take the latency from the arrival to the last data, the wait before a full controller included.
DRAMsim3 needs ``libdramsim3.so`` in its directory; its controller is told to keep a queue per bank.
Ramulator 1 is compiled from its sources with the one line of its table of DDR4 speeds replaced, so
that both have the timings of `TIMING`; its scheduler is FRFCFS and its rows close by auto-precharge.
"""

import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
TIMING = {
    "CL": 22, "CWL": 16, "tRCD": 22, "tRP": 22, "tRAS": 52, "tRRD_S": 4, "tRRD_L": 8, "tFAW": 34,
    "tCCD_S": 4, "tCCD_L": 8, "tWTR_S": 4, "tWTR_L": 12, "tWR": 24, "tRTP": 12, "tRTRS": 2,
    "tRFC": 560, "tREFI": 12480,
}  # fmt: skip
NEVER = 2_000_000_000
SPEED = (
    "{3200, 1600, 0.625, 4, 4, 8, 2, 22, 22, 22, 16, 52, 74, 12, 4, 12, 24, 0, 0, 0, 0, 0, 8, 10, 0, 8, 0, 0}"
)
COLUMNS = (
    "simulator", "page_policy", "ranks", "refresh", "row_hits", "writes", "arrival_rate",
    "mean_latency", "standard_error", "latency_p99", "cycles", "seconds", "requests",
)  # fmt: skip


def points() -> list[tuple[str, int, int, float, float, float]]:
    """Return page policy, ranks, refresh, row hits, writes and arrivals per cycle of each point."""
    result = []
    for ranks, rates in (
        (1, (0.001, 0.02, 0.04, 0.06, 0.08, 0.09, 0.1)),
        (2, (0.001, 0.03, 0.06, 0.1, 0.13, 0.15)),
    ):
        for policy in ("closed", "open"):
            for refresh in (0, 1):
                result += [(policy, ranks, refresh, 0.0, 0.0, rate) for rate in rates]
        result += [("open", ranks, 0, 0.5, 0.0, rate) for rate in rates[1:]]
        result += [("closed", ranks, 0, 0.0, 0.3, rate) for rate in rates[1:-1]]
    return result


def build(workspace: Path) -> dict[str, list[str]]:
    """Compile the drivers; return the command of each simulator."""
    dramsim3, ramulator = Path(os.environ["DRAMSIM3"]), Path(os.environ["RAMULATOR"])
    source = workspace / "ramulator"
    shutil.copytree(ramulator / "src", source)
    table = source / "DDR4.h"
    text, count = re.subn(r"\{3200, 1600, 0\.625.*?\}", SPEED, table.read_text())
    assert count == 1
    table.write_text(text)
    flags = ["g++", "-O3", "-w", f"-I{HERE / 'dram'}"]
    subprocess.run(
        [*flags, "-std=c++17", f"-I{dramsim3 / 'src'}", str(HERE / "dram/dramsim3_driver.cpp"), "-o",
         str(workspace / "drive_dramsim3"), str(dramsim3 / "libdramsim3.so"), f"-Wl,-rpath,{dramsim3}"],
        check=True,
    )  # fmt: skip
    units = [str(f) for f in source.glob("*.cpp") if f.name not in ("Main.cpp", "Gem5Wrapper.cpp")]
    subprocess.run(
        [*flags, "-std=c++14", "-DRAMULATOR", f"-I{source}", str(HERE / "dram/ramulator_driver.cpp"), *units,
         "-o", str(workspace / "drive_ramulator")],
        check=True,
    )  # fmt: skip
    return {
        "DRAMsim3": [str(workspace / "drive_dramsim3")],
        "Ramulator 1": [str(workspace / "drive_ramulator")],
    }


def configuration(path: Path, *, ranks: int, closed: bool, refresh: bool) -> Path:
    """Write a DRAMsim3 configuration."""
    timing = TIMING | ({} if refresh else {"tREFI": NEVER})
    lines = [
        "[dram_structure]", "protocol = DDR4", "bankgroups = 4", "banks_per_group = 4", "rows = 65536",
        "columns = 1024", "device_width = 8", "BL = 8", "[timing]", "tCK = 0.625",
        *(f"{name} = {value}" for name, value in timing.items()),
        "[power]", "VDD = 1.2", "[system]", f"channel_size = {8192 * ranks}", "channels = 1",
        "bus_width = 64",
        "address_mapping = rochrababgco",
        "queue_structure = PER_BANK", "refresh_policy = RANK_LEVEL_STAGGERED",
        f"row_buf_policy = {'CLOSE_PAGE' if closed else 'OPEN_PAGE'}", "cmd_queue_size = 8",
        "trans_queue_size = 32", "[other]", f"epoch_period = {NEVER}", "output_level = 0",
    ]  # fmt: skip
    path.write_text("\n".join(lines))
    return path


def main(requests: int) -> None:
    """Measure all points."""
    part = HERE / ".dram_latency.csv.part"
    with tempfile.TemporaryDirectory() as name, part.open("w", newline="") as file:
        commands = build(Path(name))
        file.write(
            "# Cycles of 0.625 ns. Made by: DRAMSIM3=.. RAMULATOR=.. python tests/reference/dram_latency.py\n"
        )
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        for point in points():
            policy, ranks, refresh, hits, writes, rate = point
            ini = configuration(
                Path(name) / "d.ini", ranks=ranks, closed=policy == "closed", refresh=bool(refresh)
            )
            few = requests // 10 if rate < 0.01 else requests
            settings = [str(x) for x in (ranks, 4, 4, policy, refresh, rate, hits, writes, few, 1)]
            for simulator, command in commands.items():
                arguments = [str(ini), *settings] if simulator == "DRAMsim3" else settings
                out = subprocess.run(
                    [*command, *arguments], capture_output=True, text=True, check=True, cwd=name
                )
                found = out.stdout.strip().splitlines()[-1].split(",")
                rows.writerow([simulator, *point, *found, few])
                file.flush()
    part.replace(HERE / "dram_latency.csv")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 600_000)
