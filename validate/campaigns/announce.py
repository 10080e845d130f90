"""How long simulations will take, said on a terminal before they begin."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

from validate.campaigns.experiment import Experiment
from validate.campaigns.progress import duration

PILOT = 100_000
"""Packets, passages or accesses of a replication from which it is said how long all will take."""


def announce(
    pilot: Callable[[Experiment, dict[str, int]], Any],
    experiments: Sequence[Experiment],
    *,
    replications: int,
    cores: int,
) -> None:
    """Say how long simulations will take, from the rate of two short replications of the first.

    ``pilot``: runs two replications of an experiment with other lengths; ``replications``, ``cores``: of
    each, and threads.
    """
    lengths = [one.lengths()[0] for one in experiments if one.lengths()]
    if not sys.stderr.isatty() or not lengths or max(length for _, length in lengths) < PILOT:
        return
    name, _ = lengths[0]
    _, brief = replace(experiments[0], **{name: PILOT // 10}).lengths()[0]
    if brief > PILOT:  # a rotation of a recorded trace has to be simulated in any case
        return
    for _ in range(2):  # the first compiles the kernels
        started = perf_counter()
        pilot(experiments[0], {name: PILOT // 10})
        seconds = perf_counter() - started
    runs = sum(length for _, length in lengths) * replications / brief
    seconds *= runs / min(cores, replications * len(experiments))
    print(f"about {duration(seconds)} on {cores} cores", file=sys.stderr)
