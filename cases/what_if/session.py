"""A session of edits: a design, what came before it, what it is compared with, and the answer to each."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from math import inf
from threading import Event, RLock, Thread
from typing import Any

import numpy as np

from cases.tables import plain
from cases.what_if.controls import Control, changed, controls
from optimize.search.pareto import nondominated
from qmodels.dispatch import solve
from qmodels.systems.noc.topology import Topology, positions
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import array_fields, parts, stable_hash, varied_fields, walk
from qmodels.systems.spec.kind import kind_of, metric_of
from qmodels.systems.spec.store import said
from qmodels.systems.spec.text.toml import spec_from_toml, to_toml
from qmodels.systems.stations.queueing_network import QueueingNetwork

MOST_ROUTERS = 256  # routers of a network that is drawn


def _plain(value: Any) -> Any:
    """Return a value that JSON has: a simulated one by its best; nothing for what is not finite."""
    return plain(float(getattr(value, "best", value)))


def answer_data(answer: Any, spec: Any) -> dict[str, Any]:
    """Return an answer, or a simulation, for a page."""
    shares = answer.latency_parts or _jobs(answer)
    busy = answer.utilization if isinstance(answer.utilization, Mapping) else {}
    offered = answer.traffic_intensity
    first = main_metric(answer, spec)
    return {
        "main": first,
        "title": answer.title,
        "stable": said(None if answer.stable is None else bool(np.all(answer.stable))),
        "bottleneck": str(answer.bottleneck or ""),
        "remarks": answer.remarks(),
        "metrics": {name: _metric(answer, spec, name) for name in answer.metrics},
        "parts": {str(name): _plain(value) for name, value in shares.items()},
        "share": f"time [{metric_of(spec, first).unit}]"
        if answer.latency_parts
        else "mean jobs there, in the ratio of the times",
        "loads": {str(name): _plain(value) for name, value in {**offered, **busy}.items()},
    }


def main_metric(answer: Any, spec: Any) -> str:
    """Return the metric to look at first: of many places one of the whole."""
    whole = [name for name in answer.metrics if "[" not in name and metric_of(spec, name).better == "down"]
    return whole[0] if "[" in answer.main and whole else answer.main


def _jobs(answer: Any) -> dict[str, Any]:
    """Return the jobs at each station of a network of queues: as the times of a passage, by Little's law."""
    places = {name.partition("[")[2].rstrip("]"): value for name, value in answer.metrics.items()
              if name.startswith("mean_number_in_system[")}  # fmt: skip
    return {place: value for place, value in places.items() if ", " not in place} or places


def _metric(answer: Any, spec: Any, name: str) -> dict[str, Any]:
    value, about = answer.metrics[name], metric_of(spec, name)
    found = {
        "value": _plain(value),
        "endless": bool(np.isinf(getattr(value, "best", value))),
        "unit": about.unit,
        "meaning": about.meaning,
        "better": about.better,
    }
    if hasattr(value, "best"):
        return {**found, "low": _plain(value.low), "high": _plain(value.high)}
    error = getattr(answer, "error", {}).get(name)
    return {**found, "error": str(error) if error is not None and answer.stable and error.known else ""}


def picture(spec: Any) -> dict[str, Any]:
    """Return the data of a system's drawing: its network, or the connections of its stations."""
    if isinstance(spec, PacketProcessor):
        return {"processor": system(spec)}
    for path, part, _ in walk(spec):
        if isinstance(part, Topology) and part.routers <= MOST_ROUTERS:
            inside = path.split(".")[:-1]
            network = {
                "title": f"{part.kind}, {part.nodes} nodes",
                "prefix": f"{inside[-1]} " if inside else "",  # of the names of its links among the loads
                **_drawn(part),
            }
            return {"network": network}
    return {"joined": sorted(set(_routes(spec)))} if isinstance(spec, QueueingNetwork) else {}


def _drawn(topology: Topology) -> dict[str, Any]:
    return {"places": positions(topology).round(4).tolist(), "links": sorted(set(topology.links))}


def system(base: PacketProcessor) -> dict[str, Any]:
    """Return the parts of a packet processor, for its drawing."""
    topology = base.noc.topology
    return {
        "initiators": int(base.noc.initiators),
        **_drawn(topology),
        "network": f"{topology.kind}, {topology.nodes} nodes",
        "routers": [int(topology.injects_into(node)) for node in range(topology.nodes)],
        "channels": int(base.channels),
        "slices": int(base.llc.slices),
        "link_width": int(base.noc.link_width),
    }


def _routes(spec: QueueingNetwork) -> Iterator[tuple[str, str]]:
    """Yield the pairs of stations between which jobs go."""
    names = [station.name for station in spec.stations]
    for source, _, rule in spec.routing:
        yield from ((source, target) for target in _words(rule) if source in names and target in names)


def _words(rule: Any) -> Iterator[str]:
    if isinstance(rule, str):
        yield rule
    for part in parts(rule).values():
        yield from _words(part)


def comparison(now: Mapping[str, Any], pinned: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the differences of the metrics from the pinned design's, in words and in percent."""
    found = []
    for name, one in now["metrics"].items():
        known = pinned["metrics"].get(name)
        if known is None or (one["value"], one["endless"]) == (known["value"], known["endless"]):
            continue
        before, value = (inf if metric["endless"] else metric["value"] for metric in (known, one))
        if before is None or value is None:
            continue
        higher = value > before
        verdict = ("better" if higher == (one["better"] == "up") else "worse") if one["better"] else ""
        size = f" by {abs(100 * (value / before - 1)):.3g} %" if before and value < inf else ""
        size = " without end" if value == inf else " from without end" if before == inf else size
        words = f"{name.replace('_', ' ')} {'rises' if higher else 'falls'}{size}"
        found.append({"name": name, "words": words + (f" ({verdict})" if verdict else "")})
    return found


KEPT = 512  # answers that are kept: a neighbour that was looked at is there at once
SLICE_SECONDS = 0.05  # what one call works ahead, so that a change never waits long
REPLICATIONS = 8

SWEPT = 7  # most values of a field in a sweep of two


class StoppedError(Exception):
    """Raised in a simulation that is no longer wanted."""


class Session:
    """Session of a page or a notebook with one design; every method returns plain values for JSON.

    ``spec``: where it starts, and what it is compared with at first.

    Raises TypeError if it is of no kind, ValueError if it has array fields or no model covers it.

    >>> import qmodels as qm
    >>> session = Session(qm.Noc(injection_rate=0.02))
    >>> session.change({"link_width": "32"})["comparison"]["metrics"][0]["words"]
    'packet latency falls by 27.2 % (better)'
    >>> session.change({"link_width": "none"})["error"]
    "link_width must be a whole number, got 'none'"
    >>> _ = session.undo()  # withdraws what was refused
    >>> session.undo()["version"], session.spec.link_width
    (2, 16)
    """

    CALLS = (
        *("state", "change", "undo", "redo", "unchange", "pin", "load", "export"),
        *("neighbours", "sweep", "simulate", "cancel", "simulation"),
    )

    def __init__(self, spec: Any) -> None:
        kind_of(spec)
        for path, value in array_fields(spec).items():
            raise ValueError(f"what_if needs one design, got {path} = {np.asarray(value).tolist()}")
        self._answers: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._lock = RLock()
        self._history, self._at = [spec], 0
        self._refused: dict[str, dict[str, str]] = {}
        self._version = 0
        self._simulated: dict[str, dict[str, Any]] = {}
        self._thread, self._stop = Thread(), Event()
        self._progress: dict[str, Any] = {"state": "idle"}
        self.pinned = spec
        solve(spec)  # what it takes to import the model is not the design's
        self._answer(spec)
        self._controls = controls(spec)

    @property
    def spec(self) -> Any:
        """The design as it is now."""
        return self._history[self._at]

    def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Do what a page asks for; whatever goes wrong is one line under ``error``."""
        try:
            if name not in self.CALLS:
                raise ValueError(f"there is no call {name!r}")
            with self._lock:
                found: dict[str, Any] = getattr(self, name)(**arguments)
            return found
        except Exception as error:
            return {"error": _one_line(error)}

    def state(self) -> dict[str, Any]:
        """Return all that a page shows of the design."""
        spec = self.spec
        now, before = self._answer(spec), self._answer(self.pinned)
        return {
            "version": self._version,
            "kind": kind_of(spec).name,
            "controls": [one.data() for one in self._controls.values()],
            "refused": self._refused,
            "answer": now,
            "picture": picture(spec),
            "simulated": self._simulated.get(stable_hash(spec)),
            "pinned": before,
            "comparison": {
                "fields": [
                    f"{path.replace('_', ' ')}: {' → '.join('–' if v is None else str(v) for v in values)}"
                    for path, values in varied_fields([self.pinned, spec]).items()
                ],
                "metrics": comparison(now, before),
                "same": stable_hash(spec) == stable_hash(self.pinned),
            },
            "undo": self._at > 0 or bool(self._refused),
            "redo": self._at + 1 < len(self._history),
        }

    def change(self, values: Mapping[str, str], together: bool = False) -> dict[str, Any]:
        """Set fields, and return the state, or the ``error`` beside the state that stays.

        What was refused before is tried with it: two fields that only fit together are set one by one.

        ``values``: path of a control to what was written there; ``together``: whether this and the change
        before it are one step of the history, as while a slider moves.
        """
        before = {path: one["text"] for path, one in self._refused.items() if path not in values}
        for tried in ({**before, **values}, values) if before else (values,):
            try:
                spec = changed(self.spec, tried, self._controls)
                self._answer(spec)
            except Exception as refusal:
                error = _one_line(refusal)
                continue
            for path in tried:
                self._refused.pop(path, None)
            return self._go(spec, together)
        self._refused |= {path: {"text": text, "error": error} for path, text in values.items()}
        return {**self.state(), "error": error}

    def load(self, text: str) -> dict[str, Any]:
        """Take a whole design as TOML."""
        spec = spec_from_toml(text)
        for path in array_fields(spec):
            raise ValueError(f"{path} must be one number here")
        self._answer(spec)
        return self._go(spec)

    def undo(self) -> dict[str, Any]:
        """Return to the design before; what was refused since then is withdrawn first."""
        if self._refused:
            self._refused = {}
            return self.state()
        return self._step(-1)

    def redo(self) -> dict[str, Any]:
        """Take an undone change again."""
        return self._step(1)

    def unchange(self) -> dict[str, Any]:
        """Go back to the pinned design, as a change like any other."""
        return self._go(self.pinned)

    def pin(self) -> dict[str, Any]:
        """Compare with this design from now on."""
        self.pinned = self.spec
        return self.state()

    def neighbours(self, start: int, version: int, first: str = "") -> dict[str, Any]:
        """Return the effect of one step of each field, for as many as a slice of time allows.

        Those of the ``first`` field come first: who moves it goes on to a design that is known by then.
        """
        fields = sorted(self._controls.values(), key=lambda one: one.path != first)
        steps = [({one.path: text}, one.value) for one in fields for text in one.neighbours()]
        return self._slice(start, version, steps)

    def sweep(self, start: int, version: int, fields: list[str], metrics: list[str]) -> dict[str, Any]:
        """Return designs around this one over two fields, and which are on the front of two metrics."""
        grid: list[dict[str, str]] = [{}]
        for field in fields:
            if field not in self._controls:
                raise ValueError(f"there is no field {field!r}")
            grid = [{**one, field: text} for one in grid for text in _near(self._controls[field])]
        found = self._slice(start, version, [(values, "") for values in grid])
        return found if found["next"] is not None else {**found, "front": self._front(grid, metrics)}

    @property
    def simulating(self) -> bool:
        """Whether a simulation is under way."""
        return self._thread.is_alive()

    def simulate(self) -> dict[str, Any]:
        """Begin to simulate this design in the background, unless one is under way."""
        if self.simulating:
            raise ValueError("a simulation is under way: cancel it first")
        self._stop.clear()
        self._progress = {"state": "running", "done": 0, "total": REPLICATIONS}
        self._thread = Thread(target=self._run, args=(self.spec,), daemon=True)
        self._thread.start()
        return self.simulation()

    def cancel(self) -> dict[str, Any]:
        """Stop the simulation after the replications under way."""
        self._stop.set()
        return self.simulation()

    def simulation(self) -> dict[str, Any]:
        """Return the state of the simulation, ``done`` and ``total`` replications, and what failed."""
        stopping = self._stop.is_set() and self._progress["state"] == "running"
        return {**self._progress, **({"state": "stopping"} if stopping else {})}

    def _run(self, spec: Any) -> None:
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
            self._progress = {"state": "failed", "error": _one_line(error)}
        else:
            seconds = time.perf_counter() - started
            self._simulated[stable_hash(spec)] = {**answer_data(result, spec), "seconds": seconds}
            self._progress = {"state": "done", "seconds": seconds}

    def export(self) -> dict[str, Any]:
        """Return the design as TOML and as Python."""
        try:
            toml = to_toml(self.spec, kind=True)
        except ValueError as error:
            return dict.fromkeys(("toml", "python"), f"# {_one_line(error)}")
        quotes = "'''"
        python = (
            f"import qmodels as qm\n\nspec = qm.read({quotes}\n{toml}{quotes})\nanswer = qm.solve(spec)\n"
        )
        return {"toml": toml, "python": python}

    def _answer(self, spec: Any) -> dict[str, Any]:
        key = stable_hash(spec)
        if key not in self._answers:
            started = time.perf_counter()
            with np.errstate(all="ignore"):
                found = answer_data(solve(spec), spec)
            self._answers[key] = {**found, "milliseconds": 1e3 * (time.perf_counter() - started)}
            if len(self._answers) > KEPT:
                self._answers.popitem(last=False)
        self._answers.move_to_end(key)
        return self._answers[key]

    def _go(self, spec: Any, together: bool = False) -> dict[str, Any]:
        if stable_hash(spec) == stable_hash(self.spec):
            return self.state()
        kept = self._history[: self._at + 1]
        self._history = [*(kept[:-1] if together and self._at else kept), spec]
        return self._step(len(self._history))

    def _step(self, way: int) -> dict[str, Any]:
        self._at = min(max(self._at + way, 0), len(self._history) - 1)
        self._version += 1
        self._controls = controls(self.spec)
        self._refused = {path: one for path, one in self._refused.items() if path in self._controls}
        return self.state()

    def _slice(self, start: int, version: int, jobs: list[tuple[dict[str, str], str]]) -> dict[str, Any]:
        """Return the answers to the jobs from one on that fit in a slice of time, at least one."""
        found: list[dict[str, Any]] = []
        deadline = time.perf_counter() + SLICE_SECONDS
        while version == self._version and start + len(found) < len(jobs):
            values, before = jobs[start + len(found)]
            one: dict[str, Any] = {"values": values, "from": before}
            try:
                answer = self._answer(changed(self.spec, values, self._controls))
                one |= {"metrics": {name: metric["value"] for name, metric in answer["metrics"].items()},
                        "stable": answer["stable"], "bottleneck": answer["bottleneck"]}  # fmt: skip
            except Exception as error:
                one["error"] = _one_line(error)
            found.append(one)
            if time.perf_counter() > deadline:
                break
        done = start + len(found)
        more = version == self._version and done < len(jobs)
        return {"version": self._version, "found": found, "total": len(jobs), "next": done if more else None}

    def _front(self, grid: list[dict[str, str]], metrics: list[str]) -> list[int]:
        rows = {}
        for k, values in enumerate(grid):
            try:
                answer = self._answer(changed(self.spec, values, self._controls))
            except Exception:
                continue
            row = [answer["metrics"].get(name, {}).get("value") for name in metrics]
            if answer["stable"] and None not in row:
                rows[k] = row
        up = [metric_of(self.spec, name).better == "up" for name in metrics]
        return np.array(list(rows))[nondominated(list(rows.values()), maximize=up)].tolist() if rows else []


def _near(control: Control) -> Iterator[str]:
    """Yield the choices around the value of a control."""
    choices = ("false", "true") if control.type == "flag" else control.choices
    at = choices.index(control.value)
    first = max(0, min(at - SWEPT // 2, len(choices) - SWEPT))
    yield from choices[first : first + SWEPT]


def _one_line(error: Exception) -> str:
    """Return an error in one line; one that is no refusal with its type."""
    words = " ".join([str(error), *getattr(error, "__notes__", ())]).split()
    name = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
    return name + " ".join(words)
