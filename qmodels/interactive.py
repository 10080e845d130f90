"""The one name here that opens what stands on the floor above; it is imported when it is called."""

from __future__ import annotations

from typing import Any

from qmodels.beside import package


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
    from cases.what_if.widget import widget_of

    return widget_of(spec)
