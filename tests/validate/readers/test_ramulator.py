"""Hand-written extracts in the forms of Ramulator 1 and 2.0 (checked against runs of builds) and 2.1."""

import numpy as np
import pytest

from validate import read_ramulator

TEXT = """           ramulator.active_cycles_0                  57                    # Total active cycles
       ramulator.row_hits_channel_0_core                  30                    # Number of row hits
     ramulator.row_misses_channel_0_core                   8                    # Number of row misses
  ramulator.row_conflicts_channel_0_core                   2                    # Number of row conflicts
  ramulator.read_row_hits_channel_0_core                  20                    # Number of row hits for reads
                                     [0]                20.0                    #
            ramulator.read_latency_avg_0           40.000000                    # The average memory latency
            ramulator.read_latency_sum_0                1200                    # The memory latency cycles
       ramulator.row_hits_channel_1_core                  10                    # Number of row hits
     ramulator.row_misses_channel_1_core                   0                    # Number of row misses
  ramulator.row_conflicts_channel_1_core                   0                    # Number of row conflicts
            ramulator.read_latency_avg_1                -nan                    # The average memory latency
            ramulator.read_latency_sum_1                 100                    # The memory latency cycles
                 ramulator.dram_capacity          2147483648                    # Number of bytes
                   ramulator.dram_cycles                 900                    # Number of DRAM cycles
                 ramulator.read_requests                40.0                    # Number of incoming reads
                                     [0]                40.0                    #
                ramulator.write_requests                10.0                    # Number of incoming writes
                                     [0]                10.0                    #
ramulator.incoming_read_reqs_per_channel                40.0                    # Number of reads per channel
                                     [0]                30.0                    #
                                     [1]                10.0                    #
"""
CONTROLLER = """  Controller:
    impl: Generic
    id: Channel {k}
    num_read_reqs_{k}: {reads}
    avg_read_latency_{k}: {latency}
    row_hits_{k}: {hits}
    row_misses_{k}: 8
    row_conflicts_{k}: 2
    Scheduler:
      impl: FRFCFS
    RowPolicy:
      impl: ClosedRowPolicy
      num_close_reqs: {k}


"""
YAML = """[Ramulator::LoadStoreTrace] [info] Loading trace file a.trace ...
Frontend:
  impl: SimpleO3
  num_expected_insts: 500000
  Translation:
    impl: RandomTranslation

MemorySystem:
  impl: GenericDRAM
  total_num_write_requests: 10
  total_num_read_requests: 41
  memory_system_cycles: 900
  DRAM:
    impl: DDR4


"""
YAML_21 = """frontend:
  impl: SimpleO3

memory_system:
  impl: GenericDRAM
  total_num_read_requests: 40

  controller:
    -
      impl: GenericDDR
      id: Channel 0
      cycles: 900
      num_read_reqs: 30
      avg_read_latency: 40
      row_hits: 30
      row_misses: 10
      row_conflicts: 0
      histogram:
        - 5
        - 25
    -
      impl: GenericDDR
      id: Channel 1
      cycles: 901
      num_read_reqs: 10
      avg_read_latency: 20
      row_hits: 10
      row_misses: 0
      row_conflicts: 0
"""


def yaml_20(*controllers):
    parts = [CONTROLLER.format(k=k, reads=r, latency=w, hits=h) for k, (r, w, h) in enumerate(controllers)]
    return YAML + "".join(parts)


def read(tmp_path, text, name="a.txt", **options):
    (tmp_path / name).write_text(text)
    runs = read_ramulator(tmp_path / name, **options)
    return {name: value.best for name, value in runs.runs[0].metrics.items()}


TOTALS = {"cycles": 900, "reads": 40, "writes": 10, "read_latency": 32.5, "row_hit_ratio": 0.8}


def test_version_1(tmp_path) -> None:
    found = read(tmp_path, TEXT)
    assert {name: found[name] for name in TOTALS} == TOTALS
    assert found["incoming_read_reqs_per_channel[1]"] == 10 and found["read_latency_avg_0"] == 40
    assert "read_latency_avg_1" not in found


def test_version_2_0(tmp_path) -> None:
    found = read(tmp_path, yaml_20((40, 32.5, 40)), metrics=["*.num_close_reqs", "Frontend.*"])
    assert found == TOTALS | {
        "MemorySystem.Controller.RowPolicy.num_close_reqs": 0,
        "Frontend.num_expected_insts": 500000,
        "reads": 41,
    }


def test_version_2_0_repeats_the_controller_of_each_channel(tmp_path) -> None:
    found = read(tmp_path, yaml_20((30, 40.0, 30), (10, 20.0, 10)))
    assert found["read_latency"] == (30 * 40 + 10 * 20) / 40
    assert found["row_hit_ratio"] == 40 / 60
    assert found["MemorySystem.Controller.1.num_read_reqs_1"] == 10
    assert found["MemorySystem.Controller.0.RowPolicy.num_close_reqs"] == 0
    assert found["MemorySystem.Controller.1.RowPolicy.num_close_reqs"] == 1


def test_version_2_1(tmp_path) -> None:
    found = read(tmp_path, YAML_21)
    assert (found["cycles"], found["reads"], found["read_latency"]) == (901, 40, 35)
    assert found["row_hit_ratio"] == 40 / 50
    assert found["memory_system.controller.1.row_hits"] == 10
    assert found["memory_system.controller.0.histogram.1"] == 25


def test_version_2_1_as_json(tmp_path) -> None:
    text = """{"frontend": {"impl": "SimpleO3"}, "memory_system": {"total_num_read_requests": 10,
        "controller": {"id": "Channel 0", "cycles": 900, "num_read_reqs": 10, "avg_read_latency": 20.5,
        "row_hits": 1, "row_misses": 3, "row_conflicts": 0}}}"""
    found = read(tmp_path, text, "stats.json")
    assert (found["cycles"], found["reads"], found["read_latency"], found["row_hit_ratio"]) == (
        900,
        10,
        20.5,
        0.25,
    )


def test_channels_without_reads_have_no_latency(tmp_path) -> None:
    found = read(tmp_path, yaml_20((0, "-nan", 0)).replace("row_misses_0: 8", "row_misses_0: 0"))
    assert "read_latency" not in found and found["row_hit_ratio"] == 0


def test_several_files_with_settings_of_their_paths(tmp_path) -> None:
    for step in (1, 16):
        (tmp_path / f"step{step}.txt").write_text(yaml_20((40, 30.0 + step, 40)))
    runs = read_ramulator(f"{tmp_path}/step*.txt", settings=r"step(?P<interleaving_step>\d+)")
    np.testing.assert_array_equal(runs["read_latency"], [31, 46])
    np.testing.assert_array_equal(runs.setting("interleaving_step"), [1, 16])
    assert runs.units["read_latency"] == "cycles"


def test_a_name_that_fits_nothing(tmp_path) -> None:
    with pytest.raises(
        ValueError, match=r"a.txt has no statistic 'dram_cycle'; did you mean 'dram_cycles'\?"
    ):
        read(tmp_path, TEXT, metrics="dram_cycle")
