"""A sample of the laws of the Python array API standard (``docs/array_api.md``); `make array-api` tests all."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.lax as plax
import pullback.numpy as pnp
from pullback.core.config import enable_x64
from pullback.core.errors import AxisError, ImmutableArrayError

INF, NAN = math.inf, math.nan
X = pnp.asarray([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]])
XP = X.__array_namespace__()

# Special values, from the pages of the functions in the standard: operands, and the result with the signs of its zeros.
UNARY: dict[str, list[tuple[Any, Any]]] = {
    "sign": [(-0.0, 0.0), (0.0, 0.0), (-2.0, -1.0), (NAN, NAN), (INF, 1.0), (complex(-0.0, -0.0), 0j), (-3j, -1j)],
    "expm1": [
        (-0.0, -0.0), (-INF, -1.0), (complex(-0.0, 0.0), 0j), (complex(0.0, -0.0), complex(0, -0.0)),
        (complex(INF, 0.0), complex(INF, 0.0)), (complex(INF, INF), complex(INF, NAN)),
        (complex(INF, -INF), complex(INF, NAN)), (complex(INF, NAN), complex(INF, NAN)),
        (complex(-INF, INF), -1 + 0j), (complex(-INF, NAN), -1 + 0j), (complex(2.0, INF), complex(NAN, NAN)),
    ],
    "tanh": [
        (-0.0, -0.0), (-INF, -1.0), (complex(INF, 2.0), 1 + 0j), (complex(INF, -2.0), complex(1, -0.0)),
        (complex(-INF, 2.0), -1 + 0j), (complex(INF, INF), 1 + 0j), (complex(INF, NAN), 1 + 0j),
        (complex(0.0, INF), complex(0, NAN)), (complex(2.0, NAN), complex(NAN, NAN)),
    ],
    "sqrt": [(-0.0, -0.0), (INF, INF), (-1.0, NAN), (complex(-INF, 1.0), complex(0, INF))],
    "log1p": [(-0.0, -0.0), (-1.0, -INF), (-2.0, NAN)],
    "ceil": [(-0.0, -0.0), (-0.5, -0.0), (INF, INF), (2**24 + 2.0, 2**24 + 2.0)],
    "floor": [(-0.0, -0.0), (-INF, -INF), (-(2**24) - 2.0, -(2**24) - 2.0)],
    "round": [(0.5, 0.0), (-0.5, -0.0), (2.5, 2.0), (INF, INF)],
    "trunc": [(-0.5, -0.0), (2.9, 2.0), (-INF, -INF)],
}  # fmt: skip
BINARY: dict[str, list[tuple[Any, Any, Any]]] = {
    "floor_divide": [
        (INF, 2.0, NAN), (INF, -2.0, NAN), (-INF, 2.0, NAN), (-INF, -2.0, NAN), (INF, INF, NAN), (NAN, 1.0, NAN),
        (2.0, INF, 0.0), (2.0, -INF, -1.0), (-2.0, INF, -1.0), (-0.0, INF, -0.0), (INF, 0.0, INF),
        (-2.0, -INF, 0.0), (-0.0, 2.0, -0.0), (-0.0, -2.0, 0.0),
        (0.0, -2.0, -0.0), (1.0, 0.0, INF), (1.0, -0.0, -INF), (-1.0, 0.0, -INF), (0.0, 0.0, NAN), (-1.0, -7.0, 0.0),
        (7.0, 2.0, 3.0), (-7.0, 2.0, -4.0), (7.0, -2.0, -4.0), (-1e-30, 1e30, -1.0),
    ],
    "remainder": [
        (0.0, -2.0, -0.0), (-0.0, 2.0, 0.0), (-0.0, -2.0, -0.0), (0.0, 2.0, 0.0), (6.0, -3.0, -0.0), (-6.0, 3.0, 0.0),
        (2.0, INF, 2.0), (2.0, -INF, -INF), (-2.0, INF, INF), (-2.0, -INF, -2.0), (INF, 2.0, NAN), (1.0, 0.0, NAN),
        (7.0, -2.0, -1.0), (-7.0, 2.0, 1.0), (-1e-30, 1e30, 1e30),
    ],
    "pow": [(1.0, NAN, 1.0), (NAN, 0.0, 1.0), (-0.0, 3.0, -0.0), (-0.0, -3.0, -INF), (0.5, -INF, INF)],
    "atan2": [(-0.0, -0.0, -math.pi), (0.0, -1.0, math.pi), (INF, -INF, 3 * math.pi / 4), (-0.0, 1.0, -0.0)],
    "copysign": [(2.0, -0.0, -2.0), (NAN, 1.0, NAN), (-0.0, 1.0, 0.0)],
    "hypot": [(INF, NAN, INF), (NAN, 1.0, NAN), (-0.0, 0.0, 0.0)],
    "logaddexp": [(NAN, 1.0, NAN), (INF, 1.0, INF)],
    "maximum": [(NAN, 1.0, NAN), (1.0, NAN, NAN)],
}  # fmt: skip


def columns(rows: list[Any]) -> tuple[np.ndarray[Any, Any], ...]:
    """The operands, and the results, as arrays of single precision."""
    arrays = [np.array(column) for column in zip(*rows, strict=True)]
    return tuple(x.astype(np.complex64 if x.dtype.kind == "c" else np.float32) for x in arrays)


CASES: list[tuple[str, tuple[np.ndarray[Any, Any], ...]]] = [
    (name, columns(rows))
    for name, rows in [
        *((name, [row for row in rows if not isinstance(row[0], complex)]) for name, rows in UNARY.items()),
        *((name, [row for row in rows if isinstance(row[0], complex)]) for name, rows in UNARY.items()),
        *BINARY.items(),
    ]
    if rows
]


def close_with_equal_signs(got: Any, expected: np.ndarray[Any, Any]) -> bool:
    """Close, with NaN in the same places and zeros of the same sign, in the parts of complex numbers too."""
    parts = [(got.real, expected.real), (got.imag, expected.imag)] if expected.dtype.kind == "c" else [(got, expected)]
    for a, b in parts:
        zeros = b == 0
        if not np.allclose(a, b, rtol=1e-6, atol=0, equal_nan=True) or (np.signbit(a) != np.signbit(b))[zeros].any():
            return False
    return True


def programs() -> list[Callable[[], list[Any]]]:
    """All special values eager, and compiled in one program."""

    def run(operands: list[list[Any]]) -> list[Any]:
        return [getattr(XP, name)(*xs) for (name, _), xs in zip(CASES, operands, strict=True)]

    operands = [[pnp.asarray(x) for x in arrays[:-1]] for _, arrays in CASES]
    return [lambda: run(operands), lambda: pullback.jit(run)(operands)]


@pytest.mark.parametrize("program", programs(), ids=["eager", "compiled"])
def test_special_values(program: Callable[[], list[Any]]) -> None:
    for (name, (*operands, expected)), result in zip(CASES, program(), strict=True):
        assert result.dtype == expected.dtype
        got = np.asarray(result)
        assert close_with_equal_signs(got, expected), f"{name}{tuple(map(list, operands))}: {got}, not {expected}"


def test_division_rounded_down_in_half_precision() -> None:
    x, y = np.meshgrid(np.array([0, 0.5, 3, 7, 100, INF, NAN]), np.array([0.5, 2, 3, INF, NAN]), indexing="ij")
    for dtype in (pnp.float16, pnp.bfloat16):
        pairs = [(pnp.asarray(s * x, dtype), pnp.asarray(t * y, dtype)) for s in (1, -1) for t in (1, -1)]
        compiled = pullback.jit(lambda pairs: [pnp.divmod(*pair) for pair in pairs])(pairs)
        for (a, b), results in zip(pairs, compiled, strict=True):
            for eager, program in zip(pnp.divmod(a, b), results, strict=True):
                assert eager.dtype == program.dtype == dtype
                assert close_with_equal_signs(np.asarray(eager, np.float32), np.asarray(program, np.float32))
            with np.errstate(all="ignore"):
                expected = np.floor_divide(np.asarray(a, np.float32), np.asarray(b, np.float32))
            assert close_with_equal_signs(np.asarray(pnp.floor_divide(a, b), np.float32), expected)


def test_derivatives_of_remainders_pass_over_their_zeros() -> None:
    x, y = pnp.asarray([6.0, -6.0, 0.0, -1.0, 5.5]), pnp.asarray([3.0, 3.0, -2.0, INF, -2.0])
    for transform in (lambda f: f, pullback.jit):
        ones = pnp.ones(5)
        by_x, by_y = (pullback.vjp(transform(pnp.remainder), x, y)[1])(ones)
        assert by_x.tolist() == [1, 1, 1, 1, 1]
        assert by_y.tolist() == [-2, 2, 0, 1, 3]
        assert not any(d.any() for d in pullback.vjp(transform(pnp.floor_divide), x, y)[1](ones))
    slope = pullback.jvp(pnp.sign, (pnp.asarray([0j, 2j]),), (pnp.asarray([1 + 2j, 1 + 1j]),))[1]
    assert slope.tolist() == [0, 0.5]


def test_the_sign_of_a_zero_in_lax_is_kept() -> None:
    assert math.copysign(1, plax.sign(-0.0)) == -1
    assert math.copysign(1, pnp.sign(-0.0)) == 1
    assert pnp.sign(pnp.asarray([-2, 0, 3])).tolist() == [-1, 0, 1]
    assert pnp.sign(pnp.asarray([0, 3], "uint8")).dtype == np.uint8


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: XP.expand_dims(X, axis=3), "expand_dims: axis 3 is out of bounds for an array of 3 axes"),
        (lambda: XP.expand_dims(X, axis=-4), "axis -4 is out of bounds"),
        (lambda: XP.sum(X, axis=2), "axis 2 is out of bounds"),
        (lambda: XP.sort(X, axis=2), "axis 2 is out of bounds"),
        (lambda: XP.flip(X, axis=-3), "axis -3 is out of bounds"),
    ],
)
def test_axes_out_of_range(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(AxisError, match=message) as caught:
        call()
    assert isinstance(caught.value, IndexError)
    assert isinstance(caught.value, ValueError)


def test_default_dtypes() -> None:
    def found() -> list[str]:
        integers = XP.asarray([1, 2])
        results = [
            XP.asarray([1.0]), integers, XP.asarray([1j]), XP.arange(3), XP.linspace(0, 1, 3), XP.sum(integers),
            XP.sum(XP.asarray([1], dtype=XP.int8)), XP.prod(XP.asarray([1], dtype=XP.uint8)), XP.argmax(integers),
            XP.argsort(integers), XP.nonzero(integers)[0], XP.cumulative_sum(XP.asarray([1], dtype=XP.int16)),
            XP.mean(XP.asarray([1.0], dtype=XP.float32)), XP.searchsorted(integers, integers),
        ]  # fmt: skip
        return [x.dtype.name for x in results]

    narrow = "float32 int32 complex64 int32 float32 int32 int32 uint32 int32 int32 int32 int32 float32 int32"
    assert found() == narrow.split()
    with enable_x64():
        wide = "float64 int64 complex128 int64 float64 int64 int64 uint64 int64 int64 int64 int64 float32 int32"
        assert found() == wide.split()


def test_functions_of_the_standard_alone() -> None:
    assert [v.tolist() for v in XP.unique_counts(XP.asarray([2, 1, 2]))] == [[1, 2], [1, 2]]
    assert [v.tolist() for v in XP.unique_inverse(XP.asarray([2, 1, 2]))] == [[1, 2], [1, 0, 1]]
    assert XP.cumulative_sum(X, axis=1, include_initial=True).tolist() == [[0, 3, 2, 4], [0, 0.5, 4.5, 2.5]]
    assert XP.cumulative_prod(XP.asarray([2, 3]), include_initial=True).tolist() == [1, 2, 6]
    assert XP.permute_dims(X, (1, 0)).tolist() == X.mT.tolist() == XP.matrix_transpose(X).tolist()
    assert XP.vecdot(X, X).tolist() == [14, 20.25]
    assert XP.take_along_axis(X, XP.argsort(X, axis=1, descending=True), axis=1).tolist() == [[3, 2, -1], [4, 0.5, -2]]
    assert XP.linalg.vector_norm(X, ord=INF, axis=1).tolist() == [3, 4]
    assert XP.linalg.matrix_norm(X).tolist() == pytest.approx(math.sqrt(34.25))
    assert XP.isdtype(X.dtype, ("real floating", XP.bool))
    assert not XP.isdtype(X.dtype, "integral")
    assert XP.can_cast(XP.int8, XP.int16)
    assert XP.result_type(XP.int8, XP.uint8) == XP.int16
    assert XP.astype(X, XP.int32).tolist() == [[3, -1, 2], [0, 4, -2]]
    assert XP.bitwise_left_shift(XP.asarray([1]), XP.asarray([3])).tolist() == [8]
    assert XP.clip(X, 0.0, 1.0).tolist() == [[1, 0, 1], [0.5, 1, 0]]
    assert XP.count_nonzero(X).tolist() == 6
    assert XP.diff(X).tolist() == [[-4, 3], [3.5, -6]]
    assert XP.asarray(X, copy=False) is X
    assert X.to_device(X.device).device == X.device


def test_arrays_are_immutable() -> None:
    with pytest.raises(ImmutableArrayError, match=r"\.at\["):
        X[0, 0] = 1.0
    x = y = XP.asarray([1.0])
    x += 1.0
    assert (x.tolist(), y.tolist()) == ([2.0], [1.0])


@pytest.mark.parametrize("name", ["__index__", "__int__", "__lshift__", "__rshift__", "to_device"])
def test_methods_have_signatures(name: str) -> None:
    assert "self" not in inspect.signature(getattr(X, name)).parameters
