"""Orthogonal polynomials, and the nodes and weights of their quadratures."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayImpl, ArrayLike, as_array
from pullback.core.docs import describe
from pullback.core.errors import ArgumentError, ConcretizationTypeError, DtypeError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import inexact_operands, known_int, strong
from pullback.primitives import elementwise as ops
from pullback.scipy.arguments import known, on_host
from pullback.scipy.special import polynomial_formulas as formulas
from pullback.scipy.special.declared import Binary, Function, Quaternary, Ternary, documented
from pullback.scipy.special.gammas import factorial, poch

_NOTE = """The degrees ``n`` may be any real numbers, as in SciPy. Integers have the recurrence in the degree, with
derivatives of any order by all operands but ``n``; traced negative integers return NaN. Other degrees are
computed on the host, also within compiled programs, and have derivatives by ``x`` only.

Source: DLMF 18.9."""


def _known_degrees(n: Any) -> bool:
    """Whether degrees are integers that are known not to be negative, or traced integers."""
    if dtypes.is_integer(n.dtype):
        elements = known(n)
        return elements is None or elements.size == 0 or int(elements.min()) >= 0
    elements = known(n)
    return elements is not None and bool((elements >= 0).all() and (elements == np.floor(elements)).all())


def _declared(
    name: str, operands: str, by_degree: Function, of_any: Function | None, sentence: str, example: tuple[str, str]
) -> Any:
    """Make the public function of a family of polynomials.

    Args:
      name: the name.
      operands: the names of the operands, separated by commas; the first is the degree.
      by_degree: the function of integer degrees; degrees and operands are arrays of one dtype.
      of_any: the function of other degrees; None if there is none.
      sentence, example: for the docstring.
    """

    def function(*xs: Any) -> Any:
        arrays = inexact_operands(name, *xs)
        if dtypes.is_complex(arrays[0].dtype):
            raise DtypeError(f"{name} takes real numbers, got {dtypes.short_name(arrays[0].dtype)}")
        degrees, (n, *rest) = as_array(xs[0]), map(strong, arrays)
        if of_any is not None and not _known_degrees(degrees):
            return of_any(n, *rest)
        value = by_degree(n, *rest)
        return value if known(degrees) is not None and of_any is not None else _undefined(n, value)

    note = _NOTE if of_any is not None else _INTEGERS
    return documented(function, __name__, name, operands, sentence, example, note=note)


_INTEGERS = """The degrees ``n`` are integers, and others return NaN. There are derivatives of any order by ``x``.

Source: DLMF 18.9."""


def _undefined(n: Any, value: Any) -> Any:
    """Return NaN in place of values of degrees that are negative, or not integers."""
    whole = ops.and_p.bind(ops.gt(n, -1), ops.eq(n, ops.floor_p.bind(n)))
    return ops.where(whole, value, np.nan)


def _of_half(of: Function, factor: float = 1) -> Function:
    return lambda n, x: ops.mul(of(n, ops.mul(x, 0.5)), factor)


def _shifted(of: Function) -> Function:
    return lambda n, *xs: of(n, *xs[:-1], ops.sub(ops.mul(xs[-1], 2), 1))


def _shifted_jacobi(of: Function) -> Function:
    def function(n: Any, p: Any, q: Any, x: Any) -> Any:
        value = of(n, ops.sub(p, q), ops.sub(q, 1), ops.sub(ops.mul(x, 2), 1))
        # binom(2 n + p - 1, n)
        ways = ops.div(poch(ops.add(n, p), n), factorial(n))
        return ops.div(value, ways)

    return function


f = formulas
eval_legendre: Binary = _declared(
    "eval_legendre",
    "n, x",
    f.legendre,
    f.any_legendre,
    "Legendre's polynomials of degree ``n``.",
    ("3, 0.5", "-0.4375"),
)
eval_chebyt: Binary = _declared(
    "eval_chebyt", "n, x", f.chebyt, f.any_chebyt, "Chebyshev's polynomials of the first kind, ``cos(n acos(x))``.",
    ("3, 0.5", "-1.0000"),
)  # fmt: skip
eval_chebyu: Binary = _declared(
    "eval_chebyu", "n, x", f.chebyu, f.any_chebyu, "Chebyshev's polynomials of the second kind.", ("3, 0.5", "-1.0000")
)
eval_chebyc: Binary = _declared(
    "eval_chebyc", "n, x", _of_half(f.chebyt, 2), _of_half(f.any_chebyt, 2),
    "Chebyshev's polynomials of the first kind on [-2, 2], ``2 cos(n acos(x / 2))``.", ("3, 0.5", "-1.3750"),
)  # fmt: skip
eval_chebys: Binary = _declared(
    "eval_chebys", "n, x", _of_half(f.chebyu), _of_half(f.any_chebyu),
    "Chebyshev's polynomials of the second kind on [-2, 2].", ("3, 0.5", "-0.8750"),
)  # fmt: skip
eval_hermite: Binary = _declared(
    "eval_hermite", "n, x", f.hermite, None, "The physicist's Hermite polynomials, of weight ``exp(-x**2)``.",
    ("3, 0.5", "-5.0000"),
)  # fmt: skip
eval_hermitenorm: Binary = _declared(
    "eval_hermitenorm", "n, x", f.hermitenorm, None,
    "The probabilist's Hermite polynomials, of weight ``exp(-x**2 / 2)``.", ("3, 0.5", "-1.3750"),
)  # fmt: skip
eval_laguerre: Binary = _declared(
    "eval_laguerre", "n, x", f.laguerre, f.any_laguerre, "Laguerre's polynomials, of weight ``exp(-x)``.",
    ("3, 0.5", "-0.1458"),
)  # fmt: skip
eval_genlaguerre: Ternary = _declared(
    "eval_genlaguerre", "n, alpha, x", f.genlaguerre, f.any_genlaguerre,
    "Laguerre's generalised polynomials, of weight ``x**alpha exp(-x)``.", ("3, 1.0, 0.5", "1.4792"),
)  # fmt: skip
eval_gegenbauer: Ternary = _declared(
    "eval_gegenbauer", "n, alpha, x", f.gegenbauer, f.any_gegenbauer,
    "Gegenbauer's ultraspherical polynomials, of weight ``(1 - x**2)**(alpha - 1/2)``.", ("3, 1.5, 0.5", "-1.5625"),
)  # fmt: skip
eval_jacobi: Quaternary = _declared(
    "eval_jacobi", "n, alpha, beta, x", f.jacobi, f.any_jacobi,
    "Jacobi's polynomials, of weight ``(1 - x)**alpha (1 + x)**beta``.", ("3, 1.0, 0.5, 0.5", "-0.4795"),
)  # fmt: skip
eval_sh_legendre: Binary = _declared(
    "eval_sh_legendre", "n, x", _shifted(f.legendre), _shifted(f.any_legendre),
    "Legendre's polynomials shifted to [0, 1].", ("3, 0.25", "0.4375"),
)  # fmt: skip
eval_sh_chebyt: Binary = _declared(
    "eval_sh_chebyt", "n, x", _shifted(f.chebyt), _shifted(f.any_chebyt),
    "Chebyshev's polynomials of the first kind shifted to [0, 1].", ("3, 0.25", "1.0000"),
)  # fmt: skip
eval_sh_chebyu: Binary = _declared(
    "eval_sh_chebyu", "n, x", _shifted(f.chebyu), _shifted(f.any_chebyu),
    "Chebyshev's polynomials of the second kind shifted to [0, 1].", ("3, 0.25", "1.0000"),
)  # fmt: skip
eval_sh_jacobi: Quaternary = _declared(
    "eval_sh_jacobi", "n, p, q, x", _shifted_jacobi(f.jacobi), _shifted_jacobi(f.any_jacobi),
    "Jacobi's polynomials shifted to [0, 1], of weight ``(1 - x)**(p - q) x**(q - 1)``.",
    ("3, 2.0, 1.0, 0.25", "0.0138"),
)  # fmt: skip

# Quadratures ---------------------------------------------------------------------------------------------------------

Rule = tuple[Array, Array] | tuple[Array, Array, Array]


def _quadrature(name: str, parameters: tuple[str, ...], weight: str, interval: str, example: str, shown: str) -> Any:
    """Make the function that returns the nodes and weights of a Gaussian quadrature."""

    def function(n: Any, values: tuple[Any, ...], mu: Any) -> Any:
        count, wanted = known_int(name, "the number of nodes n", n), flag(name, "mu", mu)
        if count < 1:
            raise ArgumentError(f"{name}: the number of nodes n must be positive, got {count}")
        elements = on_host(*inexact_operands(name, *values)) if values else []
        if elements is None:
            raise ConcretizationTypeError(
                f"{name}: {' and '.join(parameters)} must be known and have no derivatives, but are traced"
            )
        if any(v.shape for v in elements):
            raise ArgumentError(f"{name}: {' and '.join(parameters)} must be numbers")
        try:
            found = getattr(imported("scipy.special"), name)(count, *map(float, elements), mu=wanted)
        except ValueError as error:
            raise ArgumentError(f"{name}: {error}") from None
        kind = dtypes.default_float()
        return tuple(ops.convert_element_type(ArrayImpl(np.asarray(x, np.float64)), kind) for x in found)

    made: dict[int, Any] = {
        0: lambda n, mu=False: function(n, (), mu),
        1: lambda n, alpha, mu=False: function(n, (alpha,), mu),
        2: lambda n, alpha, beta, mu=False: function(n, (alpha, beta), mu),
    }
    public = made[len(parameters)]
    some = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = [
        inspect.Parameter("n", some, annotation=int),
        *[inspect.Parameter(p, some, annotation=ArrayLike) for p in parameters],
        inspect.Parameter("mu", some, default=False, annotation=bool),
    ]
    public.__signature__ = inspect.Signature(signature, return_annotation=Rule)
    public.__annotations__ = {p.name: p.annotation for p in signature} | {"return": Rule}
    more = f"\n  {', '.join(parameters)}: parameters of the weight, numbers that are known." if parameters else ""
    text = f"""Return the nodes and weights of the Gaussian quadrature with the weight ``{weight}`` on {interval}.

Args:
  n: the number of nodes, a positive integer that is known.{more}
  mu: whether to return the sum of the weights too.

Returns:
  The nodes and the weights, arrays of ``n`` floats of the default dtype, and the sum of the weights if ``mu``. The rule
  is exact for polynomials of degrees up to ``2 n - 1``.

Raises:
  ShapeError: ``n`` is not an integer (a TypeError and a ValueError).
  ArgumentError: ``n`` is not positive, or the weight has no integral (a TypeError and a ValueError).

SciPy computes it (Golub and Welsch 1969).

>>> from pullback.scipy import special
>>> print(special.{name}({example})[0].round(4))
{shown}
"""
    return describe(public, name, text, module=__name__)


Roots = Callable[..., Any]
roots_legendre: Roots = _quadrature("roots_legendre", (), "1", "[-1, 1]", "2", "[-0.5774  0.5774]")
roots_chebyt: Roots = _quadrature("roots_chebyt", (), "1 / sqrt(1 - x**2)", "[-1, 1]", "2", "[-0.7071  0.7071]")
roots_chebyu: Roots = _quadrature("roots_chebyu", (), "sqrt(1 - x**2)", "[-1, 1]", "2", "[-0.5  0.5]")
roots_chebyc: Roots = _quadrature("roots_chebyc", (), "1 / sqrt(1 - x**2 / 4)", "[-2, 2]", "2", "[-1.4142  1.4142]")
roots_chebys: Roots = _quadrature("roots_chebys", (), "sqrt(1 - x**2 / 4)", "[-2, 2]", "2", "[-1.  1.]")
roots_hermite: Roots = _quadrature("roots_hermite", (), "exp(-x**2)", "the real line", "2", "[-0.7071  0.7071]")
roots_hermitenorm: Roots = _quadrature("roots_hermitenorm", (), "exp(-x**2 / 2)", "the real line", "2", "[-1.  1.]")
roots_laguerre: Roots = _quadrature("roots_laguerre", (), "exp(-x)", "[0, inf]", "2", "[0.5858 3.4142]")
roots_genlaguerre: Roots = _quadrature(
    "roots_genlaguerre", ("alpha",), "x**alpha exp(-x)", "[0, inf]", "2, 1.0", "[1.2679 4.7321]"
)
roots_gegenbauer: Roots = _quadrature(
    "roots_gegenbauer", ("alpha",), "(1 - x**2)**(alpha - 1/2)", "[-1, 1]", "2, 1.5", "[-0.4472  0.4472]"
)
roots_jacobi: Roots = _quadrature(
    "roots_jacobi", ("alpha", "beta"), "(1 - x)**alpha (1 + x)**beta", "[-1, 1]", "2, 1.0, 0.0", "[-0.6899  0.2899]"
)
roots_sh_legendre: Roots = _quadrature("roots_sh_legendre", (), "1", "[0, 1]", "2", "[0.2113 0.7887]")
roots_sh_chebyt: Roots = _quadrature("roots_sh_chebyt", (), "1 / sqrt(x - x**2)", "[0, 1]", "2", "[0.1464 0.8536]")
roots_sh_chebyu: Roots = _quadrature("roots_sh_chebyu", (), "sqrt(x - x**2)", "[0, 1]", "2", "[0.25 0.75]")
roots_sh_jacobi: Roots = _quadrature(
    "roots_sh_jacobi", ("p1", "q1"), "(1 - x)**(p1 - q1) x**(q1 - 1)", "[0, 1]", "2, 2.0, 1.0", "[0.1551 0.6449]"
)

__all__ = [name for name in globals() if name.startswith(("eval_", "roots_"))]
