"""The page in a browser: a server for this machine alone, behind an address that nobody can guess."""

from __future__ import annotations

import json
import secrets
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from string import Template
from typing import Any

from cases.what_if.session import Session

HERE = Path(__file__).parent


def text_of(*names: str) -> str:
    """Return the text of files beside this one."""
    return "\n".join((HERE / name).read_text(encoding="utf-8") for name in names)


def libraries() -> list[str]:
    """Return the libraries, each with the licence that asks to be in every copy."""
    files = {name: next((HERE / "libraries").glob(f"{name}.*js")) for name in ("d3", "plot")}
    return [
        f"/*\n{text_of(f'libraries/LICENSE-{name}')}*/\n{text_of(str(file))}" for name, file in files.items()
    ]


def page(title: str) -> str:
    """Return the page that the server gives."""
    scripts = [*libraries(), text_of("picture.js", "what_if.js", "ask.js")]
    parts = {"title": escape(title), "style": text_of("what_if.css")}
    parts["scripts"] = "".join(f"<script>{one}</script>\n" for one in scripts)
    return Template(text_of("what_if.html")).substitute(parts)


def module() -> str:
    """Return the module that a notebook loads: the libraries in a scope of their own, then ours."""
    inside = "(function (globalThis, self, define, exports, module) {{{}\n}}).call(own, own, own);"
    ours = text_of("picture.js", "what_if.js", "render.js")
    found = inside.format("\n".join(libraries()))
    return f"const own = {{}};\n{found}\nconst {{ d3, Plot }} = own;\n{ours}"


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
        style = Unicode(text_of("what_if.css")).tag(sync=True)

    widget = WhatIf()
    widget.session = session

    def hear(_: Any, asked: dict[str, Any], __: Any) -> None:
        widget.send({"id": asked["id"], "answer": session.call(asked["name"], asked["arguments"])})

    widget.on_msg(hear)
    return widget


HOST = "127.0.0.1"
MOST_BYTES = 4_000_000  # of a request: a design with all its lists

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
