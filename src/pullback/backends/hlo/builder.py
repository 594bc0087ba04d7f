"""StableHLO text: types, constants, operations, regions and functions.

A :class:`Builder` writes the body of one function of a module (``module.py``). Lowering rules take a builder and the
operands as :class:`Value`, and return values. Text is the documented interface of the compiler, and quick to make: one
operation is one string. The operations are defined by the StableHLO specification, and its companion ``chlo``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import Any

import numpy as np

from pullback.backends.devices.meshes import AbstractMesh
from pullback.backends.devices.shardings import NamedSharding
from pullback.backends.devices.storage import stored_dtype
from pullback.backends.hlo.module import Function, Module, Partition, captured_shardings
from pullback.backends.hlo.sizes import shape_value, with_shapes
from pullback.core import dtypes
from pullback.core.array import CommittedArray
from pullback.core.dims import Variable, any_symbolic
from pullback.core.errors import AllocationError, DtypeError, UnsupportedExportError
from pullback.core.types import Shape, ShapedArray

DType = np.dtype[Any]
Aliases = Mapping[int, int]
_NONE: Aliases = MappingProxyType({})

_ELEMENTS = {
    "bool": "i1", "float0": "i1", "bfloat16": "bf16", "float16": "f16", "float32": "f32", "float64": "f64",
    "complex64": "complex<f32>", "complex128": "complex<f64>",
    "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2", "float8_e4m3b11fnuz": "f8E4M3B11FNUZ",
    "float8_e4m3fnuz": "f8E4M3FNUZ", "float8_e5m2fnuz": "f8E5M2FNUZ", "float8_e4m3": "f8E4M3",
    "float8_e3m4": "f8E3M4", "float8_e8m0fnu": "f8E8M0FNU", "float4_e2m1fn": "f4E2M1FN",
}  # fmt: skip


@lru_cache(maxsize=256)
def element_type(dtype: DType) -> str:
    """The StableHLO type of an element, such as ``f32``; for a random key the type in which devices store it."""
    if dtypes.is_key(dtype):
        return element_type(stored_dtype(dtype))
    name = dtypes.dtype_name(dtype)
    if name.startswith("int"):
        return "i" + name.removeprefix("int")
    if name.startswith("uint"):
        return "ui" + name.removeprefix("uint")
    try:
        return _ELEMENTS[name]
    except KeyError:
        raise DtypeError(f"arrays of dtype {name} cannot be compiled") from None


@lru_cache(maxsize=65536)
def tensor_type(shape: Shape, dtype: DType) -> str:
    """The type of a tensor, such as ``tensor<3x4xf32>``.

    Raises:
      AllocationError: the size in bytes exceeds 64 bits, which would crash the compiler (a MemoryError, RuntimeError).
    """
    element = element_type(dtype)
    if any_symbolic(shape):
        return f"tensor<{'x'.join('?' if any_symbolic([n]) else str(n) for n in shape)}x{element}>"
    if math.prod(shape) * max(1, dtype.itemsize) >= 2**63:
        raise AllocationError(
            f"no memory for an array of shape {shape} and dtype {dtypes.dtype_name(dtype)} in a compiled program: it "
            f"has {math.prod(shape):.3g} elements"
        )
    return f"tensor<{'x'.join(map(str, shape))}x{element}>" if shape else f"tensor<{element}>"


class Value:
    """A value in a function: the result of an operation, or an argument. ``name`` stands for it in the text."""

    __slots__ = ("dtype", "name", "shape")

    name: str

    def __init__(self, name: str, shape: Shape, dtype: DType) -> None:
        self.name = name
        self.shape = shape
        self.dtype = dtype

    @property
    def type(self) -> str:
        return tensor_type(self.shape, self.dtype)

    @property
    def ndim(self) -> int:
        return len(self.shape)


_name_of = attrgetter("name")


class Quotient(Value):
    """A quotient of floats. If another division uses it, a barrier keeps the compiler from merging the divisions."""

    __slots__ = ()


class Constant(Value):
    """A scalar constant. It is written to the program only where it is used, in the shape that the use needs."""

    __slots__ = ("builder", "number")

    def __init__(self, builder: Builder, number: Any, dtype: DType) -> None:
        self.builder = builder
        self.number = number
        self.shape = ()
        self.dtype = dtype

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.builder.splat(self.number, (), self.dtype).name


# Numbers and attributes ----------------------------------------------------------------------------------------------


def number_text(value: Any, dtype: DType) -> str:
    """The text of a number in a constant, from which the compiler reads exactly this number."""
    if dtypes.is_key(dtype):
        stored = stored_dtype(dtype)
        return number_text(np.asarray(value, dtype).view(stored)[()], stored)
    kind = dtypes.dtype_name(dtype)
    if kind == "bool" or kind == "float0":
        return "true" if value else "false"
    if dtypes.is_complex(dtype):
        component = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
        return f"({number_text(value.real, component)}, {number_text(value.imag, component)})"
    if dtypes.is_float(dtype):
        x = np.asarray(value).astype(dtype)
        if not np.isfinite(x):
            bits = int(x.view(f"u{dtype.itemsize}"))
            return f"0x{bits:0{2 * dtype.itemsize}X}"
        return f"{float(x)!r}" if "e" not in repr(float(x)) else f"{float(x):.17e}"
    return str(int(value))


def _has_reciprocal(number: Any, dtype: DType) -> bool:
    """Whether the reciprocal of a number is in the normal range of its dtype. True also for zero, infinity and NaN."""
    info, size = dtypes.finfo(dtype), abs(float(number))
    return not 0 < size < np.inf or float(info.smallest_normal) <= 1 / size <= float(info.max)


def integers(values: Sequence[int]) -> str:
    """The text of an attribute that is a list of integers.

    Raises:
      UnsupportedExportError: an integer is symbolic (a ValueError and NotImplementedError).
    """
    if any_symbolic(values):
        raise UnsupportedExportError(
            f"export: an operation needs the sizes {tuple(values)} as numbers, but they are symbolic"
        )
    return f"array<i64: {', '.join(map(str, values))}>" if len(values) else "array<i64>"


def dense(rows: Sequence[Sequence[int]], width: int = 2) -> str:
    """The text of an attribute that is a matrix of integers; ``width`` is the length of its rows."""
    if not rows:
        return f"dense<> : tensor<0x{width}xi64>"
    text = ", ".join(f"[{', '.join(map(str, row))}]" for row in rows)
    return f"dense<[{text}]> : tensor<{len(rows)}x{width}xi64>"


# Functions -----------------------------------------------------------------------------------------------------------


class Builder:
    """A writer of the body of one function.

    Attributes:
      module: the module, which collects functions and host callbacks.
      results: the types of the current equation's results.
      operands: in ``shard_map``, the types of this equation's operands, with the mesh axes of each; otherwise empty.
      source_loc: the text that ends each line, which refers to the user's source line.
      sizes: the values of the variables in symbolic sizes, int32 scalars.
      order: the token of the last effect, on which the next effect depends; None before the first.
      called: whether another function calls this one.
      index: a cache of the lines that define each value, for ``in_place``.
    """

    __slots__ = (
        "called",
        "constants",
        "count",
        "elements",
        "head",
        "hoisted",
        "index",
        "lines",
        "module",
        "operands",
        "order",
        "results",
        "signature",
        "sizes",
        "source_loc",
        "turn",
    )

    def __init__(self, module: Module, called: bool = False) -> None:
        self.module, self.called = module, called
        self.results: list[ShapedArray] = []
        self.operands: list[ShapedArray] = []
        self.signature: list[Value] = []
        self.head: list[str] = []
        self.lines: list[str] = []
        self.index: tuple[list[str], int, dict[str, str]] = [], 0, {}
        self.source_loc = ""
        self.order: Value | None = None
        self.turn: Value | None = None  # what the next backward pass of a checkpoint waits for
        self.constants: dict[Any, Value] = {}
        self.hoisted: dict[int, tuple[Any, Value]] = {}
        self.sizes: dict[Variable, Value] = {}
        self.elements: dict[Value, Any] = {}  # the elements of each constant
        self.count = 0

    @property
    def result(self) -> ShapedArray:
        """The type of the result of the current equation, which has one result."""
        return self.results[0]

    def avals(self, operands: Sequence[Value]) -> list[ShapedArray]:
        """The types of the equation's ``operands``; in ``shard_map``, with the mesh axes along which each varies."""
        if len(self.operands) != len(operands):
            return [ShapedArray(v.shape, v.dtype) for v in operands]
        return [ShapedArray(v.shape, v.dtype, False, a.varying) for v, a in zip(operands, self.operands, strict=True)]

    integers = staticmethod(integers)
    dense = staticmethod(dense)

    def inline(self, function: Callable[..., Any], *values: Value) -> Any:
        """Trace a Python function, and write its operations into this one, for lowering rules that call operations.

        Args:
          function: takes arrays, and returns an array or a list, using operations of ``pullback.primitives``.
          values: the arguments.

        Returns:
          The result of the function, as a value or a list of values.
        """
        return self.module.inline(self, function, values)

    # Names and operations

    def fresh(self) -> str:
        self.count += 1
        return f"%{self.count}"

    def argument(self, shape: Shape, dtype: DType) -> Value:
        """Add an argument to the function, and return its value."""
        value = Value(f"%arg{len(self.signature)}", shape, dtype)
        self.signature.append(value)
        return value

    def elementwise(self, name: str, *operands: Value) -> Value:
        """Write an elementwise operation, such as ``stablehlo.add``, whose result has the type of its operands."""
        x = operands[0]
        self.count += 1
        out = f"%{self.count}"
        names = ", ".join(map(_name_of, operands))
        self.lines.append(f"{out} = {name} {names} : {tensor_type(x.shape, x.dtype)}{self.source_loc}")
        return Value(out, x.shape, x.dtype)

    def divide(self, x: Value, y: Value, shape: Shape) -> Value:
        """Write the quotient of two values that broadcast to ``shape``.

        Optimization barriers prevent rewrites of the compiler whose intermediate results may overflow or vanish:
        ``x / y / z -> x / (y * z)``, ``x / (y / z) -> (x * z) / y``, and ``x / y -> x * (1 / y)`` for a broadcast y.
        The barriers have no measurable cost, since divisions wait for memory.
        """
        if not dtypes.is_float(x.dtype):
            return self._integer_division("stablehlo.divide", x, y, shape)
        divisor = self.broadcast(y, shape)
        hides = divisor is not y and not (type(y) is Constant and _has_reciprocal(y.number, y.dtype))
        if type(y) is Quotient or hides:
            divisor = self.hidden(divisor)
        if type(x) is Quotient:
            x = self.hidden(x)
        out = self.elementwise("stablehlo.divide", self.broadcast(x, shape), divisor)
        return Quotient(out.name, shape, out.dtype)

    def remainder(self, x: Value, y: Value, shape: Shape) -> Value:
        """Write the remainder of division towards zero, of two values that broadcast to ``shape``."""
        if not dtypes.is_float(x.dtype):
            return self._integer_division("stablehlo.remainder", x, y, shape)
        return self.elementwise("stablehlo.remainder", self.broadcast(x, shape), self.broadcast(y, shape))

    def _integer_division(self, operation: str, x: Value, y: Value, shape: Shape) -> Value:
        """Write the integer quotient or remainder. For a zero divisor these are -1 and ``x``, as in machine code.

        Zeros in the divisor become 1 first: the compiler crashes when it folds a division of constants by zero.
        """
        known = y.number if type(y) is Constant else self.elements.get(y)
        x, y = self.broadcast(x, shape), self.broadcast(y, shape)
        if known is not None and np.all(known):
            return self.elementwise(operation, x, y)
        number = lambda value: self.splat(np.asarray(value).astype(x.dtype)[()], shape, x.dtype)
        by_zero = self.compare(y, number(0), "EQ")
        out = self.elementwise(operation, x, self.select(by_zero, number(1), y))
        return self.select(by_zero, x if operation == "stablehlo.remainder" else number(-1), out)

    def hidden(self, x: Value) -> Value:
        """Hide a value's definition behind an optimization barrier, so that the compiler does not simplify its uses."""
        return self.multi_result("stablehlo.optimization_barrier", [x], [(x.shape, x.dtype)])[0]

    def op(self, name: str, operands: Sequence[Value], shape: Shape, dtype: DType, attributes: str = "") -> Value:
        """Write an operation with one result.

        Args:
          name: the name with its dialect, such as ``stablehlo.reshape``.
          operands: its operands.
          shape: the shape of the result.
          dtype: the dtype of the result.
          attributes: text such as ``dimension = 0 : i64``.
        """
        names, types = self._operands(operands)
        self.count += 1
        out = f"%{self.count}"
        braces = f" {{{attributes}}}" if attributes else ""
        self.lines.append(
            f'{out} = "{name}"({names}){braces} : ({types}) -> {tensor_type(shape, dtype)}{self.source_loc}'
        )
        return Value(out, shape, dtype)

    def multi_result(
        self,
        name: str,
        operands: Sequence[Value],
        results: Sequence[tuple[Shape, DType]],
        attributes: str = "",
        regions: Sequence[str] = (),
    ) -> list[Value]:
        """Write an operation with any number of results. ``regions`` are texts that :meth:`region` returned."""
        names, types = self._operands(operands)
        self.count += 1
        out = f"%{self.count}"
        braces = f" {{{attributes}}}" if attributes else ""
        inner = f" ({', '.join(regions)})" if regions else ""
        shown = [tensor_type(s, d) for s, d in results]
        binder = "" if not results else f"{out} = " if len(results) == 1 else f"{out}:{len(results)} = "
        outs = shown[0] if len(shown) == 1 else f"({', '.join(shown)})"
        self.lines.append(f'{binder}"{name}"({names}){inner}{braces} : ({types}) -> {outs}{self.source_loc}')
        if len(results) == 1:
            return [Value(out, *results[0])]
        return [Value(f"{out}#{i}", s, d) for i, (s, d) in enumerate(results)]

    @staticmethod
    def _operands(operands: Sequence[Value]) -> tuple[str, str]:
        return ", ".join(map(_name_of, operands)), ", ".join([tensor_type(v.shape, v.dtype) for v in operands])

    def region(
        self,
        types: Sequence[tuple[Shape, DType]],
        body: Callable[..., Sequence[Value]],
        terminator: str = "stablehlo.return",
    ) -> str:
        """Write the text of a region, whose arguments have the shapes and dtypes ``types``.

        ``body`` takes the arguments and returns the results. It may use values of the enclosing function. The text ends
        with ``terminator``, the operation that returns the results from the region.
        """
        outer, self.lines = self.lines, []
        order, turn = self.order, self.turn
        try:
            args = [Value(f"%r{self.fresh()[1:]}", s, d) for s, d in types]
            names, kinds = self._operands(body(*args))
            binders = ", ".join(f"{v.name}: {v.type}" for v in args)
            head = f"^bb0({binders}):" if args else "^bb0:"
            tail = f'"{terminator}"({names}) : ({kinds}) -> ()'
            return "{\n" + "\n".join([head, *self.lines, tail]) + "\n}"
        finally:
            self.lines = outer
            self.order, self.turn = order, turn  # values made in a region are not valid outside of it

    # Constants

    def splat(self, number: Any, shape: Shape, dtype: DType) -> Value:
        """A constant array that repeats one number."""
        if any_symbolic(shape):
            return self.broadcast_in_dim(self.splat(number, (), dtype), shape, [])
        text = number_text(number, dtype)
        key = (text, shape, dtype)
        found = self.constants.get(key)
        if found is None:
            kind = tensor_type(shape, dtype)
            found = self.constants[key] = Value(self.fresh(), shape, dtype)
            self.elements[found] = number
            self.head.append(f"{found.name} = stablehlo.constant dense<{text}> : {kind}")
        return found

    def number(self, value: Any, dtype: DType) -> Value:
        """A scalar constant, which is written only where it is used."""
        return Constant(self, value, dtype)

    def array(self, x: np.ndarray[Any, Any]) -> Value:
        """A constant array; its elements are written into the program."""
        if x.ndim == 0:
            return Constant(self, x[()], x.dtype)
        if x.size == 0 or x.tobytes() == x.flat[0].tobytes() * x.size:  # by their bits: zeros have signs
            return self.splat(x.flat[0] if x.size else 0, x.shape, x.dtype)
        key = (x.tobytes(), x.shape, x.dtype)
        found = self.constants.get(key)
        if found is None:
            found = self.constants[key] = Value(self.fresh(), x.shape, x.dtype)
            self.elements[found] = x
            self.head.append(f"{found.name} = stablehlo.constant dense<{_elements(x)}> : {found.type}")
        return found

    def variable_size(self, name: Variable) -> Value:
        """The value of a variable in symbolic sizes: from the arguments' shapes if possible, else an extra argument."""
        found = self.sizes.get(name)
        if found is None:
            found = self.sizes[name] = Value(f"%const{len(self.hoisted)}", (), np.dtype(np.int32))
            self.hoisted[id(name)] = (name, found)
        return found

    def captured(self, x: Any) -> Value:
        """A captured array: a constant if small and uncommitted, or in a portable program, else an extra argument."""
        if type(x) is Variable:
            return self.variable_size(x)
        is_committed = isinstance(x, CommittedArray)
        if (x.size <= LARGEST_WRITTEN and not is_committed) or self.module.portable:
            return self.array(np.asarray(x._value))
        known = self.hoisted.get(id(x))
        if known is None:
            known = self.hoisted[id(x)] = (x, Value(f"%const{len(self.hoisted)}", x.shape, x.dtype))
            if is_committed:
                self.module.run_on(x._signature.placement.runs_on, "a captured array")
            else:
                self.elements[known[1]] = x._value
        return known[1]

    def known_integers(self, x: Value) -> np.ndarray[Any, Any] | None:
        """The elements of a constant array of integers, as a NumPy array; None for a value that is no constant."""
        if type(x) is Constant:
            return np.asarray(x.number, x.dtype)
        elements = self.elements.get(x)
        return None if elements is None else np.broadcast_to(np.asarray(elements, x.dtype), x.shape)

    # Frequent operations

    def broadcast(self, x: Value, shape: Shape) -> Value:
        """Broadcast a value to a shape, by NumPy's rules."""
        if x.shape == shape:
            return x
        if type(x) is Constant:
            return self.splat(x.number, shape, x.dtype)
        start = len(shape) - len(x.shape)
        matching = [i for i, n in enumerate(x.shape) if n == shape[start + i]]
        if len(matching) < len(x.shape):
            x = self.reshape(x, tuple(x.shape[i] for i in matching))
        return self.broadcast_in_dim(x, shape, [start + i for i in matching])

    same, many, spread = elementwise, multi_result, broadcast  # their former names, in users' lowering rules

    def broadcast_in_dim(self, x: Value, shape: Shape, dims: Sequence[int]) -> Value:
        if any_symbolic(shape):
            attribute = f"broadcast_dimensions = {integers(dims)}"
            operands = [x, shape_value(self, shape)]
            return self.op("stablehlo.dynamic_broadcast_in_dim", operands, shape, x.dtype, attribute)
        attribute = f"broadcast_dimensions = {integers(dims)}"
        return self.op("stablehlo.broadcast_in_dim", [x], shape, x.dtype, attribute)

    def reshape(self, x: Value, shape: Shape) -> Value:
        if x.shape == shape:
            return x
        if any_symbolic(shape) or any_symbolic(x.shape):
            return self.op("stablehlo.dynamic_reshape", [x, shape_value(self, shape)], shape, x.dtype)
        return self.op("stablehlo.reshape", [x], shape, x.dtype)

    def transpose(self, x: Value, permutation: Sequence[int]) -> Value:
        shape = tuple(x.shape[i] for i in permutation)
        return self.op("stablehlo.transpose", [x], shape, x.dtype, f"permutation = {integers(permutation)}")

    def convert(self, x: Value, dtype: DType) -> Value:
        """Convert a value to another dtype, by the compiler's rules."""
        return x if x.dtype == dtype else self.op("stablehlo.convert", [x], x.shape, dtype)

    def at_least_one_byte(self, x: Value) -> Value:
        """Convert a value of fewer than 8 bits to int8 or float32, for operations that lack such narrow types."""
        if dtypes.itemsize_bits(x.dtype) >= 8:
            return x
        return self.convert(x, np.dtype(np.int8 if dtypes.is_integer(x.dtype) else np.float32))

    def bitcast(self, x: Value, shape: Shape, dtype: DType) -> Value:
        """Reinterpret the bits of a value as elements of another dtype.

        The compiler folds ``bitcast_convert(transpose(constant))`` wrongly: to the bits in the order before the
        transposition. An optimization barrier prevents that, and costs no time.
        """
        if x.ndim > 1:
            x = self.op("stablehlo.optimization_barrier", [x], x.shape, x.dtype)
        return self.op("stablehlo.bitcast_convert", [x], shape, dtype)

    def compare(self, x: Value, y: Value, direction: str, total: bool = False) -> Value:
        """Compare the elements of two values; the result is boolean.

        Args:
          x: the first operand.
          y: the second, of the same type.
          direction: EQ, NE, LT, LE, GT or GE.
          total: whether floats are in total order, -NaN < -inf < ... < -0 < 0 < ... < inf < NaN.
        """
        kind = "FLOAT" if dtypes.is_inexact(x.dtype) else "SIGNED"
        if element_type(x.dtype)[0] == "u" or dtypes.is_bool(x.dtype):
            kind = "UNSIGNED"
        if total and kind == "FLOAT":
            kind = "TOTALORDER"
        attributes = (
            f"comparison_direction = #stablehlo<comparison_direction {direction}>, "
            f"compare_type = #stablehlo<comparison_type {kind}>"
        )
        return self.op("stablehlo.compare", [x, y], x.shape, np.dtype(bool), attributes)

    def select(self, condition: Value, yes: Value, no: Value) -> Value:
        """The elements of ``yes`` where ``condition`` is True, else of ``no``; a scalar condition selects one array."""
        return self.op("stablehlo.select", [condition, yes, no], yes.shape, yes.dtype)

    def iota(self, shape: Shape, dimension: int, dtype: DType) -> Value:
        if any_symbolic(shape):
            attribute = f"iota_dimension = {dimension} : i64"
            return self.op("stablehlo.dynamic_iota", [shape_value(self, shape)], shape, dtype, attribute)
        return self.op("stablehlo.iota", [], shape, dtype, f"iota_dimension = {dimension} : i64")

    def slice(
        self, x: Value, start: Sequence[int], limit: Sequence[int], strides: Sequence[int] | None = None
    ) -> Value:
        strides = [1] * x.ndim if strides is None else strides
        if any(map(any_symbolic, (start, limit, strides, x.shape))):
            shape = tuple(-(-(b - a) // s) for a, b, s in zip(start, limit, strides, strict=True))
            operands = [x, *[shape_value(self, tuple(values)) for values in (start, limit, strides)]]
            return self.op("stablehlo.real_dynamic_slice", operands, shape, x.dtype)
        shape = tuple(max(0, -(-(b - a) // s)) for a, b, s in zip(start, limit, strides, strict=True))
        attributes = (
            f"start_indices = {integers(start)}, limit_indices = {integers(limit)}, strides = {integers(strides)}"
        )
        return self.op("stablehlo.slice", [x], shape, x.dtype, attributes)

    def concatenate(self, operands: Sequence[Value], dimension: int) -> Value:
        first = operands[0]
        size = sum(v.shape[dimension] for v in operands)
        shape = (*first.shape[:dimension], size, *first.shape[dimension + 1 :])
        return self.op("stablehlo.concatenate", operands, shape, first.dtype, f"dimension = {dimension} : i64")

    def reduce(self, name: str, x: Value, start: Any, axes: Sequence[int]) -> Value:
        """Reduce ``axes`` by the operation ``name``, such as ``stablehlo.add``, beginning with the number ``start``."""
        scalar = ((), x.dtype)
        body = self.region([scalar, scalar], lambda a, b: [self.elementwise(name, a, b)])
        shape = tuple(n for i, n in enumerate(x.shape) if i not in axes)
        init = self.number(start, x.dtype)
        results = [(shape, x.dtype)]
        return self.multi_result("stablehlo.reduce", [x, init], results, f"dimensions = {integers(axes)}", [body])[0]

    def amended(self, rare: Value, usual: Value, amend: Callable[[Value], Value]) -> Value:
        """Write a computation of ``amend(usual)`` if any element of the boolean ``rare`` is True, else of ``usual``.

        It is a loop of at most one step, because the compiler would compute both branches of a conditional.
        """
        boolean = np.dtype(bool)
        kinds = [((), boolean), (usual.shape, usual.dtype)]
        condition = self.region(kinds, lambda pending, value: [pending])
        step = self.region(kinds, lambda pending, value: [self.number(False, boolean), amend(value)])
        pending = self.reduce("stablehlo.or", rare, False, range(rare.ndim))
        return self.multi_result("stablehlo.while", [pending, usual], kinds, regions=[condition, step])[1]

    def constrained(self, x: Value, sharding: NamedSharding, is_open: bool = False) -> Value:
        """Constrain a value to a sharding over the devices of the program, and return the constrained value.

        If it ``is_open``, the compiler may divide each axis further.
        """
        if sharding.mesh.size == 1 and (self.module.portable or isinstance(sharding.mesh, AbstractMesh)):
            return x  # so that the program can run on any number of devices
        out, source = self.fresh(), x.name
        shown = self.module.sharding(sharding, x.ndim, is_open)
        self.lines.append(f"{out} = sdy.sharding_constraint {source} {shown} : {x.type}{self.source_loc}")
        return Value(out, x.shape, x.dtype)

    def inspected(self, x: Value, callback: Callable[[Any], None]) -> None:
        """Let the compiler call a Python function when it has decided the sharding of a value.

        Args:
          x: the value.
          callback: takes the sharding; in a program on one device, it takes the device.
        """
        inspections = self.module.inspections
        mark = f"@@{len(inspections)}@@"
        inspections.append((x.ndim, callback))
        attributes = (
            f'call_target_name = "InspectSharding", has_side_effect = true, api_version = 1 : i32, '
            f'backend_config = "{mark}"'
        )
        self.op("stablehlo.custom_call", [x], x.shape, x.dtype, attributes)

    def partitioned(
        self, operands: Sequence[Value], results: Sequence[tuple[Shape, DType]], rule: str, partition: Partition
    ) -> list[Value]:
        """Write an operation that a function of the user's divides among devices.

        Args:
          operands: its operands.
          results: the shape and dtype of each result.
          rule: the attribute by which the compiler propagates shardings; empty for no rule.
          partition: the user's function, which divides the operation.
        """
        mark = f"@@partition {len(self.module.partitions)}@@"
        self.module.partitions.append(partition)
        attributes = f'call_target_name = "{PARTITIONED}", api_version = 2 : i32, backend_config = "{mark}"'
        attributes += f", sdy.sharding_rule = {rule}" if rule else ""
        return self.multi_result("stablehlo.custom_call", operands, results, attributes)

    def custom_call(
        self, target: str, operands: Sequence[Value], results: Sequence[tuple[Shape, DType]], config: str = "",
        more: str = "", side_effect: bool = False,
    ) -> list[Value]:  # fmt: skip
        """Write a call of a runtime function, by the typed foreign-function interface.

        If results have symbolic shapes, the shapes of all results become further operands, which disappear when the
        sizes are known.

        Args:
          target: the name of the function.
          operands: the operands.
          results: the shape and dtype of each result.
          config: the attributes that the function receives, as text such as ``uplo = 76 : ui8``.
          more: further attributes of the operation, such as layouts.
          side_effect: whether the function has side effects.
        """
        shapes, more = with_shapes(self, len(operands), results, more)
        attributes = (
            f'call_target_name = "{target}", has_side_effect = {str(side_effect).lower()}, '
            f"api_version = 4 : i32, backend_config = {{{config}}}"
        )
        return self.multi_result(
            "stablehlo.custom_call", [*operands, *shapes], results, f"{attributes}, {more}" if more else attributes
        )

    def call(self, function: Function, operands: Sequence[Value]) -> list[Value]:
        """Write a call of another function of the module; arrays that the callee captured become further operands."""
        return self.raw_call(function, [*operands, *[self.captured(x) for x in function.captured]])

    def raw_call(self, function: Function, operands: Sequence[Value]) -> list[Value]:
        """Write a call of another function of the module; ``operands`` include the arrays that the callee captured."""
        names, types = self._operands(operands)
        if function.packed:
            packed = self.fresh()
            self.lines.append(f'{packed} = "stablehlo.tuple"({names}) : ({types}) -> tuple<{types}>')
            names, types = packed, f"tuple<{types}>"
        self.count += 1
        out = f"%{self.count}"
        shown = [tensor_type(s, d) for s, d in function.results]
        binder = "" if not shown else f"{out} = " if len(shown) == 1 else f"{out}:{len(shown)} = "
        self.lines.append(
            f"{binder}func.call @{function.name}({names}){function.attributes} : ({types}) -> ({', '.join(shown)})"
            f"{self.source_loc}"
        )
        if len(shown) == 1:
            return [Value(out, *function.results[0])]
        return [Value(f"{out}#{i}", s, d) for i, (s, d) in enumerate(function.results)]

    def written(self) -> Iterator[str]:
        """The lines of this function, then those of the finished functions of the module."""
        return itertools.chain(self.head, self.lines, *map(attrgetter("lines"), self.module.functions))

    def arguments(self) -> list[Value]:
        """The arguments of the function, followed by its additional arguments: captured arrays, and sizes."""
        return [*self.signature, *map(itemgetter(1), self.hoisted.values())]

    def captured_shardings(self) -> list[NamedSharding]:
        """The sharding of each captured array over the devices of the program."""
        arrays = [x for x, _ in self.hoisted.values()]
        for x in arrays:
            if isinstance(x, CommittedArray) and isinstance(x._signature.placement, NamedSharding):
                self.module.mesh(x._signature.placement.mesh)
        return captured_shardings(arrays, next(iter(self.module.meshes)))

    def finish(self, name: str, outs: Sequence[Value], visibility: str = "private") -> Function:
        """Finish the function: ``outs`` are its results. Add it to the module, and return it."""
        binders = [f"{v.name}: {v.type}" for v in self.arguments()]
        return self._finished(visibility, name, binders, outs, [])

    def finish_packed(self, name: str, outs: Sequence[Value], attributes: str) -> Function:
        """Finish a function that returns ``outs`` and takes its arguments as one tuple; calls have ``attributes``."""
        arguments = self.arguments()
        kind = f"tuple<{self._operands(arguments)[1]}>"
        loads = [
            f'{v.name} = "stablehlo.get_tuple_element"(%packed) {{index = {i} : i32}} : ({kind}) -> {v.type}'
            for i, v in enumerate(arguments)
        ]
        function = self._finished("private", name, [f"%packed: {kind}"] if arguments else [], outs, loads)
        function.packed = bool(arguments)
        function.attributes = f" {{{attributes}}}"
        return function

    def finish_main(
        self,
        outs: Sequence[Value],
        aliases: Aliases = _NONE,
        in_shardings: Sequence[NamedSharding | None] = (),
        out_shardings: Sequence[NamedSharding | None] = (),
    ) -> Function:
        """Finish ``main``, whose arguments and results have the dtypes in which devices store elements.

        In a portable program only random keys are converted to such a dtype.

        Args:
          outs: the results.
          aliases: the index of each donated argument, and of the result that reuses its memory.
          in_shardings: the sharding of each argument, None where the compiler may decide; empty if all are None.
          out_shardings: the sharding of each result, in the same form.
        """
        module = self.module
        binders, loads = [], []
        for i, (v, sharding) in enumerate(itertools.zip_longest(self.arguments(), in_shardings)):
            stored = stored_dtype(v.dtype)
            attributes = module.attributes_of_input(i, sharding, v.ndim)
            if i in aliases and module.meshes:  # the compiler finds a result of the same sharding
                attributes.append("jax.buffer_donor = true")
            elif i in aliases:
                attributes.append(f"tf.aliasing_output = {aliases[i]} : i32")
            attribute = f" {{{', '.join(attributes)}}}" if attributes else ""
            if self._is_as_stored(v.dtype):
                binders.append(f"{v.name}: {v.type}{attribute}")
                continue
            kind = tensor_type(v.shape, stored)
            binders.append(f"{v.name}_stored: {kind}{attribute}")
            loads.append(f'{v.name} = "{_to_stored(v.dtype)}"({v.name}_stored) : ({kind}) -> {v.type}')
        stored_outs = list(map(self._stored, outs))
        shown = [
            v.type + module.attributes_of_result(i, sharding, v.ndim)
            for i, (v, sharding) in enumerate(itertools.zip_longest(stored_outs, out_shardings))
        ]
        return self._finished("public", "main", binders, stored_outs, loads, ", ".join(shown))

    def _stored(self, x: Value) -> Value:
        """Convert a value to the dtype in which devices store its elements."""
        if self._is_as_stored(x.dtype):
            return x
        if _to_stored(x.dtype) == "stablehlo.convert":
            return self.convert(x, stored_dtype(x.dtype))
        return self.bitcast(x, x.shape, stored_dtype(x.dtype))

    def _is_as_stored(self, dtype: DType) -> bool:
        if self.module.portable and not dtypes.is_key(dtype):  # other processes know these types
            return True
        return element_type(dtype) == element_type(stored_dtype(dtype))

    def _finished(
        self,
        visibility: str,
        name: str,
        binders: list[str],
        outs: Sequence[Value],
        loads: list[str],
        results_shown: str | None = None,
    ) -> Function:
        names, types = self._operands(outs)
        shown = types if results_shown is None else results_shown
        first = f"func.func {visibility} @{name}({', '.join(binders)}) -> ({shown}) {{"
        last = f"func.return {names} : {types}" if outs else "func.return"
        captured = list(map(itemgetter(0), self.hoisted.values()))
        results = list(map(attrgetter("shape", "dtype"), outs))
        function = Function(name, [first, *self.head, *loads, *self.lines, last, "}"], results, captured)
        self.module.functions.append(function)
        return function


PARTITIONED = "PullbackPartitioned"
"""The custom-call target of operations with custom partitioning."""
LARGEST_WRITTEN = 64
"""The most elements of a captured array that is written into the program; larger arrays are arguments."""


def _elements(x: np.ndarray[Any, Any]) -> str:
    """The text of the elements of a constant; for a large constant their bytes, which are quicker to write and read."""
    stored = x.view(stored_dtype(x.dtype)) if dtypes.is_key(x.dtype) else x
    if x.size <= LARGEST_WRITTEN or stored.dtype.isbuiltin != 1 or dtypes.is_bool(stored.dtype):
        return _nested(x)
    little = np.ascontiguousarray(stored).astype(stored.dtype.newbyteorder("<"), copy=False)
    return f'"0x{little.tobytes().hex().upper()}"'


def _nested(x: np.ndarray[Any, Any]) -> str:
    if x.ndim == 0:
        return number_text(x[()], x.dtype)
    return f"[{', '.join(map(_nested, x))}]"


def _to_stored(dtype: DType) -> str:
    """The name of the operation that converts ``dtype`` to the dtype in which devices store its elements, and back."""
    return "stablehlo.convert" if dtypes.is_integer(dtype) else "stablehlo.bitcast_convert"
