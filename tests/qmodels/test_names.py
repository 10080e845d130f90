from __future__ import annotations

from importlib import import_module

import pytest

import qmodels as qm


def test_every_public_name_is_there() -> None:
    for name in dir(qm):
        assert getattr(qm, name) is not None
    assert {"solve", "PacketProcessor", "mmc", "read_trace"} <= set(dir(qm))


def test_no_public_name_stands_for_two_things() -> None:
    homes: dict[str, str] = {name: "qmodels" for name in qm.__all__}
    for package in ("qmodels.queues", "qmodels.markov", "qmodels.networks"):
        for name in import_module(package).__all__:
            assert homes.setdefault(name, package) == package, name


def test_verbs_are_not_hidden_by_modules() -> None:
    import_module("qmodels.dispatch")
    assert callable(qm.solve)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'qmodels' has no attribute 'mmx'"):
        qm.mmx  # noqa: B018
