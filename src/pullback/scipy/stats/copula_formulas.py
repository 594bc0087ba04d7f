"""What copulas share: their points, docstrings, and the generators of Archimedean ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pullback.numpy as pnp
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ShapeError
from pullback.scipy.special.operands import real_operands


def points(name: str, u: Any, parameter: Any) -> tuple[Any, Any, Any]:
    """Return the points of a copula and a parameter, promoted, and where the points are inside of the cube.

    The points are (..., n) with n at least 2; those outside are replaced by others, where all formulas are smooth.

    Raises:
      ShapeError: a number, one component, or shapes that do not broadcast.
    """
    u, parameter = real_operands(name, u, parameter)
    if not u.shape or u.shape[-1] < 2:
        raise ShapeError(f"{name}: u must have an axis of at least 2 components, got shape {u.shape}")
    return u, parameter, pnp.all((u > 0) & (u < 1), axis=-1)


def broadcast(name: str, u: Any, parameter: Any) -> None:
    """Raise unless a parameter broadcasts against the leading axes of the points.

    Raises:
      ShapeError: it does not.
    """
    try:
        pnp.broadcast_shapes(u.shape[:-1], parameter.shape)
    except ValueError:
        raise ShapeError(f"{name}: the shapes {u.shape} and {parameter.shape} do not broadcast") from None


def log_of_sum_over_one(logs: Any) -> Any:
    """Return ``log(1 + Σ (exp(x) - 1))`` over the last axis, for numbers that are not negative, without overflow."""
    n, most = logs.shape[-1], pnp.max(logs, axis=-1, keepdims=True)
    small = most < 1
    near = pnp.log1p(pnp.sum(pnp.expm1(pnp.where(small, logs, 0)), -1))
    far = pnp.where(small, 1, logs)
    top = pnp.max(far, axis=-1, keepdims=True)
    rest = pnp.sum(pnp.exp(far - top), -1) - (n - 1) * pnp.exp(-top[..., 0])
    return pnp.where(small[..., 0], near, top[..., 0] + pnp.log(rest))


_DENSITY = """{sentence}

    Args:
      u: points of the unit cube, an array (..., n) of real numbers with n at least 2.
      theta: {theta}; an array that broadcasts against the leading axes of ``u``.

    Returns:
      An array of floats, of the broadcast shape of the leading axes: {outside} outside of the open cube, NaN where
      ``theta`` is out of its range.

    Raises:
      ShapeError: the shapes do not fit (a TypeError and a ValueError).
      OperandError: an argument is neither an array nor a number (a TypeError).
      DtypeError: an argument is complex (a TypeError).

    {formula}

    Source: {source} Samples are :func:`pullback.random.{name}`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import {name}
    >>> print(f"{{{name}.{kind}(jnp.array([0.3, 0.5]), 2.0):.4f}}")
    {value}
    """


class Archimedean:
    """The definition of a copula ``ψ(Σ ψ⁻¹(u_i))`` of one parameter.

    Args:
      name: the name of its module.
      of: the copula in words.
      theta: the description of its parameter.
      formula: its distribution function, for docstrings.
      source: where its density is from, a sentence.
      values: what the examples of ``logpdf``, ``pdf`` and ``cdf`` print.
      valid: from the parameter and the number of components, whether the parameter is in its range.
      usual: a parameter in the range, for where another is not.
      logpdf, logcdf: the formulas, of points (..., n) inside of the cube and of the parameter with an axis more.
    """

    def __init__(
        self, name: str, of: str, theta: str, formula: str, source: str, values: tuple[str, str, str],
        valid: Callable[[Any, int], Any], usual: float, logpdf: Callable[..., Any], logcdf: Callable[..., Any],
    ) -> None:  # fmt: skip
        self.name, self.of, self.theta, self.formula, self.source = name, of, theta, formula, source
        self.values, self.valid, self.usual = values, valid, usual
        self.formulas = {"logpdf": logpdf, "logcdf": logcdf}

    def _value(self, kind: str, u: Any, theta: Any) -> Any:
        name = f"{self.name}.{kind}"
        u, theta, inside = points(name, u, theta)
        broadcast(name, u, theta)
        valid = self.valid(theta, u.shape[-1])
        safe = pnp.where(valid, theta, self.usual)[..., None]
        if kind == "cdf":
            # A component of at least 1 is left out, and one of 0 makes it zero.
            low = pnp.min(u, axis=-1) <= 0
            nan = pnp.any(pnp.isnan(u), axis=-1)
            eps = pnp.finfo(u.dtype)
            u = pnp.clip(pnp.where(low[..., None] | nan[..., None], 0.5, u), float(eps.tiny), 1 - float(eps.epsneg))
            value = pnp.where(low, 0, pnp.exp(self.formulas["logcdf"](u, safe)))
            return pnp.where(valid & ~nan, value, math.nan)
        value = self.formulas["logpdf"](pnp.where(inside[..., None], u, 0.5), safe)
        value = pnp.where(inside, value, -math.inf)
        unknown = pnp.any(pnp.isnan(u), axis=-1)
        value = value if kind == "logpdf" else pnp.exp(value)
        return pnp.where(valid & ~unknown, value, math.nan)

    def functions(self, module: str) -> list[Callable[..., Array]]:
        """Return the functions ``logpdf``, ``pdf`` and ``cdf`` of a module."""
        sentences = {
            "logpdf": f"Return the logarithm of the density of {self.of}.",
            "pdf": f"Return the density of {self.of}.",
            "cdf": f"Return the distribution function of {self.of}: the probability that no component is above ``u``.",
        }
        outside = {"logpdf": "-inf", "pdf": "0", "cdf": "the probability"}
        made = []
        for kind, value in zip(sentences, self.values, strict=True):
            made.append(self._function(kind, module))
            made[-1].__doc__ = _DENSITY.format(
                sentence=sentences[kind], theta=self.theta, outside=outside[kind], formula=self.formula,
                source=self.source, name=self.name, kind=kind, value=value,
            )  # fmt: skip
        return made

    def _function(self, kind: str, module: str) -> Callable[..., Array]:
        def function(u: ArrayLike, theta: ArrayLike) -> Array:
            return self._value(kind, u, theta)  # type: ignore[no-any-return]

        function.__name__ = function.__qualname__ = kind
        function.__module__ = module
        return function
