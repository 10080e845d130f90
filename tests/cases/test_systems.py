"""The four systems of parts: found from anywhere, solved, simulated and explored."""

from pathlib import Path

import numpy as np
import pytest

import qmodels as qm
from cases.systems import found, system_files
from optimize import Space, explore
from qmodels.systems.spec.text.toml import spec_from_toml, to_toml
from validate import simulate

CHOICES = {
    "packet-processor-400g": {"pointers-0.alloc_trial_count": [1, 2], "dram.channels": [8, 16]},
    "chip-64-cores": {"mshrs.count": [8, 16]},
    "dma-accelerator": {"tiles.population": [1, 2, 3]},
    "pooled-memory": {"pool.channels": [4, 8], "reads.rate": [1.0, 2.0]},
}
"""What is explored of each."""


@pytest.mark.parametrize("name", CHOICES)
def test_a_file_is_found_and_comes_back(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert set(system_files()) == set(CHOICES)
    path = found(Path(name))
    assert found(Path("cases/systems") / f"{name}.toml") == path == system_files()[name]
    spec = spec_from_toml(path)
    assert isinstance(spec, qm.System) and spec_from_toml(to_toml(spec, kind=True)) == spec
    head = path.read_text(encoding="utf-8").partition("kind =")[0]
    assert "# What to look at: " in head and all(line.startswith("#") for line in head.splitlines())


def test_a_file_of_ones_own_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = Path("pooled-memory.toml")
    own.write_text("kind = 'noc'")
    assert found(own) == own and found(Path("elsewhere/pooled-memory.toml")) == Path(
        "elsewhere/pooled-memory.toml"
    )


def test_the_command_takes_a_system_by_its_name(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(
        "solve", "cases/systems/pooled-memory.toml", "--set", "reads.rate=1", "--plot", "p.png"
    )
    assert (code, err) == (0, "") and "latency" in out and (tmp_path / "p.png").stat().st_size > 1000
    code, out, _ = run("init", "pooled-memory")
    assert code == 0 and out == system_files()["pooled-memory"].read_text(encoding="utf-8")
    assert "pooled-memory" in run("describe")[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", CHOICES)
def test_a_system_is_solved_simulated_and_explored(name):
    spec = spec_from_toml(system_files()[name])
    answer = qm.solve(spec)
    runs = simulate(spec, replications=4, passages=20_000)
    assert answer.stable and runs.stable and answer.plot().axes and runs.plot().axes
    for flow in spec.flows:
        rate = "flow_throughput" if len(spec.flows) == 1 else f"flow_throughput[{flow.name}]"
        assert answer[rate] == pytest.approx(runs[rate].best, rel=0.05 if not flow.closed else 0.35)
        time = "latency" if len(spec.flows) == 1 else f"latency[{flow.name}]"
        assert answer[time] == pytest.approx(runs[time].best, rel=0.15)
    space = Space(spec, CHOICES[name])
    goals = {"minimize": ["latency"], "maximize": [rate]}
    front = explore(space, qm.solve, **goals)
    assert front.front.size >= 1 and len(front.table["latency"]) == space.size
    assert np.isfinite(front.table["latency"]).all()
