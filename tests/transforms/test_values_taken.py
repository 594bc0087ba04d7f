"""A derivative is right or refused, never lost: whatever takes a value out of its transformation.

Each program is differentiated in each way. What comes out is the derivative by differences of the program on plain
arrays, or an error. The second half is generated from the names of the class of arrays, so that a new method is in it.
"""

from __future__ import annotations

import array
import cmath
import copy
import ctypes
import functools
import inspect
import io
import logging
import math
import operator
import pickle
import re
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.special

import pullback
import pullback.numpy as jnp
from pullback import (
    checkpoint,
    custom_vjp,
    derivatives,
    disable_jit,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jit,
    jvp,
    lax,
    linearize,
    masked_zeros,
    new_ref,
    pure_callback,
    tree,
    value_and_grad,
    vjp,
    vmap,
)
from pullback.core.array import Array, ArrayImpl
from pullback.core.errors import ConcretizationTypeError, LostDerivativeError
from pullback.core.inspection import concrete_or_error
from pullback.core.trace import Tracer
from pullback.experimental import io_callback
from pullback.transforms.traces.batch import BatchTracer
from pullback.transforms.traces.forward import JVPTracer
from pullback.transforms.traces.laplacian import LaplacianTracer
from pullback.transforms.traces.taylor import TaylorTracer
from tests.helpers import chosen

Scalar = Callable[[Any], Any]
AT = 2.3

pytestmark = pytest.mark.usefixtures("x64")


# The ways of differentiating: each is the first derivative of a function of a number ---------------------------------


def _second(of: Callable[[Scalar], Any]) -> Callable[[Scalar], Any]:
    """The first derivative by way of a second: of ``f(a) * a`` it is ``2 f' + f'' a``, and ``f''`` is the same by grad.

    Programs whose second derivative is refused are refused by this way too.
    """
    return lambda f: (of(lambda a: f(a) * a) - grad(grad(f))(AT) * AT) / 2


def _with_masked_zeros(f: Scalar) -> Any:
    with masked_zeros():
        return grad(f)(AT)


def _without_jit(f: Scalar) -> Any:
    with disable_jit():
        return grad(jit(f))(AT)


def _within_a_rule(f: Scalar) -> Any:
    """A backward rule that is differentiated again: of the rule's own value, which is the function's."""
    g = custom_vjp(lambda a: a * 1.0)
    g.defvjp(lambda a: (a * 1.0, a), lambda a, ct: (ct * f(a),))
    return grad(grad(g))(AT)


KINDS: dict[str, Callable[[Scalar], Any]] = {
    "grad": lambda f: grad(f)(AT),
    "value_and_grad": lambda f: value_and_grad(f)(AT)[1],
    "jvp": lambda f: jvp(f, (AT,), (1.0,))[1],
    "vjp": lambda f: vjp(f, AT)[1](1.0)[0],
    "linearize": lambda f: linearize(f, AT)[1](1.0),
    "jacfwd": lambda f: jacfwd(f)(AT),
    "jacrev": lambda f: jacrev(f)(AT),
    "hessian": _second(lambda f: hessian(f)(AT)),
    "grad of grad": _second(lambda f: grad(grad(f))(AT)),
    "jvp of grad": _second(lambda f: jvp(grad(f), (AT,), (1.0,))[1]),
    "outer of two": lambda f: grad(lambda a: grad(lambda b: b * f(a))(1.0))(AT),
    "taylor": lambda f: derivatives.taylor(f, AT, 1)[1],
    "taylor within grad": lambda f: grad(lambda a: derivatives.taylor(lambda t: f(a) * t, 1.0, 1)[1])(AT),
    "derivative_tensor": lambda f: derivatives.derivative_tensor(f, jnp.asarray(AT), 1),
    "laplacian": _second(lambda f: derivatives.laplacian(f)(AT)),
    "forward_laplacian": lambda f: derivatives.forward_laplacian(f)(AT).jacobian,
    "hvp": _second(lambda f: derivatives.hvp(f, (AT,), (1.0,))),
    "sparse_jacobian": lambda f: derivatives.sparse_jacobian(lambda v: f(v[0])[None])(jnp.array([AT])).todense(),
    "sparse_hessian": _second(lambda f: derivatives.sparse_hessian(lambda v: f(v[0]))(jnp.array([AT])).todense()),
    "preaccumulate": lambda f: grad(derivatives.preaccumulate(f))(AT),
    "vmap of grad": lambda f: vmap(grad(f))(jnp.array([AT]))[0],
    "grad of vmap": lambda f: grad(lambda a: vmap(f)(a[None])[0])(AT),
    "vmap of a closure": lambda f: grad(lambda a: vmap(lambda _: f(a))(jnp.ones(2))[0])(AT),
    "jit of grad": lambda f: jit(grad(f))(AT),
    "grad of jit": lambda f: grad(jit(f))(AT),
    "checkpoint": lambda f: grad(checkpoint(f))(AT),
    "scan": lambda f: grad(lambda a: lax.scan(lambda c, _: (f(c) * 1.0, None), a, None, length=1)[0])(AT),
    "cond": lambda f: grad(lambda a: lax.cond(a > 0, f, lambda a: a, a))(AT),
    "masked zeros": _with_masked_zeros,
    "disable_jit": _without_jit,
    "a backward rule": _within_a_rule,
}  # fmt: skip
EAGER = (
    "grad", "value_and_grad", "jvp", "vjp", "linearize", "jacfwd", "jacrev", "taylor", "derivative_tensor",
    "forward_laplacian", "outer of two", "taylor within grad", "masked zeros", "disable_jit", "a backward rule",
)  # fmt: skip
"""The ways in which programs run as ordinary Python, on values that are known."""


# Programs that take the value -----------------------------------------------------------------------------------------


def _filled(write: Callable[[np.ndarray[Any, Any], Any], Any]) -> Scalar:
    def program(a: Any) -> Any:
        z = np.zeros(2)
        write(z, a)
        return jnp.sum(jnp.asarray(z))

    return program


def _by_a_global(a: Any) -> Any:
    _global[:] = [a]
    return math.exp(_global[0]) * a


_global: list[Any] = []

TAKING: dict[str, Scalar] = {
    "float": lambda a: float(a) ** 2,
    "float, times": lambda a: float(a) * a,
    "complex": lambda a: complex(a).real * 1.0,
    "item": lambda a: a.item() * 2.0,
    "item of an index": lambda a: jnp.stack([a, a]).item(1) * 2.0,
    "tolist": lambda a: jnp.stack([a, a]).tolist()[0] * 2.0,
    "math.sin": lambda a: math.sin(a) * a,
    "math.pow": lambda a: math.pow(a, 2.0),
    "math.hypot": lambda a: math.hypot(a, 1.0),
    "math.fsum": lambda a: math.fsum([a, a]),
    "math.copysign": lambda a: math.copysign(a, 1.0),
    "math.modf": lambda a: math.modf(a)[0],
    "math.frexp": lambda a: math.frexp(a)[0],
    "math.ldexp": lambda a: math.ldexp(a, 1),
    "cmath.exp": lambda a: cmath.exp(a).real,
    "cmath.phase": lambda a: cmath.phase(1j * a + 1.0),
    "NumPy's scalar": lambda a: np.float64(a) * 2.0,
    "NumPy's element": _filled(lambda z, a: operator.setitem(z, 0, a)),
    "NumPy's elements": _filled(lambda z, a: operator.setitem(z, slice(None), a)),
    "NumPy's flat": _filled(lambda z, a: operator.setitem(z.flat, 0, a)),
    "NumPy's fill": _filled(lambda z, a: z.fill(a)),
    "NumPy's put": _filled(lambda z, a: z.put(0, a)),
    "np.put": _filled(lambda z, a: np.put(z, 0, a)),
    "np.fromiter": lambda a: np.fromiter([a, a], float).sum(),
    "np.full": lambda a: np.full(2, a).sum(),
    "np.asarray": lambda a: np.asarray(a) * 2.0,
    "np.array of two": lambda a: np.array([a, a]).sum(),
    "a generator": lambda a: np.random.default_rng(0).normal(a),
    "struct.pack": lambda a: struct.unpack("d", struct.pack("d", a))[0],
    "array.array": lambda a: array.array("d", [a])[0],
    "ctypes": lambda a: ctypes.c_double(a).value,
    "quad": lambda a: scipy.integrate.quad(lambda t: t * a, 0, 1)[0] * 1.0,
    "brentq": lambda a: scipy.optimize.brentq(lambda t: t - a, 0, 5) * 1.0,
    "solve_ivp": lambda a: scipy.integrate.solve_ivp(lambda t, y: a * y, (0, 1), [1.0]).y[0, -1] * 1.0,
    "minimize": lambda a: scipy.optimize.minimize(lambda t: (t[0] - float(a)) ** 2, [0.0]).x[0],
    "bytes": lambda a: np.frombuffer(a.tobytes())[0] * 2.0,
    "pickle": lambda a: pickle.loads(pickle.dumps(a)) * 2.0,
    "DLPack": lambda a: np.from_dlpack(a) * 2.0,
    "memoryview": lambda a: memoryview(a)[()] * 2.0,
    "device_get": lambda a: pullback.device_get(a) * 2.0,
    "shards": lambda a: a.addressable_shards[0].data * 2.0,
    "addressable_data": lambda a: a.addressable_data(0) * 2.0,
    "the address": lambda a: ctypes.c_double.from_address(a.unsafe_buffer_pointer()).value,
    "concrete_or_error": lambda a: concrete_or_error(float, a) * 1.0,
    "pure_callback, closed over": lambda a: pure_callback(lambda: np.float64(float(a)), np.float64(0)) * 1.0,
    "pure_callback, bound": lambda a: (
        pure_callback(functools.partial(lambda b: np.float64(float(b)), a), np.float64(0)) * 1.0
    ),
    "pure_callback, a default": lambda a: pure_callback(lambda b=a: np.float64(float(b)), np.float64(0)) * 1.0,
    "pure_callback, an operand": lambda a: pure_callback(lambda b: b * 2.0, np.float64(0), a) * 1.0,
    "io_callback, closed over": lambda a: io_callback(lambda: np.float64(float(a)), np.float64(0)) * 1.0,
    "io_callback, an operand": lambda a: io_callback(lambda b: b * 2.0, np.float64(0), a) * 1.0,
    "a global": _by_a_global,
    "a reference": lambda a: float(new_ref(a)[...]) * a,
    "% of two": lambda a: math.fmod(a, 1.0),
}  # fmt: skip
"""Programs that cannot be differentiated as they are written, and in eager code are an error each."""


def _differences(f: Scalar, step: float = 1e-5) -> float:
    with disable_jit():
        return float(f(jnp.asarray(AT + step)) - f(jnp.asarray(AT - step))) / (2 * step)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", TAKING)
def test_a_derivative_is_right_or_refused(way: str, kind: str) -> None:
    f = TAKING[way]
    try:
        found = KINDS[kind](f)
    except Exception:
        return  # of which kind the error is, the next tests say
    np.testing.assert_allclose(np.asarray(found).reshape(()), _differences(f), rtol=1e-6)


PLAIN = (
    "float", "complex", "item", "tolist", "bytes", "shards", "concrete_or_error", "math.sin", "cmath.exp", "math.fsum",
    "array.array", "ctypes", "quad",
)  # fmt: skip


@pytest.mark.parametrize("kind", EAGER)
@pytest.mark.parametrize("way", PLAIN)
def test_the_error_is_of_the_kind_of_jax(way: str, kind: str) -> None:
    with pytest.raises(LostDerivativeError, match="would lose a derivative") as raised:
        KINDS[kind](TAKING[way])
    assert isinstance(raised.value, ConcretizationTypeError)
    assert "lax.stop_gradient(x)" in str(raised.value)


@pytest.mark.parametrize("way", ["NumPy's element", "NumPy's fill", "np.fromiter"])
def test_what_numpy_makes_of_the_error_has_it_as_its_cause(way: str) -> None:
    with pytest.raises(ValueError, match="setting an array element") as raised:
        grad(TAKING[way])(AT)
    assert any(isinstance(e, LostDerivativeError) for e in _chain(raised.value))


def test_the_error_names_the_way_the_line_and_the_cure() -> None:
    def f(a: Any) -> Any:
        return math.sin(a) * a  # this line

    def g(a: Any) -> Any:
        z = np.zeros(2)
        z[0] = a
        return z.sum()

    with pytest.raises(LostDerivativeError) as raised:
        grad(f)(AT)
    line = f.__code__.co_firstlineno + 1
    assert f"float() would lose a derivative, in `math.sin(a)` at {__file__}:{line} (f)" in str(raised.value)
    assert "of type f64[], whose derivative is being taken by differentiation" in str(raised.value)
    assert "jnp.sin instead of math.sin" in str(raised.value)
    assert "float(lax.stop_gradient(x))" in str(raised.value)
    with pytest.raises(ValueError, match="setting an array element") as raised:
        grad(g)(AT)
    assert "in `z[0] = ...` at" in str(raised.value.__cause__)
    with pytest.raises(LostDerivativeError, match=r"item\(\) would lose a derivative, in `a.item\(\)` at"):
        grad(lambda a: a.item())(AT)
    without_text: dict[str, Any] = {"float": float}
    exec(compile("def f(a):\n    return float(a)", "<nowhere>", "exec"), without_text)
    with pytest.raises(LostDerivativeError, match=r"derivative, at <nowhere>:2 \(f\): it takes"):
        grad(without_text["f"])(AT)


# What goes on ---------------------------------------------------------------------------------------------------------

GOING_ON: dict[str, tuple[Scalar, float]] = {
    "a stopped derivative": (lambda a: float(lax.stop_gradient(a)) * a, AT),
    "complex of a stopped one": (lambda a: complex(lax.stop_gradient(a)).real * a, AT),
    "item of a stopped one": (lambda a: lax.stop_gradient(a).item() * a, AT),
    "math of a stopped one": (lambda a: math.sin(lax.stop_gradient(a)) * a, math.sin(AT)),
    "NumPy of a stopped one": (lambda a: np.asarray(lax.stop_gradient(a)) * a, AT),
    "an element of a stopped one": (lambda a: TAKING["NumPy's element"](lax.stop_gradient(a)) * a, AT),
    "int": (lambda a: int(a) * a, 2.0),
    "round": (lambda a: round(a) * a, 2.0),
    "round to a digit": (lambda a: round(a, 1) * a, 2.3),
    "math.floor": (lambda a: math.floor(a) * a, 2.0),
    "math.ceil": (lambda a: math.ceil(a) * a, 3.0),
    "math.trunc": (lambda a: math.trunc(a) * a, 2.0),
    "range": (lambda a: sum(range(int(a) + 1)) * a, 3.0),
    "if": (lambda a: a * 2.0 if a > 1 else a, 2.0),
    "while": (lambda a: _doubled(a), 8.0),
    "bool": (lambda a: a * 2.0 if a else a, 2.0),
    "and, or, not": (lambda a: (a > 5 and a) or (not a < 1 and a * 3.0), 3.0),
    "min, max": (lambda a: max(a, 1.0) * min(a, 7.0), 2 * AT),
    "sorted": (lambda a: sorted([a * 3.0, a, 1.0])[-1], 3.0),
    "in": (lambda a: a * 2.0 if AT in jnp.stack([a, a]) else a, 2.0),
    "an index": (lambda a: [a, a * 2.0, a * 3.0][int(a)], 3.0),
    "an integer of it": (lambda a: jnp.ones(3)[a.astype(int)] * a, 1.0),
    "NumPy's functions": (lambda a: np.sin(a) * a, math.cos(AT) * AT + math.sin(AT)),
    "SciPy's functions": (lambda a: scipy.special.gamma(a), scipy.special.gamma(AT) * scipy.special.psi(AT)),
    "np.interp": (lambda a: np.interp(a, [0.0, 5.0], [0.0, 10.0]), 2.0),
    "sum": (lambda a: sum([a, a]), 2.0),
    "math.prod": (lambda a: math.prod([a, a]), 2 * AT),
    "copies": (lambda a: copy.copy(a) * copy.deepcopy(a), 2 * AT),
    "iteration": (lambda a: sum(jnp.stack([a, a * 2.0])), 3.0),
    "a list": (lambda a: jnp.array([a, a]).sum(), 2.0),
    "a number of NumPy's": (lambda a: np.float64(3.0) * a % np.float64(100.0), 3.0),
    "a remainder": (lambda a: 7.5 % a + np.float64(7.5) % a, -6.0),
    "a text": (lambda a: (f"{a} {a!r}", a * 2.0)[1], 2.0),
    "a text with a format": (lambda a: (f"{a:.3f}", "%.3f" % a, a * 2.0)[2], 2.0),  # noqa: UP031
    "concrete_or_error": (lambda a: concrete_or_error(int, a) * a, 2.0),
    "a callback of the shape": (lambda a: pure_callback(lambda: np.full(a.shape, 2.0), np.float64(0)) * a, 2.0),
    "debug.callback": (lambda a: (pullback.debug.callback(float, a), a * 2.0)[1], 2.0),
    "debug.print": (lambda a: (pullback.debug.print("{}", a), a * 2.0)[1], 2.0),
}  # fmt: skip
"""Programs with the derivative that they have."""

NEEDS_VALUES = re.compile("vmap|jit|sparse|preaccumulate|scan|cond")
"""The ways in which values are not known, so that Python may refuse to look at them."""


def _doubled(a: Any) -> Any:
    while a < 10:
        a = a * 2.0
    return a


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", GOING_ON)
def test_what_has_no_derivative_goes_on(way: str, kind: str) -> None:
    f, expected = GOING_ON[way]
    if NEEDS_VALUES.search(kind):
        try:
            found = KINDS[kind](f)
        except LostDerivativeError:
            raise
        except (ConcretizationTypeError, ValueError):  # ValueError: of NumPy, for an element
            return
    else:
        found = KINDS[kind](f)
    np.testing.assert_allclose(np.asarray(found).reshape(()), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "left",
    [2, 2.5, True, 2 + 0j, np.float32(2.5), np.float64(2.5), np.int32(2), np.ones(()), Fraction(5, 2), Decimal("2.5")],
    ids=repr,
)
@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "//", "%", "**", "@", "<", "=="])
def test_an_operator_with_something_else_on_the_left(sign: str, left: Any) -> None:
    """The remainder of a text asks for the value to print it, and is let pass: nothing else may come by that way."""
    f = eval(f"lambda a: left {sign} a", {"left": left})
    try:
        found = jvp(f, (jnp.float64(AT),), (jnp.float64(1.0),))[1]
    except LostDerivativeError:
        raise
    except TypeError:
        return
    if found.dtype != pullback.float0:
        difference = f(jnp.float64(AT + 1e-6)) - f(jnp.float64(AT - 1e-6))
        np.testing.assert_allclose(complex(found), complex(difference / 2e-6), rtol=1e-5)


# Looking is not taking ------------------------------------------------------------------------------------------------


def _said(f: Callable[[Any], Any], way: Callable[[Scalar], Any]) -> list[str]:
    said: list[str] = []

    def program(a: Any) -> Any:
        said.append(f(a))
        return a * 2.0

    way(program)
    return said


LOOKS: dict[str, tuple[Callable[[Any], str], str]] = {
    "str": (str, "2.3"),
    "repr": (repr, "Traced<f64[]: 2.3> by "),
    "f-string": (lambda a: f"{a}", "2.3"),
    "f-string with a format": (lambda a: f"{a:8.2f}|{a:e}", "    2.30|2.300000e+00"),
    "format": (lambda a: format(a, ".1f"), "2.3"),
    "str.format": (lambda a: "{:.2f} {}".format(a, a), "2.30 2.3"),  # noqa: UP032
    "%": (lambda a: "%.2f %s %d" % (a, a, a), "2.30 2.3 2"),  # noqa: UP031
    "an array": (lambda a: str(jnp.stack([a, a])), "[2.3 2.3]"),
}  # fmt: skip


@pytest.mark.parametrize("kind", [k for k in EAGER if k not in ("a backward rule", "taylor within grad")])
@pytest.mark.parametrize("look", LOOKS)
def test_values_are_shown(look: str, kind: str) -> None:
    show, expected = LOOKS[look]
    for said in _said(show, KINDS[kind]):
        assert said == expected or (look == "repr" and said.startswith(expected))


def test_a_logger_shows_values() -> None:
    stream = io.StringIO()
    logger = logging.Logger("values")
    logger.addHandler(logging.StreamHandler(stream))
    grad(lambda a: (logger.warning("%.2f and %s, %5.1e", a, a, a), a * 2.0)[1])(AT)
    assert stream.getvalue() == "2.30 and 2.3, 2.3e+00\n"


def test_all_examples_of_a_batch_are_shown() -> None:
    said: list[str] = []

    def f(x: Any) -> Any:
        said.extend([str(x), repr(x), f"{x:.2f}"])
        return x * x

    vmap(f)(jnp.arange(3.0))
    assert said == [
        "[0. 1. 2.] (3 examples along axis 0)",
        "Traced<f64[]: [0. 1. 2.] (3 examples along axis 0)> by vmap",
        "[0.00 1.00 2.00] (3 examples along axis 0)",
    ]
    said.clear()
    vmap(vmap(grad(f)), in_axes=1)(jnp.ones((1, 2)))
    label = "(2 examples along axis 1) (1 examples along axis 0)"
    assert [said[0], said[2]] == [f"[[1. 1.]] {label}", f"[[1.00 1.00]] {label}"]


def test_under_jit_a_format_is_refused_in_plain_words() -> None:
    with pytest.raises(ConcretizationTypeError, match=re.escape("the format '.3f' needs a concrete value")) as raised:
        jit(lambda a: (f"{a:.3f}", a)[1])(AT)
    assert 'pullback.debug.print("{x:.3f}", x=x)' in str(raised.value)
    with pytest.raises(ConcretizationTypeError, match="needs a concrete value"):
        jit(lambda a: ("%.3f" % a, a)[1])(AT)  # noqa: UP031
    assert _said(lambda a: f"{a} {a!s}", lambda f: jit(f)(AT)) == ["Traced<f64[]> by jit Traced<f64[]> by jit"]


def test_a_value_that_leaked_is_shown_and_not_taken() -> None:
    leaked: list[Any] = []
    grad(lambda a: (leaked.append(a), a * 2.0)[1])(AT)
    assert str(leaked[0]) == "2.3"
    for take in (float, math.sin, complex, int, bool, lambda a: a.item(), lambda a: a.tolist(), lambda a: a * 2.0):
        with pytest.raises(pullback.errors.UnexpectedTracerError):
            take(leaked[0])


# Every method and every protocol --------------------------------------------------------------------------------------

SUBJECTS: dict[str, Scalar] = {
    "a number": lambda t: t * 1.0,
    "a vector": lambda t: jnp.stack([t, t * t, 2.0 * t]),
    "a matrix": lambda t: jnp.stack([jnp.stack([t, 1.0 + t]), jnp.stack([t * t, 3.0 - t])]),
    "a complex number": lambda t: lax.complex(t, t * t),
}
CLASSES = (Array, ArrayImpl, Tracer, JVPTracer, TaylorTracer, LaplacianTracer, BatchTracer)

# Calls of what needs operands: the array is x, one like it y.
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "__array_function__": lambda x, y: np.concatenate([x[None], y[None]]),
    "__array_ufunc__": lambda x, y: np.add(x, y),
    "__contains__": lambda x, y: x.ravel()[0] in x.ravel(),
    "__divmod__": divmod, "__rdivmod__": lambda x, y: divmod(3.1, x),
    "__format__": lambda x, y: format(x, ""),
    "__getitem__": lambda x, y: x[..., None],
    "__round__": lambda x, y: x.__round__(2),
    "__setitem__": lambda x, y: operator.setitem(x, 0, 1.0),
    "__delitem__": lambda x, y: operator.delitem(x, 0),
    "__reduce_ex__": lambda x, y: pickle.loads(pickle.dumps(x)),
    "__array__": lambda x, y: np.asarray(x),
    "__dlpack__": lambda x, y: np.from_dlpack(x), "__dlpack_device__": lambda x, y: x.__dlpack_device__(),
    "__buffer__": lambda x, y: np.asarray(memoryview(x)),
    "__deepcopy__": lambda x, y: copy.deepcopy(x), "__copy__": lambda x, y: copy.copy(x),
    "addressable_data": lambda x, y: x.addressable_data(0),
    "argpartition": lambda x, y: x.argpartition(1), "partition": lambda x, y: x.partition(1),
    "astype": lambda x, y: x.astype("complex128"), "view": lambda x, y: x.view(x.dtype),
    "choose": lambda x, y: jnp.array(1).choose([x, y]),
    "clip": lambda x, y: x.clip(1.0, 2.5), "compress": lambda x, y: x.ravel().compress([True]),
    "std": lambda x, y: jnp.stack([x, y]).std(),
    "dot": lambda x, y: x.dot(y), "item": lambda x, y: x.item(*[0] * x.ndim),
    "repeat": lambda x, y: x.repeat(2), "reshape": lambda x, y: x.reshape(-1),
    "searchsorted": lambda x, y: x.searchsorted(y), "swapaxes": lambda x, y: x.swapaxes(0, -1),
    "take": lambda x, y: x.take(0), "to_device": lambda x, y: x.to_device(pullback.devices()[0]),
    "concrete_value": lambda x, y: x.concrete_value("a test") if isinstance(x, Tracer) else x,
    "_known": lambda x, y: x._known(ConcretizationTypeError, "a test", "") if isinstance(x, Tracer) else x,
}  # fmt: skip
BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift",
          "eq", "ne", "lt", "le", "gt", "ge")  # fmt: skip
for _name in BINARY:
    CALLS[f"__{_name}__"] = lambda x, y, name=f"__{_name}__": getattr(x, name)(y)
    CALLS[f"__r{_name}__"] = lambda x, y, name=f"__r{_name}__": getattr(x, name)(y)

# Names that have to do with the class, with the tracer itself, or with the array as an object: why they are left out.
NOT_CALLED = {
    "of the class": """__class__ __init__ __init_subclass__ __new__ __slots__ __subclasshook__ __module__
        __annotations__ __doc__ __dir__ __array_priority__ __array_namespace__ __hash__ __weakref__ __getattribute__
        __setattr__ __delattr__ __static_attributes__ __firstlineno__""",
    "internal: our own code asks for the parts, and answers for their derivatives": """
        _aval _buffer _host_value _literal _resolved _signature _trace _unknown _value abstract_part
        concrete differentiated made_at origin shown dependence jacobian laplacian series tangent
        value dim batch_dim __getstate__ _known _leak _leaked""",
    "says what it is: the value without its derivative": "primal",
    "of the type, on which values have no influence": "mat",
    "gives up the memory": "delete",
}
_LEFT_OUT = {name for names in NOT_CALLED.values() for name in names.split()}
NAMES = sorted({name for kind in CLASSES for name in dir(kind)} - _LEFT_OUT)


def _called(name: str, x: Any, y: Any) -> Any:
    if name in CALLS:
        return CALLS[name](x, y)
    found = getattr(x, name)
    return found() if callable(found) else found


def _number(x: Any) -> Any:
    """A number that depends on all numbers in a result; texts say what they show, which is looking."""
    if isinstance(x, (Array, np.ndarray, np.generic, float, complex)):
        if isinstance(x, np.ndarray) and x.dtype == object:
            return sum(map(_number, x.ravel()), 0.0)
        if not isinstance(x, (float, complex)) and x.dtype.kind not in "fc":
            return 0.0
        elements = jnp.asarray(x)
        return jnp.sum(jnp.real(elements) * 1.0 + 3.0 * jnp.imag(elements))
    if isinstance(x, (bytes, bytearray)):
        return float(np.frombuffer(x).sum())
    if isinstance(x, (list, tuple, set, Iterator)):
        return sum(map(_number, x), 0.0)
    if hasattr(x, "data") and isinstance(x.data, Array):  # a shard
        return _number(x.data)
    return 0.0


WAYS: dict[str, Callable[[Scalar], Any]] = {
    name: KINDS[name]
    for name in chosen(
        ("grad", "jvp", "taylor", "forward_laplacian"),
        ("grad", "jvp", "taylor", "forward_laplacian", "outer of two", "vmap of grad", "masked zeros", "jit of grad"),
    )
}


@pytest.mark.parametrize("name", NAMES)
def test_every_method_and_protocol(name: str) -> None:
    answered = 0
    for make in SUBJECTS.values():
        f = lambda t, make=make: _number(_called(name, make(t), 0.5 * make(t))) + 0.0 * t
        try:
            expected = _differences(f)
        except (TypeError, ValueError, AttributeError, BufferError, pullback.core.errors.PullbackError):
            continue  # arrays that are not traced do not answer either
        for way, derivative in WAYS.items():
            try:
                found = np.asarray(derivative(f)).reshape(())
            except (TypeError, ValueError, AttributeError, BufferError, pullback.core.errors.PullbackError):
                continue
            answered += 1
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8, err_msg=way)
    assert answered or name in REFUSED, f"no kind of derivative takes x.{name}: is an operand missing in CALLS?"


REFUSED = {
    "__and__", "__rand__", "__or__", "__ror__", "__xor__", "__rxor__", "__lshift__", "__rlshift__", "__rshift__",
    "__rrshift__", "__invert__", "__index__", "__setitem__", "__delitem__", "flat",  # of numbers that are not integers
    "__array__", "__arrow_c_array__", "__buffer__", "__complex__", "__cuda_array_interface__", "__dlpack__",
    "__dlpack_device__", "__float__", "__reduce__", "__reduce_ex__", "addressable_data", "addressable_shards",
    "concrete_value", "global_shards", "item", "to_numpy", "tobytes",
    "tolist", "byteswap", "unsafe_buffer_pointer", "__bytes__",  # which would take the value
}  # fmt: skip
"""Names that no traced array answers to."""


def test_the_names_left_out_are_there() -> None:
    assert _LEFT_OUT - {"__static_attributes__", "__firstlineno__", "__annotations__", "_known"} <= {
        name for kind in CLASSES for name in dir(kind)
    }
    assert set(NAMES) >= REFUSED - {"__buffer__"}


def test_the_primal_value_says_what_it_is() -> None:
    assert "the value without derivatives" in (inspect.getdoc(JVPTracer.__mro__[1]) or "")
    assert grad(lambda a: a.primal * a)(AT) == AT


def test_the_sums_see_every_element() -> None:
    """The law would notice nothing if its numbers did not depend on what comes out."""
    assert _number([1.0, (np.ones(2), jnp.ones(2)), np.float64(3.0).tobytes()]) == 8.0
    assert tree.leaves(_number(2.0 + 1j)) == [5.0]


def test_a_traced_value_stays_traced_where_it_would_be_copied_to_the_host() -> None:
    """As in JAX: the tests of Chex and RLax put `device_get` before the functions that they differentiate."""
    assert float(grad(lambda x: jnp.square(pullback.device_get(x)))(3.0)) == 6
    assert float(pullback.jit(lambda x: pullback.device_get({"x": x})["x"] + 1)(3.0)) == 4
