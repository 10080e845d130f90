"""The error of the message-passing model against simulation, over programs around the ocMPI case.

``python -m cases.published.ocmpi.sweep`` writes ``data/sweep.csv``, a row for each program, and
``qmodels/noc/message_error_map.csv``, from which the model's answers say how far they can be trusted.
It takes two minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from cases.published.measurement import Measurement, Row
from cases.published.ocmpi.specs import computing, from_memory, gathering, program, streaming
from cases.published.rows import data_folder
from qmodels.evidence.error_map import NAN, summarize
from qmodels.noc.solve_program import ERRORS
from qmodels.systems.programs import collectives
from qmodels.systems.programs.messaging import MessageProgram

STEPS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
"""Upper ends of the classes of crowding in the error map."""


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


def sweep_programs() -> Iterator[tuple[Row, MessageProgram]]:
    """Yield all programs of the sweep with their names and words.

    The programs of the case with other packets and buffers, then gathers on other routers with less
    software, which crowd the network more.
    """
    for words, overhead, buffer in product((8, 32, 128), (8, 12, 16), (5, 8)):
        for name, spec in base_programs(words):
            costs = replace(spec.costs, packet_overhead_bytes=overhead)
            router = replace(spec.router, buffer_flits=buffer)
            yield {"program": name, "words": words}, replace(spec, costs=costs, router=router)
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
        changed = replace(spec, costs=costs, router=router, priorities=levels)
        yield {"program": name, "words": words}, changed


class Crowding(Measurement):
    """The errors of the finish times of all processes together, by the most that is asked of a channel."""

    def columns(self, spec: MessageProgram, answer: Any, result: Any) -> Row:
        """Return what is special to a program, and its errors [% of the simulated times]."""
        model = np.array([answer[f"finish_time[{k}]"] for k in range(len(spec.processes))])
        errors = 100 * np.abs(model / result.finish[:, 0] - 1)
        return {
            "flits": spec.costs.packet_flits(spec.costs.packet_words, spec.link_width),
            "buffer_flits": spec.router.buffer_flits,
            "virtual_channels": spec.router.virtual_channels,
            "pipeline_cycles": spec.router.pipeline_cycles,
            "word_cycles": spec.costs.send_word_cycles,
            "crowding": answer.crowding,
            "mean_error": float(errors.mean()),
            "max_error": float(errors.max()),
            "execution_error": 100 * abs(answer["execution_time"] / result["execution_time"].best - 1),
        }

    def lines(self, rows: Iterable[Row]) -> list[Row]:
        """Return the map by classes of crowding; the signs are not kept."""
        rows, found = list(rows), list[Row]()
        for low, high in zip((0.0, *STEPS), STEPS, strict=False):
            mine = [row for row in rows if low < row["crowding"] <= high]
            where = {"unit": "%", "region": "programs of 16 processes", "load_above": low, "load_to": high}
            whole = summarize((row["execution_error"] for row in mine), decimals=2)
            sizes = summarize((row["mean_error"] for row in mine), decimals=2)
            most = round(max((row["max_error"] for row in mine), default=NAN), 1)
            for metric, summed in (("finish_time", sizes | {"largest": most}), ("execution_time", whole)):
                if mine:
                    found.append({"metric": metric, **where, **summed, "bias": NAN})
        return found


MEASUREMENT = Crowding(
    errors=ERRORS,
    about="Times of programs by the most that is asked of a channel (load); their signs were not kept.",
    command="cases.published.ocmpi.sweep",
    points=sweep_programs,
    file=data_folder("ocmpi") / "sweep.csv",
    options={"replications": 2},
)

if __name__ == "__main__":
    MEASUREMENT.main()
