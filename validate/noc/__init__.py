"""Flit-level simulation of wormhole networks-on-chip.

`validate.simulate` takes a `Noc`; `validate.noc.saturation.saturation_rate` finds the load it carries.

The network is a `World` that a driver moves on: `new_world` lays it out for a `FlowTable` (`state`),
`send` puts a packet into the source queue of its flow (`sources`), `step` simulates a cycle and leaves
what it delivered, and `quiet` says when cycles may be left out (`kernel`). Drivers here are
`open_traffic` and `transactions`. Compile one with `validate.engine.jit.lean`.

Examples
--------
A packet of 3 flits and its answer, on a ring of four. The answer, sent after the step of its cycle,
leaves in the next one:

>>> from qmodels.systems.noc.spec import Noc
>>> from qmodels.systems.noc.patterns import uniform
>>> from qmodels.systems.noc.topology import ring
>>> from validate.noc.kernel import step
>>> from validate.noc.flits import send
>>> from validate.noc.state import DELIVERED, new_world
>>> noc = Noc(topology=ring(4), traffic=uniform(nodes=4))
>>> table = noc.flow_table()
>>> flow = {(int(s), int(t)): f for f, (s, t) in enumerate(zip(table.source, table.target))}
>>> world = new_world(table, noc.router, packets=10)
>>> number = send(world, flow[0, 2], 3, 7, 0)
>>> for now in range(40):
...     step(world, now)
...     for p in world.delivered[: world.clock[DELIVERED]]:
...         print(f"packet {world.packet[p]['tag']} after {now - world.packet[p]['created']} cycles")
...         if world.packet[p]["tag"] == 7:
...             number = send(world, flow[2, 0], 1, 8, now)
packet 7 after 13 cycles
packet 8 after 12 cycles
"""
