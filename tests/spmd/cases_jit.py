"""Compiled functions over several devices: run by ``test_over_devices``, in a process with eight devices."""

import itertools
import re
import threading
from unittest import mock

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import P, debug, grad, jit, lax, vmap
from pullback.backends.compiler import equal_parts
from pullback.experimental import mesh_utils
from pullback.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, SingleDeviceSharding, use_mesh

DEVICES = pullback.devices()
MESH = Mesh(np.array(DEVICES).reshape(4, 2), ("x", "y"))
ROWS, COLUMNS, WHOLE = (NamedSharding(MESH, spec) for spec in (P("x"), P(None, "y"), P()))
VALUE = np.arange(32.0, dtype=np.float32).reshape(8, 4) + 1


def rows():
    return pullback.device_put(VALUE, ROWS)


def test_an_argument_that_is_returned_goes_where_in_shardings_says():
    for x in (VALUE, jnp.array(VALUE), rows()):
        f = jit(lambda x: (x, x + 1, x), in_shardings=COLUMNS)
        for _ in range(2):
            assert [y.sharding for y in f(x)] == [COLUMNS] * 3
            np.testing.assert_array_equal(f(x)[0], VALUE)
        assert jit(lambda x: x, in_shardings=COLUMNS, out_shardings=WHOLE)(x).sharding == WHOLE
        assert jit(lambda x, y: (y, x), in_shardings=(COLUMNS, None))(x, 1.0)[1].sharding == COLUMNS
    assert jit(lambda x: x, in_shardings=SingleDeviceSharding(DEVICES[3]))(VALUE).device is DEVICES[3]
    x = rows()
    assert jit(lambda x: x, in_shardings=ROWS)(x).sharding == ROWS
    assert jit(lambda x: x)(x).sharding == ROWS


def test_inputs_decide():
    f = jit(lambda x: (x @ x.T, x.sum(), x + 1))
    product, total, more = f(rows())
    assert product.sharding.spec == P("x")
    assert total.sharding.is_fully_replicated
    assert more.sharding == ROWS
    np.testing.assert_allclose(product, VALUE @ VALUE.T)
    assert f._cache_size() == 1
    f(rows())
    assert f._cache_size() == 1
    assert f(pullback.device_put(VALUE, WHOLE))[2].sharding.is_fully_replicated
    assert f(VALUE)[2].sharding == SingleDeviceSharding(DEVICES[0])
    assert f(pullback.device_put(VALUE, DEVICES[2]))[2].device is DEVICES[2]
    assert f._cache_size() == 4


def test_free_arguments_are_put_on_the_mesh():
    f = jit(lambda x, y, n: x * y + n)
    out = f(rows(), jnp.ones(4), 2)
    assert out.sharding == ROWS
    np.testing.assert_array_equal(out, VALUE + 2)
    out = f(rows(), np.ones((8, 4)), 2)
    np.testing.assert_array_equal(out, VALUE + 2)


def test_in_and_out_shardings():
    f = jit(lambda x, y: (x + y, x * y), in_shardings=(ROWS, None), out_shardings=(COLUMNS, None))
    a, b = f(VALUE, VALUE)
    assert a.sharding == COLUMNS
    np.testing.assert_array_equal(a, 2 * VALUE)
    np.testing.assert_array_equal(b, VALUE**2)
    assert jit(lambda x: x, out_shardings=COLUMNS)(VALUE).sharding == COLUMNS
    assert jit(lambda x: x, out_shardings=COLUMNS)(rows()).sharding == COLUMNS
    tree = jit(lambda d: {"a": d["a"] + d["b"]}, in_shardings=({"a": ROWS, "b": COLUMNS},), out_shardings={"a": ROWS})
    for b in (VALUE, rows(), pullback.device_put(VALUE, DEVICES[1])):
        out = tree({"a": VALUE, "b": b})
        assert out["a"].sharding == ROWS
        np.testing.assert_array_equal(out["a"], 2 * VALUE)
    assert jit(lambda x: x + 1, in_shardings=ROWS)(VALUE).sharding == ROWS
    on = jit(lambda x: x + 1, out_shardings=SingleDeviceSharding(DEVICES[3]))
    assert on(VALUE).device is DEVICES[3]
    assert on(VALUE).device is DEVICES[3]
    with pullback.set_mesh(MESH):
        out = jit(lambda x: x + 1, in_shardings=P("x"), out_shardings=P("y"))(VALUE)
        assert out.sharding == NamedSharding(MESH, P("y"))
        assert pullback.device_put(VALUE, P("x")).sharding == ROWS
    with MESH:
        out = jit(lambda x: lax.with_sharding_constraint(x + 1, P("x")))(VALUE)
        assert out.sharding == ROWS
    with use_mesh(MESH):
        assert grad(jit(lambda x: (x**2).sum(), in_shardings=P("x")))(jnp.array(VALUE)).sharding == ROWS


def test_a_new_mesh_is_a_new_program():
    f = jit(lambda x: lax.with_sharding_constraint(x + 1, P("x")))
    other = Mesh(DEVICES[:2], "x")
    for mesh in (MESH, other, MESH):
        with use_mesh(mesh):
            assert f(VALUE).sharding == NamedSharding(mesh, P("x"))


def test_meshes_of_the_same_devices():
    flat = Mesh(DEVICES, "z")
    x = pullback.device_put(VALUE, NamedSharding(flat, P("z")))
    out = jit(lambda x, y: x + y)(rows(), x)
    np.testing.assert_array_equal(out, 2 * VALUE)
    assert (rows() + x).sharding.device_set == set(DEVICES)


def test_constraints():
    f = jit(lambda x: lax.with_sharding_constraint(jnp.sin(x), COLUMNS) * 2)
    out = f(VALUE)
    assert out.sharding.device_set == set(DEVICES)
    np.testing.assert_allclose(out, 2 * np.sin(VALUE), rtol=1e-6)
    text = f.lower(VALUE).as_text()
    assert 'sdy.mesh @mesh = <["x"=4, "y"=2]>' in text
    assert "sdy.sharding_constraint" in text
    g = jit(grad(lambda x: (lax.with_sharding_constraint(x, ROWS) ** 2).sum()))
    np.testing.assert_array_equal(g(VALUE), 2 * VALUE)
    assert g.lower(VALUE).as_text().count("sdy.sharding_constraint") == 2
    mapped = jit(vmap(lambda x: lax.with_sharding_constraint(x, NamedSharding(MESH, P("x")))))
    assert mapped(np.ones((3, 8))).sharding.spec == P(None, "x")
    named = jit(vmap(lambda x: lax.with_sharding_constraint(x, NamedSharding(MESH, P("x"))), spmd_axis_name="y"))
    assert named(np.ones((4, 8))).sharding.spec == P("y", "x")
    open_ = jit(lambda x: lax.with_sharding_constraint(x, NamedSharding(MESH, P(P.UNCONSTRAINED, "y"))))
    assert open_(rows()).sharding.spec == P("x", "y")
    jaxpr = pullback.make_jaxpr(lambda x: lax.with_sharding_constraint(x, ROWS))(VALUE)
    assert "sharding_constraint" in str(jaxpr)


def test_nested_and_loops():
    def step(w, x):
        w = lax.with_sharding_constraint(jnp.tanh(w @ x), NamedSharding(MESH, P("x", "y")))
        return w, w.sum()

    w, xs = np.eye(8, dtype=np.float32), np.ones((5, 8, 8), np.float32) / 8
    expected = lax.scan(lambda w, x: (jnp.tanh(w @ x), jnp.tanh(w @ x).sum()), jnp.array(w), jnp.array(xs))
    for f in (lambda w, xs: lax.scan(step, w, xs), jit(lambda w, xs: lax.scan(step, w, xs))):
        final, sums = f(w, xs)
        np.testing.assert_allclose(final, expected[0], rtol=1e-5)
        np.testing.assert_allclose(sums, expected[1], rtol=1e-5)
    g = jit(grad(lambda w: lax.scan(step, w, xs)[1].sum()))
    h = jit(grad(lambda w: lax.scan(lambda w, x: (jnp.tanh(w @ x), jnp.tanh(w @ x).sum()), w, xs)[1].sum()))
    np.testing.assert_allclose(g(w), h(w), rtol=1e-4)
    sharded = pullback.device_put(w, NamedSharding(MESH, P("x", "y")))
    np.testing.assert_allclose(g(sharded), h(w), rtol=1e-4)
    long = jit(lambda x: lax.fori_loop(0, 50, lambda i, c: c / jnp.sqrt((c**2).sum()), x))
    np.testing.assert_allclose(long(rows()), long(VALUE), rtol=1e-5)
    inner = jit(lambda x: x * 2, out_shardings=COLUMNS)
    assert jit(lambda x: inner(x))(rows()).sharding == COLUMNS
    loop = jit(lambda x: lax.while_loop(lambda c: c.sum() < 1e6, lambda c: c * 2, x))
    np.testing.assert_array_equal(loop(rows()), loop(VALUE))
    choice = jit(lambda x: lax.cond(x.sum() > 0, lambda v: v @ v.T, lambda v: v @ v.T * 2, x))
    np.testing.assert_allclose(choice(rows()), VALUE @ VALUE.T)


def test_captured_arrays():
    x, small = rows(), pullback.device_put(np.arange(8.0), NamedSharding(MESH, P("x")))
    out = jit(lambda y: x * y + small[:, None])(2.0)
    assert out.sharding.device_set == set(DEVICES)
    np.testing.assert_array_equal(out, VALUE * 2 + np.arange(8)[:, None])
    large = jnp.array(np.arange(800.0).reshape(8, 100))
    out = jit(lambda v: v[:, :1] * large)(rows())
    np.testing.assert_array_equal(out, VALUE[:, :1] * np.arange(800.0).reshape(8, 100))
    on = pullback.device_put(VALUE, DEVICES[2])
    assert jit(lambda y: on * y)(2.0).device is DEVICES[2]
    with pytest.raises(ValueError, match="different devices"):
        jit(lambda y: on * y)(rows())
    other = pullback.device_put(np.ones((8, 4)), NamedSharding(Mesh(DEVICES[:4], "z"), P("z")))
    with pytest.raises(ValueError, match="different devices"):
        jit(lambda y: jit(lambda v: v * other)(y))(rows())


def test_a_mesh_of_one_device():
    mesh = Mesh(DEVICES[:1], "x")
    place = NamedSharding(mesh, P("x"))
    x = pullback.device_put(VALUE, place)
    y = jit(lambda x: x + 1)(x)
    assert y.sharding.mesh == mesh
    np.testing.assert_array_equal(y, VALUE + 1)
    np.testing.assert_array_equal(x + pullback.device_put(1.0, DEVICES[0]), VALUE + 1)
    np.testing.assert_array_equal(jit(lambda x: lax.with_sharding_constraint(x, place) * 2)(VALUE), 2 * VALUE)


def test_ahead_of_time():
    f = jit(lambda x, y: x * 2)
    compiled = f.lower(pullback.ShapeDtypeStruct((8, 4), np.float32, sharding=ROWS), 1.0).compile()
    assert compiled.output_shardings == ROWS
    assert compiled.input_shardings[0][0] == ROWS
    np.testing.assert_array_equal(compiled(rows(), 1.0), 2 * VALUE)
    np.testing.assert_array_equal(compiled(VALUE, 1.0), 2 * VALUE)
    assert compiled(VALUE, 1.0).sharding == ROWS
    assert "8,4" in compiled.as_text() or "2,4" in compiled.as_text()
    assert isinstance(compiled.cost_analysis(), dict)


def test_donation_over_devices():
    f = jit(lambda x, y: (x + y, y), donate_argnums=0)
    for _ in range(3):
        x, y = rows(), rows()
        a, b = f(x, y)
        assert x.is_deleted()
        assert not y.is_deleted()
        np.testing.assert_array_equal(a, 2 * VALUE)
        np.testing.assert_array_equal(b, VALUE)
    add = jit(lambda x: x + 1, donate_argnums=0)
    for _ in range(3):
        x = rows()
        assert np.asarray(x)[0, 0] == VALUE[0, 0]  # which is kept on the host
        np.testing.assert_array_equal(add(x), VALUE + 1)
        assert x.is_deleted()
    moved = jit(lambda x: x + 1, donate_argnums=0, in_shardings=COLUMNS)
    x = rows()
    np.testing.assert_array_equal(moved(x), VALUE + 1)
    np.testing.assert_array_equal(moved(rows()), VALUE + 1)


def test_a_callback_that_fails_in_a_loop_with_collectives():
    """The other devices would wait for the one that failed, and the runtime would end the process."""
    seen = []

    def fails(i):
        seen.append(int(i))
        if i == 3:
            raise KeyError("mine")
        return i

    def step(i, x):
        return x / x.sum() * pullback.pure_callback(fails, pullback.ShapeDtypeStruct((), jnp.int32), i)

    f = jit(lambda x: lax.fori_loop(0, 9, step, x))
    for _ in range(2):
        seen.clear()
        with pytest.raises(KeyError, match="mine"):
            f(rows())
        assert seen == [0, 1, 2, 3]
    assert float(jit(jnp.sum)(rows())) == float(jnp.sum(np.asarray(rows())))


def test_host_functions():
    seen = []
    f = jit(lambda x: pullback.pure_callback(lambda v: (seen.append(v.shape), v * 2)[1], x, x))
    np.testing.assert_array_equal(f(rows()), 2 * VALUE)
    assert seen == [(8, 4)]
    printed = jit(lambda x: debug.callback(lambda v: seen.append(float(v)), x.sum()))
    printed(rows())
    pullback.effects_barrier()
    assert seen[-1] == VALUE.sum()


def test_training_step_agrees_with_one_device():
    key = pullback.random.key(0)
    keys = pullback.random.split(key, 4)
    params = {
        "w1": pullback.random.normal(keys[0], (8, 16)) * 0.3,
        "w2": pullback.random.normal(keys[1], (16, 4)) * 0.3,
    }
    x, y = pullback.random.normal(keys[2], (32, 8)), pullback.random.normal(keys[3], (32, 4))

    def loss(p, x, y):
        return ((jnp.tanh(x @ p["w1"]) @ p["w2"] - y) ** 2).mean()

    @jit
    def step(p, x, y):
        g = grad(loss)(p, x, y)
        return {k: p[k] - 0.1 * g[k] for k in p}

    alone = params
    for _ in range(5):
        alone = step(alone, x, y)
    for layout in ({"w1": P(), "w2": P()}, {"w1": P(None, "y"), "w2": P("y")}):
        together = {k: pullback.device_put(v, NamedSharding(MESH, layout[k])) for k, v in params.items()}
        data = [pullback.device_put(v, NamedSharding(MESH, P("x"))) for v in (x, y)]
        for _ in range(5):
            together = step(together, *data)
        for k in params:
            np.testing.assert_allclose(together[k], alone[k], atol=1e-6)
            assert together[k].sharding.device_set == set(DEVICES)


def test_threads_and_many_calls():
    mesh = Mesh(DEVICES[:2], "i")
    f = jit(lambda x: x * 0.5 + x.sum() / 16)
    x = pullback.device_put(np.ones(8), NamedSharding(mesh, P("i")))
    results = []

    def run():
        y = x
        for _ in range(500):
            y = f(y)
        results.append(np.asarray(y))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for r in results:
        np.testing.assert_allclose(r, np.ones(8))


def test_disk_cache(tmp_path):
    pullback.config.update("compilation_cache_dir", str(tmp_path))
    try:
        outs = []
        for _ in range(2):
            f = jit(lambda x: (x @ x.T, x.sum(0)))
            outs.append(f(rows()))
            pullback.clear_caches()
            del f
        for a, b in zip(*outs, strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.sharding == b.sharding
    finally:
        pullback.config.update("compilation_cache_dir", None)


def test_meshes():
    mesh = pullback.make_mesh((4, 2), ("a", "b"), (AxisType.Auto,) * 2)
    assert mesh == Mesh(np.array(DEVICES).reshape(4, 2), ("a", "b"))
    assert hash(mesh) == hash(Mesh(np.array(DEVICES).reshape(4, 2), ("a", "b")))
    assert mesh.shape == {"a": 4, "b": 2}
    assert mesh.size == 8
    assert mesh.device_ids.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert mesh.local_mesh is mesh
    assert mesh.abstract_mesh == AbstractMesh((4, 2), ("a", "b"))
    assert pullback.make_mesh((2,), ("a",)).explicit_axes == ("a",)
    assert repr(mesh) == "Mesh('a': 4, 'b': 2, axis_types=(Auto, Auto))"
    assert mesh_utils.create_device_mesh((4, 2)).shape == (4, 2)
    s = NamedSharding(mesh, P(("a", "b")))
    assert s.shard_shape((16,)) == (2,)
    assert s.devices_indices_map((16,))[DEVICES[3]] == (slice(6, 8),)
    assert NamedSharding(mesh, P(("b", "a"))).devices_indices_map((16,))[DEVICES[3]] == (slice(10, 12),)
    assert s.is_equivalent_to(NamedSharding(Mesh(DEVICES, "z"), P("z")), 1)
    assert not s.is_equivalent_to(NamedSharding(mesh, P("a")), 1)
    assert s.replicated_axes == frozenset()
    assert s.addressable_devices == set(DEVICES)


def shown(capsys, x, **options):
    debug.visualize_array_sharding(x, **options)
    return capsys.readouterr().out


def test_pictures(capsys):
    text = shown(capsys, rows())
    assert re.findall(r"CPU (\d(?:,\d)*)", text) == ["0,1", "2,3", "4,5", "6,7"]
    text = shown(capsys, pullback.device_put(VALUE, NamedSharding(MESH, P("x", "y"))))
    assert re.findall(r"CPU (\d)", text) == list("01234567")
    text = shown(capsys, pullback.device_put(np.ones(8), NamedSharding(Mesh(DEVICES, "z"), P("z"))))
    assert re.findall(r"CPU (\d)", text) == list("01234567")
    assert "CPU 0" in shown(capsys, jnp.ones(3))
    jit(lambda x: (debug.visualize_array_sharding(x), x)[1])(rows())  # when it is compiled
    text = capsys.readouterr().out
    assert re.findall(r"CPU (\d(?:,\d)*)", text) == ["0,1", "2,3", "4,5", "6,7"]
    with pytest.raises(ValueError, match="arrays with 1 or 2 axes can be drawn, got shape"):
        debug.visualize_array_sharding(jnp.ones((2, 2, 2)))


def test_inspection():
    seen = []
    debug.inspect_array_sharding(rows(), callback=seen.append)
    assert seen == [ROWS]

    @jit
    def f(x):
        y = jnp.sin(x)
        debug.inspect_array_sharding(y, callback=seen.append)
        return y * 2

    np.testing.assert_allclose(f(rows()), 2 * np.sin(VALUE), rtol=1e-6)
    assert seen[1].is_equivalent_to(ROWS, 2)
    f(VALUE)
    assert seen[2] == SingleDeviceSharding(DEVICES[0])


REFUSED = [
    (
        lambda: Mesh(DEVICES[:3], ("x", "y")),
        "Mesh: the devices are an array of shape .3,., with 1 axes, but axis_names",
    ),
    (lambda: Mesh(np.array(DEVICES).reshape(4, 2), ("x", "x")), "the name 'x' more than once"),
    (lambda: Mesh([DEVICES[0]] * 2, "x"), "the device CpuDevice.id=0. occurs more than once"),
    (lambda: Mesh([1, 2], "x"), "devices must be some of devices.., got 1"),
    (lambda: Mesh(DEVICES, "x", (AxisType.Auto,) * 2), "axis_types .* are 2, but the axes"),
    (lambda: Mesh(DEVICES, "x", "Auto"), "must be an AxisType for each axis"),
    (
        lambda: pullback.make_mesh((16,), ("x",)),
        r"make_mesh: a mesh of the shape \(16,\) needs 16 devices, but there are 8",
    ),
    (lambda: pullback.make_mesh((4, 2), ("x",)), "axis_sizes .* are 2, but axis_names"),
    (lambda: pullback.make_mesh((4.5,), ("x",)), "sequence of positive integers"),
    (lambda: AbstractMesh((4,), ("x", "y")), "each axis needs a size and a name"),
    (lambda: pullback.set_mesh(3), "set_mesh: expected a Mesh or None, got 3"),
    (lambda: NamedSharding(MESH, P("z")), "names the axis 'z', but the mesh has the axes 'x', 'y'"),
    (lambda: NamedSharding(MESH, P("x", "x")), "names the axis 'x' more than once"),
    (lambda: NamedSharding(MESH, "x"), "expected a PartitionSpec, got 'x'"),
    (lambda: NamedSharding(3, P()), "expected a Mesh, got 3"),
    (lambda: P({}), "must be the name of an axis of a mesh, a tuple of names or None"),
    (lambda: ROWS.shard_shape((7,)), "axis 0 of an array of shape .7,. has the size 7"),
    (lambda: NamedSharding(MESH, P("x", "y")).shard_shape((8,)), "needs an array of at least 2 axes"),
    (lambda: jit(lambda x: x, in_shardings="x"), "in_shardings: expected shardings such as"),
    (
        lambda: jit(lambda x: x, in_shardings=(ROWS, ROWS))(VALUE),
        "is not a prefix of the tree of the positional arguments",
    ),
    (lambda: jit(lambda x: x, out_shardings=(ROWS,))(VALUE), "is not a prefix of the tree of the results"),
    (lambda: jit(lambda x: x, in_shardings=ROWS)(np.ones(7)), r"in_shardings, argument 0 \(x\): axis 0 of an array"),
    (lambda: jit(lambda x: x, out_shardings=ROWS)(np.ones(7)), "out_shardings, result 0: axis 0 of an array"),
    (lambda: jit(lambda x: x, in_shardings=ROWS)(x=VALUE), "they apply to positional arguments, but got by keyword: x"),
    (lambda: jit(lambda x: x, in_shardings=P("x"))(VALUE), "no mesh is set"),
    (
        lambda: jit(lambda x, y: x + y)(
            rows(), pullback.device_put(VALUE, NamedSharding(Mesh(DEVICES[:4], "z"), P("z")))
        ),
        "different devices",
    ),
    (lambda: jit(lambda x, y: x + y)(rows(), pullback.device_put(VALUE, DEVICES[1])), "different devices"),
    (lambda: mesh_utils.create_device_mesh((3, 2)), "3 x 2 .* needs 6 devices, .* 8"),
    (lambda: pullback.config.update("num_cpu_devices", 4), "cannot be set to 4: the CPU is already in use as 8 device"),
    (lambda: pullback.config.update("num_cpu_devices", 0), "must be a positive integer"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refused(case):
    call, message = REFUSED[case]
    rows()
    with pytest.raises((ValueError, RuntimeError), match=message) as caught:
        call()
    assert isinstance(caught.value, pullback.errors.PullbackError)


def test_arguments_that_are_not_used():
    f = jit(lambda x: jnp.zeros(8))
    assert f(rows()).sharding == WHOLE
    g = jit(lambda x, y: (y, 2))
    y, two = g(rows(), rows())
    assert y.sharding == ROWS
    assert int(two) == 2


def test_axes_that_the_compiler_divides():
    mesh = Mesh(DEVICES, "x")
    x = pullback.device_put(np.arange(32.0), NamedSharding(mesh, P("x")))
    y = jit(lambda a: a.reshape(4, 8) + 1)(x)
    np.testing.assert_array_equal(y, np.arange(32.0).reshape(4, 8) + 1)
    assert y.sharding.mesh == mesh
    z = jit(lambda a: a[3:30])(x)
    np.testing.assert_array_equal(z, np.arange(3.0, 30.0))


def test_looking_for_nans():
    x = rows()
    with pullback.debug_nans(True):
        np.testing.assert_array_equal(jit(lambda a: a + 1)(x), VALUE + 1)
        for f in (jnp.log, jit(lambda a: jnp.log(a))):
            with pytest.raises(
                FloatingPointError, match=r"log returned NaN in its result of type f32\[8,4\], in 32 of"
            ):
                f(x - 40)


def test_switches():
    with pullback.disable_jit():
        assert jit(lambda a: a + 1)(rows()).sharding == ROWS
        np.testing.assert_array_equal(lax.scan(lambda c, r: (c + r, c), jnp.zeros(4), rows())[0], VALUE.sum(0))
    with pullback.default_device(DEVICES[3]):
        assert jit(lambda a: a + 1)(rows()).sharding == ROWS
    with pullback.enable_checks():
        assert jit(grad(lambda a: (lax.with_sharding_constraint(a, COLUMNS) ** 2).sum()))(rows()).shape == (8, 4)


def test_equal_parts_of_programs_over_devices_stay_in_them():
    def steps(x):
        for _ in range(6):
            x = jnp.sin(x) * jnp.cos(x + 1)
        return x

    with mock.patch.multiple(equal_parts, FEWEST=10, WORTH=-1, SMALLEST=2, is_better_outlined=lambda *args: True):
        assert "call @part" in jit(steps).lower(VALUE).as_text()
        lowered = jit(steps, in_shardings=ROWS).lower(VALUE)
        assert "call @part" not in lowered.as_text()
        out = lowered.compile()(VALUE)
        np.testing.assert_allclose(out, steps(VALUE), rtol=1e-5)
        assert len(out.sharding.device_set) > 1


EIGHT = NamedSharding(Mesh(np.array(DEVICES), ("i",)), P("i"))
PADDINGS = [(0, 0, 1), (1, 0, 1), (0, 1, 2), (2, -1, 1), (-1, 0, 1), (3, -2, 2)]


@pytest.mark.parametrize("config", PADDINGS)
def test_what_is_padded_between_elements(config):
    """Where the elements or the result are not divided evenly it was wrong, or the compiler ended the process."""
    padded = lambda x: lax.pad(x, 0.0, [config])
    both = lambda x: (padded(x), EVERYWHERE(jnp.resize(x, 8)), EVERYWHERE(jnp.concatenate([x] * 8)))
    for n in (2, 3, 4, 5, 8, 12, 16):
        x = np.arange(1.0, n + 1, dtype=np.float32)
        expected = np.asarray(padded(jnp.asarray(x)))
        np.testing.assert_array_equal(jit(both)(x)[0], expected)
        if n % 8 == 0:
            np.testing.assert_array_equal(jit(padded)(pullback.device_put(x, EIGHT)), expected)
        if expected.size % 8 == 0:
            np.testing.assert_array_equal(jit(padded, out_shardings=EIGHT)(x), expected)


def test_what_is_padded_between_elements_within_a_function_that_is_mapped_over_another_axis():
    """``shard_map`` over one axis of a mesh leaves the other to the compiler: it ended the process."""
    mesh = Mesh(np.array(DEVICES).reshape(2, 4), ("a", "b"))
    over_b = NamedSharding(mesh, P(None, "b"))
    for n, config in itertools.product((4, 8), ((0, 0, 1), (1, 0, 1), (0, 1, 2), (-1, 0, 1), (1, 2, 3))):
        padded = lambda x, config=config: lax.pad(x, 0.0, ((0, 0, 0), config))
        within = lambda x, padded=padded: 2 * padded(lax.with_sharding_constraint(jnp.sin(x), over_b))
        x = np.arange(2.0 * n, dtype=np.float32).reshape(2, n)
        f = pullback.shard_map(within, mesh=mesh, in_specs=P("a", None), out_specs=P("a", None), axis_names={"a"})
        np.testing.assert_allclose(jit(f)(x), 2 * padded(jnp.sin(x)), rtol=1e-6)


EVERYWHERE = pullback.shard_map(lambda x: 2 * x, mesh=EIGHT.mesh, in_specs=P("i"), out_specs=P("i"))


@pytest.mark.parametrize("cut", [np.s_[::2], np.s_[1::2], np.s_[1::3], np.s_[2:-1:2]])
def test_gradients_of_strided_slices(cut):
    for n in (8, 16, 24):
        x = pullback.device_put(np.arange(n, dtype=np.float32), EIGHT)
        gradient = grad(lambda x: jnp.sin(x[cut]).sum())
        expected = np.zeros(n, np.float32)
        expected[cut] = np.cos(np.arange(n)[cut])
        for options in ({}, {"out_shardings": EIGHT}):
            np.testing.assert_allclose(jit(gradient, **options)(x), expected, rtol=1e-6)


# Shardings that the compiler has no words for -------------------------------------------------------------------------


def test_the_compiler_pads_what_it_cannot_divide():
    rows = NamedSharding(MESH, P("x"))

    def f(x):
        part = lax.with_sharding_constraint(2 * x[:3], rows)
        return part, part.sum() + x

    x = jnp.arange(8.0)
    part, total = jit(f)(x)
    np.testing.assert_allclose(part, [0.0, 2.0, 4.0])
    np.testing.assert_allclose(total, x + 6)
    np.testing.assert_allclose(jit(grad(lambda x: f(x)[1].sum()))(x), np.where(np.arange(8) < 3, 17.0, 1.0))
    with pytest.raises(ValueError, match="cannot be divided into"):
        f(x)


def test_axes_of_size_one_stay_in_specifications():
    mesh = pullback.make_mesh((1, 8, 1), ("x", "y", "z"), AxisType.Auto)
    x = pullback.device_put(jnp.arange(32).reshape(1, -1, 1), NamedSharding(mesh, P("x", "y", "z")))
    for y in (x + 1, jit(lambda x: 2 * x)(x), jit(lambda x: (x, jnp.sin(x)))(x)[1]):
        assert y.sharding.spec == P("x", "y", "z")
    assert jit(lambda x: x.sum(1))(x).sharding.spec == P()


def test_types_of_compiled_results_have_shardings():
    x = pullback.device_put(jnp.arange(8), NamedSharding(MESH, P("x")))
    info = jit(lambda x: {"a": x * 2}).lower(x).compile().out_info["a"]
    assert (info.shape, info.dtype, info.sharding) == ((8,), np.int32, x.sharding)


def test_a_mesh_is_a_decorator():
    @MESH
    def f(n, *, by):
        """Multiply."""
        return pullback.sharding.get_mesh() == MESH, n * by

    assert f(2, by=3) == (True, 6)
    assert f.__doc__ == "Multiply."
    assert pullback.sharding.get_mesh().empty


def test_arrays_that_are_sharded_alike():
    from pullback.compat.extras.experimental.shard_alike import shard_alike

    x = pullback.device_put(NUMBERS_ALIKE, NamedSharding(Mesh(DEVICES, "x"), P("x")))
    pair = lambda x: shard_alike(x, jnp.zeros(8) + 1)
    assert jit(lambda x: pair(x)[1])(x).sharding.spec == P("x")
    assert jit(lambda x: jnp.zeros(8) + 1)(x).sharding.spec == P()
    assert grad(jit(lambda x: shard_alike(x, jnp.sin(x))[1].sum()))(x).sharding.spec == P("x")
    assert jit(vmap(lambda x: shard_alike(2 * x, x)[0]))(x).tolist() == (2 * NUMBERS_ALIKE).tolist()
    plain = jnp.asarray(NUMBERS_ALIKE)
    for pair in ((x, plain), (plain, x), (x, pullback.device_put(plain, DEVICES[1]))):
        for out in shard_alike(*pair):
            assert out.sharding == x.sharding
            assert out.tolist() == NUMBERS_ALIKE.tolist()
    assert [type(out) for out in shard_alike(plain, plain)] == [type(plain)] * 2
    with pytest.raises(ValueError, match="equal shapes"):
        jit(lambda x: shard_alike(x, x[:2]))(x)


NUMBERS_ALIKE = np.arange(8.0, dtype=np.float32)


LINALG = {
    "cholesky": [(6, 6)], "eigh": [(6, 6)], "eig": [(6, 6)], "lu": [(7, 5)], "qr": [(6, 5)], "svd": [(7, 5)],
    "triangular_solve": [(6, 6), (4, 6)], "tridiagonal": [(6, 6)], "hessenberg": [(6, 6)], "schur": [(6, 6)],
    "tridiagonal_solve": [(6,), (6,), (6,), (6, 4)],
}  # fmt: skip


@pytest.mark.parametrize("name", LINALG)
def test_decompositions_of_batches_stay_on_their_devices(name):
    rng = np.random.default_rng(0)
    operands = [rng.normal(size=(8, *shape)).astype(np.float32) for shape in LINALG[name]]
    operands = [x + x.swapaxes(-1, -2) + 9 * np.eye(6, dtype="f") if x.shape == (8, 6, 6) else x for x in operands]
    f = vmap(getattr(lax.linalg, name)) if len(operands) == 1 else getattr(lax.linalg, name)
    sharded = pullback.device_put(operands, ROWS)
    compiled = jit(f).lower(*sharded).compile()
    assert "all-" not in compiled.as_text()
    outs, whole = compiled(*sharded), jit(f)(*operands)
    for ours, expected in zip(pullback.tree.leaves(outs), pullback.tree.leaves(whole), strict=True):
        assert ours.sharding.spec == P("x")
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5)


def test_a_decomposition_over_the_rows_of_its_matrices():
    x = np.arange(64, dtype=np.float32).reshape(1, 8, 8) % 5 + 9 * np.eye(8, dtype=np.float32)
    sharded = pullback.device_put(x, NamedSharding(MESH, P(None, "x")))
    np.testing.assert_allclose(jit(jnp.linalg.slogdet)(sharded)[1], jnp.linalg.slogdet(x)[1], rtol=1e-6)
