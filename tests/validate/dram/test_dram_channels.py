"""Channels that are stepped serve every access in the cycle in which a channel that knows them all does."""

import heapq

import numpy as np
import pytest

from qmodels import dram
from validate.dram import state as c
from validate.dram.kernel import NEVER, advance, new_channels, offer, run_channel, take_ended, with_room

CASES = {
    "in order": {"scheduler": "in-order"},
    "in order, closed": {"scheduler": "in-order", "page_policy": "closed", "ranks": 2},
    "oldest ready": {"scheduler": "oldest-ready-first", "ranks": 2},
    "oldest ready, closed": {"scheduler": "oldest-ready-first", "page_policy": "closed"},
    "row hits": {"t_refi": 900, "t_rfc": 200, "ranks": 2, "controller_cycles": 5},
    "row hits, closed": {"page_policy": "closed", "t_refi": 0, "t_rfc": 0},
    "small queues": {"write_high": 3, "write_low": 1, "groups": 2, "banks": 2, "row_hit_cap": 2},
}


def draw(rng, spec, *, rate, count):
    """Accesses in bursts, to few rows."""
    gaps = np.where(rng.random(count) < 0.5, 0, rng.exponential(2 / rate, size=count))
    return {
        "arrival": np.cumsum(gaps).astype(np.int64),
        "bank": rng.integers(spec.geometry.channel_banks, size=count),
        "row": rng.integers(3, size=count),
        "write": rng.integers(2, size=count),
    }


def known_ends(spec, asked, start):
    channel = c.new_channel(spec, **asked, start=start)
    channel = channel._replace(end=np.zeros(len(asked["arrival"]), dtype=np.int64))
    run_channel(channel)
    return channel


class Caller:
    """A caller with a calendar in cycles; places of accesses are used again at once."""

    def __init__(self, channels, capacity):
        self.channels, self.free, self.capacity = channels, list(range(capacity)), capacity
        self.events, self.name, self.ends, self.calls = [], {}, {}, 0

    def expect(self, cycle, k):
        if cycle < NEVER:
            heapq.heappush(self.events, (cycle, 0, k))

    def run(self, asked):
        """Serve the accesses of every channel; an arrival happens after what is due in its cycle."""
        for k, one in enumerate(asked):
            for number, cycle in enumerate(one["arrival"]):
                heapq.heappush(self.events, (int(cycle), 1, k, number))
        while self.events:
            cycle, kind, k, *number = heapq.heappop(self.events)
            if kind == 1:
                self.arrive(cycle, k, number[0], asked[k])
                continue
            self.calls += 1
            self.expect(advance(self.channels, k, cycle), k)
            while (place := take_ended(self.channels, k)) >= 0:
                end = int(self.channels.end[place])
                assert end >= cycle
                self.ends[self.name.pop(place)] = end
                self.free.append(place)

    def arrive(self, cycle, k, number, one):
        if not self.free:
            self.free = list(range(self.capacity, self.capacity + 8))
            self.capacity += 8
            self.channels = with_room(self.channels, self.capacity)
        place = self.free.pop()
        self.name[place] = (k, number)
        bank, row, write = (int(one[name][number]) for name in ("bank", "row", "write"))
        self.expect(offer(self.channels, k, place, bank, row, write, cycle), k)


@pytest.mark.in_ci(4)
@pytest.mark.parametrize("changes", CASES.values(), ids=CASES)
@pytest.mark.parametrize("rate", [0.002, 0.06, 0.3])
def test_every_access_ends_in_the_same_cycle(changes, rate):
    spec = dram("DDR4-3200", **changes)
    asked = draw(np.random.default_rng(7), spec, rate=rate, count=500)
    known = known_ends(spec, asked, 0.3)
    caller = Caller(new_channels([spec], capacity=3, start=0.3), 3)
    caller.run([asked])
    assert [caller.ends[0, k] for k in range(500)] == known.end.tolist()
    assert np.array_equal(caller.channels.sums[0, :, 0], known.sums.sum(axis=1))
    # At most one call for what an access brings, and one for each stretch without an end.
    assert 1 <= caller.calls <= 3 * 500


def test_systems_of_different_kinds_stand_side_by_side():
    specs = [
        dram("DDR4-3200", channels=3),
        dram("HBM2", channels=2, page_policy="closed"),
        dram("gem5-DDR2-800", scheduler="in-order"),
    ]
    each = [spec for spec in specs for _ in range(spec.geometry.channels)]
    rng = np.random.default_rng(1)
    asked = [draw(rng, spec, rate=0.05, count=120) for spec in each]
    asked[1] = {name: values[:0] for name, values in asked[1].items()}
    caller = Caller(new_channels(specs, capacity=4, start=0.8), 4)
    caller.run(asked)
    for k, (spec, one) in enumerate(zip(each, asked, strict=True)):
        ends = [caller.ends[k, number] for number in range(len(one["arrival"]))]
        assert ends == known_ends(spec, one, 0.8).end.tolist()
    assert caller.channels.clock[1, c.NOW] == 0


def test_a_lone_access_is_advanced_twice_and_an_idle_channel_never():
    spec = dram("DDR4-3200", channels=64, page_policy="closed", t_refi=0, t_rfc=0)
    t = spec.timing
    channels = new_channels([spec], capacity=1, start=0.0)
    first = offer(channels, 63, 0, 5, 17, 0, 1000)
    assert first == 1000 + min(t.cl, t.cwl) + t.burst
    # A row has to be opened first: the next call is asked for when the data may be there.
    second = advance(channels, 63, first)
    assert second == 1000 + t.t_rcd + min(t.cl, t.cwl) + t.burst
    assert take_ended(channels, 63) == -1
    assert advance(channels, 63, second - 1) == NEVER and take_ended(channels, 63) == -1
    assert advance(channels, 63, second) == NEVER and take_ended(channels, 63) == 0
    assert channels.end[0] == 1000 + t.t_rcd + t.cl + t.burst
    assert take_ended(channels, 63) == -1 and not channels.clock[:63, c.NOW].any()


def test_an_access_comes_no_earlier_than_the_channel_was_advanced():
    spec = dram("DDR4-3200", t_refi=0, t_rfc=0, page_policy="closed")
    t = spec.timing
    channels = new_channels([spec], capacity=2, start=0.0)
    offer(channels, 0, 0, 0, 0, 0, 10)
    advance(channels, 0, 500)
    offer(channels, 0, 1, 1, 0, 0, 499)
    assert channels.arrival[1] == 500
    advance(channels, 0, NEVER)
    assert channels.end.tolist() == [10 + t.t_rcd + t.cl + t.burst, 500 + t.t_rcd + t.cl + t.burst]
