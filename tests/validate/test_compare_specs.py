from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import qmodels as qm
from optimize import find_field, replace_fields
from qmodels import CacheLevel, JobClass, Noc, PacketProcessor, QueueingNetwork, Station, dram
from qmodels.laws import Exponential
from qmodels.noc import PacketClass
from qmodels.systems.spec.fields import points_of, swept_fields, takes_array, varied_fields
from validate import compare

NETWORK = QueueingNetwork(
    stations=[
        Station(name="cpu", service=Exponential(mean=1.0)),
        Station(name="disk", service={"job": Exponential(mean=2.0)}, servers=2),
    ],
    classes=JobClass(population=3),
    routing={"cpu": "disk", "disk": "cpu"},
)


@dataclass(frozen=True, kw_only=True)
class Left:
    width: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Right:
    width: float = 2.0


@dataclass(frozen=True, kw_only=True)
class Named:
    name: str
    width: float


@dataclass(frozen=True, kw_only=True)
class Both:
    left: Left = field(default_factory=Left)
    right: Any = field(default_factory=Right)

    def __post_init__(self):
        if isinstance(self.right, Right) and self.left.width + self.right.width > 10:
            raise ValueError("too wide")


def test_paths_and_unique_ends():
    assert find_field(PacketProcessor(), "load_factor") == "workload.load_factor"
    assert find_field(Both(), "left.width") == "left.width"
    assert find_field(NETWORK, "disk.servers") == "stations.disk.servers"
    with pytest.raises(ValueError, match="'width' is ambiguous: it may be left.width or right.width"):
        find_field(Both(), "width")
    with pytest.raises(
        ValueError, match="Both has no field 'with'; did you mean 'left.width' or 'right.width'"
    ):
        find_field(Both(), "with")


def test_replaced_fields_reach_their_part_once():
    assert replace_fields(Both(), {"left.width": 9.0, "right.width": 1.0}).right.width == 1.0
    with pytest.raises(ValueError, match="too wide"):
        replace_fields(Both(), {"left.width": 9.0})


def test_parts_of_tuples_by_name_or_number():
    changed = replace_fields(NETWORK, {"stations.cpu.servers": 3, "stations.disk.service.0.1.mean": 5.0})
    assert changed.stations[0].servers == 3 and changed.stations[1].servers == 2
    assert changed.service_law(1, 0) == Exponential(mean=5.0)


def test_names_of_parts_may_have_dots_and_repeat():
    stations = [Station(name=name, service=Exponential(mean=1.0)) for name in ("disk.0", "disk.1")]
    routing = {"disk.0": "disk.1", "disk.1": "disk.0"}
    network = QueueingNetwork(stations=stations, classes=JobClass(population=3), routing=routing)
    assert replace_fields(network, {"stations.disk.1.servers": 2}).stations[1].servers == 2
    assert find_field(Noc(mix=(PacketClass(flits=1), PacketClass(flits=2))), "mix.1.flits") == "mix.1.flits"
    pair = Both(right=(Named(name="a", width=1.0), Named(name="a", width=2.0)))
    assert replace_fields(pair, {"right.1.width": 5.0}).right == (pair.right[0], Named(name="a", width=5.0))


def test_the_names_are_those_of_the_fields_in_which_specs_differ():
    specs = [
        replace_fields(NETWORK, {"cpu.service.mean": m, "population": n}) for m, n in ((1.0, 3), (2.0, 4))
    ]
    columns = varied_fields(specs)
    assert len(columns) == 2
    rows = [{name: values[k] for name, values in columns.items()} for k in range(2)]
    assert [replace_fields(NETWORK, row) for row in rows] == specs


def test_array_fields_make_points():
    spec = replace_fields(PacketProcessor(), {"load_factor": np.array([[0.5], [1.0]]), "link_width": [8, 16]})
    assert set(swept_fields(spec)) == {"workload.load_factor", "noc.link_width"}
    rows, specs = points_of(spec)
    assert [(one.workload.load_factor, one.noc.link_width) for one in specs] == [
        (0.5, 8),
        (0.5, 16),
        (1.0, 8),
        (1.0, 16),
    ]
    assert rows[1] == {"workload.load_factor": 0.5, "noc.link_width": 16}
    assert takes_array(spec, "load_factor") and not takes_array(spec, "segment_bytes")


CACHES = qm.CacheSystem(cores=2, private=(CacheLevel(lines=64),), shared=CacheLevel(lines=512, slices=4))


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(
    ("spec", "options", "metric", "error"),
    [
        (dram("DDR4-3200"), {"accesses": 20_000, "replications": 2}, "read_latency", 0.02),
        (CACHES, {"requests": 200_000, "replications": 2}, "hit_ratio[llc]", 0.01),
        (qm.LlcProcessor(), {"requests": 50_000, "replications": 2}, "response_latency", 0.03),
        (qm.NumaMachine(), {"replications": 2}, "execution_time", 0.002),
        (qm.WorkQueues(), {"replications": 4}, "execution_time", 0.03),
    ],
)
def test_every_metric_has_a_row_and_the_main_one_agrees(spec, options, metric, error):
    answer, comparison = qm.solve(spec), compare(spec, **options)
    only_model = spec.metric_names.model if hasattr(spec, "metric_names") else ()
    assert set(comparison.rows) == set(answer.metrics) - set(only_model)
    assert comparison.rows[metric].model == answer.metrics[metric]
    assert abs(comparison.rows[metric].relative_error) < error
    assert comparison.rows[metric].unit == answer.units[metric]
