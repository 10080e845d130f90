from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels.packet_processor.lone_packet import LonePacket, last_delivered, last_of_first

BURST, RECOVERY, PRECHARGE, ACCESS = 10.0, 20.0, 12.5, 30.0


def walk(
    *, channels: int = 1, step: int = 1, run: float = np.inf, open_page: bool = True, bank_step: int = 32
) -> LonePacket:
    fields: dict[str, Any] = {
        "step": step,
        "channels": channels,
        "banks": 8,
        "bank_step": bank_step,
        "row_blocks": 1 << 20,
        "mean_run_length": run,
        "burst": BURST,
        "recovery": RECOVERY,
        "precharge": PRECHARGE,
        "access": ACCESS,
    }
    return LonePacket(
        open_page=open_page, **{name: np.array([float(value)]) for name, value in fields.items()}
    )


def ends(packet: LonePacket, spacing: float, count: int, *, warm: bool = False) -> list[float]:
    done = packet.done(first=np.zeros(1), spacing=np.array([spacing]), count=count, warm=warm)
    return last_of_first(done)[0].tolist()


def test_one_access_pays_precharge_burst_and_access() -> None:
    assert ends(walk(), 0.0, 1) == [PRECHARGE + BURST + ACCESS]
    assert ends(walk(open_page=False), 0.0, 1) == [BURST + ACCESS]


def test_row_hits_follow_the_recovery_of_the_first() -> None:
    opened = PRECHARGE + BURST + RECOVERY
    expected = [PRECHARGE + BURST + ACCESS] + [opened + k * BURST + ACCESS for k in (1, 2, 3)]
    assert ends(walk(bank_step=1 << 20), 0.0, 4) == expected


def test_closed_pages_serialise_on_one_bank_and_overlap_on_several() -> None:
    assert ends(walk(open_page=False, bank_step=1 << 20), 0.0, 3) == [
        BURST + ACCESS + k * (BURST + RECOVERY) for k in range(3)
    ]
    assert ends(walk(open_page=False, bank_step=1), 0.0, 3) == [BURST + ACCESS + k * BURST for k in range(3)]


def test_open_rows_cost_neither_precharge_nor_recovery() -> None:
    assert ends(walk(), 0.0, 3, warm=True) == [BURST + ACCESS + k * BURST for k in range(3)]


def test_slow_arrivals_wait_for_nothing() -> None:
    assert_allclose(ends(walk(channels=4), 1000.0, 5)[-1], 4000.0 + BURST + ACCESS, rtol=1e-12)


def test_more_channels_are_never_slower_for_fast_arrivals() -> None:
    times = [ends(walk(channels=c), 1.0, 12)[-1] for c in (1, 2, 4, 8)]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_link_passes_packets_on_in_order_of_arrival(count: int) -> None:
    rng = np.random.default_rng(1)
    arrival = rng.uniform(0, 50, size=(3, 5, count))
    service = np.array([1.0, 9.0, 20.0])
    slow = np.zeros((3, 5))
    for d in range(3):
        for k in range(5):
            free = 0.0
            for t in sorted(arrival[d, k]):
                free = max(free, t) + service[d]
            slow[d, k] = free
    assert_allclose(last_delivered(arrival, service)[:, -1], slow.mean(axis=1))
