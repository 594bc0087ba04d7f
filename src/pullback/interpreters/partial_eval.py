"""Tracing with some inputs unknown, in JAX's older spelling: ``jax.interpreters.partial_eval``.

Flax uses it to find the variables that depend on inputs known only by their types.

Classes:
  DynamicJaxprTracer: a variable of a program that is being traced, with ``shape`` and ``dtype``; tracing makes it.

>>> import pullback.numpy as jnp
>>> from pullback import core
>>> from pullback.interpreters import partial_eval as pe
>>> inputs = [pe.PartialVal.known(jnp.float32(2)), pe.PartialVal.unknown(core.get_aval(1.0))]
>>> jaxpr, results, consts = pe.trace_to_jaxpr_nounits(lambda x, y: [x * x, x + y], inputs)
>>> results[0].get_known(), results[1].get_known(), results[1].get_aval()
(Array(4., dtype=float32), None, ShapedArray(float32[]))
>>> jaxpr
{ lambda a:f32[]; b:f32[]. let c:f32[] = add a b in (c,) }
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.array import typeof
from pullback.core.errors import ArgumentError
from pullback.core.faces import face
from pullback.core.jaxpr import Jaxpr
from pullback.core.types import AbstractValue, ShapedArray
from pullback.transforms.traces.dce import dce_jaxpr as dce_jaxpr
from pullback.transforms.traces.dce import flags
from pullback.transforms.traces.stage import StageTracer as DynamicJaxprTracer
from pullback.transforms.traces.stage import stage_flat
from pullback.transforms.traces.unknowns import trace_unknown

JaxprTracer = DynamicJaxprTracer
"""Both kinds of tracing have the same class of tracers here."""


class PartialVal(tuple[Any, Any]):
    """A known value, ``(None, value)``, or an unknown value of a known type, ``(type, None)``.

    Args:
      pair: a type and a value, one of which is None.

    Raises:
      ArgumentError: another pair (a TypeError and a ValueError).

    >>> from pullback import core
    >>> from pullback.interpreters.partial_eval import PartialVal
    >>> PartialVal.known(2.0).is_known(), PartialVal.unknown(core.get_aval(2.0)).get_aval()
    (True, ShapedArray(float32[], weak_type=True))
    """

    __slots__ = ()

    def __new__(cls, pair: tuple[AbstractValue | None, Any]) -> PartialVal:
        """Make a pair of a type and a value, one of which is None."""
        aval, _ = pair
        if aval is not None and not isinstance(aval, AbstractValue):
            raise ArgumentError(f"PartialVal takes a pair of a type and a value, one of them None, got {pair!r}")
        return super().__new__(cls, pair)

    @classmethod
    def known(cls, value: Any) -> PartialVal:
        """Make a known value."""
        return cls((None, value))

    @classmethod
    def unknown(cls, aval: ShapedArray) -> PartialVal:
        """Make an unknown value of a type."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Whether the value is known."""
        return self[0] is None

    def get_known(self) -> Any:
        """Return the value, None if it is unknown."""
        return self[1] if self[0] is None else None

    def get_aval(self) -> ShapedArray:
        """Return the type."""
        return typeof(self[1]) if self[0] is None else self[0]  # type: ignore[no-any-return]


def _flat(fun: Any) -> Callable[..., Sequence[Any]]:
    """Return a function from flat arguments to a list of results: ``fun.call_wrapped``, or else ``fun`` itself."""
    run = getattr(fun, "call_wrapped", fun)
    if not callable(run):
        raise ArgumentError(f"expected a function of arrays that returns a list, got {fun!r}")
    return run  # type: ignore[no-any-return]


def trace_to_jaxpr_nounits(
    fun: Any, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], tuple[Any, ...]]:
    """Partially evaluate a function: compute the results that known inputs determine, and trace the rest.

    Args:
      fun: a flat function, or a ``linear_util.WrappedFun``; takes arrays and returns a list of arrays.
      pvals: the inputs, a sequence of :class:`PartialVal`.
      instantiate: which results count as unknown in any case; one flag for all, or one for each.

    Returns:
      The program from the unknown inputs to the unknown results; all results; the values of the program's constants.

    Raises:
      ArgumentError: ``fun`` is not a function (a TypeError).

    >>> from pullback import core
    >>> from pullback.interpreters import partial_eval as pe
    >>> pe.trace_to_jaxpr_nounits(lambda x: [x + x], [pe.PartialVal.unknown(core.get_aval(1.0))])[0]
    { lambda ; a:f32[]. let b:f32[] = add a a in (b,) }
    """
    run = _flat(fun)
    forced: list[bool] = []

    def flagged(*args: Any) -> Sequence[Any]:
        outs = run(*args)
        forced[:] = flags(instantiate if isinstance(instantiate, bool) else list(instantiate), len(outs), "results")
        return outs

    inputs = [value if aval is None else aval for aval, value in pvals]
    found = trace_unknown(fun, flagged, inputs, forced)
    results = [PartialVal.unknown(x) if isinstance(x, ShapedArray) else PartialVal.known(x) for x in found.results]
    return found.jaxpr, results, tuple(found.consts)


def trace_to_jaxpr_dynamic(
    fun: Any, in_avals: Sequence[ShapedArray], *, keep_inputs: Sequence[bool] | None = None, lower: bool = False,
    auto_dce: bool = False,
) -> tuple[Jaxpr, list[ShapedArray], list[Any]]:  # fmt: skip
    """Trace a flat function at given types to a program.

    Args:
      fun: a flat function, or a ``linear_util.WrappedFun``; takes arrays and returns a list of arrays.
      in_avals: the types of its inputs.
      keep_inputs: for each input whether the program keeps it; the others must be unused. None keeps all.
      lower: is ignored; JAX has it.
      auto_dce: whether to drop unused equations.

    Returns:
      The program, the types of its results, and the values of its constants.

    Raises:
      ArgumentError: ``fun`` is not a function (a TypeError); the program needs an input that is not kept.

    >>> from pullback import core
    >>> from pullback.interpreters import partial_eval as pe
    >>> pe.trace_to_jaxpr_dynamic(lambda x: [x + x], [core.get_aval(1.0)])
    ({ lambda ; a:f32[]. let b:f32[] = add a a in (b,) }, [ShapedArray(float32[], weak_type=True)], [])
    """
    closed = stage_flat(fun, _flat(fun), in_avals, "trace_to_jaxpr_dynamic")
    jaxpr, consts = closed.jaxpr, closed.consts
    if auto_dce or keep_inputs is not None:
        kept = [True] * len(in_avals) if keep_inputs is None else list(keep_inputs)
        smaller, used = dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars), kept)
        if used != kept:
            raise ArgumentError(f"the program needs the inputs {used}, but should keep {kept}: {jaxpr}")
        values = dict(zip(jaxpr.constvars, consts, strict=True))
        jaxpr, consts = smaller, [values[v] for v in smaller.constvars]
    return jaxpr, jaxpr.out_avals, consts


__all__ = [
    "DynamicJaxprTracer", "JaxprTracer", "PartialVal", "dce_jaxpr", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits",
]  # fmt: skip
face(globals())
