"""Collectives under vmap: values, derivatives, compositions, and what is refused."""

import itertools
import json

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import checkpoint, custom_jvp, custom_vjp, grad, hessian, jit, jvp, lax, make_jaxpr, vjp, vmap
from pullback.core.errors import JaxprError
from pullback.core.jaxpr_check import check_jaxpr
from tests.primitives.collective_cases import CASES, GROUPS, PART, PERM, RECORDED, SIZE, quantities
from tests.primitives.collective_programs import near, permuted

JAX = json.loads(RECORDED.read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_values_and_derivatives_are_those_of_jax(case):
    for name, compute in quantities(pullback, case).items():
        found = np.asarray(compute())
        if name in JAX[case.name]:
            expected = np.array(JAX[case.name][name], np.float32)
            assert found.shape == expected.shape, name
            np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5, err_msg=name)


def by_group(x, reduce):
    out = np.empty_like(x)
    for group in GROUPS:
        out[group] = reduce(x[group], 0)
    return out


def gathered(x):
    out = np.empty((SIZE, 2, *x.shape[1:]), x.dtype)
    for group in GROUPS:
        out[group] = x[group]
    return out


def scattered(x):
    out = np.empty((SIZE, *x.shape[2:]), x.dtype)
    for group in GROUPS:
        out[group] = x[group].sum(0)
    return out


def exchanged(x):
    out = np.empty_like(x)
    for group in GROUPS:
        out[group] = np.swapaxes(x[group], 0, 1)
    return out


NUMPY = {
    "psum": lambda x: np.broadcast_to(x.sum(0), x.shape),
    "psum in groups": lambda x: by_group(x, np.sum),
    "pmean": lambda x: x.mean(0) * x,
    "pmax": lambda x: np.broadcast_to(x.max(0), x.shape),
    "pmin": lambda x: np.broadcast_to(x.min(0), x.shape),
    "pmax in groups": lambda x: by_group(x, np.max),
    "all_gather": lambda x: np.broadcast_to(x, (SIZE, *x.shape)),
    "all_gather tiled": lambda x: np.broadcast_to(np.concatenate(list(x), 1), (SIZE, 2, 3 * SIZE)),
    "all_gather in groups": gathered,
    "psum_scatter": lambda x: x.sum(0),
    "psum_scatter tiled": lambda x: x.sum(0).reshape(SIZE, 2, 2),
    "psum_scatter in groups": scattered,
    "all_to_all": lambda x: np.stack([x[:, i].T for i in range(SIZE)]),
    "all_to_all tiled": lambda x: np.stack([np.concatenate(list(x[:, :, 2 * i : 2 * i + 2]), 0) for i in range(SIZE)]),
    "all_to_all in groups": exchanged,
    "ppermute": lambda x: permuted(x, PERM),
    "ppermute in part": lambda x: permuted(x, PART),
    "pshuffle": lambda x: x[[2, 0, 3, 1]] * x,
    "pbroadcast": lambda x: np.full_like(x, x[2]),
    "axis_index": lambda x: x * np.arange(SIZE, dtype=np.float32)[:, None],
}


@pytest.mark.parametrize("case", [c for c in CASES if c.name in NUMPY], ids=lambda c: c.name)
def test_values_are_those_of_numpy_on_the_stacked_values(case):
    x = case.operand()
    expected = NUMPY[case.name](x)

    def each(y):
        return case.run(lax, y)

    for f in (each, jit(each)):
        near(vmap(f, axis_name="i")(x), expected, 1e-6)
        near(jit(vmap(f, axis_name="i"))(x), expected, 1e-6)
        # Mapped along another axis than the first, with the results elsewhere too.
        moved = vmap(f, in_axes=-1, axis_name="i")(np.moveaxis(x, 0, -1))
        near(moved, expected, 1e-6)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_over_another_axis(case):
    """A collective along one axis is the same for each index of another, mapped inside or outside."""
    x = np.stack([case.operand(), 2 * case.operand() + 1, np.sin(case.operand())])  # [j, i, ...]

    def each(y):
        return case.run(lax, y)

    expected = np.stack([vmap(each, axis_name="i")(part) for part in x])
    near(vmap(vmap(each, axis_name="i"), axis_name="j")(x), expected, 1e-6)
    for axis in range(1, x.ndim - 1):  # the other axis at each place of the operand
        swapped = np.moveaxis(np.swapaxes(x, 0, 1), 1, axis)  # [i, ..., j, ...]
        inside = vmap(vmap(each, in_axes=axis - 1, axis_name="j"), axis_name="i")(swapped)  # [i, j, ...]
        near(np.swapaxes(np.asarray(inside), 0, 1), expected, 1e-6)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_derivatives_are_consistent(case):
    """The transpose of the derivative is the derivative's adjoint, compiled and eager, to the second order."""
    x, t = case.operand(), np.cos(case.operand())

    def f(xs):
        return vmap(lambda y: case.run(lax, y), axis_name="i")(xs)

    for g in (f, jit(f)):
        out, tangent = jvp(g, (x,), (t,))
        ct = np.sin(np.arange(out.size, dtype=np.float32)).reshape(out.shape)
        (back,) = vjp(g, x)[1](pnp.asarray(ct))
        near(np.vdot(ct, tangent), np.vdot(back, t), 1e-4)
        difference = (np.asarray(g(x + 1e-2 * t), float) - np.asarray(g(x - 1e-2 * t), float)) / 2e-2
        near(tangent, difference, 2e-2)
    matrix = np.asarray(hessian(lambda xs: pnp.sum(pnp.sin(f(xs))))(x)).reshape(x.size, x.size)
    near(matrix, matrix.T, 1e-5)


# Constructs ----------------------------------------------------------------------------------------------------------


def with_rules(f):
    @custom_vjp
    def g(x):
        return f(x)

    g.defvjp(lambda x: vjp(f, x), lambda pull, ct: pull(ct))
    return g


def with_tangents(f):
    @custom_jvp
    def g(x):
        return f(x)

    @g.defjvp
    def _(primals, tangents):
        return jvp(f, primals, tangents)

    return g


CONSTRUCTS = {
    "jit": jit,
    "checkpoint": checkpoint,
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (c, f(c)), x, None, length=1)[1][0],
    "a carry that begins without varying": lambda f: (
        lambda x: lax.scan(lambda c, _: (c + f(x), None), pnp.zeros(()), None, length=1)[0]
    ),
    "while_loop": lambda f: lambda x: lax.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, f(x)), (0, 0 * f(x)))[1],
    "cond": lambda f: lambda x: lax.cond(lax.axis_index("i") >= 0, f, lambda y: 0 * f(y), x),
    "cond of one value": lambda f: lambda x: lax.cond(lax.psum(x, "i") > -9, f, lambda y: 0 * f(y), x),
    "custom_vjp": with_rules,
    "custom_jvp": with_tangents,
    "vmap": lambda f: lambda x: vmap(f)(x[None])[0],
    "vmap with a name": lambda f: lambda x: vmap(f, axis_name="k")(x[None])[0],
}


@pytest.mark.parametrize("outer", [lambda f: f, jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", CONSTRUCTS)
def test_within_constructs(name, outer):
    def plain(x):
        return x * lax.psum(pnp.sin(x), "i") + lax.axis_index("i")

    x = pnp.asarray(np.linspace(0.1, 1.0, SIZE, dtype=np.float32))
    wrapped = CONSTRUCTS[name](plain)
    near(outer(vmap(wrapped, axis_name="i"))(x), vmap(plain, axis_name="i")(x), 1e-5)
    each = [outer(vmap(grad(f), axis_name="i"))(x) for f in (wrapped, plain)]
    near(*each, 1e-5)
    t = pnp.cos(x)
    forward = [outer(lambda y, f=f: jvp(vmap(f, axis_name="i"), (y,), (t,))[1])(x) for f in (wrapped, plain)]
    near(*forward, 1e-5)
    if name != "while_loop" or outer is not jit:
        outside = [outer(grad(lambda y, f=f: pnp.sum(vmap(f, axis_name="i")(y))))(x) for f in (wrapped, plain)]
        near(*outside, 1e-5)


def test_a_collective_of_what_is_not_mapped_is_seen_in_every_construct():
    """Operations that hold a program go to the trace that maps its axes, though no operand is mapped."""
    for name, construct in CONSTRUCTS.items():
        if name in ("cond of one value", "while_loop"):
            continue
        f = construct(lambda x: lax.psum(x, "i") + 0.0 * lax.axis_index("i"))
        near(vmap(lambda _, f=f: f(pnp.float32(2.0)), axis_name="i")(pnp.arange(3)), np.full(3, 6.0), 0)


def test_while_loops_until_all_are_done():
    def f(x):
        return lax.while_loop(lambda v: lax.pmax(v, "i") < 10.0, lambda v: v * 2.0, x)

    near(vmap(f, axis_name="i")(pnp.array([1.0, 3.0])), np.array([4.0, 12.0]), 0)


def test_random_keys_of_each_index():
    key = pullback.random.key(0)

    def f(_):
        return pullback.random.uniform(pullback.random.fold_in(key, lax.axis_index("i")))

    found = vmap(f, axis_name="i")(pnp.arange(3))
    near(found, np.stack([pullback.random.uniform(pullback.random.fold_in(key, i)) for i in range(3)]), 0)
    keys = vmap(lambda k: lax.all_gather(k, "i"), axis_name="i", out_axes=None)(pullback.random.split(key, 3))
    assert keys.dtype == key.dtype
    near(pullback.random.key_data(keys), pullback.random.key_data(pullback.random.split(key, 3)), 0)


# Several axes --------------------------------------------------------------------------------------------------------


def two(f, x):
    """A function mapped over axes ``i``, outside, and ``j``."""
    return np.asarray(vmap(vmap(f, axis_name="j"), axis_name="i")(x))


def flat(f, x):
    """The same over one axis, ``i`` and ``j`` together."""
    merged = np.asarray(x).reshape(-1, *np.shape(x)[2:])
    out = np.asarray(vmap(f, axis_name="k")(merged))
    return out.reshape(*np.shape(x)[:2], *out.shape[1:])


@pytest.mark.parametrize(
    "f",
    [
        lambda x, n: lax.psum(x, n), lambda x, n: lax.pmean(x, n), lambda x, n: lax.pmax(x, n),
        lambda x, n: lax.all_gather(x, n), lambda x, n: lax.all_gather(x, n, axis=1),
        lambda x, n: lax.all_gather(x, n, axis=1, tiled=True), lambda x, n: lax.psum_scatter(x, n),
        lambda x, n: lax.psum_scatter(x, n, scatter_dimension=1, tiled=True),
        lambda x, n: lax.all_to_all(x, n, 0, 1), lambda x, n: lax.all_to_all(x, n, 1, 0, tiled=True),
        lambda x, n: lax.ppermute(x, n, [(0, 5), (4, 1), (2, 2)]), lambda x, n: x[0] * lax.axis_index(n),
        lambda x, n: lax.pbroadcast(x, n, 4), lambda x, n: x * lax.axis_size(n),
        lambda x, n: lax.pshuffle(x, n, [5, 4, 3, 2, 1, 0]),
    ],
    ids=itertools.count(),
)  # fmt: skip
def test_two_axes_are_as_one(f):
    x = np.random.default_rng(0).normal(size=(2, 3, 6, 12)).astype(np.float32)
    near(two(lambda y: f(y, ("i", "j")), x), flat(lambda y: f(y, "k"), x), 1e-5)
    near(two(jit(lambda y: f(y, ("i", "j"))), x), flat(lambda y: f(y, "k"), x), 1e-5)

    def gradient(names, how):
        return how(grad(lambda y: pnp.sum(pnp.sin(f(y, names)))), x)

    near(gradient(("i", "j"), two), gradient("k", flat), 1e-4)


def test_an_inner_axis_hides_an_outer_one_of_the_same_name():
    x = pnp.arange(6.0).reshape(2, 3)
    found = vmap(lambda row: vmap(lambda y: lax.psum(y, "i"), axis_name="i")(row), axis_name="i")(x)
    near(found, np.broadcast_to(np.asarray(x).sum(1, keepdims=True), (2, 3)), 0)


def test_numbers_and_booleans():
    found = []

    def f(x):
        found.append((lax.psum(1, "i"), lax.psum((1, 2.5), "i")))
        return lax.psum(x > 1.0, "i"), lax.pmean(pnp.int32(3), "i")

    counts, means = vmap(f, axis_name="i")(pnp.array([1.0, 2.0, 3.0]))
    assert found == [(3, (3, 7.5))]
    assert counts.dtype == np.int32
    assert counts.tolist() == [2, 2, 2]
    assert means.tolist() == [3.0] * 3


# Types ---------------------------------------------------------------------------------------------------------------


def test_types_say_along_which_axes_a_value_varies():
    text = str(make_jaxpr(lambda x: (lax.axis_index("i"), lax.psum(lax.pvary(x, "i"), "i")), axis_env=[("i", 3)])(1.0))
    assert "i32[]{V:i} = axis_index[axes=('i',)]" in text
    assert "f32[]{V:i} = pvary" in text
    assert "f32[] = psum" in text


# Reductions in reverse mode ------------------------------------------------------------------------------------------


def network():
    rng = np.random.default_rng(3)
    sizes = [(5, 7), (7,), (7, 4), (4,)]
    return [pnp.asarray(rng.normal(size=s).astype(np.float32)) for s in sizes], rng.normal(size=(6, 5)).astype(
        np.float32
    )


def loss(parameters, x):
    w, b, v, c = parameters
    return pnp.sum(pnp.sin(pnp.tanh(x @ w + b) @ v + c))


LOSSES = {
    "plain": loss,
    "jit": jit(loss),
    "checkpoint": checkpoint(loss),
    "scan": lambda p, x: lax.scan(lambda s, _: (s + loss(p, x), None), 0.0, None, length=2)[0],
    "scan over layers": lambda p, x: pnp.sum(
        lax.scan(lambda s, w: (pnp.tanh(w @ s), None), x, pnp.stack([p[0] @ p[0].T] * 2))[0]
    ),
    "reverse scan": lambda p, x: pnp.sum(lax.scan(lambda s, w: (pnp.sin(s) * w, s), x, p[0].T, reverse=True)[1]),
    "cond": lambda p, x: lax.cond(x[0] > 0, loss, lambda p, x: 2 * loss(p, x), p, x),
    "psum": lambda p, x: loss(p, x) * lax.psum(x[0], "i"),
    "elementwise": lambda p, x: pnp.sum(p[0].T * x) + pnp.sum(x[:4] * p[3]),
    "linear": lambda p, x: pnp.sum(p[0] * 2.0) + x[0],
}  # fmt: skip


def with_backward(p, x):
    @custom_vjp
    def f(p, x):
        return loss(p, x)

    f.defvjp(lambda p, x: (loss(p, x), (p, x)), lambda res, ct: vjp(loss, *res)[1](ct))
    return f(p, x)


LOSSES["custom_vjp"] = with_backward


@pytest.mark.parametrize("how", [lambda f: f, jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", LOSSES)
def test_reduce_axes_is_the_gradient_of_the_summed_loss(name, how):
    parameters, x = network()
    f = LOSSES[name]
    one = vmap(grad(f, reduce_axes=("i",)), (None, 0), out_axes=None, axis_name="i")
    found = how(one)(parameters, x)
    if name == "psum":  # each index's loss depends on all others: the gradient of each, summed
        total = grad(lambda p: pnp.sum(vmap(f, (None, 0), axis_name="i")(p, x)))(parameters)
    else:
        total = grad(lambda p: sum(f(p, row) for row in x))(parameters)
        each = vmap(grad(f), (None, 0), axis_name="i")(parameters, x)
        near([np.asarray(e).sum(0) for e in each], found, 1e-4)
    near(found, total, 1e-4)


def test_products_are_contracted_over_the_mapped_axis():
    parameters, x = network()
    one = vmap(grad(loss, reduce_axes=("i",)), (None, 0), out_axes=None, axis_name="i")
    shapes = {v.aval.shape for eqn in make_jaxpr(one)(parameters, x).eqns for v in eqn.outvars}
    assert (6, 5, 7) not in shapes
    assert (6, 7, 4) not in shapes


def test_of_two_axes_one_is_reduced():
    parameters, _ = network()
    x = np.random.default_rng(1).normal(size=(3, 4, 5)).astype(np.float32)
    g = grad(loss, reduce_axes=("j",))
    found = vmap(vmap(g, (None, 0), out_axes=None, axis_name="j"), (None, 0), axis_name="i")(parameters, x)
    each = vmap(vmap(grad(loss), (None, 0)), (None, 0))(parameters, x)
    near(found, [np.asarray(e).sum(1) for e in each], 1e-4)
    both = grad(loss, reduce_axes=("i", "j"))
    found = vmap(vmap(both, (None, 0), out_axes=None, axis_name="j"), (None, 0), out_axes=None, axis_name="i")
    near(found(parameters, x), [np.asarray(e).sum((0, 1)) for e in each], 1e-4)


def test_values_that_vary_have_cotangents_of_their_own():
    x = pnp.arange(1.0, 4.0)
    g = grad(lambda w, x: w * x**2, argnums=(0, 1), reduce_axes=("i",))
    dw, dx = vmap(g, (None, 0), out_axes=(None, 0), axis_name="i")(2.0, x)
    near(dw, 14.0, 1e-6)
    near(dx, 4.0 * x, 1e-6)
    of_each = vmap(lambda x: grad(lambda w: w * x, reduce_axes=("i",))(lax.pvary(2.0, "i")), axis_name="i")(x)
    near(of_each, x, 0)


def test_products_within_a_scope_are_contracted_over_the_mapped_axis():
    def loss(w, x):
        with pullback.named_scope("layer"):
            return ((x @ w) ** 2).sum()

    one = vmap(grad(loss, reduce_axes=("i",)), (None, 0), out_axes=None, axis_name="i")
    w, x = pnp.ones((3, 4)), pnp.arange(30.0).reshape(5, 2, 3)
    closed = make_jaxpr(one)(w, x)
    assert max(v.aval.size for eqn in closed.eqns for v in eqn.outvars) == 40  # and no product of the examples, 60
    np.testing.assert_allclose(one(w, x), grad(lambda w: sum(loss(w, row) for row in x))(w), rtol=1e-6)


def test_other_transformations_with_reduce_axes():
    x = pnp.arange(1.0, 4.0)

    def pull(x):
        return vjp(lambda w: w * x, 2.0, reduce_axes=("i",))[1](1.0)[0]

    def value(x):
        return pullback.value_and_grad(lambda w: w * x, reduce_axes=("i",))(2.0)

    def transpose(x):
        return pullback.linear_transpose(lambda w: w * x, 2.0, reduce_axes=("i",))(1.0)[0]

    assert vmap(pull, out_axes=None, axis_name="i")(x) == 6.0
    assert vmap(transpose, out_axes=None, axis_name="i")(x) == 6.0
    values, total = vmap(value, out_axes=(0, None), axis_name="i")(x)
    assert values.tolist() == [2.0, 4.0, 6.0]
    assert total == 6.0


def test_an_inner_gradient_is_its_own():
    """What an outer gradient reduces, an inner one does not, which is not asked to."""

    def f(w, x):
        inner = grad(lambda v: pnp.sin(v * x))(w)
        return inner * w

    x = pnp.arange(1.0, 4.0)
    found = vmap(grad(f, reduce_axes=("i",)), (None, 0), out_axes=None, axis_name="i")(0.5, x)
    near(found, grad(lambda w: sum(f(w, y) for y in x))(0.5), 1e-5)


# What is refused -----------------------------------------------------------------------------------------------------


def on_axis(f, shape=(3, 3)):
    return vmap(f, axis_name="i")(np.ones(shape, np.float32))


REFUSED = [
    (lambda: lax.psum(1.0, "i"), NameError, "unbound axis name: 'i'. Names in scope: none"),
    (lambda: on_axis(lambda x: lax.psum(x, "j")), NameError, r"Names in scope: 'i' \(size 3, by vmap\)"),
    (lambda: on_axis(lambda x: lax.psum(x, ("i", "i"))), ValueError, "a name twice"),
    (lambda: on_axis(lambda x: lax.psum("a", "i")), TypeError, "psum"),
    (lambda: on_axis(lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)])), ValueError, "a source twice: 0"),
    (lambda: on_axis(lambda x: lax.ppermute(x, "i", [(0, 1), (2, 1)])), ValueError, "a target twice: 1"),
    (lambda: on_axis(lambda x: lax.ppermute(x, "i", [(0, 3)])), ValueError, "the target 3 is not an index"),
    (lambda: on_axis(lambda x: lax.ppermute(x, "i", 5)), ValueError, "list of pairs"),
    (lambda: on_axis(lambda x: lax.pshuffle(x, "i", [0, 0, 1])), ValueError, "permutation of 0 to 2"),
    (lambda: on_axis(lambda x: lax.all_gather(x, "i", axis=2)), ValueError, "axis=2"),
    (lambda: on_axis(lambda x: lax.psum_scatter(x, "i"), (3, 4)), ValueError, "must be the size of the axis, 3"),
    (lambda: on_axis(lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True), (3, 4)), ValueError, "a multiple"),
    (lambda: on_axis(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1]])), ValueError, "each index of the axis"),
    (lambda: on_axis(lambda x: lax.all_gather(x, "i", axis_index_groups=[[0, 1], [2]])), ValueError, "one size"),
    (lambda: on_axis(lambda x: lax.pbroadcast(x, "i", 3)), ValueError, "source=3"),
    (lambda: on_axis(lambda x: lax.pcast(x, "i", to="reduced")), NotImplementedError, "of shard_map"),
    (lambda: on_axis(lambda x: grad(pnp.sum, reduce_axes=("j",))(x)), NameError, "unbound axis name: 'j'"),
    (lambda: vmap(lambda x: lax.psum(x, "i"), axis_name="i", chunk_size=2)(np.ones(3)), ValueError, "chunk_size"),
    (lambda: grad(pnp.sum, reduce_axes="i"), ValueError, "tuple of axis names"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED, ids=itertools.count())
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_program_whose_axis_is_gone():
    closed = make_jaxpr(lambda x: lax.psum(x, "i"), axis_env=[("i", 3)])(1.0)
    with pytest.raises(NameError, match="unbound axis name: 'i'"):
        pullback.core.jaxpr_as_fun(closed)(1.0)
    with pytest.raises(NameError, match="unbound axis name: 'i'"):
        jit(pullback.core.jaxpr_as_fun(closed))(1.0)


def test_the_checker_knows_the_sizes_of_axes_in_scope():
    def f(x):
        return lax.all_gather(x, "i"), lax.all_to_all(four(x), "i", 0, 0)

    def four(x):
        return pnp.zeros(4) + x

    closed = make_jaxpr(f, axis_env=[("i", 4)])(1.0)
    check_jaxpr(closed)  # no axis is in scope
    vmap(lambda x: check_jaxpr(closed) or x, axis_name="i")(np.zeros(4))
    with pytest.raises(JaxprError, match=r"it is for 4 indices along \('i',\), which have 2 here"):
        vmap(lambda x: check_jaxpr(closed) or x, axis_name="i")(np.zeros(2))


@pytest.mark.parametrize(("outer", "inner"), [(2, 1), (1, 2), (3, 2)])
def test_an_inner_axis_of_the_same_name_leaves_programs_their_own(outer, inner):
    """What a loop closes over varies along the outer axis, which the inner one hides."""

    def rows(name):
        def each(row):
            def of_one(x):
                smallest = lax.pmin(pnp.arange(2.0) * x, name)
                return lax.map(lambda y: smallest * y, smallest), lax.cond(x > 1, lambda: smallest, lambda: -smallest)

            mapped = vmap(of_one, axis_name=name)(row)
            return mapped, lax.psum(mapped[0], "i")

        return vmap(each, axis_name="i")(pnp.arange(1.0, 1 + outer * inner).reshape(outer, inner))

    near(rows("i"), rows("j"), 0)


def test_numbers_that_are_made_in_what_only_some_indices_run():
    def made(number, x):
        return pnp.broadcast_to(lax.convert_element_type(number, pnp.float32), (2,)) * x

    def chosen(x):
        return lax.cond(pnp.sum(x) > 0, lambda x: made(0.5, x), lambda x: made(0.25, x) + made(0.5, x), x)

    def repeated(x):
        return lax.while_loop(lambda s: pnp.sum(s) < made(3.0, 1.0)[0], lambda s: s + pnp.abs(made(0.5, s)) + 1, x)

    x = np.array([[1.0, 2.0], [-1.0, -3.0], [0.5, 0.0]], np.float32)
    for f in (chosen, repeated):
        near(vmap(f, axis_name="i")(x), [np.stack([f(row) for row in x])], 1e-6)
    near(grad(lambda x: vmap(chosen, axis_name="i")(x).sum())(x), np.outer([0.5, 0.75, 0.5], [1, 1]), 1e-6)
