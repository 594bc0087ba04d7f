"""Elementwise functions: values against NumPy, dtypes against JAX's, derivatives at the points that are not smooth."""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import grad, jit, jvp, lax, make_jaxpr, vmap
from pullback.core.config import enable_x64
from pullback.core.errors import DtypeError, OperandError, ShapeError
from pullback.numpy import interpolation

INF, NAN = np.inf, np.nan
UGLY = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.0, -7.0, 100.0, 1e-30, 1e30, INF, -INF, NAN]
VALUES = {
    "bool": np.array([True, False]),
    "int8": np.array([0, 1, -1, 5, -127, 127], np.int8),
    "uint8": np.array([0, 1, 5, 255], np.uint8),
    "int32": np.array([0, 1, -1, 7, -7, 2**31 - 1, -(2**31)], np.int32),
    "uint32": np.array([0, 1, 7, 2**32 - 1], np.uint32),
    "float16": np.array([0.0, -0.0, 1.0, -1.5, 2.5, 100.0, INF, NAN], np.float16),
    "bfloat16": np.array([0.0, -0.0, 1.0, -1.5, 2.5, INF, NAN], ml_dtypes.bfloat16),
    "float32": np.array(UGLY, np.float32),
    "complex64": np.array([0.5, 1, -1, 1j, -1j, 1 + 2j, -3 - 0.5j], np.complex64),
}
LETTERS = dict(zip(VALUES, "?bBiIehfF", strict=True)) | {"int16": "s"}

# The dtype of the result for each dtype of VALUES, recorded from JAX 0.10.2; a dot is a refusal.
UNARY = {
    "? b B i I e h f f": "abs real imag",
    "f f f f f e h f .": "fabs cbrt",
    ". b B i I e h f F": "negative sign",
    "? b B i I e h f F": "positive conj nan_to_num",
    "? ? ? ? ? ? ? ? .": "signbit isposinf isneginf",
    "f f f f f e h f F": "exp expm1 log log2 log10 log1p sqrt reciprocal sin cos tan arcsin arccos arctan sinh cosh "
    "tanh arcsinh arccosh arctanh deg2rad rad2deg sinc rint",
    "i b B i I e h f F": "square",
    "? b B i I e h f .": "floor ceil trunc",
    "f f f f f e h f f": "angle",
    "? ? ? ? ? ? ? ? ?": "isfinite isinf isnan isreal iscomplex logical_not",
    "? b B i I . . . .": "invert",
}
# The same with a second operand of the same dtype, then True, 2, 1.5, 1j, an int8 and a float16 array.
BINARY = {
    "fffffehf. fffffehf. fffffehf. fffffehf. ......... fffffehf. eeeeeeff.": "hypot heaviside copysign",
    "?bBiIehfF ?bBiIehfF ibBiIehfF fffffehfF FFFFFFFFF bbsiiehfF eeeeeeffF": "add multiply maximum minimum fmax fmin",
    ".bBiIehfF .bBiIehfF ibBiIehfF fffffehfF FFFFFFFFF bbsiiehfF eeeeeeffF": "subtract",
    "fffffehfF fffffehfF fffffehfF fffffehfF FFFFFFFFF fffffehfF eeeeeeffF": "true_divide float_power logaddexp "
    "logaddexp2",
    "ibBiIehf. ibBiIehf. ibBiIehf. fffffehf. ......... bbsiiehf. eeeeeeff.": "floor_divide remainder fmod",
    "ibBiIehfF ibBiIehfF ibBiIehfF fffffehfF FFFFFFFFF bbsiiehfF eeeeeeffF": "power",
    "????????? ????????? ????????? ????????? ????????? ????????? ?????????": "equal less logical_and",
    "?bBiI.... ?bBiI.... ibBiI.... ......... ......... bbsii.... .........": "bitwise_and bitwise_or bitwise_xor",
    "ibBiI.... ibBiI.... ibBiI.... ......... ......... bbsii.... .........": "left_shift right_shift",
    ".bBiI.... .bBiI.... ibBiI.... ......... ......... bbsii.... .........": "gcd lcm",
}
FUNCTIONS_1 = [name for names in UNARY.values() for name in names.split()] + ["exp2", "modf", "frexp"]
FUNCTIONS_2 = [name for names in BINARY.values() for name in names.split()]
FUNCTIONS_2 += [
    "arctan2",
    "divmod",
    "nextafter",
    "not_equal",
    "less_equal",
    "greater",
    "greater_equal",
    "logical_or",
    "logical_xor",
]


def letter(function: Any, *operands: Any) -> str:
    try:
        result = function(*operands)
        return LETTERS[(result[0] if isinstance(result, tuple) else result).dtype.name]
    except TypeError:
        return "."


@pytest.mark.parametrize(("row", "names"), UNARY.items())
def test_dtypes_of_unary_functions(row: str, names: str) -> None:
    for name in names.split():
        assert " ".join(letter(getattr(pnp, name), pnp.ones(2, d)) for d in VALUES) == row, name


@pytest.mark.parametrize(("rows", "names"), BINARY.items())
def test_dtypes_of_binary_functions(rows: str, names: str) -> None:
    others = [None, True, 2, 1.5, 1j, pnp.ones(2, "int8"), pnp.ones(2, "float16")]
    for name in names.split():
        function = getattr(pnp, name)
        ones = [pnp.ones(2, d) for d in VALUES]
        found = ["".join(letter(function, x, x if y is None else y) for x in ones) for y in others]
        assert " ".join(found) == rows, name


def wide(x: Any) -> np.ndarray:
    return np.asarray(x).astype(np.complex128 if np.iscomplexobj(x) else np.float64)


def agree(name: str, got: Any, expected: Any) -> None:
    """Equal up to the accuracy of the dtype; NaN and infinities in the same places."""
    got = np.asarray(got)
    if got.dtype.kind not in "fcV":
        np.testing.assert_array_equal(got, np.asarray(expected), err_msg=name)
        return
    eps = float(pnp.finfo(got.dtype).eps)
    with np.errstate(all="ignore"):
        expected = np.asarray(expected).astype(got.dtype)
    absolute = eps if name.startswith("sinc") else 1e-37  # sinc of an integer is a rounding error in sin(pi x)
    np.testing.assert_allclose(wide(got), wide(expected), rtol=16 * eps, atol=absolute, err_msg=name)


def numpy_value(name: str, *operands: Any) -> Any:
    """NumPy's result, in twice the precision where there is one; None where NumPy has no such function."""
    wider = {"f": np.float64, "c": np.complex128}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if name == "nan_to_num":  # which depends on the width
                return np.nan_to_num(*operands)
            return getattr(np, name)(*(x.astype(wider.get(np.asarray(x).dtype.kind, x.dtype)) for x in operands))
        except TypeError:
            return None


# Where we do as JAX does and NumPy otherwise: integers to floats of half the width, division of integers by zero, ...
UNLIKE_NUMPY = {
    ("sign", "complex64"), ("angle", "bool"), ("floor", "bool"), ("ceil", "bool"), ("trunc", "bool"),
    ("square", "bool"), ("reciprocal", "int8"), ("reciprocal", "int32"), ("reciprocal", "uint8"),
    ("reciprocal", "uint32"), ("reciprocal", "bool"), ("sinc", "complex64"), ("logical_not", "complex64"),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS_1)
def test_values_of_unary_functions(name: str) -> None:
    for dtype in ("bool", "int8", "uint8", "int32", "float16", "float32", "complex64"):
        if (name, dtype) in UNLIKE_NUMPY:
            continue
        x = VALUES[dtype]
        floats = np.issubdtype(x.dtype, np.inexact)
        operand = x if floats or letter(getattr(pnp, name), x[:1]) != "f" else x.astype(np.float32)
        if name in ("sin", "cos", "tan") and floats:
            operand = operand[np.abs(operand) < 1e3]  # further on NumPy's float32 is not float64 rounded
        expected = numpy_value(name, operand)
        if name == "sinc" and expected is not None:
            expected = np.where(np.isinf(operand), 0, expected)  # the limit, as in JAX
        try:
            got = getattr(pnp, name)(operand)
        except TypeError:
            continue
        if expected is not None:
            for g, e in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, expected)), strict=True):
                agree(f"{name} {dtype}", g, e)


# Pairs of a function and the kind of its operands where we do as the array API standard does, and NumPy otherwise:
# quotients of infinities. tests/numpy/test_array_api.py has them.
FINITE_ONLY = {("floor_divide", "f"), ("divmod", "f")}


@pytest.mark.parametrize("name", FUNCTIONS_2)
def test_values_of_binary_functions(name: str) -> None:
    for dtype in ("int8", "uint8", "int32", "float16", "float32"):
        x, y = VALUES[dtype][:, None], VALUES[dtype][None]
        if np.issubdtype(x.dtype, np.integer):
            if name in ("power", "left_shift", "right_shift"):
                y = y[(y >= 0) & (y < 8)]
            if name in ("floor_divide", "remainder", "fmod", "divmod"):
                y = y[y != 0]
            if letter(getattr(pnp, name), x, y) == "f":
                x, y = x.astype(np.float32), y.astype(np.float32)
        if (name, x.dtype.kind) in FINITE_ONLY:
            x, y = x[np.isfinite(x[:, 0])], y[:, np.isfinite(y[0])]
        same_width = name in ("nextafter",) or np.issubdtype(x.dtype, np.integer)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = getattr(np, name)(x, y) if same_width else numpy_value(name, x, y)
            except TypeError:
                expected = None
        try:
            got = getattr(pnp, name)(x, y)
        except TypeError:
            continue
        if expected is not None:
            for g, e in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, expected)), strict=True):
                agree(f"{name} {dtype}", g, e)


def test_integers_divided_by_zero() -> None:
    i = pnp.array([-1, 0, 1])
    np.testing.assert_array_equal(i // 0, [-2, -1, -2])
    np.testing.assert_array_equal(i % 0, [0, 0, 0])
    assert [v.tolist() for v in divmod(i, 0)] == [[-2, -1, -2], [0, 0, 0]]
    np.testing.assert_array_equal(pnp.array(3, "uint8") // pnp.array(0, "uint8"), 255)
    np.testing.assert_array_equal(pnp.array([1.0, -0.0, NAN]) // 0, [INF, NAN, NAN])


def test_a_static_integer_exponent_is_taken_by_multiplication() -> None:
    assert "integer_pow[y=3]" in str(make_jaxpr(lambda x: x**3)(2.0))
    assert "pow a 2.0" in str(make_jaxpr(lambda x: x**2.0)(2.0))
    np.testing.assert_array_equal(pnp.array([-2, 3]) ** 3, [-8, 27])
    np.testing.assert_array_equal(2 ** pnp.array([0, 5, -1]), [1, 32, 0])
    np.testing.assert_allclose(pnp.array([2.0, -2.0]) ** -3, [0.125, -0.125])
    with pytest.raises(DtypeError, match=r"integers cannot be raised to negative powers: got i32\[2\] and -1"):
        pnp.array([1, 2]) ** -1


# Weak types ---------------------------------------------------------------------------------------------------------


def test_python_numbers_are_weak() -> None:
    half = pnp.ones(2, "float16")
    assert (half * 2.5).dtype == np.float16
    assert (half * pnp.sin(1.0)).dtype == np.float16
    assert pnp.exp(1).weak_type
    assert not pnp.exp(np.float32(1)).weak_type
    assert (pnp.arange(2) + 1.5).dtype == np.float32
    assert ((pnp.arange(2) + 1.5) * half).dtype == np.float16
    assert (pnp.array([True]) + 1).weak_type
    assert pnp.where(pnp.array([True]), half[:1], 3.5).dtype == np.float16


def test_an_integer_out_of_range_wraps() -> None:
    u = pnp.arange(3, dtype="uint8")
    np.testing.assert_array_equal(u + -1, [255, 0, 1])
    np.testing.assert_array_equal(300 + u, [44, 45, 46])
    np.testing.assert_array_equal(pnp.true_divide(u, -1), [0.0, -1.0, -2.0])
    with pytest.raises(OverflowError, match="too large for int32"):
        pnp.arange(3) + 2**40


# Derivatives --------------------------------------------------------------------------------------------------------


def nth(function: Any, n: int) -> Any:
    for _ in range(n):
        function = grad(function)
    return function


PI = np.pi
POINTS = {
    ("abs", 0.0): (0.0, 0.0),
    ("abs", -2.0): (-1.0, 0.0),
    ("sqrt", 0.0): (INF,),
    ("sign", 0.0): (0.0, 0.0),
    ("cbrt", -8.0): (1 / 12, 1 / 144),
    ("sinc", 0.0): (0.0, -(PI**2) / 3, 0.0, PI**4 / 5),
    ("sinc", 0.3): (-0.90202813, -2.45848529),
    ("sinc", 1.0): (-1.0, 2.0),
    ("log1p", 0.0): (1.0, -1.0, 2.0),
    ("arcsin", 1.0): (INF,),
    ("arctan", INF): (0.0,),
    ("tanh", 100.0): (0.0, -0.0),
    ("square", 0.0): (0.0, 2.0, 0.0),
    ("reciprocal", 2.0): (-0.25, 0.25),
    ("log2", 3.0): (1 / (3 * np.log(2)),),
    ("exp2", 2.0): (4 * np.log(2), 4 * np.log(2) ** 2),
    ("deg2rad", 3.0): (PI / 180, 0.0),
    ("floor", 0.3): (0.0,),
    ("round", 2.5): (0.0,),
    ("nan_to_num", NAN): (0.0,),
    ("nan_to_num", 1.0): (1.0,),
    ("angle", -1.0): (0.0,),
}


@pytest.mark.parametrize(("name", "x"), POINTS)
def test_derivatives_of_unary_functions(name: str, x: float) -> None:
    for n, expected in enumerate(POINTS[name, x], 1):
        np.testing.assert_allclose(nth(getattr(pnp, name), n)(x), expected, rtol=2e-5, atol=1e-5, err_msg=f"order {n}")
    tangent = jvp(getattr(pnp, name), (x,), (1.0,))[1]
    np.testing.assert_allclose(tangent, POINTS[name, x][0], rtol=1e-5, atol=1e-6)


PAIRS = {
    ("hypot", 0.0, 0.0): (0.0, 0.0),
    ("hypot", 3.0, 4.0): (0.6, 0.8),
    ("hypot", INF, 1.0): (NAN, 0.0),
    ("hypot", 1e30, 1e30): (0.5**0.5, 0.5**0.5),
    ("arctan2", 0.0, -1.0): (-1.0, 0.0),
    ("arctan2", 1.0, 2.0): (0.4, -0.2),
    ("maximum", 1.0, 1.0): (0.5, 0.5),
    ("maximum", 2.0, 1.0): (1.0, 0.0),
    ("minimum", 1.0, 1.0): (0.5, 0.5),
    ("fmax", NAN, 1.0): (0.0, 1.0),
    ("logaddexp", 0.0, 0.0): (0.5, 0.5),
    ("logaddexp", INF, INF): (0.5, 0.5),
    ("logaddexp", -INF, -INF): (0.5, 0.5),
    ("logaddexp", INF, 1.0): (1.0, 0.0),
    ("logaddexp", 1000.0, 0.0): (1.0, 0.0),
    ("logaddexp", NAN, 0.0): (NAN, NAN),
    ("logaddexp2", 0.0, 0.0): (0.5, 0.5),
    ("power", 0.0, 0.0): (0.0, 0.0),
    ("power", 0.0, 1.0): (1.0, 0.0),
    ("power", 0.0, 2.0): (0.0, 0.0),
    ("power", 0.0, 0.5): (INF, 0.0),
    ("power", -2.0, 2.0): (-4.0, NAN),
    ("remainder", 5.5, -2.0): (1.0, 3.0),
    ("fmod", -5.5, 2.0): (1.0, 2.0),
    ("floor_divide", 5.5, 2.0): (0.0, 0.0),
    ("copysign", 2.0, -1.0): (-1.0, 0.0),
    ("copysign", 0.0, -1.0): (-1.0, 0.0),
    ("heaviside", 0.0, 0.5): (0.0, 1.0),
    ("true_divide", 1.0, 0.0): (INF, -INF),
}


@pytest.mark.parametrize(("name", "x", "y"), PAIRS)
def test_derivatives_of_binary_functions(name: str, x: float, y: float) -> None:
    got = grad(getattr(pnp, name), (0, 1))(x, y)
    np.testing.assert_allclose(got, PAIRS[name, x, y], rtol=1e-5, atol=1e-6)


def test_second_derivatives_of_binary_functions() -> None:
    by_x = nth(lambda x: pnp.logaddexp(x, 0.0), 2)
    np.testing.assert_allclose([by_x(0.0), by_x(1.0)], [0.25, 0.19661193], rtol=1e-6)
    np.testing.assert_allclose(nth(lambda x: pnp.power(x, 2.0), 2)(0.0), 2.0)
    np.testing.assert_allclose(grad(grad(pnp.power, 0), 1)(0.0, 2.0), 0.0)


def test_a_python_number_beside_a_narrow_operand_does_not_widen_its_derivative() -> None:
    x = np.float16(1.5)
    for name in ["power", "arctan2", "hypot", "logaddexp", "maximum", "true_divide", "multiply", "remainder", "add"]:
        function = getattr(pnp, name)
        assert grad(grad(function))(x, 2.5).dtype == np.float16, name
        assert grad(grad(function, 1), 1)(2.5, x).dtype == np.float16, name


def test_where_gives_no_derivative_to_what_is_not_chosen() -> None:
    safe = grad(lambda x: pnp.where(x > 0, pnp.log(pnp.where(x > 0, x, 1.0)), 0.0))
    assert (float(safe(0.0)), float(safe(2.0))) == (0.0, 0.5)
    jacobian = pullback.jacrev(lambda x: pnp.clip(x, 0, 1))(pnp.array([-1.0, 0.5, 2.0]))
    np.testing.assert_array_equal(jacobian, np.diag([0, 1, 0]))


HOLOMORPHIC = "exp log sqrt sin cos tan sinh cosh tanh arcsinh arctan log1p square sinc log10"


@pytest.mark.parametrize("name", HOLOMORPHIC.split())
def test_holomorphic_derivatives(name: str) -> None:
    function, z, h = getattr(pnp, name), 0.3 + 0.4j, 1e-2
    difference = (function(z + h) - function(z - h) - 1j * (function(z + 1j * h) - function(z - 1j * h))) / (4 * h)
    np.testing.assert_allclose(grad(function, holomorphic=True)(z), difference, rtol=2e-3)


# Others -------------------------------------------------------------------------------------------------------------


def test_rounding_integers_and_places() -> None:
    np.testing.assert_array_equal(pnp.round(pnp.array([1250, 1350, -1250, 1251]), -2), [1200, 1400, -1200, 1300])
    np.testing.assert_allclose(pnp.round(pnp.array([2.345, -1.005, NAN]), 2), [2.34, -1.0, NAN], rtol=1e-6)
    np.testing.assert_array_equal(pnp.round(1.6 + 2.4j), 2 + 2j)
    with pytest.raises(NotImplementedError, match="the argument out is not supported"):
        pnp.round(1.0, out=np.zeros(()))  # type: ignore[arg-type]


def test_frexp_and_ldexp_are_inverse() -> None:
    x = np.array([1e-42, 1e-38, 0.3, -5.0, 3e38, 0.0, INF], np.float32)
    mantissa, exponent = pnp.frexp(x)
    np.testing.assert_array_equal(mantissa, np.frexp(x)[0])
    np.testing.assert_array_equal(exponent, np.frexp(x)[1])
    np.testing.assert_array_equal(pnp.ldexp(mantissa, exponent), x)


def test_complex_numbers_are_ordered_by_their_real_parts_first() -> None:
    z = np.array([1 + 2j, 1 + 3j, 0.5 + 9j], np.complex64)
    for name in ("less", "less_equal", "greater", "greater_equal"):
        np.testing.assert_array_equal(getattr(pnp, name)(z[:, None], z), getattr(np, name)(z[:, None], z))


def test_closeness() -> None:
    x = np.array([1.0, INF, -INF, NAN, 0.0], np.float32)
    y = np.array([1.000001, INF, INF, NAN, 1e-9], np.float32)
    for options in ({}, {"equal_nan": True}, {"rtol": 0.0}, {"atol": 0.0}):
        np.testing.assert_array_equal(pnp.isclose(x, y, **options), np.isclose(x, y, **options))
    assert pnp.allclose(x[:3:2], x[:3:2])
    assert pnp.array_equal(x, x, equal_nan=True)
    assert not pnp.array_equal(x, x)
    assert not pnp.array_equal(x, x[:2])
    assert pnp.array_equiv(pnp.ones((2, 2)), 1.0)
    assert not pnp.array_equiv(pnp.ones(2), pnp.ones(3))


def test_choice() -> None:
    x = pnp.array([0.0, 2.0, -3.0])
    np.testing.assert_array_equal(pnp.where(x, 1, 2), [2, 1, 1])
    np.testing.assert_array_equal(pnp.where(x)[0], [1, 2])
    np.testing.assert_array_equal(pnp.select([x > 1, x > -1], [x, 10 * x], 5.0), [0, 2, 5])
    np.testing.assert_array_equal(pnp.clip(x, max=0.5), [0.0, 0.5, -3.0])
    with pytest.raises(ShapeError, match="both x and y"):
        pnp.where(x, 1.0)
    with pytest.raises(DtypeError, match="boolean conditions, got f32"):
        pnp.select([x], [x])
    with pytest.raises(DtypeError, match="complex numbers have no order"):
        pnp.clip(1j, 0)


def test_interp_and_unwrap_are_numpys() -> None:
    rng = np.random.default_rng(0)
    xp, fp = np.sort(rng.normal(size=6)).astype("f"), rng.normal(size=6).astype("f")
    x = 2 * rng.normal(size=40).astype("f")
    for options in ({}, {"left": -9.0}, {"right": 7.0}, {"period": 1.3}):
        expected = np.interp(x, xp, fp, **options)
        np.testing.assert_allclose(interpolation.interp(x, xp, fp, **options), expected, atol=1e-5)
    slope = grad(lambda v: interpolation.interp(v, xp, fp))(0.5 * (xp[2] + xp[3]))
    np.testing.assert_allclose(slope, (fp[3] - fp[2]) / (xp[3] - xp[2]), rtol=1e-5)
    p = 5 * rng.normal(size=(7, 5)).astype("f")
    for options in ({}, {"axis": 0}, {"period": 2.0}, {"discont": 4.0}):
        np.testing.assert_allclose(interpolation.unwrap(p, **options), np.unwrap(p, **options), atol=1e-4)


@pytest.mark.parametrize("name", FUNCTIONS_1)
def test_unary_functions_batch_and_stage(name: str) -> None:
    x = np.array([[0.3, 0.7, 0.5]], np.float32)
    if letter(getattr(pnp, name), x) == ".":
        x = np.array([[3, 7, 5]], np.int32)
    function = getattr(pnp, name)
    expected = function(x)
    got = vmap(function, in_axes=1, out_axes=1)(x)
    for g, e in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, expected)), strict=True):
        np.testing.assert_array_equal(g, e)
    avals = make_jaxpr(function)(x).out_avals
    shown = [(v.shape, v.dtype) for v in (expected if isinstance(expected, tuple) else (expected,))]
    assert [(a.shape, a.dtype) for a in avals] == shown


@pytest.mark.parametrize("bad", ["a", None, [1.0], {}, object()])
def test_operands_that_are_no_arrays(bad: Any) -> None:
    with pytest.raises(OperandError, match="sin: expected an array or a number"):
        pnp.sin(bad)
    with pytest.raises(OperandError, match="add: expected an array or a number"):
        pnp.add(1.0, bad)


def test_shapes_that_do_not_broadcast() -> None:
    with pytest.raises(ShapeError, match=r"add got incompatible shapes for broadcasting: \(2,\), \(3,\)"):
        pnp.add(pnp.ones(2), pnp.ones(3))


@pytest.mark.parametrize(
    ("one", "other", "index"),
    [
        ((4, 3), (4,), "x[:, None]"),
        ((4,), (4, 3), "x[:, None]"),
        ((2, 3, 4), (2, 3), "x[:, :, None]"),
        ((2, 3, 4), (2,), "x[:, None, None]"),
        ((4, 3), (5,), None),
        ((4, 3), (2, 3), None),
    ],
)
def test_the_error_says_which_axes_are_missing(one: Any, other: Any, index: str | None) -> None:
    for compile_ in (lambda f: f, pullback.jit):
        with pytest.raises(ShapeError) as caught:
            compile_(pnp.multiply)(pnp.ones(one), pnp.ones(other))
        said = str(caught.value).partition("for broadcasting: ")[2]
        advice = f" Shapes are aligned at the last axis: {index} adds what the operand of shape "
        assert said == f"{one}, {other}." + (f"{advice}{min(one, other, key=len)} lacks." if index else "")


@pytest.mark.parametrize("compile_", [lambda f: f, pullback.jit], ids=["eager", "compiled"])
def test_spacing_of_every_float16(compile_: Any) -> None:
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    with warnings.catch_warnings(action="ignore"):
        expected = np.spacing(every)
    np.testing.assert_array_equal(compile_(pnp.spacing)(every), expected)


def test_the_imaginary_part_of_logaddexp_is_an_angle() -> None:
    x = np.array([1 + 4j, 1 + 4j, 1 - 4j, 0.5 + 2j, 3 + 40j])
    y = np.array([1 + 5j, -INF, -100 + 5j, 0.5 + 2.9j, 3 - 41j])
    with pullback.enable_x64():
        np.testing.assert_allclose(pnp.logaddexp(x, y), np.log(np.exp(x) + np.exp(y)), rtol=1e-13)
        slope = jvp(lambda x: pnp.logaddexp(x, y), (x,), (np.ones_like(x),))[1]
        np.testing.assert_allclose(slope, np.exp(x) / (np.exp(x) + np.exp(y)), rtol=1e-13)


def test_signed_and_unsigned_integers_of_64_bits_are_compared_by_value() -> None:
    a, b = np.array([-1, 2**62, 5, -(2**63)]), np.array([2**64 - 1, 2**62, 6, 2**63], np.uint64)
    with enable_x64():
        for name, expected in (
            ("equal", [False, True, False, False]),
            ("not_equal", [True, False, True, True]),
            ("less", [True, False, True, True]),
            ("greater_equal", [False, True, False, False]),
        ):
            np.testing.assert_array_equal(getattr(pnp, name)(a, b), expected)
            np.testing.assert_array_equal(jit(getattr(pnp, name))(a, b), expected)


def test_the_sign_of_a_zero_is_that_zero_in_lax_alone() -> None:
    x = np.float32([-0.0, 0.0])
    for wrapped in (lambda f: f, jit):
        assert np.signbit(wrapped(lax.sign)(x)).tolist() == [True, False]
        assert np.signbit(wrapped(pnp.sign)(x)).tolist() == [False, False]


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("way", [lambda f: f, jit], ids=["eager", "jit"])
def test_sinc_vanishes_at_infinity(way: Any, dtype: str) -> None:
    x = np.array([-np.inf, np.inf], dtype)
    assert way(pnp.sinc)(x).tolist() == [0, 0]
    assert way(vmap(grad(lambda x: pnp.real(pnp.sinc(x)))))(x).tolist() == [0, 0]
    assert np.isnan(way(pnp.sinc)(np.float32(np.nan)))
