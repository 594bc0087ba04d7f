"""``scan`` and ``map``: what they give, what their programs look like, what they cost, and what they refuse."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import (
    checkpoint,
    custom_jvp,
    custom_vjp,
    debug,
    debug_nans,
    disable_jit,
    effects_barrier,
    errors,
    eval_shape,
    float0,
    grad,
    jacfwd,
    jit,
    jvp,
    lax,
    linear_transpose,
    linearize,
    make_jaxpr,
    monitoring,
    named_scope,
    random,
    vjp,
    vmap,
)  # fmt: skip
from pullback.control import common, scan_primitive
from pullback.core.jaxpr import subjaxprs
from pullback.core.jaxpr_check import check_jaxpr
from pullback.core.tree import tree_map

xs = jnp.arange(1.0, 5.0)


def equations(jaxpr: Any) -> list[Any]:
    """All equations of a program, those of its programs too."""
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    return [e for eqn in jaxpr.eqns for e in [eqn, *(x for sub in subjaxprs(eqn) for x in equations(sub))]]


def scans(jaxpr: Any) -> list[Any]:
    return [eqn for eqn in equations(jaxpr) if eqn.primitive is lax.scan_p]


# What it returns ----------------------------------------------------------------------------------------------------


def test_a_sum_and_its_partial_sums() -> None:
    total, sums = lax.scan(lambda c, x: (c + x, c + x), 0.0, xs)
    assert float(total) == 10
    assert np.array_equal(sums, [1, 3, 6, 10])


def test_trees_of_carries_elements_and_results() -> None:
    def step(carry: Any, row: Any) -> Any:
        return {"n": carry["n"] + 1, "v": carry["v"] * row[0] + row[1]["b"]}, (carry["n"], {"v": carry["v"]})

    init = {"n": 0, "v": jnp.ones(2)}
    rows = (xs, {"b": jnp.ones((4, 2))})
    carry, (counts, ys) = lax.scan(step, init, rows)
    assert int(carry["n"]) == 4
    assert np.array_equal(carry["v"], [65, 65])
    assert np.array_equal(counts, [0, 1, 2, 3])
    assert np.array_equal(ys["v"], [[1, 1], [2, 2], [5, 5], [16, 16]])


def test_backwards_the_results_are_in_the_order_of_the_elements() -> None:
    for f in (lax.scan, jit(lax.scan, static_argnums=(0, 3, 4))):
        total, sums = f(lambda c, x: (c + x, c + x), 0.0, xs, None, True)
        assert float(total) == 10
        assert np.array_equal(sums, [10, 9, 7, 4])


@pytest.mark.parametrize("length", [0, 1, 5, 7])
@pytest.mark.parametrize("unroll", [0, 1, 2, 3, True, 100])
def test_unrolled_it_gives_the_same(length: int, unroll: Any) -> None:
    given = jnp.arange(2.0 * length).reshape(length, 2)

    def f(init: Any, xs: Any, unroll: Any, reverse: bool) -> Any:
        return lax.scan(lambda c, x: (jnp.sin(c) + x, c * x), init, xs, reverse=reverse, unroll=unroll)

    for reverse in (False, True):
        carry, ys = f(jnp.ones(2), given, 1, reverse)
        compiled = jit(f, static_argnums=(2, 3))(jnp.ones(2), given, unroll, reverse)
        assert np.allclose(compiled[0], carry)
        assert np.allclose(compiled[1], ys)


def test_without_elements() -> None:
    assert np.array_equal(lax.scan(lambda c, _: (2 * c, c), 1, None, length=3)[1], [1, 2, 4])
    assert lax.scan(lambda c, _: (c, None), (), None, length=3) == ((), None)
    assert lax.scan(lambda c, x: (c, x), None, None, length=0) == (None, None)


def test_weakly_typed_numbers_take_the_dtype_of_the_body() -> None:
    out, ys = lax.scan(lambda c, x: (c + x, c), 0, xs)
    assert (out.dtype, ys.dtype, out.weak_type) == (np.float32, np.float32, False)
    assert lax.scan(lambda c, x: (2 * c, None), 1.0, xs)[0].weak_type
    assert lax.fori_loop(0, 3, lambda i, c: c + 1.5, 0).dtype == np.float32
    with pytest.raises(errors.ControlFlowError, match="carry is f32"):
        lax.scan(lambda c, x: (c.astype(int), None), 0.5, xs)


@pytest.mark.parametrize("dtype", ["bfloat16", "int8", "bool", "complex64", "float16", "uint8"])
def test_all_dtypes_un_compiled_and_compiled(dtype: str) -> None:
    x = jnp.asarray(np.arange(8).reshape(4, 2) % 3).astype(dtype)

    def f(x: Any) -> Any:
        return lax.scan(lambda c, y: ((c | y) if dtype == "bool" else (c + y), c), x[0], x)

    for got, expected in zip(jit(f)(x), f(x), strict=True):
        assert str(got.dtype) == str(expected.dtype) == dtype
        assert np.array_equal(np.asarray(got), np.asarray(expected))


def test_random_keys_are_carried() -> None:
    def f(key: Any) -> Any:
        def step(key: Any, _: Any) -> Any:
            key, part = random.split(key)
            return key, random.uniform(part, (2,))

        return lax.scan(step, key, None, length=3)

    keys = random.split(random.key(0), 3)
    one, many = f(keys[1]), vmap(f)(keys)
    assert np.array_equal(one[1], many[1][1])
    assert np.array_equal(one[1], jit(f)(keys[1])[1])
    assert np.array_equal(random.key_data(one[0]), random.key_data(jit(vmap(f))(keys)[0])[1])


def test_few_operations_are_interpreted_and_many_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, y: (jnp.sin(c) * y, c), x, jnp.ones((6, 2)))

    here = f(jnp.ones(2))
    monkeypatch.setattr(scan_primitive, "INTERPRETED", 0)
    there = f(jnp.ones(2))
    for a, b in zip(here, there, strict=True):
        assert np.allclose(a, b)
        assert a.aval == b.aval


def test_the_staged_types_are_the_eager_ones() -> None:
    for init in (1, 1.0, jnp.ones(()), np.int8(1)):
        got = lax.scan(lambda c, x: (c, (c * 2, x)), init, xs)
        staged = eval_shape(lambda c: lax.scan(lambda c, x: (c, (c * 2, x)), c, xs), init)
        assert tree_map(lambda a, b: (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, b.weak_type), got, staged)


def test_map_with_batches() -> None:
    def f(x: Any) -> Any:
        return {"square": x**2, "one": 1}

    rows = jnp.arange(14.0).reshape(7, 2)
    expected = vmap(f)(rows)
    for size in (None, 1, 2, 3, 7, 10):
        got = lax.map(f, rows, batch_size=size)
        assert np.array_equal(got["square"], expected["square"])
        assert np.array_equal(got["one"], np.ones(7))
    assert lax.map(f, rows[:0], batch_size=2)["square"].shape == (0, 2)
    assert np.allclose(grad(lambda r: lax.map(lambda x: x @ x, r, batch_size=3).sum())(rows), 2 * rows)


# Derivatives ---------------------------------------------------------------------------------------------------------


def test_what_a_body_captures_is_differentiated_at_every_level() -> None:
    def f(a: Any) -> Any:
        def outer(b: Any) -> Any:
            def step(c: Any, x: Any) -> Any:
                return jnp.sin(a * c) + b * x, a * b * c

            c, ys = lax.scan(step, a * b, xs)
            return c * ys.sum()

        return grad(outer)(a * 2.0) + jvp(outer, (a,), (1.0,))[1]

    def plain(a: Any) -> Any:
        def outer(b: Any) -> Any:
            c, total = a * b, 0.0
            for x in xs:
                c, total = jnp.sin(a * c) + b * x, total + a * b * c
            return c * total

        return grad(outer)(a * 2.0) + jvp(outer, (a,), (1.0,))[1]

    for wrap in (lambda g: g, jit):
        assert np.allclose(wrap(f)(0.3), plain(0.3), rtol=1e-5)
        assert np.allclose(wrap(grad(f))(0.3), grad(plain)(0.3), rtol=1e-4)
        assert np.allclose(wrap(vmap(f))(jnp.asarray([0.1, 0.3]))[1], plain(0.3), rtol=1e-5)


def test_only_some_of_the_carry_has_tangents() -> None:
    def f(w: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            i, a, b = carry
            return (i + 1, a * w, jnp.cos(b)), (i, b)

        return lax.scan(step, (0, 1.0, 0.5), xs)[0][1]

    closed = make_jaxpr(grad(f))(2.0)
    check_jaxpr(closed)
    assert np.allclose(grad(f)(2.0), 4 * 2.0**3)
    backward = scans(closed)[-1]
    assert backward.params["num_carry"] == 2  # the sum of cotangents of w, and the cotangent of a


def test_residuals_that_all_steps_share_are_not_stacked() -> None:
    size, length = 8, 50

    def f(w: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            return jnp.tanh((w * w) @ c) + x, None

        return lax.scan(step, jnp.zeros(size), xs)[0].sum()

    closed = make_jaxpr(grad(f))(jnp.eye(size), jnp.ones((length, size)))
    stacked = [v.aval.shape for eqn in scans(closed) for v in eqn.outvars if v.aval.shape[:1] == (length,)]
    assert all(len(shape) == 2 for shape in stacked), stacked
    # What is carried and only handed on is a constant, too.
    through = make_jaxpr(
        grad(lambda w: lax.scan(lambda c, x: ((c[0], jnp.sin(c[0] @ c[1])), None), (w, jnp.ones(size)), xs)[0][1].sum())
    )(jnp.eye(size))
    assert all(v.aval.ndim < 3 for eqn in equations(through) for v in eqn.outvars)


def test_elements_are_residuals_as_they_are() -> None:
    closed = make_jaxpr(grad(lambda c: lax.scan(lambda c, x: (c * x, None), c, xs)[0]))(1.0)
    first, second = scans(closed)
    assert len(first.outvars) == 1  # nothing is kept: the backward pass reads the elements
    assert float(grad(lambda c: lax.scan(lambda c, x: (c * x, None), c, xs)[0])(1.0)) == 24
    assert len(second.outvars) == 1


def test_what_is_not_needed_is_left_out() -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, x: ((c[0] + x, c[1] * x, c[2] + c[1]), (c[0], x * 2, c[2])), (x, x, x), xs)[0][0]

    text = jit(f).lower(1.0).as_text()
    assert "multiply" not in text
    assert text.count("dynamic_update_slice") == 0


def test_linear_functions_with_a_counter_are_transposed() -> None:
    a = jnp.arange(9.0).reshape(3, 3)

    def f(x: Any) -> Any:
        (i, y), s = lax.scan(
            lambda c, _: ((c[0] + 1, a @ c[1] * (c[0] + 1)), c[1].sum() * c[0]), (0, x), None, length=4
        )
        return y * i, s

    ct = jnp.arange(3.0), jnp.arange(4.0)
    jacobian = jacfwd(f)(jnp.ones(3))
    expected = ct[0] @ jacobian[0] + ct[1] @ jacobian[1]
    shared: Callable[..., Any] = lambda x: tree_map(
        lambda y: y.sum(0), vmap(lambda w: tree_map(lambda y: y * w, f(x)))(jnp.asarray([0.25, 0.75]))
    )
    for g in (f, jit(f), shared):
        assert np.allclose(linear_transpose(g, jnp.ones(3))(ct)[0], expected)
        assert np.allclose(jit(lambda ct, g=g: linear_transpose(g, jnp.ones(3))(ct))(ct)[0], expected)
    assert np.allclose(linearize(f, jnp.ones(3))[1](jnp.ones(3))[1], f(jnp.ones(3))[1])


def test_gradients_of_nothing_and_of_integers() -> None:
    empty = jnp.ones((0, 3))
    assert grad(lambda x: lax.scan(lambda c, y: (c * y.sum(), None), 2.0, x)[0])(empty).shape == (0, 3)
    _, pull = vjp(lambda x: lax.scan(lambda c, y: (c + 1, y * 2), 0, x), xs)
    assert np.array_equal(pull((np.zeros((), float0), xs))[0], 2 * xs)


# Programs ------------------------------------------------------------------------------------------------------------


def test_how_it_is_printed() -> None:
    closed = make_jaxpr(lambda x: lax.scan(lambda c, y: (c * y, c), 1.0, x))(xs)
    assert str(closed) == (
        "{ lambda ; a:f32[4]. let\n"
        "    b:f32[] c:f32[4] = scan[\n"
        "      jaxpr={ lambda ; d:f32[] e:f32[]. let f:f32[] = mul d e in (f, d) }\n"
        "      length=4\n"
        "      num_carry=1\n"
        "      num_consts=0\n"
        "      reverse=False\n"
        "      unroll=1\n"
        "    ] 1.0:f32[] a\n"
        "  in (b, c) }"
    )


def test_programs_do_not_grow_with_the_length() -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, y: (jnp.sin(c) * y, c), 1.0, x)[0]

    def size(length: int) -> tuple[int, int]:
        text = jit(grad(f)).lower(jnp.ones(length)).as_text()
        return len(equations(make_jaxpr(grad(f))(jnp.ones(length)))), len(text.splitlines())

    assert size(10) == size(1000)  # which are written as one function of the processor
    assert size(10_000) == size(100_000)


def test_equal_bodies_are_one_program() -> None:
    def f(x: Any, factor: Any) -> Any:
        return lax.scan(lambda c, y: (c * factor + y, None), x, xs)[0]

    programs = [scans(make_jaxpr(f)(1.0, w))[0].params["jaxpr"] for w in (2.0, 3.0)]
    assert programs[0] is programs[1]
    other = scans(make_jaxpr(lambda x: lax.scan(lambda c, y: (c * -0.0 + y, None), x, xs)[0])(1.0))
    third = scans(make_jaxpr(lambda x: lax.scan(lambda c, y: (c * 0.0 + y, None), x, xs)[0])(1.0))
    assert other[0].params["jaxpr"] is not third[0].params["jaxpr"]
    assert common.deduplicated(programs[0]) is programs[0]


def test_bodies_of_one_line_that_differ_in_the_sign_of_a_zero() -> None:
    def f(factor: float) -> Any:
        return lambda x: 1 / lax.scan(lambda c, _: (c * factor, None), x, None, length=1)[0]

    for wrap in (lambda h: h, jit):
        assert [float(wrap(f(factor))(1.0)) for factor in (0.0, -0.0, 0.0)] == [np.inf, -np.inf, np.inf]


def test_bodies_of_one_line_whose_rules_differ_in_a_fixed_argument() -> None:
    scaled = custom_jvp(lambda k, x: x, nondiff_argnums=(0,))
    scaled.defjvp(lambda k, primals, tangents: (*primals, k * tangents[0]))

    def f(k: float) -> Any:
        return lambda x: lax.scan(lambda c, _: (scaled(k, c), None), x, None, length=2)[0]

    for wrap in (lambda h: h, jit):
        assert [float(wrap(grad(f(k)))(1.0)) for k in (2.0, 3.0, 2.0)] == [4, 9, 4]


def test_a_new_closure_in_each_call_is_compiled_once() -> None:
    rows = jnp.ones((100, 3))

    def loss(w: Any) -> Any:
        return lax.scan(lambda c, x: (jnp.tanh(c * w + x), c.sum()), jnp.ones(3), rows)[1].sum()

    compiled: list[str] = []
    listener = lambda event, seconds, **more: compiled.append(event)
    monitoring.register_event_duration_secs_listener(listener)
    try:
        grad(loss)(0.5)
        first = len(compiled)
        for i in range(5):
            grad(loss)(0.1 * i)
    finally:
        monitoring.unregister_event_duration_listener(listener)
    assert len(compiled) == first > 0


def test_scopes_and_lines_of_bodies_are_kept() -> None:
    def f(x: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            with named_scope("inner"):
                return jnp.sin(c), None

        return lax.scan(step, x, None, length=9)[0]

    text = jit(grad(f)).lower(1.0).as_text(debug_info=True)
    for label in ("inner/sin", "jvp(inner)/cos", "transpose(inner)/mul"):
        assert f'"{label}"' in text


# Effects -------------------------------------------------------------------------------------------------------------


def test_effects_happen_once_and_in_order() -> None:
    seen: list[int] = []

    def f(x: Any) -> Any:
        def step(c: Any, i: Any) -> Any:
            debug.callback(lambda i: seen.append(int(i)), i)
            return c * 2.0, None

        return lax.scan(step, x, jnp.arange(150))[0]

    for g in (f, jit(f), grad(f), jit(grad(f)), grad(jit(f)), lambda x: jvp(f, (x,), (x,))):
        seen.clear()
        g(0.5)
        effects_barrier()
        assert seen == list(range(150)), g


def test_effects_of_steps_without_results() -> None:
    seen: list[float] = []
    note = lambda x: debug.callback(lambda x: seen.append(float(x)), x)

    def f(x: Any) -> Any:
        lax.map(note, jnp.stack([x, x + 1]))
        return x * x

    for g in (f, jit(f), grad(f), jit(grad(f)), grad(jit(f)), lambda x: vmap(grad(f))(x[None])):
        seen.clear()
        g(jnp.float32(2))
        effects_barrier()
        assert seen == [2.0, 3.0]


def test_effects_that_all_steps_share_happen_in_each() -> None:
    seen: list[float] = []

    def f(x: Any, w: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            debug.callback(lambda w: seen.append(float(w)), w)
            return c * w, None

        return lax.scan(step, x, None, length=3)[0]

    mapped = lambda x, w: vmap(f, (0, None))(jnp.stack([x, x]), w)
    for g in (f, jit(f), grad(f), jit(grad(f)), grad(jit(f)), mapped, jit(mapped)):
        seen.clear()
        g(0.5, 2.0)
        effects_barrier()
        assert seen == [2.0] * 3, g


def test_the_operation_that_gives_a_nan_is_found() -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, y: (jnp.log(c - y), c), x, jnp.arange(5.0))[0]

    for g in (f, jit(f), grad(f)):
        with debug_nans(), pytest.raises(FloatingPointError, match=r"log returned NaN.*\n.*test_scan.py"):
            g(3.0)
    with debug_nans():  # one that is only handed through is nobody's fault
        lax.scan(lambda c, x: (c, x), 0.0, jnp.asarray([1.0, np.nan]))


def test_disable_jit_runs_the_function_itself() -> None:
    def step(c: Any, x: Any) -> Any:
        return (c + x, c) if float(c) < 3 else (c - x, c)

    with disable_jit():
        total, ys = lax.scan(step, 0.0, xs)
        assert float(total) == 4
        assert np.array_equal(ys, [0, 1, 3, 0])
        assert np.array_equal(lax.scan(step, 0.0, xs, reverse=True)[1], [3, 1, 4, 0])
        assert np.array_equal(lax.map(lambda x: x if x > 2 else -x, xs), [-1, -2, 3, 4])
        assert lax.scan(lambda c, x: (c, x), 0.0, xs[:0])[1].shape == (0,)  # which is staged, for its types
        with pytest.raises(errors.ControlFlowError, match="y is an array in the first steps and None in a later one"):
            lax.scan(lambda c, x: (c, x if x < 2 else None), 0.0, xs)


# What it refuses -----------------------------------------------------------------------------------------------------

REFUSED: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: lax.scan(lambda c, x: ({"h": c["h"].sum()}, None), {"h": jnp.ones(3)}, xs),
        r"scan: the body .*<lambda> at .*test_scan.py:\d+ must return a carry of the same types as its argument, but "
        r"carry\['h'\] is f32\[3\] when it is given and f32\[\] when it is returned: the shapes differ\. In the body "
        r"reshape it, or start with an initial value of type f32\[\]",
    ),
    (
        lambda: lax.scan(lambda c, x: ((c[0], c[1].astype(jnp.int32)), None), (1.0, jnp.ones(2)), xs),
        r"carry\[1\] is f32\[2\] when it is given and i32\[2\] when it is returned: the dtypes differ",
    ),
    (
        lambda: lax.scan(lambda c, x: ({"a": c["a"], "c": 1}, None), {"a": 1, "b": 2}, xs),
        r"must return a carry with the same tree as its argument, but carry is a dict of \['a'\], \['b'\] when it "
        r"is given "
        r"and a dict of \['a'\], \['c'\] when it is returned\. Return the carry with the same containers",
    ),
    (
        lambda: lax.scan(lambda c, x: ({"a": c["a"][0]}, None), {"a": (1, 2)}, xs),
        r"carry\['a'\] is a tuple when it is given and an array when it is returned",
    ),
    (lambda: lax.scan(lambda c, x: ((c, c), None), 1.0, xs), "carry is an array when it is given and a tuple when"),
    (lambda: lax.scan(lambda c, x: (None, None), 1.0, xs), "carry is an array when it is given and None when"),
    (
        lambda: lax.scan(lambda c, x: (c, c, x), 1.0, xs),
        r"must return a pair \(carry, y\), but it returned a tuple of 3",
    ),
    (lambda: lax.scan(lambda c, x: c, 1.0, xs), r"must return a pair \(carry, y\), but it returned Traced<f32\[\]>"),
    (
        lambda: lax.scan(lambda c, x: (c, x), 0.0, {"a": jnp.ones(3), "b": jnp.ones(4)}),
        r"all arrays in xs must have leading axes of one size, but xs\['a'\] has 3, xs\['b'\] has 4",
    ),
    (
        lambda: lax.scan(lambda c, x: (c, x), 0.0, xs, length=5),
        "length is 5, but the leading axis of xs has 4 elements",
    ),
    (lambda: lax.scan(lambda c, x: (c, x), 0.0), "without arrays in xs, pass the number of steps as length"),
    (lambda: lax.scan(lambda c, x: (c, x), 0.0, None, length=-2), "length must not be negative, got -2"),
    (lambda: lax.scan(lambda c, x: (c, x), 0.0, None, length=2.5), r"length must be an int, got 2\.5"),  # type: ignore[arg-type]
    (lambda: lax.scan(lambda c, x: (c, x), 0.0, (xs, 1.0)), r"xs\[1\] of type f32\[\] is a scalar"),
    (
        lambda: lax.scan(lambda c, x: (c, x), 0.0, xs, unroll=-1),
        "unroll must be a bool or a non-negative int, got -1",
    ),
    (lambda: lax.map(lambda x: x, (xs, xs[1:])), r"map: all arrays in xs .* but xs\[0\] has 4, xs\[1\] has 3"),
    (lambda: lax.map(lambda x: x, xs, batch_size=-1), "map: batch_size must be a positive int, .* got -1"),
    (lambda: lax.map(lambda x: x, None), "map: without arrays in xs"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_errors(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(errors.ControlFlowError, match=re.compile(message, re.DOTALL)) as raised:
        call()
    assert isinstance(raised.value, TypeError)
    assert isinstance(raised.value, ValueError)


def test_leaves_that_are_no_arrays_and_functions_that_are_none() -> None:
    with pytest.raises(errors.OperandError, match=r"scan: init\['a'\]: expected an array or a number, got 'x'"):
        lax.scan(lambda c, x: (c, x), {"a": "x"}, xs)
    with pytest.raises(errors.OperandError, match="returned something that is not an array"):
        lax.scan(lambda c, x: (c, "y"), 0.0, xs)
    with pytest.raises(errors.ArgumentError, match="scan: f must be a function, got 3"):
        lax.scan(3, 0.0, xs)  # type: ignore[arg-type]


def test_conditions_in_a_body_name_what_they_depend_on() -> None:
    with pytest.raises(
        errors.TracerBoolConversionError, match=r"traced, by scan of .*\n.*\n.*\nIt depends on carry\['w'\]"
    ):
        lax.scan(lambda c, x: (c if c["w"] > 0 else x, x), {"w": 1.0, "v": 2.0}, xs)
    with pytest.raises(errors.TracerBoolConversionError, match="It depends on x"):
        lax.scan(lambda c, x: (c, 1 if x > 0 else 2), 0.0, xs)


def test_a_value_that_leaks_from_a_body() -> None:
    kept = []

    def step(c: Any, x: Any) -> Any:
        kept.append(jnp.sin(c))
        return c, x

    lax.scan(step, 0.0, xs)
    with pytest.raises(errors.UnexpectedTracerError, match=r"it leaked.*comes from scan of .*step at .*test_scan.py"):
        kept[0] + 1
    for use in (lambda: lax.scan(lambda c, x: (c + kept[0], x), 0.0, xs), lambda: lax.cond(kept[0] > 0, abs, abs, 1.0)):
        with pytest.raises(errors.UnexpectedTracerError, match="it leaked"):
            use()


def test_a_body_with_a_rule_that_is_written_anew_shares_what_was_made_of_the_first() -> None:
    count = 0

    @custom_vjp
    def double(x: Any) -> Any:
        return 2 * x

    def forward(x: Any) -> Any:
        nonlocal count
        count += 1
        return double(x), None

    double.defvjp(forward, lambda _, ct: (3 * ct,))

    def gradient(x: float) -> Any:
        return grad(lambda c: lax.scan(lambda c, _: (double(jnp.sin(c)), None), c, None, length=100)[0])(x)

    first = gradient(0.5)
    before = count
    assert gradient(0.5) == first
    assert count == before


@pytest.mark.parametrize("length", [1, 1000])
@pytest.mark.parametrize("zero", [np.zeros((), float0), jnp.zeros((), float0)], ids=["numpy", "ours"])
@pytest.mark.parametrize("wrap", [lambda f: f, jit, checkpoint], ids=["eager", "jit", "checkpoint"])
def test_integers_through_rules_have_tangents_of_type_float0(length, zero, wrap):
    f = custom_jvp(lambda x, n: (jnp.sin(x), n))
    f.defjvp(lambda primals, tangents: (f(*primals), (1.001 * tangents[0], jnp.zeros((), float0))))
    looped = wrap(lambda x, n: lax.scan(lambda c, _: (f(*c), c[1]), (x, n), None, length=length))
    for pushed in (
        lambda t: jvp(looped, (2.0, 3), (t, zero))[1],
        jit(lambda t: jvp(looped, (2.0, 3), (t, zero))[1]),
        lambda t: linearize(looped, 2.0, 3)[1](t, zero),
    ):
        (t, of_n), of_ns = pushed(1.0)
        np.testing.assert_allclose(t, 1.001**length, rtol=1e-4)
        assert (of_n.dtype, of_n.shape, of_ns.dtype, of_ns.shape) == (float0, (), float0, (length,))
        assert np.asarray(of_n).dtype == float0


@pytest.mark.parametrize(
    "f",
    [
        lambda n: lax.scan(lambda c, _: (c, c), 0.0, None, n),
        lambda n: lax.scan(lambda c, _: (c, c), 0.0, None, 3, unroll=n),
    ],
    ids=["length", "unroll"],
)
def test_options_that_are_traced(f: Callable[[Any], Any], request: pytest.FixtureRequest) -> None:
    with pytest.raises(errors.ConcretizationTypeError, match=f"scan: {request.node.callspec.id} must be known"):
        jit(f)(3)


def test_a_map_of_batches_of_no_size_is_one_at_a_time() -> None:
    np.testing.assert_array_equal(lax.map(lambda x: x + 1, jnp.arange(3.0), batch_size=0), [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="batch_size must be a positive int"):
        lax.map(lambda x: x + 1, jnp.arange(3.0), batch_size=-1)
