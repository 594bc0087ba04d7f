"""Users' primitives, whose rules' results are checked.

Pullback's own rules are tested, and not checked. If a user's rule returns a wrong result, the error names the rule and
quotes the result; without the check, another operation would fail later, or return a wrong number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np

from pullback.core import dtypes, source, trace
from pullback.core.array import SCALARS, Array, ArrayImpl, as_array, number_dtype, read_only, scalar_array, typeof
from pullback.core.config import config
from pullback.core.errors import CustomRuleError, MissingRuleError, OperandError
from pullback.core.jaxpr import infer
from pullback.core.linear import LinearTracer, LinearVar
from pullback.core.naming import quoted
from pullback.core.trace import Rule, Tracer, leaked, state
from pullback.core.types import ZERO, ShapedArray

F = TypeVar("F", bound=Callable[..., Any])


# Errors, and the operands of rules ------------------------------------------------------------------------------------


class _Checks:
    """Checks of what a user's rule returns; methods return the checked result or raise an error that names the rule."""

    __slots__ = ("kind", "primitive", "rule")

    def __init__(self, primitive: trace.Primitive, kind: str, rule: Rule) -> None:
        self.primitive = primitive
        self.kind = kind
        self.rule = rule

    def wrong(self, expected: str, came: str) -> CustomRuleError:
        """Return the error for a rule that must return ``expected``, but returned ``came``; both are descriptions."""
        return CustomRuleError(
            f"the {self.kind} rule of the primitive {self.primitive.name!r}, {source.describe_function(self.rule)}, "
            f"must return {expected}, but returned {came}"
        )

    def several(self, given: Any, expected: str, count: int | None = None) -> Sequence[Any]:
        """Return the rule's result ``given`` if it is a tuple or list, of ``count`` entries if ``count`` is not None.

        Otherwise raise an error that says that the rule must return ``expected``.
        """
        if not isinstance(given, (tuple, list)):
            raise self.wrong(expected, _show(given))
        if count is not None and len(given) != count:
            raise self.wrong(expected, f"{len(given)} of them: {_show(given)}")
        return given

    def pair(self, given: Any, form: str, what: str, check: Callable[..., tuple[Any, Any]]) -> Any:
        """Check a rule's result, a pair ``(out, other)``, and return the checked pair.

        For a primitive with multiple results, the result is a pair of lists, ``(outs, others)``.

        Args:
          given: the rule's result.
          form: a description of the pair for errors, such as "(out, tangent)".
          what: the name of ``other`` for errors, such as "tangent".
          check: ``check(out, other, number) -> (out, other)`` checks one pair; ``number`` is its index in the lists.
        """
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise self.wrong(f"a pair {form}", _show(given))
        if not self.primitive.multiple_results:
            return check(*given)
        outs = self.several(given[0], "a list of results")
        others = self.several(given[1], f"a list of {len(outs)} {what}s, one for each result", len(outs))
        pairs = [check(out, other, i) for i, (out, other) in enumerate(zip(outs, others, strict=True))]
        return [out for out, _ in pairs], [other for _, other in pairs]

    def array(self, x: Any, what: str) -> Any:
        """Return ``x``, an array or a number, as a Pullback array; otherwise raise an error.

        ``what`` is the name of ``x`` for the error, such as "its result".
        """
        if isinstance(x, Array):
            return x
        try:
            return as_array(x)
        except OperandError:
            hint = ""
            if isinstance(x, (tuple, list)) and not self.primitive.multiple_results:
                hint = " (a primitive with multiple_results=True returns lists)"
            raise self.wrong(f"an array as {what}", f"{_show(x)}{hint}") from None

    def typed(self, x: Any, what: str, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return ``x`` as an array if it has this shape and dtype; otherwise raise an error.

        ``what`` is the name of ``x`` for the error, such as "a tangent".
        """
        x = self.array(x, what)
        if x.shape != shape or x.dtype != dtype:
            raise self.wrong(f"{what} of type {ShapedArray(shape, dtype)}", format(typeof(x)))
        return x

    def with_tangent(self, out: Any, tangent: Any, number: int | None = None) -> tuple[Any, Any]:
        """Return ``(out, tangent)`` if the tangent has the type of tangents of ``out``; otherwise raise an error.

        A tangent of dtype float0 is returned as ``ZERO``. ``number`` is the index of ``out`` among several results.
        """
        out = self.array(out, _name("result", number))
        what = _name("tangent", number)
        if tangent is ZERO:
            return out, tangent
        if tangent is None:
            raise self.wrong(f"{what} as an array or ZERO", "None")
        try:
            tangent = self.typed(tangent, what, out.shape, dtypes.tangent_dtype(out.dtype))
        except MissingRuleError:  # an operation on a linear value has no rule that infers the type
            return out, tangent
        return out, ZERO if tangent.dtype == dtypes.float0 else tangent


def _name(what: str, number: int | None) -> str:
    return f"a {what}" if number is None else f"{what} {number}"


def _show(x: Any) -> str:
    """Return a description of ``x``, the result of a rule, for an error message."""
    if isinstance(x, (tuple, list)):
        brackets = "()" if isinstance(x, tuple) else "[]"
        return f"{brackets[0]}{', '.join(map(_show, x))}{brackets[1]}"
    if isinstance(x, Array):
        return format(typeof(x))
    if isinstance(x, np.ndarray):
        return f"an np.ndarray of shape {x.shape} and dtype {x.dtype}"
    return "None" if x is None else f"{quoted(x)} of type {type(x).__name__}"


def as_operands(operands: Sequence[Any]) -> Sequence[Any]:
    """Convert the operands of a rule to arrays, except linear variables.

    Python numbers get the dtype to which NumPy's promotion with the other operands leads.
    """
    if all(isinstance(x, (Array, LinearVar)) for x in operands):
        return operands
    arrays = [x if isinstance(x, LinearVar) or type(x) in SCALARS else as_array(x) for x in operands]
    dtype = number_dtype(arrays)

    def fitted(x: Any) -> Array:
        return as_array(x) if dtypes.is_key(dtype) else scalar_array(dtype.type(x), dtype.kind != "b")

    return tuple([fitted(x) if type(x) in SCALARS else x for x in arrays])


def _tell_types(primals: Sequence[Any], tangents: Sequence[Any]) -> None:
    """Set the types of tangents that are tracers of a linear program, so that they need not be inferred.

    The type of a tangent follows from the type of its primal value.
    """
    for x, t in zip(primals, tangents, strict=True):
        if type(t) is LinearTracer and t.variable._aval is None:
            aval = typeof(x)
            t.variable._aval = aval.update(dtype=dtypes.tangent_dtype(aval.dtype))


# The checks -----------------------------------------------------------------------------------------------------------


def _directly(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return ``function(*args, **kwargs)``.

    This replaces ``state.silently`` while NumPy's warnings are silenced already.
    """
    return function(*args, **kwargs)


def checked_host(primitive: trace.Primitive, rule: Rule, on_arrays: bool = False) -> Rule:
    """Wrap a user's host rule: check its results, and convert them to NumPy values of canonical dtypes.

    Args:
      primitive: the primitive that has this rule.
      rule: the user's function.
      on_arrays: whether ``rule`` takes and returns Pullback's arrays, instead of NumPy's.
    """
    checks = _Checks(primitive, "evaluation", rule)

    def value(x: Any, what: str) -> Any:
        if not on_arrays and isinstance(x, (np.ndarray, np.generic)):
            dtype = dtypes.canonicalize_dtype(x.dtype)
            return x if x.dtype == dtype else x.astype(dtype)
        array = checks.array(x, what)
        if isinstance(array, Tracer):
            raise leaked(array)
        return array._value

    def checked(*values: Any, **params: Any) -> Any:
        if on_arrays:
            arrays = [ArrayImpl(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in values]
            outer, state.silently = state.silently, _directly
            try:
                out = rule(*as_operands(arrays), **params)
            finally:
                state.silently = outer
        else:
            out = rule(*(read_only(x) if isinstance(x, np.ndarray) else x for x in values), **params)
        if primitive.multiple_results:
            results = [value(x, f"result {i}") for i, x in enumerate(checks.several(out, "a list of results"))]
        else:
            results = [value(out, "its result")]
        if config.enable_checks and primitive.abstract_eval_rule is not None:
            _agree(checks, results, values, params)
        return results if primitive.multiple_results else results[0]

    return checked


def _agree(checks: _Checks, results: Sequence[Any], values: Sequence[Any], params: dict[str, Any]) -> None:
    """Raise an error unless ``results`` have the shapes and dtypes that the abstract evaluation rule returns.

    Args:
      checks: makes the error; it has the primitive.
      results: the values that the host rule returned.
      values: the operands of the operation.
      params: the parameters of the operation.
    """
    found = infer(checks.primitive, [typeof(x) for x in as_operands(values)], params)
    expected = found if checks.primitive.multiple_results else [found]
    if [(x.shape, x.dtype) for x in results] != [(a.shape, a.dtype) for a in expected]:
        given = ", ".join(format(ShapedArray(x.shape, x.dtype)) for x in results)
        raise checks.wrong(f"{', '.join(map(format, expected))}, as its abstract evaluation rule says", given)


def checked_abstract_eval(primitive: trace.Primitive, rule: Rule) -> Rule:
    """Wrap a user's abstract evaluation rule: convert its results, objects with shape and dtype, to ShapedArrays."""
    checks = _Checks(primitive, "abstract_eval", rule)

    def aval(x: Any, what: str) -> ShapedArray:
        if type(x) is ShapedArray and type(x.shape) is tuple and isinstance(x.dtype, np.dtype) and not x.weak_type:
            return x
        if isinstance(x, type) or not (hasattr(x, "shape") and hasattr(x, "dtype")):
            raise checks.wrong(f"a ShapedArray as {what}", _show(x))
        return ShapedArray(tuple(map(operator.index, x.shape)), dtypes.canonicalize_dtype(x.dtype))

    def checked(*avals: ShapedArray, **params: Any) -> Any:
        out = rule(*avals, **params)
        if not primitive.multiple_results:
            return aval(out, "the type of its result")
        expected = "a list of ShapedArray, one for each result"
        return [aval(x, f"the type of result {i}") for i, x in enumerate(checks.several(out, expected))]

    return checked


def checked_jvp(primitive: trace.Primitive, rule: Rule) -> Rule:
    """Wrap a user's jvp rule: check that it returns a tangent that fits its result, for each result."""
    checks = _Checks(primitive, "jvp", rule)

    def checked(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        primals = as_operands(primals)
        _tell_types(primals, tangents)
        return checks.pair(rule(primals, tangents, **params), "(out, tangent)", "tangent", checks.with_tangent)

    return checked


def checked_tangent(primitive: trace.Primitive, rule: Rule) -> Rule:
    """Wrap a user's tangent rule, a jvp rule that returns the tangent alone: check that the tangent fits the result."""
    checks = _Checks(primitive, "tangent", rule)

    def checked(ans: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        primals = as_operands(primals)
        _tell_types(primals, tangents)
        return checks.with_tangent(ans, rule(ans, primals, tangents))[1]

    return checked


def checked_transpose(primitive: trace.Primitive, rule: Rule) -> Rule:
    """Wrap a user's transposition rule: check that it returns a fitting cotangent for each linear operand."""
    checks = _Checks(primitive, "transpose", rule)

    def cotangent(i: int, operand: Any, ct: Any) -> Any:
        # Skip linear values of an outer derivative: their types would be inferred along its tape.
        if type(operand) is not LinearVar or ct is None or ct is ZERO or type(ct) is LinearTracer:
            return ct
        aval, what = operand._aval, f"cotangent {i}"
        return checks.array(ct, what) if aval is None else checks.typed(ct, what, aval.shape, aval.dtype)

    def checked(ct: Any, *operands: Any, **params: Any) -> list[Any]:
        count = len(operands)
        expected = f"a tuple of {count} cotangents, one for each operand (None for those that are not linear)"
        cts = checks.several(rule(ct, *as_operands(operands), **params), expected, count)
        return [cotangent(i, x, c) for i, (x, c) in enumerate(zip(operands, cts, strict=True))]

    return checked


def checked_batch(primitive: trace.Primitive, rule: Rule) -> Rule:
    """Wrap a user's batching rule: check that it returns each result with the position of its mapped axis, or None."""
    checks = _Checks(primitive, "batch", rule)

    def mapped(size: int, out: Any, dim: Any, number: int | None = None) -> tuple[Any, int | None]:
        what = _name("result", number)
        out = checks.array(out, what)
        if dim is None:
            return out, None
        try:
            dim = operator.index(dim)
        except TypeError:
            raise checks.wrong(f"the position of the mapped axis in {what}, or None", _show(dim)) from None
        if not 0 <= dim < len(out.shape) or out.shape[dim] != size:
            expected = f"{what} with the mapped axis, of size {size}, at the position that it says"
            raise checks.wrong(expected, f"{typeof(out)} and the position {dim}")
        return out, dim

    def checked(axis: Any, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        return checks.pair(
            rule(axis, as_operands(args), dims, **params), "(out, dim)", "position", partial(mapped, axis.size)
        )

    return checked


def checked_lowering(primitive: trace.Primitive, rule: Rule) -> Rule:
    """Wrap a user's lowering rule: check that its values have the types that abstract evaluation returns."""
    checks = _Checks(primitive, "lowering", rule)

    def check(value: Any, aval: ShapedArray, what: str) -> None:
        if not (hasattr(value, "name") and hasattr(value, "shape") and hasattr(value, "dtype")):
            raise checks.wrong(f"{what} as a value of the builder", _show(value))
        if value.shape != aval.shape or value.dtype != aval.dtype:
            came = format(ShapedArray(value.shape, value.dtype))
            raise checks.wrong(f"{what} of type {aval}, as its abstract evaluation rule says", came)

    def checked(hlo: Any, *operands: Any, **params: Any) -> Any:
        expected = hlo.results
        out = rule(hlo, *operands, **params)
        if not primitive.multiple_results:
            check(out, expected[0], "its result")
            return out
        outs = checks.several(out, f"a list of {len(expected)} values, one for each result", len(expected))
        for i, (value, aval) in enumerate(zip(outs, expected, strict=True)):
            check(value, aval, f"result {i}")
        return outs

    return checked


# Users' primitives ----------------------------------------------------------------------------------------------------


def _checked(register: F, check: Callable[[trace.Primitive, Rule], Rule]) -> F:
    """Wrap ``register``, a method of ``Primitive`` such as ``jvp``: it then registers ``check(primitive, rule)``.

    The wrapped method returns the user's rule unchanged.
    """

    @wraps(register)
    def register_checked(primitive: trace.Primitive, rule: Rule, *args: Any, **kwargs: Any) -> Rule:
        register(primitive, check(primitive, rule), *args, **kwargs)
        return rule

    return register_checked  # type: ignore[return-value]


class Primitive(trace.Primitive):
    """A user's operation: a name, and a rule for each transformation.

    Operands are positional. Parameters are keywords; they must be hashable, and none may be called ``axis``. The
    methods below are decorators that register rules. Every rule is optional: a transformation that needs a missing rule
    raises an error with the name of the rule. Results of rules are checked. With ``multiple_results``, rules return
    lists of results, tangents, positions and types.

    Args:
      name: the name of the operation in programs and errors.
      multiple_results: whether the operation returns a list of results.
      keeps_weak_type: whether the result is weakly typed if all operands are; None if the parameter ``weak_type`` says.
      effect: whether it has a side effect, so that programs run it exactly once, even if its results are unused.
      **traits: values of traits, by their names in ``core.traits``.

    Rules:
      host: ``(*values, **params) -> value`` computes with NumPy. The values are NumPy arrays and scalars; Python
        numbers remain Python numbers if another operand is an array.
      abstract_eval: ``(*avals, **params) -> ShapedArray`` returns the type of the result, or raises an error if the
        operands do not fit.
      jvp: ``(primals, tangents, **params) -> (out, tangent)``; some tangents, but not all, may be ``ZERO``.
      tangent: ``(ans, primals, tangents) -> tangent``, a shorter jvp rule for a primitive without parameters; ``ans``
        is the result.
      transpose: ``(ct, *operands, **params) -> cotangents``. A linear operand is passed as a ``LinearVar``. There is a
        cotangent for each operand, None for operands that are not linear.
      batch: ``(axis, args, dims, **params) -> (out, dim)``; a dim is the position of the mapped axis, or None.
      lowering: ``(hlo, *operands, **params) -> value`` writes the operation with a ``Builder``.

    Raises:
      CustomRuleError: a rule that is used returns a wrong result (a TypeError).
      MissingRuleError: a transformation needs a missing rule (a NotImplementedError).

    >>> import numpy as np
    >>> from pullback import grad, vmap
    >>> from pullback.extend import Primitive
    >>> cube_p = Primitive("cube")
    >>> cube = cube_p.host(lambda x: x * x * x)
    >>> rule = cube_p.tangent(lambda ans, primals, tangents: 3 * primals[0] ** 2 * tangents[0])
    >>> print(grad(cube_p.bind)(2.0))
    12.0
    >>> vmap(cube_p.bind)(np.ones(3))
    Traceback (most recent call last):
    pullback.core.errors.MissingRuleError: the primitive 'cube' has no batch rule, which vmap needs; register one ...
    """

    __slots__ = ()

    host = _checked(trace.Primitive.host, checked_host)
    abstract_eval = _checked(trace.Primitive.abstract_eval, checked_abstract_eval)
    jvp = _checked(trace.Primitive.jvp, checked_jvp)
    tangent = _checked(trace.Primitive.tangent, checked_tangent)
    transpose = _checked(trace.Primitive.transpose, checked_transpose)
    batch = _checked(trace.Primitive.batch, checked_batch)
    lowering = _checked(trace.Primitive.lowering, checked_lowering)

    def def_impl(self, rule: F) -> F:
        """Register ``rule(*arrays, **params) -> array``, which evaluates the operation on Pullback's arrays, as in JAX.

        It replaces the rule :meth:`host`, which computes with NumPy's arrays. The result may be an array of NumPy.
        """
        self.host_rule = checked_host(self, rule, on_arrays=True)
        vars(self)["impl"] = rule  # as in JAX, p.impl(*arrays, **params) calls the rule itself
        return rule

    def def_abstract_eval(self, rule: F) -> F:
        """Register ``rule(*avals, **params) -> aval``, the type of the result: JAX's name of :meth:`abstract_eval`."""
        return self.abstract_eval(rule)

    def def_effectful_abstract_eval(self, rule: F) -> F:
        """Register ``rule(*avals, **params) -> (aval, effects)``, and declare that the operation has a side effect.

        The effects that the rule returns are ignored. Programs run such an operation exactly once.
        """
        self.effect = True

        @wraps(rule)
        def types(*avals: ShapedArray, **params: Any) -> Any:
            return rule(*avals, **params)[0]

        self.abstract_eval(types)
        return rule
