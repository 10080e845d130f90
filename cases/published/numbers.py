"""The guide's table of published numbers beside ours: ``python -m cases.published.numbers`` puts it there."""

from __future__ import annotations

from pathlib import Path

from cases.published.cases import CASES, published_case
from cases.published.tags import TAGS, tag_rows
from cases.tables import markdown_table, with_table

GUIDE = Path(__file__).parents[2] / ".github" / "docs" / "papers" / "published.md"
HEADINGS = ("case", "tag", "numbers (how many): mean (largest) error of the model / simulated")


def guide_table() -> str:
    """Return the guide's table of all cases, in Markdown: a row per case and tag."""
    lines = []
    for case in CASES:
        rows = tag_rows(case, published_case(case).kept().numbers())
        for tag in TAGS:
            texts = [
                f"{what} ({count}): {model} / {simulated}"
                for what, count, its, model, simulated, _ in rows
                if its == tag
            ]
            if texts:
                lines.append([f"`{case}`", tag, "; ".join(texts)])
    return markdown_table(HEADINGS, lines)


if __name__ == "__main__":
    text = GUIDE.read_text(encoding="utf-8")
    table = guide_table()
    GUIDE.write_text(with_table(text, table), encoding="utf-8")
    print(table)
