"""Open traffic through `validate.simulate`: theory where there is one, saturation, the result."""

from dataclasses import replace

import numpy as np
import pytest
from pandas import DataFrame

from qmodels import Noc, crossbar, mesh, ring
from qmodels.noc import (
    PacketClass,
    Router,
    bursts,
    hotspot,
    interleaved,
    permutation,
    rate_matrix,
    uniform,
)
from qmodels.traffic import OnOff
from validate import saturation_rate, simulate
from validate.noc.saturation import overloaded_flows, verdict
from validate.noc.traffic import flow_quantiles, new_meter

NOC = Noc(topology=mesh(3, 3), traffic=uniform(nodes=9), flits_per_packet=3, injection_rate=0.1)
SMALL = {"packets": 1000, "cycles": 2000, "replications": 3}


def alone(*, rate, flits, process="bernoulli"):
    """Return a network in which one node sends, so that it waits for its injection channel only."""
    return Noc(
        topology=mesh(1, 2),
        router=Router(virtual_channels=4, buffer_flits=40),
        traffic=rate_matrix([[0, rate], [0, 0]]),
        flits_per_packet=flits,
        injection_rate=rate,
        process=process,
    )


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(
    ("process", "batch", "utilization"),
    [("bernoulli", -1, 0.7), ("bernoulli", -1, 0.3), ("poisson", 0, 0.6)],
)
def test_a_source_alone_is_the_discrete_queue_of_the_textbook(process, batch, utilization):
    # Geo/D/1: lambda L (L - 1) / (2 (1 - lambda L)); Poisson arrivals are batches in whole cycles:
    # lambda L^2 / (2 (1 - lambda L)), the M/D/1 queue of their moments being the same.
    flits, rate = 5, utilization / 5
    r = simulate(
        alone(rate=rate, flits=flits, process=process), packets=20_000, replications=20, confidence=0.999
    )
    theory = rate * flits * (flits + batch) / (2 * (1 - utilization))
    assert theory in r.source_queue_delay
    assert r.source_queue_delay.relative_half_width < 0.06
    # Nothing else is in its way: two routers, the ends, and the flits behind the first.
    assert r.traversal_delay.best == 3 * 2 + 2 + flits - 1
    assert rate in r.delivered_rate
    assert r.max_utilization.best == pytest.approx(r.delivered_rate.best * flits, rel=1e-3)


def test_bursts_wait_longer_by_their_variability():
    # The M/G/1-like wait of renewal arrivals is at most that of Kingman's bound, and far above Poisson's.
    calm, wild = (
        simulate(alone(rate=0.1, flits=5, process=p), packets=20_000).source_queue_delay.best
        for p in ("poisson", bursts(scv=4.0))
    )
    kingman = (4.0 / 0.1**2) * 0.1 / (2 * (1 - 0.5))
    assert 2 * calm < wild < kingman


def test_a_permutation_without_conflicts_does_not_wait():
    spec = Noc(
        topology=crossbar(6),
        traffic=permutation([1, 2, 3, 4, 5, 0]),
        flits_per_packet=1,
        injection_rate=0.5,
    )
    r = simulate(spec, **SMALL)
    assert r.packet_latency.best == 3 + 2
    assert r.packet_latency.half_width == 0
    assert r.packet_latency_p99.best == pytest.approx(5, rel=0.004)


def test_nearly_no_load_gives_the_latency_of_a_packet_alone():
    spec = replace(NOC, injection_rate=1e-5)
    r = simulate(spec, packets=5000, replications=4, confidence=0.999)
    table = spec.flow_table()
    hops = np.diff(table.paths.start)
    alone = float(np.sum(table.unit_rate * (3 * (hops - 1) + 2 + 2)) / table.unit_rate.sum())
    assert alone in r.packet_latency
    assert r.packet_latency.relative_half_width < 0.03
    assert r.effort["cycles"] > 1e8 / 9  # mostly skipped


def test_flows_and_channels_add_up_to_the_network():
    r = simulate(NOC, flow_quantiles=True, **SMALL)
    flows, channels = DataFrame(r.flows), DataFrame(r.channels)
    assert flows["delivered_rate"].sum() == pytest.approx(r.delivered_rate.best)
    mean = (flows["delivered_rate"] * flows["packet_latency"]).sum() / flows["delivered_rate"].sum()
    assert mean == pytest.approx(r.packet_latency.best)
    assert np.all(flows["packet_latency_p95"] <= flows["packet_latency_p99"])
    assert np.all(flows["packet_latency"] < flows["packet_latency_p99"])
    ejected = channels[channels["name"].str.startswith("eject")]
    # Flits under way at the ends of the measurement make the difference.
    assert ejected["flits"].sum() == pytest.approx(3 * r.delivered_rate.best, rel=0.01)
    assert channels["utilization"].max() == pytest.approx(r.max_utilization.best)
    assert channels.loc[channels["utilization"].idxmax(), "name"] == r.bottleneck
    # Little: flits in buffers are at least one cycle in each.
    inner = channels[~channels["name"].str.startswith("eject")]
    assert np.all(inner["buffer_occupancy"] >= 0)
    assert r.utilization[r.bottleneck] == r.max_utilization


def test_a_mix_of_packets_and_interleaved_addresses_keep_their_shares():
    spec = Noc(
        topology=ring(6),
        traffic=interleaved(initiators=range(4), channels=[4, 5], step=3),
        mix=(PacketClass(payload_bytes=8, share=3.0), PacketClass(payload_bytes=120, share=1.0)),
        injection_rate=0.05,
    )
    r = simulate(spec, packets=4000, replications=4)
    flows = DataFrame(r.flows)
    assert flows.groupby("target")["delivered_rate"].sum().to_numpy() == pytest.approx(0.1, rel=0.05)
    by_class = flows.groupby("packet_class")["delivered_rate"].sum()
    assert by_class[0] / by_class[1] == pytest.approx(3, rel=0.1)
    assert r.bandwidth.best == pytest.approx(0.2 * (0.75 * 8 + 0.25 * 120), rel=0.05)


def test_packets_alternate_over_channels_exactly():
    # One initiator, two channels, step 4, same start: any 8 packets in a row are 4 and 4.
    spec = Noc(
        topology=ring(4),
        traffic=interleaved(initiators=[0], channels=[2, 3], step=4, starts="same"),
        injection_rate=0.02,
    )
    r = simulate(spec, packets=2000, replications=2)
    one, other = (run.sums[0] for run in r.runs)
    assert abs(int(one[0]) - int(one[1])) <= 4
    assert abs(int(other[0]) - int(other[1])) <= 4


def test_too_much_load_is_said_and_gives_no_latency():
    r = simulate(replace(NOC, injection_rate=0.33), packets=4000, replications=4)
    assert (r.verdict, r.stable) == ("saturated", False)
    for name in ("packet_latency", "packet_latency_p95", "source_queue_delay", "traversal_delay"):
        assert r[name].best == float("inf")
    assert 2.0 < r.delivered_rate.best < 0.33 * 9
    assert "overloaded; bottleneck" in repr(r) and "\n  saturated" in repr(r)
    # Not all sources are overloaded: the corners see less of the congestion.
    latencies = DataFrame(r.flows)["packet_latency"]
    assert np.isinf(latencies).any()


def test_only_the_flows_that_wait_without_end_have_no_latency():
    # Two sources share the way to node 2 and are too much for it; the others go elsewhere.
    rates = np.zeros((9, 9))
    rates[0, 2] = rates[3, 2] = 0.7
    rates[8, 7] = 0.1
    traffic = rate_matrix(rates.tolist())
    spec = replace(NOC, flits_per_packet=1, traffic=traffic, injection_rate=traffic.mean_rate)
    r = simulate(spec, packets=4000, replications=4)
    flows = DataFrame(r.flows).set_index("source")["packet_latency"]
    assert not r.stable
    assert flows[8] == 3 * 2 + 2
    assert np.isinf(flows[0])
    assert np.isinf(flows[3])


def test_a_deadlock_is_reported():
    spec = Noc(
        topology=ring(8),
        vc_classes="none",
        router=Router(virtual_channels=1),
        traffic=uniform(nodes=8),
        flits_per_packet=9,
        injection_rate=0.05,
    )
    assert spec.find_deadlock() is not None
    r = simulate(spec, **SMALL)
    assert r.verdict == "deadlocked"
    assert r.packet_latency.best == float("inf")
    assert np.isinf(r.flows["packet_latency"]).all()
    safe = replace(spec, vc_classes="dateline", router=Router(virtual_channels=2), injection_rate=0.02)
    assert simulate(safe, **SMALL).verdict == "stable"


def test_nothing_to_send_is_no_error():
    r = simulate(replace(NOC, injection_rate=0.0), **SMALL)
    assert r.delivered_rate.best == 0
    assert r.short
    assert "too short" in repr(r)


def test_a_hot_node_names_its_channel():
    spec = replace(NOC, traffic=hotspot(nodes=9, spots=[4], fraction=0.5), injection_rate=0.05)
    assert simulate(spec, **SMALL).bottleneck == "eject 4"


def test_relabelling_the_nodes_of_a_ring_changes_the_randomness_alone():
    turned = [[0.0] * 8 for _ in range(8)]
    straight = [[0.0] * 8 for _ in range(8)]
    for node in range(8):
        straight[node][(node + 3) % 8] = 0.1 if node < 4 else 0.05
        turned[(node + 2) % 8][(node + 5) % 8] = 0.1 if node < 4 else 0.05
    one, other = (
        simulate(
            Noc(topology=ring(8), traffic=rate_matrix(m), flits_per_packet=2, injection_rate=0.075),
            packets=10_000,
            replications=16,
            confidence=0.9995,
        ).packet_latency
        for m in (straight, turned)
    )
    assert abs(one.best - other.best) <= one.half_width + other.half_width
    assert one.relative_half_width < 0.02


def test_the_bins_of_a_flow_are_exact_below_64_and_within_2_percent_above():
    from validate.noc.traffic import flow_bin

    for latency in (*range(0, 200), 1000, 12345, 600_000):
        counts = new_meter(1, cycles=1, by_flow=True).flow_counts
        counts[0, flow_bin(latency)] += 1
        (found,) = flow_quantiles(counts, 0.95)
        assert abs(found - latency) <= (0 if latency < 64 else latency / 64)
    assert flow_quantiles(np.zeros((1, counts.shape[1]), dtype=int), 0.5)[0] == np.inf


def test_a_bernoulli_source_cannot_send_more_than_a_packet_per_cycle():
    traffic = rate_matrix([[0, 3.0], [1.0, 0]])
    spec = Noc(topology=mesh(1, 2), traffic=traffic, flits_per_packet=1, injection_rate=0.9)
    with pytest.raises(ValueError, match="at most 1 packet/cycle, got 1.35"):
        simulate(spec, **SMALL)
    assert not simulate(replace(spec, process=OnOff(on_packets=5, peak_to_mean=2)), **SMALL).stable


def test_a_conflict_free_permutation_is_limited_by_its_sources_alone():
    spec = Noc(topology=crossbar(4), traffic=permutation([1, 2, 3, 0]), flits_per_packet=4)
    found = saturation_rate(spec, precision=0.05, replications=2, cycles=4000)
    # Random sources cannot fill a channel quite: a run of finite length takes almost 1 for stable.
    assert found.low >= 0.9 / 4
    assert found.high <= 1 / 4
    below = {verdict for rate, verdict in found.points if rate <= found.low}
    assert "stable" in below and below <= {"stable", "undecided"}


def test_a_congested_ring_carries_less_and_a_mesh_does_not():
    uniform_16 = uniform(nodes=16, self_traffic=True)
    options = {"precision": 0.05, "replications": 3, "cycles": 6000}
    on_ring = saturation_rate(Noc(topology=ring(16), traffic=uniform_16, flits_per_packet=1), **options)
    on_mesh = saturation_rate(Noc(topology=mesh(4, 4), traffic=uniform_16, flits_per_packet=1), **options)
    assert on_ring.metastable
    assert not on_mesh.metastable
    assert on_ring.congested_rate < on_ring.low < on_ring.rate < on_ring.high


def test_one_virtual_channel_and_single_flits_saturate_where_booksim_does():
    # BookSim2 with the one-stage router: 0.668 on the 4x4 mesh, uniform traffic with the own node, by
    # another criterion. Runs of 100,000 cycles pile up from between 0.675 and 0.68 on.
    spec = Noc(
        topology=mesh(4, 4),
        router=Router(virtual_channels=1),
        traffic=uniform(nodes=16, self_traffic=True),
        flits_per_packet=1,
    )
    found = saturation_rate(spec, precision=0.02)
    assert abs(found.rate / 0.668 - 1) < 0.025


def series(waiting, carried):
    """Return what 8 runs of 60 intervals would show, with a little noise."""
    rng = np.random.default_rng(3)
    return [
        np.stack([waiting + rng.integers(0, 3, 60), carried + rng.integers(-2, 3, 60)], axis=1)
        for _ in range(8)
    ]


def test_the_verdict_follows_backlog_and_deliveries():
    time, flat = np.arange(60), np.full(60, 100)
    falls = np.where(time < 8, 120, 100)
    assert verdict(series(5 + 0 * time, flat), deadlocked=False, full=False) == "stable"
    assert verdict(series(50 * time, flat), deadlocked=False, full=False) == "saturated"
    assert verdict(series(50 * time, falls), deadlocked=False, full=False) == "metastable"
    assert verdict(series(5 + 0 * time, flat), deadlocked=True, full=False) == "deadlocked"
    assert verdict(series(5 + 0 * time, flat), deadlocked=False, full=True) != "stable"
    # A packet more or less at the end of a short run is no growth.
    few = [np.stack([np.where(time > 50, 1, 0), np.full(60, 2)], axis=1)] * 2
    assert verdict(few, deadlocked=False, full=False) == "stable"
    # A fall in the deliveries of a network that keeps up means nothing.
    assert verdict(series(5 + 0 * time, falls), deadlocked=False, full=False) == "stable"


def test_a_flow_is_overloaded_if_its_lag_grows_with_time():
    lags = [np.array([[100, 10, 0], [600, 30, 0]]) + k for k in range(4)]
    assert overloaded_flows(lags, [10_000] * 4).tolist() == [True, False, False]
