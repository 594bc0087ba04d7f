"""``mixed_precision``: some lines of a program in a narrower dtype, chosen by bisection over the lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.analysis.expressions import line_of
from pullback.core import dtypes, traits, tree
from pullback.core.arguments import require_function
from pullback.core.array import host_value, typeof
from pullback.core.errors import ArgumentError, PullbackError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, infer, subjaxprs
from pullback.core.lists import split_list
from pullback.core.trace import state
from pullback.core.types import ShapedArray
from pullback.primitives.elementwise import convert_element_type
from pullback.transforms.autodiff.grad import grad
from pullback.transforms.custom.custom_rules import custom_vjp
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import name_of, to_arrays
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.lift import Fed, feed
from pullback.transforms.traces.stage import stage_flat


@dataclass(frozen=True)
class MixedPlan:
    """Which lines of a program compute in a narrower dtype.

    Attributes:
      dtype: the name of the narrower dtype.
      narrow: the lines that compute in it, as in ``model.py:31``.
      wide: the other lines that compute with floats.
      error: the relative error of the results that was measured, in the norm of each array.
      loss_scale: the factor by which derivatives are multiplied on the way back, so that they do not underflow.

    >>> from pullback import analysis
    >>> print(analysis.MixedPlan("bfloat16", frozenset({"model.py:31"}), frozenset({"model.py:32"}), 3e-3))
    bfloat16 in 1 of 2 lines, with a relative error of 3.0e-03
      model.py:32 stays as it is
    """

    dtype: str
    narrow: frozenset[str]
    wide: frozenset[str]
    error: float
    loss_scale: float = 1.0

    def __str__(self) -> str:
        count = len(self.narrow) + len(self.wide)
        lines = [f"{self.dtype} in {len(self.narrow)} of {count} lines, with a relative error of {self.error:.1e}"]
        lines += [f"  {line} stays as it is" for line in sorted(self.wide)]
        lines += [f"  derivatives are scaled by {self.loss_scale:g}"] if self.loss_scale != 1 else []
        return "\n".join(lines)


def mixed_precision(fun: Callable[..., Any], plan: MixedPlan) -> Callable[..., Any]:
    """Return a function that computes some lines of ``fun`` in a narrower dtype.

    The results have the dtypes of those of ``fun``. Other transformations apply to the function as to any other: the
    derivatives of a line in a narrower dtype are in that dtype too. It is traced at each call, so apply ``jit`` to it,
    or to its derivative. A function with a custom derivative rule stays as it is.

    Args:
      fun: takes and returns trees of arrays. It must not use Python's control flow on values.
      plan: the lines, from ``precision(fun, suggest="bfloat16")``.

    Returns:
      A function of the arguments of ``fun``.

    Raises:
      ArgumentError: ``fun`` is not a function, or ``plan`` no :class:`MixedPlan` (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import analysis
    >>> f = lambda x: jnp.sum(jnp.tanh(x @ x))
    >>> plan = analysis.precision(f, suggest="bfloat16", tolerance=1e-2)(jnp.ones((2, 2)))
    >>> len(plan.narrow), plan.error < 1e-2
    (1, True)
    >>> abs(float(analysis.mixed_precision(f, plan)(jnp.ones((2, 2)))) / float(f(jnp.ones((2, 2)))) - 1) < 1e-2
    True
    """
    require_function("mixed_precision", "fun", fun)
    if not isinstance(plan, MixedPlan):
        raise ArgumentError(
            f"mixed_precision: plan must be a MixedPlan, as precision(f, suggest='bfloat16') returns, got {plan!r}"
        )

    @api_boundary
    def mixed(*args: Any, **kwargs: Any) -> Any:
        closed, flat, arrays = _staged(fun, args, kwargs)
        if plan.loss_scale != 1:
            arrays = [_scaled(x, 1 / plan.loss_scale) for x in arrays]
        outs = _run(closed, arrays, plan.narrow, np.dtype(plan.dtype))
        if plan.loss_scale != 1:
            outs = [_scaled(x, plan.loss_scale) for x in outs]
        return flat.result(outs)

    return mixed


def _staged(fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[ClosedJaxpr, FlatFunction, list[Any]]:
    """Return the program of a function, the flat function, which knows the tree of the results, and its operands."""
    leaves, treedef = tree.flatten((args, kwargs))
    arrays = to_arrays(leaves, "mixed_precision", fun, (args, kwargs))
    flat = FlatFunction(fun, treedef, keywords=True)
    return stage_flat(fun, flat, [typeof(x) for x in arrays], "mixed_precision"), flat, arrays


def _scaled(x: Any, factor: float) -> Any:
    """Return ``x``, with cotangents times a factor on the way back."""
    if not dtypes.is_inexact(x.dtype):
        return x
    same = custom_vjp(lambda x: x)
    same.defvjp(lambda x: (x, None), lambda _, ct: (ct * factor,))
    return same(x)


# Programs with narrow lines -----------------------------------------------------------------------------------------


def _run(closed: ClosedJaxpr, operands: Sequence[Any], narrow: frozenset[str], dtype: Any) -> list[Any]:
    """Run a program, the equations of some lines in a narrower dtype."""
    jaxpr = closed.jaxpr
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    env.update(zip(jaxpr.invars, operands, strict=True))

    def read(atom: Any) -> Any:
        return env[atom] if type(atom) is Var else atom.val

    def typed(atom: Any) -> Any:
        return _converted(read(atom), atom.aval.dtype)

    location, scope = state.source_loc, state.scope
    try:
        for eqn in jaxpr.eqns:
            state.source_loc = eqn.made_at or location
            if eqn.scope is not None:
                state.scope = eqn.scope.within(scope)
            if _holds(eqn):
                outs = _inner(eqn, list(map(typed, eqn.invars)), narrow, dtype)
            elif line_of(eqn.made_at) in narrow and _fits(eqn, dtype):
                operands = [_converted(read(a), dtype) if _is_wider(a.aval, dtype) else read(a) for a in eqn.invars]
                outs = eqn.primitive.bind(*operands, **eqn.params)
            else:
                outs = eqn.primitive.bind(*map(typed, eqn.invars), **eqn.params)
            env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs], strict=True))
            state.scope = scope
    finally:
        state.source_loc, state.scope = location, scope
    return list(map(typed, jaxpr.outvars))


def _converted(x: Any, dtype: Any) -> Any:
    return convert_element_type(x, dtype) if hasattr(x, "dtype") and x.dtype != dtype else x


def _is_wider(aval: Any, dtype: np.dtype[Any]) -> bool:
    return dtypes.is_float(aval.dtype) and aval.dtype.itemsize > dtype.itemsize


def _narrowed(aval: Any, dtype: Any) -> ShapedArray:
    return aval.update(dtype=dtype) if _is_wider(aval, dtype) else aval


def _holds(eqn: Eqn) -> bool:
    return any(True for _ in subjaxprs(eqn))


def _fits(eqn: Eqn, dtype: np.dtype[Any]) -> bool:
    """Whether an equation can compute in a narrower dtype: its results are in that dtype if its operands are."""
    if eqn.primitive.effect or not any(_is_wider(a.aval, dtype) for a in eqn.invars):
        return False
    if traits.cost.of(eqn.primitive) in (traits.Cost.MATRIX, traits.Cost.CALL):
        return False
    try:
        found = infer(eqn.primitive, [_narrowed(a.aval, dtype) for a in eqn.invars], eqn.params)
    except (PullbackError, TypeError, ValueError, NotImplementedError):
        return False
    outs = found if eqn.primitive.multiple_results else [found]
    return all(x.dtype == _narrowed(v.aval, dtype).dtype for x, v in zip(outs, eqn.outvars, strict=True))


def _inner(eqn: Eqn, operands: list[Any], narrow: frozenset[str], dtype: Any) -> Any:
    """Apply an operation that holds programs, with narrow lines in these; one with custom rules stays as it is."""
    rule = feed.of(eqn.primitive)
    if rule is not None:
        feeding = rule(**eqn.params)
        if feeding.scope is None:
            programs = tuple([_mixed(p, narrow, dtype) for p in feeding.programs])
            test = None if feeding.test is None else feeding.test[0]
            return feeding.bind(Fed(programs, test, split_list(operands, *feeding.sizes)))
    closed = eqn.params.get("jaxpr")
    if rule is None and isinstance(closed, ClosedJaxpr):
        return eqn.primitive.bind(*operands, **{**eqn.params, "jaxpr": _mixed(closed, narrow, dtype)})
    return eqn.primitive.bind(*operands, **eqn.params)


@cached_by_jaxpr
def _mixed(closed: ClosedJaxpr, narrow: frozenset[str], dtype: Any) -> ClosedJaxpr:
    """Return a program with the same types that computes some lines in a narrower dtype."""
    return stage_flat(closed, lambda *xs: _run(closed, xs, narrow, dtype), closed.in_avals)


def _lines(jaxpr: Jaxpr, dtype: np.dtype[Any]) -> dict[str, None]:
    """Return the lines that can compute in a narrower dtype, in the order of the program."""
    found: dict[str, None] = {}
    for eqn in jaxpr.eqns:
        if _holds(eqn):
            for inner in subjaxprs(eqn):
                found.update(_lines(inner, dtype))
        elif _fits(eqn, dtype):
            found[line_of(eqn.made_at)] = None
    return found


# The choice of the lines ---------------------------------------------------------------------------------------------


def suggested(fun: Any, dtype: Any, tolerance: float, args: Any, kwargs: Any) -> MixedPlan:
    """Return the plan in which as many lines as possible compute in a narrower dtype.

    A group of lines becomes narrow if the error of the results stays within the tolerance; if not, each half of the
    group is tried (C. Rubio-González et al., Precimonious: tuning assistant for floating-point precision, SC 2013).
    """
    closed, _, arrays = _staged(fun, args, kwargs)
    narrower = np.dtype(dtype)
    wanted = [host_value(x) for x in _run(closed, arrays, frozenset(), narrower)]
    chosen: frozenset[str] = frozenset()
    least = 0.0

    def error(lines: frozenset[str]) -> float:
        return _distance(wanted, [host_value(x) for x in _run(closed, arrays, lines, narrower)])

    def choose(group: list[str]) -> None:
        nonlocal chosen, least
        found = error(chosen | set(group)) if group else math.inf
        if found <= tolerance:
            chosen, least = chosen | set(group), found
        elif len(group) > 1:
            choose(group[: len(group) // 2])
            choose(group[len(group) // 2 :])

    lines = list(_lines(closed.jaxpr, narrower))
    choose(lines)
    plan = MixedPlan(narrower.name, chosen, frozenset(lines) - chosen, least)
    return _with_scale(fun, plan, wanted, args, kwargs)


def _distance(wanted: Sequence[Any], found: Sequence[Any]) -> float:
    """Return the largest relative distance of arrays, in the norm; infinity if it is no number."""
    largest = 0.0
    with np.errstate(all="ignore"):
        for x, y in zip(wanted, found, strict=True):
            if not dtypes.is_inexact(x.dtype):
                largest = max(largest, 0.0 if np.array_equal(x, y) else math.inf)
                continue
            wide = np.asarray(x, np.complex128), np.asarray(y, np.complex128)
            size, distance = np.linalg.norm(wide[0]), np.linalg.norm(wide[0] - wide[1])
            ratio = float(distance / size) if size else float(distance)
            largest = max(largest, ratio if math.isfinite(ratio) else math.inf)
    return largest


_SCALES = [2.0**k for k in (0, 4, 8, 12, 16, 20)]


def _with_scale(fun: Any, plan: MixedPlan, wanted: Sequence[Any], args: Any, kwargs: Any) -> MixedPlan:
    """Return the plan with the factor for derivatives whose gradient is best, if the function has a gradient.

    Only a dtype of a smaller range than float32 needs one.
    """
    one = len(wanted) == 1 and wanted[0].shape == () and dtypes.is_float(wanted[0].dtype)
    small = dtypes.finfo(np.dtype(plan.dtype)).tiny > 1e-30
    where = tuple(i for i, x in enumerate(args) if all(dtypes.is_float(typeof(y).dtype) for y in tree.leaves(x)))
    if not (one and small and where):
        return plan
    gradient = lambda f: [host_value(x) for x in tree.leaves(grad(f, where)(*args, **kwargs))]
    true = gradient(fun)
    plans = [MixedPlan(plan.dtype, plan.narrow, plan.wide, plan.error, scale) for scale in _SCALES]
    errors = [_distance(true, gradient(mixed_precision(fun, p))) for p in plans]
    best = min(errors)
    return next(p for p, e in zip(plans, errors, strict=True) if e <= 1.1 * best)


def check_suggestion(suggest: Any, tolerance: Any) -> None:
    """Raise unless ``suggest`` is a dtype of floats with at most 32 bits, and ``tolerance`` positive."""
    try:
        ok = dtypes.is_float(np.dtype(suggest)) and np.dtype(suggest).itemsize <= 4
    except TypeError:
        ok = False
    if not ok:
        raise ArgumentError(f"precision: suggest must be a dtype such as 'bfloat16' or 'float16', got {suggest!r}")
    if not (isinstance(tolerance, (int, float)) and tolerance > 0):
        raise ArgumentError(f"precision: tolerance must be a positive number, got {tolerance!r}")


def plan_of(fun: Any, suggest: Any, tolerance: float) -> Callable[..., MixedPlan]:
    """Return the function of the arguments of ``fun`` that chooses lines; see :func:`suggested`."""
    check_suggestion(suggest, tolerance)

    @api_boundary
    def planned(*args: Any, **kwargs: Any) -> MixedPlan:
        return suggested(fun, suggest, tolerance, args, kwargs)

    planned.__doc__ = f"Choose the lines of {name_of(fun)} that may be narrower."
    return planned
