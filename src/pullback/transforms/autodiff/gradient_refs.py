"""Destinations of the cotangents that a function of ``vjp`` computes: the caller, references, or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pullback.core import dtypes, tree
from pullback.core.errors import ArgumentError, RefError
from pullback.core.refs import AbstractRef
from pullback.core.types import ZERO, ShapedArray
from pullback.transforms.functions.arguments import dense
from pullback.transforms.traces.refs import Ref, addupdate, content_of


@dataclass(frozen=True, slots=True)
class GradValue:
    """A leaf for ``with_refs``: return the cotangent of this argument as an array, as without ``with_refs``.

    >>> from pullback.ad import GradValue
    >>> GradValue()
    GradValue()
    """


@dataclass(frozen=True, slots=True)
class DontWant:
    """A leaf for ``with_refs``: do not compute the cotangent of this argument.

    >>> from pullback.ad import DontWant
    >>> DontWant()
    DontWant()
    """


@dataclass(frozen=True, slots=True)
class GradRef:
    """A placeholder, returned instead of a cotangent that was added to a reference.

    >>> from pullback.ad import GradRef
    >>> GradRef()
    GradRef()
    """


@dataclass(frozen=True, slots=True)
class DidntWant:
    """A placeholder, returned instead of a cotangent that was not computed.

    >>> from pullback.ad import DidntWant
    >>> DidntWant()
    DidntWant()
    """


# so that a traced function may return them
tree.register_pytree_node(GradRef, lambda x: ((), None), lambda aux, children: GradRef())
tree.register_pytree_node(DidntWant, lambda x: ((), None), lambda aux, children: DidntWant())


def inner(aval: Any) -> ShapedArray:
    """Return the type ``aval`` of an argument; if the argument is a reference, the type of its content."""
    return aval.inner_aval if isinstance(aval, AbstractRef) else aval


def destinations(wants: tuple[Any, ...], in_tree: Any, in_avals: Sequence[Any], name: str) -> list[Any]:
    """Return the destination of the cotangent of each leaf of the arguments; raise if a destination does not fit.

    Args:
      wants: a prefix of the tree of the arguments; its leaves are references, ``GradValue()`` and ``DontWant()``.
      in_tree: the tree of the arguments.
      in_avals: the type of each leaf.
      name: the name of the function, for error messages.
    """
    try:
        found = tree.broadcast_prefix(wants, tree.unflatten(in_tree, list(in_avals)))
    except ValueError as error:
        raise ArgumentError(
            f"with_refs of the vjp function of {name}: pass one entry for each argument, a tree like it or a prefix "
            f"of one, but {error}"
        ) from None
    used = set()
    for x, aval in zip(found, in_avals, strict=True):
        if isinstance(x, Ref):
            _check(x, inner(aval), name)
            if id(x) in used:
                raise RefError(f"with_refs of the vjp function of {name}: {x.described()} is used for two cotangents")
            used.add(id(x))
        elif isinstance(x, GradValue) and isinstance(aval, AbstractRef):
            raise RefError(
                f"with_refs of the vjp function of {name}: the gradient of an argument that is a reference can't be "
                f"returned as a value: pass a reference, to add it to, or ad.DontWant()"
            )
        elif not isinstance(x, (GradValue, DontWant)):
            raise ArgumentError(
                f"with_refs of the vjp function of {name}: an entry must be a reference, ad.GradValue() or "
                f"ad.DontWant(), got {x!r} of type {type(x).__name__}"
            )
    return found


def _check(ref: Ref, aval: ShapedArray, name: str) -> None:
    """Raise unless a reference has the shape and dtype of the cotangent of an argument of type ``aval``.

    ``name`` is the name of the function, for the error message.
    """
    if ref.shape != aval.shape or ref.dtype != dtypes.tangent_dtype(aval.dtype):
        kind = "" if dtypes.is_inexact(aval.dtype) else ", which has no cotangent: pass ad.GradValue() or ad.DontWant()"
        raise RefError(
            f"with_refs of the vjp function of {name}: {ref.described()} cannot take the cotangent of an argument of "
            f"type {aval}{kind}"
        )


def delivered(cotangents: Sequence[Any], wants: Sequence[Any], in_avals: Sequence[Any], name: str) -> list[Any]:
    """Send each cotangent to its destination: return it, add it to a reference, or drop it.

    Args:
      cotangents: a cotangent for each leaf of the arguments; ``ZERO`` is allowed.
      wants: for each leaf, ``GradValue()``, a reference, or ``DontWant()``.
      in_avals: the type of each leaf.
      name: the name of the function, for error messages.

    Returns:
      For each leaf: the cotangent; ``GradRef()`` if it was added to a reference; or ``DidntWant()``.
    """
    for want, aval in zip(wants, in_avals, strict=True):
        if isinstance(want, GradValue) and isinstance(aval, AbstractRef):
            raise RefError(
                f"the vjp function of {name}: the gradient of an argument that is a reference must be accumulated "
                f"into a ref. Pass one: vjp_fun.with_refs(grad_ref)(ct); or pass ad.DontWant() for it."
            )
        if isinstance(want, Ref):
            content_of(want)  # raises if the reference cannot be used, before any is written
    results: list[Any] = []
    for ct, want, aval in zip(cotangents, wants, in_avals, strict=True):
        if isinstance(want, DontWant):
            results.append(DidntWant())
        elif isinstance(want, Ref):
            if ct is not ZERO:
                addupdate(want, None, ct)
            results.append(GradRef())
        else:
            results.append(dense(ct, aval))
    return results
