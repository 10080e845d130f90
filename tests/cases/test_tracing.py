"""The command `qmodels trace`, and what other commands say of a trace."""

import json

import numpy as np
import pytest

from qmodels import read_trace

HEAD = "no;us;len\n"


@pytest.fixture
def bursty(tmp_path):
    """A trace whose second half is ten times slower."""
    gaps = np.random.default_rng(2).exponential(1e-7, 6000) * np.repeat([1, 10], 3000)
    lines = [f"{time:.9f},{64 if k % 3 else 1500}" for k, time in enumerate(np.cumsum(gaps))]
    path = tmp_path / "bursty.csv"
    path.write_text("time,bytes\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def logged(tmp_path):
    """A text with columns that must be named."""
    path = tmp_path / "router.log"
    path.write_text(HEAD + "".join(f"{k};{k / 10};{64 if k % 3 else 1500}\n" for k in range(1200)))
    return path


def test_a_trace_is_described_in_words_and_warned_of(run, bursty):
    code, text, errors = run("trace", bursty)
    assert (code, errors) == (0, "")
    found = read_trace(bursty).description
    assert text.startswith(f"Trace {bursty}\n  6000 packets in {found.duration_ns / 1e6:.4g} ms at ")
    assert "rate not steady" in text and "  warning: the rate changes: 20 windows have " in text
    assert "that the design sustains" not in text


def test_a_system_says_what_of_a_trace_does_not_fit(run, bursty, toml):
    text = run("trace", bursty, toml)[1]
    assert "Gb/s that the design sustains" in text
    for setting, warning in (("hold_ns=1e5", "too short for the time that packets are held of 100 us"),
                             ("free_list.segments=16", "do not fit the store of 1024 bytes")):  # fmt: skip
        assert warning not in text
        assert warning in run("trace", bursty, toml, "--set", setting)[1]


def test_a_trace_as_json_and_as_a_picture(run, bursty, tmp_path):
    picture = tmp_path / "trace.png"
    code, text, _ = run("trace", bursty, "--json", "--plot", picture)
    said = json.loads(text)["traces"][str(bursty)]
    assert code == 0 and said["packets"] == 6000 and said["steady"] is False
    assert any(line.startswith("the rate changes") for line in said["warnings"])
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trace", "a.toml"], "trace must be given traces and at most one SPEC.toml, got 1 specs"),
        (["trace", "a.csv", "b.csv", "--plot", "x.png"], "--plot needs one trace, got 2"),
        (["trace", "absent.pcap"], "absent.pcap: cannot be read: No such file or directory"),
        (["solve", "--interface", "1"], "--interface and --columns need a --trace"),
        (["explore", "--budget", "0", "--trace", "a.csv", "--trace", "a.csv"],
         "--trace must name each file once, got a.csv, a.csv"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line(run, arguments, message):
    assert run(*arguments) == (2, "", f"qmodels: error: {message}\n")


def test_columns_are_named_wherever_a_trace_is_given(run, logged):
    assert "name the columns" in run("solve", "--trace", logged)[2]
    code, text, _ = run("solve", "--trace", logged, "--columns", "time=2,bytes=3,unit=us")
    assert code == 0
    note = text[text.index("\nTrace ") :]
    assert "1200 packets in 119.9 us at " in note and "  warning: too short for the time that packets" in note
    assert run("trace", logged, "--columns", "time=2,bytes=3,unit=us")[0] == 0


def test_options_on_reading_are_for_the_traces_that_take_them(run, logged, trace):
    """With a text that needs its columns named and one that does not, only the first has them."""
    code, text, errors = run("trace", logged, trace, "--columns", "time=2,bytes=3,unit=us")
    assert (code, errors) == (0, "")
    assert f"Trace {logged}" in text and f"Trace {trace}" in text
