"""Build the documentation into ``.github/docs/.build/html``; every warning is an error.

``--links`` asks for every external link too, ``--spelling`` checks the words of the sources, ``--fresh``
forgets what earlier builds have executed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

DOCS = Path(__file__).resolve().parent
OUT = DOCS / ".build"


def main() -> int:
    """Build, and say how long it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("links", "spelling", "fresh"):
        parser.add_argument(f"--{name}", action="store_true")
    options = parser.parse_args()
    if options.spelling:
        return spelling()
    if options.fresh:
        shutil.rmtree(OUT, ignore_errors=True)
    builder = "linkcheck" if options.links else "html"
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # pages are read by a process for each processor
    began = time.monotonic()
    words = ["-W", "--keep-going", "-n", "-q", "-j", "auto", "-b", builder, "-d", str(OUT / "trees")]
    failed = subprocess.call([sys.executable, "-m", "sphinx", *words, str(DOCS), str(OUT / builder)])
    if builder == "html" and not failed:
        failed = len(loaded(OUT / "html"))
    cpu = sum(os.times()[:4])
    print(f"documentation: {time.monotonic() - began:.0f} s ({cpu:.0f} s of CPU), {OUT / builder}")
    return int(bool(failed))


def loaded(html: Path) -> list[str]:
    """Return, and print, what pages would load from elsewhere: the site works offline."""
    loads = re.compile(
        r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["'](?:https?:)?//[^"']*"""
        r"""|<link\b(?=[^>]*\brel=["'](?:stylesheet|preload|icon|preconnect))[^>]*\bhref=["'](?:https?:)?//[^"']*"""
        r"""|url\(["']?(?:https?:)?//[^)]*"""
    )
    found = [
        f"{path.relative_to(html)}: {match.group(0)}"
        for path in [*html.rglob("*.html"), *html.rglob("*.css")]
        for match in loads.finditer(path.read_text(encoding="utf-8"))
    ]
    print(*(f"loaded from elsewhere: {one}" for one in found), sep="\n", end="\n" if found else "")
    return found


def spelling() -> int:
    """Check the words of sources and docstrings against lists of misspellings."""
    names = ("README.md", "CHANGELOG.md", "qmodels", "optimize", "validate", "cases")
    skip = "*.build,*.csv,*.json,*.svg,*.png,*/libraries/*,*/pictures/*,*/generated/*,*.sqlite"
    words = [f"--skip={skip}", f"--ignore-words={DOCS / 'words.txt'}", str(DOCS)]
    root = DOCS.parents[1]
    return subprocess.call(
        [sys.executable, "-m", "codespell_lib", *words, *(str(root / name) for name in names)]
    )


if __name__ == "__main__":
    sys.exit(main())
