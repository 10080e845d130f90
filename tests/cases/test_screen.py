"""The first screen: its bounds for every kind, its numbers, and what makes it preliminary."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.study.screen import FEW, FEW_LINES, LINES, WIDTH, Screen, _percent, _said, _warned, study_text
from cases.study.study import several

KINDS = {
    "noc": ("link_width=8,16", "packet_latency", "bandwidth"),
    "dram": ("channels=1,2", "read_latency", "bandwidth"),
    "cache": ("entries_per_line=1,4", "miss_ratio", ""),
    "llc-processor": ("slices=2,4", "response_latency", "data_rate"),
    "numa": ("dma.channels=1,2", "execution_time", ""),
    "queueing-network": ("stations.cpu.servers=1,2", "system_response_time", ""),
    "system": ("parts.mesh.link_width=8,16", "latency", ""),
    "packet-processor": ("channels=2,4", "", ""),
}
"""A field to vary of each kind, and objectives."""


def bounded(text):
    lines = text.splitlines()
    assert len(lines) <= LINES, len(lines)
    assert max(map(len, lines)) <= WIDTH, max(lines, key=len)
    return lines


def test_the_Screen_a_study_is_bounded_and_says_what_the_summary_says(small_study):
    study, out = small_study
    saved = json.loads((out / "study.json").read_text(encoding="utf-8"))
    for part, entry in zip(study.parts, saved["workloads"], strict=True):
        screen = Screen(part=part)
        lines = bounded(screen.text())
        best = entry["screen"]["best"]
        row = part.decision.chosen
        assert best["design"] == part.decision.table["design"][row] and lines[0].startswith(part.name)
        assert f"--design {best['design']}" in lines[-1]
        for name, ends in best["values"].items():
            assert ends == pytest.approx(part.decision.interval(name, row))
            assert screen.quantity(name, ends[1]) in screen.text()
        rows = [line for line in lines if " -> " in line]
        for change, line in zip(entry["screen"]["changes"], rows, strict=False):
            assert all(_percent(share) in line for share in change["shares"].values())


def test_who_says_a_change_stands_beside_it(small_study):
    for part in small_study[0].parts:
        screen = Screen(part=part)
        rows = [line for line in screen.text().splitlines() if " -> " in line]
        sources = [change["source"] for change in screen.data()["changes"][: len(rows)]]
        assert [line.split()[-1] for line in rows] == sources


def test_several_workloads_share_one_screen_with_the_design_for_all(small_study):
    study = small_study[0]
    chosen = several(study).chosen
    lines = bounded(study_text(study, "study"))
    assert all(part.name in lines[0] for part in study.parts)
    assert any(line.endswith(f"design {chosen}") for line in lines)
    alone = next(line for line in lines if line.strip().startswith("best alone"))
    for part in study.parts:
        assert f"design {part.decision.table['design'][part.decision.chosen]}" in alone
        latency = part.decision.table["packet_latency_p99"][part.row(chosen)]
        assert Screen(part=part).quantity("packet_latency_p99", latency) in "\n".join(lines)


@given(st.lists(st.text("abcdefgh- 123,.", max_size=300).filter(str.strip), min_size=1, max_size=3))
def test_a_warning_is_a_whole_sentence_and_the_others_are_counted(warnings):
    lines = _warned(warnings)
    rest = {1: "", 2: " (1 more warning with --full)", 3: " (2 more warnings with --full)"}[len(warnings)]
    said = "".join(f"warning: {warnings[0]}{rest}".split())
    assert "".join("".join(lines).split()) == said and max(map(len, lines)) <= WIDTH


@given(st.text("abc 12,.", max_size=500).filter(str.strip))
def test_nothing_of_a_sentence_is_left_out(text):
    lines = _said("Front  ", text)
    assert "".join("".join(lines).split()) == "".join(f"Front{text}".split())


@given(st.floats(-1.0, 1e6))
def test_a_share_has_at_most_four_digits_and_no_exponent(share):
    text = _percent(share)
    assert "e" not in text and "." not in text
    assert text.startswith("x ") or sum(letter.isdigit() for letter in text) <= 4


@pytest.mark.parametrize("kind", KINDS)
def test_the_Screen_every_kind_is_bounded_and_says_what_its_json_says(run, tmp_path, kind):
    path = tmp_path / f"{kind}.toml"
    path.write_text(run("init", kind)[1])
    vary, least, most = KINDS[kind]
    goals = [*(("--minimize", least) if least else ()), *(("--maximize", most) if most else ())]
    words = ("explore", path, "--vary", vary, *goals, "--budget", "0", "--out", tmp_path / "study")
    code, out, err = run(*words)
    assert code == 0, err
    lines = bounded(out.rstrip("\n"))
    found = json.loads(run(*words, "--json")[1])
    screen = found["workloads"][0]["screen"]
    assert screen["designs"] <= FEW and len(lines) <= FEW_LINES, out
    assert screen["simulated"] == 0 and lines[1].startswith("Preliminary: no design was simulated")
    assert f"design {screen['best']['design']}" in out
    for change in screen["changes"]:
        assert change["source"] == "model"
        assert any(all(_percent(one) in line for one in change["shares"].values()) for line in lines)
