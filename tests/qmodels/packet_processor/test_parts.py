"""Parts of the model where they are queues of the textbook, shares of paths, or integrals done otherwise."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels import dram
from qmodels.laws import Deterministic, Empirical
from qmodels.noc import Router, Topology
from qmodels.packet_processor import memory, ring
from qmodels.packet_processor import numbers as z
from qmodels.packet_processor.controller_stream import follow, numbers
from qmodels.packet_processor.link_waits import FRACTIONS, blocking_factors, blocking_nodes, link_shares
from qmodels.packet_processor.lone_packet import pass_on, walks
from qmodels.packet_processor.meeting import POINTER_WAIT, SLICE_WAIT, TRIAL_ACCESSES, wait_elsewhere
from qmodels.packet_processor.trials import conflicts, crossings
from qmodels.packet_processor.trials.conflicts import chain
from qmodels.packets import ProcessorNoc
from qmodels.queues import md1, mg1

RATE, BURST, OPENING = 0.01, 10.0, 30.0


def design(**changes: float) -> np.ndarray:
    """Return the numbers of a design: packets of one segment, one channel, nothing looked up."""
    found = np.zeros(z.RESPONSES + 12)
    one = (
        "MEAN",
        "SQUARE",
        "ENGINES",
        "CHANNELS",
        "BANKS",
        "PLACES",
        "STEP",
        "TRAINS",
        "LONG",
        "ROWS",
        "TRIALS",
    )
    for name in one:
        found[getattr(z, name)] = 1.0
    found[[z.BURST, z.OPENING, z.IN_ROW]] = BURST, OPENING, 32.0
    for name, value in changes.items():
        found[getattr(z, name)] = value
    return found


ONE = np.array([[1.0], [1.0]])
"""Sizes: one segment."""


def test_a_bank_that_is_opened_for_each_access_is_a_queue() -> None:
    """Half of the accesses are reads, which come any time; the wait behind all of them, for their part."""
    one = design(PLACES=4.0)
    opened, hit = memory.train_areas(one)
    wait = memory.bank_wait(RATE, one, 1.0, 1.0, opened, hit, 1.0)
    whole = md1(arrival_rate=2 * RATE / 4, service_rate=1 / OPENING).mean_waiting_time
    assert_allclose(wait, whole / 2)
    warm = memory.bank_wait(RATE, one, 0.0, 0.0, opened, hit, 1.0)
    assert_allclose(warm, md1(arrival_rate=2 * RATE / 4, service_rate=1 / BURST).mean_waiting_time / 2)
    assert memory.bank_wait(RATE, one, 0.5, 0.5, opened, hit, 2.0) > wait / 2


def test_single_accesses_of_many_banks_queue_for_the_bus() -> None:
    many = design(BANKS=1e9)
    wait, _, longer, _, _ = memory.bus_waits(RATE, many, ONE, 1.0)
    assert_allclose(wait, md1(arrival_rate=2 * RATE, service_rate=1 / BURST).mean_waiting_time, rtol=1e-6)
    assert_allclose(longer, 1 / (1 - 2 * RATE * BURST), rtol=1e-6)
    _, write, _, reads, _ = memory.bus_waits(RATE, many, ONE, 1.0)
    assert_allclose(write, md1(arrival_rate=RATE, service_rate=1 / BURST).mean_waiting_time)
    assert_allclose(reads, 1 / (1 - RATE * BURST))


def test_packets_of_one_segment_queue_for_an_engines_links() -> None:
    one = design(SEGMENT=20.0, REQUEST=4.0, ENGINES=2.0, MISSES=1.0)
    wait, load = ring.come_to_engine(RATE, one)
    assert_allclose(load, RATE / 2 * 2 * 20)
    assert_allclose(wait, md1(arrival_rate=RATE, service_rate=1 / 20).mean_waiting_time)
    wait, load = ring.leave_engine(RATE, one, 0.0)
    law = Empirical(values=[20.0, 4.0], weights=[1.0, 2.0])
    assert_allclose(load, RATE / 2 * (20 + 2 * 4))
    assert_allclose(wait, mg1(arrival_rate=3 * RATE / 2, service=law).mean_waiting_time)


def test_more_reads_of_a_visit_keep_its_bank_longer_by_a_turn_on_the_bus_each() -> None:
    """The first one as long as a lookup where it opens its row, else shorter by the opening."""
    one, o = design(REQUEST=4.0, SEGMENT=20.0), np.zeros(ring.REST + 1)
    o[ring.INJECT_WAIT], o[ring.BUS_WAIT], o[ring.BUS_OTHERS] = 7.0, 3.0, 0.5
    reads = SimpleNamespace(reads=np.array([[1.0, 2.0, 5.0]]))
    for opens in (1.0, 0.25):
        o[ring.READ_OPENS], busy = opens, np.zeros(3)
        ring.keep_busy(0, one, reads, o, busy, 11.0)
        assert_allclose(o[ring.LOOKUP], 7 + 4 + 11 + OPENING + 3)
        assert_allclose(busy[0], o[ring.LOOKUP] - (1 - opens) * (OPENING - BURST))
        assert_allclose(np.diff(busy), np.array([1.0, 3.0]) * 2 * BURST)  # others have half of the bus
    o[ring.BUS_WAIT] = 1e12
    ring.keep_busy(0, one, reads, o, busy, 11.0)
    assert busy.tolist() == [1e9] * 3


@pytest.mark.parametrize("small", [0.0, 2.0])
def test_operations_queue_for_the_pointer_memory_and_lookups_for_a_slice(small: float) -> None:
    """Packets of 2 and 6 segments: stored, and drained, in times that differ."""
    sizes = np.array([[2.0, 6.0], [0.75, 0.25]])
    one = design(
        MEAN=3.0, SMALL=small, SMALL_PART=0.5 * (small > 0), POINTER=2.0, ENQUEUE=1.0, DEQUEUE=1.0,
        ENQUEUE_PACKET=2.0, DEQUEUE_PACKET=3.0, SLICES=2.0, SLICE_TIME=8.0, LOOKUPS=3.0,
    )  # fmt: skip
    o, out = np.zeros(ring.REST + 1), np.zeros(SLICE_WAIT + 1)
    o[ring.ACCESSES] = out[TRIAL_ACCESSES] = 1.0
    wait_elsewhere(RATE, one, sizes, o, out)
    returned = small > 0
    times = [2 * (2 + 4), 2 * (2 + 12), 2 * (3 + 2 + returned), 2 * (3 + 6)]
    law = Empirical(values=np.array(times, dtype=float), weights=[0.75, 0.25, 0.75, 0.25])
    # The mean over both kinds of operations, each as long as it is on average, and their variances.
    exact = mg1(arrival_rate=2 * RATE, service=law).mean_waiting_time
    assert_allclose(out[POINTER_WAIT], exact)
    slices = mg1(arrival_rate=3 * RATE / 2, service=Deterministic(mean=8.0))
    assert_allclose(out[SLICE_WAIT], slices.mean_waiting_time)


def test_trials_with_closed_pages_against_every_sequence_of_them() -> None:
    """The first block is rejected with one probability, each later one with another; the last is taken."""
    for trials in (1, 2, 4):
        one, first = design(TRIALS=trials, AGAIN=0.3), 0.4
        again = 0.3 + 0.7 * first
        law, taken = {}, 0.0
        for rejected in range(trials):
            reached = 1.0 if not rejected else first * again ** (rejected - 1)
            end = 1.0 if rejected == trials - 1 else 1 - (again if rejected else first)
            # Of several blocks examined the one that is kept is accessed once more.
            law[rejected + 1 + (rejected > 0)] = reached * end
            taken = reached * (again if rejected else first)
        mean = sum(n * p for n, p in law.items())
        variance = sum(n * n * p for n, p in law.items()) - mean**2
        assert_allclose(sum(law.values()), 1.0)
        assert_allclose(chain(one, first), (mean, variance, taken), atol=1e-14)


def test_visits_lie_apart_as_chunks_do() -> None:
    """Of n segments in chunks of c the last chunk begins (n / c - 1) c segments after the first."""
    for n, chunk in ((12.0, 4.0), (12.0, 1.0), (12.0, 12.0), (1.0, 1.0)):
        assert crossings.visit_span(design(CHUNK=chunk), n, n / chunk) == pytest.approx(n - chunk)
    assert crossings.visit_span(design(CHUNK=100.0), 12.0, 1.5) == pytest.approx(4.0)  # not beyond the packet


def test_what_crosses_against_an_integral_over_the_difference_of_the_ways() -> None:
    """Times that begin at most x, and not more than so long before, with a Laplace difference."""
    y = np.linspace(-400.0, 400.0, 400_001)
    density = np.exp(-np.abs(y) / 7.0) / 14.0

    def mean(of: np.ndarray) -> float:
        return float(np.trapezoid(of * density, y))

    for x in (-9.0, 0.0, 3.0, 40.0):
        excess, over = crossings.beyond(x, 7.0)
        assert_allclose(excess, mean(np.maximum(x + y, 0.0)), rtol=1e-5)
        if x:
            assert_allclose(over, mean(x + y > 0), rtol=1e-3)
        inside = mean(np.clip(x + y, 0.0, 5.0)) + 2.5 * mean((x + y > 0) & (x + y <= 5.0))
        assert_allclose(crossings.ahead(x, 5.0, 2.5, 7.0), inside, rtol=1e-2)


def test_operations_wait_as_in_mg1() -> None:
    sizes = np.array([[2.0, 6.0], [0.75, 0.25]])
    one = design(POINTER=2.0, DEQUEUE=1.0, ENQUEUE_PACKET=2.0, DEQUEUE_PACKET=3.0)
    law = Empirical(values=[2 * 3 + 4.0, 6 * 3 + 4.0, 10.0, 18.0], weights=[0.75, 0.25, 0.75, 0.25])
    exact = mg1(arrival_rate=2 * RATE, service=law).mean_waiting_time
    assert_allclose(crossings.waiting_operations(RATE, one, sizes, 3.0), exact)


def test_a_bank_is_free_for_an_access_less_often_the_more_others_and_the_longer() -> None:
    one = design(OWN_CUT=0.5, OWN_BEFORE=4.0, PLACES=8.0)
    alone = conflicts.row_miss_bank_free(one, 0.6, 10.0, 0.0, 20.0)
    # Two of the packet's own accesses lie within the time, each cut half the time and on an eighth of places.
    assert alone == pytest.approx(0.6 * np.exp(-0.5 * 0.6 * 2 / 8))
    assert conflicts.row_miss_bank_free(one, 0.6, 10.0, 0.03, 20.0) == pytest.approx(
        alone * np.exp(-0.03 * 20.0)
    )
    # After an access of this packet: its own visit counts if it was not long enough ago.
    assert conflicts.clear_after(0.01, 0.02, 20.0, 30.0, 1.0) == pytest.approx(np.exp(-0.02 * 20))
    assert conflicts.clear_after(0.01, 0.02, 20.0, 10.0, 1.0) == 0.0
    assert conflicts.clear_after(0.01, 0.02, 20.0, 10.0, 0.0) == pytest.approx(np.exp(-0.03 * 20))


def test_a_refresh_closes_the_rows_of_its_rank_alone() -> None:
    """Two ranks in turn, half an interval apart; accesses to one row of a bank of each, again and again."""
    spec = dram("DDR4-3200", ranks=2, t_refi=4000, t_rfc=200)
    times = np.array([100, 1500, 2500, 3500, 4500, 5500])
    arrival, banks = np.repeat(times, 2), spec.geometry.channel_banks
    bank = np.tile([banks // 2 - 1, banks - 1], times.size)
    one = np.zeros(arrival.size, dtype=np.int64)
    _, _, opened = follow(numbers(spec), arrival, bank, one + 1, one)
    first, second = opened.reshape(-1, 2).T.tolist()
    # The first rank is refreshed at 2000, the second one at 4000.
    assert first == [True, False, True, False, False, False]
    assert second == [True, False, False, False, True, False]


KINDS = ["spidergon", "ring", "mesh", "torus"]


@pytest.mark.parametrize("kind", KINDS)
def test_shares_are_those_of_the_paths(kind):
    noc = ProcessorNoc(topology=Topology(kind=kind, nodes=16), initiators=5)
    both = noc.networks(3)
    for shares, table in zip(link_shares(noc.structure, 3), (both.requests, both.responses), strict=True):
        paths = [table.path(k) for k in range(15)]
        for name, share, contention in zip(shares.names, shares.share, shares.contention, strict=True):
            through = [path for path in paths if name in path]
            assert_allclose(share, len(through) / 15)
            before = [path[path.index(name) - 1] if path[0] != name else "" for path in through]
            alike = sum((before.count(one) / len(before)) ** 2 for one in set(before)) if before else 1.0
            assert_allclose(contention, 1.0 - alike, atol=1e-12)
        assert_allclose(shares.mean_links, np.mean([len(path) for path in paths]))
        inputs = {(path[-2], path[-1]) for path in paths}
        assert_allclose(shares.end_inputs, len(inputs) / len({path[-1] for path in paths}))


def test_two_sources_for_one_target():
    noc = ProcessorNoc(topology=Topology(kind="ring", nodes=8), initiators=2)
    shares, _ = link_shares(noc.structure, 1)
    number = shares.names.index("1->2")
    assert shares.share[number] == 1.0
    # Half come from the link before, half from the node's own interface.
    assert shares.contention[number] == 0.5
    assert shares.same_target[number] == 1.0
    assert shares.same_source[shares.names.index("inject 0")] == 1.0


def factors(noc, intensity, *, responses=False, short=0.5):
    values = np.atleast_1d(np.asarray(intensity, dtype=float))
    rows, which, weight = blocking_nodes(
        noc.structure,
        [(4, 5, 1)],
        np.zeros(1, dtype=int),
        responses=responses,
        short_share=np.array([short]),
    )
    found = [[blocking_factors(rows[k], value) for k in which[:, 0]] for value in values]
    return np.einsum("dnf,n->fd", np.array(found), weight[:, 0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("responses", [False, True])
def test_blocking_grows_with_load(kind, responses):
    noc = ProcessorNoc(topology=Topology(kind=kind, nodes=16))
    loads = np.linspace(0.0, 0.9, 10)
    used, between, at_end = factors(noc, loads, responses=responses)
    assert np.all(used >= loads)
    assert_allclose(used / np.maximum(loads, 1e-9), used[-1] / loads[-1] * (loads > 0))
    assert np.all(between >= 1.0) and np.all(np.diff(between) >= 0.0)
    assert np.all(at_end >= 1.0) and np.all(np.diff(at_end) >= 0.0)


def test_less_room_saturates_earlier():
    roomy, narrow = (
        ProcessorNoc(router=Router(virtual_channels=vcs, buffer_flits=flits))
        for vcs, flits in ((4, 32), (2, 4))
    )
    assert factors(narrow, 0.5)[0] > factors(roomy, 0.5)[0]


def test_shares_between_the_nodes_are_interpolated():
    noc = ProcessorNoc()
    low, middle, high = (np.array(factors(noc, 0.4, short=short)) for short in (0.5, 0.55, 0.6))
    assert_allclose(middle, (low + high) / 2)
    assert FRACTIONS[-1] < 1.0


def test_a_buffer_of_one_flit_carries_a_flit_per_credit_loop():
    """Two virtual channels of one flit and a loop of five cycles: two flits in five cycles at most."""
    noc = ProcessorNoc(router=Router(virtual_channels=2, buffer_flits=1))
    assert factors(noc, 0.4)[0] >= 1.0 - 1e-3


BURST_NS, RECOVERY, PRECHARGE, ACCESS = 10.0, 20.0, 12.5, 30.0


def ends(
    spacing: float,
    count: int,
    *,
    warm: bool = False,
    channels: int = 1,
    step: int = 1,
    run: float = np.inf,
    open_page: bool = True,
    bank_step: int = 32,
) -> list[float]:
    """Return when the first 1, 2, ... accesses are done, with 8 banks of one long row each."""
    memory = [
        step,
        channels,
        8,
        bank_step,
        1 << 20,
        run,
        BURST_NS,
        RECOVERY,
        PRECHARGE,
        ACCESS,
        1.0,
        spacing,
        0,
    ]
    found = walks(np.array([memory], dtype=float), count=count, open_page=open_page)
    return found[int(warm), 0].tolist()


def test_one_access_pays_precharge_burst_and_access() -> None:
    assert ends(0.0, 1) == [PRECHARGE + BURST_NS + ACCESS]
    assert ends(0.0, 1, open_page=False) == [BURST_NS + ACCESS]


def test_row_hits_follow_the_recovery_of_the_first() -> None:
    opened = PRECHARGE + BURST_NS + RECOVERY
    expected = [PRECHARGE + BURST_NS + ACCESS] + [opened + k * BURST_NS + ACCESS for k in (1, 2, 3)]
    assert ends(0.0, 4, bank_step=1 << 20) == expected


def test_closed_pages_serialise_on_one_bank_and_overlap_on_several() -> None:
    assert ends(0.0, 3, open_page=False, bank_step=1 << 20) == [
        BURST_NS + ACCESS + k * (BURST_NS + RECOVERY) for k in range(3)
    ]
    assert ends(0.0, 3, open_page=False, bank_step=1) == [BURST_NS + ACCESS + k * BURST_NS for k in range(3)]


def test_open_rows_cost_neither_precharge_nor_recovery() -> None:
    assert ends(0.0, 3, warm=True) == [BURST_NS + ACCESS + k * BURST_NS for k in range(3)]


def test_slow_arrivals_wait_for_nothing() -> None:
    assert_allclose(ends(1000.0, 5, channels=4)[-1], 4000.0 + BURST_NS + ACCESS, rtol=1e-12)


def test_more_channels_are_never_slower_for_fast_arrivals() -> None:
    times = [ends(1.0, 12, channels=c)[-1] for c in (1, 2, 4, 8)]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("service", [1.0, 9.0, 20.0])
def test_a_link_passes_packets_on_in_order_of_arrival(service: float) -> None:
    arrivals, line = np.random.default_rng(1).uniform(0, 50, size=7), np.zeros(7)
    for n, arrival in enumerate(arrivals):
        free = 0.0
        for t in sorted(arrivals[: n + 1]):
            free = max(free, t) + service
        assert pass_on(line, n, arrival, service) == pytest.approx(free, rel=1e-12)
