"""The command that opens a design in a browser."""

from __future__ import annotations

from typing import Annotated

import typer

from cases.cli.app import Columns, Interface, Settings, SpecFile, TraceFile, app
from cases.cli.console import interruptible, put


@app.command()
def serve(
    spec: SpecFile = None,
    trace: TraceFile = None,
    interface: Interface = None,
    columns: Columns = None,
    settings: Settings = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any that is free.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in the browser.")] = True,
) -> int:
    """Open a page on this machine where every field of a system is changed by hand, its answer beside it.

    It runs until Ctrl-C, also while no page is open, and keeps the design as it was left.
    """
    import os
    import sys
    import webbrowser

    from cases.cli.inputs import one_spec
    from cases.what_if.server import Server
    from cases.what_if.session import Session

    session = Session(one_spec(spec, settings or (), trace, interface, columns))
    try:
        with interruptible(), Server(session, port) as server:
            put(f"{server.url}\nOnly for this machine; Ctrl-C ends it.\n")
            if browser:
                webbrowser.open(server.url)
            server.serve_forever()
    except KeyboardInterrupt:
        pass
    if session.simulating:  # what compiles or simulates cannot be interrupted
        sys.stdout.flush()
        os._exit(0)
    return 0
