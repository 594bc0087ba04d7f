"""Classical programs that lose digits, and programs that do not.

``python -m tests.analysis.precision_cases`` records the exact results with mpmath, which evaluates the same functions:
``m`` is ``pullback.numpy`` or a namespace of functions of mpmath's numbers.

Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms; R. W. Hamming, Numerical Methods for Scientists
and Engineers, as in Herbie's benchmarks; W. Kahan, How futile are mindless assessments of roundoff; J.-M. Muller's
recurrence; S. Rump's polynomial.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pullback
from pullback import nn

RECORDED = Path(__file__).with_name("precision_cases.json")


class Case(NamedTuple):
    """A program that loses digits: its function, its arguments, and what the report has to say."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kind: str
    advice: str = ""
    exact: Callable[..., Any] | None = None
    dtype: str = "float32"


CASES: list[Case] = []


def case(
    *args: Any,
    kind: str = "cancellation",
    advice: str = "",
    exact: Callable[..., Any] | None = None,
    dtype: str = "float32",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append(Case(function.__name__, function, args, kind, advice, exact, dtype))
        return function

    return add


@case(1e-4, advice="expm1")
def exp_minus_one(m: Any, x: Any) -> Any:
    y = m.exp(x)
    return y - 1  # lost


@case(1e-5, kind="condition", advice="log1p")
def log_of_one_plus(m: Any, x: Any) -> Any:
    y = 1 + x
    return m.log(y)  # lost


@case(1e-3, advice="sin(x / 2)")
def one_minus_cosine(m: Any, x: Any) -> Any:
    y = 1 - m.cos(x)  # lost
    return y / (x * x)


@case(1e5, advice="sqrt(x) + sqrt(y)")
def difference_of_roots(m: Any, x: Any) -> Any:
    a, b = m.sqrt(x + 1), m.sqrt(x)
    return a - b  # lost


@case(1e4, advice="(a * y - b * x) / (x * y)")
def difference_of_reciprocals(m: Any, x: Any) -> Any:
    a = 1 / (x + 1)
    return a - 1 / x  # lost


@case(1.0, 1e-4, advice="cos((x + y) / 2)")
def difference_of_sines(m: Any, x: Any, e: Any) -> Any:
    a = m.sin(x + e)
    return (a - m.sin(x)) * 2  # lost


@case(1.0, 1e-4, advice="sin(x - y)")
def difference_of_tangents(m: Any, x: Any, e: Any) -> Any:
    a = m.tan(x + e)
    return a - m.tan(x)  # lost


@case(1.0, 1e-4, advice="sin((x - y) / 2)")
def difference_of_cosines(m: Any, x: Any, e: Any) -> Any:
    a = m.cos(x + e)
    return a - m.cos(x)  # lost


@case(1e4, advice="arctan2")
def difference_of_angles(m: Any, n: Any) -> Any:
    a = m.arctan(n + 1)
    return a - m.arctan(n)  # lost


@case(1e5, advice="log1p((x - y) / y)")
def difference_of_logarithms(m: Any, n: Any) -> Any:
    a = m.log(n + 1)
    return a - m.log(n)  # lost


@case(1e5, advice="cbrt(x)**2")
def difference_of_cube_roots(m: Any, x: Any) -> Any:
    a = m.cbrt(x + 1)
    return a - m.cbrt(x)  # lost


@case(1e-2)
def second_difference_of_exp(m: Any, x: Any) -> Any:
    up, down = m.exp(x), m.exp(-x)
    middle = up - 2
    return middle + down  # lost


@case(1e-4, advice="expm1")
def relative_exponential(m: Any, x: Any) -> Any:
    y = m.exp(x) - 1  # lost
    return y / x


@case(1.0, 1000.0, 1.0, advice="c / q")
def quadratic_root(m: Any, a: Any, b: Any, c: Any) -> Any:
    root = m.sqrt(b * b - 4 * a * c)
    top = -b + root  # lost
    return top / (2 * a)


@case(1.0, -1000.0, 1.0, advice="c / (a * r)")
def other_quadratic_root(m: Any, a: Any, b: Any, c: Any) -> Any:
    root = m.sqrt(b * b - 4 * a * c)
    top = -b - root  # lost
    return top / (2 * a)


@case(1e-2, advice="series")
def x_minus_sine(m: Any, x: Any) -> Any:
    y = m.sin(x)
    return x - y  # lost


@case(1e-2)
def ratio_of_small_differences(m: Any, x: Any) -> Any:
    a = x - m.sin(x)  # lost
    b = x - m.tan(x)
    return a / b


@case([10000.0, 10001.0, 10002.5, 9999.0], advice="jnp.var")
def variance_by_two_sums(m: Any, x: Any) -> Any:
    squares = m.mean(x * x)
    mean = m.mean(x)
    return squares - mean * mean  # lost


@case([1000.0, 1001.0, 1002.5, 999.0], advice="jnp.var")
def deviation_by_two_sums(m: Any, x: Any) -> Any:
    squares = m.mean(x**2)
    variance = squares - m.mean(x) ** 2  # lost
    return m.sqrt(variance)


@case(4097.0, 4096.0, 4098.0, 4097.0, advice="a * b - c * d")
def small_determinant(m: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    diagonal = a * d
    return diagonal - b * c  # lost


@case([100.0, 101.0, 99.5], kind="overflow", advice="nn.softmax")
def softmax(m: Any, x: Any) -> Any:
    e = m.exp(x)  # lost
    return e / m.sum(e)


@case([100.0, 101.0], kind="overflow", advice="logsumexp")
def log_of_sum_of_exponentials(m: Any, x: Any) -> Any:
    e = m.exp(x)  # lost
    return m.log(m.sum(e))


@case([-200.0, -201.0], kind="underflow", advice="logsumexp")
def log_of_sum_of_small_exponentials(m: Any, x: Any) -> Any:
    e = m.exp(x)  # lost
    return m.log(m.sum(e))


@case([-60.0, 60.0], kind="underflow", advice="softmax")
def log_of_softmax(m: Any, x: Any) -> Any:
    e = m.exp(x)
    p = e / m.sum(e)  # lost
    return m.log(p)


def _softmax_gradient(m: Any, x: Any) -> Any:
    e = m.exp(x)
    p = e / m.sum(e)
    return p - np.array([1, 0, 0])


@case([100.0, 101.0, 99.0], kind="overflow", exact=_softmax_gradient)
def gradient_of_softmax(m: Any, x: Any) -> Any:
    def loss(x: Any) -> Any:
        e = m.exp(x)  # lost
        return m.log(m.sum(e)) - x[0]

    return pullback.grad(loss)(x)


@case([1e-3] * 16, kind="underflow", advice="logarithms")
def log_of_likelihood(m: Any, p: Any) -> Any:
    product = m.prod(p)  # lost
    return m.log(product)


@case(20.0, kind="cancellation", advice="")
def log_of_complement(m: Any, x: Any) -> Any:
    p = 1 / (1 + m.exp(-x))
    q = 1 - p  # lost
    return m.log(q)


@case(3.5, advice="erfc")
def tail_of_gaussian(m: Any, x: Any) -> Any:
    p = m.erf(x)
    return 1 - p  # lost


@case(3e20, 4e20, kind="overflow", advice="hypot")
def distance(m: Any, x: Any, y: Any) -> Any:
    squares = x * x  # lost
    return m.sqrt(squares + y * y)


@case([3e-25, 4e-25], kind="underflow", advice="norm")
def norm_of_small_vector(m: Any, x: Any) -> Any:
    squares = x * x  # lost
    return m.sqrt(m.sum(squares))


@case(9.0, 4.50312, 4.50327)
def area_of_needle(m: Any, a: Any, b: Any, c: Any) -> Any:
    s = (a + b + c) / 2
    rest = s - a  # lost
    return m.sqrt(s * rest * (s - b) * (s - c))


@case(-1000.0, advice="arcsinh")
def inverse_hyperbolic_sine(m: Any, x: Any) -> Any:
    root = m.sqrt(x * x + 1)
    y = x + root  # lost
    return m.log(y)


@case(6.0, advice="sigmoid(-2 * x)")
def one_minus_tanh(m: Any, x: Any) -> Any:
    y = m.tanh(x)
    return 1 - y  # lost


@case(77617.0, 33096.0, dtype="float64")
def polynomial_of_rump(m: Any, a: Any, b: Any) -> Any:
    inner = 11 * a**2 * b**2 - b**6 - 121 * b**4 - 2
    rest = 333.75 * b**6 + a**2 * inner
    return rest + 5.5 * b**8 + a / (2 * b)  # lost


@case(4.0, 4.25, dtype="float64")
def recurrence_of_muller(m: Any, x: Any, y: Any) -> Any:
    for _ in range(20):
        x, y = y, 108 - (815 - 1500 / x) / y  # lost
    return y


@case(4096.0, 0.1, kind="rounding", advice="compensation")
def long_sum(m: Any, total: Any, x: Any) -> Any:
    for _ in range(500):
        total = total + x  # lost
    return total


@case(1e5, kind="condition")
def limit_of_e(m: Any, n: Any) -> Any:
    base = 1 + 1 / n
    return base**n  # lost


@case(1000.1, 1000.0, advice="(x - y) * (x + y)")
def difference_of_squares(m: Any, x: Any, y: Any) -> Any:
    a = x * x
    return a - y * y  # lost


@case(-1000.0, 1.0)
def real_part_of_root(m: Any, x: Any, y: Any) -> Any:
    size = m.sqrt(x * x + y * y)
    twice = size + x  # lost
    return m.sqrt(twice / 2)


@case(1.05)
def expanded_polynomial(m: Any, x: Any) -> Any:
    y = x - 7
    for c in (21, -35, 35, -21, 7, -1):
        y = y * x + c  # lost
    return y


@case(0.8, 0.80002, 1e-5, kind="condition", advice="arcsin")
def distance_on_sphere(m: Any, a: Any, b: Any, d: Any) -> Any:
    cosine = m.sin(a) * m.sin(b) + m.cos(a) * m.cos(b) * m.cos(d)
    return m.arccos(cosine)  # lost


@case(0.05, 365.0)
def interest(m: Any, i: Any, n: Any) -> Any:
    rate = i / n
    growth = (1 + rate) ** 3
    gain = growth - 1  # lost
    return gain / rate


@case(20.0, kind="underflow", advice="log(exp(x)) is x")
def log_density(m: Any, x: Any) -> Any:
    p = m.exp(-x * x / 2)  # lost
    return m.log(p)


def _half_root(m: Any, x: Any) -> Any:
    return x * 0


@case([0.0, -1.0], kind="NaN", advice="safe", exact=_half_root)
def gradient_of_where(m: Any, x: Any) -> Any:
    def f(x: Any) -> Any:
        y = m.sqrt(x)  # lost
        return m.sum(m.where(x > 0, y, 0))

    return pullback.grad(f)(x)


def _kahan(m: Any, x: Any) -> Any:
    total, rest = x, x * 0
    for _ in range(200):
        y = x - rest
        t = total + y
        rest = (t - total) - y
        total = t
    return total


def _quadratic(m: Any, b: Any) -> Any:
    q = -(b + m.sign(b) * m.sqrt(b * b - 4)) / 2
    return 1 / q


RIGHT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "expm1": (lambda m, x: m.expm1(x), (1e-4,)),
    "log1p": (lambda m, x: m.log1p(x), (1e-5,)),
    "half angle": (lambda m, x: 2 * m.sin(x / 2) ** 2, (1e-3,)),
    "product of sum and difference": (lambda m, x, y: (x - y) * (x + y), (1000.1, 1000.0)),
    "quotient of roots": (lambda m, x: 1 / (m.sqrt(x + 1) + m.sqrt(x)), (1e5,)),
    "logsumexp": (lambda m, x: nn.logsumexp(x), ([100.0, 101.0],)),
    "softmax": (lambda m, x: nn.softmax(x), ([100.0, 101.0, -50.0],)),
    "log_softmax": (lambda m, x: nn.log_softmax(x), ([-60.0, 60.0],)),
    "var": (lambda m, x: m.var(x), ([10000.0, 10001.0, 10002.5, 9999.0],)),
    "hypot": (lambda m, x, y: m.hypot(x, y), (3e20, 4e20)),
    "norm": (lambda m, x: m.linalg.norm(x), ([3e-25, 4e-25],)),
    "Kahan's sum": (_kahan, (0.1,)),
    "stable quadratic root": (_quadratic, (1000.0,)),
    "arcsinh": (lambda m, x: m.arcsinh(x), (-1000.0,)),
    "log_sigmoid": (lambda m, x: nn.log_sigmoid(-x), (20.0,)),
    "erfc": (lambda m, x: pullback.scipy.special.erfc(x), (3.5,)),
    "slogdet": (lambda m, x: m.linalg.slogdet(m.diag(x) + 0.1)[1], ([1e-20, 1e-20, 1e-20, 2.0],)),
    "gradient of cross entropy": (
        lambda m, x: pullback.grad(lambda x: -nn.log_softmax(x)[0])(x), ([100.0, 101.0, 99.0],)
    ),
    "small term": (lambda m, x: 3 + (1 - m.cos(x)), (1e-3,)),
    "safe where": (
        lambda m, x: pullback.grad(lambda x: m.sum(m.where(x > 0, m.sqrt(m.where(x > 0, x, 1)), 0)))(x), ([0.0, 4.0],)
    ),
    "gradient of a network": (
        lambda m, w: pullback.grad(lambda w: m.sum(m.tanh(m.tanh(0.1 * w @ w.T) @ w) ** 2))(w),
        (np.random.default_rng(0).normal(size=(16, 16)).tolist(),),
    ),
    "product of matrices": (lambda m, w: w @ w, (np.random.default_rng(0).normal(size=(64, 64)).tolist(),)),
}  # fmt: skip
"""Programs that are right: the advice above, and operations of networks."""


def point(each: Case) -> list[Any]:
    """The arguments of a case, in its dtype."""
    return [np.asarray(x, each.dtype)[()] for x in each.args]


def _record() -> None:
    import mpmath

    mpmath.mp.dps = 150

    class Exact:
        """Functions of arrays of mpmath's numbers."""

        sum = staticmethod(np.sum)
        prod = staticmethod(np.prod)
        mean = staticmethod(lambda x: np.sum(x) / len(x))
        arctan = staticmethod(np.vectorize(mpmath.atan, otypes=[object]))
        arccos = staticmethod(np.vectorize(mpmath.acos, otypes=[object]))
        where = staticmethod(np.where)

        def __getattr__(self, name: str) -> Any:
            return np.vectorize(getattr(mpmath, name), otypes=[object])

    found = {}
    for each in CASES:
        args = [np.vectorize(lambda x: mpmath.mpf(float(x)), otypes=[object])(x)[()] for x in point(each)]
        out = (each.exact or each.function)(Exact(), *args)
        found[each.name] = [mpmath.nstr(x, 30) for x in np.ravel(np.asarray(out, object))]
    RECORDED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _record()
