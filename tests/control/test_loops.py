"""``while_loop`` and ``fori_loop``: what they give, what their programs look like, and what they refuse."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import (
    debug,
    debug_nans,
    disable_jit,
    effects_barrier,
    errors,
    grad,
    jacfwd,
    jit,
    jvp,
    lax,
    linearize,
    make_jaxpr,
    random,
    vmap,
)
from pullback.backends.compiler import one_operation
from pullback.control import while_primitive
from pullback.core.jaxpr_check import check_jaxpr


def newton(x: Any) -> Any:
    """A square root, by Newton's iteration from one, until it stands still."""

    def step(state: Any) -> Any:
        _, y = state
        return y, 0.5 * (y + x / y)

    return lax.while_loop(lambda s: abs(s[0] - s[1]) > 1e-6 * s[1], step, (0.0, 1.0))[1]


# What they give ------------------------------------------------------------------------------------------------------


def test_newtons_iteration() -> None:
    xs = jnp.asarray([1.0, 2.0, 9.0, 1e4])
    for wrap in (lambda f: f, jit):
        assert np.allclose(wrap(newton)(2.0), 2**0.5)
        assert np.allclose(wrap(vmap(newton))(xs), np.sqrt(xs))  # each example with its own number of steps
        assert np.allclose(wrap(lambda x: jvp(newton, (x,), (1.0,))[1])(2.0), 0.5 / 2**0.5, rtol=1e-5)
        assert np.allclose(wrap(jacfwd(jacfwd(newton)))(2.0), -0.25 * 2**-1.5, rtol=1e-4)
        assert np.allclose(wrap(vmap(jacfwd(newton)))(xs), 0.5 / np.sqrt(xs), rtol=1e-4)
        assert np.allclose(np.diag(wrap(jacfwd(vmap(newton)))(xs)), 0.5 / np.sqrt(xs), rtol=1e-4)
    assert np.allclose(linearize(newton, 2.0)[1](1.0), 0.5 / 2**0.5)
    assert np.allclose(linearize(jit(newton), 2.0)[1](1.0), 0.5 / 2**0.5)


def test_the_first_steps_are_interpreted_and_the_others_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(n: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, jnp.sin(c[1]) + 1), (0, 0.5))

    results = []
    for bound in (0, 10, 10**6):
        monkeypatch.setattr(while_primitive, "INTERPRETED", bound)
        results.append(f(40))
    for i, x in results:
        assert int(i) == 40
        assert np.allclose(x, results[-1][1])
        assert (x.dtype, x.weak_type) == (results[-1][1].dtype, results[-1][1].weak_type)


def test_no_steps() -> None:
    assert float(lax.while_loop(lambda c: False, lambda c: c + 1, 3.0)) == 3
    assert float(lax.fori_loop(5, 2, lambda i, c: c + 1, 3.0)) == 3
    assert float(jit(lambda n: lax.fori_loop(5, n, lambda i, c: c + 1, 3.0))(2)) == 3
    assert lax.fori_loop(0, 3, lambda i, c: c, ()) == ()


def test_bounds_known_and_traced() -> None:
    def f(low: Any, high: Any) -> Any:
        return lax.fori_loop(low, high, lambda i, c: c * 2 + i, 1)

    for low, high in ((0, 4), (-3, 2), (2, 2)):
        expected = 1
        for i in range(low, high):
            expected = 2 * expected + i
        for got in (f(low, high), jit(f)(low, high), f(jnp.int32(low), high), jit(lambda h, low=low: f(low, h))(high)):
            assert int(got) == expected
    assert lax.fori_loop(np.int8(1), 3, lambda i, c: i, np.int8(0)).dtype == np.int8
    lows = jnp.asarray([0, 1, 5])
    assert np.array_equal(vmap(lambda low: f(low, 5))(lows), [int(f(int(low), 5)) for low in lows])
    assert float(lax.fori_loop(0, 7, lambda i, c: c + i, 0.0, unroll=3)) == 21
    assert float(jit(lambda: lax.fori_loop(0, 7, lambda i, c: c + i, 0.0, unroll=True))()) == 21


def test_known_bounds_differentiate_in_reverse() -> None:
    def f(x: Any) -> Any:
        return lax.fori_loop(1, 6, lambda i, c: jnp.sin(c * i) + x, x)

    def plain(x: Any) -> Any:
        c = x
        for i in range(1, 6):
            c = jnp.sin(c * i) + x
        return c

    for wrap in (lambda g: g, jit):
        assert np.allclose(wrap(grad(f))(0.7), grad(plain)(0.7), rtol=1e-5)
        assert np.allclose(wrap(grad(grad(f)))(0.7), grad(grad(plain))(0.7), rtol=1e-4)


def test_weakly_typed_numbers_take_the_dtype_of_the_body() -> None:
    assert lax.while_loop(lambda c: c < 3, lambda c: c + jnp.float32(1), 0).dtype == np.float32
    assert lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0).weak_type


def test_random_keys_are_carried() -> None:
    def f(key: Any, n: Any) -> Any:
        return lax.while_loop(lambda c: c[1] < n, lambda c: (random.split(c[0])[0], c[1] + 1), (key, 0))[0]

    keys, counts = random.split(random.key(1), 3), jnp.asarray([0, 2, 5])
    expected = [random.key_data(f(k, n)) for k, n in zip(keys, counts, strict=True)]
    for wrap in (lambda g: g, jit):
        assert np.array_equal(random.key_data(wrap(vmap(f))(keys, counts)), np.stack(expected))


def test_examples_that_are_done_stay_as_they_are() -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(lambda c: c > 1, lambda c: jnp.sqrt(c - 1), x)

    xs = jnp.asarray([0.5, 3.0, 40.0])
    expected = [float(f(x)) for x in xs]
    for wrap in (lambda g: g, jit):
        assert np.allclose(wrap(vmap(f))(xs), expected)  # where one is done, a step more would give NaN
        tangents = wrap(lambda x: jvp(vmap(f), (x,), (jnp.ones(3),))[1])(xs)
        assert np.allclose(tangents, [float(jacfwd(f)(x)) for x in xs], rtol=1e-5)


def test_disable_jit_runs_the_functions_themselves() -> None:
    with disable_jit():
        assert float(lax.while_loop(lambda c: bool(c < 5), lambda c: c + (2 if c > 1 else 1), 0.0)) == 6
        assert float(lax.fori_loop(0, 3, lambda i, c: c + (i if i > 1 else 10), 0.0)) == 22
        assert np.allclose(grad(lambda x: lax.while_loop(lambda c: c < 9, lambda c: c * x, x))(2.0), 4 * 2.0**3)
        assert np.allclose(vmap(newton)(jnp.asarray([1.0, 4.0])), [1, 2])


# Programs ------------------------------------------------------------------------------------------------------------


def test_how_it_is_printed() -> None:
    closed = make_jaxpr(lambda x, n: lax.while_loop(lambda c: c < n, lambda c: c * 2, x))(1.0, 5.0)
    assert str(closed) == (
        "{ lambda ; a:f32[] b:f32[]. let\n"
        "    c:f32[] = while[\n"
        "      body_jaxpr={ lambda ; d:f32[]. let e:f32[] = mul d 2.0:f32[] in (e,) }\n"
        "      body_nconsts=0\n"
        "      checkpoints=None\n"
        "      cond_jaxpr={ lambda ; f:f32[] g:f32[]. let h:bool[] = lt g f in (h,) }\n"
        "      cond_nconsts=1\n"
        "    ] b a\n"
        "  in (c,) }"
    )
    check_jaxpr(closed)


def test_only_what_depends_on_it_has_tangents() -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x, jnp.sin(c[2])), (0, x, 0.3))

    closed = make_jaxpr(lambda x: jvp(f, (x,), (x,)))(2.0)
    (loop,) = (eqn for eqn in closed.eqns if eqn.primitive is lax.while_p)
    assert len(loop.outvars) == 4
    check_jaxpr(closed)


def test_what_is_not_needed_is_left_out() -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x, jnp.sin(c[2])), (0, x, x))[1]

    text = jit(f).lower(2.0).as_text()
    assert "sine" not in text
    assert "multiply" in text


def test_what_no_step_changes_is_a_constant() -> None:
    closed = make_jaxpr(lambda x, w: lax.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] * 2, c[1]), (x, w)))(
        1.0, 9.0
    )
    (loop,) = closed.eqns
    assert len(loop.outvars) == 1
    results = jit(lambda x, w: lax.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] * 2, c[1]), (x, w)))(1.0, 9.0)
    assert [float(x) for x in results] == [16, 9]


# Effects -------------------------------------------------------------------------------------------------------------


def test_effects_of_conditions_and_bodies() -> None:
    seen: list[tuple[str, float]] = []

    def f(x: Any) -> Any:
        def test(c: Any) -> Any:
            debug.callback(lambda c: seen.append(("test", float(c))), c)
            return c < 3

        def step(c: Any) -> Any:
            debug.callback(lambda c: seen.append(("step", float(c))), c)
            return c + 1

        return lax.while_loop(test, step, x)

    expected = [("test", 1), ("step", 1), ("test", 2), ("step", 2), ("test", 3)]
    for g in (f, jit(f), lambda x: jvp(f, (x,), (1.0,)), lambda x: linearize(jit(f), x)[1](1.0)):
        seen.clear()
        g(1.0)
        effects_barrier()
        assert seen == expected


def test_effects_of_a_loop_of_which_only_a_part_is_differentiated_happen_once() -> None:
    seen: list[int] = []

    def f(x: Any) -> Any:
        def step(c: Any) -> Any:
            debug.callback(lambda i: seen.append(int(i)), c[0])
            return c[0] + 1, c[1] * x

        return lax.while_loop(lambda c: c[0] < 3, step, (0, x))[1]

    for g in (f, jit(f), grad(f), grad(jit(f)), jit(grad(f)), lambda x: linearize(jit(f), x)[1](1.0)):
        seen.clear()
        g(2.0)
        effects_barrier()
        assert seen == [0, 1, 2]


def test_the_operation_that_gives_a_nan_is_found() -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, jnp.log(c[1] - c[0])), (0, x))[1]

    for g in (f, jit(f)):
        with debug_nans(), pytest.raises(FloatingPointError, match="log returned NaN"):
            g(3.0)


# What they refuse ----------------------------------------------------------------------------------------------------

REFUSED: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: lax.while_loop(lambda c: c, lambda c: c, 1.0),
        r"while_loop: the condition .*test_loops.py:\d+ must return a scalar boolean, but it returned f32\[\]\. "
        r"jnp\.all and jnp\.any reduce an array to one boolean; for a number write a comparison such as x != 0",
    ),
    (lambda: lax.while_loop(lambda c: c > 0, lambda c: c, jnp.ones(3)), r"but it returned bool\[3\]"),
    (lambda: lax.while_loop(lambda c: (c > 0, c), lambda c: c, 1.0), "but it returned a tuple"),
    (lambda: lax.while_loop(lambda c: None, lambda c: c, 1.0), "but it returned a NoneType"),
    (
        lambda: lax.while_loop(lambda c: c["a"] > 0, lambda c: {"a": c["a"].astype(int)}, {"a": 1.5}),
        r"while_loop: the body .* carry\['a'\] is f32\[\] when it is given and i32\[\] when it is returned",
    ),
    (
        lambda: lax.while_loop(lambda c: c[0] > 0, lambda c: [*c], (1.0, 2.0)),
        "carry is a tuple when it is given and a list when it is returned",
    ),
    (lambda: lax.fori_loop(0, 3, lambda i, c: c[:1], jnp.ones(2)), r"fori_loop: the body .* carry is f32\[2\]"),
    (
        lambda: jit(lambda n: lax.fori_loop(0, n, lambda i, c: c[:1], jnp.ones(2)))(3),
        r"fori_loop: .* carry is f32\[2\]",
    ),
    (
        lambda: lax.fori_loop(0, 3, lambda i, c: {"b": c["a"]}, {"a": 1}),
        r"carry is a dict of \['a'\] when it is given and a dict of \['b'\] when",
    ),
    (lambda: lax.fori_loop(0, 3.0, lambda i, c: c, 1.0), r"the bounds must have one dtype, but lower is i32\[\] and"),
    (
        lambda: lax.fori_loop(jnp.ones(2, int), 3, lambda i, c: c, 1.0),
        r"the bound lower must be a scalar integer .* i32\[2\]",
    ),
    (
        lambda: lax.fori_loop(jnp.int32(0), jnp.int8(3), lambda i, c: c, 1.0),
        r"the bounds must have one dtype, but lower is i32\[\] and upper is i8\[\]\. Convert one of them",
    ),
    (
        lambda: jit(lambda n: lax.fori_loop(0, n, lambda i, c: c, 1.0, unroll=2))(3),
        "fori_loop: unroll needs static integer bounds, but one of them is traced",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_errors(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(errors.ControlFlowError, match=re.compile(message, re.DOTALL)) as raised:
        call()
    assert isinstance(raised.value, TypeError)


def test_operands_that_are_no_arrays() -> None:
    with pytest.raises(errors.OperandError, match=r"while_loop: init_val\[1\]: expected an array"):
        lax.while_loop(lambda c: True, lambda c: c, (1, "a"))
    with pytest.raises(errors.OperandError, match="fori_loop: the bound upper: expected an array"):
        lax.fori_loop(0, "3", lambda i, c: c, 1.0)
    with pytest.raises(errors.ArgumentError, match="while_loop: cond_fun must be a function, got None"):
        lax.while_loop(None, lambda c: c, 1.0)  # type: ignore[arg-type]


def test_a_value_that_leaks_from_a_body() -> None:
    kept = []

    def step(c: Any) -> Any:
        kept.append(c)
        return c + 1

    lax.while_loop(lambda c: c < 3, step, 0.0)
    with pytest.raises(errors.UnexpectedTracerError, match=r"it leaked.*comes from while_loop of .*step"):
        kept[0] + 1


# Slices --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32"])
@pytest.mark.parametrize("steps", [500, 501])
def test_results_do_not_depend_on_the_slices_of_an_eager_loop(
    monkeypatch: pytest.MonkeyPatch, dtype: str, steps: int
) -> None:
    def loop(x: Any) -> Any:
        grown = (lambda x: x * 3 - 1) if dtype == "int32" else (lambda x: jnp.sin(x) * 1.1 + 0.01)
        return lax.while_loop(lambda c: c[1] < steps, lambda c: (grown(c[0]), c[1] + 1), (x, 0))

    monkeypatch.setattr(while_primitive, "_GROWTH", 1)
    x = jnp.arange(7.0).astype(dtype)
    found = []
    for first in (1, 50, steps, 10_000):
        monkeypatch.setattr(while_primitive, "FIRST_SLICE", first)
        y, count = loop(x)
        assert (y.dtype, int(count)) == (x.dtype, steps)
        found.append(np.asarray(y).tobytes())

    def whole(consts: Any, carry: Any, params: Any, counter: Any) -> Any:
        return one_operation.evaluate(while_primitive.while_p, [*consts, *carry], params)

    monkeypatch.setattr(while_primitive, "_evaluate_in_slices", whole)
    found.append(np.asarray(loop(x)[0]).tobytes())
    assert len(set(found)) == 1


def test_an_eager_loop_has_slices_of_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    evaluate = one_operation.evaluate

    def counted(primitive: Any, args: Any, params: Any) -> Any:
        outs = evaluate(primitive, args, params)
        taken.append(int(args[0]) - int(outs[0]))
        return outs

    monkeypatch.setattr(one_operation, "evaluate", counted)
    monkeypatch.setattr(while_primitive, "SLICE", 1e9)  # the clock does not count
    assert int(lax.while_loop(lambda i: i < 20_000, lambda i: i + 1, 0)) == 20_000
    first = while_primitive.FIRST_SLICE
    assert taken[:2] == [first, while_primitive._GROWTH * first]
    assert 20_000 - while_primitive.INTERPRETED <= sum(taken) <= 20_000
    taken.clear()
    monkeypatch.setattr(while_primitive, "SLICE", 0.0)  # each slice takes too long
    assert int(lax.while_loop(lambda i: i < 1000, lambda i: i + 1, 0)) == 1000
    assert taken[0] == first
    assert set(taken[1:-1]) == {1}
