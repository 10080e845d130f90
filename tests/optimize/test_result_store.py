"""A store file: what it keeps, who may write it at once, and what it refuses."""

import dataclasses
import enum
import math
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest

import optimize
from qmodels.systems.spec.fields import stable_text
from qmodels.systems.spec.store import APPLICATION_ID, VERSION, ResultStore

ROOT = Path(optimize.__file__).parents[1]
RECORDS = {f"key {k}": {"x": k / 3, "name": "å", "list": [k, None, True]} for k in range(1200)}


def test_what_was_put_is_there_in_another_opening(tmp_path):
    with ResultStore(tmp_path / "a.db") as store:
        assert store.get([]) == {} and store.get(["key 1"]) == {}
        store.put(RECORDS)
        assert store.get([*RECORDS, "nothing"]) == RECORDS
    with ResultStore(tmp_path / "a.db") as store:
        assert store.get(key for key in RECORDS) == RECORDS
        store.put({"key 1": 5})
        assert store.get(["key 1", "key 2"]) == {"key 1": 5, "key 2": RECORDS["key 2"]}


@pytest.mark.parametrize(
    "number", [0.1, -0.0, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, 2**80, -1, True, None]
)
def test_numbers_come_back_exactly(tmp_path, number):
    with ResultStore(tmp_path / "a.db") as store:
        store.put({"a": [number]})
        assert repr(store.get(["a"])["a"][0]) == repr(number)


def test_what_json_cannot_write_is_not_stored(tmp_path):
    with ResultStore(tmp_path / "a.db") as store:
        with pytest.raises(TypeError, match="not JSON serializable"):
            store.put({"good": 1, "bad": {1}})
        assert store.get(["good"]) == {}


def test_records_are_found_by_the_beginning_of_their_keys(tmp_path):
    with ResultStore(tmp_path / "a.db") as store:
        assert list(store.scan("")) == []
        store.put({"b": 1, "a:2": 2, "a": 3, "a:\u00e5": 4, "A:": 5})
        assert list(store.scan("a:")) == [("a:2", 2), ("a:\u00e5", 4)]
        assert [key for key, _ in store.scan("")] == ["A:", "a", "a:2", "a:\u00e5", "b"]


def test_two_connections_see_each_other(tmp_path):
    with ResultStore(tmp_path / "a.db") as one, ResultStore(tmp_path / "a.db") as two:
        one.put({"a": 1})
        two.put({"b": 2})
        assert one.get(["a", "b"]) == two.get(["a", "b"]) == {"a": 1, "b": 2}


WRITER = """
import sys
from qmodels.systems.spec.store import ResultStore
with ResultStore(sys.argv[1]) as store:
    print("open", flush=True)
    for k in range(int(sys.argv[3])):
        store.put({f"{sys.argv[2]} {k}": [k] * 50})
        print(k, flush=True)
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(count)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_processes_make_and_write_one_store_at_once(tmp_path):
    names = ["one", "two", "three"]
    running = [writer(tmp_path / "a.db", name, 200) for name in names]
    assert [process.communicate()[1] for process in running] == ["", "", ""]
    keys = [f"{name} {k}" for name in names for k in range(200)]
    with ResultStore(tmp_path / "a.db") as store:
        assert set(store.get(keys)) == set(keys)


@pytest.mark.in_ci(1)
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("seed", range(4))
def test_a_killed_writer_loses_nothing_it_reported(tmp_path, seed):
    with writer(tmp_path / "a.db", "one", 10**6) as process:
        assert process.stdout.readline() == "open\n"
        time.sleep(np.random.default_rng(seed).uniform(0.0, 0.3))
        process.send_signal(signal.SIGKILL)
        # Not communicate(): it passes over what readline() has taken from the pipe already.
        reported = [int(line) for line in process.stdout.read().split("\n")[:-1]]
    assert reported == list(range(len(reported)))
    with ResultStore(tmp_path / "a.db") as store:
        found = store.get(f"one {k}" for k in range(len(reported) + 5))
    assert found == {f"one {k}": [k] * 50 for k in range(len(found))}
    # The last commit may have had no time to be reported.
    assert len(reported) <= len(found) <= len(reported) + 1


def fill(path: Path) -> None:
    with ResultStore(path) as store:
        store.put({f"{k:064}": {"x": k / 3} for k in range(300)})


def foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE records (key TEXT, record TEXT, crc INTEGER)")


def another_format(path: Path) -> None:
    fill(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 1")
        connection.commit()


def truncated(path: Path) -> None:
    fill(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scribbled(path: Path) -> None:
    fill(path)
    content = bytearray(path.read_bytes())
    content[5000:9000] = b"\xaa" * 4000
    path.write_bytes(bytes(content))


def changed_digit(path: Path) -> None:
    fill(path)
    content = path.read_bytes()
    assert content.count(b'{"x": 41.0}') == 1
    path.write_bytes(content.replace(b'{"x": 41.0}', b'{"x": 14.0}'))


def two_records_swapped(path: Path) -> None:
    fill(path)
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT record, crc FROM records ORDER BY key LIMIT 2").fetchall()
        for k, row in enumerate(reversed(rows)):
            connection.execute("UPDATE records SET record = ?, crc = ? WHERE key = ?", (*row, f"{k:064}"))
        connection.commit()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda path: path.write_text("latency,cost\n1,2\n"), "is not a store of finished results"),
        (lambda path: path.write_bytes(b"\0" * 5000), "is not a store of finished results"),
        (foreign_database, "is not a store of finished results"),
        (another_format, "is of format 1, not 2"),
        (truncated, "is damaged"),
        (scribbled, "is damaged"),
        (changed_digit, "is damaged"),
        (two_records_swapped, "is damaged"),
    ],
)
def test_a_foreign_or_damaged_store_is_refused_and_left_alone(tmp_path, spoil, reason):
    path = tmp_path / "study.db"
    spoil(path)
    before = path.read_bytes()
    with pytest.raises(ValueError) as caught, ResultStore(path) as store:
        store.get(f"{k:064}" for k in range(300))
    message = str(caught.value)
    assert message.startswith(f"store {str(path)!r} {reason}") and "\n" not in message
    assert message.endswith("; it is left as it is: give another path or remove it")
    assert path.read_bytes() == before


def test_a_store_that_cannot_be_opened(tmp_path):
    with pytest.raises(
        ValueError, match="cannot be opened .unable to open database file.; it is left as it is"
    ):
        ResultStore(tmp_path / "no" / "such" / "folder.db")


def test_an_empty_file_is_a_new_store(tmp_path):
    path = tmp_path / "study.db"
    path.touch()
    fill(path)
    with ResultStore(path) as store:
        assert store.get([f"{3:064}"]) == {f"{3:064}": {"x": 1.0}}
    assert [entry.name for entry in tmp_path.iterdir()] == ["study.db"]


def test_a_store_whose_making_was_cut_short_is_made(tmp_path):
    path = tmp_path / "study.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};"
            "CREATE TABLE one (x); DROP TABLE one;"
        )
    assert path.stat().st_size > 0
    fill(path)
    with ResultStore(path) as store:
        assert store.get([f"{3:064}"]) == {f"{3:064}": {"x": 1.0}}


def test_a_store_that_others_hold_says_so(tmp_path, monkeypatch):
    path = tmp_path / "study.db"
    with ResultStore(path):
        pass
    connect = sqlite3.connect
    with closing(connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(sqlite3, "connect", lambda path, **options: connect(path, timeout=0.01))
        with pytest.raises(ValueError, match="cannot be opened .database is locked.; it is left as it is"):
            ResultStore(path)


def test_a_store_that_cannot_be_written_says_so(tmp_path):
    with ResultStore(tmp_path / "study.db") as store:
        store._connection.execute("PRAGMA query_only = 1")
        with pytest.raises(
            OSError, match="store '.*study.db' cannot be written: attempt to write a readonly database"
        ):
            store.put({"a": 1})
        store._connection.execute("PRAGMA query_only = 0")
        store.put({"a": 1})


class Policy(enum.Enum):
    OPEN = 1


class Words(str):
    pass


@dataclass(frozen=True)
class Nested:
    inner: Any = None
    derived: int = dataclasses.field(default=0, init=False)


DISTINCT = [
    *(None, True, 1, 2, 1.0, np.inf, -0.0, 0.0, "1", "None", b"1", "a", PurePosixPath("a")),
    *((), (1,), (1, 2), ((1, 2),), (1, (2,)), {}, {1: 2}, {2: 1}, {"1": 2}, set(), {1, 2}),
    *(Policy.OPEN, Nested(), Nested(1), Nested(Nested(1))),
    *(np.array([1, 2]), np.array([1.0, 2.0]), np.array([[1, 2]]), np.array([[1], [2]]), np.array([1, None])),
]


def test_the_text_of_a_key_tells_values_apart():
    texts = [stable_text(value) for value in DISTINCT]
    assert len(set(texts)) == len(DISTINCT)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.int64(3), 3),
        (np.float64(0.1), 0.1),
        (np.str_("a"), "a"),
        ([1, 2], (1, 2)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({3, 1, 2}, frozenset([2, 1, 3])),
        (np.arange(6).reshape(2, 3).T, np.array([[0, 3], [1, 4], [2, 5]])),
        (bytearray(b"x"), b"x"),
        (Words("a"), "a"),
    ],
)
def test_the_text_of_a_key_is_the_same_for_equal_values(one, other):
    assert stable_text(one) == stable_text(other)


def test_the_text_of_a_key_leaves_out_what_varies():
    full = stable_text(Nested(Nested(5)))
    assert full == "Nested(inner=Nested(inner=5))"
    assert stable_text(Nested(Nested(5)), without={"inner.inner"}) == "Nested(inner=Nested())"
