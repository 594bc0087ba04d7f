"""Programs: jaxprs as HTML with folds and links, and as a picture of characters; compiled programs as tables."""

from __future__ import annotations

import itertools
import os
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from pullback.core import source
from pullback.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from pullback.core.jaxpr_text import VariableNames, holds_programs, show_literal, show_param, used_variables
from pullback.display import pages

MOST_EQUATIONS = 1000
"""The most equations that are displayed; a line says how many more there are."""
_OPEN = 40
"""A program of at most so many equations is displayed with its inner programs open."""
_LONGEST = 120
"""Characters of a parameter that are displayed."""
_displays = itertools.count()


def programs_of(value: Any) -> Sequence[Any]:
    """Return the programs that a parameter of an equation is, if it is one or a tuple of them."""
    if not holds_programs(value):
        return ()
    return value if isinstance(value, tuple) else (value,)


def size(jaxpr: Any) -> int:
    """Return the number of equations of a program, with those of the programs within."""
    return sum(
        1 + sum(size(inner) for value in eqn.params.values() for inner in programs_of(value)) for eqn in jaxpr.eqns
    )


def html(program: ClosedJaxpr | Jaxpr) -> str:
    """Return a program as HTML: an equation a line, where each use of a variable is a link to its definition."""
    return _Page(program).written


class _Page:
    """A program that is written as HTML.

    Attributes:
      names: the names of variables, which are those of the printed program.
      prefix: begins the names of link targets: they differ between the displays of a page.
      defined: the variables with a link target. A program that several equations share is displayed for each of them,
        and links lead to the first.
      left: how many more equations may be displayed.
    """

    def __init__(self, program: ClosedJaxpr | Jaxpr) -> None:
        self.names = VariableNames()
        self.left = MOST_EQUATIONS
        count = size(program)
        self.is_open = count <= _OPEN
        digest = zlib.crc32(str(program).encode()) if count <= MOST_EQUATIONS else count
        self.prefix = f"p{digest:08x}-{next(_displays)}-"
        self.defined: set[Var] = set()
        self.written = self.program(program)
        if count > MOST_EQUATIONS:
            self.written += pages.line(pages.soft(f"{count - MOST_EQUATIONS:,} more equations; print(...) has all"))

    def binder(self, v: Var) -> str:
        """Return a variable where it is defined: its name, a target of links, and its type."""
        name = self.names(v)
        target = "" if v in self.defined else f' id="{self.prefix}{name}"'
        self.defined.add(v)
        return f"<span{target}>{name}</span>{pages.soft(f':{v.aval}')}"

    def atom(self, a: Atom) -> str:
        """Return an operand: a link to a variable's definition, or a number."""
        if isinstance(a, Literal):
            return pages.escaped(show_literal(a))
        name = self.names(a)
        return f'<a href="#{self.prefix}{name}" title="{pages.escaped(a.aval)}">{name}</a>'

    def program(self, program: Any) -> str:
        jaxpr: Jaxpr = getattr(program, "jaxpr", program)
        used = used_variables(jaxpr)
        consts, inputs = (" ".join(map(self.binder, variables)) for variables in (jaxpr.constvars, jaxpr.invars))
        lines = []
        for eqn in jaxpr.eqns:
            if self.left == 0:
                break
            self.left -= 1
            lines.append(self.equation(eqn, used))
        results = ", ".join(map(self.atom, jaxpr.outvars))
        comma = "," if len(jaxpr.outvars) == 1 else ""
        return "".join([
            pages.line(f"{{ lambda {consts}; {inputs}. let"),
            f'<div class="within">{"".join(lines)}</div>' if lines else "",
            pages.line(f"in ({results}{comma}) }}"),
        ])  # fmt: skip

    def equation(self, eqn: Eqn, used: set[Any]) -> str:
        binders = " ".join(self.binder(v) if v in used else f"_{pages.soft(f':{v.aval}')}" for v in eqn.outvars)
        operands = " ".join(map(self.atom, eqn.invars))
        params = " ".join(f"{k}={_cut(show_param(v))}" for k, v in sorted(eqn.params.items()) if not programs_of(v))
        shown = pages.soft(f"[{params}]") if params else ""
        name = f'<b title="{pages.escaped(line_of(eqn))}">{pages.escaped(eqn.primitive.name)}</b>'
        head = f"{binders} = {name}{shown} {operands}" if binders else f"{name}{shown} {operands}"
        inner = [
            pages.line(pages.soft(f"{key}[{i}]" if isinstance(value, tuple) else key)) + self.program(program)
            for key, value in sorted(eqn.params.items())
            for i, program in enumerate(programs_of(value))
        ]
        return pages.fold(head, "".join(inner), self.is_open) if inner else pages.line(head)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def line_of(eqn: Eqn) -> str:
    """Return the user's line of an equation as ``file:line``, or an empty text."""
    if eqn.made_at is None or eqn.made_at[0].co_filename.startswith("<frozen "):
        return ""
    return f"{os.path.basename(eqn.made_at[0].co_filename)}:{source.line_number(eqn.made_at)}"


# As a picture of characters ------------------------------------------------------------------------------------------


def box(closed: ClosedJaxpr, title: str, inputs: Sequence[str] = (), results: Sequence[str] = ()) -> str:
    """Return a program as lines of text, where a frame is around each program within.

    Args:
      closed: the program.
      title: its name.
      inputs, results: names of its first inputs and results.

    >>> import pullback.numpy as jnp
    >>> from pullback import make_jaxpr
    >>> from pullback.display.programs import box
    >>> print(box(make_jaxpr(lambda x: jnp.sin(x) * 2.0)(1.0), "f", ["x"]))
    f
    ├─ a:f32[] ← x
    ├─ b:f32[] = sin a ...
    ├─ c:f32[] = mul b 2.0:f32[] ...
    └─ result: c
    """
    names = VariableNames()
    left = itertools.repeat(None, MOST_EQUATIONS)
    jaxpr = closed.jaxpr
    lines = [title, *(f"├─ {names(v)}:{v.aval}, a constant" for v in jaxpr.constvars)]
    for i, v in enumerate(jaxpr.invars):
        lines.append(f"├─ {names(v)}:{v.aval}{f' ← {inputs[i]}' if i < len(inputs) else ', an input'}")
    lines += [f"├─ {line}" if is_first else f"│  {line}" for is_first, line in _equations(jaxpr, names, left)]
    hidden = size(jaxpr) - MOST_EQUATIONS
    lines += [f"├─ {hidden:,} more operations"] if hidden > 0 else []
    for i, a in enumerate(jaxpr.outvars):
        corner = "└─" if i == len(jaxpr.outvars) - 1 else "├─"
        lines.append(f"{corner} {results[i] if i < len(results) else 'result'}: {_shown(a, names)}")
    return "\n".join(lines)


def _equations(jaxpr: Any, names: VariableNames, left: Iterator[None]) -> Iterator[tuple[bool, str]]:
    """Yield the lines of the equations of a program, and whether a line is the first one of an equation."""
    used = used_variables(jaxpr)
    for eqn in jaxpr.eqns:
        if next(left, False) is False:
            return
        binders = " ".join(f"{names(v) if v in used else '_'}:{v.aval}" for v in eqn.outvars)
        operands = " ".join(_shown(a, names) for a in eqn.invars)
        called = eqn.params.get("name")
        name = f"{eqn.primitive.name} {called}" if isinstance(called, str) else eqn.primitive.name
        at = line_of(eqn)
        yield True, f"{f'{binders} = ' if binders else ''}{name} {operands}{f'    # {at}' if at else ''}".rstrip()
        for key, value in sorted(eqn.params.items()):
            for i, program in enumerate(programs_of(value)):
                inner = getattr(program, "jaxpr", program)
                inputs = " ".join(f"{names(v)}:{v.aval}" for v in inner.invars)
                yield False, f"┌ {key}{f'[{i}]' if isinstance(value, tuple) else ''} {inputs}".rstrip()
                for _, line in _equations(inner, names, left):
                    yield False, f"│ {line}"
                yield False, f"└ {' '.join(_shown(a, names) for a in inner.outvars)}".rstrip()


def _shown(a: Atom, names: VariableNames) -> str:
    return show_literal(a) if isinstance(a, Literal) else names(a)


# Compiled programs ---------------------------------------------------------------------------------------------------

_COSTS = (("flops", "operations on numbers"), ("transcendentals", "of which transcendental"))
_SIZES = (
    ("argument_size_in_bytes", "arguments"), ("output_size_in_bytes", "results"),
    ("alias_size_in_bytes", "results in the memory of arguments"), ("temp_size_in_bytes", "temporary values"),
    ("generated_code_size_in_bytes", "code"),
)  # fmt: skip


def compiled_facts(compiled: Any) -> list[tuple[str, str]]:
    """Return what the compiler says of a program: its device, arguments, results, cost and memory."""
    lowered = compiled.lowered
    rows = [
        ("function", lowered.program.name.removeprefix("jit_")),
        ("device", str(compiled.program.device)),
        ("arguments", ", ".join(map(format, lowered.traced.in_avals)) or "none"),
        ("results", ", ".join(map(format, lowered.traced.out_avals)) or "none"),
    ]
    cost = _said(compiled.cost_analysis) or {}
    rows += [(name, f"{cost[key]:,.0f}") for key, name in _COSTS if cost.get(key, 0) > 0]
    if cost.get("bytes accessed", 0) > 0:
        rows.append(("memory traffic", pages.amount(cost["bytes accessed"])))
    memory = _said(compiled.memory_analysis)
    for key, name in _SIZES:
        count = getattr(memory, key, None)
        if count is not None:
            rows.append((f"memory of {name}", pages.amount(count)))
    return rows


def _said(analysis: Any) -> Any:
    """Return an estimate of the compiler's, or None if it has none: not every device's does."""
    try:
        return analysis()
    except Exception:  # whatever the plug-in of a device raises: a display leaves out what is not known
        return None
