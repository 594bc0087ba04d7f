"""A random generator that updates its own state, in the style of NumPy's ``default_rng``."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from pullback import random
from pullback.core import dtypes, tree
from pullback.core.annotations import DTypeLike
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError
from pullback.core.faces import face
from pullback.core.inspection import trace_state_clean
from pullback.numpy import asarray, broadcast_shapes, shape, zeros
from pullback.transforms.traces.refs import Ref, new_ref

__all__ = ["StatefulPRNG", "stateful_rng"]
face(globals())

Size = int | Sequence[int] | None


def stateful_rng(seed: ArrayLike | None = None, *, impl: str | None = None) -> StatefulPRNG:
    """Make a random generator whose draws update its state.

    Args:
      seed: an integer without axes. Without it, outside of transformations, the operating system supplies one.
      impl: the generator of bits, such as ``"threefry2x32"``, or None for the default.

    Returns:
      The generator. Transformed functions may use it, made inside or outside of them; they cannot return it, and it
      cannot be a carry of a loop.

    Raises:
      OperandError: ``seed`` is no integer (a TypeError).
      ArgumentError: there is no ``seed`` within a transformed function, which would draw the same numbers in each call
        (a TypeError and a ValueError).

    >>> from pullback.experimental.random import stateful_rng
    >>> rng = stateful_rng(42)
    >>> float(rng.uniform()) == float(rng.uniform())
    False
    """
    if seed is None and not trace_state_clean():
        raise ArgumentError(
            "stateful_rng needs a seed within a transformed function: a seed of the operating system's would be part "
            "of the program, and each call would draw the same numbers; pass a seed that is an argument of the function"
        )
    key = random.key(secrets.randbits(31) if seed is None else seed, impl=impl)
    return StatefulPRNG(key, new_ref(zeros((), "int32")))


@tree.register_pytree_node_class
class StatefulPRNG:
    """A random generator with state: a key, and a counter in a reference, which each draw increments.

    A draw uses the key ``random.fold_in(key, counter)``. :func:`stateful_rng` makes generators.

    Args:
      _base_key: the key, or an array of keys under ``vmap``.
      _counter: a reference to an int32 array of the same shape.

    >>> from pullback import jit
    >>> from pullback.experimental.random import stateful_rng
    >>> rng = stateful_rng(0)
    >>> draw = jit(rng.uniform)
    >>> bool(draw() == draw())
    False
    """

    def __init__(self, _base_key: Array, _counter: Ref) -> None:
        if not (isinstance(_base_key, Array) and dtypes.is_key(_base_key.dtype)):
            raise ArgumentError(f"StatefulPRNG: _base_key must be a key, such as random.key(0), got {_base_key!r}")
        if not (isinstance(_counter, Ref) and dtypes.is_integer(_counter.dtype)):
            raise ArgumentError(f"StatefulPRNG: _counter must be a reference to an integer, got {_counter!r}")
        self._base_key = _base_key
        self._counter = _counter

    def __repr__(self) -> str:
        return f"StatefulPRNG(_base_key={self._base_key!r}, _counter={self._counter!r})"

    def tree_flatten(self) -> tuple[tuple[Array, Ref], None]:
        """Return the key and the counter, the children of this node of a tree."""
        return (self._base_key, self._counter), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Sequence[Any]) -> StatefulPRNG:
        """Make a generator from a key and a counter."""
        made = object.__new__(cls)
        made._base_key, made._counter = children
        return made

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """Return a new random key, or several.

        Args:
          shape: the shape of an array of keys; by default one key.

        Returns:
          An array of keys.

        >>> from pullback.experimental.random import stateful_rng
        >>> stateful_rng(0).key((2,)).shape
        (2,)
        """
        key = random.fold_in(self._base_key, self._counter[...])
        self._counter[...] += 1
        return key if shape == () else random.split(key, _shape(shape))

    def random(self, size: Size = None, dtype: DTypeLike = float) -> Array:
        """Draw numbers that are uniform from 0 to 1, 1 excluded.

        Args:
          size: the shape; None for one number.
          dtype: a dtype of floats.

        Returns:
          An array of the shape ``size``.

        >>> from pullback.experimental.random import stateful_rng
        >>> stateful_rng(0).random((2, 3)).shape
        (2, 3)
        """
        return self.uniform(size=size, dtype=dtype)

    def uniform(self, low: ArrayLike = 0, high: ArrayLike = 1, size: Size = None, *, dtype: DTypeLike = float) -> Array:
        """Draw numbers that are uniform from ``low`` to ``high``, ``high`` excluded.

        Args:
          low, high: the bounds, which broadcast to the result.
          size: the shape; None for the common shape of the bounds.
          dtype: a dtype of floats.

        Returns:
          An array of the shape ``size``.

        >>> from pullback.experimental.random import stateful_rng
        >>> bool(stateful_rng(0).uniform(5, 6) >= 5)
        True
        """
        return random.uniform(self.key(), _shape(size, low, high), dtype, low, high)

    def normal(self, loc: ArrayLike = 0, scale: ArrayLike = 1, size: Size = None, *, dtype: DTypeLike = float) -> Array:
        """Draw numbers with a normal distribution.

        Args:
          loc: the mean, which broadcasts to the result.
          scale: the standard deviation, which does too.
          size: the shape; None for the common shape of the two.
          dtype: a dtype of floats.

        Returns:
          An array of the shape ``size``.

        >>> from pullback.experimental.random import stateful_rng
        >>> stateful_rng(0).normal(10, 0.1, size=3).shape
        (3,)
        """
        drawn = random.normal(self.key(), _shape(size, loc, scale), dtype)
        return asarray(scale, drawn.dtype) * drawn + asarray(loc, drawn.dtype)

    def integers(
        self, low: ArrayLike, high: ArrayLike | None = None, size: Size = None, *, dtype: DTypeLike = int
    ) -> Array:
        """Draw integers from ``low`` to ``high``, ``high`` excluded.

        Args:
          low, high: the bounds, integers; without ``high`` from 0 to ``low``.
          size: the shape; None for the common shape of the bounds.
          dtype: a dtype of integers.

        Returns:
          An array of the shape ``size``.

        >>> from pullback.experimental.random import stateful_rng
        >>> bool(stateful_rng(0).integers(2) < 2)
        True
        """
        low, high = (0, low) if high is None else (low, high)
        return random.randint(self.key(), _shape(size, low, high), low, high, dtype)

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """Make generators that are independent of each other and of this one.

        Args:
          n_children: their number.

        Returns:
          A list of generators.

        >>> from pullback.experimental.random import stateful_rng
        >>> len(stateful_rng(0).spawn(3))
        3
        """
        return [StatefulPRNG(key, new_ref(zeros((), "int32"))) for key in self.key((n_children,))]

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """Make independent generators as one object, for ``vmap``.

        Args:
          num: their number, or a shape.

        Returns:
          A generator whose key and counter have these leading axes.

        >>> from pullback import vmap
        >>> from pullback.experimental.random import stateful_rng
        >>> vmap(lambda rng: rng.uniform())(stateful_rng(0).split(3)).shape
        (3,)
        """
        sizes = _shape(num)
        return StatefulPRNG(self.key(sizes), new_ref(zeros(sizes, "int32")))


def _shape(size: Size, *operands: ArrayLike) -> tuple[int, ...]:
    if size is None:
        return broadcast_shapes(*map(shape, operands))
    return (size,) if isinstance(size, int) else tuple(size)
