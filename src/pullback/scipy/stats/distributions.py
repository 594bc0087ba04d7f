"""Shared by all distributions: location and scale, the support, domains of parameters, and derived functions.

A distribution supplies its log density (or log mass) on its support, and some formulas of the distribution function,
its tail, their logarithms and inverses; ``functions`` returns the eight functions of its module, with their docstrings.
A formula receives operands inside its support only, since the derivative of an unselected branch must not be NaN.
Outside, the density is zero and has no derivative.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pullback.control.loops import while_loop
from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError
from pullback.core.faces import face
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import broadcast_shape
from pullback.primitives.operands import stop_gradient
from pullback.primitives.reductions import reduce_or
from pullback.primitives.special.others import exprel_p
from pullback.scipy.special.operands import real_operands
from pullback.scipy.stats import docstrings
from pullback.scipy.stats.docstrings import QUANTILES as QUANTILES

Formula = Callable[..., Any]
Function = Callable[..., Array]
End = float | Callable[..., Any]
"""The end of a support: a number, or a function of the parameters."""

exp, log, where = ops.exp, ops.log, ops.where
both, either, invert = ops.and_p.bind, ops.or_p.bind, ops.not_p.bind
at_least, at_most = ops.ge_p.bind, ops.le_p.bind
floor, log1p, expm1, lgamma = ops.floor_p.bind, ops.log1p_p.bind, ops.expm1_p.bind, ops.lgamma_p.bind


def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(x)) for ``x`` below zero, without cancellation (Mächler, 2012)."""
    near = ops.gt(x, -math.log(2))
    close = log(ops.neg(expm1(where(near, x, -1))))
    return where(near, close, log1p(ops.neg(exp(where(near, -1, x)))))


def log1mexp_of_exp(x: ArrayLike) -> Array:
    """log(1 - exp(-exp(x))), also where exp(x) underflows."""
    low = ops.lt(x, 0)
    ratio = exprel_p.bind(ops.neg(exp(where(low, x, -1))))
    return where(low, ops.add(x, log(ratio)), log1mexp(ops.neg(exp(where(low, 0, x)))))


def by_the_smaller(value: Any, rest: Any) -> Any:
    """Return the log probability ``value``, or where it is near 0, log(1 - exp(rest)), which is more accurate there.

    ``rest`` is the log probability of the complement.
    """
    near = ops.gt(value, -0.1)
    return where(near, log1p(ops.neg(exp(where(near, rest, -1)))), value)


def positive(*xs: ArrayLike) -> Array:
    """Whether all operands are positive and finite."""
    found: Any = None
    for x in xs:
        holds = both(ops.gt(x, 0), ops.lt(x, math.inf))
        found = holds if found is None else both(found, holds)
    return found


def probability(p: ArrayLike) -> Array:
    """Whether ``p`` is in [0, 1]."""
    return both(at_least(p, 0), at_most(p, 1))


def is_integer(x: ArrayLike) -> Array:
    """Whether ``x`` is an integer."""
    return ops.eq(floor(x), x)


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """The definition of a distribution; formulas take the variable (or a probability) and the parameters.

    Attributes:
      name: the name of its module.
      of: its name in docstrings.
      parameters: the descriptions of the parameters, by name.
      formulas: the density or the probabilities, the distribution function, and the survival function, for docstrings;
        see :func:`~pullback.scipy.stats.docstrings.formula`.
      support: the condition under which ``formulas`` hold.
      valid: whether parameters are in their domain; None if they always are.
      example: a variable, a probability, and parameters, separated by semicolons.
      values: the results of the functions for the example, to four digits, in the order of the functions.
      notes: sentences for the docstrings, by kinds of functions, such as "pdf logpdf": sources, and what to know.
      variable: the name of the first argument.
      quantile: the name of the first argument of inverses, by function.
      low, high: the ends of the support.
      cdf, sf, logcdf, logsf, ppf, isf: formulas, inside the support; None if others imply them.
      symmetric: whether the density is even.
      entropy: a formula of the parameters; None if the module has no entropy.
    """

    name: str
    of: str
    formulas: tuple[str, str, str]
    support: str
    example: str
    values: tuple[str, ...]
    parameters: Mapping[str, str] = field(default_factory=dict)
    valid: Formula | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    variable: str = "x"
    quantile: Mapping[str, str] = field(default_factory=dict)
    low: End = -math.inf
    high: End = math.inf
    cdf: Formula | None = None
    sf: Formula | None = None
    logcdf: Formula | None = None
    logsf: Formula | None = None
    ppf: Formula | None = None
    isf: Formula | None = None
    symmetric: bool = False
    entropy: Formula | None = None

    def ends(self, *parameters: Any) -> list[Any]:
        return [end(*parameters) if callable(end) else end for end in (self.low, self.high)]

    def domain(self, *parameters: Any) -> Any:
        """Return whether the parameters are valid, or None if they always are."""
        return None if self.valid is None else self.valid(*parameters)

    def cumulative(self, kind: str) -> Formula:
        """Return the formula of ``kind``, such as "logsf": the supplied one, or one derived from another kind."""
        known = getattr(self, kind)
        if known is not None:
            return known  # type: ignore[no-any-return]
        other = {"sf": self.cdf, "logsf": self.logcdf, "isf": self.ppf}.get(kind)
        if self.symmetric and other is not None:
            if kind == "isf":
                return lambda q, *parameters: ops.neg(other(q, *parameters))
            return lambda y, *parameters: other(ops.neg(y), *parameters)
        logarithm = self.cumulative("log" + kind)
        return lambda y, *parameters: exp(logarithm(y, *parameters))

    def function(self, kind: str, compute: Formula, keywords: Mapping[str, Any], module: str) -> Function:
        """Return the public function ``kind``, which calls ``compute`` on promoted arguments, with its docstring."""
        first = self.quantile.get(kind, "q") if kind in QUANTILES else self.variable
        names = [*([] if kind == "entropy" else [first]), *self.parameters, *keywords]
        where_ = inspect.Parameter.POSITIONAL_OR_KEYWORD
        signature = inspect.Signature([
            inspect.Parameter(n, where_, default=keywords.get(n, inspect.Parameter.empty), annotation="ArrayLike")
            for n in names
        ], return_annotation="Array")  # fmt: skip
        title = f"{self.name}.{kind}"
        least, most, defaults = len(names) - len(keywords), len(names), list(keywords.values())

        def function(*args: Any, **kwargs: Any) -> Any:
            if kwargs or not least <= len(args) <= most:
                try:
                    bound = signature.bind(*args, **kwargs)
                except TypeError as error:
                    listed = ", ".join(f"{n}={keywords[n]}" if n in keywords else n for n in names)
                    raise ArgumentError(f"{title}: {error}; its arguments are ({listed})") from None
                bound.apply_defaults()
                args = bound.args
            elif len(args) < most:
                args = (*args, *defaults[len(args) - least :])
            operands = real_operands(title, *args)
            broadcast_shape(title, [x.shape for x in operands])
            # A location and a scale that were not passed are left out of the computation.
            optional = [x if arg is not default else None for x, arg, default in zip(
                operands[least:], args[least:], defaults, strict=True
            )]  # fmt: skip
            return compute(*operands[:least], *optional)

        function.__signature__ = signature  # type: ignore[attr-defined]
        function.__name__ = function.__qualname__ = kind
        function.__module__ = module
        function.__doc__ = self._docstring(kind, first, keywords, module)
        return function

    def _docstring(self, kind: str, first: str, keywords: Mapping[str, Any], module: str) -> str:
        described = {**self.parameters, **{name: docstrings.KEYWORDS[name] for name in keywords}}
        position = self.kinds().index(kind)
        x, q, *parameters = self.example.split("; ")
        operands = [*([] if kind == "entropy" else [q if kind in QUANTILES else x]), *parameters]
        return "\n\n".join([
            docstrings.described(kind, self.of, first, described, self.support),
            docstrings.formula(kind, first, self.formulas, self.support),
            *(note for kinds, note in self.notes.items() if kind in kinds.split()),
            f"As ``scipy.stats.{self.name}.{kind}``.",
            docstrings.example(module, kind, operands, self.values[position]),
        ])  # fmt: skip

    def kinds(self) -> list[str]:
        raise NotImplementedError

    def made(
        self, computed: dict[str, Formula], keywords: Mapping[str, Any], namespace: dict[str, Any]
    ) -> list[Function]:
        """The functions of a module, in the order of ``kinds``; its face shows them and nothing else."""
        computed |= {kind: self._cumulative(kind) for kind in ("cdf", "logcdf", "sf", "logsf")}
        computed |= {kind: self._inverse(kind) for kind in QUANTILES}
        namespace["__all__"] = sorted(self.kinds())
        face(namespace)
        return [self.function(kind, computed[kind], keywords, namespace["__name__"]) for kind in self.kinds()]

    def _cumulative(self, kind: str) -> Formula:
        raise NotImplementedError

    def _inverse(self, kind: str) -> Formula:
        raise NotImplementedError


def _valid_result(valid: Any, out: Any) -> Any:
    return out if valid is None else where(valid, out, math.nan)


def _all_valid(*conditions: Any) -> Any:
    found = [c for c in conditions if c is not None]
    return both(*found) if len(found) == 2 else found[0] if found else None


@dataclass(frozen=True, kw_only=True)
class Continuous(Distribution):
    """A distribution with a density.

    Attributes:
      log_density: the formula, inside the support.
      inside: whether the formula is finite, given the variable and the parameters; by default on the closed support.
      outside: the log density where the formula is not finite; by default -inf.
      interior: a point inside the support.
      density: the formula of the density, if it is not best computed from the logarithm.
    """

    log_density: Formula
    inside: Formula | None = None
    outside: Formula | None = None
    interior: End = 0.5
    density: Formula | None = None

    def kinds(self) -> list[str]:
        return ["pdf", "logpdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"]

    def functions(self, namespace: dict[str, Any]) -> list[Function]:
        """Return the functions of the distribution's module, from its ``globals()``, in the order of ``kinds``."""
        computed: dict[str, Formula] = {
            "pdf": lambda *args: self._density(*args, logarithm=False),
            "logpdf": lambda *args: self._density(*args, logarithm=True),
        }
        return self.made(computed, {"loc": 0, "scale": 1}, namespace)

    def _standard(self, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...], Any, Any]:
        """Return the standardised variable, the parameters, the scale (or None), and a mask of valid parameters.

        The standardised variable is (x - loc) / scale. ``args`` are x, the parameters, loc and scale; loc and scale may
        be None. The mask is False where a parameter or the scale is invalid.
        """
        x, *parameters, loc, scale = args
        y = x if loc is None else ops.sub(x, loc)
        y = y if scale is None else ops.div(y, scale)
        valid = _all_valid(self.domain(*parameters), None if scale is None else ops.gt(scale, 0))
        return y, tuple(parameters), scale, valid

    def _safe(self, inside: Any, y: Any, parameters: tuple[Any, ...]) -> Any:
        interior = self.interior(*parameters) if callable(self.interior) else self.interior
        return where(inside, y, interior)

    def _density(self, *args: Any, logarithm: bool) -> Any:
        y, parameters, scale, valid = self._standard(args)
        low, high = self.ends(*parameters)
        if self.inside is not None:
            inside = self.inside(y, *parameters)
        else:
            inside = both(_above(y, low, True), _below(y, high, True))
        safe = self._safe(inside, y, parameters)
        value = self.log_density(safe, *parameters)
        if not logarithm:
            value = exp(value) if self.density is None else self.density(safe, *parameters)
        rest = -math.inf
        if self.outside is not None:
            rest = self.outside(y, *parameters)
        if not logarithm:
            rest = 0 if self.outside is None else exp(rest)
        out = where(inside, value, rest)
        if scale is not None:
            out = ops.sub(out, log(scale)) if logarithm else ops.div(out, scale)
        return _valid_result(_all_valid(valid, ops.eq(y, y)), out)

    def _cumulative(self, kind: str) -> Formula:
        formula = self.cumulative(kind)
        least, most = (-math.inf, 0.0) if kind.startswith("log") else (0.0, 1.0)
        below, above = (most, least) if kind.endswith("sf") else (least, most)

        def compute(*args: Any) -> Any:
            y, parameters, _, valid = self._standard(args)
            low, high = self.ends(*parameters)
            over, under = _above(y, low, False), _below(y, high, False)
            inside = both(over, under)
            value = formula(self._safe(inside, y, parameters), *parameters)
            out = where(over, where(under, value, above), below)
            return _valid_result(_all_valid(valid, ops.eq(y, y)), out)

        return compute

    def _inverse(self, kind: str) -> Formula:
        formula = self.cumulative(kind)

        def compute(*args: Any) -> Any:
            q, *parameters, loc, scale = args
            low, high = self.ends(*parameters)
            at_zero, at_one = (low, high) if kind == "ppf" else (high, low)
            inside = both(_above(q, 0.0, _finite(at_zero)), _below(q, 1.0, _finite(at_one)))
            value = formula(where(inside, q, 0.5), *parameters)
            ends = where(ops.eq(q, 0), _full(q, at_zero), where(ops.eq(q, 1), _full(q, at_one), math.nan))
            out = where(inside, value, ends)
            out = out if scale is None else ops.mul(out, scale)
            out = out if loc is None else ops.add(out, loc)
            return _valid_result(_all_valid(self.domain(*parameters), None if scale is None else ops.gt(scale, 0)), out)

        return compute


def _finite(end: Any) -> bool:
    return not isinstance(end, float) or math.isfinite(end)


def _full(like: Any, value: Any) -> Any:
    return shapes.full((), value, like.dtype) if isinstance(value, (int, float)) else value


def _above(y: Any, low: Any, closed: bool) -> Any:
    return at_least(y, low) if closed and _finite(low) else ops.gt(y, low)


def _below(y: Any, high: Any, closed: bool) -> Any:
    return at_most(y, high) if closed and _finite(high) else ops.lt(y, high)


@dataclass(frozen=True, kw_only=True)
class Discrete(Distribution):
    """A distribution of integers.

    Attributes:
      log_mass: the formula, for integers of the support.
      exact: whether the distribution function and its tail are exact except for the rounding of the result; quantiles
        are then exact to the last place of the probability.
    """

    log_mass: Formula
    exact: bool = False
    variable: str = "k"
    low: End = 0.0

    def kinds(self) -> list[str]:
        entropy = [] if self.entropy is None else ["entropy"]
        return ["pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf", *entropy]

    def functions(self, namespace: dict[str, Any]) -> list[Function]:
        """Return the functions of the distribution's module, from its ``globals()``, in the order of ``kinds``."""
        computed: dict[str, Formula] = {
            "pmf": lambda *args: self._mass(*args, logarithm=False),
            "logpmf": lambda *args: self._mass(*args, logarithm=True),
            "entropy": self._entropy,
        }
        return self.made(computed, {"loc": 0}, namespace)

    def _mass(self, *args: Any, logarithm: bool) -> Any:
        k, *parameters, loc = args
        k = k if loc is None else ops.sub(k, loc)
        low, high = self.ends(*parameters)
        inside = both(both(_above(k, low, True), _below(k, high, True)), is_integer(k))
        value = self.log_mass(where(inside, k, low), *parameters)
        out = where(inside, value, -math.inf) if logarithm else where(inside, exp(value), 0)
        return _valid_result(_all_valid(self.domain(*parameters), ops.eq(k, k)), out)

    def _cumulative(self, kind: str) -> Formula:
        formula = self.cumulative(kind)
        least, most = (-math.inf, 0.0) if kind.startswith("log") else (0.0, 1.0)
        below, above = (most, least) if kind.endswith("sf") else (least, most)

        def compute(*args: Any) -> Any:
            k, *parameters, loc = args
            k = floor(k if loc is None else ops.sub(k, loc))
            low, high = self.ends(*parameters)
            over, under = at_least(k, low), ops.lt(k, high)
            value = formula(where(both(over, under), k, low), *parameters)
            out = where(over, where(under, value, above), below)
            return _valid_result(_all_valid(self.domain(*parameters), ops.eq(k, k)), out)

        return compute

    def _inverse(self, kind: str) -> Formula:
        known = getattr(self, kind)
        formula = self._search(kind) if known is None else known

        def compute(*args: Any) -> Any:
            loc = args[-1]
            q, *parameters = map(stop_gradient, args[:-1])
            low, high = self.ends(*parameters)
            below = ops.sub(_full(q, low), 1)
            at_zero, at_one = (below, high) if kind == "ppf" else (high, below)
            inside = both(ops.gt(q, 0), ops.lt(q, 1))
            value = formula(where(inside, q, 0.5), *parameters)
            ends = where(ops.eq(q, 0), _full(q, at_zero), where(ops.eq(q, 1), _full(q, at_one), math.nan))
            out = where(inside, value, ends)
            out = out if loc is None else ops.add(out, loc)
            return _valid_result(self.domain(*parameters), out)

        return compute

    def _search(self, kind: str) -> Formula:
        """Return a formula of q and the parameters for the quantile, by doubling and bisection.

        The quantile is the least k with cdf(k) >= q for the ``kind`` "ppf", and with sf(k) <= q for "isf". A tolerance
        keeps rounding errors of cdf and sf from moving k to the next integer.
        """
        function = self._cumulative("cdf" if kind == "ppf" else "sf")

        def formula(q: Any, *parameters: Any) -> Any:
            shape = broadcast_shape(self.name, [x.shape for x in (q, *parameters)])
            dtype = q.dtype
            wide = np.dtype(np.float64) if self.exact else dtype
            q, *spread = [shapes.broadcast_to(ops.convert_element_type(x, wide), shape) for x in (q, *parameters)]
            valid = self.domain(*spread)
            slack = max((1 if self.exact else 16) * dtypes.finfo(dtype).eps, 16 * dtypes.finfo(np.float64).eps)
            threshold = ops.mul(q, 1 - float(slack) if kind == "ppf" else 1 + float(slack))
            first, last = [shapes.broadcast_to(_full(q, end), shape) for end in self.ends(*spread)]

            def middle(low: Any, high: Any) -> Any:
                doubled = ops.min_p.bind(ops.add(ops.mul(low, 2), 2), last)
                known = ops.lt(high, math.inf)
                return where(known, floor(ops.mul(ops.add(low, where(known, high, 0)), 0.5)), doubled)

            def open_still(low: Any, high: Any) -> Any:
                here = middle(low, high)
                return both(both(ops.gt(here, low), ops.lt(here, high)), valid)

            def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
                low, high = state
                here = middle(low, high)
                value = function(here, *spread, None)
                reached = at_least(value, threshold) if kind == "ppf" else at_most(value, threshold)
                moving = open_still(low, high)
                return where(both(moving, invert(reached)), here, low), where(both(moving, reached), here, high)

            def going(state: tuple[Any, Any]) -> Any:
                return reduce_or(open_still(*state), tuple(range(len(shape))))

            start = ops.sub(first, 1), shapes.full(shape, math.inf, q.dtype)
            return ops.convert_element_type(while_loop(going, step, start)[1], dtype)

        return formula

    def _entropy(self, *args: Any) -> Any:
        *parameters, loc = args
        formula: Any = self.entropy
        out = _valid_result(self.domain(*parameters), formula(*parameters))
        return out if loc is None else shapes.broadcast_to(out, broadcast_shape(self.name, [out.shape, loc.shape]))
