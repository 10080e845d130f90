"""A design has one number: alone, in a sweep, in another order, and on a grid."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import qmodels as qm
from optimize import replace_fields
from qmodels import traffic

EQUAL = 1e-9
SIZES = [
    traffic.imix(),
    traffic.bimodal(small=64, large=1518, small_fraction=0.3),
    traffic.fixed(bytes=640),
]
CHOICES: dict[str, Any] = {
    "dram.interleaving_step": st.sampled_from([1, 2, 4, 8, 16, 32]),
    "dram.channels": st.sampled_from([1, 3, 8]),
    "dram.banks": st.sampled_from([2, 4, 8]),
    "free_list.alloc_trial_count": st.integers(1, 8),
    "free_list.small_packet_segments": st.sampled_from([0, 1, 2, 4]),
    "free_list.segments": st.sampled_from([128, 256, 1024, 4_194_304]),
    "free_list.mean_run_length": st.sampled_from([1.0, 8.0, 64.0]),
    "free_list.clock_ghz": st.sampled_from([0.3, 0.5, 1.0]),
    "noc.link_width": st.sampled_from([8, 32]),
    "llc.slices": st.sampled_from([0, 1, 4]),
    "workload.offered_gbps": st.floats(0.5, 60.0),
    "workload.hold_ns": st.sampled_from([0.0, 300.0, 10_000.0]),
}
shared = st.fixed_dictionaries(
    {
        "workload.sizes": st.sampled_from(SIZES),
        "dram.page_policy": st.sampled_from(["open", "closed"]),
        "dram.refresh": st.booleans(),
        "workload.arrivals": st.sampled_from(
            [traffic.Poisson(), traffic.OnOff(on_packets=10, peak_to_mean=3)]
        ),
    }
)
sweeps = st.lists(st.fixed_dictionaries(CHOICES), min_size=2, max_size=5)


def base_of(chosen: Mapping[str, Any]) -> qm.PacketProcessor:
    given_fields = dict(chosen)
    if given_fields.pop("dram.refresh"):
        given_fields |= {"dram.refresh_interval_cycles": 3120, "dram.refresh_cycles": 51}
    return replace_fields(qm.PacketProcessor(), given_fields)


def numbers(result: Any) -> dict[str, Any]:
    """Return all a result says, numbers and words, by name."""
    found = {
        f"{group}: {name}": value
        for group in ("metrics", "latency_parts", "utilization")
        for name, value in getattr(result, group, {}).items()
    }
    said = {
        name: vars(result)[name] for name in ("stable", "bottleneck", "validated") if name in vars(result)
    }
    return found | said


def assert_same(one: Any, many: Any, place: Any, size: tuple[int, ...]) -> None:
    for name, value in numbers(one).items():
        other = np.broadcast_to(numbers(many)[name], size)[place]
        if np.asarray(value).dtype.kind in "fi":
            assert_allclose(other, value, rtol=EQUAL, atol=1e-300, err_msg=name)
        else:
            assert other == value, name


fast = settings(phases=[Phase.generate])
"""A failing sweep is small enough as it is; shrinking it would take minutes."""


@settings(fast, max_examples=12)
@given(shared, sweeps)
def test_a_packet_processor_alone_in_a_sweep_and_in_any_order(
    chosen: dict[str, Any], designs: list[dict[str, Any]]
) -> None:
    base, size = base_of(chosen), (len(designs),)

    def sweep(rows: list[dict[str, Any]]) -> Any:
        return qm.solve(
            replace_fields(base, {name: np.array([row[name] for row in rows]) for name in CHOICES})
        )

    together, reverse = sweep(designs), sweep(designs[::-1])
    for k, design in enumerate(designs):
        alone = qm.solve(replace_fields(base, design))
        assert_same(alone, together, k, size)
        assert_same(alone, reverse, len(designs) - 1 - k, size)


@settings(fast, max_examples=4)
@given(shared, st.fixed_dictionaries(CHOICES))
def test_a_packet_processor_alone_and_on_a_grid(chosen: dict[str, Any], design: dict[str, Any]) -> None:
    base = replace_fields(base_of(chosen), design)
    steps, trials, lists = np.array([1, 4, 16]), np.array([1, 3]), np.array([200, 4096])
    axes = {
        "dram.interleaving_step": steps[:, None, None],
        "free_list.alloc_trial_count": trials[:, None],
        "free_list.segments": lists,
    }
    grid = qm.solve(replace_fields(base, axes))
    for place in np.ndindex(3, 2, 2):
        values = (axis[k].item() for axis, k in zip((steps, trials, lists), place, strict=True))
        alone = qm.solve(replace_fields(base, dict(zip(axes, values, strict=True))))
        assert_same(alone, grid, place, (3, 2, 2))
