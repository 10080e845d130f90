"""What the message-passing paper concludes (Joven et al., QoS-ocMPI), as margins of its own programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from cases.published.conclusions.conclusion import Parameter, Reading, gained, same, saved, stated
from cases.published.ocmpi.specs import (
    BARE,
    CYCLES_PER_WORD,
    GATHER_WORDS,
    LARGE_WORDS,
    computing,
    from_memory,
    gathering,
    one_way,
    program,
    start_costs,
    streaming,
)
from cases.published.ocmpi.tables import HIGH, OTHERS
from qmodels.systems.programs.collectives import barrier
from qmodels.systems.programs.message_steps import receive, send
from qmodels.systems.programs.messaging import MessageProgram
from qmodels.systems.spec.fields import replace_fields

OPTIONS = {"replications": 2}
"""Nothing in these programs is random: the second replication only shows that."""
WORDS = Parameter(
    name="words that each sends", value=GATHER_WORDS, values=(1, 4, GATHER_WORDS, 20, 40, 128, 256, 512),
    whole=True, open=(1, 512),
)  # fmt: skip
LARGE = replace(WORDS, value=LARGE_WORDS)
MHZ = 200.0
"""Of the paper's platform (sec. VIII.A)."""


def finishes(programs: Iterable[MessageProgram], processes: Iterable[int]) -> list[Reading]:
    """Return the ends of some processes of programs without and with quality of service."""
    return [(one, f"finish_time[{process}]") for one in programs for process in processes]


def faster(summed: Callable[[list[float]], float], least: float) -> Callable[..., float]:
    """Return by how many points more than the least processes end earlier, summed up."""

    def margin(*times: float) -> float:
        half = len(times) // 2
        return summed([saved(w, wo) for wo, w in zip(times[:half], times[half:], strict=True)]) - least

    return margin


def mean(values: list[float]) -> float:
    """Return the mean."""
    return sum(values) / len(values)


def gathers(words: float) -> list[MessageProgram]:
    """Return Fig. 9 without and with priorities."""
    return [gathering(prioritised=on, words=round(words)) for on in (False, True)]


def disturbed(words: float) -> MessageProgram:
    """Return Fig. 11 with a circuit, in which the others send another number of words."""
    steps: list[tuple[str, ...]] = [(send(0, words=round(words)),)] * 16
    steps[0] = (receive(14),)
    steps[14] = ("open 0", send(0, words=LARGE_WORDS), "close 0")
    return program(from_memory(tuple(steps)))


def packets(spec: MessageProgram, overhead: float) -> MessageProgram:
    """Return a program whose packets have another overhead."""
    return replace_fields(spec, {"packet_overhead_bytes": round(overhead)})


conclusion = stated("ocmpi", options=OPTIONS)

CONCLUSIONS = (
    conclusion(
        "priorities",
        margin="time saved by prioritised processes, mean, beyond 10 [points]",
        parameter=WORDS,
        readings=lambda words: finishes(gathers(words), OTHERS),
        of=faster(mean, 10),
    ),
    conclusion(
        "each",
        margin="time saved by the prioritised process that gains least [%]",
        parameter=WORDS,
        readings=lambda words: finishes(gathers(words), OTHERS),
        of=faster(min, 0),
    ),
    conclusion(
        "computing",
        margin="time saved by the prioritised process that gains least, beyond 1 [points]",
        parameter=Parameter(
            name="computing on a word", unit="cycles", value=float(CYCLES_PER_WORD),
            values=(0.0, 25.0, 100.0, 200.0, 400.0), open=(0.0, 400.0),
        ),
        readings=lambda cycles: finishes(
            [computing(prioritised=on, cycles_per_word=cycles) for on in (False, True)], HIGH
        ),
        of=faster(min, 1),
    ),
    conclusion(
        "circuit",
        margin="time saved by ARM_14, beyond 25 [points]",
        parameter=LARGE,
        readings=lambda words: finishes(
            [streaming(circuit=on, words=round(words)) for on in (False, True)], (14,)
        ),
        of=faster(min, 25),
    ),
    conclusion(
        "receiver",
        margin="time saved by ARM_0, beyond 25 [points]",
        parameter=Parameter(
            name="overhead of a packet", unit="bytes", value=float(BARE.packet_overhead_bytes),
            values=(0.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0), whole=True, open=(8.0, 16.0),
        ),
        readings=lambda overhead: finishes(
            [packets(streaming(circuit=on), overhead) for on in (False, True)], (0,)
        ),
        of=faster(min, 25),
    ),
    conclusion(
        "fixed",
        margin="5 less what the others' traffic delays ARM_14 behind its circuit [%]",
        parameter=replace(LARGE, name="words that each of the others sends", open=None),
        readings=lambda words: finishes([disturbed(words), disturbed(1)], (14,)),
        of=lambda busy, quiet: 5 - gained(busy, quiet),
    ),
    conclusion(
        "words",
        margin="5 less the time of a long message over that of one word",
        parameter=Parameter(
            name="words of the long message", value=256, values=(16, 32, 64, 96, 128, 256, 512), whole=True
        ),
        readings=lambda words: same([one_way(words=round(words)), one_way(words=1)], "execution_time"),
        of=lambda many, one: 5 - many / one,
    ),
    conclusion(
        "reconfigurations",
        margin="initialisations per second over 20,000, less 90 [%]",
        parameter=Parameter(name="cores in a row of the mesh", value=4, values=(2, 3, 4, 5, 6), whole=True),
        readings=lambda side: same(
            [program(barrier(processes=round(side) ** 2), side=round(side), costs=start_costs())],
            "execution_time",
        ),
        of=lambda cycles: 100 * MHZ * 1e6 / cycles / 20_000 - 90,
    ),
)  # fmt: skip

CONTRADICTIONS = (
    "Sec. VIII.A: 256 words take 'about 4x and 7x' the time of one; the cycles given beside it say "
    "8425 / 930 = 9.1 and 15945 / 2595 = 6.1.",
    "Abstract and sec. IX: 'an average speedup of 15 %' is the mean of Fig. 9 alone, of processes that "
    "were chosen; those not chosen lose 65 to 70 %, and Fig. 10 has 3 to 20 %.",
)
