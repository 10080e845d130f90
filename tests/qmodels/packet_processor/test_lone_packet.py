from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels.packet_processor.lone_packet import pass_on, walks

BURST, RECOVERY, PRECHARGE, ACCESS = 10.0, 20.0, 12.5, 30.0


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
    memory = [step, channels, 8, bank_step, 1 << 20, run, BURST, RECOVERY, PRECHARGE, ACCESS, 1.0, spacing, 0]
    found = walks(np.array([memory], dtype=float), count=count, open_page=open_page)
    return found[int(warm), 0].tolist()


def test_one_access_pays_precharge_burst_and_access() -> None:
    assert ends(0.0, 1) == [PRECHARGE + BURST + ACCESS]
    assert ends(0.0, 1, open_page=False) == [BURST + ACCESS]


def test_row_hits_follow_the_recovery_of_the_first() -> None:
    opened = PRECHARGE + BURST + RECOVERY
    expected = [PRECHARGE + BURST + ACCESS] + [opened + k * BURST + ACCESS for k in (1, 2, 3)]
    assert ends(0.0, 4, bank_step=1 << 20) == expected


def test_closed_pages_serialise_on_one_bank_and_overlap_on_several() -> None:
    assert ends(0.0, 3, open_page=False, bank_step=1 << 20) == [
        BURST + ACCESS + k * (BURST + RECOVERY) for k in range(3)
    ]
    assert ends(0.0, 3, open_page=False, bank_step=1) == [BURST + ACCESS + k * BURST for k in range(3)]


def test_open_rows_cost_neither_precharge_nor_recovery() -> None:
    assert ends(0.0, 3, warm=True) == [BURST + ACCESS + k * BURST for k in range(3)]


def test_slow_arrivals_wait_for_nothing() -> None:
    assert_allclose(ends(1000.0, 5, channels=4)[-1], 4000.0 + BURST + ACCESS, rtol=1e-12)


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
