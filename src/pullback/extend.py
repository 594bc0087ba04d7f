"""What is needed to define a primitive of one's own.

A primitive is an operation with rules. Every rule is optional: a transformation that needs one that is missing says
which. Here is multiplication and addition in one, which NumPy evaluates; :class:`Primitive` says what each rule takes.

>>> import numpy as np
>>> import pullback
>>> from pullback.extend import Primitive, ShapedArray, ZERO, instantiate, is_linear
>>> multiply_add_p = Primitive("multiply_add")
>>> def multiply_add(x, y, z):
...     return multiply_add_p.bind(x, y, z)
>>> @multiply_add_p.host
... def evaluate(x, y, z):
...     return np.add(np.multiply(x, y), z)
>>> @multiply_add_p.shape
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
...     return multiply_add(*(pullback.numpy.moveaxis(a, d, 0) for a, d in zip(args, dims))), 0
>>> print(*pullback.grad(multiply_add, argnums=(0, 1, 2))(2.0, 3.0, 4.0))
3.0 2.0 1.0
"""

from pullback.core.linear import Linear as Linear
from pullback.core.linear import is_linear as is_linear
from pullback.core.trace import Primitive as Primitive
from pullback.core.types import ZERO as ZERO
from pullback.core.types import MappedAxis as MappedAxis
from pullback.core.types import ShapedArray as ShapedArray
from pullback.core.zeros import instantiate as instantiate

__all__ = ["ZERO", "Linear", "MappedAxis", "Primitive", "ShapedArray", "instantiate", "is_linear"]
