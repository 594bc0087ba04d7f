"""Dead-code elimination: a jaxpr without the equations, constants and inputs that its results do not need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

from pullback.core.errors import JaxprError
from pullback.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Var
from pullback.transforms.traces.derived import cached_by_jaxpr

DceRule = Callable[[list[bool], Eqn], Eqn | None]


def live_equations(eqns: Sequence[Eqn], results: Sequence[Atom]) -> tuple[list[Eqn], set[Var]]:
    """The equations, in order, that some results need or that have effects, and all the variables that those read."""
    live: set[Any] = set(results)  # numbers too, which nobody asks for
    kept: list[Eqn] = []
    for eqn in reversed(eqns):
        if live.isdisjoint(eqn.outvars) and not eqn.effect:
            continue
        rule = eqn.primitive.dce_rule
        smaller = eqn if rule is None else rule(list(map(live.__contains__, eqn.outvars)), eqn)
        if smaller is not None:
            kept.append(smaller)
            live.update(smaller.invars)
    return kept[::-1], live


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: Sequence[bool] | bool = False
) -> tuple[Jaxpr, list[bool]]:
    """A jaxpr for some of the results, without what they do not need.

    Args:
      jaxpr: the program.
      used_outputs: which of its results are kept.
      instantiate: which inputs are kept even if nothing needs them; one flag for all, or one for each input.

    Returns:
      The smaller jaxpr, whose constants are those of ``jaxpr`` that it needs, and for each input of ``jaxpr``
      whether the smaller one has it.

    Raises:
      JaxprError: the flags are not as many as the results, or as the inputs (an AssertionError).

    >>> from pullback.primitives.elementwise import cos, sin
    >>> from pullback.transforms.autodiff.tracing import make_jaxpr
    >>> closed = make_jaxpr(lambda x, y: (sin(x), cos(y)))(1.0, 2.0)
    >>> dce_jaxpr(closed.jaxpr, [False, True])[1]
    [False, True]
    """
    keep = flags(instantiate, len(jaxpr.invars), "inputs")
    used = flags(used_outputs, len(jaxpr.outvars), "results")
    results = list(compress(jaxpr.outvars, used))
    eqns, live = live_equations(jaxpr.eqns, results)
    used_inputs = [k or v in live for k, v in zip(keep, jaxpr.invars, strict=True)]
    constvars = list(filter(live.__contains__, jaxpr.constvars))
    return Jaxpr(constvars, list(compress(jaxpr.invars, used_inputs)), eqns, results), used_inputs


@cached_by_jaxpr
def dce_closed_jaxpr(
    closed: ClosedJaxpr, used_outputs: Sequence[bool], instantiate: Sequence[bool] | bool = False
) -> tuple[ClosedJaxpr, list[bool]]:
    """:func:`dce_jaxpr` of a closed jaxpr; the values of constants that are not needed are dropped.

    >>> from pullback.primitives.elementwise import sin
    >>> from pullback.transforms.autodiff.tracing import make_jaxpr
    >>> dce_closed_jaxpr(make_jaxpr(lambda x, y: (sin(x), y))(1.0, 2.0), [False, True])
    ({ lambda ; a:f32[]. let  in (a,) }, [False, True])
    """
    jaxpr, used_inputs = dce_jaxpr(closed.jaxpr, used_outputs, instantiate)
    return close(jaxpr, dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))), used_inputs


def close(jaxpr: Jaxpr, values: dict[Var, object]) -> ClosedJaxpr:
    """A jaxpr with the values of its constants, found by variable."""
    return ClosedJaxpr(jaxpr, list(map(values.__getitem__, jaxpr.constvars)))


def flags(given: Sequence[bool] | bool, count: int, what: str) -> list[bool]:
    """One flag for each of ``count`` things, from one for all of them or from a list."""
    if isinstance(given, bool):
        return [given] * count
    if len(given) != count:
        raise JaxprError(f"expected {count} flags, one for each of the {what} of the jaxpr, got {given}")
    return list(given)
