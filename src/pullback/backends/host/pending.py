"""Large arrays whose elements are computed when somebody reads them: several operations in one pass over memory.

An elementwise operation on a large array returns an array whose elements are pending: an expression, which refers to
the operands. When its elements are read, the expression is evaluated by blocks that fit into the processor's cache, so
that intermediate results never reach memory. A block is computed by NumPy's loops, called by a module in C, or by the
host rules of the operations, which compute each element as on whole arrays, so the bits are the same.

Expressions are bounded in the number of operations, and in the bytes of the operands that they keep alive.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from sys import getrefcount
from typing import Any

import numpy as np

from pullback.backends.host import aligned, native, reductions  # noqa: F401 (aligned provides copies of large arrays)
from pullback.backends.host.blocks import Index, block_of, blocks_along, collapsed, flattened
from pullback.backends.host.narrow import usual
from pullback.backends.host.parallel import cores, on_cores
from pullback.backends.host.rules import (
    FLOAT_UFUNCS,
    UFUNCS,
    div,
    identity,
    integer_pow,
    max_share,
    min_share,
    rem,
    rsqrt,
    square,
)
from pullback.core import array, traits
from pullback.core.array import MOST_HOST_AXES, SCALARS, Absent, ArrayImpl, resolve_weak_scalars, typeof
from pullback.core.config import config
from pullback.core.errors import AllocationError
from pullback.core.host_operands import host_operands
from pullback.core.jaxpr import infer
from pullback.core.locks import lock
from pullback.core.reference_counts import OF_PARAMETER
from pullback.core.runtime import provides, runtime
from pullback.core.trace import EvalTrace, Primitive, is_within_rule, recover, state
from pullback.core.types import ShapedArray

LARGE = array.LARGE if native.loops is not None else 3 * array.LARGE
"""The least elements that may be pending: from here on an addition takes no longer, and most programs half as long."""
BLOCK = 1 << 20
"""The bytes of a block: those of a few intermediate results fit into the cache of a core."""
LEAST_WORK = 1 << 21
"""An expression of less work is evaluated on whole arrays, for threads would take longer to wake up than they save.

The work is the number of elements, times 1 for each light operation of NumPy's (such as a sum) and 4 for others.
"""
MOST_ELEMENTS = 1 << 32
"""Larger results are computed at once: they may not fit into memory, which the operation says, not its reader."""
MOST_STEPS = 32
"""The most operations of an expression."""
MOST_PASSED = 3
"""The most operations, none of them slow, whose elements are not kept when they are first computed as a part of another
expression, or for a reduction. To compute them once more, if anybody reads them, takes no longer than to write them."""
MOST_SPREAD = 8
"""The same number for elements that are more than four times the bytes of all arrays that they depend on, such as
distances of pairs: they are computed from what a cache holds, and may be computed often."""
MOST_KEPT = 2 + 1 / 16
"""The most bytes of the operands of an expression, as a multiple of those of its result: two arrays and a few rows."""

if native.loops is not None:
    native.loops.limit(LARGE)
    provides(native.loops.in_memory)  # it returns None also for small arrays that broadcast to a large one
else:

    @provides
    def in_memory(a: Any, b: Any) -> tuple[Any, Any] | None:
        """Return the elements of two operands if NumPy has to compute with them now."""
        return (a, b) if type(a) is not Absent and type(b) is not Absent else None


_new = object.__new__


@dataclass(eq=False, frozen=True, slots=True)
class Operation:
    """An operation on operands of some types, whose result may be pending. There is one object of each.

    Attributes:
      aval: the type of the result.
      rule: the host rule.
      params: its parameters, each a name and a value.
      kinds: for each operand that is an array its shape, its dtype and whether it is weakly typed; else its class.
      weight: its work for each element, as in ``LEAST_WORK``.
      is_slow: whether to compute an element takes longer than to write it and to read it again.
      is_identity: whether the result is the operand.
      most_kept: the most bytes of arrays that an expression of this result keeps in memory.
    """

    aval: ShapedArray
    rule: Callable[..., Any]
    params: tuple[tuple[str, Any], ...]
    kinds: tuple[Any, ...]
    weight: int
    is_slow: bool
    is_identity: bool
    most_kept: int


class Pending:
    """The elements of a large array: known, or the result of an operation that is evaluated when they are read.

    Attributes:
      operation, params: the operation, and its parameters.
      operands: other pending elements, NumPy arrays and numbers; empty once the elements are known.
      shape, dtype: those of the elements.
      known: the elements, or None.
      passed: whether the elements were computed and not kept.
      holder: a weak reference to the ``Absent`` of the array that has the elements.
    """

    __slots__ = ("dtype", "holder", "known", "operands", "operation", "params", "passed", "shape")

    operation: Operation
    params: dict[str, Any]
    holder: weakref.ref[Absent]

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], known: Any = None) -> None:
        self.shape, self.dtype, self.known, self.passed = shape, dtype, known, False
        self.operands: tuple[Any, ...] = ()

    def read(self) -> Any:
        """Return the elements; compute them first if they are pending.

        Raises:
          AllocationError: there is no memory for them (a MemoryError).
        """
        if self.known is None:
            try:
                _evaluate(self)
            except MemoryError as error:
                raise AllocationError(
                    f"no memory for an array of shape {self.shape} and dtype {self.dtype}: {error}"
                ) from None
        return self.known

    def is_needed(self) -> bool:
        """Whether an array has these elements, so that they may be read later."""
        return self.holder() is not None

    def learn(self, elements: Any) -> None:
        """Keep the elements, and let go of the operands."""
        self.known = elements  # before the operands go: another thread reads the operands first
        self.operands = ()


Step = tuple[Pending, tuple[Any, ...]]
"""Pending elements and their operands."""
Instruction = tuple[Callable[..., Any], dict[str, Any], list[int], int, int | None]
"""An operation on a block: its function and parameters, the indices of its operands and its result, and its buffer.

The buffer is None if the function allocates its result, and -1 if it writes to the block of an array that is kept."""

# Creation ----------------------------------------------------------------------------------------------------------


@provides
def hold(x: Any) -> Any:
    """Let the results of operations on a concrete array be pending, if it is large; return it, or any other value."""
    if type(x) is ArrayImpl:
        value = x._host_value
        if type(value) is np.ndarray and value.size >= LARGE and _is_supported(value.dtype) and config.eager_fusion:
            x._host_value = _absent(Pending(value.shape, value.dtype, value), x.weak_type)
    return x


def _absent(pending: Pending, weak_type: bool) -> Absent:
    """Return what stands for pending elements in an array."""
    absent = Absent(ShapedArray(pending.shape, pending.dtype, weak_type), pending)
    pending.holder = weakref.ref(absent)
    return absent


def _is_supported(dtype: np.dtype[Any]) -> bool:
    """Whether expressions may have elements of a dtype: NumPy's own floats, integers and booleans.

    NumPy rounds complex numbers at the end of an array otherwise than in the middle, so blocks of them differ. Floats
    of 16 bits take NumPy so long that memory does not matter.
    """
    return dtype.isbuiltin == 1 and dtype.kind in "fiub" and dtype.char != "e"


def evaluate(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Evaluate an operation that is not :func:`deferred`.

    Elements of operands are not in NumPy's memory, or the operands broadcast to a large array.
    """
    if len(args) == 1 and not traits.elementwise.of(primitive):
        x = args[0]
        node = x._host_value.pending if type(x) is ArrayImpl and type(x._host_value) is Absent else None
        if node is not None and node.known is not None:  # fast path: a large array, as it is
            out = EvalTrace.process(state.bottom, primitive, (ArrayImpl(node.known, x.weak_type),), params)
            return list(map(hold, out)) if primitive.multiple_results else hold(out)
    large, fetched = False, False
    for x in args:
        if type(x) is ArrayImpl and type(held := x._host_value) is Absent:
            if held.pending is None:
                x._value  # noqa: B018  (copies the elements to the host, where they stay)
                fetched = True
            else:
                large = True
    if fetched and not large:
        return EvalTrace.process(state.bottom, primitive, tuple(args), params)
    if traits.elementwise.of(primitive) and config.eager_fusion:
        if large and usual(primitive.host_rule) is identity and args[0]._host_value.pending.known is not None:
            pending = args[0]._host_value.pending
            return hold(ArrayImpl(pending.known, args[0].weak_type and bool(primitive.keeps_weak_type)))
        if fetched and (out := deferred(primitive, args, params)) is not None:
            return out
    if not large:
        out = _computed(primitive, tuple(args), params)
        return list(map(hold, out)) if primitive.multiple_results else hold(out)
    kind = native.REDUCTIONS.get(usual(primitive.host_rule))
    if kind is not None:
        out = _reduced(kind, args[0], **params)
        if out is not None:
            return hold(ArrayImpl(out, args[0].weak_type and bool(primitive.keeps_weak_type)))
    plain = [ArrayImpl(x._value, x.weak_type) if type(x) is ArrayImpl else x for x in args]
    out = EvalTrace.process(state.bottom, primitive, tuple(plain), params)
    return list(map(hold, out)) if primitive.multiple_results else hold(out)


def _computed(primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Evaluate an operation with NumPy on operands that are in its memory, however large the result is."""
    values, weak = host_operands(primitive, args)
    assert values is not None
    assert primitive.host_rule is not None
    try:
        out = state.silently(primitive.host_rule, *values, **params)
    except Exception as error:
        out = recover(error, primitive, args, values, params)
    if weak is None:
        weak = params["weak_type"]
    if primitive.multiple_results:
        return [ArrayImpl(value, weak and value.dtype.kind != "b") for value in out]
    return ArrayImpl(out, weak and out.dtype.kind != "b")


def are_spread(args: Sequence[Any]) -> bool:
    """Whether operands are two arrays in NumPy's memory that broadcast to a large one."""
    if native.loops is None or len(args) != 2 or any(type(x) is not ArrayImpl for x in args):
        return False
    x, y = [x._host_value for x in args]
    in_memory = type(x) is not Absent and type(y) is not Absent
    return in_memory and x.ndim + y.ndim <= MOST_HOST_AXES and native.loops.in_memory(x, y) is None


def deferred(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> ArrayImpl | None:
    """Return the result of an elementwise operation, with pending elements; None if it must be evaluated now.

    It may be pending if it is large, and the elements of each operand are pending or in NumPy's memory.
    """
    by = _deferred_by_python if native.loops is None else native.loops.deferred
    out = by(primitive, args, params)
    return _in_order(primitive, args, params) if out is NotImplemented else out


def _in_order(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> ArrayImpl | None:
    """Evaluate an operation on arrays of one shape whose elements are side by side, but the axes in another order.

    The result has that order too, as in NumPy. Return None for other operands.
    """
    values = [x._value if type(x) is ArrayImpl else x for x in args]
    arrays = [x for x in values if type(x) is np.ndarray and x.ndim]
    first = next((x for x in arrays if not _is_row_major(x)), None)
    if first is None or any(x.shape != first.shape for x in arrays):
        return None
    order = sorted(range(first.ndim), key=lambda axis: -first.strides[axis])
    views = [x.transpose(order) if type(x) is np.ndarray and x.ndim else x for x in values]
    if not all(x.flags.c_contiguous for x in views if type(x) is np.ndarray):
        return None
    given = [ArrayImpl(x, a.weak_type) if type(a) is ArrayImpl else a for x, a in zip(views, args, strict=True)]
    out = deferred(primitive, given, params)
    if out is None:
        return None
    inverse = sorted(range(first.ndim), key=order.__getitem__)
    return hold(ArrayImpl(out._value.transpose(inverse), out.weak_type))  # type: ignore[no-any-return]


def _deferred_by_python(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Do what the function ``deferred`` of the module in C does, where there is none."""
    kinds: list[Any] = []
    for x in args:
        if type(x) is ArrayImpl:
            value = x._host_value
            kinds.append((value.shape, value.dtype, x.weak_type))
        else:
            kinds.append(type(x))
    found = _operation(primitive, tuple(params.items()), tuple(kinds))
    if found is None or (int in kinds and not _are_integers_held(args)):
        return None
    node, shape = Pending(found.aval.shape, found.aval.dtype), found.aval.shape
    operands: list[Any] = []
    for x in args:
        if type(x) is ArrayImpl:
            x = x._host_value
            if type(x) is Absent:
                other = x.pending
                if other is None or (found.is_identity and other.known is not None):
                    return None
                x = other.known
                if x is None:  # an expression of another shape is not part of this one
                    x = other if other.shape == shape else other.read()
            if type(x) is np.ndarray and not _is_row_major(x):
                return NotImplemented
        operands.append(x)
    node.operation, node.params, node.operands = found, params, tuple(operands)
    out = _new(ArrayImpl)
    out._host_value = _absent(node, found.aval.weak_type)
    out.weak_type = found.aval.weak_type
    steps, arrays = extent(node)
    if steps > MOST_STEPS or (len(arrays) > 1 and sum(arrays.values()) > found.most_kept):
        operands = x = value = other = None  # type: ignore[assignment]  # memory that nobody else has receives the result
        node.read()
    return out


def extent(node: Pending) -> tuple[int, dict[int, int]]:
    """Return how many pending elements an expression has, and the bytes of each array in memory that it depends on.

    The arrays are known by their identities.
    """
    steps: list[Step] = []
    _collect(node, set(), steps)
    found: dict[int, int] = {}
    for _, operands in steps:
        for x in operands:
            value = x.known if type(x) is Pending else x
            if type(value) is np.ndarray:
                found[id(value)] = _bytes_of(value)
    return len(steps), found


@lru_cache(maxsize=4096)
def _operation(primitive: Primitive, params: tuple[Any, ...], kinds: tuple[Any, ...]) -> Operation | None:
    """Return an elementwise operation if its result may be pending; else None.

    It may be if NumPy evaluates the operation by a quick loop, so that access to memory is most of its time.

    Args:
      primitive: the elementwise operation.
      params: its parameters, each a name and a value.
      kinds: for each operand that is an array its shape, its dtype and whether it is weakly typed; else its class.
    """
    if primitive.multiple_results or primitive.host_rule is None:
        return None
    if not all(kind in SCALARS if type(kind) is type else _is_supported(kind[1]) for kind in kinds):
        return None
    samples = [kind(0) if type(kind) is type else ShapedArray(*kind) for kind in kinds]
    avals = [x if isinstance(x, ShapedArray) else typeof(x) for x in samples]
    try:
        aval = infer(primitive, resolve_weak_scalars(avals, samples), dict(params))
    except Exception:  # evaluation raises the error that explains
        return None
    if not LARGE <= aval.size <= MOST_ELEMENTS or not _is_supported(aval.dtype) or len(aval.shape) > MOST_HOST_AXES:
        return None
    rule = usual(primitive.host_rule)
    if rule in (div, rem) and aval.dtype.kind in "iu" and native.loops is None:
        return None  # NumPy takes so long that memory does not matter
    rule = getattr(rule, "of_many", rule)
    is_special = traits.cost.of(primitive) is traits.Cost.SPECIAL or traits.compiled_from.of(primitive) is not None
    if is_special and (native.loops is None or rule not in native.QUICK_IN_SINGLE or aval.dtype.char != "f"):
        return None
    is_light = traits.cost.of(primitive) is traits.Cost.LIGHT and not params
    is_slow = is_special or (traits.cost.of(primitive) is traits.Cost.SIMPLE and rule not in _QUICK)
    weight = 1 if is_light and _ufunc_of(rule, aval.dtype) is not None else 4
    most_kept = int(MOST_KEPT * aval.dtype.itemsize * aval.size)
    return Operation(aval, rule, params, kinds, weight, is_slow, rule is identity, most_kept)


_QUICK = (div, np.sqrt, rsqrt, square, integer_pow, max_share, min_share)  # of the simple operations


def _are_integers_held(args: Sequence[Any]) -> bool:
    """Whether the dtypes of the arrays among operands hold the Python integers among them."""
    try:
        for number in args:
            if type(number) is int and not 0 <= number < 128:
                for x in args:
                    if type(x) is ArrayImpl:
                        x.dtype.type(number)
    except OverflowError:
        return False
    return True


def _is_row_major(x: Any) -> bool:
    """Whether an operation on an array has a result in row-major order, as results of expressions are.

    NumPy's results are in the order of the operands, on which it depends how a product of matrices rounds.
    """
    if x.flags.c_contiguous:
        return True
    strides = [stride for stride, size in zip(x.strides, x.shape, strict=True) if stride and size > 1]
    return strides == sorted(strides, reverse=True)


def _bytes_of(x: Any) -> int:
    """The bytes of the elements of an array that may repeat some by broadcasting."""
    if x.flags.c_contiguous:
        return int(x.nbytes)
    sizes = [size for stride, size in zip(x.strides, x.shape, strict=True) if stride]
    return x.itemsize * math.prod(sizes) if sizes else 0


# Evaluation --------------------------------------------------------------------------------------------------------


def _evaluate(root: Pending) -> None:
    """Compute pending elements, and those that they depend on and that an array has."""
    with _evaluating:
        if root.known is not None or (native.loops is not None and native.loops.evaluate(root, None, "")):
            return
        steps: list[Step] = []
        _collect(root, set(), steps)
        _silently(_compute, steps)


_evaluating = lock(globals(), "_evaluating", reentrant=True)
"""Held while pending elements are computed, for which the memory of operands may be written over: another thread that
wants the same elements waits, and finds them."""


def _silently(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function in which NumPy does not warn, as in host rules."""
    return function(*args) if is_within_rule() else state.silently(function, *args)


def _compute(steps: list[Step]) -> None:
    """Compute the last of some pending elements, and those that an array has, by host rules."""
    work = math.prod(steps[-1][0].shape) * sum([node.operation.weight for node, _ in steps])
    if work < LEAST_WORK:
        _evaluate_whole(steps)
    else:
        _evaluate_by_blocks(steps)


def _collect(node: Pending, seen: set[int], steps: list[Step]) -> None:
    """Append ``node``, after all pending elements that it depends on, to ``steps``."""
    operands = node.operands
    if node.known is not None or id(node) in seen:
        return
    seen.add(id(node))
    for x in operands:
        if type(x) is Pending:
            _collect(x, seen, steps)
    steps.append((node, operands))


def _is_spread(node: Pending) -> bool:
    """Whether pending elements are many more than those that they depend on."""
    return 4 * sum(extent(node)[1].values()) < math.prod(node.shape) * node.dtype.itemsize


Structure = tuple[tuple[Operation, tuple[int, ...]], ...]
"""The operations of an expression; and of each operand the index of an earlier operation, or ``~index`` of an operand
of the expression."""
Strides = tuple[tuple[int, ...] | None, ...]
"""For each operand of an expression its strides, or None if its elements are side by side in row-major order."""


@lru_cache(maxsize=1024)
def _plan(
    structure: Structure, strides: Strides, kept: tuple[int, ...], axes: tuple[int, int] | None, kind: str
) -> native.Plan | None:
    """Plan the evaluation of an expression.

    Args:
      structure, strides: the expression.
      kept: the indices of the operations whose results stay.
      axes, kind: as in :func:`pullback.backends.host.native.planned`.
    """
    operands: list[Any] = [None] * len(strides)
    operations = []
    for operation, indices in structure:
        for i, operand in zip(indices, operation.kinds, strict=True):
            if i < 0:
                operands[~i] = operand if type(operand) is type else _described(operand[0], operand[1], strides[~i])
        operations.append((operation.rule, operation.params, operation.aval.dtype, indices))
    return native.planned(structure[-1][0].aval.shape, tuple(operations), tuple(operands), kept, axes, kind)


def _described(shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...] | None) -> native.Operand:
    """Describe an array; without ``strides`` its elements are side by side in row-major order."""
    if strides is None:
        strides = tuple([dtype.itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape))])
    return shape, strides, dtype


def _uses(steps: list[Step]) -> Mapping[int, int]:
    """Return how often the tuples of operands of an expression refer to an object, by the object's identity."""
    uses: dict[int, int] = {}
    for _, given in steps:
        for x in given:
            uses[id(x)] = uses.get(id(x), 0) + 1
    return uses


def _kept(steps: list[Step], uses: Mapping[int, int]) -> list[int]:
    """Return the indices of the pending elements of an expression that stay once they are computed.

    They are the last; those of slow operations that another expression needs; and those that an array has, except light
    ones at the first time: what a tape refers to is mostly read once more, as part of another expression, or never.
    The module in C decides in the same way.

    Args:
      steps: the expression.
      uses: its ``_uses``.
    """
    kept: list[int] = []
    costs: dict[int, int] = {}
    for k, (node, operands) in enumerate(steps):
        cost = MOST_SPREAD + 1 if node.operation.is_slow else 1
        cost += sum([costs.get(id(x), 0) for x in operands])
        most, passed = (MOST_SPREAD, False) if _is_spread(node) else (MOST_PASSED, node.passed)
        stays = node.is_needed() and (cost > most or passed)
        if k == len(steps) - 1 or stays or (node.operation.is_slow and _is_used_elsewhere(node, uses)):
            kept.append(k)
        else:
            costs[id(node)], node.passed = cost, node.is_needed()
    return kept


def _is_used_elsewhere(node: Pending, uses: Mapping[int, int]) -> bool:
    """Whether another expression refers to pending elements; ``uses`` is as in :func:`_kept`."""
    return getrefcount(node) > uses.get(id(node), 0) + 1 + OF_PARAMETER  # one is that of the list of steps


def _reduced(kind: str, x: ArrayImpl, axes: tuple[int, ...]) -> Any:
    """Reduce pending elements while they are computed; return None if they are known, or there are no loops for them.

    Args:
      kind: that of the reduction, as in :func:`pullback.backends.host.native.reduce_rows`, or a function of rows.
      x: an array with pending elements.
      axes: the axes that are reduced.
    """
    node: Pending = x._host_value.pending
    shape, ndim = node.shape, len(node.shape)
    first = min(axes, default=ndim)
    end = first + len(axes)
    if node.known is not None or node.dtype.char not in "fd" or axes != tuple(range(first, end)):
        return None
    if kind in native.OF_ROWS and not native.are_rows(shape, axes):
        return None
    if end < ndim and not reductions.are_columns_worthwhile(shape, end):
        return None
    with _evaluating:
        if node.known is not None or math.prod(shape) < reductions.LARGE:
            return None
        try:
            pieces = native.loops is not None and native.loops.evaluate(node, (first, end if axes else ndim), kind)
        except MemoryError:  # evaluation raises the error that explains
            return None
    if pieces is False or kind in native.OF_ROWS:
        return None if pieces is False else pieces.reshape(shape)
    return native.finished(kind, pieces, end == ndim).reshape(shape[:first] + shape[end:])[()]


def _evaluate_whole(steps: list[Step]) -> None:
    """Compute each of a few pending elements on whole arrays."""
    kept = set(_kept(steps, _uses(steps))) | {k for k, (node, _) in enumerate(steps) if node.is_needed()}
    found: dict[int, Any] = {}
    for k, (node, operands) in enumerate(steps):
        values = [found[id(x)] if id(x) in found else x.known if type(x) is Pending else x for x in operands]
        found[id(node)] = out = node.operation.rule(*values, **node.params)
        if k in kept:
            node.learn(out)


def _evaluate_by_blocks(steps: list[Step]) -> None:
    """Compute pending elements of one shape by blocks, each of which passes through all operations."""
    root = steps[-1][0]
    kept = set(_kept(steps, _uses(steps)))
    computed = {id(node) for node, _ in steps}
    leaves = list({id(x): x for _, operands in steps for x in operands if id(x) not in computed}.values())
    index = {id(x): i for i, x in enumerate([*leaves, *[node for node, _ in steps]])}
    outs = [np.empty(node.shape, node.dtype) if k in kept else None for k, (node, _) in enumerate(steps)]
    program, scratch = _program(steps, index, [out is None for out in outs])
    arrays = [collapsed(x.known if type(x) is Pending else x) for x in leaves]
    shape, arrays, views = flattened(root.shape, arrays, outs)
    axis, most = _divided(shape, root.dtype.itemsize)
    blocks, rest = list(blocks_along(shape, axis, most)), shape[axis + 1 :]

    def compute(blocks: Sequence[Index]) -> None:
        buffers = [np.empty((most, *rest), dtype) for dtype in scratch]
        for block in blocks:
            values = [block_of(x, block, len(shape)) for x in arrays] + [None] * len(steps)
            rows = min(most, shape[axis] - block[axis].start)  # type: ignore[union-attr]
            for (function, params, operands, result, buffer), view in zip(program, views, strict=True):
                given = [values[i] for i in operands]
                out = view[block] if view is not None else buffers[buffer][:rows] if buffer is not None else None
                if out is None:
                    values[result] = function(*given, **params)
                elif buffer is not None:
                    values[result] = function(*given, out=out)
                else:
                    out[...] = values[result] = function(*given, **params)

    count = min(cores(), len(blocks))
    chunks = [(blocks[len(blocks) * i // count : len(blocks) * (i + 1) // count],) for i in range(count)]
    if count < 2 or not on_cores(compute, chunks):
        compute(blocks)
    for (node, _), out in zip(steps, outs, strict=True):
        if out is not None:
            node.learn(out)


def _program(steps: list[Step], index: dict[int, int], passing: list[bool]) -> tuple[list[Instruction], list[Any]]:
    """Choose the function for each operation on a block, and the buffer of its result.

    Args:
      steps: the operations.
      index: the index of each value in the list of the values of a block, by its identity.
      passing: for each operation, whether its result is not kept after the block.

    Returns:
      The instructions, and the dtypes of the buffers.
    """
    last = {id(x): k for k, (_, operands) in enumerate(steps) for x in operands}
    program: list[Instruction] = []
    scratch: list[np.dtype[Any]] = []
    free: list[int] = []
    buffer_of: dict[int, int] = {}
    for k, (node, operands) in enumerate(steps):
        function = None if node.params else _ufunc_of(node.operation.rule, node.dtype)
        # An operand's buffer may receive the result; if the rule is no ufunc, the result may be a view of an operand,
        # whose buffer then receives nothing else.
        buffer = None
        if function is None:
            for x in operands:
                buffer_of.pop(id(x), None)
        else:
            ending = [i for i in {id(x) for x in operands} if last[i] == k and i in buffer_of]
            free += sorted(buffer_of.pop(i) for i in ending)
            if passing[k]:
                buffer = next((i for i in free if scratch[i] == node.dtype), None)
                if buffer is None:
                    buffer = len(scratch)
                    scratch.append(node.dtype)
                else:
                    free.remove(buffer)
                buffer_of[id(node)] = buffer
            else:
                buffer = -1
        given = [index[id(x)] for x in operands]
        program.append((function or node.operation.rule, node.params, given, index[id(node)], buffer))
    return program, scratch


def _ufunc_of(rule: Any, dtype: np.dtype[Any]) -> np.ufunc | None:
    """Return the ufunc of NumPy's that computes what a host rule without parameters does; None if there is none."""
    if isinstance(rule, np.ufunc):
        return rule
    return UFUNCS.get(rule) or (FLOAT_UFUNCS.get(rule) if dtype.kind == "f" else None)


def _divided(shape: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """Return the axis along which arrays are divided into blocks of about ``BLOCK`` bytes, and the rows of a block."""
    axis, items = len(shape) - 1, BLOCK // itemsize
    while axis and math.prod(shape[axis:]) < items:
        axis -= 1
    return axis, max(1, min(shape[axis], items // math.prod(shape[axis + 1 :])))


if native.loops is not None:
    native.loops.pend(
        (ArrayImpl, Absent, Pending, Operation, ShapedArray, native.Plan),
        (_operation, _are_integers_held, _plan, native.viewed, runtime.memory_needed),
        (MOST_STEPS, MOST_PASSED, MOST_SPREAD),
        cores() - 1,
    )
