"""Compiled kernels are those of the present sources, wherever their cache is kept."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from validate.composed import blocks as system_blocks
from validate.composed import machine as system_machine
from validate.composed import memories as system_banks
from validate.composed import strands as system_strands
from validate.data_queueing import kernel as data_queueing_kernel
from validate.data_queueing import world as data_queueing_world
from validate.data_queueing.free_lists import prefetch
from validate.engine import calendar as engine
from validate.engine import jit

KERNELS = (
    data_queueing_world,
    data_queueing_kernel,
    engine,
    system_banks,
    system_blocks,
    system_machine,
    system_strands,
)


def test_every_kernel_is_kept_under_the_hash_of_its_sources():
    compiled = [
        function
        for module in KERNELS
        for function in vars(module).values()
        if hasattr(function, "py_func") and function.stats.cache_path
    ]
    assert len(compiled) > 20
    for function in compiled:
        directory = jit.PLACE / jit.cache_name(Path(inspect.getfile(function.py_func)))
        assert directory in Path(function.stats.cache_path).parents


def test_sources_are_all_modules_that_kernels_are_imported_from():
    names = {str(path.relative_to(jit.ROOT)) for path in jit.sources(Path(system_machine.__file__))}
    assert {
        "validate/composed/machine.py",
        "validate/composed/memories.py",
        "validate/composed/state.py",
        "validate/engine/calendar.py",
        "validate/data_queueing/free_lists.py",
        "qmodels/systems/memory/memory_map.py",
    } <= names
    for module in KERNELS:
        known = jit.sources(Path(module.__file__))
        for function in vars(module).values():
            if hasattr(function, "py_func"):
                assert Path(inspect.getfile(function.py_func)) in known


def test_an_edit_of_any_source_moves_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "ROOT", tmp_path)
    (tmp_path / "validate").mkdir()
    kernel, imported, other = (tmp_path / "validate" / f"{name}.py" for name in ("kernel", "parts", "other"))
    kernel.write_text("from validate.parts import (\n    a,\n)\n")
    imported.write_text("from validate import other\na = 1\n")
    other.write_text("b = 1\n")
    assert jit.sources(kernel) == (kernel, other, imported)
    before = jit.cache_name(kernel)
    assert jit.cache_name(kernel) == before
    other.write_text("b = 2\n")
    after = jit.cache_name(kernel)
    assert after != before

    unrelated = "qmodels-numba-kernel_of_another-0123456789abcdef"
    for name in (before, after, unrelated):
        (tmp_path / name).mkdir()
    jit._remove_outdated(tmp_path / after)
    assert (tmp_path / after).exists() and (tmp_path / unrelated).exists()
    assert not (tmp_path / before).exists()


def test_first_place_that_can_be_written(tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    monkeypatch.setattr(os, "access", lambda folder, mode: folder != first)
    assert jit._writable([first, second / "made when needed"]) == second / "made when needed"


def test_private_directory_where_no_place_can_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda folder, mode: False)
    monkeypatch.setattr(jit.tempfile, "tempdir", str(tmp_path))
    private = [jit._writable([tmp_path / "no"]) for _ in range(2)]
    assert private[0] != private[1]
    for directory in private:
        assert directory.parent == tmp_path and directory.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("compile_function", [jit.jit, jit.part, jit.inlined])
def test_the_directory_of_other_functions_is_left_alone(compile_function):
    before = numba.config.CACHE_DIR
    compile_function(engine.schedule.py_func)
    assert before == numba.config.CACHE_DIR


def test_prefetch_changes_nothing_and_takes_any_place():
    blocks = np.zeros(4, dtype=[("next", "i4"), ("bank", "i2")])
    blocks["next"] = [1, 2, 3, -1]

    @numba.njit
    def follow(blocks, block):
        met = 0
        while block != -1:
            met += 1
            block = blocks[block]["next"]
            prefetch(blocks, block)
        return met

    before = blocks.copy()
    assert follow(blocks, 0) == follow.py_func(blocks, 0) == 4
    assert (blocks == before).all()
    (code,) = follow.inspect_llvm().values()
    assert "llvm.prefetch" in code


def test_parts_are_compiled_in_their_kernel_alone():
    """Two kernels share a part; neither it nor what it calls is compiled by itself."""

    @jit.part
    def deep(x):
        return x * 3.0

    @jit.inlined
    def middle(x):
        return deep(x) + 1.0

    @jit.lean
    def within(x):
        return middle(x) / 2.0

    @jit.jit
    def first(x):
        return within(x) + middle(x)

    @jit.jit
    def second(x):
        return deep(middle(x))

    assert first(2.0) == 7.0 / 2.0 + 7.0 and second(2.0) == 21.0
    assert not within.overloads
    assert within(2.0) == 3.5
    (code,) = first.inspect_llvm().values()
    assert not re.search(r"(call|invoke)[^\n]*(deep|middle|within)", code)


def test_kernels_say_the_same_without_the_compiler(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from validate.engine import jit\n"
        "@jit.part\ndef part(x):\n    return 2 * x\n"
        "@jit.jit\ndef kernel(x):\n    return part(x) + 1\n"
        "print(kernel(3))"
    )
    environment = {**os.environ, "PYTHONPATH": str(jit.ROOT), "NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    assert run.stdout == "7\n", run.stderr
