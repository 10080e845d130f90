"""Whether the model orders the choices as the simulation does.

The map is data, made by ``python -m cases.joint_errors.directions``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.evidence.error_map import ErrorMap

DIRECTIONS = ErrorMap(Path(__file__).with_name("direction_map.csv"))
"""Pairs of designs one decision apart; its regions are the decisions, and `ANY` of them."""

ANY = "any decision"
FEWEST, AGREED = 3, 0.75
"""Pairs that the simulation separates, and the part of them that the model must order alike, for its
direction to count as right."""

RANKED = (
    "packet_latency",
    "packet_latency_p99",
    "write_conflict_probability",
    "energy_per_packet",
    "saturation_data_rate",
)
"""What designs are chosen by: a wrong direction in one of these takes an answer's validation away. That of
the read conflicts is measured as well."""


def wrong_directions(*, load: FloatArray, step: FloatArray) -> dict[str, npt.NDArray[np.bool_]]:
    """Return, in words, the directions that are wrong somewhere among designs, and for which.

    A direction is wrong in a region of load and interleaving step where the model orders fewer than
    three quarters (`AGREED`) of the pairs that the simulation separates as it does. A choice it is
    blind to counts as ordered wrongly. Only what designs are chosen by (`RANKED`) counts.
    """
    wrong: dict[str, npt.NDArray[np.bool_]] = {}
    for row in DIRECTIONS.rows:
        few = row["separated"] < FEWEST or row["metric"] not in RANKED or row["region"] == ANY
        if few or row["agree"] >= AGREED * row["separated"]:
            continue
        here = (load > row["load_above"]) & (load <= row["load_to"])
        here &= (step > row["step_above"]) & (step <= row["step_to"])
        if here.any():
            words = f"{row['metric']} along {row['region']} is ordered against the simulation at such loads"
            wrong[words] = wrong.get(words, np.zeros(load.shape, dtype=bool)) | here
    return wrong
