"""The error of the message-passing model against simulation, over programs around the ocMPI case.

``python -m cases.published.ocmpi.sweep`` writes ``data/sweep.csv``, a row for each program, and
``qmodels/noc/message_error_map.csv``, from which the model's answers say how far they can be trusted.
It takes two minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from cases.published.ocmpi.specs import computing, from_memory, gathering, program, streaming
from cases.published.rows import data_folder, write_rows
from qmodels.error_map import NAN, summarize
from qmodels.systems.programs import collectives
from qmodels.systems.programs.messaging import MessageProgram

SWEEP = data_folder("ocmpi") / "sweep.csv"
STEPS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
"""Upper ends of the classes of crowding in the error map."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """The error of one program.

    Parameters
    ----------
    program : str
        What it does.
    words, flits, buffer_flits, virtual_channels, pipeline_cycles : int
        Words of a message, flits of a packet, buffer of a virtual channel, and the switches.
    word_cycles : float
        Software of a sent word. [cycles]
    crowding : float
        Most that is asked of a channel at once.
    mean_error, max_error : float
        Of the finish times of all processes. [% of the simulated ones]
    execution_error : float
        Of the end of the last process. [%]
    """

    program: str
    words: int
    flits: int
    buffer_flits: int
    virtual_channels: int
    pipeline_cycles: int
    word_cycles: float
    crowding: float
    mean_error: float
    max_error: float
    execution_error: float


def base_programs(words: int) -> Iterator[tuple[str, MessageProgram]]:
    """Yield the programs of the case and other collective operations, with so many words."""
    yield "gather", gathering(prioritised=False, words=words)
    yield "gather, priorities", gathering(prioritised=True, words=words)
    yield "compute and gather", computing(prioritised=False, words=words)
    yield "compute and gather, priorities", computing(prioritised=True, words=words)
    yield "all to one", streaming(circuit=False, words=words)
    yield "all to one, circuit", streaming(circuit=True, words=words)
    for shape in collectives.SHAPES:
        yield f"scatter, {shape}", program(collectives.scatter(processes=16, words=words, shape=shape))
        yield (
            f"reduce, {shape}",
            program(
                from_memory(collectives.reduce(processes=16, words=words, cycles_per_word=4, shape=shape))
            ),
        )
        yield f"scan, {shape}", program(collectives.scan(processes=16, words=words, shape=shape))
    yield "gather, 9 cores", program(from_memory(collectives.gather(processes=9, words=words)), side=3)


def sweep_programs() -> Iterator[tuple[str, int, MessageProgram]]:
    """Yield all programs of the sweep with their words.

    The programs of the case with other packets and buffers, then gathers on other routers with less
    software, which crowd the network more.
    """
    for words, overhead, buffer in product((8, 32, 128), (8, 12, 16), (5, 8)):
        for name, spec in base_programs(words):
            costs = replace(spec.costs, packet_overhead_bytes=overhead)
            router = replace(spec.router, buffer_flits=buffer)
            yield name, words, replace(spec, costs=costs, router=router)
    for words, pipeline, channels, copying, rows in product((10, 40), (2, 3), (1, 2), (0, 8), (0, 1, 2)):
        spec = program(collectives.gather(processes=16, words=words))
        costs = replace(
            spec.costs,
            send_cycles=100.0,
            receive_cycles=40.0,
            send_word_cycles=float(copying),
            receive_word_cycles=3.0,
        )
        router = replace(
            spec.router,
            pipeline_cycles=pipeline,
            credit_cycles=pipeline + 2,
            virtual_channels=channels,
            buffer_flits=8 // channels,
        )
        levels = tuple(7 if k % 4 < rows else 0 for k in range(16))
        name = f"gather, little software, {rows} rows last"
        yield name, words, replace(spec, costs=costs, router=router, priorities=levels)


def measure(name: str, words: int, spec: MessageProgram) -> Point:
    """Return the error of one program."""
    from qmodels import solve
    from validate import simulate

    answer, run = solve(spec), simulate(spec, replications=2)
    model = np.array([answer[f"finish_time[{k}]"] for k in range(len(spec.processes))])
    errors = 100 * np.abs(model / run.finish[:, 0] - 1)
    whole = 100 * abs(answer["execution_time"] / run["execution_time"].best - 1)
    return Point(
        program=name,
        words=words,
        flits=spec.costs.packet_flits(spec.costs.packet_words, spec.link_width),
        buffer_flits=spec.router.buffer_flits,
        virtual_channels=spec.router.virtual_channels,
        pipeline_cycles=spec.router.pipeline_cycles,
        word_cycles=spec.costs.send_word_cycles,
        crowding=answer.crowding,
        mean_error=float(errors.mean()),
        max_error=float(errors.max()),
        execution_error=whole,
    )


def error_rows(points: list[Point]) -> list[dict[str, Any]]:
    """Return the rows of the map of the model's errors by crowding; the signs are not kept."""
    rows: list[dict[str, Any]] = []
    for low, high in zip((0.0, *STEPS), STEPS, strict=False):
        mine = [point for point in points if low < point.crowding <= high]
        where = {"unit": "%", "region": "programs of 16 processes", "load_above": low, "load_to": high}
        whole = summarize((point.execution_error for point in mine), decimals=2)
        sizes = summarize((point.mean_error for point in mine), decimals=2)
        most = round(max((point.max_error for point in mine), default=NAN), 1)
        for metric, found in (("finish_time", sizes | {"largest": most}), ("execution_time", whole)):
            if mine:
                rows.append({"metric": metric, **where, **found, "bias": NAN})
    return rows


if __name__ == "__main__":
    from qmodels.noc.solve_program import ERRORS

    found = [measure(*each) for each in sweep_programs()]
    write_rows(SWEEP, found)
    about = "Times of programs by the most that is asked of a channel (load); their signs were not kept."
    ERRORS.write(error_rows(found), about=about, command="python -m cases.published.ocmpi.sweep")
    print(f"{len(found)} programs, mean error {np.mean([point.mean_error for point in found]):.2f} %")
