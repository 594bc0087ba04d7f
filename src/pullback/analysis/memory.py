"""``memory_profile``: how much memory a function needs over time, and which lines hold it at the peak."""

from __future__ import annotations

import runpy
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pullback.analysis.buffers import most_alive
from pullback.analysis.lines import line_of, line_of_location
from pullback.control.liveness import Timeline, nbytes, program_peak, timeline
from pullback.core import provenance, source, tree
from pullback.core.arguments import require_function
from pullback.core.array import ArrayImpl
from pullback.core.errors import ArgumentError
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.trace import Primitive, RelayTrace, Trace, state
from pullback.display.pages import amount, bold, line, page, table
from pullback.display.pictures import points
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import abstractify, argument_name, name_of, to_arrays
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.jit.jit import jit
from pullback.transforms.traces.stage import stage_flat

_SHOWN = 12


@dataclass(frozen=True)
class MemoryTimeline:
    """The bytes that are alive at each operation of a program, beside its arguments and results.

    Attributes:
      peak: the largest number of bytes.
      live: the bytes at each operation, in order.
      lines: the user's line of each operation.
      alive: ``(line, bytes)`` of the values that are alive at the peak, by the line that made them, the largest first.

    >>> from pullback.analysis import MemoryTimeline
    >>> MemoryTimeline(8, (4, 8), ("a.py:1 f", "a.py:2 f"), (("a.py:1 f", 8),)).at
    'a.py:2 f'
    """

    peak: int
    live: tuple[int, ...]
    lines: tuple[str, ...]
    alive: tuple[tuple[str, int], ...]

    @property
    def at(self) -> str:
        """The line at which the peak is reached; empty if it is not known."""
        found = self.live.index(max(self.live)) if self.live else 0
        return self.lines[found] if found < len(self.lines) else ""


@dataclass(frozen=True)
class MemoryProfile:
    """The memory of a function, predicted and perhaps measured. ``print(profile)`` shows it as a table.

    Attributes:
      name: the function.
      predicted: the memory of the compiled function, predicted from the program.
      measured: the memory as it was measured; None if it was not.
      how: how it was measured: ``"compiled"``, ``"eager"`` or empty.

    >>> import pullback.numpy as jnp
    >>> from pullback import analysis, grad
    >>> profile = analysis.memory_profile(grad(lambda x: jnp.sum(jnp.sin(x @ x))))(jnp.ones((100, 100)))
    >>> profile.predicted.peak >= 40_000
    True
    """

    name: str
    predicted: MemoryTimeline
    measured: MemoryTimeline | None = None
    how: str = ""
    value: Any = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        rows = [f"{self.name}: predicted peak {amount(self.predicted.peak)}, at {self.predicted.at}"]
        rows += _rows(self.predicted)
        if self.measured is not None:
            rows += [f"measured ({self.how}): peak {amount(self.measured.peak)}", *_rows(self.measured)]
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        parts = [line(bold(self.name))]
        for what, each in (("predicted", self.predicted), (f"measured, {self.how}", self.measured)):
            if each is not None:
                parts.append(line(f"{what}: peak {amount(each.peak)}"))
                if len(each.live) > 1:
                    sides = "first operation", "last", "0", amount(max(each.live))
                    parts.append(points(range(len(each.live)), each.live, f"{what} memory of {self.name}", sides, True))
                parts.append(
                    table(["alive at the peak", "line"], [(amount(n), where) for where, n in each.alive[:_SHOWN]])
                )
        return page(*parts)


def _rows(found: MemoryTimeline) -> list[str]:
    rows = [f"  {amount(size):>10}  {where}" for where, size in found.alive[:_SHOWN]]
    rest = sum(size for _, size in found.alive[_SHOWN:])
    return [*rows, f"  {amount(rest):>10}  other lines"] if rest else rows


def memory_profile(fun: Callable[..., Any], *, measure: str | None = None) -> Callable[..., MemoryProfile]:
    """Return a function of the same arguments that says how much memory one call of ``fun`` needs, by line.

    The memory of the arguments and results is not counted. The prediction is from the program: the values that are not
    fused with their readers, from the operation that makes them to the last that reads them. For the backward pass,
    profile the derivative, such as ``grad(loss)``.

    Args:
      fun: takes and returns trees of arrays.
      measure: ``"compiled"`` also compiles the function, and reads the compiler's assignment of buffers; ``"eager"``
        also runs it, operation by operation, and counts the arrays that are alive; None predicts only.

    Returns:
      A function that returns a :class:`MemoryProfile`. The arguments may be of the type ``ShapeDtypeStruct`` unless
      ``measure`` is ``"eager"``.

    Raises:
      ArgumentError: ``fun`` is no function, or ``measure`` is none of these (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import analysis, grad
    >>> def loss(w, x):
    ...     return jnp.sum(jnp.tanh(x @ w))
    >>> profile = analysis.memory_profile(grad(loss), measure="compiled")(jnp.ones((50, 50)), jnp.ones((1000, 50)))
    >>> 0.85 < profile.predicted.peak / profile.measured.peak < 1.15
    True
    """
    require_function("memory_profile", "fun", fun)
    if measure not in (None, "compiled", "eager"):
        raise ArgumentError(f"memory_profile: measure must be 'compiled', 'eager' or None, got {measure!r}")

    @api_boundary
    def profiled(*args: Any, **kwargs: Any) -> MemoryProfile:
        leaves, in_tree = tree.flatten_call(args, kwargs)
        flat = FlatFunction(fun, in_tree, keywords=True)
        avals = [abstractify(x) for x in leaves]

        def run(*xs: Any) -> list[Any]:
            with provenance.within(None, state.scope or source.Scope("", source.FORWARD)):
                return flat(*xs)  # in a scope the operations of the backward pass have lines of the user's, too

        def name_input(i: int) -> str:
            return argument_name(i, fun=fun, args=args, kwargs=kwargs)

        closed = stage_flat(fun, run, avals, "memory_profile", name_input)
        predicted = _of_timeline(timeline(closed))
        name = name_of(fun)
        if measure == "compiled":
            types = [ShapeDtypeStruct(a.shape, a.dtype) for a in avals]
            compiled = jit(run).lower(*types).compile()
            return MemoryProfile(name, predicted, _of_compiled(compiled), measure)
        if measure == "eager":
            arrays = to_arrays(leaves, "memory_profile", fun, args, None, kwargs)
            return MemoryProfile(name, predicted, _of_run(fun, flat, arrays), measure)
        return MemoryProfile(name, predicted)

    return profiled


def _of_timeline(found: Timeline) -> MemoryTimeline:
    alive: dict[str, int] = {}
    for v in found.alive(found.at):
        where = line_of(found.made_by[v])
        alive[where] = alive.get(where, 0) + nbytes(v.aval)
    if found.at >= 0 and found.moments[found.at].inner:
        where = f"within {line_of(found.moments[found.at].eqn)}"
        alive[where] = alive.get(where, 0) + found.moments[found.at].inner
    live = tuple([m.live for m in found.moments])
    return MemoryTimeline(found.peak, live, tuple([line_of(m.eqn) for m in found.moments]), _sorted(alive))


def _sorted(alive: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(((where, n) for where, n in alive.items() if n), key=lambda item: -item[1]))


def _of_compiled(compiled: Any) -> MemoryTimeline:
    """Return the memory of a compiled program: its peak from the compiler's count, and what is alive from its text."""
    found = most_alive(compiled.as_text())
    peak = int(compiled.memory_analysis().temp_size_in_bytes)
    return MemoryTimeline(peak, found.live, found.lines, found.alive)


def _of_run(fun: Any, run: Callable[..., Any], arrays: Sequence[Any], operands: bool = False) -> MemoryTimeline:
    """Run a function operation by operation, and count the arrays that are alive after each.

    A compiled program is one operation: the temporaries that are predicted for it come on top. With ``operands`` arrays
    that no operation has made count from the line on that reads them first.
    """
    made: dict[int, tuple[str, int]] = {}
    live: list[int] = []
    lines: list[str] = []
    best: dict[str, int] = {}
    total = peak = 0

    def forget(key: int) -> None:
        nonlocal total
        total -= made.pop(key)[1]

    def note(trace: Trace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        nonlocal total, peak
        out = trace.parent.process(primitive, args, params)
        where = line_of_location(state.source_loc or source.here())
        known = set() if operands else set(map(id, args))
        inner = sum(program_peak(p) for p in params.values() if isinstance(p, ClosedJaxpr))
        outs = out if primitive.multiple_results else [out]
        for x in [*args, *outs] if operands else outs:
            if type(x) is ArrayImpl and id(x) not in made and id(x) not in known:
                made[id(x)] = where, x.size * x.dtype.itemsize
                total += made[id(x)][1]
                weakref.finalize(x, forget, id(x))
        live.append(total + inner)
        lines.append(where)
        if live[-1] >= peak:
            peak = live[-1]
            best.clear()
            for line_made, size in [*made.values(), (f"within {where}", inner)]:
                best[line_made] = best.get(line_made, 0) + size
        return out

    trace = RelayTrace(state.trace, note, fun, "memory_profile")
    trace.quick = False
    before = state.trace
    state.trace = trace
    try:
        run(*arrays)
    finally:
        state.trace = before
    return MemoryTimeline(peak, tuple(live), tuple(lines), _sorted(best))


def of_program(path: str) -> str:
    """Run a program, and return a table of the arrays that are alive where it holds most, by line.

    Args:
      path: the file. It runs as by ``python``, without arguments.
    """
    found = _of_run(path, lambda: runpy.run_path(path, run_name="__main__"), (), operands=True)
    return "\n".join([f"{path}: peak {amount(found.peak)}, at {found.at}", *_rows(found)])
