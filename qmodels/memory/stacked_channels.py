"""Channels of 3D-stacked memory with two interleaved banks each, and room for so many requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from qmodels import checks
from qmodels.markov.chains.ctmc import CTMC

MOST_STATES = 200_000


@dataclass(frozen=True, kw_only=True, eq=False)
class StackedChannels:
    """Steady state of `stacked_channels`.

    Parameters
    ----------
    throughput : float
        Requests served. [1/time]
    blocking_probability : float
        Requests that find no room.
    mean_response_time, mean_waiting_time : float
        Of those that find room, to the end of the access, and to its start. [time]
    mean_number_in_system : float
        Requests under way.
    interleaved_share : float
        Share of the busy banks whose channel's other bank is busy too.
    """

    throughput: float
    blocking_probability: float
    mean_response_time: float
    mean_waiting_time: float
    mean_number_in_system: float
    interleaved_share: float


def stacked_channels(
    *,
    arrival_rate: float,
    single_rate: float,
    interleaved_rate: float,
    channels: int = 1,
    capacity: int,
) -> StackedChannels:
    r"""Return the steady state of stacked memory whose channels interleave two banks.

    Parameters
    ----------
    arrival_rate : float
        Poisson arrivals. [1/time]
    single_rate : float
        Rate :math:`\mu_1` of a bank whose channel's other bank is idle. [1/time]
    interleaved_rate : float
        Rate :math:`\mu_2` of each of two banks that are busy in one channel. [1/time]
    channels : int
        Channels.
    capacity : int
        Most requests in the system; those that arrive beyond are lost.

    Returns
    -------
    StackedChannels
        Finite whatever the load: requests are lost.

    Raises
    ------
    ValueError
        If a rate is not above 0, a count not a whole number, or the chain has more than `MOST_STATES`
        states.

    Notes
    -----
    A request takes a free bank in a channel that interleaves least, otherwise it waits in one queue
    for the next bank that is free. The chain over (channels with one busy bank, with two, waiting) is
    solved exactly; accesses are exponential.

    References
    ----------
    .. [1] T. Korikawa, A. Kawabata, F. He, E. Oki, "Packet processing architecture using
       last-level-cache slices and interleaved 3D-stacked DRAM", IEEE Access, sec. IV: the banks of a
       channel interleave, a request goes to the channel with the fewest busy banks, at most K
       requests are in the system.

    Examples
    --------
    One channel with equal rates is M/M/2/K:

    >>> q = stacked_channels(arrival_rate=1.0, single_rate=1.0, interleaved_rate=1.0, capacity=2)
    >>> round(q.blocking_probability, 6), round(q.mean_response_time, 6)
    (0.2, 1.0)
    """
    rate = float(checks.positive("arrival_rate", arrival_rate))
    one = float(checks.positive("single_rate", single_rate))
    two = float(checks.positive("interleaved_rate", interleaved_rate))
    size = int(checks.count("channels", channels))
    room = int(checks.count("capacity", capacity))
    states = (size + 1) * (size + 2) // 2 + room
    if states > MOST_STATES:
        raise ValueError(f"channels must give at most {MOST_STATES} states, got {channels!r} with {states}")

    def moves(state: tuple[int, int, int]) -> Iterator[tuple[tuple[int, int, int], float]]:
        single, double, waiting = state
        if single + 2 * double + waiting < room:
            if single + double < size:
                yield (single + 1, double, waiting), rate
            elif single:
                yield (single - 1, double + 1, waiting), rate
            else:
                yield (single, double, waiting + 1), rate
        if waiting:
            yield (single, double, waiting - 1), 2 * double * two
            return
        if single:
            yield (single - 1, double, 0), single * one
        if double:
            yield (single + 1, double - 1, 0), 2 * double * two

    law = CTMC.from_transitions(
        initial_state=(0, 0, 0), transitions=moves, max_states=states + 1
    ).stationary()
    number = law.expected(lambda s: s[0] + 2 * s[1] + s[2])
    lost = law.expected(lambda s: float(s[0] + 2 * s[1] + s[2] == room))
    served = law.expected(lambda s: s[0] * one + 2 * s[1] * two)
    waiting = law.expected(lambda s: s[2])
    busy = law.expected(lambda s: s[0] + 2 * s[1])
    return StackedChannels(
        throughput=float(served),
        blocking_probability=float(lost),
        mean_response_time=float(number / served),
        mean_waiting_time=float(waiting / served),
        mean_number_in_system=float(number),
        interleaved_share=float(law.expected(lambda s: 2 * s[1]) / busy),
    )
