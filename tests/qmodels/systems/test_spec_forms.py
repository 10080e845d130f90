"""Shorter ways to write specs, parts in parts, and overrides by names of fields."""

import importlib
import pkgutil
from dataclasses import dataclass, field, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import qmodels as qm
from qmodels import JobClass, Station, systems
from qmodels.memory import InterleavedRegion, MemoryMap
from qmodels.noc import interleaved, rate_matrix, uniform
from qmodels.parts import BankedChannels
from qmodels.systems.noc.memory import Interleaved
from qmodels.systems.packets.data_queueing import QueueTraffic
from qmodels.systems.programs.collectives import gather
from qmodels.systems.programs.work_queues import Growth
from qmodels.systems.spec.kind import KINDS, kind_named
from qmodels.systems.spec.nested import _parts
from qmodels.systems.spec.text.reading import Place
from qmodels.systems.spec.text.toml import from_toml, read_value, spec_from_toml, to_toml
from qmodels.traffic import OnOff, Poisson, Trace


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_says_its_name_and_comes_back(name):
    starter = kind_named(name).starter()
    text = to_toml(starter, kind=True)
    assert text.startswith(f'kind = "{name}"\n')
    assert spec_from_toml(text) == from_toml(text, type(starter)) == starter
    assert to_toml(spec_from_toml(text), kind=True) == text


def test_a_document_without_a_kind_is_a_packet_processor(tmp_path: Path):
    file = tmp_path / "router.toml"
    file.write_text("[dram]\nchannels = 8\n")
    assert spec_from_toml(file).dram.channels == 8
    with pytest.raises(ValueError, match="kind must be one of packet-processor, got 'noc'"):
        from_toml('kind = "noc"', qm.PacketProcessor)
    with pytest.raises(ValueError, match="kind must be one of .*; did you mean 'noc'"):
        spec_from_toml('kind = "nocs"')


@pytest.mark.parametrize(
    ("text", "topology"),
    [
        ('"mesh 8 8"', qm.mesh(8, 8)),
        ('"torus 2 3 4"', qm.torus(2, 3, 4)),
        ('"ring 8"', qm.ring(8)),
        ('"spidergon 32"', qm.spidergon(32)),
        ('"crossbar 4"', qm.crossbar(4)),
        ('{ kind = "mesh", rows = 8, columns = 2 }', qm.mesh(8, 2)),
        ('{ kind = "mesh", shape = [2, 2], concentration = 4 }', qm.noc.concentrated_mesh(2, 2)),
        ('{ kind = "bus", nodes = 4, delay = 2 }', qm.noc.shared_bus(4, delay=2)),
    ],
)
def test_ways_to_write_a_topology(text, topology):
    noc = spec_from_toml(f'kind = "noc"\ntopology = {text}\ntraffic = "uniform"')
    assert noc == qm.Noc(topology=topology, traffic=uniform(nodes=topology.nodes))
    assert spec_from_toml('kind = "noc"\ntraffic = "uniform"', {"topology": read_value(text)}) == noc


def test_a_network_without_traffic_sends_everywhere():
    assert spec_from_toml('kind = "noc"\ntopology = "mesh 4 2"') == qm.Noc(topology=qm.mesh(4, 2))
    assert qm.Noc(topology=qm.ring(6)).traffic == uniform(nodes=6)


def test_a_pool_behind_a_switch_lies_under_the_other_keys():
    text = 'kind = "noc"\nlink_width = 32\ncxl = { hosts = 4, devices = 2, lanes = 16 }'
    assert spec_from_toml(text) == qm.noc.cxl_pool(4, 2, lanes=16, link_width=32)
    with pytest.raises(ValueError, match=r"^unknown key cxl.hots; did you mean 'hosts'\?"):
        spec_from_toml('kind = "noc"\ncxl = { hots = 4, devices = 2 }')
    with pytest.raises(ValueError, match=r"^cxl.devices is missing"):
        spec_from_toml('kind = "noc"\ncxl = { hosts = 4 }')


@pytest.mark.parametrize(
    ("text", "traffic"),
    [
        ('"uniform"', uniform(nodes=4)),
        ('{ pattern = "uniform", self_traffic = true }', uniform(nodes=4, self_traffic=True)),
        (
            '{ pattern = "hotspot", spots = [3], fraction = 0.4 }',
            qm.noc.hotspot(nodes=4, spots=[3], fraction=0.4),
        ),
        ("{ targets = [1, 0, 3, 2] }", qm.noc.permutation([1, 0, 3, 2])),
        ("{ rates = [[0, 0.2, 0, 0], [0.1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]] }", None),
        ('{ rates = "rates.csv" }', None),
        (
            '{ kind = "interleaved", initiators = [0, 1], channels = [2, 3], step = 4 }',
            interleaved(initiators=(0, 1), channels=(2, 3), step=4),
        ),
        (
            '{ kind = "transactions", initiators = [0, 1], channels = [2, 3], think_cycles = 9 }',
            qm.noc.transactions(initiators=(0, 1), channels=(2, 3), think_cycles=9),
        ),
    ],
)
def test_ways_to_write_traffic(text, traffic, tmp_path):
    rates = [[0, 0.2, 0, 0], [0.1, 0, 0, 0], [0] * 4, [0] * 4]
    (tmp_path / "rates.csv").write_text("\n".join(",".join(map(str, row)) for row in rates))
    noc = spec_from_toml(f'kind = "noc"\ntopology = "mesh 2 2"\ntraffic = {text}', base_dir=tmp_path)
    assert noc.traffic == (traffic or rate_matrix(rates))
    assert spec_from_toml(to_toml(noc, kind=True)) == noc


def test_a_preset_lies_under_the_other_keys():
    text = 'kind = "dram"\npreset = "DDR4-3200"\npage_policy = "closed"\n[geometry]\nranks = 2\n'
    assert spec_from_toml(text) == qm.dram("DDR4-3200", ranks=2, page_policy="closed")
    assert spec_from_toml(text, {"preset": "HBM2", "t_refi": 0, "t_rfc": 0}) == qm.dram(
        "HBM2", ranks=2, page_policy="closed", t_refi=0, t_rfc=0
    )
    loaded = spec_from_toml(text + '[traffic]\nkind = "strided-blocks"\nstride = 3\n')
    assert loaded.traffic.stride == 3
    assert from_toml('preset = "HBM2"', qm.DramSystem) == qm.dram("HBM2")


def test_a_word_is_a_kind_that_needs_no_more():
    assert from_toml('arrivals = "poisson"', QueueTraffic).arrivals == Poisson()
    assert spec_from_toml('kind = "noc"', {"process": "poisson"}).process == Poisson()
    with pytest.raises(ValueError, match="arrivals.on_packets is missing"):
        from_toml('arrivals = "on-off"', QueueTraffic)


def test_keys_that_only_one_has_need_no_kind():
    found = from_toml("arrivals = { on_packets = 3, peak_to_mean = 2 }", QueueTraffic).arrivals
    assert found == OnOff(on_packets=3, peak_to_mean=2)
    with pytest.raises(ValueError, match="traffic must be a table with kind = one of pattern"):
        spec_from_toml('kind = "noc"\ntraffic = { initiators = [0], channels = [1] }')


def test_overrides_reach_into_what_is_left_out_or_written_by_a_word():
    noc = spec_from_toml('kind = "noc"\ntopology = "mesh 2 2"\ntraffic = "uniform"', {"topology.delay": 3})
    assert noc.topology == qm.mesh(2, 2, delay=3)
    assert spec_from_toml('kind = "noc"', {"self_traffic": True}).traffic.self_traffic
    tuned = spec_from_toml('kind = "dram"\npreset = "HBM2"', {"t_refi": 0, "t_rfc": 0})
    assert tuned == qm.dram("HBM2", t_refi=0, t_rfc=0)
    with pytest.raises(ValueError, match="unknown key kind"):
        from_toml('kind = "noc"', QueueTraffic)


def test_sweeps_along_several_axes_come_back():
    noc = qm.Noc(injection_rate=np.array([[0.01, 0.02, 0.03], [0.02, 0.03, 0.04]]))
    assert spec_from_toml(to_toml(noc, kind=True)).injection_rate.tolist() == noc.injection_rate.tolist()
    with pytest.raises(ValueError, match="injection_rate must be a number or a list of numbers, got"):
        spec_from_toml('kind = "noc"\ninjection_rate = [[0.1], [0.1, 0.2]]')


def test_overrides_go_by_unique_ends_and_into_lists():
    text = to_toml(kind_named("queueing-network").starter(), kind=True)
    spec = spec_from_toml(text, {"disk.servers": 3, "cpu.service": {"kind": "exponential", "mean": 0.25}})
    assert (spec.stations[1].servers, spec.stations[0].service.mean) == (3, 0.25)
    with pytest.raises(ValueError, match="QueueingNetwork has no field 'disk.server'; did you mean"):
        spec_from_toml(text, {"disk.server": 3})


def test_what_is_a_word_elsewhere_is_a_table_on_its_own():
    assert from_toml(to_toml(qm.traffic.imix()), qm.traffic.SizeLaw) == qm.traffic.imix()


@dataclass(frozen=True, kw_only=True)
class Wheel:
    """A spec of someone else, which may be written as a size in inches."""

    radius: float = 0.3

    @classmethod
    def __from_toml__(cls, value, place: Place):
        if isinstance(value, str) and value.endswith('"'):
            return cls(radius=float(value[:-1]) * 0.0127)
        return value


@dataclass(frozen=True, kw_only=True)
class Car:
    """A spec of someone else."""

    wheel: Wheel = field(default_factory=Wheel)
    seats: int | None = None


def test_any_class_may_say_how_it_is_read():
    car = from_toml("wheel = '10\"'\nseats = 4", Car)
    assert car == Car(wheel=Wheel(radius=0.127), seats=4)
    assert from_toml(to_toml(car), Car) == car
    assert from_toml(to_toml(replace(car, seats=None)), Car) == Car(wheel=car.wheel)
    with pytest.raises(ValueError, match="^seats must be a whole number, got 'x'$"):
        from_toml("seats = 'x'", Car)


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
