"""Tokens, which order the communication of programs: JAX's ``create_token``, ``after_all``, ``psend`` and ``precv``.

Programs here need none: the order of effects follows from the program. A token holds what was sent, or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core import tree
from pullback.core.annotations import AxisName, PyTree
from pullback.core.array import typeof
from pullback.core.errors import ArgumentError, ShapeError
from pullback.lax.collectives import ppermute


@tree.register_pytree_node_class
class Token:
    """A token: what :func:`psend` has sent, for :func:`precv`, with the permutation; or nothing.

    Args:
      sent: the arrays.
      perm: the permutation.

    >>> from pullback import lax
    >>> lax.after_all(lax.create_token(), lax.create_token())
    Token()
    """

    __slots__ = ("perm", "sent")

    def __init__(self, sent: tuple[Any, ...] = (), perm: tuple[tuple[int, int], ...] | None = None) -> None:
        self.sent = sent
        self.perm = perm

    def __repr__(self) -> str:
        return "Token()"

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Return what was sent, the children of this node of a tree, and the permutation."""
        return self.sent, self.perm

    @classmethod
    def tree_unflatten(cls, perm: Any, sent: Any) -> Token:
        """Make a token of what was sent and the permutation."""
        return cls(tuple(sent), perm)

    def block_until_ready(self) -> Token:
        """Wait for nothing, and return the token."""
        return self


class AbstractToken:
    """The type of a token, which orders calls of foreign functions in JAX; programs here are ordered without.

    >>> from pullback.extend.core import AbstractToken
    >>> AbstractToken() == AbstractToken()
    True
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractToken)

    def __hash__(self) -> int:
        return hash(AbstractToken)

    def __repr__(self) -> str:
        return "AbstractToken()"


def create_token(_: Any = None) -> Token:
    """Return a token that depends on nothing.

    Args:
      _: without effect.

    Returns:
      A token.

    >>> from pullback import lax
    >>> lax.create_token()
    Token()
    """
    return Token()


def after_all(*operands: Token) -> Token:
    """Return a token that depends on several: on what they have sent.

    Args:
      operands: tokens.

    Returns:
      A token.

    Raises:
      ArgumentError: something else than tokens (a TypeError and ValueError).

    >>> from pullback import lax
    >>> lax.after_all(lax.create_token())
    Token()
    """
    for operand in operands:
        _require_token("after_all", operand)
    sent = tuple(x for operand in operands for x in operand.sent)
    perms = {operand.perm for operand in operands if operand.sent}
    return Token(sent, perms.pop() if len(perms) == 1 else None)


def psend(x: PyTree, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Token:
    """Send arrays from index to index of a named axis: half of ``ppermute``; :func:`precv` is the other half.

    Args:
      x: a tree of arrays.
      axis_name: the name of an axis in scope, or a tuple of names.
      perm: pairs of a source and a target.

    Returns:
      A token for :func:`precv`.

    Raises:
      UnboundAxisNameError: no such axis is in scope (a NameError).
      ArgumentError: a source or a target twice, or out of range (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import ShapeDtypeStruct, lax, vmap
    >>> def shifted(x):
    ...     token = lax.psend(x, "i", [(0, 1)])
    ...     return lax.precv(token, ShapeDtypeStruct(x.shape, x.dtype), "i", [(0, 1)])
    >>> print(vmap(shifted, axis_name="i")(jnp.array([5, 6])))
    [0 5]
    """
    return Token(tuple(tree.leaves(ppermute(x, axis_name, perm))), _pairs(perm))


def precv(token: Token, out_shape: PyTree, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> PyTree:
    """Receive arrays that :func:`psend` has sent.

    Args:
      token: its result.
      out_shape: a tree of ``ShapeDtypeStruct``, or objects with ``shape`` and ``dtype``, like what was sent.
      axis_name: the name of the axis.
      perm: the permutation of :func:`psend`.

    Returns:
      A tree like ``out_shape``. An index to which nothing was sent gets zeros.

    Raises:
      ArgumentError: nothing was sent by this permutation (a TypeError and ValueError).
      ShapeError: something else was sent (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax, vmap
    >>> around = [(0, 1), (1, 0)]
    >>> swap = lambda x: lax.precv(lax.psend(x, "i", around), x, "i", around)
    >>> print(vmap(swap, axis_name="i")(jnp.array([5, 6])))
    [6 5]
    """
    _require_token("precv", token)
    leaves, structure = tree.flatten(out_shape)
    if token.perm != _pairs(perm):
        raise ArgumentError(f"lax.precv: nothing was sent by the permutation {perm!r}: pass the token of a psend by it")
    expected, came = [(tuple(x.shape), x.dtype) for x in leaves], [(typeof(x).shape, x.dtype) for x in token.sent]
    if expected != came:
        raise ShapeError(f"lax.precv: out_shape says {expected}, but {came} was sent")
    return tree.unflatten(structure, list(token.sent))


def _pairs(perm: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    return tuple((int(source), int(target)) for source, target in perm)


def _require_token(name: str, token: Any) -> None:
    if not isinstance(token, Token):
        raise ArgumentError(f"lax.{name} takes tokens, of create_token, after_all or psend, got {token!r}")
