"""The server of the page: this machine alone, behind its token, and quiet about everything."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import qmodels as qm
from cases.what_if.server import MOST_BYTES, Server
from cases.what_if.session import Session

ROOT = Path(__file__).parents[2]
STATE = json.dumps({"name": "state", "arguments": {}})
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server():
    with Server(Session(qm.Noc(injection_rate=0.02))) as started:
        thread = threading.Thread(target=started.serve_forever)
        thread.start()
        yield started
        started.shutdown()
        thread.join()


def ask(server, method="POST", path=None, body=STATE, headers=None):
    """Return status and text of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=300)
    try:
        connection.request(
            method, f"/{server.token}/call" if path is None else path, body, {**JSON, **(headers or {})}
        )
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), dict(answer.getheaders())
    finally:
        connection.close()


def test_the_page_and_its_calls(server):
    status, text, headers = ask(server, "GET", f"/{server.token}/", None)
    assert status == 200 and "whatIf(" in text and "http://" not in text.replace("http://www.w3.org", "")
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Referrer-Policy"] == "no-referrer"
    status, text, _ = ask(server)
    assert status == 200 and json.loads(text)["kind"] == "noc"
    assert server.server_address[0] == "127.0.0.1"
    for host in ("localhost", "127.0.0.1"):
        assert ask(server, headers={"Host": f"{host}:{server.server_port}"})[0] == 200
    # What goes wrong inside is an answer too.
    body = json.dumps({"name": "change", "arguments": {"values": {"link_width": "x"}}})
    assert "must be a whole number" in json.loads(ask(server, body=body)[1])["error"]


@pytest.mark.parametrize("name", ["example.org", "127.0.0.1", "127.0.0.1:1", "0.0.0.0", "[::1]"])
def test_another_host_gets_nothing(server, name):
    """A foreign name that leads here (DNS rebinding) is refused, token or not."""
    for method, path, body in (("GET", f"/{server.token}/", None), ("POST", None, STATE)):
        status, text, _ = ask(server, method, path, body, {"Host": name})
        assert (status, text) == (403, "not for you")


def test_another_origin_gets_nothing(server):
    for origin in (
        "http://example.org",
        "https://example.org",
        "null",
        f"https://127.0.0.1:{server.server_port}",
    ):
        assert ask(server, headers={"Origin": origin})[0] == 403
    assert ask(server, headers={"Origin": f"http://127.0.0.1:{server.server_port}"})[0] == 200


def test_without_the_token_there_is_nothing(server):
    token = server.token
    outside = ("/", "/call", "//call", "/x/call", f"/{token}", f"/{token[:-1]}/call", f"/{token}x/call")
    for path in (*outside, f"/{token}/call?", f"/{token}/../etc/passwd", f"/{token}/page.py"):
        for method, body in (("GET", None), ("POST", STATE)):
            status, text, _ = ask(server, method, path, body)
            assert (status, text) == (404, "not found"), path
    assert len(server.token) >= 32


@pytest.mark.parametrize("method", ["PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(server, method):
    status, _, headers = ask(server, method, None, None)
    assert status == 501 and "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ("nonsense", {}, 400),
        ("[]", {}, 400),
        ('{"name": "state"}', {}, 400),
        ('{"name": 3, "arguments": {}}', {}, 400),
        ('{"name": "state", "arguments": []}', {}, 400),
        (STATE, {"Content-Type": "text/plain"}, 415),
        (STATE, {"Content-Type": "application/x-www-form-urlencoded"}, 415),
        (STATE, {"Content-Length": str(MOST_BYTES + 1)}, 413),
        (STATE, {"Content-Length": "-1"}, 413),
    ],
)
def test_what_is_no_call_is_refused(server, body, headers, status):
    assert ask(server, body=body, headers=headers)[0] == status
    assert ask(server)[0] == 200


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_the_command_in_silence():
    command = [sys.executable, "-m", "qmodels", "serve", "--no-browser", "--set", "load_factor=0.5"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                          cwd=ROOT) as process:  # fmt: skip
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:") and "Ctrl-C" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=300) == ("", "") and process.returncode == 0


def test_bad_input_is_one_line(run):
    code, out, error = run("serve", "--no-browser", "--set", "channels=0")
    assert (code, out) == (2, "") and error.count("\n") == 1 and "channels must be" in error
    code, _, error = run("serve", "--no-browser", "--set", "load_factor=[0.5, 1.0]")
    assert code == 2 and "load_factor must be one number here" in error
