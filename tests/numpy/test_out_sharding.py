"""``out_sharding`` of NumPy's functions: the place of the result, eager and compiled, and what is refused."""

import pytest

import pullback
import pullback.numpy as pnp
from pullback.errors import ArgumentError, BackendError, ShardingError
from pullback.nn import initializers

AUTO = (pullback.sharding.AxisType.Auto,)
MESH = pullback.make_mesh((1,), ("i",), AUTO)
ROWS = pullback.sharding.NamedSharding(MESH, pullback.P("i"))
X, A, KEY = pnp.arange(4.0), pnp.eye(4), pullback.random.key(0)

FUNCTIONS = {
    "arange": lambda **options: pnp.arange(4, **options),
    "array": lambda **options: pnp.array([1.0, 2.0], **options),
    "asarray": lambda **options: pnp.asarray(X, **options),
    "bincount": lambda **options: pnp.bincount(pnp.arange(4), length=4, **options),
    "broadcast_to": lambda **options: pnp.broadcast_to(X, (2, 4), **options),
    "dot": lambda **options: pnp.dot(A, X, **options),
    "einsum": lambda **options: pnp.einsum("ij,j->i", A, X, **options),
    "empty": lambda **options: pnp.empty(3, **options),
    "empty_like": lambda **options: pnp.empty_like(prototype=X, **options),
    "full": lambda **options: pnp.full(3, 1.0, **options),
    "full_like": lambda **options: pnp.full_like(X, 2, **options),
    "matmul": lambda **options: pnp.matmul(A, X, **options),
    "ones": lambda **options: pnp.ones(3, **options),
    "ones_like": lambda **options: pnp.ones_like(X, **options),
    "percentile": lambda **options: pnp.percentile(X, pnp.array([5.0, 9.0]), **options),
    "ravel": lambda **options: pnp.ravel(A, **options),
    "repeat": lambda **options: pnp.repeat(X, 2, **options),
    "reshape": lambda **options: pnp.reshape(X, (2, 2), **options),
    "tensordot": lambda **options: pnp.tensordot(A, X, 1, **options),
    "linalg.tensordot": lambda **options: pnp.linalg.tensordot(A, X, axes=1, **options),
    "zeros": lambda **options: pnp.zeros(3, **options),
    "zeros_like": lambda **options: pnp.zeros_like(X, **options),
    "initializers.ones": lambda **options: initializers.ones(None, (3,), **options),
    "normal.initializer": lambda **options: initializers.normal()(KEY, (3,), **options),
    "orthogonal.initializer": lambda **options: initializers.orthogonal()(KEY, (3, 3), **options),
    "initializers.zeros": lambda **options: initializers.zeros(None, (3,), **options),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_result_is_placed_and_otherwise_the_same(name):
    make = FUNCTIONS[name]
    placed, plain = make(out_sharding=ROWS), make()
    assert placed.sharding == ROWS
    assert placed.dtype == plain.dtype
    assert pnp.array_equal(placed, plain)


def test_a_compiled_function_constrains_its_results():
    text = pullback.jit(lambda: [make(out_sharding=ROWS) for make in FUNCTIONS.values()]).lower().as_text()
    assert text.count("sharding_constraint") + text.count("@Sharding") >= len(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_no_sharding_is_refused(name):
    who = name.rpartition(".")[2]
    with pytest.raises(BackendError, match=rf"{who}: expected a device, one of devices\(\), or a sharding, got 3"):
        FUNCTIONS[name](out_sharding=3)
    with pytest.raises(ShardingError, match=rf"{who}: expected a sharding or a PartitionSpec, got 'i'"):
        FUNCTIONS[name](out_sharding="i")


def test_device_and_out_sharding_are_refused_together():
    with pytest.raises(ArgumentError, match="zeros: pass either device or out_sharding"):
        pnp.zeros(3, device=pullback.devices()[0], out_sharding=ROWS)


def test_the_sharding_of_a_type_without_a_mesh_has_no_effect() -> None:
    x = pnp.ones((2, 3))
    sharding = pullback.typeof(x).sharding
    for call in (pnp.matmul, pullback.jit(pnp.matmul, static_argnames="out_sharding")):
        assert call(x, x.T, out_sharding=sharding).tolist() == [[3, 3], [3, 3]]
