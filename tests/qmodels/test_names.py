from __future__ import annotations

from importlib import import_module

import pytest

import qmodels as qm
from qmodels import GROUPS


def test_every_public_name_is_there() -> None:
    for name in dir(qm):
        assert getattr(qm, name) is not None
    assert {"solve", "PacketProcessor", "queues", "read_trace"} <= set(dir(qm))


@pytest.mark.parametrize("group", GROUPS)
def test_every_name_of_a_group_is_there(group: str) -> None:
    home = getattr(qm, group)
    assert home.__doc__ and set(home.__all__) <= set(dir(home))
    assert all(getattr(home, name) is not None for name in home.__all__)


def test_no_public_name_stands_for_two_things() -> None:
    found: dict[str, object] = {name: getattr(qm, name) for name in qm.__all__}
    for group in GROUPS:
        for name in getattr(qm, group).__all__:
            thing = getattr(getattr(qm, group), name)
            assert found.setdefault(name, thing) is thing, name


def test_verbs_are_not_hidden_by_modules() -> None:
    import_module("qmodels.dispatch")
    assert callable(qm.solve)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'qmodels' has no attribute 'mmx'"):
        qm.mmx  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'mmc'; it is qmodels.queues.mmc$"):
        qm.mmc  # noqa: B018
