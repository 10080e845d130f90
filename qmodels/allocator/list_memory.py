"""A free list that remembers: its head after blocks were rejected and packets returned."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.allocator.list_chain import PacketRules, steady_heads
from qmodels.allocator.trial_states import TrialRules
from qmodels.checks import FloatArray, IntArray
from qmodels.systems.packets.free_list import RETURN_ORDERS, allocation_accesses

ALLOCATIONS = 2**21
"""Allocations counted: a probability of .001 has a standard error of some 2 %."""
TURNS = 16
"""Times that the list is used up before counting begins."""
FREE = 8192
"""Free blocks of the list, at least: longer lists give the same."""
SEED = 1
"""All lists meet the same random numbers, so that differences between lists are known better than either."""
TOGETHER, AS_READ = (RETURN_ORDERS.index(order) for order in ("together", "as-read"))


@lru_cache(maxsize=4096)
def path_heads(
    *,
    banks: int,
    trials: int,
    busy: int,
    law: tuple[tuple[int, ...], tuple[float, ...]],
    other_access: float,
    other_packet: float,
    read_last: float,
    access_within: float,
    order: int,
    readers: int,
) -> tuple[FloatArray, float]:
    """Return the probability of 0, 1, ... busy heads in turn, and of a block on the bank of the one before.

    ``order``: place of the return order in `RETURN_ORDERS`; the other arguments are those of `free_list`.
    """
    from qmodels.allocator.path_kernel import follow

    sizes, cumulative = np.array(law[0]), np.cumsum(law[1])
    mean = float(sizes @ np.array(law[1]))
    # In the mean over all gaps there are as many other accesses as ``other_access`` says.
    own = (1.0 - other_packet) * (1.0 - 1.0 / mean)
    between = min(max((other_access - own * access_within) / (1.0 - own), 0.0), 1.0) if own < 1 else 0.0
    free = -(-max(FREE, 8 * int(sizes[-1]) + trials) // banks) * banks
    rng = np.random.default_rng(SEED)
    heads, near, pairs = follow(
        rng.integers(0, 2**63, 1).astype(np.uint64),
        rng.permutation(2 * free) % banks,
        banks,
        trials,
        busy,
        sizes,
        cumulative,
        access_within if other_access > 0 else 0.0,
        between,
        other_packet,
        read_last if other_access > 0 else 0.0,
        order,
        readers if order == AS_READ else 1,
        round(free / mean),
        TURNS * free,
        ALLOCATIONS,
    )
    return heads / ALLOCATIONS, near / max(pairs, 1)


MOST_WINDOW = 2
"""Most later accesses of a busy bank for which the chain is solved: its states grow by a factor of ten with
each."""
MOST_TRIALS = 6
"""Most trials that the chain follows; what is beyond goes on geometrically."""
VALIDATED_TRIALS = 5
LEAST_ACCESS = 0.15
"""Chance of other accesses from which another packet's blocks may lie between some of a packet."""
WITHIN_BAR = "taken_busy_probability within 5 % or 5e-4 of simulation"
BEYOND_BAR = f"taken_busy_probability not compared with simulation beyond {VALIDATED_TRIALS} trials"


@dataclass(frozen=True, kw_only=True, eq=False)
class FreeListResult:
    """Conflicts and costs of an allocation from a free list with trials.

    Parameters
    ----------
    alloc_trial_count : int or ndarray
        Most blocks examined, of each design.
    busy_heads : ndarray
        Probability that the first k blocks examined are all on busy banks, for k = 0, 1, ... along
        the last axis; 0 for k beyond a design's trials.
    adjacent_probability : float or ndarray
        Probability that a block of a packet is on the bank of that packet's block before it.
    validated : bool or ndarray of bool
        Whether the probability of a busy bank was found within 5 %, or 5e-4, of simulation for such a list.
    """

    alloc_trial_count: Any
    busy_heads: FloatArray
    adjacent_probability: Any
    validated: Any

    @property
    def error(self) -> str:
        """Measured error of `taken_busy_probability`, signed, for the least certain design."""
        return WITHIN_BAR if np.all(self.validated) else BEYOND_BAR

    @property
    def taken_busy_probability(self) -> Any:
        """Probability that the block taken in the end is on a busy bank."""
        last = np.asarray(self.alloc_trial_count)[..., None]
        return np.take_along_axis(self.busy_heads, last, axis=-1)[..., 0][()]

    @property
    def rejected_pmf(self) -> FloatArray:
        """Probability of 0, 1, ... rejected blocks, along the last axis."""
        tried = np.arange(self.busy_heads.shape[-1]) < np.asarray(self.alloc_trial_count)[..., None]
        reached = np.where(tried, self.busy_heads, 0.0)
        return np.asarray(reached[..., :-1] - reached[..., 1:])

    @property
    def mean_rejected(self) -> Any:
        """Mean number of head blocks pushed to the tail."""
        return (self.rejected_pmf @ np.arange(self.busy_heads.shape[-1] - 1))[()]

    @property
    def mean_accesses(self) -> Any:
        """Mean pointer-memory accesses of an allocation."""
        return (self.rejected_pmf @ self._accesses)[()]

    @property
    def accesses_variance(self) -> Any:
        """Variance of the pointer-memory accesses of an allocation."""
        pmf = self.rejected_pmf
        return np.maximum(pmf @ self._accesses**2 - (pmf @ self._accesses) ** 2, 0.0)[()]

    @property
    def accesses_pmf(self) -> FloatArray:
        """Probability of 0, 1, 2, ... pointer-memory accesses of an allocation, along the last axis."""
        pmf = self.rejected_pmf
        spread = np.zeros((*pmf.shape[:-1], int(self._accesses.max()) + 1))
        spread[..., self._accesses.astype(int)] = pmf
        return spread

    @property
    def _accesses(self) -> FloatArray:
        rejected = np.arange(self.busy_heads.shape[-1] - 1)
        return np.array([allocation_accesses(int(k)) for k in rejected], dtype=float)


def free_list(
    *,
    banks: npt.ArrayLike,
    alloc_trial_count: npt.ArrayLike,
    busy_accesses: npt.ArrayLike = 1,
    segments: npt.ArrayLike = (1,),
    probability: npt.ArrayLike = (1.0,),
    other_access: npt.ArrayLike = 0.0,
    other_packet: npt.ArrayLike = 0.0,
    read_last: npt.ArrayLike = 0.0,
    access_within: npt.ArrayLike | None = None,
    return_order: str = "together",
    readers: int = 4,
) -> FreeListResult:
    r"""Steady state of a FIFO free list whose head goes to the tail while its bank is busy.

    A bank is busy during the next ``busy_accesses`` accesses after one. An allocation examines at
    most ``alloc_trial_count`` head blocks: those on busy banks go to the tail, the last one is
    taken whatever its bank. Packets are stored block by block and leave in an order that has nothing to
    do with that in which they were stored.

    Parameters
    ----------
    banks : array_like of int
        Banks, at least 1.
    alloc_trial_count : array_like of int
        Most blocks examined, at least 1.
    busy_accesses : array_like of int
        Later accesses during which a bank stays busy, at least 0. [accesses]
    segments, probability : array_like, one-dimensional
        Blocks of a packet (ascending) and the probability of each. [blocks]
    other_access : array_like
        Probability that an access to a random bank (a read) follows an allocation before the next.
    other_packet : array_like
        Probability that a block of another packet is allocated between two of a packet.
    read_last : array_like
        Probability that the access right before the first allocation after a packet's return was the
        read of its last block. Counts only where ``other_access`` is positive.
    access_within : array_like, optional
        ``other_access`` between two blocks of a packet that no other packet's block lies between, where
        this differs from the mean: an input that writes alone leaves more time for reads. Counts only
        where ``other_access`` is positive.
    return_order : {"together", "as-read", "random"}
        How the blocks of a packet return to the tail: in one piece and in their order, one by one as they are
        read, or in one piece in random order.
    readers : int
        Packets that are read at once, a block of each in turn. Counts only for blocks that return as read.

    Returns
    -------
    FreeListResult
        Of the broadcast shape of the arguments other than ``segments`` and ``probability``.

    Raises
    ------
    ValueError
        If an argument is out of range.
    RuntimeError
        If the fixed point is not reached.

    Notes
    -----
    What stands at the head was put at the tail one turn of the list ago, by the same rules: the
    blocks rejected while a packet was stored, one after another, and then a whole packet's
    blocks. Both come from histories of their own; with :math:`w` the banks of the last accesses
    then and :math:`s` the trials so far, the writer's next bank has a law
    :math:`Q(\cdot \mid w, s)`. The reader meets what the writer rejected, or what he took. The
    joint chain of the two, in which banks matter only as equal or not, gives the reader's law of
    the next bank; that it equals the writer's is the fixed point, found by iteration from the
    independent list. Within a packet's blocks lies another history than in the rejected ones.

    With ``other_access`` a further bank may be busy, unknown until a block on it is met; with
    ``read_last`` that bank is the returned packet's last one, whose fellow then follows it
    in the list. Of several other accesses within ``busy_accesses`` only one is followed.

    The chain is solved for blocks that return together, up to `MOST_WINDOW` busy accesses, where it was found
    within 5 % (or 5e-4) of simulation. Approximate: of the trials :math:`s` keeps the number, the last
    two banks, and whether the allocation before rejected any; returned packets are independent of each
    other; the list is long. Exact for one trial, and for two with single blocks and one busy access.

    Other lists, with longer accesses or other return orders, are followed along one sample path of
    `ALLOCATIONS` allocations (`qmodels.allocator.list_memory`), with the same random numbers for all:
    exact but for a sampling error of some 2 % at a probability of .001. Banks up to 32, accesses up to 20 and
    up to 5 trials are within 7 % of simulation.

    The return order decides how much of the trials' work is left to do. With 8 banks, one busy access, two
    trials and packets of 1, 10 and 24 blocks .0018 of all blocks are taken on a busy bank if packets return
    together, .0101 in random order, .0155 as read by 4 readers: that of single blocks.

    Examples
    --------
    Single blocks, 8 banks: rejected blocks come back as runs of one bank, so that 3 trials fail
    more often than the (1/8)^3 = 0.00195 of an independent list.

    >>> single = free_list(banks=8, alloc_trial_count=[1, 2, 3])
    >>> single.taken_busy_probability.round(4)
    array([0.125 , 0.0156, 0.0026])

    Packets of 8 blocks that return whole keep their runs free of conflicts:

    >>> packets = free_list(banks=8, alloc_trial_count=2, segments=[8], probability=[1.0])
    >>> round(float(packets.taken_busy_probability), 4), round(float(packets.mean_accesses), 3)
    (0.0003, 1.036)
    """
    sizes = np.atleast_1d(checks.count("segments", segments))
    chances = np.atleast_1d(checks.probability("probability", probability))
    if sizes.ndim > 1 or sizes.shape != chances.shape or np.any(np.diff(sizes) <= 0):
        raise ValueError(
            "segments must be ascending with one probability each, "
            f"got {sizes.tolist()} and {chances.tolist()}"
        )
    if abs(chances.sum() - 1) > 1e-9:
        raise ValueError(f"probability must sum to 1, got {float(chances.sum())!r}")
    b, t, d, access, packet, last, within = np.broadcast_arrays(
        checks.count("banks", banks),
        checks.count("alloc_trial_count", alloc_trial_count),
        checks.count("busy_accesses", busy_accesses, minimum=0),
        checks.probability("other_access", other_access),
        checks.probability("other_packet", other_packet),
        checks.probability("read_last", read_last),
        checks.probability("access_within", other_access if access_within is None else access_within),
    )
    if return_order not in RETURN_ORDERS:
        raise ValueError(f"return_order must be one of {', '.join(RETURN_ORDERS)}, got {return_order!r}")
    checks.count("readers", readers)
    law = (tuple(sizes.tolist()), tuple(chances.tolist()))
    busy = np.zeros((*t.shape, int(t.max(initial=1)) + 1))
    adjacent = np.zeros(t.shape)
    for where in np.ndindex(t.shape):
        trials = int(t[where])
        chances_of_others = (
            float(access[where]),
            float(packet[where]),
            float(last[where]),
            float(within[where]),
        )
        banks_and_busy = int(b[where]), trials, int(d[where])
        heads, adjacent[where] = _steady(
            *banks_and_busy, law, *chances_of_others, RETURN_ORDERS.index(return_order), int(readers)
        )
        busy[where][: trials + 1] = heads
    return FreeListResult(
        alloc_trial_count=t[()],
        busy_heads=busy,
        adjacent_probability=adjacent[()],
        validated=((t <= VALIDATED_TRIALS) | (d == 0))[()],
    )


def _is_chain(busy: Any, access: Any, packet: Any) -> Any:
    """Return where the chain is within 5 % or 5e-4 of simulation.

    With two busy accesses the other accesses that are still busy at the next allocation but one are not
    followed: none are where one comes before each allocation.
    """
    mixed = (packet > 0) & (packet < 1) & (access < LEAST_ACCESS)
    several = (busy <= MOST_WINDOW) & (packet == 0) & ((access == 0) | (access == 1))
    return np.where(np.equal(busy, 1), ~mixed, several)


@lru_cache(maxsize=4096)
def _steady(
    banks: int,
    trials: int,
    window: int,
    law: tuple[tuple[int, ...], tuple[float, ...]],
    other_access: float,
    other_packet: float,
    read_last: float,
    access_within: float,
    order: int,
    readers: int,
) -> tuple[FloatArray, float]:
    """Return the probability of k = 0, 1, ... busy heads in turn, and of a block on the bank before."""
    if window == 0 or banks == 1 or trials == 1:
        busy = 1.0 - (1.0 - 1.0 / banks) ** window
        return busy ** np.arange(trials + 1.0), 1.0 / banks
    if order != TOGETHER or not _is_chain(window, np.float64(other_access), np.float64(other_packet)):
        return path_heads(
            banks=banks,
            trials=trials,
            busy=window,
            law=law,
            other_access=other_access,
            other_packet=other_packet,
            read_last=read_last,
            access_within=access_within,
            order=order,
            readers=readers,
        )
    followed = min(trials, MOST_TRIALS)
    sizes, chances = np.array(law[0]), np.array(law[1])
    heads, adjacent = steady_heads(
        TrialRules(banks=banks, trials=followed, busy=window, other_access=other_access),
        PacketRules(
            endings=_endings(sizes, chances, followed + window + 1),
            mean_size=float(sizes @ chances),
            other_packet=other_packet,
            read_last=read_last,
            access_within=access_within,
        ),
    )
    if trials > followed:
        ratio = heads[-1] / heads[-2] if heads[-2] > 0 else 0.0
        heads = np.concatenate((heads, heads[-1] * ratio ** np.arange(1.0, trials - followed + 1)))
    return heads, adjacent


def _endings(sizes: IntArray, chances: FloatArray, ages: int) -> tuple[float, ...]:
    """Return the probability that a packet ends with its k-th block; from the last age on the mean's."""
    left = [float(chances[sizes >= k].sum()) for k in range(1, ages + 1)]
    ends = [
        float(chances[sizes == k].sum()) / reach if reach > 0 else 1.0
        for k, reach in zip(range(1, ages), left, strict=False)
    ]
    if left[-1] <= 0:
        return (*ends, 1.0)
    rest = float(((sizes - ages + 1) * chances)[sizes >= ages].sum()) / left[-1]
    return (*ends, 1.0 / rest)
