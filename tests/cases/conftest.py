"""The command, a small study, and a headless Chromium driven over its DevTools pipe."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from dataclasses import replace

import numpy as np
import pytest

from cases.cli.main import main
from cases.study.files import save_study
from cases.study.goals import DATA, default_processor
from cases.study.study import Runs, explore_case
from optimize import replace_fields
from qmodels import read_trace
from qmodels.traffic import Recorded, imix

FEW = {"interleaving_step": [1, 8], "channels": [2, 4], "alloc_trial_count": [1, 3], "link_width": [8, 16]}
"""Choices that leave 2 x 2 x 2 x 2 x 5 designs."""

QUICK = Runs(packets=1000, replications=2, seed=3)

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,1600",
    "--remote-debugging-pipe",
)


def _high(descriptor):
    """Move a file descriptor out of the way of the first ten."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved


class Browser:
    """One tab of a browser that records every request and every console message."""

    def __init__(self, executable, profile):
        # The browser reads commands on descriptor 3 and writes answers on 4; ours must be others.
        commands, self._to = map(_high, os.pipe())
        self._from, answers = map(_high, os.pipe())
        start = f'exec "$@" 3<&{commands} 4>&{answers} {commands}<&- {answers}>&-'
        self._process = subprocess.Popen(
            ["bash", "-c", start, "bash", executable, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(commands, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._buffer = b""
        self._number = 0
        self._session = None
        self.requests: list[str] = []
        self.messages: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        """Send one command and return its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 60
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _receive(self, deadline):
        while b"\0" not in self._buffer:
            if not select.select([self._from], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            chunk = os.read(self._from, 1 << 20)
            if not chunk:
                raise RuntimeError("the browser has gone")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        event = json.loads(line)
        self._note(event.get("method", ""), event.get("params", {}))
        return event

    def _note(self, method, parameters):
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.messages.append(str([a.get("value", a.get("description")) for a in parameters["args"]]))
        elif method == "Runtime.exceptionThrown":
            self.messages.append(str(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.messages.append(parameters["entry"]["text"])

    def emulate(self, width, scheme="light"):
        """Give the page a width and a colour scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def open(self, path):
        """Open a file from disk."""
        self.requests.clear()
        self.messages.clear()
        self.call("Page.navigate", url=path.as_uri())
        self.wait("document.readyState === 'complete'")

    def value(self, expression):
        """Return the value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, condition, seconds=30):
        """Wait until a JavaScript condition holds."""
        deadline = time.monotonic() + seconds
        while not self.value(condition):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{condition} does not become true")
            time.sleep(0.05)

    def drag(self, start, end):
        """Drag the mouse from one point of the page to another."""
        self._mouse("mouseMoved", start, 0)
        self._mouse("mousePressed", start, 1)
        for k in range(1, 6):
            self._mouse("mouseMoved", [a + (b - a) * k / 5 for a, b in zip(start, end, strict=True)], 1)
        self._mouse("mouseReleased", end, 0)

    def press(self, key, times=1):
        """Press and release a key some times."""
        text = {"Enter": "\r", "Space": " "}.get(key, key if len(key) == 1 else "")
        name = " " if key == "Space" else key
        code = {"Enter": 13, "Tab": 9, "Space": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
                "ArrowDown": 40}.get(key, ord(key[0]))  # fmt: skip
        event = {"key": name, "code": key, "windowsVirtualKeyCode": code, "text": text}
        for _ in range(times):
            self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **event)
            self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def click(self, point):
        """Click on a point of the page."""
        self._mouse("mouseMoved", point, 0)
        self._mouse("mousePressed", point, 1)
        self._mouse("mouseReleased", point, 0)

    def _mouse(self, kind, point, buttons):
        button = "none" if kind == "mouseMoved" else "left"
        position = {"x": point[0], "y": point[1]}
        self.call(
            "Input.dispatchMouseEvent", type=kind, **position, button=button, buttons=buttons, clickCount=1
        )

    def close(self):
        """End the browser."""
        os.close(self._to)
        os.close(self._from)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    if executable is None:
        pytest.skip("no chromium here")
    started = Browser(executable, tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


def few(workload):
    """Return the joint case with few choices, and few blocks: each run copies the list of all."""
    arrays = {name: np.array(values) for name, values in FEW.items()}
    return replace_fields(default_processor(workload), {**arrays, "segments": 65_536})


@pytest.fixture(scope="session")
def small_specs(tmp_path_factory):
    """Both bundled workloads, each with 80 designs; a part of the trace, which is simulated whole."""
    part = tmp_path_factory.mktemp("trace") / "small-packets.csv"
    part.write_text("".join((DATA / part.name).read_text().splitlines(keepends=True)[:1501]))
    specs = {name: few(name) for name in ("large-packets", "small-packets")}
    recorded = {"arrivals": Recorded(trace=read_trace(part)), "sizes": imix()}
    workload = replace(specs["small-packets"].workload, **recorded)
    return specs | {"small-packets": replace(specs["small-packets"], workload=workload)}


@pytest.fixture(scope="session")
def small_study(small_specs, tmp_path_factory):
    """A study of both workloads with a few simulated designs, and the directory it is saved in."""
    out = tmp_path_factory.mktemp("study") / "out"
    study = explore_case(small_specs, runs=QUICK, points=4, budget_seconds=None, out=out)
    save_study(study, out)
    return study, out


@pytest.fixture(scope="session")
def overloaded_study(small_specs, tmp_path_factory):
    """A study of a workload with which nothing keeps up."""
    overloaded = replace_fields(small_specs["large-packets"], {"load_factor": 100})
    out = tmp_path_factory.mktemp("overloaded")
    return explore_case({"large-packets": overloaded}, runs=Runs(), out=out)


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the command in an empty directory and return exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return ended.value.code, captured.out, captured.err

    return call


@pytest.fixture
def toml(tmp_path):
    """A spec in a file."""
    path = tmp_path / "router.toml"
    path.write_text('[workload]\noffered_gbps = 30\nsizes = "imix"\n[dram]\nchannels = 2\n')
    return path


@pytest.fixture
def trace(tmp_path):
    """A short trace in a file."""
    path = tmp_path / "capture.csv"
    rows = [f"{k * 1e-7:.9f},{64 if k % 3 else 1500}" for k in range(1200)]
    path.write_text("time,bytes\n" + "\n".join(rows) + "\n")
    return path
