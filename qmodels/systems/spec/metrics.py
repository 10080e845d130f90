"""Every metric once: its name, unit and meaning, the same in all kinds of systems and from every verb."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """Declaration of a metric: one meaning and unit wherever its name appears."""

    # "1" for a pure number. Times of hardware are in ns, of abstract stations in the ``time`` that their laws
    # are in
    unit: str
    meaning: str  # In words
    better: str = "down"  # Where a designer wants it; empty where that depends


@dataclass(frozen=True)
class Detail:
    """Declaration of a detail: values that an answer has beside its metrics."""

    unit: str  # As of a metric; empty of what is no number
    meaning: str
    along: str = ""  # What there is one value of; empty of a single one
    kept: bool = True  # Whether files keep it: not what is long or no table


@dataclass(frozen=True)
class MetricNames:
    """The metrics of one kind of system."""

    # Names in `METRICS` that the model and the simulation give, the main one first. A metric of several
    # places (stations, processes, cache levels) is given once for each, with the place in brackets:
    # ``mean_response_time[disk]``
    both: tuple[str, ...]
    # model, simulation: What only one of the two gives
    model: tuple[str, ...] = ()
    simulation: tuple[str, ...] = ()
    # Those of both that the model knows in some cases only, and leaves out in others
    sometimes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[str]:
        return iter((*self.both, *self.model, *self.simulation))


def metric(name: str) -> Metric:
    """Return the declaration of a metric, whatever place its name has in brackets.

    Raises
    ------
    KeyError
        If no metric is called that.

    Examples
    --------
    >>> metric("mean_response_time[disk, read]").unit
    'time'
    """
    return METRICS[name.partition("[")[0]]


ALIASES = {"area": "cost", "saturates": "saturation_data_rate"}
"""Words that stand for a metric where its name is not given in full."""


def full_name(name: str, known: Iterable[str]) -> str:
    """Return the metric of some, the main one first, that a short name means; the name itself if none does.

    The end of a name is enough where a single metric, or the main one, ends so.

    >>> known = ["packet_latency", "packet_latency_p99", "read_latency", "cost"]
    >>> [full_name(name, known) for name in ("p99", "latency", "latency p99", "area", "rate")]
    ['packet_latency_p99', 'packet_latency', 'packet_latency_p99', 'cost', 'rate']
    """
    names = list(known)
    short = name.replace(" ", "_")
    short = ALIASES.get(short, short)
    if name in names or short in names:
        return name if name in names else short
    ends = [one for one in names if one.endswith(f"_{short}")]
    return ends[0] if len(ends) == 1 or ends[:1] == names[:1] != [] else name


def is_relative(name: str) -> bool:
    """Return whether the error of a metric is stated relative to its value: all but shares of one.

    A metric that another package declares is taken to be none of these.
    """
    if name.partition("[")[0] not in METRICS:
        return True
    return metric(name).unit != "1" or any(word in name for word in ("accesses", "speedup", "_scv"))


def _share(meaning: str, better: str = "down") -> Metric:
    return Metric("1", meaning, better)


METRICS: dict[str, Metric] = {
    # Times of hardware.
    "packet_latency": Metric("ns", "of a packet, from its arrival until it is out, mean; without the hold"),
    "packet_latency_p95": Metric("ns", "95th percentile of the packet latency"),
    "packet_latency_p99": Metric("ns", "99th percentile of the packet latency"),
    "zero_load_latency": Metric("ns", "packet latency of a packet alone in the network, mean over flows"),
    "source_queue_delay": Metric("ns", "mean wait of a packet in the queue of its network interface"),
    "traversal_delay": Metric("ns", "from the head leaving the source queue until the tail is out"),
    "transaction_latency": Metric("ns", "from the request's injection until its response is in"),
    "lookup_latency": Metric("ns", "mean time from a packet's arrival to the end of its last table lookup"),
    "read_latency": Metric("ns", "from the order of a read until its last data are there, mean"),
    "read_latency_p50": Metric("ns", "median of the read latency"),
    "read_latency_p99": Metric("ns", "99th percentile of the read latency"),
    "write_latency": Metric("ns", "from the order of a write until its last data are in the memory, mean"),
    "waiting_latency": Metric("ns", "of an accepted request in the queue of its core, mean"),
    "response_latency": Metric("ns", "of an accepted request until its entry is found, mean"),
    "message_latency": Metric("ns", "from the first copied word until the last packet is there, mean"),
    "execution_time": Metric("ns", "from the start until the last process, core or job has finished"),
    "finish_time": Metric("ns", "until a process ends"),
    "computing_time": Metric("ns", "computing steps of a process"),
    "software_time": Metric("ns", "message software of a process: library code and copying"),
    "network_time": Metric("ns", "packets of a process under way to their targets and back"),
    "blocked_time": Metric("ns", "wait of a process for messages of others"),
    "step_time": Metric("ns", "mean time of a core per block: execution time of a core over its blocks"),
    "transfer_time": Metric("ns", "mean time from a command's issue to its end, the wait included"),
    "channel_wait": Metric("ns", "mean time of a command before a channel begins with it"),
    "lock_waiting_time": Metric("ns", "wait for locks per task"),
    "memory_waiting_time": Metric("ns", "wait for the memory controller per task"),
    "latency": Metric("ns", "of a job of a flow, from its arrival to the end of its program, mean"),
    "latency_p99": Metric("ns", "99th percentile of the latency of a flow's jobs"),
    "visit_latency": Metric("ns", "of one request to a part, from its arrival there to its end, mean"),
    # What gets through.
    "data_rate": Metric("Gb/s", "packet bits that leave, per time", "up"),
    "flow_throughput": Metric("1/ns", "jobs of a flow that end, per time", "up"),
    "saturation_factor": _share("of all open rates, from which the first resource is full", "up"),
    "saturation_data_rate": Metric(
        "Gb/s", "packet bits that can be sustained when the first resource is full", "up"
    ),
    "bandwidth": Metric("GB/s", "payload bytes moved by the whole system, per time", "up"),
    "delivered_rate": Metric("1/ns", "packets or accesses served by the whole system, per time", "up"),
    "transaction_rate": Metric("1/ns", "transactions completed by all initiators together, per time", "up"),
    "saturation_rate": Metric(
        "1/ns", "rate from which queues grow without end: of a node that sends, or of all accesses", "up"
    ),
    "speedup": _share("serial time (compute and transfers of all tasks, nothing else) over that taken", "up"),
    # Memory.
    "write_conflict_probability": _share(
        "writes that find their bank busy (with another row, where rows stay open)"
    ),
    "read_conflict_probability": _share(
        "reads that find their bank busy (with another row, where rows stay open)"
    ),
    "write_busy_probability": _share("segment writes that meet their bank busy, whatever the page"),
    "read_busy_probability": _share("segment reads that meet their bank busy, whatever the page"),
    "row_hit_ratio": _share("accesses to an open row, which need no row command", "up"),
    "bus_utilization": _share("busy fraction of the data buses, mean over the channels", ""),
    "controller_utilization": _share("busy fraction of the busiest memory controller", ""),
    "channel_utilization": _share("busy fraction of the busiest channel (of all, where any will do)", ""),
    "memory_utilization": _share("busy fraction of a bank, mean", ""),
    "switch_ratio": _share(
        "commands that turn their channel to another memory, or their token to another use"
    ),
    "stage_latency": Metric("ns", "from a mark of a job to its next one, mean"),
    # Caches.
    "hit_ratio": _share("requests served by a cache; of a level, of those that reach it", "up"),
    "miss_ratio": _share("requests served by memory"),
    "l1_hit_ratio": _share("requests that find their line in L1", "up"),
    "l2_hit_ratio": _share("requests that miss L1 and find their line in L2", "up"),
    "llc_hit_ratio": _share("requests that come to the LLC and find their line there", "up"),
    "on_chip_hit_ratio": _share("requests that need no DRAM", "up"),
    "llc_utilization": _share("busy fraction of a slice, the mean of all", ""),
    # Free lists.
    "pointer_accesses_per_allocation": _share("pointer-memory accesses of one block allocation, mean"),
    "max_pointer_accesses_per_allocation": _share("pointer-memory accesses of one block allocation, most"),
    "pointer_accesses_per_deletion": _share("pointer accesses that free the blocks of a packet, mean"),
    "max_pointer_accesses_per_deletion": _share("pointer accesses that free the blocks of a packet, most"),
    "overflow_probability": _share("segments refused because a free list was too short"),
    "allocation_failure_probability": _share(
        "allocations that fail: once for a packet refused or given up, once for each segment lost alone"
    ),
    "vms1_overflow_probability": _share("segments of large packets refused"),
    "vms2_overflow_probability": _share("segments of small packets that find the VMS2 list empty"),
    "vms3_overflow_probability": _share("times the VMS3 list is asked for a block and is empty"),
    "worst_enqueue_probability": _share(
        "segment writes that meet a conflict or take more than one allocation access"
    ),
    "enqueue_overhead": Metric("cycles", "overhead of such a worst-case segment write, mean"),
    "enqueue_energy": Metric("paper's unit", "energy of that overhead"),
    "deletion_overhead": Metric(
        "cycles", "overhead of a packet deletion that takes more than one access, mean"
    ),
    "cycles_per_segment_access": Metric(
        "cycles", "segment access with the pointer accesses that do not fit beside it, mean"
    ),
    "pointer_overrun_probability": _share("segment accesses beside which their pointer accesses do not fit"),
    # Cores.
    "core_utilization": _share("busy fraction of a core, memory accesses included; the busiest one's", ""),
    "parallel_efficiency": _share("share of the cores' time in which they compute", "up"),
    "imbalance": _share("tasks of the cluster that runs most, over an equal share, less 1"),
    "stolen_share": _share("tasks moved by a theft, per task", ""),
    "local_share": _share("tasks that went through a core's own unlocked queue", ""),
    # The whole.
    "blocking_probability": _share("arrivals (jobs, packets, requests) that are lost before they enter"),
    "max_utilization": _share("busy fraction of the busiest resource", ""),
    "energy_per_packet": Metric("nJ", "dynamic and background energy per carried packet"),
    "cost": Metric("mm2", "area equivalent of controllers, routers, wires, slices and pointer memory"),
    # Stations and networks of them; time is what their laws are in.
    "arrival_rate": Metric("jobs/time", "jobs offered, lost ones included", ""),
    "throughput": Metric("jobs/time", "jobs that complete a visit", "up"),
    "utilization": _share("busy fraction of a server", ""),
    "waiting_probability": _share("jobs that enter and have to wait"),
    "abandonment_probability": _share("jobs that enter and leave before their service"),
    "mean_waiting_time": Metric("time", "from arrival to the start of service, mean of those that enter"),
    "waiting_time_variance": Metric("time^2", "variance of the waiting time"),
    "mean_service_time": Metric("time", "of a job on one server", ""),
    "mean_response_time": Metric("time", "of a visit from arrival to departure, mean"),
    "response_time_variance": Metric("time^2", "variance of the response time"),
    "residence_time": Metric("time", "at a station per passage through the network: visits times response"),
    "mean_number_in_queue": Metric("jobs", "that wait, mean over time"),
    "mean_number_in_system": Metric("jobs", "that wait or are served, mean over time"),
    "blocked_servers": Metric("servers", "held by jobs blocked after their service, mean over time"),
    "arrival_scv": _share("squared coefficient of variation of the times between arrivals", ""),
    "departure_scv": _share("squared coefficient of variation of the times between departures", ""),
    "system_throughput": Metric("jobs/time", "jobs that leave the network served, or cycles", "up"),
    "system_response_time": Metric("time", "of a passage through the network, mean"),
    "mean_number_in_network": Metric("jobs", "in the whole network, mean over time"),
    "system_loss_probability": _share("jobs from outside that are lost or give up anywhere"),
}
"""All metrics. Tables, files, the command line and the documentation take units and meanings from here."""


DETAILS: dict[str, Detail] = {
    # Of models and simulations.
    "allocation_accesses": Detail("1", "share of allocations with 0, 1, 2, ... pointer accesses", "accesses"),
    "deletion_accesses": Detail("1", "share of deletions with 0, 1, 2, ... pointer accesses", "accesses"),
    "cluster_tasks": Detail("1", "tasks that its cores run, mean", "cluster"),
    "core_time": Detail("ns", "until a core is done; 0 for idle ones", "core"),
    "core_busy": Detail("1", "fraction of the execution time that it computes", "core"),
    "channel_busy": Detail("1", "the same with a command; of all together where any will do", "channel"),
    "controller_busy": Detail("1", "the same in which it serves an access", "controller"),
    "channel_share": Detail("1", "share of the accesses", "channel"),
    "slice_shares": Detail("1", "share of the requests to a sliced level; none without slices", "slice"),
    "resources": Detail("1", "traffic intensity (simulated: busy fraction) of every one", "resource"),
    "channels": Detail("", "columns of name, utilization, waits [ns], buffered flits", "channel", kept=False),
    "flows": Detail("", "columns of ends, class, rate and delays [ns]", "flow", kept=False),
    # Of models.
    "kind": Detail("", "whether the numbers are exact, an approximation or a bound", kept=False),
    "result": Detail("", "the model's own result, such as one with quantiles", kept=False),
    "bounds": Detail("cycles", "bounds of the execution time", "resource", kept=False),
    "regime": Detail("", "compute if the cores are the bottleneck, otherwise transfer"),
    "lower_bounds": Detail("ns", "execution time that no order of the tasks can beat", "bound"),
    "limits": Detail("blocks/cycle", "accesses that each resource of a channel can sustain", "resource"),
    "slice_imbalance": Detail("1", "requests to the busiest slice over those to the mean one"),
    "laws": Detail("", "of a point by its number: latencies' probabilities, cycles a cell", kept=False),
    "contention_time": Detail("ns", "network time that others cause", "process"),
    "circuit_latency": Detail("ns", "longest that a packet can take, whatever others send", "circuit"),
    "crowding": Detail("1", "most that is asked of a channel at once over what it carries"),
    "deadlock": Detail("", "virtual channels in which packets may wait in a circle", "channel"),
    "upper_bound": Detail("1/ns", "rate that no closed loop with these times exceeds"),
    "congested_rate": Detail("1/ns", "what a node carries once all buffers are full", kept=False),
    "ideal_saturation_rate": Detail("1/ns", "rate at which the first channel is always busy", kept=False),
    "source_delay": Detail("cycles", "mean wait in the source queue, by load", "flow", kept=False),
    "waits": Detail("cycles", "what the fixed point gave, for the rates in order", "load", kept=False),
    # Of simulations.
    "operations": Detail("", "count, mean and most accesses", "operation", kept=False),
    "overloaded": Detail("", "what did not keep up as long as the runs lasted", "station, channel or flow"),
    "waiting_for": Detail("", "parts that jobs waited for when no event was left", "part"),
    "verdict": Detail("", "whether a network keeps up, in a word"),
    "finish": Detail("ns", "when each process ended, by replication", "process", kept=False),
    "services": Detail("", "who sent to whom, with which priority", "service", kept=False),
    "packets": Detail("1", "packets, all replications together", "service"),
    "mean_packet_latency": Detail("ns", "from one network interface to the other", "service"),
    "max_packet_latency": Detail("ns", "the same, longest", "service"),
    "saturation_utilization": Detail("1", "busy fraction when packets are always waiting", "group"),
    "waiting": Detail("ns", "mean time that a job waits for it", "resource"),
    "growth": Detail("1", "packets by which those under way grew for each that came; about 0 if stable"),
    "numbers": Detail("1", "jobs in the system, visits under way, means over time", "flow or part"),
    "visit_rates": Detail("1/ns", "visits that end, per time", "part"),
    "most_jobs": Detail("1", "jobs that memory was taken for", kept=False),
    "from_idle_times": Detail("", "whether mean times are from the idle times, not counted"),
    "runs": Detail("", "the replications", "replication", kept=False),
}
"""Details of answers beside their metrics, by the name of the attribute."""


def markdown() -> str:
    r"""Return the tables of all metrics and details for the documentation.

    Examples
    --------
    >>> print("\n".join(markdown().splitlines()[2:5]))
    | metric | unit | better | meaning |
    |---|---|---|---|
    | `packet_latency` | ns | down | of a packet, from its arrival until it is out, mean; without the hold |
    """
    rows = [
        f"| `{name}` | {'' if one.unit == '1' else one.unit} | {one.better} | {one.meaning} |"
        for name, one in METRICS.items()
    ]
    beside = [
        f"| `{name}` | {'' if one.unit == '1' else one.unit} | {one.along} | {one.meaning} |"
        for name, one in DETAILS.items()
    ]
    return "\n".join(
        [
            *("# Metrics", "", "| metric | unit | better | meaning |", "|---|---|---|---|", *rows),
            *(
                "",
                "## Beside them",
                "",
                "| detail | unit | of each | meaning |",
                "|---|---|---|---|",
                *beside,
            ),
            "",
        ]
    )
