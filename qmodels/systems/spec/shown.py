"""A figure that a notebook shows at once, without a screen; importing it imports matplotlib."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure


class Shown(Figure):
    """A figure whose picture is its representation in a notebook, whether or not pyplot is in use."""

    def _repr_png_(self) -> bytes:
        picture = BytesIO()
        self.savefig(picture, format="png", dpi=110)
        return picture.getvalue()
