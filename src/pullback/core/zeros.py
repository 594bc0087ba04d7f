"""Dense zeros for symbolic ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core import dtypes, tree
from pullback.core.array import Array, ArrayImpl, recorders, scalar_array, typeof
from pullback.core.runtime import provides, runtime
from pullback.core.types import ZERO, ShapedArray


@provides
def zeros_of(aval: ShapedArray) -> Any:
    """Return an array of zeros of the type ``aval``.

    While a program is being traced, an operation of the program makes the zeros, so that they are no constant. If the
    type has a sharding, so have the zeros.
    """
    if type(aval) is not ShapedArray:
        return aval.vspace_zero()
    if aval.shape == () and (aval.explicit is None or not aval.explicit.has_reductions):
        dtype = aval.dtype
        zero = dtype.type(0) if dtype.num != dtypes.VOID else np.zeros((), dtype)[()]  # float0 is a void
        return scalar_array(zero, aval.weak_type)
    if aval.explicit is not None or (recorders and runtime.is_recording()):
        return runtime.zeros(aval)
    return ArrayImpl(np.broadcast_to(np.zeros((), aval.dtype), aval.shape), aval.weak_type)


def instantiate(tangent: Any, primal: Any) -> Any:
    """Return ``tangent``, or zeros of the tangent type of ``primal`` if ``tangent`` is the symbolic ``ZERO``.

    Args:
      tangent: a tangent that a jvp rule receives: an array, or ``ZERO``.
      primal: the value to which it belongs.

    Returns:
      An array.

    >>> import pullback.numpy as jnp
    >>> from pullback.extend import ZERO, instantiate
    >>> print(instantiate(ZERO, jnp.ones(2)))
    [0. 0.]
    """
    if tangent is not ZERO:
        return tangent
    return zeros_of(typeof(primal).to_tangent_aval())


def densify(values: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """Return ``values``, tangents or cotangents, with each symbolic ``ZERO`` replaced by zeros of its type.

    ``avals`` has the type of each value.
    """
    return [zeros_of(a) if x is ZERO else x for x, a in zip(values, avals, strict=True)]


class Zero:
    """A tangent or cotangent that is known to be zero.

    Attributes:
      aval: its type.

    >>> import numpy as np
    >>> from pullback import core
    >>> from pullback.interpreters import ad
    >>> ad.Zero(core.ShapedArray((3,), np.dtype("float32")))
    Zero(float32[3])
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    @staticmethod
    def from_primal_value(x: Any) -> Zero:
        """Return the zero tangent of a value.

        Args:
          x: an array or a number.

        Returns:
          A :class:`Zero` of the type of a tangent of ``x``.
        """
        return Zero(typeof(x).to_tangent_aval())

    def instantiate(self) -> Array:
        """Return an array of zeros.

        Returns:
          An array of the shape and the dtype of the tangent.
        """
        return zeros_of(self.aval)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"Zero({self.aval!s})"


tree.register_pytree_node(Zero, lambda zero: ((), zero.aval), lambda aval, _: Zero(aval))


def instantiate_zeros(tangent: Any) -> Any:
    """Return a tangent or cotangent, converting a :class:`Zero` to an array of zeros.

    Args:
      tangent: an array or a :class:`Zero`.

    Returns:
      An array.

    >>> import pullback.numpy as jnp
    >>> from pullback.interpreters import ad
    >>> print(ad.instantiate_zeros(ad.Zero.from_primal_value(jnp.ones(2))))
    [0. 0.]
    """
    return tangent.instantiate() if type(tangent) is Zero else tangent
