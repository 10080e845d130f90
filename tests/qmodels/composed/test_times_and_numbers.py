"""Times by two moments, laws of numbers and what is made of them: limits, conservation, closed forms."""

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from qmodels.composed.couplings.free_lists import surviving
from qmodels.composed.figures import FlowFigures, flow_metrics, parts_together
from qmodels.composed.fixed_point.closed_flows import spread
from qmodels.composed.fixed_point.pool_waits import setup_times
from qmodels.composed.latency import (
    TOGETHER,
    ProgramLatency,
    association,
    in_series,
    joined_by_part,
    mixed,
    positive_law,
)
from qmodels.composed.moments import (
    NOTHING,
    Moments,
    max_of_n,
    max_of_random_n,
    max_of_staggered,
    mixture_of,
    moments_of,
    sum_of_n,
)
from qmodels.composed.stalls import Late, Stall, quantile_of
from qmodels.composed.variability import Passing
from qmodels.systems.composed.lower import Here
from qmodels.systems.composed.parts import ONE, Tokens, batch_companions, compound, thinned_law
from qmodels.systems.composed.program_form import ProgramForm, Site
from qmodels.systems.composed.steps import Acquire, Visit

checks = settings(max_examples=20)
shares = st.lists(st.floats(0.01, 1.0), min_size=2, max_size=6).map(lambda some: np.array(some) / sum(some))
ENDLESS = Moments(inf, inf)


def test_quantiles_are_those_of_gamma_laws():
    assert_allclose(Moments(3.0, 9.0).quantile(0.99), -3 * np.log(0.01))
    assert_allclose(Moments(2.0, 1.0).quantile(0.3), stats.gamma(4, scale=0.5).ppf(0.3))
    assert Moments(2.0, 0.0).quantile(0.99) == 2 and ENDLESS.quantile(0.5) == inf
    assert (Moments(2.0, 1.0).scv, NOTHING.scv, ENDLESS.scv) == (0.25, 0, 0)
    assert Moments(2.0, 1.0).stretched(3.0) == Moments(6.0, 9.0)


@checks
@given(outer=shares, inner=shares)
def test_so_many_numbers_have_the_moments_of_their_law(outer, inner):
    law = compound(outer, inner)
    assert_allclose(law.sum(), 1)
    assert_allclose(
        moments_of(law), (lambda s: (s.mean, s.variance))(sum_of_n(outer, Moments(*moments_of(inner))))
    )
    numbers = np.arange(outer.size)
    once = mixture_of(outer.tolist(), [Moments(float(n), 0.0) for n in numbers])
    assert_allclose((once.mean, once.variance), moments_of(outer), atol=1e-12)
    # One that is picked is in a large group more often.
    assert_allclose(batch_companions(outer), (numbers * outer / (numbers @ outer)) @ numbers)
    assert sum_of_n(outer, ENDLESS) == ENDLESS == mixture_of([0.5, 0.5], [NOTHING, ENDLESS])


@checks
@given(law=shares, share=st.floats(0.0, 1.0), times=st.floats(0.1, 9.0))
def test_requests_are_neither_lost_nor_made(law, share, times):
    here = Here(flow=None, times=times, place=np.zeros(0), burst=law, copies=ONE)
    mean = moments_of(law)[0]
    after = here.split()
    assert_allclose(after.times, times * mean)
    assert after.burst is ONE and after.copies is law
    some = here.thinned(share)
    assert_allclose(some.times * moments_of(some.burst)[0], times * mean * share, atol=1e-12)
    numbers = np.arange(law.size)
    binomial = sum(p * stats.binom.pmf(numbers, n, share) for n, p in enumerate(law.tolist()))
    assert_allclose(thinned_law(law, share), binomial, atol=1e-12)
    assert after.thinned(share).times == pytest.approx(after.times * share)
    given_some = positive_law(law)
    assert given_some[0] == 0 and given_some.sum() == pytest.approx(1)
    assert_allclose(given_some[1:] / given_some[-1], law[1:] / law[-1])


@checks
@given(a=st.floats(0.2, 5.0), b=st.floats(0.2, 5.0))
def test_the_later_of_two_exponential_times(a, b):
    found = max_of_n([Moments(1 / a, a**-2), Moments(1 / b, b**-2)])
    mean = 1 / a + 1 / b - 1 / (a + b)
    square = 2 / a**2 + 2 / b**2 - 2 / (a + b) ** 2
    assert_allclose((found.mean, found.variance), (mean, square - mean**2), rtol=5e-3)
    # Beside a constant b: what is beyond it.
    found = max_of_n([Moments(1 / a, a**-2), Moments(b, 0.0)])
    mean = b + np.exp(-a * b) / a
    square = b**2 + 2 * np.exp(-a * b) * (b / a + a**-2)
    assert_allclose(found.mean, mean, rtol=5e-3)
    assert_allclose(found.variance, square - mean**2, rtol=2e-2, atol=1e-4 * b**2)
    assert max_of_n([Moments(b, 0.0), ENDLESS]) == ENDLESS


def test_the_last_of_a_random_number_is_one_of_the_lasts():
    span, law = Moments(2.0, 4.0), np.array([0.2, 0.3, 0.0, 0.5])
    harmonic = np.array([0.0, 1.0, 0.0, 1 + 1 / 2 + 1 / 3])
    assert_allclose(max_of_random_n(law, span).mean, 2 * law @ harmonic, rtol=5e-3)
    assert_allclose(max_of_random_n(law, Moments(3.0, 0.0)).mean, 0.8 * 3)
    assert_allclose(max_of_n([span, span, span]).mean, max_of_n([span], [3.0]).mean, rtol=1e-4)


def test_a_row_whose_times_hardly_overlap_ends_with_its_last_one():
    span = Moments(2.0, 1.0)
    assert_allclose(max_of_staggered(5, 100.0, span).mean, 402.0, rtol=1e-3)
    assert_allclose(max_of_staggered(5, 0.0, span).mean, max_of_n([span], [5.0]).mean, rtol=1e-3)
    lasts = [max_of_staggered(5, gap, span).mean for gap in (0.0, 0.2, 1.0, 4.0)]
    assert (np.diff(lasts) > 0).all() and lasts[-1] >= 18
    # Of a long row the first are long done.
    assert_allclose(
        max_of_staggered(400, 1.0, span).mean - max_of_staggered(40, 1.0, span).mean, 360, rtol=1e-9
    )


@pytest.mark.parametrize("branches", [3, 8, 32, 1000])
@pytest.mark.parametrize("load", [0.0, 0.4, 1.0])
def test_joins_of_many_branches_are_those_of_nelson_and_tantawi(branches, load):
    """Their (h + (1 - h) 4 / 11) 11 / 8 at full load, h = H / H_2; in between in proportion to the load."""
    harmonic = (1 / np.arange(1, branches + 1)).sum()
    several = harmonic / 1.5
    full = ((several + (1 - several) * 4 / 11) * 11 / 8 - 1) / (harmonic - 1)
    assert_allclose(association(branches, load), 1 - load * (1 - full), rtol=1e-4)


BRIEF = ProgramLatency(span=Moments(4.0, 1.0), parts={"a": 3.0, "b": 1.0}, busy=0.2)
LONG = ProgramLatency(
    span=Moments(8.0, 5.0),
    uncounted=Moments(2.0, 1.0),
    parts={"b": 6.0},
    spent={"b": 6.0, "c": 2.0},
    busy=0.5,
)


def test_programs_take_what_their_parts_take():
    one = in_series([BRIEF, LONG])
    assert (one.span, one.uncounted, one.latency) == (
        Moments(12.0, 6.0),
        Moments(2.0, 1.0),
        Moments(10.0, 5.0),
    )
    assert one.parts == {"a": 3.0, "b": 7.0} and one.by_part == {"a": 3.0, "b": 7.0, "c": 2.0}
    assert one.busy == pytest.approx((4 * 0.2 + 8 * 0.5) / 12)  # mean over the time
    either = mixed((0.25, 0.75), [BRIEF, LONG])
    assert either.span == mixture_of((0.25, 0.75), [BRIEF.span, LONG.span])
    assert (
        sum(either.parts.values()) == pytest.approx(either.latency.mean) == pytest.approx(0.25 * 4 + 0.75 * 6)
    )
    assert sum(either.by_part.values()) == pytest.approx(either.span.mean)
    joined = joined_by_part(9.0, [BRIEF.by_part, LONG.by_part])
    assert sum(joined.values()) == pytest.approx(9) and joined[f"{TOGETHER} b"] == pytest.approx(9 * 7 / 12)
    assert joined_by_part(9.0, [{}]) == {TOGETHER: 9.0}
    assert in_series([]).busy == 0


def test_flows_count_by_the_jobs_that_end():
    flows = {
        "few": FlowFigures(latency=Moments(10.0, 100.0), throughput=0.1, parts={"a": 10.0}, lost=0.5),
        "many": FlowFigures(latency=Moments(2.0, 4.0), throughput=0.3, parts={"a": 1.0, "b": 1.0}),
        "none": FlowFigures(latency=ENDLESS, throughput=0.0, parts={"c": inf}),
    }
    found = flow_metrics(flows, {"a": 5.0})
    assert found["latency"] == pytest.approx(0.25 * 10 + 0.75 * 2)
    assert found["latency[few]"] == 10 and found["flow_throughput"] == pytest.approx(0.4)
    # Half of the first flow's 0.2 jobs/ns; of all that come 0.1 of 0.5.
    assert found["blocking_probability[few]"] == pytest.approx(0.5)
    assert found["blocking_probability"] == pytest.approx(0.2)
    assert "blocking_probability[many]" not in found and found["visit_latency[a]"] == 5
    late = found["latency_p99"]
    assert 0.25 * np.exp(-late / 10) + 0.75 * np.exp(-late / 2) == pytest.approx(0.01)
    assert found["latency_p99[many]"] == pytest.approx(-2 * np.log(0.01))
    assert parts_together(flows) == {"a": pytest.approx(3.25), "b": pytest.approx(0.75)}


@checks
@given(stall=st.floats(0.01, 0.5), mean=st.floats(0.1, 20.0), p=st.floats(0.05, 0.995))
def test_a_quantile_is_exceeded_as_often_as_it_says(stall, mean, p):
    """By the law itself: a gamma time, and a delay evenly spread up to twice its mean."""
    delay = Stall(stall, mean)
    span = Moments(5.0 + stall * mean, 5.0 + delay.variance)
    found = quantile_of([(1.0, span, delay, Late())], p)
    plain = stats.gamma(5.0, scale=1.0)
    later = np.linspace(0, 2 * mean, 2001)
    below = (1 - stall) * plain.cdf(found) + stall * plain.cdf(found - later).mean()
    # The delay is cut into eight steps.
    assert below == pytest.approx(p, abs=0.2 * stall * min(mean, 1.0) + 1e-3)
    assert delay.variance == pytest.approx(stall * 4 * mean**2 / 3 - (stall * mean) ** 2)


def test_shares_of_streams():
    poisson = Passing(1.0, 1.0)
    assert poisson.split(0.3) == poisson
    bursts = Passing(5.0, 9.0, memory=2.0)
    twice, once = bursts.split(0.5).split(0.2), bursts.split(0.1)
    assert (twice.scv, twice.lasting, twice.memory) == pytest.approx((once.scv, once.lasting, 2.0))
    assert once.lasting == pytest.approx(1 + 0.1 * 8)
    assert bursts.split(0.0).scv == 1
    # A part that remembers for no time sees the gaps, one that remembers for long what lasts.
    seen = [bursts.seen(memory) for memory in (0.0, 1.0, 10.0, 1e9)]
    assert seen[0] == 5 and seen[-1] == pytest.approx(9) and (np.diff(seen) > 0).all()
    assert Passing(5.0, None, memory=2.0).seen(1e9) == Passing(5.0, 9.0).seen(1e9) == 5


def site(number, part, *, visits=1.0, step=None, flow="jobs"):
    return Site(
        number=number, flow=flow, part=part, step=step or Visit(part), visits=visits, batch=ONE,
    )  # fmt: skip


def test_jobs_that_are_lost_come_no_further():
    sites = (site(0, "a"), site(1, "b", visits=0.5), site(2, "c", visits=3.0), site(3, "a", flow="others"))
    form = ProgramForm(
        op=(), rows=(), children=(), inside=(), programs={}, roots={}, sites=sites, takes=(), legs=()
    )
    come, end = surviving(form, {0: 0.2, 1: 0.1, 2: 0.3}, {"others": 0.9})
    assert come == pytest.approx({0: 1, 1: 0.8, 2: 0.8 * 0.95, 3: 0.9})
    # Lost is the whole job, at its first visit or at a later one of several.
    assert end == pytest.approx({"jobs": 0.8 * 0.95 * 0.7, "others": 0.9})


def test_tokens_turn_as_often_as_their_last_use_was_another():
    takes = [
        site(n, pool, step=Acquire(pool, use=use))
        for n, (pool, use) in enumerate((("bus", "read"), ("bus", "write"), ("bus", "read"), ("other", "")))
    ]
    rates = {0: 1.0, 1: 3.0, 2: 4.0, 3: 1.0}
    found = setup_times(takes, {"bus": Tokens(count=1, turning=8.0)}, lambda one: rates[one.number])
    # Of 8 uses 5 are reads: one is turned to by 3 of 8 of them.
    assert found[0] == found[2] == Moments(3.0, 3 / 8 * 5 / 8 * 64) and found[1].mean == pytest.approx(5.0)
    assert 3 not in found
    alone = setup_times(takes[:1], {"bus": Tokens(count=1, turning=8.0)}, lambda one: 1.0)
    assert alone == {0: NOTHING}


@pytest.mark.parametrize("copies", [1, 2, 5])
def test_copies_of_a_pool_are_as_fast_as_one_with_its_share_of_the_jobs(copies):
    speeds = np.array([1.0, 1.5, 1.8])
    found = spread(speeds, copies)
    assert found.size == 3 * copies
    assert_allclose(found[copies - 1 :: copies], copies * speeds)
    assert (np.diff(found) > 0).all()
