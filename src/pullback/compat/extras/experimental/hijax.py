"""``jax.experimental.hijax``: users' types whose values consist of arrays. Flax NNX's variables have one.

``pullback.experimental.hijax`` has types of immutable values, and operations with rules as methods. Here are operations
as ``HiPrimitive`` objects, and types of mutable values. An operation on mutable values is replaced immediately by
operations on their arrays, under the active transformations. So it needs no rules, and programs contain only operations
on arrays. Mutable values may be arguments of functions under `jit` and `eval_shape`. Loops, branches and compiled
functions may close over mutable values, whose structure they must keep. `grad` and `vmap` may close over those that are
made under the same transformation.

>>> from pullback import grad, jit
>>> from pullback.compat.extras.experimental.hijax import HiPrimitive
>>> class Pair:
...     def __init__(self, x, y):
...         self.x, self.y = x, y
>>> class Product(HiPrimitive):
...     def to_lojax(self, pair):
...         return pair.x * pair.y
>>> product_p = Product("product")
>>> print(jit(grad(lambda x: product_p.bind(Pair(x, 3 * x))))(2.0))
12.0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pullback.compat.extras._src.state.types import AbstractRef as AbstractRef
from pullback.core.errors import ArgumentError, MissingRuleError
from pullback.core.trace import Primitive
from pullback.core.types import AbstractValue as AbstractValue
from pullback.core.types import ShapedArray
from pullback.core.user_types import HiType as HiType
from pullback.core.user_types import missing
from pullback.core.user_types import register_hitype as register_hitype
from pullback.interpreters.ad import UndefinedPrimal
from pullback.interpreters.ad import is_undefined_primal as is_undefined_primal
from pullback.transforms.autodiff.tracing import typeof
from pullback.transforms.custom.hi_derived import vjp_from_jvp
from pullback.transforms.custom.hi_primitive import GradAccum, VJPHiPrimitive
from pullback.transforms.functions.mutable_values import made
from pullback.transforms.traces.mutable_cells import as_seen


class MutableHiType(AbstractValue):
    """A base class for users' types with mutable values, whose current structure ``cur_qdd`` returns."""

    has_qdd = True


class AvalQDD(NamedTuple):
    """A type with the current structure of a mutable value."""

    aval: Any
    qdd: Any


class AvalMutableQDD(NamedTuple):
    """A type with the cell that holds the current structure of a mutable value."""

    aval: Any
    mutable_qdd: Any


class aval_method(NamedTuple):
    """A function that becomes a method of the tracers of a type."""

    fun: Callable[..., Any]


class aval_property(NamedTuple):
    """A function that becomes a property of the tracers of a type."""

    fget: Callable[..., Any]


class EffectTypeSet:
    """A set of classes of effects.

    >>> from pullback.compat.extras.experimental.hijax import EffectTypeSet
    >>> from pullback.extend.core import Effect
    >>> class Prints(Effect):
    ...     pass
    >>> effects = EffectTypeSet()
    >>> effects.add_type(Prints)
    >>> effects.contains(Prints()), effects.contains(Effect())
    (True, False)
    """

    __slots__ = ("_types",)

    def __init__(self) -> None:
        self._types: set[type] = set()

    def add_type(self, effect_type: type) -> None:
        """Add a class and its subclasses."""
        self._types.add(effect_type)

    def contains(self, eff: Any) -> bool:
        """Whether an effect is an instance of one of the classes."""
        return isinstance(eff, tuple(self._types))

    def filter_in(self, effects: Any) -> list[Any]:
        """Return the effects that are instances of the classes."""
        return [eff for eff in effects if self.contains(eff)]

    def filter_not_in(self, effects: Any) -> list[Any]:
        """Return the effects that are not instances of the classes."""
        return [eff for eff in effects if not self.contains(eff)]


control_flow_allowed_effects = EffectTypeSet()
"""The effects allowed in loops and branches; has no effect here, where all are allowed. Flax adds its own."""


def type_of(x: Any) -> Any:
    """Return the type of a value of a registered class, or of an array.

    Args:
      x: the value.

    >>> from pullback.compat.extras.experimental.hijax import type_of
    >>> type_of(1.0)
    ShapedArray(float32[], weak_type=True)
    """
    return typeof(x)


def cur_qdd(x: Any) -> Any:
    """Return the current structure of a mutable value, by its method ``cur_qdd``.

    Args:
      x: the value.

    Raises:
      ArgumentError: it has no such method (a TypeError).

    >>> from types import SimpleNamespace
    >>> from pullback.compat.extras.experimental.hijax import cur_qdd
    >>> cur_qdd(SimpleNamespace(cur_qdd=lambda: "two arrays"))
    'two arrays'
    """
    if not hasattr(x, "cur_qdd"):
        raise ArgumentError(f"cur_qdd takes a value with a method cur_qdd(), for its current structure, got {x!r}")
    with as_seen((x,)):
        return x.cur_qdd()


class HiPrimitive(Primitive):
    """An operation on values of users' types; subclasses define it on their arrays by ``to_lojax``.

    A subclass that has ``abstract_eval`` as well, which returns the type of the result and its effects, is recorded in
    programs as one equation, and its further methods are rules: ``jvp``, ``transpose`` and ``batch``. Another one, and
    one on values that are mutable, is replaced immediately by what ``to_lojax`` does.

    Raises:
      MissingRuleError: in use, if ``to_lojax`` and ``impl`` are both missing (a NotImplementedError).
    """

    multiple_results = False

    def __init__(self, name: str) -> None:
        """Make an operation.

        Args:
          name: its name.
        """
        super().__init__(name, multiple_results=type(self).multiple_results)

    def is_high(self, *avals: Any, **params: Any) -> bool:
        """Whether the operation is on values of users' types."""
        return True

    def to_lojax(self, *args: Any, **params: Any) -> Any:
        """Compute the operation by operations on arrays."""
        if type(self).impl is not Primitive.impl:
            return self.impl(*args, **params)
        raise MissingRuleError(f"the primitive {self.name!r} has no method to_lojax, which computes it on arrays")

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the operation under the current trace."""
        if type(self).abstract_eval is Primitive.abstract_eval:
            return self._at_once(args, params)
        avals = tuple(map(typeof, args))
        if not all(map(_is_immutable, avals)):
            return self._at_once(args, params)
        out = self.abstract_eval(*avals, **params)[0]  # type: ignore[call-overload]
        outs = tuple(out) if self.multiple_results else (out,)
        if not all(map(_is_immutable, outs)):
            return self._at_once(args, params)
        results = _Application(self, avals, outs, params)(*args)
        return list(results) if self.multiple_results else results[0]

    def _at_once(self, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Apply the operation to arrays, and to mutable values as the current trace sees them."""
        with as_seen(args):
            results = self.to_lojax(*args, **params)
        return [made(x) for x in results] if self.multiple_results else made(results)


def _is_immutable(aval: Any) -> bool:
    return isinstance(aval, (HiType, ShapedArray))


class _Application(VJPHiPrimitive):
    """An operation of a :class:`HiPrimitive` on operands of some types."""

    primitive: HiPrimitive
    options: tuple[tuple[str, Any], ...]

    def __init__(self, primitive: HiPrimitive, avals: Any, outs: Any, options: dict[str, Any]) -> None:
        self.in_avals, self.out_aval = avals, outs
        self.params = {"primitive": primitive, "options": tuple(options.items())}
        super().__init__()

    def has(self, method: str) -> bool:
        if method in ("jvp", "transpose", "batch"):
            return getattr(type(self.primitive), method) is not getattr(Primitive, method)
        return method in ("vjp_fwd", "vjp_bwd_retval") and self.has("jvp")

    def _many(self, x: Any) -> tuple[Any, ...]:
        return tuple(x) if self.primitive.multiple_results else (x,)

    def expand(self, *args: Any) -> Any:
        return self._many(self.primitive.to_lojax(*args, **dict(self.options)))

    def jvp(self, primals: Any, tangents: Any) -> Any:
        rule: Any = self.primitive.jvp
        outs, ts = rule(primals, tangents, **dict(self.options))
        return self._many(outs), self._many(ts)

    vjp_fwd, vjp_bwd_retval = vjp_from_jvp

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        rule: Any = self.primitive.transpose
        args = [UndefinedPrimal(x.aval) if isinstance(x, GradAccum) else x for x in maybe_accums]
        cts = rule(out_ct if self.primitive.multiple_results else out_ct[0], *args, **dict(self.options))
        for accum, ct in zip(maybe_accums, cts, strict=True):
            if isinstance(accum, GradAccum):
                accum.accum(ct)

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        rule: Any = self.primitive.batch
        if not self.has("batch"):
            missing(self.primitive, "batch", "vmap")
        out, dim = rule(axis_data, args, dims, **dict(self.options))
        return self._many(out), self._many(dim)

    def __repr__(self) -> str:
        return f"{self.primitive.name}[{dict(self.options)}]"


__all__ = [
    "AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "EffectTypeSet", "HiPrimitive", "MutableHiType",
    "aval_method", "aval_property", "control_flow_allowed_effects", "cur_qdd", "is_undefined_primal", "type_of",
]  # fmt: skip
