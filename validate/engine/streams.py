"""Random streams: one per source of randomness and replication, drawn from inside kernels.

A stream is named by what draws from it ("service parser read"). Its state depends on the seed,
the replication and that name alone: not on how many workers there are, on which other streams
exist or on how much they were used. So two designs that share names share their randomness.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from validate.engine.jit import lean

_SHIFT = np.uint64(12)
_HALF_STEP = 2.0**-53
_STEP = 2.0**-52
_ALL_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)
_17, _19, _23, _41, _45 = (np.uint64(n) for n in (17, 19, 23, 41, 45))


def new_streams(
    *, seed: int, replication: int, sources: Sequence[str], antithetic: bool = False
) -> npt.NDArray[np.uint64]:
    """Return the streams of one replication, a row for each source.

    ``seed``, ``replication``: number of the experiment and of its replication, >= 0; ``sources``: what draws
    from each stream; ``antithetic``: return the mirrored streams: where one draws u, these draw 1 - u.
    Returns four words of state and the mask that mirrors.
    """
    streams = np.zeros((len(sources), 5), dtype=np.uint64)
    for row, source in zip(streams, sources, strict=True):
        name = np.frombuffer(sha256(source.encode()).digest()[:8], dtype="<u4")
        key = np.random.SeedSequence(seed, spawn_key=(replication, *name.tolist()))
        row[:4] = key.generate_state(4, np.uint64)
    if antithetic:
        streams[:, 4] = _ALL_BITS
    return streams


@lean
def uniform(streams: Any, stream: int) -> float:
    """Return the next number of a stream, strictly between 0 and 1, in steps of 2**-52.

    The generator is xoshiro256++ [1]_; the upper 52 bits are used.

    References
    ----------
    .. [1] D. Blackman, S. Vigna, "Scrambled linear pseudorandom number generators", ACM
       Transactions on Mathematical Software 47(4), 2021.
    """
    state = streams[stream]
    a, b, c, d = state[0], state[1], state[2], state[3]
    total = a + d
    bits = (((total << _23) | (total >> _41)) + a) ^ state[4]
    state[0] = a ^ d ^ b
    state[1] = b ^ c ^ a
    state[2] = c ^ a ^ (b << _17)
    top = d ^ b
    state[3] = (top << _45) | (top >> _19)
    return float(np.int64(bits >> _SHIFT)) * _STEP + _HALF_STEP
