"""``jax._src.util``: small functions of lists, which interpreters of jaxprs and libraries use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pullback.core.errors import ArgumentError
from pullback.core.lists import merge_lists as _merged
from pullback.core.lists import partition_list as _parts
from pullback.core.lists import split_list as _split
from pullback.core.source import named_as as _named_as
from pullback.numpy.promotion import axis_index as _axis_index
from pullback.transforms.functions.flattening import safe_map as safe_map


def safe_zip(*args: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return the tuples of corresponding elements of sequences, as a list.

    Args:
      args: sequences of one length, at least one.

    Raises:
      ArgumentError: they are of different lengths, or there is none (a ValueError and TypeError).

    >>> from pullback.compat.extras._src.util import safe_zip
    >>> safe_zip([1, 2], "ab")
    [(1, 'a'), (2, 'b')]
    """
    lists = list(map(list, args))
    if not lists:
        raise ArgumentError("safe_zip takes at least one sequence")
    if len({len(xs) for xs in lists}) > 1:
        raise ArgumentError(f"safe_zip takes sequences of one length, got lengths {[len(xs) for xs in lists]}")
    return list(zip(*lists))


def foreach(f: Callable[..., Any], *args: Iterable[Any]) -> None:
    """Call a function with the corresponding elements of sequences of one length.

    Raises:
      ArgumentError: they are of different lengths, or there is none (a ValueError and TypeError).

    >>> from pullback.compat.extras._src.util import foreach
    >>> foreach(print, "ab", [1, 2])
    a 1
    b 2
    """
    for xs in safe_zip(*args):
        f(*xs)


def unzip2(xys: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the first elements of pairs, and the second elements.

    >>> from pullback.compat.extras._src.util import unzip2
    >>> unzip2([(1, "a"), (2, "b")]), unzip2([])
    (((1, 2), ('a', 'b')), ((), ()))
    """
    pairs = list(xys)
    return tuple(x for x, _ in pairs), tuple(y for _, y in pairs)


def unzip3(xyzs: Iterable[tuple[Any, Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """Return the first, the second and the third elements of triples.

    >>> from pullback.compat.extras._src.util import unzip3
    >>> unzip3([(1, "a", 0.5), (2, "b", 1.5)])
    ((1, 2), ('a', 'b'), (0.5, 1.5))
    """
    rows = list(xyzs)
    return tuple(x for x, _, _ in rows), tuple(y for _, y, _ in rows), tuple(z for _, _, z in rows)


def split_list(args: Sequence[Any], ns: Sequence[int]) -> list[list[Any]]:
    """Split a sequence into groups of given sizes and the remainder.

    Raises:
      ArgumentError: there are too few elements (a ValueError and TypeError).

    >>> from pullback.compat.extras._src.util import split_list
    >>> split_list([1, 2, 3, 4], [1, 2])
    [[1], [2, 3], [4]]
    """
    if sum(ns) > len(args):
        raise ArgumentError(f"split_list: groups of the sizes {list(ns)} need {sum(ns)} elements, got {len(args)}")
    return _split(args, *ns)


def partition_list(bs: Sequence[bool], l: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Split elements into those with an unset and those with a set flag.

    Raises:
      ValueError: there are more of one than of the other.

    >>> from pullback.compat.extras._src.util import partition_list
    >>> partition_list([False, True, False], [1, 2, 3])
    ([1, 3], [2])
    """
    return _parts(l, bs)


def merge_lists(bs: Sequence[bool], l0: Sequence[Any], l1: Sequence[Any]) -> list[Any]:
    """Merge two lists by flags: the inverse of :func:`partition_list`.

    Raises:
      ArgumentError: the flags do not fit the lengths of the lists (a ValueError and TypeError).

    >>> from pullback.compat.extras._src.util import merge_lists
    >>> merge_lists([False, True, False], [1, 3], [2])
    [1, 2, 3]
    """
    if (len(l0), len(l1)) != (len(bs) - sum(bs), sum(bs)):
        raise ArgumentError(
            f"merge_lists: {len(bs)} flags with {sum(bs)} set do not fit lists of {len(l0)} and {len(l1)}"
        )
    return _merged(bs, l0, l1)


def concatenate(xs: Iterable[Sequence[Any]]) -> list[Any]:
    """Concatenate sequences to a list.

    >>> from pullback.compat.extras._src.util import concatenate
    >>> concatenate([[1, 2], (3,)])
    [1, 2, 3]
    """
    return [x for part in xs for x in part]


def canonicalize_axis(axis: Any, num_dims: int) -> int:
    """Return the position of an axis, counted from the first one. torchax needs it.

    Raises:
      ShapeError: there is no such axis (a TypeError and a ValueError).

    >>> from pullback.compat.extras._src.util import canonicalize_axis
    >>> canonicalize_axis(-1, 3)
    2
    """
    return _axis_index(axis, num_dims, "canonicalize_axis")


def wraps(wrapped: Any, namestr: str | None = None, docstr: str | None = None, **kwargs: Any) -> Callable[..., Any]:
    """Return a decorator that gives a function the name, the documentation and the signature of another. For DESC.

    Args:
      wrapped: the other function.
      namestr: the new name, in which ``{fun}`` stands for the other's.
      docstr: the new documentation, in which ``{fun}`` and ``{doc}`` stand for the other's.
      kwargs: further fields of the texts.

    >>> from pullback.compat.extras._src.util import wraps
    >>> wraps(len, namestr="{fun}_of")(lambda x: len(x)).__name__
    'len_of'
    """

    def decorate(fun: Callable[..., Any]) -> Callable[..., Any]:
        fun = _named_as(wrapped)(fun)
        fields = {"fun": getattr(wrapped, "__name__", "<unnamed function>"), "doc": wrapped.__doc__, **kwargs}
        if namestr is not None:
            fun.__name__ = namestr.format(**fields)
        if docstr is not None:
            fun.__doc__ = docstr.format(**fields)
        return fun

    return decorate
