"""The page in a browser: a server for this machine alone, behind an address that nobody can guess."""

from __future__ import annotations

import json
import secrets
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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


HOST = "127.0.0.1"
MOST_BYTES = 4_000_000
"""Of a request: a design with all its lists."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Server(ThreadingHTTPServer):
    """Serves one session at ``url``; requests for another host, or without the token, get nothing.

    ``session``: what is shown; it stays when a page is closed or opened again; ``port``: 0 for any that is
    free.
    """

    daemon_threads = True

    def __init__(self, session: Session, port: int = 0) -> None:
        super().__init__((HOST, port), Handler)
        self.session = session
        self.token = secrets.token_urlsafe(24)
        self.names = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}
        self.url = f"http://{HOST}:{self.server_port}/{self.token}/"

    def handle_error(self, *_: Any) -> None:
        """Say nothing of a page that was closed before its answer came."""


class Handler(BaseHTTPRequestHandler):
    """The page itself (GET), and what it asks (POST)."""

    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two packets: the second would wait for 40 ms
    timeout = 120

    def do_GET(self) -> None:  # noqa: N802, D102
        if self._allowed(""):
            self._send(200, page("What if"), "text/html")

    def do_POST(self) -> None:  # noqa: N802, D102
        if not self._allowed("call"):
            return
        if self.headers.get_content_type() != "application/json":
            self._send(415, "JSON only")
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            self._send(413, "too long")
            return
        try:
            asked = json.loads(self.rfile.read(int(length)))
            name, arguments = asked["name"], asked["arguments"]
            if not isinstance(name, str) or not isinstance(arguments, dict):
                raise TypeError
        except (ValueError, TypeError, KeyError):
            self._send(400, "not a call")
            return
        self._send(200, json.dumps(self.server.session.call(name, arguments)), "application/json")

    def _allowed(self, path: str) -> bool:
        """Answer what does not come from our own page: another site may have our address by its own name."""
        origin = self.headers.get("Origin")
        ours = self.headers.get("Host") in self.server.names and (
            origin is None or origin.removeprefix("http://") in self.server.names
        )
        given = self.path.encode("utf-8", "replace")
        if ours and secrets.compare_digest(given, f"/{self.server.token}/{path}".encode()):
            return True
        self._send(404 if ours else 403, "not found" if ours else "not for you")
        return False

    def _send(self, code: int, text: str, kind: str = "text/plain") -> None:
        body = text.encode()
        self.send_response(code)
        for name, value in {**HEADERS, "Content-Type": f"{kind}; charset=utf-8"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        if code != 200:
            self.close_connection = True  # what else was sent is not read
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Write nothing."""
