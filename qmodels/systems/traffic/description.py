"""What a recorded trace is like, in numbers and words, before any model uses it."""

from __future__ import annotations

from html import escape
from typing import Any

from qmodels.systems.traffic.trace_facts import LAGS, PART, TraceFacts, time_text
from qmodels.systems.traffic.trace_words import Row, rows, warnings


class TraceDescription(TraceFacts):
    """The numbers of `TraceFacts`, which print as a table in words, draw and warn of what will not fit."""

    @property
    def summary(self) -> str:
        """The trace in one sentence."""
        found, steady = self.statistics, {True: "steady", False: "not steady", None: "of unknown steadiness"}
        bursts = ""
        if found.scale_ns.size:
            first, last = found.byte_dispersion[[0, -1]]
            bursts = f", dispersion of bytes {first:.3g} to {last:.3g} over time scales"
        return (
            f"{self.packets} packets in {time_text(self.duration_ns)} at {self.mean_gbps:.4g} Gb/s, busiest "
            f"{PART} {found.peak_to_mean:.2f} times the mean{bursts}, "
            f"rate {steady[self.steadiness.steady]}"
        )

    def rows(self) -> list[Row]:
        """Return what is known, a line each: what, value, unit, and what that says."""
        return rows(self)

    def warnings(self, **limits: Any) -> list[str]:
        """Return what will not fit, a sentence each: limits as `trace_words.warnings` takes them."""
        return warnings(self, **limits)

    def to_dict(self) -> dict[str, Any]:
        """Return every number by name; those of the windows and scales as arrays."""
        found, steady = self.statistics, self.steadiness
        named = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for name in ("statistics", "steadiness", "times_ns", "bytes"):
            del named[name]
        return {
            **named,
            "size_correlation": dict(zip(map(str, LAGS), self.size_correlation, strict=True)),
            "peak_to_mean": found.peak_to_mean,
            "window_ns": found.window_ns,
            "packet_share": found.packet_share,
            "byte_share": found.byte_share,
            "scale_ns": found.scale_ns,
            "scale_mean_gaps": found.scale_ns * self.packet_rate,
            "packet_dispersion": found.packet_dispersion,
            "byte_dispersion": found.byte_dispersion,
            "steady": steady.steady,
            "windows_p": steady.windows_p,
            "halves_p": steady.halves_p,
            "second_half_to_first": steady.change,
        }

    def plot(self) -> Any:
        """Return a figure: the rate over time, the dispersion over time scales, the sizes, the gaps."""
        from qmodels.systems.traffic.trace_picture import trace_figure

        return trace_figure(self)

    def __repr__(self) -> str:
        rows = [(what, _text(value), unit, said) for what, value, unit, said in self.rows()]
        widths = [max(len(row[k]) for row in rows) for k in range(3)]
        lines = [
            f"  {what:<{widths[0]}}  {value:>{widths[1]}} {unit:<{widths[2]}}  {said}".rstrip()
            for what, value, unit, said in rows
        ]
        return "\n".join([self.title, *lines, *(f"  warning: {line}" for line in self.warnings())])

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><td>{escape(what)}</td><td style='text-align:right'>{escape(_text(value))}</td>"
            f"<td>{escape(unit)}</td><td style='text-align:left'>{escape(said)}</td></tr>"
            for what, value, unit, said in self.rows()
        )
        footer = "<br>".join(f"warning: {escape(line)}" for line in self.warnings())
        return f"<table><caption>{escape(self.title)}</caption>{cells}</table><p>{footer}</p>"


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"
