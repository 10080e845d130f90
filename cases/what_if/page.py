"""The page on which a design is changed: one text of scripts and style for the browser and for notebooks."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from cases.what_if.session import Session

HERE = Path(__file__).parent
LIBRARIES = ("d3", "plot")

ASK = """
whatIf(document.getElementById("what-if"), async (name, values) => {
  const headers = { "Content-Type": "application/json" }, body = JSON.stringify({ name, arguments: values });
  return (await fetch("call", { method: "POST", headers, body })).json();
});
"""
"""How the page of the server asks: at its own address."""

RENDER = """
function render({ model, el }) {
  const shadow = el.attachShadow({ mode: "open" }), host = document.createElement("div"), waiting = new Map();
  const style = document.createElement("style");
  style.textContent = model.get("style");
  host.className = "what-if";
  shadow.append(style, host);
  let next = 0;
  const hear = (message) => { waiting.get(message.id)?.(message.answer); waiting.delete(message.id); };
  model.on("msg:custom", hear);
  whatIf(host, (name, values) => new Promise((done) => {
    waiting.set(next, done);
    model.send({ id: next, name, arguments: values });
    next += 1;
  }));
  return () => model.off("msg:custom", hear);
}
export default { render };
"""
"""How a notebook asks: by messages to its kernel."""


def style() -> str:
    """Return the style."""
    return _text("what_if.css")


def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _ours() -> str:
    return "\n".join(_text(f"{name}.js") for name in ("picture", "what_if"))


def library(name: str) -> str:
    """Return a library with the licence that asks to be in every copy."""
    (path,) = (HERE / "libraries").glob(f"{name}.*js")
    return f"/*\n{_text(f'libraries/LICENSE-{name}')}*/\n{path.read_text(encoding='utf-8')}"


def script(text: str) -> str:
    """Return the element that runs a script."""
    return f"<script>{text}</script>\n"


def page(title: str) -> str:
    """Return the page that the server gives."""
    scripts = "".join(map(script, (*map(library, LIBRARIES), _ours() + ASK)))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(title)}</title>'
        f'<link rel="icon" href="data:,"><style>{style()}</style></head>'
        f'<body><div class="what-if" id="what-if"></div>{scripts}</body></html>\n'
    )


def module() -> str:
    """Return the module that a notebook loads: the libraries in a scope of their own, then ours."""
    libraries = "\n".join(map(library, LIBRARIES))
    inside = f"(function (globalThis, self, define, exports, module) {{{libraries}\n}}).call(own, own, own);"
    return f"const own = {{}};\n{inside}\nconst {{ d3, Plot }} = own;\n{_ours()}{RENDER}"


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
