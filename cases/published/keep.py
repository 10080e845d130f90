"""Compute a published case anew and keep what is found: ``python -m cases.published.keep CASE``.

It takes seconds (ocmpi) to an hour (srp). While it runs, finished replications stand in ``<case>.sqlite`` in
the working directory, from which the same command resumes if it was killed. With ``--today`` it solves the
models only, and keeps the rest. With ``--fit`` it finds the parameters anew that are fitted to the paper and
writes ``calibrated.toml``. With ``--guide`` it puts the guide's table of published numbers beside ours, of
all cases as they are kept, in its place.
"""

from __future__ import annotations

import sys
from pathlib import Path

from cases.published import CASES
from cases.published.computing import FITTED, interval
from cases.published.numbers import TAGS, data_folder, tag_rows
from cases.published.paper import published_case
from cases.tables import markdown_table, with_table

GUIDE = Path(__file__).parents[2] / ".github" / "docs" / "papers" / "published.md"
HEADINGS = ("case", "tag", "numbers (how many): mean (largest) error of the model / simulated")


def guide_table() -> str:
    """Return the guide's table of all cases, in Markdown: a row per case and tag."""
    lines = []
    for case in CASES:
        paper = published_case(case)
        rows = tag_rows(paper.tags, paper.kept().numbers())
        for tag in TAGS:
            texts = [
                f"{what} ({count}): {model} / {simulated}"
                for what, count, its, model, simulated, _ in rows
                if its == tag
            ]
            lines += [[f"`{case}`", tag, "; ".join(texts)]] if texts else []
    return markdown_table(HEADINGS, lines)


def keep(name: str, *, quick: bool = False) -> None:
    """Compute a case, all of it or its models, and write what is found."""
    unfinished, paper = Path(f"{name}.sqlite"), published_case(name)
    found = paper.today() if quick else paper.reproduce(store=unfinished)
    found.write(data_folder(name))
    unfinished.unlink(missing_ok=True)
    print(found.table())


def keep_fits(name: str) -> None:
    """Find the fitted parameters of a case, with their intervals where these are wanted, and write them."""
    paper, parts = published_case(name), dict[str, dict[str, float]]()
    for key, one in paper.data.get("fits", {}).items():
        parts[key] = paper.names["fitted"](key)
        parts |= interval(paper, key) if one.get("interval") else {}
    text = f"# Found by python -m cases.published.keep {name} --fit.\n"
    for key, values in parts.items():
        text += f"\n[{key}]\n" + "".join(f"{field} = {value:.8g}\n" for field, value in values.items())
    (data_folder(name) / FITTED).write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    if "--guide" in sys.argv:
        GUIDE.write_text(with_table(GUIDE.read_text(encoding="utf-8"), guide_table()), encoding="utf-8")
    else:
        (case,) = (word for word in sys.argv[1:] if not word.startswith("--"))
        keep_fits(case) if "--fit" in sys.argv else keep(case, quick="--today" in sys.argv)
