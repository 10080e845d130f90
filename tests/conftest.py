"""How the suite is shared out among several processes; what its processes inherit."""

import gc
import os
import signal
from pathlib import Path, PurePath

import pytest
from hypothesis import HealthCheck, settings

# Before anything imports NumPy: there is a process for each processor, and threads of linear algebra that
# wait for one that another process has spin, which takes small matrices three times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Every run draws the same few examples, on a slow machine too; HYPOTHESIS_PROFILE=random, by night, others.
settings.register_profile(
    "same", max_examples=20, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("random", max_examples=60, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give each process whole rooms of tests, in order: a kernel is compiled and a fixture made once."""
    if config.getvalue("dist") != "load":
        return None  # asked for otherwise
    from xdist.scheduler import LoadScopeScheduling

    class Rooms(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = PurePath(nodeid.partition("::")[0])
            return str(file.parent if file.parts[0] == "tests" else file)

    config.option.loadscopereorder = False
    return Rooms(config, log)


class Refusals(pytest.File):
    """A table of calls that are refused, which is a test of its folder."""

    def collect(self):
        from tests.refusals import today

        def lines_are_those_of_today():
            text = self.path.read_text()
            assert today(text) == text.splitlines()

        yield pytest.Function.from_parent(self, name="refusals", callobj=lines_are_those_of_today)


def pytest_collect_file(file_path, parent):
    return Refusals.from_parent(parent, path=file_path) if file_path.name == "refusals.txt" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for garbage seldom, and never among the tests: kernels are compiled in a seventh less time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave cases beyond those for CI to the night; benchmarks come behind tests, whose kernels they use."""
    cases = {}
    for item in items:
        if item.get_closest_marker("in_ci"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for some in cases.values():
        count = min(some[0].get_closest_marker("in_ci").args[0], len(some))
        kept = {(2 * k + 1) * len(some) // (2 * count) for k in range(count)}
        for k, item in enumerate(some):
            if k not in kept:
                item.add_marker(pytest.mark.slow)
    tests = Path(__file__).parent
    items.sort(key=lambda item: ("benchmarks" in item.path.parts) if tests in item.path.parents else 2)


@pytest.fixture
def interruptible():
    """Let processes started in a test take Ctrl-C, also where the tests run in a background without it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
