"""Kernels give the same numbers as plain Python and compiled, and are compiled aside."""

import importlib
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import qmodels as qm
from qmodels import traffic
from qmodels.noc import fixed_point, interleaved
from qmodels.numerics import kernels
from qmodels.numerics.tables import remembered
from qmodels.packet_processor import balance, lone_packet, meeting
from qmodels.packet_processor import bounds as operating
from qmodels.packet_processor.following import recursion, waits
from qmodels.packet_processor.following.waits import run
from qmodels.systems.lowering import compile_part

TOY = """
import numpy as np
from qmodels.numerics.kernels import kernel, part

@kernel(soon=lambda x: x.size < 10)
def total(x):
    found = 0.0
    for k in range(x.size):
        found += twice(x[k])
    return found

@kernel(soon=lambda x: x.size < 10)
def product(x):
    found = 1.0
    for k in range(x.size):
        found *= x[k]
    return found

FACTOR = 2

@part
def twice(x):
    return FACTOR * x
"""


@pytest.fixture
def total(tmp_path, monkeypatch):
    import numba

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(kernels, "_compiler", None)  # one of this test's, which imports what it does
    monkeypatch.syspath_prepend(tmp_path)
    name = f"toy_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(TOY)
    yield importlib.import_module(name).total
    if kernels._compiler is not None:
        kernels._compiler.communicate()


def recorded(module, name, monkeypatch):
    kernel, calls = getattr(module, name), []

    def recorder(*arguments):
        calls.append(deepcopy(arguments))
        return kernel(*arguments)

    monkeypatch.setattr(module, name, recorder)
    return kernel, calls


def same_to_the_last_bit(kernel, calls):
    for arguments in calls:
        compiled, plain = deepcopy(arguments), deepcopy(arguments)
        kernel.machine(*compiled)
        with np.errstate(all="ignore"):
            kernel.plain(*plain)
        for one, other in zip(compiled, plain, strict=True):
            if isinstance(one, np.ndarray):
                np.testing.assert_array_equal(one, other)


def networks():
    noc = qm.Noc(
        topology=qm.spidergon(12),
        routing="across-first",
        injection_rate=np.linspace(0.005, 0.2, 12),
        traffic=interleaved(initiators=range(6), channels=range(6, 10), step=1),
    )
    yield noc
    yield replace(noc, router=replace(noc.router, buffer_flits=2))
    yield replace(noc, router=replace(noc.router, virtual_channels=4), link_width=16)


def test_the_waits_of_networks_are_the_same(monkeypatch):
    kernel, calls = recorded(fixed_point, "solve_turns", monkeypatch)
    for noc in networks():
        qm.solve(noc)
    assert sum(arguments[0].size for arguments in calls) >= 36
    same_to_the_last_bit(kernel, calls)


def test_packets_followed_wait_the_same(monkeypatch):
    from qmodels.packet_processor.following.waits import run

    run.cache_clear()
    kernel, calls = recorded(recursion, "follow", monkeypatch)
    spec = qm.PacketProcessor()
    packets = spec.workload.packets(np.random.default_rng(1), 2_000)
    trace = traffic.Trace(times_ns=packets.times_ns, bytes=packets.bytes, source="test")
    spec = replace(spec, workload=qm.Workload.from_trace(trace, offered_gbps=40.0))
    for channels, load in ((2, 0.3), (4, 0.9)):
        dram, workload = replace(spec.dram, channels=channels), replace(spec.workload, load_factor=load)
        assert qm.solve(replace(spec, dram=dram, workload=workload)).packet_latency_p99 > 0
    assert calls
    same_to_the_last_bit(kernel, calls)


@pytest.mark.parametrize("policy", ["open", "closed"])
def test_packet_processors_are_the_same(policy, monkeypatch):
    pairs = (
        (balance, "settle"),
        (meeting, "meet"),
        (meeting, "meet_few"),
        (lone_packet, "walk_all"),
        (operating, "least"),
    )
    recordings = [recorded(module, name, monkeypatch) for module, name in pairs]
    spec = qm.PacketProcessor()
    dram = replace(spec.dram, page_policy=policy, channels=np.array([1, 4, 8]), interleaving_step=4)
    spec = replace(spec, dram=dram, free_list=replace(spec.free_list, alloc_trial_count=3))
    assert np.all(qm.solve(spec).saturation_data_rate > 0)
    qm.bounds(spec).stages[0](spec, replace(spec, llc=replace(spec.llc, slices=spec.llc.slices + 1)))
    for kernel, calls in recordings:
        assert calls
        same_to_the_last_bit(kernel, calls)


def test_designs_followed_on_all_cores_wait_as_one_after_the_other(monkeypatch):
    asked, together = [], waits._runs

    def recorder(*arguments):
        asked.append((arguments, together(*arguments)))
        return asked[-1][1]

    run.cache_clear()
    monkeypatch.setattr(waits, "_runs", recorder)
    packets = qm.PacketProcessor().workload.packets(np.random.default_rng(1), 3_000)
    trace = traffic.Trace(times_ns=packets.times_ns, bytes=packets.bytes, source="test")
    workload = qm.Workload.from_trace(trace, offered_gbps=np.linspace(1.0, 60.0, 9))
    assert np.all(qm.solve(replace(qm.PacketProcessor(), workload=workload)).packet_latency > 0)
    for (rotation, paths, designs), found in asked:
        assert len(found) == 9
        for (*numbers, rate, hold, miss), one in zip(designs, found, strict=True):
            alone = run.function(rotation, paths, rate, hold, miss, tuple(numbers))
            np.testing.assert_array_equal(one.top, alone.top)
            np.testing.assert_array_equal(one.mean, alone.mean)
    assert asked


def test_a_part_is_compiled_once_for_all_whole_numbers():
    import numba

    half = compile_part(lambda n: n // 2)
    kernel = numba.njit(lambda n: half(n) + half(4) + half(6))
    assert kernel(2) == 6 and len(half.overloads) == 1


def test_powers_by_squaring():
    for n in range(70):
        assert fixed_point._power(0.5, n) == 0.5**n
        assert fixed_point._power(0.93, n) == pytest.approx(0.93**n, rel=1e-14)


def test_the_first_calls_are_plain_and_later_ones_compiled_aside(total):
    x = np.arange(5.0)
    assert total(x) == 20.0
    assert not total._ready and not total.machine.signatures
    total.wait()
    assert total(x) == 20.0
    assert total._ready and sum(total.machine.stats.cache_hits.values()) == 1
    assert not list(Path(total.machine.stats.cache_path).glob("*.request"))


def test_long_calls_are_compiled_at_once(total):
    assert total(np.arange(100.0)) == 9900.0
    assert total._ready and total._request is None and len(total.machine.signatures) == 1


def test_the_first_of_many_calls_compiles(total):
    total.expect_many()
    assert total(np.arange(5.0)) == 20.0
    assert total._ready and total._request is None and len(total.machine.signatures) == 1


def test_long_calls_wait_for_what_is_compiled_aside_and_one_process_compiles_all(total):
    module = importlib.import_module(total.plain.__module__)
    both = (total, module.product)
    assert [kernel(np.arange(1.0, 4.0)) for kernel in both] == [12.0, 6.0]
    compiler = kernels._compiler
    assert [kernel(np.arange(20.0)) for kernel in both] == [380.0, 0.0]
    assert [sum(kernel.machine.stats.cache_hits.values()) for kernel in both] == [1, 1]
    assert kernels._compiler is compiler and compiler.poll() is None


def test_a_compiler_that_ends_is_not_waited_for(total):
    assert total(np.arange(5.0)) == 20.0
    kernels._compiler.kill()
    kernels._compiler.wait()
    assert total(np.arange(100.0)) == 9900.0
    assert sum(total.machine.stats.cache_misses.values()) == 1


def test_what_another_process_compiles_is_not_compiled_twice_and_patience_ends(total, monkeypatch):
    place = Path(total.machine.stats.cache_path)
    place.mkdir(parents=True, exist_ok=True)
    (place / "total.request").touch()
    assert total(np.arange(5.0)) == 20.0
    assert total._request is None and not total._ready
    monkeypatch.setattr(kernels, "PATIENCE", 0.0)
    assert total(np.arange(5.0)) == 20.0
    assert total._ready and len(total.machine.signatures) == 1


def test_machine_code_of_another_part_or_number_is_not_used(total, monkeypatch):
    """Numba itself looks at the file of the kernel alone, and parts may stand in other ones."""
    x, module = np.arange(100.0), importlib.import_module(total.plain.__module__)
    assert total(x) == 9900.0

    def again() -> kernels.Kernel:
        return kernels.Kernel(total.plain, total.soon)

    assert again()._on_disk((x,))
    monkeypatch.setattr(module, "FACTOR", 3)
    assert not again()._on_disk((x,)) and again()(x) == 14850.0
    monkeypatch.setattr(module, "twice", kernels.part(lambda x: x))
    assert not again()._on_disk((x,)) and again()(x) == 4950.0


def test_kernels_compile_where_no_cache_can_be_written(monkeypatch):
    import numba

    tried = []

    def without_cache(**options):
        tried.append(options.get("cache", False))
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(numba, "njit", without_cache)

    def double(x):
        return 2 * x

    assert kernels.compiled(double)(4) == 8
    assert tried == [True, False]


def test_the_last_used_are_kept() -> None:
    calls = []

    @remembered(100, lambda found: found.nbytes)
    def ones(count: int) -> np.ndarray:
        calls.append(count)
        return np.ones(count)

    assert [ones(count).size for count in (5, 6, 5, 4, 5, 6)] == [5, 6, 5, 4, 5, 6]
    assert calls == [5, 6, 4, 6] and ones.bytes == sum(found.nbytes for found, _ in ones.kept.values())
    assert ones(1000).size == 1000 and len(ones.kept) == 1
    ones.cache_clear()
    assert ones.bytes == 0 and not ones.kept


def test_followed_packets_of_many_designs_do_not_pile_up(monkeypatch) -> None:
    run.cache_clear()
    monkeypatch.setattr(run, "most", 500_000)
    spec = qm.PacketProcessor()
    packets = spec.workload.packets(np.random.default_rng(1), 3_000)
    trace = traffic.Trace(times_ns=packets.times_ns, bytes=packets.bytes, source="test")
    spec = replace(spec, workload=qm.Workload.from_trace(trace))
    load = replace(spec.workload, offered_gbps=np.linspace(1.0, 60.0, 16))
    tail = qm.solve(replace(spec, workload=load)).packet_latency_p99
    assert run.bytes <= 500_000 and 1 < len(run.kept) < 16
    monkeypatch.setattr(run, "most", 100_000_000)
    np.testing.assert_array_equal(tail, qm.solve(replace(spec, workload=load)).packet_latency_p99)
