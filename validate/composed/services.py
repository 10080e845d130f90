"""Parts of others: asked in Python, outside of the compiled calendar, when those who come will be done."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from qmodels.systems.composed.parts import Service, ServingPart
from qmodels.systems.composed.system import System
from validate.composed.state import Core
from validate.network.calendar import EARLY, put
from validate.network.state import World


class Services(NamedTuple):
    """The copies of parts of others and their randomness, by the numbers of part and copy; names of parts."""

    copies: dict[tuple[int, int], tuple[Service, np.random.Generator]]
    names: tuple[str, ...]


def new_services(spec: System, *, seed: int, replication: int) -> Services:
    """Return the idle copies of all parts of others."""
    copies = {
        (number, copy): (part.service(), np.random.default_rng([seed, replication, number, copy]))
        for number, (name, part) in enumerate(spec.parts.items())
        if isinstance(part, ServingPart)
        for copy in range(spec.copies(name))
    }
    return Services(copies, tuple(spec.parts))


def answer(services: Services, w: World, c: Core) -> None:
    """Ask for the ends of all strands that have come to parts of others, and put them on the calendar."""
    own, now = c.state[0], float(w.state["now"][0])
    for j in c.enquiries[: own["enquiries"]].tolist():
        instruction = c.code[c.strands["at"][j] - 1]
        number = int(instruction["part"])
        service, rng = services.copies[number, _copy(c, number, j)]
        end = service.end(now, int(instruction["stream"]), rng)
        if not now <= end < np.inf:
            name = services.names[number]
            raise ValueError(f"parts.{name}: a service must end at a time from {now!r} on, got {end!r}")
        put(w.heap, w.places, w.classes.size + w.nodes.size + j, float(end), EARLY)
    own["enquiries"] = 0


def _copy(c: Core, part: int, j: int) -> Any:
    return int(c.strands["copy"][j]) if c.parts["copies"][part] > 1 else 0
