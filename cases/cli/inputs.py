"""What a command is given: a TOML file, a trace, and fields set by hand, made into specs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cases.study.packet_processor import CHOICES, DATA, WORKLOADS
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import find_field
from qmodels.systems.spec.toml import from_toml, read_value


def read_specs(
    spec: Path | None, trace: Path | None, settings: Iterable[str]
) -> tuple[dict[str, PacketProcessor], list[str]]:
    """Return the specs a command means, by workload, and the varied fields that were given.

    Parameters
    ----------
    spec : Path or None
        TOML file; None for the joint case.
    trace : Path or None
        File of recorded packets that replaces the workload's arrivals and sizes.
    settings : iterable of str
        ``field=value``: a dotted path or a unique end of one, and a TOML value.

    Returns
    -------
    dict of str to PacketProcessor
        The workload of the file or the trace, or both bundled ones, the default first.
    list of str
        Fields of the default space that `settings` names.

    Raises
    ------
    ValueError
        One line about the file or the field.
    """
    if spec is None and trace is None:
        sources = {name: DATA / f"{name}.toml" for name in WORKLOADS}
    else:
        sources = {_name(trace or spec or Path()): spec or DATA / f"{WORKLOADS[0]}.toml"}
    specs, named = {}, set()
    for name, source in sources.items():
        overrides = _trace_overrides(trace)
        plain = from_toml(source, PacketProcessor, overrides=overrides)
        values = _settings(plain, settings)
        named |= set(values)
        specs[name] = from_toml(source, PacketProcessor, overrides=overrides | values)
    main = next(iter(specs.values()))
    given = [name for name in CHOICES if find_field(main, name) in named]
    return specs, given


def _name(path: Path) -> str:
    return re.sub(r"[^\w.-]+", "-", path.stem) or "workload"


def _trace_overrides(trace: Path | None) -> dict[str, Any]:
    if trace is None:
        return {}
    arrivals = {"kind": "recorded", "trace": str(trace.absolute())}
    return {
        "workload.arrivals": arrivals,
        "workload.sizes": "imix",
    }  # the default gives way to the trace's own


def _settings(spec: PacketProcessor, settings: Iterable[str]) -> dict[str, Any]:
    values = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"--set must be field=value, got {setting!r}")
        values[find_field(spec, name.strip())] = read_value(text.strip())
    return values
