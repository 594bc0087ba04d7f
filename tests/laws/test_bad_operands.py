"""Every public function is called with what is no array: each time an error of ours, which names the function.

A valid call of each function is found by its signature, or stands in the table below. In it each operand that is an
array, or a list of arrays, is replaced by something else in turn.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import errors, lax
from pullback.core.array import Array

MODULES = [
    "", "ad_checkpoint", "custom_batching", "custom_derivatives", "experimental.ode", "flatten_util", "lax",
    "lax.linalg", "nn", "numpy", "numpy.fft", "numpy.linalg", "random", "scipy.cluster.vq", "scipy.fft",
    "scipy.integrate", "scipy.linalg", "scipy.ndimage", "scipy.signal", "scipy.signal.windows", "scipy.special",
    "test_util", "tree_util",
]  # fmt: skip


class Thing:
    def __repr__(self) -> str:
        return "<a thing>"


BAD: dict[str, Any] = {
    "a string": "a",
    "None": None,
    "an object": Thing(),
    "a ragged list": [[1.0, 2.0], [3.0]],
    "a Decimal": Decimal("1.5"),
    "an array of objects": np.array([1, "a", None], object),
    "a set": {1},
    "a dict": {"a": 1.0},
}

# Valid calls -------------------------------------------------------------------------------------------------------

V, M = jnp.array([0.25, 0.5, 0.75]), jnp.array([[2.0, 0.5], [0.5, 1.0]])
I, S, B = jnp.array([0, 1, 1]), jnp.float32(0.5), jnp.array([True, False, True])
W = jnp.ones((1, 1, 1))
KEY = pullback.random.key(0)
GATHER = lax.GatherDimensionNumbers((), (0,), (0,))
SCATTER = lax.ScatterDimensionNumbers((), (0,), (0,))


def first(x: Any, *rest: Any) -> Any:
    return x


def product(*xs: Any) -> Any:
    return jnp.sum(jnp.prod(jnp.stack([jnp.sum(x) for x in xs])))


VALID: dict[str, tuple[Any, ...]] = {
    "typeof": (),  # whose message is that of all operands, to which others put their names
    "device_get": (),  # what is no array is left as it is
    "block_until_ready": (),
    "copy_to_host_async": (),
    "default_device": (),
    "numpy.apply_along_axis": (first, 0, V),
    "numpy.apply_over_axes": (jnp.sum, M, 0),
    "numpy.argpartition": (V, 1),
    "numpy.can_cast": (),  # dtypes
    "numpy.digitize": (V, V),
    "numpy.dsplit": (M[None], 2),
    "numpy.einsum": ("i,i", V, V),
    "numpy.einsum_path": ("i,i", V, V),
    "numpy.fill_diagonal": (),
    "numpy.isdtype": (),
    "numpy.isscalar": (),
    "numpy.issubdtype": (),
    "numpy.iterable": (),
    "numpy.partition": (V, 1),
    "numpy.printoptions": (),
    "numpy.promote_types": (),
    "numpy.result_type": (),
    "numpy.ravel_multi_index": (),
    "numpy.select": ([B, B], [V, V]),
    "numpy.unpackbits": (jnp.ones(2, "uint8"),),
    "lax.argmax": (V, 0, "int32"),
    "lax.argmin": (V, 0, "int32"),
    "lax.associative_scan": (jnp.add, V),
    "lax.broadcast_in_dim": (V, (2, 3), (1,)),
    "lax.collapse": (M, 0),
    "lax.broadcast_shapes": (),
    "lax.cond": (),  # not compiled, it hands its operands to a function as they are
    "lax.conv": (W, W, (1,), "VALID"),
    "lax.conv_dimension_numbers": (),  # shapes
    "lax.conv_general_dilated": (W, W, (1,), "VALID"),
    "lax.conv_general_dilated_local": (W, W, (1,), "VALID", (1,)),
    "lax.conv_general_dilated_patches": (W, (1,), (1,), "VALID"),
    "lax.conv_transpose": (W, W, (1,), "VALID"),
    "lax.conv_with_general_padding": (W, W, (1,), "VALID", None, None),
    "lax.padtype_to_pads": (),  # shapes
    "lax.reduce": (V, 0.0, lax.add, (0,)),
    "lax.reduce_window": (V, 0.0, lax.add, (2,)),
    "nn.avg_pool": (W, (1,)),
    "nn.max_pool": (W, (1,)),
    "nn.min_pool": (W, (1,)),
    "lax.dot_general": (V, V, (((0,), (0,)), ((), ()))),
    "lax.dynamic_index_in_dim": (V, I[0]),
    "lax.dynamic_slice_in_dim": (V, I[0], 1),
    "lax.dynamic_slice": (V, (I[0],), (1,)),
    "lax.dynamic_update_index_in_dim": (V, S, I[0], 0),
    "lax.dynamic_update_slice": (V, V, (I[0],)),
    "lax.dynamic_update_slice_in_dim": (V, V, I[0], 0),
    "lax.expand_dims": (V, (0,)),
    "lax.fori_loop": (I[0], I[1], lambda i, x: x, V),
    "lax.full_like": (V, S),
    "lax.gather": (V, I[:, None], GATHER, (1,)),
    "lax.imag": (jnp.array([1j]),),
    "lax.index_in_dim": (V, 0),
    "lax.integer_pow": (V, 2),
    "lax.map": (first, V),
    "lax.pad": (V, S, ((0, 1, 0),)),
    "lax.real": (jnp.array([1j]),),
    "lax.reshape": (V, (3, 1)),
    "lax.rev": (V, (0,)),
    "lax.scan": (lambda c, x: (c, x), S, V),
    "lax.scatter": (V, I[:, None], V, SCATTER),
    "lax.scatter_add": (V, I[:, None], V, SCATTER),
    "lax.scatter_max": (V, I[:, None], V, SCATTER),
    "lax.scatter_min": (V, I[:, None], V, SCATTER),
    "lax.scatter_mul": (V, I[:, None], V, SCATTER),
    "lax.DotDimensionNumbers": (),
    "lax.scatter_sub": (V, I[:, None], V, SCATTER),
    "lax.select_n": (B, V, V),
    "lax.slice_in_dim": (V, 0, 1),
    "lax.squeeze": (V[None], (0,)),
    "lax.switch": (),
    "lax.while_loop": (lambda x: False, first, V),
    "lax.linalg.lu_pivots_to_permutation": (I, 3),
    "scipy.integrate.quad": (first, S, S),
    "scipy.ndimage.map_coordinates": (V, [V], 1),
    "scipy.signal.convolve2d": (M, M),
    "scipy.signal.correlate2d": (M, M),
    "scipy.signal.savgol_filter": (V, 3, 1),
    "scipy.signal.sosfilt": (jnp.array([[1.0, 0.0, 0.0, 1.0, 0.0, 0.0]]), V),
    "scipy.signal.istft": (M,),
    "scipy.linalg.cho_solve": ((M, True), M),
    "scipy.linalg.lu_solve": ((M, jnp.array([0, 1])), M),
    "random.PRNGKey": (),
    "random.key": (),
    "random.key_data": (KEY,),
    "random.wrap_key_data": (jnp.array([0, 1], "uint32"),),
    "experimental.ode.odeint": (lambda y, t: y, V, V),
    "custom_derivatives.straight_through": (),
    "ad_checkpoint.checkpoint_name": (V, "a name"),
    "lax.dtype": (),
}
"""The arguments; none where an operand may be anything, or is no array."""
NOT_OF_ARRAYS = """
    broadcast_shapes diag_indices empty eye finfo frombuffer fromfunction identity iinfo indices mask_indices ones place
    put put_along_axis tri tril_indices triu_indices vectorize zeros
"""
VALID |= {f"numpy.{name}": () for name in NOT_OF_ARRAYS.split()}
TREES = {
    "device_put", "lax.reduce", "lax.reduce_window", "lax.stop_gradient", "lax.optimization_barrier", "lax.map",
    "lax.scan", "lax.fori_loop", "lax.while_loop", "lax.associative_scan", "flatten_util.ravel_pytree",
    "experimental.ode.odeint", "ad_checkpoint.checkpoint_name", "custom_derivatives.clip_gradient",
    "custom_derivatives.clip_gradient_norm", "custom_derivatives.reverse_gradient", "custom_derivatives.safe_where",
    "custom_derivatives.scale_gradient", "random.key_data", "custom_derivatives.zero_from_primal",
}  # fmt: skip
"""Functions of trees of arrays, for which None, lists and dicts are trees."""
ALSO_VALID = {
    ("numpy.fromiter", "a set"), ("numpy.iscomplexobj", "None"), ("numpy.isrealobj", "None"),
    ("numpy.shape", "None"), ("numpy.ndim", "None"), ("numpy.size", "None"),
    ("scipy.signal.csd", "None"),
}  # fmt: skip
BY_NAME: dict[str, list[Any]] = {
    "key": [KEY], "shape": [(3,), (2, 2)], "newshape": [(3,)], "sizes": [(3,)], "axis2": [1], "destination": [1],
    "axes": [(0,), (0, 1), 1], "pad_width": [1], "permutation": [(0,), (1, 0)], "dtype": ["float32"],
    "new_dtype": ["float32"], "start_indices": [(0,)], "slice_sizes": [(1,)], "limit_indices": [(1,)],
}  # fmt: skip
COUNTED = """
    axis dimension num n N num_classes k repeats reps axis1 source length decimals bins size deg new_sizes
"""
BY_NAME |= {name: [0, 1, 2] for name in COUNTED.split()}
BY_NAME |= {name: [first] for name in ("f", "fun", "func", "function")}
ARRAYS = [V, M, I, S, B]


def public_functions(module: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions of a module by their full names; a function is in the first module that has it."""
    face = importlib.import_module(f"pullback.{module}".rstrip("."))
    for name in getattr(face, "__all__", None) or [n for n in dir(face) if not n.startswith("_")]:
        function = getattr(face, name)
        if not callable(function) or inspect.isclass(function) or inspect.ismodule(function):
            continue
        yield f"{module}.{name}".lstrip("."), function


def is_operand(x: Any) -> bool:
    return isinstance(x, Array) or (isinstance(x, (list, tuple)) and bool(x) and all(isinstance(y, Array) for y in x))


def valid_call(name: str, function: Callable[..., Any]) -> tuple[Any, ...]:
    """Arguments for which the function returns a result, found by the names of its parameters; or none."""
    if name in VALID:
        if VALID[name]:
            function(*VALID[name])
        return VALID[name]
    parameters = inspect.signature(function).parameters.values()
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    choices = [BY_NAME.get(p.name, ARRAYS) for p in needed]
    if not needed and any(p.kind is p.VAR_POSITIONAL for p in parameters):
        choices = [ARRAYS]
    if ARRAYS not in choices:
        return ()
    for arguments in itertools.islice(itertools.product(*choices), 700):
        try:
            function(*arguments)
        except Exception:
            continue
        return arguments
    return ()


def wrong_calls(arguments: tuple[Any, ...]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Calls in which one operand is something else."""
    for i, x in enumerate(arguments):
        if not is_operand(x):
            continue
        for kind, bad in BAD.items():
            yield f"argument {i} is {kind}", (*arguments[:i], bad, *arguments[i + 1 :])
            if not isinstance(x, Array):
                within = type(x)([bad, *x[1:]])
                yield f"argument {i} holds {kind}", (*arguments[:i], within, *arguments[i + 1 :])


def complaint(name: str, function: Callable[..., Any], what: str, arguments: tuple[Any, ...]) -> str | None:
    """What is wrong with how a function refuses a call; None if nothing is."""
    kind = what.partition(" is ")[2] or what.partition(" holds ")[2]
    try:
        result = function(*arguments)
    except errors.PullbackError as error:
        names = {name.rpartition(".")[2], getattr(function, "__name__", "")}
        if any(n in str(error) for n in names) and isinstance(error, (TypeError, ValueError)):
            return None
        return f"{name}: {what}: {type(error).__name__} does not name the function: {error}"
    except Exception as error:
        if isinstance(error, DeprecationWarning) and (name, kind) in ALSO_VALID:
            return None
        return f"{name}: {what}: {type(error).__name__}, which is not ours: {error}"
    if (name, kind) in ALSO_VALID or (name in TREES and kind in ("None", "a ragged list", "a dict")):
        return None
    return f"{name}: {what}: no error, but {str(result)[:60]}"


COUNTS = {
    "": 1, "lax": 120, "numpy": 280, "numpy.linalg": 15, "nn": 25, "scipy.special": 12, "scipy.fft": 8,
    "scipy.signal": 13, "random": 8,
}  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_what_is_no_array_is_refused_by_name(module: str) -> None:
    found, called = [], 0
    for name, function in public_functions(module):
        if module == "tree_util" or name.startswith("test_util"):
            continue  # whose trees may hold anything
        arguments = valid_call(name, function)
        called += any(map(is_operand, arguments))
        for what, wrong in wrong_calls(arguments):
            said = complaint(name, function, what, wrong)
            if said is not None:
                found.append(said)
    assert not found, "\n".join(found)
    assert called >= COUNTS.get(module, 0)


# Transformations ---------------------------------------------------------------------------------------------------

TRANSFORMED: dict[str, Callable[[Any], Any]] = {
    "grad": lambda x: pullback.grad(product)(x),
    "value_and_grad": lambda x: pullback.value_and_grad(product)(x),
    "jacfwd": lambda x: pullback.jacfwd(product)(x),
    "jacrev": lambda x: pullback.jacrev(product)(x),
    "hessian": lambda x: pullback.hessian(product)(x),
    "vjp": lambda x: pullback.vjp(product, x),
    "jvp": lambda x: pullback.jvp(product, (x,), (V,)),
    "tangents of jvp": lambda x: pullback.jvp(product, (V,), (x,)),
    "linearize": lambda x: pullback.linearize(product, x),
    "linear_transpose": lambda x: pullback.linear_transpose(lambda v: 2 * v, x),
    "vmap": lambda x: pullback.vmap(product)(x),
    "jit": lambda x: pullback.jit(product)(x),
    "make_jaxpr": lambda x: pullback.make_jaxpr(product)(x),
    "eval_shape": lambda x: pullback.eval_shape(product, x),
    "checkpoint": lambda x: pullback.grad(pullback.checkpoint(product))(x),
    "pullback of vjp": lambda x: pullback.vjp(jnp.sin, V)[1](x),
    "index": lambda x: V[x],
    "at[].set": lambda x: V.at[0].set(x),
    "at[]": lambda x: V.at[x].set(1.0),
}
VALUES = {k: v for k, v in BAD.items() if k not in ("None", "a ragged list", "a dict")}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformed_functions_refuse_what_is_no_array(name: str, kind: str) -> None:
    with pytest.raises(errors.PullbackError, match="got ") as caught:
        TRANSFORMED[name](VALUES[kind])
    assert isinstance(caught.value, (TypeError, ValueError))


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "@", "<", "**", "//"])
def test_operators_refuse_what_is_no_array(symbol: str, kind: str) -> None:
    if isinstance(VALUES[kind], (Thing, Decimal)):
        with pytest.raises(TypeError):  # Python's own, for the other operand had its turn
            eval(f"x {symbol} y", {"x": V, "y": VALUES[kind]})
        return
    with pytest.raises(errors.OperandError):
        eval(f"x {symbol} y", {"x": V, "y": VALUES[kind]})
