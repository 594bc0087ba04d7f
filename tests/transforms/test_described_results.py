"""What stands for arrays without being any: descriptions as results and operands, keys' dtypes, zeros of trees."""

import copy
import pickle

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import ShapeDtypeStruct, dtypes, eval_shape, grad, jit, make_jaxpr, new_ref, typeof, vmap
from pullback.core.jaxpr import jaxpr_as_fun
from pullback.custom_derivatives import SymbolicZero, zero_from_primal
from pullback.errors import OperandError

STRUCT = ShapeDtypeStruct((5, 2), "float16")


def test_a_result_may_be_a_description():
    assert eval_shape(lambda: STRUCT) == STRUCT
    found = eval_shape(lambda x: {"a": x + 1, "b": (STRUCT, 2.0)}, ShapeDtypeStruct((3,), "int32"))
    assert found["a"] == ShapeDtypeStruct((3,), "int32")
    assert found["b"][0] == STRUCT
    assert found["b"][1].dtype == np.float32
    assert found["b"][1].weak_type


def test_a_large_description_is_never_an_array():
    vast = ShapeDtypeStruct((1 << 20, 1 << 20), "float32")
    assert eval_shape(lambda: (vast, 1.0))[0] == vast


def test_what_computes_refuses_descriptions():
    for transformed in (jit(lambda x: STRUCT), vmap(lambda x: STRUCT), grad(lambda x: STRUCT)):
        with pytest.raises(OperandError, match="ShapeDtypeStruct"):
            transformed(pnp.ones(2))
    with pytest.raises(OperandError, match="got <object"):
        eval_shape(lambda: (STRUCT, object()))


def test_a_description_is_a_constant_of_a_program():
    """As in JAX 0.10.2."""
    weak = ShapeDtypeStruct((), "float32", weak_type=True)
    closed, shape = make_jaxpr(lambda x: (x, STRUCT, {"w": weak, "again": STRUCT}), return_shape=True)(1.0)
    assert shape == (weak, STRUCT, {"w": weak, "again": STRUCT})
    assert str(closed) == "{ lambda a:f16[5,2] b:f32[]; c:f32[]. let  in (c, a, a, b) }"
    assert closed.consts == [STRUCT, weak]
    assert jaxpr_as_fun(closed)(2.0) == [2.0, STRUCT, STRUCT, weak]
    assert len(make_jaxpr(lambda x: STRUCT)(1.0).eqns) == 0
    with pytest.raises(OperandError, match="got <object"):
        make_jaxpr(lambda x: (STRUCT, object()))(1.0)


def test_the_type_of_a_description_and_of_a_reference():
    assert typeof(STRUCT) == typeof(pnp.ones((5, 2), "float16"))
    assert typeof(ShapeDtypeStruct((), "int32", weak_type=True)) == typeof(1)
    assert str(typeof(new_ref(pnp.ones(2)))) == "Ref{float32[2]}"
    assert (STRUCT.is_ref, STRUCT.manual_axis_type) == (False, None)
    for x in ("a", [1.0], None, typeof(1)):
        with pytest.raises(TypeError, match="expected an array"):
            typeof(x)


def test_functions_of_types_take_descriptions():
    assert (pnp.shape(STRUCT), pnp.ndim(STRUCT), pnp.size(STRUCT), pnp.size(STRUCT, 1)) == ((5, 2), 2, 10, 2)
    assert pnp.isrealobj(STRUCT)
    assert pnp.iscomplexobj(ShapeDtypeStruct((), "complex64"))
    assert not pnp.iscomplexobj(None)
    with pytest.raises(OperandError, match="shape"):
        pnp.shape(object())


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_the_elements_of_keys_have_the_name_of_their_kind(impl):
    key = pullback.random.key(0, impl=impl)
    assert key.dtype.type.__name__ == "prng_key"
    assert issubclass(key.dtype.type, dtypes.prng_key)
    assert pnp.issubdtype(key.dtype, dtypes.prng_key)
    assert not pnp.issubdtype(key.dtype, np.flexible)
    again = pickle.loads(pickle.dumps(key))
    assert again.dtype.type.__name__ == "prng_key"
    for keys in (again, jit(lambda k: k)(key), pnp.stack([key, key]), vmap(lambda k: k)(key[None])):
        assert keys.dtype == key.dtype
        assert keys.dtype.type.__name__ == "prng_key"


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_the_dtype_of_keys_prints_compares_and_converts_as_in_jax(impl):
    name = {"threefry2x32": "key<fry>", "rbg": "key<rbg>", "unsafe_rbg": "key<urbg>"}[impl]
    key = pullback.random.key(0, impl=impl)
    seen = [pullback.random.key_dtype(impl), key.dtype, key.aval.dtype, typeof(key).dtype, pnp.result_type(key)]
    words = 2 if impl == "threefry2x32" else 4
    jit(lambda k: seen.append(k.dtype))(key)
    vmap(lambda k: seen.append(k.dtype) or 0)(key[None])
    made = [
        eval_shape(lambda: key), jit(lambda k: k)(key), pullback.random.split(key, 3), pnp.stack([key, key]),
        pnp.zeros(2, key.dtype), pullback.random.wrap_key_data(pnp.zeros(words, "uint32"), impl=impl),
        pickle.loads(pickle.dumps(key)), copy.deepcopy(key), ShapeDtypeStruct((2,), key.dtype),
        pullback.core.ShapedArray((), key.dtype), pullback.lax.cond(True, lambda: key, lambda: key),
    ]  # fmt: skip
    for dtype in seen + [x.dtype for x in made]:
        assert (repr(dtype), str(dtype), f"{dtype}", dtype.name) == (name, name, name, name)
        assert dtype == key.dtype
        assert (dtype != key.dtype) is False
        assert hash(dtype) == hash(key.dtype)
        assert dtype is key.dtype
    assert pickle.loads(pickle.dumps(key.dtype)) is copy.deepcopy(key.dtype) is key.dtype
    assert key.dtype.itemsize == key.itemsize == 4 * words
    assert pnp.issubdtype(key.dtype, dtypes.extended)
    assert not pnp.issubdtype(key.dtype, np.floating)
    assert pnp.issubdtype(key.dtype, key.dtype)
    for other in (np.float32, pnp.uint32, name, np.dtype("uint32"), dtypes.float0):
        assert key.dtype != other
    assert not isinstance(key.dtype, np.dtype)
    assert not hasattr(key.dtype, "shape")  # no array, then


def test_numpy_takes_the_dtype_of_keys_for_that_of_their_elements():
    dtype = pullback.random.key(0).dtype
    assert np.dtype(dtype) == dtype == np.zeros(2, dtype).dtype
    assert np.dtype(dtype).names == dtype.names == ("fry",)


def test_zeros_of_a_tree():
    dense = zero_from_primal((1.0, {"n": pnp.arange(3), "none": None}))
    assert dense[0] == 0.0
    assert dense[1]["n"].dtype == dtypes.float0
    assert dense[1]["n"].shape == (3,)
    assert dense[1]["none"] is None
    symbolic = zero_from_primal([1.0, pnp.arange(3)], symbolic_zeros=True)
    assert all(type(zero) is SymbolicZero for zero in symbolic)
    with pytest.raises(OperandError, match="zero_from_primal"):
        zero_from_primal((1.0, "a"))


def test_zeros_of_a_tree_in_a_rule():
    @pullback.custom_jvp
    def rooted(x):
        return pnp.sqrt(x), (x, pnp.int32(3))

    @rooted.defjvp
    def rule(primals, tangents):
        out = rooted(*primals)
        return out, (tangents[0] / (2 * out[0]), zero_from_primal(out[1], symbolic_zeros=True))

    def f(x):
        root, (same, steps) = rooted(x)
        return root + same * 10 + steps

    assert grad(f)(4.0) == 0.25
    assert jit(grad(f))(4.0) == 0.25
    assert vmap(grad(f))(pnp.array([4.0, 16.0])).tolist() == [0.25, 0.125]


def test_a_dtype_of_a_described_array_must_be_given():
    with pytest.raises(ValueError, match="pass a dtype, got None"):
        pullback.ShapeDtypeStruct((2,), None)
