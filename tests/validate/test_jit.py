"""Compiled kernels are those of the present sources, wherever their cache is kept."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import numba
import numpy as np
import pytest

from validate import (
    data_queueing_inputs,
    data_queueing_kernel,
    data_queueing_replay,
    engine,
    jit,
    packet_inputs,
    packet_kernel,
    packet_network,
)
from validate.prefetch import prefetch

KERNELS = (
    data_queueing_inputs,
    data_queueing_kernel,
    data_queueing_replay,
    engine,
    packet_inputs,
    packet_kernel,
    packet_network,
)


def test_every_compiled_function_stands_in_a_hashed_file():
    compiled = [
        function for module in KERNELS for function in vars(module).values() if hasattr(function, "py_func")
    ]
    assert len(compiled) > 60
    for function in compiled:
        assert Path(inspect.getfile(function.py_func)) in jit.SOURCES
        assert jit.CACHE in Path(function.stats.cache_path).parents


def test_an_edit_of_any_source_moves_the_cache(tmp_path):
    sources = [tmp_path / "kernel.py", tmp_path / "imported.py"]
    for source in sources:
        source.write_text("x = 1\n")
    before = jit._cache_directory(sources, [tmp_path])
    assert before.parent == tmp_path
    assert jit._cache_directory(sources, [tmp_path]) == before
    sources[1].write_text("x = 2\n")
    after = jit._cache_directory(sources, [tmp_path])
    assert after != before

    for directory in (before, after):
        directory.mkdir()
    jit._remove_outdated(after)
    assert after.exists() and not before.exists()


def test_first_place_that_can_be_written(tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    monkeypatch.setattr(os, "access", lambda folder, mode: folder != first)
    assert jit._cache_directory([], [first, second / "made when needed"]).parents[1] == second


def test_private_directory_where_no_place_can_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda folder, mode: False)
    monkeypatch.setattr(jit.tempfile, "tempdir", str(tmp_path))
    private = [jit._cache_directory([], [tmp_path / "no"]) for _ in range(2)]
    assert private[0] != private[1]
    for directory in private:
        assert directory.parent == tmp_path and directory.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("compile_function", [jit.jit, jit.part, jit.inlined])
def test_the_directory_of_other_functions_is_left_alone(compile_function):
    before = numba.config.CACHE_DIR
    compile_function(engine.pending.py_func)
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
