"""The processor as a system of parts: what it consists of, written and read, and that no model takes it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import qmodels as qm
from qmodels.systems.spec.text.toml import from_toml, to_toml

SPECS = {
    "default": qm.PacketProcessor(),
    "controllers": qm.PacketProcessor(dram=qm.dram("DDR5-6400", channels=8)),
    "no slices": qm.PacketProcessor(llc=replace(qm.PacketProcessor().llc, slices=0)),
    "no lookups": qm.PacketProcessor(workload=qm.Workload(lookups_per_packet=0)),
}


@pytest.mark.parametrize("name", SPECS)
def test_a_system_is_written_and_read(name):
    system = SPECS[name].system()
    assert from_toml(to_toml(system), qm.System) == system


def test_slices_are_beside_the_network():
    system = qm.PacketProcessor().system()
    nodes = system.network.topology.nodes
    assert system.place["slice"] == tuple(range(nodes, nodes + 4)) and system.places == nodes + 4
    assert (
        "slice" not in SPECS["no slices"].system().parts and "llc" not in SPECS["no lookups"].system().parts
    )


@pytest.mark.parametrize("name", SPECS)
def test_what_has_no_model_is_refused_in_a_line(name):
    with pytest.raises(ValueError, match="^system must have a model for all it has, got none for .*replies"):
        qm.solve(SPECS[name].system())
