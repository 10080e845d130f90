"""Kinds of systems: by name, by spec, and those of other packages."""

import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint

import pytest

from optimize import field_paths
from qmodels import Noc
from qmodels.checks import Numeric
from qmodels.systems.spec import kind as kinds_of_specs
from qmodels.systems.spec.describe import describe, init, json_schema
from qmodels.systems.spec.fields import points_of
from qmodels.systems.spec.kind import KINDS, Kind, kind_named, kind_of, kinds
from qmodels.systems.spec.metrics import METRICS, metric
from qmodels.systems.spec.text.toml import spec_from_toml


@pytest.fixture
def others(monkeypatch):
    """Let entry points be these objects, as another package would register them."""

    def install(**objects):
        points = [EntryPoint(name, f"{__name__}:{name}", kinds_of_specs.GROUP) for name in objects]
        monkeypatch.setattr(EntryPoint, "load", lambda point: objects[point.name])
        monkeypatch.setattr(kinds_of_specs, "entry_points", lambda group: points)
        for cached in (kinds_of_specs._others, kinds_of_specs._others_by_spec):
            cached.cache_clear()

    yield install
    for cached in (kinds_of_specs._others, kinds_of_specs._others_by_spec):
        cached.cache_clear()


@dataclass(frozen=True)
class Pipe:
    """A pipe.

    Parameters
    ----------
    rate : float
        What passes. [jobs/s]
    """

    rate: Numeric = 1.0


PIPE = Kind(name="pipe", spec=lambda: Pipe, starter=Pipe)


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_is_found_by_its_name_its_spec_and_its_class(name):
    kind = kind_named(name)
    starter = kind.starter()
    assert kind.name == name
    assert type(starter) is kind.spec()
    assert kind_of(starter) is kind_of(kind.spec()) is kind


@pytest.mark.parametrize("name", KINDS)
def test_every_system_replaces_its_fields_by_path_and_leaves_itself_as_it_was(name):
    starter = kind_named(name).starter()
    before = field_paths(starter)
    path, value = next((path, value) for path, value in before.items() if type(value) is float)
    changed = starter.replace(**{path: 2 * value})
    assert field_paths(changed) == before | {path: 2 * value}
    assert field_paths(starter) == before
    with pytest.raises(ValueError, match=f"{type(starter).__name__} has no field 'nosuchfield'"):
        starter.replace(nosuchfield=1)


def test_specs_that_inherit_are_of_the_kind_of_their_base():
    class Special(Noc):
        pass

    assert kind_of(Special()).name == "noc"


def test_what_is_no_spec_is_refused_with_the_kinds():
    with pytest.raises(TypeError, match=r"of a kind \(packet-processor, .*, system\), got a int"):
        kind_of(3)
    with pytest.raises(ValueError, match="kind must be one of .*, got 'nocs'; did you mean 'noc'"):
        kind_named("nocs")


def test_another_package_adds_a_kind(others):
    others(pipe=PIPE)
    assert list(kinds()) == [*KINDS, "pipe"]
    assert kind_named("pipe") is kind_of(Pipe()) is PIPE
    assert spec_from_toml('kind = "pipe"\nrate = 2') == Pipe(rate=2)
    assert spec_from_toml(init("pipe")) == Pipe()
    (row,) = describe("pipe")
    assert (row.name, row.unit, row.meaning) == ("rate", "jobs/s", "What passes")
    assert row.type == "number or array"
    assert json_schema("pipe")["properties"]["rate"]["anyOf"][1]["type"] == "array"
    rows, specs = points_of(spec_from_toml('kind = "pipe"\nrate = [1, 2]'))
    assert specs == [Pipe(rate=1), Pipe(rate=2)] and rows == [{"rate": 1}, {"rate": 2}]


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ({"pipe": Pipe}, "entry point pipe = .* must give a Kind, got <class"),
        ({"pipe": PIPE, "tube": PIPE}, "the kind 'pipe' is taken"),
        ({"noc": Kind(name="noc", spec=lambda: Pipe, starter=Pipe)}, "the kind 'noc' is taken"),
    ],
)
def test_a_wrong_entry_point_is_refused(others, objects, message):
    others(**objects)
    with pytest.raises(ValueError, match=message):
        kinds()


def test_a_kind_asked_for_by_name_imports_no_other():
    code = (
        "import sys; from qmodels.systems.spec.kind import kind_named; kind_named('cache').spec();"
        "print(any(name.startswith('qmodels.systems.noc') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_declares_its_metrics(kind):
    declared = kind_named(kind).spec().metric_names
    names = list(declared)
    assert names and len(names) == len(set(names)) and set(names) <= set(METRICS)
    assert set(declared.sometimes) <= set(declared.both)


def test_every_metric_belongs_to_something():
    used = {name for kind in KINDS for name in kind_named(kind).spec().metric_names}
    formulas = {  # of single queues and of the closed forms of networks
        "arrival_rate", "mean_service_time", "waiting_time_variance", "response_time_variance",
        "residence_time", "arrival_scv", "departure_scv",
    }  # fmt: skip
    assert set(METRICS) == used | formulas


def test_times_of_hardware_are_in_ns_and_of_stations_in_their_time():
    for name, one in METRICS.items():
        assert one.better in ("up", "down", "") and one.meaning
        if name.endswith(("_latency", "_delay")) or name in ("execution_time", "finish_time"):
            assert one.unit == "ns"
        if name.startswith("mean_") and name.endswith("_time"):
            assert one.unit == "time"
    assert metric("hit_ratio[l1]") is METRICS["hit_ratio"]
