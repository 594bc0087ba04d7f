"""The tools for defining a primitive.

A primitive is an operation with rules. Every rule is optional: a transformation that needs a missing rule raises an
error that names it. The example is a fused multiplication and addition; :class:`Primitive` documents each rule, and
``docs/primitives.md`` is a guide.

Classes:
  Builder: what a lowering rule writes its operations with: ``hlo.elementwise("stablehlo.add", x, y)``.
  LinearVar: a linear operand of a transposition rule, which has no value.
  MappedAxis: the axis that a batching rule receives: its ``name`` and its ``size``.
  ShapedArray: the type of an array: ``ShapedArray(shape, dtype, weak_type)``.
  Value: an operand or a result of a lowering rule: its ``name`` in the text, its ``shape`` and its ``dtype``.

Functions:
  is_linear: whether ``x``, an operand that a transposition rule receives, is a ``LinearVar`` and not a value.

>>> import numpy as np
>>> from pullback import grad, jit
>>> from pullback.extend import Primitive, ShapedArray, instantiate, is_linear, to_front
>>> multiply_add_p = Primitive("multiply_add")
>>> def multiply_add(x, y, z):
...     return multiply_add_p.bind(x, y, z)
>>> @multiply_add_p.host
... def evaluate(x, y, z):
...     return np.add(np.multiply(x, y), z)
>>> @multiply_add_p.abstract_eval
... def shape(x, y, z):
...     return ShapedArray(x.shape, x.dtype)
>>> @multiply_add_p.jvp
... def jvp(primals, tangents):
...     x, y, z = primals
...     tx, ty, tz = (instantiate(t, p) for t, p in zip(tangents, primals))
...     return multiply_add(x, y, z), multiply_add(tx, y, multiply_add(x, ty, tz))
>>> @multiply_add_p.transpose
... def transpose(ct, x, y, z):
...     by_x = ct * y if is_linear(x) else None
...     by_y = ct * x if is_linear(y) else None
...     return by_x, by_y, ct if is_linear(z) else None
>>> @multiply_add_p.batch
... def batch(axis, args, dims):
...     return multiply_add(*(to_front(a, d, axis) for a, d in zip(args, dims))), 0
>>> @multiply_add_p.lowering
... def xla(hlo, x, y, z):
...     return hlo.elementwise("stablehlo.add", hlo.elementwise("stablehlo.multiply", x, y), z)
>>> print(*jit(grad(multiply_add, argnums=(0, 1, 2)))(2.0, 3.0, 4.0))
3.0 2.0 1.0
"""

from typing import Any

from pullback.backends.hlo.builder import Builder as Builder
from pullback.backends.hlo.builder import Value as Value
from pullback.core.faces import face
from pullback.core.linear import LinearVar as LinearVar
from pullback.core.linear import is_linear as is_linear
from pullback.core.rules import Primitive as Primitive
from pullback.core.trace import RuleKind as RuleKind
from pullback.core.traits import Trait as Trait
from pullback.core.types import ZERO as ZERO
from pullback.core.types import MappedAxis as MappedAxis
from pullback.core.types import ShapedArray as ShapedArray
from pullback.core.zeros import instantiate as instantiate
from pullback.extend import core as core
from pullback.extend import linear_util as linear_util
from pullback.primitives.axis_maps import front
from pullback.transforms.custom.primitive_rules import vjp_rule as vjp_rule


def to_front(x: Any, dim: int | None, axis: MappedAxis) -> Any:
    """Move the mapped axis of a batching rule's operand to the front.

    Args:
      x: the operand.
      dim: the position of the mapped axis in it; None if it has none, and is to be repeated.
      axis: the mapped axis.

    Returns:
      An array whose first axis is the mapped axis.

    >>> import pullback.numpy as jnp
    >>> from pullback.extend import MappedAxis, to_front
    >>> axis = MappedAxis(None, 2)
    >>> to_front(jnp.ones((3, 2)), 1, axis).shape, to_front(jnp.ones(3), None, axis).shape
    ((2, 3), (2, 3))
    """
    return front(x, dim, axis)


__all__ = [
    "ZERO", "Builder", "LinearVar", "MappedAxis", "Primitive", "RuleKind", "ShapedArray", "Trait", "Value",
    "core", "instantiate", "is_linear", "linear_util", "to_front", "vjp_rule",
]  # fmt: skip
face(globals(), modules="backend core linear_util lowering mlir random source_info_util xla")
