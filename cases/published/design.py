"""A system behind published numbers, as a file that can be edited."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qmodels.systems.spec.kind import metric_of
from qmodels.systems.spec.text.toml import to_toml


@dataclass(frozen=True, kw_only=True)
class Design:
    """A system of a paper."""

    name: str  # Of its place in the paper, see `name_of`
    spec: Any  # The system
    # What the paper prints of it, by metric and in its unit; None where it prints no number
    published: Mapping[str, float | None]

    def text(self) -> str:
        """Return it as the text of a file, below the numbers of the paper."""
        said = [
            f"# published {metric}: {value:.6g} {metric_of(self.spec, metric).unit}".removesuffix(" 1")
            for metric, value in self.published.items()
            if value is not None
        ]
        return "\n".join([f"# {self.name}", *said, to_toml(self.spec, kind=True)])


def name_of(**place: str | float) -> str:
    """Return the name of a place.

    Examples
    --------
    >>> name_of(table="table2", width=8, reading="in turn")
    'table2-width8-in-turn'
    """
    words = " ".join(str(one) if isinstance(one, str) else f"{key}{one}" for key, one in place.items())
    return re.sub(r"[^a-z0-9.]+", "-", words.lower()).strip("-")
