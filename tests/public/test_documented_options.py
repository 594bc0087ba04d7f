"""Options that few use: what they do, and which values are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax
from pullback.core.errors import BatchAxisError, DtypeError, UnsupportedArgumentError

X = np.arange(6.0, dtype="float32").reshape(3, 2)


@pytest.mark.parametrize("chunk_size", [None, 2])
def test_vmap_sums_results_without_an_axis_if_asked_to(chunk_size: Any) -> None:
    both = pullback.vmap(
        lambda x: (x, x * 2, 7.0), out_axes=(None, 0, None), sum_match=True, chunk_size=chunk_size
    )  # fmt: skip
    for mapped in (both, pullback.jit(both)):
        summed, rows, same = mapped(X)
        np.testing.assert_array_equal(summed, X.sum(0))
        np.testing.assert_array_equal(rows, 2 * X)
        assert float(same) == 7
    np.testing.assert_array_equal(pullback.grad(lambda x: both(x)[0].sum())(X), np.ones((3, 2)))
    with pytest.raises(BatchAxisError, match="out_axes is None for a result that depends"):
        pullback.vmap(lambda x: x, out_axes=None)(X)


def test_einsum_by_another_product() -> None:
    calls = []

    def product(x: Any, y: Any, numbers: Any, precision: Any, preferred_element_type: Any) -> Any:
        calls.append((numbers, precision, preferred_element_type))
        return lax.dot_general(x, y, numbers)

    for formula, arrays in (("ij,jk", (X, X.T)), ("ij,jk->ki", (X, X.T)), ("ij,kj,k", (X, X, X[:, 0]))):
        expected = np.einsum(formula, *arrays)
        found = jnp.einsum(formula, *arrays, _dot_general=product, precision="highest")
        np.testing.assert_allclose(found, expected)
        assert calls[-1][1:] == ("highest", None)
    assert len(calls) == 4
    np.testing.assert_array_equal(jnp.einsum("ij,ij->ij", X, X, _dot_general=product), X * X)  # no sums: no product
    assert len(calls) == 4


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pullback.checkpoint(jnp.sin, concrete=True), UnsupportedArgumentError, "use static_argnums"),
        (lambda: lax.all_gather(X, "i", to="whole"), UnsupportedArgumentError, "got to='whole'"),
        (lambda: pullback.ShapeDtypeStruct((), "f4", manual_axis_type=1), UnsupportedArgumentError, "_axis_type=1"),
        (lambda: pullback.debug.breakpoint(backend="web"), UnsupportedArgumentError, "got 'web'"),
        (lambda: pullback.dtypes.canonicalize_dtype(pullback.random.key(0).dtype), DtypeError, "allow_extended_dtype"),
        (
            lambda: pullback.pure_callback(np.sin, X, X, sharding=Several()),
            UnsupportedArgumentError, "the sharding has several devices",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


class Several:
    device_set = frozenset({0, 1})


def test_extended_dtypes_are_allowed_if_asked_for() -> None:
    dtype = pullback.random.key(0).dtype
    assert pullback.dtypes.canonicalize_dtype(dtype, allow_extended_dtype=True) == dtype
    one = pullback.sharding.SingleDeviceSharding(pullback.devices()[0])
    np.testing.assert_array_equal(pullback.pure_callback(np.sin, X, X, sharding=one), np.sin(X))


@pytest.mark.parametrize("jitted", [True, False])
def test_two_passes_as_two_functions(jitted: bool) -> None:
    def f(x: Any, y: Any, z: Any) -> Any:
        return jnp.sin(x["a"]) * y, z

    x, y = {"a": jnp.asarray(2.0)}, jnp.asarray(3.0)
    forward, backward = pullback.fwd_and_bwd(f, argnums=(1, 0), has_aux=True, jitted=jitted)
    out, residuals, aux = forward(x, y, 5.0)
    assert float(aux) == 5
    np.testing.assert_allclose(out, 3 * np.sin(2), rtol=1e-6)
    for cotangent in (1.0, 2.0):  # as often as wanted
        of_y, of_x = backward(residuals, jnp.asarray(cotangent))
        np.testing.assert_allclose([of_y, of_x["a"]], cotangent * np.array([np.sin(2), 3 * np.cos(2)]), rtol=1e-6)
    forward, backward = pullback.fwd_and_bwd(lambda x, y: x * y, -1, jitted=jitted)
    np.testing.assert_array_equal(backward(forward(X, X + 1)[1], jnp.ones((3, 2))), X)


# Options of JAX 0.12 -------------------------------------------------------------------------------------------------


def product(x: Any, y: Any) -> Any:
    return jnp.sin(x["a"]) * x["b"] * y


@pytest.mark.parametrize(
    ("in_nzs", "expected"),
    [
        (None, ({"a": 6.0, "b": 0.0}, 0.0)),
        ((True, False), ({"a": 6.0, "b": 0.0}, 0.0)),
        (({"a": False, "b": True}, True), ({"a": 0.0, "b": 0.0}, 0.0)),
        (False, ({"a": 0.0, "b": 0.0}, 0.0)),
    ],
)
@pytest.mark.parametrize("transform", [lambda f: f, pullback.jit])
def test_derivatives_by_some_arguments(in_nzs: Any, expected: Any, transform: Any) -> None:
    point = ({"a": 0.0, "b": 2.0}, 3.0)

    def pulled(x: Any, y: Any) -> Any:
        return pullback.vjp(product, x, y, in_nzs=in_nzs)[1](1.0)

    assert pullback.tree.map(float, transform(pulled)(*point)) == expected
    _, pushed = pullback.linearize(product, *point, in_nzs=in_nzs)
    assert float(pushed({"a": 1.0, "b": 1.0}, 1.0)) == expected[0]["a"]


def test_what_in_nzs_refuses() -> None:
    for wrong in ((True, True), 3):
        with pytest.raises(ValueError, match="vjp: in_nzs must be booleans in the tree of the arguments"):
            pullback.vjp(jnp.sin, 1.0, in_nzs=wrong)


def test_custom_gradient_as_a_decorator_with_options() -> None:
    @pullback.custom_gradient(with_logs=False)
    def f(x: Any) -> Any:
        return x**2, lambda ct: (ct * x,)

    assert pullback.grad(f)(3.0) == 3
    for option in ({"remat": True}, {"with_accums": (1,)}):
        with pytest.raises(NotImplementedError, match=f"custom_gradient: {next(iter(option))}="):
            pullback.custom_gradient(f, **option)  # type: ignore[call-overload]


@pytest.mark.parametrize("name", ["gamma", "loggamma", "beta", "chisquare", "poisson"])
def test_methods_of_random_numbers(name: str) -> None:
    draw, key = getattr(pullback.random, name), pullback.random.key(0)
    parameters = (2.0, 3.0) if name == "beta" else (2.0,)
    expected = draw(key, *parameters, (3,))
    np.testing.assert_array_equal(draw(key, *parameters, (3,), method="approximate"), expected)
    with pytest.raises(ValueError, match=f"{name}: method must be 'exact' or 'approximate', got 'fast'"):
        draw(key, *parameters, method="fast")


def test_options_of_arrays() -> None:
    mesh = pullback.make_mesh(axis_sizes=(1,), axis_names=("i",))
    assert mesh == pullback.make_mesh((1,), ("i",)) == pullback.make_mesh(axis_shapes=(1,), axis_names=("i",))
    with pytest.raises(TypeError, match="make_mesh takes axis_sizes, or axis_shapes"):
        pullback.make_mesh(axis_names=("i",))
    spread = pullback.NamedSharding(mesh, pullback.P("i"))
    assert lax.reduce_max(X, (1,), out_sharding=spread).tolist() == [1, 3, 5]
    assert pullback.nn.one_hot(np.array([1]), 2, out_sharding=spread).tolist() == [[0, 1]]
    assert jnp.histogram(X, 2, out_sharding=spread)[0].tolist() == [3, 3]
    assert jnp.lexsort((X[:, 0],), batch_size=1).tolist() == [0, 1, 2]
    assert lax.top_k(X[:, 0], 1, is_stable=False)[1].tolist() == [2]
    assert lax.erfc(0.0, accuracy=lax.Tolerance(ulps=2)) == 1
    assert pullback.new_ref(1.0, pin=True)[...] == 1
    for sets in ({"unreduced": {"i"}}, {"reduced": {"i"}}):
        with pytest.raises(ValueError, match="partitions cannot overlap with"):
            pullback.P("i", **sets)  # type: ignore[arg-type]
