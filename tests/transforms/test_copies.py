"""Copies stay when their original is donated or deleted; so do results that are operands handed through."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import checkpoint, grad, jit, lax, make_jaxpr, tree, value_and_grad, vjp, vmap
from pullback.core.array import Array, is_on_host
from pullback.core.errors import DeletedArrayError
from pullback.core.jaxpr import jaxpr_as_fun

double = jit(lambda x: 2 * x)
step = jit(lambda p: p - 1, donate_argnums=0)
steps = jit(lambda p, q: (p - 1, q + 1), donate_argnums=(0, 1))


def on_the_host() -> Any:
    return jnp.arange(64.0).reshape(8, 8)


def on_the_device() -> Any:
    return double(on_the_host())


def on_both() -> Any:
    x = on_the_device()
    np.asarray(x)
    return x


def put_there() -> Any:
    x = on_the_host()
    double(x)
    return x


MAKERS = (on_the_host, on_the_device, on_both, put_there)
COPIES: dict[str, Callable[[Any], Any]] = {
    "array": jnp.array,
    "copy": jnp.copy,
    "method": lambda x: x.copy(),
    "copy.copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "astype": lambda x: x.astype(x.dtype, copy=True),
    "function astype": lambda x: jnp.astype(x, x.dtype, copy=True),
    "asarray": lambda x: jnp.asarray(x, copy=True),
    "device_put": lambda x: pullback.device_put(x, may_alias=False),
    "put on its device": lambda x: pullback.device_put(x, pullback.devices()[0]),
    "tree": lambda x: tree.map(jnp.copy, {"a": x})["a"],
    "tree, deeply": lambda x: copy.deepcopy({"a": [x]})["a"][0],
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "copy of a copy": lambda x: jnp.copy(jnp.copy(x)),
    "jit": lambda x: jit(lambda x: x)(x),
    "jit beside others": lambda x: jit(lambda x: (x + 1, x))(x)[1],
    "aux": lambda x: value_and_grad(lambda x: (x.sum(), jnp.copy(x)), has_aux=True)(x)[0][1],
    "barrier": lax.optimization_barrier,
    "positive": lambda x: +x,
    "real": lambda x: x.real,
    "conj": jnp.conj,
    "squeeze": jnp.squeeze,
    "expand_dims": lambda x: jnp.expand_dims(x, ()),
    "ravel": lambda x: x.reshape(64).ravel(),
    "flatten": lambda x: x.flatten(),
    "atleast": jnp.atleast_2d,
    "tile": lambda x: jnp.tile(x, 1),
    "roll": lambda x: jnp.roll(x, 0, 0),
    "swapaxes": lambda x: jnp.swapaxes(x, 1, 1),
    "moveaxis": lambda x: jnp.moveaxis(x, 0, 0),
    "sum": lambda x: jnp.sum(x, axis=()),
    "max": lambda x: jnp.max(x, axis=()),
    "slices": lambda x: x[::-1][::-1],
    "reshape": lambda x: x.reshape(4, 16),
}


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", COPIES)
def test_a_copy_outlives_its_donated_original(make: Any, name: str) -> None:
    for give_up in (step, lambda x: x.delete()):
        x = make()
        expected = np.array(x) if make is not on_the_device else 2 * np.arange(64.0, dtype="f").reshape(8, 8)
        copied = COPIES[name](x)
        assert copied is not x
        assert not copied.weak_type
        give_up(x)
        assert x.is_deleted()
        assert not copied.is_deleted()
        np.testing.assert_array_equal(np.asarray(copied).ravel(), expected.ravel())
        np.testing.assert_array_equal(np.asarray(double(copied)).ravel(), 2 * expected.ravel())
        with pytest.raises(DeletedArrayError):
            COPIES[name](x) + 1


@pytest.mark.parametrize("make", MAKERS)
def test_the_original_outlives_its_donated_copy(make: Any) -> None:
    x = make()
    copied = jnp.copy(x)
    step(copied)
    assert copied.is_deleted()
    np.testing.assert_array_equal(double(x), 2 * np.asarray(x))


def test_an_array_and_its_copy_are_donated_together() -> None:
    x = on_the_device()
    expected = np.array(jnp.copy(x))
    for first, second in (steps(x, jnp.copy(x)), steps(y := on_the_device(), y.copy())):
        np.testing.assert_array_equal(first, expected - 1)
        np.testing.assert_array_equal(second, expected + 1)


def test_a_training_loop_that_keeps_the_parameters_before() -> None:
    @jit
    def loss(p: Any) -> Any:
        return (p["w"] ** 2).sum() + p["b"]

    update = jit(lambda p: tree.map(lambda x, g: x - 0.25 * g, p, grad(loss)(p)), donate_argnums=0)
    p = {"w": jnp.arange(100.0), "b": jnp.asarray(1.0)}
    for k in range(5):
        old = tree.map(jnp.copy, p)
        p = update(p)
        np.testing.assert_array_equal(p["w"], 0.5 * np.asarray(old["w"]))
        np.testing.assert_array_equal(old["w"], 0.5**k * np.arange(100.0))
        assert float(p["b"]) == float(old["b"]) - 0.25


def test_what_need_not_be_a_copy_is_none() -> None:
    x = on_the_device()
    for y in (
        jnp.asarray(x),
        jnp.array(x, copy=False),
        x.astype(x.dtype),
        tree.map(lambda x: x, x),
        jnp.asarray(x, "f"),
    ):
        assert y is x


def test_copies_are_cheap_and_do_not_wait() -> None:
    x = on_the_device()
    y = jnp.copy(x)
    assert not is_on_host(y)
    assert not is_on_host(x)
    assert y._buffer is x._buffer  # one memory, until one of the two is donated
    step(x)
    assert y._buffer.unsafe_buffer_pointer()
    z = on_the_host()
    assert jnp.copy(z)._value is z._value


def test_memory_that_is_not_shared_is_still_taken() -> None:
    x = double(jnp.ones(100_000))
    place = x._buffer.unsafe_buffer_pointer()
    y = step(x)
    assert y._buffer.unsafe_buffer_pointer() == place


def test_copies_keep_the_place_and_the_type() -> None:
    x = pullback.device_put(jnp.ones(3, "bfloat16"), pullback.devices()[0])
    assert x.committed
    assert jnp.copy(x).committed
    np.asarray(x)
    y = copy.deepcopy(x)
    assert y.committed
    assert y.dtype == x.dtype
    assert jnp.copy(jnp.asarray(2.0)).weak_type
    key = pullback.random.key(0)
    assert jnp.copy(key).dtype == key.dtype


def test_copies_of_traced_values() -> None:
    def f(x: Any) -> Any:
        y = jnp.copy(x)
        assert isinstance(y, Array)
        return (jnp.array(y) * x.copy()).sum()

    np.testing.assert_array_equal(grad(f)(jnp.ones(2)), [2, 2])
    np.testing.assert_array_equal(jit(grad(f))(jnp.ones(2)), [2, 2])
    np.testing.assert_array_equal(pullback.hessian(f)(jnp.ones(2)), 2 * np.eye(2))


# Captured arrays that are gone -----------------------------------------------------------------------------------


def _twice(f: Any, *args: Any) -> Any:
    f(*args)
    return lambda: f(*args)


CAPTURES: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "jit": lambda x: _twice(jit(lambda y: y + x), 1.0),
    "jit, not traced yet": lambda x: lambda: jit(lambda y: y + x)(1.0),
    "jit within jit": lambda x: _twice(jit(grad(lambda y: jit(lambda y: (y * x).sum())(y))), 1.0),
    "grad of jit": lambda x: _twice(grad(jit(lambda y: (y * x).sum())), 1.0),
    "vmap of jit": lambda x: _twice(vmap(jit(lambda y: (y * x).sum())), jnp.ones(2)),
    "steps": lambda x: (lambda f: lambda: f(1.0))(jit(lambda y: y + x).lower(1.0).compile()),
    "branch": lambda x: _twice(jit(lambda y: lax.cond(y > 0, lambda: (x * y).sum(), lambda: y)), 1.0),
    "loop": lambda x: _twice(lambda: lax.scan(lambda c, _: (c + x, None), 0 * jnp.ones(1000), None, length=200)),
    "loop under jit": lambda x: _twice(
        jit(lambda: lax.scan(lambda c, _: (c + x, None), jnp.ones(1000), None, length=9))
    ),
    "residual": lambda x: (lambda f: lambda: f(jnp.ones(1000)))(vjp(lambda y: y * jnp.sin(y), x)[1]),
    "captured residual": lambda x: (lambda f: lambda: f(1.0))(vjp(lambda y: (y * x).sum(), 2.0)[1]),
    "checkpoint": lambda x: (lambda f: lambda: f(1.0))(vjp(jit(checkpoint(lambda y: (jnp.sin(y) * x).sum())), 2.0)[1]),
    "jaxpr": lambda x: (lambda f: lambda: f(1.0))(jaxpr_as_fun(make_jaxpr(lambda y: y + x)(1.0))),
    "argument": lambda x: lambda: double(x),
}


@pytest.mark.parametrize("name", CAPTURES)
def test_captured_arrays_that_were_donated_or_deleted_raise(name: str) -> None:
    for give_up in (step, lambda x: x.delete()):
        x = double(jnp.ones(1000))
        call = CAPTURES[name](x)
        give_up(x)
        with pytest.raises(DeletedArrayError, match=r"this array of type f32\[1000\] was deleted: it was donated"):
            call()


def test_residuals_of_compiled_functions_outlive_their_operand() -> None:
    x = double(jnp.ones(1000))
    _, pull = vjp(jit(lambda y: y * y), x)
    step(x)
    assert (np.asarray(pull(jnp.ones(1000))[0]) == 4).all()


def test_an_array_that_is_donated_and_another_operand_too() -> None:
    x = double(jnp.ones(1000))
    assert jit(lambda a, b: a + b, donate_argnums=0)(x, x)[0] == 4
    assert x.is_deleted()
    y = double(jnp.ones(1000))
    add = jit(lambda a: a + y, donate_argnums=0)
    assert add(y)[0] == 4
    with pytest.raises(DeletedArrayError):
        add(jnp.ones(1000))
