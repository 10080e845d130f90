"""Time of the first answer and of the first simulation after an install, and of the next ones.

Limits: ``import qmodels`` 0.05 s beside Python, ``solve`` 2 s, the first simulation of a kind 6 s more than
the next one.
"""

import os
import subprocess
import sys
from typing import Any

import pytest

FIRST = {
    "import": "import qmodels",
    "solve": "import qmodels as qm; assert qm.solve(qm.PacketProcessor()).stable",
    "qmodels solve": (
        "import sys; from cases.cli.main import main; sys.stdout = open('/dev/null', 'w'); main(['solve'])"
    ),
    "simulate": (
        "import qmodels as qm; from validate import simulate; "
        "simulate(qm.PacketProcessor(), packets=2000, replications=2)"
    ),
}
KINDS: dict[str, dict[str, int]] = {
    "cache": {"requests": 2000},
    "data-queueing": {"packets": 2000},
    "dram": {"accesses": 2000},
    "llc-processor": {"requests": 2000},
    "message-program": {},
    "noc": {"packets": 2000},
    "numa": {},
    "queueing-network": {"passages": 2000},
    "system": {"passages": 2000},
    "work-queues": {},
}
FIRST |= {
    f"simulate {kind}": (
        "from qmodels.systems.spec.kind import kind_named; from validate import simulate; "
        f"simulate(kind_named({kind!r}).starter(), replications=2, **{options})"
    )
    for kind, options in KINDS.items()
}


@pytest.mark.slow
@pytest.mark.parametrize("again", [False, True], ids=["nothing compiled", "compiled"])
@pytest.mark.parametrize("what", list(FIRST))
def test_a_process_of_its_own(what: str, again: bool, benchmark: Any, tmp_path: Any) -> None:
    """The time is that of the process, its start and imports included."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def run() -> None:
        subprocess.run([sys.executable, "-c", FIRST[what]], env=environment, check=True)

    if again:
        # Whatever is compiled aside for the first answer is there when it is waited for.
        wait = (
            "from qmodels.noc.fixed_point import solve_turns as a; "
            "from qmodels.packet_processor.following.recursion import follow as b; "
            "from qmodels.packet_processor.ring import settle as c; "
            "from qmodels.packet_processor.meeting import meet as d; "
            "from qmodels.packet_processor.lone_packet import walk_all as e; "
            "[k.wait() for k in (a, b, c, d, e)]"
        )
        code = FIRST[what] if "main" in FIRST[what] else f"{FIRST[what]}; {wait}"
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    benchmark.pedantic(run, rounds=1)
