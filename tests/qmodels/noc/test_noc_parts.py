"""Parts of the model by themselves: sources, transfers that share links, targets in turn."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq

from qmodels import Noc, crossbar, mesh, ring, spidergon, torus
from qmodels.noc import PacketClass, QosRule, Router, interleaved, uniform
from qmodels.noc import turns as turning
from qmodels.noc.delay_law import delay_quantiles
from qmodels.noc.message_flow import Transfer, even_parts, transfer_rates
from qmodels.noc.solve_noc import solve_noc
from qmodels.noc.turns import by_source, group_turns
from qmodels.noc.waits import _window_variance, smoothness
from qmodels.systems.noc import routes, spec
from qmodels.systems.noc.patterns import RateMatrix
from qmodels.systems.noc.spec import _structure
from qmodels.traffic import OnOff
from validate import simulate


def network(topology, initiators, channels, **fields):
    options = {name: fields.pop(name) for name in ("step", "addresses") if name in fields}
    traffic = interleaved(initiators=initiators, channels=channels, **options)
    return Noc(topology=topology, traffic=traffic, router=Router(virtual_channels=4), **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"topology": torus(3, 5), "ties": "split"},
        {"topology": mesh(3, 5), "routing": "o1turn", "process": OnOff(on_packets=5, peak_to_mean=3)},
        {"topology": spidergon(16), "router": Router(virtual_channels=1)},
        {
            "topology": mesh(4, 4),
            "router": Router(arbitration="priority"),
            "mix": (PacketClass(payload_bytes=8, priority=0), PacketClass(payload_bytes=200, priority=1)),
            "qos": (QosRule(source=3, circuit=True),),
        },
    ],
)  # fmt: skip
def test_a_network_is_the_same_whatever_is_looked_at_together(fields, monkeypatch):
    noc = Noc(**fields, traffic=uniform(nodes=fields["topology"].nodes), injection_rate=0.01)
    found = []
    for hops, pairs in ((routes.PIECE, 0), (7, 3)):
        monkeypatch.setattr(routes, "PIECE", hops)
        monkeypatch.setattr(turning, "PIECE", hops)
        monkeypatch.setattr(spec, "pairs_at_once", lambda *_, pairs=pairs: pairs)
        _structure.cache_clear()
        table = noc.flow_table()
        bursts = noc.process if isinstance(noc.process, OnOff) else None
        turns = group_turns(table, noc.router, rate=table.unit_rate, bursts=bursts)
        hop_by_hop = [table.paths.start, table.paths.channel, table.paths.low, table.paths.high]
        delays = turns.along(np.sqrt(np.arange(turns.source.size)))
        found.append(
            (
                {**vars(table), **vars(turns), "paths": np.concatenate(hop_by_hop), "delays": delays},
                noc.find_deadlock(),
            )
        )
    (whole, circle), (pieces, same_circle) = found
    assert circle == same_circle
    for name, value in whole.items():
        if name != "table":
            close = assert_allclose if np.asarray(value).dtype == float else assert_array_equal
            close(pieces[name], value)


def test_variance_of_the_passes_by_walking_from_every_place():
    passes = np.array([1.0, 1.0, 0.0, 0.5, 0.0])
    found = _window_variance(passes[None, :])[0]
    for n in range(6):
        sums = [sum(passes[(start + k) % 5] for k in range(n)) for start in range(5)]
        assert found[n] == pytest.approx(np.var(sums))


def test_limits():
    noc = network(spidergon(16), range(8), range(8, 16))
    turns = solve_noc(noc).waits.turns
    names = turns.table.channel_names
    light, full = smoothness(turns, np.array([1e-9, 10.0]))
    assert_allclose(light, 1)  # as if at random
    # In the long run an eighth of each source's packets, no more and no less: 1/8 of the variance.
    assert_allclose(full[[names.index(f"eject {k}") for k in range(8, 16)]], 1 / 8, rtol=1e-2)
    assert_allclose(full[[names.index(f"inject {k}") for k in range(8)]], 1)


@pytest.mark.parametrize("options", [{"step": 2}, {"addresses": "random"}])
def test_only_for_one_packet_to_each_in_turn(options):
    noc = network(mesh(4, 4), range(8), range(8, 16), injection_rate=0.03, **options)
    assert_allclose(smoothness(solve_noc(noc).waits.turns, np.array([0.03])), 1)
    plain = network(mesh(4, 4), range(8), range(8, 16), injection_rate=0.03, addresses="random")
    assert solve_noc(noc).packet_latency == solve_noc(plain).packet_latency


def test_in_turn_waits_are_shorter_and_saturation_comes_later():
    for topology in (spidergon(16), mesh(4, 4), crossbar(16)):
        noc = network(topology, range(8), range(8, 16), addresses="random")
        noc = replace(noc, injection_rate=0.9 * solve_noc(noc).saturation_rate)
        one, other = (
            solve_noc(replace(noc, traffic=replace(noc.traffic, addresses=addresses)))
            for addresses in ("sequential", "random")
        )
        # On a Spidergon neighbouring targets share links: short runs there.
        assert one.packet_latency < other.packet_latency * (1.01 if topology.kind == "spidergon" else 1)
        assert one.zero_load_latency == other.zero_load_latency
        assert one.ideal_saturation_rate >= one.saturation_rate >= other.saturation_rate


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(
    ("noc", "rate"),
    [  # largest measured: 5 %; up to 20 % with the waits of random targets
        (network(spidergon(16), range(8), range(8, 16)), 0.05),
        (network(mesh(4, 4), range(8), range(8, 16)), 0.042),
        (network(ring(8), range(4), range(4, 8)), 0.024),
        (network(mesh(6, 6), range(6, 36), range(6), flits_per_packet=4), 0.033),
    ],
)
def test_against_simulation(noc, rate):
    noc = replace(noc, injection_rate=rate)
    result = simulate(noc, packets=6000, replications=4)
    assert result.stable
    assert_allclose(solve_noc(noc).packet_latency, result.packet_latency.best, rtol=0.06)


ONE = Noc(
    topology=crossbar(2),
    traffic=RateMatrix(rates=((0.0, 1.0), (0.0, 0.0))),
    flits_per_packet=5,
    injection_rate=0.12,
    router=Router(virtual_channels=1, buffer_flits=8),
)


def lindley(gaps, service):
    """Mean wait by the recursion."""
    wait, total = 0.0, 0.0
    for gap in gaps:
        wait = max(0.0, wait + service - gap)
        total += wait
    return total / len(gaps)


def test_bernoulli_and_poisson_by_simulation():
    rng = np.random.default_rng(1)
    for process, gaps in (
        ("bernoulli", rng.geometric(0.12, 200_000)),
        ("poisson", rng.exponential(1 / 0.12, 200_000)),
    ):
        answer = solve_noc(replace(ONE, process=process))
        assert_allclose(answer.source_queue_delay, lindley(gaps, 5), rtol=0.02)
        # One flow alone waits nowhere else.
        assert_allclose(answer.traversal_delay, answer.zero_load_latency)


@pytest.mark.parametrize(("packets", "peak", "rate"), [(3.0, 2.0, 0.05), (10.0, 4.0, 0.1), (5.0, 10.0, 0.15)])
def test_bursts_by_simulation(packets, peak, rate):
    law = OnOff(on_packets=packets, peak_to_mean=peak)
    gaps = law.gaps(np.random.default_rng(2), 400_000) / rate
    answer = solve_noc(replace(ONE, process=law, injection_rate=rate))
    assert_allclose(answer.source_queue_delay, lindley(gaps, 5), rtol=0.05)


def test_bursts_near_poisson_are_poisson():
    # Hardly ever OFF.
    law = OnOff(on_packets=50.0, peak_to_mean=1.0001)
    assert_allclose(
        solve_noc(replace(ONE, process=law)).source_queue_delay,
        solve_noc(replace(ONE, process="poisson")).source_queue_delay,
        rtol=1e-3,
    )


def test_priorities_and_circuits_have_queues_of_their_own():
    classes = (PacketClass(flits=5, priority=0), PacketClass(flits=5, priority=1))
    noc = replace(ONE, mix=classes, router=Router(arbitration="priority"))
    waits = solve_noc(noc).flows["source_queue_delay"]
    assert waits[0] < waits[1]
    assert_allclose(waits.mean(), solve_noc(ONE).source_queue_delay)
    circuit = replace(ONE, qos=(QosRule(source=0, circuit=True),))
    assert_allclose(solve_noc(circuit).source_queue_delay, solve_noc(ONE).source_queue_delay)
    with_bursts = replace(noc, process=OnOff(on_packets=4.0, peak_to_mean=3.0))
    assert solve_noc(with_bursts).source_queue_delay > solve_noc(noc).source_queue_delay


def test_quantiles_of_one_flow_and_of_the_mixture_agree():
    answer = solve_noc(ONE)
    assert_allclose(answer.flows["packet_latency_p95"][0], answer.packet_latency_p95, rtol=1e-3)
    assert answer.quantile(0.5) < answer.packet_latency_p95 < answer.packet_latency_p99
    with pytest.raises(ValueError, match="probability must be between 0 and 1, got 1"):
        delay_quantiles(answer.waits, answer.source_delay, None, 1)


def row_path(source: int, target: int) -> tuple[int, ...]:
    """Return the channels between nodes of a row: injection 100 + k, links 2 k (+ 1), ejection 200 + k."""
    step = 1 if target > source else -1
    links = [2 * k + (step < 0) for k in range(source, target, step)]
    return (100 + source, *links, 200 + target)


transfers = st.lists(
    st.builds(
        lambda ends, flits, extra, priority, circuit: Transfer(
            path=row_path(*ends), flits=float(flits), cycles=flits + extra, priority=priority, circuit=circuit
        ),
        st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda ends: ends[0] != ends[1]),
        st.integers(1, 5),
        st.floats(3, 60),
        st.integers(0, 7),
        st.just(False),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda one: one.path[0],
)


@given(some=transfers)
def test_no_channel_carries_more_than_it_can(some):
    rates = transfer_rates(some)
    assert np.all(rates >= 0)
    assert np.all(rates <= [1 / one.cycles * (1 + 1e-12) for one in some])
    for channel in {channel for one in some for channel in one.path}:
        load = sum(r * one.flits for r, one in zip(rates, some, strict=True) if channel in one.path)
        assert load <= 1 + 1e-6


@given(some=transfers, seed=st.integers(0, 99))
def test_the_order_of_the_transfers_does_not_matter(some, seed):
    order = np.random.default_rng(seed).permutation(len(some))
    rates = transfer_rates(some)
    assert transfer_rates([some[k] for k in order]) == pytest.approx(rates[order], rel=1e-6, abs=1e-12)


@given(some=transfers)
def test_a_circuit_does_not_notice_the_others(some):
    circuit = replace(some[0], circuit=True)
    assert transfer_rates([circuit, *some[1:]])[0] == pytest.approx(1 / circuit.cycles)


@given(some=transfers)
def test_the_unit_of_time_does_not_matter(some):
    slower = [replace(one, flits=3 * one.flits, cycles=3 * one.cycles) for one in some]
    assert 3 * transfer_rates(slower, buffer_flits=24) == pytest.approx(transfer_rates(some), rel=1e-9)


def test_alone_nobody_waits():
    assert transfer_rates([Transfer(path=(0, 1), flits=4, cycles=20)])[0] == 1 / 20
    assert transfer_rates([]).size == 0


def test_apart_nobody_waits():
    pair = [Transfer(path=(k, k + 1), flits=4, cycles=20) for k in (0, 10)]
    assert transfer_rates(pair).tolist() == [1 / 20, 1 / 20]


def test_a_full_channel_is_used_up_and_shared_evenly():
    """Ten sources with an input each at the last switch: round robin gives a tenth to each."""
    rates = transfer_rates([Transfer(path=(k, 99), flits=4, cycles=12) for k in range(10)])
    assert rates * 4 == pytest.approx(np.full(10, 0.1), rel=1e-6)


def test_higher_priorities_leave_what_they_do_not_use():
    """Ten at 1/12: the first class asks for more than there is, the others get nothing."""
    first = [Transfer(path=(k, 99), flits=4, cycles=12, priority=0) for k in range(10)]
    rates = transfer_rates([*first, Transfer(path=(50, 99), flits=4, cycles=12)])
    assert np.sum(rates[:10]) * 4 == pytest.approx(1.0, rel=1e-3)
    assert rates[10] < 1e-3
    few = transfer_rates([*first[:1], *(Transfer(path=(k, 99), flits=4, cycles=12) for k in range(20, 29))])
    assert few[0] > 1.5 * few[1]


@given(wanted=st.lists(st.floats(0, 10), max_size=8), room=st.floats(0, 10))
def test_even_parts_are_max_min_fair(wanted, room):
    parts = even_parts(wanted, room)
    assert sum(parts) == pytest.approx(min(room, sum(wanted)))
    short = [part for part, want in zip(parts, wanted, strict=True) if part < want * (1 - 1e-9)]
    # Whoever gets less than it wants gets as much as anybody.
    assert all(part == pytest.approx(max(parts)) for part in short)


def test_two_that_meet_wait_for_the_rest_of_each_other_s_packets():
    """The equation of `transfer_rates`, solved for two alike, and put to two of different priorities."""
    flits, cycles = 10.0, 20.0
    one, other = (Transfer(path=(k, 99), flits=flits, cycles=cycles) for k in range(2))

    def rate(rest: float, before: float = 0.0) -> float:
        return 1 / (cycles + (1 + rest * flits / 2) * rest * flits**2 / 2 / (1 - before * flits))

    alike = brentq(lambda x: rate(x) - x, 0.0, 1 / cycles)
    assert transfer_rates([one, other]) == pytest.approx([alike, alike], rel=2e-3)
    first, second = transfer_rates([replace(one, priority=0), other])
    assert [first, second] == pytest.approx([rate(second), rate(first, first)], rel=2e-3)


def test_inputs_of_a_switch_share_evenly_however_many_transfers_come_by_each():
    """Two from one source get half of the channel together, one from another source the other half."""
    rates = transfer_rates([Transfer(path=(source, 99), flits=4, cycles=5) for source in (0, 0, 1)])
    assert rates * 4 == pytest.approx([0.25, 0.25, 0.5])


@given(
    topology=st.sampled_from(
        [mesh(3, 5), mesh(2, 3, 2), torus(4, 5), torus(4, 3, 3), ring(9), ring(16), spidergon(16)]
    ),
    options=st.sampled_from([{}, {"ties": "split"}, {"routing": "o1turn"}, {"vc_classes": "none"}]),
)
def test_legs_that_flows_share_are_as_good_as_a_leg_for_each(topology, options):
    assume("routing" not in options or topology.kind == "mesh")
    noc = Noc(topology=topology, traffic=uniform(nodes=topology.nodes), injection_rate=0.01, **options)
    table = noc.flow_table()
    inner = table.channel_kind[table.paths.channel] == routes.LINK
    own = replace(
        table.paths,
        legs=np.arange(table.source.size)[None],
        leg_start=np.append(0, np.cumsum(np.diff(table.paths.start) - 2)),
        link=table.paths.channel[inner],
        vc_low=table.paths.low[inner],
        vc_high=table.paths.high[inner],
    )
    whole = replace(table, paths=own)
    assert_array_equal(whole.paths.channel, table.paths.channel)
    assert routes.find_deadlock(whole) == routes.find_deadlock(table)
    one, other = (group_turns(some, noc.router, rate=some.unit_rate) for some in (table, whole))
    for name in ("source", "sink", "packets", "work", "channels", "zero_load", "busy_cycles"):
        assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-15)
    values = np.sqrt(np.arange(one.source.size))
    # By hand: a turn from each channel of a path into the next.
    turn = {ends: k for k, ends in enumerate(zip(one.source.tolist(), one.sink.tolist(), strict=True))}
    paths = np.split(table.paths.channel, table.paths.start[1:-1])
    expected = [
        sum(values[turn[hop]] for hop in zip(path, path[1:], strict=False)) for path in map(list, paths)
    ]
    assert_allclose(one.along(values), expected)
    assert_allclose(other.along(values), expected)
    packets = by_source(table, one.flow_rate)
    assert_allclose(packets, by_source(whole, one.flow_rate), atol=1e-15)
    assert_allclose(packets.sum(axis=0), table.paths.by_channel(one.flow_rate, len(table.channel_names)))


def test_large_networks_take_room_for_flows_and_not_for_hops():
    noc = Noc(topology=ring(256), traffic=uniform(nodes=256), injection_rate=1e-4)
    paths = noc.flow_table().paths
    assert 30 * paths.link.size < paths.hops.sum()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(ValueError, match="flows must ask for at most"):
        patch.setenv("QMODELS_LIMIT", "0.01")
        _ = paths.channel
