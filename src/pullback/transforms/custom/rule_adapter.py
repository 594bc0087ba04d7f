"""Adapting custom derivative rules to flat lists of arrays, and checking their results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

import numpy as np

from pullback.core import dtypes, tree
from pullback.core.arguments import flag, typed
from pullback.core.array import Array, as_array, typeof
from pullback.core.config import config
from pullback.core.dtypes import is_inexact
from pullback.core.errors import (
    ArgumentError,
    CustomRuleError,
    NotLinearError,
    OperandError,
    PullbackError,
    TangentMismatchError,
)
from pullback.core.masking import with_masked_zeros
from pullback.core.types import ZERO, ShapedArray
from pullback.primitives.elementwise import convert_element_type
from pullback.transforms.custom.linear_map import LinearMap
from pullback.transforms.functions.arguments import (
    abstractify,
    flatten_one,
    mismatch,
    name_of,
    out_leaf,
    structure_of,
    zero_cotangent,
)
from pullback.transforms.functions.flat_function import FlatFunction, flat_result
from pullback.transforms.traces.backward_logs import log, paired
from pullback.transforms.traces.linearize import is_tape


class SymbolicZero:
    """A tangent or cotangent that is zero, without elements; rules with ``symbolic_zeros`` receive and return it.

    Attributes:
      aval: the type of the tangent or cotangent.

    >>> from pullback import custom_jvp, grad
    >>> from pullback.custom_derivatives import SymbolicZero
    >>> f = custom_jvp(lambda x, y: x * y)
    >>> def rule(primals, tangents):
    ...     (x, y), (x_dot, y_dot) = primals, tangents
    ...     print(isinstance(x_dot, SymbolicZero), isinstance(y_dot, SymbolicZero))
    ...     return x * y, x_dot * y
    >>> _ = f.defjvp(rule, symbolic_zeros=True)
    >>> print(grad(f)(2.0, 3.0))
    False True
    3.0
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    shape = property(lambda self: self.aval.shape, doc="The size of each axis.")
    dtype = property(lambda self: self.aval.dtype, doc="The dtype of the elements.")
    ndim = property(lambda self: self.aval.ndim, doc="The number of axes.")
    size = property(lambda self: self.aval.size, doc="The number of elements.")

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval!s})"


class CustomVJPPrimal:
    """An argument as a forward rule with ``symbolic_zeros`` receives it: a value with a flag.

    Attributes:
      value: the value.
      perturbed: whether derivatives with respect to the argument are needed.

    >>> from pullback import custom_vjp, grad
    >>> f = custom_vjp(lambda x, y: x * y)
    >>> def forward(x, y):
    ...     print(x.perturbed, y.perturbed)
    ...     return x.value * y.value, y.value
    >>> f.defvjp(forward, lambda y, cotangent: (cotangent * y, None), symbolic_zeros=True)
    >>> print(grad(f)(2.0, 3.0))
    True False
    3.0
    """

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool) -> None:
        self.value = value
        self.perturbed = perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(tree_of_primals: Any) -> Any:
    """Return the values in a tree of :class:`CustomVJPPrimal`, the arguments of a forward rule with ``symbolic_zeros``.

    Args:
      tree_of_primals: a tree whose leaves are :class:`CustomVJPPrimal`.

    Returns:
      A tree of the same structure, with the ``value`` of each leaf.

    Raises:
      ArgumentError: a leaf is no :class:`CustomVJPPrimal` (a TypeError and a ValueError).

    >>> from pullback.custom_derivatives import CustomVJPPrimal, custom_vjp_primal_tree_values
    >>> print(custom_vjp_primal_tree_values({"x": CustomVJPPrimal(1.0, True)}))
    {'x': 1.0}
    """
    return tree.tree_map(_value_of, tree_of_primals)


def _value_of(primal: Any) -> Any:
    if not hasattr(primal, "value"):
        raise ArgumentError(f"custom_vjp_primal_tree_values takes a tree of CustomVJPPrimal, got {typed(primal)}")
    return primal.value


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Return zero tangents for a tree of values, dense or symbolic.

    Args:
      val: a tree of arrays, numbers, or objects with a shape and a dtype.
      symbolic_zeros: whether the zeros are :class:`SymbolicZero`, which hold no elements.

    Returns:
      A tree like ``val``. The dense zero of a value that is not differentiable is of type ``float0``.

    Raises:
      OperandError: a leaf is no array (a TypeError).

    >>> from pullback.custom_derivatives import zero_from_primal
    >>> zero_from_primal({"w": 1.0}, symbolic_zeros=True)
    {'w': SymbolicZero(float32[])}
    """
    symbolic = flag("zero_from_primal", "symbolic_zeros", symbolic_zeros)
    return tree.tree_map(lambda x: zero_tangent(_primal_type(x), symbolic), val)


def _primal_type(x: Any) -> ShapedArray:
    """Return the type of ``x``, a leaf that :func:`zero_from_primal` was called with; errors mention this function."""
    try:
        return abstractify(x)
    except OperandError as error:
        raise type(error)(f"zero_from_primal: {error}") from None


def zero_tangent(aval: ShapedArray, symbolic: bool) -> Any:
    """Return the zero tangent of a value of type ``aval``: a :class:`SymbolicZero` if ``symbolic``, else an array."""
    if symbolic:
        return SymbolicZero(aval.update(dtype=dtypes.tangent_dtype(aval.dtype)))
    return zero_cotangent(aval)


class HasRules:
    """The attributes of a function with derivative rules: its rules, None if they are not set, and their options."""

    fun: Callable[..., Any]
    jvp: Callable[..., Any] | None = None
    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None
    symbolic_zeros: bool = False
    symbolic_cotangents: bool = False
    returns_logs: bool = False


class _Running(threading.local):
    """The functions, in the attribute ``owners``, whose backward rules are running in this thread."""

    owners: tuple[HasRules, ...] = ()


running = _Running()


class RuleAdapter(FlatFunction):
    """A call of a function with derivative rules. It adapts the function and its rules to flat lists of arrays.

    Attributes:
      owner: the function with rules.
      nondiff: the positions and values of the arguments that are not differentiated.
      fixed: the values of these arguments.
    """

    __slots__ = ("fixed", "nondiff", "owner")

    def __init__(self, owner: HasRules, nondiff: tuple[tuple[int, Any], ...], in_tree: Any) -> None:
        self.owner = owner
        self.nondiff = nondiff
        self.fun = self.described = owner.fun
        self.in_tree = in_tree
        self.args, self.where, self.kwargs, self.opaque = (), None, None, None
        self.keywords = self.has_aux = False
        self.fixed: list[Any] = []
        if nondiff:
            args: list[Any] = [None] * len(tree.treedef_children(in_tree))
            for i, x in nondiff:
                args.insert(i, x)
                self.fixed.append(x)
            positions = dict(nondiff)
            self.args, self.where = args, [i for i in range(len(args)) if i not in positions]
        self.out_tree: Any = _UNKNOWN

    # Forward mode

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Apply the jvp rule; return the results and their tangents, where ``ZERO`` stands for a zero tangent.

        Raise if the rule returns something of a wrong form.
        """
        rule = self.owner.jvp
        assert rule is not None
        symbolic = self.owner.symbolic_zeros
        dense = [zero_tangent(typeof(x), symbolic) if t is ZERO else t for x, t in zip(primals, tangents, strict=True)]
        try:
            pair = rule(*self.fixed, self._differentiated(primals), tree.unflatten(self.in_tree, dense))
        except PullbackError as error:
            if is_tape(error.trace):
                raise self._not_linear(rule, error) from None
            raise
        out, tangent_out = self._pair(pair, "jvp rule", rule, "(out, tangent_out)")
        outs, out_tree = flat_result(out, rule)
        self._check_out_tree(out_tree, "jvp rule", rule)
        ts, tangent_tree = flatten_one(tangent_out)
        if tangent_tree != out_tree and structure_of(tangent_tree) != structure_of(out_tree):
            raise CustomRuleError(
                f"{self._named('jvp rule', rule)} must return a result and a tangent of the same tree, but the result "
                f"has {_show(out_tree)}, and the tangent {_show(tangent_tree)}"
            )
        wrong = []
        for i, (x, t) in enumerate(zip(outs, ts, strict=True)):
            if isinstance(t, Array) and t.shape == x.shape and t.dtype is x.dtype and is_inexact(t.dtype):
                continue
            ts[i] = t = _tangent_leaf(t, rule)
            aval = typeof(x)
            dtype = dtypes.tangent_dtype(aval.dtype)
            if t.shape != aval.shape or t.dtype != dtype:
                wrong.append(mismatch(f"\n  out{tree.keystr(_paths(out_tree)[i])}", aval, "tangent", t))
            elif dtype == dtypes.float0 or isinstance(t, SymbolicZero):
                ts[i] = ZERO
        if wrong:
            raise TangentMismatchError(
                f"{self._named('jvp rule', rule)} must return tangents of the shapes and dtypes of its results, but"
                + "".join(wrong)
            )
        return outs, ts

    def _differentiated(self, primals: Sequence[Any]) -> Any:
        """Return the trees of the differentiated arguments, with the leaves ``primals``.

        A leaf for which the user passed a reference is this reference instead.
        """
        if self.opaque is not None:
            primals = [self.opaque.get(i, x) for i, x in enumerate(primals)]
        return tree.unflatten(self.in_tree, primals)

    def _named(self, what: str, rule: Any) -> str:
        """Return the name of a rule and its function, for error messages; ``what`` is its kind, such as "jvp rule"."""
        return f"the {what} {name_of(rule)} of {name_of(self.fun)}"

    def _not_linear(self, rule: Any, error: PullbackError) -> NotLinearError:
        """Return the error for a jvp rule that cannot be transposed, because of ``error``."""
        return NotLinearError(
            f"{self._named('jvp rule', rule)} must return a tangent that is linear in its input tangents, because "
            f"reverse mode transposes it, but it does not: {error}"
        )

    def _pair(self, pair: Any, what: str, rule: Any, form: str) -> Any:
        """Return ``pair``, the result of a rule; raise unless it is a pair.

        Args:
          pair: the result.
          what: the kind of the rule, such as "jvp rule", for the message.
          rule: the rule.
          form: the pair that the rule must return, such as "(out, residuals)", for the message.
        """
        if isinstance(pair, (tuple, list)):
            if len(pair) == 2:
                return pair
            got = f"a {type(pair).__name__} of {len(pair)}, {_short(pair)}"
        else:
            got = f"{_short(pair)} of type {type(pair).__name__}"
        raise CustomRuleError(f"{self._named(what, rule)} must return a pair {form}, but it returned {got}")

    def _check_out_tree(self, out_tree: Any, what: str, rule: Any) -> None:
        """Raise unless ``out_tree``, the tree of a rule's result, is the tree of the function's result.

        If the function's tree is unknown, set it to ``out_tree``. ``what`` is the kind of the rule, for the message.
        """
        if self.out_tree is _UNKNOWN:
            self.out_tree = out_tree
        elif self.out_tree != out_tree:
            raise CustomRuleError(
                f"{self._named(what, rule)} must return a result of the same tree as the function, "
                f"{_show(self.out_tree)}, but returned {_show(out_tree)}"
            )

    # Reverse mode

    def forward(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list[Any], list[Any], LinearMap]:
        """Apply the forward rule of reverse mode; ``perturbed`` says for each primal whether it has a tangent.

        Returns:
          The results; the residuals that are arrays; and the backward rule as a linear map, which takes these
          residuals.
        """
        owner = self.owner
        rule = owner.fwd
        assert rule is not None
        leaves: Sequence[Any] = primals
        if owner.symbolic_cotangents:
            leaves = [CustomVJPPrimal(x, p) for x, p in zip(primals, perturbed, strict=True)]
        pair = rule(*self.arguments(leaves)[0])
        out, residuals = self._pair(pair, "forward rule", rule, "(out, residuals)")
        outs, out_tree = flat_result(out, rule)
        if self.out_tree is _UNKNOWN or self.out_tree != out_tree:
            self._check_out_tree(out_tree, "forward rule", rule)
        residual_leaves, residual_tree = tree.flatten(residuals)
        arrays = []
        fixed: list[Any] = []
        for x in residual_leaves:
            if isinstance(x, Array) or (isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind not in "OSUMm"):
                arrays.append(as_array(x) if not isinstance(x, Array) else x)
                fixed.append(AN_ARRAY)
            else:
                fixed.append(x)
        return outs, arrays, UserLinearMap(self, primals, perturbed, outs, residual_tree, fixed, len(arrays))


class UserLinearMap(LinearMap):
    """A user's backward rule as the transpose of a linear map, for flat lists of arrays.

    Attributes:
      owner: the function with the rule.
      nondiff: the positions and values of the arguments that are not differentiated.
      in_tree: the tree of the other arguments.
      in_avals: the types of the leaves of these arguments.
      perturbed: for each of these leaves whether it has a tangent.
      out_tree, result_avals: the tree and the types of the results.
      residual_tree: the tree of the residuals.
      fixed: the leaves of the residuals, with ``AN_ARRAY`` instead of each array.
    """

    def __init__(
        self,
        application: RuleAdapter,
        primals: Sequence[Any],
        perturbed: Sequence[bool],
        outs: Sequence[Any],
        residual_tree: Any,
        fixed: Sequence[Any],
        count: int,
    ) -> None:
        self.owner = owner = application.owner
        self.function = owner.fun
        self.nondiff = application.nondiff
        self.nondiff_values = application.fixed
        self.in_tree = application.in_tree
        self.out_tree = application.out_tree
        self.in_avals = tuple(map(typeof, primals))
        self.perturbed = tuple(perturbed)
        self.result_avals = tuple(map(typeof, outs))
        self.inexact = tuple([is_inexact(a.dtype) for a in self.result_avals])
        self.out_avals = list(compress(self.result_avals, self.inexact))
        self.residual_tree = residual_tree
        self.fixed = tuple(fixed)
        self.count = count

    @property
    def key(self) -> Any:
        return (
            self.owner, self.nondiff, self.in_tree, self.out_tree, self.in_avals, self.perturbed, self.result_avals,
            self.residual_tree, self.fixed,
        )  # fmt: skip

    def transpose(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        return with_masked_zeros(self._by_rule, residuals, cts)

    def _by_rule(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """Apply the backward rule; return the cotangents of the perturbed arguments.

        ``cts`` are the cotangents of the inexact results. Raise if the rule returns a cotangent of a wrong type.
        """
        rule = self.owner.bwd
        assert rule is not None
        arrays, rest = iter(residuals), iter(cts)
        leaves = residuals
        if len(self.fixed) > self.count:
            leaves = [next(arrays) if x is AN_ARRAY else x for x in self.fixed]
        values = tree.unflatten(self.residual_tree, leaves)
        dense = []
        for aval, inexact in zip(self.result_avals, self.inexact, strict=True):
            ct = next(rest) if inexact else ZERO
            dense.append(zero_tangent(aval, self.owner.symbolic_cotangents) if ct is ZERO else ct)
        outer, running.owners = running.owners, (*running.owners, self.owner)
        try:
            ct = dense[0] if self.out_tree is None else tree.unflatten(self.out_tree, dense)
            results = rule(*self.nondiff_values, values, ct)
            if self.owner.returns_logs:
                who = f"the backward rule {name_of(rule)} of {name_of(self.function)}"
                results, logs = paired(results, who)
                log(logs, who)
        finally:
            running.owners = outer
        leaves = self._flat_cotangents(results)
        wrong = []
        for i, (ct, aval) in enumerate(zip(leaves, self.in_avals, strict=True)):
            if ct is ZERO:
                continue
            if not is_inexact(aval.dtype):  # its cotangent is zero, whatever the rule returns
                leaves[i] = ZERO
                continue
            if isinstance(ct, Array) and ct.shape == aval.shape and ct.dtype is aval.dtype:
                continue
            ct = _tangent_leaf(ct, rule)
            if ct.shape == aval.shape and isinstance(ct, Array) and _is_convertible(ct.dtype, aval.dtype):
                # A Python number takes the argument's dtype, and rules that compute in a wider dtype need not convert.
                leaves[i] = convert_element_type(ct, aval.dtype, aval.weak_type)
            elif (ct.shape != aval.shape or ct.dtype != aval.dtype) and not config.disable_bwd_checks:
                wrong.append(mismatch(f"\n  {self._argument(i)}", aval, "cotangent", ct))
            else:
                leaves[i] = ZERO if isinstance(ct, SymbolicZero) else ct
        if wrong:
            raise TangentMismatchError(
                f"the backward rule {name_of(rule)} of {name_of(self.function)} must return cotangents of the shapes "
                "and dtypes of the arguments, but" + "".join(wrong)
            )
        return list(compress(leaves, self.perturbed))

    def _flat_cotangents(self, results: Any) -> list[Any]:
        """Return the leaves of ``results``, the cotangents that the backward rule returned, with ``ZERO`` for None.

        Raise if the tree of ``results`` is wrong.
        """
        rule = self.owner.bwd
        if type(results) is list:
            results = tuple(results)
        if type(results) is tuple:
            leaves, treedef = tree.flatten(results)
            if treedef == self.in_tree:
                return leaves
        who = f"the backward rule {name_of(rule)} of {name_of(self.function)}"
        count = len(tree.treedef_children(self.in_tree))
        if type(results) is not tuple or len(results) != count:
            if type(results) is tuple:
                got = f"{len(results)}: {_short(results)}"
            else:
                form = f"({', '.join(['...'] * count)}{',' * (count == 1)})"
                got = f"{_short(results)} of type {type(results).__name__}; write {form}"
            raise CustomRuleError(
                f"{who} must return a tuple of {count} cotangents, one for each argument that is differentiated, but "
                f"it returned {got}"
            )
        # Name the paths at which the trees differ; None for a subtree is fine.
        where = _paths(self.in_tree)
        returned = tree.leaves_with_path(results, is_leaf=_is_none)
        prefixes = {path[:k] for path in where for k in range(len(path) + 1)}
        covering = {path for path, _ in returned}
        wrong = [
            f"\n  {_short(ct)} is at {tree.keystr(path)}, where the arguments have no array"
            for path, ct in returned if ct is not None and path not in prefixes
        ] + [
            f"\n  nothing is at {tree.keystr(path)}, where the arguments have an array"
            for path in where if covering.isdisjoint(path[:k] for k in range(len(path) + 1))
        ]  # fmt: skip
        if not wrong:
            try:
                spread = tree.broadcast_prefix(results, _outline(self.in_tree), is_leaf=_is_none)
                return [ZERO if ct is None else ct for ct in spread]
            except ValueError:  # other containers, for example a list for a tuple
                pass
        raise CustomRuleError(
            f"{who} must return cotangents with the trees of the arguments, {_show(self.in_tree)}, and None for "
            f"zeros, but it returned {_show(treedef)}{''.join(wrong)}"
        )

    def _argument(self, i: int) -> str:
        """Return a name for leaf ``i`` of the differentiated arguments, such as "argument 0['w']", for errors."""
        path = _paths(self.in_tree)[i]
        position = path[0].idx
        for k, _ in self.nondiff:
            position += k <= position
        return f"argument {position}{tree.keystr(path[1:])}"


_UNKNOWN: Any = object()


class _AnArray:
    """The class of ``AN_ARRAY``, a placeholder for an array among the leaves of residuals."""

    def __repr__(self) -> str:
        return "an array"


AN_ARRAY = _AnArray()


def _is_none(x: Any) -> bool:
    """Whether ``x`` is None; passed as ``is_leaf``, since None is a leaf among cotangents."""
    return x is None


def _is_convertible(dtype: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether a cotangent of dtype ``dtype`` may be converted to ``wanted``.

    It may from a real, integer or boolean dtype to any, and from a complex dtype to another.
    """
    is_real = dtypes.is_float(dtype) or dtypes.is_integer(dtype) or dtypes.is_bool(dtype)
    return is_real or (dtypes.is_complex(dtype) and dtypes.is_complex(wanted))


def _short(x: Any) -> str:
    """Return the repr of an object, truncated to 100 characters."""
    text = repr(x)
    return text if len(text) <= 100 else text[:97] + "..."


def _show(treedef: Any) -> str:
    """Format a tree definition for an error message; None is the tree of a single array."""
    return "that of one array" if treedef is None else str(treedef)


def _paths(treedef: Any) -> list[Any]:
    """Return the path of each leaf of a tree definition; None is the tree of a single array."""
    return [path for path, _ in tree.leaves_with_path(_outline(treedef))]


def _outline(treedef: Any) -> Any:
    """Return a tree of the structure ``treedef`` whose leaves are 0, 1, 2, ...; for None, the single leaf 0."""
    structure = structure_of(treedef)
    return tree.unflatten(structure, range(structure.num_leaves))


def _tangent_leaf(t: Any, rule: Any) -> Any:
    """Convert a tangent or cotangent that ``rule`` returned to an array, but not a symbolic or ``float0`` zero."""
    if isinstance(t, (Array, SymbolicZero)) or getattr(t, "dtype", None) == dtypes.float0:
        return t
    return out_leaf(t, rule)
