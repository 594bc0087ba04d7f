"""Unreduced and reduced values within ``shard_map``: the elements, and those of cotangents, over eight devices."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import NamedSharding, P, checkpoint, disable_jit, grad, jit, jvp, lax, shard_map, value_and_grad, vmap
from pullback.core import dtypes
from pullback.errors import UnsupportedArgumentError
from pullback.sharding import reshard
from tests.grid.explicit_laws import values_of
from tests.grid.test_explicit_shardings import OPERATIONS, reduced_gradients
from tests.helpers import chosen

MESH = pullback.make_mesh((4, 2), ("x", "y"))
NUMBERS = np.arange(1.0, 33, dtype=np.float32).reshape(8, 4) / 20
ROW = np.arange(1.0, 5, dtype=np.float32)


@pytest.fixture(autouse=True)
def the_mesh() -> Any:
    with pullback.set_mesh(MESH):
        yield


def put(value: Any, *entries: Any, **axes: Any) -> Any:
    return pullback.device_put(value, NamedSharding(MESH, P(*entries, **axes)))


def whole(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(reshard(x, P(*[None] * x.ndim)))


def rows_of(x: Any) -> np.ndarray[Any, Any]:
    """The sum of the rows that the devices along ``x`` have: terms of a sum."""
    return np.asarray(x).reshape(4, -1, *x.shape[1:]).sum(0)


def through(f: Any, out_specs: P, *operands: Any, **options: Any) -> Any:
    """The result of ``f`` on shards; compiled and in eager code it is the same."""
    mapped = shard_map(f, out_specs=out_specs, **options)
    out, again = mapped(*operands), jit(mapped)(*operands)
    assert out.sharding.is_equivalent_to(again.sharding, out.ndim)  # that of eager code is as written
    np.testing.assert_allclose(whole(out), whole(again), rtol=1e-6)
    return out


def test_casts_move_no_elements() -> None:
    out = through(lambda v: lax.pcast(v, "x", to="unreduced"), P(unreduced={"x"}), put(NUMBERS, "x"))
    assert out.sharding.spec == P(unreduced={"x"})
    for i, shard in enumerate(out.addressable_shards):
        np.testing.assert_array_equal(shard.data, NUMBERS[i // 2 * 2 : i // 2 * 2 + 2])
    np.testing.assert_allclose(whole(out), rows_of(NUMBERS), rtol=1e-6)
    reduced = through(lambda i: lax.pcast(i, "x", to="reduced"), P(reduced={"x"}), put(NUMBERS))
    np.testing.assert_array_equal(whole(reduced), NUMBERS)
    np.testing.assert_array_equal(through(lambda r: r, P("x"), reduced), np.concatenate([NUMBERS] * 4))


def test_collectives() -> None:
    terms = put(NUMBERS, unreduced={"x"})
    for f, spec in [
        (lambda u: lax.psum(u, "x"), P()),
        (lambda u: lax.psum_scatter(u, "x", tiled=True), P("x")),
        (lambda u: lax.psum_scatter(u.reshape(4, 2, 4), "x")[None].reshape(2, 4), P("x")),
        (lambda u: lax.pmean(u, "x") * 4, P()),
    ]:
        np.testing.assert_allclose(whole(through(f, spec, terms)), NUMBERS, rtol=1e-6)
    gathered = through(lambda v: lax.all_gather(v, "x", tiled=True, to="reduced"), P(reduced={"x"}), put(NUMBERS, "x"))
    np.testing.assert_array_equal(whole(gathered), NUMBERS)
    both = put(NUMBERS, unreduced={"x", "y"})
    np.testing.assert_allclose(through(lambda u: lax.psum(u, ("y", "x")), P(), both), NUMBERS, rtol=1e-6)
    one = through(lambda u: lax.psum(u, "y"), P(unreduced={"x"}), both)
    np.testing.assert_allclose(whole(one), NUMBERS, rtol=1e-6)


def layer(x: Any, w: Any) -> Any:
    return jnp.tanh(jnp.sin(x @ w) @ w.T)


def loss(w: Any, x: Any) -> Any:
    """The loss of weights of any kind, of which the devices have whole copies."""
    return shard_map(layer, in_specs=(P("x"), P(reduced={"x"})), out_specs=P("x"))(x, w).sum()


def test_gradients_of_reduced_weights() -> None:
    w, x = put(NUMBERS[:4] / 3, reduced={"x"}), put(NUMBERS / 5, "x")
    with pullback.set_mesh(None):
        expected = grad(lambda w, x: layer(x, w).sum(), (0, 1))(jnp.asarray(NUMBERS[:4] / 3), jnp.asarray(NUMBERS / 5))
    for f in (loss, jit(loss), checkpoint(loss)):
        for g in (grad(f, (0, 1)), jit(grad(f, (0, 1)))):
            of_w, of_x = g(w, x)
            assert of_w.sharding.spec == P(None, None, unreduced={"x"})
            assert of_x.sharding.spec == P("x", None)
            np.testing.assert_allclose(whole(of_w), expected[0], rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(of_x, expected[1], rtol=1e-4, atol=1e-5)
    assert "all-reduce" not in jit(grad(loss)).lower(w, x).compile().as_text()


def test_gradients_of_several_batches_are_summed_over_devices_once() -> None:
    def total(w: Any, batches: Any) -> Any:
        def body(w: Any, batches: Any) -> Any:
            zero = lax.pcast(lax.pcast(jnp.zeros_like(ROW), "x", to="varying"), "x", to="unreduced") * w.sum()
            step = lambda sums, x: (sums + grad(lambda w: layer(x, w).sum())(w), None)
            sums = zero[:, None] * jnp.zeros_like(w)
            return lax.psum(lax.scan(step, sums, batches)[0], "x")

        return shard_map(body, out_specs=P())(w, batches)

    w, batches = put(NUMBERS[:4] / 3, reduced={"x"}), put(np.stack([NUMBERS, -NUMBERS]) / 5, None, "x")
    with pullback.set_mesh(None):
        one = lambda x: grad(lambda w: layer(x, w).sum())(jnp.asarray(NUMBERS[:4] / 3))
        expected = sum(one(x) for x in np.asarray(batches))
    np.testing.assert_allclose(jit(total)(w, batches), expected, rtol=1e-4, atol=1e-5)
    assert jit(total).lower(w, batches).compile().as_text().count("all-reduce(") == 1


def test_gradients_through_casts_and_collectives() -> None:
    def shards(a: Any, b: Any) -> Any:
        terms = lax.pcast(a @ b, "x", to="unreduced")
        return lax.psum_scatter(terms, "x", tiled=True)

    def f(a: Any, b: Any) -> Any:
        return jnp.sin(shard_map(shards, out_specs=P("x"))(a, b)).sum()

    a, b = put(NUMBERS.T.copy(), None, "x"), put(NUMBERS, "x")
    with pullback.set_mesh(None):
        plain = lambda a, b: jnp.sin(a @ b).sum()
        expected = grad(plain, (0, 1))(jnp.asarray(NUMBERS.T), jnp.asarray(NUMBERS))
        tangent = jvp(plain, (NUMBERS.T, NUMBERS), (NUMBERS.T, NUMBERS))[1]
    for g in (grad(f, (0, 1)), jit(grad(f, (0, 1)))):
        for out, wanted in zip(g(a, b), expected, strict=True):
            np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(jit(lambda: jvp(f, (a, b), (a, b))[1])(), tangent, rtol=1e-4)


def test_a_gradient_of_the_loss_within() -> None:
    def body(w: Any, x: Any) -> Any:
        return value_and_grad(lambda w: lax.psum(layer(x, w).sum(), "x"))(w)

    w, x = put(NUMBERS[:4] / 3, reduced={"x"}), put(NUMBERS / 5, "x")
    with pullback.set_mesh(None):
        expected = value_and_grad(lambda w: layer(NUMBERS / 5, w).sum())(jnp.asarray(NUMBERS[:4] / 3))
    value, ct = shard_map(body, out_specs=(P(), P(unreduced={"x"})))(w, x)
    np.testing.assert_allclose(value, expected[0], rtol=1e-5)
    np.testing.assert_allclose(whole(ct), expected[1], rtol=1e-4, atol=1e-5)
    same = shard_map(grad(lambda w: (w * w).sum()), out_specs=P(unreduced={"x"}))(w)  # of a loss that is reduced
    np.testing.assert_allclose(whole(same), 2 * NUMBERS[:4] / 3, rtol=1e-6)


def test_a_nonlinear_transposition_sums_the_terms_before() -> None:
    body = lambda w: grad(lambda w: grad(lambda w: jnp.linalg.slogdet(w)[1])(w).sum())(w)
    w = NUMBERS[:4] + 2 * np.eye(4, dtype=np.float32)
    out = shard_map(body, out_specs=P(unreduced={"x"}))(put(w, reduced={"x"}))
    with pullback.set_mesh(None):
        expected = body(jnp.asarray(w))
    np.testing.assert_allclose(whole(out), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["sum", "scatter", "same", "terms"])
def test_gradients_without_states_in_types(name: str) -> None:
    f, source, out = {
        "sum": (lambda u: lax.psum(u, "x"), {"unreduced": {"x"}}, P()),
        "scatter": (lambda u: lax.psum_scatter(u, "x", tiled=True), {"unreduced": {"x"}}, P("x")),
        "same": (lambda r: r, {"reduced": {"x"}}, P(reduced={"x"})),
        "terms": (lambda r: r * lax.axis_index("x"), {"reduced": {"x"}}, P(unreduced={"x"})),
    }[name]
    factor = 6 if name == "terms" else 1
    x = put(NUMBERS, **source)
    mapped = shard_map(f, out_specs=out, check_vma=False)
    np.testing.assert_allclose(whole(mapped(x)), factor * NUMBERS, rtol=1e-6)
    ct = grad(lambda x: jnp.sin(reshard(mapped(x), P(None, None))).sum())(x)
    assert ct.sharding.spec == P(None, None, unreduced=source.get("reduced", ()), reduced=source.get("unreduced", ()))
    np.testing.assert_allclose(whole(ct), factor * np.cos(factor * NUMBERS), rtol=1e-4, atol=1e-5)


def test_batches() -> None:
    f = shard_map(lambda u, r: lax.psum_scatter(u * r, "x"), out_specs=P("x"))
    u, r = put(np.stack([NUMBERS[:4], NUMBERS[4:]]), unreduced={"x"}), put(NUMBERS[:4], reduced={"x"})
    for g in (vmap(f, (0, None)), jit(vmap(f, (0, None)))):
        expected = (np.asarray(whole(u)) * NUMBERS[:4]).reshape(2, 16)
        np.testing.assert_allclose(g(u, r), expected, rtol=1e-6)
    within = shard_map(vmap(lambda u: lax.psum(jnp.cumsum(u), "x")), out_specs=P())
    np.testing.assert_allclose(within(put(NUMBERS, unreduced={"x"})), np.cumsum(NUMBERS, 1), rtol=1e-5)


def test_rows_and_stacked_results_of_loops() -> None:
    f = lambda u: lax.scan(lambda c, x: (c + x, 2 * x), 0 * u[0], u)[1]
    np.testing.assert_allclose(whole(through(f, P(unreduced={"x"}), put(NUMBERS, unreduced={"x"}))), 2 * NUMBERS)


def test_the_seed_of_a_loss_that_is_the_same_on_several_axes() -> None:
    square = shard_map(grad(lambda w: (w * w).sum()), out_specs=P(unreduced={"x", "y"}))
    np.testing.assert_allclose(whole(square(put(NUMBERS, reduced={"x", "y"}))), 2 * NUMBERS, rtol=1e-6)


def test_programs_that_differ_in_reduced_axes_only() -> None:
    for f in (lambda x: x * 3 + x, jit(lambda x: x * 3 + x)):
        assert f(put(NUMBERS, reduced={"x"})).sharding.spec == P(None, None, reduced={"x"})
        assert f(put(NUMBERS)).sharding.spec == P(None, None)
        assert f(put(NUMBERS, reduced={"y"})).sharding.spec == P(None, None, reduced={"y"})


def test_devices_in_turn_have_no_states() -> None:
    with disable_jit(), pytest.raises(UnsupportedArgumentError, match="unreduced or reduced axes"):
        shard_map(lambda x: x, out_specs=P(reduced={"x"}))(put(NUMBERS, reduced={"x"}))


def _gradients(f: Any, moving: list[int], *xs: Any) -> Any:
    return reduced_gradients(f, xs, moving)[1]


# The laws of types are tested of all in tests/grid; these compile over eight devices.
@pytest.mark.parametrize("name", chosen(list(OPERATIONS)[::16], list(OPERATIONS)))
def test_gradients_of_all_operations(name: str) -> None:
    for spec in OPERATIONS[name]:
        args = values_of(spec)
        moving = [i for i, x in enumerate(args) if dtypes.is_inexact(x.dtype)]
        if not (spec.derivative and moving and all(x.size for x in args)):
            continue
        gradients = partial(_gradients, spec.function, moving)
        with pullback.set_mesh(None):
            plain = jit(gradients)(*args)
        operands = [put(x, reduced={"x"} if i in moving else ()) for i, x in enumerate(args)]
        outs = shard_map(gradients, out_specs=P(unreduced={"x"}))(*operands)
        for out, expected in zip(outs, plain, strict=True):
            np.testing.assert_allclose(whole(out), expected, rtol=2e-3, atol=2e-4)
        return
    pytest.skip("it has no derivative")
