"""How many floating-point operations the equations of a program take, and how many bytes they read and write.

The count follows from the traits of an operation and the sizes of its operands and results. Few operations have a rule
of the kind ``flops``: those whose count the traits do not say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from pullback.analysis.lines import line_of
from pullback.core import dtypes, source, traits
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, subjaxprs
from pullback.core.rule_kinds import RuleKind
from pullback.core.traits import Cost
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays.scatter import scatter_add_p
from pullback.primitives.discrete import ceil_p, floor_p, round_p
from pullback.primitives.linalg.contraction import dot_general_p
from pullback.primitives.linalg.lapack import cholesky_p, triangular_solve_p
from pullback.primitives.linalg.lu import linear_solve_p, lu_p
from pullback.primitives.linalg.qr import qr_p
from pullback.primitives.signals.convolution import conv_general_dilated_p
from pullback.primitives.signals.fourier import fft_p
from pullback.transforms.traces.lift import feed

flops = RuleKind("flops", "its count follows from its traits")
"""``rule(operands, results, **params) -> count``: the floating-point operations, from the types of both."""


class Work(NamedTuple):
    """What an operation of a line does in one call of the program.

    Attributes:
      line: the user's line.
      operation: the name of the operation.
      phase: the pass of differentiation that made it: empty, ``"jvp"`` or ``"transpose"``.
      flops: additions, multiplications, divisions and comparisons of floats.
      transcendentals: evaluations of functions such as a sine or a square root.
      read, written: the bytes of its operands and of its results. A compiled program that fuses operations moves fewer.
      times: how often it runs; None in a loop of unknown length, whose body counts once.

    >>> import pullback.numpy as jnp
    >>> from pullback import analysis
    >>> work = analysis.cost(lambda x: x @ x)(jnp.ones((10, 10))).lines.work[0]
    >>> work.operation, work.flops
    ('dot_general', 2000.0)
    """

    line: str
    operation: str
    phase: str
    flops: float
    transcendentals: float
    read: float
    written: float
    times: int | None

    @property
    def total(self) -> float:
        """The floating-point operations, with each function as one."""
        return self.flops + self.transcendentals


def work_of(closed: ClosedJaxpr) -> list[Work]:
    """Return what the equations of a program do, in its order; of branches the one that does most."""
    return list(_works(closed.jaxpr, 1))


def _works(jaxpr: Jaxpr, times: int | None) -> Iterator[Work]:
    for eqn in jaxpr.eqns:
        inner = list(subjaxprs(eqn))
        if not inner:
            yield _work(eqn, times)
            continue
        rule = feed.of(eqn.primitive)
        feeding = None if rule is None else rule(**eqn.params)
        if feeding is not None and feeding.choice is not None:
            runs = [list(_works(p.jaxpr, times)) for p in feeding.programs]
            yield from max(runs, key=lambda run: sum(w.total for w in run))
            continue
        steps = times
        if feeding is not None and feeding.carried is not None:
            steps = None if times is None or feeding.length is None else times * feeding.length
        programs = inner if feeding is None else [p.jaxpr for p in feeding.programs]
        if feeding is None:
            programs = inner[:1]  # the others are rules
        for program in programs:
            yield from _works(program, steps)


def _work(eqn: Eqn, times: int | None) -> Work:
    operands, results = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
    count = 1 if times is None else times
    simple, functions = _counts(eqn, operands, results)
    read, written = (0.0, 0.0) if _is_view(eqn) else (sum(map(_nbytes, operands)), sum(map(_nbytes, results)))
    phase = eqn.scope.phase if eqn.scope is not None else source.FORWARD
    return Work(
        line_of(eqn), eqn.primitive.name, phase, count * simple, count * functions, count * read, count * written, times
    )


def _counts(eqn: Eqn, operands: Sequence[Any], results: Sequence[Any]) -> tuple[float, float]:
    """Return the floating-point operations and the evaluations of functions of an equation."""
    primitive = eqn.primitive
    if not any(dtypes.is_inexact(a.dtype) for a in operands) or traits.moves.of(primitive) or _copies(primitive):
        return 0.0, 0.0
    rule = flops.of(primitive)
    if rule is not None:
        return float(rule(operands, results, **eqn.params)), 0.0
    price = traits.cost.of(primitive)
    largest = max(map(size, [*operands, *results]), default=0)
    if price is Cost.CALL:
        return 0.0, 0.0
    if price is Cost.MATRIX:
        shape = max((a.shape for a in operands), key=math.prod, default=(1,))
        return largest * max(min(shape[-2:], default=1), 1), 0.0
    if traits.elementwise.of(primitive):
        one = price is Cost.LIGHT or not all(dtypes.is_inexact(a.dtype) for a in results)
        return (largest, 0.0) if one else (0.0, largest)
    return float(largest), 0.0


def _copies(primitive: Any) -> bool:
    """Whether an operation returns its operand, perhaps in another dtype, by its traits."""
    linear = primitive.transpose_rule is not None and not traits.signs.of(primitive)
    return linear and traits.passes_nan.of(primitive) and primitive.linear_in is None


def _is_view(eqn: Eqn) -> bool:
    """Whether the result has the elements of the only operand, so that nothing has to be read or written."""
    light = traits.moves.of(eqn.primitive) and traits.cost.of(eqn.primitive) is Cost.LIGHT
    return light and len(eqn.invars) == 1 and size(eqn.invars[0].aval) == size(eqn.outvars[0].aval)


def size(aval: Any) -> int:
    """Return the number of elements of a type; 0 if it is not known."""
    shape = getattr(aval, "shape", ())
    return math.prod(shape) if all(isinstance(n, int) for n in shape) else 0


def _nbytes(aval: Any) -> float:
    return float(size(aval) * getattr(aval.dtype, "itemsize", 4))


# The operations whose count does not follow from their traits --------------------------------------------------------


def _each(count: float) -> Callable[..., float]:
    """Return the rule of an operation that takes some operations for each element of the result."""
    return lambda operands, results, **params: count * size(results[0])


for _primitive in (ops.div_p, ops.square_p, floor_p, ceil_p, round_p):
    flops(_primitive)(_each(1))


@flops(ops.integer_pow_p)
def _integer_pow(operands: Any, results: Any, *, y: int) -> float:
    bits = max(abs(y), 1)
    return size(results[0]) * (bits.bit_length() - 1 + bits.bit_count() - 1 + (y < 0))


def _reduction(operands: Any, results: Any, **params: Any) -> float:
    """A reduction combines all elements that it reduces to one."""
    return size(operands[0]) - size(results[0])


for _primitive in (reductions.reduce_sum_p, reductions.reduce_max_p, reductions.reduce_min_p, reductions.reduce_prod_p):
    flops(_primitive)(_reduction)


@flops(dot_general_p)
def _dot(operands: Any, results: Any, *, dimension_numbers: Any, precision: Any = None) -> float:
    contracted = dimension_numbers[0][0]
    return 2.0 * size(results[0]) * math.prod(operands[0].shape[i] for i in contracted)


@flops(conv_general_dilated_p)
def _convolution(operands: Any, results: Any, *, dimension_numbers: Any, **params: Any) -> float:
    kernel = operands[1]
    return 2.0 * size(results[0]) * size(kernel) / max(kernel.shape[dimension_numbers.rhs_spec[0]], 1)


@flops(fft_p)
def _fft(operands: Any, results: Any, **params: Any) -> float:
    lengths = params.get("lengths", params.get("fft_lengths", ()))
    n = math.prod(lengths) if lengths else max(operands[0].shape[-1], 1)
    return 5.0 * max(map(size, (operands[0], results[0]))) * math.log2(max(n, 2))


@flops(scatter_add_p)
def _scatter_add(operands: Any, results: Any, **params: Any) -> float:
    return float(size(operands[2]))


def _cubic(factor: float) -> Callable[..., float]:
    """Return the rule of a decomposition of m x n matrices, which takes ``factor * m * n * min(m, n)`` operations."""

    def rule(operands: Any, results: Any, **params: Any) -> float:
        return factor * size(operands[0]) * min(operands[0].shape[-2:])

    return rule


flops(cholesky_p)(_cubic(1 / 3))
flops(lu_p)(_cubic(2 / 3))
flops(qr_p)(_cubic(4 / 3))


def _solution(factor: float, right: int) -> Callable[..., float]:
    """Return the rule of the solution of factored equations: ``factor * n`` for each number on the right."""
    return lambda operands, results, **params: factor * operands[0].shape[-1] * size(operands[right])


flops(triangular_solve_p)(_solution(1, 1))
flops(linear_solve_p)(_solution(2, 3))
