"""The functions of ``api_util``: flattening functions of trees, static and donated arguments, debug information."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pullback.core import tree
from pullback.core.errors import ArgumentError, StaticArgumentError
from pullback.core.locks import cached_property
from pullback.core.types import ShapedArray
from pullback.transforms.functions.arguments import abstractify, name_of
from pullback.transforms.functions.linear_util import (
    Store,
    WrappedFun,
    transformation2,
    transformation_with_aux2,
)

Argnums = int | Sequence[int]


@transformation_with_aux2
def flatten_fun(f: Callable[..., Any], store: Store, in_tree: Any, *leaves: Any) -> list[Any]:
    """Turn a function of trees into a function from leaves to a list of leaves.

    Call it as ``flatten_fun(fun, in_tree)``, where ``fun`` is a ``WrappedFun``, and ``in_tree`` is the tree of a pair
    of positional and keyword arguments. It then returns a pair: the flat function, and a function without arguments
    that returns the tree of the results, after the flat function has run.

    >>> from pullback import tree
    >>> from pullback.api_util import flatten_fun
    >>> from pullback.extend.linear_util import wrap_init
    >>> leaves, in_tree = tree.flatten((((1, 2),), {"k": 3}))
    >>> flat, out_tree = flatten_fun(wrap_init(lambda pair, k: {"sum": sum(pair) + k}), in_tree)
    >>> flat.call_wrapped(*leaves), tree.unflatten(out_tree(), ["*"])
    ([6], {'sum': '*'})
    """
    args, kwargs = tree.unflatten(in_tree, leaves)
    out, out_tree = tree.flatten(f(*args, **kwargs))
    store.store(out_tree)
    return out


@transformation_with_aux2
def flatten_fun_nokwargs(f: Callable[..., Any], store: Store, in_tree: Any, *leaves: Any) -> list[Any]:
    """Turn a function of trees, without keyword arguments, into a function from leaves to a list of leaves.

    Call it as ``flatten_fun_nokwargs(fun, in_tree)``, where ``fun`` is a ``WrappedFun``, and ``in_tree`` is the tree of
    the tuple of arguments. It then returns a pair: the flat function, and a function without arguments that returns the
    tree of the results, after the flat function has run.

    >>> from pullback import tree
    >>> from pullback.api_util import flatten_fun_nokwargs
    >>> from pullback.extend.linear_util import wrap_init
    >>> leaves, in_tree = tree.flatten(((1, 2),))
    >>> flat, out_tree = flatten_fun_nokwargs(wrap_init(sum), in_tree)
    >>> flat.call_wrapped(*leaves)
    [3]
    """
    out, out_tree = tree.flatten(f(*tree.unflatten(in_tree, leaves)))
    store.store(out_tree)
    return out


class _Fixed:
    """A wrapper of a static argument that is not hashable; two wrappers are compared by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


@transformation2
def _with_fixed(
    f: Callable[..., Any], where: tuple[int, ...], fixed: tuple[Any, ...], *args: Any, **kwargs: Any
) -> Any:
    """Call ``f`` with the arguments ``fixed``, in which ``args`` replace those at the positions ``where``."""
    full = [x.value if isinstance(x, _Fixed) else x for x in fixed]
    for i, x in zip(where, args, strict=True):
        full[i] = x
    return f(*full, **kwargs)


def argnums_partial(
    f: WrappedFun, dyn_argnums: Argnums, args: Sequence[Any], require_static_args_hashable: bool = True
) -> tuple[WrappedFun, tuple[Any, ...]]:
    """Fix all positional arguments of a function except those at some positions.

    Args:
      f: the function.
      dyn_argnums: the positions of the arguments that are not fixed; a negative one counts from the end.
      args: all arguments.
      require_static_args_hashable: whether to raise for a fixed argument that is not hashable. Otherwise a function
        with such an argument is equal to itself only.

    Returns:
      The function, and the arguments that are not fixed, in the order of ``dyn_argnums``.

    Raises:
      ArgumentError: there is no argument at a position (a ValueError).
      StaticArgumentError: a fixed argument is not hashable (a ValueError).

    >>> from pullback.api_util import argnums_partial
    >>> from pullback.extend.linear_util import wrap_init
    >>> fun, args = argnums_partial(wrap_init(pow), 1, (2, 3))
    >>> args, fun.call_wrapped(5)
    ((3,), 32)
    """
    argnums = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    for i in argnums:
        if not -len(args) <= i < len(args):
            raise ArgumentError(f"there is no argument at position {i}: {name_of(f.f)} is called with {len(args)}")
    where = tuple(operator.index(i) % len(args) for i in argnums)
    fixed: list[Any] = []
    for i, x in enumerate(args):
        if i in where:
            x = None
        elif not _hashable(x):
            if require_static_args_hashable:
                raise StaticArgumentError(
                    f"the static argument {x!r} of type {type(x).__name__}, at position {i} of {name_of(f.f)}, is not "
                    "hashable"
                )
            x = _Fixed(x)
        fixed.append(x)
    return _with_fixed(f, where, tuple(fixed)), tuple(args[i] for i in where)


def _hashable(x: Any) -> bool:
    """Whether ``x`` has a hash. A tuple of lists, for example, does not."""
    try:
        hash(x)
    except TypeError:
        return False
    return True


def donation_vector(
    donate_argnums: Sequence[int], donate_argnames: Sequence[str], in_tree: Any, kws: bool = True
) -> tuple[bool, ...]:
    """Return a flag for each leaf of the arguments: whether the leaf is donated.

    Args:
      donate_argnums: the positions of donated arguments.
      donate_argnames: the names of donated keyword arguments.
      in_tree: the tree of a pair of positional arguments and keyword arguments; with ``kws=False``, the tree of the
        positional arguments alone.
      kws: whether there are keyword arguments.

    Returns:
      A flag for each leaf; with ``kws=False``, a last flag False follows, as in JAX.

    Raises:
      ArgumentError: ``in_tree`` is not the structure of a tree (a TypeError and a ValueError).

    >>> from pullback import tree
    >>> from pullback.api_util import donation_vector
    >>> donation_vector((0,), ("b",), tree.structure((((1, 2), 3), {"a": 4, "b": 5})))
    (True, True, False, False, True)
    """
    children = tree.treedef_children(in_tree)
    positional = tree.treedef_children(children[0]) if kws else children
    flags: list[bool] = []
    for i, argument in enumerate(positional):
        flags += [i in donate_argnums] * argument.num_leaves
    if not kws:
        return (*flags, False)
    keywords = tree.unflatten(children[1], range(children[1].num_leaves))  # a dict again, for its keys
    for name, argument in zip(sorted(keywords), tree.treedef_children(children[1]), strict=True):
        flags += [name in donate_argnames] * argument.num_leaves
    return tuple(flags)


def rebase_donate_argnums(donate_argnums: Sequence[int], static_argnums: Sequence[int]) -> tuple[int, ...]:
    """Return the positions of the donated arguments in the list of arguments without the static ones, in order.

    Args:
      donate_argnums: the positions of donated arguments among all arguments.
      static_argnums: the positions of static arguments among all arguments.

    Returns:
      A tuple of ints.

    Raises:
      ArgumentError: an argument is both donated and static (a ValueError).

    >>> from pullback.api_util import rebase_donate_argnums
    >>> rebase_donate_argnums((0, 3), (1, 2))
    (0, 1)
    """
    both = sorted(set(donate_argnums) & set(static_argnums))
    if both:
        raise ArgumentError(f"arguments cannot be static and donated, but those at positions {both} are both")
    return tuple(sorted(i - sum(s < i for s in static_argnums) for i in donate_argnums))


def flatten_axes(name: str, treedef: Any, axis_tree: Any, *, kws: bool = False, tupled_args: bool = False) -> list[Any]:
    """Broadcast a prefix tree, in which None is a leaf, to a list with an entry for each leaf of the full tree.

    Args:
      name: the name of the prefix in messages, such as ``"in_axes"``.
      treedef: the full tree.
      axis_tree: the prefix.
      kws: whether ``treedef`` is the tree of a pair of positional and keyword arguments. The prefix then applies to the
        positional arguments, and the entries of keyword arguments are 0.
      tupled_args: whether ``treedef`` is the tree of a tuple of arguments; the error message then says so.

    Returns:
      The list.

    Raises:
      ArgumentError: ``axis_tree`` is not a prefix of the tree (a ValueError).

    >>> from pullback import tree
    >>> from pullback.api_util import flatten_axes
    >>> flatten_axes("in_axes", tree.structure((1, (2, 3))), (None, 0))
    [None, 0, 0]
    """
    prefix = (axis_tree, 0) if kws else axis_tree
    indices = tree.unflatten(treedef, range(treedef.num_leaves))
    try:
        return tree.broadcast_prefix(prefix, indices, is_leaf=lambda x: x is None)
    except ValueError as error:
        hint = " Put it into a tuple, with one entry for each argument." if tupled_args else ""
        raise ArgumentError(f"{name}={axis_tree!r} must be a prefix of the tree of the values: {error}{hint}") from None


def shaped_abstractify(x: Any) -> ShapedArray:
    """Return the type of an array, a number, or an object with a shape and a dtype.

    Args:
      x: the value.

    Returns:
      A type.

    Raises:
      OperandError: ``x`` is none of these (a TypeError).

    >>> from pullback.api_util import shaped_abstractify
    >>> shaped_abstractify(1.0)
    ShapedArray(float32[], weak_type=True)
    """
    return abstractify(x)


def safe_map(f: Callable[..., Any], *args: Any) -> list[Any]:
    """Map a function over one or more sequences of equal length, and return a list.

    Args:
      f: the function.
      args: at least one sequence; all have the same length.

    Returns:
      A list as long as each sequence.

    Raises:
      ArgumentError: the lengths differ, or there is no sequence (a ValueError and TypeError).

    >>> from pullback.api_util import safe_map
    >>> safe_map(max, [1, 5], [3, 4])
    [3, 5]
    """
    lists = list(map(list, args))
    if not lists:
        raise ArgumentError("safe_map takes a function and at least one sequence")
    if len({len(xs) for xs in lists}) > 1:
        raise ArgumentError(f"safe_map takes sequences of one length, got lengths {[len(xs) for xs in lists]}")
    return [f(*xs) for xs in zip(*lists)]


@dataclass(frozen=True)
class DebugInfo:
    """Names and source location of a traced function, for messages.

    Attributes:
      traced_for: the transformation that traces the function, such as ``"jit"``.
      func_src_info: the name, file and line of the function, as in ``f at file.py:3``.
      arg_names: a name for each leaf of the arguments that are not static, such as ``x['w']``.
      result_paths: the paths of the results, or a function that returns them; None if they are unknown.
    """

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...]
    result_paths: Any = None

    @cached_property
    def func_name(self) -> str:
        """The name of the function."""
        return self.func_src_info.split(" at ")[0]

    @cached_property
    def func_filename(self) -> str | None:
        """The file that defines the function; None if the file is unknown."""
        _, at, location = self.func_src_info.partition(" at ")
        return location.rpartition(":")[0] if at else None

    @cached_property
    def func_lineno(self) -> int | None:
        """The line where the function begins; None if the line is unknown."""
        line = self.func_src_info.rpartition(":")[2]
        return int(line) if line.isdigit() else None


def fun_signature(fun: Callable[..., Any]) -> inspect.Signature | None:
    """Return the signature of a function; None if Python does not know it.

    Args:
      fun: a function.

    Returns:
      A signature, or None.

    >>> from pullback.api_util import fun_signature
    >>> fun_signature(lambda x, y=1: x)
    <Signature (x, y=1)>
    """
    try:
        return inspect.signature(fun)
    except (ValueError, TypeError):
        return None


def fun_sourceinfo(fun: Callable[..., Any]) -> str:
    """Return the name, file and line of a function, as ``name at file:line``.

    Return the name alone if the function has no Python code.

    Args:
      fun: a function.

    Returns:
      The text.

    >>> import math
    >>> from pullback.api_util import fun_sourceinfo
    >>> fun_sourceinfo(math.sin)
    'sin'
    """
    while hasattr(fun, "func"):  # a ``partial``
        fun = fun.func
    code = getattr(inspect.unwrap(fun), "__code__", None)
    name = getattr(fun, "__name__", type(fun).__name__)
    return name if code is None else f"{name} at {code.co_filename}:{code.co_firstlineno}"


def debug_info(
    traced_for: str,
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    result_paths_thunk: Any = None,
    sourceinfo: str | None = None,
    signature: inspect.Signature | None = None,
) -> DebugInfo:
    """Describe a function and its arguments, for messages.

    Args:
      traced_for: the transformation that traces the function.
      fun: the function.
      args, kwargs: the arguments.
      static_argnums, static_argnames: the positions and names of static arguments.
      result_paths_thunk: a function that returns the paths of the results.
      sourceinfo: the source location of the function; by default :func:`fun_sourceinfo` finds it.
      signature: the signature of the function; by default :func:`fun_signature` finds it.

    Returns:
      A :class:`DebugInfo`.

    >>> from pullback.api_util import debug_info
    >>> info = debug_info("jit", lambda x, y: x, ({"w": 1}, 2), {})
    >>> info.arg_names, info.func_name
    (("x['w']", 'y'), '<lambda>')
    """
    if sourceinfo is None:
        sourceinfo = fun_sourceinfo(fun)
    named = _bound(signature or fun_signature(fun), args, kwargs)
    statics = {i % len(args) for i in static_argnums if -len(args) <= i < len(args)}
    names: list[str] = []
    for i, x in enumerate(args):
        if i not in statics and named[i] not in static_argnames:
            names += _leaf_names(named[i], x)
    for key, x in sorted(kwargs.items()):
        if key not in static_argnames:
            names += _leaf_names(key, x)
    return DebugInfo(traced_for, sourceinfo, tuple(names), result_paths_thunk)


def _bound(signature: inspect.Signature | None, args: Sequence[Any], kwargs: dict[str, Any]) -> list[str]:
    """Return a name for each of ``args``: of its parameter, as in ``x`` or ``xs[0]``, or ``args[i]`` if unknown."""
    names: list[str] = []
    for p in () if signature is None else signature.parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            names += [f"{p.name}[{i}]" for i in range(len(args) - len(names))]
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            names.append(p.name)
    return names[: len(args)] + [f"args[{i}]" for i in range(len(names), len(args))]


def _leaf_names(name: str, x: Any) -> list[str]:
    """Return a name for each leaf of the argument ``x``, whose name is ``name``, as in ``x['w']``."""
    return [name + tree.keystr(path) for path, _ in tree.flatten_with_path(x)[0]]
