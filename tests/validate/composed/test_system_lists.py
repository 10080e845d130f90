"""Free lists of a system, their pointer memory, and the banks that trials avoid."""

import numpy as np
import pytest

from qmodels import Flow, Noc, Station, System, dram, mesh, queues
from qmodels.laws import Deterministic, Exponential
from qmodels.noc import uniform
from qmodels.packets import FreeList
from qmodels.steps import Allocate, Each, Fork, Free, Hold, Read, Visit, Write
from qmodels.traffic import Poisson, bimodal, fixed
from validate.composed import kernels
from validate.composed.kernels import new_blocks
from validate.composed.replication import advance
from validate.composed.world import new_machine

LIST = FreeList(segments=4096, alloc_trial_count=3, clock_ghz=0.5)
# No refresh, pages closed, so that an access takes the same time whenever it comes.
QUIET = dram("DDR4-3200", page_policy="closed", t_refi=0, t_rfc=0)


def lone(*program, **fields):
    return Flow(population=1, think=Deterministic(mean=1000.0), program=program, **fields)


def test_operations_take_their_accesses(simulated):
    program = (Allocate("list", 3), Hold(Deterministic(mean=7.0)), Free("list"))
    result = simulated(System(parts={"list": LIST}, flows=lone(*program)), replications=2, passages=1000)
    # 2 for the packet and 2 for each block, of which one links it; then 3 and 1 for each block.
    accesses = (2 + 3 * 2) + (3 + 3 * 1)
    assert result.latency.best == pytest.approx(accesses * 2.0 + 7.0, rel=1e-12)
    assert result["visit_latency[list]"].best == pytest.approx(accesses * 2.0 / 2, rel=1e-12)
    assert result.latency_parts["list"].best == pytest.approx(accesses * 2.0, rel=1e-12)


def test_the_pointer_memory_serves_one_operation_at_a_time(simulated):
    program = (Allocate("list"), Hold(Exponential(mean=5000.0)), Free("list"))
    flow = Flow(arrivals=Poisson(), rate=0.05, program=program)
    result = simulated(System(parts={"list": LIST}, flows=flow), passages=40_000)
    # Operations of 8 ns each come nearly at random: a queue with constant service.
    exact = queues.mg1(arrival_rate=0.1, service_rate=1 / 8, service_scv=0.0)
    own = result["visit_latency[list]"]
    assert own.best == pytest.approx(float(exact.mean_response_time), rel=0.03)
    assert 0.8 in result.utilization["list"]


def test_blocks_of_a_job_are_written_and_read_in_their_order(simulated):
    parts = {"list": LIST, "dram": dram("DDR4-3200", page_policy="closed", t_refi=0, t_rfc=0, channels=4)}
    program = (
        Allocate("list", 4), Write("dram", 4, "allocated"), Read("dram", 2, "allocated"), Free("list"),
    )  # fmt: skip
    result = simulated(
        System(parts=parts, flows=lone(*program)), replications=2, passages=1000
    )  # fmt: skip
    assert result.stable
    t = parts["dram"].timing
    least = (t.t_rcd + t.cwl + t.burst + t.t_rcd + t.cl + t.burst) / t.clock_ghz
    assert least <= result.latency_parts["dram"].best < 3 * least


READ, WRITE = Read("dram", 3, "allocated"), Write("dram", 3, "allocated")


@pytest.mark.parametrize(
    "program",
    [
        (Allocate("list"), READ, Free("list")),
        (Allocate("list"), WRITE, Free("list")),
        (Allocate("list"), Free("list", steps=(READ,))),
        (Allocate("list", steps=(WRITE,)), Free("list")),
    ],
)
def test_more_accesses_than_a_job_has_blocks_are_to_its_own(simulated, program):
    result = simulated(System(parts={"list": LIST, "dram": QUIET}, flows=lone(*program)), replications=2)
    t = QUIET.timing
    first, again = t.t_rcd + t.cl + t.burst, t.t_rc
    if any(WRITE in (step, *getattr(step, "steps", ())) for step in program):
        first = t.t_rcd + t.cwl + t.burst
        again = first + t.t_wr + t.t_rp
    # One bank has all three, one after the other; a bank of its own, or of other jobs, would be at once.
    own = result["visit_latency[dram]"]
    assert own.best == pytest.approx((first + again) / t.clock_ghz, rel=1e-9)


def test_several_writes_to_a_block_that_is_taken_leave_the_score_of_its_bank():
    program = (Allocate("list", 2, steps=(WRITE,)), Hold(Exponential(mean=50.0)), Free("list"))
    flow = Flow(arrivals=Poisson(), rate=0.002, program=program)
    parts = {"list": FreeList(segments=64), "dram": QUIET}
    machine, _ = advance(new_machine(System(parts=parts, flows=flow), seed=1, replication=0), ended=1000)
    core, pools = machine.core, machine.kernels.blocks
    assert pools.banks["unfinished"].sum() == core.parts["number"][1] == (core.strands["issued"] > 0).sum()
    assert pools.lists["length"].sum() + core.strands["blocks"].sum() == 64


def test_a_job_that_finds_too_few_blocks_is_lost(simulated):
    few = FreeList(segments=3, enqueue_packet_accesses=0, enqueue_accesses=0, clock_ghz=1e6,
                   dequeue_packet_accesses=0, dequeue_accesses=0)  # fmt: skip
    program = (Allocate("list"), Hold(Exponential(mean=1.0)), Free("list"))
    flow = Flow(arrivals=Poisson(), rate=2.0, program=program)
    result = simulated(System(parts={"list": few}, flows=flow), passages=40_000)
    # Erlang's loss system of three servers.
    load = 2.0
    terms = np.cumprod([1.0, load / 1, load / 2, load / 3])
    blocked = terms[-1] / terms.sum()
    assert result.blocking_probability.best == pytest.approx(blocked, rel=0.03)
    assert result.latency.best == pytest.approx(1.0, rel=0.02)


def test_trials_avoid_banks_that_are_busy(simulated):
    spec = dram("DDR4-3200", page_policy="closed", t_refi=0, t_rfc=0, groups=2, banks=2)
    # A write keeps its bank busy for 42 cycles: three banks in ten are.
    flow = Flow(
        arrivals=Poisson(),
        rate=0.3 * 4 * 1.6 / 42,
        program=(Allocate("list"), Write("dram", 1, "allocated"), Free("list")),
    )

    def run(trials):
        free_list = FreeList(segments=4096, alloc_trial_count=trials, mean_run_length=1.0)
        parts = {"list": free_list, "dram": spec}
        return simulated(System(parts=parts, flows=flow), replications=8, passages=20_000)

    one, three = run(1), run(3)
    # An operation to enqueue takes 4 accesses of 1 ns, 2 more after a first busy bank, 1 more after a second.
    assert three["visit_latency[list]"].low > one["visit_latency[list]"].high + 0.5
    assert three["visit_latency[dram]"].high < 0.9 * one["visit_latency[dram]"].low


def test_blocks_come_back_whatever_happens():
    parts = {
        "list": FreeList(segments=64, alloc_trial_count=2, small_packet_segments=2),
        "dram": dram("DDR4-3200", channels=2),
        "small": Station(service=Exponential(mean=30.0), capacity=2),
    }
    flows = [
        Flow(
            name="packets", arrivals=Poisson(), rate=0.05,
            sizes=bimodal(small=64, large=512, small_fraction=0.5),
            program=(
                Allocate("list", "segments"), Write("dram", "segments", "allocated"), Visit("small"),
                Read("dram", "segments", "allocated"), Free("list"),
            ),
        ),
        Flow(name="others", population=2, program=(Read("dram", 2), Hold(Exponential(mean=5.0)))),
    ]  # fmt: skip
    machine, _ = advance(new_machine(System(parts=parts, flows=flows), seed=2, replication=0), ended=20_000)
    pools, core = machine.kernels.blocks, machine.core
    assert core.flows["lost"][0] > 100
    assert pools.lists["length"].sum() + core.strands["blocks"].sum() == 64
    under_way = core.parts["number"][1]
    assert pools.banks["unfinished"].sum() == under_way
    f = core.flows
    assert np.array_equal(f["born"], f["ended"] + f["lost"] + f["number"])


ORDERS = ("together", "as-read", "random")
STORED = (
    Allocate("list", "segments", steps=(Write("dram", 1, "allocated"),)),
    Visit("small"),
    Free("list", steps=(Read("dram", 1, "allocated"), Visit("small"))),
)  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("small", [0, 4])
def test_blocks_of_lost_jobs_come_back_in_every_order(order, small):
    parts = {
        "list": FreeList(segments=64, small_packet_segments=small, return_order=order),
        "dram": dram("DDR4-3200", channels=2),
        "small": Station(service=Exponential(mean=30.0), capacity=3),
    }
    sizes = bimodal(small=64, large=512, small_fraction=0.5)
    flow = Flow(arrivals=Poisson(), rate=0.02, sizes=sizes, program=STORED)
    machine, _ = advance(new_machine(System(parts=parts, flows=flow), seed=2, replication=0), ended=20_000)
    pools, core = machine.kernels.blocks, machine.core
    assert core.flows["lost"][0] > 100 and core.flows["ended"][0] > 100
    used = core.strands["blocks"].sum() - core.strands["returned"].sum()
    assert pools.lists["length"].sum() + used == 64
    assert sum(len(_order(pools, k)) for k in range(3) if pools.lists["length"][k]) == 64 - used


@pytest.mark.parametrize("order", ORDERS)
def test_blocks_return_in_their_order(order):
    """Of several blocks of a job on one bank the later are read after blocks of others."""
    parts = {"list": FreeList(segments=64, mean_run_length=1.0, return_order=order), "dram": QUIET}
    program = (Allocate("list", 16), Free("list", steps=(Read("dram", 1, "allocated"),)))
    system = System(parts=parts, flows=lone(*program))
    before = new_machine(system, seed=3, replication=0)
    taken = _order(before.kernels.blocks, 0)[:16]
    machine, _ = advance(before, ended=1)
    back = _order(machine.kernels.blocks, 0)[-16:]
    assert sorted(back) == sorted(taken)
    assert (back == taken) == (order == "together")


def test_the_return_order_changes_what_banks_meet(simulated):
    """Jobs whose blocks stay together keep those that share a bank; others are shuffled among jobs."""

    def wait(order):
        flow = Flow(
            arrivals=Poisson(), rate=0.006, sizes=fixed(bytes=512),
            program=(Allocate("list", "segments", steps=(Write("dram", 1, "allocated"),)),
                     Hold(Exponential(mean=3000.0)), Free("list", steps=(Read("dram", 1, "allocated"),))),
        )  # fmt: skip
        lists = FreeList(segments=1024, alloc_trial_count=1, mean_run_length=1.0, return_order=order)
        spec = System(parts={"list": lists, "dram": QUIET}, flows=flow)
        return simulated(spec, replications=4, passages=5000)["visit_latency[dram]"]

    together, as_read = wait("together"), wait("as-read")
    assert as_read.high < 0.95 * together.low


def test_accesses_of_a_lost_job_are_finished():
    parts = {
        "list": FreeList(segments=64),
        "dram": dram("DDR4-3200"),
        "small": Station(service=Exponential(mean=30.0), capacity=1),
        "noc": Noc(topology=mesh(3, 1), traffic=uniform(nodes=3)),
    }
    # While the block is on its way to the memory the job is lost, most often.
    both = Fork((Write("dram", 2, "allocated"), Visit("small")))
    flow = Flow(arrivals=Poisson(), rate=0.1, at=(0,), program=(Allocate("list", 2), both, Free("list")))
    system = System(parts=parts, place={"dram": 2}, flows=flow)
    machine, _ = advance(new_machine(system, seed=1, replication=0), ended=5000)
    core, pools = machine.core, machine.kernels.blocks
    assert core.flows["lost"][0] > 1000
    assert pools.banks["unfinished"].sum() == (core.strands["issued"] > 0).sum() < 20
    assert pools.lists["length"].sum() + core.strands["blocks"].sum() == 64


def test_large_lists_are_the_same_circle_from_anywhere():
    lists = (FreeList(segments=2**17, mean_run_length=8.0, small_packet_segments=2, vms1_share=0.75),)
    one, other, again = (
        new_blocks(lists, (QUIET,), (0,), np.random.default_rng(seed)) for seed in (1, 2, 1)
    )  # fmt: skip
    orders = [[_order(pools, k) for k in range(3)] for pools in (one, other, again)]
    for first, second, third in zip(*orders, strict=True):
        turn = second.index(first[0])
        assert 0 < turn and first == second[turn:] + second[:turn] and first == third
    assert sorted(sum(orders[0], [])) == list(range(2**17))


def _order(pools, number):
    """Return the blocks of a list from its head on."""
    found, block = [], int(pools.lists["head"][number])
    while block >= 0:
        found.append(block)
        block = int(pools.blocks["next"][block])
    assert found[-1] == pools.lists["tail"][number] and len(found) == pools.lists["length"][number]
    return found


def test_several_memories_or_lists_are_refused(simulated):
    parts = {"list": LIST, "near": QUIET, "far": QUIET, "other": LIST}
    both = (Allocate("list"), Write("near", 1, "allocated"), Read("far", 1, "allocated"), Free("list"))
    two = (Allocate("other"), Write("near", 1, "allocated"), Allocate("list"), Free("list"), Free("other"))
    rest = Flow(name="rest", population=1, program=(Allocate("other"), Free("other"), Read("far")))
    flows = (Flow(name="one", population=1, sizes=fixed(bytes=64), program=both), rest)
    with pytest.raises(ValueError, match="parts.list must have its blocks in one memory, got near, far"):
        simulated(System(parts=parts, flows=flows))
    flows = (Flow(name="one", population=1, program=two), rest)
    with pytest.raises(ValueError, match="must allocate from one free list to be simulated, got list, other"):
        simulated(System(parts=parts, flows=flows))


def test_blocks_of_a_job_given_back_by_several_branches_are_refused(simulated):
    each = (Allocate("list"), Hold(Exponential(mean=30.0)), Free("list", steps=(Read("dram"),)))
    parts = {"list": FreeList(segments=2), "dram": QUIET}
    # A branch would follow the blocks that another one has already given back.
    for step in (Each(each, 3), Fork((each, each))):
        with pytest.raises(ValueError, match="must give blocks back in one branch at most to be simulated"):
            simulated(System(parts=parts, flows=lone(step)))
    for step in (Each(each, 1), Fork((each, (Read("dram"),)))):
        result = simulated(System(parts=parts, flows=lone(step)), replications=2, passages=1000)
        # What the one branch has is back for the next job.
        assert result.stable and result.blocking_probability.best == 0


@pytest.mark.parametrize("disk", [True, False])
def test_what_a_run_writes_in_a_large_list_no_other_run_finds(disk, monkeypatch):
    def refused(*arguments, **options):
        raise OSError("No space left on device")

    kernels._in_order.cache_clear()
    if not disk:
        monkeypatch.setattr("tempfile.TemporaryFile", refused)
    lists = (FreeList(segments=2 * kernels.FEW_BLOCKS),)
    first, again = (new_blocks(lists, (), (kernels.NOWHERE,), np.random.default_rng(5)) for _ in range(2))
    before = first.blocks.copy()
    assert len(set(before["next"].tolist())) > kernels.FEW_BLOCKS
    first.blocks["next"] = 0
    assert np.array_equal(again.blocks, before)
    assert np.array_equal(new_blocks(lists, (), (kernels.NOWHERE,), np.random.default_rng(5)).blocks, before)
    kernels._in_order.cache_clear()
