"""Inputs of a command: a TOML file, a trace, and fields, choices and limits set by hand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cases.study.goals import DATA, WORKLOADS, default_choices, read_choices, technology
from cases.systems import found
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.conditions import in_field_unit
from qmodels.systems.spec.fields import find_field
from qmodels.systems.spec.text.toml import read_value, spec_from_toml
from qmodels.systems.traffic.arrivals import Recorded
from qmodels.systems.traffic.files import takes_option


def read_specs(
    spec: Path | None,
    traces: Path | Sequence[Path] | None,
    settings: Iterable[str],
    interface: str | None = None,
    columns: str | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """Return the specs that a command means by name, and the fields of the default space that were set.

    ``spec``: file of a system of any kind, the bundled case if left out; ``traces``: recorded packets, each
    of which replaces the arrivals and sizes of a packet processor; ``settings``: ``field=value``;
    ``interface``, ``columns``: how traces are read that need it. Errors are one line about file or field.
    """
    file = spec and source_of(spec)
    files = [traces] if isinstance(traces, Path) else list(traces or ())
    given = list(settings)
    if files:
        source = file or DATA / f"{WORKLOADS[0]}.toml"
        plain = spec_from_toml(source)
        if not isinstance(plain, PacketProcessor):
            raise ValueError(f"--trace needs a packet processor, got a {type(plain).__name__}")
        specs = {}
        for name, file in _names(files).items():
            reading = {"file": str(file.absolute()), **reading_of(file, interface, columns, files)}
            # The default sizes give way to the trace's own.
            recorded = {"workload.arrivals": {"kind": "recorded", "trace": reading}, "workload.sizes": "imix"}
            specs[name] = _spec(source, given, recorded)
    else:
        if interface or columns:
            raise ValueError("--interface and --columns need a --trace")
        bundled = {name: DATA / f"{name}.toml" for name in WORKLOADS}
        sources = {_name(spec): file} if spec and file else bundled
        specs = {name: _spec(source, given) for name, source in sources.items()}
    main = next(iter(specs.values()))
    if not isinstance(main, PacketProcessor):
        return specs, []
    paths = {find_field(main, name) for name in named_values(given)}
    return specs, [name for name in default_choices(main) if find_field(main, name) in paths]


def _spec(source: Path | str, settings: list[str], recorded: Mapping[str, Any] | None = None) -> Any:
    """Return the spec of a file with fields set; a field that a trace overrides is refused."""
    try:
        plain = spec_from_toml(source) if settings else None
    except ValueError:  # the settings may mend it
        plain = None
    values = named_values(settings, plain)
    spec = spec_from_toml(source, {**(recorded or {}), **technology(plain, values)})
    if not isinstance(spec, PacketProcessor):
        return spec
    brought = ["workload.sizes"] if isinstance(spec.workload.arrivals, Recorded) else []
    brought += ["workload.arrivals"] if recorded else []
    for name in values:
        if find_field(spec, name) in brought:
            leave = "leave out --trace" if recorded else "set workload.arrivals too, such as poisson"
            raise ValueError(f"{find_field(spec, name)} cannot be set: it is the trace's own; {leave}")
    return spec


def source_of(spec: Path) -> Path | str:
    """Return the file that a path names, or the text of a published system, ``stnoc/table2-...``."""
    from cases.published import CASES

    if spec.parts[:1] and spec.parts[0] in CASES and not spec.suffix == ".toml" and not spec.exists():
        return published_text(spec.as_posix())
    return found(spec)


def published_text(name: str) -> str:
    """Return the text of the one published system of a name."""
    from cases.published.paper import designs_of

    designs = designs_of(name)
    if len(designs) > 1:
        raise ValueError(f"{name} must name one system, got {len(designs)}: {designs[0].name}, ...")
    return designs[0].text()


def named_value(setting: str, option: str = "--set") -> tuple[str, Any]:
    """Return name and value of ``name=value``.

    >>> named_value("noc.link_width = 32")
    ('noc.link_width', 32)
    """
    name, equals, text = setting.partition("=")
    if not equals or not name.strip():
        raise ValueError(f"{option} must be field=value, got {setting!r}")
    return name.strip(), read_value(text.strip())


def named_values(settings: Iterable[str], spec: Any = None, option: str = "--set") -> dict[str, Any]:
    """Return values by name, each field once; of the fields of a spec quantities in the fields' units.

    >>> named_values(["offered_gbps=2 GB/s", "channels=8"], PacketProcessor())
    {'offered_gbps': 16.0, 'channels': 8}
    """
    found: dict[str, Any] = {}
    paths: list[str] = []
    for setting in settings:
        name, value = named_value(setting, option)
        paths.append(_path(spec, name))
        if paths.count(paths[-1]) > 1:
            raise ValueError(f"{option} must name a field once, got {name!r} twice")
        found[name] = in_field_unit(spec, paths[-1], value)
    return found


def _path(spec: Any, name: str) -> str:
    try:
        return name if spec is None else find_field(spec, name)
    except ValueError:  # of a part that another setting brings, or no field at all
        return name


def choices_of(setting: str) -> tuple[str, list[Any]]:
    """Return field and choices of ``field=a,b,c``, or of a field and a TOML list.

    >>> choices_of("link_width=8,16"), choices_of("dram.page_policy=open,closed")
    (('link_width', [8, 16]), ('dram.page_policy', ['open', 'closed']))
    """
    name, value = named_value(setting, "--vary")
    if isinstance(value, list):
        return name, value
    return name, [read_value(part.strip()) for part in setting.partition("=")[2].split(",")]


def varied(spec: Any, vary: Iterable[str], settings: Iterable[str] = ()) -> dict[str, list[Any]]:
    """Return the fields to vary with their choices, by name; each once, and none that is set."""
    found: dict[str, list[Any]] = {}
    paths = list[str]()
    fixed = {_path(spec, name) for name in named_values(settings)}
    for name, values in map(choices_of, vary):
        paths.append(find_field(spec, name))
        if paths.count(paths[-1]) > 1:
            raise ValueError(f"--vary must name a field once, got {name!r} twice")
        if paths[-1] in fixed:
            raise ValueError(f"{name} must be set or varied, got both --set and --vary")
        found[name] = [in_field_unit(spec, paths[-1], value) for value in values]
    return read_choices(spec, found)


def reading_of(
    file: Path, interface: str | None, columns: str | None, among: Sequence[Path] = ()
) -> dict[str, str]:
    """Return the options on reading traces that one file takes; of a single file, or if none does, all."""
    given = {name: said for name, said in (("interface", interface), ("columns", columns)) if said}
    if len(among) < 2:
        return given
    takes = {one: takes_option(one) for one in among}
    return {name: said for name, said in given.items() if takes[file] == name or name not in takes.values()}


def _names(files: Sequence[Path]) -> dict[str, Path]:
    """Return a name for the workload of each trace: its stem, or its whole name where two have one stem."""
    if len({file.absolute() for file in files}) < len(files):
        raise ValueError(f"--trace must name each file once, got {', '.join(map(str, files))}")
    stems = [_name(file) for file in files]
    names = [
        stem if stems.count(stem) == 1 else re.sub(r"[^\w.-]+", "-", file.name)
        for stem, file in zip(stems, files, strict=True)
    ]
    found = dict(zip(names, files, strict=True))
    return found if len(found) == len(files) else {f"trace-{k + 1}": file for k, file in enumerate(files)}


def _name(path: Path) -> str:
    return re.sub(r"[^\w.-]+", "-", path.stem) or "workload"
