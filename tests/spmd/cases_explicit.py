"""Shardings in types, over eight devices: values and shardings of eager and compiled functions and of gradients."""

from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import NamedSharding, P, grad, jit, lax, vmap
from pullback.errors import ShardingTypeError
from pullback.sharding import AxisType, auto_axes, explicit_axes, reshard

MESH = pullback.make_mesh((4, 2), ("x", "y"))
NUMBERS = np.arange(32.0).reshape(8, 4)


def put(value: Any, *entries: Any) -> Any:
    return pullback.device_put(value, NamedSharding(MESH, P(*entries)))


FUNCTIONS = {
    "elementwise": (lambda x: jnp.sin(x) * x, P("x", "y")),
    "sum": (lambda x: x.sum(0), P("y")),
    "product": (lambda x: x @ x.T, None),
    "softmax": (lambda x: pullback.nn.softmax(x), P("x", "y")),
    "reshape": (lambda x: x.reshape(4, 2, 4), P("x", None, "y")),
    "one element": (lambda x: x[0, 1], P()),
    "the last element": (lambda x: x[-1:, -1:], P(None, None)),
    "reshard": (lambda x: reshard(jnp.sin(x), NamedSharding(MESH, P(None, "x"))), P(None, "x")),
    "auto": (auto_axes(lambda x: jnp.sort(x, 0), out_sharding=NamedSharding(MESH, P("x"))), P("x", None)),
    "vmap": (vmap(lambda row: row - row.mean()), P("x", "y")),
    "scan": (lambda x: lax.scan(lambda c, _: (jnp.sin(c), c), x, None, 3)[1], P(None, "x", "y")),
    "checkpoint": (pullback.checkpoint(lambda x: jnp.sin(jnp.exp(-x))), P("x", "y")),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_sharded_arrays(name: str) -> None:
    f, spec = FUNCTIONS[name]
    x, plain = put(NUMBERS, "x", "y"), jnp.asarray(NUMBERS)
    if name == "product":
        with pytest.raises(pullback.errors.ShardingTypeError, match="Contracting"):
            f(x)
        return
    expected = f(plain) if name not in ("reshard", "auto") else {"reshard": jnp.sin, "auto": np.sort}[name](plain)
    expected = np.sort(NUMBERS, 0) if name == "auto" else expected
    for g in (f, jit(f)):
        out = g(x)
        assert out.sharding == NamedSharding(MESH, spec)
        assert pullback.typeof(out).sharding.spec == spec
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)
    total = lambda x: (f(x) ** 2).sum()
    for g in (grad(total), jit(grad(total)), grad(jit(total))):
        assert g(x).sharding == x.sharding


def test_gradients_of_products() -> None:
    x, w = put(NUMBERS, "x", None), put(NUMBERS.T.copy(), None, "y")
    f = lambda x, w: jnp.sin(x @ w).sum()
    expected = grad(f, (0, 1))(jnp.asarray(NUMBERS), jnp.asarray(NUMBERS.T))
    for g in (grad(f, (0, 1)), jit(grad(f, (0, 1)))):
        for ct, primal, want in zip(g(x, w), (x, w), expected, strict=True):
            assert ct.sharding == primal.sharding
            np.testing.assert_allclose(ct, want, rtol=1e-4, atol=1e-3)


def test_a_program_says_the_shardings() -> None:
    x = put(NUMBERS, "x", "y")
    text = jit(lambda x: x * 2 + 1).lower(x).as_text()
    assert text.count("sdy.sharding_constraint") == 2
    assert text.count("sdy.mesh") == 1
    arguments = jit(lambda x: x * 2, in_shardings=NamedSharding(MESH, P("y"))).lower(NUMBERS)
    assert arguments.out_info.sharding.spec == P("y", None)


def test_axes_of_two_types() -> None:
    mesh = MESH.update_axis_types({"y": AxisType.Auto})
    x = pullback.device_put(NUMBERS, NamedSharding(mesh, P("x", "y")))
    assert str(pullback.typeof(x)) == "float32[8@x,4]"
    for f in (lambda x: x * 2, jit(lambda x: x * 2)):
        assert f(x).sharding.spec[0] == "x"
        assert np.array_equal(f(x), NUMBERS * 2)


def test_explicit_axes_within_automatic_ones() -> None:
    auto = MESH.update_axis_types(dict.fromkeys("xy", AxisType.Auto))
    seen = []

    def f(x: Any) -> Any:
        seen.append(str(pullback.typeof(x)))
        return x * 2

    with pullback.set_mesh(auto):
        out = jit(explicit_axes(f, in_sharding=P("x")))(NUMBERS)
    assert seen == ["float32[8@x,4]"]
    assert np.array_equal(out, NUMBERS * 2)


def test_shards_along_some_of_the_axes() -> None:
    x = put(NUMBERS, "x", "y")
    seen = []

    def doubled(s: Any) -> Any:
        seen.append(str(pullback.typeof(s)))
        return jnp.sin(s) * lax.psum(2, "x")

    f = pullback.shard_map(doubled, mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    for g in (f, jit(f)):
        out = g(x)
        assert str(pullback.typeof(out)) == "float32[8@x,4@y]"
        np.testing.assert_allclose(out, 8 * np.sin(NUMBERS), rtol=1e-5, atol=1e-5)
    assert set(seen) == {"float32[2,4@y]{V:x}"}
    total = jit(
        pullback.shard_map(lambda s: lax.psum(s, "x"), mesh=MESH, in_specs=P("x"), out_specs=P(), axis_names={"x"})
    )
    assert str(pullback.typeof(total(x))) == "float32[2,4@y]"
    assert grad(lambda x: f(x).sum())(x).sharding == x.sharding


def test_functions_are_lowered_for_types() -> None:
    f = jit(lambda x: 2 * x)
    assert f.lower(pullback.typeof(jnp.ones((8, 2)))).out_info.shape == (8, 2)
    with pullback.set_mesh(MESH):
        x = pullback.device_put(jnp.ones((8, 2)), P("x"))
        compiled = f.lower(pullback.typeof(x)).compile()
        assert compiled(x).sharding.spec == P("x", None)


def test_python_sees_whole_arrays_of_explicit_axes() -> None:
    x, seen = put(NUMBERS, "x"), []
    like = pullback.ShapeDtypeStruct(x.shape, x.dtype)
    calls = [
        lambda x: pullback.pure_callback(np.sin, like, x),
        lambda x: pullback.experimental.io_callback(np.sin, like, x),
        lambda x: (pullback.debug.callback(lambda v: seen.append(v.shape), x), jnp.sin(x))[1],
        lambda x: pullback.ad_checkpoint.checkpoint_name(jnp.sin(x), "sines"),
        lambda x: (pullback.debug.inspect_array_sharding(x, callback=seen.append), jnp.sin(x))[1],
    ]
    for call in calls:
        np.testing.assert_allclose(jit(call)(x), np.sin(NUMBERS), rtol=1e-6)
    pullback.effects_barrier()
    assert (8, 4) in seen
    assert len(seen) == 2


def test_cotangents_of_what_is_not_sharded() -> None:
    f = pullback.shard_map(lambda a, b: a.sum() + 2 * b, in_specs=(P("x"), P(None, "y")), out_specs=P("x", "y"))
    with pullback.set_mesh(MESH):
        gradient = grad(lambda x: f(x, x).sum())(jnp.asarray(NUMBERS))
    assert gradient.sharding.spec == P(None, None)
    assert np.array_equal(gradient, np.full((8, 4), 4 * 2 + 8 * 2 * 2))


def test_a_sharded_batch_stays_sharded_where_examples_are_resharded() -> None:
    x = put(NUMBERS, "x", "y")
    whole = NamedSharding(MESH, P(None))
    for f in (lambda row: reshard(row, whole), lambda row: jnp.sort(jnp.dot(row, jnp.eye(4), out_sharding=whole))):
        for g in (vmap(f), jit(vmap(f)), vmap(jit(f))):
            out = g(x)
            assert out.sharding.spec == P("x", None)
            np.testing.assert_allclose(out, NUMBERS)


def test_sums_of_segments_say_how_they_are_sharded() -> None:
    x, ids = put(NUMBERS, "x"), jnp.arange(8) // 2
    total = lambda x: pullback.ops.segment_sum(x, ids, 4, out_sharding=NamedSharding(MESH, P("x")))
    for f in (total, jit(total)):
        assert f(x).sharding.spec == P("x", None)
        np.testing.assert_allclose(f(x), NUMBERS.reshape(4, 2, 4).sum(1))


def test_the_compiler_decides_within_a_mesh_of_automatic_axes() -> None:
    auto = MESH.abstract_mesh.update_axis_types(dict.fromkeys("xy", AxisType.Auto))

    def f(x: Any) -> Any:
        with pullback.sharding.use_abstract_mesh(auto):
            y = reshard(2 * x, P(None, None))
            y = y @ y.T
        return reshard(y, P("x", None))

    with pullback.set_mesh(MESH):
        out = jit(f)(put(NUMBERS, "x", "y"))
    assert out.sharding.spec == P("x", None)
    np.testing.assert_allclose(out, 4 * NUMBERS @ NUMBERS.T)


def test_new_arrays_like_sharded_ones() -> None:
    for mesh in (MESH, MESH.update_axis_types(dict.fromkeys("xy", AxisType.Auto))):
        x = pullback.device_put(NUMBERS, NamedSharding(mesh, P("x", "y")))
        for out, value in ((jnp.zeros_like(x), 0), (jnp.full_like(x, 3), 3)):
            assert out.sharding == x.sharding
            assert np.array_equal(out, np.full((8, 4), value))


def test_data_of_a_process_by_a_specification() -> None:
    with pullback.set_mesh(MESH):
        assert pullback.make_array_from_process_local_data(P("x"), NUMBERS).sharding == NamedSharding(MESH, P("x"))
        data = {"a": NUMBERS, "b": [NUMBERS[:4]]}
        arrays = pullback.make_array_from_process_local_data(P("x"), data, {"a": (8, 4), "b": [(4, 4)]})
        assert arrays["b"][0].sharding.spec == P("x")
        assert np.array_equal(arrays["a"], NUMBERS)
        with pytest.raises(ValueError, match="global_shape has the structure"):
            pullback.make_array_from_process_local_data(P("x"), data, {"a": (8, 4)})
    here = pullback.devices()[3]
    assert pullback.make_array_from_process_local_data(here, NUMBERS).devices() == {here}
    with pytest.raises(ValueError, match="must have one dtype"):
        pullback.make_array_from_single_device_arrays((2,), jnp.ones(2).sharding, [jnp.ones(2)], dtype="int32")


def test_a_constraint_is_what_a_type_says_and_arrays_without_a_sharding_are_not_divided() -> None:
    whole, rows = NamedSharding(MESH, P()), NamedSharding(MESH, P("x"))
    for run in (lambda f: f, jit):
        for x in (np.ones((8, 4)), jnp.ones((8, 4)), put(np.ones((8, 4)))):
            out = run(lambda v: lax.with_sharding_constraint(v, whole))(x)
            assert pullback.typeof(out).sharding == NamedSharding(MESH.abstract_mesh, P(None, None))
            with pytest.raises(ShardingTypeError, match="acts as an assert"):
                run(lambda v: lax.with_sharding_constraint(v, rows))(x)
        kept = run(lambda v: lax.with_sharding_constraint(v, rows))(put(np.ones((8, 4)), "x"))
        assert kept.sharding.is_equivalent_to(rows, 2)
        with pytest.raises(ShardingTypeError, match="acts as an assert"):
            run(lambda v: lax.with_sharding_constraint(v, whole))(put(np.ones((8, 4)), "x"))
        with pytest.raises(ShardingTypeError, match="acts as an assert"):
            run(lambda v: lax.with_sharding_constraint(v, NamedSharding(MESH, P(reduced={"x"}))))(jnp.ones(8))


def test_results_of_shard_map_have_types_without_a_current_mesh() -> None:
    """Eager code refused less than compiled code, for its arrays had no sharding in their type."""
    doubled = pullback.shard_map(lambda x: 2 * x, mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    for run in (lambda f: f, jit):
        out = run(doubled)(NUMBERS)
        assert out.sharding.is_equivalent_to(NamedSharding(MESH, P("x")), 2)
        assert out.sharding.mesh.axis_types == MESH.axis_types
        assert str(pullback.typeof(out)) == "float32[8@x,4]"
        with pytest.raises(ShardingTypeError, match="slice on sharded dims"):
            run(lambda x: lax.slice_in_dim(doubled(x), 0, 2))(NUMBERS)


@pytest.mark.parametrize("run", [lambda f: f, jit])
def test_batches_that_are_put_on_a_mesh_have_its_sharding_in_their_types(run: Any) -> None:
    """Eager results under vmap had a mesh of other axis types than compiled ones."""
    columns = NamedSharding(MESH, P("y"))
    for x, expected in ((jnp.asarray(NUMBERS), "8,4@y"), (put(NUMBERS, "x"), "8@x,4@y")):
        out = run(vmap(lambda row: pullback.device_put(row, columns)))(x)
        assert str(pullback.typeof(out)) == f"float32[{expected}]"
        assert out.tolist() == NUMBERS.tolist()


@pytest.mark.parametrize("transform", [lambda f: f, lambda f: grad(lambda x: (f(f(x)) ** 2).sum()), vmap])
def test_devices_in_turn_take_and_return_sharded_arrays(transform: Any) -> None:
    """They refused arrays whose types have a sharding, and returned arrays on one device."""
    mesh = pullback.make_mesh((4,), ("x",))
    f = transform(pullback.shard_map(lambda x: jnp.sin(x) * x, mesh=mesh, in_specs=P("x"), out_specs=P("x")))
    for spec in (None, P(), P("x") if transform is not vmap else P(None, "x")):
        x = jnp.asarray(NUMBERS) if spec is None else pullback.device_put(NUMBERS, NamedSharding(mesh, spec))
        expected = f(x)
        with pullback.disable_jit():
            out = f(x)
        assert str(pullback.typeof(out)) == str(pullback.typeof(expected))
        np.testing.assert_allclose(out, expected, rtol=1e-5)


@pytest.mark.parametrize("run", [lambda f: f, jit])
def test_zeros_that_are_derivatives_have_the_shardings_of_their_types(run: Any) -> None:
    """They had none in eager code."""
    x, f = put(NUMBERS, "x"), lambda number: (put(NUMBERS, "x", "y"), number * put(NUMBERS))
    expected = ["float32[8@x,4@y]", "float32[8,4]"]
    for tangents in (run(lambda n: pullback.jvp(f, (n,), (n,))[1])(2.0), run(pullback.linearize(f, 2.0)[1])(1.0)):
        assert list(map(str, map(pullback.typeof, tangents))) == expected
        assert not np.asarray(tangents[0]).any()
    gradient = run(grad(lambda x: 1.0))(x)
    assert str(pullback.typeof(gradient)) == "float32[8@x,4]"
    assert not np.asarray(gradient).any()


def test_shardings_over_a_mesh_without_devices_in_eager_code() -> None:
    """An array that is sharded has the devices; zeros like a description over such a mesh stay where they are."""
    mesh = MESH.update_axis_types(dict.fromkeys("xy", AxisType.Auto))
    logical = NamedSharding(mesh.abstract_mesh, P("x"))
    x = pullback.device_put(NUMBERS, NamedSharding(mesh, P("x", "y")))
    f = lambda x: lax.with_sharding_constraint(x, logical) * 2
    for run in (f, jit(f)):
        assert run(x).sharding.is_equivalent_to(NamedSharding(mesh, P("x")), 2)
    np.testing.assert_array_equal(grad(lambda x: (f(x) ** 2).sum())(x), 8 * NUMBERS)
    zeros = lax.full_like(pullback.ShapeDtypeStruct((8, 2), "float32", sharding=logical), 0)
    assert zeros.devices() == {pullback.devices()[0]}
    assert zeros.tolist() == [[0, 0]] * 8
