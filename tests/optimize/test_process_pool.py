from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from numpy.testing import assert_array_equal

from optimize import Space, explore


def test_a_process_pool_gives_the_same_answer(tmp_path, monkeypatch):
    (tmp_path / "toy_chip_model.py").write_text(
        "from dataclasses import dataclass\n"
        "@dataclass(frozen=True)\n"
        "class Chip:\n    width: int = 8\n    lanes: int = 1\n"
        "def solve(chip):\n"
        "    return {'latency': 64 / chip.width + chip.lanes, 'cost': chip.width * chip.lanes}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import toy_chip_model as toy

    space = Space(toy.Chip(), width=[4, 8, 16], lanes=[1, 2])
    goals = {"minimize": ["latency", "cost"]}
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        results = [
            explore(space, toy.solve, executor=executor, vectorized=vectorized, **goals)
            for vectorized in (False, True, "grid")
        ]
    serial = explore(space, toy.solve, **goals)
    for result in results:
        for name, column in serial.table.items():
            assert_array_equal(result.table[name], column)
        assert_array_equal(result.front, serial.front)
    sys.modules.pop("toy_chip_model")
