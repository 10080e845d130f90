"""Systems of parts as specs: their files, the names of their fields, and what is refused at construction."""

import tomllib
from dataclasses import dataclass, replace

import numpy as np
import pytest

import qmodels as qm
from optimize import field_paths, find_field, get_field, replace_fields
from qmodels import laws, steps, traffic
from qmodels.packets import FreeList
from qmodels.systems.spec.describe import describe, json_schema
from qmodels.systems.spec.fields import stable_hash, varied_fields
from qmodels.systems.spec.named import Named
from qmodels.systems.spec.text.toml import spec_from_toml, to_toml
from qmodels.systems.starters import small_system
from tests.qmodels.systems.test_describe import fits

HELD = "acquire mshrs\nread dram\nrelease mshrs"
TEXT = """
kind = "system"

[parts.noc]
topology = "mesh 4 4"
link_width = 32

[parts.dram]
preset = "HBM2"

[parts.pointers]
kind = "free-list"
segments = 1024

[parts."look-up engine"]
kind = "station"
servers = 4
service = { kind = "erlang", mean = 12, phases = 3 }

[parts.mshrs]
count = 16

[place]
dram = "8..15"
"look-up engine" = [0, 3]
mshrs = 5

[[flows]]
name = "packets"
arrivals = { kind = "on-off", on_packets = 8, peak_to_mean = 3 }
rate = 0.02
at = "0..3, 5"
sizes = "imix"
window = 64
program = '''
allocate pointers segments
visit "look-up engine" bytes=16
each { acquire mshrs; write dram addresses=allocated; release mshrs }
hold exponential(mean=200) counted=false
read dram segments allocated
free pointers
'''

[[flows]]
name = "refills"
population = 4
at = 7
program = [{ kind = "read", part = "dram", blocks = 2 }, { kind = "repeat", count = 2, steps = [{ kind = "write", part = "dram" }] }]
"""  # noqa: E501


def system(program=HELD, parts=None, flow=None, **changes):
    """Return a memory and a pool of tokens on a mesh, with one flow."""
    own = {"noc": qm.Noc(topology=qm.mesh(2, 2)), "dram": qm.dram("DDR4-3200"), "mshrs": qm.Tokens(count=4)}
    given = {"name": "loads", "arrivals": traffic.Poisson(), "rate": 0.01, "at": [0], "program": program}
    fields = {"place": {"dram": [3]}, "parts": own | (parts or {})} | changes
    return qm.System(flows=[qm.Flow(**(given | (flow or {})))], **fields)


@pytest.fixture(scope="module")
def loaded():
    return spec_from_toml(TEXT)


def test_what_a_file_says(loaded):
    packets, refills = loaded.flows
    assert loaded.parts["noc"] == qm.Noc(topology=qm.mesh(4, 4), link_width=32)
    assert loaded.parts["dram"] == qm.dram("HBM2") and loaded.parts["mshrs"] == qm.Tokens(count=16)
    assert loaded.parts["look-up engine"].name == "look-up engine"
    assert loaded.place == {"dram": tuple(range(8, 16)), "look-up engine": (0, 3), "mshrs": (5,)}
    assert (packets.at, packets.window, refills.at, refills.closed) == ((0, 1, 2, 3, 5), 64, (7,), True)
    assert packets.program[2] == steps.Each(
        (steps.Acquire("mshrs"), steps.Write("dram", addresses="allocated"), steps.Release("mshrs"))
    )
    assert refills.program == (steps.Read("dram", 2), steps.Repeat((steps.Write("dram"),), 2))
    assert loaded.copies("look-up engine") == 2 and loaded.copies("dram") == 1


def test_a_file_comes_back(loaded):
    text = to_toml(loaded, kind=True)
    assert spec_from_toml(text) == loaded and to_toml(spec_from_toml(text), kind=True) == text
    assert (
        'at = "0..3, 5"' in text and 'dram = "8..15"' in text and "\nread dram segments allocated\n" in text
    )
    assert stable_hash(spec_from_toml(text)) == stable_hash(loaded)


def test_a_recorded_trace_comes_back(tmp_path):
    (tmp_path / "trace.csv").write_text("time,bytes\n0,64\n1e-6,1500\n3e-6,64\n")
    recorded = traffic.Recorded(trace=qm.read_trace(tmp_path / "trace.csv"))
    spec = system(HELD + "\neach { read dram }", flow={"arrivals": recorded, "rate": None})
    assert spec.flows[0].mean_rate == recorded.trace.packet_rate
    assert spec_from_toml(to_toml(spec, kind=True)) == spec


def test_equal_systems_hash_alike_in_any_order(loaded):
    turned = replace(loaded, parts=Named(dict(reversed(list(loaded.parts.items())))))
    assert turned == loaded and hash(turned) == hash(loaded) and stable_hash(turned) == stable_hash(loaded)
    assert stable_hash(replace_fields(loaded, {"dram.channels": 4})) != stable_hash(loaded)


def test_parts_and_flows_go_by_their_names(loaded):
    assert find_field(loaded, "dram.channels") == "parts.dram.geometry.channels"
    assert find_field(loaded, "dram") == "parts.dram" and find_field(loaded, "packets") == "flows.packets"
    assert find_field(loaded, "packets.rate") == "flows.packets.rate"
    assert get_field(loaded, "pointers.alloc_trial_count") == 2
    changed = replace_fields(loaded, {"dram": qm.dram("DDR4-3200"), "mshrs.count": 2, "packets.rate": 0.5})
    assert changed.parts["dram"].geometry.channels == 1 and changed.parts["mshrs"] == qm.Tokens(count=2)
    assert set(varied_fields([loaded, replace_fields(loaded, {"mshrs.count": 2})])) == {"parts.mshrs.count"}
    assert field_paths(loaded)["flows.packets.program.2.steps.1.addresses"] == "allocated"
    with pytest.raises(ValueError, match=r"System has no field 'dram.chanels'; did you mean 'parts.dram"):
        find_field(loaded, "dram.chanels")


@pytest.mark.parametrize(
    ("name", "value", "field", "found"),
    [
        ("dram.channels", 4, "parts.dram.geometry.channels", 4),
        ("packets.rate", 0.5, "flows.packets.rate", 0.5),
        ("packets.rate", [0.1, 0.2], "flows.packets.rate", [0.1, 0.2]),
        ("place.dram", "4..7", "place.dram", (4, 5, 6, 7)),
        ("refills.at", "1..2", "flows.refills.at", (1, 2)),
        ("dram.preset", "DDR4-3200", "parts.dram", qm.dram("DDR4-3200")),
        ("parts.dram", {"preset": "DDR4-3200"}, "parts.dram", qm.dram("DDR4-3200")),
        ("flows.packets.program.4.blocks", 3, "flows.packets.program.4.blocks", 3),
        ("refills.program", "read dram", "flows.refills.program", (steps.Read("dram"),)),
        ("look-up engine.servers", 2, "parts.look-up engine.servers", 2),
    ],
)
def test_overrides(name, value, field, found):
    changed = get_field(spec_from_toml(TEXT, {name: value}), field)
    assert changed.tolist() == found if isinstance(changed, np.ndarray) else changed == found


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("count = 16", "cuont = 16", "parts.mshrs must be a table with kind = one of noc, dram, cache,"),
        (
            'kind = "station"',
            'kind = "statoin"',
            "parts.look-up engine.kind must be .*did you mean 'station'",
        ),
        ("servers = 4", "severs = 4", "unknown key parts.look-up engine.severs; did you mean 'servers'"),
        ('dram = "8..15"', 'drm = "8..15"', "place must be one of .*, got 'drm'; did you mean 'dram'"),
        ('dram = "8..15"', 'dram = "8..16"', r"place.dram must be nodes of 'noc' \(0 to 15\), got 16"),
        ('dram = "8..15"', 'dram = "15..8"', "place.dram must be nodes such as 0..7, 12, got '15..8'"),
        ("allocate pointers", "alocate pointers", "flow 'packets': program line 1: step must be one of"),
        ("write dram addresses", "write drm addresses", "flow 'packets': 'write drm' must name a DramSystem"),
        ("\n[place]", "\n[plaec]", "unknown key plaec; did you mean 'place'"),
        ("[[flows]]", "[[flwos]]", "unknown key flwos; did you mean 'flows'"),
    ],
)
def test_a_wrong_file_is_refused_by_its_key(before, after, message):
    assert before in TEXT
    with pytest.raises(ValueError, match=f"^{message}"):
        spec_from_toml(TEXT.replace(before, after))


def test_the_schema_knows_parts_and_programs(loaded):
    schema = json_schema("system")
    written = tomllib.loads(to_toml(loaded, kind=True))
    assert fits(tomllib.loads(TEXT), schema, schema) and fits(written, schema, schema)
    for wrong in (
        "[parts.dram]\nchanels = 4",
        "[[flows]]\nprogram = [{ kind = 'raed' }]",
        "[place]\nnoc = 1.5",
    ):
        document = tomllib.loads(to_toml(small_system(), kind=True)) | tomllib.loads(wrong)
        assert not fits(document, schema, schema), wrong
    assert schema["$defs"]["Each"]["properties"]["steps"]["items"]["anyOf"][0] == {"$ref": "#/$defs/Visit"}
    assert {"Interleaved", "Interleaved2"} <= set(schema["$defs"])  # of addresses, and of packets


def test_every_step_is_described():
    rows = [row for row in describe("system") if row.name.startswith("flows.*.program.*.")]
    assert {row.of for row in rows} == {  # but `Move`, which has no fields
        "visit", "send", "read", "write", "lookup", "allocate", "free", "acquire", "release", "hold", "mark",
        "fork", "each", "repeat", "branch",
    }  # fmt: skip


LIST = {"list": FreeList(segments=8)}
TWO = {"other": qm.Tokens(count=4)}
CACHES = {"c": qm.CacheSystem(private=(qm.CacheLevel(lines=4),))}


def test_places_without_an_interconnect_come_back():
    """As text: the places of the system, a window that loses, and what is done at each level looked in."""
    parts = {"c": qm.CacheSystem(private=(qm.CacheLevel(lines=4),)), "core": qm.Tokens(count=1)}
    banks = qm.parts.BankedChannels(service=laws.Exponential(mean=9.0), channels=4, speeds=(1.0, 0.7))
    flow = qm.Flow(
        arrivals=traffic.Poisson(),
        rate=0.1,
        window=8,
        when_full="loss",
        at="0..3",
        program="acquire core; lookup c further { hold 2 } miss { visit banks }; release core",
    )
    given = qm.System(parts={**parts, "banks": banks}, place={"core": "0..3"}, flows=flow, nodes=4)
    assert spec_from_toml(to_toml(given, kind=True)) == given and given.places == 4
    assert given.flows[0].program[1].further == (steps.Hold(laws.Deterministic(mean=2)),)
    with pytest.raises(ValueError, match="^place.core must be nodes of 'the system' .0 to 2., got 3$"):
        replace(given, nodes=3)
    with pytest.raises(ValueError, match="^place.core must be left out without an interconnect or nodes"):
        replace(given, nodes=0)
    with pytest.raises(ValueError, match="^memory.speeds must have a speed, got"):
        replace(banks, speeds=())


@dataclass(frozen=True, kw_only=True)
class Other:
    """A dataclass that is no part."""

    ns: float = 1.0


def test_steps_in_steps_end_somewhere():
    program = (steps.Visit("s"),)
    for _ in range(40):
        program = steps.Each(program, 1)
    with pytest.raises(ValueError, match="^flow 'jobs': program must have its steps at most 32 deep"):
        qm.Flow(arrivals=laws.Exponential(mean=1.0), program=program)
