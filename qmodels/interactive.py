"""Verbs for a notebook: files read, presets listed, designs explored, a design changed by hand.

What stands on the floor above is imported when it is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qmodels.beside import package
from qmodels.systems.memory.dram_timing import PRESETS
from qmodels.systems.spec.conditions import conditions, metric_named
from qmodels.systems.spec.text.toml import spec_from_toml

if TYPE_CHECKING:
    from cases.cli.sizing import Sized
    from qmodels.optimize import Exploration, Space


def what_if(spec: Any) -> Any:
    """Return a widget in which a design is changed by hand, field by field, with its answer beside it.

    Parameters
    ----------
    spec : spec of a registered kind
        Where to begin. ``widget.session.spec`` is the design as it is now.

    Raises
    ------
    ImportError
        If anywidget is not installed: ``pip install 'qmodels-toolkit[notebook]'``.
    TypeError, ValueError
        If the spec is none, or a sweep.

    Examples
    --------
    >>> import qmodels as qm
    >>> widget = qm.what_if(qm.Noc(injection_rate=0.02))  # the last value of a cell is shown
    >>> widget.session.spec.link_width
    16
    """
    package("cases")
    from cases.what_if.server import widget_of

    return widget_of(spec)


def read(source: str | Path, **changes: Any) -> Any:
    """Return the system that a TOML file, or its text, describes.

    Parameters
    ----------
    source : str or Path
        The path of a file; text of more than one line, or with ``=``, is the document itself.
    **changes
        Fields to set to what a file would hold, by unique ends of their names.

    Examples
    --------
    >>> import qmodels as qm
    >>> qm.read('kind = "noc"', link_width=32).link_width
    32
    """
    text = str(source)
    document = isinstance(source, str) and ("=" in text or "\n" in text)
    return spec_from_toml(text if document else Path(source), changes)


def presets() -> dict[str, str]:
    """Return the memory technologies by name, as `qmodels.dram` and files take them, with their sources.

    Examples
    --------
    >>> import qmodels as qm
    >>> [name for name in qm.presets() if "DDR5" in name]
    ['DDR5-6400', 'LPDDR5-6400']
    """
    return {name: one.source for name, one in PRESETS.items()}


def explore(
    space: Space,
    evaluate: Any = None,
    *,
    minimize: str | Iterable[str] = (),
    maximize: str | Iterable[str] = (),
    subject_to: str | Iterable[str] | Mapping[str, tuple[float | None, float | None]] | None = None,
    **options: Any,
) -> Exploration:
    """Solve the designs of a space and return their exact Pareto front.

    Parameters
    ----------
    space : Space
        The designs.
    evaluate : callable, optional
        The model; otherwise `qmodels.solve`.
    minimize, maximize : str or sequence of str
        The objectives; the end of a name that only one metric has is enough, and ``area`` is the cost.
    subject_to : str, sequence of str or mapping, optional
        Limits, ``"p99 < 2us"``, or ``{metric: (low, high)}``.
    **options
        Of `qmodels.optimize.explore`.

    Examples
    --------
    >>> import qmodels as qm
    >>> space = qm.Space(qm.PacketProcessor(), channels=[2, 4, 8], link_width=[8, 16])
    >>> front = qm.explore(space, minimize=["area", "p99"], subject_to="p99 < 2us")
    >>> bool((front.table["packet_latency_p99"][front.front] < 2000).all())
    True
    """
    from qmodels.dispatch import solve
    from qmodels.systems.spec.fields import takes_array

    base = space.base
    goals = {
        key: [metric_named(base, name) for name in ([names] if isinstance(names, str) else names)]
        for key, names in (("minimize", minimize), ("maximize", maximize))
    }
    if evaluate is None:
        options.setdefault("vectorized", [name for name in space.numeric if takes_array(base, name)])
    found: Exploration = package("optimize").explore(
        space, evaluate or solve, **goals, subject_to=conditions(base, subject_to), **options
    )
    return found


def size(
    spec: Any,
    field: str,
    until: str | Iterable[str],
    *,
    within: tuple[Any, Any] | None = None,
    which: str = "smallest",
) -> Sized:
    """Return the smallest or largest value of a field that meets conditions, and why not another, in words.

    Parameters
    ----------
    spec : spec of a registered kind
        The system; its traffic is what it has.
    field : str
        A number of it, by a unique end of its name.
    until : str or sequence of str
        Conditions on metrics, ``"p99 < 2us"``.
    within : tuple, optional
        Least and largest value to look at; by default as far as the field goes.
    which : {"smallest", "largest"}
        Which value is asked.

    Examples
    --------
    >>> import qmodels as qm
    >>> found = qm.size(qm.PacketProcessor(), "channels", "p99 < 2us")
    >>> found.value, found.lines[0]
    (3, 'Channels 3 is the smallest that meets packet latency p99 at most 2 us.')
    """
    package("cases")
    from cases.cli.sizing import sized

    return sized(spec, field, until, within=within, which=which)
