"""Points at which a derivative rule needs care: where a formula is 0/0 or 0 times infinity, at kinks, ties and edges.

A row has a real function of a vector (or of several numbers), a point, and its gradient and Hessian there: what
mathematics says; what this library has chosen, at kinks; None where all that is asked for is that all orders of modes
agree. A NaN among the figures says that there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax, nn
from pullback.scipy import special

inf = math.inf
LOG_4 = math.log(4)


@dataclass
class Guarded:
    """A row: a function, a point, and the gradient and the Hessian there."""

    name: str
    function: Callable[[Any], Any]
    point: Sequence[float]
    gradient: Any = None
    hessian: Any = None

    def __repr__(self) -> str:
        return self.name


def at(name: str, f: Callable[..., Any], point: Sequence[float], gradient: Any = None, hessian: Any = None) -> Guarded:
    """A row for a function of several numbers."""
    return Guarded(f"{name}{tuple(point)}", lambda v: f(*(v[i] for i in range(len(point)))), point, gradient, hessian)


def of_vector(
    name: str, f: Callable[..., Any], point: Sequence[float], gradient: Any = None, hessian: Any = None
) -> Guarded:
    """A row for a function of a vector, whose results are weighted by 1, 2, ... and added, if there are many."""

    def total(v: Any) -> Any:
        out = f(v)
        return jnp.sum(out * jnp.arange(1.0, out.size + 1).reshape(out.shape)) if out.shape else out

    return Guarded(f"{name}{list(point)}", total, point, gradient, hessian)


def zeros(n: int) -> list[list[float]]:
    return [[0.0] * n] * n


def of_pow(x: float, y: float) -> tuple[list[float], list[list[float]]]:
    """The gradient and the Hessian of x**y for positive x."""
    p, size = x**y, math.log(x)
    mixed = x ** (y - 1) * (1 + y * size)
    return [y * x ** (y - 1), p * size], [[y * (y - 1) * x ** (y - 2), mixed], [mixed, p * size**2]]


def of_softmax(x: Sequence[float]) -> Any:
    p = np.exp(np.asarray(x) - max(x))
    return p / p.sum()


def of_logsumexp(x: Sequence[float]) -> tuple[Any, Any]:
    p = of_softmax(x)
    return p, np.diag(p) - np.outer(p, p)


POWERS = [
    *(
        at(name, f, point, *of_pow(*point))
        for name, f in (("lax.pow", lax.pow), ("jnp.power", jnp.power), ("**", lambda x, y: x**y))
        for point in ((4.0, 0.0), (0.25, 0.0), (1.0, 0.0), (1.0, 2.0), (3.0, 1.0))
    ),
    at("pow", lax.pow, (0.0, 2.0), [0, 0], [[2, 0], [0, 0]]),
    at("pow", lax.pow, (0.0, 3.0), [0, 0], zeros(2)),
    at("pow", lax.pow, (0.0, 1.5), [0, 0], [[inf, 0], [0, 0]]),
    at("pow", lax.pow, (0.0, 1.0), [1, 0], [[0, -inf], [-inf, 0]]),
    at("pow", lax.pow, (0.0, 0.5), [inf, 0], [[-inf, -inf], [-inf, 0]]),
    at("pow", lax.pow, (0.0, 0.0), [0, 0], [[0, inf], [inf, 0]]),
    at("x**2.", lambda x: x**2.0, (0.0,), [0], [[2]]),
    at("x**1.", lambda x: x**1.0, (0.0,), [1], [[0]]),
    at("x**0.", lambda x: x**0.0, (0.0,), [0], [[0]]),
    at("x**2", lambda x: x**2, (0.0,), [0], [[2]]),
    at("2**x", lambda x: 2.0**x, (0.0,), [math.log(2)], [[math.log(2) ** 2]]),
    at("float_power", jnp.float_power, (4.0, 0.0), *of_pow(4.0, 0.0)),
    at("sqrt", jnp.sqrt, (0.0,), [inf], [[-inf]]),
    at("cbrt", jnp.cbrt, (0.0,), [inf], [[math.nan]]),
    at("square", jnp.square, (0.0,), [0], [[2]]),
    at("reciprocal", jnp.reciprocal, (0.0,), [-inf], [[inf]]),
]

LOGARITHMS = [
    at("xlogy", special.xlogy, (0.0, 3.0), [math.log(3), 0], [[0, 1 / 3], [1 / 3, 0]]),
    at("xlogy", special.xlogy, (2.0, 1.0), [0, 2], [[0, 1], [1, -2]]),
    at("xlogy", special.xlogy, (0.0, 0.0), [-inf, 0], [[0, inf], [inf, 0]]),
    at("xlog1py", special.xlog1py, (0.0, 3.0), [math.log(4), 0], [[0, 0.25], [0.25, 0]]),
    at("xlog1py", special.xlog1py, (0.0, 0.0), [0, 0], [[0, 1], [1, 0]]),
    at("xlog1py", special.xlog1py, (0.0, -1.0), [-inf, 0], [[0, inf], [inf, 0]]),
    at("entr", special.entr, (1.0,), [-1], [[-1]]),
    at("log1p", jnp.log1p, (0.0,), [1], [[-1]]),
    at("expm1", jnp.expm1, (0.0,), [1], [[1]]),
    at("log1mexp", nn.log1mexp, (math.log(2),), [1], [[-2]]),
    at("logaddexp", jnp.logaddexp, (1.0, 1.0), [0.5, 0.5], [[0.25, -0.25], [-0.25, 0.25]]),
    at("logaddexp", jnp.logaddexp, (inf, inf), [0.5, 0.5]),
    at("logaddexp", jnp.logaddexp, (-inf, -inf), [0.5, 0.5]),
    at("logaddexp", jnp.logaddexp, (-inf, 1.0), [0, 1], zeros(2)),
    at("logaddexp", jnp.logaddexp, (inf, 1.0), [1, 0], zeros(2)),
    at("logaddexp2", jnp.logaddexp2, (1.0, 1.0), [0.5, 0.5], math.log(2) / 4 * np.array([[1, -1], [-1, 1]])),
    of_vector("logsumexp", nn.logsumexp, (1.0, 1.0, 0.0), *of_logsumexp((1.0, 1.0, 0.0))),
    of_vector("logsumexp", nn.logsumexp, (-inf, 1.0, 0.0), *of_logsumexp((-inf, 1.0, 0.0))),
    of_vector("logsumexp", nn.logsumexp, (-inf, -inf), [0, 0], zeros(2)),
    of_vector("softmax", nn.softmax, (0.0, 0.0)),
    of_vector("softmax", nn.softmax, (-inf, 1.0, 0.0)),
    of_vector("log_softmax", nn.log_softmax, (0.0, 0.0)),
    of_vector("cumlogsumexp", lax.cumlogsumexp, (1.0, 1.0, 0.0)),
    of_vector("cumlogsumexp", lax.cumlogsumexp, (-inf, 1.0, 0.0)),
    of_vector("cumlogsumexp", lax.cumlogsumexp, (0.0, 40.0, 0.0)),
    at("softplus", nn.softplus, (0.0,), [0.5], [[0.25]]),
    at("log_ndtr", special.log_ndtr, (0.0,), [math.sqrt(2 / math.pi)], [[-2 / math.pi]]),
    at("logit", special.logit, (0.5,), [4], [[0]]),
    at("erf_inv", special.erfinv, (0.0,), [math.sqrt(math.pi) / 2], [[0]]),
    at("erf_inv", special.erfinv, (1.0,), [inf], [[inf]]),
]

KINKS = [
    at("abs", jnp.abs, (0.0,), [0], [[0]]),
    at("sign", jnp.sign, (0.0,), [0], [[0]]),
    at("relu", nn.relu, (0.0,), [0], [[0]]),
    at("maximum", jnp.maximum, (1.0, 1.0), [0.5, 0.5], zeros(2)),
    at("minimum", jnp.minimum, (1.0, 1.0), [0.5, 0.5], zeros(2)),
    at("maximum of squares", lambda x, y: jnp.maximum(x * x, y * y), (1.0, 1.0), [1, 1], [[1, 0], [0, 1]]),
    at("clip", lambda x: jnp.clip(x**2, 1.0, 4.0), (1.0,), None, None),
    at("clamp", lambda x: lax.clamp(1.0, x**2, 4.0), (2.0,), [0], [[0]]),
    at("hypot", jnp.hypot, (0.0, 0.0), [0, 0], zeros(2)),
    at("hypot", jnp.hypot, (2.0, 0.0), [1, 0], [[0, 0], [0, 0.5]]),
    at("hypot", jnp.hypot, (0.0, -2.0), [0, -1], [[0.5, 0], [0, 0]]),
    at("arctan2", jnp.arctan2, (0.0, 2.0), [0.5, 0], [[0, -0.25], [-0.25, 0]]),
    at("arctan2", jnp.arctan2, (2.0, 0.0), [0, -0.5], [[0, 0.25], [0.25, 0]]),
    at("arctan2", jnp.arctan2, (0.0, -2.0), [-0.5, 0], [[0, -0.25], [-0.25, 0]]),
    at("sinc", jnp.sinc, (0.0,), [0], [[-(math.pi**2) / 3]]),
    at("where", lambda x: jnp.where(x > 0, x**2, x**3), (0.0,), [0], [[0]]),
    at("select", lambda x, y: lax.select(x > 0, x * y, x + y), (0.0, 2.0), [1, 1], zeros(2)),
    at("divmod", lambda x, y: jnp.remainder(x * y, 3.0), (2.0, 2.5), [2.5, 2], [[0, 1], [1, 0]]),
    of_vector("max", jnp.max, (1.0, 1.0, 0.0), [0.5, 0.5, 0], zeros(3)),
    of_vector("min", jnp.min, (1.0, 1.0, 2.0), [0.5, 0.5, 0], zeros(3)),
    of_vector("max of squares", lambda v: jnp.max(v * v), (1.0, 1.0, 0.0), [1, 1, 0], np.diag([1, 1, 0])),
    of_vector("cummax", lambda v: lax.cummax(v * v), (1.0, 1.0, 0.0)),
    of_vector("sort", lambda v: jnp.sort(v * v), (1.0, 1.0, 0.0), [4, 6, 0], np.diag([4, 6, 2])),
    of_vector("median", lambda v: jnp.median(v * v), (1.0, 1.0, 2.0), [0, 2, 0], np.diag([0, 2, 0])),
    of_vector("norm inf", lambda v: jnp.linalg.norm(v, ord=jnp.inf), (1.0, -1.0, 0.0), [0.5, -0.5, 0], zeros(3)),
    of_vector("norm 1", lambda v: jnp.linalg.norm(v, ord=1), (1.0, 0.0), [1, 0], zeros(2)),
    of_vector("norm", jnp.linalg.norm, (2.0, 0.0), [1, 0], [[0, 0], [0, 0.5]]),
    of_vector("norm", jnp.linalg.norm, (0.0, 0.0), [0, 0], zeros(2)),
    of_vector("norm 3", lambda v: jnp.linalg.norm(v, ord=3), (2.0, 0.0), [1, 0], zeros(2)),
]

PRODUCTS = [
    of_vector("prod", jnp.prod, (0.0, 2.0, 3.0), [6, 0, 0], [[0, 3, 2], [3, 0, 0], [2, 0, 0]]),
    of_vector("prod", jnp.prod, (0.0, 0.0, 3.0), [0, 0, 0], [[0, 3, 0], [3, 0, 0], [0, 0, 0]]),
    of_vector("prod", jnp.prod, (0.0, 0.0, 0.0), [0, 0, 0], zeros(3)),
    of_vector("cumprod", jnp.cumprod, (2.0, 0.0, 3.0), [1, 22, 0], [[0, 11, 0], [11, 0, 6], [0, 6, 0]]),
    of_vector("cumprod", jnp.cumprod, (0.0, 0.0, 3.0), [1, 0, 0], [[0, 11, 0], [11, 0, 0], [0, 0, 0]]),
    of_vector("var", jnp.var, (1.0, 1.0), [0, 0], [[0.5, -0.5], [-0.5, 0.5]]),
    of_vector("std", jnp.std, (1.0, 3.0), [-0.5, 0.5], zeros(2)),
    of_vector("scatter multiply", lambda v: jnp.ones(1).at[jnp.array([0, 0, 0])].multiply(v), (0.0, 0.0, 3.0),
              [0, 0, 0], [[0, 3, 0], [3, 0, 0], [0, 0, 0]]),
    of_vector("scatter multiply", lambda v: jnp.ones(1).at[jnp.array([0, 0, 0])].multiply(v * v), (0.0, 2.0, 3.0),
              [0, 0, 0], np.diag([72, 0, 0])),
    of_vector("scatter max", lambda v: jnp.zeros(1).at[jnp.array([0, 0])].max(v * v), (1.0, 1.0), [1, 1], np.eye(2)),
    of_vector("det", lambda v: jnp.linalg.det(v.reshape(2, 2)), (0.0, 0.0, 0.0, 0.0), [0, 0, 0, 0],
              [[0, 0, 0, 1], [0, 0, -1, 0], [0, -1, 0, 0], [1, 0, 0, 0]]),
    of_vector("complex abs", lambda v: jnp.abs(lax.complex(v[0], v[1])), (2.0, 0.0), [1, 0], [[0, 0], [0, 0.5]]),
    of_vector("complex abs", lambda v: jnp.abs(lax.complex(v[0], v[1])), (0.0, 0.0), [0, 0]),
    of_vector("complex sign", lambda v: jnp.imag(jnp.sign(lax.complex(v[0], v[1]))), (2.0, 0.0), [0, 0.5],
              [[0, -0.25], [-0.25, 0]]),
]  # fmt: skip

GUARDED = [*POWERS, *LOGARITHMS, *KINKS, *PRODUCTS]
