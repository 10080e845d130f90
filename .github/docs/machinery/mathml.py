"""Formulas as MathML, written at build time by docutils: no script, no fonts, nothing to load."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

LOG = logging.getLogger(__name__)
LARGER = re.compile(r"\\(?:bigg?|Bigg?)[lr]?\b")
"""Sizes of brackets that the converter does not know."""


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer ``mathml``."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(writer: Any, node: Any) -> None:
    writer.body.append(_mathml(node))
    raise nodes.SkipNode


def _block(writer: Any, node: Any) -> None:
    writer.body.append(f'<div class="math">{_mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def _mathml(node: Any, **options: bool) -> str:
    text = LARGER.sub("", node.astext()).replace(r"\dots", r"\ldots")
    try:
        return str(tex2mathml(text, **options))
    except MathError as error:
        LOG.warning("%s in the formula %s", error, text, location=node)
        return f"<code>{escape(text)}</code>"
