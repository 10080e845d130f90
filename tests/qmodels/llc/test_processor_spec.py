"""The spec of the packet processor with LLC slices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qmodels import LlcProcessor
from qmodels.systems.spec.hashing import stable_hash
from qmodels.systems.spec.text.toml import from_toml, to_toml
from qmodels.traffic import Zipf


def test_published_design():
    spec = LlcProcessor()
    assert (spec.l1_lines, spec.l2_lines, spec.slice_lines.tolist()) == (2, 8, [2] * 28)
    shared, none = (replace(spec, architecture=name) for name in ("shared", "none"))
    assert (shared.llc_slices, shared.slice_lines.tolist()) == (1, [64])
    assert (none.llc_slices, none.slice_lines.tolist()) == (0, [])
    assert spec.gbps(spec.arrival_rate) == pytest.approx(91.75, abs=0.01)


def test_toml_and_hash():
    spec = LlcProcessor(architecture="shared", popularity=Zipf(entries=1000, exponent=0.5))
    assert from_toml(to_toml(spec), LlcProcessor) == spec
    assert stable_hash(spec) == stable_hash(replace(spec, load=0.7)) != stable_hash(replace(spec, load=0.8))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"popularity": None}, "popularity must be a Zipf, got None"),
        ({"line_bytes": 63}, r"line_bytes must be a multiple of entry_bytes \(2\), got 63"),
        ({"l1_bytes": 62}, "l1_bytes must hold a line of 64 bytes, got 62"),
        ({"l2_bytes": 62}, "l2_bytes must hold a line of 64 bytes, got 62"),
        ({"slice_bytes": 62}, "slice_bytes must hold a line of 64 bytes, got 62"),
        ({"architecture": "shared", "llc_bytes": 8}, "llc_bytes must hold a line of 64 bytes, got 8"),
    ],
)
def test_messages(fields, message):
    with pytest.raises(ValueError, match=f"^{message.replace('?', '[?]')}$"):
        LlcProcessor(**fields)


def test_capacities_that_are_not_used_may_be_anything():
    assert LlcProcessor(architecture="none", slice_bytes=1, llc_bytes=1).slice_lines.size == 0


def test_slices_of_different_numbers_of_lines():
    """28 slices of 146 bytes hold 63 whole lines of 64 together, and 2.25 each; one alone is as before."""
    spec = LlcProcessor(whole_lines="total")
    assert spec.slice_lines.tolist() == [3] * 7 + [2] * 21
    assert replace(spec, slice_bytes=128).slice_lines.tolist() == [2] * 28
    for architecture in ("shared", "none"):
        same = (replace(spec, architecture=architecture, whole_lines=whole) for whole in ("slice", "total"))
        assert len({tuple(one.slice_lines.tolist()) for one in same}) == 1
