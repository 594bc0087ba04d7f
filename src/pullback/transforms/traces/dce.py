"""Dead-code elimination: removing the equations, constants and inputs that the results of a jaxpr do not need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

from pullback.core.errors import JaxprError
from pullback.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Var
from pullback.transforms.traces.derived import cached_by_jaxpr

DceRule = Callable[[list[bool], Eqn], Eqn | None]


def live_equations(eqns: Sequence[Eqn], results: Sequence[Atom]) -> tuple[list[Eqn], set[Var]]:
    """Return the equations that ``results`` need or that have effects, in order, and all variables that are read."""
    live: set[Any] = set(results)  # literals too, which match no variable
    needed: list[Eqn] = []
    for eqn in reversed(eqns):  # so that all readers of a variable come before its equation
        if live.isdisjoint(eqn.outvars) and not eqn.effect:
            continue
        rule = eqn.primitive.dce_rule
        smaller = eqn if rule is None else rule(list(map(live.__contains__, eqn.outvars)), eqn)
        if smaller is not None:
            needed.append(smaller)
            live.update(smaller.invars)
    return needed[::-1], live


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: Sequence[bool] | bool = False
) -> tuple[Jaxpr, list[bool]]:
    """Reduce a jaxpr to some of its results, and the equations, constants and inputs that they need.

    Args:
      jaxpr: the program.
      used_outputs: which results to keep.
      instantiate: which inputs to keep even if no equation needs them: a flag for all, or a flag for each input.

    Returns:
      The smaller jaxpr, with the constants that it needs; and for each input of ``jaxpr`` whether it was kept.

    Raises:
      JaxprError: the number of flags differs from that of the results or inputs (an AssertionError).

    >>> from pullback import lax, make_jaxpr
    >>> from pullback.interpreters import partial_eval as pe
    >>> closed = make_jaxpr(lambda x, y: (lax.sin(x), lax.cos(y)))(1.0, 2.0)
    >>> pe.dce_jaxpr(closed.jaxpr, [False, True])[1]
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
    """Apply :func:`dce_jaxpr` to a closed jaxpr; drop the values of constants that are not needed.

    >>> from pullback import lax, make_jaxpr
    >>> from pullback.transforms.traces.dce import dce_closed_jaxpr
    >>> dce_closed_jaxpr(make_jaxpr(lambda x, y: (lax.sin(x), y))(1.0, 2.0), [False, True])
    ({ lambda ; a:f32[]. let  in (a,) }, [False, True])
    """
    jaxpr, used_inputs = dce_jaxpr(closed.jaxpr, used_outputs, instantiate)
    return close(jaxpr, dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))), used_inputs


def close(jaxpr: Jaxpr, values: dict[Var, object]) -> ClosedJaxpr:
    """Return a closed jaxpr: ``jaxpr`` with the value of each of its constants, from the dictionary ``values``."""
    return ClosedJaxpr(jaxpr, list(map(values.__getitem__, jaxpr.constvars)))


def flags(value: Sequence[bool] | bool, count: int, what: str) -> list[bool]:
    """Return ``value`` as ``count`` flags: a single flag is repeated. ``what`` names the flagged items in errors."""
    if isinstance(value, bool):
        return [value] * count
    if len(value) != count:
        raise JaxprError(f"expected {count} flags, one for each of the {what} of the jaxpr, got {value}")
    return list(value)
