"""Arrays over several devices, eager: run by ``test_over_devices``, in a process with eight devices."""

import copy
import os
import pickle

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import P, grad, jit, jvp, lax, vmap
from pullback.core import array, runtime
from pullback.sharding import Mesh, NamedSharding, SingleDeviceSharding

EXHAUSTIVE = os.environ.get("PULLBACK_EXHAUSTIVE", "0") != "0"
DEVICES = pullback.devices()
MESH = Mesh(np.array(DEVICES).reshape(4, 2), ("x", "y"))
ROWS = NamedSharding(MESH, P("x"))
BLOCKS = NamedSharding(MESH, P("x", "y"))


def over(spec, value=None, mesh=MESH):
    value = np.arange(32.0, dtype=np.float32).reshape(8, 4) + 1 if value is None else value
    return pullback.device_put(value, NamedSharding(mesh, spec))


@pytest.fixture
def no_fetch(monkeypatch):
    """A switch: while it is on, no array may come to the host."""

    def refuse(buffer, kind):
        raise AssertionError(f"{kind} came to the host")

    def on():
        monkeypatch.setattr(runtime.runtime, "gather", refuse)

    def off():
        monkeypatch.undo()

    on.off = off
    return on


UNARY = {
    "neg": lambda x: -x,
    "add": lambda x: x + 1,
    "radd": lambda x: 1 + x,
    "power": lambda x: x**2,
    "power3": lambda x: x**3,
    "sub": lambda x: 2.0 - x,
    "compare": lambda x: x > 3,
    "sin": jnp.sin,
    "sum": jnp.sum,
    "mean": lambda x: x.mean(0),
    "max": lambda x: x.max(1),
    "argmax": lambda x: jnp.argmax(x, 1),
    "cumsum": lambda x: jnp.cumsum(x, 0),
    "matmul": lambda x: x @ x.T,
    "matmul_method": lambda x: x.T.dot(x),
    "reshape": lambda x: x.reshape(-1),
    "ravel": jnp.ravel,
    "transpose": lambda x: x.T,
    "index": lambda x: x[0],
    "slice": lambda x: x[2:6],
    "steps": lambda x: x[::2, 1],
    "ellipsis": lambda x: x[..., None],
    "integers": lambda x: x[np.array([0, 3])],
    "device_integers": lambda x: x[jnp.array([0, 3])],
    "take": lambda x: jnp.take(x, jnp.array([1, 2]), 0),
    "take_along_axis": lambda x: jnp.take_along_axis(x, jnp.zeros((8, 1), int), 1),
    "at_set": lambda x: x.at[0].set(1.0),
    "at_add": lambda x: x.at[jnp.array([0, 1])].add(1.0),
    "sort": lambda x: jnp.sort(x, 0),
    "argsort": lambda x: jnp.argsort(-x, 0),
    "where": lambda x: jnp.where(x > 3, x, 0.0),
    "concatenate": lambda x: jnp.concatenate([x, x]),
    "stack": lambda x: jnp.stack([x, x], 1),
    "zeros_like": lambda x: x + jnp.zeros_like(x),
    "ones_like": lambda x: x * jnp.ones_like(x),
    "full_like": lambda x: x * jnp.full_like(x, 2),
    "pad": lambda x: jnp.pad(x, 1),
    "einsum": lambda x: jnp.einsum("ij,kj->ik", x, x),
    "astype": lambda x: x.astype(jnp.int32),
    "convert": lambda x: jnp.asarray(x, jnp.float16),
    "copy": lambda x: x.copy(),
    "clip": lambda x: jnp.clip(x, 2, 5),
    "softmax": lambda x: pullback.nn.softmax(x),
    "logsumexp": lambda x: pullback.nn.logsumexp(x, 1),
    "std": lambda x: jnp.std(x, 0),
    "var": lambda x: jnp.var(x),
    "norm": lambda x: jnp.linalg.norm(x),
    "inv": lambda x: jnp.linalg.inv(x.T @ x + jnp.eye(4)),
    "cholesky": lambda x: jnp.linalg.cholesky(x.T @ x + 100 * jnp.eye(4)),
    "broadcast": lambda x: jnp.broadcast_to(x, (2, 8, 4)),
    "flip": lambda x: jnp.flip(x, 0),
    "roll": lambda x: jnp.roll(x, 1, 0),
    "tile": lambda x: jnp.tile(x, (2, 1)),
    "repeat": lambda x: jnp.repeat(x, 2, 0),
    "split": lambda x: jnp.split(x, 2)[1],
    "erf": lambda x: lax.erf(x),
    "iteration": lambda x: next(iter(x)),
    "scan": lambda x: lax.scan(lambda c, r: (c + r, c), jnp.zeros(4), x)[1],
    "scan_carry": lambda x: lax.scan(lambda c, _: (c * 1.1, None), x, None, length=3)[0],
    "long_scan": lambda x: lax.scan(lambda c, _: (jnp.sin(c) * 1.1, None), x, None, length=300)[0],
    "fori": lambda x: lax.fori_loop(0, 5, lambda i, c: c + i, x),
    "while": lambda x: lax.while_loop(lambda c: c.sum() < 5000, lambda c: c * 2, x),
    "cond": lambda x: lax.cond(x.sum() > 3, lambda v: v * 2, lambda v: v, x),
    "switch": lambda x: lax.switch(1, [lambda v: v * 2, lambda v: v * 3], x),
    "map": lambda x: lax.map(lambda r: r * 2, x),
    "vmap": lambda x: vmap(lambda r: jnp.sin(r).sum())(x),
    "vmap_named": lambda x: vmap(lambda r: r - lax.pmean(r, "i"), axis_name="i")(x),
    "grad": lambda x: grad(lambda v: (jnp.sin(v) ** 2).sum())(x),
    "grad_matmul": lambda x: grad(lambda v: ((v @ v.T) ** 2).sum())(x),
    "jvp": lambda x: jvp(lambda v: jnp.tanh(v @ v.T), (x,), (x,))[1],
    "jvp_ones": lambda x: jvp(jnp.sin, (x,), (jnp.ones((8, 4)),))[1],
    "hvp": lambda x: jvp(grad(lambda v: (v**3).sum()), (x,), (jnp.ones_like(x),))[1],
    "grad_scan": lambda x: grad(lambda v: lax.scan(lambda c, r: (jnp.tanh(c + r), None), v[0], v)[0].sum())(x),
    "grad_cond": lambda x: grad(lambda v: lax.cond(v.sum() > 3, lambda u: (u**2).sum(), lambda u: u.sum(), v))(x),
    "grad_while": lambda x: grad(
        lambda v: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * v), (0, jnp.ones((8, 4))))[1].sum()
    )(x),
    "checkpoint": lambda x: grad(lambda v: pullback.checkpoint(lambda u: jnp.sin(jnp.sin(u)).sum())(v))(x),
    "custom_jvp": lambda x: grad(lambda v: pullback.nn.relu(v - 3).sum())(x),
    "jit": lambda x: jit(lambda v: jnp.sin(v) + 1)(x),
    "grad_jit": lambda x: grad(jit(lambda v: jnp.sin(v).sum()))(x),
    "vmap_jit": lambda x: vmap(jit(lambda v: v * 2))(x),
    "jacobian": lambda x: pullback.jacrev(lambda v: (v**2).sum(0))(x),
    "bits": lambda x: x.view(jnp.int32),
    "argwhere": lambda x: jnp.argwhere(x > 30, size=4),
    "searchsorted": lambda x: jnp.searchsorted(x[:, 0], jnp.array([3.0, 7.0])),
    "top_k": lambda x: lax.top_k(x, 2)[0],
    "unique": lambda x: jnp.unique(x, size=32),
    "convolve": lambda x: jnp.convolve(x[:, 0], jnp.ones(3)) if hasattr(jnp, "convolve") else x,
    "outer": lambda x: jnp.outer(x[:, 0], x[:, 1]),
    "device_get_free": lambda x: jnp.sqrt(jnp.abs(x)) / (1 + x),
    "isnan": lambda x: jnp.isnan(x).any(),
    "digitize": lambda x: jnp.interp(x[:, 0], jnp.arange(3.0), jnp.arange(3.0)),
    "bool_index": lambda x: jnp.where((x > 3) & (x < 9), x, -x),
    "divmod": lambda x: divmod(x, 3)[1],
    "round": lambda x: round(x / 3, 1),
}
READS = {"while", "cond", "grad_cond", "grad_while", "iteration"}


PLACES = ("blocks", "rows", "whole", "device")
EVERY = [(name, place) for name in UNARY for place in PLACES]
"""Of which the usual run takes one place for each operation, and each place about as often."""
CHOSEN = EVERY if EXHAUSTIVE else [(name, PLACES[i % 4]) for i, name in enumerate(UNARY)]


@pytest.mark.parametrize(("name", "place"), CHOSEN)
def test_operations_run_where_arrays_are(name, place, no_fetch):
    f = UNARY[name]
    value = np.arange(32.0, dtype=np.float32).reshape(8, 4) + 1
    expected = np.asarray(f(jnp.array(value)))
    spec = {"blocks": P("x", "y"), "rows": P("x"), "whole": P()}
    x = pullback.device_put(value, DEVICES[3] if place == "device" else NamedSharding(MESH, spec[place]))
    if name not in READS:
        no_fetch()
    out = f(x)
    no_fetch.off()
    assert out.committed, out.sharding
    assert out.sharding.device_set == x.sharding.device_set
    np.testing.assert_allclose(np.asarray(out), expected, rtol=2e-5, atol=2e-5)
    assert out.dtype == expected.dtype


def test_what_an_array_says_of_itself():
    x = over(P("x", "y"))
    assert x.sharding == BLOCKS
    assert x.device == BLOCKS
    assert x.devices() == set(DEVICES)
    assert x.is_fully_addressable
    assert not x.is_fully_replicated
    assert x.committed
    assert x.is_ready() in (True, False)
    assert x.block_until_ready() is x
    assert over(P()).is_fully_replicated
    assert [s.device for s in x.addressable_shards] == DEVICES
    shard = x.addressable_shards[3]
    assert shard.index == (slice(2, 4), slice(2, 4))
    assert shard.replica_id == 0
    assert shard.data.sharding == SingleDeviceSharding(DEVICES[3])
    np.testing.assert_array_equal(shard.data, np.asarray(x)[2:4, 2:4])
    assert [s.replica_id for s in over(P("x")).global_shards] == [0, 1] * 4
    assert [s.replica_id for s in over(P()).addressable_shards] == list(range(8))
    np.testing.assert_array_equal(x.addressable_data(7), np.asarray(x)[6:, 2:])
    with pytest.raises(IndexError, match="this process has 8 shards of the array, got index 8"):
        x.addressable_data(8)
    assert shard.data.committed
    assert (shard.data + 1).devices() == {DEVICES[3]}


def test_an_array_on_one_device():
    x = pullback.device_put(np.arange(3.0), DEVICES[2])
    assert x.sharding == SingleDeviceSharding(DEVICES[2])
    assert x.device is DEVICES[2]
    assert x.addressable_shards[0].index == (slice(None),)
    assert (x * 2).device is DEVICES[2]
    assert jnp.sin(x).device is DEVICES[2]
    assert float(x.sum()) == 3
    y = jnp.ones(3)
    assert y.addressable_shards[0].data is y
    assert y.is_fully_replicated
    assert y.global_shards[0].device is DEVICES[0]


def test_printing_pickling_conversion():
    x = over(P("x", "y"))
    value = np.arange(32.0, dtype=np.float32).reshape(8, 4) + 1
    assert str(x) == str(value)
    assert repr(x) == repr(jnp.array(value))
    np.testing.assert_array_equal(x, value)
    assert x.tolist() == value.tolist()
    assert float(x[1, 1]) == 6
    assert bool((x > 0).all())
    assert x[0, 0].item() == 1
    again = pickle.loads(pickle.dumps(x))
    np.testing.assert_array_equal(again, value)
    assert not again.committed
    for y in (copy.copy(x), copy.deepcopy(x)):
        assert y.sharding == x.sharding
        np.testing.assert_array_equal(y, value)
    assert not np.asarray(x).flags.writeable
    assert type(x) is array.CommittedArray
    assert np.add(x, 1).sum() == value.sum() + 32
    assert f"{x[0, 0]:.1f}" == "1.0"
    assert int(over(P("x"), np.arange(8))[5]) == 5
    assert [1, 2, 3][over(P("x"), np.arange(8))[1]] == 2
    assert pickle.loads(pickle.dumps(BLOCKS)) == BLOCKS
    assert pickle.loads(pickle.dumps(MESH)) == MESH


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "float16", "bfloat16", "complex64", "float8_e4m3fn", "int4"]
)
def test_dtypes(dtype):
    value = jnp.arange(8).astype(dtype)
    x = pullback.device_put(value, ROWS)
    assert x.dtype == value.dtype
    np.testing.assert_array_equal(np.asarray(x, np.complex64), np.asarray(value, np.complex64))
    np.testing.assert_array_equal(np.asarray(x[::-1], np.complex64), np.asarray(value, np.complex64)[::-1])
    shard = x.addressable_shards[2].data
    assert shard.dtype == value.dtype
    np.testing.assert_array_equal(np.asarray(shard, np.complex64), np.asarray(value, np.complex64)[2:4])


def test_random_keys():
    keys = pullback.random.split(pullback.random.key(0), 8)
    x = pullback.device_put(keys, ROWS)
    draws = vmap(lambda k: pullback.random.normal(k, (3,)))(x)
    assert draws.sharding.device_set == set(DEVICES)
    np.testing.assert_allclose(draws, vmap(lambda k: pullback.random.normal(k, (3,)))(keys), rtol=1e-6)
    np.testing.assert_array_equal(pullback.random.key_data(x), pullback.random.key_data(keys))


@pytest.mark.parametrize("first", ["P('x', 'y')", "P(None, ('x', 'y'))", "P()", "device"])
@pytest.mark.parametrize("second", ["P('x', 'y')", "P()", "P(('y', 'x'))", "device", "host", "other"])
def test_moves(first, second):
    value = np.arange(64.0, dtype=np.float32).reshape(8, 8)
    half = Mesh(np.array(DEVICES[:4]), ("z",))

    def place(name):
        if name in ("device", "host"):
            return DEVICES[5 if name == "device" else 0]
        return NamedSharding(half, P("z")) if name == "other" else NamedSharding(MESH, eval(name))

    x = pullback.device_put(value, place(first))
    y = pullback.device_put(x, place(second))
    np.testing.assert_array_equal(y, value)
    wanted = place(second)
    assert y.sharding == (SingleDeviceSharding(wanted) if isinstance(wanted, pullback.Device) else wanted)
    for shard in y.addressable_shards:
        np.testing.assert_array_equal(shard.data, value[shard.index])
        assert shard.data.devices() == {shard.device}
    np.testing.assert_array_equal(x, value)


def test_moves_are_differentiated_and_mapped():
    x = jnp.arange(8.0)
    on = pullback.device_put(x, DEVICES[1])
    g = grad(lambda v: (pullback.device_put(v, DEVICES[2]) ** 2).sum() + v.sum() * 0)
    with pytest.raises(ValueError, match="different devices"):
        g(on)  # the sum of cotangents on two devices
    g = grad(lambda v: (pullback.device_put(v, DEVICES[2]) ** 2).sum())(on)
    assert g.device is DEVICES[1]
    np.testing.assert_array_equal(g, 2 * np.arange(8))
    g = grad(lambda v: (pullback.device_put(v, ROWS) ** 2).sum())(x)
    np.testing.assert_array_equal(g, 2 * np.arange(8))
    out = vmap(lambda v: lax.with_sharding_constraint(v, ROWS) * 2)(jnp.ones((4, 8)))
    assert out.sharding.spec == P(None, "x")
    out = vmap(lambda v: lax.with_sharding_constraint(v, ROWS), spmd_axis_name="y")(jnp.ones((4, 8)))
    assert out.sharding.spec == P("y", "x")
    primal, tangent = jvp(lambda v: pullback.device_put(v, ROWS), (x,), (x,))
    assert primal.sharding == tangent.sharding == ROWS


def test_donation_and_deletion():
    x = over(P("x"))
    y = pullback.device_put(x, BLOCKS, donate=True)
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match="was deleted"):
        x + 1
    y.delete()
    with pytest.raises(RuntimeError, match="was deleted"):
        np.asarray(y)
    f = jit(lambda v: v + 1, donate_argnums=0)
    x = over(P("x"))
    np.testing.assert_array_equal(f(x), np.arange(32).reshape(8, 4) + 2)
    assert x.is_deleted()
    x = over(P("x"))
    z = pullback.device_put(x, ROWS)
    seen = np.asarray(z)
    np.testing.assert_array_equal(f(x), np.arange(32).reshape(8, 4) + 2)
    np.testing.assert_array_equal(z, np.arange(32).reshape(8, 4) + 1)
    np.testing.assert_array_equal(seen, np.arange(32).reshape(8, 4) + 1)


def test_arrays_of_parts():
    value = np.arange(32.0, dtype=np.float32).reshape(8, 4)
    seen = []
    x = pullback.make_array_from_callback((8, 4), ROWS, lambda i: (seen.append(i), value[i])[1])
    assert len(seen) == 4
    np.testing.assert_array_equal(x, value)
    parts = [pullback.device_put(value[i], d) for d, i in BLOCKS.devices_indices_map((8, 4)).items()]
    y = pullback.make_array_from_single_device_arrays((8, 4), BLOCKS, parts[::-1])
    np.testing.assert_array_equal(y, value)
    assert y.sharding == BLOCKS
    z = pullback.make_array_from_process_local_data(BLOCKS, value)
    np.testing.assert_array_equal(z, value)
    np.testing.assert_array_equal(pullback.make_array_from_process_local_data(ROWS, value, (8, 4)), value)
    on = pullback.sharding.make_single_device_sharding(DEVICES[1])
    assert on == SingleDeviceSharding(DEVICES[1])
    assert pullback.make_array_from_callback((8, 4), on, lambda i: value[i]).device is DEVICES[1]
    assert pullback.make_array_from_single_device_arrays((8, 4), on, [value]).device is DEVICES[1]
    np.testing.assert_array_equal(x + y, 2 * value)


REFUSED = [
    (
        lambda: over(P("x"), np.ones(7)),
        ValueError,
        r"device_put: axis 0 of an array of shape \(7,\) has the size 7, which",
    ),
    (lambda: over(P("x", None), np.ones(8)), ValueError, "needs an array of at least 2 axes, but got one of 1"),
    (lambda: over(P("x")) + over(P("z"), None, Mesh(DEVICES[:4], "z")), ValueError, "add are on different devices"),
    (lambda: over(P("x")) + pullback.device_put(1.0, DEVICES[1]), ValueError, "add are on different devices"),
    (
        lambda: pullback.device_put(1.0, 3),
        RuntimeError,
        "device_put: expected a device, one of devices.., or a sharding",
    ),
    (
        lambda: pullback.device_put(np.ones(8), P("x")),
        RuntimeError,
        r"device_put: P\('x',\) names axes of a mesh, but no mesh is set",
    ),
    (lambda: pullback.make_array_from_callback((8,), ROWS, lambda i: np.ones(3)), ValueError, r"the shape \(2,\), got"),
    (
        lambda: pullback.make_array_from_callback((7,), ROWS, lambda i: np.ones(2)),
        ValueError,
        "cannot be divided into 4",
    ),
    (lambda: pullback.make_array_from_callback((-1,), ROWS, lambda i: np.ones(2)), ValueError, "non-negative"),
    (lambda: pullback.make_array_from_callback((8,), DEVICES[0], lambda i: 1.0), ValueError, "expected a sharding"),
    (
        lambda: pullback.make_array_from_single_device_arrays((8,), ROWS, [jnp.ones(2)]),
        ValueError,
        "8 devices .* got 1",
    ),
    (
        lambda: pullback.make_array_from_single_device_arrays((8,), ROWS, [jnp.ones(2)] * 8),
        ValueError,
        "no array is on CpuDevice",
    ),
    (
        lambda: pullback.make_array_from_single_device_arrays((8,), ROWS, [1.0] * 8),
        ValueError,
        "expected arrays on single devices, got 1.0",
    ),
    (
        lambda: pullback.make_array_from_process_local_data(ROWS, np.ones(8), (16,)),
        ValueError,
        "axis 0 of the data has the size 8, but",
    ),
    (
        lambda: lax.with_sharding_constraint(np.ones(7), ROWS),
        ValueError,
        "with_sharding_constraint: axis 0 of an array",
    ),
    (lambda: lax.with_sharding_constraint(np.ones(8), P("x")), RuntimeError, "no mesh is set"),
    (lambda: lax.with_sharding_constraint(np.ones(8), "x"), ValueError, r"write P\('x'\)"),
    (lambda: lax.with_sharding_constraint([1.0], [ROWS, ROWS]), ValueError, "not a prefix"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refused(case):
    call, kind, message = REFUSED[case]
    with pytest.raises(kind, match=message) as caught:
        call()
    assert isinstance(caught.value, pullback.errors.PullbackError)


@pytest.mark.parametrize("place", [ROWS, BLOCKS, DEVICES[3]], ids=["rows", "blocks", "device"])
def test_arrays_like_another_are_where_it_is(place):
    x = pullback.device_put(VALUE, place)
    described = pullback.ShapeDtypeStruct((8, 4), "float32", sharding=x.sharding)
    made = {
        "zeros_like": lambda x, **options: jnp.zeros_like(x, **options),
        "ones_like": lambda x, **options: jnp.ones_like(x, **options),
        "empty_like": lambda x, **options: jnp.empty_like(x, **options),
        "full_like": lambda x, **options: jnp.full_like(x, 3, **options),
        "lax.full_like": lambda x, **options: lax.full_like(x, 3, **options),
    }
    for name, make in made.items():
        for model in (x, described):
            out = make(model)
            assert out.sharding == x.sharding, name
            assert make(model, dtype="int32").sharding == x.sharding, name
            assert make(model, shape=(8, 4)).sharding == x.sharding, name
            alone = place if place is DEVICES[3] else DEVICES[0]  # as in JAX 0.10.2
            assert make(model, shape=(8,)).sharding == SingleDeviceSharding(alone), name
        assert out.dtype == x.dtype
        np.testing.assert_array_equal(out, np.full_like(VALUE, {"ones_like": 1}.get(name, 3 if "full" in name else 0)))
    assert jnp.zeros_like(x, device=DEVICES[5]).device is DEVICES[5]
    for model in (x, described):
        assert pullback.ShapeDtypeStruct.like(model).sharding == x.sharding
    assert pullback.ShapeDtypeStruct.like(jnp.ones(2)).sharding is None
    state = pullback.tree.map(jnp.zeros_like, {"w": x})
    assert jit(lambda s: s["w"] + 1)(state).sharding == x.sharding


def test_of_a_tree_only_what_is_donated_is_gone():
    def deleted(donate, **options):
        x = {"a": jnp.ones(3), "b": (jnp.ones(4), jnp.ones(5))}
        kept = pullback.tree.leaves(x)
        moved = pullback.device_put(x, DEVICES[1], donate=donate, **options)
        assert [y.sum() for y in pullback.tree.leaves(moved)] == [3, 4, 5]
        return [leaf.is_deleted() for leaf in kept]

    assert deleted(True) == [True] * 3
    assert deleted({"a": False, "b": True}) == [False, True, True]
    assert deleted({"a": True, "b": (False, True)}, may_alias={"a": None, "b": False}) == [True, False, True]
    assert deleted({"a": False, "b": (False, False)}) == [False] * 3
    with pytest.raises(ValueError, match=r"donate must be a boolean, or a tree of booleans that is a prefix of x"):
        deleted({"a": True})
    with pytest.raises(TypeError, match=r"donate must be a boolean, or a tree of booleans, got 'yes' in it"):
        deleted("yes")
    with pytest.raises(ValueError, match="may_alias and donate cannot both be True"):
        deleted({"a": True, "b": False}, may_alias=True)


def test_arrays_made_in_a_place():
    made = [
        *[f((8, 4), device=ROWS) for f in (jnp.zeros, jnp.ones, jnp.empty)],
        *[f(VALUE, device=ROWS) for f in (jnp.array, jnp.asarray, jnp.zeros_like, jnp.ones_like, jnp.empty_like)],
        jnp.full((8,), 2.0, device=ROWS),
        jnp.full_like(VALUE, 2.0, device=ROWS),
        jnp.eye(8, device=ROWS),
        jnp.arange(8, device=ROWS),
        jnp.linspace(0, 1, 8, device=ROWS),
        jnp.astype(jnp.array(VALUE), int, device=ROWS),
        jnp.array(VALUE).to_device(ROWS),
    ]
    for x in made:
        assert x.sharding == ROWS
    np.testing.assert_array_equal(made[3], VALUE)
    assert jnp.zeros(3, device=DEVICES[2]).device is DEVICES[2]
    steps, step = jnp.linspace(0, 1, 8, retstep=True, device=DEVICES[2])
    assert steps.device is DEVICES[2]
    assert float(step) == pytest.approx(1 / 7)


VALUE = np.arange(32.0, dtype=np.float32).reshape(8, 4)


def test_odd_cases():
    empty = pullback.device_put(np.zeros((0, 4)), ROWS)
    assert (empty + 1).shape == (0, 4)
    names = Mesh(np.array(DEVICES).reshape(4, 2), (1, 'a"b'))
    np.testing.assert_array_equal(over(P(1), VALUE, names) + 1, VALUE + 1)
    turned = Mesh(np.array(DEVICES)[::-1].reshape(4, 2), ("x", "y"))
    x = over(P(("y", "x")), VALUE, turned)
    assert (x + 1).sharding == x.sharding
    np.testing.assert_array_equal(x + x.sum(), VALUE + VALUE.sum())
    cotangents = pullback.vjp(jnp.sin, x)[1](jnp.ones((8, 4)))[0]
    np.testing.assert_allclose(cotangents, np.cos(VALUE), rtol=1e-5)
    with pullback.transfer_guard("disallow"), pytest.raises(RuntimeError, match="a device-to-device transfer of"):
        jit(lambda a: a + 1, in_shardings=NamedSharding(turned, P()))(x)


def test_results_without_elements_are_where_the_array_is() -> None:
    x = jnp.arange(10.0, device=DEVICES[1])
    nowhere = jnp.zeros((0,), int)
    for made in (x[jnp.zeros(10, bool)], x[nowhere], x[:0], jnp.take_along_axis(x, nowhere, 0)):
        assert made.sharding == x.sharding
