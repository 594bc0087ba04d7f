"""Bad input: each mistake returns an error of a certain kind, whose message says what was expected and what came."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import (
    errors,
    eval_shape,
    float0,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    lax,
    linear_transpose,
    linearize,
    make_jaxpr,
    value_and_grad,
    vjp,
    vmap,
)
from pullback.core.array import as_array

Call = Callable[[], Any]
Case = tuple[str, Call, type[Exception], tuple[type[Exception], ...], tuple[str, ...]]
HERE = "test_bad_input.py:"

x3 = as_array(np.array([1.0, 2.0, 3.0], np.float32))
x5 = as_array(np.ones(5, np.float32))
i3 = as_array(np.arange(3, dtype=np.int32))
z = as_array(np.complex64(1 + 2j))


def sin(x: Any) -> Any:
    return jnp.sin(x)


def scale(x: Any, y: Any) -> Any:
    return jnp.sin(x) * y


def double(x: Any) -> Any:
    return 2 * x


def identity(x: Any) -> Any:
    return x


def branch(x: Any) -> Any:
    return x if x > 0 else -x


def raising(kind: type[Exception], *builtins: type[Exception]) -> Callable[..., Case]:
    """How cases are written: a name, the mistake, and what the message of its error must say.

    Args:
      kind: the type of the error.
      builtins: what it is too, as JAX's error for that mistake is.
    """
    return lambda name, call, *words: (name, call, kind, builtins, words)


argument = raising(errors.ArgumentError, TypeError, ValueError)
derivative = raising(errors.NotDifferentiableError, TypeError)
mismatch = raising(errors.TangentMismatchError, TypeError, ValueError)
linear = raising(errors.NotLinearError, TypeError, NotImplementedError)
size = raising(errors.BatchSizeError, ValueError)
axis = raising(errors.BatchAxisError, TypeError, ValueError)
operand = raising(errors.OperandError, TypeError)
none = raising(errors.NoneOperandError, TypeError)
shape = raising(errors.ShapeError, TypeError)
dtype = raising(errors.DtypeError, TypeError)
memory = raising(errors.AllocationError, MemoryError, RuntimeError)


def ids(cases: list[Case]) -> Any:
    return pytest.mark.parametrize("case", [pytest.param(c, id=c[0]) for c in cases])


def assert_refused(case: Case) -> None:
    _, call, kind, builtins, words = case
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    assert all(isinstance(caught.value, b) for b in builtins)
    missing = [w for w in words if w not in str(caught.value)]
    assert not missing, f"{missing} not in: {caught.value}"


_ints = "must be an int or a tuple of at least one int"
ARGNUMS: list[Case] = [
    argument("out of range", lambda: grad(sin, 1)(1.0), "grad", "argnums=1", "at least 2 positional arguments",
         "sin at", HERE, "with 1", "Keyword"),
    argument("negative out of range", lambda: grad(sin, -2)(1.0), "argnums=-2", "at least 2"),
    argument("keyword-only", lambda: grad(sin)(x=1.0), "at least 1 positional argument,", "with 0"),
    argument("a string", lambda: grad(sin, "x")(1.0), "grad", _ints, "'x' of type str"),
    argument("a float", lambda: value_and_grad(sin, 0.0), "value_and_grad", _ints, "0.0 of type float"),
    argument("None", lambda: grad(sin, None), _ints, "None of type NoneType"),
    argument("a bool", lambda: grad(scale, True), _ints, "True of type bool"),
    argument("a bool in a tuple", lambda: grad(scale, (0, True)), _ints, "(0, True)"),
    argument("a float in a tuple", lambda: grad(scale, (0, 1.0)), _ints, "(0, 1.0)"),
    argument("empty", lambda: grad(sin, ()), _ints, "()"),
    argument("twice", lambda: grad(sin, (0, 0))(1.0), "(0, 0)", "sin at", "twice"),
    argument("twice, once negative", lambda: grad(sin, (0, -1))(1.0), "(0, -1)", "twice"),
    *[
        argument(f"{t.__name__}, out of range", lambda t=t: t(sin, 3)(1.0), t.__name__, "argnums=3", "at least 4")
        for t in (value_and_grad, jacfwd, jacrev, hessian)
    ],
    *[
        argument(f"{t.__name__}, a string", lambda t=t: t(sin, "q"), t.__name__, _ints, "'q'")
        for t in (jacfwd, jacrev, hessian)
    ],
    argument("static_argnums, a string", lambda: make_jaxpr(sin, "a"), "make_jaxpr: static_argnums", "'a'"),
    argument("static_argnums, out of range", lambda: make_jaxpr(sin, 3)(1.0), "static_argnums=3", "1 positional",
         "sin at"),
]  # fmt: skip


def params(p: Any, y: Any) -> Any:
    return p["w"] * y


DIFFERENTIABLE: list[Case] = [
    derivative("output of shape (5,)", lambda: grad(sin)(x5), "scalar outputs", "sin at", HERE, "(5,)", "jacrev"),
    derivative("a tuple as output", lambda: grad(lambda x: (x, x))(1.0), "scalar output", "Traced<f32[]: 1.0>", "aux"),
    derivative("None as output", lambda: grad(lambda x: None)(1.0), "scalar output", "returned None"),
    derivative("an integer output", lambda: grad(lambda x: 3)(1.0), "real output", "i32[]", "float"),
    derivative("an integer input", lambda: grad(sin)(1), "grad needs real or complex inputs",
         "argument 0 (x) of sin at", "i32[]", "2. instead of 2", "allow_int=True"),
    derivative("a boolean input", lambda: grad(sin)(True), "argument 0 (x)", "bool[]"),
    derivative("an integer leaf", lambda: grad(params)({"v": 1.0, "w": 2}, 3.0), "argument 0 (p['w']) of params"),
    derivative("an integer second argument", lambda: value_and_grad(params, (0, 1))({"w": 1.0}, 3), "value_and_grad",
         "argument 1 (y) of params"),
    derivative("jacfwd, an integer input", lambda: jacfwd(sin)(1), "jacfwd", "argument 0 (x)", "i32[]"),
    derivative("jacrev, an integer input", lambda: jacrev(sin)(1), "jacrev", "argument 0 (x)", "allow_int"),
    derivative("hessian, an integer input", lambda: hessian(sin)(1), "hessian", "argument 0 (x)", "i32[]"),
    derivative("jacrev, an integer output", lambda: jacrev(lambda x: 3)(1.0), "jacrev", "outputs", "i32[]"),
    derivative("linear_transpose, an integer", lambda: linear_transpose(double, 1), "linear_transpose",
         "argument 0 (x)"),
    derivative("complex output", lambda: grad(sin)(z), "real output", "c64[]", "holomorphic=True"),
    derivative("holomorphic, real input", lambda: grad(sin, holomorphic=True)(1.0), "holomorphic=True",
         "complex inputs", "argument 0 (x)", "float32"),
    derivative("holomorphic, real output", lambda: grad(jnp.real, holomorphic=True)(z), "complex output",
         "real returned f32[]"),
    *[
        derivative(f"{t.__name__}, holomorphic, real input", lambda t=t: t(sin, holomorphic=True)(1.0), t.__name__,
             "complex inputs", "float32")
        for t in (jacfwd, jacrev, hessian)
    ],
    derivative("jacfwd, complex input", lambda: jacfwd(sin)(z), "jacfwd needs real inputs", "c64[]",
         "holomorphic=True"),
    derivative("jacrev, complex output", lambda: jacrev(sin)(z), "jacrev needs real outputs", "c64[]",
         "holomorphic=True"),
    derivative("hessian, complex input", lambda: hessian(sin)(z), "hessian needs real inputs", "c64[]"),
    derivative("jacrev, holomorphic, real output", lambda: jacrev(jnp.real, holomorphic=True)(z), "complex outputs"),
]  # fmt: skip

TANGENTS: list[Case] = [
    mismatch("tangent of another shape", lambda: jvp(sin, (x3,), (x5,)), "jvp of sin at", HERE, "argument 0 (x)",
         "value is f32[3]", "tangent must be f32[3]", "it is f32[5]"),
    mismatch("tangent of another dtype", lambda: jvp(scale, (x3, x3), (x3, i3)), "argument 1 (y)", "must be f32[3]",
         "it is i32[3]", "astype"),
    mismatch("tangent of a leaf", lambda: jvp(params, ({"v": x3, "w": x3}, 1.0), ({"v": x3, "w": x5}, 1.0)),
         "argument 0 (p['w'])"),
    mismatch("tangent of an integer", lambda: jvp(identity, (1,), (1.0,)), "value is i32[]", "must be float0[]",
         "it is f32[]", "np.zeros((), pullback.float0)"),
    mismatch("tangents that are integers, of integers", lambda: jvp(identity, (i3,), (i3,)), "value is i32[3]",
         "must be float0[3]"),
    mismatch("float0 tangent of a float", lambda: jvp(identity, (1.0,), (np.zeros((), float0),)), "must be f32[]",
         "it is float0[]"),
    mismatch("tangent of another tree", lambda: jvp(sin, (x3,), ((x3,),)), "jvp of sin", "the same tree", "((*,),)"),
    mismatch("too many tangents", lambda: jvp(sin, (1.0,), (1.0, 2.0)), "the same tree", "(*, *)"),
    mismatch("None as a tangent", lambda: jvp(sin, (1.0,), (None,)), "the same tree", "None"),
    argument("primals not in a tuple", lambda: jvp(sin, 1.0, 1.0), "primals", "tuple or list", "1.0 of type float"),
    argument("tangents not in a tuple", lambda: jvp(sin, (1.0,), 1.0), "tangents", "tuple or list"),
    mismatch("cotangent of another shape", lambda: vjp(sin, x3)[1](x5), "vjp function of sin at", "output",
         "must be f32[3]", "it is f32[5]"),
    mismatch("cotangent of another dtype", lambda: vjp(sin, x3)[1](i3), "must be f32[3]", "it is i32[3]", "astype"),
    mismatch("cotangent of a leaf", lambda: vjp(lambda x: {"a": x, "b": x}, x3)[1]({"a": x3, "b": x5}), "output['b']"),
    mismatch("cotangent of another tree", lambda: vjp(sin, x3)[1]((x3,)), "cotangent", "tree of its output", "(*)",
         "((*,))"),
    mismatch("None as a cotangent", lambda: vjp(sin, x3)[1](None), "tree of its output", "None"),
    mismatch("two cotangents", lambda: vjp(sin, x3)[1](x3, x3), "takes one argument", "sin at", "got 2"),
    mismatch("no cotangent", lambda: vjp(sin, x3)[1](), "takes one argument", "got 0"),
    mismatch("linearised, another shape", lambda: linearize(scale, x3, x3)[1](x3, x5), "the linearised scale at",
         "argument 1", "must be f32[3]", "it is f32[5]"),
    mismatch("linearised, another dtype", lambda: linearize(sin, x3)[1](i3), "must be f32[3]", "it is i32[3]"),
    mismatch("linearised, another tree", lambda: linearize(sin, x3)[1]((x3,)), "tree of its arguments", "(((*,),))"),
    mismatch("transposed, another shape", lambda: linear_transpose(double, x3)(x5), "double at", "it is f32[5]"),
    mismatch("transposed, another tree", lambda: linear_transpose(double, x3)((x3,)), "tree of its output"),
]  # fmt: skip

LINEAR: list[Case] = [
    linear("sin", lambda: linear_transpose(sin, 1.0), "sin is not linear", "in sin at",
         f"{HERE}{inspect.getsourcelines(sin)[1] + 1} (sin)", "vjp"),
    linear("x * x", lambda: linear_transpose(lambda x: x * x, 1.0), "mul is not linear"),
    linear("affine", lambda: linear_transpose(lambda x: 2 * x + 1, 1.0), "add", "affine"),
    linear("affine by concatenation", lambda: linear_transpose(lambda x: jnp.concatenate([x, x5]), x3), "concatenate",
         "affine"),
    linear("affine by a scatter", lambda: linear_transpose(lambda x: x.at[0].set(5.0), x3), "scatter", "affine"),
    linear("affine by a block", lambda: linear_transpose(lambda x: lax.dynamic_update_slice(x, x3, (0,)), x5),
         "dynamic_update_slice", "affine"),
    linear("affine by a fill value",
         lambda: linear_transpose(lambda x: x.at[np.array([0, 7])].get(mode="fill", fill_value=0.5), x3), "gather",
         "affine"),
    linear("constant", lambda: linear_transpose(lambda x: 1.0, 1.0), "1.0", "does not depend"),
    linear("a condition", lambda: linear_transpose(branch, 1.0), "gt is not linear"),
]  # fmt: skip

VMAP: list[Case] = [
    size("sizes", lambda: vmap(scale)(x3, x5), "vmap of scale at", HERE,
         "argument 0 (x) of shape (3,) has size 3 along axis 0",
         "argument 1 (y) of shape (5,) has size 5 along axis 0"),
    size("sizes of leaves", lambda: vmap(params, (0, None))({"v": x3, "w": x5}, 1.0), "(p['v'])", "(p['w'])"),
    size("sizes by keyword", lambda: vmap(lambda x, *, y: x * y)(x3, y=x5), "argument 0 (x)", "argument y"),
    size("size and axis_size", lambda: vmap(sin, axis_size=4)(x3), "axis_size is 4", "size 3 along axis 0"),
    size("nothing mapped", lambda: vmap(sin, None)(x3), "nothing is mapped", "None for every", "axis_size"),
    size("no arguments", lambda: vmap(lambda: 1.0)(), "nothing is mapped", "without arrays"),
    axis("length", lambda: vmap(sin, (0, 0))(x3), "2 entries, (0, 0)", "sin at", "with 1 positional"),
    axis("no prefix", lambda: vmap(sin, ((0, 0),))(x3), "in_axes=((0, 0),)", "prefix", "[0]", "tuple of length 2"),
    axis("axis out of range", lambda: vmap(scale, (None, 1))(x3, x3), "axis 1 of argument 1 (y)", "shape (3,)"),
    axis("negative axis out of range", lambda: vmap(sin, -2)(x3), "axis -2 of argument 0", "(3,)"),
    axis("a scalar", lambda: vmap(sin)(1.0), "axis 0 of argument 0 (x)", "shape ()", "in_axes=None"),
    argument("in_axes a float", lambda: vmap(sin, 0.0), "in_axes", "int, None or a tuple", "0.0 of type float"),
    argument("in_axes a string", lambda: vmap(sin, "a"), "in_axes", "'a' of type str"),
    argument("in_axes a bool", lambda: vmap(sin, True), "in_axes", "True of type bool"),
    argument("in_axes a dict", lambda: vmap(sin, {"x": 0}), "in_axes", "{'x': 0}"),
    axis("in_axes of floats", lambda: vmap(sin, (0.5,))(x3), "ints and None", "0.5 in (0.5,)"),
    axis("out_axes out of range", lambda: vmap(sin, 0, 2)(x3), "out_axes", "at 2", "shape ()", "sin at"),
    axis("out_axes no prefix", lambda: vmap(sin, 0, (0, 0))(x3), "out_axes=(0, 0)", "prefix"),
    axis("out_axes a float", lambda: vmap(sin, 0, 0.0)(x3), "out_axes", "ints and None", "0.0"),
    axis("out_axes a bool", lambda: vmap(sin, 0, False)(x3), "out_axes", "False"),
    axis("out_axes None, mapped", lambda: vmap(sin, 0, None)(x3), "out_axes is None", "depends"),
    argument("axis_size a string", lambda: vmap(sin, axis_size="a"), "axis_size", "'a'"),
    argument("axis_size negative", lambda: vmap(sin, None, axis_size=-2), "axis_size", "-2"),
    *[
        argument(f"{t.__name__}, chunk_size", lambda t=t: t(sin, chunk_size=0), t.__name__, "chunk_size", "got 0")
        for t in (vmap, jacfwd, jacrev, hessian)
    ],
]  # fmt: skip

_pair = "must return a pair (out, aux)"
OPERANDS: list[Case] = [
    shape("shapes", lambda: x3 + x5, "add", "(3,), (5,)"),
    shape("shapes in grad", lambda: grad(lambda x: jnp.sum(x * x5))(x3), "mul", "(3,), (5,)"),
    shape("shapes in make_jaxpr", lambda: make_jaxpr(lambda x: x @ x5)(x3), "(3,)", "(5,)"),
    shape("shapes of a product", lambda: x3 @ x5, "(3,) and (5,)"),
    operand("x + 'a'", lambda: x3 + "a", "+", "f32[3]", "'a' of type str"),
    operand("'a' + x", lambda: "a" + x3, "+", "f32[3]", "'a' of type str"),
    operand("x * None", lambda: x3 * None, "*", "f32[3]", "None of type NoneType"),
    operand("x - [1]", lambda: x3 - [1, 2, 3], "-", "[1, 2, 3] of type list", "asarray"),
    operand("traced + None", lambda: grad(lambda x: x + None)(1.0), "+", "None of type NoneType"),
    operand("sin of a string", lambda: jnp.sin("a"), "sin", "'a' of type str"),
    none("sin of None", lambda: jnp.sin(None), "sin", "None of type NoneType"),
    operand("sin of a list", lambda: jnp.sin([1.0, 2.0]), "sin", "[1.0, 2.0] of type list", "asarray"),
    dtype("dtype", lambda: x3.astype("float99"), "unknown dtype 'float99'", "float32"),
    dtype("dtype of a struct", lambda: pullback.ShapeDtypeStruct((2,), "float99"), "'float99'"),
    *[
        operand(f"{name}, a string argument", call, f"{name} of scale at", HERE, "argument 1 (y)", "'a' of type str")
        for name, call in (
            ("grad", lambda: grad(scale, (0, 1))(1.0, "a")), ("jvp", lambda: jvp(scale, (1.0, "a"), (1.0, "a"))),
            ("vjp", lambda: vjp(scale, 1.0, "a")), ("linearize", lambda: linearize(scale, 1.0, "a")),
            ("vmap", lambda: vmap(scale)(x3, "a")), ("make_jaxpr", lambda: make_jaxpr(scale)(1.0, "a")),
            ("eval_shape", lambda: eval_shape(scale, 1.0, "a")), ("jacfwd", lambda: jacfwd(scale, 1)(1.0, "a")),
            ("jacrev", lambda: jacrev(scale, (1,))(1.0, "a")),
        )
    ],
    *[
        operand(f"{t.__name__}, a string output", lambda t=t: t(text)(x3), "text at", "returned", "'a' of type str")
        for t in (vmap, jacfwd, jacrev, make_jaxpr)
    ],
    operand("grad, a string output", lambda: grad(text)(1.0), "text at", "returned", "'a' of type str"),
    operand("jvp, a string in the output", lambda: jvp(lambda x: (x, "a"), (1.0,), (1.0,)), "'a' of type str"),
    operand("vjp, a string output", lambda: vjp(text, 1.0), "text at", "'a' of type str"),
    operand("linearize, a string output", lambda: linearize(text, 1.0), "text at", "'a' of type str"),
    operand("linear_transpose, a string output", lambda: linear_transpose(text, 1.0), "text at", "'a'"),
    operand("eval_shape, a string output", lambda: eval_shape(text, 1.0), "text at", "'a' of type str"),
    *[
        argument(f"{t.__name__}, aux without a pair", lambda t=t: t(identity, has_aux=True)(1.0), "has_aux=True",
             "identity at", _pair, "Traced<f32[]: 1.0>")
        for t in (grad, value_and_grad, jacfwd, jacrev, hessian)
    ],
    argument("aux of three", lambda: grad(lambda x: (x, x, x), has_aux=True)(1.0), _pair, "a tuple of 3"),
    argument("jvp, aux", lambda: jvp(identity, (1.0,), (1.0,), has_aux=True), _pair),
    argument("vjp, aux", lambda: vjp(identity, 1.0, has_aux=True), _pair),
    argument("linearize, aux", lambda: linearize(identity, 1.0, has_aux=True), _pair),
    *[
        argument(
            f"{t.__name__} of a number", lambda t=t: t(3.0), t.__name__, "fun must be a function", "3.0 of type float"
        )
        for t in (grad, value_and_grad, jacfwd, jacrev, hessian, vmap, make_jaxpr, eval_shape)
    ],
    *[
        argument(f"{t.__name__} of None", lambda t=t: t(None, 1.0), t.__name__, "fun must be a function", "None")
        for t in (vjp, linearize, linear_transpose)
    ],
    argument("jvp of a string", lambda: jvp("f", (1.0,), (1.0,)), "jvp", "fun must be a function", "'f'"),
]  # fmt: skip


def text(x: Any) -> Any:
    return "a"


MEMORY: list[Case] = [
    memory("too large", lambda: jnp.sin(jnp.broadcast_to(x3[0], (10**13,))), "no memory", "sin(f32[10000000000000])"),
    memory("sizes that overflow", lambda: vmap(lambda i: x3 * i, axis_size=2**62, in_axes=None, out_axes=0)(1.0),
         "no memory"),
    memory("the basis of a Jacobian", lambda: jacrev(sin)(jnp.zeros(5_000_000)), "jacrev",
         "5000000 basis vectors of 5000000 elements", "chunk_size"),
]  # fmt: skip


@ids(ARGNUMS)
def test_argnums(case: Case) -> None:
    assert_refused(case)


@ids(DIFFERENTIABLE)
def test_what_cannot_be_differentiated(case: Case) -> None:
    assert_refused(case)


@ids(TANGENTS)
def test_tangents_and_cotangents(case: Case) -> None:
    assert_refused(case)


@ids(LINEAR)
def test_functions_that_are_not_linear(case: Case) -> None:
    assert_refused(case)


@ids(VMAP)
def test_axes_and_sizes(case: Case) -> None:
    assert_refused(case)


@ids(OPERANDS)
def test_operands_results_and_functions(case: Case) -> None:
    assert_refused(case)


@ids(MEMORY)
def test_shapes_too_large_for_memory(case: Case) -> None:
    assert_refused(case)


# Leaked tracers ----------------------------------------------------------------------------------------------------

kept: list[Any] = []
kept_global: Any = None


def into_a_list(x: Any) -> Any:
    y = jnp.sin(x)
    kept.append(jnp.cos(y))  # made here
    return y


def into_a_global(x: Any) -> Any:
    global kept_global
    kept_global = x * 2.0  # made here
    return x


def line_of(function: Any) -> int:
    """The line of a function that the comment marks."""
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if "# made here" in line)


RUNS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "grad": ("differentiation (linearize, vjp or grad)", lambda f: grad(f)(1.0)),
    "jvp": ("forward differentiation (jvp)", lambda f: jvp(f, (1.0,), (1.0,))),
    "vmap": ("vmap", lambda f: vmap(f)(x3)),
    "make_jaxpr": ("staging (make_jaxpr, eval_shape)", lambda f: make_jaxpr(f)(1.0)),
    "grad of vmap": ("vmap", lambda f: grad(lambda x: jnp.sum(vmap(f)(x)))(x3)),
    "vmap of grad": ("differentiation (linearize, vjp or grad)", lambda f: vmap(grad(f))(x3)),
}


@pytest.fixture(autouse=True)
def _nothing_kept() -> None:
    kept.clear()


def assert_leak(error: BaseException, run: str, function: Any) -> None:
    assert type(error) is errors.UnexpectedTracerError
    assert isinstance(error, TypeError)
    expected = f"{RUNS[run][0]} of {function.__qualname__} at {__file__}:{inspect.getsourcelines(function)[1]}"
    assert expected in str(error)
    assert f'File "{__file__}", line {line_of(function)}, in {function.__name__}' in str(error)
    assert "# made here" in str(error)
    assert "has_aux" in str(error)


USES: dict[str, Callable[[Any], Any]] = {
    "+": lambda x: x + 1.0,
    "sin": jnp.sin,
    "bool": bool,
    "float": float,
    "np.asarray": np.asarray,
    "np.sin": np.sin,
    "in grad": lambda x: grad(lambda y: y * x)(1.0),
    "in vmap": lambda x: vmap(lambda y: y * x)(x3),
    "in make_jaxpr": lambda x: make_jaxpr(lambda y: y * x)(1.0),
    "returned from grad": lambda x: grad(lambda y: x)(1.0),
    "returned from jvp": lambda x: jvp(lambda y: x, (1.0,), (1.0,)),
    "returned from vmap": lambda x: vmap(lambda y: x)(x3),
    "returned from make_jaxpr": lambda x: make_jaxpr(lambda y: x)(1.0),
    "returned to linear_transpose": lambda x: linear_transpose(lambda y: x, 1.0),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("run", RUNS)
def test_a_leak_through_a_list(run: str, use: str) -> None:
    RUNS[run][1](into_a_list)
    with pytest.raises(errors.UnexpectedTracerError) as caught:
        USES[use](kept[0])
    assert_leak(caught.value, run, into_a_list)


@pytest.mark.parametrize("run", RUNS)
def test_a_leak_through_a_global(run: str) -> None:
    RUNS[run][1](into_a_global)
    with pytest.raises(errors.UnexpectedTracerError) as caught:
        kept_global + 1.0
    assert_leak(caught.value, run, into_a_global)


@pytest.mark.parametrize("run", RUNS)
def test_a_leak_through_a_closure(run: str) -> None:
    held: Any = None

    def into_a_closure(x: Any) -> Any:
        nonlocal held
        held = jnp.exp(x)  # made here
        return x

    RUNS[run][1](into_a_closure)
    with pytest.raises(errors.UnexpectedTracerError) as caught:
        jnp.sin(held)
    assert_leak(caught.value, run, into_a_closure)


@pytest.mark.parametrize("run", RUNS)
def test_a_leaked_argument_names_the_function(run: str) -> None:
    def keep_argument(x: Any) -> Any:
        kept.append(x)
        return x

    RUNS[run][1](keep_argument)
    with pytest.raises(errors.UnexpectedTracerError, match=r"keep_argument at .*, as an argument"):
        kept[0] + 1.0


def test_a_leak_from_linear_transpose() -> None:
    linear_transpose(lambda x: (kept.append(2.0 * x), x)[1], 1.0)
    with pytest.raises(errors.UnexpectedTracerError, match="linear_transpose of"):
        kept[0] + 1.0


def test_a_tracer_in_another_transformation_that_does_not_hold_it() -> None:
    """Such as one of a thread that is still at work."""

    def inner(x: Any) -> Any:
        kept.append(x)
        return x

    def outer(x: Any) -> Any:
        import threading

        def elsewhere() -> None:
            try:
                make_jaxpr(lambda y: y * x)(1.0)
            except errors.UnexpectedTracerError as error:
                kept.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return x

    grad(outer)(1.0)
    assert "outside of its transformation" in str(kept[0])


# Values that Python may not look at --------------------------------------------------------------------------------


def to_float(x: Any) -> Any:
    return x * float(x)


def to_int(x: Any) -> Any:
    return x * int(x)


def to_range(x: Any) -> Any:
    return sum(range(x + 1))


def to_index(x: Any) -> Any:
    return [1.0, 2.0, 3.0][x + 1]


def to_numpy(x: Any) -> Any:
    return np.asarray(x)


_bool, _concrete = errors.TracerBoolConversionError, errors.ConcretizationTypeError
_index, _array = errors.TracerIntegerConversionError, errors.TracerArrayConversionError
CONVERSIONS: list[tuple[Any, Any, type[Exception], str]] = [
    (branch, 1.0, _bool, "jnp.where, lax.cond or lax.while_loop"),
    (to_float, 1.0, _concrete, "float()"),
    (lambda x: math.exp(x), 1.0, _concrete, "jnp.exp(x) instead of math.exp(x)"),
    (to_int, 1.0, _concrete, "int()"),
    (to_range, 1, _index, "range()"),
    (to_range, 1, _index, "declare the argument static (static_argnums), loop with lax.fori_loop"),
    (to_index, 1, _index, "index"),
    (to_numpy, 1.0, _array, "np.asarray()"),
]


@pytest.mark.parametrize(
    ("conversion", "run"),
    [
        pytest.param(c, run, id=f"{c[0].__name__} in {run}")
        for c in CONVERSIONS
        for run in ("make_jaxpr", "vmap", "jvp of vmap", "grad of vmap", "vmap of grad")
        if run in ("make_jaxpr", "vmap") or isinstance(c[1], float)
    ],
)
def test_traced_values_are_not_concrete(conversion: Any, run: str) -> None:
    function, value, kind, word = conversion
    batch = jnp.asarray([value, value])
    calls: dict[str, Call] = {
        "make_jaxpr": lambda: make_jaxpr(function)(value),
        "vmap": lambda: vmap(function)(batch),
        "jvp of vmap": lambda: jvp(vmap(function), (batch,), (batch,)),
        "grad of vmap": lambda: grad(lambda x: jnp.sum(vmap(function)(x)))(batch),
        "vmap of grad": lambda: vmap(grad(function))(batch),
    }
    with pytest.raises(kind) as caught:
        calls[run]()
    message = str(caught.value)
    assert isinstance(caught.value, TypeError)
    assert word in message
    assert ("staging" if run == "make_jaxpr" else "vmap") in message
    if kind is not _array or run != "vmap of grad":
        assert f"{function.__name__} at {__file__}:{inspect.getsourcelines(function)[1]}" in message
    if function in (branch, to_range, to_index):
        line = inspect.getsourcelines(function)[1] + 1
        assert f'File "{__file__}", line {line}, in {function.__name__}' in message


def test_numpy_gets_no_value_while_differentiating() -> None:
    for call in (lambda: grad(to_numpy)(1.0), lambda: jvp(to_numpy, (1.0,), (1.0,))):
        with pytest.raises(_array, match=r"np\.asarray"):
            call()


def test_the_truth_of_a_vector() -> None:
    with pytest.raises(ValueError, match=r"\(3,\) is ambiguous"):
        grad(lambda x: branch(x)[0])(x3)
