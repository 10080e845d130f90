"""The simulation is compiled aside when it is not on the disk, and a failure there is nobody's."""

import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from cases.study import study as compiling
from cases.study.goals import default_processor
from qmodels.numerics.kernels import another_python
from validate.engine import jit

COPY = "import sys; open({to!r}, 'wb').write(sys.stdin.buffer.read())"


def test_the_spec_reaches_the_process_unless_the_kernels_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "PLACE", tmp_path)
    monkeypatch.setattr(compiling, "CODE", COPY.format(to=str(tmp_path / "spec")))
    spec = default_processor()
    process = compiling.background_compile(spec)
    assert process is not None and process.wait() == 0
    assert pickle.loads((tmp_path / "spec").read_bytes()) == spec
    kept = tmp_path / jit.cache_name(jit.PACKAGE / "composed" / "machine.py") / "of-a-path"
    kept.mkdir(parents=True)
    (kept / "machine.run.nbc").touch()
    assert compiling.background_compile(spec) is None


def test_a_process_that_cannot_start_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "PLACE", tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    assert compiling.background_compile(default_processor()) is None


def test_the_process_imports_what_we_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "validate").mkdir()
    (tmp_path / "validate" / "__init__.py").write_text("raise RuntimeError")
    monkeypatch.chdir(tmp_path)
    assert another_python("import validate.engine").wait() == 0
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    assert another_python("import validate.engine").wait() != 0


@pytest.mark.slow
def test_afterwards_the_kernels_are_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "PLACE", tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    process: Any = compiling.background_compile(default_processor())
    assert process.wait() == 0 and compiling.background_compile(default_processor()) is None
