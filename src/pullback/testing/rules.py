"""``check_rule``: tests of the derivative rules of a custom_jvp or custom_vjp function at a point."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from textwrap import indent
from types import MethodType
from typing import Any, NamedTuple

import numpy as np

from pullback.core import dtypes, source, tree
from pullback.core.array import ArrayImpl, host_value, typeof
from pullback.core.errors import (
    ArgumentError,
    MissingCustomRuleError,
    PullbackError,
    RuleCheckError,
)
from pullback.core.trace import Tracer, state
from pullback.testing.comparison import Comparison, Reference, differentiated, finite_and_beyond, nonlinearity
from pullback.testing.differences import Point, Space, Tolerance, double_precision, precise_point, random_vector
from pullback.testing.rule_maps import JVPRule, Rule, Subject, VJPRule
from pullback.transforms.autodiff.grad import vjp
from pullback.transforms.custom import custom_rules
from pullback.transforms.custom.custom_rules import CustomFunction, by_position
from pullback.transforms.programs.callbacks import NotRepeatable, without_effects
from pullback.transforms.traces.batch import BatchTracer
from pullback.transforms.traces.forward import JVPTracer

SCALES = (64.0, -1 / 64)
"""Factors of vectors by which linearity is tested; large and small ones reveal clipping."""


class Finding(NamedTuple):
    """A mistake in a rule.

    Attributes:
      kind: "structure", "value", "linearity", "backward linearity", "transposition", "symbolic zeros", "derivative",
        "precision" or "consistency".
      rule: the name of the rule, with its line.
      message: the value, the expected value, and what is probably wrong.
    """

    kind: str
    rule: str
    message: str


def check_rule(
    f: Callable[..., Any],
    *args: Any,
    atol: float | None = None,
    rtol: float | None = None,
    linear: bool | None = None,
    derivative: bool | None = None,
) -> None:
    """Check the derivative rules of a ``custom_jvp`` or ``custom_vjp`` function at a point.

    Each rule is tested for structure (its results are of the trees, shapes and dtypes that they must be), value (it
    returns the function's own result with the derivative), linearity (in the tangents, or in the cotangent), and the
    derivative: against differentiation of the function without its rules, where that is finite, and against
    differences, where these are. Where both are not finite, at a singularity, any derivative is right. Two rules of one
    function are compared. All is done in float64 if the function allows it, then in the dtype of the arguments.

    Args:
      f: the function; a method, or a ``functools.partial`` of it, too.
      *args: the point: its arguments, by position, of any trees of arrays. Near it the function should be smooth.
      atol, rtol: the allowed absolute error of a component, and its error relative to the expected value; by default
        the errors that rounding explains.
      linear: whether a backward rule must be linear in the cotangent, which forward mode needs. False allows one that
        clips, for example; its derivative is not compared if it is not linear.
      derivative: whether the rules must return the function's true derivative. False is for rules that return another
        derivative on purpose. The defaults of both are true. A dictionary ``f.rule_check`` may give other defaults for
        these four, which the switch ``check_custom_rules`` heeds too.

    Raises:
      RuleCheckError: a rule is wrong; the message lists all mistakes, each with the rule, the component, its value, the
        expected value, and what is probably wrong. Its ``findings`` hold the same (an AssertionError).
      ArgumentError: ``f`` has no rules, or an argument has no known value (a TypeError).
      MissingCustomRuleError: the rules of ``f`` have not been given yet (an AttributeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import custom_jvp
    >>> from pullback.custom_derivatives import check_rule
    >>> f = custom_jvp(lambda x: jnp.sin(x))
    >>> f.defjvps(lambda t, ans, x: 1.5 * jnp.cos(x) * t)
    >>> try:
    ...     check_rule(f, 2.0)
    ... except AssertionError as error:
    ...     print("by a factor of 1.5" in str(error))
    True
    """
    function, args = _function_of(f, args)
    who = function.described
    if getattr(function, function._rule) is None:
        raise MissingCustomRuleError(f"check_rule: {who} has no rule yet; set one with {function._setter}")
    if not function._fewest <= len(args) <= function._most:
        args = by_position(function.fun, "check_rule", args, {})
    known = tree.tree_map(_known, args)
    if any(x is _UNKNOWN for x in tree.leaves(known)):
        raise ArgumentError(f"check_rule of {who} needs concrete arguments, got {args!r}")
    overrides = {"atol": atol, "rtol": rtol, "linear": linear, "derivative": derivative}
    overrides = {name: setting for name, setting in overrides.items() if setting is not None}
    settings = _Settings(**{**getattr(function, "rule_check", {}), **overrides})
    with _at_the_bottom(), np.errstate(all="ignore"):
        findings = _Check(Subject(function, known), settings).findings
    if findings:
        raise _report(function, findings)


def _function_of(f: Any, args: tuple[Any, ...]) -> tuple[CustomFunction, tuple[Any, ...]]:
    """Unwrap methods and partial applications of a function with custom rules.

    Returns:
      The ``custom_jvp`` or ``custom_vjp`` function, and all of its arguments: the bound ones, then ``args``.
    """
    while not isinstance(f, CustomFunction):
        if isinstance(f, MethodType):
            f, args = f.__func__, (f.__self__, *args)
        elif isinstance(f, functools.partial) and not f.keywords:
            f, args = f.func, (*f.args, *args)
        else:
            raise ArgumentError(
                "check_rule takes a custom_jvp or custom_vjp function, or a method or partial of one without keywords, "
                f"got {f!r} of type {type(f).__name__}"
            )
    return f, args


def _report(function: CustomFunction, findings: Sequence[Finding]) -> RuleCheckError:
    count = f"{len(findings)} fault{'s' * (len(findings) > 1)}"
    lines = [f"check_rule found {count} in the rules of {function.described}:"]
    lines += [f"  {i}. {found.kind}: the {found.rule} {found.message}" for i, found in enumerate(findings, 1)]
    if any(found.kind == "derivative" for found in findings):
        lines.append("  If the rule intentionally defines another derivative, pass derivative=False.")
    error = RuleCheckError("\n".join(lines))
    error.findings = tuple(findings)
    return error


# The checks ----------------------------------------------------------------------------------------------------------


class _Settings(NamedTuple):
    atol: float | None = None
    rtol: float | None = None
    linear: bool = True
    derivative: bool = True


class _Check:
    """Checks all rules of a function at a point, and collects the mistakes.

    Attributes:
      native: the function at the point, in the dtype of the arguments.
      precise: the function at the point, in float64; None if it raises or returns other values there.
      findings: the mistakes.
    """

    def __init__(self, subject: Subject, settings: _Settings) -> None:
        self.subject = subject
        self.settings = settings
        self.findings: list[Finding] = []
        owner = subject.owner
        self.out = subject.plain(*subject.args)
        self.native = Point(subject.plain, subject.args, None, subject.labels)
        with double_precision():
            self.precise = precise_point(subject.plain, subject.args, None, subject.labels, overflow=True)
        kinds: list[type[Rule]] = [JVPRule] * (owner.jvp is not None) + [VJPRule] * (owner.fwd is not None)
        sound = [kind for kind in kinds if self._structure(kind)]
        for kind in sound:
            self._symbolic_zeros(kind)
        linear = [kind for kind in sound if self._linearity(kind)]
        if settings.derivative:
            self._derivatives(linear)
        if len(linear) == 2 and not any(found.kind == "derivative" for found in self.findings):
            self._consistency()

    def _found(self, kind: str, rule: type[Rule], message: str, value: bool = False) -> None:
        self.findings.append(Finding(kind, rule.name_in(self.subject.owner, value), message))

    def _structure(self, kind: type[Rule]) -> bool:
        """Check the trees and types of the results of a rule, and then their values; record mistakes.

        ``kind`` is the class of the rule. Return False if the rule raises, or a tree or type is wrong.
        """
        try:
            outs = kind(self.subject, self.native, self.subject.leaves).results()
        except NotRepeatable:
            raise
        except PullbackError as error:
            self._found("structure", kind, f"returns a wrong type or structure:\n{indent(str(error), '     ')}")
            return False
        except Exception as error:
            self._found("structure", kind, f"raised {_raised(error)}")
            return False
        space = Space(self.out)
        right = True
        for i, (x, y) in enumerate(zip(space.leaves, outs, strict=True)):
            wanted, got = (typeof(z).update(weak_type=False) for z in (x, y))
            if wanted != got:
                right = False
                name = space.leaf_name(i, "out")
                message = f"returns {got} as {name}, where the function itself returns {wanted}"
                self._found("structure", kind, message, value=True)
        if right:
            self._value(kind, space, outs)
        return right

    def _value(self, kind: type[Rule], space: Space, outs: Sequence[Any]) -> None:
        """Check that a rule returns, with the derivative, the same results as the function itself; record mistakes.

        Args:
          kind: the class of the rule.
          space: the results of the function, as a space.
          outs: the leaves of the results that the rule returned.
        """
        for i, (x, y) in enumerate(zip(space.leaves, outs, strict=True)):
            expected, got = np.asarray(host_value(x)), np.asarray(host_value(y))
            with np.errstate(all="ignore"):
                wrong = ~((got == expected) | ((got != got) & (expected != expected)))
                if dtypes.is_inexact(x.dtype):
                    finite = np.isfinite(expected)
                    size = np.max(np.abs(expected), initial=0, where=finite)
                    allowed = 1e3 * float(dtypes.finfo(x.dtype).eps) * (np.abs(expected) + size)
                    wrong &= ~(finite & (np.abs(got - expected) <= allowed))
            if not wrong.any():
                continue
            at = tuple(int(k) for k in np.argwhere(wrong)[0])
            self._found(
                "value", kind,
                f"returns {got[at]} as {space.leaf_name(i, 'out')}{list(at) if at else ''}, where the function itself "
                f"returns {expected[at]}; {wrong.sum()} of {wrong.size} elements differ. It must return the "
                "same result.",
                value=True,
            )  # fmt: skip

    def _best(self, kind: type[Rule]) -> tuple[Point, AbstractContextManager[None]]:
        """Return the function at the point in the highest precision in which the rule of class ``kind`` works.

        Return with it a context manager that enables this precision.
        """
        if self.precise is not None:
            with double_precision():
                try:
                    kind(self.subject, self.precise).results()
                except Exception:  # the rule is for the dtype of the arguments only
                    return self.native, nullcontext()
            return self.precise, double_precision()
        return self.native, nullcontext()

    def _linearity(self, kind: type[Rule]) -> bool:
        """Check that a rule is linear, and that a linear jvp rule can be transposed; record mistakes.

        ``kind`` is the class of the rule. Return whether the rule is linear.
        """
        point, precision = self._best(kind)
        with precision:
            how = nonlinearity(kind(self.subject, point), SCALES)
        if kind.forward:
            if how:
                self._found("linearity", kind, f"is not linear in the tangents: {how}")
            elif self.subject.owner.fwd is None:
                self._transposition(kind)
        elif how and self.settings.linear:
            self._found(
                "backward linearity", kind,
                f"is not linear in the cotangent: {how}. Forward mode cannot transpose such a rule and needs a "
                f"separate jvp rule; linear=False allows it",
            )  # fmt: skip
        return not how

    def _transposition(self, kind: type[Rule]) -> None:
        """Check that the jvp rule can be transposed, as reverse mode does; record a mistake if it cannot.

        This is for a function without a backward rule. ``kind`` is the class of the rule.
        """
        try:
            out, pull = vjp(self.subject.with_rules, *self.subject.args)
            space = Space(out)
            pull(space.tangents(random_vector(space.size, 6), dual=True))
        except NotRepeatable:
            raise
        except Exception as error:
            text = indent(str(error) if isinstance(error, PullbackError) else _raised(error), "     ")
            self._found("transposition", kind, f"cannot be transposed, but reverse mode has to transpose it:\n{text}")

    def _symbolic_zeros(self, kind: type[Rule]) -> None:
        """Check that a rule has the same results for symbolic zeros as for arrays of zeros; record mistakes.

        Rules that do not ask for symbolic zeros are skipped. ``kind`` is the class of the rule.
        """
        owner = self.subject.owner
        if not (owner.symbolic_zeros if kind.forward else owner.symbolic_cotangents):
            return
        rule = kind(self.subject, self.native)
        tolerance = Tolerance(self.native, None, None)
        for where, call, expected in rule.zero_cases():
            try:
                got = call()
            except NotRepeatable:
                raise
            except Exception as error:
                self._found("symbolic zeros", kind, f"raised {_raised(error)}\n     {where}")
                continue
            wrong = finite_and_beyond(got, expected, tolerance.allowed(expected))
            if wrong.any():
                k = int(np.argmax(wrong))
                what = f"{'tangent' if kind.forward else 'cotangent'} of "
                what += rule.to_space.name(k, "out" if kind.forward else "argument")
                self._found(
                    "symbolic zeros", kind,
                    f"returns {got[k]:.9g} as {what} {where}, and {expected[k]:.9g} if the zeros are arrays",
                )  # fmt: skip

    def _derivatives(self, kinds: Sequence[type[Rule]]) -> None:
        """Compare the rules of these classes with the derivative of the function, and record mistakes.

        The derivative is computed by differentiation without the rules, and by numerical differences.
        """
        references: dict[Point, Reference] = {}
        for kind in kinds:
            point, precision = self._best(kind)
            with precision:
                if point not in references:
                    references[point] = Reference(
                        point, differentiated(point), "differentiation of the function itself"
                    )
                comparison = self._comparison(kind, point, references[point])
                messages = list(comparison.messages())
            for message in messages:
                self._found("derivative", kind, message)
            if not messages and point is not self.native and self.native.rounding > point.rounding:
                self._precision(kind, comparison)

    def _comparison(self, kind: type[Rule], point: Point, reference: Reference) -> Comparison:
        tolerance = Tolerance(point, self.settings.atol, self.settings.rtol)
        return Comparison(kind(self.subject, point), reference, tolerance)

    def _precision(self, kind: type[Rule], precise: Comparison) -> None:
        """Check that a rule has the same results in the dtype of the arguments as in float64; record a mistake.

        Args:
          kind: the class of the rule.
          precise: the comparison of the rule in float64.
        """
        rule = kind(self.subject, self.native)
        expected, got = precise.matrix, precise.reference.matrix(rule)
        tolerance = Tolerance(self.native, self.settings.atol, self.settings.rtol)
        wrong = finite_and_beyond(got, expected, tolerance.allowed(expected))
        if not wrong.any():
            return
        i, k = (int(n) for n in np.argwhere(wrong)[0])
        from_name = precise.rows.name(i)
        to_name = rule.to_space.name(k, "out" if kind.forward else "argument")
        component = f"{to_name} by {from_name}" if kind.forward else f"{from_name} by {to_name}"
        self._found(
            "precision", kind,
            f"returns {got[i, k]:.9g} as the derivative of {component} in the dtype of the arguments, but "
            f"{expected[i, k]:.9g} in float64; {wrong.sum()} of {wrong.size} components overflow or lose precision.",
        )  # fmt: skip

    def _consistency(self) -> None:
        """Check that the jvp rule and the backward rule are transposes of each other; record mistakes."""
        best = [self._best(kind) for kind in (JVPRule, VJPRule)]
        point, precision = best[0] if best[0][0] is best[1][0] else (self.native, nullcontext())
        with precision:
            push = JVPRule(self.subject, point)
            reference = Reference(point, push, f"the {JVPRule.name_in(self.subject.owner)}", differences=False)
            messages = list(self._comparison(VJPRule, point, reference).messages())
        for message in messages:
            self._found("consistency", VJPRule, message)


def _raised(error: Exception) -> str:
    """Return the type and text of an error, and the last line of the user's code that raised it."""
    location = ""
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if not source.is_internal(code.co_filename):
            location = f" (at {code.co_filename}:{step.tb_lineno}, in {code.co_name})"
        step = step.tb_next
    return f"{type(error).__name__}: {error}{location}"


# The values of arguments ---------------------------------------------------------------------------------------------


class _Unknown:
    """The class of the marker ``_UNKNOWN``, which stands for the value of a traced argument that has no known value."""


_UNKNOWN = _Unknown()


def _known(x: Any) -> Any:
    """Return the value of an argument, without tracers; or ``_UNKNOWN`` if it is traced and has no value.

    For an argument that ``vmap`` maps, return the value for its first index.
    """
    if isinstance(x, JVPTracer):
        return _known(x.primal)
    if isinstance(x, BatchTracer):
        batch = _known(x.value)
        if batch is _UNKNOWN or x.value.shape[x.dim] == 0:
            return _UNKNOWN
        return ArrayImpl(host_value(batch).take(0, axis=x.dim), batch.weak_type)
    if isinstance(x, Tracer):
        value = x.concrete()
        return _UNKNOWN if value is None else value
    return x


# The switch ----------------------------------------------------------------------------------------------------------


class _Checking(threading.local):
    """A flag of each thread, ``on``: whether the thread is checking a rule."""

    on = False


_checking = _Checking()
_checked: weakref.WeakKeyDictionary[CustomFunction, set[Any]] = weakref.WeakKeyDictionary()


@contextmanager
def _at_the_bottom() -> Iterator[None]:
    """Return a context manager in which operations run eagerly, outside all transformations, with rules unchecked."""
    dynamic = state.trace, state.axes, state.source_loc, state.scope
    before, _checking.on = _checking.on, True
    state.trace, state.axes, state.source_loc, state.scope = state.bottom, {}, None, None
    try:
        yield
    finally:
        _checking.on = before
        state.trace, state.axes, state.source_loc, state.scope = dynamic


def switch_on() -> None:
    """Start the checks of called functions; called when the switch ``check_custom_rules`` is turned on."""
    _checked.clear()
    custom_rules.checker = _check_call


def _check_call(function: CustomFunction, args: tuple[Any, ...]) -> None:
    """Check the rules of a function at a call, unless it was checked before with arguments of the same types.

    A call with arguments of unknown values, as in a compiled function, is not checked. For an argument that ``vmap``
    maps, its first index is checked. Callbacks with effects do not run again.
    """
    if _checking.on:
        return
    known = tree.tree_map(_known, args)
    leaves, treedef = tree.flatten(known)
    if any(x is _UNKNOWN for x in leaves):
        return
    key = treedef, tuple((x.shape, x.dtype) if hasattr(x, "dtype") else type(x) for x in leaves)
    done = _checked.setdefault(function, set())
    if key in done:
        return
    try:
        with without_effects():
            check_rule(function, *known)
    except NotRepeatable:
        pass  # it calls io_callback, whose effects must happen once
    done.add(key)
