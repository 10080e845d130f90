from __future__ import annotations

import pytest
from numpy.testing import assert_allclose

from qmodels.llc import slice_shares
from qmodels.traffic import Zipf


def test_slices_share_all_requests():
    p = Zipf(entries=1000, exponent=1.0).probabilities()
    for hashing in ("modulo", "xor", "mixed"):
        shares = slice_shares(popularity=p, slices=8, hashing=hashing)
        assert_allclose(shares.sum(), 1.0)
        assert shares.shape == (8,)
        assert slice_shares(popularity=p, slices=1, hashing=hashing) == pytest.approx([1.0])


def test_nonsense():
    with pytest.raises(ValueError, match="slices must be a power of two for XOR hashing, got 3"):
        slice_shares(popularity=[1.0], slices=3, hashing="xor")
