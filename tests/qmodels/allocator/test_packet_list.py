"""Short lists under operations of whole packets: laws of the model, and the model beside the simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from cases.published.paper import published_case
from optimize import replace_fields
from qmodels import solve
from qmodels.allocator.packet_list import independent_heads, packet_list, pattern_heads
from qmodels.systems.packets.data_queueing_traffic import LineRate
from validate import simulate

BASE = published_case("dqm").names["base"]()
CONFLICTS = ("write_conflict_probability", "read_conflict_probability")


@st.composite
def packets(draw):
    sizes = sorted(draw(st.sets(st.integers(1, 9), min_size=1, max_size=4)))
    weights = np.array(draw(st.lists(st.floats(0.1, 1.0), min_size=len(sizes), max_size=len(sizes))))
    return tuple(sizes), tuple((weights / weights.sum()).tolist())


@given(law=packets(), load=st.floats(1.02, 1.6))
def test_what_is_not_lost_is_what_is_read(law, load):
    """In steady overload 1 - 1 / load of the segments are lost, one list or several, whatever the sizes."""
    sizes, offered = law
    found = packet_list(sizes=sizes, offered=offered, largest_other=0, load=load, share=1.0)
    kept = found.stored.sum(axis=0) @ np.arange(found.stored.shape[1])
    assert_allclose(kept / np.dot(sizes, offered), 1 / load, rtol=0.04)  # of some tens of packets counted
    assert_allclose((found.first_after_read + found.first + found.within + found.final).sum(), 1.0)
    assert_allclose(found.stored.sum(axis=1)[list(sizes)], offered, rtol=0.05)
    refused = found.refused(np.array(sizes))
    assert np.all((0 <= refused) & (refused <= 1)) and np.all(np.diff(refused) < 1e-9)


@settings(max_examples=6)
@given(banks=st.integers(2, 16), mean=st.floats(1.5, 8), trials=st.integers(1, 3))
def test_heads_of_short_lists(banks, mean, trials):
    alike = 1 / banks if trials == 1 else 0.02
    heads = pattern_heads(banks=banks, trials=trials, single=0.5, mean=mean, alike=alike, alike_last=alike)
    simple = independent_heads(banks=banks, trials=trials, busy=1)
    assert np.all(np.diff(heads, axis=2) <= 1e-12)
    # The only block there is, just read, is on the busy bank; of no list more heads are tried than it has.
    assert_allclose(heads[1, 1, 1], 1.0)
    assert np.all(heads[:, 1:5][simple[:, 1:5] == 0] == 0)
    if trials == 1:  # without rejections blocks are random
        assert_allclose(heads[0, 1:5, 1], 1 / banks, atol=1e-6)


def test_model_beside_simulation():
    """Within half a point, for the published reading and for what differs from it."""
    changes = [
        {"alloc_trial_count": 1},
        {"alloc_trial_count": 2, "page_control": False},
        {"alloc_trial_count": 4},
        {"alloc_trial_count": 2, "load_factor": 1.1, "banks": 16},
        {"alloc_trial_count": 3, "small_packet_segments": 2, "vms1_size": 3072},
    ]
    for change in changes:
        spec = replace_fields(BASE, change)
        model, simulated = solve(spec), simulate(spec, packets=150_000, replications=2, warm_up=0.4)
        assert not model.validated and not model.error
        for name in CONFLICTS:
            assert abs(model[name] - simulated[name].best) < 0.005, (change, name)
        # Where both lists run dry, which of them loses more wanders slowly.
        for name in ("allocation_failure_probability", "blocking_probability")[: 2 - ("vms1_size" in change)]:
            assert abs(model[name] - simulated[name].best) < 0.003, (change, name)


@pytest.mark.parametrize("change", [{"input_ports": 2}, {"busy_accesses": 2}, {"service": "arrival-order"}])
def test_other_systems_are_doubted(change):
    def doubted(spec):
        return [text for text, where in solve(spec).doubts.items() if "whole packets" in text and where]

    assert doubted(replace_fields(BASE, change)) and not doubted(BASE)
    assert not doubted(replace_fields(BASE, change | {"load_factor": 0.9}))


def test_long_lists_have_conflicts_at_the_first_read_of_a_packet_alone():
    """Below overload trials keep a packet's blocks apart: of its n reads one meets a random bank."""
    spec = replace_fields(BASE, {"alloc_trial_count": 4, "load_factor": 0.9})
    segments, share = spec.traffic.segment_law(64)
    expected = 1 / 8 / float(segments @ share)
    assert isinstance(spec.traffic.arrivals, LineRate)
    assert abs(solve(spec)["read_conflict_probability"] - expected) < 0.003
