"""``fori_loop``: a loop over integers, as a ``scan`` if the bounds are known, and otherwise as a ``while_loop``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from pullback.control.common import Carry, array_of, check_checkpoints, check_preaccumulate, known, leaves_of
from pullback.control.loops import run_while
from pullback.control.progress import Bar, check_progress
from pullback.control.scan import checked_unroll, run_scan
from pullback.control.scan_primitive import Loop
from pullback.core import dtypes, source, tree
from pullback.core.annotations import PyTree
from pullback.core.arguments import require_function
from pullback.core.array import Array, ArrayLike, as_array, typeof
from pullback.core.config import config
from pullback.core.errors import ControlFlowError
from pullback.primitives.elementwise import add, convert_element_type, lt_p, sub
from pullback.transforms.functions.api_boundary import api_boundary

R = TypeVar("R")


@overload
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[..., ArrayLike],
    init_val: PyTree,
    *,
    unroll: int | bool | None = None,
    checkpoints: int | None = None,
    progress: bool | str = False,
    preaccumulate: str | None = None,
) -> Array: ...
@overload
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[..., R],
    init_val: PyTree,
    *,
    unroll: int | bool | None = None,
    checkpoints: int | None = None,
    progress: bool | str = False,
    preaccumulate: str | None = None,
) -> R: ...
@api_boundary
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[..., Any],
    init_val: PyTree,
    *,
    unroll: int | bool | None = None,
    checkpoints: int | None = None,
    progress: bool | str = False,
    preaccumulate: str | None = None,
) -> Any:
    """Apply a function for each integer from ``lower`` to ``upper - 1``.

    If both bounds are integers known in Python, it runs as a :func:`scan`, otherwise as a :func:`while_loop`.

    Args:
      lower: the first integer; or a float, from which to count in steps of 1.
      upper: the end of the range, exclusive; there are no steps if it is not larger than ``lower``.
      body_fun: ``body_fun(i, carry) -> carry``, of the same tree, shapes and dtypes.
      init_val: the initial carry, a tree of arrays. Weakly typed numbers take the dtype that ``body_fun`` returns for
        them.
      unroll: the number of steps in an iteration of the compiled loop, as for ``scan``; only if the bounds are known.
      checkpoints: the number of states to save for reverse mode; by default all if the bounds are known, and otherwise
        as for ``while_loop``.
      progress: whether to show a progress bar, or its description; this needs the library ``tqdm``.
      preaccumulate: ``"auto"`` stores local Jacobians of regions of a step, as for ``scan``.

    Returns:
      The carry after the last step.

    Raises:
      ControlFlowError: another carry is returned, or the bounds are no scalars of one dtype (a TypeError, ValueError).
      MissingLibraryError: there is to be a progress bar, and ``tqdm`` is not installed (an ImportError).

    >>> from pullback import lax
    >>> print(lax.fori_loop(1, 5, lambda i, product: i * product, 1))
    24
    """
    require_function("fori_loop", "body_fun", body_fun)
    check_checkpoints("fori_loop", checkpoints)
    check_preaccumulate("fori_loop", preaccumulate)
    check_progress("fori_loop", progress)
    first, last = _bounds(lower, upper)
    if progress:
        body_fun = _with_bar(body_fun, first, last, progress)
    leaves, treedef = leaves_of(init_val, "fori_loop", "init_val")
    start, stop = known(first), known(last)
    if start is None or stop is None or not dtypes.is_integer(first.dtype):
        return _unbounded(first, last, body_fun, leaves, treedef, unroll, checkpoints, preaccumulate)
    if config.disable_jit:
        return _in_python(range(int(start), int(stop)), first, body_fun, tree.unflatten(treedef, leaves))
    length = max(int(stop) - int(start), 0)
    loop = Loop(length, False, checked_unroll("fori_loop", unroll or 1, length))

    def step(i: Any, *tracers: Any) -> Any:
        return (add(i, 1), body_fun(i, tree.unflatten(treedef, tracers))), None

    carry = Carry("fori_loop", body_fun, [first, *leaves], treedef, ["i"], ("fori_loop", treedef))
    outs, _, _ = run_scan(carry, step, [], tree.structure(None), loop, checkpoints, preaccumulate)
    return tree.unflatten(treedef, outs[1:])


def _in_python(counts: range, first: Array, body_fun: Callable[..., Any], value: Any) -> Any:
    """Run the loop in Python from the carry ``value``, and return the final carry.

    ``counts`` are the counters, which are converted to the dtype of ``first``.
    """
    for i in counts:
        value = body_fun(convert_element_type(as_array(i), first.dtype, first.weak_type), value)
    return value


def _with_bar(body_fun: Callable[..., Any], first: Array, last: Array, progress: bool | str) -> Callable[..., Any]:
    """Show a progress bar, and return the body of a loop extended to update the bar in each step.

    ``first`` and ``last`` are the bounds of the loop; ``progress`` is the description of the bar, or True for none.
    """
    bar, total = Bar(progress), sub(last, first)
    bar.start(total)

    @source.named_as(body_fun)
    def step(i: Any, carry: Any) -> Any:
        carry = body_fun(i, carry)
        bar.tick(add(sub(i, first), 1), total)
        return carry

    return step


def _unbounded(
    first: Array, last: Array, body_fun: Any, leaves: list[Array], treedef: Any, unroll: Any, checkpoints: int | None,
    preaccumulate: str | None,
) -> Any:  # fmt: skip
    """Run a loop with traced or float bounds as a while loop; raise if ``unroll`` is set. Return the final carry."""
    if unroll is not None:
        raise ControlFlowError(
            "fori_loop: unroll needs static integer bounds, but one of them is traced or a float; leave unroll out"
        )

    def step(i: Any, upper: Any, *tracers: Any) -> Any:
        return (add(i, 1), upper, body_fun(i, tree.unflatten(treedef, tracers))), None

    def test(i: Any, upper: Any, *tracers: Any) -> Any:
        return lt_p.bind(i, upper)

    key = "fori_loop between", treedef
    carry = Carry("fori_loop", body_fun, [first, last, *leaves], treedef, ["i", "upper"], key)
    return tree.unflatten(treedef, run_while(carry, body_fun, test, step, checkpoints, preaccumulate)[2:])


def _bounds(lower: Any, upper: Any) -> tuple[Array, Array]:
    """Convert the bounds to scalars of one dtype; raise if that is impossible."""
    arrays = []
    for x, name in ((lower, "lower"), (upper, "upper")):
        array = array_of(x, "fori_loop", f"the bound {name}")
        if array.shape != () or not (dtypes.is_integer(array.dtype) or dtypes.is_float(array.dtype)):
            raise ControlFlowError(
                f"fori_loop: the bound {name} must be a scalar integer or float, got one of type {typeof(array)}"
            )
        arrays.append(array)
    first, last = arrays
    if first.dtype != last.dtype:
        if not (first.weak_type or last.weak_type) or dtypes.is_integer(first.dtype) != dtypes.is_integer(last.dtype):
            raise ControlFlowError(
                f"fori_loop: the bounds must have one dtype, but lower is {typeof(first)} and upper is {typeof(last)}. "
                "Convert one of them."
            )
        dtype = last.dtype if first.weak_type else first.dtype
        for x, name in ((first, "lower"), (last, "upper")):
            if dtypes.is_integer(dtype) and x.dtype != dtype and not _holds(dtype, x):
                raise ControlFlowError(
                    f"fori_loop: the bound {name}, {x!r}, is out of the range of {dtype}, the dtype of the other bound"
                )
        first, last = (convert_element_type(x, dtype) for x in (first, last))
    return first, last


def _holds(dtype: Any, x: Array) -> bool:
    """Whether an integer dtype can represent the value of ``x``; for a traced ``x``, all values of its dtype."""
    limits, value = dtypes.iinfo(dtype), known(x)
    own = dtypes.iinfo(x.dtype)
    least, most = (own.min, own.max) if value is None else (int(value), int(value))
    return bool(limits.min <= least and most <= limits.max)
