"""The page of a study in a real browser: the screen, one picture, nothing fetched, readable at any width."""

import re
from base64 import b64decode

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.study.files import _packed, _picture_data, page
from cases.study.screen import Screen

READY = "document.documentElement.dataset.ready === 'yes'"


@pytest.fixture(scope="module")
def opened(small_study, browser):
    browser.emulate(1280)
    browser.open(small_study[1] / "report.html")
    browser.wait(READY)
    return browser


def test_opens_with_the_screen_as_tables_and_one_picture_a_workload(small_study, opened):
    study, _ = small_study
    text = opened.value("document.body.innerText")
    for k, part in enumerate(study.parts):
        screen = Screen(part=part)
        found = screen.data()
        assert f"Best: design {found['best']['design']} (" in text
        for row in screen.value_rows(found)[1:]:
            assert all(cell in text for cell in row)
        assert screen.sure(found) in text
        picture = f"document.querySelector('#picture-{k} svg')"
        assert opened.value(f"{picture}.querySelectorAll('.simulated').length") == len(
            part.decision.simulated
        )
        assert opened.value(f"{picture}.querySelectorAll('.star, .front').length") == 2
    # Nothing else until it is asked for.
    assert opened.value("[...document.querySelectorAll('details')].every(one => !one.open)")
    assert "How far to trust it" in text and "designs solved" not in text
    assert opened.messages == []


def test_axes_follow_the_space(small_study):
    """The same study gives the same page, whatever the order of a set of words in this process."""
    for part in small_study[0].parts:
        names, choices = list(_picture_data(part)["axes"]), list(part.model.space.choices)
        assert [name for name in names[2:] if name in choices] == [
            one for one in choices if one not in names[:2]
        ]


def test_axes_change_and_a_design_is_shown_by_keyboard(small_study, opened):
    part = small_study[0].parts[0]
    opened.value("document.querySelector('#picture-0').focus()")
    opened.press("ArrowRight")
    shown = opened.value("document.querySelector('#shown-0').textContent")
    design = int(re.match(r"design (\d+): ", shown)[1])
    assert design in part.model.table["design"][part.decision.front] and "area [mm2]" in shown
    change = "const s = document.querySelector('#{}-0'); s.value = '{}'; s.dispatchEvent(new Event('change'))"
    for axis, name in (("x", "saturation_data_rate"), ("y", "energy_per_packet")):
        opened.value(f"(() => {{ {change.format(axis, name)} }})()")
    words = opened.value("document.querySelector('#picture-0 svg').getAttribute('aria-label')")
    assert words.startswith("energy per packet [nJ] over saturates [Gb/s] of ")
    assert opened.messages == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_fits_and_asks_for_nothing(small_study, browser, width, scheme):
    browser.emulate(width, scheme)
    browser.open(small_study[1] / "report.html")
    browser.wait(READY)
    assert [url for url in browser.requests if not url.startswith("data:")] == [
        browser.value("location.href")
    ]
    browser.value("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert browser.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    smallest = (
        "Math.min(...[...document.querySelectorAll('svg text')].map(t => t.getBoundingClientRect().height))"
    )
    assert browser.value(smallest) >= 12
    ink, paper = browser.value(
        "['color', 'backgroundColor'].map(name => getComputedStyle(document.documentElement)[name])"
        ".map(colour => Math.max(...colour.match(/\\d+/g).slice(0, 3).map(Number)))"
    )
    assert (paper < 40 and ink > 200) if scheme == "dark" else (paper > 240 and ink < 60)
    assert browser.messages == []


def test_a_page_without_a_front_is_made_and_no_word_ends_its_script(overloaded_study, small_study):
    text = page(overloaded_study)
    assert "none: no design is feasible" in text and "does not keep up" in text
    assert page(small_study[0]).count("</script") == 2


def test_the_page_of_the_default_study_stays_below_a_megabyte(small_study):
    """2,700 designs have as many bytes each as the 160 of this study, beside what is there once."""
    text = page(small_study[0])
    data = len(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert len(text) - data + data / 160 * 2 * 2700 < 1e6


@given(
    st.lists(st.floats(-(2.0**127), 2.0**127, width=32) | st.just(np.inf), min_size=1)
    | st.lists(st.integers(0, 70_000), min_size=1)
)
def test_packing_keeps_values(values):
    values = np.array([0.0 if np.isnan(one) else one for one in values], dtype=float)
    text = _packed(values)
    octets = np.frombuffer(b64decode(text[1:]), dtype=np.uint8)
    found = {
        "1": lambda: octets.astype(float),
        "4": lambda: octets.view("<i4").astype(float),
        "3": lambda: np.pad(octets.reshape(-1, 3), ((0, 0), (1, 0))).ravel().view("<f4").astype(float),
    }[text[0]]()
    tiny = np.abs(values) < 1e-37
    np.testing.assert_allclose(found[~tiny], values[~tiny], rtol=2e-5)
