"""Rows that a stored packet touches, and the number of their channels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.checks import FloatArray, Numeric


@dataclass(frozen=True, kw_only=True, eq=False)
class RowVisits:
    """Row visits of a packet of each size; a visit is its consecutive accesses to one row.

    All arrays have the shape (designs, sizes).
    """

    visits: FloatArray  # mean visits: accesses that need their row opened even in an idle memory
    square: FloatArray  # mean over packets of the sum of squared accesses per visit
    channels: FloatArray  # mean channels a run of the packet touches, summed over its runs
    # within, across: accesses that continue a row right after the block before them; and after a round over
    # the other channels.
    within: FloatArray
    across: FloatArray


def row_visits(
    *, segments: FloatArray, step: Numeric, channels: Numeric, row_blocks: Numeric, mean_run_length: Numeric
) -> RowVisits:
    r"""Row visits of packets stored on runs of consecutive blocks with a random start.

    ``segments``: packet sizes [segments]; ``step``, ``channels``, ``row_blocks``: interleaving step,
    channels, consecutive blocks of a channel in one row; ``mean_run_length``: mean length of the free list's
    runs [blocks].

    With adjacencies cut independently with probability :math:`p = 1/m`, a packet of :math:`n`
    segments has :math:`(n-\ell-1) p^2 (1-p)^{\ell-1} + 2 p (1-p)^{\ell-1}` pieces of length
    :math:`\ell < n` and one of length :math:`n` with probability :math:`(1-p)^{n-1}`. A piece
    touches :math:`1 + (\ell-1)/s` chunks of :math:`s` blocks on average (a mixture of two whole
    numbers :math:`k`), hence :math:`\min(k, C)` channels. A row ends with one in :math:`r/s`
    chunks, or :math:`s/r` times in a chunk longer than a row. Exact in the mean for a random
    start of each piece, rows that are whole chunks or parts of one, and no rejected blocks.
    """
    s, c, rows, m = (
        np.asarray(x, dtype=float)[:, None] for x in (step, channels, row_blocks, mean_run_length)
    )
    length = np.arange(1.0, segments.max() + 1.0)
    chunks = 1.0 + (length - 1.0) / s
    low = np.floor(chunks)
    above = chunks - low
    touched = (1 - above) * np.minimum(low, c) + above * np.minimum(low + 1, c)
    # Rows end where chunks do, or several times inside a chunk that is longer than a row.
    inside = np.maximum(s / rows - 1.0, 0.0) / np.maximum(s - 1.0, 1.0)
    between = np.minimum(s / rows, 1.0)
    within = (length - chunks) * (1.0 - inside)
    across = (chunks - touched) * (1.0 - between)
    visits = length - within - across
    per_piece = {
        "visits": visits,
        "square": length**2 / visits,
        "channels": touched,
        "within": within,
        "across": across,
    }
    cut = 1.0 / m
    survive = (1.0 - cut) ** (length - 1.0)
    n = segments[:, None]
    inner = np.maximum(n - length - 1.0, 0.0) * (length < n)
    pieces = (
        inner[None] * (cut**2 * survive)[:, None]
        + (2.0 * (length < n))[None] * (cut * survive)[:, None]
        + (length == n)[None] * survive[:, None]
    )
    return RowVisits(**{name: np.einsum("dnl,dl->dn", pieces, value) for name, value in per_piece.items()})
