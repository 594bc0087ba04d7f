"""``jacfwd``, ``jacrev``, ``jacobian`` and ``hessian``."""

from __future__ import annotations

import tracemalloc
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import float0, grad, hessian, jacfwd, jacrev, jvp, make_jaxpr, tree, vjp, vmap
from pullback.core.array import as_array
from pullback.core.jaxpr import jaxpr_as_fun
from tests.helpers import assert_arrays_close as close

Point = namedtuple("Point", "x y")
x3 = as_array(np.array([0.5, -1.0, 2.0], np.float32))
m23 = as_array(np.arange(6, dtype=np.float32).reshape(2, 3) / 5 - 0.3)


def shapes(x: Any) -> Any:
    return tree.map(lambda leaf: np.shape(leaf), x)


def several(p: Any, q: Any) -> Any:
    return {"m": jnp.sin(p["a"]) * p["b"][0] * q.x, "s": jnp.sum(q.x * q.y), "n": None, "v": (p["a"] * q.y,)}


def arguments() -> Any:
    return {"a": x3, "b": [m23, None]}, Point(m23, 2.0)


# The shapes that JAX 0.10.2 returns for ``several``.
SHAPES: dict[Any, Any] = {
    0: {"m": {"a": (2, 3, 3), "b": [(2, 3, 2, 3), None]}, "n": None, "s": {"a": (3,), "b": [(2, 3), None]},
        "v": ({"a": (3, 3), "b": [(3, 2, 3), None]},)},
    (1,): {"m": (Point((2, 3, 2, 3), (2, 3)),), "n": None, "s": (Point((2, 3), ()),),
           "v": ((Point((3, 2, 3), (3,)),),)},
}  # fmt: skip


@pytest.mark.parametrize("argnums", [0, (1,)])
@pytest.mark.parametrize("chunk_size", [None, 1, 2, 5, 100])
def test_trees_in_and_out(argnums: Any, chunk_size: int | None) -> None:
    p, q = arguments()
    forward = jacfwd(several, argnums, chunk_size=chunk_size)(p, q)
    reverse = jacrev(several, argnums, chunk_size=chunk_size)(p, q)
    assert shapes(forward) == SHAPES[argnums]
    assert shapes(reverse) == SHAPES[argnums]
    close(forward, reverse)
    if argnums == 0:
        close(forward["m"]["b"][0][0, :, 0, :], np.diag(np.sin(np.asarray(x3)) * np.asarray(m23)[0]))
        close(forward["v"][0]["a"], 2 * np.eye(3))


def test_argnums_give_tuples() -> None:
    f = lambda a, b: a * jnp.sum(b)
    for t in (jacfwd, jacrev, pullback.jacobian):
        close(t(f, (0, 1))(x3, x3), (1.5 * np.eye(3), np.outer(x3, np.ones(3))))
        close(t(f, 1)(x3, x3), np.outer(x3, np.ones(3)))
        close(t(f, (-1,))(2.0, 3.0), (2.0,))
    h = hessian(lambda a, b: jnp.sum(a * a * b), (0, 1))(x3, x3)
    d = 2 * np.diag(np.asarray(x3))
    close(h, ((d, d), (d, np.zeros((3, 3)))))


def test_empty_inputs_and_outputs() -> None:
    close(jacfwd(lambda p: x3)({}), {})
    close(jacrev(lambda p: x3)({}), {})
    close(jacfwd(lambda x: {})(x3), {})
    close(jacrev(lambda x: {})(x3), {})
    assert jacfwd(lambda x: x)(jnp.zeros(0)).shape == (0, 0)
    assert jacrev(lambda x: x)(jnp.zeros(0)).shape == (0, 0)
    assert jacrev(lambda x: jnp.zeros(0))(x3).shape == (0, 3)
    assert jacfwd(lambda x: x3)(jnp.zeros(0)).shape == (3, 0)


def test_constants() -> None:
    for t in (jacfwd, jacrev):
        close(t(lambda x: x3)(m23), np.zeros((3, 2, 3)))
        close(t(lambda x: 1.0)(x3), np.zeros(3))
        close(t(lambda x, y: x, 1)(x3, x3), np.zeros((3, 3)))


def test_integer_inputs() -> None:
    f, i = jacrev(lambda f, i: f * i, (0, 1), allow_int=True)(x3, jnp.asarray([1, 2, 3]))
    close(f, np.diag([1.0, 2.0, 3.0]))
    assert (i.dtype, i.shape) == (float0, (3, 3))
    (i,) = jacrev(lambda i: (x3 * i,), allow_int=True)(3)
    assert (i.dtype, i.shape) == (float0, (3,))


def test_holomorphic() -> None:
    z = jnp.asarray([1 + 2j, 0.5j, -1.0 + 0j])
    f = lambda z: jnp.sin(z) * z[0]
    expected = np.diag(np.cos(np.asarray(z)) * np.asarray(z)[0])
    expected[:, 0] += np.sin(np.asarray(z))
    close(jacfwd(f, holomorphic=True)(z), expected)
    close(jacrev(f, holomorphic=True)(z), expected)
    close(jacrev(f, holomorphic=True, chunk_size=2)(z), expected)
    close(hessian(lambda z: jnp.sum(z**3), holomorphic=True)(z), np.diag(6 * np.asarray(z)))
    close(jacrev(lambda z: jnp.real(z * z))(z), np.diag(2 * np.asarray(z)))


def test_dtypes() -> None:
    for t in (jacfwd, jacrev):
        assert t(lambda x: x * x)(x3.astype("float16")).dtype == np.float16
        j = t(lambda a, b: a * b, (0, 1))(x3.astype("bfloat16"), x3)
        assert j[1].dtype == np.float32


def test_hessians() -> None:
    f = lambda x: jnp.sum(x**3) + x[0] * x[1]
    expected = np.diag(6 * np.asarray(x3))
    expected[0, 1] = expected[1, 0] = 1
    for h in (
        hessian(f),
        hessian(f, chunk_size=2),
        jacrev(jacrev(f)),
        jacfwd(jacfwd(f)),
        jacrev(jacfwd(f)),
        jacfwd(grad(f)),
    ):
        close(h(x3), expected)
    close(vmap(hessian(f))(jnp.stack([x3, x3])), np.stack([expected] * 2))
    nested = hessian(lambda p: {"s": jnp.sum(p["a"]) * p["b"] ** 2})({"a": x3, "b": 2.0})
    close(nested, {"s": {"a": {"a": np.zeros((3, 3)), "b": np.full(3, 4.0)}, "b": {"a": np.full(3, 4.0), "b": 3.0}}})
    assert hessian(jnp.tanh)(m23).shape == (2, 3, 2, 3, 2, 3)


def test_aux_is_not_mapped() -> None:
    for t in (jacfwd, jacrev, hessian):
        _, aux = t(lambda x: (jnp.sin(x), {"x": x, "sum": jnp.sum(x), "name": "n"}), has_aux=True)(x3)
        close((aux["x"], aux["sum"]), (x3, 1.5))
        assert aux["name"] == "n"
        _, aux = t(lambda x: (x, x), has_aux=True, **({} if t is hessian else {"chunk_size": 2}))(x3)
        close(aux, x3)


def test_with_other_transformations() -> None:
    f = lambda x: jnp.sin(x) * x[0]
    for t in (jacfwd, jacrev):
        j = np.asarray(t(f)(x3))
        close(jaxpr_as_fun(make_jaxpr(t(f))(x3))(x3)[0], j)
        close(vmap(t(f))(jnp.stack([x3, 2 * x3]))[0], j)
        close(vjp(f, x3)[1](x3)[0], np.asarray(x3) @ j)
        close(jvp(f, (x3,), (x3,))[1], j @ np.asarray(x3))
        close(grad(lambda x, t=t: jnp.sum(t(f)(x) ** 2))(x3), grad(lambda x: jnp.sum(jacfwd(f)(x) ** 2))(x3))


def test_chunks_bound_the_memory() -> None:
    """The basis too is made a chunk at a time."""
    n = 2_000

    def peak(t: Any, f: Any, **options: Any) -> float:
        """In arrays of n float32."""
        x = jnp.ones(n)
        tracemalloc.start()
        t(f, **options)(x)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used / (4 * n)

    to_a_number = lambda x: jnp.sum(jnp.sin(x) * x)
    assert peak(jacfwd, to_a_number) > 2 * n
    assert peak(jacfwd, to_a_number, chunk_size=10) < 100
    # The Jacobian itself has n rows, and is put together from its parts.
    assert peak(jacrev, lambda x: jnp.sin(x) * x, chunk_size=10) < 2.2 * n
