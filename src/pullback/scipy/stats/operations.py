"""Distribution functions whose derivative by the variable is the density, also where the formula has another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core.array import ArrayImpl
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.primitives import elementwise as ops
from pullback.primitives.checks import FLOAT, broadcast_shape
from pullback.primitives.declare import elementwise
from pullback.primitives.special.quadrature import in_blocks
from pullback.scipy.special.differentiated import by_forward_mode, derivative
from pullback.scipy.stats.distributions import exp, log1p, where

Formula = Callable[..., Any]


def from_log_tail(
    name: str, log_tail: Formula, log_density: Formula, host: Formula | None = None
) -> tuple[Primitive, Primitive]:
    """Declare the distribution function of an even density, and its logarithm, of a parameter and a variable.

    Both primitives have the parameter ``orders`` of :func:`by_forward_mode`. Their derivatives by the variable are the
    density, and the density divided by the distribution function; the formula is differentiated by the parameter.

    Args:
      name: the name of the distribution, for jaxprs and errors.
      log_tail: ``log_tail(parameter, size)``, the logarithm of the probability of less than ``-size``, which is not
        positive; in double precision.
      log_density: ``log_density(y, parameter)``.
      host: SciPy's distribution function, of the parameter and the variable.
    """

    def value(parameter: Any, y: Any) -> Any:
        tail = exp(log_tail(parameter, ops.abs(y)))
        return where(ops.gt(y, 0), ops.sub(1, tail), tail)

    def logarithm(parameter: Any, y: Any) -> Any:
        tail = log_tail(parameter, ops.abs(y))
        return where(ops.gt(y, 0), log1p(ops.neg(exp(tail))), tail)

    def density(parameter: Any, y: Any) -> Any:
        return exp(log_density(y, parameter))

    def ratio(parameter: Any, y: Any) -> Any:
        return exp(ops.sub(log_density(y, parameter), log_cdf_p.bind(parameter, y, orders=(0, 0))))

    def by_variable(slope: Formula) -> Formula:
        def rule(t: Any, parameter: Any, y: Any, orders: tuple[int, ...]) -> Any:
            return ops.mul(t, (slope if orders == (0, 0) else derivative(slope, orders))(parameter, y))

        return rule

    def host_logarithm(parameter: Any, y: Any) -> Any:
        """The logarithm from SciPy's tail, or from the formula where the tail underflows."""
        if host is None:
            return _on_host(logarithm)(parameter, y)
        wide = np.asarray(parameter, np.float64), np.asarray(y, np.float64)
        tail = np.asarray(host(wide[0], -np.abs(wide[1])))
        out = np.where(wide[1] > 0, np.log1p(-tail), np.log(tail))
        lost = (tail < 1e-290) & np.isfinite(wide[1])
        if np.any(lost):
            out[lost] = _on_host(logarithm)(*(np.broadcast_to(x, lost.shape)[lost] for x in wide))
        return out

    options: Any = {"arity": 2, "integrals": True}
    cdf_p = by_forward_mode(
        f"{name}_cdf", value, host=host or _on_host(value), slopes=(None, by_variable(density)), **options
    )
    log_cdf_p = by_forward_mode(
        f"{name}_log_cdf", logarithm, host=host_logarithm, slopes=(None, by_variable(ratio)), **options
    )
    return cdf_p, log_cdf_p


_BLOCK = 1024


def _on_host(formula: Formula) -> Formula:
    """Convert a formula to a function of NumPy arrays, that applies the formula to blocks of elements.

    The blocks bound the memory: integrals in the formula need 48 numbers for each element.
    """

    def evaluate(*operands: Any) -> Any:
        shape = broadcast_shape("the integral", [np.shape(x) for x in operands])
        flat = [np.broadcast_to(np.asarray(x, np.float64), shape).ravel() for x in operands]
        blocks = [
            formula(*(ArrayImpl(np.array(x[i : i + _BLOCK])) for x in flat))._value
            for i in range(0, max(flat[0].size, 1), _BLOCK)
        ]
        return np.concatenate(blocks).reshape(shape)

    return evaluate


def quantile_function(
    name: str, formula: Formula, host: Formula, distribution: Primitive, log_density: Formula
) -> Primitive:
    """Declare the inverse of a distribution function, of a parameter and a probability, as an implicit function.

    Args:
      name: the name in jaxprs and errors.
      formula: ``formula(parameter, q)``, for arrays of double precision and one shape.
      host: SciPy's function.
      distribution: the distribution function, from :func:`from_log_tail`.
      log_density: ``log_density(y, parameter)``.
    """

    def by_parameter(t: Any, parameter: Any, q: Any, ans: Any) -> Any:
        change = distribution.bind(parameter, ans, orders=(1, 0))
        return ops.mul(t, -(change * exp(-log_density(ans, parameter))))

    return elementwise(
        name, of=FLOAT, arity=2, host=host, hlo=in_blocks(formula),
        jvp=(by_parameter, lambda t, parameter, q, ans: ops.mul(t, exp(ops.neg(log_density(ans, parameter))))),
        cost=Cost.SPECIAL,
    )  # fmt: skip
