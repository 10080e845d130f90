"""The built documentation in a browser: it fits, shows its pictures, fetches nothing and says no error."""

from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / ".github" / "docs" / ".build" / "html"
PAGES = (
    "index", "start/packet-memory", "start/free-lists", "tutorials/pcap-to-decision", "howto/index",
    "howto/what-if", "howto/reproduce-a-paper", "concepts/error-map", "concepts/glossary", "pictures/index",
    "papers/published", "papers/conclusions", "reference/generated/metrics", "reference/generated/commands",
    "reference/generated/fields/noc", "reference/accuracy", "reference/generated/architecture",
    "reference/generated/api/qmodels", "reference/models/queueing", "project/contributing",
)  # fmt: skip
"""One of each form at least."""

BROKEN = "[...document.images].filter(one => one.complete && !one.naturalWidth).map(one => one.src)"
BEYOND = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
SHOWN = "document.querySelector('article h1').getBoundingClientRect()"

pytestmark = pytest.mark.skipif(not SITE.is_dir(), reason="the documentation is not built")


@pytest.mark.parametrize("width", [390, 1280, 1920])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_and_shows_its_pictures(browser, page, width):
    browser.emulate(width)
    browser.open(SITE / f"{page}.html")
    assert browser.value(BEYOND) <= 0
    assert browser.value(BROKEN) == []
    assert browser.value(f"{SHOWN}.left >= 0 && {SHOWN}.right <= {width} && {SHOWN}.height > 0")
    assert all(one.startswith(("file:", "data:")) for one in browser.requests)
    assert browser.messages == []
