"""No spec takes a part of the wrong kind: all specs with parts are found by their annotations."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import is_dataclass, replace

import pytest

import qmodels as qm
from qmodels import JobClass, Station, systems
from qmodels.memory import InterleavedRegion, MemoryMap
from qmodels.parts import BankedChannels
from qmodels.systems.noc.memory import Interleaved
from qmodels.systems.programs.collectives import gather
from qmodels.systems.programs.region import Growth
from qmodels.systems.spec.nested import _parts
from qmodels.traffic import Trace

MEMORY = MemoryMap(
    regions=(InterleavedRegion(start_bytes=0, size_bytes=4096, step_bytes=128, channels=(2, 3)),)
)
INSTANCES = [
    MEMORY,
    Interleaved(initiators=(0, 1), memory=MEMORY),
    qm.PacketProcessor(),
    qm.PacketProcessor().workload,
    qm.PacketProcessor().noc,
    qm.dram("DDR4-3200"),
    qm.CacheSystem(popularity=qm.traffic.Zipf(entries=100, exponent=1.0), shared=qm.CacheLevel(lines=8)),
    qm.LlcProcessor(),
    qm.DataQueueing(),
    qm.DataQueueing().traffic,
    qm.NumaMachine(),
    qm.NumaMachine().chip,
    qm.WorkQueues(),
    Growth(),
    qm.Noc(topology=qm.mesh(2, 2), traffic=qm.noc.uniform(nodes=4)),
    qm.traffic.Recorded(trace=Trace(times_ns=[0.0, 1.0, 2.0], bytes=[64, 64, 64], source="by hand")),
    qm.MessageProgram(topology=qm.mesh(2, 2), processes=gather(processes=4, words=8)),
    qm.Flow(arrivals=qm.laws.Exponential(mean=5.0), program="visit engine"),
    qm.steps.Hold(qm.laws.Exponential(mean=5.0)),
    qm.steps.Lookup("llc", hit=(qm.steps.Visit("slice"),)),
    qm.steps.Each((qm.steps.Visit("engine"),), 4),
    qm.steps.Repeat((qm.steps.Visit("engine"),), 4),
    qm.steps.Allocate("pointers", steps=(qm.steps.Visit("engine"),)),
    qm.steps.Free("pointers", steps=(qm.steps.Visit("engine"),)),
]


def spec_types():
    """All dataclasses of the structure that are checked and have parts which are specs."""
    for module in pkgutil.walk_packages(systems.__path__, "qmodels.systems."):
        for kind in vars(importlib.import_module(module.name)).values():
            if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.name:
                if hasattr(kind, "__post_init__") and _parts(kind):
                    yield kind


def test_every_spec_with_parts_is_tried_below():
    # Laws of stations, banks and classes have a check of their own, which names the owner.
    assert set(spec_types()) - {Station, JobClass, BankedChannels} == set(map(type, INSTANCES))


class Impostor:
    """Not a spec."""


@pytest.mark.parametrize(
    ("spec", "name"),
    [(spec, name) for spec in INSTANCES for name in _parts(type(spec))],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_wrong_part_is_refused_by_name_value_and_what_is_allowed(spec, name):
    for wrong in (3, "x", Impostor(), qm.PacketProcessor().energy, (Impostor(),)):
        if isinstance(wrong, _parts(type(spec))[name][0]):
            continue
        with pytest.raises(ValueError, match=name) as raised:
            replace(spec, **{name: wrong})
        text = str(raised.value)
        assert "must be" in text and "got" in text and "\n" not in text
