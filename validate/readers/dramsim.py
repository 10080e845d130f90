"""Statistics of DRAMsim3: its JSON and text files, its epochs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from validate.readers.run_set import Paths, RunSet, find_files, flat, read_text, run_of, settings_of, wrong

EXPECTED = "statistics of a finished DRAMsim3 run (dramsim3.json, dramsim3epoch.json or dramsim3.txt)"

UNITS = {
    "cycles": "cycles",
    "reads": "1",
    "writes": "1",
    "read_latency": "cycles",
    "row_hit_ratio": "1",
    "bandwidth": "GB/s",
    "power": "mW",
    "energy": "pJ",
}
_HEADER = re.compile(r"^## Statistics of Channel (\d+)")
_LINE = re.compile(r"^(?P<name>\S+)\s+=\s+(?P<value>\S+)\s+# ")
_NEEDED = ("num_cycles", "num_reads_done", "average_read_latency", "average_bandwidth", "total_energy")

Channels = Mapping[str, Mapping[str, float]]


def read_dramsim3(paths: Paths, *, metrics: str | Iterable[str] = "*", settings: str | None = None) -> RunSet:
    """Read statistics of DRAMsim3.

    Parameters
    ----------
    paths : path, pattern or sequence of them
        Files ``dramsim3.json``, ``dramsim3.txt`` (rounded to six digits) or ``dramsim3epoch.json``.
    metrics : str or iterable of str
        Statistics to take besides those below, names with ``*`` and ``?`` as wildcards: each
        begins with its channel, ``0.num_act_cmds``; parts follow a dot, ``0.sref_cycles.1``.
    settings : str, optional
        Pattern with named groups that finds the settings of a run in its path.

    Returns
    -------
    RunSet
        A run per file (of an epoch file: per epoch, with the setting ``epoch``) with the
        statistics, without units, and over all channels together ``cycles``, ``reads`` and
        ``writes`` done, the mean ``read_latency`` [cycle], the ``row_hit_ratio`` of row hits to
        column commands, ``bandwidth`` [GB/s], ``power`` [mW] and ``energy`` [pJ].

    Raises
    ------
    ValueError
        If a file is no such statistics or was cut off, or a name fits nothing.

    Notes
    -----
    The format was checked against ``simple_stats.cc`` of the public sources of DRAMsim3 and against
    runs made with it.

    Examples
    --------
    >>> import tempfile
    >>> text = '''{"0":{"average_bandwidth":4.0,"average_power":231.0,"average_read_latency":44.0,
    ... "channel":0,"num_cycles":20000,"num_read_cmds":100,"num_read_row_hits":25,
    ... "num_reads_done":100,"num_write_cmds":0,"num_write_row_hits":0,"num_writes_done":0,
    ... "total_energy":4.6e6}}'''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "dramsim3.json").write_text(text)
    ...     runs = read_dramsim3(f"{folder}/*.json")
    >>> runs["read_latency"], runs["row_hit_ratio"], runs["0.num_cycles"]
    (array([44.]), array([0.25]), array([20000.]))
    """
    runs = []
    for path in find_files(paths):
        base = settings_of(path, settings)
        for epoch, channels in _read(path):
            values = {f"{channel}.{name}": v for channel, one in channels.items() for name, v in one.items()}
            own = base if epoch is None else base | {"epoch": epoch}
            runs.append(run_of(path, values, _totals(channels), metrics=metrics, settings=own))
    return RunSet(tool="DRAMsim3", runs=tuple(runs), units=UNITS)


def _read(path: Path) -> Iterator[tuple[int | None, Channels]]:
    text = read_text(path, EXPECTED)
    epochs: dict[int | None, dict[str, Mapping[str, float]]] = {}
    if text.lstrip().startswith(("{", "[")):
        try:
            data = json.loads(text)
        except ValueError as error:
            raise wrong(path, EXPECTED, f"it is damaged or was cut off ({error})") from None
        for one in data if isinstance(data, list) else data.values():
            if not isinstance(one, dict) or "channel" not in one:
                raise wrong(path, EXPECTED, "it is not one, a part has no 'channel'")
            epoch = one.get("epoch_num") if isinstance(data, list) else None
            epochs.setdefault(epoch, {})[str(one["channel"])] = dict(flat(one))
    else:
        epochs[None] = _text(path, text)
    for epoch, channels in epochs.items():
        for number, values in channels.items():
            missing = [name for name in _NEEDED if name not in values]
            if missing:
                raise wrong(path, EXPECTED, f"channel {number} has no {missing[0]!r}, it was cut off")
        yield epoch, channels


def _text(path: Path, text: str) -> dict[str, Mapping[str, float]]:
    channels: dict[str, Mapping[str, float]] = {}
    values: dict[str, float] = {}
    for line in text.splitlines():
        if header := _HEADER.match(line):
            values = {}
            channels[header[1]] = values
        elif match := _LINE.match(line):
            try:
                values[match["name"]] = float(match["value"])
            except ValueError:
                raise wrong(path, EXPECTED, f"{match['name']} is {match['value']!r}, not a number") from None
    if not channels:
        raise wrong(path, EXPECTED, "it is not one, no line begins with '## Statistics of Channel'")
    return channels


def _totals(channels: Channels) -> dict[str, float]:
    def total(*names: str) -> float:
        return sum(values.get(name, 0.0) for values in channels.values() for name in names)

    reads, commands = total("num_reads_done"), total("num_read_cmds", "num_write_cmds")
    latency = sum(values["num_reads_done"] * values["average_read_latency"] for values in channels.values())
    return {
        "cycles": max(values["num_cycles"] for values in channels.values()),
        "reads": reads,
        "writes": total("num_writes_done"),
        "read_latency": latency / reads if reads else math.nan,
        "row_hit_ratio": total("num_read_row_hits", "num_write_row_hits") / commands
        if commands
        else math.nan,
        "bandwidth": total("average_bandwidth"),
        "power": total("average_power"),
        "energy": total("total_energy"),
    }
