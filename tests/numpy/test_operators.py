"""Python's operators on concrete and traced arrays, and NumPy's methods."""

from __future__ import annotations

import copy
import inspect
import itertools
import operator
import pickle
import pydoc
import subprocess
import sys
import threading
import warnings
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import enable_x64, grad, jit, lax, make_jaxpr, random, vmap
from pullback.core.array import Array
from pullback.core.errors import (
    ConcretizationTypeError,
    DtypeError,
    ImmutableArrayError,
    OperandError,
    ScalarError,
    ShapeError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)
from pullback.numpy import methods

BINARY = {
    function.__name__: function
    for function in (
        operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
        operator.matmul, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.eq,
        operator.ne, operator.lt, operator.le, operator.gt, operator.ge, divmod,
    )
}  # fmt: skip
BITS = ("and_", "or_", "xor", "lshift", "rshift")


def leaves(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize("name", BINARY)
def test_an_operator_is_numpys_for_concrete_batched_and_differentiated_operands(name: str) -> None:
    dtype = np.int32 if name in BITS else np.float32
    x, y = np.array([5, 2, 7], dtype), np.array([3, 2, 1], dtype)
    compute = BINARY[name]
    plain = lambda a, b: compute(pnp.asarray(a), b)
    for operands in ((x, y), (x, pnp.asarray(y)), (x, dtype(2)), (x, 2)):
        if name == "matmul" and np.ndim(operands[1]) == 0:
            continue
        expected = compute(x, np.asarray(operands[1], dtype))
        for got, e in zip(leaves(plain(*operands)), leaves(expected), strict=True):
            assert isinstance(got, Array)
            np.testing.assert_allclose(got, e, rtol=1e-6)
            assert got.dtype == np.asarray(e).dtype
        for got, e in zip(leaves(compute(operands[1], pnp.asarray(x))), leaves(compute(operands[1], x)), strict=True):
            np.testing.assert_allclose(got, e, rtol=1e-6)
    if name != "matmul":
        for got, e in zip(leaves(vmap(plain)(x, y)), leaves(compute(x, y)), strict=True):
            np.testing.assert_allclose(got, e, rtol=1e-6)
        if dtype is np.float32:
            total = lambda a: sum(pnp.sum(part * 1.0) for part in leaves(compute(a, y)))
            np.testing.assert_allclose(grad(total)(x).shape, x.shape)


@pytest.mark.parametrize("trace", [lambda f, x: f(x), lambda f, x: vmap(f)(x[None])[0]])
def test_unary_operators(trace: Any) -> None:
    x = pnp.array([1.5, -2.5])
    for compute, expected in ((operator.neg, [-1.5, 2.5]), (operator.pos, [1.5, -2.5]), (abs, [1.5, 2.5])):
        np.testing.assert_array_equal(trace(compute, x), expected)
    np.testing.assert_array_equal(trace(operator.invert, pnp.array([0, -1])), [-1, 0])
    rounded = trace(round, x)
    assert rounded.dtype == np.int32
    np.testing.assert_array_equal(rounded, [2, -2])
    np.testing.assert_allclose(round(pnp.array([1.26]), 1), [1.3])


def test_results_of_the_quick_way_are_those_of_the_slow_one() -> None:
    """Dtypes that NumPy would widen, integers that do not fit, booleans."""
    i, b, u = pnp.arange(3), pnp.array([True, False]), pnp.arange(3, dtype="uint8")
    assert (i / i).dtype == (i / 2).dtype == (2 / i).dtype == (i + 1.5).dtype == np.float32
    assert (i * 2).dtype == np.int32
    assert (b + b).dtype == np.bool_
    assert (b * 2).dtype == np.int32
    np.testing.assert_array_equal(u + 300, [44, 45, 46])
    np.testing.assert_array_equal(300 - u, [44, 43, 42])
    assert (pnp.float32(1) * 1j).dtype == np.complex64
    assert (2.0 * pnp.ones(2, "bfloat16")).dtype == pnp.bfloat16
    assert (pnp.float32(2) ** 2).weak_type is False
    assert (pnp.sin(1.0) * 2).weak_type
    assert not (pnp.sin(1.0) * np.float32(2)).weak_type
    np.testing.assert_array_equal(pnp.array([1j, 2]) < pnp.array([2j, 1]), [True, False])


@pytest.mark.parametrize("compute", [operator.add, operator.sub, operator.mul, operator.truediv, operator.and_])
def test_results_are_weakly_typed_where_both_operands_are(compute: Any) -> None:
    one = 1 if compute is operator.and_ else 1.0
    weak, strong = lax.add(one, one), pnp.asarray(one, pnp.int32 if compute is operator.and_ else pnp.float32)
    for wrap in (lambda f: f, jit):
        for x, y in itertools.product((weak, strong), repeat=2):
            assert wrap(compute)(x, y).weak_type == (x is weak and y is weak)


def test_complex_numbers_with_scalars_of_float64() -> None:
    """Which are Python's floats too, so that the result is Python's complex number, without a dtype."""
    with enable_x64():
        x = pnp.asarray(np.float64(2.0))
        for result, expected in ((1j * x, 2j), (1j + x, 2 + 1j), (1j - x, 1j - 2), (1j / x, 0.5j), (x * 1j, 2j)):
            assert isinstance(result, Array)
            assert result.dtype == np.complex128
            assert complex(result) == expected


def test_operators_are_silent_and_leave_numpys_settings_alone() -> None:
    big, zero = pnp.array([3e38, -1.0]), pnp.zeros(2)
    with np.errstate(all="raise"):
        results = [big * big, big / zero, zero / zero, big * 1e30, 1 / zero, big[0] * big[0], big[0] / 0, pnp.exp(big)]
        results += [-zero, big < pnp.array([np.nan, 1]), big @ big]
        assert len(results) == 11
        assert np.geterr()["over"] == "raise"
        with pytest.raises(FloatingPointError):
            np.float32(3e38) * np.float32(3e38)
    with warnings.catch_warnings(record=True) as seen, np.errstate(all="warn"):
        warnings.simplefilter("always")
        operator.mul(big, big)
        assert not seen
        np.array([3e38], np.float32) * 10
        assert len(seen) == 1


def test_operators_in_threads() -> None:
    x, results = pnp.full(100_000, 3e38), []
    work = lambda: results.append(sum(float((x * x)[0] == np.inf) for _ in range(20)))
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [20.0] * 4


# Operands that do not fit ---------------------------------------------------------------------------------------------

REFUSED = ["a", None, [1.0], (1.0,), {}, {1.0}]


@pytest.mark.parametrize("bad", REFUSED, ids=repr)
@pytest.mark.parametrize(("symbol", "compute"), [("+", operator.add), ("*", operator.mul), ("@", operator.matmul)])
def test_operands_that_are_no_arrays(symbol: str, compute: Any, bad: Any) -> None:
    x = pnp.ones(2)
    message = rf"unsupported operand for \{symbol}: an array of f32\[2\] and .* of type {type(bad).__name__}"
    with pytest.raises(OperandError, match=message):
        compute(x, bad)
    with pytest.raises(TypeError):
        compute(bad, x)
    with pytest.raises(OperandError, match="unsupported operand"):
        grad(lambda v: compute(v, bad))(1.0)


def test_comparisons_with_what_is_no_array() -> None:
    x = pnp.ones(2)
    assert (x == None) is False  # noqa: E711
    assert (x != "a") is True
    with pytest.raises(OperandError, match="unsupported operand for <"):
        operator.lt(x, "a")
    with pytest.raises(OperandError, match=r"unsupported operand for ==.*pullback.numpy.asarray"):
        operator.eq(x, [1.0])


class Other:
    """A type that knows what to do with arrays."""

    __array_ufunc__ = None

    def __radd__(self, x: Any) -> str:
        return "radd"

    def __add__(self, x: Any) -> str:
        return "add"

    def __gt__(self, x: Any) -> str:
        return "gt"


def test_other_types_get_their_turn() -> None:
    x: Any = pnp.ones(2)
    assert x + Other() == "radd"
    assert Other() + x == "add"
    assert (x < Other()) == "gt"
    with pytest.raises(TypeError):
        x * Other()


def test_errors_of_operators_are_those_of_the_functions() -> None:
    x = pnp.ones(2)
    with pytest.raises(ShapeError, match=r"add got incompatible shapes for broadcasting: \(2,\), \(3,\)"):
        x + pnp.ones(3)
    with pytest.raises(ShapeError, match=r"\(2,\) and \(3,\)"):
        x @ pnp.ones(3)
    with pytest.raises(DtypeError, match="sub takes numbers, got bool"):
        (x > 0) - (x > 0)
    with pytest.raises(DtypeError, match="not takes integers or booleans, got f32"):
        operator.invert(x)
    with pytest.raises(TypeError, match=r"unsupported operand|takes"):
        pow(x, 2, 3)
    with pytest.raises(ImmutableArrayError, match=r"x = x.at\[0\].set"):
        x[0] = 1.0
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)


# Methods --------------------------------------------------------------------------------------------------------------

METHODS: dict[str, tuple[Any, ...]] = {
    "T": (), "sum": (0,), "prod": (), "max": (1,), "min": (), "mean": (0,), "var": (), "std": (1,), "all": (),
    "any": (0,), "argmax": (), "argmin": (1,), "cumsum": (1,), "cumprod": (0,), "argsort": (),
    "dot": (np.ones(3, "f"),),
    "clip": (0.5, 1.5), "round": (), "conj": (), "conjugate": (), "copy": (), "ravel": (), "flatten": (),
    "reshape": (3, 2), "transpose": (1, 0), "swapaxes": (0, 1), "squeeze": (), "repeat": (2,), "take": (np.array([1]),),
    "nonzero": (), "tolist": (), "item": (1, 2), "tobytes": (), "astype": ("int32",), "searchsorted": (),
    "compress": ([True, False], 0), "trace": (), "diagonal": (), "real": (), "imag": (), "nbytes": (), "itemsize": (),
    "size": (), "ndim": (), "shape": (),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_numpys(name: str) -> None:
    value = np.array([[0.5, -1.0, 2.0], [3.0, 0.0, 1.0]], np.float32)
    args = METHODS[name]
    if name == "searchsorted":
        value, args = np.sort(value[0]), (np.float32(0.1),)
    got, expected = getattr(pnp.asarray(value), name), getattr(value, name)
    if callable(expected):
        got, expected = got(*args), expected(*args)
    for g, e in zip(leaves(got), leaves(expected), strict=True):
        if isinstance(e, np.floating):
            np.testing.assert_allclose(g, e, rtol=1e-6)
        else:
            np.testing.assert_array_equal(g, e)


def test_methods_of_traced_values() -> None:
    x = pnp.array([[1.0, 2.0], [3.0, 4.0]])
    function = lambda v: v.T.reshape(-1)[1] + v.sum() + v.at[0, 0].set(0.0).max()
    np.testing.assert_array_equal(grad(function)(x), [[1, 1], [2, 2]])
    np.testing.assert_array_equal(vmap(lambda row: row.mean())(x), [1.5, 3.5])
    assert [len(row) for row in x] == [2, 2]
    assert grad(lambda v: v * lax.stop_gradient(v).item())(3.0) == 3.0
    assert 4.0 in x[1]
    assert 5.0 not in x[1]


def test_python_numbers_from_arrays() -> None:
    assert (int(pnp.array(3)), float(pnp.array(1.5)), complex(pnp.array(1j))) == (3, 1.5, 1j)
    assert bool(pnp.ones((1, 1)))
    assert [1, 2, 3][pnp.array(1)] == 2
    assert f"{pnp.array(1.5):.2f} {pnp.arange(2)}" == "1.50 [0 1]"
    x = pnp.ones(2)
    with pytest.raises(ValueError, match=r"shape \(2,\) is ambiguous: use x.any\(\) or x.all\(\)"):
        bool(x)
    with pytest.raises(ValueError, match="empty array is ambiguous"):
        bool(x[:0])
    with pytest.raises(TypeError, match=r"float\(\) takes a scalar array"):
        float(x)
    with pytest.raises(TypeError, match="only a scalar integer array can be a Python index"):
        [1, 2][pnp.array(1.0)]
    for function in (len, list):
        with pytest.raises(TypeError, match="a scalar array"):
            function(pnp.array(1.0))


def test_traced_values_are_no_python_numbers() -> None:
    for convert, error in (
        (bool, TracerBoolConversionError),
        (float, ConcretizationTypeError),
        (lambda x: [1, 2][x], TracerIntegerConversionError),
        (lambda x: x.item(), ConcretizationTypeError),
        (lambda x: x.tolist(), ConcretizationTypeError),
    ):
        with pytest.raises(error, match="traced"):
            make_jaxpr(convert)(1)


def test_printing() -> None:
    assert repr(pnp.array([1, 2.5])) == "Array([1. , 2.5], dtype=float32)"
    assert repr(pnp.array(1)) == "Array(1, dtype=int32, weak_type=True)"
    assert repr(pnp.float32(1)) == "Array(1., dtype=float32)"
    assert repr(pnp.zeros((0, 3))) == "Array([], shape=(0, 3), dtype=float32)"
    assert repr(pnp.arange(2000)) == "Array([   0,    1,    2, ..., 1997, 1998, 1999], dtype=int32)"
    assert repr(pnp.eye(2)) == "Array([[1., 0.],\n       [0., 1.]], dtype=float32)"
    assert repr(pnp.arange(10.0) / 7).endswith("],\n      dtype=float32)")
    assert repr(random.key(0)) == "Array((), dtype=key<fry>) overlaying:\n[0 0]"
    assert str(pnp.array([1.0, -0.0])) == "[ 1. -0.]"


def test_copies_and_protocols() -> None:
    x = pnp.arange(3.0)
    for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(np.from_dlpack(x), x)
    assert not np.from_dlpack(x).flags.writeable or np.from_dlpack(x).base is not x._value
    assert x.__array_namespace__() is pnp
    assert x.devices() == {x.device}
    assert x.sharding == pnp.zeros(1).sharding
    assert x.is_fully_addressable
    assert x.block_until_ready() is x
    np.testing.assert_array_equal(pnp.float32(1).view("int32"), np.float32(1).view(np.int32))
    assert not np.asarray(x).flags.writeable


# What help says of methods -------------------------------------------------------------------------------------------


WITHOUT = {
    "addressable_data", "block_until_ready", "byteswap", "clone", "copy_to_host_async", "delete", "devices", "flatten",
    "is_deleted", "is_ready", "item", "on_device_size_in_bytes", "to_device", "to_numpy", "tobytes", "tolist",
    "unsafe_buffer_pointer", "view",
}  # fmt: skip
"""The methods that are no functions of ``pullback.numpy``, whose ``delete`` is another thing."""
ARRAY_METHODS = [n for n in dir(type(pnp.ones(3))) if n[0] != "_" and inspect.isroutine(getattr(type(pnp.ones(3)), n))]


def test_there_are_56_methods() -> None:
    assert len(ARRAY_METHODS) == 56
    assert {name for name in ARRAY_METHODS if not hasattr(pnp, name)} == WITHOUT - {"delete"}


@pytest.mark.parametrize("name", ARRAY_METHODS)
def test_a_method_has_the_docstring_of_its_function(name: str) -> None:
    """Of traced arrays too; ``help`` and notebooks ask the object for it."""
    seen: list[Any] = [pnp.ones(3)]
    if name != "to_numpy":  # which traced arrays have not
        pullback.jit(lambda x: seen.append(x) or x)(pnp.ones(3))
        pullback.grad(lambda x: seen.append(x) or x)(1.0)
    for x in seen:
        method = getattr(x, name)
        assert method.__name__ == name
        if name in WITHOUT:
            assert len(method.__doc__) > 20
            continue
        function = getattr(pnp, name)
        assert method.__doc__ == function.__doc__
        assert (inspect.getdoc(function) or "?") in pydoc.render_doc(method).replace("\n    ", "\n")


def test_a_docstring_is_tested_where_it_is_written() -> None:
    """And not once more at the class from which the method comes, whose module lacks the names of its example."""
    pnp.ones(3).compress([True, False, True])
    assert methods.Methods.compress.__doc__ is None


@pytest.mark.parametrize("name", sorted({*ARRAY_METHODS} - WITHOUT))
def test_a_method_has_the_signature_of_its_function(name: str) -> None:
    function, method = inspect.signature(getattr(pnp, name)), inspect.signature(getattr(pnp.ones(3), name))
    of_class = inspect.signature(getattr(pullback.Array, name))
    assert next(iter(of_class.parameters)) == "self"
    assert list(of_class.parameters.values())[1:] == list(method.parameters.values())
    ours, theirs = dict(method.parameters), dict(function.parameters)
    array = theirs.pop("a" if "a" in theirs else next(iter(theirs)))
    assert array.annotation.startswith("ArrayLike")
    if name in ("compress", "reshape", "transpose"):  # which take sizes or axes as arguments of their own
        assert ours.keys() == theirs.keys()
        return
    assert ours == theirs
    assert method.return_annotation == function.return_annotation


def test_a_method_says_its_name_in_errors() -> None:
    x: Any = pnp.ones(3)
    with pytest.raises(TypeError, match=r"Array.sum\(\) got an unexpected keyword argument 'axes'"):
        x.sum(axes=0)
    assert pickle.loads(pickle.dumps(pullback.Array.sum)) is pullback.Array.sum
    assert pickle.loads(pickle.dumps(x.sum))() == 3


def test_options_of_methods() -> None:
    x = pnp.arange(6.0)
    np.testing.assert_array_equal(x.compress(np.array([0, 1, 1]), size=3, fill_value=-1), [1, 2, -1])
    np.testing.assert_array_equal(x.reshape(2, 3, out_sharding=x.sharding), [[0, 1, 2], [3, 4, 5]])


def test_asking_is_what_imports_the_functions() -> None:
    code = (
        "import pullback.numpy as pnp, sys, inspect; x = pnp.ones(3); name = 'pullback.numpy.reductions'; "
        "before = name in sys.modules; s = str(inspect.signature(x.sum)); print(before, name in sys.modules, s)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("False True (axis: ")


def test_the_format_of_an_array_that_is_not_a_scalar() -> None:
    x = pnp.ones((2, 3))
    assert f"{x}" == str(x)
    assert f"{pnp.float32(0.5):.2f}" == f"{pnp.bfloat16(0.5):.2f}" == "0.50"
    with pytest.raises(ScalarError, match=r"the format '.2f' takes one number, got an array of shape \(2, 3\): format"):
        f"{x:.2f}"
