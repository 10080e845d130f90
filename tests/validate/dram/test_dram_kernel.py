import importlib.util
import sys
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from qmodels import dram
from qmodels.systems.memory.dram_map import Interleaved, bit_fields
from qmodels.systems.memory.dram_system import SPAN
from validate.dram import state as c
from validate.dram.kernel import run_channel
from validate.dram.state import locate, new_books

_SPEC = importlib.util.spec_from_file_location("cycle_twin", Path(__file__).parent / "cycle_twin.py")
twin = importlib.util.module_from_spec(_SPEC)
sys.modules["cycle_twin"] = twin
_SPEC.loader.exec_module(twin)

SMALL = {"t_refi": 0, "t_rfc": 0, "write_high": 5, "write_low": 2}


def accesses(spec, *, rate, count, hits, writes, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(3, size=count) if hits else np.arange(count)
    return {
        "arrival": np.cumsum(rng.exponential(1 / rate, size=count)).astype(np.int64),
        "bank": rng.integers(spec.geometry.channel_banks, size=count),
        "row": rows.astype(np.int64),
        "write": (rng.random(count) < writes).astype(np.int64),
    }


@pytest.mark.parametrize(
    ("changes", "rate", "hits", "writes"),
    [
        ({"page_policy": "closed", "scheduler": "oldest-ready-first"}, 0.08, False, 0.0),
        ({"page_policy": "closed", "ranks": 2}, 0.15, False, 0.3),
        ({"page_policy": "open", "ranks": 2, "banks": 2}, 0.1, True, 0.4),
        ({"page_policy": "open", "groups": 2, "banks": 1, "row_hit_cap": 2}, 0.06, True, 0.0),
        ({"page_policy": "open", "scheduler": "oldest-ready-first", "banks": 1}, 0.08, True, 0.5),
    ],
)
def test_every_latency_is_that_of_a_controller_stepped_cycle_by_cycle(changes, rate, hits, writes):
    spec = dram("DDR4-3200", **(SMALL | changes))
    asked = accesses(spec, rate=rate, count=400, hits=hits, writes=writes, seed=3)
    channel = c.new_channel(spec, **asked, start=0.0)
    run_channel(channel)
    latencies = twin.CycleTwin(spec).run(
        [
            twin.Access(k, int(a), int(b), int(r), bool(w))
            for k, (a, b, r, w) in enumerate(zip(*asked.values(), strict=True))
        ]
    )
    shift = c.batch_shift(400)
    expected = np.zeros((2, channel.sums.shape[1], 2), dtype=np.int64)
    for number, latency in latencies.items():
        expected[asked["write"][number], number >> shift] += (1, latency)
    found = channel.sums[:, :, [c.COUNT, c.LATENCY]]
    assert np.array_equal(found, expected)
    later = [v for k, v in latencies.items() if k >> shift > 0 and not asked["write"][k]]
    assert np.array_equal(np.flatnonzero(channel.counts[0]), np.unique(later))


@pytest.mark.parametrize("scheduler", ["in-order", "fr-fcfs", "oldest-ready-first"])
@pytest.mark.parametrize("policy", ["open", "closed"])
def test_parts_add_up_and_everything_is_served(scheduler, policy):
    spec = dram("DDR4-3200", scheduler=scheduler, page_policy=policy, ranks=2, t_refi=2000, t_rfc=300)
    rate = 0.02 if scheduler == "in-order" else 0.07
    asked = accesses(spec, rate=rate, count=5000, hits=True, writes=0.2, seed=1)
    channel = c.new_channel(spec, **asked, start=0.4)
    run_channel(channel)
    sums = channel.sums.sum(axis=1)
    assert sums[:, c.COUNT].tolist() == np.bincount(asked["write"]).tolist()
    t = spec.timing
    parts = sums[:, [c.ROWS, c.BANK_WAIT, c.SLOT_WAIT, c.BUS_WAIT, c.REFRESH_WAIT]]
    fixed = sums[:, c.COUNT] * np.array([t.cl + t.burst, t.cwl + t.burst])
    assert np.array_equal(parts.sum(axis=1) + fixed, sums[:, c.LATENCY])
    assert (parts >= 0).all() and (sums[:, c.REFRESH_WAIT] > 0).all()
    assert (channel.queues[:, c.HEAD] == -1).all()


def test_a_lone_access_takes_the_sum_of_its_steps():
    spec = dram("DDR4-3200", page_policy="open", t_refi=0, t_rfc=0)
    # A closed bank; another row; the same row: far apart.
    asked = {
        "arrival": np.array([0, 1000, 2000]),
        "bank": np.array([3, 3, 3]),
        "row": np.array([1, 2, 2]),
        "write": np.zeros(3, dtype=np.int64),
    }
    for one in (spec, replace(spec, scheduler="in-order")):
        channel = c.new_channel(one, **asked, start=0.0)
        run_channel(channel)
        t = spec.timing
        assert channel.sums[0, :, c.LATENCY].tolist()[:3] == [
            t.t_rcd + t.cl + t.burst,
            t.t_rp + t.t_rcd + t.cl + t.burst,
            t.cl + t.burst,
        ]
        assert channel.sums[0, :, c.CONFLICTS].sum() == 1


def test_an_access_during_a_refresh_waits_for_its_end():
    spec = dram("DDR4-3200", page_policy="closed")
    t = spec.timing
    asked = {name: np.array([value]) for name, value in (("bank", 0), ("row", 0), ("write", 0))}
    for one in (spec, replace(spec, scheduler="in-order")):
        channel = c.new_channel(one, arrival=np.array([t.t_refi + 100]), **asked, start=0.0)
        run_channel(channel)
        latency = t.t_rfc - 100 + t.t_rcd + t.cl + t.burst
        assert channel.sums[0, :, c.LATENCY].sum() == latency
        assert channel.sums[0, :, c.REFRESH_WAIT].sum() == t.t_rfc - 100


MAPS = [
    *(
        (Interleaved(step=step, bank_step=bank_step, order=order, permute=permute), {"channels": channels})
        for (step, bank_step, channels), order, permute in zip(
            [(1, 1, 1), (4, 1, 8), (32, 128, 64), (3, 5, 6), (2, 64, 3), (7, 1, 12)],
            permutations(("group", "bank", "rank")),
            ("none", "rotate", "xor") * 2,
            strict=True,
        )
    ),
    (
        bit_fields("row:17 rank:1 bank:2 column:5 group:2 channel:3 column:2", xor=("bank^row",)),
        {"channels": 8},
    ),
    (bit_fields("row:14 column:7 bank:2 group:2 rank:1", xor=("group^row", "bank^column")), {}),
]


@pytest.mark.parametrize("number", range(len(MAPS)))
def test_blocks_are_where_the_map_says(number):
    specs = [dram("DDR4-3200", address_map=plan, ranks=2, **changes) for plan, changes in MAPS]
    books, spec = new_books(specs), specs[number]
    rng = np.random.default_rng(number)
    blocks = np.concatenate((np.arange(300), rng.integers(SPAN, size=700), [SPAN + 5]))
    place = spec.address_map.locate(blocks, spec.geometry)
    found = np.array([locate(books, number, int(block)) for block in blocks])
    np.testing.assert_array_equal(found, np.transpose([place.channel, place.bank, place.row]))
    # The blocks are spread over channels and banks: a map that ignores the block would not pass.
    assert np.unique(found[:, 0]).size == spec.geometry.channels
    assert np.unique(found[:, 1]).size == spec.geometry.channel_banks
