"""What may be an operand: masked arrays never, objects with memory always; NumPy's memory is never shared."""

from __future__ import annotations

import array
import ctypes
import dataclasses
import mmap
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import eval_shape, grad, hessian, jit, jvp, lax, linearize, make_jaxpr, pure_callback, random, vjp, vmap
from pullback.core.array import as_array
from pullback.core.errors import (
    ImmutableArrayError,
    KeyConversionError,
    MaskedArrayError,
    OperandError,
    PullbackError,
    UnboundAxisNameError,
)
from pullback.transforms.jit.jit import quick

# Masked arrays ---------------------------------------------------------------------------------------------------

M = np.ma.masked_array([1.0, 2.0], [True, False])
X = jnp.arange(2.0)
INDEX = np.ma.masked_array([1, 0], [True, False])
F: Callable[[Any], Any] = lambda x: x * 2
TWO = pullback.ShapeDtypeStruct((2,), np.dtype("float32"))

ENTRANCES: dict[str, Callable[[], Any]] = {
    "as_array": lambda: as_array(M),
    "array": lambda: jnp.array(M),
    "asarray": lambda: jnp.asarray(M),
    "asarray with a dtype": lambda: jnp.asarray(M, "float32"),
    "in a list": lambda: jnp.array([[M], [M]]),
    "masked": lambda: jnp.asarray(np.ma.masked),
    "function": lambda: jnp.sin(M),
    "second operand": lambda: jnp.add(X, M),
    "concatenate": lambda: jnp.concatenate([X, M]),
    "lax": lambda: lax.sin(M),
    "operator": lambda: X + M,
    "comparison": lambda: X == M,
    "index": lambda: X[INDEX],
    "boolean index": lambda: X[INDEX > 0],
    "update": lambda: X.at[INDEX].set(1.0),
    "value of an update": lambda: X.at[:].set(M),
    "take": lambda: jnp.take(X, INDEX),
    "delete": lambda: jnp.delete(X, INDEX),
    "insert": lambda: jnp.insert(X, INDEX, 1.0),
    "repeat": lambda: jnp.repeat(X, INDEX),
    "jit": lambda: jit(F)(M),
    "jit, in a tree": lambda: jit(lambda t: t["a"])({"a": M}),
    "jit, after another": lambda: (jit(F)(np.ones(2)), jit(F)(M)),
    "lower": lambda: jit(F).lower(M),
    "compiled": lambda: jit(F).lower(X).compile()(M),
    "eval_shape": lambda: eval_shape(F, M),
    "make_jaxpr": lambda: make_jaxpr(F)(M),
    "captured": lambda: jit(lambda x: x + M)(X),
    "result of jit": lambda: jit(lambda x: M)(X),
    "grad": lambda: grad(lambda x: x.sum())(M),
    "hessian": lambda: hessian(lambda x: x.sum())(M),
    "result of vmap": lambda: vmap(lambda x: M)(X),
    "vmap": lambda: vmap(F)(M),
    "jvp": lambda: jvp(F, (M,), (X,)),
    "tangent": lambda: jvp(F, (X,), (M,)),
    "cotangent": lambda: vjp(F, X)[1](M),
    "linearize": lambda: linearize(F, X)[1](M),
    "scan": lambda: lax.scan(lambda c, x: (c + x, x), 0.0, M),
    "while_loop": lambda: lax.while_loop(lambda c: False, F, M),
    "callback": lambda: pure_callback(np.asarray, TWO, M),
    "result of a callback": lambda: pure_callback(lambda x: M, TWO, X),
    "device_put": lambda: pullback.device_put(M),
    "uniform": lambda: random.uniform(random.key(0), (2,), minval=M),
}


@pytest.mark.parametrize("name", ENTRANCES)
def test_masked_arrays_are_refused(name: str) -> None:
    with pytest.raises(
        MaskedArrayError, match=r"the mask would be lost; got one of shape .*x\.filled\(value\)"
    ) as found:
        ENTRANCES[name]()
    assert isinstance(found.value, (OperandError, ValueError, TypeError))


def test_the_error_names_the_argument() -> None:
    with pytest.raises(ValueError, match=r"jit of .*argument 0 \(t\['a'\]\): masked arrays are not supported"):
        jit(lambda t: t["a"])({"a": M})
    with pytest.raises(ValueError, match="sin: masked arrays are not supported"):
        jnp.sin(M)


def test_masked_arrays_keep_their_own_operators() -> None:
    got = M + X
    assert isinstance(got, np.ma.MaskedArray)
    assert got.mask.tolist() == [True, False]


# Memory of others ------------------------------------------------------------------------------------------------


class WithInterface:
    """The protocol of NumPy's arrays, as an attribute."""

    def __init__(self, value: np.ndarray[Any, Any]) -> None:
        self.value = value
        self.__array_interface__ = value.__array_interface__


def _mapped() -> Any:
    out = mmap.mmap(-1, 12)
    out.write(np.array([1, 2, 3], "f").tobytes())
    return np.frombuffer(out, "f")


def _read_only(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    x.flags.writeable = False
    return x


VALUES = np.array([1, 2, 3], np.float32)
MEMORY: dict[str, Callable[[], Any]] = {
    "memoryview": lambda: memoryview(VALUES.copy()),
    "array.array": lambda: array.array("f", [1, 2, 3]),
    "interface": lambda: WithInterface(VALUES.copy()),
    "ctypes": lambda: (ctypes.c_float * 3)(1, 2, 3),
    "read-only memoryview": lambda: memoryview(VALUES.tobytes()).cast("f"),
}


@pytest.mark.parametrize("name", MEMORY)
def test_objects_with_memory_are_operands(name: str) -> None:
    make = MEMORY[name]
    np.testing.assert_array_equal(jnp.asarray(make()), VALUES)
    assert jnp.asarray(make()).dtype == np.float32
    np.testing.assert_array_equal(jnp.array(make(), "int32"), [1, 2, 3])
    np.testing.assert_array_equal(jnp.add(make(), 1), VALUES + 1)
    np.testing.assert_array_equal(jit(lambda x: x + 1)(make()), VALUES + 1)
    np.testing.assert_array_equal(grad(lambda x: (x**2).sum())(make()), 2 * VALUES)
    np.testing.assert_array_equal(jnp.stack([jnp.asarray(make()), VALUES])[0], VALUES)


def test_bytes_and_integers_of_bytes() -> None:
    assert jnp.asarray(bytearray(b"ab")).tolist() == [97, 98]
    assert jnp.asarray(bytearray(b"ab")).dtype == np.uint8
    assert jnp.asarray(memoryview(b"ab")).tolist() == [97, 98]
    for bad in (b"ab", "ab", object(), None, {1}):
        with pytest.raises(OperandError, match="expected an array or a number"):
            jnp.asarray(bad)


def _with_base() -> tuple[Any, Any]:
    base = VALUES.copy()
    view = base[:]
    view.flags.writeable = False
    return view, base


def _opened_again() -> tuple[Any, Any]:
    x = _read_only(VALUES.copy())
    return x, x


def _of_a_file() -> tuple[Any, Any]:
    x = _mapped()
    return _read_only(x[:]), x


def _of_a_bytearray() -> tuple[Any, Any]:
    memory = bytearray(VALUES.tobytes())
    return _read_only(np.frombuffer(memory, "f")), np.frombuffer(memory, "f")


ALIASES = (_with_base, _opened_again, _of_a_file, _of_a_bytearray)
TAKES: dict[str, Callable[[Any], Any]] = {
    "asarray": jnp.asarray,
    "array": jnp.array,
    "operand": jnp.positive,
    "as_array": as_array,
    "device_put": pullback.device_put,
    "jit": lambda x: jit(lambda x: x)(x),
    "vmap": lambda x: vmap(lambda x: x)(x),
    "aux": lambda x: grad(lambda y: (y, x + 0 * y), has_aux=True)(1.0)[1],
    "callback": lambda x: pure_callback(lambda: x, pullback.ShapeDtypeStruct((3,), np.dtype("float32"))),
    "dlpack": lambda x: jnp.from_dlpack(x, copy=True),
    "buffer": lambda x: jnp.frombuffer(memoryview(x), "float32"),
    "memoryview": lambda x: jnp.asarray(memoryview(x)),
}


@pytest.mark.parametrize("name", TAKES)
@pytest.mark.parametrize("make", ALIASES)
def test_memory_that_may_be_written_later_is_copied(make: Any, name: str) -> None:
    given, writable = make()
    got = TAKES[name](given)
    writable.flags.writeable = True
    writable[0] = 7
    assert np.asarray(got).tolist() == [1, 2, 3]


def test_pickled_memory_is_copied() -> None:
    import pickle

    x = jnp.asarray(VALUES)
    buffers: list[Any] = []
    text = pickle.dumps(x, 5, buffer_callback=buffers.append)
    assert all(b.raw().readonly for b in buffers)
    memory = [bytearray(b.raw()) for b in buffers]
    y = pickle.loads(text, buffers=memory)
    for m in memory:
        m[:4] = b"\xff" * 4
    assert y.tolist() == [1, 2, 3]


# Our memory ------------------------------------------------------------------------------------------------------


def _exports(x: Any) -> dict[str, Any]:
    out = {
        "asarray": np.asarray(x),
        "dtype": np.asarray(x, x.dtype),
        "device_get": pullback.device_get(x),
        "to_numpy": x.to_numpy(),
        "slice": np.asarray(x[1:]),
        "slice of the result": np.asarray(x)[1:],
    }
    seen: list[Any] = []
    kind = pullback.ShapeDtypeStruct(x.shape, x.dtype)
    pure_callback(lambda v: (seen.append(v), v)[1], kind, x)
    jit(lambda x: pure_callback(lambda v: (seen.append(v), np.array(v))[1], kind, x))(x)
    pullback.debug.callback(seen.append, x)
    out |= {f"callback {i}": v for i, v in enumerate(seen)}
    if x.dtype.kind == "f":
        out["dlpack"] = np.from_dlpack(x)
    if sys.version_info >= (3, 12) and x.dtype.isbuiltin == 1:
        out["memoryview"] = np.asarray(memoryview(x))
    return out


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn", "int4", "int32", "bool", "complex64"])
@pytest.mark.parametrize("place", ["host", "device", "both"])
def test_no_way_leads_through_numpy_to_our_elements(dtype: str, place: str) -> None:
    x = jnp.arange(8).reshape(2, 4).T.astype(dtype)
    if place != "host":
        x = jit(lambda x: x.reshape(4, 2))(x)
    if place == "both":
        np.asarray(x)
    before = x.tolist()
    for name, view in _exports(x).items():
        while isinstance(view, np.ndarray):
            assert not view.flags.writeable, name
            if view.base is None and name.startswith("callback"):
                break  # a copy
            with pytest.raises(ValueError, match="WRITEABLE"):
                view.setflags(write=True)
            with pytest.raises(ValueError, match="read-only"):
                view[...] = 0
            view = view.base
        if isinstance(view, memoryview):
            assert view.readonly
    assert x.tolist() == before


def test_views_of_eager_results() -> None:
    x = jnp.arange(10)
    with pytest.raises(ValueError, match="WRITEABLE"):
        np.asarray(x[2:6]).setflags(write=True)
    base = np.asarray(x).base
    assert isinstance(base, memoryview)
    assert base.readonly
    assert isinstance(np.asarray(x.reshape(5, 2)).base, memoryview)
    assert np.asarray(x).ctypes.data == np.asarray(x[:]).ctypes.data  # no copy
    copied = np.array(x)
    copied[0] = 7
    assert x[0] == 0


def test_rules_of_users_get_read_only_arrays() -> None:
    from pullback.extend import Primitive

    seen: list[Any] = []
    add_one_p = Primitive("add_one")
    add_one_p.host(lambda x: (seen.append(x), x + 1)[1])
    x = jnp.ones(3)
    assert add_one_p.bind(x).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="WRITEABLE"):
        seen[0].setflags(write=True)


@pytest.mark.skipif(quick is None and sys.version_info < (3, 12), reason="there is no module in C")
def test_memoryview() -> None:
    view = memoryview(jnp.asarray(VALUES))
    assert view.readonly
    assert view.tolist() == [1, 2, 3]
    assert bytes(view) == VALUES.tobytes()
    with pytest.raises(BufferError, match="bfloat16 have no format"):
        memoryview(jnp.ones(2, "bfloat16"))


def test_arrays_without_copies() -> None:
    x = jnp.ones(3)
    assert np.array(x, copy=None).ctypes.data == np.asarray(x, copy=False).ctypes.data
    with pytest.raises(ValueError, match=r"without a copy|Unable to avoid copy"):
        np.asarray(x, np.float64, copy=False)


def test_keys_are_no_numpy_arrays() -> None:
    key = random.key(0)
    for call in (np.asarray, np.array, lambda k: np.add(k, k), lambda k: np.stack([k])):
        with pytest.raises(KeyConversionError, match=r"pullback\.random\.key_data\(keys\)"):
            call(key)
    assert np.shape(key) == ()
    kept = pullback.device_get({"k": key})["k"]
    assert kept.dtype == key.dtype


# Options ---------------------------------------------------------------------------------------------------------


def test_reduce_axes() -> None:
    assert float(grad(jnp.square, reduce_axes=())(2.0)) == 4
    assert float(pullback.value_and_grad(jnp.square, reduce_axes=())(2.0)[1]) == 4
    assert float(vjp(jnp.square, 2.0, reduce_axes=())[1](1.0)[0]) == 4
    calls: list[Callable[[], Any]] = [
        lambda: grad(jnp.square, reduce_axes=("i",))(2.0),
        lambda: pullback.value_and_grad(jnp.square, reduce_axes=("i",))(2.0),
        lambda: vjp(jnp.square, 2.0, reduce_axes=("i",))[1](1.0),
    ]
    for call in calls:
        with pytest.raises(UnboundAxisNameError, match="unbound axis name: 'i'"):
            call()
        with pytest.raises(NameError):
            call()


def test_errors_of_writing() -> None:
    x = jnp.ones(3)
    with pytest.raises(ImmutableArrayError, match=r"np\.add cannot write into a Pullback array"):
        np.add(x, x, out=x)  # type: ignore[call-overload]
    assert issubclass(ImmutableArrayError, PullbackError)


@dataclasses.dataclass
class Parameters:
    weights: Any


def test_dataclasses_that_are_not_trees() -> None:
    message = r"of type Parameters\. pullback\.tree_util\.register_dataclass\(Parameters\) makes these objects trees"
    for call in (grad(lambda p: p.weights.sum()), jit(lambda p: p.weights), jnp.sin):
        with pytest.raises(OperandError, match=message):
            call(Parameters(jnp.ones(2)))
