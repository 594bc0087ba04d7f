"""Sums that stay unreduced: programs within which a sum over a divided axis leaves each device its term."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.backends.compiler.one_operation import evaluate
from pullback.core.array import typeof
from pullback.core.errors import ShardingTypeError
from pullback.core.runtime import provides
from pullback.primitives.explicit_shardings import terms_over
from pullback.transforms.programs.program_primitive import program_primitive
from pullback.transforms.traces.captured import hoisted
from pullback.transforms.traces.inlining import write_program
from pullback.transforms.traces.stage import stage_flat

sums_of_terms_p = program_primitive("sums_of_terms", scope=terms_over)
"""Runs the program ``jaxpr``, within which sums stay unreduced over the mesh axes ``over`` if these divide what is
summed. It is an operation of its own, so that whoever traces the program again knows it."""

sums_of_terms_p.impl(lambda args, params: evaluate(sums_of_terms_p, args, params))
sums_of_terms_p.lowering(lambda hlo, *operands, jaxpr, over: write_program(hlo, jaxpr, operands))


@provides
def by_terms(function: Callable[..., Sequence[Any]], operands: Sequence[Any], over: frozenset[Any]) -> list[Any]:
    """Return the list ``function(*operands)`` of arrays, whose sums stay unreduced over the axes ``over`` of a mesh.

    Raises:
      ShardingTypeError: the shardings of the operands do not say that of a result, or no result is such a sum (a
        TypeError and ValueError).
    """
    with terms_over(over):
        closed, captured = hoisted(stage_flat(function, function, list(map(typeof, operands))))
    if not any(a.explicit is not None and over <= a.explicit.spec.unreduced for a in closed.out_avals):
        raise ShardingTypeError(f"there is no sum over {sorted(map(str, over))}, among {closed.out_avals}")
    return sums_of_terms_p.bind(*operands, *captured, jaxpr=closed, over=over)  # type: ignore[no-any-return]
