"""What a program costs by line, as tables and pictures: floating-point operations, bytes, and measured time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pullback.analysis.lines import line_of_location
from pullback.analysis.work import Work
from pullback.core import source
from pullback.core.array import ArrayImpl
from pullback.core.config import override
from pullback.core.errors import ArgumentError
from pullback.core.trace import Primitive, RelayTrace, state
from pullback.display.pages import amount, bold, escaped, line, page, table

BOUND = 5
"""How many times the operations of a function its gradient takes at most (W. Baur and V. Strassen 1983; A. Griewank
and A. Walther, Evaluating Derivatives, 2nd edition, SIAM 2008, chapter 4)."""
_SHOWN = 12


@dataclass(frozen=True)
class LineCosts:
    """What a program costs by line. ``print`` shows a table, and a notebook a picture.

    Attributes:
      name: the function.
      work: what each operation does, in the order of the program.
      seconds: the measured time by line; empty if it was not measured.

    >>> import pullback.numpy as jnp
    >>> from pullback import analysis
    >>> lines = analysis.cost(lambda x: jnp.sin(x @ x))(jnp.ones((100, 100))).lines
    >>> lines.flops, lines.transcendentals, lines.bytes_read, lines.bytes_written
    (2000000.0, 10000.0, 120000.0, 80000.0)
    >>> lines.intensity
    10.05
    """

    name: str
    work: tuple[Work, ...]
    seconds: dict[str, float]

    @property
    def flops(self) -> float:
        """The additions, multiplications, divisions and comparisons of floats."""
        return sum(w.flops for w in self.work)

    @property
    def transcendentals(self) -> float:
        """The evaluations of functions such as a sine or a square root."""
        return sum(w.transcendentals for w in self.work)

    @property
    def bytes_read(self) -> float:
        """The bytes of all operands, if no operations are fused."""
        return sum(w.read for w in self.work)

    @property
    def bytes_written(self) -> float:
        """The bytes of all results, if no operations are fused."""
        return sum(w.written for w in self.work)

    @property
    def operations(self) -> float:
        """The floating-point operations, with each function as one."""
        return self.flops + self.transcendentals

    @property
    def intensity(self) -> float:
        """The floating-point operations for each byte that is read or written; 0 if there are no bytes."""
        moved = self.bytes_read + self.bytes_written
        return self.operations / moved if moved else 0.0

    def by_line(self) -> dict[str, LineCosts]:
        """Return the cost of each line, the most costly first: by time if it was measured, otherwise by operations.

        The times add up to that of the whole. A line in several scopes has a row for each, with a share of its time by
        operations and bytes. Lines that were only measured have no operations.
        """
        found: dict[str, list[Work]] = {}
        for w in self.work:
            found.setdefault(w.line, []).append(w)
        times = self._times(found)
        every = {k: LineCosts(k, tuple(found.get(k, ())), t) for k, t in times.items()}
        key = lambda item: (-sum(item[1].seconds.values()), -item[1].operations)
        return dict(sorted(every.items(), key=key))

    def _times(self, found: dict[str, list[Work]]) -> dict[str, dict[str, float]]:
        """Return the measured time of each line, and of the lines that were only measured, by their names."""
        weights = {k: sum(w.total + w.read + w.written for w in ws) for k, ws in found.items()}
        scoped: dict[str, list[str]] = {}
        for k in found:
            scoped.setdefault(_without_scope(k), []).append(k)
        times: dict[str, dict[str, float]] = {k: {} for k in found}
        for unscoped, seconds in self.seconds.items():
            lines = scoped.get(unscoped, [unscoped])
            whole = sum(weights.get(k, 0.0) for k in lines)
            for k in lines:
                share = weights.get(k, 0.0) / whole if whole else 1 / len(lines)
                times[k] = {unscoped: share * seconds}
        return times

    def compared(self, function: LineCosts) -> str:
        """Return how many times the operations of a function its gradient takes, and which lines take most.

        A gradient takes at most five times the operations of its function (Baur and Strassen). Lines that take more are
        named.

        Args:
          function: the cost of the function; this object is that of its gradient, or of another transformation of it.

        Raises:
          ArgumentError: the function has no floating-point operations (a ValueError).

        >>> import pullback.numpy as jnp
        >>> from pullback import analysis, grad
        >>> f = lambda x: jnp.sum(jnp.sin(x @ x))
        >>> own, slope = (analysis.cost(g)(jnp.ones((100, 100))).lines for g in (f, grad(f)))
        >>> print(slope.compared(own).splitlines()[0])
        3.0 times the operations of the function, within the bound of 5 for gradients
        """
        if not function.operations:
            raise ArgumentError(f"compared: {function.name} has no floating-point operations")
        ratio = self.operations / function.operations
        verdict = "within" if ratio <= BOUND else "above"
        rows = [f"{ratio:.1f} times the operations of the function, {verdict} the bound of {BOUND} for gradients"]
        before = function.by_line()
        for where, each in list(self.by_line().items())[:_SHOWN]:
            rows.append(f"  {100 * each.operations / max(self.operations, 1):.0f} % in {where}")
            own = before[where].operations if where in before else 0.0
            if own and each.operations > BOUND * own:
                rows[-1] += f", {each.operations / own:.1f} times that line: above the bound"
        return "\n".join(rows)

    def __str__(self) -> str:
        times = f", {_duration(sum(self.seconds.values()))}" if self.seconds else ""
        rows = [
            f"{self.name}: {_count(self.flops)} floating-point operations, {_count(self.transcendentals)} functions, "
            f"{amount(self.bytes_read)} read, {amount(self.bytes_written)} written, {self.intensity:.3g} a byte{times}"
        ]
        table = [(*self._heads(), ""), *self._rows()] if self.work or self.seconds else []
        rows += [("  " + "  ".join(f"{cell:>10}" for cell in cells) + f"  {where}").rstrip() for *cells, where in table]
        return "\n".join(rows)

    def _heads(self) -> list[str]:
        return ["share", "operations", "moved", *(["time"] if self.seconds else [])]

    def _rows(self) -> list[tuple[str, ...]]:
        """Return the rows of the table: the lines that cost most, and one row for all others."""
        lines = list(self.by_line().items())
        shown, others = (lines, []) if len(lines) <= _SHOWN + 1 else (lines[:_SHOWN], lines[_SHOWN:])
        if others:
            spent = {unscoped: 0.0 for _, each in others for unscoped in each.seconds}
            for _, each in others:
                for unscoped, seconds in each.seconds.items():
                    spent[unscoped] += seconds
            name = f"{len(others)} other lines"
            shown = [*shown, (name, LineCosts(name, tuple(w for _, each in others for w in each.work), spent))]
        return [(*self._row(each), where) for where, each in shown]

    def _row(self, each: LineCosts) -> list[str]:
        if self.seconds:
            share = sum(each.seconds.values()) / max(sum(self.seconds.values()), 1e-12)
        else:
            share = each.operations / max(self.operations, 1)
        cells = [f"{100 * share:.0f} %", _count(each.operations), amount(each.bytes_read + each.bytes_written)]
        return [*cells, _duration(sum(each.seconds.values()))] if self.seconds else cells

    def _repr_html_(self) -> str:
        rows = self._rows()
        return page(line(bold(str(self).splitlines()[0])), self.flame_graph(), table([*self._heads(), "line"], rows))

    # Pictures

    def flame_graph(self) -> str:
        """Return a flame graph as SVG: named scopes, the lines in them, and the operations of each line.

        Widths are shares of the measured time or, without it, of the floating-point operations and bytes moved.
        """
        tree = _Box(self.name)
        for where, each in self.by_line().items():
            unscoped, _, scope = where.partition(" [")
            path = [*(scope.rstrip("]").split("/") if scope else []), unscoped]
            own = [w.total + (w.read + w.written) / 4 for w in each.work]
            spent = sum(each.seconds.values()) if self.seconds else sum(own)
            for w, weight in zip(each.work, own, strict=True):
                share = weight / sum(own) if any(own) else 1 / len(own)
                tree.add([*path, f"{w.operation} {w.phase}".strip()], share * spent)
            if not each.work:
                tree.add(path, spent)
        return _flames(tree)

    def roofline(self, flops_per_second: float, bytes_per_second: float) -> str:
        """Return a roofline as SVG: how fast each line could be, by its operations for each byte.

        Lines left of the ridge wait for memory, those right of it for arithmetic. With measured times, a line stands
        where it was; otherwise it stands on the roof.

        Args:
          flops_per_second, bytes_per_second: what the machine can do.

        Raises:
          ArgumentError: one of them is not positive (a ValueError).

        Source: S. Williams, A. Waterman and D. Patterson, Roofline: an insightful visual performance model for
        multicore architectures, Communications of the ACM 52 (2009).
        """
        if not (flops_per_second > 0 and bytes_per_second > 0):
            raise ArgumentError(
                f"roofline: rates must be positive, got {flops_per_second!r} operations and {bytes_per_second!r} bytes "
                "a second"
            )
        points = []
        for where, each in self.by_line().items():
            if each.operations and each.intensity:
                roof = min(flops_per_second, each.intensity * bytes_per_second)
                spent = sum(each.seconds.values())
                points.append((where, each.intensity, each.operations / spent if spent else roof))
        return _roof(points, flops_per_second, bytes_per_second)


def _without_scope(where: str) -> str:
    """Return a line without its named scope, as times are measured."""
    return where.partition(" [")[0]


def _count(n: float) -> str:
    for factor, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= factor:
            return f"{n / factor:.3g} {unit}"
    return f"{n:.3g}"


def _duration(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def seconds_by_line(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, float]:
    """Run a function operation by operation; return the time of the operations of each line."""
    found: dict[str, float] = {}

    def timed(trace: RelayTrace, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]) -> Any:
        start = time.perf_counter()
        out = trace.parent.process(primitive, operands, params)
        for x in out if primitive.multiple_results else [out]:
            if type(x) is ArrayImpl:
                x._value  # noqa: B018 - which computes it, if it is pending
        spent = time.perf_counter() - start
        where = line_of_location(state.source_loc or source.here())
        found[where] = found.get(where, 0.0) + spent
        return out

    trace = RelayTrace(state.trace, timed, fun, "cost")
    trace.quick = False
    outer, scope = state.trace, state.scope
    state.trace, state.scope = trace, scope or source.Scope("")  # within a scope, tapes note the lines of operations
    try:
        with override("disable_jit", True):
            fun(*args, **kwargs)
    finally:
        state.trace, state.scope = outer, scope
        trace.live = False
    return found


# Pictures -------------------------------------------------------------------------------------------------------------

_WIDTH, _ROW = 640.0, 18


class _Box:
    """A box of a flame graph: its name, its width, and the boxes above it."""

    def __init__(self, name: str) -> None:
        self.name, self.width = name, 0.0
        self.inner: dict[str, _Box] = {}

    def add(self, path: list[str], width: float) -> None:
        """Add a path of names of some width."""
        self.width += width
        if path:
            self.inner.setdefault(path[0], _Box(path[0])).add(path[1:], width)

    def depth(self) -> int:
        return 1 + max((box.depth() for box in self.inner.values()), default=0)


def _flames(tree: _Box) -> str:
    height = tree.depth() * _ROW
    parts: list[str] = []

    def draw(box: _Box, left: float, width: float, level: int) -> None:
        if width < 0.5:
            return
        top = height - (level + 1) * _ROW
        share = f"{box.name}: {100 * box.width / max(tree.width, 1e-300):.1f} %"
        letters = int(width / 7)
        shown = box.name if letters >= len(box.name) else f"{box.name[: letters - 1]}…" if letters > 3 else ""
        parts.append(
            f'<g><title>{escaped(share)}</title><rect x="{left:.1f}" y="{top}" width="{max(width - 1, 0.5):.1f}" '
            f'height="{_ROW - 1}" fill="hsl({10 + 14 * (level % 4)},80%,60%)" fill-opacity=".45"/>'
            f'<text x="{left + 3:.1f}" y="{top + 13}" font-size="11" fill="currentColor">{escaped(shown)}</text></g>'
        )
        for each in sorted(box.inner.values(), key=lambda b: -b.width):
            own = width * each.width / box.width if box.width else 0.0
            draw(each, left, own, level + 1)
            left += own

    draw(tree, 0.0, _WIDTH, 0)
    return _svg(f"flame graph of {tree.name}", height, parts)


_ROOF, _LEFT, _LEGEND = 240, 76, 16
"""The height of the picture of a roofline without its texts, the width of those at its left, and the height of a row
of its legend."""


def _roof(points: Sequence[tuple[str, float, float]], flops: float, rate: float) -> str:
    ridge = flops / rate
    xs = [x for _, x, _ in points] + [ridge]
    ys = [y for _, _, y in points] + [flops]
    low, high = min(xs) / 4, max(xs) * 4
    bottom, top = min([*ys, low * rate]) / 2, max(ys) * 2
    across = lambda x: _LEFT + (_WIDTH - _LEFT) * math.log(x / low) / math.log(high / low)
    up = lambda y: _ROOF - _ROOF * math.log(y / bottom) / math.log(top / bottom)
    corner = f"{across(ridge):.1f},{up(flops):.1f}"
    roof = f"M{_LEFT},{up(low * rate):.1f}L{corner}H{_WIDTH}"
    parts = [
        f'<path d="{roof}" fill="none" stroke="currentColor" stroke-width="1.5"/>',
        f'<path d="M{_LEFT},0V{_ROOF}H{_WIDTH}" fill="none" stroke="currentColor" opacity=".5"/>',
        _text(_WIDTH, up(flops) - 6, f"{_count(flops)} operations a second", "end"),
        _text(across(low * 1.3) + 4, up(low * rate) + 4, f"{amount(rate)} a second"),
        _text(_WIDTH, _ROOF + 30, "operations for each byte", "end"),
        _text(_LEFT + 6, 12, "operations a second"),
    ]
    parts += [_text(across(10.0**k), _ROOF + 14, f"{10.0**k:g}", "middle") for k in _powers(low, high)]
    parts += [_text(_LEFT - 6, up(10.0**k) + 4, _count(10.0**k), "end") for k in _powers(bottom, top)]
    for i, (name, x, y) in enumerate(points):
        said = escaped(f"{i + 1}  {name}: {x:.3g} a byte, {_count(y)} a second")
        parts.append(
            f'<g><title>{said}</title><circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="4" fill="currentColor" '
            f'fill-opacity=".6"/>{_text(across(x) + 7, up(y) + 4, str(i + 1))}</g>'
        )
        if i < _SHOWN:
            parts.append(_text(4, _ROOF + 50 + _LEGEND * i, said))
    return _svg("roofline", _ROOF + 44 + _LEGEND * min(len(points), _SHOWN), parts)


def _powers(low: float, high: float) -> range:
    """Return the exponents of the powers of ten between two numbers; every second if they are many."""
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    return range(first, last + 1, 1 + (last - first) // 8)


def _text(x: float, y: float, said: str, anchor: str = "start") -> str:
    """Return a text of a picture; ``said`` is escaped already."""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="11" text-anchor="{anchor}" fill="currentColor">{said}</text>'


def _svg(what: str, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escaped(what)}" width="{_WIDTH:.0f}" '
        f'height="{height}" viewBox="0 0 {_WIDTH:.0f} {height}"><title>{escaped(what)}</title>{"".join(parts)}</svg>'
    )
