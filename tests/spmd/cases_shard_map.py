"""``shard_map`` and ``pmap`` over eight devices: values, derivatives, training steps, and what is refused."""

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings

import pullback
import pullback.numpy as pnp
from pullback import (
    checkpoint,
    custom_vjp,
    disable_jit,
    grad,
    hessian,
    jit,
    jvp,
    lax,
    make_mesh,
    pmap,
    shard_map,
    vjp,
    vmap,
)
from pullback.backends.hlo import collectives
from pullback.core.errors import ShardMapError
from pullback.derivatives import laplacian
from pullback.sharding import Mesh
from pullback.sharding import PartitionSpec as P
from tests.primitives.collective_cases import CASES, SIZE, weights
from tests.primitives.collective_programs import near, programs

FOUR = Mesh(np.array(pullback.devices()[:SIZE]), ("i",))
AxisType = pullback.sharding.AxisType
EIGHT = make_mesh((8,), ("i",), AxisType.Auto)
GRID = make_mesh((4, 2), ("i", "j"), AxisType.Auto)


# Collectives -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_collectives_give_what_they_give_under_vmap(case):
    x = case.operand()

    def each(y):
        return case.run(lax, y)

    def loss(y):
        out = each(y)
        return (out * weights(out)).sum()

    def losses(xs):
        return vmap(loss, axis_name="i")(xs)

    expected = vmap(each, axis_name="i")(x)
    mapped = shard_map(lambda part: each(part[0])[None], mesh=FOUR, in_specs=P("i"), out_specs=P("i"))
    near(jit(mapped)(x), expected)
    near(pmap(each, axis_name="i")(x), expected)
    near(pmap(grad(loss), axis_name="i")(x), vmap(grad(loss), axis_name="i")(x))
    near(grad(lambda xs: pmap(loss, axis_name="i")(xs).sum())(x), grad(lambda xs: losses(xs).sum())(x))
    two = np.stack([x, 2 * x + 1])
    near(vmap(mapped)(two), vmap(vmap(each, axis_name="i"))(two))
    for check in (True, False):
        of_parts = shard_map(
            lambda part: loss(part[0])[None], mesh=FOUR, in_specs=P("i"), out_specs=P("i"), check_vma=check
        )
        near(grad(lambda xs, f=of_parts: f(xs).sum())(x), grad(lambda xs: losses(xs).sum())(x))
        near(jvp(of_parts, (x,), (np.cos(x),))[1], jvp(losses, (x,), (np.cos(x),))[1])


def test_numbers_of_many_devices_are_written_as_bytes(monkeypatch):
    def program(x):
        pairs = [(0, 3), (3, 1), (2, 0)]
        return lax.psum(x, "j"), lax.ppermute(x, "i", pairs), lax.all_gather(x, "i", axis_index_groups=[[0, 2], [3, 1]])

    def mapped():
        return jit(shard_map(program, mesh=GRID, in_specs=P("i", "j"), out_specs=P("i", "j"), check_vma=False))

    x = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    expected, text = mapped()(x), mapped().lower(x).as_text()
    monkeypatch.setattr(collectives, "_MANY", 1)
    assert "0x" not in text
    assert mapped().lower(x).as_text().count('dense<"0x') == 3
    near(mapped()(x), expected)


@pytest.mark.parametrize("case", CASES[::3], ids=lambda c: c.name)
def test_devices_in_turn_give_the_same(case):
    x = case.operand()
    mapped = shard_map(lambda part: case.run(lax, part[0])[None], mesh=FOUR, in_specs=P("i"), out_specs=P("i"))
    expected = mapped(x)
    with disable_jit():
        near(mapped(x), expected)


@settings(max_examples=5)
@given(programs(size=8))
def test_random_programs_are_those_of_numpy(p):
    """Values over eight devices, and the derivatives that the same programs have under ``vmap``."""
    x, t, ct = (p.point(seed=k).astype(np.float32) for k in range(3))
    mapped = shard_map(lambda part: p(part[0])[None], mesh=EIGHT, in_specs=P("i"), out_specs=P("i"))
    stacked = vmap(p, axis_name="i")
    near(jit(mapped)(x), p.by_numpy(x))
    near(pmap(p, axis_name="i")(x), p.by_numpy(x))
    near(jvp(jit(mapped), (x,), (t,))[1], jvp(stacked, (x,), (t,))[1])
    near(vjp(jit(mapped), x)[1](ct), vjp(stacked, x)[1](ct))
    near(vjp(pmap(p, axis_name="i"), x)[1](ct), vjp(stacked, x)[1](ct))

    def product(f):
        return jvp(grad(lambda x: (ct * f(x) ** 2).sum()), (x,), (t,))[1]

    near(product(jit(mapped)), product(stacked))
    near(vmap(jit(mapped), in_axes=1)(np.stack([x, t, ct], 1)), np.stack([p.by_numpy(y) for y in (x, t, ct)]))


def test_two_axes():
    x = pnp.arange(32.0).reshape(8, 4)

    def f(part):
        assert part.shape == (2, 2)
        return (
            lax.psum(part, "j") + lax.axis_index("i"),
            lax.psum(part.sum(), ("i", "j")),
            lax.axis_index(("i", "j"))[None],
        )

    a, b, c = shard_map(f, mesh=GRID, in_specs=P("i", "j"), out_specs=(P("i", None), P(), P(("i", "j"))))(x)
    whole = np.asarray(x).reshape(8, 2, 2).sum(1)
    near(a, whole + np.repeat(np.arange(4), 2)[:, None])
    assert b == x.sum()
    assert c.tolist() == list(range(8))


# Training ------------------------------------------------------------------------------------------------------------


def loss(parameters, x, y):
    w, b, v = parameters
    return pnp.mean((pnp.tanh(x @ w + b) @ v - y) ** 2)


def updated(parameters, gradient):
    return pullback.tree.map(lambda p, g: p - 0.1 * g, parameters, gradient)


def data():
    rng = np.random.default_rng(0)
    parameters = [pnp.asarray(rng.normal(size=s).astype(np.float32)) for s in ((5, 7), (7,), (7,))]
    return parameters, rng.normal(size=(16, 5)).astype(np.float32), rng.normal(size=16).astype(np.float32)


def by_types(mesh, parameters, x, y):
    def step(parameters, x, y):
        return updated(parameters, grad(lambda p: lax.pmean(loss(p, x, y), "i"))(parameters))

    return shard_map(step, mesh=mesh, in_specs=(P(), P("i"), P("i")), out_specs=P())(parameters, x, y)


def by_hand(mesh, parameters, x, y):
    def step(parameters, x, y):
        return updated(parameters, lax.pmean(grad(loss)(parameters, x, y), "i"))

    mapped = shard_map(step, mesh=mesh, in_specs=(P(), P("i"), P("i")), out_specs=P(), check_vma=False)
    return mapped(parameters, x, y)


def from_outside(mesh, parameters, x, y):
    whole = shard_map(
        lambda p, x, y: lax.pmean(loss(p, x, y), "i"), mesh=mesh, in_specs=(P(), P("i"), P("i")), out_specs=P()
    )
    return updated(parameters, grad(whole)(parameters, x, y))


def by_pmap(mesh, parameters, x, y):
    n = mesh.size

    def step(parameters, x, y):
        return updated(parameters, lax.pmean(grad(loss)(parameters, x, y), "i"))

    out = pmap(step, axis_name="i", in_axes=(None, 0, 0))(parameters, x.reshape(n, -1, 5), y.reshape(n, -1))
    return [p[0] for p in out]


@pytest.mark.parametrize("devices", [2, 8])
@pytest.mark.parametrize("step", [by_types, by_hand, from_outside, by_pmap], ids=lambda f: f.__name__)
def test_a_training_step_is_that_of_one_device(step, devices):
    mesh = Mesh(np.array(pullback.devices()[:devices]), ("i",))
    parameters, x, y = data()
    expected, found = parameters, parameters
    for _ in range(3):
        expected = updated(expected, grad(loss)(expected, x, y))
        found = step(mesh, found, x, y)
    near(found, expected, 1e-6)
    if step in (by_types, by_hand, from_outside):
        near(jit(lambda *args: step(mesh, *args))(*data()), updated(parameters, grad(loss)(parameters, x, y)), 1e-6)
    if step in (by_types, by_hand):
        with disable_jit():
            near(step(mesh, *data()), updated(parameters, grad(loss)(parameters, x, y)), 1e-6)


# Within and around other constructs --------------------------------------------------------------------------------


def around(x):
    return lax.ppermute(x, "i", [(k, (k + 1) % 8) for k in range(8)])


def ruled(x):
    @custom_vjp
    def f(x):
        return pnp.sin(x) * lax.psum(x, "i")

    f.defvjp(
        lambda x: (f(x), x),
        lambda x, ct: (vjp(lambda y: pnp.sin(y) * lax.psum(y, "i"), x)[1](ct)[0],),
    )
    return f(x)


BODIES = {
    "scan": lambda x: lax.scan(lambda c, _: (pnp.sin(c) + around(c), None), x, None, length=3)[0],
    "while_loop": lambda x: lax.while_loop(lambda c: lax.pmax(c.max(), "i") < 50.0, lambda c: c + around(c) + 1.0, x),
    "cond": lambda x: lax.cond(lax.psum(x.sum(), "i") > 0, pnp.sin, pnp.cos, x) * lax.axis_index("i"),
    "checkpoint": checkpoint(lambda x: pnp.sin(around(x)) * lax.psum(x, "i")),
    "jit": jit(lambda x: pnp.sin(around(x)) * lax.psum(x, "i")),
    "custom_vjp": ruled,
    "all_gather": lambda x: pnp.sin(lax.all_gather(x, "i", tiled=True)).sum() * x,
}


@pytest.mark.parametrize("name", BODIES)
def test_constructs_within(name):
    x, body = pnp.linspace(0.1, 1.5, 8), BODIES[name]
    mapped = shard_map(body, mesh=EIGHT, in_specs=P("i"), out_specs=P("i"))

    def plain(x):
        return vmap(lambda y: body(y[None])[0], axis_name="i")(x)

    near(mapped(x), plain(x))
    near(jit(mapped)(x), plain(x))
    near(vmap(mapped)(pnp.stack([x, 2 * x])), vmap(plain)(pnp.stack([x, 2 * x])))
    near(jvp(mapped, (x,), (pnp.cos(x),))[1], jvp(plain, (x,), (pnp.cos(x),))[1])
    if name != "while_loop":
        near(grad(lambda y: mapped(y).sum())(x), grad(lambda y: plain(y).sum())(x))
        near(jit(grad(lambda y: pnp.sin(mapped(y)).sum()))(x), grad(lambda y: pnp.sin(plain(y)).sum())(x))


def test_around_it():
    x = pnp.linspace(0.1, 1.5, 8)
    mapped = shard_map(lambda y: pnp.sin(y) + around(y), mesh=EIGHT, in_specs=P("i"), out_specs=P("i"))

    def plain(y):
        return pnp.sin(y) + pnp.roll(y, 1)

    def loop(f):
        return lambda y: lax.scan(lambda c, _: (f(c), c.sum()), y, None, length=3)[0].sum()

    near(loop(mapped)(x), loop(plain)(x))
    near(grad(loop(mapped))(x), grad(loop(plain))(x))
    near(grad(checkpoint(loop(mapped)))(x), grad(loop(plain))(x))
    near(
        pullback.hessian(lambda y: pnp.sin(mapped(y)).sum())(x), pullback.hessian(lambda y: pnp.sin(plain(y)).sum())(x)
    )


def test_closed_over_values():
    x, w = pnp.arange(8.0), pnp.asarray(3.0)

    def total(w):
        return shard_map(lambda y: lax.psum((y * w).sum(), "i"), mesh=EIGHT, in_specs=P("i"), out_specs=P())(x)

    assert total(w) == 84.0
    assert grad(total)(w) == 28.0
    assert vmap(total)(pnp.array([1.0, 2.0])).tolist() == [28.0, 56.0]


# Some axes of the mesh, and one call within another ------------------------------------------------------------------


def test_the_index_along_an_axis_while_the_compiler_divides_the_others():
    x = pnp.arange(32.0).reshape(8, 4)
    for name, spec, index in (("i", P("i"), np.arange(8)[:, None] // 2), ("j", P(None, "j"), np.arange(4) // 2)):
        f = shard_map(
            lambda y, n=name: y + lax.axis_index(n), mesh=GRID, in_specs=spec, out_specs=spec, axis_names={name}
        )
        near(jit(f)(x), x + index)
        near(f(pullback.device_put(x, pullback.NamedSharding(GRID, P("i", "j")))), x + index)


def test_what_the_compiler_divides_stays_divided_along_the_other_axes():
    x = pullback.device_put(pnp.arange(32.0).reshape(8, 4), pullback.NamedSharding(GRID, P("i", "j")))
    f = jit(shard_map(lambda y: 2 * y, mesh=GRID, in_specs=P("i"), out_specs=P("i"), axis_names={"i"}))
    assert f(x).sharding.spec == P("i", "j")
    assert '[<@mesh, [{"i", ?}, {?}]>]' in f.lower(x).as_text()


@pytest.mark.parametrize("passed", [GRID, None], ids=["mesh passed", "mesh of the outer call"])
def test_an_inner_call_takes_the_axes_that_the_outer_leaves(passed):
    seen = []

    def inner(y):
        seen.append((y.shape, pullback.sharding.get_abstract_mesh().axis_types))
        return pnp.sin(y) + 10 * lax.axis_index("i") + 100 * lax.axis_index("j")

    def outer(y):
        seen.append((y.shape, pullback.sharding.get_abstract_mesh().manual_axes))
        return shard_map(inner, mesh=passed, in_specs=P(None, "j"), out_specs=P(None, "j"))(y)

    f = shard_map(outer, mesh=GRID, in_specs=P("i"), out_specs=P("i"), axis_names={"i"})
    x = pnp.arange(32.0).reshape(8, 4)
    expected = pnp.sin(x) + 10 * (np.arange(8)[:, None] // 2) + 100 * (np.arange(4) // 2)
    near(f(x), expected)
    assert seen == [((2, 4), ("i",)), ((2, 2), (pullback.sharding.AxisType.Manual,) * 2)]
    near(jit(f)(x), expected)
    near(jit(grad(lambda y: (f(y) ** 2).sum()))(x), 2 * expected * pnp.cos(x))
    near(vmap(f)(pnp.stack([x, x + 1]))[0], expected)
    assert pullback.sharding.get_abstract_mesh().empty


def test_arguments_that_are_no_arrays():
    x, log = pnp.arange(8.0), []

    def f(options, y, w):
        log.append(options["log"])
        return options["scale"] * y * w

    def total(w, **options):
        return shard_map(f, mesh=EIGHT, in_specs=(None, P("i"), None), out_specs=P("i"))(options, x, w).sum()

    assert total(2.0, scale=3, log="a") == 168
    assert grad(lambda w: total(w, scale=3, log=log.append))(2.0) == 84
    assert log == ["a", log.append]
    assert shard_map(lambda n: pnp.full(1, n), mesh=EIGHT, in_specs=None, out_specs=P("i"))(3).shape == (8,)


def test_a_mesh_without_devices_has_those_of_the_arguments():
    x = pullback.device_put(pnp.arange(8.0), pullback.NamedSharding(EIGHT, P("i")))
    f = shard_map(lambda y: y * lax.psum(y, "i"), mesh=EIGHT.abstract_mesh, in_specs=P("i"), out_specs=P("i"))
    near(f(x), 28 * np.arange(8.0))
    near(jit(f)(x), 28 * np.arange(8.0))


@pytest.mark.parametrize("check", [True, False])
def test_mesh_axes_that_divide_a_batch(check):
    """``spmd_axis_name`` of ``vmap`` divides the batch; values and gradients are those without it."""
    options = {"mesh": GRID, "in_specs": (P("j"), P()), "out_specs": (P("j"), P(), P()), "check_vma": check}
    f = shard_map(lambda y, w: (pnp.sin(y * w), lax.psum((y * w).sum(), "j"), w * 2), **options)
    x = pnp.arange(32.0).reshape(8, 4) / 8

    def loss(x, w, mapped):
        a, b, c = mapped(x, w)
        return (a**2).sum() + (b**3).sum() + c.sum()

    def plain(y, w):
        return pnp.sin(y * w), (y * w).sum(), w * 2

    divided, expected = (vmap(g, in_axes=(0, None), spmd_axis_name=n) for g, n in ((f, "i"), (plain, None)))
    near(divided(x, 3.0), expected(x, 3.0))
    near(jit(grad(loss, (0, 1)), static_argnums=2)(x, 3.0, divided), grad(loss, (0, 1))(x, 3.0, expected))
    found = vmap(lambda y: grad(loss, (0, 1))(y, 3.0, f), spmd_axis_name="i")(x)
    near(found, vmap(lambda y: grad(loss, (0, 1))(y, 3.0, plain))(x))
    assert "in_specs=(P('i', 'j'), P())" in str(pullback.make_jaxpr(divided)(x, 3.0))


def test_an_axis_of_vmap_with_the_name_of_an_axis_of_the_mesh():
    x = pnp.arange(64.0).reshape(8, 8)
    for mapped in (
        shard_map(lambda y: lax.psum(y, "i") + pnp.sin(y), mesh=EIGHT, in_specs=P("i"), out_specs=P("i")),
        pmap(lambda y: lax.psum(y, "i") + pnp.sin(y), axis_name="i"),
    ):
        f = lambda x, m=mapped: (vmap(lambda y: m(y) ** 2 + lax.psum(y, "i") ** 2, axis_name="i")(x)).sum()
        value = lambda x: ((x.sum(1, keepdims=True) + pnp.sin(x)) ** 2 + x.sum(0) ** 2).sum()
        near([f(x), jit(f)(x)], [value(x), value(x)])
        near([grad(f)(x), jit(grad(f))(x)], [grad(value)(x)] * 2)


# Axes of the mesh that are in types -----------------------------------------------------------------------------------

TYPED = make_mesh((4, 2), ("i", "j"))


@pytest.mark.parametrize("names", [("i", "j"), ("i",)])
def test_specifications_follow_from_types(names):
    """Without ``in_specs``; the types within have the other axes, and those of results and gradients have all."""
    x = pnp.arange(32.0).reshape(8, 4) / 8
    seen = []

    def f(y):
        seen.append(str(pullback.typeof(y)))
        gathered = lax.all_gather(y, "i", tiled=True).sum(0)
        return pnp.sin(y) * lax.psum(y, "i") + lax.ppermute(y, "i", [(0, 1), (1, 0)]) + gathered

    def plain(x):
        blocks = x.reshape(4, 2, 4)
        return (pnp.sin(blocks) * blocks.sum(0) + pnp.zeros_like(blocks).at[:2].set(blocks[1::-1])).reshape(
            8, 4
        ) + x.sum(0)

    with pullback.set_mesh(TYPED):
        y = pullback.device_put(x, P("i", "j"))
        spec = P("i", "j") if len(names) == 2 else P("i")
        g = shard_map(f, out_specs=spec, axis_names=set(names))
        outs = [g(y), jit(g)(y)]
        grads = [h(lambda y: (g(y) ** 2).sum())(y) for h in (grad, lambda f: jit(grad(f)))]
        assert {str(pullback.typeof(v)) for v in (*outs, *grads)} == {"float32[8@i,4@j]"}
        assert str(pullback.make_jaxpr(g)(y).out_avals[0]) == "float32[8@i,4@j]"
    near(outs, [plain(x)] * 2)
    near(grads, [grad(lambda x: (plain(x) ** 2).sum())(x)] * 2)
    assert set(seen) == {"float32[2,2]{V:i,j}" if len(names) == 2 else "float32[2,4@j]{V:i}"}


def test_types_say_along_which_axes_values_vary():
    def f(x):
        assert pullback.typeof(x).mat.varying == {"i"}
        assert pullback.typeof(lax.psum(x, "i")).mat.varying == set()
        mesh = pullback.sharding.get_abstract_mesh()
        assert pullback.typeof(x).mat.invarying(mesh) == set(mesh.manual_axes) - {"i"}
        assert pullback.typeof(lax.psum(x, "i")).mat.invarying(mesh) == set(mesh.manual_axes)
        assert x.aval.sharding.mesh.axis_types == (pullback.sharding.AxisType.Manual, pullback.sharding.AxisType.Auto)
        return x

    shard_map(f, mesh=GRID, in_specs=P("i"), out_specs=P("i"), axis_names={"i"})(pnp.arange(8.0))


def test_a_batch_that_types_divide():
    with pullback.set_mesh(TYPED):
        x = pullback.device_put(pnp.arange(32.0).reshape(8, 4), P("i", "j"))
        f = vmap(shard_map(lambda y: y * lax.psum(y, "j"), in_specs=P("j"), out_specs=P("j")))
        expected = np.asarray(x) * np.tile(np.asarray(x).reshape(8, 2, 2).sum(1), 2)
        for y in (f(x), jit(f)(x)):
            near(y, expected)
            assert y.sharding.spec == P("i", "j")
        with pytest.raises(ValueError, match=r"which the specification P.'i',. names too"):
            vmap(shard_map(lambda y: y, in_specs=P("i"), out_specs=P("i")), in_axes=0)(x)


# Values that Python looks at ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [True, False])
def test_python_looks_at_what_all_devices_share(check):
    calls = []

    def halved(x):
        calls.append(x.shape)
        count, total = 0, lax.psum(x.sum(), ("i", "j"))
        while total > 1:
            x, count = x / 2, count + 1
            total = lax.psum(x.sum(), ("i", "j"))
        return x * count, 1.0 if float(total) < 1 else -1.0

    spec = P(("i", "j"))
    f = shard_map(halved, mesh=GRID, in_specs=spec, out_specs=(spec, P()), check_vma=check)
    x = pnp.arange(16.0)
    near(f(x), (x / 128 * 7, 1.0))
    assert calls == [(2,)]
    near(grad(lambda x: f(x)[0].sum())(x), np.full(16, 7 / 128))
    for refused in (lambda: jit(f)(x), lambda: mapped(lambda x: 1.0 if x.sum() > 0 else 2.0, P("i"), P())):
        with pytest.raises(TypeError, match="a condition in Python"):
            refused()


def test_what_prints_before_python_looks_prints_once(capfd):
    def f(x):
        pullback.debug.print("sum {}", lax.psum(x.sum(), "i"))
        return x if lax.psum(x.sum(), "i") > 3 else -x

    one = Mesh(np.array(pullback.devices()[:1]), ("i",))
    near(shard_map(f, mesh=one, in_specs=P("i"), out_specs=P("i"))(pnp.ones(4)), pnp.ones(4))
    pullback.effects_barrier()
    assert capfd.readouterr().out == "sum 4.0\n"


# Groups, and results that all devices share --------------------------------------------------------------------------


def test_groups_of_indices_along_two_axes():
    groups = [[0, 3], [1, 2], [4, 7], [5, 6]]
    partner = np.array([3, 2, 1, 0, 7, 6, 5, 4])
    options = {"axis_name": ("i", "j"), "axis_index_groups": groups}

    def f():
        k = lax.axis_index(("i", "j"))
        return (
            lax.psum(k, **options)[None],
            lax.pmax(k, **options)[None],
            lax.all_gather(k[None], tiled=True, **options)[None],
            lax.psum_scatter(pnp.arange(2) + k, **options)[None],
            lax.all_to_all(pnp.arange(2) + 10 * k, split_axis=0, concat_axis=0, **options)[None],
        )

    own = np.arange(8)
    low, high = np.minimum(own, partner), np.maximum(own, partner)
    second = own == high
    total, largest, both, scattered, exchanged = shard_map(f, mesh=GRID, in_specs=(), out_specs=P(("i", "j")))()
    near([total, largest, scattered], [own + partner, high, own + partner + 2 * second])
    near(both, np.stack([low, high], 1))
    near(exchanged, 10 * np.stack([low, high], 1) + second[:, None])
    with pytest.raises(NotImplementedError, match="need all of them mapped by shard_map"):
        vmap(shard_map(lambda y: lax.psum(y, ("k", "i"), axis_index_groups=[[*range(16)]]), mesh=EIGHT, in_specs=P("i"),
                       out_specs=P("i")), axis_name="k")(pnp.ones((2, 8)))  # fmt: skip


@pytest.mark.parametrize("tiled", [True, False])
@pytest.mark.parametrize("check", [True, False])
def test_gathered_arrays_that_all_devices_share(tiled, check):
    x = pnp.arange(32.0).reshape(8, 4)

    def each(y):
        return lax.all_gather(pnp.sin(y), ("i", "j"), tiled=tiled, to="invarying")

    f = shard_map(each, mesh=GRID, in_specs=P(("i", "j")), out_specs=P(), check_vma=check)
    w = pnp.cos(pnp.arange(32.0)).reshape(f(x).shape)
    loss = lambda x: (w * f(x) ** 2).sum()
    expected = lambda x: (w * pnp.sin(x).reshape(w.shape) ** 2).sum()
    near([loss(x), jit(loss)(x)], [expected(x)] * 2)
    near([grad(loss)(x), jit(grad(loss))(x)], [grad(expected)(x)] * 2)
    near(vmap(grad(loss))(pnp.stack([x, 2 * x])), vmap(grad(expected))(pnp.stack([x, 2 * x])))


# pmap ----------------------------------------------------------------------------------------------------------------


def test_axes_of_pmap():
    x = pnp.arange(24.0).reshape(3, 8)
    near(pmap(lambda y, s: y * s, in_axes=(1, None), out_axes=1)(x, 2.0), 2 * x)
    near(
        pmap(lambda t: t["a"] + t["b"], in_axes=({"a": 0, "b": None},))({"a": pnp.arange(4.0), "b": 1.0}),
        np.arange(4.0) + 1,
    )
    near(pmap(lambda y, *, z: y + z)(pnp.arange(2.0), z=pnp.arange(2.0)), 2 * np.arange(2.0))
    assert pmap(lambda: lax.axis_index("i"), axis_name="i", axis_size=4)().tolist() == [0, 1, 2, 3]
    assert pmap(lambda n, y: y**n, static_broadcasted_argnums=0)(2, pnp.arange(3.0)).tolist() == [0.0, 1.0, 4.0]
    near(
        pmap(pmap(lambda y: lax.psum(y, ("i", "j")), axis_name="j"), axis_name="i")(x[:2]),
        np.full((2, 8), np.asarray(x)[:2].sum()),
    )


def test_one_copy_of_what_the_devices_have_in_common():
    x = pnp.arange(12.0).reshape(4, 3)
    f = pmap(lambda x: (lax.pmean(x, "i"), {"a": 2 * x}), axis_name="i", out_axes=(None, 1))
    mean, rest = f(x)
    near(mean, x.mean(0))
    near(rest["a"], 2 * x.T)
    assert mean.sharding.is_fully_replicated
    near(pmap(lambda x: lax.psum(x, "i"), axis_name="i", out_axes=None)(x), x.sum(0))
    near(grad(lambda x: f(x)[0].sum() + f(x)[1]["a"].sum())(x), np.full((4, 3), 2.25))
    near(jit(f)(x)[0], x.mean(0))
    with pytest.raises(ValueError, match=r"out_axes must be an axis of each result, .* or None for one copy, got 5"):
        pmap(lambda x: x, out_axes=5)(x)


def test_a_pmapped_function_ahead_of_time():
    x = pnp.arange(12.0).reshape(4, 3)

    def scaled(x, n):
        """A product."""
        return {"a": lax.psum(x, "i") * n}

    scaled.kept = 5
    f = pmap(scaled, axis_name="i", static_broadcasted_argnums=1)
    assert (f.__name__, f.__doc__, f.kept, f.__wrapped__) == ("scaled", "A product.", 5, scaled)
    lowered = f.lower(pullback.ShapeDtypeStruct((4, 3), "float32"), 2)
    assert "all_reduce" in lowered.as_text()
    near(lowered.compile()(x)["a"], np.broadcast_to(2 * x.sum(0), (4, 3)))
    assert f.trace(x, 2).out_info["a"].shape == (4, 3)
    near(f(x, 2)["a"], lowered.compile()(x)["a"])
    f.clear_cache()
    near(f(x, 2)["a"], lowered.compile()(x)["a"])


def test_a_pmapped_method_and_arguments_on_other_devices():
    class Scale:
        @partial(pmap, static_broadcasted_argnums=0)
        def by(self, x):
            return 3 * x

    x = pnp.arange(8.0)
    near(Scale().by(x), 3 * x)
    reverse = pullback.devices()[::-1]
    for where in (pullback.devices()[3], pullback.NamedSharding(EIGHT, P("i")), pullback.NamedSharding(GRID, P("j"))):
        moved = pmap(lambda x: x + lax.axis_index("k"), axis_name="k", devices=reverse)(pullback.device_put(x, where))
        near(moved, x + np.arange(8))
        assert [s.device for s in moved.addressable_shards if s.index[0].start == 0] == [reverse[0]]
    with pytest.raises(ValueError, match="got no devices"):
        pmap(identity, devices=[])


def test_a_pmapped_function_is_compiled_once():
    count = []
    f = pmap(lambda x: count.append(1) or 2 * x)
    for _ in range(3):
        f(pnp.arange(4.0))
    assert len(count) == 1


@pytest.mark.parametrize("mesh", [EIGHT, TYPED], ids=["auto", "explicit"])
def test_references_of_shards(mesh):
    def add(total, x):
        total[...] += x
        return lax.psum(total[...].sum(), "i")

    f = shard_map(add, mesh=mesh, in_specs=(P("i"), P("i")), out_specs=P(), axis_names={"i"})
    x = pnp.arange(8.0)
    total = pullback.new_ref(pnp.ones(8))
    assert float(f(total, x)) == float(f(total, x)) - 28 == 36
    assert total[...].tolist() == (1 + 2 * np.arange(8)).tolist()

    @jit
    def within(x):
        ref = pullback.new_ref(x)
        f(ref, x)
        return ref[...]

    assert within(x).tolist() == (2 * np.arange(8)).tolist()
    assert grad(lambda x: (within(x) ** 2).sum())(x).tolist() == (8 * np.arange(8)).tolist()
    if mesh is TYPED:
        inferred = shard_map(lambda r: r.__setitem__(..., r[...] * 2), mesh=mesh, out_specs=None)
        typed = pullback.new_ref(pullback.device_put(x, pullback.NamedSharding(mesh, P("i"))))
        inferred(typed)
        assert typed[...].tolist() == (2 * np.arange(8)).tolist()
    with pytest.raises(ValueError, match=r"in_specs .* says that the content of a reference"):
        shard_map(lambda r, x: r.__setitem__(..., x), mesh=mesh, in_specs=(P(), P("i")), out_specs=P())(
            pullback.new_ref(pnp.ones(8 // mesh.shape["i"])), x
        )
    with pytest.raises(ValueError, match="passed twice"):
        shard_map(lambda a, b: None, mesh=mesh, in_specs=P(), out_specs=P())(total, total)


# What is refused -----------------------------------------------------------------------------------------------------


def mapped(f, in_specs, out_specs, x=8, **options):
    return shard_map(f, mesh=EIGHT, in_specs=in_specs, out_specs=out_specs, **options)(pnp.arange(float(x)))


def identity(x):
    return x


REFUSED = [
    (lambda: mapped(identity, P("i"), P()), ValueError, "varies along them"),
    (lambda: mapped(identity, P("i"), P("i"), 5), ValueError, "of size 5, is divided by 'i' of the mesh into 8 shards"),
    (lambda: mapped(identity, P("i", None), P("i")), ValueError, "has 1 axes, but its specification"),
    (lambda: mapped(identity, P("k"), P("i")), ValueError, "names 'k', but the axes of the mesh"),
    (lambda: mapped(identity, P("i"), P("k")), ValueError, "names 'k'"),
    (lambda: mapped(identity, P("i"), P("i", None)), ValueError, "has the shape"),
    (lambda: mapped(identity, (P("i"), P("i")), P("i")), ValueError, "in_specs has 2 entries"),
    (lambda: mapped(identity, "i", P("i")), ValueError, "PartitionSpec"),
    (lambda: mapped(identity, P("i"), P("i"), axis_names={"k"}), ValueError, "axis_names has 'k'"),
    (lambda: shard_map(identity, mesh=3, in_specs=P(), out_specs=P()), ValueError, "mesh must be a Mesh"),
    (lambda: shard_map(identity, in_specs=P(), out_specs=P())(1.0), ValueError, "pass a mesh"),
    (lambda: shard_map(identity, mesh=EIGHT, out_specs=P())(1.0), TypeError, "pass in_specs, .* {'i': Auto}"),
    (lambda: mapped(lambda x: lax.with_sharding_constraint(x, P("i")), P("i"), P("i")), ValueError, "a manual axis of"),
    (
        lambda: mapped(lambda x: shard_map(identity, mesh=GRID, in_specs=P(), out_specs=P())(x), P("i"), P("i")),
        ValueError,
        "leave mesh out to run over the current mesh",
    ),
    (
        lambda: shard_map(identity, mesh=EIGHT, in_specs=P(), out_specs=P())(object()),
        TypeError,
        "With None in in_specs",
    ),
    (
        lambda: vmap(lambda x: mapped(lambda y: y + x, P("i"), P("i")), spmd_axis_name="i")(pnp.ones(8)),
        ValueError,
        "which the specification P.'i',. names too",
    ),
    (
        lambda: mapped(identity, P("i"), P(unreduced={"i"})),
        ShardMapError,
        "contains axis names all of type `Explicit`",
    ),
    (lambda: lax.pcast(1.0, {"i"}, to="varying"), TypeError, "must be a name or a tuple of names"),
    (
        lambda: mapped(lambda x: lax.all_gather(x, "i", to="reduce"), P("i"), P("i")),
        NotImplementedError,
        "'varying', 'invarying' or 'reduced'",
    ),
    (lambda: mapped(lambda x: lax.psum(x, "k"), P("i"), P("i")), NameError, r"'i' \(size 8, by shard_map\)"),
    (lambda: pmap(identity)(pnp.ones(9)), ValueError, "needs as many devices, but there are 8"),
    (lambda: pmap(lambda x, y: x)(pnp.ones(2), pnp.ones(3)), ValueError, "must have one size"),
    (lambda: pmap(identity, in_axes=1)(pnp.ones(2)), ValueError, "axis 1"),
    (lambda: pmap(identity, in_axes=(0, 0))(pnp.ones(2)), ValueError, "2 entries"),
    (lambda: pmap(identity, devices=pullback.devices()[:3])(pnp.ones(2)), ValueError, "3 devices were passed"),
    (lambda: pmap(lambda x: lax.psum(x, "j"), axis_name="i")(pnp.ones(2)), NameError, "by pmap"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED, ids=itertools.count())
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_devices_in_turn_that_do_not_meet():
    def f(x):
        return lax.psum(x, "i") if float(x[0]) > 2 else x

    with disable_jit(), pytest.raises(ValueError, match="the same collectives in the same order"):
        mapped(f, P("i"), P("i"))
    with disable_jit(), pytest.raises(ZeroDivisionError):
        mapped(lambda x: 1 / int(x[0]) + x, P("i"), P("i"))


def test_the_older_spelling():
    from pullback.experimental.shard_map import shard_map as older

    x = pnp.arange(8.0)
    assert older(lambda y: lax.psum(y.sum(), "i"), EIGHT, P("i"), P())(x) == 28.0
    found = older(lambda y: y * lax.psum(y, "i"), GRID, P("i"), P("i"), auto=frozenset({"j"}))(x)
    near(found, np.arange(8.0) * np.tile([12.0, 16.0], 4))
    near(
        jit(
            grad(
                lambda z: shard_map(
                    lambda y: lax.psum((y * y).sum(), "i"), mesh=GRID, in_specs=P("i"), out_specs=P(), axis_names={"i"}
                )(z)
            )
        )(x),
        2 * x,
    )
    found = older(lambda y: y * lax.axis_index("i"), GRID, P("i"), P("i"), auto=frozenset({"j"}))(x)
    near(found, x * np.repeat(np.arange(4.0), 2))


def test_a_result_that_is_one_of_several_devices_has_its_share_of_the_cotangent():
    x = pnp.arange(8.0)
    total = shard_map(
        lambda y, w: lax.psum((w * y).sum(), "i"),
        mesh=EIGHT, in_specs=(P("i"), P()), out_specs=P(), check_vma=False,
    )  # fmt: skip
    by_x, by_w = grad(total, argnums=(0, 1))(x, 3.0)
    assert by_x.tolist() == [3.0] * 8
    assert by_w == 28.0


# One axis of a mesh, by positions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", [GRID, TYPED], ids=["auto", "explicit"])
def test_smap_is_shard_map_by_positions(grid):
    x = pnp.arange(48.0).reshape(8, 6)

    def f(a, b):
        return a.sum(1, keepdims=True) * b[:1, :1], {"total": lax.psum(b.sum(), "j")}, a * 2

    with pullback.set_mesh(grid):
        mapped = pullback.smap(f, in_axes=(0, -1), out_axes=(0, None, -1), axis_name="j")
        outs = (mapped(x, x), jit(mapped)(x, x))
        gradient = grad(lambda x: (mapped(x, x)[2] ** 2).sum())(x)
    halves = [np.split(np.asarray(x), 2, axis) for axis in (0, 1)]
    expected = (
        np.concatenate([a.sum(1, keepdims=True) * b[:1, :1] for a, b in zip(*halves, strict=True)]),
        {"total": x.sum()},
        np.concatenate([2 * a for a in halves[0]], -1),
    )
    for out in outs:
        near(out, expected)
    near(gradient, 8 * x)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"in_axes": 3, "out_axes": 0}, "in_axes names axis 3 of an array of 2 axes"),
        ({"in_axes": 0, "out_axes": -3}, "out_axes names axis -3 of an array of 2 axes"),
        ({"in_axes": 0, "out_axes": None}, "it varies along them"),
        ({"in_axes": (0, 0), "out_axes": 0}, "must be a prefix of the arguments"),
        ({"in_axes": "j", "out_axes": 0}, "must contain positions of axes or None, got 'j'"),
        ({"in_axes": 0, "out_axes": 0, "axis_name": "k"}, "axis_names has 'k'"),
    ],
)
def test_smap_refuses_axes_that_do_not_fit(axes, message):
    with pullback.set_mesh(GRID), pytest.raises(ShardMapError, match=message):
        pullback.smap(lambda a: a, **{"axis_name": "j", **axes})(pnp.ones((8, 6)))


def test_laplacians_of_mapped_functions():
    """What is beside a value there has its shape: so a Laplacian goes along each direction by itself."""
    g = shard_map(lambda y: pnp.sin(y) * lax.psum(y.sum(), "i"), mesh=FOUR, in_specs=P("i"), out_specs=P("i"))
    f = lambda x: (g(pnp.cos(x)) ** 2).sum()
    x = pnp.arange(8.0).reshape(4, 2) / 5
    expected = pnp.trace(hessian(lambda v: f(v.reshape(4, 2)))(x.ravel()))
    near([laplacian(f)(x), jit(laplacian(f))(x)], [expected, expected])


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("mesh", [EIGHT, GRID], ids=["8", "4x2"])
def test_what_backward_rules_log_on_shards_is_stacked(mesh, check_vma):
    f = custom_vjp(lambda x: x**2)
    f.defvjp_with_logs(lambda x: (x**2, x), lambda x, ct: ((2 * x * ct,), {"x": x, "sum": pnp.sum(ct)}))
    spec = P(mesh.axis_names)
    run = shard_map(lambda x: f(x) * 3.0, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=check_vma)
    x, ct = pnp.arange(16.0), pnp.arange(16.0) / 8
    for pull_back in (lambda x: vjp(run, x)[1].with_logs(ct), jit(lambda x: vjp(run, x)[1].with_logs(ct))):
        (found,), logs = pull_back(x)
        near(found, 6 * x * ct)
        near(logs["x"], x)
        near(logs["sum"], 3 * ct.reshape(8, 2).sum(1))


@pytest.mark.parametrize("spec", [P(None), P(None, None), P(), P("i", None), P(None, "j"), P(("i", "j"), None)])
def test_eager_results_have_the_specification_as_it_is_written(spec):
    x = pnp.arange(64.0).reshape(8, 8)
    y = shard_map(lambda part: 2 * part, mesh=GRID, in_specs=spec, out_specs=spec)(x)
    assert y.sharding.spec.partitions == spec.partitions
    np.testing.assert_array_equal(y, 2 * x)
    z = shard_map(lambda part: {"a": part}, mesh=GRID, in_specs=spec, out_specs={"a": P(None)})
    if names := [n for n in spec.partitions if n]:
        with pytest.raises(ShardMapError, match=str(names[0][0])):
            z(x)
    else:
        assert z(x)["a"].sharding.spec.partitions == (None,)
