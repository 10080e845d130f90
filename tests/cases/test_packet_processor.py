"""The joint case: its bundled workloads and its space of designs."""

from dataclasses import replace

import numpy as np
import pytest

from cases.study.goals import (
    CHOICES,
    DATA,
    WORKLOADS,
    default_processor,
    default_space,
    solved_columns,
)
from optimize import replace_fields
from qmodels import PacketProcessor
from qmodels.noc import Topology
from qmodels.systems.spec.fields import array_fields
from qmodels.systems.spec.text.toml import from_toml
from qmodels.traffic import Workload

TRACE_PACKETS, TRACE_SEED = 6000, 1


def generate_trace() -> str:
    """Return the bundled trace, ``time,bytes``: a realisation of the workload in ``data/trace-source.toml``.

    Times are in seconds, rounded to a nanosecond.
    """
    source = from_toml(DATA / "trace-source.toml", Workload)
    packets = source.packets(np.random.default_rng(TRACE_SEED), TRACE_PACKETS)
    nanoseconds = np.rint(packets.times_ns - packets.times_ns[0]).astype(int)
    rows = [f"{time / 1e9:.9f},{size}" for time, size in zip(nanoseconds, packets.bytes, strict=True)]
    return "\n".join(["time,bytes", *rows]) + "\n"


def test_bundled_trace_is_what_its_generator_makes():
    bundled = (DATA / "small-packets.csv").read_text(encoding="utf-8")
    assert bundled == generate_trace()
    assert len(bundled) < 200_000
    assert bundled.count("\n") == TRACE_PACKETS + 1


@pytest.mark.parametrize("workload", WORKLOADS)
def test_bundled_workloads_keep_up(workload):
    columns = solved_columns(default_processor(workload))
    assert columns["stable"]
    assert 0 < columns["bottleneck_load"] < 1


def test_the_first_workload_is_a_trace_of_smaller_packets():
    small, large = (default_processor(workload).workload for workload in WORKLOADS)
    assert len(small.arrivals.trace) == TRACE_PACKETS
    assert small.sizes.mean_bytes < large.sizes.mean_bytes


def test_workload_must_be_a_bundled_one():
    with pytest.raises(ValueError, match="workload must be one of small-packets, large-packets, got 'huge'"):
        default_processor("huge")


def test_default_space_has_2700_designs():
    space = default_space(PacketProcessor())
    assert space.size == 2700


def test_given_fields_keep_their_values():
    base = replace_fields(PacketProcessor(), {"channels": 5, "link_width": np.array([8, 24])})
    space = default_space(base, given=["channels", "link_width"])
    assert space.choices["channels"] == (5,)
    assert space.choices["link_width"] == (8, 24)
    assert space.choices["slices"] == CHOICES["slices"]


def test_channels_that_find_no_node_are_left_out():
    base = PacketProcessor()
    base = replace(base, noc=replace(base.noc, topology=Topology(nodes=8), initiators=4))
    assert default_space(base).choices["channels"] == (1, 2, 3, 4)


def test_other_fields_must_be_one_number():
    base = replace_fields(PacketProcessor(), {"load_factor": np.array([0.5, 1.0])})
    with pytest.raises(
        ValueError, match="workload.load_factor must be one number in an exploration, got an array of 2"
    ):
        default_space(base)
    assert list(array_fields(base)) == ["workload.load_factor"]
    assert array_fields(default_processor()) == {}
