"""``scan`` and ``map``: loops over the leading axis of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from pullback.control.common import (
    Body,
    Carry,
    auto_preaccumulated,
    check_checkpoints,
    check_preaccumulate,
    deduplicated,
    leaf_names,
    leaves_of,
    stage_step,
    tree_difference,
    varied_contents,
)
from pullback.control.progress import Bar, check_progress
from pullback.control.scan_primitive import Loop, hoist_loop_invariants
from pullback.core import source, tree
from pullback.core.annotations import PyTree
from pullback.core.arguments import flag, require_function
from pullback.core.array import Array, ArrayLike, scalar_array, typeof
from pullback.core.config import config
from pullback.core.errors import ConcretizationTypeError, ControlFlowError, RefError, ShardingTypeError
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.lists import merge_lists, partition_list, split_list
from pullback.core.refs import RefCell
from pullback.core.trace import Tracer, state
from pullback.core.types import ShapedArray
from pullback.core.user_types import HiType, has_user_types, types_of_values
from pullback.primitives.arrays.shapes import reshape
from pullback.primitives.arrays.slicing import concatenate, slice_in_dim, stack
from pullback.primitives.elementwise import add
from pullback.transforms.autodiff.vmap import vmap
from pullback.transforms.checkpoint.eager_remat import in_reverse_mode
from pullback.transforms.custom.custom_vmap import custom_vmap
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import name_of, out_leaf
from pullback.transforms.programs.lojax import lowered_values, raised_values
from pullback.transforms.traces.lift import reordered
from pullback.transforms.traces.refs import (
    Ref,
    argument_ref,
    check_aliases,
    content_of,
    contents,
    refuse_second_runs,
    write_all,
)

R = TypeVar("R")

C = TypeVar("C")
Y = TypeVar("Y")


# long: half of it is its documentation
@api_boundary
def scan(
    f: Callable[..., tuple[C, Y]],
    init: PyTree,
    xs: PyTree = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    *,
    checkpoints: int | None = None,
    progress: bool | str = False,
    preaccumulate: str | None = None,
) -> tuple[C, Y]:
    """Run a function over the leading axis of arrays, with a carry from each step to the next.

    The size of the compiled program does not depend on the number of steps. Also in eager mode a loop of more than a
    few operations runs as a compiled program, which is cached; under ``disable_jit`` it is a loop in Python.
    ``f`` is traced once for its types, and again if a variable that it closes over, or a global, was bound anew: its
    ``print`` and other effects of Python occur while it is traced, as under ``jit``.

    Args:
      f: the step, ``f(carry, x) -> (carry, y)``; the new carry has the same tree, shapes and dtypes as the old one.
      init: the initial carry, a tree of arrays. Weakly typed numbers take the dtype that ``f`` returns.
      xs: a tree of arrays; each step takes an element of the leading axis of each. None for steps without elements.
      length: the number of steps, which is needed only without ``xs``.
      reverse: whether to go from the last element to the first; the results are in the order of the elements.
      unroll: the number of steps in an iteration of the compiled loop; True for all, False for one.
      _split_transpose: accepted for compatibility, without effect: the backward pass is one loop.
      checkpoints: the number of states to save for reverse mode, chosen so that the fewest steps are recomputed. By
        default all residuals are saved.
      progress: whether to show a progress bar, or its description; this needs the library ``tqdm``.
      preaccumulate: ``"auto"`` stores the local Jacobian of a region of a step for reverse mode, instead of its
        intermediate values, wherever that takes less memory; see ``pullback.derivatives.preaccumulate``.

    Returns:
      The last carry; and the ``y`` of all steps, stacked along a new leading axis.

    Raises:
      ControlFlowError: ``f`` returns another carry than it takes, or no pair; or the lengths disagree (a TypeError and
        ValueError).
      MissingLibraryError: there is to be a progress bar, and ``tqdm`` is not installed (an ImportError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> total, sums = lax.scan(lambda carry, x: (carry + x, carry + x), 0.0, jnp.arange(1.0, 5.0))
    >>> print(total, sums)
    10.0 [ 1.  3.  6. 10.]
    """
    _split_transpose = flag("lax.scan", "_split_transpose", _split_transpose)
    reverse = flag("lax.scan", "reverse", reverse)
    require_function("scan", "f", f)
    check_checkpoints("scan", checkpoints)
    check_progress("scan", progress)
    check_preaccumulate("scan", preaccumulate)
    options: dict[str, Any] = {"checkpoints": checkpoints, "preaccumulate": preaccumulate}
    leaves, treedef = leaves_of(init, "scan", "init")
    if any(isinstance(x, RefCell) for x in tree.leaves(xs)):
        f, xs, refs = _with_rows_of_refs(f, xs)
        carry, (ys, rows) = scan(f, init, xs, length, reverse, unroll, progress=progress, **options)
        write_all(refs, rows)
        return carry, ys
    elements, xs_tree = leaves_of(xs, "scan", "xs")
    count = step_count("scan", elements, xs_tree, length)
    if progress:
        f, init = _with_bar(f, init, count, progress)
        (_, carry), ys = scan(f, init, xs, length, reverse, unroll, **options)
        return carry, ys
    loop = Loop(count, bool(reverse), checked_unroll("scan", unroll, count))
    carry = Carry("scan", f, leaves, treedef, key=("scan", treedef, xs_tree))
    return _run(carry, f, elements, xs_tree, loop, **options)


def _run(
    carry: Carry,
    f: Callable[..., Any],
    xs: Sequence[Any],
    xs_tree: Any,
    loop: Loop,
    checkpoints: int | None = None,
    preaccumulate: str | None = None,
) -> tuple[Any, Any]:
    """Run a scan of a function ``f`` of trees; return the final carry and the stacked results, as trees."""
    if config.disable_jit and loop.length:
        return _in_python(carry, f, xs, xs_tree, loop)
    size = len(carry.leaves)

    def call(*tracers: Any) -> Any:
        args = tree.unflatten(carry.treedef, tracers[:size]), tree.unflatten(xs_tree, tracers[size:])
        return _pair(f(*args), carry.function)

    outs, ys, y_tree = run_scan(carry, call, xs, xs_tree, loop, checkpoints, preaccumulate)
    return tree.unflatten(carry.treedef, outs), tree.unflatten(y_tree, ys)


def _pair(out: Any, function: Any) -> tuple[Any, Any]:
    """Return the carry and the result of a step, from the body's return value ``out``; raise unless it is a pair."""
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        what = f"a {type(out).__name__} of {len(out)}" if isinstance(out, (tuple, list)) else repr(out)
        raise ControlFlowError(
            f"scan: the body {name_of(function)} must return a pair (carry, y), but it returned {what}. If there is "
            f"no y to stack, return (carry, None)."
        )
    return out[0], out[1]


def _with_bar(f: Callable[..., Any], init: Any, count: int, progress: bool | str) -> tuple[Callable[..., Any], Any]:
    """Show a progress bar, and extend a step to update the bar.

    Returns the new step, and its initial carry: a pair of a counter and the user's carry ``init``.
    """
    bar, total = Bar(progress), scalar_array(np.int32(count))
    bar.start(total)

    @source.named_as(f)
    def step(carry: Any, x: Any) -> Any:
        done, carry = carry
        carry, y = _pair(f(carry, x), f)
        done = add(done, 1)
        bar.tick(done, total)
        return (done, carry), y

    return step, (scalar_array(np.int32(0)), init)


def _with_rows_of_refs(f: Callable[..., Any], xs: Any) -> tuple[Callable[..., Any], Any, list[Ref]]:
    """Replace references in ``xs`` by their contents, which a scan can slice.

    Returns:
      A new step; ``xs`` with contents instead of references; and the references. For each reference, the new step
      passes to ``f`` a reference that holds the current row, and returns the row's new content as a further result to
      stack.
    """
    leaves, treedef = tree.flatten(xs)
    where = [i for i, x in enumerate(leaves) if isinstance(x, RefCell)]
    refs = [leaves[i] for i in where]
    check_aliases(refs, f"scan of {name_of(f)}")

    @source.named_as(f)
    def step(carry: Any, x: Any) -> Any:
        row = tree.leaves(x)
        own = [argument_ref(row[i]) for i in where]
        for i, ref in zip(where, own, strict=True):
            row[i] = ref
        before = contents(refs)
        carry, y = _pair(f(carry, tree.unflatten(treedef, row)), f)
        if any(a is not b for a, b in zip(contents(refs), before, strict=True)):
            raise RefError(f"scan of {name_of(f)}: the body writes to a reference in xs; write to its row")
        return carry, (y, contents(own))

    return step, tree.unflatten(treedef, [content_of(x) if i in where else x for i, x in enumerate(leaves)]), refs


def run_scan(
    carry: Carry,
    call: Callable[..., Any],
    xs: Sequence[Any],
    xs_tree: Any,
    loop: Loop,
    checkpoints: int | None,
    preaccumulate: str | None = None,
) -> tuple[list[Any], list[Any], Any]:
    """Stage and run a scan; return the leaves of the final carry and of the stacked results, and the latter's tree.

    Args:
      carry: the initial carry.
      call: from the leaves of a carry and of an element to a pair of trees, the carry and the result to stack.
      xs: the leaves of ``xs``.
      xs_tree: the tree of ``xs``.
      loop: the parameters of the loop.
      checkpoints: the number of states to save for reverse mode; None for all residuals.
      preaccumulate: ``"auto"`` to store local Jacobians instead of residuals wherever they are smaller.
    """
    rows = [element_type(x, loop.length) for x in xs]
    body = stage_step(carry, call, rows, lambda: [*carry.names(), *leaf_names("x", xs_tree)])
    if body.in_rules and loop.length:
        refuse_second_runs()
        if in_reverse_mode(state.trace):
            return _step_by_step(carry, call, xs, loop)
    program, init = body.jaxpr, carry.leaves
    if body.refs:  # their contents are carried, too, after the rest
        program, init = _carrying_refs(body, len(init)), [*init, *varied_contents(body)]
    if checkpoints is None or preaccumulate is not None:
        program = deduplicated(program)
    if preaccumulate is not None:
        first = len(body.captured)
        program = auto_preaccumulated(program, carry, range(first, first + len(init)))
    if checkpoints is None or not loop.length:
        outs, ys = hoist_loop_invariants(program, loop, body.captured, init, xs)
    else:
        from pullback.control.checkpointed_scan import checkpointed

        outs, ys = checkpointed(program, loop, body.captured, init, xs, checkpoints, carry.function)
    if body.refs:
        outs, last = split_list(outs, len(carry.leaves))
        write_all(body.refs, last)
    return outs, ys, tree.treedef_children(body.out_tree)[1]


def _step_by_step(
    carry: Carry, call: Callable[..., Any], xs: Sequence[Any], loop: Loop
) -> tuple[list[Any], list[Any], Any]:
    """Run a scan as :func:`run_scan` does, but as a loop in Python, whose backward pass may write to references."""
    state_of_loop, columns, y_tree = list(carry.leaves), list[list[Any]](), None
    order = range(loop.length)
    for i in reversed(order) if loop.reverse else order:
        out, y = call(*state_of_loop, *[_element(x, i, loop.length) for x in xs])
        state_of_loop = [out_leaf(x, carry.function) for x in tree.leaves(out)]
        leaves, y_tree = tree.flatten(y)
        columns.append([out_leaf(x, carry.function) for x in leaves])
    if loop.reverse:
        columns.reverse()
    return state_of_loop, [_stacked(column) for column in zip(*columns, strict=True)], y_tree


def _row(aval: ShapedArray) -> ShapedArray:
    """Return the type of an element of the scanned arrays of type ``aval``; raise if the first axis is sharded."""
    if aval.explicit is not None and aval.explicit.spec[0] is not None:
        raise ShardingTypeError(
            f"scan: the 0th dimension of all xs should be replicated, since each step takes one index of it; got "
            f"{aval}. Change the sharding by sharding.reshard"
        )
    return aval.without_axis(0)


def _carrying_refs(body: Body, carried: int) -> ClosedJaxpr:
    """Reorder inputs and results of a step's program, so that the contents of references follow the user's carry.

    ``captured, carry, x, refs -> carry, y, refs`` becomes ``captured, carry, refs, x -> carry, refs, y``.
    ``carried`` is the number of values in the user's carry.
    """
    inputs, results = range(len(body.jaxpr.in_avals)), range(len(body.jaxpr.out_avals))
    count = len(body.refs)

    def moved(numbers: Sequence[int], position: int) -> list[int]:
        end = len(numbers) - count
        return [*numbers[:position], *numbers[end:], *numbers[position:end]]

    return reordered(body.jaxpr, moved(inputs, len(body.captured) + carried), moved(results, carried))


def element_type(x: Any, length: int) -> Any:
    """Return the type of an element of the leading axis of ``x``: an array, or a value of a user's type."""
    aval = typeof(x)
    return aval.element(length) if isinstance(aval, HiType) else _row(aval)


def _require_known(what: str, name: str, value: Any) -> None:
    """Raise if an option of a loop is traced."""
    if isinstance(value, Tracer):
        raise ConcretizationTypeError(
            f"{what}: {name} must be known when the program is traced, got {value!r}. Declare it static, as in "
            f"jit(f, static_argnames={name!r}); fori_loop and while_loop take a traced number of steps"
        )


def step_count(what: str, xs: Sequence[Array], xs_tree: Any, length: Any) -> int:
    """The number of steps, from the leaves of ``xs`` and the option ``length``; raise if they disagree."""
    if length is not None:
        try:
            length = length.__index__()
        except (AttributeError, TypeError):
            _require_known(what, "length", length)
            raise ControlFlowError(f"{what}: length must be an int, got {length!r}") from None
        if length < 0:
            raise ControlFlowError(f"{what}: length must not be negative, got {length}")
    if types_of_values and has_user_types([typeof(x) for x in xs]):  # whose types do not say
        xs = [x if isinstance(typeof(x), ShapedArray) else None for x in xs]  # type: ignore[misc]
    for i, x in enumerate(xs):
        if x is not None and not x.shape:
            raise ControlFlowError(
                f"{what} goes over the leading axis of each array in xs, but {leaf_names('xs', xs_tree)[i]} of type "
                f"{x.aval} is a scalar. Capture a value for all steps in the body, or put it into the carry."
            )
    sizes = {x.shape[0] for x in xs if x is not None}
    if len(sizes) > 1:
        shown = ", ".join(
            f"{name} has {x.shape[0]}" for name, x in zip(leaf_names("xs", xs_tree), xs, strict=True) if x is not None
        )
        raise ControlFlowError(f"{what}: all arrays in xs must have leading axes of one size, but {shown}")
    if not sizes and length is None:
        raise ControlFlowError(f"{what}: without arrays in xs, pass the number of steps as length")
    if sizes and length is not None and length not in sizes:
        raise ControlFlowError(f"{what}: length is {length}, but the leading axis of xs has {min(sizes)} elements")
    return min(sizes) if sizes else length


def checked_unroll(what: str, unroll: Any, length: int) -> int:
    """The number of steps in an iteration of the compiled loop, from the option ``unroll``, which is checked."""
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    _require_known(what, "unroll", unroll)
    if not isinstance(unroll, int) or unroll < 0:
        raise ControlFlowError(f"{what}: unroll must be a bool or a non-negative int, got {unroll!r}")
    return max(unroll, 1)


def _in_python(carry: Carry, f: Callable[..., Any], xs: Sequence[Any], xs_tree: Any, loop: Loop) -> tuple[Any, Any]:
    """Run a scan of ``f`` as a loop in Python, for ``disable_jit``; return the final carry and the stacked results."""
    value = tree.unflatten(carry.treedef, carry.leaves)
    columns: list[list[Any]] = []
    y_tree: Any = None
    order = range(loop.length)
    for i in reversed(order) if loop.reverse else order:
        row = [_element(x, i, loop.length) for x in xs]
        value, y = _pair(f(value, tree.unflatten(xs_tree, row)), carry.function)
        leaves, treedef = tree.flatten(y)
        if columns and treedef != y_tree:
            raise ControlFlowError(
                f"{carry.what}: the body {name_of(carry.function)} must return the same tree in all steps, but "
                f"{tree_difference('y', y_tree, treedef, ('in the first steps', 'in a later one'))}"
            )
        y_tree = treedef
        columns.append([out_leaf(x, carry.function) for x in leaves])
    if loop.reverse:
        columns.reverse()
    return value, tree.unflatten(y_tree, [_stacked(column) for column in zip(*columns, strict=True)])


def _element(x: Any, i: int, length: int) -> Any:
    """Return element ``i`` of the leading axis of ``x``: an array, or a value of a user's type."""
    rows = [reshape(slice_in_dim(lo, i, i + 1, 0), lo.shape[1:]) for lo in lowered_values([x])]
    return raised_values([element_type(x, length)], rows)[0]


def _stacked(column: Sequence[Any]) -> Any:
    """Stack the results of all steps along a new leading axis."""
    aval = typeof(column[0])
    if not isinstance(aval, HiType):
        return stack(column, 0)
    stacks = [stack(los, 0) for los in zip(*(lowered_values([x]) for x in column), strict=True)]
    return raised_values([aval.stacked(len(column))], stacks)[0]


@overload
def map(f: Callable[..., ArrayLike], xs: PyTree, *, batch_size: int | None = None) -> Array: ...
@overload
def map(f: Callable[..., R], xs: PyTree, *, batch_size: int | None = None) -> R: ...
@api_boundary
def map(f: Callable[..., Any], xs: PyTree, *, batch_size: int | None = None) -> Any:
    """Apply a function to each element of the leading axis of arrays, one after the other, or in batches.

    Args:
      f: takes an element of ``xs`` and returns a tree of arrays.
      xs: a tree of arrays with leading axes of one size.
      batch_size: the number of elements to compute together, by ``vmap``; 1 if it is None or 0.

    Returns:
      The results, stacked along a new leading axis.

    Raises:
      ControlFlowError: the lengths disagree, or there are no arrays (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> x = jnp.arange(5.0)
    >>> print(lax.map(lambda x: x**2, x), lax.map(lambda x: x**2, x, batch_size=2))
    [ 0.  1.  4.  9. 16.] [ 0.  1.  4.  9. 16.]
    """
    require_function("map", "f", f)
    if batch_size is None or (type(batch_size) is int and batch_size == 0):
        return _mapped(f, xs)
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise ControlFlowError(
            f"map: batch_size must be a positive int, or None or 0 to turn batching off, got {batch_size!r}"
        )
    elements, treedef = leaves_of(xs, "map", "xs")
    count = step_count("map", elements, treedef, None)
    many = vmap(f)
    end = count // batch_size * batch_size
    chunks = []
    if end:
        blocks = [reshape(slice_in_dim(x, 0, end, 0), (end // batch_size, batch_size, *x.shape[1:])) for x in elements]
        leaves, out_tree = tree.flatten(_mapped(many, tree.unflatten(treedef, blocks), f))
        chunks.append([reshape(y, (end, *y.shape[2:])) for y in leaves])
    if end < count or not count:
        rest = [slice_in_dim(x, end, count, 0) for x in elements]
        leaves, out_tree = tree.flatten(many(tree.unflatten(treedef, rest)))
        chunks.append(leaves)
    joined = [ys[0] if len(ys) == 1 else concatenate(ys, 0) for ys in zip(*chunks, strict=True)]
    return tree.unflatten(out_tree, joined)


def _mapped(f: Callable[..., Any], xs: Any, named: Any = None) -> Any:
    """Apply ``f`` to each element of ``xs`` by a scan without carry; return the stacked results.

    ``named`` is the function to name in error messages; ``f`` if None.
    """
    elements, xs_tree = leaves_of(xs, "map", "xs")
    loop = Loop(step_count("map", elements, xs_tree, None), False, 1)
    key = ("map", xs_tree) if named is None else None
    empty = Carry("map", f if named is None else named, [], tree.structure(None), key=key)
    return _run(empty, lambda _, x: (None, f(x)), elements, xs_tree, loop)[1]


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """Make a function that ``vmap`` applies to one example after the other, by :func:`map`.

    Args:
      f: takes and returns trees of arrays.

    Returns:
      A ``custom_vmap`` function. It is differentiated in both modes.

    Raises:
      ArgumentError: ``f`` is no function (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import vmap
    >>> from pullback.custom_batching import sequential_vmap
    >>> print(vmap(sequential_vmap(lambda x, y: x * y), (0, None))(jnp.arange(3.0), 2.0))
    [0. 2. 4.]
    """
    function = custom_vmap(f)

    @function.def_vmap
    def rule(axis_size: int, in_batched: Sequence[Any], *args: Any) -> tuple[Any, Any]:
        leaves, treedef = tree.flatten(args)
        mapped = tree.leaves(in_batched)
        fixed, rows = partition_list(leaves, mapped)
        out = map(lambda row: f(*tree.unflatten(treedef, merge_lists(mapped, fixed, row))), rows)
        return out, tree.tree_map(lambda _: True, out)

    return function
