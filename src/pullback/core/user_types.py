"""Types of users' values: what a library declares so that objects of its own class pass through transformations.

A value is an object of the user's class. It is one leaf of a tree, one operand of an operation, and one variable of a
program. Its type, a :class:`HiType`, says of which arrays it consists, what type its tangents have, and what a batch of
such values is. Each transformation asks the type; none knows the class.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NoReturn

from pullback.core.dtypes import USER_VALUE, float0
from pullback.core.errors import ArgumentError, MissingRuleError
from pullback.core.types import AbstractValue, ShapedArray


def missing(owner: Any, method: str, purpose: str) -> NoReturn:
    """Raise the error for a method that a user's class lacks.

    Args:
      owner: an object of the class.
      method: the name of the method.
      purpose: what the method is for, as the subject of a sentence.
    """
    raise MissingRuleError(f"{purpose} needs the method {method} of {type(owner).__name__}, which has none")


class MappingSpec:
    """A base class for users' descriptions of how ``vmap`` maps over a value: an entry of ``in_axes`` and ``out_axes``.

    Instances are hashable and compared by value.

    >>> from dataclasses import dataclass
    >>> from pullback.experimental.hijax import MappingSpec
    >>> @dataclass(frozen=True)
    ... class LeadingAxis(MappingSpec):
    ...     pass
    >>> LeadingAxis() == LeadingAxis()
    True
    """

    __slots__ = ()


class HiPspec:
    """A base class for users' partition specs: how ``shard_map`` shards a value; an entry of its specs.

    >>> from pullback import P
    >>> from pullback.experimental.hijax import HiPspec
    >>> class Rows(HiPspec):
    ...     def to_lo(self):
    ...         return P("x"), P("x")
    >>> len(Rows().to_lo())
    2
    """

    __slots__ = ()

    def to_lo(self) -> tuple[Any, ...]:
        """Return the partition spec of each array of the value, in the order of ``lo_ty``."""
        missing(self, "to_lo", "shard_map")

    def to_tangent_spec(self) -> Any:
        """Return the spec of a tangent."""
        missing(self, "to_tangent_spec", "differentiation of shard_map")

    def to_ct_spec(self) -> Any:
        """Return the spec of a cotangent."""
        missing(self, "to_ct_spec", "differentiation of shard_map")


class HiType(AbstractValue):
    """A base class for the types of users' values. Types are hashable and compared by value, as frozen dataclasses are.

    Subclasses have the methods that the transformations in use need; the others raise an error that names the method.

    Raises:
      MissingRuleError: a transformation needs a method that the type does not have (a NotImplementedError).

    >>> from dataclasses import dataclass
    >>> import pullback.numpy as jnp
    >>> from pullback import typeof
    >>> from pullback.experimental.hijax import HiType, ShapedArray, register_hitype
    >>> class Pair:
    ...     def __init__(self, first, second):
    ...         self.first, self.second = first, second
    >>> @dataclass(frozen=True)
    ... class PairType(HiType):
    ...     size: int
    ...     def lo_ty(self):
    ...         return [ShapedArray((self.size,), jnp.float32)] * 2
    ...     def lower_val(self, pair):
    ...         return [pair.first, pair.second]
    ...     def raise_val(self, first, second):
    ...         return Pair(first, second)
    >>> register_hitype(Pair, lambda pair: PairType(pair.first.size))
    >>> typeof(Pair(jnp.ones(3), jnp.zeros(3)))
    PairType(size=3)
    """

    is_high = True

    # No attribute of another name is defined here: for a dataclass, it would be the default of a field of that name.
    def __getattr__(self, name: str) -> Any:
        if name in _ASSUMED:
            return _ASSUMED[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def lo_ty(self) -> list[ShapedArray]:
        """Return the types of the arrays that a value consists of."""
        missing(self, "lo_ty", "compilation")

    def lower_val(self, hi_val: Any, /) -> list[Any]:
        """Return the arrays of a value, of the types ``lo_ty()``."""
        missing(self, "lower_val", "compilation")

    def raise_val(self, *lo_vals: Any) -> Any:
        """Return the value that consists of these arrays."""
        missing(self, "raise_val", "compilation")

    def to_tangent_aval(self) -> Any:
        """Return the type of tangents."""
        missing(self, "to_tangent_aval", "differentiation")

    def to_ct_aval(self) -> Any:
        """Return the type of cotangents: by default that of tangents."""
        return self.to_tangent_aval()

    def vspace_zero(self) -> Any:
        """Return the zero of this type, if values are tangents."""
        missing(self, "vspace_zero", "a tangent of this type that is zero")

    def vspace_add(self, x: Any, y: Any) -> Any:
        """Return the sum of two values, if they are tangents."""
        missing(self, "vspace_add", "a sum of tangents of this type")

    def dec_rank(self, size: int | None, spec: Any) -> Any:
        """Return the type of an element of a batch of this type."""
        missing(self, "dec_rank", "vmap")

    def inc_rank(self, size: int | None, spec: Any) -> Any:
        """Return the type of a batch of ``size`` values of this type."""
        missing(self, "inc_rank", "vmap")

    def leading_axis_spec(self) -> Any:
        """Return the spec for mapping over the leading axis, as ``scan`` does."""
        missing(self, "leading_axis_spec", "scan")

    def element(self, length: int) -> Any:
        """Return the type of a step's element of ``length`` stacked values."""
        return self.dec_rank(length, self.leading_axis_spec())

    def stacked(self, length: int) -> Any:
        """Return the type of ``length`` stacked values, as ``scan`` stacks them."""
        return self.inc_rank(length, self.leading_axis_spec())

    def shard(self, mesh: Any, manual_axes: frozenset[Any], check_vma: bool, spec: Any) -> Any:
        """Return the type of the shard of a value on a device."""
        missing(self, "shard", "shard_map")

    def unshard(self, mesh: Any, check_vma: bool, spec: Any) -> Any:
        """Return the type of the value whose shards have this type."""
        missing(self, "unshard", "shard_map")

    def nospec(self, mesh: Any, check_vma: bool, all_names: tuple[Any, ...]) -> Any:
        """Return the spec of a value that is not sharded."""
        missing(self, "nospec", "differentiation of shard_map")

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """Return the type as text."""
        return repr(self)

    def __str__(self) -> str:
        return self.str_short(short_dtypes=True)

    def update(self, **changes: Any) -> Any:
        """Return this type: of the attributes that ``update`` changes on the types of arrays, it has none."""
        return self

    def batched(self, axis: Any, dim: Any = 0) -> Any:
        """Return the type of a batch of values of this type, mapped over ``axis`` as ``dim``, a spec, says."""
        return unmapped(self, axis.size, dim)

    def strip_weak_type(self) -> Any:
        """Return this type, which is not weak."""
        return self


_ASSUMED: dict[str, Any] = {
    "weak_type": False, "varying": frozenset(), "explicit": None, "shape": None, "size": 0, "dtype": USER_VALUE,
}  # fmt: skip
"""What types of arrays have and users' types need not define."""

types_of_values: dict[type, Callable[[Any], Any]] = {}
"""A function from a value to its type, for each registered class."""


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Register a class whose objects are values of a user's type.

    Args:
      val_cls: the class.
      typeof_fn: a function from an object to its type, an instance of a subclass of :class:`HiType`.

    Raises:
      ArgumentError: ``val_cls`` is no class, or ``typeof_fn`` no function (a TypeError).

    >>> from pullback import typeof
    >>> from pullback.experimental.hijax import HiType, register_hitype
    >>> class Word(str):
    ...     pass
    >>> class WordType(HiType):
    ...     def __repr__(self):
    ...         return "word"
    >>> register_hitype(Word, lambda x: WordType())
    >>> typeof(Word("text"))
    word
    """
    if not isinstance(val_cls, type) or not callable(typeof_fn):
        raise ArgumentError(f"register_hitype takes a class and a function, got {val_cls!r} and {typeof_fn!r}")
    types_of_values[val_cls] = typeof_fn


def is_user_value(x: Any) -> bool:
    """Whether an object is a value of a registered class whose type is a :class:`HiType`; mutable ones have others."""
    return type(x) in types_of_values and isinstance(types_of_values[type(x)](x), HiType)


def mutable_type(x: Any) -> Any:
    """Return the type of an object of a registered class whose values are mutable; None for any other object."""
    if not types_of_values or type(x) not in types_of_values:
        return None
    aval = types_of_values[type(x)](x)
    is_mutable = not isinstance(aval, HiType) and getattr(aval, "has_qdd", False)
    return aval if is_mutable and hasattr(aval, "update_from_loval") else None


def has_user_types(avals: Any) -> bool:
    """Whether one of some types is a user's."""
    return bool(types_of_values) and any(isinstance(a, HiType) for a in avals)


def has_tangents(aval: Any) -> bool:
    """Whether values of a type have derivatives: whether the dtype of their tangents is not ``float0``."""
    tangent = aval.to_tangent_aval()
    return not isinstance(tangent, ShapedArray) or tangent.dtype != float0


def unmapped(aval: Any, size: int, dim: Any) -> Any:
    """Return the type of a batch.

    Args:
      aval: the type of an element.
      size: the number of elements.
      dim: the position of the mapped axis in an array, a ``MappingSpec``, or None if the value is not mapped.
    """
    if dim is None:
        return aval
    return aval.inc_rank(size, dim)


Params = dict[str, Hashable]
