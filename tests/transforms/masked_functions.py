"""Sixty and more functions of which a branch is not taken that is infinite or undefined, or has such a derivative.

``cases(library)`` makes the table for Pullback or for JAX, which have the same names. Each function takes an array to a
number. Where it is differentiated, it is equal to another, ``taken``, that has the branches only which are taken, and
whose derivatives are those that the mathematics gives. ``python -m tests.transforms.masked_functions`` records, where
JAX is installed, which of ``jvp``, ``grad``, ``hessian`` and ``vmap`` are NaN there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

RECORDED = Path(__file__).with_name("masked_functions.json")
MODES = ("jvp", "grad", "hessian", "vmap")


class Case(NamedTuple):
    """A row of the table.

    Attributes:
      name: says what the function is.
      function: of an array to a number.
      taken: the same without the branches that are not taken.
      point: where they are differentiated.
    """

    name: str
    function: Callable[[Any], Any]
    taken: Callable[[Any], Any]
    point: np.ndarray[Any, Any]


def cases(library: Any) -> list[Case]:
    """The table, for ``pullback`` or ``jax``."""
    table: list[Case] = []

    def case(name: str, function: Any, taken: Any, *point: Any) -> None:
        table.append(Case(name, function, taken, np.array(point, np.float32)))

    _elements(library, case)
    _nested(library, case)
    _vectors(library, case)
    _likelihoods(library, case)
    _data(library, case)
    _loops(library, case)
    _rules(library, case)
    return table


def _elements(library: Any, case: Any) -> None:
    """``where(test(x), function(x), 0)``, of which the last element only passes the test."""
    jnp, special = library.numpy, library.scipy.special

    def row(name: str, test: Any, function: Any, *point: float) -> None:
        case(name, lambda x: jnp.sum(jnp.where(test(x), function(x), 0.0)), lambda x: function(x[-1]), *point)

    def positive(x: Any) -> Any:
        return x > 0

    def nonzero(x: Any) -> Any:
        return x != 0

    def inner(x: Any) -> Any:
        return abs(x) < 1

    row("log(x)", positive, jnp.log, 0, 2)
    row("log2(x)", positive, jnp.log2, 0, 2)
    row("log(x), x negative", positive, jnp.log, -1, 2)
    row("sqrt(x)", positive, jnp.sqrt, 0, 2)
    row("sqrt(x), x negative", positive, jnp.sqrt, -1, 2)
    row("cbrt(x)", nonzero, jnp.cbrt, 0, 2)
    row("rsqrt(x)", positive, library.lax.rsqrt, 0, 2)
    row("x log(x)", positive, lambda x: x * jnp.log(x), 0, 2)
    row("x**x", positive, lambda x: x**x, 0, 2)
    row("x**-1.5", positive, lambda x: x**-1.5, 0, 2)
    row("1 / x", nonzero, lambda x: 1 / x, 0, 2)
    row("1 / x**2", nonzero, lambda x: 1 / x**2, 0, 2)
    row("sin(x) / x", nonzero, lambda x: jnp.sin(x) / x, 0, 2)
    row("(1 - cos(x)) / x**2", nonzero, lambda x: (1 - jnp.cos(x)) / x**2, 0, 2)
    row("expm1(x) / x", nonzero, lambda x: jnp.expm1(x) / x, 0, 2)
    row("log1p(x) / x", nonzero, lambda x: jnp.log1p(x) / x, 0, 2)
    row("exp(-1 / x**2)", nonzero, lambda x: jnp.exp(-1 / x**2), 0, 2)
    row("x**2 sin(1 / x)", nonzero, lambda x: x**2 * jnp.sin(1 / x), 0, 2)
    row("log(-log(x))", lambda x: (x > 0) & (x < 1), lambda x: jnp.log(-jnp.log(x)), 0, 1, 0.5)
    row("log(x / (1 - x))", lambda x: (x > 0) & (x < 1), lambda x: jnp.log(x / (1 - x)), 0, 1, 0.25)
    row("log(expm1(x))", positive, lambda x: jnp.log(jnp.expm1(x)), 0, 2)
    row("arcsin(x)", inner, jnp.arcsin, 1, -1, 0.5)
    row("arccos(x)", inner, jnp.arccos, 1, 2, 0.5)
    row("arctanh(x)", inner, jnp.arctanh, 1, -1, 0.5)
    row("arccosh(x)", lambda x: x > 1, jnp.arccosh, 1, 0, 2)
    row("erfinv(x)", inner, special.erfinv, 1, -1, 0.5)
    row("gammaln(x)", positive, special.gammaln, 0, 2.5)
    row("digamma(x)", positive, special.digamma, 0, 2.5)
    row("xlogy(x, x)", positive, lambda x: special.xlogy(x, x), 0, 2)


def _nested(library: Any, case: Any) -> None:
    jnp = library.numpy

    def nested(x: Any) -> Any:
        return jnp.sum(jnp.where(x > 0, jnp.where(x > 1, jnp.sqrt(x - 1), jnp.log(x)), 0.0))

    case("a where within a where", nested, lambda x: jnp.log(x[1]) + jnp.sqrt(x[2] - 1), 0, 0.5, 3)

    def selected(x: Any) -> Any:
        return jnp.sum(jnp.select([x <= 0, x < 1], [jnp.zeros_like(x), jnp.sqrt(x)], jnp.log(x)))

    case("select", selected, lambda x: jnp.sqrt(x[1]) + jnp.log(x[2]), 0, 0.5, 3)

    def outside(x: Any) -> Any:
        return jnp.sum(jnp.log(jnp.sqrt(jnp.where(x > 0, x, 0.0)) + 1))

    case("sqrt of a where", outside, lambda x: jnp.log(jnp.sqrt(x[1]) + 1), -1, 2)

    def squared(x: Any) -> Any:
        return jnp.sum(jnp.where(x > 0, x * jnp.log(x), 0.0) ** 2)

    case("(x log(x))**2", squared, lambda x: (x[1] * jnp.log(x[1])) ** 2, 0, 2)

    def product(x: Any) -> Any:
        return jnp.prod(jnp.where(x > 0, jnp.sqrt(x), 1.0))

    case("product of roots", product, lambda x: jnp.sqrt(x[1]) * jnp.sqrt(x[2]), 0, 2, 3)

    def summed(x: Any) -> Any:
        return jnp.sum(jnp.cumsum(jnp.where(x > 0, jnp.log(x), 0.0)))

    case("cumulative sum of logarithms", summed, lambda x: 2 * jnp.log(x[1]) + jnp.log(x[2]), 0, 2, 3)

    def largest(x: Any) -> Any:
        return jnp.max(jnp.where(x > 0, jnp.log(x), -5.0))

    case("maximum of logarithms", largest, lambda x: jnp.log(x[2]), 0, 2, 3)

    def broken(x: Any) -> Any:
        return jnp.where(x[0] > 0, jnp.log(x[0]) * jnp.sum(x[1:] ** 2), jnp.sum(x[1:] ** 3))

    case("one test for a sum", broken, lambda x: x[1] ** 3 + x[2] ** 3, 0, 2, 3)


def _vectors(library: Any, case: Any) -> None:
    jnp, linalg = library.numpy, library.numpy.linalg

    def norm(x: Any) -> Any:
        square = jnp.sum(x**2)
        return jnp.where(square > 0, jnp.sqrt(square), 0.0)

    case("norm at zero", norm, lambda x: 0 * jnp.sum(x), 0, 0, 0)

    def library_norm(x: Any) -> Any:
        return jnp.where(jnp.any(x != 0), linalg.norm(x), 0.0)

    case("linalg.norm at zero", library_norm, lambda x: 0 * jnp.sum(x), 0, 0, 0)

    def row_norms(x: Any) -> Any:
        square = jnp.sum(x**2, axis=1)
        return jnp.sum(jnp.where(square > 0, jnp.sqrt(square), 0.0))

    case("norms of rows", row_norms, lambda x: linalg.norm(x[1]), [0, 0], [3, 4])

    def directions(x: Any) -> Any:
        size = jnp.sqrt(jnp.sum(x**2, axis=1, keepdims=True))
        return jnp.sum(jnp.where(size > 0, x / size, 0.0) @ jnp.array([1.0, 2.0]))

    case("directions of rows", directions, lambda x: (x[1, 0] + 2 * x[1, 1]) / linalg.norm(x[1]), [0, 0], [3, 4])

    def similarity(x: Any) -> Any:
        sizes = jnp.sqrt(jnp.sum(x[0] ** 2)) * jnp.sqrt(jnp.sum(x[1] ** 2))
        return jnp.where(sizes > 0, x[0] @ x[1] / sizes, 0.0)

    case("cosine similarity with zero", similarity, lambda x: 0 * jnp.sum(x), [0, 0], [3, 4])

    def distances(x: Any) -> Any:
        square = (x[:, None] - x[None]) ** 2
        return jnp.sum(jnp.where(square > 0, jnp.sqrt(square), 0.0))

    case("distances of pairs", distances, lambda x: 2 * (x[1] - x[0]), 1, 3)

    def energy(x: Any) -> Any:
        r = abs(x[:, None] - x[None])
        return jnp.sum(jnp.where(jnp.eye(2) > 0, 0.0, 1 / r))

    case("energy of charges", energy, lambda x: 2 / (x[1] - x[0]), 1, 3)

    def lennard_jones(x: Any) -> Any:
        square = (x[:, None] - x[None]) ** 2
        return jnp.sum(jnp.where(square > 0, square**-6 - square**-3, 0.0))

    case("Lennard-Jones", lennard_jones, lambda x: 2 * ((x[1] - x[0]) ** -12 - (x[1] - x[0]) ** -6), 1, 2.5)

    def standardised(x: Any) -> Any:
        deviation = jnp.sqrt(jnp.mean((x - jnp.mean(x)) ** 2))
        return jnp.sum(jnp.where(deviation > 0, (x - jnp.mean(x)) / deviation, x) ** 2)

    case("standardised constants", standardised, lambda x: jnp.sum(x**2), 2, 2, 2)

    def mean(x: Any) -> Any:
        weights = jnp.array([[0.0, 0.0], [1.0, 3.0]])
        total = jnp.sum(weights * x**2, axis=1)
        return jnp.sum(jnp.where(total > 0, jnp.log(total), 0.0))

    case("logarithm of a weighted mean", mean, lambda x: jnp.log(x[1, 0] ** 2 + 3 * x[1, 1] ** 2), [1, 2], [3, 4])

    def angle(x: Any) -> Any:
        there = jnp.sum(x**2, axis=1) > 0
        return jnp.sum(jnp.where(there, jnp.arctan2(x[:, 0], x[:, 1]), 0.0))

    case("angles of rows", angle, lambda x: jnp.arctan2(x[1, 0], x[1, 1]), [0, 0], [3, 4])

    def determinant(x: Any) -> Any:
        d = x[:, 0, 0] * x[:, 1, 1] - x[:, 0, 1] * x[:, 1, 0]
        return jnp.sum(jnp.where(d > 0, jnp.log(d), 0.0))

    matrices = [[1, 2], [2, 4]], [[2, 1], [0, 3]]
    case(
        "logarithm of determinants", determinant,
        lambda x: jnp.log(x[1, 0, 0] * x[1, 1, 1] - x[1, 0, 1] * x[1, 1, 0]), *matrices,
    )  # fmt: skip

    def invertible(x: Any) -> Any:
        return (x[:, 0, 0] * x[:, 1, 1] - x[:, 0, 1] * x[:, 1, 0] > 0)[:, None, None]

    def inverse(x: Any) -> Any:
        return jnp.sum(jnp.where(invertible(x), linalg.inv(x), 0.0))

    case("inverses", inverse, lambda x: jnp.sum(linalg.inv(x[1])), *matrices)

    def solved(x: Any) -> Any:
        return jnp.sum(jnp.where(invertible(x), linalg.solve(x, jnp.ones((2, 2, 1))), 0.0))

    case("solutions of equations", solved, lambda x: jnp.sum(linalg.solve(x[1], jnp.ones((2, 1)))), *matrices)


def _likelihoods(library: Any, case: Any) -> None:
    jnp, nn, special = library.numpy, library.nn, library.scipy.special
    mask = np.array([[False, False, False], [True, False, True]])
    logits = [1, 2, 3], [4, 5, 4.5]

    def softmax(x: Any) -> Any:
        return jnp.sum(jnp.where(mask, nn.softmax(jnp.where(mask, x, -jnp.inf)), 0.0)[:, 0])

    case("masked softmax", softmax, lambda x: special.expit(x[1, 0] - x[1, 2]), *logits)

    def log_softmax(x: Any) -> Any:
        return jnp.sum(jnp.where(mask, nn.log_softmax(jnp.where(mask, x, -jnp.inf)), 0.0)[:, 0])

    case("masked log_softmax", log_softmax, lambda x: -jnp.logaddexp(0.0, x[1, 2] - x[1, 0]), *logits)

    def logsumexp(x: Any) -> Any:
        total = special.logsumexp(jnp.where(mask, x, -jnp.inf), axis=1)
        return jnp.sum(jnp.where(mask.any(axis=1), total, 0.0))

    case("masked logsumexp", logsumexp, lambda x: jnp.logaddexp(x[1, 0], x[1, 2]), *logits)

    def attention(x: Any) -> Any:
        weights = jnp.exp(jnp.where(mask, x, -jnp.inf))
        weights = jnp.where(mask, weights / jnp.sum(weights, axis=1, keepdims=True), 0.0)
        return jnp.sum(weights @ jnp.array([1.0, 2.0, 3.0]))

    case("attention with a row of padding", attention, lambda x: 3 - 2 * special.expit(x[1, 0] - x[1, 2]), *logits)

    def entropy(x: Any) -> Any:
        return -jnp.sum(jnp.where(x > 0, x * jnp.log(x), 0.0))

    case("entropy", entropy, lambda x: -x[1] * jnp.log(x[1]) - x[2] * jnp.log(x[2]), 0, 0.25, 0.75)

    def divergence(x: Any) -> Any:
        other = jnp.array([0.5, 0.0, 0.5])
        return jnp.sum(jnp.where((x > 0) & (other > 0), x * jnp.log(x / other), 0.0))

    case("Kullback-Leibler divergence", divergence, lambda x: x[2] * jnp.log(2 * x[2]), 0, 0.25, 0.75)

    def bernoulli(x: Any) -> Any:
        y = jnp.array([1, 0, 1])
        return jnp.sum(jnp.where(y == 1, jnp.log(x), jnp.log(1 - x)))

    case("Bernoulli", bernoulli, lambda x: jnp.log(x[0]) + jnp.log(1 - x[1]) + jnp.log(x[2]), 1, 0, 0.5)

    def poisson(x: Any) -> Any:
        k = jnp.array([0.0, 3.0])
        return jnp.sum(jnp.where(k > 0, k * jnp.log(x), 0.0) - x)

    case("Poisson", poisson, lambda x: 3 * jnp.log(x[1]) - x[0] - x[1], 0, 2)

    def gamma(x: Any) -> Any:
        return jnp.sum(jnp.where(x > 0, 1.5 * jnp.log(x) - x, -10.0))

    case("gamma distribution", gamma, lambda x: 1.5 * jnp.log(x[2]) - x[2] - 20, 0, -1, 2)

    def beta(x: Any) -> Any:
        return jnp.sum(jnp.where((x > 0) & (x < 1), jnp.log(x) + 2 * jnp.log1p(-x), -10.0))

    case("beta distribution", beta, lambda x: jnp.log(x[2]) + 2 * jnp.log1p(-x[2]) - 20, 0, 1, 0.25)

    def scaled_normal(x: Any) -> Any:
        return jnp.sum(jnp.where(x > 0, -0.5 * (2 / x) ** 2 - jnp.log(x), 0.0))

    case("normal distribution of no width", scaled_normal, lambda x: -2 / x[1] ** 2 - jnp.log(x[1]), 0, 2)

    def focal(x: Any) -> Any:
        return jnp.sum(jnp.where(x < 1, (1 - x) ** 0.5 * jnp.log(x), 0.0))

    case("focal loss", focal, lambda x: (1 - x[1]) ** 0.5 * jnp.log(x[1]), 1, 0.5)


def _data(library: Any, case: Any) -> None:
    """What is not finite is data, and no operation of the function's is to blame."""
    jnp, lax = library.numpy, library.lax
    missing = np.array([np.nan, 2.0, np.inf], np.float32)
    rows = np.array([[1, 2], [np.nan, 1], [3, 4], [np.inf, 0]], np.float32)

    def squares(x: Any) -> Any:
        return jnp.sum(jnp.where(np.isfinite(missing), (x * missing) ** 2, 0.0))

    case("products with missing data", squares, lambda x: 4 * x[1] ** 2, 1, 2, 3)

    def regression(x: Any) -> Any:
        known = np.isfinite(rows).all(axis=1)
        return jnp.sum(jnp.where(known, jnp.tanh(jnp.array(rows) @ x), 0.0))

    case(
        "regression with missing rows", regression,
        lambda x: jnp.tanh(x[0] + 2 * x[1]) + jnp.tanh(3 * x[0] + 4 * x[1]), 0.1, -0.2,
    )  # fmt: skip

    def convolved(x: Any) -> Any:
        signal = jnp.array(np.array([[[1, 2, 4, np.nan, 1, 3, 2]]], np.float32))
        out = lax.conv_general_dilated(signal, x[None, None], (1,), "VALID")[0, 0]
        return jnp.sum(jnp.where(jnp.isfinite(out), jnp.tanh(out), 0.0))

    def convolved_part(x: Any) -> Any:
        pairs = ((1, 2), (2, 4), (1, 3), (3, 2))
        return sum(jnp.tanh(a * x[0] + b * x[1]) for a, b in pairs)

    case("convolution with a gap", convolved, convolved_part, 0.1, -0.2)

    def ratio(x: Any) -> Any:
        return jnp.sum(jnp.where(np.isfinite(missing), x / missing, 0.0) ** 2)

    case("quotients by missing data", ratio, lambda x: x[1] ** 2 / 4, 1, 2, 3)


def _loops(library: Any, case: Any) -> None:
    jnp, lax = library.numpy, library.lax

    def scanned(x: Any) -> Any:
        def step(total: Any, xi: Any) -> Any:
            return total + jnp.where(xi > 0, jnp.log(xi), 0.0), None

        return lax.scan(step, 0.0, x)[0]

    case("scan of logarithms", scanned, lambda x: jnp.log(x[1]) + jnp.log(x[2]), 0, 2, 3)

    def carried(x: Any) -> Any:
        def step(carry: Any, xi: Any) -> Any:
            carry = jnp.where(xi > 0, carry * jnp.sqrt(xi), carry)
            return carry, carry

        return jnp.sum(lax.scan(step, 1.0, x)[1])

    case("scan that carries roots", carried, lambda x: jnp.sqrt(x[0]) * (2 + jnp.sqrt(x[2])), 2, 0, 3)

    def newton(x: Any) -> Any:
        def step(_: Any, y: Any) -> Any:
            return 0.5 * (y + x / y)

        return jnp.sum(jnp.where(x > 0, lax.fori_loop(0, 60, step, x), 0.0))

    case("fori_loop of Newton's steps", newton, lambda x: jnp.sqrt(x[1]), 0, 2)

    def branched(x: Any) -> Any:
        return jnp.sum(library.vmap(lambda v: lax.cond(v > 0, jnp.log, lambda v: 0.0, v))(x))

    case("vmap of cond", branched, lambda x: jnp.log(x[1]), 0, 2)

    def mapped(x: Any) -> Any:
        return jnp.sum(library.vmap(lambda v: jnp.where(v > 0, jnp.sqrt(v), 0.0))(x))

    case("vmap of a where", mapped, lambda x: jnp.sqrt(x[1]), 0, 2)

    def recurrent(x: Any) -> Any:
        def step(h: Any, xi: Any) -> Any:
            size = jnp.sqrt(jnp.sum(h**2))
            return jnp.where(size > 0, h / size, h) * xi + xi, None

        return jnp.sum(lax.scan(step, jnp.zeros(2), x)[0] * jnp.array([1.0, 2.0]))

    root = 0.5**0.5
    case("recurrence from a state of zero", recurrent, lambda x: 3 * (1 + root) * x[1], 2, 3)


def _rules(library: Any, case: Any) -> None:
    jnp = library.numpy

    @library.custom_jvp
    def by_jvp(x: Any) -> Any:
        return jnp.log(x)

    by_jvp.defjvp(lambda primals, tangents: (by_jvp(*primals), tangents[0] * (1 / primals[0])))

    @library.custom_vjp
    def by_vjp(x: Any) -> Any:
        return jnp.log(x)

    by_vjp.defvjp(lambda x: (by_vjp(x), x), lambda x, ct: (ct * (1 / x),))

    def twice(function: Any) -> Any:
        return lambda x: jnp.sum(jnp.where(x > 0, function(x), 0.0))

    def log(x: Any) -> Any:
        return jnp.log(x[1])

    case("custom_jvp", twice(by_jvp), log, 0, 2)
    case("custom_vjp", twice(by_vjp), log, 0, 2)
    case("jit within", twice(library.jit(jnp.log)), log, 0, 2)
    case(
        "checkpoint within",
        twice(library.checkpoint(lambda x: jnp.log(jnp.sin(x)))),
        lambda x: jnp.log(jnp.sin(x[1])),
        0,
        2,
    )
    case("derivative within", twice(library.vmap(library.grad(jnp.sqrt))), lambda x: 0.5 / jnp.sqrt(x[1]), 0, 2)


def derivatives(library: Any, function: Any, point: Any) -> dict[str, Callable[[], Any]]:
    """The derivatives of a function at a point: a tangent, the gradient, the Hessian, and the gradients of a batch."""
    array = library.numpy.array(point)
    return {
        "jvp": lambda: library.jvp(function, (array,), (library.numpy.ones_like(array),))[1],
        "grad": lambda: library.grad(function)(array),
        "hessian": lambda: library.hessian(function)(array),
        "vmap": lambda: library.vmap(library.grad(function))(library.numpy.stack([array, array])),
    }


def table() -> str:
    """What JAX returns, as the page ``docs/masked_zeros.md`` shows it."""
    lines = ["| function | NaN in JAX | refused by JAX |", "|---|---|---|"]
    for name, found in json.loads(RECORDED.read_text()).items():
        columns = [", ".join(mode for mode in MODES if found.get(mode) == what) for what in ("nan", "refused")]
        lines.append(f"| {name} | {' | '.join(columns)} |".replace("  |", " |"))
    return "\n".join(lines)


def main() -> None:
    """Record what JAX returns of each function: the derivatives that are NaN, and those that it refuses."""
    import jax

    recorded: dict[str, dict[str, str]] = {}
    for case in cases(jax):
        found = recorded[case.name] = {}
        for mode, compute in derivatives(jax, case.function, case.point).items():
            try:
                if np.isnan(np.asarray(compute())).any():
                    found[mode] = "nan"
            except TypeError:
                found[mode] = "refused"
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(found)}" for name, found in recorded.items())
    RECORDED.write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
