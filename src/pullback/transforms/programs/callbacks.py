"""Calls of Python functions within transformed and compiled functions, and what is made of them.

Three primitives call a function on NumPy arrays: ``pure_callback`` for its results alone, so that it may be left out,
repeated and moved; ``io_callback`` for its results and effects; ``debug_callback`` for its effects alone, so that it
can be differentiated. Mapped over an axis, a call stays one call, that loops over the examples on the host.
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
from pullback.core.array import SCALARS, Array, ArrayImpl, as_array, host_value, read_only
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
from pullback.core.trace import Primitive, Tracer, state
from pullback.core.traits import Cost
from pullback.core.types import MappedAxis, ShapedArray
from pullback.primitives.arrays.shapes import expand_dims, moveaxis
from pullback.primitives.axis_maps import front
from pullback.primitives.rules import jvp_zero
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import abstractify, check_callable, name_of

VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


# Host functions ------------------------------------------------------------------------------------------------------


def _name(function: Any) -> str:
    found = source.attribute(function, "__name__")
    return found if isinstance(found, str) else type(function).__name__


class HostFunction:
    """A Python function of trees, as one from flat NumPy arrays to checked, flat NumPy arrays.

    Attributes:
      avals: the types of its results.
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
        with _at_the_bottom(self.settings):
            leaves = tree.leaves(self.function(*args, **kwargs))
            if len(leaves) != len(self.avals):
                raise CallbackError(
                    f"{self.who} of {name_of(self.function)}: result_shape_dtypes has {len(self.avals)} arrays, but "
                    f"the function returned {len(leaves)}"
                )
            return [self._checked(i, x, a) for i, (x, a) in enumerate(zip(leaves, self.avals, strict=True))]

    def _checked(self, i: int, x: Any, aval: ShapedArray) -> np.ndarray[Any, Any]:
        array = as_array(x)
        if array.shape != aval.shape or array.dtype != aval.dtype:
            raise CallbackError(
                f"{self.who} of {name_of(self.function)}: result {i} is {aval} by result_shape_dtypes, but the "
                f"function returned {array.aval}. Convert it there, or declare what it is."
            )
        return np.asarray(host_value(array))

    def batched(self, size: int) -> HostFunction:
        """The same function, which takes and returns whole batches, with the mapped axis first."""
        other = HostFunction(self.who, self.function, self.in_tree, [_with_axis(a, size) for a in self.avals])
        other.settings = self.settings
        return other


class Looped:
    """A host function that calls another for each example of a batch, whose axis is the first.

    Attributes:
      avals: the types of its results.
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
        """The same for one more axis."""
        return Looped(self, [True] * len(self.mapped), size)


def _with_axis(aval: ShapedArray, size: int) -> ShapedArray:
    return aval.update(shape=(size, *aval.shape))


def _example(x: Any, i: int) -> Any:
    """An example of a batch; of random keys, which NumPy does not know, as an array of ours again."""
    return ArrayImpl(x._value[i]) if isinstance(x, ArrayImpl) else x[i, ...]


@contextmanager
def _at_the_bottom(settings: dict[str, Any]) -> Iterator[None]:
    """Eager evaluation and some switches, for a function of the user's, whoever calls it and on which thread."""
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


def _given(value: np.ndarray[Any, Any]) -> Any:
    """What a function of the user's is given for some elements: a read-only NumPy array; keys as an array of ours."""
    if dtypes.is_key(value.dtype):
        return ArrayImpl(value)
    return read_only(value)


# The primitives ------------------------------------------------------------------------------------------------------

_CALL: Any = {"multiple_results": True, "keeps_weak_type": False, "cost": Cost.CALL}
debug_callback_p = Primitive("debug_callback", **_CALL, effect=True)
pure_callback_p = Primitive("pure_callback", **_CALL, passes_nan=True)
io_callback_p = Primitive("io_callback", **_CALL, effect=True, passes_nan=True)
kept_callback_p = Primitive("pure_callback", **_CALL, effect=True, passes_nan=True)
"""A pure callback of a function that closes over a traced value, which a program may not leave out.

If the function asks for the value, that is an error when the program runs. A derivative that does not need the result
would not run it, and would be zero instead.
"""


class NotRepeatable(Exception):
    """A program cannot be run again without its effects, since these give it values."""


class _Way(threading.local):
    """How this thread runs programs operation by operation.

    Attributes:
      again: whether their effects have happened before.
      as_compiled: whether functions raise what they raise in compiled programs.
    """

    again = False
    as_compiled = False


_way = _Way()


@contextmanager
def without_effects() -> Iterator[None]:
    """A block in which eager evaluation leaves out calls for effects, and refuses those that return values too.

    Raises:
      NotRepeatable: ``io_callback`` is called.
    """
    before, _way.again = _way.again, True
    try:
        yield
    finally:
        _way.again = before


@contextmanager
def as_compiled() -> Iterator[None]:
    """A block in which what a function raises in eager evaluation is a HostFunctionError, as in a compiled program."""
    before, _way.as_compiled = _way.as_compiled, True
    try:
        yield
    finally:
        _way.as_compiled = before


def _evaluate_once(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[ArrayImpl]:
    if not _way.again:
        return _evaluate(primitive, args, params)
    if params["call"].avals:
        raise NotRepeatable
    return []


def _evaluate(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[ArrayImpl]:
    arrays = [_given(host_value(as_array(x))) for x in args]
    call = params["call"]
    outs = _raising_as_compiled(primitive, call, arrays) if _way.as_compiled else call(*arrays)
    return [ArrayImpl(value[()] if value.ndim == 0 else value) for value in outs]


def _raising_as_compiled(primitive: Primitive, call: Any, arrays: Sequence[Any]) -> Any:
    """What a call returns, with the exception that it raises as it is known in a compiled program."""
    outer, _way.as_compiled = _way.as_compiled, False  # the function's own operations are not the program's
    try:
        return call(*arrays)
    except HostFunctionError:  # of a program that the function ran
        raise
    except Exception as error:
        raise of_host_function(primitive.name, call.__name__, error) from error
    finally:
        _way.as_compiled = outer


def _compiled_call(primitive: Primitive, call: Any, kinds: Sequence[np.dtype[Any]], *operands: Any) -> tuple[Any, ...]:
    """What a compiled program calls: its operands look into memory that is another's once this returns.

    Raises:
      HostFunctionError: the function raised an exception; one that is no ``Exception`` is raised as it is.
    """
    in_order = primitive.effect
    if in_order:
        first, *operands = operands  # type: ignore[assignment]
    arrays = []
    for x, dtype in zip(operands, kinds, strict=True):
        copy = np.array(x)
        arrays.append(_given(copy if copy.dtype == dtype else copy.view(dtype)))
    results = _raising_as_compiled(primitive, call, arrays)
    outs = [x.view(stored_dtype(x.dtype)) if dtypes.is_key(x.dtype) else x for x in results]
    return (np.array(first), *outs) if in_order else tuple(outs)


def _lowering(primitive: Primitive, hlo: Any, *operands: Any, call: Any, **params: Any) -> Any:
    from pullback.backends.host.calls import TARGET

    calls = hlo.module.callbacks
    index = f"index = {len(calls)} : ui64"
    calls.append(partial(_compiled_call, primitive, call, [x.dtype for x in operands]))
    results = [(a.shape, a.dtype) for a in call.avals]
    if not primitive.effect:
        return hlo.custom_call(TARGET, operands, results, index, hlo.module.on_one_device(len(results)))
    # The compiler keeps the order of calls of which each takes what the one before returned. So it is kept for those
    # that are not ordered too, which costs nothing: they run one at a time anyway.
    order = hlo.number(False, _BOOL) if hlo.order is None else hlo.order
    types = [((), _BOOL), *results]
    alone = hlo.module.on_one_device(len(types))
    hlo.order, *outs = hlo.custom_call(TARGET, (order, *operands), types, index, alone, side_effect=True)
    return outs


_BOOL = np.dtype(bool)

for _primitive in (debug_callback_p, pure_callback_p, io_callback_p, kept_callback_p):
    _primitive.abstract_eval(lambda *avals, call, **params: call.avals)
    _primitive.lowering(partial(_lowering, _primitive))
    _primitive.impl(partial(_evaluate_once if _primitive.effect else _evaluate, _primitive))


# Differentiation


def _no_derivative(primitive: Primitive, primals: Any, tangents: Any, *, call: Any, **params: Any) -> Any:
    raise CallbackError(
        f"{primitive.name} of {call.__name__} was differentiated, but the derivative of a Python function is not "
        "known. Wrap the call in a function with a derivative of its own (custom_jvp, custom_vjp), or take its "
        "operands out of the differentiated function."
    )


debug_callback_p.jvp_rule = jvp_zero(debug_callback_p)
for _primitive in (pure_callback_p, io_callback_p, kept_callback_p):
    _primitive.jvp(partial(_no_derivative, _primitive))


# Batching


def _loop(
    primitive: Primitive, axis: MappedAxis, args: Sequence[Any], dims: Sequence[int | None], *, call: Any, **params: Any
) -> tuple[list[Any], list[int | None]]:
    """One call that loops over the examples."""
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
    if vmap_method is None:
        raise CallbackError(
            f"pure_callback of {call.__name__} was mapped by vmap, but vmap_method does not say how. It must be one of "
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


for _primitive in (pure_callback_p, kept_callback_p):
    _primitive.batch(partial(_pure_batch, _primitive))


# The public functions ------------------------------------------------------------------------------------------------


def _call_for_results(
    primitive: Primitive, function: Callable[..., Any], result_shape_dtypes: Any, args: Any, kwargs: Any, **params: Any
) -> Any:
    """Call a function of arrays alone, for results of declared types."""
    who = primitive.name
    leaves, in_tree = tree.flatten_call(args, kwargs)
    try:
        operands = [as_array(x) for x in leaves]
    except OperandError as error:
        raise type(error)(
            f"{who} of {name_of(function)}: {error} What is no array must be bound to the function beforehand, with "
            "functools.partial for example."
        ) from None
    declared, out_tree = tree.flatten(result_shape_dtypes)
    avals = [abstractify(x).update(weak_type=False, varying=frozenset()) for x in declared]
    call = HostFunction(who, function, in_tree, avals)
    return tree.unflatten(out_tree, primitive.bind(*operands, call=call, **params))


def _closes_over_traced(function: Any) -> bool:
    """Whether a function refers to a traced value: in its closure, its defaults or what is bound to it."""
    held: list[Any] = []
    while isinstance(function, partial):
        held += [*function.args, *function.keywords.values()]
        function = function.func
    held += source.attribute(function, "__defaults__") or ()
    for cell in source.attribute(function, "__closure__") or ():
        with suppress(ValueError):  # an empty cell
            held.append(cell.cell_contents)
    return any(isinstance(x, Tracer) for x in held)


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

    The function must depend on its arguments alone and have no effects: it may be called more than once, or not at all.

    Args:
      callback: takes and returns trees of NumPy arrays; those that it is given are read-only (random keys are given as
        arrays of ours).
      result_shape_dtypes: a tree of ``ShapeDtypeStruct``, or anything with ``shape`` and ``dtype``, as its results are.
      args, kwargs: trees of arrays and numbers.
      sharding: one of a single device, or None. It changes nothing: functions are called in this process.
      vmap_method: what ``vmap`` makes of it. ``"sequential"`` and ``"sequential_unrolled"``: it is called for each
        example; ``"expand_dims"``: once, with the mapped axis first, of size 1 where an argument is not mapped;
        ``"broadcast_all"``: the same, with arguments that are not mapped repeated; ``"legacy_vectorized"``: the same,
        with these as they are. None: ``vmap`` is an error.

    Returns:
      A tree of arrays like ``result_shape_dtypes``.

    Raises:
      CallbackError: the results are of other types than declared; the call was differentiated; it was mapped and
        ``vmap_method`` is None (a ValueError and NotImplementedError).
      HostFunctionError: the callback raised an error in a compiled function. What is raised is a JaxRuntimeError and
        of the class of that error, which is its cause.
      ArgumentError: no such ``vmap_method`` (a ValueError).
      UnsupportedArgumentError: ``sharding`` is of several devices (a NotImplementedError).

    >>> import numpy as np
    >>> import pullback.numpy as pnp
    >>> from pullback import ShapeDtypeStruct, jit
    >>> @jit
    ... def f(x):
    ...     return 1 + pure_callback(np.tanh, ShapeDtypeStruct(x.shape, x.dtype), x)
    >>> print(f(pnp.zeros(2)))
    [1. 1.]
    """
    check_callable(callback, "pure_callback")
    if len(getattr(sharding, "device_set", "1")) != 1:
        raise UnsupportedArgumentError(
            f"pure_callback: a function is called in one place, but the sharding is of several devices: {sharding!r}"
        )
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ArgumentError(
            f"pure_callback: vmap_method must be None or one of {', '.join(map(repr, VMAP_METHODS))}, got "
            f"{vmap_method!r}"
        )
    primitive = pure_callback_p if state.trace.eager or not _closes_over_traced(callback) else kept_callback_p
    return _call_for_results(primitive, callback, result_shape_dtypes, args, kwargs, vmap_method=vmap_method)


@api_boundary
def io_callback(
    callback: Callable[..., Any], result_shape_dtypes: PyTree, *args: PyTree, ordered: bool = False, **kwargs: PyTree
) -> PyTree:
    """Call a Python function that has effects, exactly once, also from compiled functions.

    Args:
      callback: takes and returns trees of NumPy arrays; those that it is given are read-only.
      result_shape_dtypes: a tree of ``ShapeDtypeStruct``, or anything with ``shape`` and ``dtype``, as its results are;
        None if it has none.
      args, kwargs: trees of arrays and numbers.
      ordered: whether ordered calls of one program happen in the order in which they were written. Under ``vmap`` there
        is none; a call that is not ordered is made for each example.

    Returns:
      A tree of arrays like ``result_shape_dtypes``.

    Raises:
      CallbackError: the results are of other types than declared; the call was differentiated; it is ordered and was
        mapped (a ValueError and NotImplementedError).
      HostFunctionError: the callback raised an error in a compiled function. What is raised is a JaxRuntimeError and
        of the class of that error, which is its cause.

    >>> from pullback import ShapeDtypeStruct, jit
    >>> rows = iter([10, 20])
    >>> next_row = jit(lambda: io_callback(lambda: next(rows), ShapeDtypeStruct((), "int32")))
    >>> print(next_row(), next_row())
    10 20
    """
    check_callable(callback, "io_callback")
    return _call_for_results(io_callback_p, callback, result_shape_dtypes, args, kwargs, ordered=bool(ordered))


def call_for_effect(function: Callable[..., Any], args: Any, kwargs: Any, ordered: bool, numbers: bool) -> None:
    """Call a function; what is no array (Python's numbers only if ``numbers``) is handed to it as it is."""
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
      callback: takes trees of NumPy arrays, which are read-only; what it returns is dropped. Left out: the result is
        ``debug.callback`` with these options, which takes it.
      args, kwargs: trees of arrays and numbers; anything else is handed to the function as it is.
      ordered: whether ordered calls of one program happen in the order in which they were written.
      partitioned: without effect: the function is called once, with whole arrays.

    Raises:
      ArgumentError: it is no function, or both ``ordered`` and ``partitioned`` (a ValueError and TypeError).

    >>> import pullback.numpy as pnp
    >>> from pullback import grad, jit
    >>> seen = []
    >>> def f(x):
    ...     debug_callback(seen.append, x)
    ...     return pnp.sin(x)
    >>> print(jit(grad(f))(0.0), seen)
    1.0 [array(0., dtype=float32)]
    """
    _check_order("debug.callback", ordered, partitioned)
    if callback is None:
        return partial(debug_callback, *args, ordered=ordered, partitioned=partitioned, **kwargs)
    check_callable(callback, "debug.callback")
    call_for_effect(callback, args, kwargs, ordered, numbers=True)
    return None


def _check_order(who: str, ordered: bool, partitioned: bool) -> None:
    if ordered and partitioned:
        raise ArgumentError(f"{who}: ordered and partitioned exclude each other: parts of arrays have no order")


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

    Differentiation prints the values, once; ``vmap`` prints each example if an argument is mapped.

    Args:
      fmt: text in the style of ``str.format``. Left out: the result is ``debug.print`` with these options.
      args, kwargs: what it refers to: arrays, or anything else.
      ordered: whether ordered prints of one program come in the order in which they were written.
      partitioned: without effect: whole arrays are printed, once.
      skip_format_check: whether the text may leave arguments out, or fail when it is printed.
      _use_logging: whether the text goes to the logger ``pullback``, at level ``INFO``, instead.

    Raises:
      ArgumentError: the text refers to an argument that was not given, or an argument is never referred to; both
        ``ordered`` and ``partitioned`` (a ValueError).

    >>> import pullback.numpy as pnp
    >>> from pullback import jit
    >>> @jit
    ... def f(x):
    ...     debug_print("x = {}, y = {y:.2f}", x, y=x.sum())
    ...     return x + 1
    >>> out = f(pnp.arange(3.0))
    x = [0. 1. 2.], y = 3.00
    """
    _check_order("debug.print", ordered, partitioned)
    if fmt is None:
        return partial(
            debug_print, ordered=ordered, partitioned=partitioned, skip_format_check=skip_format_check,
            _use_logging=_use_logging,
        )  # fmt: skip
    if not isinstance(fmt, str):
        raise ArgumentError(f"debug.print takes a text in the style of str.format, got {fmt!r} of {type(fmt).__name__}")
    if not skip_format_check:
        _check_format(fmt, len(args), kwargs)

    def show(*args: Any, **kwargs: Any) -> None:
        text = fmt.format(*args, **kwargs)
        if _use_logging:
            import logging  # which most processes do not need, as in other modules

            logging.getLogger("pullback").info(text)
        else:
            print(text)

    show.__name__ = "print"
    call_for_effect(show, args, kwargs, ordered, numbers=False)
    return None


def _check_format(fmt: str, count: int, kwargs: dict[str, Any]) -> None:
    """Refuse a text that does not fit its arguments, now rather than when the program runs."""
    try:
        used = set(_fields(fmt, iter(range(sys.maxsize))))
    except ValueError as error:
        raise ArgumentError(f"debug.print: {fmt!r} is not in the style of str.format: {error}") from None
    given = {*range(count), *kwargs}
    for missing in sorted(used - given, key=str):
        what = f"argument {missing}" if isinstance(missing, int) else f"an argument {missing!r}"
        raise ArgumentError(
            f"debug.print: the text {fmt!r} refers to {what}, but there are {count} positional arguments"
            + (f" and {', '.join(kwargs)}" if kwargs else "")
        )
    for unused in sorted(given - used, key=str):
        what = f"argument {unused}" if isinstance(unused, int) else f"the argument {unused!r}"
        raise ArgumentError(f"debug.print: the text {fmt!r} does not refer to {what}. Write {{}} where it belongs.")


def _fields(fmt: str, automatic: Iterator[int]) -> Iterator[Any]:
    """The positions and names of the arguments that a text refers to, those within format specifications too."""
    from string import Formatter

    for _, field, spec, _ in Formatter().parse(fmt):
        if field is None:
            continue
        name = field.split(".")[0].split("[")[0]
        yield int(name) if name.isdigit() else name or next(automatic)
        yield from _fields(spec or "", automatic)


def effects_barrier() -> None:
    """Wait until all effects of the programs that were started have happened.

    A program with effects is waited for where it is started, so that nothing is left to wait for here.

    >>> effects_barrier()
    """
