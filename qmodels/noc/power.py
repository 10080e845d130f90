"""Power of the routers of a network-on-chip: clock and leakage by size, energy by traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.noc.flows import FlowTable
from qmodels.systems.noc.memory import Transactions
from qmodels.systems.noc.spec import Noc

TERMS = ("width", "buffers", "traffic")


@dataclass(frozen=True, kw_only=True)
class PowerParameters:
    """Energy of a bit."""

    width_mw: float  # Clock and leakage of a bit of width of an input port. [mW/bit]
    buffer_mw: float  # Clock and leakage of a bit of buffer. [mW/bit]
    hop_pj: float  # Energy of a bit of a flit through a router and the channel behind it. [pJ/bit]

    def __post_init__(self) -> None:
        for name in ("width_mw", "buffer_mw", "hop_pj"):
            checks.finite(name, getattr(self, name))


@dataclass(frozen=True, kw_only=True)
class RouterPower:
    """Power of all routers together."""

    # width, buffers, traffic: Parts, see `PowerParameters`. [W]
    width: float
    buffers: float
    traffic: float

    @property
    def total(self) -> float:
        """All of it. [W]."""
        return self.width + self.buffers + self.traffic

    def __repr__(self) -> str:
        parts = "".join(f"\n  {name:<8} {getattr(self, name):>10.4g} W" for name in (*TERMS, "total"))
        return f"Power of the routers{parts}"


@dataclass(frozen=True, kw_only=True, eq=False)
class PowerFit:
    """Parameters calibrated on known powers."""

    parameters: PowerParameters  # Best values
    standard_error: PowerParameters  # Their standard errors, from the scatter of the residuals
    correlation: FloatArray  # Correlation of the estimates
    residual: FloatArray  # Model over given power, minus 1, of each network

    def __repr__(self) -> str:
        lines = ["Power calibrated"]
        for name, unit in (("width_mw", "mW/bit"), ("buffer_mw", "mW/bit"), ("hop_pj", "pJ/bit")):
            value, error = getattr(self.parameters, name), getattr(self.standard_error, name)
            lines.append(f"  {name:<10} {value:>10.4g} +- {error:.2g} {unit}")
        worst = float(np.abs(self.residual).max())
        lines.append(
            f"  residuals: mean {100 * np.abs(self.residual).mean():.2f} %, largest {100 * worst:.2f} %"
        )
        return "\n".join(lines)


def router_power(noc: Noc, parameters: PowerParameters, *, rate: float | None = None) -> RouterPower:
    r"""Return the power of a network's routers at a rate that it sustains.

    ``parameters``: from `calibrate_power`, or a technology; ``rate``: transactions of all initiators, for
    closed loops. [transactions/cycle] Left out it is the injection rate of the network.

    .. math:: P = p_w \sum_{ports} 8w + p_b \sum_{ports} V B \, 8w + e\, f \sum_{channels} 8 w \phi_c

    with link width *w* [bytes], *V* virtual channels of *B* flits, clock *f* and :math:`\phi_c` flits
    per cycle on every link and ejection channel. Ports are the inputs of routers. A flit costs the
    same however many of its bits are used. Linear in the parameters; what it leaves out, such as
    the arbiters and the activity of the data, is in them on average.
    """
    terms = _terms(noc, rate)
    values = (parameters.width_mw, parameters.buffer_mw, parameters.hop_pj)
    width, buffers, traffic = (float(value * term) / 1000 for value, term in zip(values, terms, strict=True))
    return RouterPower(width=width, buffers=buffers, traffic=traffic)


def calibrate_power(
    nocs: Sequence[Noc], watts: npt.ArrayLike, *, rates: Sequence[float] | None = None
) -> PowerFit:
    """Return the parameters for which the powers of known networks come out best.

    ``watts``: their powers [W]; ``rates``: as ``rate`` of `router_power`, for each network.

    Linear least squares of the relative errors. Standard errors are those of ordinary regression:
    they hold if residuals are independent and of equal size, which a model that leaves something
    out does not guarantee; predicting what was left out of the calibration is the better test.
    """
    power = checks.positive("watts", watts)
    if power.shape != (len(nocs),):
        raise ValueError(f"watts must be one number per network ({len(nocs)}), got shape {power.shape}")
    if len(nocs) <= len(TERMS):
        raise ValueError(f"nocs must be more than the {len(TERMS)} parameters, got {len(nocs)}")
    if rates is not None and len(rates) != len(nocs):
        raise ValueError(f"rates must be one per network ({len(nocs)}), got {len(rates)}")
    each: Sequence[float | None] = [None] * len(nocs) if rates is None else rates
    terms = np.array([_terms(noc, rate) for noc, rate in zip(nocs, each, strict=True)]) / 1000
    scale = np.abs(terms).max(axis=0)
    if not np.all(scale > 0):
        raise ValueError("nocs must have traffic for its energy to be found, got none")
    rows = terms / scale / power[:, None]
    if np.linalg.matrix_rank(rows, tol=1e-6) < len(TERMS):
        raise ValueError(
            "nocs must differ in width, buffers and traffic, got ones that leave parameters open"
        )
    inverse = np.linalg.inv(rows.T @ rows)
    best = inverse @ rows.T @ np.ones(len(nocs))
    residual = rows @ best - 1
    covariance = inverse * float(residual @ residual) / (len(nocs) - len(TERMS))
    error = np.sqrt(np.diag(covariance))
    safe = np.where(error > 0, error, 1.0)
    return PowerFit(
        parameters=PowerParameters(
            **dict(zip(("width_mw", "buffer_mw", "hop_pj"), best / scale, strict=True))
        ),
        standard_error=PowerParameters(
            **dict(zip(("width_mw", "buffer_mw", "hop_pj"), error / scale, strict=True))
        ),
        correlation=covariance / np.outer(safe, safe),
        residual=residual,
    )


def _terms(noc: Noc, rate: float | None) -> tuple[float, float, float]:
    """Return bits of port width, bits of buffer, and bits per ns through routers."""
    table = noc.flow_table()
    bits = 8 * noc.link_width
    ports = int(np.sum(table.channel_to >= 0))
    buffers = ports * noc.router.virtual_channels * noc.router.buffer_flits
    hops = table.paths.hops - 1  # routers
    flits = float(np.sum(_packet_rates(noc, table, rate) * table.flits * hops))
    return float(bits * ports), float(bits * buffers), bits * flits * noc.clock_ghz


def _packet_rates(noc: Noc, table: FlowTable, rate: float | None) -> FloatArray:
    """Return packets per cycle of every flow."""
    if not isinstance(noc.traffic, Transactions):
        if rate is not None:
            raise ValueError(f"rate must be left out for open traffic, got {rate!r}")
        if np.ndim(noc.injection_rate):
            raise ValueError(f"injection_rate must be one number for a power, got {noc.injection_rate!r}")
        return table.rate
    if rate is None:
        raise ValueError("rate must be given for closed loops, got none")
    return table.per_transaction() * float(checks.nonnegative("rate", rate))
