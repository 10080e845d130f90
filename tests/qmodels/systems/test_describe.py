"""What is said about every kind of system: its fields, a commented file, and a JSON schema."""

import inspect
import json
import re
import tomllib
from dataclasses import dataclass, make_dataclass
from typing import Any

import pytest

from optimize import field_paths, find_field
from qmodels.systems.spec.describe import describe, init, json_schema
from qmodels.systems.spec.docstrings import documentation
from qmodels.systems.spec.fields import field_names
from qmodels.systems.spec.kind import KINDS, kind_named
from qmodels.systems.spec.ranges import Declared, choice
from qmodels.systems.spec.text.toml import spec_from_toml, to_toml


def fits(value, schema, root):
    """Return whether a value is as a schema says; only what our schemas use is understood."""
    types = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
    if "$ref" in schema:
        return fits(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root)
    if "anyOf" in schema and not any(fits(value, one, root) for one in schema["anyOf"]):
        return False
    if "const" in schema and value != schema["const"] or "enum" in schema and value not in schema["enum"]:
        return False
    kind = schema.get("type")
    if kind == "number" and (isinstance(value, bool) or not isinstance(value, int | float)):
        return False
    if kind in types and (not isinstance(value, types[kind]) or kind == "integer" and value is True):
        return False
    if kind == "array":
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return False
        parts = schema.get("prefixItems", [schema.get("items", {})] * len(value))
        return all(fits(one, part, root) for one, part in zip(value, parts, strict=True))
    if kind == "object":
        others = schema.get("additionalProperties") or {}
        known = dict.fromkeys(value, others) if others else {}
        known |= schema.get("properties", dict.fromkeys(value, others))
        return (
            set(schema.get("required", [])) <= set(value)
            and set(value) <= set(known)
            and all(fits(one, known[name], root) for name, one in value.items())
        )
    return True


@pytest.mark.parametrize("name", KINDS)
def test_every_field_is_described(name):
    rows = describe(name)
    assert [row.name for row in rows if not (row.meaning and row.type and row.default is not None)] == []
    described = {row.name for row in rows}
    for path in field_paths(kind_named(name).starter()):
        end = path.rpartition(".")[2]
        assert any(known.rpartition(".")[2] in (end, *path.split(".")) for known in described), path


UNCHECKED = {"routes.*.source", "routes.*.target", "routes.*.share", "traffic.arrivals.sessions"}
"""Numbers that are checked with others, or whose check does not name them."""

OF_A_MAP = {"traffic.region", "traffic.stride_bytes"}
"""Of interleaved traffic, which needs a memory map: no example of it is at hand."""


@pytest.mark.parametrize("name", KINDS)
def test_the_rule_of_every_number_is_found(name):
    numbers = [row for row in describe(name) if row.type in ("whole number", "number", "number or array")]
    found = {row.name.removeprefix("parts.*.") for row in numbers if not row.allowed}
    assert found <= UNCHECKED | OF_A_MAP


def test_what_a_row_says():
    rows = {row.name: row for row in describe("packet-processor") if row.of != "dram-system"}
    load = rows["workload.offered_gbps"]
    assert (load.type, load.unit, load.default) == ("number or array", "Gb/s", "40.0")
    assert load.allowed == "finite and > 0" and load.meaning.startswith("Mean rate at which packet bytes")
    assert rows["dram.page_policy"].allowed == "one of open, closed"
    bursts = rows["workload.arrivals.on_packets"]
    assert (bursts.of, bursts.default, bursts.allowed) == ("on-off", "required", "finite and >= 1")
    assert rows["energy.router_mw_per_byte"].unit == "mW/byte"
    assert find_field(kind_named("packet-processor").starter(), "dram.channels") in rows


def test_parameters_of_a_docstring():
    class Parts:
        """Two parts.

        Parameters
        ----------
        left, right : float
            Lengths of both
            sides. [mm, cm]
        name : str
            A word ([1]_).

        Notes
        -----
        depth : no parameter
            At all.
        """

    assert documentation(Parts) == {
        "left": ("Lengths of both sides", "mm"),
        "right": ("Lengths of both sides", "cm"),
        "name": ("A word ([1]_)", ""),
    }


@dataclass(frozen=True)
class Remarked:
    """Parts explained where they are declared.

    Parameters
    ----------
    name : str
        A word.
    """

    # left, right: Lengths of both
    # sides. [mm, cm]
    left: float
    right: float
    depth: float = 1.0  # How deep. [m]
    plain: Any = None  # type: ignore[assignment]
    # What it is called
    # type: in words
    kind: str = "µ"  # fmt: skip
    name: str = ""

    def __post_init__(self) -> None:
        length: float = self.left  # no field
        assert length


def test_remarks_at_fields():
    assert documentation(Remarked) == {
        "left": ("Lengths of both sides", "mm"),
        "right": ("Lengths of both sides", "cm"),
        "depth": ("How deep", "m"),
        "kind": ("What it is called type: in words", ""),
        "name": ("A word", ""),
    }
    assert documentation(make_dataclass("Made", ["left"])) == {}


@dataclass(frozen=True, kw_only=True)
class Shelf(Declared):
    """A shelf.

    Notes
    -----
    Of wood.
    """

    # width, depth: Lengths of both
    # sides. [mm, cm]
    width: float = 1.0
    depth: float = 1.0
    finish: str = choice("plain", ("plain", "painted"))  # What is on it


def test_the_docstring_of_a_spec_has_its_fields_where_it_says_none_itself():
    assert inspect.getdoc(Shelf) == (
        "A shelf.\n\n"
        "Parameters\n----------\n"
        "width, depth : number\n    Lengths of both sides. [mm, cm]\n"
        "finish : one of plain, painted\n    What is on it.\n\n"
        "Notes\n-----\nOf wood."
    )
    assert Shelf().__doc__ == Shelf.__doc__


@pytest.mark.parametrize("name", KINDS)
def test_every_field_of_a_kind_is_in_its_docstring(name):
    cls = kind_named(name).spec()
    text = inspect.getdoc(cls)
    for field in field_names(cls):
        assert re.search(rf"^(\w+, )*{field}(, \w+)* : ", text, re.M), field


@pytest.mark.parametrize("name", KINDS)
def test_the_commented_file_is_the_example(name):
    text = init(name)
    assert spec_from_toml(text) == kind_named(name).starter()
    lines = text.splitlines()
    keys = [k for k, line in enumerate(lines) if " = " in line and not line.startswith("#")]
    assert lines[keys[0]] == f'kind = "{name}"'
    explained = {lines[k].partition(" = ")[0] for k in keys[1:] if lines[k - 1].startswith("# ")}
    assert explained == {lines[k].partition(" = ")[0] for k in keys[1:]}
    assert max(map(len, (line for line in lines if line.startswith("#")))) <= 102


@pytest.mark.parametrize("name", KINDS)
def test_the_schema_takes_what_the_reader_takes(name):
    schema = json_schema(name)
    assert json.loads(json.dumps(schema)) == schema
    starter = kind_named(name).starter()
    document = tomllib.loads(to_toml(starter, kind=True))
    assert fits(document, schema, schema)
    assert not fits({**document, "kind": "other"}, schema, schema)
    assert not fits({**document, "unknown": 1}, schema, schema)
    for key, value in document.items():
        assert not fits({**document, key: {"unknown": value}}, schema, schema), key


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("noc", 'topology = "mesh 8 8"\ntraffic = "uniform"\nprocess = "poisson"'),
        ("noc", 'topology = { kind = "mesh", rows = 8, columns = 2 }\ntraffic = { pattern = "uniform" }'),
        ("noc", "injection_rate = [0.1, 0.2]"),
        ("dram", 'preset = "HBM2"\n[geometry]\nchannels = 4'),
        (
            "packet-processor",
            '[workload]\nsizes = "imix"\narrivals = { kind = "recorded", trace = "a.pcap" }',
        ),
        ("data-queueing", 'traffic = { sizes = { law = "fixed", bytes = 64 }, arrivals = "poisson" }'),
    ],
)
def test_the_schema_takes_the_shorter_forms(kind, text):
    schema = json_schema(kind)
    assert fits(tomllib.loads(text), schema, schema)
