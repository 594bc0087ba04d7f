"""Derivatives of functions of users' data types whose tangents have another type.

A class of points on a manifold, such as rotations, has more components than degrees of freedom. A point can be moved
along a tangent, and two nearby points differ by a tangent. By these two operations, any derivative is the derivative
of a function of tangents at zero.

Source: J. Solà, J. Deray and D. Atchuthan, A micro Lie theory for state estimation in robotics, arXiv:1812.01537
(2018).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes, tree
from pullback.core.arguments import require_function
from pullback.core.errors import ArgumentError, RuleCheckError, TangentMismatchError
from pullback.core.naming import quoted
from pullback.testing.rules import check_rule
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.custom.custom_rules import custom_jvp


class _DataType(NamedTuple):
    zero: Callable[[Any], Any]
    move: Callable[[Any, Any], Any]
    difference: Callable[[Any, Any], Any]


_data_types: dict[type, _DataType] = {}


def register_data_type(
    cls: type,
    *,
    zero: Callable[[Any], Any],
    move: Callable[[Any, Any], Any],
    difference: Callable[[Any, Any], Any],
) -> None:
    """Declare what the tangents of a class of values are.

    Args:
      cls: a class that is a pytree; each instance is one value. Subclasses are declared separately.
      zero: ``zero(x)`` returns the zero tangent of a value: a tree of arrays.
      move: ``move(x, tangent)`` returns the value that is reached from ``x`` along the tangent; for a zero tangent this
        is ``x``.
      difference: ``difference(x, y)`` returns the tangent that leads from ``x`` to a nearby value ``y``: the inverse of
        ``move``.

    Raises:
      ArgumentError: ``cls`` is no class, or is declared already (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import grad, tree_util
    >>> from pullback.derivatives import in_coordinates, register_data_type
    >>> class Angle:
    ...     def __init__(self, cos, sin):
    ...         self.cos, self.sin = cos, sin
    >>> tree_util.register_pytree_node(Angle, lambda a: ((a.cos, a.sin), None), lambda _, parts: Angle(*parts))
    >>> def move(a, t):
    ...     return Angle(a.cos * jnp.cos(t) - a.sin * jnp.sin(t), a.sin * jnp.cos(t) + a.cos * jnp.sin(t))
    >>> def difference(a, b):
    ...     return jnp.arctan2(a.cos * b.sin - a.sin * b.cos, a.cos * b.cos + a.sin * b.sin)
    >>> register_data_type(Angle, zero=lambda a: jnp.zeros(()), move=move, difference=difference)
    >>> function, zeros = in_coordinates(lambda a: a.cos, Angle(0.6, 0.8))
    >>> print(grad(function)(*zeros))
    -0.8
    """
    if not isinstance(cls, type):
        raise ArgumentError(f"register_data_type takes a class, got {quoted(cls)} of type {type(cls).__name__}")
    if cls in _data_types:
        raise ArgumentError(f"register_data_type: {cls.__name__} is already registered")
    for name, function in (("zero", zero), ("move", move), ("difference", difference)):
        require_function("register_data_type", name, function)
    _data_types[cls] = _DataType(zero, move, difference)


def _is_declared(x: Any) -> bool:
    return type(x) in _data_types


def zero_tangent(x: Any) -> Any:
    """Return the zero tangent of a tree: zeros for each array, and ``zero(x)`` for each value x of a declared type.

    Args:
      x: a tree of arrays and of values of declared types.

    Returns:
      A tree of the same structure: zeros of the dtype of each array (float0 for integers and booleans), and the
      declared zero for each value of a declared type.

    Raises:
      OperandError: a leaf is neither an array nor of a declared type (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.derivatives import zero_tangent
    >>> print(zero_tangent({"a": jnp.ones(2), "n": 3}))
    {'a': Array([0., 0.], dtype=float32), 'n': array((b'',), dtype=[('float0', 'V')])}
    """
    return tree.tree_map(_zero_of, x, is_leaf=_is_declared)


def _zero_of(x: Any) -> Any:
    if _is_declared(x):
        return _data_types[type(x)].zero(x)
    if dtypes.is_inexact(dtypes.dtype_of(x)):
        return pnp.zeros_like(x)
    return np.zeros(pnp.shape(x), dtypes.float0)


def _each(what: str, function: Callable[[Any, Any], Any], x: Any, other: Any) -> Any:
    """Apply ``function`` to pairs of a value in the tree ``x`` and the subtree of ``other`` at the same position.

    A value is an array or an instance of a declared type. Return the tree of the results. If the trees do not match,
    raise an error that calls ``other`` by the name ``what``.
    """
    values, treedef = tree.flatten(x, _is_declared)
    try:
        others = treedef.flatten_up_to(other)
    except ValueError as error:
        raise TangentMismatchError(f"{what} does not fit the tree of values {treedef}: {error}") from None
    return tree.unflatten(treedef, [function(v, o) for v, o in zip(values, others, strict=True)])


def move(x: Any, tangent: Any) -> Any:
    """Move a tree along a tangent: add to each array, and call ``move`` of each value of a declared type.

    Args:
      x: a tree of arrays and of values of declared types.
      tangent: a tree like ``zero_tangent(x)``.

    Returns:
      A tree like ``x``. Integers and booleans do not change.

    Raises:
      TangentMismatchError: the structure of ``tangent`` does not match (a TypeError and ValueError).

    >>> from pullback.derivatives import move
    >>> print(move({"a": 1.0, "n": 3}, {"a": 0.5, "n": None}))
    {'a': Array(1.5, dtype=float32, weak_type=True), 'n': 3}
    """
    return _each("the tangent", _moved, x, tangent)


def _moved(x: Any, t: Any) -> Any:
    if _is_declared(x):
        return _data_types[type(x)].move(x, t)
    return pnp.add(x, t) if dtypes.is_inexact(dtypes.dtype_of(x)) else x


def difference(x: Any, y: Any) -> Any:
    """Return the tangent that leads from the tree ``x`` to a nearby tree ``y``.

    It is ``y - x`` for each array, and the declared ``difference(x, y)`` for each value of a declared type.

    Args:
      x: a tree of arrays and of values of declared types.
      y: a tree of the same structure.

    Returns:
      A tangent of ``x``: a tree of the same structure, with an array of the shape and the dtype of each array.

    Raises:
      TangentMismatchError: ``y`` is of another structure (a TypeError and ValueError).

    >>> from pullback.derivatives import difference
    >>> print(difference(1.0, 1.5))
    0.5
    """
    return _each("the second tree", _difference_of, x, y)


def _difference_of(x: Any, y: Any) -> Any:
    if _is_declared(x):
        return _data_types[type(x)].difference(x, y)
    return pnp.subtract(y, x) if dtypes.is_inexact(dtypes.dtype_of(x)) else np.zeros(pnp.shape(x), dtypes.float0)


def in_coordinates(fun: Callable[..., Any], *args: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Express a function of values of declared types, near a point, as a function of tangents.

    Args:
      fun: takes and returns trees of arrays and of values of declared types.
      args: the point: the arguments of ``fun``.

    Returns:
      ``(function, zeros)``. ``function`` takes a tangent for each argument, moves the arguments along the tangents,
      applies ``fun``, and returns the difference from ``fun(*args)`` as a tangent. ``zeros`` are the zero tangents of
      the arguments. There the first derivatives of ``function`` are those of ``fun``; higher derivatives depend on how
      ``move`` and ``difference`` are defined.

    Raises:
      ArgumentError: ``fun`` is no function (a TypeError and a ValueError).
      OperandError: a leaf of the arguments is neither an array nor of a declared type (a TypeError).

    >>> from pullback import jacfwd
    >>> from pullback.derivatives import in_coordinates
    >>> function, zeros = in_coordinates(lambda x: x**2, 3.0)
    >>> print(jacfwd(function)(*zeros))
    6.0
    """
    require_function("in_coordinates", "fun", fun)

    def function(*tangents: Any) -> Any:
        return difference(fun(*args), fun(*map(move, args, tangents)))

    return function, tuple(map(zero_tangent, args))


def local_rule(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Convert a jvp rule for values of declared types to a rule that ``custom_jvp(f).defjvp`` accepts.

    Args:
      rule: ``rule(primals, tangents) -> (out, tangent_out)``, where tangents have the form that the types declare.

    Returns:
      A rule with the same arguments and results, except that tangents are trees like the values, with a tangent for
      each leaf.

    Raises:
      ArgumentError: ``rule`` is no function (a TypeError and a ValueError).

    >>> from pullback import custom_jvp, grad
    >>> from pullback.derivatives import local_rule
    >>> square = custom_jvp(lambda x: x**2)
    >>> _ = square.defjvp(local_rule(lambda primals, tangents: (primals[0] ** 2, 2 * primals[0] * tangents[0])))
    >>> print(grad(square)(3.0))
    6.0
    """
    require_function("local_rule", "rule", rule)

    def of_components(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        own = [
            jvp(lambda y, x=x: difference(x, y), (x,), (t,))[1]  # type: ignore[misc]
            for x, t in zip(primals, tangents, strict=True)
        ]
        out, tangent = rule(tuple(primals), tuple(own))
        return out, jvp(lambda t: move(out, t), (zero_tangent(out),), (tangent,))[1]

    return of_components


def check_data_type(x: Any, atol: float = 1e-5) -> None:
    """Check that ``move`` and ``difference`` are inverse to each other near a value, and differentiable there.

    Args:
      x: a value of a declared type, or a tree of such values.
      atol: the absolute tolerance of each component.

    Raises:
      RuleCheckError: moving along the zero tangent changes the value; or ``difference(x, move(x, t))`` is not ``t`` to
        first order for a small tangent ``t`` (an AssertionError).

    >>> from pullback.derivatives import check_data_type
    >>> check_data_type({"a": 1.0})
    """
    zero = zero_tangent(x)
    pairs = zip(tree.leaves(x), tree.leaves(move(x, zero)), strict=True)
    for i, (before, after) in enumerate(pairs):
        if not np.allclose(np.asarray(before), np.asarray(after), rtol=atol, atol=atol):
            raise RuleCheckError(
                f"check_data_type: moving along the zero tangent changed component {i} from {quoted(before)} to "
                f"{quoted(after)}; move(x, zero(x)) must be x"
            )
    round_trip = custom_jvp(lambda t: difference(x, move(x, t)))
    round_trip.defjvp(lambda primals, tangents: (round_trip(*primals), tangents[0]))
    check_rule(round_trip, zero, atol=atol)
