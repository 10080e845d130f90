from qmodels import PacketProcessor
from validate.composed.world import new_machine
from validate.packet_processor import Job, run_replication


def test_one_replication(benchmark):
    """20,000 packets of the default design; events per second in the extra information."""
    job = Job(spec=PacketProcessor(), seed=1, replication=0, packets=20_000)
    run = benchmark.pedantic(run_replication, args=(job,), rounds=5, warmup_rounds=1)
    assert run.packets == 20_000
    if benchmark.stats is not None:
        benchmark.extra_info["events_per_second"] = run.sums["events"] / benchmark.stats["min"]


def test_a_replication_before_its_first_packet(benchmark):
    """Caches and lists put in order, the list of 4 million blocks included."""
    system = PacketProcessor().system()
    benchmark(new_machine, system, seed=1, replication=0)
