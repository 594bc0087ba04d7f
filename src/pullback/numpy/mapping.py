"""Functions applied along axes, over axes, element by element, or piece by piece."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from pullback.core import dtypes, source
from pullback.core.annotations import PyTree
from pullback.core.arguments import is_listed, quote, require_function
from pullback.core.array import Array, ArrayLike
from pullback.core.config import config
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.trace import recorders
from pullback.numpy.manipulation import unstack
from pullback.numpy.promotion import axis_index, different_ranks, operand, sequence, several
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.checks import broadcast_shape
from pullback.primitives.elementwise import convert_element_type
from pullback.primitives.reductions import reduce_sum
from pullback.transforms.autodiff.vmap import vmap

__all__ = ["apply_along_axis", "apply_over_axes", "packbits", "piecewise", "unpackbits", "vectorize"]


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """A function of vectors applied to all vectors along an axis, by ``vmap``.

    Args:
      func1d: takes a vector, and ``args`` and ``kwargs``; returns an array.
      axis: the axis of the vectors; the axes of the result of ``func1d`` replace it.
      arr: an array.
      *args, **kwargs: passed on to ``func1d``.

    Returns:
      An array: the results of ``func1d``, whose axes are in the place of ``axis``.

    Raises:
      ArgumentError: ``func1d`` is not a function (a TypeError and a ValueError).
      OperandError: ``arr`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.apply_along_axis(jnp.cumsum, 0, jnp.array([[1, 2], [3, 4]])))
    [[1 2]
     [4 6]]
    """
    require_function("apply_along_axis", "func1d", func1d)
    x = operand("apply_along_axis", arr)
    rank = len(x.shape)
    i = axis_index(axis, rank, "apply_along_axis")
    if rank == 1:
        return operand("apply_along_axis", func1d(x, *args, **kwargs))
    rows = shapes.moveaxis(x, i, rank - 1)
    others = rows.shape[:-1]
    flat = shapes.reshape(rows, (math.prod(others), x.shape[i]))
    out = vmap(lambda row: operand("apply_along_axis", func1d(row, *args, **kwargs)))(flat)
    out = shapes.reshape(out, (*others, *out.shape[1:]))
    leading = len(others)
    return shapes.transpose(out, [*range(i), *range(leading, len(out.shape)), *range(i, leading)])


def apply_over_axes(func: Callable[[Any, int], Any], a: ArrayLike, axes: ArrayLike | Sequence[int]) -> Array:
    """A function of an array and an axis applied for one axis after another.

    Args:
      func: ``func(x, axis)`` returns an array of as many axes as ``x``, or one axis less, which is inserted again.
      a: an array.
      axes: an axis, or several.

    Returns:
      An array of as many axes as ``a``.

    Raises:
      ArgumentError: ``func`` is not a function (a TypeError and a ValueError).
      AxisError: an axis does not exist (a ValueError and an IndexError).
      ShapeError: ``func`` returns an array with another number of axes (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3)), (0, 1)))
    [[6.]]
    """
    require_function("apply_over_axes", "func", func)
    x = operand("apply_over_axes", a)
    rank = len(x.shape)
    for axis in several(axes):
        i = axis_index(axis, rank, "apply_over_axes")
        out = operand("apply_over_axes", func(x, i))
        if len(out.shape) == rank - 1:
            out = shapes.expand_dims(out, (i,))
        if len(out.shape) != rank:
            raise ShapeError(
                f"apply_over_axes: the function must keep the number of axes or remove one, but it made an array of "
                f"shape {out.shape} from one of shape {x.shape}"
            )
        x = out
    return x


# Vectorisation -----------------------------------------------------------------------------------------------------

_NAMES = r"\((?:\w+(?:,\w+)*)?\)"
_SIGNATURE = f"^({_NAMES}(?:,{_NAMES})*)?->{_NAMES}(?:,{_NAMES})*$"
Core = tuple[str, ...]


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Collection[int | str] = frozenset(), signature: str | None = None
) -> Callable[..., PyTree]:
    """Make a function of scalars, or of arrays with certain axes, map over further axes, which broadcast.

    Args:
      pyfunc: takes and returns scalars, or arrays of the axes that the signature names.
      excluded: positions and names of arguments that are passed on unchanged.
      signature: the axes, such as ``"(m,n),(n)->(m)"``; only scalars by default.

    Returns:
      A function of the same arguments; keyword arguments broadcast too, unless there is a signature. Arguments that are
      None are passed on unchanged.

    Raises:
      ArgumentError: the signature is ill-formed (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.vectorize(jnp.dot, signature="(n),(n)->()")(jnp.ones((2, 3)), jnp.ones(3)))
    [3. 3.]
    """
    for item in excluded if isinstance(excluded, (list, tuple, set, frozenset)) else (excluded,):
        if not isinstance(item, (int, str)):
            raise ArgumentError(f"vectorize: excluded must contain positions or names of arguments, got {excluded!r}")
        if isinstance(item, int) and item < 0:
            raise ArgumentError(f"vectorize: positions in excluded must not be negative, got {excluded!r}")
    cores = None if signature is None else _parse(signature)

    def vectorized(*args: Any, **kwargs: Any) -> Any:
        positions = [i for i, x in enumerate(args) if i not in excluded and x is not None]
        names = [name for name, x in kwargs.items() if name not in excluded and x is not None] if cores is None else []
        arrays = [operand("vectorize", x) for x in (*(args[i] for i in positions), *(kwargs[n] for n in names))]

        def core(*values: Any) -> Any:
            full, named = list(args), dict(kwargs)
            for i, value in zip(positions, values):
                full[i] = value
            named.update(zip(names, values[len(positions) :], strict=True))
            out = pyfunc(*full, **named)
            if cores is not None:
                _check_results(cores[1], out, sizes, signature)
            return out

        ins: list[Core] = [()] * len(arrays) if cores is None else _without_nones(cores[0], args, excluded, signature)
        if len(ins) != len(arrays):
            raise ArgumentError(
                f"vectorize: the signature {signature!r} has {len(ins)} operands, but there are {len(arrays)}"
            )
        sizes = _core_sizes(ins, arrays, signature)
        return _mapped(core, ins, arrays)

    return source.named_as(pyfunc)(vectorized)


def _without_nones(cores: list[Core], args: Any, excluded: Any, signature: str | None) -> list[Core]:
    """Drop the core axes of operands that are None; raise if the signature has axes for such an operand.

    Args:
      cores: for each operand the names of its core axes.
      args: all arguments of the call.
      excluded: the positions of arguments that are not operands.
      signature: the signature, for the error.
    """
    operands = [x for i, x in enumerate(args) if i not in excluded]
    if len(operands) != len(cores):
        return cores
    for i, (core, x) in enumerate(zip(cores, operands)):
        if x is None and core:
            raise ArgumentError(
                f"vectorize: operand {i} has the axes ({', '.join(core)}) in the signature {signature!r}, got None"
            )
    return [core for core, x in zip(cores, operands) if x is not None]


def _parse(signature: str) -> tuple[list[Core], list[Core]]:
    if not isinstance(signature, str):
        raise ArgumentError(f"vectorize: a signature must look like '(m,n),(n)->(m)', got {quote(signature)}")
    text = signature.replace(" ", "")
    if not re.match(_SIGNATURE, text):
        raise ArgumentError(f"vectorize: a signature must look like '(m,n),(n)->(m)', got {signature!r}")
    sides = [[tuple(re.findall(r"\w+", core)) for core in re.findall(_NAMES, side)] for side in text.split("->")]
    return sides[0], sides[1]


def _core_sizes(cores: Sequence[Core], arrays: Sequence[Any], signature: str | None) -> dict[str, int]:
    """Return the size of each axis that the signature of ``vectorize`` names; raise if two operands disagree.

    Args:
      cores: for each array the names of its last axes. A name that is a number is the size of the axis.
      arrays: the operands.
      signature: the signature, for errors.
    """
    sizes: dict[str, int] = {}
    for core, x in zip(cores, arrays, strict=True):
        if len(x.shape) < len(core):
            raise ShapeError(f"vectorize: an operand of shape {x.shape} lacks axes of the signature {signature!r}")
        for name, n in zip(core, x.shape[len(x.shape) - len(core) :], strict=True):
            expected = int(name) if name.isdigit() else sizes.setdefault(name, n)
            if n != expected:
                raise ShapeError(
                    f"vectorize: the axis {name!r} of the signature {signature!r} has the sizes {expected} and {n}"
                )
    return sizes


def _check_results(cores: Sequence[Core], out: Any, sizes: dict[str, int], signature: str | None) -> None:
    outs = out if isinstance(out, tuple) else (out,)
    fits = len(outs) == len(cores) and (len(cores) == 1) == (not isinstance(out, tuple))
    if fits:
        for core, value in zip(cores, outs, strict=True):
            shape = operand("vectorize", value).shape
            fits = fits and len(shape) == len(core)
            fits = fits and all(sizes.get(c, int(c) if c.isdigit() else n) == n for c, n in zip(core, shape))
    if not fits:
        shown = ", ".join(str(operand("vectorize", x).shape) for x in outs)
        raise ShapeError(f"vectorize: results of shapes {shown} do not fit the signature {signature!r}")


def _mapped(core: Callable[..., Any], cores: Sequence[Core], arrays: Sequence[Any]) -> Any:
    """Map ``core`` by ``vmap`` over the leading axes of arrays; these axes broadcast against each other.

    ``cores`` holds for each array the names of its last axes, which are not mapped. A leading axis of size one that
    broadcasts is dropped instead of mapped.
    """
    loops = [x.shape[: len(x.shape) - len(c)] for c, x in zip(cores, arrays, strict=True)]
    loop = broadcast_shape("vectorize", loops) if loops else ()
    ranks = {len(own) for own, x in zip(loops, arrays, strict=True) if x.shape}
    if recorders and config.numpy_rank_promotion != "allow" and len(ranks) > 1:
        different_ranks("vectorize", [x.shape for x in arrays])
    function = core
    squeezed = list(arrays)
    for depth in range(len(loop)):  # from the innermost axis
        axes: list[int | None] = []
        for k, own in enumerate(loops):
            at = len(own) - 1 - depth
            if at >= 0 and own[at] == 1 and loop[len(loop) - 1 - depth] != 1:
                squeezed[k] = shapes.squeeze(squeezed[k], (at,))
            axes.append(None if at < 0 or (own[at] == 1 and loop[len(loop) - 1 - depth] != 1) else 0)
        function = vmap(function, in_axes=tuple(axes))
    return function(*squeezed)


# Pieces ------------------------------------------------------------------------------------------------------------


def piecewise(
    x: ArrayLike, condlist: ArrayLike | Sequence[ArrayLike], funclist: Sequence[Any], *args: Any, **kw: Any
) -> Array:
    """A function in pieces: each element is mapped by the function of the last condition that is true for it.

    Args:
      x: an array.
      condlist: conditions: booleans of the shape of ``x``.
      funclist: for each condition a function of arrays, or a number; one more is for elements without a true condition,
        which are zero by default. All functions are called with all elements.
      args, kw: further arguments of the functions.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      ShapeError: the functions do not fit the conditions (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> x = jnp.array([-2.0, 0.0, 3.0])
    >>> print(jnp.piecewise(x, [x < 0, x > 0], [lambda x: -x, lambda x: x * x, 7.0]))
    [2. 7. 9.]
    """
    x = operand("piecewise", x)
    if not isinstance(condlist, (list, tuple)):
        condlist = operand("piecewise", condlist)
        condlist = unstack(condlist) if len(condlist.shape) > len(x.shape) else [condlist]
    conditions = [operand("piecewise", c) for c in condlist]
    functions = sequence("piecewise", funclist)
    if len(functions) == len(conditions):
        functions.append(0)
    elif len(functions) != len(conditions) + 1:
        raise ShapeError(
            f"piecewise: {len(conditions)} conditions need {len(conditions)} or {len(conditions) + 1} functions, got "
            f"{len(functions)}"
        )

    def piece(function: Any) -> Any:
        value = operand("piecewise", function(x, *args, **kw) if callable(function) else function)
        return shapes.broadcast_to(convert_element_type(value, x.dtype), x.shape)

    result = piece(functions[-1])
    for condition, function in zip(conditions, functions[:-1], strict=True):
        which = convert_element_type(condition, np.dtype(bool))
        result = ops.where(which, piece(function), result)
    return result


# Bits --------------------------------------------------------------------------------------------------------------

_BYTE = np.dtype(np.uint8)


def _weights(bitorder: str, name: str) -> Any:
    if not is_listed(bitorder, ("big", "little")):
        raise ShapeError(f"{name}: bitorder must be 'big' or 'little', got {bitorder!r}")
    order = np.arange(8, dtype=np.uint8)
    return operand(name, order[::-1].copy() if bitorder == "big" else order)


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Pack booleans into the bits of bytes, eight along an axis into one; zeros fill the last byte.

    Args:
      a: an array of integers or booleans, which are set if they are not zero.
      axis: the axis; None for the elements in row-major order.
      bitorder: ``"big"`` if the first element is the highest bit of its byte, ``"little"`` if it is the lowest.

    Returns:
      An array of dtype ``uint8``, an eighth as long along the axis; a vector if ``axis`` is None.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      ArgumentError: ``a`` is not of integers or booleans (a TypeError and a ValueError).
      ShapeError: ``bitorder`` is another text (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.packbits(jnp.array([1, 0, 1, 0, 0, 0, 0, 0, 1])))
    [160 128]
    """
    x = operand("packbits", a)
    if not (dtypes.is_integer(x.dtype) or dtypes.is_bool(x.dtype)):
        raise ArgumentError(f"packbits takes integers or booleans, got {dtypes.short_name(x.dtype)}")
    shifts = _weights(bitorder, "packbits")
    if axis is None:
        x, axis = shapes.reshape(x, (math.prod(x.shape),)), 0
    rank = len(x.shape)
    axis = axis_index(axis, rank, "packbits")
    bits = convert_element_type(convert_element_type(x, np.dtype(bool)), _BYTE)
    bits = shapes.moveaxis(bits, axis, rank - 1)
    bits = slicing.pad(bits, 0, [(0, -bits.shape[-1] % 8 if i == rank - 1 else 0, 0) for i in range(rank)])
    octets = shapes.reshape(bits, (*bits.shape[:-1], bits.shape[-1] // 8, 8))
    return shapes.moveaxis(reduce_sum(ops.shift_left_p.bind(octets, shifts), (rank,)), rank - 1, axis)


def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """Unpack bytes into their bits, one along an axis into eight: ``count`` bits, or all except the last ``-count``.

    Args:
      a: an array of dtype ``uint8``.
      axis: the axis; None for the elements in row-major order.
      count: the number of bits to return along the axis, with zeros after them if there are fewer; all by default.
      bitorder: ``"big"`` if the highest bit of a byte comes first, ``"little"`` if the lowest does.

    Returns:
      An array of dtype ``uint8``, of zeros and ones; a vector if ``axis`` is None.

    Raises:
      OperandError: ``a`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      ArgumentError: ``a`` is not of dtype ``uint8`` (a TypeError and a ValueError).
      ShapeError: ``bitorder`` is another text (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.unpackbits(jnp.array([160], dtype="uint8")))
    [1 0 1 0 0 0 0 0]
    """
    x = operand("unpackbits", a)
    if x.dtype != _BYTE:
        raise ArgumentError(f"unpackbits takes uint8, got {dtypes.short_name(x.dtype)}")
    shifts = _weights(bitorder, "unpackbits")
    if axis is None:
        x, axis = shapes.reshape(x, (math.prod(x.shape),)), 0
    rank = len(x.shape)
    axis = axis_index(axis, rank, "unpackbits")
    last = shapes.moveaxis(x, axis, rank - 1)
    bits = ops.and_p.bind(ops.shift_right_logical_p.bind(shapes.reshape(last, (*last.shape, 1)), shifts), _BYTE.type(1))
    bits = shapes.reshape(bits, (*last.shape[:-1], last.shape[-1] * 8))
    if count is not None:
        have = bits.shape[-1]
        wanted = have + count if count < 0 else count
        bits = slicing.pad(bits, 0, [(0, wanted - have if i == rank - 1 else 0, 0) for i in range(rank)])
    return shapes.moveaxis(bits, rank - 1, axis)
