"""Specs to TOML and back, and their hash."""

import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qmodels as qm
from qmodels import JobClass, PacketProcessor, QueueingNetwork, Station, Workload, traffic
from qmodels.systems.memory import dram_system
from qmodels.systems.memory.dram_map import bit_fields
from qmodels.systems.memory.numa_system import BlockWork, DmaEngine, NumaChip
from qmodels.systems.programs.collectives import gather
from qmodels.systems.programs.work_queues import Bag, Stealing
from qmodels.systems.spec.fields import stable_hash
from qmodels.systems.spec.text.toml import from_toml, read_value, spec_from_toml, to_toml
from qmodels.systems.stations.parts import Cyclic, StateDependent
from qmodels.traffic import OnOff, Poisson, Recorded, SizeLaw, Trace, bimodal, fixed, heavy_tailed, imix


@dataclass(frozen=True, kw_only=True)
class Part:
    """Numbers of every kind."""

    size: Any = 3
    name: str = "plain"
    on: bool = True
    share: float = 0.5
    count: int = 2
    pairs: tuple[tuple[int, int], ...] = ()
    corner: tuple[int, float] = (0, 0.0)


@dataclass(frozen=True, kw_only=True)
class Whole:
    """A part in a whole."""

    needed: int
    part: Part = field(default_factory=Part)


numbers = st.one_of(st.integers(-(2**62), 2**62), st.floats(allow_nan=False))
parts = st.builds(
    Part,
    size=numbers,
    name=st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    on=st.booleans(),
    share=st.floats(allow_nan=False),
    count=st.integers(-(2**62), 2**62),
    pairs=st.lists(st.tuples(st.integers(), st.integers()), max_size=3).map(tuple),
    corner=st.tuples(st.integers(0, 9), st.floats(0, 1)),
)
laws = st.one_of(
    st.just(imix()),
    st.builds(fixed, bytes=st.integers(1, 9000)),
    st.builds(
        bimodal, small=st.integers(1, 99), large=st.integers(100, 9000), small_fraction=st.floats(0, 1)
    ),
    st.builds(SizeLaw.measured, st.lists(st.integers(1, 1518), min_size=1, max_size=30)),
)
workloads = st.builds(
    Workload,
    arrivals=st.one_of(
        st.just(Poisson()), st.builds(OnOff, on_packets=st.floats(1, 99), peak_to_mean=st.integers(2, 99))
    ),
    sizes=laws,
    offered_gbps=st.one_of(st.integers(1, 400), st.floats(0.01, 400)),
    load_factor=st.floats(0.1, 2),
    segment_bytes=st.integers(1, 256),
    lookups_per_packet=st.integers(0, 5),
    zipf_exponent=st.floats(0, 2),
    hold_ns=st.floats(0, 1e9),
)


@given(spec=st.one_of(st.builds(Whole, needed=st.integers(), part=parts), workloads))
def test_reading_what_was_written_gives_the_same_spec(spec: Whole | Workload) -> None:
    text = to_toml(spec)
    back = from_toml(text, type(spec))
    assert back == spec
    assert to_toml(back) == text
    assert stable_hash(back) == stable_hash(spec)


def test_types_of_numbers_survive() -> None:
    back = from_toml(to_toml(Part(size=np.float64(2.0), share=np.float32(0.5), count=np.int64(7))), Part)  # type: ignore[arg-type]
    assert (type(back.size), type(back.share), type(back.count)) == (float, float, int)
    assert type(from_toml("", Part).size) is int


def test_lists_in_numeric_fields_are_sweeps() -> None:
    sweep = Workload(load_factor=np.array([0.5, 1.0]), lookups_per_packet=np.array([1, 2]))
    back = from_toml(to_toml(sweep), Workload)
    assert back.load_factor.tolist() == [0.5, 1.0]
    assert back.lookups_per_packet.dtype == np.int64
    assert stable_hash(back) == stable_hash(sweep) != stable_hash(Workload())


def test_missing_keys_take_the_defaults() -> None:
    assert from_toml("", PacketProcessor) == PacketProcessor()
    text = "[workload]\noffered_gbps = 80\n[dram]\nchannels = 8\npage_policy = 'closed'\n"
    processor = from_toml(text, PacketProcessor)
    default = PacketProcessor()
    assert processor.workload == replace(default.workload, offered_gbps=80)
    assert processor.dram == replace(default.dram, channels=8, page_policy="closed")
    assert processor.noc == default.noc


@pytest.mark.parametrize(
    ("toml", "law"),
    [
        ('"imix"', imix()),
        ('{ law = "imix" }', imix()),
        ('{ law = "fixed", bytes = 256 }', fixed(bytes=256)),
        (
            '{ law = "bimodal", small = 64, large = 1500, small_fraction = 0.5 }',
            bimodal(small=64, large=1500, small_fraction=0.5),
        ),
        ('{ law = "heavy-tailed", shape = 1 }', heavy_tailed(shape=1)),
        (
            '{ law = "heavy-tailed", shape = 1.5, maximum = 9000 }',
            heavy_tailed(shape=1.5, maximum=9000),
        ),
        (
            "{ bytes = [64, 1500], probability = [0.25, 0.75] }",
            SizeLaw(bytes=(64, 1500), probability=(0.25, 0.75)),
        ),
        ("{ bytes = [64], probability = [1] }", fixed(bytes=64)),
    ],
)
def test_ways_to_write_sizes(toml: str, law: SizeLaw) -> None:
    assert from_toml(f"sizes = {toml}", Workload).sizes == law


def test_ways_to_write_arrivals() -> None:
    assert from_toml('arrivals = { kind = "poisson" }', Workload).arrivals == Poisson()
    bursts = from_toml('[arrivals]\nkind = "on-off"\non_packets = 9\npeak_to_mean = 3.5', Workload).arrivals
    assert bursts == OnOff(on_packets=9, peak_to_mean=3.5)


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "three.csv"
    path.write_text("time,bytes\n0,64\n1e-6,1500\n3e-6,64\n")
    return path


def test_a_recorded_workload_refers_to_its_file(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = from_toml(f'arrivals = {{ kind = "recorded", trace = "{capture}" }}', Workload)
    assert workload.sizes == SizeLaw.measured([64, 1500, 64])
    text = to_toml(workload)
    assert f'trace = "{capture}"' in text and "sizes" not in text
    assert from_toml(text, Workload) == workload

    relative = 'arrivals = { kind = "recorded", trace = "three.csv" }'
    assert from_toml(relative, Workload, base_dir=capture.parent) == workload
    beside = capture.parent / "router.toml"
    beside.write_text(relative)
    assert from_toml(beside, Workload) == workload
    monkeypatch.chdir(capture.parent)
    assert from_toml(relative, Workload) == workload
    assert str(capture) in to_toml(from_toml(relative, Workload))


def test_overrides_replace_and_add_keys() -> None:
    text = "[workload]\nload_factor = 0.5\n"
    overrides = {
        "workload.load_factor": 0.9,
        "dram.channels": 2,
        "workload.sizes": {"law": "fixed", "bytes": 128},
        "noc.topology.kind": "ring",
    }
    processor = from_toml(text, PacketProcessor, overrides=overrides)
    assert (processor.workload.load_factor, processor.dram.channels) == (0.9, 2)
    assert processor.workload.sizes == fixed(bytes=128)
    assert processor.noc.topology.kind == "ring"


ARRIVALS = (
    "poisson, on-off, recorded, deterministic, exponential, erlang, gamma, log-normal, weibull, pareto, "
    "uniform, geometric, hyper-exponential, phase-type, map, empirical, replay"
)


def test_bad_overrides_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"^unknown key dram\.chanels; did you mean 'channels'\?$"):
        from_toml("", PacketProcessor, overrides={"dram.chanels": 3})
    with pytest.raises(ValueError, match=r"^sizes must be a table to set sizes\.law, got 'imix'$"):
        from_toml('sizes = "imix"', Workload, overrides={"sizes.law": "fixed"})


def test_a_part_is_replaced_before_its_own_fields_are_set() -> None:
    values: dict[str, Any] = {"t_rfc": 0, "dram.timing.t_refi": 0}
    memory = {"kind": "dram-system", "preset": "HBM3", "geometry": {"channels": 2}}
    for order in (values | {"dram": memory}, {"dram": memory} | values):
        timing = spec_from_toml("", order).dram.timing
        assert (timing.t_rfc, timing.t_refi, timing.t_rcd) == (0, 0, 31)
    with pytest.raises(ValueError, match="has no field 'chanels'"):
        spec_from_toml("", {"dram": memory, "chanels": 3})


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"absent\.toml: cannot be read: No such file or directory$"):
        from_toml(tmp_path / "absent.toml", Workload)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"binary\.toml: not a text file$"):
        from_toml(binary, Workload)
    broken = tmp_path / "broken.toml"
    broken.write_text("a = 1\na = 2\n")
    with pytest.raises(ValueError, match=r"broken\.toml: not valid TOML: .*\(at "):
        from_toml(broken, Workload)


@given(number=st.one_of(st.integers(-1000, 1000), st.floats(-1e3, 1e3)))
def test_equal_numbers_hash_alike(number: float) -> None:
    ours = stable_hash(Part(size=number))
    assert ours == stable_hash(Part(size=np.float64(number)))
    assert (ours == stable_hash(Part(size=int(number)))) == (number == int(number))
    assert ours != stable_hash(Part(size=number + 1))
    assert stable_hash(Part(size=-0.0)) == stable_hash(Part(size=0))


def test_hash_tells_specs_apart() -> None:
    specs = [
        Part(),
        Part(on=False),
        Part(name="true"),
        Part(size=[3]),
        Part(size=True),
        Part(size=1),
        Part(size="1"),
        Part(size=float("inf")),
        Part(size=float("nan")),
        Part(pairs=((1, 2),)),
        Whole(needed=1),
        Poisson(),
        OnOff(on_packets=1, peak_to_mean=2),
        OnOff(on_packets=2, peak_to_mean=2),
    ]
    assert len({stable_hash(spec) for spec in specs}) == len(specs)


def test_hash_of_a_trace_is_that_of_its_packets() -> None:
    times, sizes = np.array([0, 5, 9]), np.array([64, 64, 1500])
    here = Workload(arrivals=Recorded(trace=Trace(times_ns=times, bytes=sizes, source="here")))
    there = Workload(arrivals=Recorded(trace=Trace(times_ns=times + 3, bytes=sizes, source="there")))
    other = Workload(arrivals=Recorded(trace=Trace(times_ns=times * 2, bytes=sizes, source="here")))
    assert stable_hash(here) == stable_hash(there) != stable_hash(other)


def test_hash_is_the_same_in_another_process() -> None:
    program = (
        "from qmodels.systems.packets.packet_processor import PacketProcessor\n"
        "from qmodels.systems.spec.fields import stable_hash\n"
        "print(stable_hash(PacketProcessor()))\n"
    )
    root = Path(__file__).parents[3]
    for seed in ("1", "2"):
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        run = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() == stable_hash(PacketProcessor())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ("-1.5e3", -1500.0),
        ("1_000", 1000),
        ("inf", float("inf")),
        ("true", True),
        ("True", "True"),
        ("closed", "closed"),
        ("on-off", "on-off"),
        ('"8"', "8"),
        ("'a b'", "a b"),
        ("[1, 2]", [1, 2]),
        ('{ law = "fixed", bytes = 64 }', {"law": "fixed", "bytes": 64}),
        ("", ""),
        ("8 channels", "8 channels"),
        ("1\nother = 2", "1\nother = 2"),
        ("2026-01-01", "2026-01-01"),
        ("capture.pcap", "capture.pcap"),
    ],
)
def test_values_of_the_command_line(text: str, value: Any) -> None:
    assert read_value(text) == value
    assert type(read_value(text)) is type(value)


EXPONENTIAL = qm.laws.Exponential(mean=1.0)
ROUTED = QueueingNetwork(
    stations=[
        Station(name="cpu", service={"a": EXPONENTIAL, "b": qm.laws.Erlang(mean=2.0, phases=2)}),
        Station(name="disk", service=EXPONENTIAL, servers=2, setup=None),
        Station(name="think", service=qm.laws.Empirical(values=(1.0, 2.0)), servers=float("inf")),
    ],
    classes=[
        JobClass(name="a", population=5),
        JobClass(name="b", arrivals=EXPONENTIAL, entry={"cpu": 0.5, "disk": 0.5}),
    ],
    routing={
        "cpu": {"disk": 0.4, "think": 0.6},
        "disk": Cyclic(to=["cpu", ("think", "")]),
        ("think", "a"): StateDependent(station="cpu", rules=["cpu", "disk"]),
        ("think", "b"): "leave",
    },
)


RULED = qm.Noc(
    topology=qm.spidergon(8),
    traffic=qm.noc.interleaved(initiators=[0, 1], channels=[4, 5], step=2),
    mix=(qm.noc.PacketClass(flits=1), qm.noc.PacketClass(share=0.5)),
    qos=(qm.noc.QosRule(source=0, priority=2), qm.noc.QosRule(circuit=True)),
    routes=(qm.noc.SourceRoute(source=0, target=4, routers=(0, 4)),),
    process=OnOff(on_packets=5, peak_to_mean=3),
)
NUMA = qm.NumaMachine(
    chip=NumaChip(numa_factors=((1.0, 1.5),) * 16, memory_nodes=(0, 3)),
    dma=DmaEngine(assignment="custom", core_channels=(1,) * 16),
    work=BlockWork(placement="per-core", memories=((0, 1),) * 16, core_steps=(3,) * 16),
)


@pytest.mark.parametrize(
    "spec",
    [
        qm.dram("DDR4-3200", traffic=dram_system.Packets(blocks=9, spacing=2), channels=3),
        qm.dram("DDR4-3200", traffic=dram_system.StridedBlocks(stride=7), scheduler="in-order"),
        qm.dram("DDR4-3200", traffic=dram_system.AddressTrace(blocks=(3, 1, 4), writes=(0, 1, 0))),
        qm.dram("DDR4-3200", address_map=bit_fields("row:9 bank:2 group:2 column:7", xor=("bank^row",))),
        qm.CacheSystem(popularity=traffic.Zipf(entries=100, exponent=1.0), private=(qm.CacheLevel(lines=8),)),
        NUMA,
        qm.WorkQueues(tasks=Bag(), stealing=Stealing(thieves="every", share=0.25), data="nearest"),
        RULED,
        qm.Noc(traffic=qm.noc.transactions(initiators=[0], channels=[1, 2])),
        qm.noc.Topology(kind="torus", nodes=16, shape=(4, 4), delay=1),
        qm.noc.from_graph(nx.star_graph(3)),
        qm.MessageProgram(topology=qm.mesh(2, 2), processes=gather(processes=4, words=8)),
        qm.tandem(arrivals=qm.laws.Exponential(mean=1.25), services=[EXPONENTIAL] * 3, capacity=[4, 3, 2]),
        ROUTED,
    ],
    ids=lambda spec: type(spec).__name__,
)
def test_specs_with_much_in_them_go_through_toml(spec):
    text = to_toml(spec)
    again = from_toml(text, type(spec))
    assert again == spec and to_toml(again) == text
    assert stable_hash(again) == stable_hash(spec)
