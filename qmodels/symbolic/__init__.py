"""Closed forms on SymPy symbols, from the functions that compute the numbers.

>>> from qmodels.symbolic import symbolic
>>> q = symbolic("mm1")
>>> q.mean_response_time
-1/(lambda - mu)
>>> q.derivative("mean_response_time", by="service_rate")
-1/(lambda - mu)**2
>>> q.solve_for("service_rate", mean_response_time=10)
[lambda + 1/10]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from qmodels import checks
from qmodels.libraries import sympy
from qmodels.symbolic.models import MODELS, Parameters

_HIGHEST_DEGREE = 4  # of an equation that radicals solve


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SymbolicModel:
    """A model on symbols; every metric is an attribute and an entry of `metrics`.

    Parameters
    ----------
    model : str
        The name it was asked for by.
    parameters : mapping of str to sympy.Expr
        What stands for each parameter of the numeric function of that name.
    metrics : mapping of str to sympy.Expr
        Expressions by the names of the numeric results.
    stable : sympy relation or true
        Where the expressions hold; outside, the numeric function returns ``inf``.
    """

    model: str
    parameters: Mapping[str, Any]
    metrics: Mapping[str, Any]
    stable: Any

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["metrics"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no metric {name!r}") from None

    def __repr__(self) -> str:
        lines = [f"{name} = {expression}" for name, expression in self.metrics.items()]
        return "\n".join([f"{self.model}, {self.stable}", *lines])

    def derivative(self, metric: str, *, by: Any) -> Any:
        """Return the derivative of a metric with respect to a parameter (its name or a symbol)."""
        return sympy.factor(sympy.diff(self._metric(metric), self._symbol(by)))

    def elasticity(self, metric: str, *, by: Any) -> Any:
        """Return the percentage by which a metric changes when a parameter changes by 1 %."""
        symbol = self._symbol(by)
        return sympy.simplify(self.derivative(metric, by=symbol) * symbol / self._metric(metric))

    def limit(self, metric: str, *, by: Any, to: Any, side: str = "-") -> Any:
        """Return the limit of a metric as a parameter goes `to` a value, from below by default."""
        return sympy.limit(self._metric(metric), self._symbol(by), to, side)

    def solve_for(self, parameter: Any, **target: Any) -> list[Any]:
        """Return the values of a parameter at which one metric equals a target.

        Parameters
        ----------
        parameter : str or sympy.Symbol
            The unknown; a real number > 0.
        **target
            One metric and its value, a number or an expression.

        Returns
        -------
        list
            Expressions, only those of the stable branch: put back at a sample of stable points,
            they give the sample. Where everything else is a number and the equation is of degree
            3 or more, numbers to 30 digits.

        Raises
        ------
        ValueError
            If not exactly one known metric is given, or there is no closed form.
        """
        if len(target) != 1:
            raise ValueError(f"target must be exactly one metric, got {sorted(target)}")
        ((metric, value),) = target.items()
        unknown, expression = self._symbol(parameter), self._metric(metric)
        goal, value = sympy.Symbol("target", positive=True), sympy.sympify(value)
        equation = sympy.numer(sympy.together(expression - goal))
        degree = sympy.degree(equation, unknown) if equation.is_polynomial(unknown) else None
        if degree and degree > 2 and equation.subs(goal, value).free_symbols == {unknown}:
            return self._numbers(equation.subs(goal, value), unknown)
        if not degree or degree > _HIGHEST_DEGREE:
            raise ValueError(
                f"target must have a closed form, got none for {metric} in {unknown}; "
                "see qmodels.queues.largest_rate"
            )
        roots = sympy.roots(equation, unknown)
        kept = [root for root in roots if self._on_stable_branch(root, goal, unknown, expression)]
        return [sympy.simplify(root.subs(goal, value)) for root in kept]

    def _numbers(self, equation: Any, unknown: Any) -> list[Any]:
        roots = [root for root in sympy.Poly(equation, unknown).nroots(n=30, maxsteps=200) if root.is_real]
        return [root for root in roots if root > 0 and self.stable.subs(unknown, root) == sympy.true]

    def _on_stable_branch(self, root: Any, goal: Any, unknown: Any, expression: Any) -> bool:
        symbols = sorted(expression.free_symbols | self.stable.free_symbols, key=str)
        for scale in (sympy.Rational(3, 7), sympy.Rational(11, 8), sympy.Rational(29, 5)):
            # Turning the order of magnitudes meets stable points of every model.
            for turn in range(len(symbols)):
                point = {s: scale * (1 + (k + turn) % len(symbols)) for k, s in enumerate(symbols)}
                value = expression.subs(point)
                if self.stable.subs(point) != sympy.true or not value.is_finite or value <= 0:
                    continue
                others = {s: v for s, v in point.items() if s != unknown}
                back = complex(root.subs(others | {goal: value}).evalf(30))
                if abs(back - complex(point[unknown])) < 1e-12 * abs(point[unknown]):
                    return True
        return False

    def latex(self, metric: str) -> str:
        """Return a metric in LaTeX."""
        return str(sympy.latex(sympy.factor(self._metric(metric))))

    def evaluate(self, metric: str, *, digits: int = 30, **values: Any) -> Any:
        """Return a metric at a point with any number of digits (mpmath); floats count as exact.

        Parameters
        ----------
        metric : str
            Its name.
        digits : int
            Decimal digits of the result.
        **values
            A number for each parameter that is a symbol, by the parameter's name.

        Returns
        -------
        sympy.Float
            The value, also outside `stable`, where it has no meaning.
        """
        point = {self._symbol(name): sympy.Rational(value) for name, value in values.items()}
        return self._metric(metric).subs(point).evalf(int(checks.count("digits", digits)))

    def function(self, metric: str) -> Callable[..., Any]:
        """Return a NumPy function of the free parameters, which it takes by name."""
        free = {name: s for name, s in self.parameters.items() if s.is_Symbol}
        compiled = sympy.lambdify(list(free.values()), self._metric(metric), "numpy")

        def evaluate(**values: Any) -> Any:
            return compiled(*(values[name] for name in free))

        return evaluate

    def _metric(self, name: str) -> Any:
        return self.metrics[checks.choice("metric", name, self.metrics)]

    def _symbol(self, by: Any) -> Any:
        if isinstance(by, sympy.Symbol):
            return by
        value = self.parameters[checks.choice("parameter", by, self.parameters)]
        if not value.is_Symbol:
            raise ValueError(f"parameter must be a free symbol, got {by} = {value}")
        return value


def symbolic(model: str, **parameters: Any) -> SymbolicModel:
    r"""Return a model on symbols.

    Parameters
    ----------
    model : str
        Name of the numeric function: ``mm1``, ``mmc``, ``mmcc``, ``mm1k``, ``mmck``, ``mg1``, ``md1``,
        ``mxg1``, ``geog1``, ``geoxg1``, ``gg1_kingman``, ``gg1_klb``, ``gg1_marchal``,
        ``gg1_upper_bound``, ``gg1_lower_bound``, ``ggc_allen_cunneen``, ``mg1_nonpreemptive``,
        ``fork_join``, ``mva``.
    **parameters
        Values or expressions for parameters of that function; the others become symbols (positive).
        Whole numbers must be given: `servers`, `capacity`, `branches`, `classes` (priorities; the
        highest first), `stations` and `population` (mva). For ``gg1_klb``, ``smooth=False`` takes the
        branch of arrival SCVs above 1.

    Returns
    -------
    SymbolicModel
        Its expressions come from the same functions as the numbers of the model.

    Raises
    ------
    ValueError
        If the model or a parameter is unknown, or a whole number is missing.

    Notes
    -----
    Exact, bound or approximation as the numeric function. Models without a closed form (numerical
    inversion, distributions, optimization) are not here.

    Examples
    --------
    >>> q = symbolic("mg1", service_scv=0)
    >>> q.mean_waiting_time
    lambda/(mu**2*(-2*lambda/mu + 2))
    >>> q.elasticity("mean_waiting_time", by="service_rate")
    (-lambda + 2*mu)/(lambda - mu)
    >>> symbolic("mmc", servers=2).latex("waiting_probability")
    '\\frac{\\lambda^{2}}{\\mu \\left(\\lambda + 2 \\mu\\right)}'

    The reference for numbers close to saturation:

    >>> symbolic("mm1").evaluate("mean_waiting_time", arrival_rate=1 - 2**-40, service_rate=1, digits=20)
    1099511627775.0000000
    """
    build = MODELS[checks.choice("model", model, MODELS)]
    given = Parameters(parameters)
    metrics, stable = build(given)
    given.finish()
    return SymbolicModel(model=model, parameters=given.used, metrics=metrics, stable=stable)
