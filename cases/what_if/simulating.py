"""One simulation in the background, with how far it is; it can be stopped."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread
from typing import Any

from cases.what_if.answering import answer_data

REPLICATIONS = 8


class StoppedError(Exception):
    """Somebody wants no more of it."""


class Simulating:
    """Simulates one design at a time, and keeps what it found by the design."""

    def __init__(self) -> None:
        self.known: dict[str, dict[str, Any]] = {}
        self._thread: Thread | None = None
        self._stop = Event()
        self._progress: dict[str, Any] = {"state": "idle"}

    @property
    def alive(self) -> bool:
        """Whether one is under way."""
        return self._thread is not None and self._thread.is_alive()

    def begin(self, spec: Any, key: str) -> dict[str, Any]:
        """Start, unless one is under way."""
        if self.alive:
            raise ValueError("a simulation is under way: cancel it first")
        self._stop.clear()
        self._progress = {"state": "running", "done": 0, "total": REPLICATIONS}
        self._thread = Thread(target=self._run, args=(spec, key), daemon=True)
        self._thread.start()
        return self.progress()

    def cancel(self) -> dict[str, Any]:
        """Begin no further replication."""
        self._stop.set()
        return self.progress()

    def progress(self) -> dict[str, Any]:
        """Return the state, ``done`` and ``total`` replications, and what failed."""
        stopping = self._stop.is_set() and self._progress["state"] == "running"
        return {**self._progress, **({"state": "stopping"} if stopping else {})}

    def _run(self, spec: Any, key: str) -> None:
        from validate import simulate

        def report(done: int, total: int) -> None:
            self._progress |= {"done": done, "total": total}
            if self._stop.is_set():
                raise StoppedError

        started = time.perf_counter()
        try:
            # One core stays with the page.
            with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) - 1)) as pool:
                result = simulate(spec, replications=REPLICATIONS, executor=pool, progress=report)
        except StoppedError:
            self._progress = {"state": "cancelled"}
        except Exception as error:
            self._progress = {"state": "failed", "error": " ".join(str(error).split())}
        else:
            seconds = time.perf_counter() - started
            self.known[key] = {**answer_data(result, spec), "seconds": seconds}
            self._progress = {"state": "done", "seconds": seconds}
