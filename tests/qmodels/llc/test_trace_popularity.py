"""Caches of flows: the popularity of a capture's flows."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import qmodels as qm
from qmodels import CacheLevel, read_trace
from qmodels.traffic import MeasuredPopularity
from tests.qmodels.llc.exact_lru import exact_lru_hit_ratios

TRACES = Path(os.environ.get("QMODELS_TRACES", Path(__file__).parents[4] / "shared" / "traces"))
CAPTURE = TRACES / "libtrace-ip-in-mpls.pcap"


@pytest.mark.skipif(not CAPTURE.exists(), reason="no capture")
def test_flows_of_a_capture():
    flows = read_trace(CAPTURE).flows
    law = MeasuredPopularity.from_keys(flows)
    assert law.entries == len(np.unique(flows)) and sum(law.counts) == len(flows)
    p = law.probabilities()
    for lines in (2, 4):
        answer = qm.solve(qm.CacheSystem(popularity=law, shared=CacheLevel(lines=lines)))
        # Few flows: characteristic times are coarse.
        assert_allclose(answer.hit_ratio, p @ exact_lru_hit_ratios(popularity=p, capacity=lines), atol=0.02)


def test_a_trace_without_flows():
    with pytest.raises(ValueError, match="keys must name what was wanted, got None: a trace without addr"):
        MeasuredPopularity.from_keys(None)
