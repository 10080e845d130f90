"""Every command with every option turned bad, and with bad files: one line and exit code 2, or an answer.

Commands, options and arguments are found in the application.
"""

import contextlib
import io
import random
import re
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from cases.cli.app import app
from cases.cli.main import main

sys.path.append(str(Path(__file__).parent))
from hostile import LONGEST, Late, limited  # noqa: E402

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no alarm on this system")

WORDS = (
    "", "nan", "inf", "-1", "0", "0.5", "1e12", "1e308", "9e999999", "1" * 400, "9223372036854775808", "x",
    "a=b", "=", "a=", "=1", "channels=", "channels=0", "channels=x", "channels=9223372036854775807",
    "channels=1e308", "geometry.banks=1000000000", "timing.t_rc=9e999999", "arrival_rate=nan",
    "arrival_rate=[0.01, nan]", "arrival_rate=[]", "arrival_rate=[[0.01], [0.02, 0.03]]", "accesses=1e12",
    "accesses=-5", "channels=1,1", "accesses=1000000000000", "read_latency < 1e999ns", "read_latency < ",
    "< 3", "read_latency", "1e400s", "saturation_rate > x", "/", "/nothing/here.png", ".", "a.png",
    "é\x00"[:1], "[", "{}", "'''", "--", "-",
)  # fmt: skip
"""What is given to an option."""

FILES = {
    "missing.toml": None, "empty.toml": b"", "binary.toml": bytes(range(256)), "words.toml": b"x",
    "kind.toml": b'kind = "none"\n', "number.toml": b"kind = 3\n", "nested.toml": b"a = " + b"[" * 5000,
    "huge.toml": b'kind = "dram"\npreset = "DDR4-3200"\n[geometry]\nbanks = 1' + b"0" * 400 + b"\n",
    "array.toml": b'kind = "dram"\npreset = ["DDR4-3200"]\n',
    "table.toml": b'kind = "dram"\n[preset]\nx = 1\n',
    "list.toml": b'kind = "noc"\ntopology = []\n',
    "dates.toml": b'kind = "noc"\ninjection_rate = 1979-05-27\n',
    "packet.pcap": b"\xd4\xc3\xb2\xa1" + b"\x00" * 30, "section.pcapng": b"\x0a\x0d\x0d\x0a" + b"\xff" * 40,
    "text.csv": b"time,bytes\nx,y\n", "zip.gz": b"\x1f\x8b\x08\x00broken", "folder.toml": "folder",
}  # fmt: skip
"""What is given for a file."""

USUAL = {
    "solve": ["dram.toml"],
    "simulate": ["dram.toml", "--option", "accesses=2000", "--replications", "2", "--workers", "1"],
    "compare": ["dram.toml", "--option", "accesses=2000", "--replications", "2", "--workers", "1"],
    "explore": [
        "dram.toml",
        "--vary",
        "channels=1,2",
        "--minimize",
        "read_latency",
        "--budget",
        "0",
        "--out",
        "s",
    ],
    "diff": [
        "dram.toml",
        "--a",
        "channels=1",
        "--b",
        "channels=2",
        "--option",
        "accesses=2000",
        "--replications",
        "2",
    ],
    "size": ["dram.toml", "channels", "--until", "read_latency < 300ns"],
    "show": ["s", "--design", "0"],
    "trace": ["trace.csv", "--columns", "time=1,bytes=2,unit=ns"],
    "describe": ["dram"],
    "init": ["dram"],
    "schema": ["dram"],
    "conclusions": ["none"],
    "reproduce": ["none"],
}
"""A quick line of each command; the published cases take longer, and are named wrongly."""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory with the files that the lines name, good and bad."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dram.toml").write_text('kind = "dram"\npreset = "DDR4-3200"\n')
    (tmp_path / "trace.csv").write_text("".join(f"{100 * k},{64 + k % 7}\n" for k in range(200)))
    for name, content in FILES.items():
        if content == "folder":
            (tmp_path / name).mkdir()
        elif content is not None:
            (tmp_path / name).write_bytes(content)


def commands() -> dict[str, Any]:
    """Return the commands of the application, without that which runs until it is stopped."""
    found = dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    return {name: command for name, command in found.items() if name != "serve"}


def answered(words: list[str], seconds: int = LONGEST) -> str | None:
    """Return what is wrong with how a line is answered; None for a good answer."""
    out, error, code = io.StringIO(), io.StringIO(), None
    try:
        with (
            contextlib.redirect_stdout(out), contextlib.redirect_stderr(error),
            limited(seconds), warnings.catch_warnings(),
        ):  # fmt: skip
            warnings.simplefilter("error")
            main(words)
    except SystemExit as end:
        code = end.code
    except Late:
        return "hangs"
    except BaseException as other:
        return f"{type(other).__name__}: {' '.join(str(other).split())[:200]}"
    said = error.getvalue()
    if code not in (0, 1, 2) or said.count("\n") > 1 or (code and not said.startswith("qmodels: error: ")):
        return f"code {code}: {said[:300]!r}"
    if re.search(r"\bNaN\b|\bnan\b", out.getvalue()) and not re.search("nan", " ".join(words), re.I):
        return "answers NaN"
    return None


def lines() -> Iterator[list[str]]:
    """Yield every command's usual line with every option turned bad, and with every bad file."""
    for name, command in commands().items():
        usual = USUAL[name]
        for parameter in command.params:
            for option in parameter.opts[:1]:
                if not option.startswith("-"):
                    continue
                if getattr(parameter, "is_flag", False):
                    yield [name, *usual, option]
                    continue
                for word in WORDS:
                    yield [name, *usual, option, word]
                yield [name, *usual, option]
        for file in FILES:
            yield [name, file, *usual[1:]]
            yield [name, *usual, "--trace", file]
        yield from ([name, word] for word in WORDS if word != "--")


def problems(sample: list[list[str]]) -> list[str]:
    for name in ("explore", "simulate"):  # what `show` looks at; and the kernels are compiled
        assert answered([name, *USUAL[name]], 600) is None
    return [f"qmodels {' '.join(words)[:120]}: {said}" for words in sample if (said := answered(words))]


def test_every_command_has_a_usual_line_that_works(here):
    assert set(commands()) == set(USUAL)
    assert problems([[name, *usual] for name, usual in USUAL.items()]) == []


def test_a_bad_line_is_answered_in_a_line(here):
    assert problems(random.Random(20).sample(list(lines()), 120)) == []


@pytest.mark.slow
def test_all_bad_lines_are_answered_in_a_line(here):
    assert problems(list(lines())) == []
