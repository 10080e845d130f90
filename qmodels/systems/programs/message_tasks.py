"""Task graphs as message-passing programs: tasks on processes, and the words they hand on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qmodels import checks
from qmodels.systems.programs.collectives import Processes
from qmodels.systems.programs.message_steps import PRIORITIES, compute, receive, send


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task of a parallel program.

    Parameters
    ----------
    name : str
        Name.
    process : int
        Where it runs.
    cycles : float
        Computing time. [cycles]
    priority : int
        Of what it sends, 0 first and 7 last.
    """

    name: str
    process: int
    cycles: float
    priority: int = PRIORITIES - 1

    def __post_init__(self) -> None:
        checks.count(f"process of task {self.name!r}", self.process, minimum=0)
        checks.nonnegative(f"cycles of task {self.name!r}", self.cycles)
        checks.count(f"priority of task {self.name!r}", self.priority, minimum=0, maximum=PRIORITIES - 1)


def task_graph(tasks: Sequence[Task], *, messages: Sequence[tuple[str, str, int]]) -> Processes:
    """Return the processes that run a task graph.

    Parameters
    ----------
    tasks : sequence of Task
        Tasks in an order in which each process runs its own.
    messages : sequence of (str, str, int)
        From which task to which, and how many words; between tasks of one process nothing is sent.

    Returns
    -------
    tuple of tuple of str
        Steps of each process: a task receives what it is handed in the order of ``messages``,
        computes, and sends.

    Raises
    ------
    ValueError
        If a name stands for two tasks or none, or a task is handed something by a later one.

    Notes
    -----
    Between two processes messages arrive in the order in which they are sent. Where their tasks take
    them in another order, the first to ask gets the first that came.

    Examples
    --------
    >>> read = Task(name="read", process=0, cycles=100, priority=0)
    >>> task_graph([read, Task(name="show", process=1, cycles=50)], messages=[("read", "show", 16)])
    (('priority 0', 'compute 100', 'send 1 16'), ('priority 7', 'receive 0', 'compute 50'))
    """
    known = {task.name: place for place, task in enumerate(tasks)}
    if len(known) < len(tasks):
        raise ValueError(f"tasks must have different names, got {[task.name for task in tasks]}")
    for source, target, _ in messages:
        for name in (source, target):
            if name not in known:
                raise ValueError(f"messages must be between tasks, got {name!r}{checks.nearest(name, known)}")
        if known[source] >= known[target]:
            raise ValueError(
                f"messages must go from earlier tasks to later ones, got {source!r} to {target!r}"
            )
    steps: list[list[str]] = [[] for _ in range(1 + max((task.process for task in tasks), default=0))]
    for task in tasks:
        mine = steps[task.process]
        mine.append(f"priority {task.priority}")
        # What a peer sent first has to be received first.
        handed = sorted((m for m in messages if m[1] == task.name), key=lambda m: known[m[0]])
        mine += [
            receive(tasks[known[source]].process)
            for source, _, _ in handed
            if tasks[known[source]].process != task.process
        ]
        mine.append(compute(task.cycles))
        given = sorted((m for m in messages if m[0] == task.name), key=lambda m: known[m[1]])
        mine += [
            send(tasks[known[target]].process, words=words)
            for _, target, words in given
            if tasks[known[target]].process != task.process
        ]
    return tuple(map(tuple, steps))
