"""``custom_jvp`` and ``custom_vjp``: functions with custom derivative rules."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

import numpy as np

from pullback.core import source, tree
from pullback.core.arguments import flag, is_listed, require_function
from pullback.core.array import typeof
from pullback.core.config import config
from pullback.core.errors import ArgumentError, ClosedOverError, CustomRuleError, MissingCustomRuleError
from pullback.core.refs import take_refs
from pullback.core.registry import OwnsPrograms
from pullback.core.trace import Primitive, Tracer, state
from pullback.primitives.operands import stop_gradient
from pullback.transforms.custom.closed_over import explained
from pullback.transforms.custom.custom_calls import DerivativeCall, call_p, equation
from pullback.transforms.custom.ref_arguments import with_contents
from pullback.transforms.custom.rule_adapter import HasRules, RuleAdapter, SymbolicZero, running, zero_tangent
from pullback.transforms.functions.api_boundary import qualified_name
from pullback.transforms.functions.arguments import name_of, to_arrays
from pullback.transforms.traces.refs import Scope
from pullback.transforms.traces.stage import StageTrace

custom_jvp_call_p = equation("custom_jvp_call")
custom_vjp_call_p = equation("custom_vjp_call")


# The functions with rules -------------------------------------------------------------------------------------------

_SETTERS = frozenset(("def_vmap", "defjvp", "defjvps", "defvjp", "defvjp_with_logs"))
P = ParamSpec("P")
Rule = TypeVar("Rule", bound=Callable[..., Any])
R = TypeVar("R")


class FunctionWithRules(OwnsPrograms):
    """A user's function with custom rules. It has the name of the original function."""

    _transformation: str
    _setter: str  # the method that sets the rule which a call needs

    __name__: str

    def __init__(self, fun: Callable[..., Any]) -> None:
        require_function(self._transformation, "fun", fun)
        source.named_as(fun)(self)
        self.fun = fun

    @property
    def described(self) -> str:
        """The name and source location of the function, for error messages."""
        return name_of(self.fun)

    def __getattr__(self, name: str) -> Any:
        """Return the method of an inner function with rules of another kind, which sets its rule."""
        if name in _SETTERS:
            method = getattr(vars(self).get("fun"), name, None)
            if method is not None:
                return method
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _without_rule(self) -> MissingCustomRuleError:
        """Return the error for a call of a function whose rule is not set."""
        return MissingCustomRuleError(
            f"{self.described} was called, but it is a {self._transformation} function without a rule; set one with "
            f"{self._setter}"
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        return qualified_name(self) or super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return f"<{self._transformation} function {self.described}>"


def _say_that_rules_take_references() -> None:
    """Note in the programs under construction that a rule takes references, to which it may write later."""
    trace: Any = state.trace
    while not trace.is_bottom:
        if isinstance(trace, StageTrace) and isinstance(trace.outside, Scope):
            trace.outside.in_rules = True
        trace = trace.parent


class CustomFunction(HasRules, FunctionWithRules, Generic[P, R]):
    """A function with custom derivative rules: the base of ``custom_jvp`` and ``custom_vjp``."""

    _equation: Primitive
    _rule: str  # the attribute of the rule which a call needs

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        super().__init__(fun)
        self.nondiff_argnums = _nondiff(fun, nondiff_argnums, nondiff_argnames, self._transformation)
        self._fewest, self._most = _arity(fun)
        self._staged = False

    # Rules

    def defjvp(self, jvp: Rule, symbolic_zeros: bool = False) -> Rule:
        """Set the rule for forward mode.

        Args:
          jvp: ``rule(*nondiff_args, primals, tangents) -> (out, tangent_out)``, linear in the tangents; primals
            and tangents are tuples with an entry for each of the other arguments.
          symbolic_zeros: whether the rule receives ``SymbolicZero`` for tangents that are known to be zero, instead of
            arrays of zeros; it may return them, too.

        Returns:
          The rule, for use as a decorator.

        >>> import pullback.numpy as jnp
        >>> from pullback import custom_jvp, grad
        >>> @custom_jvp
        ... def log1pexp(x):
        ...     return jnp.log(1.0 + jnp.exp(x))
        >>> @log1pexp.defjvp
        ... def log1pexp_jvp(primals, tangents):
        ...     (x,), (t,) = primals, tangents
        ...     return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * t
        >>> print(grad(log1pexp)(100.0))
        1.0
        """
        who = f"defjvp of {self.described}"
        require_function(who, "jvp", jvp)
        symbolic_zeros = flag(who, "symbolic_zeros", symbolic_zeros)
        self._forget_programs()
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set a rule for each argument: ``rule(tangent, out, *primals) -> tangent_out``.

        The tangent of the result is the sum of what the rules return. A rule is None for an argument whose derivative
        is zero.

        Raises:
          ArgumentError: the function has arguments that are not differentiated (a TypeError).

        >>> import pullback.numpy as jnp
        >>> from pullback import custom_jvp, grad
        >>> f = custom_jvp(lambda x, y: jnp.sin(x) * y)
        >>> f.defjvps(lambda t, ans, x, y: jnp.cos(x) * t * y, lambda t, ans, x, y: jnp.sin(x) * t)
        >>> print(grad(f)(2.0, 3.0))
        -1.2484405
        """
        if self.nondiff_argnums:
            raise ArgumentError(
                f"defjvps of {self.described} takes a rule for each argument, which does not go with nondiff_argnums="
                f"{self.nondiff_argnums}; use defjvp"
            )
        for rule in jvps:
            if rule is not None:
                require_function(f"defjvps of {self.described}", "a rule", rule)

        def jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
            if len(primals) != len(jvps):
                raise CustomRuleError(
                    f"defjvps of {self.described} was given {len(jvps)} rules, but the function was called with "
                    f"{len(primals)} arguments; pass one for each, and None for a derivative of zero"
                )
            fun: Any = self
            out = fun(*primals)
            total = None
            for rule, t in zip(jvps, tangents, strict=True):
                if rule is None or isinstance(t, SymbolicZero):
                    continue
                term = rule(t, out, *primals)
                total = term if total is None else tree.tree_map(lambda a, b: a + b, total, term)
            return out, tree.tree_map(lambda x: zero_tangent(typeof(x), True), out) if total is None else total

        self.defjvp(jvp, symbolic_zeros=True)

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the forward and the backward rule for reverse mode.

        Args:
          fwd: ``fwd(*args) -> (out, residuals)``, where ``residuals`` is a tree of values that the backward rule needs.
          bwd: ``bwd(*nondiff_args, residuals, ct) -> cts``, a tuple (or list) of one cotangent for each of the other
            arguments, of the same tree and shapes; real numbers of another dtype are converted. None stands for a zero
            cotangent, or a tree of zeros. Under ``vmap`` the rule returns the cotangents of one example; the cotangents
            of an argument that is not mapped are summed over the examples. If no argument is mapped, the rule is called
            once, with the sum of the cotangents of all examples.
          symbolic_zeros: whether ``fwd`` receives a ``CustomVJPPrimal`` for each array, which says whether derivatives
            with respect to the array are needed, and ``bwd`` a ``SymbolicZero`` for each cotangent that is known to be
            zero.
          optimize_remat: accepted for compatibility.

        >>> import pullback.numpy as jnp
        >>> from pullback import custom_vjp, grad
        >>> @custom_vjp
        ... def clip_gradient(x):
        ...     return x
        >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, ct: (jnp.clip(ct, -1.0, 1.0),))
        >>> print(grad(lambda x: 10.0 * clip_gradient(x))(3.0))
        1.0
        """
        who = f"defvjp of {self.described}"
        require_function(who, "fwd", fwd)
        require_function(who, "bwd", bwd)
        symbolic_zeros = flag(who, "symbolic_zeros", symbolic_zeros)
        self._forget_programs()
        self.fwd = fwd
        self.bwd = bwd
        self.symbolic_cotangents = symbolic_zeros
        self.returns_logs = False

    def defvjp_with_logs(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the rules for reverse mode, of which the backward rule also returns values to log.

        Args:
          fwd: as for :meth:`defvjp`.
          bwd: ``bwd(*nondiff_args, residuals, ct) -> (cts, logs)``, where ``cts`` is what the rule of :meth:`defvjp`
            returns, and ``logs`` a dictionary of trees, or None. ``vjp_fun.with_logs(ct)`` returns them; other calls
            drop them.
          symbolic_zeros, optimize_remat: as for :meth:`defvjp`.

        >>> import pullback.numpy as jnp
        >>> from pullback import custom_vjp, vjp
        >>> @custom_vjp
        ... def watched(x):
        ...     return x
        >>> watched.defvjp_with_logs(lambda x: (x, None), lambda _, ct: ((ct,), {"cotangent": ct}))
        >>> out, pull = vjp(lambda x: 3.0 * watched(x), 2.0)
        >>> cts, logs = pull.with_logs(1.0)
        >>> print(logs["cotangent"])
        3.0
        """
        self.defvjp(fwd, bwd, symbolic_zeros, optimize_remat)
        self.returns_logs = True

    def _forget_programs(self) -> None:
        """Clear all caches if the function was staged, since programs in them may hold rules that are replaced."""
        if self._staged:
            from pullback.transforms.jit.jit import clear_caches

            clear_caches()
            self._staged = False

    def _check_nondiff(self, i: int, value: Any) -> Any:
        """Return ``value``, argument ``i`` of a call, which is not differentiated, in the form that rules receive.

        Raise if a derivative with respect to the value is being taken; for ``custom_vjp``, raise if the value is
        traced.
        """
        raise NotImplementedError

    # Calling

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if getattr(self, self._rule) is None:
                raise self._without_rule()
            if kwargs or not self._fewest <= len(args) <= self._most:
                args = by_position(self.fun, self._transformation, args, kwargs)  # type: ignore[assignment]
            nondiff: tuple[tuple[int, Any], ...] = ()
            others: tuple[Any, ...] = args
            if self.nondiff_argnums:
                fixed = {i % len(args) for i in self.nondiff_argnums if -len(args) <= i < len(args)}
                nondiff = tuple((i, self._check_nondiff(i, args[i])) for i in sorted(fixed))
                others = tuple([x for i, x in enumerate(args) if i not in fixed])
            leaves, in_tree = tree.flatten(others)
            refs = take_refs(leaves)
            arrays = to_arrays(leaves, self._transformation, self.fun, others)
            application = RuleAdapter(self, nondiff, in_tree)
            if refs:
                application, application.opaque = with_contents(application, refs, arrays)
            if config.check_custom_rules and checker is not None:
                checker(self, args)
            if state.trace.is_bottom:
                outs = application(*arrays)
            else:
                if not state.trace.eager:
                    self._staged = True
                jvp = None if self.jvp is None else application.jvp
                forward = None if self.fwd is None else application.forward
                call = DerivativeCall(self._equation, self.fun, application, jvp, forward)
                call.in_own_rule = self in running.owners
                call.rules = (self, nondiff, in_tree)
                if refs:  # calls with references are not interchangeable
                    call.rules = None
                    if any(ref.home is not state.trace or ref.is_argument for ref in refs.values()):
                        _say_that_rules_take_references()
                outs = explained(self.fun, call_p.bind, *arrays, call=call)
            if application.out_tree is None:
                return outs[0]  # type: ignore[no-any-return]
            return tree.unflatten(application.out_tree, outs)  # type: ignore[no-any-return]
        except Exception as error:
            source.hide_internal_frames(error)
            raise

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> Callable[..., R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        names = "jvp", "fwd", "bwd", "symbolic_zeros", "symbolic_cotangents", "returns_logs"
        return type(self), (self.fun, self.nondiff_argnums), {name: getattr(self, name) for name in names}


tree.register_leaf_type(CustomFunction)
checker: Callable[[CustomFunction[..., Any], tuple[Any, ...]], None] | None = None
"""Checks the rules at each call if the switch ``check_custom_rules`` is on; ``testing`` sets it."""


class custom_jvp(CustomFunction[P, R]):
    """A function with a custom rule for forward mode, which reverse mode transposes.

    Args:
      fun: takes and returns trees of arrays.
      nondiff_argnums, nondiff_argnames: arguments that are not differentiated, by position and by name. They may be any
        objects, for example functions, and are the first arguments of the rule.

    The method ``defjvp`` sets the rule, and ``defjvps`` a rule for each argument. ``defvjp`` may set a rule for reverse
    mode in addition; each mode then uses its own rule.

    Raises:
      MissingCustomRuleError: from a call before the rule was set (an AttributeError).
      ClosedOverError: an argument of ``nondiff_argnums`` is being differentiated (a TypeError).
      CustomRuleError: the result of a rule has another form than required; the message names it (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import custom_jvp, grad
    >>> @custom_jvp
    ... def f(x, y):
    ...     return jnp.sin(x) * y
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     x, y = primals
    ...     x_dot, y_dot = tangents
    ...     return f(x, y), jnp.cos(x) * x_dot * y + jnp.sin(x) * y_dot
    >>> print(grad(f)(2.0, 3.0))
    -1.2484405
    """

    _transformation, _setter = "custom_jvp", "defjvp"
    _rule, _equation = "jvp", custom_jvp_call_p

    def _check_nondiff(self, i: int, value: Any) -> Any:
        for x in tree.leaves(value):
            if isinstance(x, Tracer) and x.differentiated() is not None:
                raise ClosedOverError(
                    f"argument {i} of {self.described} is one of nondiff_argnums, but its value is being "
                    f"differentiated, and the derivative would be lost: {x!r}. Pass it as an ordinary argument, so "
                    f"that the rule receives its tangent; or pass its value only, lax.stop_gradient(x). The value "
                    f"comes from {x.origin()}"
                )
        return tree.tree_map(lambda x: stop_gradient(x) if isinstance(x, Tracer) else x, value)


class custom_vjp(CustomFunction[P, R]):
    """A function with a custom rule for reverse mode.

    Args:
      fun: takes and returns trees of arrays.
      nondiff_argnums, nondiff_argnames: arguments that are not differentiated, by position and by name. They may be any
        objects except traced arrays, and precede the residuals among the arguments of the backward rule.

    The method ``defvjp`` sets the rule. Forward mode (``jvp``, ``jacfwd``, ``hessian``) transposes the backward rule,
    which must be linear in the cotangent. If it is not, ``defjvp`` can set a rule for forward mode in addition; each
    mode then uses its own rule.

    Raises:
      MissingCustomRuleError: from a call before the rule was set (an AttributeError).
      CustomRuleError: the result of a rule has another form than required; the message names it (a TypeError).
      NotLinearError: forward mode needs the transpose of a backward rule that is not linear (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import custom_vjp, grad
    >>> @custom_vjp
    ... def f(x, y):
    ...     return jnp.sin(x) * y
    >>> def f_fwd(x, y):
    ...     return f(x, y), (jnp.cos(x), jnp.sin(x), y)
    >>> def f_bwd(residuals, ct):
    ...     cos_x, sin_x, y = residuals
    ...     return cos_x * ct * y, sin_x * ct
    >>> f.defvjp(f_fwd, f_bwd)
    >>> print(grad(f)(2.0, 3.0))
    -1.2484405
    """

    _transformation, _setter = "custom_vjp", "defvjp"
    _rule, _equation = "fwd", custom_vjp_call_p

    def _check_nondiff(self, i: int, value: Any) -> Any:
        for x in tree.leaves(value):
            if isinstance(x, Tracer):
                raise ClosedOverError(
                    f"argument {i} of {self.described} is one of nondiff_argnums, but its value is traced: {x!r}. "
                    f"Pass arrays as ordinary arguments, for which the backward rule may return None; "
                    f"nondiff_argnums is for functions, strings and the like. The value comes from {x.origin()}"
                )
        return value


def by_position(fun: Any, who: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return all arguments of a call by position, with defaults; rules take no keyword arguments.

    Raise if that is impossible, as for a keyword-only argument. ``who`` is the name of the decorator, for error
    messages.
    """
    try:
        signature = _signature(fun)
    except (TypeError, ValueError):
        if kwargs:
            raise ArgumentError(
                f"{name_of(fun)} was called with arguments by keyword ({', '.join(kwargs)}), but has no signature "
                f"that defines their positions, which rules of {who} need"
            ) from None
        return args
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentError(f"{name_of(fun)}: {error}") from None
    bound.apply_defaults()
    by_keyword = [name for name in bound.kwargs if name in kwargs]
    if by_keyword:  # other keywords have their defaults, for example those of a ``partial``
        raise ArgumentError(
            f"{name_of(fun)}: the arguments {', '.join(by_keyword)} are keyword-only, but the rules of a {who} "
            f"function take all arguments by position; make them positional"
        )
    return bound.args


def _nondiff(fun: Any, nums: Any, names: Any, who: str) -> tuple[int, ...]:
    """Return the positions of the arguments that are not differentiated, each once.

    Args:
      fun: the function.
      nums, names: the positions and the names that the user passed.
      who: the name of the decorator, for error messages.

    Raises:
      ArgumentError: a position or a name is not that of an argument of the function.
    """
    found = list(nums) if isinstance(nums, Sequence) else [nums]
    names = (names,) if not isinstance(names, (list, tuple, set, frozenset)) else tuple(names)
    if any(type(i) is not int for i in found):
        raise ArgumentError(f"{who} of {name_of(fun)}: nondiff_argnums must be ints, got {nums!r}")
    fewest, most = _arity(fun) if found else (0, 0)
    if fewest <= most and any(not -most <= i < most for i in found):
        raise ArgumentError(f"{who} of {name_of(fun)}, which takes {most} arguments: nondiff_argnums is {nums!r}")
    if names:
        parameters = list(source.signature(fun).parameters)
        for name in names:
            if not is_listed(name, parameters):
                raise ArgumentError(f"{who}: {name_of(fun)} has no argument {name!r}, which occurs in nondiff_argnames")
            found.append(parameters.index(name))
    return tuple(dict.fromkeys(found))


def _signature(fun: Any) -> inspect.Signature:
    """Return the signature of a function; raise ValueError for a ufunc, whose signature has NumPy's own parameters."""
    if isinstance(fun, np.ufunc):
        raise ValueError("a ufunc")
    return source.signature(fun)


def _arity(fun: Any) -> tuple[int, int]:
    """Return the smallest and the largest number of positional arguments that set all parameters of ``fun``.

    A call with such a number need not be bound to the signature, which is slow. Examples: ``f(x, y=0)`` -> (2, 2),
    ``f(x, *ys)`` -> (1, ``sys.maxsize``). With keyword-only parameters or ``**kwargs``, return the empty range (1, 0);
    without a known signature, (0, ``sys.maxsize``).
    """
    try:
        parameters = _signature(fun).parameters.values()
    except (TypeError, ValueError):
        return 0, sys.maxsize
    count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    others = {p.kind for p in parameters if p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)}
    if not others:
        return count, count
    return (count, sys.maxsize) if others == {inspect.Parameter.VAR_POSITIONAL} else (1, 0)
