"""Small programs as Python functions of NumPy's numbers, for methods on the host that call them thousands of times.

The call of a compiled program takes about thirty microseconds, and an operation on NumPy's scalars a tenth of one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.core.jaxpr import ClosedJaxpr, Eqn, Literal
from pullback.transforms.traces.derived import cached_by_jaxpr

MOST_TIME = 30.0
"""The estimated time, in microseconds, of the longest program that becomes a Python function."""

_INFIX = {"add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "neg": "-{}"}
_SCALAR, _ARRAY = 0.1, 1.0
Function = Callable[[Any, Any], Any]


@cached_by_jaxpr
def by_numpy(program: ClosedJaxpr) -> Callable[[Sequence[Any]], Function] | None:
    """Return the maker of a function that runs a program with one result; None if it is long or has other rules.

    Args:
      program: of a time, a vector, and any parameters; it returns a vector.

    Returns:
      ``make(parameters)``, which returns a function of the time, a NumPy scalar, and of the vector.
    """
    if program.jaxpr.effect or any(
        eqn.primitive.host_rule is None or eqn.primitive.multiple_results for eqn in program.jaxpr.eqns
    ):
        return None
    text = _Text(program)
    return text.function() if text.time <= MOST_TIME else None


class _Text:
    """The text of a program in Python.

    Elements of vectors are read once, and a vector that is joined from numbers is made at once.

    Attributes:
      lines: one for each operation.
      names: those of the variables.
      numbers: the names of the only elements of vectors that have one element and are not made yet.
      elements: the names of the elements that were read, by the vector's name and the position.
      known: what the names of rules and constants stand for.
      time: an estimate in microseconds.
    """

    def __init__(self, program: ClosedJaxpr) -> None:
        self.lines: list[str] = []
        self.names: dict[Any, str] = {}
        self.numbers: dict[Any, str] = {}
        self.elements: dict[tuple[str, int], str] = {}
        self.known: dict[str, Any] = {"array": np.array}
        self.time = 0.0
        first, second, *rest = program.jaxpr.invars
        self.names |= {first: "t", second: "y"} | {v: f"p{i}" for i, v in enumerate(rest)}
        self.count = len(rest)
        for v, x in zip(program.jaxpr.constvars, program.consts, strict=True):
            self.names[v] = self.constant(np.asarray(x)[()])
        for eqn in program.jaxpr.eqns:
            self.add(eqn)
        self.result = self.name(program.jaxpr.outvars[0])

    def function(self) -> Callable[[Sequence[Any]], Function]:
        """Return the maker of the function."""
        parameters = "".join(f"p{i}, " for i in range(self.count))
        lines = [f"    {parameters}= parameters"] if parameters else []
        body = [f"        {line}" for line in (*self.lines, f"return {self.result}")]
        text = "\n".join(["def make(parameters):", *lines, "    def function(t, y):", *body, "    return function"])
        exec(compile(text, "<a program as a function>", "exec"), self.known)
        return self.known["make"]  # type: ignore[no-any-return]

    def constant(self, value: Any) -> str:
        """Return a new name for a value."""
        name = f"c{len(self.known)}"
        self.known[name] = value
        return name

    def line(self, expression: str, time: float) -> str:
        """Add a line, and return the name of its value."""
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {expression}")
        self.time += time
        return name

    def name(self, atom: Any) -> str:
        """Return the name of an operand, whose vector is made if it is not yet."""
        if isinstance(atom, Literal):
            return self.constant(np.asarray(atom.val, atom.aval.dtype)[()])
        if atom not in self.names:
            self.names[atom] = self.line(f"array(({self.numbers[atom]},))", _ARRAY)
        return self.names[atom]

    def add(self, eqn: Eqn) -> None:
        """Add an operation."""
        (out,), shapes = eqn.outvars, [x.aval.shape for x in eqn.invars]
        name, params, first = eqn.primitive.name, eqn.params, eqn.invars[0] if eqn.invars else None
        if name == "slice" and len(shapes[0]) == 1 and out.aval.shape == (1,):
            self.numbers[out] = self.element(first, params["start_indices"][0])
        elif out.aval.shape == (1,) and name in ("reshape", "broadcast_in_dim") and shapes[0] == ():
            self.numbers[out] = self.name(first)
        elif out.aval.shape == () and name in ("reshape", "squeeze") and first in self.numbers:
            self.names[out] = self.numbers[first]
        elif name == "concatenate" and all(x in self.numbers for x in eqn.invars):
            self.names[out] = self.line(f"array(({', '.join(self.numbers[x] for x in eqn.invars)},))", _ARRAY)
        elif out.aval.shape == () and out.aval.dtype.kind == "f" and (text := self.infix(eqn)) is not None:
            self.names[out] = self.line(text, _SCALAR)
        else:
            rule = eqn.primitive.host_rule
            assert rule is not None
            called = self.constant(partial(rule, **params) if params else rule)
            self.names[out] = self.line(f"{called}({', '.join(map(self.name, eqn.invars))})", _ARRAY)

    def infix(self, eqn: Eqn) -> str | None:
        """Return an operation on numbers as Python writes it, or None."""
        if eqn.primitive.name == "integer_pow" and eqn.params["y"] == 2:
            return "{0} * {0}".format(self.name(eqn.invars[0]))
        form = _INFIX.get(eqn.primitive.name)
        return None if form is None else form.format(*map(self.name, eqn.invars))

    def element(self, vector: Any, position: int) -> str:
        """Return the name of an element of a vector."""
        if vector in self.numbers:
            return self.numbers[vector]
        key = self.name(vector), position
        if key not in self.elements:
            self.elements[key] = self.line(f"{key[0]}[{position}]", _SCALAR)
        return self.elements[key]
