"""Primitives in JAX's older spelling: what tutorials of it teach works when only the import changes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import core, errors, grad, jacfwd, jacrev, jit, jvp, lax, linear_transpose, make_jaxpr, tree, vjp, vmap
from pullback.core.trace import Primitive as AnyPrimitive
from pullback.interpreters import ad, batching, mlir, xla
from tests.helpers import EXHAUSTIVE

W = np.float32([0.3, -1.2, 0.7])


# The lesson: multiplication and addition in one operation, whose rules are given one after the other -----------------


def lower_by_a_function(ma_p: Any) -> None:
    mlir.register_lowering(ma_p, mlir.lower_fun(lambda x, y, z: x * y + z, multiple_results=False))


def lower_by_bindings(ma_p: Any) -> None:
    def rule(ctx: Any, xc: Any, yc: Any, zc: Any) -> Any:
        hlo = mlir.hlo
        return [hlo.AddOp(hlo.MulOp(xc, yc), zc).result]

    mlir.register_lowering(ma_p, rule, platform="cpu")


def lower_by_a_translation(ma_p: Any) -> None:
    function = xla.lower_fun(lambda x, y, z: [jnp.add(jnp.multiply(x, y), z)], multiple_results=True)
    xla.backend_specific_translations["cpu"][ma_p] = function


def dense(t: Any, x: Any) -> Any:
    return lax.zeros_like_array(x) if type(t) is ad.Zero else t


def dense_by_full_like(t: Any, x: Any) -> Any:
    return lax.full_like(x, 0) if isinstance(t, ad.Zero) else t


def dense_by_instantiate(t: Any, x: Any) -> Any:
    return ad.instantiate_zeros(t)


def lesson(
    until: str = "", lower: Callable[[Any], None] = lower_by_a_function, make_zero: Any = dense
) -> Callable[[Any, Any, Any], Any]:
    """The operation, with the rules that are registered before the stage ``until``."""
    ma_p = core.Primitive("multiply_add")

    def ma(x: Any, y: Any, z: Any) -> Any:
        return ma_p.bind(x, y, z)

    def impl(x: Any, y: Any, z: Any) -> Any:
        return np.add(np.multiply(x, y), z)

    def abstract_eval(xs: Any, ys: Any, zs: Any) -> Any:
        assert xs.shape == ys.shape
        assert xs.shape == zs.shape
        return core.ShapedArray(xs.shape, xs.dtype)

    def value_and_jvp(arg_values: Any, arg_tangents: Any) -> Any:
        x, y, z = arg_values
        xt, yt, zt = arg_tangents
        out = ma(x, y, z)
        return out, ma(make_zero(xt, x), y, ma(x, make_zero(yt, x), make_zero(zt, x)))

    def transpose(ct: Any, x: Any, y: Any, z: Any) -> Any:
        if ad.is_undefined_primal(y):
            assert not ad.is_undefined_primal(x)
            ct_y = ad.Zero(y.aval) if type(ct) is ad.Zero else ma(x, ct, lax.zeros_like_array(x))
            return None, ct_y, ct
        if not ad.is_undefined_primal(x):
            return None, None, ct
        ct_x = ad.Zero(x.aval) if type(ct) is ad.Zero else ma(ct, y, lax.zeros_like_array(y))
        return ct_x, None, ct

    def batch(vector_arg_values: Any, batch_axes: Any) -> Any:
        (size, *_) = [x.shape[d] for x, d in zip(vector_arg_values, batch_axes, strict=True) if d is not None]
        x, y, z = (batching.bdim_at_front(x, d, size) for x, d in zip(vector_arg_values, batch_axes, strict=True))
        return ma(x, y, z), 0

    stages: dict[str, Callable[[], Any]] = {
        "impl": lambda: ma_p.def_impl(impl),
        "abstract_eval": lambda: ma_p.def_abstract_eval(abstract_eval),
        "lowering": lambda: lower(ma_p),
        "jvp": lambda: ad.primitive_jvps.__setitem__(ma_p, value_and_jvp),
        "transpose": lambda: ad.primitive_transposes.__setitem__(ma_p, transpose),
        "batch": lambda: batching.primitive_batchers.__setitem__(ma_p, batch),
    }
    for register in itertools.takewhile(lambda name: name != until, stages):
        stages[register]()
    return ma


def square_add(ma: Any) -> Callable[[Any, Any], Any]:
    return lambda a, b: ma(a, a, b)


def test_the_lesson_step_by_step() -> None:
    with pytest.raises(NotImplementedError, match="'multiply_add' has no host rule"):
        square_add(lesson("impl"))(2.0, 10.0)
    assert square_add(lesson("abstract_eval"))(2.0, 10.0) == 14.0
    with pytest.raises(NotImplementedError, match="'multiply_add' has no abstract_eval rule"):
        jit(square_add(lesson("abstract_eval")))(2.0, 10.0)
    with pytest.raises(NotImplementedError, match="'multiply_add' has no lowering rule"):
        jit(square_add(lesson("lowering")))(2.0, 10.0)
    f = square_add(lesson("jvp"))
    assert jit(lambda x, y: f(x, y))(2.0, 10.0) == 14.0
    assert jit(lambda x, y: f(x, y), static_argnums=1)(2.0, 10.0) == 14.0
    with pytest.raises(NotImplementedError, match="'multiply_add' has no jvp rule"):
        jvp(f, (2.0, 10.0), (1.0, 1.0))
    f = square_add(lesson("transpose"))
    assert jvp(f, (2.0, 10.0), (1.0, 1.0)) == (14.0, 5.0)
    assert jit(lambda xs, ts: jvp(f, xs, ts))((2.0, 10.0), (1.0, 1.0)) == (14.0, 5.0)
    with pytest.raises(NotImplementedError, match="'multiply_add' has no transpose rule"):
        grad(f)(2.0, 10.0)
    f = square_add(lesson("batch"))
    assert grad(f)(2.0, 10.0) == 4.0
    assert jit(grad(f))(2.0, 10.0) == 4.0
    vectors = np.array([2.0, 3.0]), np.array([10.0, 20.0])
    with pytest.raises(NotImplementedError, match="'multiply_add' has no batch rule"):
        vmap(f, in_axes=0, out_axes=0)(*vectors)
    f = square_add(lesson())
    assert np.allclose(vmap(f, in_axes=0, out_axes=0)(*vectors), [14.0, 29.0])
    assert np.allclose(jit(vmap(f, in_axes=0, out_axes=0))(*vectors), [14.0, 29.0])


LOWERINGS = [lower_by_a_function, lower_by_bindings, lower_by_a_translation]

# Each takes a function of a vector to one.
TRANSFORMATIONS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "jvp": lambda f: lambda x: jvp(f, (x,), (W,))[1],
    "grad": lambda f: grad(lambda x: jnp.sum(f(x) * W)),
    "vmap": lambda f: lambda x: jnp.sum(vmap(f)(jnp.stack([x, x * W])), 0),
    "jit": jit,
    "make_jaxpr": lambda f: lambda x: core.jaxpr_as_fun(make_jaxpr(f)(x))(x)[0],
}


@pytest.mark.parametrize("lower", LOWERINGS, ids=lambda f: f.__name__)
def test_the_lesson_under_transformations(lower: Any) -> None:
    ma = lesson(lower=lower)
    of = lambda ma: lambda x: ma(jnp.sin(x), x * x, ma(x, jnp.asarray(W), x))
    plain = of(lambda x, y, z: x * y + z)
    for outer, middle, inner in itertools.product(TRANSFORMATIONS.values(), repeat=3):
        if outer is not jit and (middle is not jit or not EXHAUSTIVE):
            continue
        got, expected = outer(middle(inner(of(ma))))(W), outer(middle(inner(plain)))(W)
        np.testing.assert_allclose(got, expected, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("make_zero", [dense, dense_by_full_like, dense_by_instantiate], ids=lambda f: f.__name__)
def test_zero_tangents_in_every_way_that_lessons_show(make_zero: Any) -> None:
    ma = lesson(make_zero=make_zero)
    of = lambda f: lambda x, y, z: jnp.sum(f(x, y, z) ** 2)
    for argnums in (0, 1, 2, (0, 1), (0, 2), (1, 2), (0, 1, 2)):
        got, expected = (grad(of(f), argnums)(W, 2 * W, 3 * W) for f in (ma, lambda x, y, z: x * y + z))
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)
    assert jvp(lambda x: ma(x, 3.0, 4.0), (2.0,), (1.0,)) == (10.0, 3.0)
    assert grad(lambda x: grad(lambda y: ma(x, y, 1.0) ** 2)(x))(2.0) == 2 * (3 * 2.0**2 + 1)


def test_rules_are_given_arrays_of_ours() -> None:
    seen: list[Any] = []

    def impl(*args: Any, **params: Any) -> Any:
        seen.append(args)
        return np.add(*map(np.asarray, args))

    p = core.Primitive("plus")
    p.def_impl(impl)
    out = p.bind(jnp.ones(2, "bfloat16"), 1.0)
    assert isinstance(out, jax.Array)
    assert out.dtype == jnp.bfloat16
    assert all(isinstance(x, jax.Array) and x.dtype == jnp.bfloat16 for x in seen[0])


def test_what_an_implementation_keeps_may_change() -> None:
    kept = np.zeros(2, np.float32)

    def impl(x: Any) -> Any:
        kept[:] = x
        return kept

    p = core.Primitive("kept")
    p.def_impl(impl)
    first, _ = p.bind(jnp.ones(2)), p.bind(jnp.zeros(2))
    np.testing.assert_array_equal(first, [1, 1])


def test_an_implementation_by_other_operations() -> None:
    p = core.Primitive("softplus")
    p.def_impl(lambda x: jnp.log(1 + jnp.exp(x)))
    np.testing.assert_allclose(p.bind(W), np.log1p(np.exp(W)), rtol=1e-6)
    ad.defjvp(p, lambda t, x: t / (1 + jnp.exp(-x)))
    np.testing.assert_allclose(grad(lambda x: p.bind(x).sum())(W), 1 / (1 + np.exp(-W)), rtol=1e-6)


def test_an_implementation_by_compilation() -> None:
    p = core.Primitive("twice")
    p.def_impl(functools.partial(xla.apply_primitive, p))
    p.def_abstract_eval(lambda x, *, n: core.ShapedArray(x.shape, x.dtype))
    with pytest.raises(NotImplementedError, match="'twice' has no lowering rule, which compilation"):
        p.bind(W, n=2)
    mlir.register_lowering(p, mlir.lower_fun(lambda x, *, n: x * n, multiple_results=False))
    np.testing.assert_array_equal(p.bind(W, n=2), 2 * W)
    np.testing.assert_array_equal(jit(lambda x: p.bind(x, n=3))(W), np.float32(3) * W)


# Several results -----------------------------------------------------------------------------------------------------


def sum_and_difference() -> Any:
    p = core.Primitive("sum_and_difference")
    p.multiple_results = True
    p.def_impl(lambda x, y: (np.add(x, y), np.subtract(x, y)))
    p.def_abstract_eval(lambda x, y: (core.ShapedArray(x.shape, x.dtype), core.ShapedArray(x.shape, x.dtype)))
    mlir.register_lowering(p, mlir.lower_fun(lambda x, y: (x + y, x - y), multiple_results=True))

    def transpose(cts: Any, x: Any, y: Any) -> Any:
        seen.update(map(type, cts))
        s, d = map(ad.instantiate_zeros, cts)
        by_x = s + d if ad.is_undefined_primal(x) else None
        by_y = s - d if ad.is_undefined_primal(y) else None
        return by_x, by_y

    seen: set[type] = set()
    ad.deflinear2(p, transpose)
    batching.primitive_batchers[p] = lambda args, dims: (
        p.bind(*[batching.bdim_at_front(x, d, 3) for x, d in zip(args, dims, strict=True)]),
        [0, 0],
    )
    return p, seen


def test_several_results() -> None:
    p, seen = sum_and_difference()

    def f(x: Any) -> Any:
        s, d = p.bind(jnp.sin(x), x)
        return s * d

    def g(x: Any) -> Any:
        return (jnp.sin(x) + x) * (jnp.sin(x) - x)

    for outer, inner in itertools.product(TRANSFORMATIONS.values(), repeat=2):
        if outer is not TRANSFORMATIONS["vmap"] is not inner:
            np.testing.assert_allclose(outer(inner(f))(W), outer(inner(g))(W), rtol=2e-5, atol=1e-5)
    np.testing.assert_allclose(vmap(f)(W), g(W), rtol=1e-6)
    np.testing.assert_allclose(jit(vmap(grad(f)))(W), vmap(grad(g))(W), rtol=1e-5)
    np.testing.assert_array_equal(grad(lambda x: p.bind(x, 2 * x)[1])(1.0), -1)
    assert ad.Zero in seen


# The tables ----------------------------------------------------------------------------------------------------------


def test_tables_give_back_what_was_put_in() -> None:
    p = core.Primitive("p")
    jvp_rule, transpose_rule, batch_rule, axis_rule = (lambda *args: None for _ in range(4))
    for table, rule in (
        (ad.primitive_jvps, jvp_rule),
        (ad.primitive_transposes, transpose_rule),
        (batching.primitive_batchers, batch_rule),
        (batching.axis_primitive_batchers, axis_rule),
        (batching.fancy_primitive_batchers, axis_rule),
    ):
        if table not in (batching.axis_primitive_batchers, batching.fancy_primitive_batchers):
            assert p not in table
            assert table.get(p) is None
            assert table.get(p, 1) == 1
            with pytest.raises(KeyError, match="p"):
                table[p]
        table[p] = rule
        assert p in table
        assert table[p] is rule
        assert table.get(p) is rule
    p.batch_rule = p.jvp_rule = None
    assert p not in ad.primitive_jvps
    assert p not in batching.primitive_batchers
    assert "p" not in ad.primitive_jvps
    assert str(ad.primitive_jvps) == "<the jvp rules of all primitives>"


def test_the_rules_of_our_own_primitives_in_the_older_spelling() -> None:
    x, y = jnp.float32(2), jnp.float32(3)
    out, t = ad.primitive_jvps[lax.mul_p]((x, y), (jnp.float32(1), ad.Zero.from_primal_value(y)))
    assert (out, t) == (6.0, 3.0)
    out, t = ad.primitive_jvps[lax.mul_p]((x, y), tuple(map(ad.Zero.from_primal_value, (x, y))))
    assert out == 6.0
    assert type(t) is ad.Zero
    out, t = ad.primitive_jvps[lax.floor_p]((x,), (x,))
    assert repr(t) == "Zero(float32[])"
    undefined = ad.UndefinedPrimal(core.get_aval(x))
    assert repr(undefined) == "UndefinedPrimal(float32[])"
    by_x, by_y = ad.primitive_transposes[lax.mul_p](x, undefined, y)
    assert (by_x, by_y) == (6.0, None)
    by_x, _ = ad.primitive_transposes[lax.mul_p](ad.Zero(core.get_aval(x)), undefined, y)
    assert type(by_x) is ad.Zero
    assert by_x.aval == core.get_aval(x)
    out, dim = batching.primitive_batchers[lax.sin_p]((jnp.ones((3, 2)),), (1,))
    assert (out.shape, dim) == ((3, 2), 1)
    axis = SimpleNamespace(name=None, size=2)
    out, dim = batching.fancy_primitive_batchers[lax.mul_p](axis, [jnp.ones((3, 2)), y], [1, None])
    assert out.shape[dim] == 2
    out, dim = batching.axis_primitive_batchers[lax.mul_p](2, None, None, [jnp.ones((3, 2)), y], [1, None])
    assert out.shape[dim] == 2
    p = core.Primitive("both", multiple_results=True)
    p.host(lambda x, y: [x, y])
    p.jvp(lambda primals, tangents: (p.bind(*primals), list(tangents)))
    outs, ts = ad.primitive_jvps[p]((x, 4.0), (x, ad.Zero.from_primal_value(4.0)))
    assert [*outs, ts[0], repr(ts[1])] == [2.0, 4.0, 2.0, "Zero(float32[])"]
    assert lax.sin_p in ad.primitive_jvps
    assert isinstance(lax.sin_p, AnyPrimitive)


def test_a_rule_of_our_own_primitives_can_be_replaced() -> None:
    p = lax.square_p
    jvp_rule, tangent_rule = p.jvp_rule, p.tangent_rule
    try:
        ad.defjvp(p, lambda t, x: 7 * t)
        assert grad(lax.square)(3.0) == 7.0
    finally:
        p.jvp_rule, p.tangent_rule = jvp_rule, tangent_rule
    assert grad(lax.square)(3.0) == 6.0


@pytest.mark.parametrize("fancy", [False, True])
def test_batchers_with_the_axis(fancy: bool) -> None:
    p = core.Primitive("per_example")
    p.def_impl(lambda x: x / x.size)
    seen = []

    def fancy_rule(axis_data: Any, args: Any, dims: Any) -> Any:
        seen.append((axis_data.name, axis_data.size))
        return args[0] / (args[0].size // axis_data.size), dims[0]

    def rule(axis_size: int, axis_name: Any, trace_type: Any, args: Any, dims: Any) -> Any:
        seen.append((axis_name, axis_size))
        return args[0] / (args[0].size // axis_size), dims[0]

    table = batching.fancy_primitive_batchers if fancy else batching.axis_primitive_batchers
    table[p] = fancy_rule if fancy else rule
    out = vmap(p.bind, in_axes=1, axis_name="i")(np.ones((3, 2)))
    np.testing.assert_allclose(out, np.full((2, 3), 1 / 3), rtol=1e-6)
    assert seen == [("i", 2)]


# Rules of frequent forms ----------------------------------------------------------------------------------------------


def hypotenuse() -> Any:
    p = core.Primitive("hypotenuse")
    p.def_impl(np.hypot)
    p.def_abstract_eval(lambda x, y: core.ShapedArray(np.broadcast_shapes(x.shape, y.shape), x.dtype))
    mlir.register_lowering(p, mlir.lower_fun(lambda x, y: jnp.sqrt(x * x + y * y), multiple_results=False))
    batching.defbroadcasting(p)
    return p


def plain_hypotenuse(x: Any, y: Any) -> Any:
    return jnp.sqrt(x * x + y * y)


OF_A_VECTOR = [
    lambda hypot: lambda x: hypot(x, 2 * x),
    lambda hypot: lambda x: hypot(x, jnp.float32(1)),
    lambda hypot: lambda x: hypot(2.0, x),
]


@pytest.mark.parametrize("of", OF_A_VECTOR)
def test_defjvp_and_its_second_form(of: Any) -> None:
    first, second = hypotenuse(), hypotenuse()
    ad.defjvp(first, lambda t, x, y: t * x / first.bind(x, y), lambda t, x, y: t * y / first.bind(x, y))
    ad.defjvp2(second, lambda t, ans, x, y: t * x / ans, lambda t, ans, x, y: t * y / ans)
    expected = of(plain_hypotenuse)
    for f in (of(first.bind), of(second.bind)):
        for t in (jacfwd, jacrev, vmap, jit, lambda f: jit(vmap(grad(f))), lambda f: vmap(grad(grad(f)))):
            np.testing.assert_allclose(t(f)(W), t(expected)(W), rtol=2e-4, atol=1e-6)


def test_defjvp_with_an_operand_that_has_no_derivative() -> None:
    p = core.Primitive("scaled")
    p.def_impl(lambda x, y, *, by: by * x + np.floor(y))
    ad.defjvp(p, lambda t, x, y, *, by: by * t, None)
    assert grad(lambda x, y: p.bind(x, y, by=3.0), (0, 1))(1.0, 2.5) == (3.0, 0.0)
    ad.defjvp(p, lambda t, x, y, *, by: by * t)
    with pytest.raises(errors.CustomRuleError, match=r"scaled was given 1 derivative rules by defjvp, but has 2 opera"):
        grad(lambda x: p.bind(x, 1.0, by=3.0))(1.0)


def test_linear_and_bilinear_operations() -> None:
    matmul = core.Primitive("product")
    matmul.def_impl(np.matmul)
    ad.defbilinear(matmul, lambda ct, x, y: ct @ y.T, lambda ct, x, y: x.T @ ct)
    a, b = np.float32(np.arange(6)).reshape(2, 3), np.float32(np.arange(12)).reshape(3, 4)
    of = lambda f: lambda a, b: jnp.sum(jnp.sin(f(a, b)))
    for argnums in (0, 1, (0, 1)):
        got, expected = (grad(of(f), argnums)(a, b) for f in (matmul.bind, jnp.matmul))
        for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5)
    assert jvp(lambda x: matmul.bind(a, b), (1.0,), (1.0,))[1].shape == (2, 4)
    with pytest.raises(errors.NotLinearError, match="product"):
        linear_transpose(lambda x: matmul.bind(x, x), np.eye(2, dtype="float32"))

    flip = core.Primitive("flip")
    flip.def_impl(np.flip)
    flip.def_abstract_eval(lambda x: x)
    ad.deflinear(flip, lambda ct: [flip.bind(ct)])
    np.testing.assert_array_equal(grad(lambda x: flip.bind(x) @ W)(W), W[::-1])
    np.testing.assert_array_equal(vjp(lambda x: flip.bind(flip.bind(x)), W)[1](W)[0], W)
    np.testing.assert_array_equal(linear_transpose(flip.bind, W)(W)[0], W[::-1])
    out, t = ad.primitive_jvps[flip]((W,), (ad.Zero.from_primal_value(W),))
    assert (out.shape, repr(t)) == ((3,), "Zero(float32[3])")


def test_vectorised_operations() -> None:
    p = core.Primitive("minus")
    p.def_impl(np.negative)
    batching.defvectorized(p)
    x = np.float32(np.arange(6)).reshape(2, 3)
    np.testing.assert_array_equal(vmap(p.bind, in_axes=1)(x), -x.T)


def test_an_operand_that_is_not_mapped_may_have_more_axes_than_the_others() -> None:
    both_p = core.Primitive("both")
    both_p.def_impl(np.hypot)
    batching.defbroadcasting(both_p)
    x, y = np.float32([3, 0]), np.full((2, 2), 4, np.float32)
    out = vmap(both_p.bind, in_axes=(0, None))(x, y)
    np.testing.assert_array_equal(out, [np.full((2, 2), 5), np.full((2, 2), 4)])


def test_axes_are_moved_from_the_end_too() -> None:
    x = np.ones((2, 3, 4))
    assert batching.moveaxis(x, -1, 0).shape == (4, 2, 3)
    assert batching.moveaxis(x, 0, -1).shape == (3, 4, 2)


def test_sums_of_tangents_and_zeros() -> None:
    one, zero = jnp.ones(2), ad.Zero.from_primal_value(jnp.ones(2))
    np.testing.assert_array_equal(ad.add_tangents(one, one), 2 * np.ones(2))
    np.testing.assert_array_equal(ad.add_jaxvals(one, one), 2 * np.ones(2))
    assert ad.add_tangents(one, zero) is one
    assert ad.add_tangents(zero, one) is one
    assert ad.instantiate_zeros(one) is one
    np.testing.assert_array_equal(ad.zeros_like_aval(zero.aval), np.zeros(2))
    assert ad.Zero.from_primal_value(1).aval.dtype == jax.float0
    assert batching.not_mapped is None


# Lowering -------------------------------------------------------------------------------------------------------------


def lowered(rule: Any, platform: str | None = None, **options: Any) -> Any:
    p = core.Primitive("twice", **options)
    p.def_abstract_eval(lambda x: [x] if p.multiple_results else x)
    mlir.register_lowering(p, rule, platform=platform)
    return p


def test_rules_for_platforms() -> None:
    p = lowered(mlir.lower_fun(lambda x: 3 * x, multiple_results=False), "gpu")
    with pytest.raises(NotImplementedError, match=r"'twice' has no lowering rule for 'cpu', only for 'cuda', 'rocm'"):
        jit(p.bind)(1.0)
    mlir.register_lowering(p, mlir.lower_fun(lambda x: 2 * x, multiple_results=False))
    assert jit(p.bind)(1.0) == 2.0
    mlir.register_lowering(p, mlir.lower_fun(lambda x: 4 * x, multiple_results=False), platform="cpu")
    jax.clear_caches()
    assert jit(lambda x: p.bind(x))(1.0) == 4.0

    q = core.Primitive("keeps_its_own")
    q.def_abstract_eval(lambda x: x)
    q.lowering(lambda hlo, x: hlo.elementwise("stablehlo.negate", x))
    mlir.register_lowering(q, mlir.lower_fun(lambda x: x, multiple_results=False), platform="cuda")
    assert jit(q.bind)(1.0) == -1.0


def test_a_rule_of_the_bindings_is_told_of_its_equation() -> None:
    told: list[Any] = []

    def rule(ctx: Any, x: Any, *, n: int) -> Any:
        told.append((ctx.primitive, ctx.avals_in, ctx.avals_out, ctx.module_context.platforms, n))
        assert x.type.element_type == mlir.dtype_to_ir_type(np.float32)
        assert x.type == mlir.aval_to_ir_type(ctx.avals_in[0])
        shift = mlir.ir_constant(np.arange(3, dtype=np.float32))
        number = mlir.hlo.ConvertOp(
            mlir.aval_to_ir_type(core.ShapedArray((), np.dtype("float32"))), mlir.ir_constant(n)
        )
        both = mlir.hlo.broadcast_in_dim(mlir.aval_to_ir_type(ctx.avals_in[0]), number, mlir.dense_int_array([]))
        assert mlir.ir_constant(np.zeros((0, 2), "int8")).type == mlir.ir.Type.parse("tensor<0x2xi8>")
        flags = mlir.ir_constant(np.array([True, False, True]))
        out = mlir.hlo.AddOp(mlir.hlo.AddOp(x, shift), both)
        return mlir.hlo.SelectOp(flags, out, x).results

    p = core.Primitive("shifted")
    p.def_abstract_eval(lambda x, *, n: core.ShapedArray(x.shape, x.dtype))
    mlir.register_lowering(p, rule)
    np.testing.assert_allclose(jit(lambda x: p.bind(x, n=2) + p.bind(x, n=2))(W), 2 * (W + [2, 0, 4]), rtol=1e-6)
    primitive, (aval,), (out,), platforms, n = told[0]
    assert (primitive, str(aval), str(out), platforms, n) == (p, "float32[3]", "float32[3]", ("cpu",), 2)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "bfloat16", "float16", "complex64"])
def test_rules_of_the_bindings_on_any_dtype(dtype: str) -> None:
    p = lowered(lambda ctx, x: mlir.hlo.ReverseOp(x, mlir.dense_int_array([0])))
    x = jnp.asarray([0, 1, 1]).astype(dtype)
    np.testing.assert_array_equal(jit(p.bind)(x), x[::-1])


def test_several_results_by_the_bindings() -> None:
    p = core.Primitive("both", multiple_results=True)
    p.def_abstract_eval(lambda x: [x, x])
    mlir.register_lowering(p, lambda ctx, x: [mlir.hlo.AddOp(x, x), mlir.hlo.NegOp(x).result])
    assert jit(p.bind)(3.0) == [6.0, -3.0]


# Rules that give the wrong thing, or that cannot be had --------------------------------------------------------------


def test_lowering_rules_that_give_something_else() -> None:
    for rule in (lambda ctx, x: [x, x], lambda ctx, x: None, lambda ctx, x: mlir.hlo.ConvertOp(bfloat16(x), x)):
        with pytest.raises(errors.CustomRuleError, match=r"lowering rule of the primitive 'twice'.*test_interpreters"):
            jit(lowered(rule).bind)(W)
    with pytest.raises(
        errors.CustomRuleError, match=r"must return values of the types \(tensor<3xf32>\).*tensor<3xbf16>"
    ):
        jit(lowered(lambda ctx, x: mlir.hlo.ConvertOp(bfloat16(x), x)).bind)(W)
    with pytest.raises(
        errors.CustomRuleError, match=r"with multiple_results=True, so it must return a list .* f32\[3\]"
    ):
        jit(lowered(mlir.lower_fun(lambda x: x)).bind)(W)
    with pytest.raises(
        errors.CustomRuleError, match=r"lowering rule of the primitive 'twice'.* of type f32\[3\].*bf16\[3\]"
    ):
        jit(lowered(mlir.lower_fun(lambda x: x.astype("bfloat16"), multiple_results=False)).bind)(W)
    with pytest.raises(errors.CustomRuleError, match="list of 1 values"):
        jit(lowered(mlir.lower_fun(lambda x: [x, x]), multiple_results=True).bind)(W)
    with pytest.raises(ZeroDivisionError):
        jit(lowered(lambda ctx, x: 1 // 0).bind)(W)
    with pytest.raises(errors.CustomRuleError, match=r"can only be registered.*hlo\.inline"):
        mlir.lower_fun(lambda x: x)(None, W)
    with pytest.raises(TypeError, match="register_lowering takes a function as the rule of 'p', got None"):
        mlir.register_lowering(core.Primitive("p"), None)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match=r"'pullback\.interpreters\.mlir' has no attribute 'nothing'"):
        _ = mlir.nothing


def bfloat16(x: Any) -> Any:
    return mlir.aval_to_ir_type(core.ShapedArray((3,), jnp.dtype("bfloat16")))


def test_translations_of_the_oldest_kind_are_refused() -> None:
    p = core.Primitive("twice")
    for table in (xla.translations, xla.backend_specific_translations["cpu"]):
        with pytest.raises(
            errors.CustomRuleError, match=r"'twice', .*test_interpreters.*must be one made by xla.lower_"
        ):
            table[p] = lambda c, x: c.Add(x, x)
    assert p not in xla.translations
    xla.register_translation(p, xla.lower_fun(lambda x: x + x, multiple_results=False), platform="cpu")
    assert p in xla.translations
    p.def_abstract_eval(lambda x: x)
    assert jit(p.bind)(2.0) == 4.0


def defined(**rules: Any) -> Any:
    p = core.Primitive("bad", multiple_results=rules.pop("multiple_results", False))
    p.def_impl(rules.pop("impl", lambda *xs: xs[0]))
    p.def_abstract_eval(rules.pop("aval", lambda *avals: avals[0]))
    for name, table in (
        ("jvp", ad.primitive_jvps),
        ("transpose", ad.primitive_transposes),
        ("batch", batching.primitive_batchers),
    ):
        if name in rules:
            table[p] = rules[name]
    return p.bind


WRONG: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: defined(impl=lambda x: [x])(W),
        r"evaluation rule .* an array as its result, but returned \[f32\[3\]\] \(a prim",
    ),
    (
        lambda: defined(impl=lambda x: None)(W),
        "evaluation rule .* must return an array as its result, but returned None",
    ),
    (
        lambda: defined(impl=lambda x: x, multiple_results=True)(W),
        r"must return a list of results, but returned f32\[3\]",
    ),
    (
        lambda: make_jaxpr(defined(aval=lambda x: x.shape))(W),
        r"abstract_eval rule .* a ShapedArray .* returned \(3 of type int\)",
    ),
    (
        lambda: make_jaxpr(defined(aval=lambda x: x, multiple_results=True))(W),
        "a list of ShapedArray, one for each res",
    ),
    (
        lambda: jvp(defined(jvp=lambda xs, ts: ts[0]), (W,), (W,)),
        r"jvp rule .* a pair \(out, tangent\), but returned f32\[3",
    ),
    (
        lambda: jvp(defined(jvp=lambda xs, ts: (xs[0], None)), (W,), (W,)),
        "tangent as an array or ZERO, but returned None",
    ),
    (
        lambda: jvp(defined(jvp=lambda xs, ts: (W, ts[0][0])), (W,), (W,)),
        r"tangent of type f32\[3\], but returned f32\[\]",
    ),
    (
        lambda: vjp(defined(jvp=lambda xs, ts: (xs[0], defined(transpose=lambda ct, x: ct)(ts[0]))), W)[1](W),
        r"transpose rule .* a tuple of 1 cotangents, one for each operand .*but returned f32\[3\]",
    ),
    (
        lambda: vjp(defined(jvp=lambda xs, ts: (xs[0], defined(transpose=lambda ct, x: [ct, ct])(ts[0]))), W)[1](W),
        r"1 cotangents.*but returned 2 of them: \[f32\[3\], f32\[3\]\]",
    ),
    (
        lambda: vjp(defined(jvp=lambda xs, ts: (xs[0], defined(transpose=lambda ct, x: [ct[0]])(ts[0]))), W)[1](W),
        r"cotangent 0 of type f32\[3\], but returned f32\[\]",
    ),
    (lambda: vmap(defined(batch=lambda xs, ds: xs[0]))(W), r"batch rule .* a pair \(out, dim\), but returned f32\[3\]"),
    (
        lambda: vmap(defined(batch=lambda xs, ds: (xs[0], "a")))(W),
        "the position of the mapped axis .* returned 'a' of type",
    ),
    (
        lambda: vmap(defined(batch=lambda xs, ds: (xs[0], 1)))(W),
        r"axis, of size 3, .* but returned f32\[3\] and the position 1",
    ),
    (lambda: vmap(defined(batch=lambda xs, ds: (xs[0][1:], 0)))(W), r"axis, of size 3, .* f32\[2\] and the position 0"),
]


@pytest.mark.parametrize(("use", "message"), WRONG)
def test_a_rule_that_gives_something_else_is_named(use: Callable[[], Any], message: str) -> None:
    with pytest.raises(errors.CustomRuleError, match=message) as caught:
        use()
    assert "the primitive 'bad', " in str(caught.value)
    assert "test_interpreters.py:" in str(caught.value)
    assert isinstance(caught.value, TypeError)


def test_programs_call_python_by_bindings() -> None:
    def operation(callback: Any) -> Any:
        p = core.Primitive("called", multiple_results=True)
        p.def_abstract_eval(lambda x, y: [core.ShapedArray(x.shape, x.dtype), core.ShapedArray((), np.dtype("int32"))])

        def rule(ctx: Any, *operands: Any) -> Any:
            out, token, keep = mlir.emit_python_callback(
                ctx, callback, None, operands, ctx.avals_in, ctx.avals_out, has_side_effect=False
            )
            ctx.module_context.add_keepalive(keep)
            assert token is None
            return out

        mlir.register_lowering(p, rule)
        batching.primitive_batchers[p] = lambda args, dims: (p.bind(*args), [dims[0], None])
        return p.bind

    both = operation(lambda x, y: (x + y, np.int32(7)))
    for _ in range(2):
        a, b = jit(lambda x: both(x, jnp.float32(2)))(W)
        np.testing.assert_array_equal(a, W + 2)
        assert b == 7
    np.testing.assert_array_equal(jit(vmap(lambda x: both(x, jnp.float32(2))[0]))(W), W + 2)
    with pytest.raises(errors.CallbackError, match="must return f32"):
        jit(operation(lambda x, y: (x.sum(), np.int32(7))))(W, W)
    with pytest.raises(ZeroDivisionError):
        jit(operation(lambda x, y: (x, 1 // 0)))(W, W)


def test_zeros_and_undefined_primals_are_nodes_of_trees():
    aval = core.ShapedArray((3,), np.dtype("float32"))
    for node in (ad.Zero(aval), ad.UndefinedPrimal(aval)):
        assert tree.leaves((node, 1.0)) == [1.0]
        same = tree.map(lambda x: x, node)
        assert (type(same), same.aval) == (type(node), aval)
        assert tree.structure(node) == tree.structure(same)
        assert tree.structure(node) != tree.structure(type(node)(core.ShapedArray((2,), np.dtype("float32"))))
    out, zero = jit(lambda x: (2.0 * x, ad.Zero(aval)))(1.0)
    assert (float(out), type(zero), zero.aval) == (2.0, ad.Zero, aval)
    assert type(vmap(lambda x: (x, ad.Zero(aval)))(np.ones(2))[1]) is ad.Zero
