"""What models and simulators share is declared: everything else each side works out by its own code.

Both verbs run under a tracer. A function of `qmodels.systems` that calculates (with products, quotients or
powers) and that both call is an input of both, and stands in the list below with what it says; whatever is
new there fails until somebody has looked at it.
"""

import ast
import functools
import inspect
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

import qmodels as qm
from optimize import replace_fields
from qmodels import systems
from qmodels.systems.spec.kind import KINDS, kind_named
from validate import simulate

ROOM = str(Path(systems.__file__).parent)
SMALL: dict[str, dict[str, Any]] = {
    "packet-processor": {"packets": 1000, "saturation": False},
    "queueing-network": {"passages": 1000},
    "data-queueing": {"packets": 1000},
    "noc": {"packets": 500},
    "dram": {"accesses": 1000},
    "cache": {"requests": 1000},
    "llc-processor": {"requests": 1000},
    "system": {"passages": 1000},
}

FEW = {"data.segments": 8192, "allocation.vms1_size": 8192}
"""Of a data memory of the starter's size each run would first link four million blocks."""

INPUTS: dict[str, str] = {
    "cache/llc_processor: LlcProcessor.arrival_rate": "offered packets, by the load asked for",
    "cache/llc_processor: LlcProcessor.gbps": "a rate of packets in another unit",
    "cache/llc_processor: LlcProcessor.slice_lines": "lines that a size in bytes holds",
    "composed/batch_laws: batch_companions": "requests that a program issues at once",
    "composed/batch_laws: compound": "requests that a program issues at once",
    "composed/flow: Flow.mean_rate": "offered jobs, by the law of their gaps",
    "composed/lower: Here.split": "requests that a program issues at once",
    **{
        f"composed/lower: _Lowering.{name}": "what a program asks of its parts, in order"
        for name in ("_ask", "_leg", "_over", "_visit")
    },
    "memory/memory_map: index_in_bank": "place of a block",
    "memory/memory_map: index_in_channel": "place of a block",
    "memory/memory_map: scatter": "place of a block",
    "memory/dram_map: DramGeometry.channel_banks": "banks of a channel",
    "memory/dram_map: DramGeometry.rank_banks": "banks of a rank",
    "memory/dram_map: mixed_radix": "place of a block",
    "memory/dram_system: DramSystem.gbytes": "a rate of blocks in another unit",
    "memory/numa_system: NumaMachine.accesses_of_memories": "how often each memory is asked, by placement",
    "memory/numa_system: NumaMachine.own_cycles": "cycles of a step that a core has for itself, given",
    "memory/numa_system: DmaEngine.channels_of": "which channels an engine uses",
    "memory/numa_system: NumaChip.way_cycles": "links on a way times the cycles of one, as given",
    "noc/flows: open_flows": "offered packets between two nodes",
    "noc/routing: _along": "a route",
    "noc/routing: _different": "a route",
    "noc/routing: _strides": "a route",
    "noc/routing: _walk_along": "a route",
    "noc/routes: Paths.by_hop": "a route, hop by hop",
    "noc/routing: ring_routes": "a route",
    "noc/layout: Layout.injects_into": "place of a node",
    "noc/patterns: Pattern.matrix": "offered packets between two nodes",
    "noc/patterns: RateMatrix.matrix": "offered packets between two nodes",
    "noc/patterns: RateMatrix.mean_rate": "offered packets of a node",
    "noc/patterns: _normal": "offered packets between two nodes",
    "noc/spec: Noc.flow_table": "offered packets between two nodes",
    "noc/spec: _structure": "routes and offered packets",
    "noc/topology: _mean_distance": "a limit on the memory of routes",
    "noc/topology: afford_routes": "a limit on the memory of routes",
    "noc/topology: Topology.route": "a route",
    **{
        f"noc/routes: {name}": "whether routes wait for each other in a circle"
        for name in (
            "Onward.pairs",
            "Paths.limits",
            "find_deadlock",
            "find_deadlock.<locals>.turns",
            "onward",
        )
    },
    "noc/patterns: Pattern._check_relations": "a check of what is given",
    "spec/cost: afford": "a limit on memory and work",
    "spec/ranges: _nonnegative": "a check of what is given",
    "spec/ranges: _without_dust": "what is given, without numbers that no unit can tell from 0",
    "spec/ranges: _positive": "a check of what is given",
    "packets/packet_processor: _networks": "which nodes a network joins",
    "cache/spec: line_popularity": "how often each line is asked for, as given",
    "traffic/popularity: _tables": "how often each entry is asked for, as given",
    "programs/work_queues: grow": "the tasks given, grown block by block",
    "programs/work_queues: body_blocks": "the tasks given, grown block by block",
    "programs/work_queues: _seed": "the tasks given, grown block by block",
    "packets/free_list: FreeList.vms1_segments": "size of a memory",
    "packets/packet_processor: PacketProcessor.area": "the metric cost: an input, priced part by part",
    "programs/messaging: MessageCosts.packet_flits": "size of a packet",
    "programs/messaging: MessageCosts.packets": "packets of a message",
    "programs/messaging: MessageProgram.first_priorities": "order of tasks, by the work given",
    "programs/work_queues: WorkQueues.cores": "number of cores",
    "programs/work_queues: WorkQueues.homes": "place of data",
    "programs/work_queues: WorkQueues.queue_memory": "place of a queue",
    "programs/work_queues: WorkQueues.queue_of": "place of a queue",
    "programs/work_queues: WorkQueues.serial_time": "one core's time for the work given, to compare with",
    "stations/checks: Wiring.arrival_rates": "offered jobs, by the law of their gaps",
    "traffic/sizes: SizeLaw.sample": "sizes of packets, drawn",
    "traffic/arrivals: Workload.packet_rate": "offered packets, by load and sizes",
}
"""Functions that calculate and that both sides call, by module and name, and what they say of a system."""


class Here(Executor):
    """Runs what it is given at once, where the tracer sees it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def called(run: Callable[[], Any]) -> set[tuple[str, str, int]]:
    """Return file, name and line of the functions of systems that a run calls."""
    found: set[tuple[str, str, int]] = set()
    # What was asked before is asked again.
    for module in [m for name, m in sys.modules.items() if name.startswith(("qmodels", "validate"))]:
        for one in list(vars(module).values()):
            if isinstance(one, functools._lru_cache_wrapper):
                one.cache_clear()

    def look(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOM):
            found.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        run()
    finally:
        sys.setprofile(before)
    return found


def calculates(file: str, line: int) -> bool:
    """Return whether the function that begins there has a product, a quotient or a power of numbers."""
    for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            decorators = getattr(node, "decorator_list", [])
            if min([node.lineno, *(one.lineno for one in decorators)]) == line:
                operations = (one.op for one in ast.walk(node) if isinstance(one, ast.BinOp))
                return any(isinstance(one, ast.Mult | ast.Div | ast.Pow) for one in operations)
    return False


def made_of(kind: str) -> Any:
    """Return the starter of a kind, small enough for a test."""
    spec = kind_named(kind).starter()
    return replace_fields(spec, FEW) if kind == "data-queueing" else spec


@functools.cache
def both(kind: str) -> tuple[Any, Any, set[str]]:
    """Return answer, estimate, and the functions that calculate and that both call."""
    made: list[Any] = []
    spec, other = (made_of(kind) for _ in range(2))
    model = called(lambda: made.append(qm.solve(spec)))
    options = {"replications": 2, "executor": Here(), "progress": lambda *_: None, **SMALL.get(kind, {})}
    simulate(other, **options)  # under the tracer kernels would take twice as long to compile
    simulator = called(lambda: made.append(simulate(other, **options)))
    alike = {one for one in model & simulator if calculates(one[0], one[2])}
    names = {f"{Path(file).relative_to(ROOM).with_suffix('').as_posix()}: {name}" for file, name, _ in alike}
    return made[0], made[1], names


SAME: dict[str, tuple[str, ...]] = {
    "message-program": ("software_time",),
    "packet-processor": ("cost", "max_pointer_accesses_per_allocation"),
    "data-queueing": ("max_pointer_accesses_per_allocation",),
    "work-queues": ("imbalance",),
}
"""Metrics that are equal to the last digits: the cost is an input; the others are whole numbers, given costs
of given messages, or shares of given tasks, which leave nothing to estimate."""


@pytest.mark.parametrize("kind", KINDS)
def test_what_both_sides_call_is_declared(kind):
    assert both(kind)[2] <= set(INPUTS)


@pytest.mark.parametrize("kind", KINDS)
def test_metrics_that_are_the_same_on_both_sides_are_declared(kind):
    """A code that both used without a function of systems would show as numbers equal to the last digits."""
    answer, estimate, _ = both(kind)
    same = {
        name.partition("[")[0]
        for name in answer.metrics.keys() & estimate.metrics.keys()
        if float(answer[name]) not in (0.0, 1.0, float("inf"))
        and abs(float(answer[name]) / float(estimate[name]) - 1 if float(estimate[name]) else 1) < 1e-12
    }
    assert same <= set(SAME.get(kind, ()))


def test_the_tracer_itself():
    from qmodels.systems.traffic.arrivals import Workload

    names = {name for _, name, _ in called(lambda: Workload().packet_rate)}
    assert "Workload.packet_rate" in names
    source = Path(inspect.getfile(Workload))
    (line,) = {
        one for _, name, one in called(lambda: Workload().packet_rate) if name == "Workload.packet_rate"
    }
    assert calculates(str(source), line)
