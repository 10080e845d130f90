"""Freezing what the product answers, and checking it later."""

import copy
import lzma
import math
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

from cases.evidence.__main__ import main
from cases.evidence.draw import draw
from cases.evidence.record import (
    differences,
    drawn,
    errors,
    freeze,
    outcome,
    read,
    renewed,
    report,
    solved,
    spec_of,
    write,
)
from qmodels.systems.spec.kind import KINDS
from qmodels.systems.spec.text.toml import to_toml
from qmodels.traffic import Recorded


class Inline(Executor):
    """Runs everything at once, in this process."""

    def submit(self, function: Any, /, *args: Any, **named: Any) -> Future[Any]:  # type: ignore[override]
        done: Future[Any] = Future()
        done.set_result(function(*args, **named))
        return done


@pytest.mark.in_ci(4)
@pytest.mark.parametrize("kind", KINDS)
def test_draws_are_specs_that_a_file_can_say(kind: str) -> None:
    record = drawn(kind, 0, seed=0)
    assert spec_of(record) == draw(kind, 0)


def test_draws_differ_by_number_and_seed() -> None:
    texts = {to_toml(draw("dram", number, seed=seed)) for number in range(4) for seed in (0, 1)}
    assert len(texts) == 8


def record(**values: Any) -> dict[str, Any]:
    model = {"metrics": {"latency": 100.0}, "load": 0.5, "stable": True, "validated": True, "doubts": []}
    simulation = {"metrics": {"latency": [110.0, 100.0, 120.0]}, "stable": True}
    return {"kind": "dram", "number": 7, "toml": "", "model": model, "simulation": simulation} | values


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return the record with one value changed."""
    found = copy.deepcopy(record())
    *outer, last = path.split("/")
    inside = found
    for name in outer:
        inside = inside[name]
    inside[last] = value
    return found


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model/metrics/latency", 100.0 * (1 + 1e-10)),
        ("simulation/metrics/latency", [125.0, 115.0, 135.0]),
        ("model/seconds", 3.0),
    ],
)
def test_what_is_no_difference(path: str, value: Any) -> None:
    assert not differences(record(), changed(path, value))


@pytest.mark.parametrize(
    ("path", "value", "what"),
    [
        ("model/metrics/latency", 100.0 * (1 + 1e-8), "model latency"),
        ("model/metrics/latency", math.inf, "model latency"),
        ("model/metrics/latency", math.nan, "model latency"),
        ("model/metrics/energy", 1.0, "model energy"),
        ("model/stable", False, "model stable"),
        ("model/doubts", ["saturated"], "model doubts"),
        ("model", {"error": "ValueError: no"}, "model error"),
        ("simulation/metrics/latency", [130.0, 121.0, 139.0], "simulation latency"),
        ("simulation/stable", None, "simulation stable"),
    ],
)
def test_what_is_a_difference(path: str, value: Any, what: str) -> None:
    found = differences(record(), changed(path, value))
    assert what in {each.what for each in found}
    assert {each.region for each in found} == {"to 60%"}


def test_the_report_says_whether_the_model_came_nearer() -> None:
    words, count = report(
        [record(), record(number=8)], [changed("model/metrics/latency", 110.0), record(number=8)]
    )
    assert count == 1
    assert "1 of 2 specs differ" in words
    kind, values, before, now, better, worse = words.splitlines()[-1].split()
    assert (kind, values, before, now, better, worse) == ("dram", "2", "9.5%", "4.8%", "1", "0")
    assert report([record()], [record()]) == ("0 of 1 specs differ", 0)


def test_errors_are_of_stable_specs_alone() -> None:
    assert not errors([changed("simulation/stable", False), changed("model/stable", False)])


def test_an_error_is_an_answer() -> None:
    assert solved({"toml": 'kind = "noc"\nlink_width = -1'})["error"].startswith("ValueError: ")
    assert set(outcome(lambda: 1, lambda value: {"value": value})) == {"value", "seconds"}


def test_frozen_answers_stay_and_a_stopped_freeze_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cases.evidence.record.SHARES", {"dram": 0.5, "llc-processor": 0.5})
    file = tmp_path / "frozen.jsonl.xz"
    freeze(file, count=8, simulations=0, seed=3, executor=Inline())
    kept = list(read(file))
    assert [each["kind"] for each in kept] == 4 * ["dram"] + 4 * ["llc-processor"]
    assert report(kept, [renewed(each) for each in kept])[1] == 0

    lines = lzma.decompress(file.read_bytes()).decode().splitlines(keepends=True)
    file.with_suffix(".part").write_text("".join(lines[:2]) + lines[2][:40])  # killed while it wrote
    freeze(file, count=8, simulations=0, seed=3, executor=Inline())
    again = list(read(file))
    assert [each["toml"] for each in again] == [each["toml"] for each in kept]


def test_check_ends_with_one_where_something_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "frozen.jsonl.xz"
    honest = drawn("dram", 0, seed=0)
    honest["model"] = solved(honest)
    write(file, [honest])
    name = next(name for name, value in honest["model"]["metrics"].items() if 0 < value < math.inf)
    honest["model"]["metrics"][name] *= 1.1
    write(file, [honest])
    assert main(["check", "--file", str(file), "--workers", "1"]) == 1
    assert f"model {name}" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["check", "--file", str(tmp_path / "none")])
    assert "--file must be of freeze or draw" in capsys.readouterr().err


@pytest.mark.parametrize("cut", [0, 20, 100])
def test_a_file_that_is_not_whole_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cut: int
) -> None:
    file = tmp_path / "frozen.jsonl.xz"
    write(file, [record()])
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(SystemExit):
        main(["check", "--file", str(file)])
    assert "--file must be whole and of freeze or draw" in capsys.readouterr().err


def test_counts_out_of_range_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--count", "0"], ["--simulations", "-1"], ["--workers", "0"]):
        with pytest.raises(SystemExit):
            main(["freeze", *words])
        assert f"{words[0]} must be at least" in capsys.readouterr().err


def test_kinds_and_groups_that_do_not_fit_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["solve", "--kind", "noc"], "--kind must be left out of solve, got 'noc'"),
        (["constants", "noc"], "groups must be of memory.dram.ready, "),
    ):
        with pytest.raises(SystemExit):
            main(words)
        assert said in capsys.readouterr().err


def test_recorded_packets_are_drawn_again_from_their_seed() -> None:
    record = next(
        found
        for found in (drawn("packet-processor", number, seed=1) for number in range(40))
        if "recorded" in found
    )
    spec = spec_of(record)
    assert isinstance(spec.workload.arrivals, Recorded)
    assert spec == spec_of(record)
    assert spec.workload.sizes == spec.workload.arrivals.sizes
