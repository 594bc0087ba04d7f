"""The printer of jaxprs.

It recognizes a literal by its attribute ``val`` and a program by ``eqns``, so that ``core/jaxpr`` can import it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.array import SCALARS, ArrayImpl


class VariableNames:
    """A callable that returns a variable's name: a, b, ..., z, ba, bb, ..., in the order of first use.

    It also holds the flags for printing: whether to show source locations (``source_info``) and scopes
    (``name_stack``).
    """

    def __init__(self, source_info: bool = False, name_stack: bool = False) -> None:
        self.source_info = source_info
        self.name_stack = name_stack
        self.names: dict[Any, str] = {}

    def __call__(self, var: Any) -> str:
        name = self.names.get(var)
        if name is None:
            name = self.names[var] = self.letters(len(self.names))
        return name

    @staticmethod
    def letters(n: int) -> str:
        text = ""
        while n or not text:
            n, digit = divmod(n, 26)
            text = chr(97 + digit) + text
        return text


_WIDTH = 80  # a program that fits is printed on one line


def show_literal(literal: Any) -> str:
    value = literal.val._value if isinstance(literal.val, ArrayImpl) else literal.val
    number = value.item() if hasattr(value, "item") else value
    return f"{number}:{literal.aval}"


def _show_atom(atom: Any, names: VariableNames) -> str:
    return show_literal(atom) if hasattr(atom, "val") else names(atom)


def _show_binders(variables: Sequence[Any], names: VariableNames) -> str:
    return " ".join(f"{names(v)}:{v.aval}" for v in variables)


def used_variables(jaxpr: Any) -> set[Any]:
    atoms = [a for eqn in jaxpr.eqns for a in eqn.invars] + jaxpr.outvars
    return {a for a in atoms if not hasattr(a, "val")}


def show_jaxpr(jaxpr: Any, names: VariableNames, indent: str) -> list[str]:
    used = used_variables(jaxpr)
    consts = _show_binders(jaxpr.constvars, names)
    inputs = _show_binders(jaxpr.invars, names)
    head = f"{{ lambda {consts}; {inputs}. let"
    lines = []
    for eqn in jaxpr.eqns:
        binders = " ".join(f"{names(v) if v in used else '_'}:{v.aval}" for v in eqn.outvars)
        lines += show_eqn(eqn, names, binders, indent + "    ")
        if names.source_info or names.name_stack:
            lines[-1] += _show_origin(eqn, names)
    results = ", ".join(_show_atom(a, names) for a in jaxpr.outvars)
    tail = f"in ({results + ',' if len(jaxpr.outvars) == 1 else results}) }}"
    if len(lines) == len(jaxpr.eqns) and not names.source_info:
        whole = f"{head} {'; '.join(line.strip() for line in lines)} {tail}"
        if len(indent) + len(whole) <= _WIDTH:
            return [whole]
    return [head, *lines, f"{indent}  {tail}"] if lines else [f"{head}  {tail}"]


def _show_origin(eqn: Any, names: VariableNames) -> str:
    """Return a comment with an equation's named scopes and source location, if the flags of ``names`` ask for them."""
    info = eqn.source_info
    scope = f" # {info.name_stack}" if names.name_stack and info.name_stack else ""
    return f"{scope} # from {info}" if names.source_info else scope


def show_eqn(eqn: Any, names: VariableNames, binders: str, indent: str) -> list[str]:
    operands = "".join(" " + _show_atom(a, names) for a in eqn.invars)
    params = dict(sorted(eqn.params.items()))
    nested = {k: v for k, v in params.items() if holds_programs(v)}
    head = f"{indent}{binders} = {eqn.primitive.name}" if binders else f"{indent}{eqn.primitive.name}"
    if not nested:
        shown = " ".join(f"{k}={show_param(v)}" for k, v in params.items())
        return [f"{head}[{shown}]{operands}" if shown else f"{head}{operands}"]
    lines = [head + "["]
    for name, value in params.items():
        if name not in nested:
            lines.append(f"{indent}  {name}={show_param(value)}")
        elif isinstance(value, tuple):
            programs = [line for item in value for line in _show_program("", item, names, indent + "    ")]
            lines += [f"{indent}  {name}=(", *programs, f"{indent}  )"]
        else:
            lines += _show_program(f"{name}=", value, names, indent + "  ")
    return [*lines, f"{indent}]{operands}"]


def _show_program(label: str, program: Any, names: VariableNames, indent: str) -> list[str]:
    first, *others = show_jaxpr(getattr(program, "jaxpr", program), names, indent)
    return [f"{indent}{label}{first}", *others]


def holds_programs(value: Any) -> bool:
    """Whether a parameter is a program, or a tuple of programs."""
    if isinstance(value, tuple):
        return bool(value) and all(hasattr(item, "eqns") for item in value)
    return hasattr(value, "eqns")


def show_param(value: Any) -> str:
    if isinstance(value, np.dtype):
        return str(value)
    return getattr(value, "__name__", None) or str(value)


def literal_key(a: Any) -> tuple[Any, ...]:
    """Return a key that is the same for equal literals, so that they can be merged.

    The key has the literal's type and bits: 0.0 and -0.0 are different literals, and NaN equals itself.
    """
    value = a.val._value if isinstance(a.val, ArrayImpl) else a.val
    return type(value), repr(value) if type(value) in SCALARS else value.tobytes(), a.aval
