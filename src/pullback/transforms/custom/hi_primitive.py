"""Operations of users with rules as methods: ``VJPHiPrimitive``.

A program holds an application as one equation of the primitive ``call_hi_primitive``, whose parameter is the user's
object. The rules of this primitive, in ``hi_rules``, call the methods of the object: ``expand`` evaluates, and says the
operation by others where a program is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pullback.core import tree
from pullback.core.array import Array, as_array, typeof
from pullback.core.errors import ArgumentError, CustomRuleError, MissingMethodError
from pullback.core.trace import Primitive
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.core.user_types import is_user_value, missing
from pullback.core.zeros import Zero
from pullback.primitives.elementwise import add_any
from pullback.transforms.custom.rule_adapter import SymbolicZero
from pullback.transforms.functions.arguments import is_float0

call_hi_primitive_p = Primitive("call_hi_primitive", multiple_results=True, keeps_weak_type=False)


class AxisData(NamedTuple):
    """The axis that a method ``batch`` or ``batch_dim_rule`` receives.

    Attributes:
      name: the name of the axis; None if it has none.
      size: the size of the axis.
      spmd_name: the mesh axis over which sharding constraints spread it.
      explicit_mesh_axis: the mesh axis over which the types of the batch say that it is sharded.
    """

    name: Any
    size: int
    spmd_name: Any = None
    explicit_mesh_axis: Any = None

    def mapped(self) -> MappedAxis:
        """Return the axis for the interpreter of ``vmap``."""
        return MappedAxis(self.name, self.size, spmd_name=self.spmd_name)


class GradAccum:
    """The cotangent of an operand, to which a backward rule adds; the base class of the kinds of accumulators.

    Attributes:
      aval: the type of the operand.

    >>> from pullback import typeof
    >>> from pullback.experimental.hijax import GradAccum, NullAccum
    >>> isinstance(NullAccum(typeof(1.0)), GradAccum)
    True
    """

    def __init__(self, aval: Any) -> None:
        """Make an accumulator.

        Args:
          aval: the type of the operand.
        """
        self.aval = aval

    def accum(self, x: Any) -> None:
        """Add a cotangent; None and :class:`Zero` add nothing."""
        raise NotImplementedError


class ValAccum(GradAccum):
    """A sum of cotangents.

    >>> import pullback.numpy as jnp
    >>> from pullback import typeof
    >>> from pullback.experimental.hijax import ValAccum
    >>> total = ValAccum(typeof(jnp.ones(2)))
    >>> total.accum(jnp.ones(2))
    >>> total.accum(jnp.ones(2))
    >>> print(total.freeze())
    [2. 2.]
    """

    def __init__(self, aval: Any, value: Any = ZERO) -> None:
        """Make an accumulator.

        Args:
          aval: the type of the operand.
          value: the sum to begin with; nothing by default.
        """
        super().__init__(aval)
        self.value = value

    def accum(self, x: Any) -> None:
        """Add a cotangent; None and :class:`Zero` add nothing."""
        x = checked_cotangent(x, self.aval)
        if x is not ZERO:
            self.value = x if self.value is ZERO else added(x, self.value)

    def freeze(self) -> Any:
        """Return the sum; a :class:`Zero` if nothing was added."""
        return Zero(self.aval.to_ct_aval()) if self.value is ZERO else self.value


class RefAccum(GradAccum):
    """A reference to whose content cotangents are added.

    Attributes:
      ref: the reference.

    >>> import pullback.numpy as jnp
    >>> from pullback import new_ref, typeof
    >>> from pullback.experimental.hijax import RefAccum
    >>> ref = new_ref(jnp.ones(2))
    >>> RefAccum(typeof(jnp.ones(2)), ref).accum(jnp.ones(2))
    >>> print(ref[...])
    [2. 2.]
    """

    def __init__(self, aval: Any, ref: Any) -> None:
        """Make an accumulator.

        Args:
          aval: the type of the operand.
          ref: the reference.
        """
        super().__init__(aval)
        self.ref = ref

    def accum(self, x: Any) -> None:
        """Add a cotangent; None and :class:`Zero` add nothing."""
        x = checked_cotangent(x, self.aval)
        if x is not ZERO:
            self.ref[...] += x

    def freeze(self) -> Any:
        """Return the content of the reference."""
        return self.ref[...]


class NullAccum(GradAccum):
    """The cotangent of an operand that is not differentiated: adding to it has no effect.

    >>> from pullback import typeof
    >>> from pullback.experimental.hijax import NullAccum
    >>> NullAccum(typeof(1.0)).accum(1.0)
    """

    def accum(self, x: Any) -> None:
        """Do nothing."""


def added(x: Any, y: Any) -> Any:
    """Return the sum of two tangents or cotangents, which are arrays or values of users' types."""
    aval = typeof(x)
    return add_any(x, y) if isinstance(aval, ShapedArray) else aval.vspace_add(x, y)


def checked_cotangent(x: Any, aval: Any) -> Any:
    """Return a tangent or cotangent from a user's rule as an array, or ``ZERO``; raise unless it has the type it must.

    Args:
      x: the tangent or cotangent; None, a ``Zero`` and an array of dtype float0 are zero.
      aval: the type of the primal value.
    """
    if x is None or isinstance(x, (Zero, SymbolicZero)) or is_float0(x):
        return ZERO
    x = as_operand(x)
    found, expected = typeof(x), aval.to_ct_aval()
    if not same_type(found, expected):
        raise CustomRuleError(
            f"a rule returned a derivative of type {found}, but for a value of {aval} it is {expected}"
        )
    return x


def as_operand(x: Any) -> Any:
    """Convert an operand to an array; a value of a user's type stays as it is."""
    return x if isinstance(x, Array) or is_user_value(x) else as_array(x)


def same_type(a: Any, b: Any) -> bool:
    """Whether two types are of the same shape and dtype, or of the same class of users' types."""
    if isinstance(a, ShapedArray) and isinstance(b, ShapedArray):
        return a.shape == b.shape and a.dtype == b.dtype
    return type(a) is type(b)


class VJPHiPrimitive:
    """A base class for operations with rules as methods, on arrays and on values of users' types.

    A subclass sets ``in_avals``, ``out_aval`` and ``params`` in its ``__init__`` and then calls this one. An instance
    is an operation on operands of these types; calling the instance applies it.

    Attributes:
      in_avals: the type of each argument, or a tree of types.
      out_aval: the type of the result, or a tree of types.
      params: values that the operation depends on, by name; they are hashable, and become attributes.
      vjp_bwd_retval_logs: whether ``vjp_bwd_retval`` returns a pair, of the cotangents and of what it logs.

    Raises:
      MissingRuleError: a transformation needs a method that the class does not have (a NotImplementedError).
      CustomRuleError: a method returns another type, or another tree, than it must (a TypeError).
      ArgumentError: the operands have other types than ``in_avals`` (a TypeError and a ValueError).
      MissingMethodError: an attribute is not set (an AttributeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import grad, typeof
    >>> from pullback.experimental.hijax import VJPHiPrimitive
    >>> class Sine(VJPHiPrimitive):
    ...     def __init__(self, aval):
    ...         self.in_avals, self.out_aval, self.params = (aval,), aval, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return jnp.sin(x)
    ...     def vjp_fwd(self, nzs_in, x):
    ...         return self(x), jnp.cos(x)
    ...     def vjp_bwd_retval(self, cos_x, ct):
    ...         return (cos_x * ct,)
    >>> print(grad(lambda x: Sine(typeof(x))(x))(0.0))
    1.0
    """

    in_avals: Any
    out_aval: Any
    params: dict[str, Any]
    effects: frozenset[Any] = frozenset()
    vjp_bwd_retval_logs: bool = False
    is_high = True
    vmap_of: Any  # the class of batches of applications: see hi_vmap

    def __init__(self) -> None:
        """Check the attributes that the subclass has set, and make the parameters attributes."""
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise MissingMethodError(
                    f"{type(self).__name__}.__init__ must set self.{name} before it calls this one"
                )
        self.__dict__.update(self.params)
        if VJPHiPrimitive.has(self, "vjp_bwd") and VJPHiPrimitive.has(self, "vjp_bwd_retval"):
            raise MissingMethodError(
                f"{type(self).__name__} has both vjp_bwd and vjp_bwd_retval: the first adds cotangents to its "
                "arguments, the second returns them. Keep one of the two."
            )
        self.in_avals_flat, self.in_tree = tree.flatten(self.in_avals)
        self.out_avals_flat, self.out_tree = tree.flatten(self.out_aval)
        self.check(*self.in_avals)

    def has(self, method: str) -> bool:
        """Return whether the class has a method of its own for a rule."""
        return getattr(type(self), method) is not getattr(VJPHiPrimitive, method)

    def check(self, *arg_tys: Any) -> None:
        """Check the types of the arguments; subclasses may raise."""

    def expand(self, *args: Any) -> Any:
        """Compute the result by other operations."""
        missing(self, "expand", "evaluation")

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> Any:
        """Return the result, and the residuals for the backward rule; ``nzs_in`` says what is differentiated."""
        missing(
            self,
            "vjp_fwd",
            f"grad (or vjp_fwd, vjp_bwd_retval = vjp_from_jvp, or vjp_from_lin, in {type(self).__name__},)",
        )

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> Any:
        """Add the cotangent of each argument to its accumulator, from the residuals and the cotangent of the result."""
        cts, logs = self.vjp_bwd_retval(res, outgrad), None
        if self.vjp_bwd_retval_logs:
            cts, logs = logged(self, cts)
        accums, treedef = tree.flatten(tuple(arg_accums), is_leaf=lambda x: isinstance(x, GradAccum))
        for accum, ct in zip(accums, leaves_like(self, cts, treedef, "vjp_bwd_retval"), strict=True):
            accum.accum(ct)
        return logs

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        """Return a tuple of the cotangents of the arguments, from the residuals and the cotangent of the result."""
        missing(self, "vjp_bwd_retval", "grad")

    def jvp(self, primals: Any, tangents: Any) -> Any:
        """Return the result and its tangent; tangents may be ``Zero``."""
        missing(self, "jvp", "jvp")

    def lin(self, nzs_in: Any, *primals: Any) -> Any:
        """Return the result, and the residuals for ``linearized``."""
        missing(self, "lin", f"linearize (or lin, linearized = linearize_from_jvp, in {type(self).__name__},)")

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        """Return the tangent of the result, which is linear in the tangents of the arguments."""
        missing(self, "linearized", "linearize")

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        """Add cotangents to the arguments that are accumulators, in which the operation is linear."""
        missing(self, "transpose", "transposition")

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        """Return the result for a batch, and how it is mapped: by default, map the rules as ``batch_dim_rule`` says."""
        out_dim = self.batch_dim_rule(axis_data, dims)
        return self.vmap_of(self, axis_data, dims, out_dim)(*args), out_dim

    def batch_dim_rule(self, axis_data: Any, dims: Any, /) -> Any:
        """Return the position of the mapped axis in the result, from those in the arguments."""
        missing(self, "batch_dim_rule", "vmap (or batch, for full control,)")

    def dce(self, used_outs: Any) -> Any:
        """Return the arguments needed for some results, the results that remain, and the operation that has these."""
        used = tree.leaves(used_outs)
        return (True, True, self) if any(used) else (False, False, None)

    def __call__(self, *args: Any) -> Any:
        leaves, treedef = tree.flatten(args)
        if treedef != self.in_tree:
            raise ArgumentError(f"{self!r} takes arguments of the tree {self.in_tree}, but got {treedef}")
        values = [as_operand(x) for x in leaves]
        for x, aval in zip(values, self.in_avals_flat, strict=True):
            if not same_type(typeof(x), aval):
                raise ArgumentError(
                    f"{self!r} takes ({_types(self.in_avals_flat)}), but got ({_types(map(typeof, values))})"
                )
        return tree.unflatten(self.out_tree, call_hi_primitive_p.bind(*values, _prim=self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.params}]"

    def _key(self) -> tuple[Any, ...]:
        return (
            tuple(self.params.items()),
            tuple(self.in_avals_flat),
            tuple(self.out_avals_flat),
            self.in_tree,
            self.effects,
        )

    def __hash__(self) -> int:
        return hash((type(self).__name__, *self._key()))

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self._key() == other._key())


def _types(avals: Any) -> str:
    return ", ".join(map(format, avals))


def logged(prim: VJPHiPrimitive, result: Any) -> tuple[Any, Any]:
    """Return the cotangents and the logs that a backward rule with ``vjp_bwd_retval_logs`` returned."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise CustomRuleError(f"vjp_bwd_retval of {prim!r} must return a pair (cotangents, logs), but got {result!r}")
    return result


def _is_zero(x: Any) -> bool:
    return x is None or isinstance(x, (Zero, SymbolicZero))


def leaves_like(prim: VJPHiPrimitive, derivatives: Any, treedef: Any, method: str) -> list[Any]:
    """Return the leaves of derivatives that a method returned, as a list with an entry for each leaf of ``treedef``.

    None and :class:`Zero` stand for whole trees.

    Args:
      prim: the operation.
      derivatives: the tree that the method returned.
      treedef: the tree of the primal values.
      method: the name of the method, for the error.
    """
    try:
        shape = tree.unflatten(treedef, [0] * treedef.num_leaves)
        return tree.broadcast_prefix(derivatives, shape, is_leaf=_is_zero)
    except ValueError as error:
        raise CustomRuleError(
            f"{method} of {prim!r} must return derivatives of the tree {treedef}, but returned "
            f"{tree.structure(derivatives)}: {error}"
        ) from None


def expanded(prim: VJPHiPrimitive, operands: Sequence[Any]) -> list[Any]:
    """Return the results of an application by its method ``expand``, as a list.

    Raises:
      CustomRuleError: they have another tree, or other types, than ``out_aval`` says (a TypeError).
    """
    return result_leaves(prim, prim.expand(*tree.unflatten(prim.in_tree, operands)), "expand")


def result_leaves(prim: VJPHiPrimitive, out: Any, method: str) -> list[Any]:
    """Return the leaves of a result that ``method`` computed; raise unless they are of the types ``out_aval``."""
    leaves, treedef = tree.flatten(out)
    if treedef != prim.out_tree:
        raise CustomRuleError(f"{method} of {prim!r} must return a result of the tree {prim.out_tree}, not {treedef}")
    values = [as_operand(x) for x in leaves]
    for x, aval in zip(values, prim.out_avals_flat, strict=True):
        if not same_type(typeof(x), aval):
            raise CustomRuleError(f"{method} of {prim!r} returned {typeof(x)}, where out_aval is {aval}")
    return values
