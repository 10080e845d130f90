"""BookSim 2 console output: latencies and rates per traffic class, with the settings it echoes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from validate.readers.run_set import Paths, Run, RunSet, Setting, find_files, number, point, read_text, wrong

EXPECTED = "the console output of a finished BookSim 2 run"

_METRICS = {
    "Packet latency": ("packet_latency", "cycles"),
    "Network latency": ("network_latency", "cycles"),
    "Flit latency": ("flit_latency", "cycles"),
    "Fragmentation": ("fragmentation", "cycles"),
    "Injected packet rate": ("injected_packet_rate", "packets/cycle/node"),
    "Accepted packet rate": ("accepted_packet_rate", "packets/cycle/node"),
    "Injected flit rate": ("injected_flit_rate", "flits/cycle/node"),
    "Accepted flit rate": ("accepted_flit_rate", "flits/cycle/node"),
    "Injected packet size": ("injected_packet_flits", "flits"),
    "Accepted packet size": ("accepted_packet_flits", "flits"),
    "Injected packet length": ("injected_packet_flits", "flits"),
    "Accepted packet length": ("accepted_packet_flits", "flits"),
    "Hops": ("hops", "hops"),
}
_PER_CLASS = (
    "class_priority",
    "injection_process",
    "injection_rate",
    "latency_thres",
    "packet_size",
    "traffic",
)
"""Settings of which BookSim takes one value per traffic class: those in braces, the last one for the rest."""

_NUMBER = r"(?P<value>-?(?:nan|inf|\d[\d.]*(?:e[-+]?\d+)?))"
_VALUE = re.compile(rf"^(?P<what>[A-Z][a-z]+(?: [a-z]+)*?) average ?= {_NUMBER}")
_EXTREME = re.compile(rf"^\t(?P<end>minimum|maximum) = {_NUMBER}")
_CLASS = re.compile(r"^====== Traffic class (?P<overall>\d+) ======|^Class (?P<sample>\d+):$")
_SETTING = re.compile(r"(?P<name>\w+)\s*=\s*(?P<value>[^;]+?)\s*;")
_EXCEEDED = re.compile(r"^Average latency for class \d+ exceeded .* cycles")
_OVERALL = "====== Overall Traffic Statistics ======"
_UNSTABLE = "Simulation unstable, ending ..."


def read_booksim(paths: Paths) -> RunSet:
    """Read console output of BookSim 2, one or more logs of a sweep.

    Parameters
    ----------
    paths : path, pattern or sequence of them
        Logs, such as ``"sweep/*.log"``: each the standard output of one run.

    Returns
    -------
    RunSet
        A run for every log and traffic class, with the settings that BookSim echoed (those left
        to its defaults are unknown), the number of the class as ``traffic_class``, and

        - ``packet_latency`` (from generation, source queue included), ``network_latency`` (from
          injection) and ``flit_latency``, each with ``_minimum`` and ``_maximum``; ``fragmentation``
          [cycles],
        - ``injected_`` and ``accepted_packet_rate`` [packets/cycle/node] and ``_flit_rate``
          [flits/cycle/node], averaged over the nodes, with their extremes,
        - ``injected_`` and ``accepted_packet_flits`` [flits], ``hops`` (channels passed) [hops].

        Where BookSim called the run unstable, `Run.stable` is False, ``packet_latency`` and its
        maximum are ``inf`` and the other values are those of the last sample period; the note
        says why BookSim gave up.

    Raises
    ------
    ValueError
        If a pattern names no file, or a file is no such output or was cut off.

    Notes
    -----
    The format was checked against the ``DisplayOverallStats``, ``DisplayStats`` and ``Run`` of
    ``trafficmanager.cpp`` in the public sources of BookSim 2.0 and against runs made with it. The
    ``results:`` lines of ``print_csv_results`` are not used: they repeat class 0 for every class.

    Examples
    --------
    >>> import tempfile
    >>> log = '''BEGIN Configuration File: mesh
    ... topology = mesh;  k = 4;
    ... END Configuration File: mesh
    ... OVERRIDE Parameter: injection_rate=0.05
    ... ====== Overall Traffic Statistics ======
    ... ====== Traffic class 0 ======
    ... Packet latency average = 22.819 (1 samples)
    ... Accepted flit rate average = 0.0484 (1 samples)
    ... Hops average = 3.49224 (1 samples)
    ... Total run time 0.142664
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.log").write_text(log)
    ...     runs = read_booksim(f"{folder}/*.log")
    >>> runs["packet_latency"], runs.setting("injection_rate"), runs.units["hops"]
    (array([22.819]), array([0.05]), 'hops')
    """
    runs = [run for path in find_files(paths) for run in _read(path)]
    return RunSet(tool="BookSim 2", runs=tuple(runs), units=_units())


def _units() -> dict[str, str]:
    pairs = {name: unit for name, unit in _METRICS.values()}
    return {f"{name}{end}": unit for name, unit in pairs.items() for end in ("", "_minimum", "_maximum")}


def _read(path: Path) -> Iterator[Run]:
    lines = read_text(path, EXPECTED).splitlines()
    unstable = _UNSTABLE in lines
    if not unstable and _OVERALL not in lines:
        ours = any(line.startswith(("BEGIN Configuration File", "Class 0:")) for line in lines)
        found = "it was cut off" if ours else "it is not one"
        raise wrong(path, EXPECTED, f"{found}, neither {_OVERALL!r} nor {_UNSTABLE!r} is there")
    blocks = _blocks(lines if unstable else lines[lines.index(_OVERALL) :])
    if not unstable and not any(line.startswith("Total run time") for line in lines):
        raise wrong(path, EXPECTED, "it was cut off, 'Total run time' is missing")
    if not any("packet_latency" in metrics for metrics in blocks.values()):
        raise wrong(path, EXPECTED, "it has no 'Packet latency average'")
    settings = _settings(lines)
    note = "; ".join(line for line in lines if _EXCEEDED.match(line) or line.startswith("Too many sample"))
    for number_of_class, metrics in blocks.items():
        if unstable:
            metrics |= {"packet_latency": math.inf, "packet_latency_maximum": math.inf}
        yield Run(
            settings={
                **{name: _of_class(name, text, number_of_class) for name, text in settings.items()},
                "traffic_class": number_of_class,
            },
            metrics={name: point(value) for name, value in metrics.items() if not math.isnan(value)},
            stable=not unstable,
            source=str(path),
            note=(note or _UNSTABLE) if unstable else "",
        )


def _blocks(lines: list[str]) -> dict[int, dict[str, float]]:
    """Return the values of each class; a later block of the same class replaces an earlier one."""
    blocks: dict[int, dict[str, float]] = {}
    current: dict[str, float] = {}
    last = ""
    for line in lines:
        if header := _CLASS.match(line):
            current = blocks[int(header["overall"] or header["sample"])] = {}
        elif (match := _VALUE.match(line)) and match["what"] in _METRICS:
            last = _METRICS[match["what"]][0]
            current[last] = float(match["value"])
        elif (match := _EXTREME.match(line)) and last:
            current[f"{last}_{match['end']}"] = float(match["value"])
        else:
            last = ""
    return blocks


def _settings(lines: list[str]) -> dict[str, str]:
    """Return the configuration that was echoed from files and from the command line, which comes later."""
    settings: dict[str, str] = {}
    text: list[str] | None = None
    for line in lines:
        if line.startswith("BEGIN Configuration File"):
            text = []
        elif line.startswith("END Configuration File") and text is not None:
            plain = re.sub(r"//[^\n]*", "", "\n".join(text))
            settings |= {match["name"]: match["value"] for match in _SETTING.finditer(plain)}
            text = None
        elif line.startswith("OVERRIDE Parameter:"):
            name, _, value = line.partition(":")[2].partition("=")
            settings[name.strip()] = value.strip().rstrip(";")
        elif text is not None:
            text.append(line)
    return settings


def _of_class(name: str, text: str, number_of_class: int) -> Setting:
    """Return a setting as one traffic class has it."""
    if name in _PER_CLASS and text.startswith("{") and text.endswith("}"):
        # Commas inside inner braces or brackets belong to one class: {1,{4,5}}, {uniform,hotspot({0,5})}.
        parts = re.split(r",(?![^{(]*[})])", text[1:-1])
        text = parts[min(number_of_class, len(parts) - 1)].strip()
    return number(text)
