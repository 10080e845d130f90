"""What a command is given: a TOML file, a trace, and fields, choices and limits set by hand."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cases.study.packet_processor import CHOICES, DATA, WORKLOADS
from cases.systems import found
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import find_field
from qmodels.systems.spec.toml import read_value, spec_from_toml


def read_specs(
    spec: Path | None, trace: Path | None, settings: Iterable[str]
) -> tuple[dict[str, Any], list[str]]:
    """Return the specs a command means, by name, and the varied fields of the joint case that were given.

    Parameters
    ----------
    spec : Path or None
        TOML file of a system of any kind; None for the joint case.
    trace : Path or None
        File of recorded packets that replaces the arrivals and sizes of a packet processor's workload.
    settings : iterable of str
        ``field=value``: a dotted path or a unique end of one, and a TOML value.

    Returns
    -------
    dict of str to spec
        That of the file or the trace, or both bundled ones, the default first.
    list of str
        Fields of the default space that `settings` names.

    Raises
    ------
    ValueError
        One line about the file or the field.
    """
    spec = spec and found(spec)
    if spec is None and trace is None:
        sources = {name: DATA / f"{name}.toml" for name in WORKLOADS}
    else:
        sources = {_name(trace or spec or Path()): spec or DATA / f"{WORKLOADS[0]}.toml"}
    values = dict(named_value(setting) for setting in settings)
    if trace is not None:
        plain = spec_from_toml(next(iter(sources.values())))
        if not isinstance(plain, PacketProcessor):
            raise ValueError(f"--trace needs a packet processor, got a {type(plain).__name__}")
        # The default sizes give way to the trace's own.
        recorded = {"kind": "recorded", "trace": str(trace.absolute())}
        values = {"workload.arrivals": recorded, "workload.sizes": "imix"} | values
    specs = {name: spec_from_toml(source, values) for name, source in sources.items()}
    main = next(iter(specs.values()))
    if not isinstance(main, PacketProcessor):
        return specs, []
    paths = {find_field(main, name) for name in values}
    return specs, [name for name in CHOICES if find_field(main, name) in paths]


def named_value(setting: str, option: str = "--set") -> tuple[str, Any]:
    """Return name and value of ``name=value``.

    Examples
    --------
    >>> named_value("noc.link_width = 32")
    ('noc.link_width', 32)
    """
    name, equals, text = setting.partition("=")
    if not equals or not name.strip():
        raise ValueError(f"{option} must be field=value, got {setting!r}")
    return name.strip(), read_value(text.strip())


def choices_of(setting: str) -> tuple[str, list[Any]]:
    """Return field and choices of ``field=a,b,c``, or of a field and a TOML list.

    Examples
    --------
    >>> choices_of("link_width=8,16"), choices_of("dram.page_policy=open,closed")
    (('link_width', [8, 16]), ('dram.page_policy', ['open', 'closed']))
    """
    name, value = named_value(setting, "--vary")
    if isinstance(value, list):
        return name, value
    return name, [read_value(part.strip()) for part in setting.partition("=")[2].split(",")]


def _name(path: Path) -> str:
    return re.sub(r"[^\w.-]+", "-", path.stem) or "workload"
