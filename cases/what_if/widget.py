"""The page inside a notebook: the same scripts, asking the kernel by messages."""

from __future__ import annotations

from typing import Any

from cases.what_if.page import module, style
from cases.what_if.session import Session


def widget_of(spec: Any) -> Any:
    """Return the widget of `qmodels.interactive.what_if`."""
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
