"""Hand-written extracts in the form of ``src/base/stats/text.cc`` of gem5, with and without units."""

import json
import math

import numpy as np
import pytest

from validate import read_dramsim3, read_gem5

BEGIN = "\n---------- Begin Simulation Statistics ----------\n"
END = "\n---------- End Simulation Statistics   ----------\n"
FIRST = """simSeconds                                   0.000057 # Number of seconds simulated (Second)
simTicks                                     57467000 # Number of ticks simulated (Tick)
finalTick                                    57467000 # Number of ticks from beginning (never reset) (Tick)
simFreq                                  1000000000000 # Ticks per simulated second ((Tick/Second))
system.cpu0.numCycles                           57467 # Number of cpu cycles simulated (Cycle)
system.cpu0.ipc                              0.500000 # IPC: instructions per cycle ((Count/Cycle))
system.cpu1.ipc                              0.250000 # IPC: instructions per cycle ((Count/Cycle))
system.cpu0.op_class::No_OpClass                    2      0.04%      0.04% # Class of instruction. (Count)
system.cpu0.op_class::IntAlu                     5000     99.96%    100.00% # Class of instruction. (Count)
system.cpu0.op_class::total                      5002 # Class of instruction. (Count)
system.l2.missRate::total                    0.250000 # miss rate for overall accesses (Ratio)
system.mem.avgQLat                                nan # Average queueing delay ((Tick/Count))
system.mem.peak                                   inf # Peak (Unspecified)
system.ruby.latency::bucket_size                   64 # (Unspecified)
system.ruby.latency::max_bucket                   639 # (Unspecified)
system.ruby.latency::samples                       10 # (Unspecified)
system.ruby.latency::mean                   20.000000 # (Unspecified)
system.ruby.latency::gmean                  18.000000 # (Unspecified)
system.ruby.latency::stdev                   3.100000 # (Unspecified)
system.ruby.latency     |       7     70.00%     70.00% |       3     30.00%    100.00% # (Unspecified)
system.ruby.latency::total                         10 # (Unspecified)
system.bus.delay::samples                           4 # (Count)
system.bus.delay::0-9                               4    100.00%    100.00% # (Count)
system.bus.delay::min_value                         2 # (Count)
system.bus.delay::max_value                         7 # (Count)
"""
SECOND = """simTicks                                     10000000 # Number of ticks simulated (Tick)
finalTick                                    67467000 # Number of ticks from beginning (never reset) (Tick)
system.cpu0.numCycles                           10000 # Number of cpu cycles simulated (Cycle)
system.cpu0.ipc                              1.000000 # IPC: instructions per cycle ((Count/Cycle))
system.ruby.latency::samples                       30 # (Unspecified)
system.ruby.latency::mean                   30.000000 # (Unspecified)
system.bus.delay::samples                           1 # (Count)
system.bus.delay::10-19                             1    100.00%    100.00% # (Count)
system.bus.delay::min_value                        12 # (Count)
system.bus.delay::max_value                        12 # (Count)
"""
OLD = """sim_seconds                                  0.000010 # Number of seconds simulated
sim_freq                                 1000000000000 # Frequency of simulated ticks
host_inst_rate                                  59213 # Simulator instruction rate (inst/s)
system.cpu.committedInsts                        5712 # Number of instructions committed
system.cpu.ipc                               0.087337 # IPC: Instructions Per Cycle
"""


@pytest.fixture
def two(tmp_path):
    path = tmp_path / "stats.txt"
    path.write_text(BEGIN + FIRST + END + BEGIN + SECOND + END)
    return path


def values(runs, number=0):
    return {name: value.best for name, value in runs.runs[number].metrics.items()}


def test_reads_scalars_vectors_histograms_and_formulas(two) -> None:
    runs = read_gem5(two, dump=0)
    found = values(runs)
    assert found["simTicks"] == 57467000 and found["simSeconds"] == 0.000057
    assert found["system.cpu0.op_class::IntAlu"] == 5000 and found["system.cpu0.op_class::total"] == 5002
    assert found["system.ruby.latency::0-63"] == 7 and found["system.ruby.latency::64-127"] == 3
    assert found["system.mem.peak"] == math.inf and "system.mem.avgQLat" not in found
    units = {"simTicks": "tick", "system.cpu0.ipc": "count/cycle", "system.l2.missRate::total": "1"}
    assert {name: runs.units[name] for name in units} == units


def test_wildcards_and_names_of_ours(two) -> None:
    assert set(values(read_gem5(two, metrics="system.cpu?.ipc", dump=0))) == {
        "system.cpu0.ipc",
        "system.cpu1.ipc",
    }
    runs = read_gem5(two, metrics={"ipc": "*cpu1.ipc", "cycles": "system.cpu0.numCycles"}, dump=0)
    assert values(runs) == {"ipc": 0.25, "cycles": 57467} and runs.units == {
        "ipc": "count/cycle",
        "cycles": "cycle",
    }


def test_each_dump_by_number_or_as_a_run(two) -> None:
    assert values(read_gem5(two, metrics="simTicks", dump=-1)) == {"simTicks": 10000000}
    runs = read_gem5(two, metrics=["simTicks", "*cpu0.ipc"], dump="all")
    np.testing.assert_array_equal(runs["system.cpu0.ipc"], [0.5, 1.0])
    np.testing.assert_array_equal(runs.setting("dump"), [0, 1])


def test_a_sum_adds_counters_weights_means_and_leaves_out_ratios(two) -> None:
    found = values(read_gem5(two, dump="sum"))
    assert found["simTicks"] == 67467000 and found["system.cpu0.numCycles"] == 67467
    assert found["system.ruby.latency::samples"] == 40
    assert found["system.ruby.latency::mean"] == (10 * 20 + 30 * 30) / 40
    assert (found["system.bus.delay::min_value"], found["system.bus.delay::max_value"]) == (2, 12)
    for name in (
        "system.cpu0.ipc",
        "system.l2.missRate::total",
        "finalTick",
        "simFreq",
        "system.ruby.latency::stdev",
        "system.ruby.latency::gmean",
        "system.bus.delay::0-9",
        "system.bus.delay::10-19",
    ):
        assert name not in found
    with pytest.raises(ValueError, match=r"has no statistic 'system.cpu0.ipc'"):
        read_gem5(two, metrics="system.cpu0.ipc", dump="sum")


def test_files_without_units(tmp_path) -> None:
    path = tmp_path / "stats.txt"
    path.write_text(BEGIN + OLD + END + BEGIN + OLD + END)
    runs = read_gem5(path, dump="sum")
    assert values(runs) == {
        "sim_seconds": 0.00002,
        "system.cpu.committedInsts": 11424,
    }
    assert runs.units == {}


def test_settings_from_the_path_of_each_file(tmp_path) -> None:
    for size in (256, 64):
        folder = tmp_path / f"l2_{size}kB"
        folder.mkdir()
        (folder / "stats.txt").write_text(BEGIN + FIRST + END)
    runs = read_gem5(f"{tmp_path}/*/stats.txt", metrics="simTicks", settings=r"l2_(?P<l2_kib>\d+)kB")
    np.testing.assert_array_equal(runs.setting("l2_kib"), [64, 256])


def test_a_whole_dump_of_a_file_that_was_cut_off(tmp_path) -> None:
    path = tmp_path / "stats.txt"
    path.write_text(BEGIN + FIRST + END + BEGIN + SECOND)
    assert values(read_gem5(path, metrics="simTicks", dump=0)) == {"simTicks": 57467000}


def test_refuses_binary(tmp_path) -> None:
    (tmp_path / "stats.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"must be a gem5 stats.txt: it is not text"):
        read_gem5(tmp_path / "stats.txt")


CHANNELS = {
    number: {
        "average_bandwidth": 4.0,
        "average_interarrival": 8.0,
        "average_power": 230.0,
        "average_read_latency": latency,
        "channel": int(number),
        "epoch_num": 0,
        "interarrival_latency[0-9]": 1740,
        "num_cycles": 20000,
        "num_read_cmds": reads,
        "num_read_row_hits": 20,
        "num_reads_done": reads,
        "num_write_cmds": 50,
        "num_write_row_hits": 5,
        "num_writes_done": 50,
        "read_latency": {"20": 3, "21": 4},
        "sref_cycles": {"0": 7},
        "total_energy": 4.5e6,
    }
    for number, reads, latency in (("0", 100, 40.0), ("1", 50, 46.0))
}
TOTALS = {
    "cycles": 20000,
    "reads": 150,
    "writes": 100,
    "read_latency": 42,
    "row_hit_ratio": 0.2,
    "bandwidth": 8,
    "power": 460,
    "energy": 9e6,
}


def as_text():
    lines = []
    for number, values in CHANNELS.items():
        lines += ["#" * 43, f"## Statistics of Channel {number}", "#" * 43]
        lines += [
            f"{n:<30} = {v:>12}   # Number of {n}" for n, v in values.items() if not isinstance(v, dict)
        ]
        lines += [f"{'sref_cycles.0':<30} = {7:>12}   # Cyles of rank in SREF mode rank.0"]
    return "\n".join(lines) + "\n"


def read(tmp_path, text, name, **options):
    (tmp_path / name).write_text(text)
    runs = read_dramsim3(tmp_path / name, **options)
    return [{name: value.best for name, value in run.metrics.items()} for run in runs]


def test_json_and_text_agree(tmp_path) -> None:
    from_json = read(tmp_path, json.dumps(CHANNELS), "dramsim3.json", metrics="*.sref_cycles.0")
    from_text = read(tmp_path, as_text(), "dramsim3.txt", metrics="*.sref_cycles.0")
    assert from_json == from_text == [TOTALS | {"0.sref_cycles.0": 7, "1.sref_cycles.0": 7}]


def test_statistics_by_channel_and_part(tmp_path) -> None:
    (found,) = read(tmp_path, json.dumps(CHANNELS), "dramsim3.json")
    assert found["0.read_latency.21"] == 4 and found["1.interarrival_latency[0-9]"] == 1740


def test_epochs(tmp_path) -> None:
    epochs = [{**values, "epoch_num": epoch} for epoch in (1, 2) for values in CHANNELS.values()]
    epochs[2]["num_reads_done"] = 0
    (tmp_path / "dramsim3epoch.json").write_text(json.dumps(epochs))
    runs = read_dramsim3(tmp_path / "dramsim3epoch.json", metrics=())
    np.testing.assert_array_equal(runs.setting("epoch"), [1, 2])
    np.testing.assert_array_equal(runs["read_latency"], [42, 46])
    assert runs.units["bandwidth"] == "GB/s"


def test_without_reads_there_is_no_latency(tmp_path) -> None:
    idle = {"0": CHANNELS["0"] | {"num_reads_done": 0, "num_read_cmds": 0, "num_write_cmds": 0}}
    (found,) = read(tmp_path, json.dumps(idle), "dramsim3.json", metrics=())
    assert found["reads"] == 0 and "read_latency" not in found and "row_hit_ratio" not in found
