"""Exported functions over several devices: run by ``test_over_devices``, in a process with eight devices."""

import os
import subprocess
import sys

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import P, export, grad, jit, lax, vmap
from pullback.core.errors import ExportError, IncompatibleDevicesError, ShardingError
from pullback.sharding import AbstractMesh, Mesh, NamedSharding

DEVICES = pullback.devices()
FOUR = Mesh(np.array(DEVICES[:4]), "a")
OTHERS = Mesh(np.array(DEVICES[4:]), "z")
SQUARE = Mesh(np.array(DEVICES[2:6]).reshape(2, 2), ("p", "q"))
LOGICAL = AbstractMesh((4,), "a")
ROWS = NamedSharding(LOGICAL, P("a"))
X = np.arange(8.0, dtype="float32")


def put(mesh, *spec, x=X):
    return pullback.device_put(x, NamedSharding(mesh, P(*spec)))


def f(x):
    return 2 * x + x.sum()


def exported(**options):
    return export.export(jit(f, in_shardings=ROWS, **options))(X)


def devices_of(x):
    return [shard.device for shard in x.addressable_shards]


@pytest.mark.parametrize("mesh", [LOGICAL, FOUR], ids=["logical", "devices"])
@pytest.mark.parametrize("way", ["in_shardings", "argument"])
def test_what_is_exported_for_four_devices(mesh, way):
    rows = NamedSharding(mesh, P("a"))
    if way == "in_shardings":
        out = export.export(jit(f, in_shardings=rows))(X)
    else:
        out = export.export(jit(f))(pullback.ShapeDtypeStruct((8,), "float32", sharding=rows))
        assert export.export(jit(f))(put(FOUR, "a")).in_shardings == out.in_shardings
    for found in (out, export.deserialize(out.serialize())):
        assert found.nr_devices == 4
        assert found.in_shardings == (ROWS,)
        assert found.out_shardings == (None,)
        assert str(found.in_shardings_hlo) == "({devices=[4]<=[4]},)"
        assert found.out_shardings_hlo == found.out_shardings_jax(FOUR) == (None,)
        assert found.in_shardings_jax(FOUR) == (NamedSharding(FOUR, P("a")),)
        assert found.in_shardings_jax(OTHERS) == (NamedSharding(OTHERS, P("z")),)
        assert found.in_shardings_jax(SQUARE) == (NamedSharding(SQUARE, P(("p", "q"))),)


@pytest.mark.parametrize(
    ("mesh", "spec", "back"),
    [(FOUR, ("a",), ("a",)), (FOUR, (), ("a",)), (OTHERS, ("z",), ("z",)), (SQUARE, ("q",), (("p", "q"),))],
)
def test_a_call_runs_where_its_arguments_are(mesh, spec, back):
    x = put(mesh, *spec)
    found = export.deserialize(exported(out_shardings=ROWS).serialize())
    for call in (found.call, jit(found.call)):
        out = call(x)
        np.testing.assert_array_equal(out, 2 * X + 28)
        assert out.sharding == NamedSharding(mesh, P(*back))


def test_a_context_has_devices_too():
    found = exported()
    rows = NamedSharding(OTHERS, P("z"))
    calls = [
        jit(found.call, in_shardings=rows),
        jit(lambda x: found.call(lax.with_sharding_constraint(x, rows))),
        jit(lambda x: lax.with_sharding_constraint(found.call(x), rows)),
    ]
    for call in calls:
        assert set(devices_of(call(X))) == set(OTHERS.devices.flat)
    for mesh in (FOUR, OTHERS):  # one after the other: neither is kept for the other
        with pullback.set_mesh(mesh):
            for call in (found.call, jit(found.call)):
                assert set(devices_of(call(X))) == set(mesh.devices.flat)


def test_another_number_of_devices_is_refused():
    found = exported()
    with pytest.raises(ValueError, match="f was exported for 4 devices and is called in a context with 1 devices"):
        found.call(X)
    eight = Mesh(np.array(DEVICES), "a")
    for call in (found.call, jit(found.call)):
        with pytest.raises(ExportError, match=r"for 4 devices and is called in a context with 8.*device_put, in_sh"):
            call(put(eight, "a"))
    with pullback.set_mesh(eight), pytest.raises(ExportError, match="in a context with 8 devices"):
        found.call(X)
    with pytest.raises(ExportError, match="does not match the mesh used for export: use a mesh of 4 devices"):
        found.in_shardings_jax(eight)
    assert found.in_shardings_jax(LOGICAL) == (NamedSharding(LOGICAL, P("a")),)
    with pytest.raises(ExportError, match="need a mesh, got None"):
        found.in_shardings_jax(None)
    flat = export.export(jit(f, in_shardings=NamedSharding(AbstractMesh((2, 2), ("p", "q")), P("p"))))(X)
    with pytest.raises(ExportError, match="no specification divides them in this way over Mesh"):
        flat.in_shardings_jax(FOUR)


def test_one_device_is_any_number():
    cases = [export.export(jit(f))(X)]
    one = NamedSharding(Mesh(DEVICES[:1], "a"), P("a"))
    cases.append(export.export(jit(f, in_shardings=one))(X))
    cases.append(export.export(jit(lambda x: f(lax.with_sharding_constraint(x, one))))(X))
    for found in cases:
        assert found.nr_devices == 1
        for x in (X, put(FOUR, "a"), put(SQUARE, "p")):
            np.testing.assert_array_equal(found.call(x), 2 * X + 28)
        assert found.call(put(FOUR, "a")).sharding.device_set == set(FOUR.devices.flat)
    mapped = pullback.shard_map(f, mesh=one.mesh, in_specs=P("a"), out_specs=P("a"))
    found = export.export(jit(mapped))(X)
    np.testing.assert_array_equal(found.call(X), 2 * X + 28)
    with pytest.raises(ExportError, match="for 1 devices and is called in a context with 4"):
        found.call(put(FOUR, "a"))


def test_collectives_and_constraints_within():
    def total(x):
        return x * lax.psum(x.sum(), "a") + lax.axis_index("a")

    mapped = jit(pullback.shard_map(total, mesh=FOUR, in_specs=P("a"), out_specs=P("a")))
    constrained = jit(lambda x: f(lax.with_sharding_constraint(2 * x, NamedSharding(FOUR, P("a")))))
    sums, doubled = (export.deserialize(export.export(g)(X).serialize(1)) for g in (mapped, constrained))
    assert sums.nr_devices == doubled.nr_devices == 4
    assert sums.in_shardings == (None,)
    expected = 28 * X + np.repeat(np.arange(4), 2)
    x = put(SQUARE, "p")
    np.testing.assert_array_equal(sums.call(x), expected)
    both = jit(lambda x: sums.call(x) + sums.call(x[::-1]) + doubled.call(x) + mapped(x.reshape(8)))
    with pytest.raises(IncompatibleDevicesError):  # the function itself runs on the first four
        both(x)
    both = jit(lambda x: sums.call(x) - sums.call(x + 1) + doubled.call(x) + jnp.sin(x))
    more = 36 * (X + 1) + np.repeat(np.arange(4), 2)
    np.testing.assert_allclose(both(x), expected - more + 4 * X + 56 + np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(grad(lambda x: sums.call(x).sum())(x), 56)


def test_derivatives_and_batches():
    found = export.deserialize(exported(out_shardings=ROWS).serialize(2))
    pull = found.vjp()
    assert (pull.nr_devices, pull.in_shardings, pull.out_shardings) == (4, (ROWS, ROWS), (ROWS,))
    x = put(SQUARE, "p")
    slope = grad(lambda x: found.call(x).sum())(x)
    np.testing.assert_array_equal(slope, 10)
    assert slope.sharding == NamedSharding(SQUARE, P(("p", "q")))
    np.testing.assert_array_equal(grad(lambda x: grad(lambda x: (found.call(x) ** 2).sum())(x).sum())(x), 200)
    rows = put(SQUARE, None, "p", x=np.stack([X, 2 * X]))
    np.testing.assert_array_equal(vmap(found.call)(rows), [f(X), f(2 * X)])
    spread = export.export(jit(lambda n, x: (n, x * n), in_shardings=(None, ROWS)))(3, X)  # an integer has no cotangent
    np.testing.assert_array_equal(grad(lambda x: spread.call(3, x)[1].sum())(x), 3)


def test_several_platforms_symbolic_sizes_and_nesting():
    x = put(OTHERS, "z")
    several = export.export(jit(f, in_shardings=ROWS), platforms=["cuda", "cpu"])(X)
    np.testing.assert_array_equal(several.call(x), f(X))
    devices = NamedSharding(FOUR, P("a"))
    assert export.export(jit(f, in_shardings=devices), platforms=["cuda"])(X).nr_devices == 4
    (size,) = export.symbolic_shape("4*b")
    symbolic = export.export(jit(f, in_shardings=ROWS))(pullback.ShapeDtypeStruct((size,), "float32"))
    np.testing.assert_array_equal(export.deserialize(symbolic.serialize()).call(x), f(X))
    outer = export.export(jit(lambda x: several.call(x) + 1, in_shardings=devices))(X)
    assert outer.nr_devices == 4
    np.testing.assert_array_equal(outer.call(x), f(X) + 1)


def test_results_are_spread_as_the_exported_mesh_says():
    wide = AbstractMesh((4, 2), ("a", "b"))
    quarters = NamedSharding(wide, P("a"))
    found = export.export(jit(jnp.sin, in_shardings=quarters, out_shardings=quarters))(X)
    flat = Mesh(np.array(DEVICES), "z")
    out = found.call(put(flat, "z"))
    assert out.sharding == NamedSharding(Mesh(np.array(DEVICES).reshape(4, 2), ("a", "b")), P("a"))
    open_ = NamedSharding(wide, P(P.UNCONSTRAINED, ("a", "b")))
    found = export.export(jit(jnp.sin, in_shardings=open_))(np.ones((3, 8), "float32"))
    assert export.deserialize(found.serialize()).in_shardings == (open_,)


def test_what_does_not_go_together():
    with pytest.raises(IncompatibleDevicesError, match="the arguments and results of f are on different devices"):
        export.export(jit(f, in_shardings=NamedSharding(FOUR, P("a")), out_shardings=NamedSharding(OTHERS, P("z"))))(X)
    two = NamedSharding(AbstractMesh((2,), "b"), P("b"))
    with pytest.raises(ShardingError, match=r"sharding over AbstractMesh\('b': 2.*and runs on 4 devices"):
        export.export(jit(lambda x: lax.with_sharding_constraint(x, two), in_shardings=ROWS))(X)
    with pytest.raises(ShardingError, match="has no devices, and runs on 1 devices"):
        jit(lambda x: lax.with_sharding_constraint(x, two))(X)
    numbered = NamedSharding(AbstractMesh((4,), (7,)), P(7))
    found = export.export(jit(f, in_shardings=numbered))(X)
    np.testing.assert_array_equal(found.call(put(FOUR, "a")), f(X))
    with pytest.raises(ExportError, match="must be strings, but one is 7"):
        found.serialize()


def test_constraints_over_a_mesh_without_devices():
    constrained = jit(lambda x: lax.with_sharding_constraint(2 * x, ROWS))
    assert constrained(put(SQUARE)).sharding == NamedSharding(SQUARE, P(("p", "q")))
    assert export.export(constrained)(X).nr_devices == 4
    asked = jit(f, in_shardings=ROWS, out_shardings=ROWS)
    with pytest.raises(ShardingError, match="has an AbstractMesh, which has no devices: pass a Mesh"):
        asked(X)
    with pullback.set_mesh(FOUR):
        assert asked(X).sharding == NamedSharding(FOUR, P("a"))


def test_constants_may_have_a_sharding_without_devices():
    out = export.export(jit(lambda x: x + lax.with_sharding_constraint(jnp.arange(8.0), ROWS), in_shardings=ROWS))(X)
    np.testing.assert_array_equal(out.call(put(FOUR)), 2 * X)


def test_loops_branches_keys_and_arguments_that_are_not_used():
    def steps(x):
        return lax.fori_loop(0, 3, lambda _, x: lax.with_sharding_constraint(jnp.sin(x), ROWS), x)

    found = export.export(jit(steps, in_shardings=ROWS))(X)
    x = put(SQUARE, "q")
    np.testing.assert_allclose(found.call(x), np.sin(np.sin(np.sin(X))), rtol=1e-6)
    branch = jit(lambda x: lax.cond(x[1] > 0, found.call, jnp.cos, x))
    np.testing.assert_allclose(branch(x), np.sin(np.sin(np.sin(X))), rtol=1e-6)
    key = pullback.random.key(0)
    normal = export.export(jit(lambda key: pullback.random.normal(key, (8,)), out_shardings=ROWS))(key)
    with pullback.set_mesh(FOUR):
        out = normal.call(key)
    assert out.sharding == NamedSharding(FOUR, P("a"))
    np.testing.assert_allclose(out, pullback.random.normal(key, (8,)), rtol=1e-5, atol=1e-6)
    unused = export.export(jit(lambda x, y: 2 * x, in_shardings=(None, ROWS)))(X, X)
    assert (unused.nr_devices, unused.module_kept_var_idx) == (4, (0,))
    np.testing.assert_array_equal(unused.call(x, X), 2 * X)
    with pytest.raises(ExportError, match="in a context with 1 devices"):
        unused.call(X, X)


def test_another_process_calls_it(tmp_path):
    (tmp_path / "f").write_bytes(exported(out_shardings=ROWS).serialize(vjp_order=1))
    program = f"""
import numpy as np
import pullback
from pullback import export, grad
found = export.deserialize(open({str(tmp_path / "f")!r}, "rb").read())
mesh = pullback.make_mesh((2, 2), ("p", "q"))
x = pullback.device_put(np.arange(8, dtype="float32"), found.in_shardings_jax(mesh)[0])
out, ct = found.call(x), grad(lambda x: found.call(x).sum())(x)
print(out.sharding.spec, np.asarray(out)[1], np.asarray(ct)[0])
"""
    known = {**os.environ, "PULLBACK_NUM_CPU_DEVICES": "4"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=known, capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout.split() == ["P(('p',", "'q'),)", "30.0", "10.0"]


def test_shardings_in_types_are_kept():
    mesh = pullback.make_mesh((2, 2), ("x", "y"))
    with pullback.set_mesh(mesh):
        x = pullback.device_put(np.arange(16.0).reshape(8, 2), P("x", "y"))
        f = jit(lambda x: (x, lax.dot(x, x.T, out_sharding=P("x", None)), jnp.ones(3)))
        product = jit(lambda x: jnp.einsum("ab,cb->ac", x, x, out_sharding=P(None, None, unreduced={"y"})))
        y = pullback.device_put(np.arange(16.0).reshape(8, 2), P(None, "y"))
        for function, argument in ((f, x), (product, y)):
            exported = export.export(function)(argument)
            again = export.deserialize(exported.serialize())
            assert again.in_avals == exported.in_avals
            assert again.out_avals == exported.out_avals
            assert list(map(str, again.out_avals)) == list(map(str, exported.out_avals))
            assert again.in_avals[0].sharding == exported.in_avals[0].sharding
            for a, b in zip(*(pullback.tree.leaves(call(argument)) for call in (again.call, function)), strict=True):
                assert a.sharding == b.sharding
        assert "8@x" in str(export.export(f)(x).in_avals[0])
