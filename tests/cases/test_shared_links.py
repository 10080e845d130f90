"""Bursts on links that all their packets share, on the way to channels that are few."""

from dataclasses import replace

import pytest

from optimize import replace_fields
from qmodels import PacketProcessor, solve
from qmodels.traffic import OnOff, bimodal, imix
from validate import simulate


@pytest.mark.parametrize(
    ("sizes", "mean", "tail"),
    [(imix(), 0.3, 0.3), (bimodal(small=64, large=1518, small_fraction=0.3), 0.3, 0.35)],
)
def test_latency_where_narrow_links_are_fullest(sizes, mean, tail):
    """Without these links the mean was 35 and 54 % too low, the 99th percentile 55 and 67 %.

    With the bursts of stores at their full work it is 34 and 29 % too high here (4 % before), where it is 8 %
    off on 15 drawn designs whose links are fullest (28 % before).
    """
    fields = {"noc.link_width": 8, "dram.channels": 3, "dram.interleaving_step": 4, "llc.slices": 4}
    narrow = replace_fields(PacketProcessor(), fields)
    bursts = OnOff(on_packets=8, peak_to_mean=3.0)
    narrow = replace(narrow, workload=replace(narrow.workload, sizes=sizes, arrivals=bursts))
    gbps = narrow.workload.offered_gbps * 0.7 / float(solve(narrow).bottleneck_load)
    narrow = replace(narrow, workload=replace(narrow.workload, offered_gbps=gbps))
    answer, run = solve(narrow), simulate(narrow, packets=12_000, replications=5, saturation=False)
    assert answer.bottleneck == "request links"
    for name, error in (("packet_latency", mean), ("packet_latency_p99", tail)):
        found = run.metrics[name]
        noise = (found.high - found.low) / 2 / found.best
        assert abs(float(answer.metrics[name]) / found.best - 1.0) < error + noise, name
