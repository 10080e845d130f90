"""The analytic answer for the packet processor with LLC slices and interleaved DRAM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from qmodels.error_map import MeasuredError
from qmodels.llc.processor_errors import ERRORS, is_validated, region_of
from qmodels.llc.processor_hits import HitRatios, hit_ratios, llc_load
from qmodels.llc.processor_queues import solve_queues
from qmodels.systems.cache.llc_processor import BANKS, LLC_PROCESSOR_METRICS, LlcProcessor


@dataclass(frozen=True, kw_only=True, eq=False)
class LlcProcessorAnswer:
    """Metrics of an `LlcProcessor`.

    Parameters
    ----------
    spec : LlcProcessor
        What was asked.
    metrics : mapping of str to float
        By the names of `qmodels.systems.cache.llc_processor.LLC_PROCESSOR_METRICS`, which has their units;
        also attributes of the answer.
    validated : bool
        Whether the design lies in the range in which the model was compared with simulation.
    error : mapping of str to MeasuredError
        By metric, what was found for this architecture; where its LLC is nearly full, in such designs.
    """

    spec: LlcProcessor
    metrics: Mapping[str, float]
    validated: bool
    error: Mapping[str, MeasuredError]

    @property
    def stable(self) -> bool:
        """Always: what would be too much is refused."""
        return True

    @property
    def units(self) -> dict[str, str]:
        """The unit of each metric."""
        return {name: LLC_PROCESSOR_METRICS[name].unit for name in self.metrics}

    @property
    def utilization(self) -> dict[str, float]:
        """The busy fraction of each kind of resource."""
        found = {"cores": self.core_utilization, "DRAM banks": self.memory_utilization}
        return found if self.spec.architecture == "none" else found | {"LLC": self.llc_utilization}

    def __getattr__(self, name: str) -> float:
        try:
            metrics: Mapping[str, float] = self.__dict__["metrics"]
            return metrics[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no metric {name!r}") from None

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per metric: its name, unit and value."""
        return [
            {"metric": name, "unit": self.units[name], "value": value} for name, value in self.metrics.items()
        ]

    def to_pandas(self) -> Any:
        """Return the rows as a tidy DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def __repr__(self) -> str:
        lines = [f"LLC processor ({self.spec.architecture}), model"]
        for row in self.rows():
            unit = "" if row["unit"] == "1" else row["unit"]
            stated = f"  error {self.error[row['metric']]}" if row["metric"] in self.error else ""
            lines.append(f"  {row['metric']:<24} {row['value']:>12.5g} {unit}{stated}".rstrip())
        lines.append(f"  error: against simulation, {next(iter(self.error.values())).where}")
        if not self.validated:
            lines.append("  outside the range in which that was measured")
        return "\n".join(lines)


def solve_llc_processor(spec: LlcProcessor, *, hits: HitRatios | None = None) -> LlcProcessorAnswer:
    """Return the steady state of a packet processor with LLC slices, a shared LLC, or none.

    Parameters
    ----------
    spec : LlcProcessor
        The processor.
    hits : HitRatios, optional
        Shares found at each level, if they are known; by default those of `hit_ratios`.

    Returns
    -------
    LlcProcessorAnswer
        With too much load the blocking probability says how much is refused; all metrics stay finite.

    Raises
    ------
    RuntimeError
        If an iteration does not converge.

    Notes
    -----
    The hit ratios of `qmodels.llc.processor_hits`, then the memory path as a closed network
    (`processor_memory`), then the queues of the cores under the bound on all requests
    (`processor_queues`). Approximation. The errors against simulation, in one-at-a-time
    variations of the published design and in random designs, are in ``processor_error_map.csv``, made by
    ``python -m cases.published.llc3d.errors``. Where the load of a shared LLC is between 0.75 and 1.1 its
    long queues come and go: there the waiting time was found up to 16 % too short and 83 % too long, the
    blocking probability wrong by up to 1.3 points, and the answer says that it is outside the range.

    References
    ----------
    .. [1] T. Korikawa, A. Kawabata, F. He, E. Oki, "Packet Processing Architecture Using
       Last-Level-Cache Slices and Interleaved 3D-Stacked DRAM", IEEE Access 8, 2020: the system, which
       is only simulated there.

    Examples
    --------
    >>> for architecture in ("slices", "none", "shared"):
    ...     answer = solve_llc_processor(LlcProcessor(architecture=architecture))
    ...     print(architecture, f"{answer.throughput_gbps:.1f} Gb/s {answer.waiting_latency:.0f} ns")
    slices 90.0 Gb/s 333 ns
    none 87.9 Gb/s 376 ns
    shared 42.8 Gb/s 903 ns
    """
    if not isinstance(spec, LlcProcessor):
        raise ValueError(f"spec must be an LlcProcessor, got {spec!r}")
    found = hit_ratios(spec) if hits is None else hits
    queues = solve_queues(spec, found)
    throughput = spec.arrival_rate * (1.0 - queues.blocking_probability)
    waiting = max(queues.mean_number_in_system - queues.busy_cores, 0.0) / throughput
    response = queues.mean_number_in_system / throughput
    metrics = {
        "throughput": throughput,
        "throughput_gbps": spec.gbps(throughput),
        "blocking_probability": queues.blocking_probability,
        "mean_waiting_time": waiting,
        "mean_response_time": response,
        "waiting_latency": waiting * spec.time_unit_ns,
        "response_latency": response * spec.time_unit_ns,
        "mean_number_in_system": queues.mean_number_in_system,
        "l1_hit_ratio": found.l1,
        "l2_hit_ratio": found.l2,
        "llc_hit_ratio": found.llc,
        "on_chip_hit_ratio": 1.0 - found.misses[2],
        "core_utilization": queues.busy_cores / spec.cores,
        "llc_utilization": queues.busy_slices / max(spec.llc_slices, 1),
        "memory_utilization": queues.busy_banks / (spec.channels * BANKS),
    }
    load = llc_load(spec, found)
    return LlcProcessorAnswer(
        spec=spec,
        metrics={name: float(metrics[name]) for name in LLC_PROCESSOR_METRICS},
        validated=is_validated(spec, llc_load=load),
        error=ERRORS.at(region=region_of(spec.architecture, load)),
    )


def llc_skip_threshold(spec: LlcProcessor) -> float:
    """Return the LLC miss ratio beyond which requests had better skip the LLC.

    Parameters
    ----------
    spec : LlcProcessor
        A processor with an LLC.

    Returns
    -------
    float
        The miss ratio, of the requests that reach the LLC, at which the mean waiting time is that without
        LLC; 0 if no LLC is better even if it has everything, 1 if the LLC is better even if it has nothing.

    Raises
    ------
    ValueError
        If the processor has no LLC.

    Notes
    -----
    By bisection on the hit ratio, what L1 and L2 find unchanged. Where cores do not wait for a slice
    a visit that finds nothing costs its service time and one that finds the line saves a DRAM access:
    the threshold is then near 1 - bank_rate / llc_rate.

    Examples
    --------
    >>> round(llc_skip_threshold(LlcProcessor()), 2)
    0.89
    """
    if spec.architecture == "none":
        raise ValueError("architecture must have an LLC to skip, got 'none'")
    found = hit_ratios(spec)
    without = solve_llc_processor(replace(spec, architecture="none"), hits=replace(found, llc=0.0))

    def worse(hit: float) -> bool:
        answer = solve_llc_processor(spec, hits=replace(found, llc=hit))
        return answer.mean_waiting_time > without.mean_waiting_time

    if worse(1.0):
        return 0.0
    if not worse(0.0):
        return 1.0
    low, high = 0.0, 1.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if worse(middle) else (low, middle)
    return 1.0 - (low + high) / 2
