"""Hand-written extracts in the form of ``simple_stats.cc`` of DRAMsim3 (checked against runs of a build)."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from validate.readers import read_dramsim3

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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello\n", "it is not one, no line begins with '## Statistics of Channel'"),
        (
            as_text()[: as_text().rindex("num_reads_done")],
            "channel 1 has no 'total_energy', it was cut off",
        ),
        (as_text().replace("20000", "many"), "num_cycles is 'many', not a number"),
        (json.dumps(CHANNELS)[:-40], "it is damaged or was cut off ("),
        ('{"a": {"b": 1}}', "it is not one, a part has no 'channel'"),
        ('{"0": {"channel": 0}}', "channel 0 has no 'num_cycles', it was cut off"),
    ],
)
def test_refuses_what_is_no_finished_run(tmp_path, text, message) -> None:
    head = (
        "must be statistics of a finished DRAMsim3 run (dramsim3.json, dramsim3epoch.json or dramsim3.txt): "
    )
    with pytest.raises(ValueError, match=re.escape(head + message)):
        read(tmp_path, text, "dramsim3.txt")
