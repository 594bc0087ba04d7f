"""Callbacks: calls of Python functions within transformed and compiled functions.

Three primitives call a function on NumPy arrays: ``pure_callback`` for its results only, so that the call may be
omitted, repeated and reordered; ``io_callback`` for its results and effects; ``debug_callback`` for its effects only,
so that it can be differentiated. A call that is mapped over an axis remains one call, which loops over the examples.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, overload

import numpy as np

from pullback.backends.devices.shardings import OutSharding
from pullback.backends.devices.storage import stored_dtype
from pullback.core import dtypes, source, tree
from pullback.core.annotations import PyTree
from pullback.core.arguments import flag, is_listed, require_function
from pullback.core.array import SCALARS, Array, ArrayImpl, CommittedArray, as_array, host_value, read_only
from pullback.core.config import config
from pullback.core.errors import (
    ArgumentError,
    CallbackError,
    HostFunctionError,
    OperandError,
    UnsupportedArgumentError,
    of_host_function,
)
from pullback.core.lists import merge_lists, partition_list
from pullback.core.runtime import runtime
from pullback.core.trace import Primitive, Tracer, state
from pullback.core.traits import Cost
from pullback.core.types import MappedAxis, ShapedArray
from pullback.primitives.arrays.shapes import expand_dims, moveaxis
from pullback.primitives.axis_maps import front
from pullback.primitives.rules import as_inferred, jvp_zero, sharding_rule
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import abstractify, name_of

VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


# Host functions ------------------------------------------------------------------------------------------------------


def _name(function: Any) -> str:
    """The name of a function; the name of its type if it has none."""
    found = source.attribute(function, "__name__")
    return found if isinstance(found, str) else type(function).__name__


class HostFunction:
    """A user's function of trees, wrapped as a function of flat NumPy arrays, which checks the types of its results.

    Attributes:
      avals: the declared types of the results.
      settings: the configuration when the callback was called. The function runs under it, on any thread.
    """

    __slots__ = ("__name__", "avals", "function", "in_tree", "settings", "who")

    def __init__(self, who: str, function: Callable[..., Any], in_tree: Any, avals: Sequence[ShapedArray]) -> None:
        self.who = who
        self.function = function
        self.in_tree = in_tree
        self.avals = list(avals)
        self.settings = dict(vars(config))
        self.__name__ = _name(function)

    def __call__(self, *arrays: Any) -> list[np.ndarray[Any, Any]]:
        args, kwargs = tree.unflatten(self.in_tree, arrays)
        with _eager_with(self.settings):
            leaves = tree.leaves(self.function(*args, **kwargs))
            if len(leaves) != len(self.avals):
                raise CallbackError(
                    f"{self.who} of {name_of(self.function)}: result_shape_dtypes has {len(self.avals)} arrays, but "
                    f"the function returned {len(leaves)}"
                )
            return [self._checked(i, x, a) for i, (x, a) in enumerate(zip(leaves, self.avals, strict=True))]

    def _checked(self, i: int, x: Any, aval: ShapedArray) -> np.ndarray[Any, Any]:
        """Convert ``x``, result ``i`` of the function, to a NumPy array; raise unless ``aval`` is its type."""
        array = as_array(x)
        if array.shape != aval.shape or array.dtype != aval.dtype:
            raise CallbackError(
                f"{self.who} of {name_of(self.function)}: result {i} is declared as {aval} in result_shape_dtypes, "
                f"but the function returned {array.aval}. Convert it in the function, or declare the right type."
            )
        return np.asarray(host_value(array))

    def batched(self, size: int) -> HostFunction:
        """Return this function declared to take and return batches of ``size`` examples, along axis 0."""
        other = HostFunction(self.who, self.function, self.in_tree, [_with_axis(a, size) for a in self.avals])
        other.settings = self.settings
        return other


class Looped:
    """A host function that calls another host function for each example of a batch, along axis 0.

    Attributes:
      avals: the types of the results, which are batches.
    """

    __slots__ = ("__name__", "avals", "call", "mapped", "size")

    def __init__(self, call: Any, mapped: Sequence[bool], size: int) -> None:
        self.call = call
        self.mapped = tuple(mapped)
        self.size = size
        self.avals = [_with_axis(a, size) for a in call.avals]
        self.__name__ = call.__name__

    def __call__(self, *arrays: Any) -> list[np.ndarray[Any, Any]]:
        outs = [np.empty(a.shape, a.dtype) for a in self.avals]
        for i in range(self.size):
            example = [_example(x, i) if m else x for x, m in zip(arrays, self.mapped, strict=True)]
            for out, value in zip(outs, self.call(*example), strict=True):
                out[i] = value
        return outs

    def batched(self, size: int) -> Looped:
        """Return a host function that also loops over a further first axis, of ``size`` examples, of all operands."""
        return Looped(self, [True] * len(self.mapped), size)


def _with_axis(aval: ShapedArray, size: int) -> ShapedArray:
    """Return the type ``aval`` with a further first axis of ``size``."""
    return aval.with_axis(0, size)


def _example(x: Any, i: int) -> Any:
    """Return example ``i`` of a batch. Random keys stay in an ``ArrayImpl``, since NumPy lacks their dtype."""
    return ArrayImpl(x._value[i]) if isinstance(x, ArrayImpl) else x[i, ...]


@contextmanager
def _eager_with(settings: dict[str, Any]) -> Iterator[None]:
    """A context for running a callback: eagerly, outside of transformations, with the configuration ``settings``."""
    dynamic = state.trace, state.axes, state.source_loc, state.scope
    switches = vars(config)
    before = dict(switches)
    switches.clear()
    switches.update(settings)
    state.trace, state.axes, state.source_loc, state.scope = state.bottom, {}, None, None
    try:
        yield
    finally:
        switches.clear()
        switches.update(before)
        state.trace, state.axes, state.source_loc, state.scope = dynamic


def _argument(value: np.ndarray[Any, Any]) -> Any:
    """Convert an array to an argument of a user's function: a read-only NumPy array, or an ``ArrayImpl`` for keys."""
    if dtypes.is_key(value.dtype):
        return ArrayImpl(value)
    return read_only(value)


# The primitives ------------------------------------------------------------------------------------------------------

_CALL: Any = {"multiple_results": True, "keeps_weak_type": False, "cost": Cost.CALL}
debug_callback_p = Primitive("debug_callback", **_CALL, effect=True)
pure_callback_p = Primitive("pure_callback", **_CALL, passes_nan=True)
io_callback_p = Primitive("io_callback", **_CALL, effect=True, passes_nan=True)
required_callback_p = Primitive("pure_callback", **_CALL, effect=True, passes_nan=True)
"""A pure callback of a function that closes over a traced value: a program must not omit it.

The function raises when it reads the traced value. A derivative that does not need the result would otherwise omit the
call, and silently be zero."""
for _p in (debug_callback_p, pure_callback_p, io_callback_p, required_callback_p):
    sharding_rule(_p)(as_inferred)  # the function sees whole arrays


class NotRepeatable(Exception):
    """Raised when a program cannot run again without repeating its effects.

    The program needs the result of a callback with effects, which have happened in the first run.
    """


class _EagerMode(threading.local):
    """Settings of a thread for running programs operation by operation.

    Attributes:
      again: whether the program runs again, and its effects have happened in an earlier run.
      as_compiled: whether errors of callbacks are raised as in compiled programs.
    """

    again = False
    as_compiled = False


_mode = _EagerMode()


@contextmanager
def without_effects() -> Iterator[None]:
    """A context in which eager evaluation skips callbacks that have effects and no results.

    Raises:
      NotRepeatable: a callback has effects and results.
    """
    before, _mode.again = _mode.again, True
    try:
        yield
    finally:
        _mode.again = before


@contextmanager
def as_compiled() -> Iterator[None]:
    """A context in which errors of callbacks that run eagerly become HostFunctionError, as in a compiled program."""
    before, _mode.as_compiled = _mode.as_compiled, True
    try:
        yield
    finally:
        _mode.as_compiled = before


def _evaluate_effect(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[ArrayImpl]:
    """Evaluate a callback with effects, and return its results; skip it if its effects have happened in an earlier run.

    Raises:
      NotRepeatable: a callback that has results would be skipped.
    """
    if not _mode.again:
        return _evaluate(primitive, args, params)
    if params["call"].avals:
        raise NotRepeatable
    return []


def _evaluate(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[ArrayImpl]:
    """Evaluate a callback eagerly; return its results."""
    arrays = [_argument(host_value(as_array(x))) for x in args]
    call = params["call"]
    outs = _raising_as_compiled(primitive, call, arrays) if _mode.as_compiled else call(*arrays)
    results = [ArrayImpl(value[()] if value.ndim == 0 else value) for value in outs]
    return [runtime.following(x, args) for x in results] if CommittedArray in map(type, args) else results


def _raising_as_compiled(primitive: Primitive, call: Any, arrays: Sequence[Any]) -> Any:
    """Run the host function ``call`` on ``arrays``; return its results.

    If the function raises an exception, raise a HostFunctionError instead, as a compiled program does.
    """
    outer, _mode.as_compiled = _mode.as_compiled, False  # the function's own operations are not the program's
    try:
        return call(*arrays)
    except HostFunctionError:  # by a program that the function ran
        raise
    except Exception as error:
        raise of_host_function(primitive.name, call.__name__, error) from error
    finally:
        _mode.as_compiled = outer


def _compiled_call(primitive: Primitive, call: Any, kinds: Sequence[np.dtype[Any]], *operands: Any) -> tuple[Any, ...]:
    """Run a callback for a compiled program; return its results.

    Args:
      primitive: the primitive of the callback; if it has effects, a token is the first operand and the first result.
      call: the host function.
      kinds: the dtype of each operand.
      operands: views of buffers that are valid only during the call.

    Raises:
      HostFunctionError: the function raised an ``Exception``; other exceptions propagate unchanged.
    """
    in_order = primitive.effect
    if in_order:
        first, *operands = operands  # type: ignore[assignment]
    arrays = []
    for x, dtype in zip(operands, kinds, strict=True):
        copy = np.array(x)
        arrays.append(_argument(copy if copy.dtype == dtype else copy.view(dtype)))
    results = _raising_as_compiled(primitive, call, arrays)
    outs = [x.view(stored_dtype(x.dtype)) if dtypes.is_key(x.dtype) else x for x in results]
    return (np.array(first), *outs) if in_order else tuple(outs)


def _absent(primitive: Primitive, call: Any) -> tuple[Any, ...]:
    """Return zeros like the results of a callback for a compiled program."""
    outs = [np.zeros(a.shape, stored_dtype(a.dtype)) for a in call.avals]
    return (np.zeros((), _BOOL), *outs) if primitive.effect else tuple(outs)


def _lowering(primitive: Primitive, hlo: Any, *operands: Any, call: Any, **params: Any) -> Any:
    """The lowering rule of callbacks: emit a custom call, and return its results.

    At run time the custom call finds the host function ``call`` by its index in the module's list of callbacks.
    """
    from pullback.backends.host.calls import target_on

    target, calls = target_on(hlo.module.platform), hlo.module.callbacks
    index = f"index = {len(calls)} : ui64"
    compiled = partial(_compiled_call, primitive, call, [x.dtype for x in operands])
    compiled.absent = partial(_absent, primitive, call)  # type: ignore[attr-defined]
    calls.append(compiled)
    results = [(a.shape, a.dtype) for a in call.avals]
    if not primitive.effect:
        return hlo.custom_call(target, operands, results, index, hlo.module.on_one_device(len(results)))
    # A token, which each call takes from the call before, keeps calls in order. Unordered calls take it, too, which
    # costs no time: calls run one after the other anyway.
    order = hlo.number(False, _BOOL) if hlo.order is None else hlo.order
    types = [((), _BOOL), *results]
    alone = hlo.module.on_one_device(len(types))
    hlo.order, *outs = hlo.custom_call(target, (order, *operands), types, index, alone, side_effect=True)
    return outs


_BOOL = np.dtype(bool)

for _primitive in (debug_callback_p, pure_callback_p, io_callback_p, required_callback_p):
    _primitive.abstract_eval(lambda *avals, call, **params: call.avals)
    _primitive.lowering(partial(_lowering, _primitive))
    _primitive.impl(partial(_evaluate_effect if _primitive.effect else _evaluate, _primitive))


# Differentiation


def _no_derivative(primitive: Primitive, primals: Any, tangents: Any, *, call: Any, **params: Any) -> Any:
    """The jvp rule of callbacks that have results: raise an error, as their derivative is unknown."""
    raise CallbackError(
        f"{primitive.name} of {call.__name__} was differentiated, but a Python function has no derivative. Wrap the "
        f"call in a function with a derivative rule (custom_jvp, custom_vjp), or compute its operands outside of "
        f"the differentiated function."
    )


debug_callback_p.jvp_rule = jvp_zero(debug_callback_p)
for _primitive in (pure_callback_p, io_callback_p, required_callback_p):
    _primitive.jvp(partial(_no_derivative, _primitive))


# Batching


def _loop(
    primitive: Primitive, axis: MappedAxis, args: Sequence[Any], dims: Sequence[int | None], *, call: Any, **params: Any
) -> tuple[list[Any], list[int | None]]:
    """The batching rule of a callback: make one callback, whose host function loops over the examples.

    Return the results, with the mapped axis in front, and the position of this axis in each.
    """
    args = [x if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    looped = Looped(call, [d is not None for d in dims], axis.size)
    return primitive.bind(*args, call=looped, **params), [0] * len(call.avals)


debug_callback_p.batch(partial(_loop, debug_callback_p))


@io_callback_p.batch
def _io_batch(axis: MappedAxis, args: Any, dims: Any, *, call: Any, ordered: bool) -> Any:
    if ordered:
        raise CallbackError(
            f"io_callback of {call.__name__} with ordered=True cannot be mapped by vmap: the examples have no order. "
            "Leave ordered out, or call it outside of the mapped function."
        )
    return _loop(io_callback_p, axis, args, dims, call=call, ordered=False)


def _pure_batch(
    primitive: Primitive, axis: MappedAxis, args: Any, dims: Any, *, call: Any, vmap_method: str | None
) -> Any:
    """The batching rule of ``pure_callback``, for each choice of ``vmap_method``."""
    if vmap_method is None:
        raise CallbackError(
            f"pure_callback of {call.__name__} was mapped by vmap, but vmap_method is missing. It must be one of "
            f"{', '.join(map(repr, VMAP_METHODS))}: the first calls the function for each example."
        )
    if vmap_method.startswith("sequential"):
        return _loop(primitive, axis, args, dims, call=call, vmap_method=vmap_method)
    values = []
    for x, d in zip(args, dims, strict=True):
        if d is not None or vmap_method == "broadcast_all":
            x = front(x, d, axis)
        elif vmap_method == "expand_dims":
            x = expand_dims(x, (0,))
        values.append(x)
    outs = primitive.bind(*values, call=call.batched(axis.size), vmap_method=vmap_method)
    return outs, [0] * len(outs)


for _primitive in (pure_callback_p, required_callback_p):
    _primitive.batch(partial(_pure_batch, _primitive))


# The public functions ------------------------------------------------------------------------------------------------


def _call_for_results(
    primitive: Primitive, function: Callable[..., Any], result_shape_dtypes: Any, args: Any, kwargs: Any, **params: Any
) -> Any:
    """Bind a callback with results of declared types; return the tree of results.

    Args:
      primitive: the primitive of the callback.
      function: the user's function.
      result_shape_dtypes: the tree of declared types.
      args, kwargs: the arguments; an error is raised for a leaf that is not an array.
      params: further parameters of the primitive.
    """
    who = primitive.name
    leaves, in_tree = tree.flatten_call(args, kwargs)
    try:
        operands = [as_array(x) for x in leaves]
    except OperandError as error:
        raise type(error)(
            f"{who} of {name_of(function)}: {error} Bind arguments that are not arrays to the function first, with "
            f"functools.partial for example."
        ) from None
    declared, out_tree = tree.flatten(result_shape_dtypes)
    for x in declared:
        dtype = getattr(x, "dtype", None)
        if isinstance(dtype, np.dtype) and dtypes.canonicalize_dtype(dtype) != dtype:
            raise CallbackError(
                f"{who} of {name_of(function)}: result_shape_dtypes cannot specify 64-bit types such as {dtype} while "
                f"they are disabled: declare {dtypes.canonicalize_dtype(dtype)}, or enable them "
                "(`with pullback.enable_x64():`)"
            )
    avals = [abstractify(x).update(weak_type=False, varying=frozenset()) for x in declared]
    call = HostFunction(who, function, in_tree, avals)
    return tree.unflatten(out_tree, primitive.bind(*operands, call=call, **params))


def _closes_over_traced(function: Any) -> bool:
    """Whether a function refers to a traced value: in its closure, its defaults, or arguments bound by ``partial``."""
    referenced: list[Any] = []
    while isinstance(function, partial):
        referenced += [*function.args, *function.keywords.values()]
        function = function.func
    referenced += source.attribute(function, "__defaults__") or ()
    for cell in source.attribute(function, "__closure__") or ():
        with suppress(ValueError):  # an empty cell
            referenced.append(cell.cell_contents)
    return any(isinstance(x, Tracer) for x in referenced)


def _one_device(who: str, sharding: Any) -> None:
    """Raise if the option ``sharding`` of a callback has several devices."""
    if len(getattr(sharding, "device_set", "1")) != 1:
        raise UnsupportedArgumentError(
            f"{who}: the function runs in one process, but the sharding has several devices: {sharding!r}"
        )


@api_boundary
def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: PyTree,
    *args: PyTree,
    sharding: OutSharding = None,
    vmap_method: str | None = None,
    **kwargs: PyTree,
) -> PyTree:
    """Call a Python function of arrays, also from transformed and compiled functions.

    The function must depend on its arguments only, and have no effects: it may be called several times, or not at all.

    Args:
      callback: takes and returns trees of NumPy arrays. Its arguments are read-only; random keys are Pullback arrays.
      result_shape_dtypes: a tree of ``ShapeDtypeStruct``, or objects with ``shape`` and ``dtype``, like the results.
      args, kwargs: trees of arrays and numbers.
      sharding: a sharding of a single device, or None; without effect: functions are called in this process.
      vmap_method: how ``vmap`` calls the function. ``"sequential"`` and ``"sequential_unrolled"``: for each example.
        ``"expand_dims"``: for the batch, with the mapped axis first, and of size 1 where an argument is not mapped.
        ``"broadcast_all"``: for the batch, with unmapped arguments repeated. ``"legacy_vectorized"``: for the batch,
        with unmapped arguments unchanged. None: ``vmap`` raises.

    Returns:
      A tree of arrays like ``result_shape_dtypes``.

    Raises:
      CallbackError: the results are of other types than declared; the call was differentiated; it was mapped and
        ``vmap_method`` is None (a ValueError and NotImplementedError).
      HostFunctionError: the callback raised an error in a compiled function. It is an instance of JaxRuntimeError and
        of the class of that error, which is its cause.
      ArgumentError: ``vmap_method`` is unknown (a ValueError).
      UnsupportedArgumentError: ``sharding`` is of several devices (a NotImplementedError).

    >>> import numpy as np
    >>> import pullback.numpy as jnp
    >>> from pullback import ShapeDtypeStruct, jit, pure_callback
    >>> @jit
    ... def f(x):
    ...     return 1 + pure_callback(np.tanh, ShapeDtypeStruct(x.shape, x.dtype), x)
    >>> print(f(jnp.zeros(2)))
    [1. 1.]
    """
    require_function("pure_callback", "callback", callback)
    _one_device("pure_callback", sharding)
    if vmap_method is not None and not is_listed(vmap_method, VMAP_METHODS):
        raise ArgumentError(
            f"pure_callback: vmap_method must be None or one of {', '.join(map(repr, VMAP_METHODS))}, got "
            f"{vmap_method!r}"
        )
    primitive = pure_callback_p if state.trace.eager or not _closes_over_traced(callback) else required_callback_p
    return _call_for_results(primitive, callback, result_shape_dtypes, args, kwargs, vmap_method=vmap_method)


@api_boundary
def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: PyTree,
    *args: PyTree,
    sharding: OutSharding = None,
    ordered: bool = False,
    **kwargs: PyTree,
) -> PyTree:
    """Call a Python function that has effects, exactly once, also from compiled functions.

    Args:
      callback: takes and returns trees of NumPy arrays; its arguments are read-only.
      result_shape_dtypes: a tree of ``ShapeDtypeStruct``, or objects with ``shape`` and ``dtype``, like the results;
        None if there are no results.
      args, kwargs: trees of arrays and numbers.
      sharding: a sharding of a single device, or None; without effect: functions are called in this process.
      ordered: whether ordered calls of a program happen in program order. Under ``vmap``, an ordered call raises, and
        another call happens for each example.

    Returns:
      A tree of arrays like ``result_shape_dtypes``.

    Raises:
      CallbackError: the results are of other types than declared; the call was differentiated; it is ordered and was
        mapped (a ValueError and NotImplementedError).
      HostFunctionError: the callback raised an error in a compiled function. It is an instance of JaxRuntimeError and
        of the class of that error, which is its cause.
      UnsupportedArgumentError: ``sharding`` is of several devices (a NotImplementedError).

    >>> from pullback import ShapeDtypeStruct, jit
    >>> from pullback.experimental import io_callback
    >>> rows = iter([10, 20])
    >>> next_row = jit(lambda: io_callback(lambda: next(rows), ShapeDtypeStruct((), "int32")))
    >>> print(next_row(), next_row())
    10 20
    """
    require_function("io_callback", "callback", callback)
    _one_device("io_callback", sharding)
    ordered = flag("io_callback", "ordered", ordered)
    return _call_for_results(io_callback_p, callback, result_shape_dtypes, args, kwargs, ordered=ordered)


def call_for_effect(function: Callable[..., Any], args: Any, kwargs: Any, ordered: bool, numbers: bool) -> None:
    """Bind a callback that has effects and no results.

    Args:
      function: the user's function.
      args, kwargs: the arguments; leaves that are no arrays are passed to the function unchanged.
      ordered: whether this call keeps its position among the other ordered calls of a program.
      numbers: whether Python numbers are converted to arrays, too.
    """
    leaves, outline = tree.flatten_call(args, kwargs)
    kinds = (Array, np.ndarray, np.generic)
    are_arrays = [isinstance(x, kinds) or (numbers and type(x) in SCALARS) for x in leaves]
    others, arrays = partition_list(leaves, are_arrays)

    def run(*arrays: Any) -> None:
        full_args, full_kwargs = tree.unflatten(outline, merge_lists(are_arrays, others, arrays))
        function(*full_args, **full_kwargs)

    run.__name__ = _name(function)
    run.__wrapped__ = function  # type: ignore[attr-defined]
    call = HostFunction("debug.callback", run, tree.structure((tuple(arrays), {})), [])
    debug_callback_p.bind(*map(as_array, arrays), call=call, ordered=bool(ordered))


@overload
def debug_callback(
    callback: Callable[..., Any], *args: PyTree, ordered: bool = False, partitioned: bool = False, **kwargs: PyTree
) -> None: ...
@overload
def debug_callback(
    callback: None = None, *args: PyTree, ordered: bool = False, partitioned: bool = False, **kwargs: PyTree
) -> Callable[..., None]: ...
@api_boundary
def debug_callback(
    callback: Callable[..., Any] | None = None,
    *args: PyTree,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: PyTree,
) -> Any:
    """Call a Python function for its effects, also from transformed and compiled functions, exactly once.

    Differentiation calls it with the values; ``vmap`` calls it for each example if an argument is mapped.

    Args:
      callback: takes trees of NumPy arrays, which are read-only; its result is ignored. Without it, the result is
        ``debug.callback`` with these options, for use as a decorator.
      args, kwargs: trees of arrays and numbers; other objects are passed unchanged.
      ordered: whether ordered calls of a program happen in program order.
      partitioned: without effect: the function is called with complete arrays.

    Returns:
      None; without ``callback``, a decorator.

    Raises:
      ArgumentError: ``callback`` is no function, or both ``ordered`` and ``partitioned`` (a ValueError and TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import debug, grad, jit
    >>> seen = []
    >>> def f(x):
    ...     debug.callback(seen.append, x)
    ...     return jnp.sin(x)
    >>> print(jit(grad(f))(0.0), seen)
    1.0 [array(0., dtype=float32)]
    """
    _check_order("debug.callback", ordered, partitioned)
    if callback is None:
        return partial(debug_callback, *args, ordered=ordered, partitioned=partitioned, **kwargs)
    require_function("debug.callback", "callback", callback)
    call_for_effect(callback, args, kwargs, ordered, numbers=True)
    return None


def _check_order(who: str, ordered: bool, partitioned: bool) -> None:
    """Raise if both ``ordered`` and ``partitioned`` are set; ``who`` is the function, for the message."""
    if flag(who, "ordered", ordered) and flag(who, "partitioned", partitioned):
        raise ArgumentError(f"{who}: ordered=True contradicts partitioned=True: shards of arrays have no order")


@overload
def debug_print(
    fmt: str,
    *args: PyTree,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: PyTree,
) -> None: ...
@overload
def debug_print(
    fmt: None = None,
    *args: PyTree,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: PyTree,
) -> Callable[..., None]: ...
# long: half of it is its documentation
@api_boundary
def debug_print(
    fmt: str | None = None,
    *args: PyTree,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: PyTree,
) -> Any:
    """Print values when they are known, also from transformed and compiled functions.

    Differentiation prints the primal values; ``vmap`` prints each example if an argument is mapped.

    Args:
      fmt: a format string in the style of ``str.format``. Without it, the result is ``debug.print`` with these options.
      args, kwargs: the arguments of the format string: arrays, or any other objects.
      ordered: whether ordered prints of a program happen in program order.
      partitioned: without effect: complete arrays are printed.
      skip_format_check: whether to omit the check that the format string and the arguments match.
      _use_logging: whether to log the text to the logger ``pullback``, at level ``INFO``, instead.

    Returns:
      None; without ``fmt`` a function.

    Raises:
      ArgumentError: the format string refers to a missing argument, or does not refer to an argument; or both
        ``ordered`` and ``partitioned`` are set (a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import debug, jit
    >>> @jit
    ... def f(x):
    ...     debug.print("x = {}, y = {y:.2f}", x, y=x.sum())
    ...     return x + 1
    >>> out = f(jnp.arange(3.0))
    x = [0. 1. 2.], y = 3.00
    """
    _check_order("debug.print", ordered, partitioned)
    skip_format_check = flag("debug.print", "skip_format_check", skip_format_check)
    _use_logging = flag("debug.print", "_use_logging", _use_logging)
    if fmt is None:
        return partial(
            debug_print, ordered=ordered, partitioned=partitioned, skip_format_check=skip_format_check,
            _use_logging=_use_logging,
        )  # fmt: skip
    if not isinstance(fmt, str):
        raise ArgumentError(f"debug.print takes a format string, got {fmt!r} of {type(fmt).__name__}")
    if not skip_format_check:
        _check_format(fmt, len(args), kwargs)

    def show(*args: Any, **kwargs: Any) -> None:
        text = fmt.format(*args, **kwargs)
        if _use_logging:
            import logging  # imported only if needed

            logging.getLogger("pullback").info(text)
        else:
            print(text)

    show.__name__ = "print"
    call_for_effect(show, args, kwargs, ordered, numbers=False)
    return None


@overload
def debug_log(
    fmt: str, *args: PyTree, ordered: bool = False, partitioned: bool = False, skip_format_check: bool = False,
    **kwargs: PyTree,
) -> None: ...  # fmt: skip
@overload
def debug_log(
    fmt: None = None, *args: PyTree, ordered: bool = False, partitioned: bool = False, skip_format_check: bool = False,
    **kwargs: PyTree,
) -> Callable[..., None]: ...  # fmt: skip
@api_boundary
def debug_log(fmt: str | None = None, *args: PyTree, **kwargs: PyTree) -> Any:
    """Log values to the logger ``pullback``, at level ``INFO``, when they are known: :func:`debug_print` to a log.

    Args:
      fmt, args, kwargs: as in :func:`debug_print`.

    Returns:
      None; without ``fmt``, a function like this one with these options.

    Raises:
      ArgumentError: as :func:`debug_print` does (a ValueError).

    >>> import logging, sys
    >>> logger = logging.getLogger("pullback")
    >>> logger.addHandler(logging.StreamHandler(sys.stdout)); logger.setLevel("INFO")
    >>> from pullback import debug, jit
    >>> out = jit(lambda x: (debug.log("x = {}", x), x + 1)[1])(2.0)
    x = 2.0
    >>> del logger.handlers[:]; logger.setLevel("NOTSET")
    """
    return debug_print(fmt, *args, _use_logging=True, **kwargs)


def _check_format(fmt: str, count: int, kwargs: dict[str, Any]) -> None:
    """Raise unless a format string refers to all arguments, and to no others.

    Args:
      fmt: the format string.
      count: the number of positional arguments.
      kwargs: the arguments by name.
    """
    try:
        used = set(_fields(fmt, iter(range(sys.maxsize))))
    except ValueError as error:
        raise ArgumentError(f"debug.print: {fmt!r} is not a valid format string: {error}") from None
    available = {*range(count), *kwargs}
    for missing in sorted(used - available, key=str):
        what = f"argument {missing}" if isinstance(missing, int) else f"an argument {missing!r}"
        raise ArgumentError(
            f"debug.print: the text {fmt!r} refers to {what}, but there are {count} positional arguments"
            + (f" and {', '.join(kwargs)}" if kwargs else "")
        )
    for unused in sorted(available - used, key=str):
        what = f"argument {unused}" if isinstance(unused, int) else f"the argument {unused!r}"
        raise ArgumentError(f"debug.print: the text {fmt!r} does not refer to {what}. Write {{}} where it belongs.")


def _fields(fmt: str, automatic: Iterator[int]) -> Iterator[Any]:
    """Yield the position or the name of the argument of each field in a format string.

    ``automatic`` yields the positions for fields without either, ``{}``.
    """
    from string import Formatter

    for _, field, spec, _ in Formatter().parse(fmt):
        if field is None:
            continue
        name = field.split(".")[0].split("[")[0]
        yield int(name) if name.isdigit() else name or next(automatic)
        yield from _fields(spec or "", automatic)


def effects_barrier() -> None:
    """Wait until the effects of all programs that were started have happened.

    It returns immediately: a call of a program with effects returns after they have happened.

    >>> from pullback import effects_barrier
    >>> effects_barrier()
    """
