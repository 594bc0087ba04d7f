"""ravel_pytree: there and back, dtypes, errors, and under transformations."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as pnp
from pullback.flatten_util import ravel_pytree


def test_there_and_back():
    value = {"a": pnp.ones((2, 2)), "b": (np.int32(3), None), "c": 4.0}
    flat, unravel = ravel_pytree(value)
    np.testing.assert_array_equal(flat, [1, 1, 1, 1, 3, 4])
    assert flat.dtype == np.float32
    again = unravel(2 * flat)
    assert again["a"].shape == (2, 2)
    assert again["b"][0].dtype == np.int32
    assert (int(again["b"][0]), again["b"][1], float(again["c"])) == (6, None, 8.0)


@pytest.mark.parametrize(
    ("leaves", "dtype"),
    [
        ([1, 2], "int32"),
        ([1, 2.0], "float32"),
        ([1.0, 2j], "complex64"),
        ([np.ones(2, "int8"), np.ones((), "uint8")], "int16"),
        ([np.ones(2, "float16"), np.ones(2, "float32")], "float32"),
        ([], "float32"),
        ([pnp.zeros((0, 3))], "float32"),
    ],
)
def test_dtypes(leaves, dtype):
    flat, unravel = ravel_pytree(leaves)
    assert flat.dtype == np.dtype(dtype)
    assert flat.ndim == 1
    for leaf, back in zip(leaves, unravel(flat), strict=True):
        assert back.dtype == ravel_pytree(leaf)[0].dtype
        np.testing.assert_array_equal(back, leaf)


def test_the_vector_must_fit():
    flat, unravel = ravel_pytree({"a": pnp.ones((2, 2)), "b": np.int32(3)})
    with pytest.raises(TypeError, match="expected a vector of dtype float32, got dtype float16"):
        unravel(flat.astype("float16"))
    with pytest.raises(ValueError, match=r"expected a vector of shape \(5,\), got shape \(2,\)"):
        unravel(flat[:2])
    with pytest.raises(ValueError, match=r"expected a vector of shape \(5,\), got shape \(5, 1\)"):
        unravel(flat[:, None])
    with pytest.raises(TypeError, match="got 'a' of type str"):
        ravel_pytree(["a"])
    assert unravel(np.ones(5))["a"].dtype == np.float32


def test_leaves_of_one_dtype_take_that_of_the_vector():
    _, unravel = ravel_pytree((1.0, [2.0]))
    first, (second,) = unravel(pnp.ones(2, "complex64"))
    assert first.dtype == second.dtype == np.complex64


def test_unravel_functions_of_equal_trees_are_equal():
    first, second = ravel_pytree((1.0, [2.0]))[1], ravel_pytree((3.0, [4.0]))[1]
    assert first == second
    assert hash(first) == hash(second)
    assert first != ravel_pytree([1.0, 2.0])[1]
    assert repr(first).startswith("<unravel a vector of 2 elements into")


def test_both_ways_can_be_differentiated():
    value = {"a": pnp.arange(3.0), "b": 2.0}

    def norm(value):
        flat, _ = ravel_pytree(value)
        return pnp.sum(flat**2)

    gradient = pb.grad(norm)(value)
    np.testing.assert_array_equal(gradient["a"], [0, 2, 4])
    assert float(gradient["b"]) == 4.0

    flat, unravel = ravel_pytree(value)
    np.testing.assert_array_equal(pb.grad(lambda flat: norm(unravel(flat)))(flat), 2 * flat)
    _, tangent = pb.jvp(lambda flat: unravel(flat)["a"], (flat,), (2 * flat,))
    np.testing.assert_array_equal(tangent, [0, 2, 4])


def test_batches():
    rows = pb.vmap(lambda a, b: ravel_pytree((a, b))[0])(pnp.ones((4, 2)), pnp.zeros(4))
    np.testing.assert_array_equal(rows, np.tile([1, 1, 0], (4, 1)))
    _, unravel = ravel_pytree((pnp.ones(2), 0.0))
    first, second = pb.vmap(unravel)(rows)
    assert (first.shape, second.shape) == ((4, 2), (4,))
