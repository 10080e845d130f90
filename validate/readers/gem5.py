"""gem5 ``stats.txt``: the dumps of a run, and those of their statistics that are asked for."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from qmodels import checks
from validate.readers.run_set import Paths, Run, RunSet, find_files, point, select, settings_of, wrong

EXPECTED = "a gem5 stats.txt"

_BEGIN, _END = "---------- Begin Simulation Statistics", "---------- End Simulation Statistics"
_WORDS = {
    "Bit": "bit",
    "Byte": "byte",
    "Celsius": "C",
    "Count": "count",
    "Cycle": "cycle",
    "Joule": "J",
    "Ratio": "1",
    "Second": "s",
    "Tick": "tick",
    "Unspecified": "",
    "Volt": "V",
    "Watt": "W",
}
_UNIT = re.compile(rf"\(((?:[()/]|{'|'.join(_WORDS)})+)\)\s*$")
_LEVELS = ("final_tick", "finalTick", "host_mem_usage", "hostMemory", "sim_freq", "simFreq")
"""Scalars that gem5 does not reset and that are no ratios: a sum of them over dumps has no meaning."""


@dataclass(kw_only=True)
class _Dump:
    """The statistics of one dump; whether its end line was there."""

    line: int
    values: dict[str, float] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    fractions: set[str] = field(default_factory=set)
    whole: bool = False


def read_gem5(
    paths: Paths,
    *,
    metrics: str | Iterable[str] | Mapping[str, str] = "*",
    dump: int | Literal["all", "sum"] | None = None,
    settings: str | None = None,
) -> RunSet:
    r"""Read statistics files of gem5.

    Parameters
    ----------
    paths : path, pattern or sequence of them
        Files, such as ``"sweep/*/stats.txt"``.
    metrics : str, iterable or mapping
        Statistics to take: names with ``*`` and ``?`` as wildcards, such as
        ``"system.cpu*.ipc"``, which keep their names; or ``{name of ours: name of one statistic}``.
    dump : int, "all" or "sum"
        A file has one dump for each time the program or gem5 wrote its statistics: one per region
        of interest and, as a rule, one at exit for what came after the last. A number takes one
        (0 is the first, -1 the last), ``"all"`` makes each a run with the setting ``dump``,
        ``"sum"`` adds up the counters of all. May be left out for files with one dump.
    settings : str, optional
        Pattern with named groups that finds the settings of a run in its path, such as
        ``r"l2_(?P<l2_kib>\d+)kB"``.

    Returns
    -------
    RunSet
        A run per file (or per dump). Units are gem5's where it prints them: ``cycle``,
        ``count/cycle``, ``1`` for a ratio. A statistic that is ``nan`` is left out of its run.

    Raises
    ------
    ValueError
        If a file is no stats.txt, a chosen dump was cut off, the choice of the dump is left open,
        nothing has a name, a name of the mapping fits several statistics, or a statistic named
        without wildcard cannot be summed.

    Notes
    -----
    The format was checked against ``src/base/stats/text.cc`` of gem5: scalars, vectors
    (``name::sub``), distributions and histograms (``name::mean``, ``name::0-9``; those printed on
    one line get the same names), formulas.

    A sum assumes that statistics were reset after each dump. Counters are added; means of
    distributions are weighted with their ``samples``; the smallest ``min_value`` and the largest
    ``max_value`` are kept. A ratio cannot be summed, and is left out: what has a quotient or a
    ratio as its unit, what is called a rate and, without units, what is printed with a decimal
    point (but seconds), besides standard deviations, buckets that a histogram does not have in every dump,
    and what gem5 never resets.

    Examples
    --------
    >>> import tempfile
    >>> text = '''
    ... ---------- Begin Simulation Statistics ----------
    ... simTicks       5000    # Number of ticks simulated (Tick)
    ... system.cpu.ipc 0.800000 # IPC ((Count/Cycle))
    ...
    ... ---------- End Simulation Statistics   ----------
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "stats.txt").write_text(text)
    ...     runs = read_gem5(f"{folder}/stats.txt", metrics={"ipc": "system.cpu*.ipc"})
    >>> float(runs["ipc"][0]), runs.units["ipc"]
    (0.8, 'count/cycle')
    """
    if isinstance(dump, str):
        checks.choice("dump", dump, ("all", "sum"))
    elif dump is not None and (isinstance(dump, bool) or not isinstance(dump, int)):
        raise ValueError(f"dump must be a whole number, 'all' or 'sum', got {dump!r}")
    runs: list[Run] = []
    units: dict[str, str] = {}
    for path in find_files(paths):
        base = settings_of(path, settings)
        for number, chosen in _choose(path, _dumps(path), dump):
            names = _names(path, chosen, metrics)
            values = {name: chosen.values[statistic] for name, statistic in names.items()}
            units |= {
                n: chosen.units[statistic] for n, statistic in names.items() if statistic in chosen.units
            }
            runs.append(
                Run(
                    settings=base | ({"dump": number} if dump == "all" else {}),
                    metrics={name: point(value) for name, value in values.items() if not math.isnan(value)},
                    source=str(path) if dump != "all" else f"{path}, dump {number}",
                )
            )
    return RunSet(tool="gem5", runs=tuple(runs), units=units)


def _dumps(path: Path) -> list[_Dump]:
    dumps: list[_Dump] = []
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.startswith(_BEGIN):
                    dumps.append(_Dump(line=number))
                elif line.startswith(_END) and dumps:
                    dumps[-1].whole = True
                elif dumps and not dumps[-1].whole and not line.isspace():
                    _read_line(line, dumps[-1])
    except UnicodeDecodeError:
        raise wrong(path, EXPECTED, "it is not text") from None
    if not dumps:
        raise wrong(path, EXPECTED, f"no line begins with {_BEGIN!r}")
    return dumps


def _read_line(line: str, dump: _Dump) -> None:
    data, _, comment = line.partition("#")
    words = data.split()
    if len(words) < 2:
        return
    name, text = words[:2]
    unit = _UNIT.search(comment)
    found: Iterable[tuple[str, str]] = [(name, text)]
    if text.startswith("|"):
        found = _one_line(name, data, dump)
    for name, text in found:
        try:
            dump.values[name] = float(text)
        except ValueError:
            continue
        if "." in text:
            dump.fractions.add(name)
        if unit:
            word = unit[1].strip("()") if unit[1].count("(") == unit[1].count(")") < 2 else unit[1]
            dump.units[name] = re.sub("|".join(_WORDS), lambda match: _WORDS[match[0]], word)


def _one_line(name: str, data: str, dump: _Dump) -> Iterator[tuple[str, str]]:
    """Name the values of a vector or histogram printed on one line, ``name | 3 30.00% 30.00% | ...``."""
    size, low = dump.values.get(f"{name}::bucket_size"), dump.values.get(f"{name}::min_bucket", 0.0)
    for k, part in enumerate(data.split("|")[1:]):
        label = str(k)
        if size is not None:
            start = low + k * size
            label = f"{start:g}" if size == 1 else f"{start:g}-{start + size - 1:g}"
        if part.strip():
            yield f"{name}::{label}", part.split()[0]


def _choose(path: Path, dumps: list[_Dump], dump: int | str | None) -> list[tuple[int, _Dump]]:
    """Return the chosen dumps with their numbers."""
    if dump is None and len(dumps) > 1:
        raise ValueError(
            f"dump must be given for {path}, which has {len(dumps)}: 0 to {len(dumps) - 1} "
            "(-1 is the last), 'all' or 'sum'"
        )
    if isinstance(dump, int) and not -len(dumps) <= dump < len(dumps):
        raise ValueError(f"dump must be from {-len(dumps)} to {len(dumps) - 1} for {path}, got {dump}")
    taken = [(dump % len(dumps), dumps[dump])] if isinstance(dump, int) else list(enumerate(dumps))
    for number, one in taken:
        if not one.whole:
            found = f"dump {number}, which begins in line {one.line}, has no end line: it was cut off"
            raise wrong(path, EXPECTED, found)
    return [(0, _sum(dumps))] if dump == "sum" else taken


def _sum(dumps: list[_Dump]) -> _Dump:
    """Statistics of all dumps together."""
    total = _Dump(line=dumps[0].line, whole=True)
    for name in dict.fromkeys(name for dump in dumps for name in dump.values):
        holders = [dump for dump in dumps if name in dump.values]
        values = [dump.values[name] for dump in holders]
        base, _, part = name.rpartition("::")
        samples = [dump.values.get(f"{base}::samples", math.nan) for dump in holders]
        if part == "mean" and not any(map(math.isnan, samples)):
            seen = [(n, v) for n, v in zip(samples, values, strict=True) if n > 0]
            if seen:
                total.values[name] = sum(n * v for n, v in seen) / sum(n for n, _ in seen)
        elif part in ("min_value", "max_value"):
            total.values[name] = (min if part == "min_value" else max)(values)
        elif all(_is_counter(name, part, dump) for dump in holders) and _same_buckets(base, part, dumps):
            total.values[name] = math.fsum(values)
        if name in total.values and name in holders[0].units:
            total.units[name] = holders[0].units[name]
    return total


def _is_counter(name: str, part: str, dump: _Dump) -> bool:
    if (
        name in _LEVELS
        or name.lower().endswith("rate")
        or part in ("mean", "gmean", "stdev", "bucket_size", "min_bucket", "max_bucket")
    ):
        return False
    unit = dump.units.get(name, "")
    if unit:
        return unit not in ("1", "C", "V", "W") and "/" not in unit
    return name not in dump.fractions or name.lower().replace("_", "").endswith("seconds")


def _same_buckets(base: str, part: str, dumps: list[_Dump]) -> bool:
    """Return whether a bucket of a histogram is in every dump that has one: gem5 widens them as it runs."""
    if not re.fullmatch(r"\d+(-\d+)?", part):
        return True
    return all(f"{base}::{part}" in dump.values for dump in dumps if f"{base}::samples" in dump.values)


def _names(path: Path, dump: _Dump, metrics: str | Iterable[str] | Mapping[str, str]) -> dict[str, str]:
    """Return the statistic behind each metric asked for."""
    if not isinstance(metrics, Mapping):
        return {name: name for name in select(dump.values, metrics, path, "statistic")}
    names = {}
    for ours, pattern in metrics.items():
        found = select(dump.values, pattern, path, "statistic")
        if len(found) > 1:
            raise ValueError(
                f"{pattern!r} must be one statistic of {path}, got {len(found)}: {', '.join(found[:4])}"
            )
        names[ours] = found[0]
    return names
