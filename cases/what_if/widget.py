"""The page inside a notebook: the same scripts, asking the kernel by messages."""

from __future__ import annotations

from typing import Any

from cases.what_if.page import module, style
from cases.what_if.session import Session


def what_if(spec: Any) -> Any:
    """Return a widget in which a design is changed by hand, with its answer beside it (needs anywidget).

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
    >>> widget = what_if(qm.Noc(injection_rate=0.02))
    >>> widget.session.change({"link_width": "32"})["answer"]["stable"], widget.session.spec.link_width
    (True, 32)
    """
    session = Session(spec)
    try:
        from anywidget import AnyWidget
        from traitlets import Unicode
    except ImportError as missing:
        raise ImportError(
            "what_if needs anywidget: pip install 'qmodels-toolkit[notebook]', or qmodels serve"
        ) from missing

    class WhatIf(AnyWidget):  # type: ignore[misc]
        _esm = module()
        style = Unicode(style()).tag(sync=True)

    widget = WhatIf()
    widget.session = session

    def hear(_: Any, asked: dict[str, Any], __: Any) -> None:
        widget.send({"id": asked["id"], "answer": session.call(asked["name"], asked["arguments"])})

    widget.on_msg(hear)
    return widget
