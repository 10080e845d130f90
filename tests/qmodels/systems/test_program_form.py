"""The intermediate form of programs: counts as by a walk of the steps, postfix order, folds, tokens held."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qmodels as qm
from qmodels import dram, mesh
from qmodels.laws import Exponential
from qmodels.steps import Acquire, Branch, Each, Fork, Hold, Mark, Read, Release, Repeat, Send, Visit
from qmodels.systems.composed.lower import lower
from qmodels.systems.composed.program_form import Op, fold, window_of
from qmodels.traffic import Poisson, bimodal

SIZES = bimodal(small=64, large=256, small_fraction=0.5)
MEAN = {"segments": float(np.dot(*SIZES.segments(64)))}

plain = st.sampled_from(
    (Visit("a"), Visit("b"), Read("dram", 3), Hold(Exponential(mean=2.0)), Mark("here"), Send("dram"))
)
counts = st.sampled_from((1, 2, 3, "segments"))


def larger(inner):
    """Return steps that hold others."""
    some = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.tuples(some, some, st.floats(0.1, 0.9)).map(lambda x: Branch(x[:2], (x[2], 1 - x[2]))),
        st.tuples(some, counts).map(lambda x: Each(*x)),
        st.tuples(some, counts).map(lambda x: Repeat(*x)),
        st.lists(some, min_size=2, max_size=3).map(lambda x: Fork(tuple(x))),
    )


programs = st.lists(st.recursive(plain, larger, max_leaves=6), min_size=1, max_size=4).map(tuple)


def system(*program, **more):
    """Return a system of two stations and a memory on a mesh."""
    parts = {name: qm.Station(service=Exponential(mean=1.0)) for name in "ab"}
    parts |= {"dram": dram("DDR4-3200"), "mesh": qm.Noc(topology=mesh(2, 2)), "pool": qm.Tokens(count=2)}
    flow = {"arrivals": Poisson(), "rate": 1e-3, "at": (0, 1), "sizes": SIZES, **more}
    return qm.System(
        parts=parts
        | {"dram": dram("DDR4-3200"), "mesh": qm.Noc(topology=mesh(2, 2)), "pool": qm.Tokens(count=2)},
        place={"dram": (3,)},
        flows=qm.Flow(program=(Visit("a"), Visit("b"), Read("dram"), *PAIR, *program), **flow),
    )


PAIR = (Acquire("pool"), Release("pool"))


def requests(steps, times=1.0):
    """Return how many requests a job makes of each part, by the steps themselves."""
    total = Counter()
    for step in steps:
        match step:
            case Visit() | Read():
                total[step.part] += times * getattr(step, "blocks", 1)
            case Each() | Repeat():
                total.update(requests(step.steps, times * MEAN.get(step.count, step.count)))
            case Fork():
                for branch in step.branches:
                    total.update(requests(branch, times))
            case Branch():
                for share, choice in zip(step.probabilities, step.choices, strict=True):
                    total.update(requests(choice, times * share))
    return total


@given(program=programs)
def test_a_lowered_program_does_what_its_steps_say(program):
    spec = system(*program)
    form = lower(spec)
    found = Counter()
    for site in form.sites:
        found[site.part] += site.visits * site.mean_batch
    assert found == pytest.approx(requests(spec.flows[0].program))
    # What is sent to the memory and read there comes back.
    legs = [form.legs[leg] for site in form.sites for leg in (site.there, site.back) if leg is not None]
    assert sum(leg.packets for leg in legs if leg.bytes) == pytest.approx(
        sum(site.visits * site.mean_batch for site in form.sites if site.there is not None)
    )
    # Postfix: operands before what they are operands of, each of one instruction.
    operands = [child for node in form.children for child in node]
    assert sorted([*operands, form.programs["jobs"]]) == list(range(len(form.op)))
    assert all(child < node for node, some in enumerate(form.children) for child in some)
    # A fold without a rule for it hands the state from visit to visit, in the order of the program.
    rules = {Op.VISIT: lambda site, seen: [*seen, site.number], Op.CHOICE: _each, Op.PARALLEL: _each}
    numbers = fold(form, form.roots["jobs"], rules, [])
    assert numbers == list(range(len(form.sites)))


def _each(row, nodes, run, seen):
    for node in nodes:
        seen = run(node, seen)
    return seen


def test_sites_know_which_tokens_are_held():
    inner = (Acquire("pool", 2), Visit("b"), Release("pool"), Visit("a"), Release("pool"), Visit("b"))
    form = lower(system(*inner, window=4))
    window = window_of("jobs")
    assert [site.held for site in form.sites[3:]] == [(window, "pool"), (window, "pool"), (window,)]
    assert form.pools == {"pool": set(), window: {"pool"}}
    assert form.parts_inside("pool", "mesh") == {"a", "b"}
    assert form.parts_inside(window, "mesh") == {"a", "b", "dram", "mesh"}


def test_copies_of_copies_and_copies_of_one_change_no_time():
    steps = (Each((Each((Visit("a"),), 2),), 3), Each((Visit("b"),), 1), Fork(((Visit("a"),), (Visit("a"),))))
    form = lower(system(*steps))
    nested, _, fork = form.inside[form.roots["jobs"]][-3:]
    assert form.op[nested] == form.op[fork] == Op.COPIES
    assert form.rows[nested].law.argmax() == 6 and form.rows[fork].law.argmax() == 2
    assert [site.batch.argmax() for site in form.sites[3:]] == [6, 1, 2]
    raw = form.children[form.programs["jobs"]][-3:]
    assert [form.op[node] for node in raw] == [Op.COPIES, Op.COPIES, Op.PARALLEL]
    assert form.rows[raw[2]].order == (0, 0)
