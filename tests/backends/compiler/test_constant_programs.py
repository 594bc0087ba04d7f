"""Programs without arguments, which the compiler computes itself: eager and compiled have the same bits."""

import itertools

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import lax

DTYPES = [
    "bool", "int4", "uint4", "int8", "uint8", "int32", "uint32", "float16", "bfloat16", "float32", "complex64",
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz",
]  # fmt: skip
SAME_WIDTH = {"float16": "int16", "bfloat16": "uint16", "float32": "uint32", "int32": "float32", "float8_e5m2": "int8"}
I = jnp.arange(2)


def wide(x):
    """In a dtype that all operations have, so that the program ends with a conversion."""
    return x.astype(jnp.complex64 if jnp.iscomplexobj(x) else jnp.float32)


ENDS = {
    "transpose": lambda x: x.transpose(2, 0, 1),
    "swapaxes": lambda x: jnp.swapaxes(x, 0, 1),
    "diagonal by indices": lambda x: x[:, I, I],
    "indices apart": lambda x: x[I, :, I],
    "take": lambda x: jnp.take(x, jnp.array([1, 0, 1]), axis=2),
    "reversed": lambda x: x[::-1].transpose(1, 2, 0),
    "reshape": lambda x: x.transpose(2, 1, 0).reshape(4, 2),
    "stack": lambda x: jnp.stack([x.transpose(1, 2, 0), x.transpose(1, 0, 2)], -1),
    "einsum": lambda x: jnp.broadcast_to(x[..., None], (2, 2, 2, 3)).transpose(3, 1, 0, 2),
}
STARTS = {
    "as it is": lambda x: x,
    "converted": lambda x: wide(x).astype(x.dtype),
    "converted and reshaped": lambda x: wide(x).reshape(2, 2, 2, 1)[..., 0].astype(x.dtype),
    "reduced": lambda x: jnp.max(wide(x).real[..., None], axis=-1).astype(x.dtype),
    "sorted": lambda x: lax.sort(wide(x).real, dimension=1).astype(x.dtype),
    "chosen": lambda x: jnp.where(wide(x).real > 0, wide(x), wide(x) + 1).astype(x.dtype),
    "median": lambda x: jnp.median(wide(x).real, axis=(), keepdims=True).astype(x.dtype),
}


def constant(dtype):
    values = np.array([[[-2, 0], [-3, 1]], [[-1, 1], [4, 5]]])
    with np.errstate(invalid="ignore"):
        return jnp.asarray(np.abs(values) if dtype[0] in "ub" and dtype != "bfloat16" else values).astype(dtype)


def bits(x):
    return x.shape, x.dtype, np.ascontiguousarray(np.asarray(x)).tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_constant_programs_have_the_bits_of_eager_ones(dtype):
    c = constant(dtype)

    def program():
        out = {}
        for (start, f), (end, g) in itertools.product(STARTS.items(), ENDS.items()):
            out[start, end] = x = g(f(c))
            if dtype in SAME_WIDTH:
                out[start, end, "view"] = x.view(SAME_WIDTH[dtype])
        return out

    eager, compiled = program(), pb.jit(program)()
    assert [k for k in eager if bits(eager[k]) != bits(compiled[k])] == []


def test_a_constant_bfloat16_result_is_not_transposed():
    c = jnp.asarray([[[-2, 0], [-2, 0]], [[-1, 1], [-1, 1]]], jnp.bfloat16)
    out = pb.jit(lambda: jnp.median(c, axis=(), keepdims=True)[:, I, I])()
    assert out.tolist() == [[-2, 0], [-1, 1]]


def test_random_keys_of_a_constant_program():
    words = jnp.arange(12, dtype=jnp.uint32).reshape(3, 2, 2)

    def program():
        keys = pb.random.wrap_key_data(words.transpose(1, 0, 2))
        return pb.random.key_data(keys.T[:, I]), pb.random.key_data(keys[I, I])

    for eager, compiled in zip(program(), pb.jit(program)(), strict=True):
        assert bits(eager) == bits(compiled)


def test_a_bit_cast_of_what_is_no_constant_is_not_moved():
    x = jnp.arange(6.0, dtype=jnp.bfloat16).reshape(2, 3)
    f = pb.jit(lambda x: (x + 1).T)
    assert f(x).tolist() == (np.arange(6.0).reshape(2, 3).T + 1).tolist()
    assert "optimization_barrier" not in f.lower(x).compile().as_text()  # it would cost a copy


def test_bit_casts_leave_a_small_loop_one_function():
    step = pb.jit(lambda x: lax.fori_loop(0, 5, lambda i, y: (y.view("int32") + 1).view("float32"), x))
    x = jnp.ones((2, 2))
    assert "xla_cpu_small_call" in step.lower(x).as_text()
    np.testing.assert_array_equal(step(x), np.ones((2, 2), np.float32) + np.float32(5 * 2**-23))


@pytest.mark.parametrize(
    ("divisor", "hidden"), [(3.0, False), (-0.1, False), (0.0, False), (1e-39, True), (3e38, True)]
)
def test_a_divisor_is_hidden_if_its_reciprocal_is_no_ordinary_number(divisor, hidden):
    """The compiler multiplies by the reciprocal of a constant, which is right where that is exact to rounding."""
    text = pb.jit(lambda x: x / divisor).lower(jnp.ones(3)).as_text()
    assert ("optimization_barrier" in text) == hidden
