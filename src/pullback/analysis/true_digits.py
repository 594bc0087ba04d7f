"""``precision``: which digits of a function's results are true, and which lines have cost the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, overload

import numpy as np

from pullback.analysis import digits
from pullback.analysis import two_doubles_rules as two_doubles_rules
from pullback.analysis import wide_rules as wide_rules
from pullback.analysis.mixing import MixedPlan, plan_of
from pullback.analysis.observations import Observations, Observed
from pullback.analysis.shadows import Shadowed, ShadowTrace, ShadowTracer
from pullback.analysis.two_doubles import TwoDoubles
from pullback.analysis.wide import Arithmetic, Doubles, DoublesFound
from pullback.core import tree
from pullback.core.annotations import DTypeLike
from pullback.core.arguments import require_function
from pullback.core.array import Array, ArrayImpl, host_value
from pullback.core.errors import ArgumentError
from pullback.core.trace import Tracer, state
from pullback.core.tree_nodes import keystr
from pullback.display.pages import facts, page, table
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import name_of


@dataclass(frozen=True)
class Loss:
    """Digits that a line costs the results.

    Attributes:
      line: the user's line, as in ``model.py:31``.
      operation: the name of the operation.
      kind: ``"cancellation"``, ``"absorption"`` (a sum is one of its terms, since the other is too small),
        ``"rounding"``, ``"condition"`` (the operation magnifies errors), ``"narrowing"``, ``"overflow"``,
        ``"underflow"``, ``"infinity"`` or ``"NaN"``.
      digits: how many decimal digits of the results it costs.
      advice: how to compute the same without the loss, if that is known; otherwise empty.

    >>> import pullback.numpy as jnp
    >>> from pullback import analysis
    >>> loss = analysis.precision(lambda x: jnp.exp(x) - 1)(jnp.float32(1e-4)).losses[0]
    >>> loss.kind, loss.operation
    ('cancellation', 'sub')
    """

    line: str
    operation: str
    kind: str
    digits: float
    advice: str = ""


@dataclass(frozen=True)
class ResultDigits:
    """How accurate a result is.

    Attributes:
      name: where it is in the tree of results, as in ``['loss']``; empty for a single array.
      digits: the number of true decimal digits that most elements have (all of up to 50, four fifths of many).
      of: the number of digits that the dtype can hold.
      errors: the relative error of each element, at least the unit roundoff.

    >>> import pullback.numpy as jnp
    >>> from pullback import analysis
    >>> found = analysis.precision(jnp.sqrt)(jnp.float32(2.0)).results[0]
    >>> found.digits > 7, round(found.of, 1)
    (True, 7.2)
    """

    name: str
    digits: float
    of: float
    errors: np.ndarray[Any, Any] = field(repr=False)

    @property
    def elements(self) -> np.ndarray[Any, Any]:
        """The number of true digits of each element."""
        return np.asarray(np.abs(np.log10(self.errors)))

    @property
    def least(self) -> str:
        """The digits of the least accurate elements as text, if they are fewer; otherwise empty."""
        fewest = abs(math.log10(float(np.max(self.errors)))) if self.errors.size else math.inf
        return f", {fewest:.1f} of the worst element" if fewest < self.digits - 0.5 else ""


@dataclass(frozen=True)
class Precision:
    """Which digits of a function's results are true, and which lines have cost the others.

    Attributes:
      value: the results, as the function returns them.
      exact: the results as they would be without rounding, in doubles.
      results: how accurate each array of the results is.
      losses: the lines that cost a result at least one digit, the most costly first.
      events: the lines where digits were lost or special values began, whether or not this costs the results digits; a
        comparison that exact numbers decide otherwise is of the kind ``"decision"``.
      assumed: the operations whose own rounding is taken as right to the last digit of a double, with their lines.

    >>> import pullback.numpy as jnp
    >>> from pullback import analysis
    >>> found = analysis.precision(lambda x: jnp.exp(x) - 1)(jnp.float32(1e-4))
    >>> 3 < found.digits < 5, found.losses[0].advice
    (True, 'exp(x) - 1 is jnp.expm1(x)')
    """

    value: Any
    exact: Any
    results: tuple[ResultDigits, ...]
    losses: tuple[Loss, ...]
    events: tuple[Loss, ...]
    assumed: tuple[str, ...] = ()

    @property
    def digits(self) -> float:
        """The number of true digits of the least accurate result."""
        return min((x.digits for x in self.results), default=math.inf)

    def _repr_html_(self) -> str:
        digits_of = [(x.name or "result", f"{x.digits:.1f} of {x.of:.1f}{x.least}") for x in self.results]
        lost = [(f"{x.digits:.1f}", x.kind, x.operation, x.line, x.advice) for x in self.losses]
        heads = ("digits lost", "by", "in", "line", "instead")
        return page(facts(digits_of), table(heads, lost) if lost else "")

    def __str__(self) -> str:
        lines = [f"{x.name or 'result'}: {x.digits:.1f} of {x.of:.1f} digits are true{x.least}" for x in self.results]
        for x in self.losses:
            lines.append(f"  {x.digits:4.1f} digits lost by {x.kind} in {x.operation} at {x.line}")
            lines += [f"       {x.advice}"] if x.advice else []
        return "\n".join(lines)


@overload
def precision(
    fun: Callable[..., Any], *, suggest: None = None, tolerance: float = 1e-2
) -> Callable[..., Precision]: ...
@overload
def precision(fun: Callable[..., Any], *, suggest: DTypeLike, tolerance: float = 1e-2) -> Callable[..., MixedPlan]: ...
def precision(fun: Callable[..., Any], *, suggest: DTypeLike | None = None, tolerance: float = 1e-2) -> Any:
    """Return a function of the same arguments that says which digits of the results of ``fun`` are true.

    It runs ``fun``, and evaluates each operation a second time on shadows: in doubles for values of single precision
    and narrower ones. The shadows stand for exact numbers. The inputs and all constants are taken as exact. Comparisons
    and indices are those of the values, so that both follow the same branches. Programs (``jit``, loops, branches,
    custom rules) run operation by operation, and so do derivatives: ``precision(grad(f))``.

    Args:
      fun: takes and returns trees of arrays. It may use Python's control flow, unless there is ``suggest``.
      suggest: a narrower dtype, such as ``"bfloat16"``. Then the lines are found that may compute in it, for
        :func:`mixed_precision`: a group of lines at a time, and halves of those that may not.
      tolerance: the relative error of the results, in the norm of each array, that ``suggest`` accepts.

    Returns:
      A function of the arguments of ``fun`` that returns a :class:`Precision`; a :class:`MixedPlan` with ``suggest``.

    Raises:
      ArgumentError: ``fun`` is not a function, ``suggest`` no dtype of floats, ``tolerance`` not positive, or an
        argument is traced (a TypeError and a ValueError).
      MissingRuleError: an operation has no shadow, as a callback; the message names it (a NotImplementedError).

    Source: for the shadows and the lines, A. Sanchez-Stern, P. Panchekha, S. Lerner and Z. Tatlock, Finding root causes
    of floating point error, PLDI 2018.

    >>> import pullback.numpy as jnp
    >>> from pullback import analysis
    >>> found = analysis.precision(lambda x: jnp.sum(1 - jnp.cos(x)))(jnp.float32(1e-3))
    >>> found.losses[0].kind, found.losses[0].operation
    ('cancellation', 'sub')
    >>> found.digits < 2
    True
    """
    require_function("precision", "fun", fun)
    if suggest is not None:
        return plan_of(fun, suggest, tolerance)

    @api_boundary
    def measured(*args: Any, **kwargs: Any) -> Precision:
        if not kwargs and all(type(x) is ArrayImpl for x in args):
            return _measured(fun, args, None)  # as most often
        leaves, treedef = tree.flatten((args, kwargs))
        return _measured(fun, leaves, treedef)

    return measured


def _measured(fun: Callable[..., Any], leaves: Sequence[Any], treedef: Any) -> Precision:
    """Return the report of a call; ``treedef`` is that of the arguments, or None if they are ``leaves``."""
    if treedef is not None and any(isinstance(x, Tracer) for x in leaves):
        raise ArgumentError(
            f"precision of {name_of(fun)} compares values, and an argument is traced, by another transformation: apply "
            "precision last, as in precision(jit(grad(f)))"
        )
    if not any(hasattr(x, "dtype") and x.dtype in _DOUBLES for x in leaves):
        try:
            found = _run(fun, leaves, treedef, Doubles())
            if not found[0].seen.too_deep:
                return _report(*found)
        except DoublesFound:
            pass
    return _report(*_run(fun, leaves, treedef, TwoDoubles()))


_DOUBLES = frozenset(map(np.dtype, ("float64", "complex128")))


def _run(fun: Callable[..., Any], leaves: Sequence[Any], treedef: Any, arithmetic: Arithmetic) -> Any:
    """Run a function with shadows of some arithmetic.

    Return the interpreter, the results, and their tree, which is None for a single array.
    """
    trace = ShadowTrace(state.trace, fun, arithmetic, Observations())

    def run() -> Any:
        tracers = [trace.tracer(x) if isinstance(x, Array) or hasattr(x, "dtype") else x for x in leaves]
        traced = [x if t is None else t for t, x in zip(tracers, leaves, strict=True)]
        args, kwargs = (traced, {}) if treedef is None else tree.unflatten(treedef, traced)
        out = fun(*args, **kwargs)
        if type(out) is ShadowTracer:
            return [trace.result(out)], None
        found, out_tree = tree.flatten(out)
        return [trace.result(x) for x in found], out_tree

    return trace, *trace.run(run)


def _report(trace: ShadowTrace, results: list[Any], out_tree: Any) -> Precision:
    """Return what a run has shown."""
    accurate: list[ResultDigits] = []
    exact: list[Any] = []
    costs: dict[Any, float] = {}
    names = _names(out_tree, len(results))
    for x, name in zip(results, names, strict=True):
        if not isinstance(x, Shadowed):
            exact.append(x)
            continue
        accurate.append(_accurate(trace, x, name))
        exact.append(ArrayImpl(trace.arithmetic.rounded(x.wide)))
        if x.accuracy.losses or accurate[-1].of - accurate[-1].digits >= digits.LEAST:
            for event, lost in digits.changed(x.accuracy.losses, accurate[-1].of - accurate[-1].digits, None).items():
                costs[event] = max(costs.get(event, 0.0), lost)
    losses = [_loss(e, lost) for e, lost in costs.items() if e is not None and lost >= 1]
    events = [_loss(e, e.worst) for e in trace.seen.events.values()]
    values = [x.value if isinstance(x, Shadowed) else x for x in results]
    joined = (lambda xs: xs[0]) if out_tree is None else partial(tree.unflatten, out_tree)
    return Precision(
        joined(values), joined(exact), tuple(accurate),
        tuple(sorted(losses, key=lambda x: -x.digits)), tuple(sorted(events, key=lambda x: -x.digits)),
        tuple(f"{name} at {where}" for name, where in sorted(trace.arithmetic.assumed)),
    )  # fmt: skip


def _names(out_tree: Any, count: int) -> list[str]:
    """Return where each array is in a tree of results; an empty text for a single one."""
    numbered = 0 if out_tree is None else tree.unflatten(out_tree, range(count))
    return [""] if type(numbered) is int else [keystr(path) for path, _ in tree.leaves_with_path(numbered)]


def _loss(event: Observed, lost: float) -> Loss:
    return Loss(event.made.line, event.made.primitive.name, event.kind, lost, event.advice)


def _accurate(trace: ShadowTrace, x: Shadowed, name: str) -> ResultDigits:
    value = host_value(x.value)
    least, most = digits.unit(value.dtype), digits.most(value.dtype)
    exact = trace.arithmetic.rounded(x.wide)
    if value.ndim == 0 and value.dtype.kind == "f" and math.isfinite(value) and math.isfinite(exact) and exact:
        error = abs(float(trace.arithmetic.difference(value, x.wide))) / max(
            abs(float(exact)), digits.tiny(value.dtype)
        )
        error = min(max(error, least), 1.0)
        return ResultDigits(name, abs(math.log10(error)), most, np.asarray(error))
    with np.errstate(all="ignore"):
        difference = trace.arithmetic.difference(value, x.wide)
        errors = digits.relative_errors(value, difference, exact, least=digits.tiny(value.dtype))
    errors = np.asarray(np.maximum(errors, least))
    worst = max(digits.typical_worst(errors), least)
    return ResultDigits(name, abs(math.log10(worst)), most, errors)
