"""Spaces over systems of parts: fields by their dotted names, and parts themselves as choices."""

from __future__ import annotations

from dataclasses import replace

import pytest

import qmodels as qm
from optimize import Space, explore, field_paths, replace_fields
from qmodels.systems.starters import small_system

SYSTEM = small_system()
DRAMS = (qm.dram("DDR4-3200"), qm.dram("HBM3"), qm.dram("DDR4-3200", channels=2))


def test_every_field_of_every_part_can_be_varied():
    for path, value in field_paths(SYSTEM).items():
        space = Space(SYSTEM, {path: [value]})
        assert space.spec(0) == SYSTEM and space.paths == {path: path}


def test_choices_reach_the_parts_flows_and_places():
    fields = {
        "dram.channels": [1, 4],
        "engine.servers": [1, 2],
        "lookups.rate": [0.01, 0.02],
        "place.dram": [(3,), "1..2"],
        "lookups.program": ["visit engine; acquire requests; read dram 2; release requests"],
        "mesh.topology": [qm.mesh(2, 2), qm.ring(4)],
    }
    space = Space(SYSTEM, fields)
    last = space.spec(space.size - 1)
    assert last.parts["dram"].geometry.channels == 4 and last.parts["engine"].servers == 2
    assert (last.flows[0].rate, last.place["dram"], last.network.topology) == (0.02, (1, 2), qm.ring(4))
    assert last.flows[0].program[2] == qm.steps.Read("dram", 2)
    assert space.numeric == ("dram.channels", "engine.servers", "lookups.rate")


def test_parts_are_choices():
    space = Space(SYSTEM, {"dram": DRAMS, "requests.count": [4, 8]})
    assert [space.spec(k).parts["dram"] for k in (0, 2, 4)] == list(DRAMS)
    found = explore(space, qm.solve, minimize="latency")
    feasible = [k for k in range(space.size) if found.table["stable"][k]]
    assert found.front.tolist() == [min(feasible, key=lambda k: found.table["latency"][k])]
    each = [
        float(qm.solve(replace_fields(SYSTEM, {"dram": one, "requests.count": 8})).latency) for one in DRAMS
    ]
    assert found.table["latency"][1::2].tolist() == pytest.approx(each, rel=1e-9)


def test_a_part_may_go_by_the_word_of_a_field():
    named = replace(
        SYSTEM,
        parts={**{n: p for n, p in SYSTEM.parts.items() if n != "requests"}, "count": qm.Tokens(count=2)},
        flows=replace(SYSTEM.flows[0], program="visit engine; acquire count; read dram; release count"),
    )
    assert Space(named, count=[qm.Tokens(count=3)]).paths == {"count": "parts.count"}
