"""Functions of which users say what each device does: run by ``test_over_devices``, in a process with eight devices."""

import functools
import re

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import P, custom_vjp, export, grad, jit, lax, vmap
from pullback.core.errors import PartitioningError
from pullback.experimental.custom_partitioning import SdyShardingRule, custom_partitioning
from pullback.sharding import Mesh, NamedSharding

DEVICES = pullback.devices()
LINE = Mesh(np.array(DEVICES), "x")
GRID = Mesh(np.array(DEVICES).reshape(4, 2), ("a", "b"))
X = np.random.default_rng(0).standard_normal((16, 8)).astype("float32")


def put(x, mesh, *spec):
    return pullback.device_put(x, NamedSharding(mesh, P(*spec)))


def rows(sharding, rank):
    entries = tuple(sharding.spec)[: rank - 1]
    return NamedSharding(sharding.mesh, P(*entries, *[None] * (rank - len(entries))))


def along_rows(fun, **options):
    """A function of matrices of which each device has rows, and what its partition was given."""
    wrapped, seen = custom_partitioning(fun), []

    def partition(mesh, args, result):
        seen.append((mesh, args, result))
        first = rows(args[0].sharding, len(args[0].shape))
        return mesh, fun, first, (first,) * len(args)

    wrapped.def_partition(partition, **options)
    return wrapped, seen


def normalized(x):
    return x / jnp.abs(x).max(-1, keepdims=True)


def expected(x=X):
    return x / np.abs(x).max(-1, keepdims=True)


def communication(call, *args):
    text = jit(call).lower(*args).compile().runtime_executable().hlo_modules()[0].to_string()
    return sorted(set(re.findall(r"(all-gather|all-reduce|all-to-all|collective-permute)\(", text)))


def test_the_partition_is_asked_by_the_compiler():
    f, seen = along_rows(normalized, sharding_rule="... i -> ... i")
    x = put(X, LINE, "x")
    out = jit(f)(x)
    np.testing.assert_allclose(out, expected(), rtol=1e-6)
    assert out.sharding == x.sharding
    ((mesh, (arg,), result),) = seen
    assert mesh == LINE
    assert (arg.shape, arg.dtype) == (result.shape, result.dtype) == (X.shape, X.dtype)
    assert arg.sharding == result.sharding == NamedSharding(LINE, P("x", None))  # with an entry for each axis
    assert communication(f, x) == []
    columns = put(X, LINE, None, "x")
    out = jit(f)(columns)
    np.testing.assert_allclose(out, expected(), rtol=1e-6)
    assert out.sharding == columns.sharding  # as the rule says; parts are moved before and after
    assert communication(f, columns) == ["all-to-all"] or communication(f, columns) == ["all-gather"]
    x = put(X, GRID, "b", "a")
    np.testing.assert_allclose(jit(f)(x), expected(), rtol=1e-6)
    assert seen[-1][1][0].sharding == NamedSharding(GRID, P("b", "a"))


def test_elsewhere_it_is_the_function():
    f, seen = along_rows(normalized, sharding_rule="... i -> ... i")
    x = put(X, LINE, "x")
    calls = [
        lambda: f(X), lambda: f(x), lambda: jit(f)(X), lambda: vmap(f)(x), lambda: jit(vmap(f))(x),
        lambda: jit(pullback.shard_map(f, mesh=LINE, in_specs=P("x"), out_specs=P("x")))(X),
        lambda: export.export(jit(f))(X).call(x),
    ]  # fmt: skip
    for call in calls:
        np.testing.assert_allclose(call(), expected(), rtol=1e-6)
    slope = jit(grad(lambda x: (f(x) ** 2).sum()))(x)
    np.testing.assert_allclose(slope, grad(lambda x: (normalized(x) ** 2).sum())(X), rtol=1e-5, atol=1e-6)
    assert seen == []


def test_the_mesh_may_be_known_late():
    f, seen = along_rows(normalized, sharding_rule="... i -> ... i")
    where = NamedSharding(LINE, P("x"))
    out = jit(lambda x: lax.with_sharding_constraint(f(x), where))(X)
    np.testing.assert_allclose(out, expected(), rtol=1e-6)
    assert len(seen) == 1
    with pullback.set_mesh(GRID):
        jit(f, in_shardings=P("a"))(X)
    assert seen[-1][0] == GRID


def test_collectives_static_arguments_and_several_calls():
    @functools.partial(custom_partitioning, static_argnums=(2,))
    def product(a, b, scale=1):
        return scale * (a @ b)

    def partition(scale, mesh, args, result):
        def part(a, b):
            return scale * lax.psum(a @ b, "x") + 0 * lax.axis_index("x")

        spec = [NamedSharding(mesh, P(None, "x")), NamedSharding(mesh, P("x"))]
        return mesh, part, NamedSharding(mesh, P()), tuple(spec)

    product.def_partition(partition, sharding_rule="i k, k j -> i j", reduction_factors=("k",))
    a, b = put(X, LINE, None, "x"), put(X.T.copy(), LINE, "x")
    np.testing.assert_allclose(jit(product, static_argnums=2)(a, b, 3), 3 * X @ X.T, rtol=1e-4, atol=1e-4)
    both = jit(lambda a, b: product(a, b, 2) + product(a + 1, b, 1) + a.sum())  # collectives of the compiler's too
    np.testing.assert_allclose(both(a, b), 2 * X @ X.T + (X + 1) @ X.T + X.sum(), rtol=1e-4, atol=1e-4)
    assert communication(both, a, b) == ["all-reduce"]
    by_name = jit(lambda a, b: product(b=b, a=a))
    np.testing.assert_allclose(by_name(a, b), X @ X.T, rtol=1e-4, atol=1e-4)


def test_trees_dtypes_captured_arrays_and_loops():
    table = jnp.linspace(0, 1, 200, dtype="float32")

    @custom_partitioning
    def f(d, flags):
        return {"sum": d["x"] + table[3] + d["n"], "flags": (~flags,)}

    def partition(mesh, args, result):
        one = NamedSharding(mesh, P("x"))
        return mesh, f.fun, {"sum": one, "flags": (one,)}, ({"n": NamedSharding(mesh, P()), "x": one}, one)

    f.def_partition(partition, sharding_rule=", i, i -> i, i")
    x, flags = np.arange(8, dtype="bfloat16"), np.arange(8) % 2 == 0
    out = jit(f)({"n": 2, "x": put(x, LINE, "x")}, flags)
    np.testing.assert_array_equal(out["flags"][0], ~flags)
    np.testing.assert_allclose(out["sum"], x.astype("float32") + table[3] + 2, rtol=1e-2)
    g, seen = along_rows(normalized, sharding_rule="... i -> ... i")
    looped = jit(lambda x: lax.fori_loop(0, 3, lambda _, x: g(2 * x), x))
    np.testing.assert_allclose(looped(put(X, LINE, "x")), expected(), rtol=1e-6)
    assert len(seen) == 1


def test_a_backward_pass_of_its_own():
    forward, asked = along_rows(normalized, sharding_rule="... i -> ... i")
    backward, asked_too = along_rows(lambda x, ct: x * ct, sharding_rule="... i, ... i -> ... i")

    @custom_vjp
    def f(x):
        return forward(x)

    f.defvjp(lambda x: (forward(x), x), lambda x, ct: (backward(x, ct),))
    value, slope = jit(pullback.value_and_grad(lambda x: (3 * f(x)).sum()))(put(X, LINE, "x"))
    np.testing.assert_allclose(value, 3 * expected().sum(), rtol=1e-4)
    np.testing.assert_allclose(slope, 3 * X, rtol=1e-6)
    assert len(asked) == len(asked_too) == 1


def test_rules_by_functions():
    given = []

    def rule(*args):
        given.append(args)
        return "i j -> i j"

    f, _ = along_rows(normalized, sharding_rule=rule)
    assert jit(f)(put(X, LINE, "x")).sharding == NamedSharding(LINE, P("x"))
    (mesh, operands, results) = given[0]
    assert mesh.shape_tuple == (("x", 8),)
    assert operands == results
    assert (operands[0].shape, operands[0].rank, operands[0].element_type) == ((16, 8), 2, X.dtype)
    f, _ = along_rows(normalized, sharding_rule=lambda *_: SdyShardingRule((("i", "j"),), (("i", "j"),)))
    assert jit(f)(put(X, LINE, "x")).sharding == NamedSharding(LINE, P("x"))
    f = custom_partitioning(normalized)
    f.def_partition(lambda mesh, args, result: (mesh, normalized, result.sharding, (args[0].sharding,)))
    with pytest.raises(PartitioningError, match=r"the shards \(f32\[16,8\]\) of .* has the results \(f32\[2,8\]\)"):
        jit(f)(put(X, LINE, "x"))  # without a rule the compiler knows nothing of the result


def test_what_a_partition_must_return():
    x = put(X, LINE, "x")
    here = NamedSharding(LINE, P("x"))
    away = Mesh(np.array(DEVICES[:4]), "x")
    cases = [
        (lambda mesh, args, result: None, "expected a mesh, a function, the shardings of the results .* got None"),
        (lambda mesh, args, result: (away, normalized, here, (here,)), "a mesh of the same devices as"),
        (lambda mesh, args, result: (mesh, normalized, here, (NamedSharding(away, P("x")),)), "over the devices of"),
        (lambda mesh, args, result: (mesh, normalized, here, (here, here)), "expected 1, one for each array, got 2"),
        (lambda mesh, args, result: (mesh, lambda x: x[0], here, (here,)), r"has the results \(f32\[8\]\)"),
        (lambda mesh, args, result: (mesh, printing, here, (here,)), "must not call Python functions"),
    ]

    def printing(x):
        pullback.debug.print("{}", x[0, 0])
        return x

    for partition, message in cases:
        f = custom_partitioning(normalized)
        f.def_partition(partition, sharding_rule="i j -> i j")
        with pytest.raises(PartitioningError, match=message):
            jit(f)(x)

    def failing(mesh, args, result):
        raise KeyError("the user's own")

    f = custom_partitioning(normalized)
    f.def_partition(failing, sharding_rule="i j -> i j")
    with pytest.raises(KeyError, match="the user's own"):
        jit(f)(x)
    f = custom_partitioning(normalized)
    f.def_partition(failing, sharding_rule="i -> i")
    with pytest.raises(PartitioningError, match=r"of normalized at .*: operand 0, of shape \(16, 8\), has the rank 2"):
        jit(f)(x)
    captured = jit(lambda x, y: _with_rule(lambda x: x + y)(x))
    with pytest.raises(PartitioningError, match=r"it closes over .* pass it as an argument"):
        captured(x, x)


def _with_rule(fun):
    return along_rows(fun, sharding_rule="i j -> i j")[0]
