"""Distributions as objects, after SciPy's: of modules, truncated to an interval, and mixed.

An object is a tree of its parameters: compiled functions take it, and derivatives by it are objects of the same form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import tree
from pullback.core.annotations import ShapeLike
from pullback.core.array import Array, ArrayLike, KeyArray
from pullback.core.errors import ArgumentError, ShapeError
from pullback.numpy.promotion import quote, shape_tuple
from pullback.primitives.operands import stop_gradient
from pullback.random.continuous import uniform
from pullback.scipy.arguments import known
from pullback.scipy.special import logsumexp
from pullback.scipy.special.operands import real_operands
from pullback.scipy.stats import norm as normal_distribution
from pullback.scipy.stats import uniform as uniform_distribution
from pullback.scipy.stats.distributions import Continuous, log1mexp
from pullback.scipy.stats.inversion import root_between
from pullback.scipy.stats.qmc.engines import key_of

__all__ = ["ContinuousDistribution", "Mixture", "Normal", "Uniform", "make_distribution", "truncate"]


def _between(x: Any, low: Any, high: Any) -> Any:
    return (x > low) & (x < high)


class ContinuousDistribution:
    """A distribution with a density: what the objects of this module have in common.

    Objects come from :func:`make_distribution`, :func:`truncate`, :class:`Mixture`, :class:`Normal` and
    :class:`Uniform`. Parameters are arrays that broadcast against the arguments of methods.

    >>> from pullback.scipy import stats
    >>> isinstance(stats.Normal(), stats.ContinuousDistribution)
    True
    """

    def _function(self, kind: str, x: Any) -> Any:
        """Return the function ``kind`` of an array of floats: logpdf, logcdf, logsf, cdf, sf, ppf or isf."""
        raise NotImplementedError

    def support(self) -> tuple[Array, Array]:
        """Return the ends of the interval in which the density is positive.

        Returns:
          Two arrays of floats.

        >>> from pullback.scipy import stats
        >>> print(*stats.Uniform(a=1.0, b=3.0).support())
        1.0 3.0
        """
        raise NotImplementedError

    def _title(self) -> str:
        """Return the name of the distribution, for errors."""
        return type(self).__name__

    def _shape(self) -> tuple[int, ...]:
        """Return the shape to which the parameters broadcast."""
        return pnp.broadcast_shapes(*[np.shape(x) for x in tree.leaves(self)])

    def _of(self, kind: str, what: str, x: Any) -> Any:
        (x,) = real_operands(f"{self._title()}.{what}", x)
        return self._function(kind, x)

    def logpdf(self, x: ArrayLike) -> Array:
        """Return the logarithm of the density.

        Args:
          x: an array of real numbers.

        Returns:
          An array of floats, of the shape to which ``x`` and the parameters broadcast.

        Raises:
          OperandError, DtypeError: an argument is no real number (a TypeError).
          ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

        >>> from pullback.scipy import stats
        >>> print(f"{stats.Normal().logpdf(1.0):.4f}")
        -1.4189
        """
        return self._of("logpdf", "logpdf", x)  # type: ignore[no-any-return]

    def pdf(self, x: ArrayLike) -> Array:
        """Return the density.

        Args:
          x: an array of real numbers.

        Returns:
          An array of floats.

        Raises:
          OperandError, DtypeError, ShapeError: see :meth:`logpdf`.

        >>> from pullback.scipy import stats
        >>> print(f"{stats.Normal().pdf(1.0):.4f}")
        0.2420
        """
        return pnp.exp(self._of("logpdf", "pdf", x))

    def cdf(self, x: ArrayLike, y: ArrayLike | None = None) -> Array:
        """Return the probability of at most ``x``, or of more than ``x`` and at most ``y``.

        Args:
          x, y: arrays of real numbers, which broadcast against each other.

        Returns:
          An array of floats.

        Raises:
          OperandError, DtypeError, ShapeError: see :meth:`logpdf`.

        >>> from pullback.scipy import stats
        >>> print(f"{stats.Normal().cdf(1.0):.4f} {stats.Normal().cdf(-1.0, 1.0):.4f}")
        0.8413 0.6827
        """
        if y is None:
            return self._of("cdf", "cdf", x)  # type: ignore[no-any-return]
        low, high = real_operands(f"{self._title()}.cdf", x, y)
        below, above = (self._function(kind, low) for kind in ("cdf", "sf"))
        # The difference of the smaller numbers loses fewer digits.
        direct = self._function("cdf", high) - below
        return pnp.where(below < 0.5, direct, above - self._function("sf", high))

    def logcdf(self, x: ArrayLike) -> Array:
        """Return the logarithm of the probability of at most ``x``.

        Args:
          x: an array of real numbers.

        Returns:
          An array of floats.

        Raises:
          OperandError, DtypeError, ShapeError: see :meth:`logpdf`.

        >>> from pullback.scipy import stats
        >>> print(f"{stats.Normal().logcdf(-40.0):.3f}")
        -804.608
        """
        return self._of("logcdf", "logcdf", x)  # type: ignore[no-any-return]

    def ccdf(self, x: ArrayLike) -> Array:
        """Return the probability of more than ``x``.

        Args:
          x: an array of real numbers.

        Returns:
          An array of floats.

        Raises:
          OperandError, DtypeError, ShapeError: see :meth:`logpdf`.

        >>> from pullback.scipy import stats
        >>> print(f"{stats.Normal().ccdf(1.0):.4f}")
        0.1587
        """
        return self._of("sf", "ccdf", x)  # type: ignore[no-any-return]

    def logccdf(self, x: ArrayLike) -> Array:
        """Return the logarithm of the probability of more than ``x``.

        Args:
          x: an array of real numbers.

        Returns:
          An array of floats.

        Raises:
          OperandError, DtypeError, ShapeError: see :meth:`logpdf`.

        >>> from pullback.scipy import stats
        >>> print(f"{stats.Normal().logccdf(40.0):.3f}")
        -804.608
        """
        return self._of("logsf", "logccdf", x)  # type: ignore[no-any-return]

    def icdf(self, p: ArrayLike) -> Array:
        """Return the quantile: the number for which :meth:`cdf` is ``p``.

        Args:
          p: an array of probabilities.

        Returns:
          An array of floats; NaN for probabilities outside of [0, 1].

        Raises:
          OperandError, DtypeError, ShapeError: see :meth:`logpdf`.

        >>> from pullback.scipy import stats
        >>> print(f"{stats.Normal().icdf(0.975):.4f}")
        1.9600
        """
        return self._of("ppf", "icdf", p)  # type: ignore[no-any-return]

    def iccdf(self, p: ArrayLike) -> Array:
        """Return the number for which :meth:`ccdf` is ``p``.

        Args:
          p: an array of probabilities.

        Returns:
          An array of floats; NaN for probabilities outside of [0, 1].

        Raises:
          OperandError, DtypeError, ShapeError: see :meth:`logpdf`.

        >>> from pullback.scipy import stats
        >>> print(f"{stats.Normal().iccdf(1e-20):.4f}")
        9.2623
        """
        return self._of("isf", "iccdf", p)  # type: ignore[no-any-return]

    def sample(self, shape: ShapeLike = (), *, rng: KeyArray | int | None = None) -> Array:
        """Return random numbers: quantiles of uniform ones, so that they have derivatives by all parameters.

        Args:
          shape: the shape of the result, before that of the parameters.
          rng: a key, or an int from which one is made; it must be passed.

        Returns:
          An array of floats.

        Raises:
          ArgumentError: no ``rng`` (a TypeError and a ValueError).
          UnsupportedArgumentError: a generator of NumPy (a NotImplementedError).

        >>> from pullback import random
        >>> from pullback.scipy import stats
        >>> print(stats.Normal(mu=3.0).sample((2,), rng=random.key(0)).shape)
        (2,)
        """
        name = f"{self._title()}.sample"
        key = key_of(name, rng, None)
        if key is None:
            raise ArgumentError(f"{name} needs randomness; pass rng=random.key(0), or an int")
        parameters = [pnp.asarray(x) for x in tree.leaves(self)]
        dtype = pnp.result_type(*parameters, np.float32) if parameters else None
        full = (*shape_tuple(shape, name), *self._shape())
        return self._function("ppf", uniform(key, full, dtype))  # type: ignore[no-any-return]


# Distributions of modules --------------------------------------------------------------------------------------------


class _OfModule(ContinuousDistribution):
    """The distribution of a module of this package, with its parameters, a location and a scale."""

    def __init__(self, module: ModuleType, parameters: dict[str, Any], loc: Any, scale: Any) -> None:
        self._module = module
        self._parameters = tuple(_parameter(module, name, value) for name, value in parameters.items())
        self._loc, self._scale = _parameter(module, "loc", loc), _parameter(module, "scale", scale)

    def __repr__(self) -> str:
        definition: Continuous = self._module.DISTRIBUTION
        named = zip((*definition.parameters, "loc", "scale"), (*self._parameters, self._loc, self._scale), strict=True)
        return f"make_distribution({definition.name})({', '.join(f'{k}={v}' for k, v in named)})"

    def _title(self) -> str:
        return str(self._module.DISTRIBUTION.name) if type(self) is _OfModule else type(self).__name__

    def _function(self, kind: str, x: Any) -> Any:
        return getattr(self._module, kind)(x, *self._parameters, self._loc, self._scale)

    def support(self) -> tuple[Array, Array]:
        definition: Continuous = self._module.DISTRIBUTION
        parameters = real_operands("support", *self._parameters) if self._parameters else []
        low, high = (self._moved(end) for end in definition.ends(*parameters))
        return low, high

    def _moved(self, end: Any) -> Any:
        """Return an end of the support, from that of the standardised variable; an infinite one has no derivative."""
        if isinstance(end, float) and math.isinf(end):
            return pnp.full_like(self._loc + self._scale, end)
        finite = pnp.abs(end) < math.inf
        return pnp.where(finite, self._loc + self._scale * pnp.where(finite, end, 0), end)


def _parameter(module: ModuleType, name: str, value: Any) -> Any:
    (x,) = real_operands(f"{module.__name__.rpartition('.')[2]}: {name}", value)
    return x


def make_distribution(dist: ModuleType) -> Callable[..., ContinuousDistribution]:
    """Return the maker of objects of a distribution.

    Args:
      dist: a module of ``pullback.scipy.stats`` of a continuous distribution of numbers, such as ``stats.gamma``.

    Returns:
      A function of the distribution's parameters, by keywords, with ``loc=0`` and ``scale=1``.

    Raises:
      ArgumentError: another module, or of the function: parameters that are missing or unknown (a TypeError and a
        ValueError).

    As ``scipy.stats.make_distribution``, which has no ``loc`` and ``scale``.

    >>> from pullback.scipy import stats
    >>> print(f"{stats.make_distribution(stats.gamma)(a=2.0).pdf(1.0):.4f}")
    0.3679
    """
    definition = getattr(dist, "DISTRIBUTION", None)
    if not isinstance(definition, Continuous):
        raise ArgumentError(
            f"make_distribution takes a module of a continuous distribution of numbers, got {quote(dist)}"
        )
    names = list(definition.parameters)
    title = f"make_distribution({definition.name})"

    def make(*, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0, **parameters: ArrayLike) -> ContinuousDistribution:
        if sorted(parameters) != sorted(names):
            raise ArgumentError(f"{title} takes the parameters {names}, loc and scale, got {sorted(parameters)}")
        return _OfModule(dist, {name: parameters[name] for name in names}, loc, scale)

    make.__name__ = make.__qualname__ = definition.name
    make.__doc__ = f"Return an object of {definition.of}, of the parameters {', '.join(names)}, loc and scale."
    return make


class Normal(_OfModule):
    """The normal distribution, as ``scipy.stats.Normal``.

    Args:
      mu: the mean, an array of real numbers.
      sigma: the standard deviation, positive.

    Raises:
      OperandError, DtypeError: a parameter is no real number (a TypeError).

    >>> from pullback.scipy import stats
    >>> print(f"{stats.Normal(mu=1.0, sigma=2.0).cdf(1.0):.4f}")
    0.5000
    """

    def __init__(self, mu: ArrayLike = 0.0, sigma: ArrayLike = 1.0) -> None:
        super().__init__(normal_distribution, {}, mu, sigma)

    def __repr__(self) -> str:
        return f"Normal(mu={self._loc}, sigma={self._scale})"


class Uniform(_OfModule):
    """The uniform distribution between two numbers, as ``scipy.stats.Uniform``.

    Args:
      a, b: the ends, arrays of real numbers.

    Raises:
      OperandError, DtypeError: a parameter is no real number (a TypeError).

    >>> from pullback.scipy import stats
    >>> print(f"{stats.Uniform(a=1.0, b=3.0).pdf(2.0):.4f}")
    0.5000
    """

    def __init__(self, *, a: ArrayLike = 0.0, b: ArrayLike = 1.0) -> None:
        low, high = real_operands("Uniform", a, b)
        super().__init__(uniform_distribution, {}, low, high - low)

    def __repr__(self) -> str:
        return f"Uniform(a={self._loc}, b={self._loc + self._scale})"


# Truncated distributions ---------------------------------------------------------------------------------------------


class _Truncated(ContinuousDistribution):
    """A distribution between two numbers."""

    def __init__(self, of: ContinuousDistribution, low: Any, high: Any) -> None:
        self._of_all, self._low, self._high = of, low, high

    def _title(self) -> str:
        return "truncate"

    def __repr__(self) -> str:
        return f"truncate({self._of_all!r}, lb={self._low}, ub={self._high})"

    def support(self) -> tuple[Array, Array]:
        low, high = self._of_all.support()
        return pnp.maximum(low, self._low), pnp.minimum(high, self._high)

    def _at(self, kind: str, x: Any, beyond: float) -> Any:
        """Return a function of the whole distribution at an end, which may be infinite."""
        finite = pnp.abs(x) < math.inf
        return pnp.where(finite, self._of_all._function(kind, pnp.where(finite, x, 0)), beyond)

    def _log_mass(self, low: Any, high: Any) -> Any:
        """Return the logarithm of the whole distribution's probability between two numbers, by the smaller tail."""
        upper = self._at("logcdf", low, -math.inf) > -math.log(2)
        ends = (
            (self._at("logcdf", low, -math.inf), self._at("logcdf", high, 0.0)),
            (self._at("logsf", high, -math.inf), self._at("logsf", low, 0.0)),
        )
        less, more = (pnp.where(upper, b, a) for a, b in zip(*ends, strict=True))
        some = less < more
        rest = log1mexp(pnp.where(some, less - pnp.where(some, more, 0), -1))
        return pnp.where(some, more + rest, -math.inf)

    def _inner(self, x: Any) -> tuple[Any, Any, Any, Any]:
        """Return the ends, where ``x`` is between them, and ``x``, or elsewhere a number between them."""
        low, high = self._low, self._high
        from_low, from_high = low > -math.inf, high < math.inf
        first, last = pnp.where(from_low, low, 0), pnp.where(from_high, high, 0)
        one_sided = pnp.where(from_low, first + 1, pnp.where(from_high, last - 1, 0))
        middle = pnp.where(from_low & from_high, (first + last) / 2, one_sided)
        inside = _between(x, low, high)
        return low, high, inside, pnp.where(inside, x, middle)

    def _function(self, kind: str, x: Any) -> Any:
        if kind in ("ppf", "isf"):
            return self._quantile(*((x, 1 - x) if kind == "ppf" else (1 - x, x)))
        low, high, inside, safe = self._inner(x)
        total = self._log_mass(low, high)
        if kind == "logpdf":
            at_end = (x == low) | (x == high)
            finite = pnp.abs(x) < math.inf
            value = self._of_all._function("logpdf", pnp.where(at_end & finite, x, safe)) - total
            return pnp.where(inside | (at_end & finite), value, pnp.where(pnp.isnan(x), math.nan, -math.inf))
        below = kind.endswith("cdf")
        value = self._log_mass(low, safe) if below else self._log_mass(safe, high)
        none = x <= low if below else x >= high
        value = pnp.where(inside, value - total, pnp.where(none, -math.inf, pnp.where(pnp.isnan(x), math.nan, 0.0)))
        return value if kind.startswith("log") else pnp.exp(value)

    def _quantile(self, p: Any, rest: Any) -> Any:
        """Return the quantile of ``p``, where ``rest`` is ``1 - p``, by the whole distribution's smaller tail."""
        inside = _between(p, 0, 1)
        q, r = pnp.where(inside, p, 0.5), pnp.where(inside, rest, 0.5)
        below = r * self._at("cdf", self._low, 0.0) + q * self._at("cdf", self._high, 1.0)
        above = r * self._at("sf", self._low, 1.0) + q * self._at("sf", self._high, 0.0)
        lower = below < 0.5
        value = pnp.where(
            lower, self._of_all._function("ppf", pnp.where(lower, below, 0.5)),
            self._of_all._function("isf", pnp.where(lower, 0.5, above)),
        )  # fmt: skip
        value = pnp.where(pnp.where(lower, below, above) > 0, pnp.clip(value, self._low, self._high), math.nan)
        ends = self.support()
        return pnp.where(inside, value, pnp.where(p == 0, ends[0], pnp.where(p == 1, ends[1], math.nan)))


def truncate(X: ContinuousDistribution, lb: ArrayLike = -math.inf, ub: ArrayLike = math.inf) -> ContinuousDistribution:
    """Return a distribution truncated to an interval.

    Args:
      X: the distribution.
      lb, ub: the ends of the interval, arrays of real numbers.

    Returns:
      A :class:`ContinuousDistribution`, with derivatives by the ends too. Probabilities are computed in the smaller
      tail. Densities and probabilities are those of logarithms; quantiles are NaN where the whole distribution's
      probability of the interval underflows.

    Raises:
      ArgumentError: ``X`` is no distribution, or known ends are not in order (a TypeError and a ValueError).
      OperandError, DtypeError: an end is no real number (a TypeError).

    As ``scipy.stats.truncate``.

    >>> from pullback.scipy import stats
    >>> print(f"{stats.truncate(stats.Normal(), 0.0, 1.0).icdf(0.5):.4f}")
    0.4418
    """
    if not isinstance(X, ContinuousDistribution):
        raise ArgumentError(f"truncate: X must be a distribution such as stats.Normal(), got {quote(X)}")
    low, high = real_operands("truncate", lb, ub)
    wrong = known(low >= high)
    if wrong is not None and wrong.any():
        raise ArgumentError(f"truncate: lb must be less than ub, got {lb} and {ub}")
    return _Truncated(X, low, high)


# Mixtures ------------------------------------------------------------------------------------------------------------


class Mixture(ContinuousDistribution):
    """A mixture: the distribution of a number from one of several distributions, which is drawn by weights.

    Args:
      components: the distributions.
      weights: their probabilities, a vector of numbers that are not negative and add to 1; equal ones by default.

    Raises:
      ArgumentError: no components, or known weights that make no sense (a TypeError and a ValueError).
      ShapeError: not as many weights as components (a TypeError and a ValueError).

    As ``scipy.stats.Mixture``. Quantiles are between those of the components, and are found by bisection; samples are
    quantiles, so that they have derivatives by weights too.

    >>> from pullback import grad
    >>> from pullback.scipy import stats
    >>> two = lambda w: stats.Mixture([stats.Normal(), stats.Normal(mu=4.0)], weights=[1 - w, w])
    >>> print(f"{two(0.3).pdf(1.0):.4f} {grad(lambda w: two(w).icdf(0.9))(0.3):.4f}")
    0.1707 3.0553
    """

    def __init__(self, components: Sequence[ContinuousDistribution], *, weights: ArrayLike | None = None) -> None:
        parts = list(components) if isinstance(components, (list, tuple)) else []
        if not parts or not all(isinstance(c, ContinuousDistribution) for c in parts):
            raise ArgumentError(f"Mixture: components must be distributions such as Normal(), got {quote(components)}")
        if weights is None:
            shares: Any = pnp.full(len(parts), 1 / len(parts))
        else:
            given: Any = pnp.stack(list(weights)) if isinstance(weights, (list, tuple)) and weights else weights
            (shares,) = real_operands("Mixture: weights", given)
        if shares.shape != (len(parts),):
            raise ShapeError(f"Mixture: weights must have shape ({len(parts)},), got {shares.shape}")
        values = known(shares)
        if values is not None and ((values < 0).any() or abs(float(np.sum(values, dtype=np.float64)) - 1) > 1e-5):
            raise ArgumentError(f"Mixture: weights must not be negative, and add to 1, got {values}")
        self._parts, self._shares = tuple(parts), tuple(shares[i] for i in range(len(parts)))

    @property
    def components(self) -> list[ContinuousDistribution]:
        """The distributions."""
        return list(self._parts)

    @property
    def weights(self) -> Array:
        """The probabilities of the components, a vector."""
        return pnp.stack(list(self._shares), axis=-1)

    def __repr__(self) -> str:
        return f"Mixture({list(self._parts)!r}, weights={self.weights})"

    def support(self) -> tuple[Array, Array]:
        lows, highs = zip(*(c.support() for c in self._parts), strict=True)
        low, high = lows[0], highs[0]
        for other_low, other_high in zip(lows[1:], highs[1:], strict=True):
            low, high = pnp.minimum(low, other_low), pnp.maximum(high, other_high)
        return low, high

    def _function(self, kind: str, x: Any) -> Any:
        if kind in ("ppf", "isf"):
            return self._quantile(kind, x)
        values = pnp.broadcast_arrays(*[c._function(kind, x) for c in self._parts])
        if not kind.startswith("log"):
            return sum((w * v for w, v in zip(self._shares[1:], values[1:], strict=True)), self._shares[0] * values[0])
        stacked = pnp.stack(values)
        shares = pnp.stack(pnp.broadcast_arrays(*self._shares))
        shares = pnp.reshape(shares, (*shares.shape[:1], *(1,) * (stacked.ndim - shares.ndim), *shares.shape[1:]))
        # Where all are -inf a sum has no derivative.
        none = pnp.all(stacked == -math.inf, axis=0)
        return pnp.where(none, -math.inf, logsumexp(pnp.where(none, 0, stacked), 0, shares))

    def _quantile(self, kind: str, p: Any) -> Any:
        shape = pnp.broadcast_shapes(p.shape, self._shape())
        leaves, structure = tree.flatten(self)
        dtype = pnp.result_type(p, *leaves)
        p, *leaves = (pnp.broadcast_to(pnp.asarray(v, dtype), shape) for v in (p, *leaves))
        inside = _between(p, 0, 1)
        safe = pnp.where(inside, p, 0.5)
        fixed = [stop_gradient(c._function(kind, safe)) for c in self._parts]
        low, high = pnp.min(pnp.stack(fixed), axis=0), pnp.max(pnp.stack(fixed), axis=0)
        # A little wider, for rounding errors of the components' quantiles.
        margin = 8 * float(pnp.finfo(dtype).eps) * (pnp.abs(low) + pnp.abs(high)) + float(pnp.finfo(dtype).tiny)

        def excess(x: Any, p: Any, *leaves: Any) -> Any:
            """How far the logarithm of the smaller probability, below or above ``x``, is from that of the quantile."""
            mixture = tree.unflatten(structure, list(leaves))
            near, far = ("logcdf", "logsf") if kind == "ppf" else ("logsf", "logcdf")
            small = p < 0.5
            by_p = mixture._function(near, x) - pnp.log(p)
            by_rest = pnp.log1p(-p) - mixture._function(far, x)
            return (1 if kind == "ppf" else -1) * pnp.where(small, by_p, by_rest)

        value = root_between(excess, low - margin, high + margin, safe, *leaves)
        first, last = self.support()
        at_zero, at_one = (first, last) if kind == "ppf" else (last, first)
        return pnp.where(inside, value, pnp.where(p == 0, at_zero, pnp.where(p == 1, at_one, math.nan)))


def _register(cls: type, flatten: Callable[[Any], tuple[Any, Any]], names: Sequence[str]) -> None:
    """Make a class of distributions a tree: ``flatten`` returns the children, which are ``names``, and the rest."""

    def unflatten(of: Any, children: Any) -> Any:
        made: Any = object.__new__(cls)
        made.__dict__.update(of)
        made.__dict__.update(zip(names, children, strict=True))
        return made

    tree.register_pytree_node(cls, flatten, unflatten)


for _cls in (_OfModule, Normal, Uniform):
    _register(_cls, lambda x: ((x._parameters, x._loc, x._scale), (("_module", x._module),)),
              ("_parameters", "_loc", "_scale"))  # fmt: skip
_register(_Truncated, lambda x: ((x._of_all, x._low, x._high), ()), ("_of_all", "_low", "_high"))
_register(Mixture, lambda x: ((x._parts, x._shares), ()), ("_parts", "_shares"))
