"""Small things that code written against JAX relies on; each was compared with JAX 0.10.2."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import custom_derivatives, lax

# Objects that are not arrays --------------------------------------------------------------------------------------


class Parameter:
    """An object that says which array it stands for."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return jnp.asarray(self.value)


class Reflecting:
    """An object with the other half of some operators."""

    def __radd__(self, other):
        return "radd"

    def __rmatmul__(self, other):
        return "rmatmul"

    def __eq__(self, other):
        return "eq"

    def __gt__(self, other):
        return "gt"


@pytest.mark.parametrize("wrap", [lambda f: f, pb.jit], ids=["eager", "jit"])
def test_operators_ask_objects_for_the_array_that_they_stand_for(wrap):
    p = Parameter(np.array([1.0, 2.0], np.float32))
    x = jnp.array([3.0, 4.0])
    np.testing.assert_array_equal(wrap(lambda x: x + p)(x), [4, 6])
    np.testing.assert_array_equal(wrap(lambda x: x @ p)(x), 11)
    np.testing.assert_array_equal(wrap(lambda x: x == p)(x), [False, False])
    np.testing.assert_array_equal(wrap(lambda x: x > p)(x), [True, True])
    np.testing.assert_array_equal(wrap(lambda x: jnp.stack([x, jnp.asarray(p)]))(x), [[3, 4], [1, 2]])
    assert pb.grad(lambda x: (x * p).sum())(x).tolist() == [1, 2]


def test_the_array_that_an_object_stands_for_is_not_weakly_typed():
    assert not jnp.asarray(Parameter(2.0)).weak_type
    assert not jnp.array(Parameter(2)).weak_type
    assert jnp.asarray(jnp.asarray(2.0)).weak_type


@pytest.mark.parametrize("wrap", [lambda f: f, pb.jit], ids=["eager", "jit"])
def test_other_objects_get_their_half_of_an_operator(wrap):
    found = []

    def f(x):
        found.extend([x + Reflecting(), x @ Reflecting(), x == Reflecting(), x < Reflecting()])
        return x

    wrap(f)(jnp.ones(2))
    assert found == ["radd", "rmatmul", "eq", "gt"]
    with pytest.raises(TypeError):
        jnp.ones(2) - Reflecting()


@pytest.mark.parametrize("value", [2, 2.0, True, "a", None, len, np.ones(2), np.float64(3), Parameter(1.0), {"a": 1}])
def test_vmap_passes_what_is_not_mapped_as_it_is(value):
    seen = []

    def f(x, y):
        seen.append(y)
        return x

    x = jnp.arange(3.0)
    pb.vmap(f, in_axes=(0, None))(x, value)
    pb.vmap(f, in_axes=(0, None), chunk_size=2)(x, value)
    pb.grad(lambda x: pb.vmap(f, in_axes=(0, None))(x, value).sum())(x)
    if isinstance(value, dict):
        assert all(y == value and type(y["a"]) is int for y in seen)
    else:
        assert len(seen) == 4
        assert all(y is value for y in seen)


def test_numbers_that_vmap_passes_on_keep_their_weak_type():
    assert pb.vmap(lambda x, y: x * y, in_axes=(0, None))(jnp.ones(2, jnp.float16), 2.0).dtype == jnp.float16
    assert pb.vmap(lambda x, y: y, in_axes=(0, None))(jnp.ones(2), 2).tolist() == [2, 2]
    with pytest.raises(TypeError, match="not an array"):
        pb.vmap(lambda x, y: y, in_axes=(0, None))(jnp.ones(2), "a")


# Types ------------------------------------------------------------------------------------------------------------


def test_functions_of_the_type_take_what_has_a_shape_and_a_dtype():
    s = pb.ShapeDtypeStruct((2, 3), jnp.complex64)
    assert (jnp.shape(s), jnp.ndim(s), jnp.size(s), jnp.size(s, 1)) == ((2, 3), 2, 6, 3)
    assert jnp.iscomplexobj(s)
    assert not jnp.isrealobj(s)
    assert jnp.result_type(s, 1) == jnp.complex64
    assert jnp.iscomplexobj([1.0, 2j])
    assert not jnp.iscomplexobj([1, 2])
    assert not jnp.iscomplexobj(None)
    assert jnp.iscomplexobj(np.ones(2, np.complex128))
    assert jnp.shape([[1, 2]]) == (1, 2)
    for f in (jnp.shape, jnp.ndim, jnp.size, jnp.iscomplexobj):
        with pytest.raises(TypeError, match=f"{f.__name__}: expected an array"):
            f("abc")


def test_eval_shape_nests():
    s = pb.ShapeDtypeStruct((2, 3), jnp.float32)
    none = pb.ShapeDtypeStruct((0, 3), jnp.int8)
    inner = pb.eval_shape(lambda x: {"a": pb.eval_shape(jnp.transpose, x), "b": (x + 1, none)}, s)
    assert inner == {"a": pb.ShapeDtypeStruct((3, 2), jnp.float32), "b": (s, none)}
    assert pb.eval_shape(lambda x: jnp.zeros(pb.eval_shape(jnp.ravel, x).shape), s).shape == (6,)
    with pytest.raises(TypeError, match="not an array"):
        pb.eval_shape(lambda x: "a", s)


def test_zero_from_primal_takes_trees():
    zeros = custom_derivatives.zero_from_primal({"a": jnp.ones(2), "b": (1.0, 2), "c": None})
    assert zeros["a"].tolist() == [0, 0]
    assert zeros["b"][0] == 0
    assert zeros["c"] is None
    assert zeros["b"][1].dtype == pb.float0
    of_type = custom_derivatives.zero_from_primal([pb.ShapeDtypeStruct((2,), jnp.float16)])
    assert of_type[0].shape == (2,)
    assert of_type[0].dtype == jnp.float16
    symbolic = custom_derivatives.zero_from_primal([jnp.arange(3)], symbolic_zeros=True)
    assert symbolic[0].shape == (3,)
    assert symbolic[0].dtype == pb.float0
    with pytest.raises(TypeError, match="zero_from_primal: expected an array"):
        custom_derivatives.zero_from_primal({"a": "b"})


def test_empty_arrays_have_the_widest_float():
    assert jnp.array([]).dtype == jnp.float32
    with pb.enable_x64(True):
        assert jnp.array([]).dtype == jnp.float64
        assert jnp.array([[], []]).dtype == jnp.float64
        assert jnp.asarray(()).dtype == jnp.float64
        assert jnp.array([], jnp.int8).dtype == jnp.int8
        assert pb.jit(lambda: jnp.array([]))().dtype == jnp.float64


def test_full_like_is_as_weakly_typed_as_its_model():
    weak = jnp.asarray(1.0)
    assert jnp.full_like(weak, 2).weak_type
    assert pb.jit(lambda x: jnp.full_like(x, 2))(weak).weak_type
    assert not jnp.full_like(weak, 2, jnp.float32).weak_type
    assert not jnp.full_like(jnp.ones(2), 2.0).weak_type


NUMBERS = {"1": 1, "1.": 1.0, "True": True, "f32": np.float32(1), "f16": np.float16(1), "i8": np.int8(1)}


@pytest.mark.parametrize(
    ("first", "second", "dtype", "weak"),
    [
        ("1", "1.", "float32", True), ("1", "f16", "float16", False), ("1.", "i8", "float32", True),
        ("1", "i8", "int8", False), ("True", "1", "int32", True), ("1.", "1.", "float32", True),
        ("f16", "1.", "float16", False), ("f32", "f16", "float32", False),
    ],
)  # fmt: skip
def test_choices_have_the_type_of_promotion(first, second, dtype, weak):
    a, b = (jnp.asarray(NUMBERS[n]) for n in (first, second))
    for out in (jnp.where(True, a, b), pb.jit(lambda c: jnp.where(c, a, b))(True), jnp.select([True], [a], b)):
        assert (out.dtype, out.weak_type) == (jnp.dtype(dtype), weak)


def test_branches_that_differ_in_weak_type_alone_are_strongly_typed():
    out = pb.eval_shape(lambda p: lax.cond(p, lambda: 1.0, lambda: jnp.float32(2)), True)
    assert out.dtype == jnp.float32
    assert not out.weak_type
    assert pb.eval_shape(lambda p: lax.cond(p, lambda: 1.0, lambda: 2.0), True).weak_type
