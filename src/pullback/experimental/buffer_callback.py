"""Python functions that write their results into buffers: ``jax.experimental.buffer_callback``."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pullback.core import tree
from pullback.core.annotations import PyTree
from pullback.core.arguments import flag, require_function
from pullback.core.errors import ArgumentError, JaxRuntimeError
from pullback.core.faces import face
from pullback.core.types import Shape
from pullback.transforms.programs.callbacks import io_callback, pure_callback

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]
face(globals())


class ExecutionStage(enum.Enum):
    """The stage of a program in which a function is called: here always ``EXECUTE``.

    >>> from pullback.experimental.buffer_callback import ExecutionContext, ExecutionStage
    >>> ExecutionContext().stage is ExecutionStage.EXECUTE
    True
    """

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


class ExecutionContext:
    """What the first argument of a callback says about the call.

    Attributes:
      stage: the stage of the program.

    >>> from pullback.experimental.buffer_callback import ExecutionContext
    >>> ExecutionContext().stage.name
    'EXECUTE'
    """

    stage = ExecutionStage.EXECUTE

    @property
    def stream(self) -> int:
        """The stream of a GPU on which the program runs.

        Raises:
          JaxRuntimeError: the program runs on a CPU (a RuntimeError).
        """
        raise JaxRuntimeError("a CPU has no streams: XLA FFI GPU context is not available")


class Buffer:
    """Elements of an operand or result of a callback. NumPy's ``asarray`` and DLPack read and write them in place.

    Args:
      elements: the elements, as NumPy's array.

    >>> import numpy as np
    >>> from pullback.experimental.buffer_callback import Buffer
    >>> Buffer(np.zeros((2, 3))).shape
    (2, 3)
    """

    __slots__ = ("_elements",)

    def __init__(self, elements: np.ndarray[Any, Any]) -> None:
        self._elements = elements

    @property
    def shape(self) -> Shape:
        """The size of each axis."""
        return self._elements.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of an element."""
        return self._elements.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._elements.ndim

    @property
    def writeable(self) -> bool:
        """Whether the elements may be written: those of results."""
        return self._elements.flags.writeable

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self._elements.__array__(dtype, copy=copy) if copy else np.asarray(self._elements, dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self._elements.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._elements.__dlpack_device__()


def buffer_callback(
    callback: Callable[..., None],
    result_shape_dtypes: PyTree,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: Mapping[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., Any]:
    """Return a function of arrays that calls a Python function, which writes the results in place.

    Args:
      callback: ``callback(ctx, out, *args)`` takes an :class:`ExecutionContext`, a tree like the results and trees like
        the arguments, both with :class:`Buffer` as leaves; it writes all elements of the results, and returns nothing.
      result_shape_dtypes: a tree of ``ShapeDtypeStruct``, or objects with ``shape`` and ``dtype``, like the results.
      has_side_effect: whether it has other effects, so that it is called although nothing uses the results.
      vmap_method: how ``vmap`` calls it, as in ``pure_callback``.
      input_output_aliases: the leaf of the arguments whose elements each of some leaves of the results has at first.
      command_buffer_compatible: without effect on CPUs.

    Returns:
      The function. It can be compiled and mapped, and has no derivative.

    Raises:
      ArgumentError: ``input_output_aliases`` refers to a leaf that does not exist, or has another shape or dtype (a
        TypeError and a ValueError).

    >>> import numpy as np
    >>> from pullback import ShapeDtypeStruct, jit
    >>> from pullback.experimental.buffer_callback import buffer_callback
    >>> def add_one(ctx, out, x):
    ...     np.add(x, 1, out=np.asarray(out))
    >>> print(jit(buffer_callback(add_one, ShapeDtypeStruct((), "int32")))(41))
    42
    """
    require_function("buffer_callback", "callback", callback)
    aliases = {to: of for of, to in (input_output_aliases or {}).items()}

    @functools.cache
    def writes(ndims: tuple[int, ...]) -> Callable[..., Any]:  # of arrays with so many axes, or more for a batch
        def write(*args: Any) -> Any:
            given, in_tree = tree.flatten(args)
            leaves, structure = tree.flatten(result_shape_dtypes)
            batch = np.broadcast_shapes(*[x.shape[: x.ndim - n] for x, n in zip(given, ndims, strict=True)])
            outs = [np.empty((*batch, *r.shape), r.dtype) for r in leaves]
            for to, of in aliases.items():
                given[of] = _copy(given, of, outs, to)
            inputs = tree.unflatten(in_tree, [Buffer(_read_only(x)) for x in given])
            callback(ExecutionContext(), tree.unflatten(structure, list(map(Buffer, outs))), *inputs)
            return tree.unflatten(structure, outs)

        return write

    def call(*args: PyTree) -> PyTree:
        write = writes(tuple(np.ndim(x) for x in tree.leaves(args)))
        if flag("buffer_callback", "has_side_effect", has_side_effect):
            return io_callback(write, result_shape_dtypes, *args)
        return pure_callback(write, result_shape_dtypes, *args, vmap_method=vmap_method)

    return call


def _copy(given: Any, of: int, outs: Any, to: int) -> np.ndarray[Any, Any]:
    """Copy leaf ``of`` of the arguments to leaf ``to`` of the results, and return it; raise unless they are alike."""
    if not (0 <= of < len(given) and 0 <= to < len(outs)):
        raise ArgumentError(
            f"buffer_callback: input_output_aliases has {{{of}: {to}}}, for {len(given)} arguments and {len(outs)} "
            "results"
        )
    source, out = np.asarray(given[of]), outs[to]
    if source.shape != out.shape or source.dtype != out.dtype:
        raise ArgumentError(
            f"buffer_callback: input_output_aliases joins argument {of}, {source.dtype} of shape {source.shape}, and "
            f"result {to}, {out.dtype} of shape {out.shape}"
        )
    out[...] = source
    return out  # type: ignore[no-any-return]


def _read_only(x: Any) -> np.ndarray[Any, Any]:
    view = np.asarray(x).view()
    view.flags.writeable = False
    return view
