"""Programs as Python: a test that runs by itself, with the sources of the words that it uses."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any

from tests.fuzz import namespace
from tests.fuzz.laws import Failure, wide
from tests.fuzz.program import BODY, OPERAND, Case, Instruction, Program

_NAME = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*")
MODULES = {
    "np": "import numpy as np", "math": "import math", "jnp": "import pullback.numpy as jnp",
    "pullback": "import pullback.primitives",
    "custom_vmap": "from pullback.custom_batching import custom_vmap",
    "import_module": "from importlib import import_module", "walk_packages": "from pkgutil import walk_packages",
    "row": "from tests.fuzz.rows import function as row",
}  # fmt: skip


class _Printer:
    """The lines of a program's functions."""

    def __init__(self, plain: bool) -> None:
        self.plain, self.count = plain, 0

    def function(self, name: str, program: Program, letter: str, one: bool) -> list[str]:
        """The definition of a function, with those of its bodies before they are used."""
        names = [f"{letter}{k}" for k in range(program.inputs)]
        lines = [f"def {name}({', '.join(names)}):"]
        for step in program.instructions:
            names.append(f"{letter}{len(names)}")
            lines += [f"    {line}" for line in self.instruction(step, names, letter)]
        out = [names[i] for i in program.outputs]
        return [*lines, f"    return {out[0] if one else '[' + ', '.join(out) + ']'}"]

    def instruction(self, step: Instruction, names: Sequence[str], letter: str) -> list[str]:
        lines, functions = [], []
        deeper = chr(ord(letter) + 1)
        for body in step.bodies:
            functions.append(f"g{self.count}")
            self.count += 1
            lines += self.function(functions[-1], body, deeper, one=True)
        text = step.plain if self.plain and step.plain is not None else step.text
        text = BODY.sub(lambda m: functions[int(m[1])], text)
        text = OPERAND.sub(lambda m: names[step.operands[int(m[1])]], text)
        return [*lines, f"{names[-1]} = {text}"]


def function(name: str, program: Program, plain: bool = False) -> list[str]:
    """The lines of a program as a function of a name."""
    return _Printer(plain).function(name, program, "a", one=False)


def test(case: Case, failure: Failure) -> str:
    """The text of a test that fails as the case does."""
    body = function("program", case.program)
    if failure.law in ("plain", "refused"):
        body += ["", "", *function("plain", case.program, plain=True)]
    lines = [*body, "", "", *_assertions(case, failure)]
    words = _words("\n".join(lines))
    sources = [
        line for word in words for line in ["", "", *inspect.getsource(namespace.WORDS[word]).rstrip().split("\n")]
    ]
    text = "\n".join([*sources, *lines])
    head = [
        f'"""Program {case.seed}, {failure.law}: {failure.message.splitlines()[0]}"""',
        "",
        *_imports(text),
        "",
        *_dtypes(text, failure),
    ]
    return "\n".join([*head, *sources, "", "", *lines]) + "\n"


def _words(text: str) -> list[str]:
    """The words that a text uses, and those that these use."""
    found: list[str] = []
    waiting = [text]
    while waiting:
        used = set(_NAME.findall(waiting.pop()))
        for word, f in namespace.WORDS.items():
            if word in used and word not in found:
                found.append(word)
                waiting.append(inspect.getsource(f))
    return [word for word in namespace.WORDS if word in found]


def _imports(text: str) -> list[str]:
    used = set(_NAME.findall(text))
    lines = [line for name, line in MODULES.items() if name in used]
    face = [name for name in namespace.FACE if name in used]
    lines.append(f"from pullback import {', '.join(sorted([*face, 'enable_x64']))}")
    of_derivatives = [name for name in namespace.DERIVATIVES if name in used]
    return lines + ([f"from pullback.derivatives import {', '.join(of_derivatives)}"] if of_derivatives else [])


def _dtypes(text: str, failure: Failure) -> list[str]:
    double = int(failure.law not in ("single", "compiled"))
    used = [name for name in namespace.DTYPES if re.search(rf"(?<![\w.]){name}\b", text)]
    return [
        f"{name} = jnp.{namespace.DTYPES[name][double].dtype.name if name != 'bool_' else 'bool_'}" for name in used
    ]


def _literal(x: Any) -> str:
    shown = wide(x)
    return f"np.array({shown.tolist()!r})".replace("nan", "np.nan").replace("inf", "np.inf")


def _assertions(case: Case, failure: Failure) -> list[str]:
    arguments = ", ".join(f"array({x.values!r}, {x.dtype})" for x in case.inputs)
    double = failure.law not in ("single", "compiled")
    lines = ["def test_program():", f"    with enable_x64({double}):", f"        args = [{arguments}]"]
    call = {
        "compiled": "jit(program)(*args)", "staged": "make_jaxpr(program)(*args)",
        "differences": "jvp(program, args, [jnp.asarray(t) for t in DIRECTION])[1]",
        "transposed": "jvp(program, args, [...]), vjp(program, *args)",
    }.get(failure.law, "program(*args)")  # fmt: skip
    lines.append(f"        got = {call}")
    if failure.how not in ("value", "type"):
        return lines + [f"        # {line}" for line in failure.message.splitlines()]
    source = "program" if failure.law == "compiled" else "plain" if failure.law == "plain" else ""
    if source:
        lines.append(f"        expected = {source}(*args)")
        lines.append("        for a, b in zip(got, expected):")
        lines.append("            np.testing.assert_allclose(a, b, rtol=1e-6)")
    return [
        *lines,
        f"    # {failure.message}",
        f"    # expected: {_literal(failure.expected)}",
        f"    # got:      {_literal(failure.got)}",
    ]


def summary(case: Case) -> str:
    """One line about a program."""
    kinds: dict[str, int] = {}
    for step in case.program.steps():
        kinds[step.kind] = kinds.get(step.kind, 0) + 1
    return ", ".join(f"{k} {n}" if n > 1 else k for k, n in sorted(kinds.items()))
