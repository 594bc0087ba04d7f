"""Checking that the branches of ``cond`` and ``switch`` return the same types, also in eager mode.

In eager mode only one branch runs. So that types do not depend on data, and errors do not first occur under ``jit``,
the other branches are traced, too, and the types compared. The result is cached by a key of the functions: their code,
and the types of arrays and the values that they close over. So functions that are new objects in each call, such as
lambdas, are traced only once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from pullback.control.common import Body, aval_difference, leaf_names, leaves_of, stage, tree_difference, without_refs
from pullback.core import dtypes, tree
from pullback.core.array import Array, typeof
from pullback.core.config import config
from pullback.core.errors import ConcretizationTypeError, ControlFlowError
from pullback.core.trace import state
from pullback.core.types import ShapedArray
from pullback.core.user_types import HiType
from pullback.primitives.elementwise import convert_element_type
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.functions.flat_function import flat_result

Functions = Sequence[Callable[..., Any]]


def staged_branches(
    what: str, functions: Functions, avals: Sequence[ShapedArray], in_tree: Any, with_refs: Callable[[Any], Any],
    lasting: bool = False,
) -> list[Body]:  # fmt: skip
    """Trace each branch to a program; return a :class:`Body` for each.

    Args:
      what: the operation, for error messages.
      functions: the branches.
      avals: the types of the operands' leaves.
      in_tree: the tree of the operands.
      with_refs: puts the mutable references, which zeros replace in the operands, back into a tree of operands.
      lasting: whether the programs are kept with the functions: there are no such references.
    """

    def staged(function: Callable[..., Any]) -> Body:
        return stage(
            what, function, lambda *xs: function(*with_refs(tree.unflatten(in_tree, xs))), avals,
            lambda: leaf_names("operands", in_tree), key=("a branch", in_tree) if lasting else None,
        )  # fmt: skip

    return [staged(f) for f in functions]


def branch_names(what: str, functions: Functions) -> list[str]:
    """Name the branches of the operation ``what`` by argument and function, as ``true_fun (f)``, for error messages."""
    names = ["false_fun", "true_fun"] if what == "cond" else [f"branches[{i}]" for i in range(len(functions))]
    return [f"{n} ({name_of(f)})" for n, f in zip(names, functions, strict=True)]


def common_types(what: str, names: Sequence[str], bodies: Sequence[Body]) -> list[ShapedArray]:
    """The types of the results of all branches, after promotion of weak types; raise if the branches' types differ.

    If the types differ in weakness only, the result is weak where that of the first branch is, as in JAX: checks such
    as Equinox's ``error_if`` return what they got from the first branch, and take anything from the other.
    """
    first = bodies[0]
    for name, body in zip(names, bodies, strict=True):
        if body.out_tree != first.out_tree:
            where = f"from {names[0]}", f"from {name}"
            raise ControlFlowError(
                f"{what}: the branches must return the same tree, but "
                f"{tree_difference('the result', first.out_tree, body.out_tree, where)}. Return the same containers "
                "and keys."
            )
    columns = list(zip(*(body.out_avals for body in bodies), strict=True))
    wanted = []
    for i, avals in enumerate(columns):
        strong = next((a for a in avals if not a.weak_type), avals[0])
        for name, aval in zip(names, avals, strict=True):
            is_promoted = aval.weak_type and not strong.weak_type and dtypes.result_type(aval, strong) == strong.dtype
            if isinstance(aval, HiType) and aval == strong:
                continue
            if aval.shape != strong.shape or (aval.dtype != strong.dtype and not is_promoted):
                leaf = leaf_names("the result", first.out_tree)[i]
                other = names[avals.index(strong)]
                cure = "Reshape one of them." if aval.shape != strong.shape else "Convert one of them, with astype."
                raise ControlFlowError(
                    f"{what}: the branches must return the same types, but {leaf} is {strong} from {other} and {aval} "
                    f"from {name}: {aval_difference(strong, aval)}. {cure}"
                )
        first_is_weak = avals[0].weak_type and all(aval.dtype == strong.dtype for aval in avals)
        wanted.append(avals[0] if first_is_weak else strong)
    return wanted


# Eager ---------------------------------------------------------------------------------------------------------------


class _Types(NamedTuple):
    """The types of the results of branches.

    Attributes:
      trees: for each branch the tree of its result; None for a single array.
      own: for each branch the types of the leaves of its result.
      wanted: the common types to convert the leaves to; None if the branches cannot be traced, since one reads values.
    """

    trees: Sequence[Any]
    own: Sequence[Sequence[Any]]
    wanted: Sequence[Any] | None


_cache: dict[Any, _Types] = {}
_MAX_CACHED = 1024


def run_compared(what: str, number: int, functions: Functions, operands: tuple[Any, ...]) -> Any:
    """Run branch ``number`` as ordinary Python, and convert the result to the common types of all branches.

    ``what`` is the operation, for error messages.

    Raises:
      ControlFlowError: the branches return different types (a TypeError and ValueError).
    """
    in_tree: Any = None
    leaves: Sequence[Any] = operands
    with_refs: Callable[[Any], Any] = tuple
    if not all(isinstance(x, Array) for x in operands):
        operands, with_refs = without_refs(operands)
        leaves, in_tree = leaves_of(operands, what, "operands")
        operands = with_refs(tree.unflatten(in_tree, leaves))
    key = config.trace_context, tuple(state.axes), in_tree, *map(_kind, leaves), *map(_identity, functions)
    cached = _cache.get(key)
    found = _compared(what, functions, leaves, in_tree, with_refs) if cached is None else cached
    function = functions[number]
    out = function(*operands)
    if found.wanted is not None and isinstance(out, Array):  # fast path: a single array of the common type
        kinds = [_kind(out)]
        if found.trees[number] is None and found.own[number] == kinds == found.wanted:
            if cached is None:
                _add_to_cache(key, found)
            return out
    outs, out_tree = flat_result(out, function)
    kinds = list(map(_kind, outs))
    if found.wanted is not None and not (found.trees[number] == out_tree and found.own[number] == kinds):
        found = _compared(what, functions, leaves, in_tree, with_refs)  # the key matched another function
    _add_to_cache(key, found)
    if found.wanted is not None and len(found.wanted) == len(outs):
        for i, (kind, (_, dtype, weak_type)) in enumerate(zip(kinds, found.wanted, strict=True)):
            if kind[1:] != (dtype, weak_type):
                outs[i] = convert_element_type(outs[i], dtype, weak_type)
    return outs[0] if out_tree is None else tree.unflatten(out_tree, outs)


def _add_to_cache(key: Any, found: _Types) -> None:
    """Cache the types of branches; clear a full cache first."""
    if len(_cache) >= _MAX_CACHED:
        _cache.clear()
    _cache[key] = found


def _compared(
    what: str, functions: Functions, leaves: Sequence[Any], in_tree: Any, with_refs: Callable[[Any], Any]
) -> _Types:
    """Trace all branches, and return the types of their results; raise if the types differ.

    Args:
      what: the operation, for error messages.
      functions: the branches.
      leaves: the leaves of the operands.
      in_tree: the tree of the operands; None if each operand is a leaf.
      with_refs: takes the operands as a tree with zeros instead of mutable references, and puts the references back.
    """
    if in_tree is None:
        in_tree = tree.structure(tuple(leaves))
    try:
        bodies = staged_branches(what, functions, list(map(typeof, leaves)), in_tree, with_refs)
    except ConcretizationTypeError:
        return _Types((), (), None)
    wanted = common_types(what, branch_names(what, functions), bodies)
    trees = [None if body.out_tree.is_leaf() else body.out_tree for body in bodies]
    return _Types(trees, [list(map(_kind, body.out_avals)) for body in bodies], list(map(_kind, wanted)))


def _kind(x: Any) -> Any:
    """The shape, dtype and weak type of an array, for a cache key."""
    try:
        return x.shape, x.dtype, x.weak_type
    except AttributeError:  # a value of a user's type
        return None, typeof(x), False


def _identity(x: Any, depth: int = 0) -> Any:
    """A cache key of a function, or of a value that a function closes over or has as a default.

    Functions that the same code made have equal keys if the arrays that they close over have equal shapes and dtypes.
    Their results may still differ in type, so that the caller must compare the types. ``depth`` is the number of nested
    closures so far.
    """
    kind = type(x)
    if kind is FunctionType:
        if (x.__closure__ is None and x.__defaults__ is None) or depth > 4:
            return x.__code__
        module = sys.modules.get(x.__module__)
        if module is not None and module.__dict__.get(x.__qualname__) is x:  # whatever it closes over stays the same
            return x
        cells = [_content(cell, depth) for cell in x.__closure__ or ()]
        defaults = [_identity(value, depth + 1) for value in x.__defaults__ or ()]
        return x.__code__, *cells, *defaults
    if kind is MethodType:
        return x.__func__, id(x.__self__)
    if isinstance(x, (Array, np.ndarray, np.generic)):
        return kind is np.ndarray, x.shape, x.dtype, getattr(x, "weak_type", False)
    if kind in (int, float, complex, str, bool, type(None)):
        return kind, x
    if kind is tuple:
        return tuple([_identity(value, depth + 1) for value in x]) if depth <= 4 else kind
    return kind, id(x)


def _content(cell: Any, depth: int) -> Any:
    """The cache key of the content of a closure cell, within ``depth`` nested closures; None for an empty cell."""
    try:
        return _identity(cell.cell_contents, depth + 1)
    except ValueError:  # an empty cell
        return None
