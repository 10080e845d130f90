"""Work that costs more than is allowed is refused before it starts, by the field that drives it."""

from dataclasses import replace

import numpy as np
import pytest

import qmodels as qm
from optimize import Space
from qmodels import JobClass, Station, mesh, single_station
from qmodels.laws import Deterministic, Erlang, Exponential
from qmodels.steps import Fork, Hold, Repeat, Visit
from qmodels.systems.spec.cost import VARIABLE, afford
from qmodels.traffic import Poisson

WIDE = {name: list(range(1, 200)) for name in ("banks", "link_width", "bank_step")} | {
    "channels": [1, 2, 4, 8]
}
SPACE = Space(qm.PacketProcessor(), WIDE)


def sweep() -> qm.PacketProcessor:
    load, hold = np.ones((4000, 1)), np.ones((1, 4000))
    return qm.PacketProcessor(workload=replace(qm.PacketProcessor().workload, load_factor=load, hold_ns=hold))


def closed(population: int, servers: int = 1) -> qm.QueueingNetwork:
    stations = [
        Station(name="a", service=Exponential(mean=1.0), servers=servers),
        Station(name="b", service=Exponential(mean=2.0)),
    ]
    return qm.QueueingNetwork(
        stations=stations, classes=JobClass(population=population), routing={"a": "b", "b": "a"}
    )


def single(law: Erlang) -> qm.QueueingNetwork:
    return single_station(arrivals=replace(law, mean=1.2), service=law)


def machine(**work: int) -> qm.NumaMachine:
    return replace(qm.NumaMachine(), work=replace(qm.NumaMachine().work, **work))


def rounds(count: int) -> qm.System:
    program = (Repeat((Visit("a"),), count),)
    flow = qm.Flow(arrivals=Poisson(), rate=1e-6, program=program)
    return qm.System(parts={"a": Station(service=Exponential(mean=1.0))}, flows=[flow])


@pytest.mark.parametrize("field", ["banks", "interleaving_step", "bank_step"])
def test_sizes_of_a_memory_end(field):
    with pytest.raises(
        ValueError, match=rf"^dram.{field} must be a whole number from 1 to \d+, got 10000000"
    ):
        replace(qm.PacketProcessor().dram, **{field: 10**7})


def test_a_user_raises_the_limit(monkeypatch):
    with pytest.raises(
        ValueError, match=rf"^x must ask for at most 1e\+07 designs, got 3 .*; {VARIABLE}=100 "
    ):
        afford("x", 3, designs=2e8)
    monkeypatch.setenv(VARIABLE, "100")
    afford("x", 3, designs=2e8)
    monkeypatch.setenv(VARIABLE, "none")
    with pytest.raises(ValueError, match=f"^{VARIABLE} must be a number > 0, got 'none'$"):
        afford("x", 3, designs=1.0)


def test_a_number_that_no_model_can_carry_is_named():
    with pytest.raises(ValueError, match=r"^noc.link_width must be a number or an array .*, got 'x'$"):
        replace(qm.PacketProcessor().noc, link_width="x")
    with pytest.raises(ValueError, match=r"^noc.clock_ghz must be >= 1e-100, got 1e-300$"):
        replace(qm.PacketProcessor().noc, clock_ghz=1e-300)


STATION = Station(service=Exponential(mean=1.0))
OPEN = {"arrivals": Poisson(), "rate": 1e-6}


def system(*flows: qm.Flow, **parts: object) -> qm.System:
    return qm.System(parts={"a": STATION, **parts}, flows=flows)


def meshed(side: int) -> qm.System:
    flow = qm.Flow(at="0..3", program=(Visit("a"),), **OPEN)
    return qm.System(
        parts={"a": STATION, "noc": qm.Noc(topology=mesh(side, side))}, place={"a": 5}, flows=flow
    )


def branches(count: int) -> qm.System:
    return system(
        qm.Flow(
            program=(Fork(tuple((Visit("a"), Hold(Deterministic(mean=k))) for k in range(count))),), **OPEN
        )
    )
