"""Statistics of Ramulator 1 (text) and Ramulator 2 (YAML, or JSON of its Python package)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from validate.readers.run_set import (
    Paths,
    RunSet,
    find_files,
    flat,
    number,
    read_text,
    run_of,
    settings_of,
    wrong,
)

EXPECTED = "statistics of a finished Ramulator run"

UNITS = {"cycles": "cycles", "reads": "1", "writes": "1", "read_latency": "cycles", "row_hit_ratio": "1"}

_TEXT = re.compile(r"^\s*(?P<name>ramulator\.\S+|\[.\])\s+(?P<value>\S+)\s+#")
_ITEM = re.compile(r"^(?P<indent> *)(?P<name>[A-Za-z_][\w.]*):(?:\s+(?P<value>[^#]*?))?\s*(?:#.*)?$")
_ENTRY = re.compile(r"^(?P<indent> *)-(?:\s+(?P<value>\S+))?\s*$")
_CONTROLLER = re.compile(r"(?P<channel>.*[cC]ontroller(?:\.\d+)?)\.(?P<name>[a-z_]+?)(?:_\d+)?")


def read_ramulator(
    paths: Paths, *, metrics: str | Iterable[str] = "*", settings: str | None = None
) -> RunSet:
    r"""Read statistics of Ramulator.

    Parameters
    ----------
    paths : path, pattern or sequence of them
        Files: the ``.stats`` file of Ramulator 1, the console output of Ramulator 2.0, or what
        ``Simulation.stats_yaml`` or ``Simulation.stats`` of 2.1 hold, the latter as JSON. Lines of
        a log around the YAML do no harm.
    metrics : str or iterable of str
        Statistics to take besides those below, names with ``*`` and ``?`` as wildcards. Nested
        names are joined by dots, ``MemorySystem.Controller.row_hits_0``; several channels are
        numbered, ``memory_system.controller.1.row_hits``. The prefix ``ramulator.`` of version 1 is
        dropped; the elements of its vectors end in ``[0]``, ``[1]``, ...
    settings : str, optional
        Pattern with named groups that finds the settings of a run in its path.

    Returns
    -------
    RunSet
        A run per file with the statistics, without units, and over all channels together
        ``cycles`` of the memory clock, ``reads`` and ``writes``, the mean ``read_latency`` [cycle]
        of requests, and the ``row_hit_ratio`` of hits to hits, misses and conflicts. What Ramulator
        gives as ``nan`` is left out.

    Raises
    ------
    ValueError
        If a file is no such statistics or was cut off, or a name fits nothing.

    Notes
    -----
    The formats were checked against the public sources of Ramulator 1 and 2.0, against runs made
    with them, and against the sources of 2.1.

    Examples
    --------
    >>> import tempfile
    >>> text = '''
    ... MemorySystem:
    ...   impl: GenericDRAM
    ...   total_num_read_requests: 40
    ...   total_num_write_requests: 10
    ...   memory_system_cycles: 900
    ...   Controller:
    ...     impl: Generic
    ...     id: Channel 0
    ...     num_read_reqs_0: 40
    ...     avg_read_latency_0: 31.5
    ...     row_hits_0: 30
    ...     row_misses_0: 15
    ...     row_conflicts_0: 5
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.yaml").write_text(text)
    ...     runs = read_ramulator(f"{folder}/a.yaml", metrics="*.row_misses*")
    >>> runs["read_latency"], runs["row_hit_ratio"], runs["MemorySystem.Controller.row_misses_0"]
    (array([31.5]), array([0.6]), array([15.]))
    """
    runs = []
    for path in find_files(paths):
        values, totals = _read(path)
        runs.append(run_of(path, values, totals, metrics=metrics, settings=settings_of(path, settings)))
    return RunSet(tool="Ramulator", runs=tuple(runs), units=UNITS)


def _read(path: Path) -> tuple[dict[str, float], dict[str, float]]:
    text = read_text(path, EXPECTED)
    if "ramulator.dram_capacity" in text or re.search(r"^\s*ramulator\.\S+\s+\S+\s+#", text, re.M):
        values = _text(text)
        if "dram_cycles" not in values or not text.endswith("\n"):
            raise wrong(path, EXPECTED, "it was cut off, 'ramulator.dram_cycles' or what follows is missing")
        return values, _totals_1(values)
    values = dict(flat(_tree(path, text)))
    totals = _totals_2(values)
    if "read_latency" not in totals:
        found = "it is not one" if not totals else "it was cut off"
        raise wrong(path, EXPECTED, f"{found}, no controller has 'num_read_reqs' and 'avg_read_latency'")
    return values, totals


def _text(text: str) -> dict[str, float]:
    values, parent = {}, ""
    for line in text.splitlines():
        match = _TEXT.match(line)
        if match is None:
            continue
        name = match["name"].removeprefix("ramulator.")
        if name.startswith("["):
            name = parent + name
        else:
            parent = name
        values[name] = float(match["value"])
    return values


def _totals_1(values: dict[str, float]) -> dict[str, float]:
    def over_channels(pattern: str) -> float:
        return sum(value for name, value in values.items() if re.fullmatch(pattern, name))

    reads = over_channels(r"incoming_read_reqs_per_channel\[.\]")
    hits, others = (
        over_channels(rf"row_({kind})_channel_\d+(_core)?") for kind in ("hits", "misses|conflicts")
    )
    return {
        "cycles": values["dram_cycles"],
        "reads": reads,
        "writes": over_channels(r"write_requests"),
        "read_latency": _ratio(over_channels(r"read_latency_sum_\d+"), reads),
        "row_hit_ratio": _ratio(hits, hits + others),
    }


def _tree(path: Path, text: str) -> Any:
    """Return the nested statistics of Ramulator 2."""
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except ValueError as error:
            raise wrong(path, EXPECTED, f"it is damaged or was cut off ({error})") from None
    return _yaml(text)


def _yaml(text: str) -> dict[str, Any]:
    """Return the nested maps and lists of indented lines, skipping what is neither.

    No YAML library: Ramulator 2.0 repeats the key of a controller for each channel, which YAML does
    not allow and libraries resolve by keeping the last.
    """
    root: dict[str, Any] = {}
    stack: list[tuple[int, Any]] = [(-1, root)]
    for line in text.splitlines():
        item, entry = _ITEM.match(line), _ENTRY.match(line)
        found = item or entry
        if found is None:
            continue
        depth = len(found["indent"])
        while depth <= stack[-1][0]:
            stack.pop()
        parent = stack[-1][1]
        child: Any = {} if not found["value"] else number(found["value"])
        if entry:
            parent[str(len(parent))] = child
        elif item:
            name = item["name"]
            if isinstance(child, dict) and name in parent:
                first = parent[name]
                if "0" not in first:
                    parent[name] = first = {"0": first}
                first[str(len(first))] = child
            else:
                parent[name] = child
        if isinstance(child, dict):
            stack.append((depth, child))
    return root


def _totals_2(values: dict[str, float]) -> dict[str, float]:
    """Return the totals over the controllers of all channels."""
    channels: dict[str, dict[str, float]] = {}
    totals: dict[str, float] = {}
    for name, value in values.items():
        last = name.rpartition(".")[2]
        if last in ("memory_system_cycles", "total_num_read_requests", "total_num_write_requests"):
            totals[last.replace("memory_system_", "").replace("total_num_", "").replace("_requests", "s")] = (
                value
            )
        if match := _CONTROLLER.fullmatch(name):
            channels.setdefault(match["channel"], {})[match["name"]] = value
    groups = list(channels.values())
    if groups and all("num_read_reqs" in group and "avg_read_latency" in group for group in groups):
        busy = [group for group in groups if group["num_read_reqs"] > 0]
        waited = sum(group["num_read_reqs"] * group["avg_read_latency"] for group in busy)
        totals["read_latency"] = _ratio(waited, sum(group["num_read_reqs"] for group in busy))
        hits = sum(group.get("row_hits", 0.0) for group in groups)
        others = sum(group.get("row_misses", 0.0) + group.get("row_conflicts", 0.0) for group in groups)
        totals["row_hit_ratio"] = _ratio(hits, hits + others)
        if "cycles" not in totals and all("cycles" in group for group in groups):
            totals["cycles"] = max(group["cycles"] for group in groups)
    return totals


def _ratio(above: float, below: float) -> float:
    return above / below if below else math.nan
