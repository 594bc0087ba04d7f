"""Numbers of two doubles: the module in C computes what NumPy does, and errors are those of the elements."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import analysis
from pullback.analysis import digits, shadows, two_doubles, two_doubles_rules
from pullback.analysis import double_double as dd
from pullback.analysis.double_double import Two
from pullback.analysis.wide import typical_error

RNG = np.random.default_rng(0)
SHAPES = [((700,), (700,)), ((30, 40), (40,)), ((30, 1), (1, 40)), ((6, 7, 8), ()), ((5, 1, 30), (5, 40, 1)), ((), ())]
ELEMENTARY = {
    "sqrt": (0.1, 5.0), "exp": (-300.0, 300.0), "expm1": (-3.0, 3.0), "log": (1e-5, 1e5), "log1p": (-0.5, 3.0),
    "sin": (-50.0, 50.0), "cos": (-50.0, 50.0), "tanh": (-30.0, 30.0), "logistic": (-40.0, 40.0),
}  # fmt: skip
in_c = pytest.mark.skipif(dd.pairs is None, reason="there is no compiler")


def twos(shape: tuple[int, ...], special: bool = False) -> Two:
    hi = np.asarray(RNG.standard_normal(shape) * np.exp(RNG.uniform(-30, 30, shape)))
    if special and hi.ndim:
        hi.reshape(-1)[:5] = [np.inf, -np.inf, np.nan, 1e307, 0.0]
    with np.errstate(all="ignore"):
        lo = np.where(np.isfinite(hi), hi, 0.0) * 2.0**-54 * RNG.uniform(-1, 1, shape)
    return Two(hi[()], np.asarray(lo)[()])


@in_c
@pytest.mark.parametrize("special", [False, True], ids=["finite", "special"])
@pytest.mark.parametrize(("first", "second"), SHAPES, ids=str)
@pytest.mark.parametrize("name", ["add", "mul", "div", "sub", "square", "neg", "absolute"])
def test_the_bits_are_those_of_numpy(name: str, first: Any, second: Any, special: bool) -> None:
    x, y = twos(first, special), twos(second, special)
    operands = [x, y] if name in ("add", "mul", "div", "sub") else [x]
    function = getattr(dd, name)
    with np.errstate(all="ignore"):
        found, expected = function(*operands), function.by_numpy(*operands)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
        assert type(a) is type(b)


@in_c
def test_operands_may_have_any_strides() -> None:
    x = twos((40, 60))
    for move in (lambda z: z.T, lambda z: z[::-1, ::2], lambda z: np.broadcast_to(z[:, :1], z.shape)):
        moved = Two(move(x.hi), move(x.lo))
        for a, b in zip(dd.mul(moved, moved), dd.mul.by_numpy(moved, moved), strict=True):
            np.testing.assert_array_equal(a, b)


@in_c
@pytest.mark.parametrize("name", ELEMENTARY)
def test_elementary_functions_are_those_of_numpy(name: str) -> None:
    function, x = getattr(dd, name), RNG.uniform(*ELEMENTARY[name], 2000)
    operand = Two(x, x * 2.0**-54 * RNG.uniform(-1, 1, x.shape))
    dd.use_tables()
    assert dd.pairs.apply(function.kernel, None, True, 0.0, *operand) is not None
    with np.errstate(all="ignore"):
        found, expected = function(operand), function.by_numpy(operand)
    difference = (found.hi - expected.hi) + (found.lo - expected.lo)
    assert np.max(np.abs(difference / expected.hi)) < 2.0**-65


@pytest.mark.parametrize("name", ELEMENTARY)
def test_special_numbers_take_the_general_way(name: str) -> None:
    x = np.array([0.5, np.inf, np.nan, 0.0, 1e-300, 5e-324])
    with np.errstate(all="ignore"):
        found, expected = getattr(dd, name)(dd.two(x)), getattr(dd, name).by_numpy(dd.two(x))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)], ids=str)
def test_sums_have_a_hundred_bits(axes: tuple[int, ...]) -> None:
    x = twos((5, 33, 7))
    found = dd.total(x, axes)
    kept = [i for i in range(3) if i not in axes]
    hi, lo = (np.transpose(y, [*kept, *axes]).reshape(-1, math.prod(x.hi.shape[i] for i in axes)) for y in x)
    for k, (a, b) in enumerate(zip(np.ravel(found.hi), np.ravel(found.lo), strict=True)):
        terms = [Fraction(p) + Fraction(q) for p, q in zip(hi[k], lo[k], strict=True)]
        error = abs(Fraction(a) + Fraction(b) - sum(terms))
        assert error <= Fraction(2) ** -98 * sum(map(abs, terms))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1, 50, 51, 700, digits.SAMPLE + 1, 3 * digits.SAMPLE])
def test_typical_errors_are_those_of_a_partition(size: int, dtype: str) -> None:
    exact = RNG.uniform(1, 2, size)
    value = (exact * (1 + 10 ** RNG.uniform(-7, -2, size))).astype(dtype)
    found = typical_error(value, exact, np.zeros(size), False)
    step = -(-size // digits.SAMPLE)
    errors = np.sort(np.abs((value - exact) / exact)[::step])
    assert found == pytest.approx(errors[len(errors) - 1 - max((len(errors) - 50) // 5, 0)], rel=1e-9)


@pytest.mark.parametrize("where", [0, 17, 9_999])
@pytest.mark.parametrize("special", [np.nan, np.inf, 0.0])
def test_special_values_of_large_arrays_are_seen(special: float, where: int) -> None:
    exact = RNG.uniform(1, 2, 10_000)
    value = exact.copy()
    value[where] = special
    assert typical_error(value, exact, None, False) is None
    if special == 0:
        exact[where] = 0.0
        assert typical_error(value, exact, None, True) == 0


EDGES = {
    "exp": [-699.0, -1e-20, 0.0, 1e-9, 699.0], "expm1": [-1e-3, -1e-17, 0.0, 1e-300, 0.0054, 0.0055],
    "log": [2e-290, 0.7071, 0.99, 1.0, 1 + 2.0**-40, 1.0001], "log1p": [-1e-300, -1e-9, 0.0, 1e-20, 1e-4],
    "sin": [-1.4e6, -1e-200, 0.0, math.pi, 355.0], "cos": [math.pi / 2, 0.0, 11.0, 1.4e6],
    "tanh": [-1e-8, 0.0, 1e-300, 100.0], "logistic": [-600.0, 0.0, 40.0], "sqrt": [0.0, 1e-300, 2.0],
}  # fmt: skip


@in_c
@pytest.mark.parametrize("name", ELEMENTARY)
def test_functions_of_doubles_are_right_to_some_bits(name: str) -> None:
    function = getattr(dd, name)
    x = np.concatenate([RNG.uniform(*ELEMENTARY[name], 3000), EDGES[name]])
    dd.use_tables()
    (found,) = dd.pairs.apply(function.kernel, None, True, 0.0, x)
    with np.errstate(all="ignore"):
        exact = function.by_numpy(dd.two(x))
    error = np.abs((found - exact.hi) - exact.lo)
    assert np.all(error <= 2.0**-50 * np.abs(exact.hi))


@in_c
@pytest.mark.parametrize("x", [701.0, -745.0, np.nan])
@pytest.mark.parametrize("name", ["exp", "expm1"])
def test_exponentials_of_doubles_that_are_left_to_numpy(name: str, x: float) -> None:
    is_left_to_numpy(name, x)


@in_c
@pytest.mark.parametrize(("name", "x"), [("log", 0.0), ("log", -1.0), ("log", 5e-324), ("sin", 2e6), ("cos", np.inf)])
def test_other_doubles_that_are_left_to_numpy(name: str, x: float) -> None:
    is_left_to_numpy(name, x)


def is_left_to_numpy(name: str, x: float) -> None:
    kernel = getattr(dd, name).kernel
    dd.use_tables()
    assert dd.pairs.apply(kernel, None, True, 0.0, np.array([0.5, x])) is None
    assert dd.pairs.apply(kernel, None, True, 0.0, np.float64(x)) is None


@in_c
@pytest.mark.parametrize("zero", ["x", "y", "neither"])
def test_a_product_is_zero_if_a_factor_is(zero: str) -> None:
    x, y = RNG.uniform(1, 2, 300), RNG.uniform(1, 2, 300)
    {"x": x, "y": y, "neither": np.empty(8)}[zero][7] = 0.0
    value = x * y
    if zero == "neither":
        value[7] = 0.0
    for operands in ((x, y), (x, np.zeros(300), y, np.zeros(300))):
        found = dd.pairs.apply(dd.mul.kernel, value, False, 2.0**-53, *operands)
        assert (found is None) == (zero == "neither")


def _report(found: analysis.Precision) -> Any:
    return [
        [np.asarray(x.elements).tolist() for x in found.results],
        [(x.line, x.operation, x.kind, x.advice) for x in found.losses],
        sorted((x.line, x.operation, x.kind) for x in found.events),
    ]


def _programs() -> list[tuple[Any, tuple[Any, ...]]]:
    x = np.linspace(0.5, 2, 60)
    return [
        (lambda x: (1 - jnp.cos(x * 1e-4)) / x, (x,)),
        (lambda x: jnp.log(1 + x * 1e-7) - x * 1e-7 + abs(-x), (x[7],)),
        (pullback.grad(lambda x: jnp.sum(jnp.tanh(x @ x[:, None]) * jnp.maximum(x, 1) / jnp.sqrt(x))), (x,)),
        (lambda x: jnp.exp(1000 * x) + jnp.where(x > 1, x, 0.0), (x,)),
    ]


@in_c
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("which", range(4))
def test_reports_are_the_same_without_the_module(which: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, args = _programs()[which]
    with pullback.enable_x64(dtype == "float64"):
        operands = [jnp.asarray(x, dtype) for x in args]
        found = analysis.precision(function)(*operands)
        monkeypatch.setattr(shadows, "pairs", None)
        monkeypatch.setattr(shadows, "kernels", {})
        monkeypatch.setattr(shadows, "_known", {})
        monkeypatch.setattr(two_doubles, "beside", {})
        for module in (dd, analysis.wide):
            monkeypatch.setattr(module, "pairs", None)
        for each in (*vars(dd).values(), *vars(two_doubles_rules).values()):
            if isinstance(each, dd.InC):
                monkeypatch.setattr(each, "kernel", None)
        expected = analysis.precision(function)(*operands)
    for a, b in zip(*(_report(x)[0] for x in (found, expected)), strict=True):
        np.testing.assert_allclose(a, b, atol=0.02)
    assert _report(found)[1:] == _report(expected)[1:]
