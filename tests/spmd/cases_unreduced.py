"""Arrays that are unreduced over axes of a mesh, sums whose terms are on the devices, and reduced ones."""

from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import NamedSharding, P, grad, jit, lax
from pullback.errors import ShardingTypeError, UnsupportedArgumentError
from pullback.sharding import UnreducedKind, auto_axes, reshard

MESH = pullback.make_mesh((4, 2), ("x", "y"))
NUMBERS = np.arange(1.0, 33, dtype=np.float32).reshape(8, 4)
SQUARE = NUMBERS.T @ NUMBERS
ROW = np.arange(1.0, 5, dtype=np.float32)


@pytest.fixture(autouse=True)
def the_mesh() -> Any:
    with pullback.set_mesh(MESH):
        yield


def put(value: Any, *entries: Any, **axes: Any) -> Any:
    return pullback.device_put(value, NamedSharding(MESH, P(*entries, **axes)))


def square(left: Any, right: Any) -> Any:
    return jnp.einsum("ij,jk->ik", left, right, out_sharding=P(unreduced={"x"}))


def summed(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(reshard(x, P(*[None] * x.ndim)))


LINEAR = {
    "itself": (lambda z: z, SQUARE),
    "sum": (lambda z: z + 3 * z - z / ROW, 4 * SQUARE - SQUARE / ROW),
    "scaled": (lambda z: jnp.asarray(ROW) * z.T, ROW * SQUARE.T),
    "reshaped": (lambda z: jnp.concatenate([z, -z]).reshape(4, 8), np.concatenate([SQUARE, -SQUARE]).reshape(4, 8)),
    "sliced": (lambda z: z[1:, :2].sum(0), SQUARE[1:, :2].sum(0)),
    "selected": (lambda z: jnp.where(jnp.asarray(ROW > 2), z, 2 * z), np.where(ROW > 2, SQUARE, 2 * SQUARE)),
    "product": (lambda z: z @ jnp.asarray(ROW), SQUARE @ ROW),
    "narrow": (lambda z: (z / 256).astype("bfloat16").astype("float32") * 256, SQUARE),
    "loop": (lambda z: lax.fori_loop(0, 3, lambda i, c: (c[0] + z, c[1] + 1), (z, 0))[0], 4 * SQUARE),
    "branch": (lambda z: lax.cond(True, lambda c: c * 2, lambda c: c, z), 2 * SQUARE),
    "barrier": (lambda z: lax.optimization_barrier((z, jnp.ones(2)))[0], SQUARE),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_operations_work_on_the_terms(name: str) -> None:
    f, expected = LINEAR[name]
    left, right = put(NUMBERS.T.copy(), None, "x"), put(NUMBERS, "x")
    z = jit(square)(left, right)
    assert z.sharding.spec == P(None, None, unreduced={"x"})
    within = jit(lambda left, right: f(square(left, right)))(left, right)
    for out in (f(z), jit(f)(z), within):
        assert out.sharding.spec.unreduced == {"x"}
        np.testing.assert_allclose(summed(out), expected, rtol=2e-2 if name == "narrow" else 1e-5)
    if name != "loop":  # the compiler sums what a loop does not change before it
        assert "all-reduce" not in jit(f).lower(z).compile().as_text()


def test_the_terms_are_on_the_devices() -> None:
    z = jit(square)(put(NUMBERS.T.copy(), None, "x"), put(NUMBERS, "x"))
    for i, shard in enumerate(z.addressable_shards):
        rows = NUMBERS[i // 2 * 2 : i // 2 * 2 + 2]
        np.testing.assert_allclose(shard.data, rows.T @ rows)
    assert not z.is_fully_replicated
    with pytest.raises(ShardingTypeError, match=r"are sums over the devices along .'x'.: compute them"):
        np.asarray(z)
    assert str(z).startswith("Array(shape=(4, 4), dtype=float32, sharding=NamedSharding(")


SPECS = [P(), P("x"), P(None, "x"), P("x", "y"), P(("x", "y")), P(unreduced={"x"}), P("y", unreduced={"x"}),
         P(unreduced={"y", "x"}), P(unreduced={"y"}), P(reduced={"x"})]  # fmt: skip


@pytest.mark.parametrize("target", SPECS, ids=str)
def test_resharding_keeps_values(target: P) -> None:
    for source in SPECS:
        x = put(NUMBERS, *source.partitions, unreduced=source.unreduced, reduced=source.reduced)
        for move in (lambda x: reshard(x, target), lambda x: pullback.device_put(x, target)):
            for out in (move(x), jit(move)(x)):
                assert np.array_equal(summed(out), NUMBERS)
    for f in (lambda x: jnp.sin(x), lambda x: (x * x).sum(0), lambda x: jnp.exp(x.T @ x / 1e4)):
        to = P(unreduced=target.unreduced, reduced=target.reduced)
        out = jit(auto_axes(f, out_sharding=to))(put(NUMBERS, "x"))
        np.testing.assert_allclose(summed(out), f(NUMBERS), rtol=1e-5)


def layers(w: Any, x: Any) -> Any:
    return jnp.tanh(jnp.sin(x @ w) @ w.T).sum()


def test_cotangents_of_reduced_arrays_are_unreduced() -> None:
    w, x = put(NUMBERS[:4] / 20, reduced={"x"}), put(NUMBERS / 50, "x")
    with pullback.set_mesh(None):
        expected = grad(layers, (0, 1))(jnp.asarray(NUMBERS[:4] / 20), jnp.asarray(NUMBERS / 50))
    rematerialised = pullback.checkpoint(layers)
    for f in (layers, jit(layers), rematerialised):
        for g in (grad(f, (0, 1)), jit(grad(f, (0, 1)))):
            of_w, of_x = g(w, x)
            assert of_w.sharding.spec == P(None, None, unreduced={"x"})
            assert of_x.sharding.spec == P("x", None)
            np.testing.assert_allclose(summed(of_w), expected[0], rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(of_x, expected[1], rtol=1e-4, atol=1e-5)


def test_gradients_of_several_batches_are_summed_over_devices_once() -> None:
    def total(w: Any, batches: Any) -> Any:
        zero = reshard(jnp.zeros_like(w), P(unreduced={"x"}))
        added = lax.scan(lambda sums, x: (sums + grad(layers)(w, x), None), zero, batches)[0]
        return reshard(added, P())

    w, batches = put(NUMBERS[:4] / 20, reduced={"x"}), put(np.stack([NUMBERS, -NUMBERS]) / 50, None, "x")
    with pullback.set_mesh(None):
        expected = sum(grad(layers)(jnp.asarray(NUMBERS[:4] / 20), x) for x in np.asarray(batches))
    np.testing.assert_allclose(jit(total)(w, batches), expected, rtol=1e-4, atol=1e-5)
    assert jit(total).lower(w, batches).compile().as_text().count("all-reduce(") == 1


def test_cotangents_of_unreduced_arrays_are_reduced() -> None:
    x = put(NUMBERS / 30, "x")
    f = lambda x: jnp.sin(reshard(2 * square(x.T, x), P())).sum()
    with pullback.set_mesh(None):
        expected = grad(lambda x: jnp.sin(2 * x.T @ x).sum())(jnp.asarray(NUMBERS / 30))
    for g in (grad(f), jit(grad(f)), grad(jit(f))):
        np.testing.assert_allclose(g(x), expected, rtol=1e-4, atol=1e-4)
    ct = pullback.vjp(lambda z: 2 * z, jit(square)(x.T, x))[1]
    assert pullback.typeof(ct(put(SQUARE, None, None, reduced={"x"}))[0]).sharding.spec == P(None, None, reduced={"x"})


def test_results_are_unreduced_where_no_argument_is_sharded() -> None:
    w = lambda: reshard(jnp.asarray(NUMBERS), P(reduced={"x"}))
    out = jit(lambda x: grad(lambda w: (jnp.sin(w) * x).sum())(w()))(2.0)
    assert out.sharding.spec == P(None, None, unreduced={"x"})
    np.testing.assert_allclose(summed(out), 2 * np.cos(NUMBERS), rtol=1e-5)


def test_results_of_a_program_are_unreduced_on_request() -> None:
    x, of_x = put(NUMBERS, "x"), NamedSharding(MESH, P(unreduced={"x"}))
    for f in (lambda x: x, lambda x: jnp.sin(x), lambda x: reshard(x, P(unreduced={"y"}))):
        out = jit(f, out_shardings=of_x)(x)
        assert out.sharding == of_x.update(spec=P(None, None, unreduced={"x"})) or out.sharding == of_x
        np.testing.assert_allclose(summed(out), summed(f(x)), rtol=1e-6)
        back = jit(lambda x: 2 * x, in_shardings=of_x, out_shardings=NamedSharding(MESH, P("x")))(out)
        np.testing.assert_allclose(back, 2 * summed(f(x)), rtol=1e-6)


@pytest.mark.parametrize("unroll", [1, 3, 8])
def test_rows_and_stacked_results_of_loops(unroll: int) -> None:
    f = lambda u: lax.scan(lambda c, x: (c + x, 2 * x), 0 * u[0], u, unroll=unroll)
    for entry in None, "y":
        u = put(NUMBERS, None, entry, unreduced={"x"})
        for last, stacked in (f(u), jit(f)(u)):
            assert stacked.sharding.spec == P(None, entry, unreduced={"x"})
            np.testing.assert_allclose(summed(last), NUMBERS.sum(0), rtol=1e-6)
            np.testing.assert_allclose(summed(stacked), 2 * NUMBERS, rtol=1e-6)


def test_gradients_of_stacked_weights_are_unreduced() -> None:
    def loss(ws: Any, x: Any) -> Any:
        return (lax.scan(lambda c, w: (jnp.tanh(c @ w), None), x, ws)[0] ** 2).sum()

    ws, x = np.stack([SQUARE, -SQUARE, 2 * SQUARE]) / 4000, NUMBERS / 100
    with pullback.set_mesh(None):
        expected = grad(loss)(jnp.asarray(ws), jnp.asarray(x))
    reduced, rows = put(ws, reduced={"x"}), put(x, "x")
    for g in (grad(loss), jit(grad(loss))):
        out = g(reduced, rows)
        assert out.sharding.spec == P(None, None, None, unreduced={"x"})
        np.testing.assert_allclose(summed(out), expected, rtol=1e-4, atol=1e-5)
    assert "all-reduce" not in jit(grad(loss)).lower(reduced, rows).compile().as_text()


U, V, R = (lambda: put(NUMBERS, unreduced={"x"})), (lambda: put(NUMBERS, unreduced={"y"})), (lambda: put(NUMBERS))
REFUSED = [
    (lambda: jnp.sin(U()), "unreduced rule for sin is not implemented"),
    (lambda: U() * U(), "unreduced rule for mul is not implemented"),
    (lambda: U().max(), "unreduced rule for reduce_max is not implemented"),
    (lambda: U() + R(), "must be unreduced along the same mesh axes"),
    (lambda: U() + V(), "must be unreduced along the same mesh axes"),
    (lambda: U() + 1, "must be unreduced along the same mesh axes"),
    (
        lambda: put(NUMBERS, reduced={"x"}) * put(NUMBERS, "x"),
        "cannot be sharded/varying on the same axes that another",
    ),
    (lambda: put(NUMBERS, reduced={"x"}) * R(), "cannot be replicated on the same axes that another input is reduced"),
    (lambda: put(NUMBERS, reduced={"x"}) * put(NUMBERS, reduced={"y"}), "reduced across the same mesh axes"),
    (lambda: jit(lambda x: pullback.pure_callback(np.sin, x, x))(U()), "unreduced rule for pure_callback"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=range(len(REFUSED)))
def test_refused(call: Any, message: str) -> None:
    with pytest.raises(ShardingTypeError, match=message) as caught:
        call()
    assert isinstance(caught.value, NotImplementedError) == message.startswith("unreduced rule")  # as in JAX


def test_extremes_are_not_unreduced() -> None:
    with pytest.raises(UnsupportedArgumentError, match="arrays are unreduced as sums only"):
        reshard(R(), P(unreduced={"x"}, unreduced_kind=UnreducedKind.max))
