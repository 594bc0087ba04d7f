"""``checkpoint``: the same values and derivatives, less memory, and what is kept."""

from __future__ import annotations

import gc
import io
import itertools
import pdb
import subprocess
import sys
import threading
import tracemalloc
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback
import pullback.numpy as jnp
from pullback import (
    ShapeDtypeStruct,
    checkpoint,
    custom_jvp,
    custom_vjp,
    debug,
    enable_x64,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jit,
    jvp,
    lax,
    linearize,
    make_jaxpr,
    random,
    remat,
    value_and_grad,
    vjp,
    vmap,
)
from pullback import checkpoint_policies as policies
from pullback.ad_checkpoint import checkpoint_name, print_saved_residuals, saved_residuals
from pullback.backends.hlo.emit import emit_module
from pullback.control import scan_primitive as scan_primitive  # whose remat rule lets policies reach into scans
from pullback.control.conditional import cond
from pullback.control.scan import scan
from pullback.core import tree
from pullback.core.array import as_array
from pullback.core.errors import (
    ArgumentError,
    LostDerivativeError,
    OperandError,
    StaticArgumentError,
    TracerBoolConversionError,
    UnexpectedTracerError,
)
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, jaxpr_as_fun, subjaxprs
from pullback.core.jaxpr_check import check_jaxpr
from pullback.core.trace import EVAL, state
from pullback.transforms.checkpoint import checkpoint_policies
from pullback.transforms.checkpoint.barriers import optimization_barrier
from tests.helpers import assert_close
from tests.random_programs import Program, programs, random_like

Function = Callable[..., Any]
Wrap = Callable[[Function], Function]


close = partial(assert_close, tolerance=1e-5)


def counts(jaxpr: Jaxpr | ClosedJaxpr) -> Counter[str]:
    """How often each operation is in a program, and in those that it holds."""
    jaxpr = jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr
    found = Counter(eqn.primitive.name for eqn in jaxpr.eqns)
    for eqn in jaxpr.eqns:
        for inner in subjaxprs(eqn):
            found += counts(inner)
    return found


# Laws, on random programs --------------------------------------------------------------------------------------------

POLICIES: dict[str, Any] = {
    "none": None,
    "nothing": policies.nothing_saveable,
    "everything": policies.everything_saveable,
    "dots": policies.dots_saveable,
    "products of numbers": lambda primitive, *avals, **params: primitive.name in ("mul", "sin", "name"),
}
WRAPS: dict[str, Wrap] = {name: partial(checkpoint, policy=policy) for name, policy in POLICIES.items()}
WRAPS["nested"] = lambda f: checkpoint(lambda *xs: checkpoint(f)(*xs), policy=policies.dots_saveable)
WRAPS["branching"] = lambda f: checkpoint(lambda *xs: f(*xs) if all(jnp.sum(x) < 1e9 for x in xs) else None)
WRAPS["within jit"] = lambda f: checkpoint(jit(f), policy=policies.dots_saveable)


def in_pieces(p: Program, wrap: Wrap, at: int) -> Function:
    """The program with its first steps as a function of its arguments, and the others as one that closes over them."""

    def run(*args: Any) -> list[Any]:
        first: list[Any] = wrap(lambda *xs: steps(p, [*xs], p.instructions[:at])[len(xs) :])(*args)
        *closed_over, last = *args, *first
        rest = wrap(lambda x: steps(p, [*closed_over, x], p.instructions[at:])[len(closed_over) + 1 :])(last)
        values = [*args, *first, *rest]
        return [values[i] for i in p.outputs]

    return run


def steps(p: Program, values: list[Any], instructions: Sequence[Any]) -> list[Any]:
    for step in instructions:
        values.append(step.function(*[values[i] for i in step.operands]))
    return values


def scalar(f: Function) -> Function:
    return lambda *xs: sum(jnp.sum(jnp.sin(x)) for x in f(*xs))


@pytest.mark.parametrize("name", [n for n in WRAPS if n != "within jit"])
@given(programs(), st.integers(0, 8))
@settings(max_examples=12)
def test_first_derivatives_are_those_without_a_checkpoint(name: str, p: Program, at: int) -> None:
    with enable_x64():
        args, v = p.arguments(), p.directions(1)
        f = in_pieces(p, WRAPS[name], at)
        close(f(*args), p(*args))
        close(jvp(f, args, v), jvp(p, args, v))
        close(linearize(f, *args)[1](*v), linearize(p, *args)[1](*v))
        out, pull = vjp(f, *args)
        cts = random_like(out, 2)
        close(pull(cts), vjp(p, *args)[1](cts))
        close(grad(scalar(f))(*args), grad(scalar(p))(*args))


@pytest.mark.parametrize("name", ["none", "dots", "products of numbers", "nested", "branching"])
@given(programs(max_inputs=2, max_instructions=6), st.integers(0, 6))
@settings(max_examples=10)
def test_higher_derivatives_are_those_without_a_checkpoint(name: str, p: Program, at: int) -> None:
    with enable_x64():
        args, v = p.arguments(), p.directions(1)
        f, g = scalar(in_pieces(p, WRAPS[name], at)), scalar(p)
        where = tuple(range(len(args)))

        def product(h: Function) -> Function:
            """The gradient of a Hessian-vector product, summed: reverse over reverse."""
            return lambda *xs: sum(jnp.vdot(a, b) for a, b in zip(grad(h, where)(*xs), v, strict=True))

        close(jvp(grad(f, where), args, v), jvp(grad(g, where), args, v))
        close(grad(product(f), where)(*args), grad(product(g), where)(*args))
        close(
            grad(lambda *xs: jvp(f, xs, v)[1], where)(*args),
            grad(lambda *xs: jvp(g, xs, v)[1], where)(*args),
        )  # fmt: skip
        close(grad(product(product(f)), where)(*args), grad(product(product(g)), where)(*args))


@pytest.mark.parametrize("name", ["none", "dots", "nested", "branching"])
@given(programs(max_inputs=2, max_instructions=5), st.integers(0, 5))
@settings(max_examples=5)
def test_hessians_are_those_without_a_checkpoint(name: str, p: Program, at: int) -> None:
    with enable_x64():
        f, g, args = scalar(in_pieces(p, WRAPS[name], at)), scalar(p), p.arguments()
        expected = hessian(g)(*args)
        close(hessian(f)(*args), expected)
        close(jacrev(jacrev(f))(*args), expected)
        close(jacfwd(jacfwd(f))(*args), expected)
        close(jacrev(jacfwd(f))(*args), expected)


@pytest.mark.parametrize("name", ["none", "dots", "nested", "within jit"])
@given(programs(max_inputs=2, max_instructions=6), st.integers(0, 6))
@settings(max_examples=6)
def test_mapped_and_recorded_it_is_the_same(name: str, p: Program, at: int) -> None:
    with enable_x64():
        f = in_pieces(p, WRAPS[name], at)
        batches = random_like([np.zeros((3, *x.shape)) for x in p.inputs], 3)
        where = tuple(range(len(batches)))
        close(vmap(f)(*batches), vmap(p)(*batches))
        close(vmap(grad(scalar(f), where))(*batches), vmap(grad(scalar(p), where))(*batches))
        total = lambda h: lambda *xs: jnp.sum(vmap(scalar(h))(*xs))
        close(grad(total(f), where)(*batches), grad(total(p), where)(*batches))
        args = p.arguments()
        closed = make_jaxpr(grad(scalar(f), where))(*args)
        check_jaxpr(closed)
        close(tuple(jaxpr_as_fun(closed)(*args)), grad(scalar(p), where)(*args))


@pytest.mark.parametrize("name", ["none", "dots", "nested", "within jit"])
@given(programs(max_inputs=2, max_instructions=6), st.integers(0, 6))
@settings(max_examples=3)
def test_compiled_it_is_the_same(name: str, p: Program, at: int) -> None:
    with enable_x64():
        f, args, v = in_pieces(p, WRAPS[name], at), p.arguments(), p.directions(1)
        where = tuple(range(len(args)))
        expected = grad(scalar(p), where)(*args)
        close(jit(grad(scalar(f), where))(*args), expected)
        close(grad(jit(scalar(f)), where)(*args), expected)
        close(jit(lambda *xs: jvp(grad(scalar(f), where), xs, v)[1])(*args), jvp(grad(scalar(p), where), args, v)[1])


# Eager ---------------------------------------------------------------------------------------------------------


def test_control_flow_on_values() -> None:
    seen: list[float] = []

    @checkpoint
    def f(x: Any, w: Any) -> Any:
        seen.append(float(lax.stop_gradient(x)))
        y = x
        while y < 10.0:
            y = y * w
        return y

    close(f(1.5, 2.0), as_array(12.0))
    assert seen == [1.5]
    seen.clear()
    close(grad(f, (0, 1))(1.5, 2.0), (as_array(8.0), as_array(18.0)))
    assert seen == [1.5]  # the backward pass does again what the function did, and does not call it
    seen.clear()
    close(jvp(f, (1.5, 2.0), (1.0, 0.0))[1], as_array(8.0))
    assert seen == [1.5]
    close(hessian(f, 1)(1.5, 2.0), as_array(18.0))
    close(jacfwd(f)(1.5, 2.0), as_array(8.0))


def test_a_function_whose_surroundings_are_gone_in_the_backward_pass() -> None:
    """Haiku's and NNX's functions look up their parameters in a stack, in which they are during the call alone."""
    stack: list[float] = []

    def build(wrap: Wrap) -> Function:
        def inner(x: Any) -> Any:
            y = jnp.sin(x) * stack[-1]
            return wrap(lambda y: jnp.exp(y) * stack[-1])(y)

        def f(x: Any) -> Any:
            stack.append(2.0)
            try:
                return wrap(inner)(x)
            finally:
                stack.pop()

        return f

    f, plain = build(checkpoint), build(lambda f: f)
    xs = jnp.array([0.3, -1.0, 2.0])
    third, over_jvp = lambda f: grad(grad(grad(f))), lambda f: grad(lambda x: jvp(f, (x,), (x,))[1])
    for transformed in (grad, jacfwd, jacrev, hessian, third, over_jvp, lambda f: jit(grad(f))):
        close(transformed(f)(0.5), transformed(plain)(0.5))
    product = lambda f: grad(lambda xs: vmap(f)(xs).prod())
    for mapped in (lambda f: jacrev(vmap(f)), lambda f: vmap(hessian(f)), lambda f: vmap(jit(grad(f))), product):
        close(mapped(f)(xs), mapped(plain)(xs))
    _, pull = vjp(f, 0.5)
    close(pull(2.0), vjp(plain, 0.5)[1](2.0))
    close(vmap(pull)(xs), vmap(vjp(plain, 0.5)[1])(xs))


def test_what_a_function_leaves_outside_is_there_for_the_function_around_it() -> None:
    left: list[Any] = []

    def build(wrap: Wrap) -> Function:
        def inner(y: Any) -> Any:
            left.append(jnp.exp(y))
            return jnp.sin(left[-1])

        return wrap(lambda x: wrap(inner)(x) * left.pop() * wrap(inner)(2.0 * x))

    close(grad(build(checkpoint))(0.3), grad(build(lambda f: f))(0.3))
    close(grad(grad(build(checkpoint)))(0.3), grad(grad(build(lambda f: f)))(0.3))


def test_what_has_no_derivative_is_an_ordinary_array_within() -> None:
    key = random.key(0)

    def f(x: Any, n: Any, k: Any, data: Any) -> Any:
        keep = random.bernoulli(k, 0.5, x.shape) & random.bernoulli(key, 0.9, x.shape)
        seen.update(n=np.asarray(n), data=float(data.sum()), keep=np.asarray(keep), floor=float(jnp.floor(x[0])))
        seen["large"] = np.asarray(jnp.arange(3000.0) + 1).sum()
        return jnp.sum(jnp.where(keep, jnp.sin(x * n) * data.mean(), 0.0)) * float(jnp.ones(3000).sum())

    x, seen = jnp.linspace(0.1, 2.0, 2000), {}
    args = (x, jnp.array(3), random.key(1), jnp.arange(4.0))
    expected = grad(f)(*args)
    seen.clear()
    close(grad(checkpoint(f))(*args), expected)
    assert (seen["n"], seen["data"], seen["floor"], seen["large"]) == (3, 6.0, 0.0, 4501500.0)
    for lost in (lambda x: x * float(x), lambda x: checkpoint(lambda y: y * float(x))(2.0)):
        with pytest.raises(LostDerivativeError, match=r"float\(\) would lose a derivative"):
            grad(checkpoint(lost))(2.0)
    close(grad(checkpoint(lambda x: x * float(lax.stop_gradient(x))))(2.0), as_array(2.0))


def test_functions_with_rules_within_may_branch_too() -> None:
    @custom_jvp
    def f(x: Any) -> Any:
        return jnp.sin(x) if x > 0 else x

    f.defjvp(lambda primals, tangents: (f(*primals), 10.0 * tangents[0]))

    @custom_vjp
    def g(x: Any) -> Any:
        return jnp.sin(x) if x > 0 else x

    g.defvjp(lambda x: (g(x), x), lambda x, ct: (10.0 * ct if x > 0 else ct,))
    for h in (lambda x: f(2.0 * x) * x, lambda x: g(2.0 * x) * x):
        close(grad(checkpoint(h))(0.3), grad(h)(0.3))
        close(jacrev(checkpoint(h))(-0.3), jacrev(h)(-0.3))


def test_numpys_arrays_are_as_they_were_at_the_call() -> None:
    def derivatives(wrap: Wrap) -> list[Any]:
        w, v, number = np.ones(3), np.full(3, 2.0), np.array(1.5)

        def inner(x: Any) -> Any:
            return jnp.sin(x * v) * w * number

        def f(x: Any) -> Any:
            own = np.zeros(3)
            own[0] = 5
            b = x * w + own
            own[0] = 7  # between two uses
            return (wrap(inner)(b) * own * w).sum()

        g, x = wrap(f), jnp.array([0.3, 0.5, -1.0])
        _, first = vjp(g, x)
        _, second = vjp(grad(g), x)
        _, linear = linearize(g, x)
        w[:], v[:], number[...] = 7, 9, 11
        return [first(1.0)[0], second(jnp.ones(3))[0], linear(jnp.ones(3))]

    close(derivatives(checkpoint), derivatives(lambda f: f))


def test_numpys_arrays_of_the_function_are_let_go_of() -> None:
    big, made = np.ones(1000), []

    @checkpoint
    def f(x: Any) -> Any:
        own = np.full(1000, 2.0)
        made.append(weakref.ref(own))
        for _ in range(3):
            x = x * big * own
        return x.sum()

    _, pull = vjp(f, jnp.ones(1000))
    gc.collect()
    assert made[0]() is None
    big[:] = 7.0
    close(pull(1.0)[0], jnp.full(1000, 8.0))


def test_a_debugger() -> None:
    output = io.StringIO()
    commands = "p x.shape\np y\ncontinue\n"
    debugger = pdb.Pdb(stdin=io.StringIO(commands), stdout=output, nosigint=True, readrc=False)
    previous = sys.gettrace()

    @checkpoint
    def f(x: Any) -> Any:
        y = 3.0 * x
        debugger.set_trace()
        return jnp.sin(y)

    try:
        close(grad(f)(0.0), as_array(3.0))
    finally:
        sys.settrace(previous)
    written = output.getvalue()
    assert written.count("(Pdb) ()") == 1
    assert "(Pdb) Traced<f32[]: 0.0> by differentiation of a checkpointed function" in written


def test_closed_over_values_are_found_at_every_level() -> None:
    def build(wrap: Wrap) -> Function:
        def f(w: Any, x: Any) -> Any:
            def inner(y: Any) -> Any:
                branch = jnp.sin if w.sum() > 0 else jnp.cos
                if y.sum() > 1e9:  # closed over by both, and by what is compiled
                    raise ValueError
                return branch(jit(lambda z: z * w)(y)) + grad(lambda z: jnp.sum(jnp.sin(z * w)))(y)

            @wrap
            def outer(y: Any) -> Any:
                return wrap(inner)(wrap(inner)(y) * w)

            return jnp.sum(outer(x) * wrap(lambda: jnp.exp(w))())

        return f

    w, x, v = jnp.array([0.3, 0.5]), jnp.array([1.0, 2.0]), jnp.array([0.7, -1.0])
    plain, f = build(lambda f: f), build(checkpoint)
    close(grad(f, (0, 1))(w, x), grad(plain, (0, 1))(w, x))
    close(jvp(grad(f), (w, x), (v, v)), jvp(grad(plain), (w, x), (v, v)))
    close(jacrev(jacrev(f))(w, x), jacrev(jacrev(plain))(w, x))
    close(jacrev(jacrev(jacrev(f)))(w, x), jacrev(jacrev(jacrev(plain)))(w, x), tolerance=1e-4)
    by_forward = lambda h: grad(lambda w: jvp(lambda w: h(w, x), (w,), (v,))[1])
    close(by_forward(f)(w), by_forward(plain)(w))
    # One derivative within another, both with respect to what is closed over.
    within = lambda h: grad(lambda w: jnp.sum(grad(lambda x: h(w, x * w))(x) ** 2))
    close(within(f)(w), within(plain)(w))
    close(vjp(f, w, x)[1](2.0), vjp(plain, w, x)[1](2.0))


def test_results_that_are_arguments_or_closed_over() -> None:
    def f(w: Any, x: Any) -> Any:
        out = checkpoint(lambda y: {"argument": y, "closed over": w, "constant": 2.0, "integer": 3, "both": y * w})(x)
        return out["argument"] * out["closed over"] * out["constant"] * out["integer"] + out["both"]

    for transformed in (grad(f, (0, 1)), jit(grad(f, (0, 1)))):
        close(transformed(2.0, 5.0), (as_array(35.0), as_array(14.0)))
    close(grad(lambda x: checkpoint(lambda: 3.0)() * x)(2.0), as_array(3.0))


def test_a_leaked_value_is_refused() -> None:
    kept: list[Any] = []

    @checkpoint
    def f(x: Any) -> Any:
        kept.append(x)
        return x * kept[0] if len(kept) > 1 else x

    def leaks(x: Any) -> Any:
        kept.append(x)
        return x

    grad(leaks)(1.0)
    with pytest.raises(UnexpectedTracerError, match="after its transformation had ended"):
        grad(f)(2.0)
    assert state.trace is EVAL


def test_errors_in_either_pass_leave_everything_as_it_was() -> None:
    calls: list[str] = []

    def build(fails_in: str) -> Function:
        calls.clear()

        def reached(where: str) -> None:
            calls.append(where)
            if where == fails_in:
                raise KeyError("here")

        @custom_vjp
        def scaled(x: Any) -> Any:
            return 2.0 * x

        scaled.defvjp(lambda x: (2.0 * x, None), lambda _, ct: (reached("backward"), (2.0 * ct,))[1])

        def f(w: Any) -> Any:
            def inner(x: Any) -> Any:
                reached("forward")
                return scaled(x) * w

            return checkpoint(inner)(w)

        return f

    for fails_in in ("forward", "backward"):
        with pytest.raises(KeyError, match="here"):
            grad(build(fails_in))(3.0)
        assert state.trace is EVAL
    close(grad(build("nowhere"))(3.0), as_array(12.0))
    assert calls == ["forward", "backward"]


def test_a_vjp_function_is_reusable_and_a_pytree() -> None:
    w, x = jnp.array([0.3, 0.5]), jnp.array([1.0, 2.0])

    def build(wrap: Wrap) -> Function:
        def f(x: Any) -> Any:
            return wrap(lambda y: jnp.sin(wrap(lambda z: z * w * x)(y)))(jnp.exp(x))

        return f

    (_, pull), (_, expected) = vjp(build(checkpoint), x), vjp(build(lambda f: f), x)
    for ct in (w, x):
        close(pull(ct), expected(ct))
        close(jit(lambda p, ct: p(ct))(pull, ct), expected(ct))
    cts = jnp.eye(2)
    close(vmap(pull)(cts), vmap(expected)(cts))
    points = jnp.array([[0.1, 0.2], [0.3, 0.4]])
    pulls = lambda wrap: vmap(lambda x, ct: vjp(build(wrap), x)[1](ct))(points, cts)
    close(pulls(checkpoint), pulls(lambda f: f))


def test_threads_do_not_disturb_each_other() -> None:
    def f(w: Any) -> Any:
        x = w
        for _ in range(5):
            x = checkpoint(lambda y: jnp.sin(checkpoint(lambda z: z * w)(y)))(x)
        return jnp.sum(x)

    w = jnp.linspace(0.1, 1.0, 50)
    _, pull = vjp(f, w)
    expected = pull(1.0)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(20):
                close(pull(1.0), expected)
                close((grad(f)(w),), expected)
                close(jvp(grad(f), (w,), (w,))[0], expected[0])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


# Memory --------------------------------------------------------------------------------------------------------------

SIZE = 100_000
BYTES = 4 * SIZE


def peak(call: Callable[[], Any]) -> tuple[float, float]:
    """The most that a call holds at a time, and what is left of it, in arrays."""
    call()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = call()
        now, most = tracemalloc.get_traced_memory()
        del result
        return (most - before) / BYTES, (now - before) / BYTES
    finally:
        tracemalloc.stop()


def chain(wrap: Wrap, length: int, closed_over: bool) -> Function:
    def step(x: Any) -> Any:
        for _ in range(10):  # of which three arrays are kept without a checkpoint
            x = x * jnp.sin(x)
        return x

    def f(x: Any) -> Any:
        block = (lambda y: step(y) + 0.1 * x) if closed_over else step
        y = x
        for _ in range(length):
            y = wrap(block)(y)
        return jnp.sum(y)

    return f


@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("closed_over", [False, True])
def test_uncompiled_reverse_mode_keeps_the_arguments_alone(closed_over: bool) -> None:
    x = jnp.linspace(0.1, 1.0, SIZE)
    peaks = []
    for length in (5, 15):
        most, left = peak(partial(grad(chain(checkpoint, length, closed_over)), x))
        assert left < 1.5  # the gradient
        peaks.append(most)
    assert peaks[1] - peaks[0] <= 10.5  # one array for each of ten more steps
    assert peaks[0] <= 45
    assert peak(lambda: grad(chain(lambda f: f, 15, closed_over))(x))[0] >= 450


@pytest.mark.slow
@pytest.mark.usefixtures("without_collector")
def test_higher_derivatives_keep_little_too() -> None:
    x = jnp.linspace(0.1, 1.0, SIZE)
    calls: dict[str, tuple[Callable[[Function], Any], float]] = {
        "forward over reverse": (lambda f: jvp(grad(f), (x,), (x,)), 2.5),
        "reverse over reverse": (lambda f: grad(lambda x: jnp.vdot(grad(f)(x), x))(x), 3.5),
        "reverse over forward": (lambda f: grad(lambda x: jvp(f, (x,), (x,))[1])(x), 2.5),
    }
    for name, (call, for_each) in calls.items():
        few, many = (peak(partial(call, chain(checkpoint, n, True)))[0] for n in (4, 8))
        assert many - few <= 4 * for_each, (name, few, many)


@pytest.mark.usefixtures("without_collector")
def test_checkpoints_within_checkpoints_hold_less() -> None:
    x = jnp.linspace(0.1, 1.0, SIZE)

    def build(inner: Wrap) -> Function:
        return lambda x: checkpoint(chain(inner, 10, False))(x) + checkpoint(chain(inner, 10, True))(2.0 * x)

    flat, nested = (peak(partial(grad(build(inner)), x))[0] for inner in (lambda f: f, checkpoint))
    assert flat > 300
    assert nested < 60


@pytest.mark.usefixtures("without_collector")
def test_masks_are_computed_again() -> None:
    x, key = jnp.linspace(0.1, 1.0, SIZE), random.key(0)

    def f(x: Any) -> Any:
        for i in range(10):
            mask = lambda y, i=i: jnp.where(random.uniform(random.fold_in(key, i), y.shape) < 0.5, jnp.sin(y), y)
            x = checkpoint(mask)(x)
        return jnp.sum(x)

    close(grad(f)(x), jit(grad(f))(x))
    assert peak(lambda: vjp(f, x)[1])[1] < 12  # the arguments of ten calls


@pytest.mark.usefixtures("without_collector")
def test_a_vjp_function_frees_what_it_held() -> None:
    x = jnp.linspace(0.1, 1.0, SIZE)
    assert peak(lambda: vjp(chain(checkpoint, 5, False), x)[1](1.0))[1] < 1.5


def test_a_policy_keeps_more_and_computes_less() -> None:
    x = jnp.linspace(0.1, 1.0, SIZE)
    kept = {}
    for name in ("nothing_saveable", "everything_saveable"):
        wrap = partial(checkpoint, policy=getattr(policies, name))
        kept[name] = peak(partial(vjp, chain(wrap, 6, False), x))[1]
    assert kept["nothing_saveable"] < 8
    assert kept["everything_saveable"] > 150


LAYERS, WIDTH, BATCH = 16, 32, 256


def deep(wrap: Wrap, size: int = 4) -> Function:
    def block(ws: Sequence[Any], x: Any) -> Any:
        for w in ws:
            x = jnp.tanh(x @ w) * jnp.cos(x)
        return x

    def f(ws: Sequence[Any], x: Any) -> Any:
        for i in range(0, LAYERS, size):
            x = wrap(block)(ws[i : i + size], x)
        return jnp.sum(x**2)

    return f


def looped(wrap: Wrap) -> Function:
    def f(ws: Sequence[Any], x: Any) -> Any:
        body = wrap(lambda w, x: jnp.tanh(x @ w) * jnp.cos(x))
        return jnp.sum(scan(lambda x, w: (body(w, x), None), x, jnp.stack(ws))[0] ** 2)

    return f


@pytest.mark.slow
def test_compiled_programs_compute_again_and_take_less_memory() -> None:
    rng = np.random.default_rng(0)
    ws = [as_array((rng.standard_normal((WIDTH, WIDTH)) / WIDTH**0.5).astype(np.float32)) for _ in range(LAYERS)]
    x = as_array(rng.standard_normal((BATCH, WIDTH)).astype(np.float32))
    expected = grad(deep(lambda f: f))(ws, x)

    def compiled(f: Function) -> tuple[float, int]:
        program = jit(grad(f)).lower(ws, x).compile()
        close(program(ws, x), expected, tolerance=1e-4)
        return program.memory_analysis().temp_size_in_bytes / (4 * BATCH * WIDTH), program.as_text().count("tanh(")

    two = lambda f: checkpoint(lambda ws, x: checkpoint(f)(ws[2:], checkpoint(f)(ws[:2], x)))
    plain, plain_tanh = compiled(deep(lambda f: f))
    all_, all_tanh = compiled(deep(checkpoint))
    dots, dots_tanh = compiled(deep(partial(checkpoint, policy=policies.dots_saveable)))
    nested, nested_tanh = compiled(deep(two))
    assert (plain_tanh, all_tanh, dots_tanh) == (LAYERS, 2 * LAYERS, 2 * LAYERS)
    assert nested_tanh > 2 * LAYERS
    assert plain > 2.5 * LAYERS
    assert all_ < 0.35 * plain
    assert nested < all_ < dots < 0.7 * plain
    plain, _ = compiled(looped(lambda f: f))
    for prevent_cse in (True, False):
        assert compiled(looped(partial(checkpoint, prevent_cse=prevent_cse)))[0] < 0.4 * plain


def test_the_compiler_merges_it_if_it_may() -> None:
    x = jnp.linspace(0.1, 1.0, 100)
    for prevent_cse, count in ((True, 2), (False, 1), ((True,), 2), ((False,), 1), ({"a": True, "b": False}, 2)):
        f = checkpoint(lambda x: jnp.sum(jnp.sin(jnp.tanh(x))), prevent_cse=prevent_cse)
        assert jit(value_and_grad(f)).lower(x).compile().as_text().count("tanh(") == count


def test_other_platforms_get_a_barrier_alone() -> None:
    w = jnp.eye(3)
    for f, marks in ((lambda x: jnp.sin(jnp.tanh(x)), ("sort", "if")), (lambda x: jnp.sin(w @ x), ("if", "sort"))):
        closed = make_jaxpr(grad(lambda x, f=f: jnp.sum(checkpoint(f)(x))))(jnp.ones(3))
        for platform in ("cpu", "cuda"):
            text = emit_module(closed, "f", platform)[0].text()
            found = [f'"stablehlo.{mark}"' in text for mark in marks]
            assert found == [platform == "cpu", False]
            assert '"stablehlo.optimization_barrier"(' in text


# Policies: what is kept, and what is computed again ------------------------------------------------------------------


def mlp(ws: Sequence[Any], x: Any) -> Any:
    for i, w in enumerate(ws):
        x = checkpoint_name(jnp.sin(x @ w), f"layer{i}")
    return jnp.sum(jnp.einsum("ij,ij->i", x, x))


SIZES = (4, 5, 6, 7)
MLP_ARGS = ([jnp.ones(pair) for pair in itertools.pairwise(SIZES)], jnp.ones((3, 4)))
ARGUMENTS = ["argument 0 (ws[0])", "argument 0 (ws[1])", "argument 0 (ws[2])", "argument 1 (x)"]
DOTS = [(n, "output of dot_general") for n in SIZES[1:]]
NAMED = [(n, f"named 'layer{i}'") for i, n in enumerate(SIZES[1:])]
COSINES = [(n, "output of cos") for n in SIZES[1:]]

# What JAX 0.10.2 keeps beside the arguments, with the size of the last axis. It calls the sine whose name must not be
# kept by that name.
KEPT: dict[str, tuple[Any, list[tuple[int, str]]]] = {
    "no policy": (None, []),
    "nothing": (policies.nothing_saveable, []),
    "everything": (policies.everything_saveable, COSINES + NAMED),
    "dots": (policies.dots_saveable, DOTS),
    "checkpoint_dots": (policies.checkpoint_dots, DOTS),
    "dots without batch": (policies.dots_with_no_batch_dims_saveable, DOTS),
    "checkpoint_dots without batch": (policies.checkpoint_dots_with_no_batch_dims, DOTS),
    "only": (policies.save_only_these_names("layer0", "layer2"), [NAMED[0], NAMED[2]]),
    "any but": (policies.save_any_names_but_these("layer0"), NAMED[1:]),
    "anything except": (
        policies.save_anything_except_these_names("layer1"),
        [*COSINES, NAMED[0], (6, "output of sin"), NAMED[2]],
    ),
    "both": (
        policies.save_from_both_policies(
            policies.dots_with_no_batch_dims_saveable, policies.save_only_these_names("layer1")
        ),
        [*DOTS, NAMED[1]],
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_policies_keep_what_those_of_jax_keep(name: str) -> None:
    policy, expected = KEPT[name]
    found = saved_residuals(checkpoint(mlp, policy=policy), *MLP_ARGS)
    assert [what for _, what in found[:4]] == ARGUMENTS
    assert sorted((aval.shape[-1], what.split(", at ")[0]) for aval, what in found[4:]) == sorted(expected)


# How many products and sines are computed again.
AGAIN = {
    "no policy": {"dot_general": 3, "sin": 3},
    "everything": {"dot_general": 0, "sin": 0},
    "dots": {"dot_general": 0, "sin": 3},
    "only": {"dot_general": 3, "sin": 1},
    "both": {"dot_general": 0, "sin": 2},
}


@pytest.mark.parametrize("name", AGAIN)
def test_policies_decide_what_is_computed_again(name: str) -> None:
    plain = counts(make_jaxpr(grad(mlp))(*MLP_ARGS))
    found = counts(make_jaxpr(grad(checkpoint(mlp, policy=KEPT[name][0])))(*MLP_ARGS))
    assert {p: found[p] - plain[p] for p in ("dot_general", "sin")} == AGAIN[name]
    assert found["cos"] == 3
    first = make_jaxpr(grad(checkpoint(mlp, policy=KEPT[name][0])))(*MLP_ARGS).eqns[0]
    assert counts(first.params["jaxpr"])["cos"] == (3 if name == "everything" else 0)


def test_attention_products_have_batch_axes() -> None:
    def f(w: Any, x: Any) -> Any:
        y = jnp.sin(x @ w)
        return jnp.sum(jnp.sin(jnp.einsum("bij,bkj->bik", y, y)))

    args = jnp.ones((4, 4)), jnp.ones((2, 3, 4))
    kept = lambda policy: sum("dot" in what for _, what in saved_residuals(checkpoint(f, policy=policy), *args))
    assert kept(policies.dots_saveable) == 2
    assert kept(policies.dots_with_no_batch_dims_saveable) == 1


def test_a_policy_is_given_types_and_parameters() -> None:
    asked: list[tuple[str, tuple[int, ...], tuple[str, ...]]] = []

    class Policy:
        """A policy with an equality of its own, which makes it unhashable."""

        def __eq__(self, other: object) -> bool:
            return self is other

        def __call__(self, primitive: Any, *avals: Any, **params: Any) -> bool:
            asked.append((primitive.name, avals[0].shape, tuple(params)))
            return primitive.name == "name" and params["name"] == "a"

    f = lambda x: jnp.sum(jnp.sin(checkpoint_name(jnp.sin(x), "a")))
    close(grad(checkpoint(f, policy=Policy()))(jnp.ones(2)), grad(f)(jnp.ones(2)))
    assert ("name", (2,), ("name",)) in asked
    assert ("cos", (2,), ()) in asked
    assert ("sin", (2,), ()) not in asked  # it is not needed, since what it is needed for is kept


def test_policies_reach_into_compiled_functions_and_loops() -> None:
    x, w = jnp.full((3, 4), 0.3), jnp.cos(jnp.arange(20.0).reshape(4, 5))

    def step(x: Any, w: Any) -> Any:
        return jnp.sin(checkpoint_name(jnp.sin(x @ w), "hidden") @ w.T)

    functions: dict[str, Function] = {
        "jit": lambda x, w: jnp.sum(jit(step)(jit(step)(x, w), w)),
        "jit in jit": lambda x, w: jnp.sum(jit(lambda x: jit(step)(jit(step)(x, w), w))(x)),
        "scan": lambda x, w: jnp.sum(scan(lambda x, _: (step(x, w), None), x, None, length=2)[0]),
    }
    cases = {
        "dots": (policies.dots_saveable, 0, 4 * 15 + 4 * 12 - 2 * 12 - 2 * 15),
        "hidden": (policies.save_only_these_names("hidden"), None, 2 * 15),
    }
    for kind, f in functions.items():
        expected = grad(f, (0, 1))(x, w)
        for policy, again, kept in cases.values():
            g = checkpoint(f, policy=policy)
            close(grad(g, (0, 1))(x, w), expected)
            if kind != "jit":
                close(jit(grad(g, (0, 1)))(x, w), expected)
            found = saved_residuals(g, x, w)
            assert sum(aval.size for aval, what in found if "argument" not in what) == kept, kind
            if again is not None:
                more = (
                    counts(make_jaxpr(grad(g))(x, w))["dot_general"] - counts(make_jaxpr(grad(f))(x, w))["dot_general"]
                )
                assert more == again


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("inner", ["plain", "checkpointed"])
def test_scans_with_results_and_constants_under_every_policy(name: str, inner: str) -> None:
    def f(x: Any, w: Any, v: Any) -> Any:
        def body(carry: Any, row: Any) -> Any:
            c, n = carry
            y = checkpoint_name(jnp.tanh(c @ w) + row, "y")
            d = y @ w.T
            return (jnp.sin(d), jnp.sum(d)), (d, y * n, c)

        step = checkpoint(body) if inner == "checkpointed" else body
        (c, n), (a, b, e) = scan(step, (x, 1.0), v, reverse=True)
        return jnp.sum(jnp.sin(c)) + n**2 + jnp.sum(a**2) + jnp.sum(jnp.cos(b)) + jnp.sum(e)

    args = jnp.full((3, 4), 0.3), jnp.cos(jnp.arange(20.0).reshape(4, 5)), jnp.linspace(0.0, 0.6, 35).reshape(7, 5)
    g = checkpoint(f, policy=POLICIES[name])
    expected = grad(f, (0, 1, 2))(*args)
    close(grad(g, (0, 1, 2))(*args), expected, tolerance=1e-4)
    check_jaxpr(make_jaxpr(grad(g, (0, 1, 2)))(*args))
    if name in ("dots", "products of numbers"):
        close(jit(grad(g, (0, 1, 2)))(*args), expected, tolerance=1e-4)


def test_a_checkpoint_within_keeps_what_its_own_policy_says() -> None:
    def f(inner: Any, outer: Any) -> int:
        step = checkpoint(lambda x: jnp.sin(jnp.sin(jnp.sin(x))), policy=inner)
        g = checkpoint(lambda x: jnp.sum(step(jnp.exp(x))), policy=outer)
        return len(saved_residuals(g, jnp.ones(3)))

    nothing, everything = policies.nothing_saveable, policies.everything_saveable
    assert f(nothing, nothing) == f(everything, nothing) == 1
    assert f(nothing, everything) == 1  # the exponential
    assert f(everything, everything) == 4


# Programs ------------------------------------------------------------------------------------------------------------


def test_the_program_of_a_gradient() -> None:
    program = make_jaxpr(grad(checkpoint(lambda x: jnp.sin(jnp.sin(x)))))(1.0)
    assert str(program) == (
        "{ lambda ; a:f32[]. let\n"
        "    _:f32[] = checkpoint[\n"
        "      differentiated=False\n"
        "      jaxpr={ lambda ; b:f32[]. let c:f32[] = sin b; d:f32[] = sin c in (d,) }\n"
        "      policy=None\n"
        "      prevent_cse=True\n"
        "    ] a\n"
        "    e:f32[] = checkpoint[\n"
        "      differentiated=True\n"
        "      jaxpr={ lambda ; f:f32[] g:f32[]. let\n"
        "          h:f32[] = name[name=cotangent of a checkpoint] g\n"
        "          i:f32[] = sin f\n"
        "          j:f32[] = cos f\n"
        "          k:f32[] = cos i\n"
        "          l:f32[] = mul h k\n"
        "          m:f32[] = mul l j\n"
        "        in (m,) }\n"
        "      policy=None\n"
        "      prevent_cse=True\n"
        "    ] a 1.0:f32[]\n"
        "  in (e,) }"
    )
    policy = policies.save_from_both_policies(policies.dots_saveable, policies.save_only_these_names("a"))
    program = make_jaxpr(checkpoint(jnp.sin, policy=policy, prevent_cse=False))(1.0)
    assert "policy=save_from_both_policies(dots_saveable, save_only_these_names('a'))" in str(program)
    assert "prevent_cse=False" in str(program)


def test_dead_code_within_it_goes() -> None:
    def f(x: Any, y: Any) -> Any:
        a, _ = checkpoint(lambda x, y: (jnp.sin(jnp.cos(x)), jnp.exp(y)))(x, y)
        return a

    found = counts(make_jaxpr(grad(f))(1.0, 2.0))
    assert found["exp"] == 1  # in the forward pass, which is recorded as it is
    text = jit(grad(f)).lower(1.0, 2.0).as_text()
    assert "exponential" not in text


def test_what_does_not_depend_on_the_argument_is_not_computed_again() -> None:
    f = checkpoint(lambda x, y: jnp.sin(x) * jnp.exp(y), policy=policies.everything_saveable)
    found = counts(make_jaxpr(grad(f))(1.0, 2.0))
    assert (found["exp"], found["cos"]) == (1, 1)


def test_custom_rules_within_it_are_kept() -> None:
    f = custom_jvp(lambda x: 2.0 * x)
    f.defjvp(lambda primals, tangents: (2.0 * primals[0], 3.0 * tangents[0]))
    g = custom_vjp(lambda x: 2.0 * x)
    g.defvjp(lambda x: (2.0 * x, None), lambda _, ct: (3.0 * ct,))
    x = jnp.ones(4)
    for rule in (f, g):
        for policy in POLICIES.values():
            h = checkpoint(lambda x, rule=rule: jnp.sin(rule(x)), policy=policy)
            expected = 3.0 * np.cos(np.float32(2.0))
            close(grad(h)(1.0), as_array(np.float32(expected)))
            close(jit(grad(h))(1.0), as_array(np.float32(expected)))
            close(vmap(grad(h))(x), as_array(np.full(4, expected)))
            close(jacfwd(h)(1.0), as_array(np.float32(expected)))
        inner = checkpoint(rule)
        close(grad(lambda x, inner=inner: inner(x))(1.0), as_array(3.0))
        close(grad(lambda x, inner=inner: cond(x > 0, inner, jnp.sin, x))(1.0), as_array(3.0))


def test_in_branches_and_in_loops() -> None:
    step = lambda x, w: jnp.sin(x * w)
    for wrap in (checkpoint, partial(checkpoint, policy=policies.dots_saveable, prevent_cse=False)):
        f, g = (
            partial(lambda s, w: scan(lambda x, _: (s(x, w), x), w, None, length=4)[0], s) for s in (step, wrap(step))
        )
        for transformed in (grad, lambda h: grad(grad(h)), lambda h: jit(grad(h)), lambda h: jit(hessian(h))):
            close(transformed(g)(0.7), transformed(f)(0.7))
        both = partial(lambda s, w: cond(w > 0, lambda w: s(w, w), lambda w: w, w), wrap(step))
        close(jit(grad(both))(0.7), grad(lambda w: step(w, w))(0.7))


def test_effects_happen_as_often_as_it_is_run(capfd: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        debug.print("x = {}", x)
        y = jnp.sin(x)
        debug.print("y = {}", jnp.abs(y))
        return jnp.sin(y)

    def printed(call: Callable[[], Any]) -> str:
        call()
        pullback.effects_barrier()
        return "".join(line[0] for line in capfd.readouterr().out.splitlines())

    for policy, expected in ((None, "xyxy"), (policies.dots_saveable, "xyxy"), (policies.everything_saveable, "xy")):
        g = checkpoint(f, policy=policy)
        assert printed(partial(g, 0.0)) == "xy"
        assert printed(partial(grad(g), 0.0)) == expected
        assert printed(partial(jit(grad(g)), 0.0)) == expected
        assert printed(partial(grad(jit(g)), 0.0)) == expected
        assert printed(partial(jit(g), 0.0)) == "xy"


def test_arguments_and_results_of_every_kind() -> None:
    def f(x: Any, n: int, options: dict[str, Any], *, key: Any, flag: Any) -> Any:
        noise = random.normal(key, x.shape)
        return {"a": jnp.where(flag, jnp.sin(x) * n + noise, options["b"]), "n": n + 1, "key": key}, x > 0

    def loss(wrap: Wrap) -> Function:
        def h(x: Any, b: Any) -> Any:
            out, positive = wrap(f)(x, 3, {"b": b, "none": None}, key=random.key(0), flag=True)
            return jnp.sum(out["a"] * positive) * out["n"]

        return h

    args = jnp.arange(3.0) - 1, jnp.ones(3)
    expected = grad(loss(lambda f: f), (0, 1))(*args)
    for wrap in WRAPS.values():
        if wrap not in (WRAPS["nested"], WRAPS["branching"], WRAPS["within jit"]):
            close(grad(loss(wrap), (0, 1))(*args), expected)
            close(jit(grad(loss(wrap), (0, 1)))(*args), expected)


# The function that it returns ---------------------------------------------------------------------------------------


def test_ways_to_write_it() -> None:
    class Layer:
        w = 3.0

        @partial(checkpoint, static_argnums=0)
        def plain(self: Any, x: Any) -> Any:
            """A layer."""
            return jnp.sin(self.w * x)

        @partial(remat, policy=policies.dots_saveable, static_argnums=0)
        def other(self: Any, x: Any) -> Any:
            return jnp.sin(self.w * x)

    @checkpoint(prevent_cse=False)
    def g(x: Any, *, w: Any = 3.0) -> Any:
        return jnp.sin(w * x)

    assert (Layer.plain.__name__, Layer.plain.__doc__) == ("plain", "A layer.")
    close(grad(Layer().other)(0.0), as_array(3.0))
    assert remat is checkpoint
    close(grad(g)(0.0), as_array(3.0))
    close(grad(lambda x: g(x, w=2.0))(0.0), as_array(2.0))


def test_methods() -> None:
    class Layer:
        def __init__(self, w: Any) -> None:
            self.w = w

        @partial(checkpoint, static_argnums=0)
        def __call__(self, x: Any) -> Any:
            return jnp.sin(self.w * x)

    for transform in (lambda f: f, jit):
        close(transform(grad(Layer(3.0)))(0.0), as_array(3.0))
        # The layer is static, but what it holds may be differentiated: it is closed over.
        close(transform(grad(lambda w: Layer(w)(2.0)))(0.0), as_array(2.0))


def test_static_arguments() -> None:
    seen: list[Any] = []

    def f(x: Any, mode: Any, *rest: Any, scale: Any = 1.0) -> Any:
        seen.append((mode, rest, scale))
        return x * scale if mode == ["double"] or mode == "double" else x

    for transform in (lambda f: f, jit):
        g = checkpoint(f, static_argnums=(1, -1), static_argnames="scale")
        close(transform(grad(lambda x, g=g: g(x, ["double"], "last", scale=2.0)))(1.0), as_array(2.0))
        assert seen[-1] == (["double"], ("last",), 2.0)
        h = checkpoint(lambda x, mode, y: x * y if mode else x, static_argnums=1)
        close(transform(grad(lambda x, h=h: h(x, mode=True, y=3.0)))(1.0), as_array(3.0))
        close(transform(grad(lambda x, h=h: h(x, True, 3.0)))(1.0), as_array(3.0))


def test_optimization_barrier() -> None:
    pair = {"a": jnp.arange(3.0), "b": (2, random.key(0))}
    out = optimization_barrier(pair)
    assert tree.structure(out) == tree.structure(pair)
    close(out["a"], pair["a"])
    f = lambda x, y: jnp.sum(optimization_barrier((jnp.sin(x), y))[0]) * 2.0
    x = jnp.arange(3.0)
    for transformed in (grad(f), jit(grad(f)), grad(jit(f))):
        close(transformed(x, 1.0), 2.0 * jnp.cos(x))
    close(jvp(f, (x, 1.0), (x, 1.0))[1], jnp.sum(2.0 * jnp.cos(x) * x))
    close(vmap(lambda x, y: jnp.add(*optimization_barrier((x, y))), (0, None))(x, 1.0), x + 1.0)
    close(hessian(lambda x: f(x, 1.0))(x), jnp.diag(-2.0 * jnp.sin(x)))
    assert optimization_barrier(()) == ()
    assert "stablehlo.optimization_barrier" in jit(f).lower(x, 1.0).as_text()
    with pytest.raises(OperandError, match="expected an array or a number, got 'a'"):
        optimization_barrier("a")


def test_names_are_kept_by_every_transformation() -> None:
    f = lambda x: checkpoint_name({"a": jnp.sin(x), "b": 2.0}, "s")["a"]
    x = jnp.arange(3.0)
    assert "name[name=s]" in str(make_jaxpr(f)(1.0))
    for transformed in (f, jit(f), vmap(f)):
        close(transformed(x), jnp.sin(x))
    close(jacfwd(f)(1.0), jnp.cos(as_array(1.0)))
    close(jit(vmap(grad(f)))(x), jnp.cos(x))
    close(checkpoint_name(3, "n"), as_array(3))


# The report ----------------------------------------------------------------------------------------------------------


def test_a_report_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    def f(params: dict[str, Any], x: Any) -> Any:
        h = checkpoint_name(jnp.sin(x @ params["w"]), "hidden")
        return jnp.sum(h * params["scale"])

    params = {"w": ShapeDtypeStruct((40, 50), "float32"), "scale": ShapeDtypeStruct((), "float32")}
    print_saved_residuals(f, params, ShapeDtypeStruct((3, 40), "float32"))
    line = f.__code__.co_firstlineno
    place = lambda offset: f"{__file__}:{line + offset} (f)"
    rows = capsys.readouterr().out.splitlines()
    assert sorted(rows[:-1]) == sorted((
        "f32[]           4 bytes  argument 0 (params['scale'])",
        "f32[40,50]  8,000 bytes  argument 0 (params['w'])",
        "f32[3,40]     480 bytes  argument 1 (x)",
        f"f32[3,50]     600 bytes  output of cos, at {place(1)}",
        f"f32[3,50]     600 bytes  named 'hidden', at {place(1)}",
    ))  # fmt: skip
    assert rows[-1] == "total: 5 arrays, 9,684 bytes"
    print_saved_residuals(checkpoint(lambda x: jnp.sin(jnp.sin(x))), x=jnp.ones(2))
    assert capsys.readouterr().out == "f32[2]  8 bytes  argument x\ntotal: 1 array, 8 bytes\n"
    print_saved_residuals(lambda x: x, 1.0)
    assert capsys.readouterr().out == "total: 0 arrays, 0 bytes\n"


def test_a_report_looks_into_programs_and_at_constants() -> None:
    c = jnp.arange(3.0)
    inner = jit(lambda x: jnp.sin(jit(lambda y: checkpoint_name(jnp.exp(y), "power"))(x)) * c)
    whats = [what.split(", at")[0] for _, what in saved_residuals(inner, jnp.ones(3))]
    assert sorted(whats) == ["output of cos", "output of exp"]
    looped = lambda x: scan(lambda c, _: (jnp.sin(c), None), x, None, length=5)[0]
    ((aval, what),) = saved_residuals(looped, jnp.ones(3))
    assert aval.shape == (5, 3)
    assert what.split(", at ")[0] == "output of cos"
    assert what.endswith("(<lambda>), within scan")


def test_a_report_of_a_function_that_branches_on_values() -> None:
    c = jnp.arange(3.0)

    def f(x: Any, n: Any) -> Any:
        y = jnp.sin(x * c) if x.sum() > 0 else x
        for _ in range(int(n)):
            y = checkpoint(lambda z: jnp.sin(jnp.sin(z)) if z.sum() > 0 else z)(y)
        return checkpoint_name(jnp.exp(y), "power") * x

    found = [(aval.shape, what.split(", at")[0]) for aval, what in saved_residuals(f, jnp.ones(3), 1)]
    assert sorted(found) == [
        ((3,), "a constant that the function captured"),
        ((3,), "argument 0 (x)"),
        ((3,), "named 'power'"),
        ((3,), "output of cos"),
        ((3,), "output of exp"),
        ((3,), "output of sin"),
    ]
    with pytest.raises(TracerBoolConversionError, match=r"saved_residuals of .*f at"):
        saved_residuals(f, ShapeDtypeStruct((3,), "float32"), 1)
    assert state.trace is EVAL


# Bad input -----------------------------------------------------------------------------------------------------------


def branching(x: Any, n: Any) -> Any:
    return x**2 if n > 2 else x


bad: Any = checkpoint  # calls of it are not looked at by the type checker
maker: Any = checkpoint_policies
BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no function": (lambda: bad(3), ArgumentError, "checkpoint: fun must be a function, got 3 of type int"),
    "policy": (
        lambda: bad(branching, policy="dots"),
        ArgumentError,
        r"checkpoint of branching at \S+ takes a policy, a function policy\(primitive, \*avals, \*\*params\) -> bool, "
        "such as checkpoint_policies.dots_saveable, got 'dots' of type str",
    ),
    "maker of policies": (
        lambda: bad(branching, policy=policies.save_only_these_names),
        ArgumentError,
        r"save_only_these_names returns a policy: call it, as in save_only_these_names\(...\)",
    ),
    "part of a policy": (
        lambda: maker.save_from_both_policies(policies.dots_saveable, 3),
        ArgumentError,
        "save_from_both_policies takes a policy, .* got 3 of type int",
    ),
    "names": (
        lambda: maker.save_only_these_names(["a", "b"]),
        ArgumentError,
        r"save_only_these_names takes names, each a string and a separate argument, got \['a', 'b'\] of type list",
    ),
    "name": (
        lambda: maker.checkpoint_name(1.0, 3),
        ArgumentError,
        "checkpoint_name takes a string as name, got 3 of type int",
    ),
    "named value": (lambda: checkpoint_name("a", "b"), OperandError, "takes a tree of arrays, for the name 'b' too"),
    "prevent_cse": (
        lambda: bad(branching, prevent_cse=1),
        ArgumentError,
        "checkpoint of branching at .*: prevent_cse must be True or False, or a tree of them, got 1",
    ),
    "static_argnums": (
        lambda: bad(branching, static_argnums="n"),
        ArgumentError,
        "checkpoint: static_argnums must be an int or a tuple of at least one int",
    ),
    "static position": (
        lambda: checkpoint(branching, static_argnums=2),
        ArgumentError,
        "static_argnums=2 is not a position of an argument of branching at .*, which has 2 positional parameters: x, n",
    ),
    "static name": (
        lambda: checkpoint(branching, static_argnames="m"),
        ArgumentError,
        "static_argnames='m' is not the name of an argument of branching at .*, whose parameters are x, n",
    ),
    "static name that is none": (
        lambda: bad(branching, static_argnames=(1,)),
        ArgumentError,
        r"static_argnames must be a str or a tuple of strs, got \(1,\)",
    ),
    "traced static argument": (
        lambda: jit(lambda n: checkpoint(branching, static_argnums=1)(2.0, n))(3),
        StaticArgumentError,
        r"checkpoint of branching at .*: the static argument 1 must be a concrete value, but it is "
        r"traced: Traced<i32\[\]> by jit. Do not declare it static, .* It comes from jit of",
    ),
    "traced static argument by name": (
        lambda: grad(lambda n: checkpoint(branching, static_argnums=1)(2.0, n=n))(3.0),
        StaticArgumentError,
        "the static argument 'n' must be a concrete value",
    ),
    "condition": (
        lambda: jit(lambda x: checkpoint(branching)(x, 3))(2.0),
        TracerBoolConversionError,
        r"(?s)traced, by checkpoint of branching at .*It depends on argument 1 \(n\)\..*"
        "static_argnums passes an argument without tracing it",
    ),
    "condition under a policy": (
        lambda: grad(lambda x: checkpoint(branching, policy=policies.dots_saveable)(x, 3))(2.0),
        TracerBoolConversionError,
        "or has a policy, even if their values are known outside; static_argnums",
    ),
    "argument": (
        lambda: checkpoint(branching)(2.0, "three"),
        OperandError,
        r"checkpoint of branching at .*, argument 1 \(n\): expected an array or a number, got 'three'",
    ),
    "result": (
        lambda: checkpoint(lambda x: "sine")(2.0),
        OperandError,
        "<lambda> at .* returned something that is not an array: .* got 'sine' of type str",
    ),
    "traced result": (
        lambda: jit(checkpoint(lambda x: {"a": x, "b": object()}))(2.0),
        OperandError,
        "<lambda> at .* returned something that is not an array: .* got <object",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    call, error, message = BAD[name]
    with pytest.raises(error, match=message) as caught:
        call()
    assert state.trace is EVAL
    assert isinstance(caught.value, TypeError)


def test_the_users_error_keeps_its_traceback() -> None:
    def fails(x: Any) -> Any:
        raise ZeroDivisionError("mine")

    for call in (
        lambda: checkpoint(fails)(1.0),
        lambda: grad(checkpoint(fails))(1.0),
        lambda: jit(checkpoint(fails))(1.0),
    ):
        with pytest.raises(ZeroDivisionError, match="mine") as caught:
            call()
        files = [entry.path for entry in caught.traceback]
        assert all(str(path) == __file__ for path in files)


def test_the_names_of_jax() -> None:
    code = (
        "from pullback.ad_checkpoint import *; import pullback, sys; assert 'jaxlib' not in sys.modules; print(remat)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert pullback.ad_checkpoint.checkpoint_policies is pullback.checkpoint_policies
    assert pullback.remat is pullback.checkpoint
