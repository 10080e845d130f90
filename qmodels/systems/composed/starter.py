"""A small system to begin with."""

from __future__ import annotations

from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.parts import Tokens
from qmodels.systems.composed.system import System
from qmodels.systems.laws.times import Exponential
from qmodels.systems.memory.dram_system import dram
from qmodels.systems.noc.spec import Noc
from qmodels.systems.noc.topologies import mesh
from qmodels.systems.stations.parts import Station
from qmodels.systems.traffic.arrivals import Poisson


def small_system() -> System:
    """Return two engines on a mesh that read a table in DRAM, at most eight requests at a time."""
    return System(
        parts={
            "mesh": Noc(topology=mesh(2, 2)),
            "dram": dram("DDR4-3200"),
            "engine": Station(service=Exponential(mean=10.0), servers=2),
            "requests": Tokens(count=8),
        },
        place={"dram": [3]},
        flows=[
            Flow(
                name="lookups",
                arrivals=Poisson(),
                rate=0.05,
                at=[0, 1],
                program="visit engine\nacquire requests\nread dram\nrelease requests",
            )
        ],
    )
