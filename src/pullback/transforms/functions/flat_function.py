"""User functions in the form that interpreters take: from flat arrays to a list of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from pullback.core import dtypes, tree
from pullback.core.arguments import flag
from pullback.core.array import SCALARS, Array, ArrayImpl, dtype_of, from_scalar, typeof
from pullback.transforms.functions.arguments import (
    argument_name,
    check_argnums,
    check_differentiable,
    flatten_one,
    out_leaf,
    positions,
    split_aux,
    structure_of,
    to_arrays,
)


def flat_result(out: Any, fun: Any) -> tuple[list[Any], Any]:
    """Flatten ``out``, a result of ``fun``: return its leaves as arrays, and its tree, or None for a single array.

    Raise if a leaf is no array.
    """
    if isinstance(out, Array):
        return [out], None
    leaves, out_tree = flatten_one(out)
    return [x if isinstance(x, Array) else out_leaf(x, fun) for x in leaves], out_tree


class FlatFunction:
    """A user's function of trees as a function of flat arrays. It records the tree of its last result.

    A call takes leaves, rebuilds the arguments, and calls the user's function. It returns the leaves of the result as
    arrays, followed by the unchanged leaves of the auxiliary output.

    Attributes:
      fun: the function.
      described: the function that error messages name, if ``fun`` is a wrapper.
      in_tree: the tree of a tuple or list of the arguments that are passed as leaves; None if each leaf is an argument.
      keywords: whether ``in_tree`` is the tree of a pair of positional arguments and keyword arguments.
      args: all positional arguments, if some are fixed; a call replaces those at ``where``.
      where: the positions of the arguments that are passed as leaves; None if all arguments are.
      kwargs: fixed keyword arguments.
      opaque: leaves that are not arrays, by index, which replace the leaves of a call; None if there are none.
      has_aux: whether the function returns a pair of an output and auxiliary data.
      out_tree: the tree of the last result, None for a single array.
      count: the number of leaves of the last result.
      aux_tree: the tree of the last auxiliary output.
    """

    __slots__ = (
        "args", "aux_tree", "count", "described", "fun", "has_aux", "in_tree", "keywords", "kwargs", "opaque",
        "out_tree", "where",
    )  # fmt: skip

    count: int
    aux_tree: Any

    def __init__(
        self,
        fun: Callable[..., Any],
        in_tree: Any = None,
        args: Sequence[Any] = (),
        where: Sequence[int] | None = None,
        kwargs: dict[str, Any] | None = None,
        *,
        keywords: bool = False,
        has_aux: bool = False,
        described: Any = None,
    ) -> None:
        self.fun = fun
        self.described = fun if described is None else described
        self.in_tree = in_tree
        self.args = args
        self.where = where
        self.kwargs = kwargs
        self.keywords = keywords
        self.has_aux = has_aux
        self.opaque: dict[int, Any] | None = None
        self.out_tree: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        where = self.where
        if self.in_tree is None and where is None:
            out = self.fun(*leaves)
        elif self.in_tree is None and len(leaves) == 1:  # fast path, mostly of ``grad``
            args = [*self.args]
            args[where[0]] = leaves[0]  # type: ignore[index]
            out = self.fun(*args, **self.kwargs) if self.kwargs else self.fun(*args)
        else:
            args, kwargs = self.arguments(leaves)  # type: ignore[assignment]
            out = self.fun(*args, **kwargs)
        aux: list[Any] | None = None
        if self.has_aux:
            out, rest = split_aux(out, self.described)
            aux, self.aux_tree = tree.flatten(rest)
        if isinstance(out, Array):
            self.out_tree = None
            self.count = 1
            outs = [out]
        else:
            outs = self.result_leaves(out)
            self.count = len(outs)
        return outs + aux if aux else outs

    def arguments(self, leaves: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """Rebuild the positional and keyword arguments of the function from ``leaves``."""
        if self.opaque is not None:
            leaves = [self.opaque.get(i, x) for i, x in enumerate(leaves)]
        positional: Any = leaves if self.in_tree is None else tree.unflatten(self.in_tree, leaves)
        kwargs = self.kwargs or {}
        if self.keywords:
            positional, named = positional
            kwargs = {**named, **kwargs}
        if self.where is None:
            return positional, kwargs
        args = list(self.args)
        for i, x in zip(self.where, positional, strict=True):
            args[i] = x
        return args, kwargs

    def result_leaves(self, out: Any) -> list[Any]:
        """Return the leaves of ``out``, a result of the function, as arrays, and record its tree."""
        outs, self.out_tree = flat_result(out, self.described)
        return outs

    @property
    def out_structure(self) -> Any:
        """The tree structure of the last result; for a single array, the structure of a leaf."""
        return structure_of(self.out_tree)

    def result(self, outs: Sequence[Any]) -> Any:
        """Rebuild the result of the function from ``outs``, the list that a call returned."""
        return outs[0] if self.out_tree is None else tree.unflatten(self.out_tree, outs[: self.count])

    def aux(self, outs: Sequence[Any]) -> Any:
        """Rebuild the auxiliary output from ``outs``, the list that a call returned."""
        return tree.unflatten(self.aux_tree, outs[self.count :])


class DerivativeOptions(NamedTuple):
    """The options of a transformation that differentiates a function; ``transformation`` is its name."""

    transformation: str
    argnums: int | tuple[int, ...]
    has_aux: bool = False
    holomorphic: bool = False
    allow_int: bool = False

    @classmethod
    def checked(
        cls, name: str, argnums: Any, has_aux: Any = False, holomorphic: Any = False, allow_int: Any = False
    ) -> DerivativeOptions:
        """Return the options that a user passed to the transformation ``name``; raise unless they are valid."""
        return cls(
            name, check_argnums(argnums, name), flag(name, "has_aux", has_aux),
            flag(name, "holomorphic", holomorphic), flag(name, "allow_int", allow_int),
        )  # fmt: skip


def differentiable(
    kind: type[FlatFunction], fun: Any, options: DerivativeOptions, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, list[Any]]:
    """Make a flat function of those arguments of a function that are differentiated.

    Args:
      kind: the class of the flat function.
      fun: the user's function.
      options: the options of the transformation; ``argnums`` has the positions of the differentiated arguments.
      args, kwargs: all arguments.

    Returns:
      The flat function, and the leaves of the differentiated arguments as arrays.

    Raises:
      NotDifferentiableError: a leaf cannot be differentiated.
    """
    name, argnums, has_aux, holomorphic, allow_int = options
    if type(argnums) is int and 0 <= argnums < len(args):
        where: tuple[int, ...] = (argnums,)
        x = args[argnums]
        if type(x) is float:
            x = from_scalar(x)
        if type(x) is ArrayImpl or isinstance(x, Array):
            dtype = x._host_value.dtype if type(x) is ArrayImpl else dtype_of(x)
            if dtype.kind == "f" and not holomorphic:  # fast path: one real array needs no flattening and no checks
                return kind(fun, None, args, where, kwargs, has_aux=has_aux), [x]
            leaves, in_tree = [x], None
        else:
            leaves, in_tree = ([x], None) if type(x) in SCALARS else tree.flatten((x,))
    else:
        where = positions(argnums, len(args), name, fun)
        leaves, in_tree = tree.flatten(tuple([args[i] for i in where]))
    primals = to_arrays(leaves, name, fun, args, where)
    for i, x in enumerate(primals):
        if holomorphic or not dtypes.is_inexact(dtype_of(x)):
            describe = partial(argument_name, i, fun, args, where)
            check_differentiable(typeof(x), name, fun, holomorphic, allow_int, describe)
    return kind(fun, in_tree, args, where, kwargs, has_aux=has_aux), primals


def unflatten_arguments(argnums: int | tuple[int, ...], in_tree: Any, leaves: Sequence[Any]) -> Any:
    """Rebuild trees like the arguments at ``argnums`` from their leaves: one tree for an int, else a tuple of trees.

    ``in_tree`` is the tree of the tuple of these arguments; None if each leaf is an argument.
    """
    trees = leaves if in_tree is None else tree.unflatten(in_tree, leaves)
    return trees[0] if type(argnums) is int else trees
