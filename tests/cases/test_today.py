"""Today's parts in the papers' systems, and the pointer memory at 400 and 800 Gb/s."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from cases.published.conclusions import Conclusion, Parameter, simulated
from cases.tables import read_rows
from cases.today import guide, papers, pointer_banks
from cases.today.papers import queueing, today
from cases.today.pointer_banks import Design, deciding, design_of, solved
from cases.today.processor import processor
from qmodels.systems.cache.llc_processor import LlcProcessor

PAGE = (Path(__file__).parents[2] / ".github/docs/papers/conclusions.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("gbps", "banks"), [(400, 2), (400, 4), (800, 16)])
def test_packets_of_all_ports_go_to_all_banks_alike(gbps, banks):
    system = processor(Design(gbps=gbps, banks=banks, load=0.5))
    used: dict[str, float] = {}
    for flow in system.flows:
        (name,) = {step.part for step in flow.program if getattr(step, "part", "").startswith("pointers")}
        used[name] = used.get(name, 0.0) + flow.rate
    assert len(used) == banks
    assert max(used.values()) == pytest.approx(min(used.values()))
    assert sum(used.values()) * 8 * 361.83 == pytest.approx(gbps / 2, rel=1e-4)
    assert len({flow.at for flow in system.flows}) == gbps // 100


@pytest.mark.parametrize("banks", [1, 4])
def test_kept_designs_are_those_of_the_model(banks):
    rows = [row for row in read_rows(pointer_banks.FILE) if row["banks"] == banks and row["gbps"] == 400]
    assert len(rows) == 6
    for row in rows:
        found = solved(design_of(row))
        assert found["carried"] == pytest.approx(row["carried"], rel=1e-3), (
            "python -m cases.today.pointer_banks"
        )


def test_a_memory_of_an_access_per_ns_caps_the_whole():
    """The capacity counts accesses alone: at one trial it goes with the banks and with the ports."""
    one = solved(Design(gbps=400, banks=1))["carried"]
    assert solved(Design(gbps=400, banks=2))["carried"] == pytest.approx(2 * one, rel=1e-3)
    assert solved(Design(gbps=400, banks=1, clock_ghz=2.0))["carried"] == pytest.approx(2 * one, rel=1e-3)
    assert solved(Design(gbps=400, banks=2, trials=2))["carried"] < 2 * one


def test_designs_that_decide_are_simulated():
    rows = read_rows(pointer_banks.FILE)
    assert {design_of(row) for row in rows if row["simulated_latency"] is not None} == set(deciding(rows))


def test_the_finding_is_what_was_found():
    rows = [row for row in read_rows(pointer_banks.FILE) if row["clock_ghz"] == 1]
    for gbps in pointer_banks.GBPS:
        enough = {
            trials: min(
                row["banks"]
                for row in rows
                if (row["gbps"], row["trials"]) == (gbps, trials)
                and row["headroom"] >= pointer_banks.HEADROOM
            )
            for trials in pointer_banks.TRIALS
        }
        ports = gbps // 100
        assert enough == {1: ports, 2: 2 * ports, 3: 2 * ports}
        same = {
            (row["trials"], row["small"]): row
            for row in rows
            if (row["gbps"], row["banks"]) == (gbps, 2 * ports) and row["simulated_latency"] is not None
        }
        one = same[1, 0]
        for trials in (2, 3):
            assert same[trials, 0]["simulated_high"] > one["simulated_low"]
        gain = same[2, pointer_banks.SMALL]["simulated_high"] < same[2, 0]["simulated_low"]
        assert gain == (gbps == 800)


def test_parts_are_replaced_in_every_system():
    asked = Conclusion(
        name="x", words="x", section="x", margin="x", assumption="x",
        parameter=Parameter(name="x", value=1.0, values=(0.0, 2.0)),
        readings=lambda value: [(LlcProcessor(), "m"), (LlcProcessor(slices=4), "m"), value],
        of=lambda a, b, c: a,
    )  # fmt: skip
    one, other, number = asked.on(partial(replace, cores=8)).readings(1.0)
    assert one[0] == LlcProcessor(cores=8)
    assert other[0] == LlcProcessor(slices=4, cores=8)
    assert number == 1.0


def test_banks_are_busy_for_their_row_cycle():
    """DDR5-6400: 149 cycles, of which a segment takes 8; HBM3 needs two bursts for a segment."""
    assert queueing("DDR5-6400").changes == {"banks": 32, "busy_accesses": 18}
    assert queueing("HBM3").changes == {"banks": 16, "busy_accesses": 17}


def test_all_that_is_asked_is_kept():
    kept = [(row["case"], row["part"], row["conclusion"]) for row in read_rows(papers.FILE)]
    assert kept == [(parts.case, parts.part, conclusion.name) for parts, conclusion in today()]


@pytest.mark.slow
def test_kept_margins_are_simulated_again():
    rows = read_rows(papers.FILE)
    for row, (_, conclusion) in list(zip(rows, today(), strict=True))[::5]:
        again = simulated(conclusion, conclusion.parameter.value)
        assert again.margin == pytest.approx(row["now"], abs=1e-6 + 1e-6 * abs(row["now"]))


def test_the_guide_is_what_the_code_says():
    for part in (guide.HEAD, guide.TODAY, papers.markdown(read_rows(papers.FILE))):
        assert part in PAGE
    for part in guide.banks(read_rows(pointer_banks.FILE)):
        assert part in PAGE


def test_a_design_that_is_not_simulated_is_not_shown():
    rows = read_rows(pointer_banks.FILE)
    assert len(pointer_banks.table(rows)) == len(deciding(rows)) < len(rows)
    assert replace(Design(), banks=1) not in deciding(rows)
