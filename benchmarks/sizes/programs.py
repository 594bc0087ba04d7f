"""Whether two libraries have the same compiled program: texts of optimised programs, without names.

Where the programs are the same, the ratio of two times shows the machine, not the libraries.
"""

from __future__ import annotations

import hashlib
import re

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_METADATA = re.compile(rf', (?:metadata|origin)=\{{(?:[^{{}}"]|\{{[^{{}}]*\}}|{_QUOTED})*\}}')
_COMMENT = re.compile(r"/\*.*?\*/")
_NAME = re.compile(r"%[\w.\-]+")
_COMPUTATION = re.compile(r"(?:ENTRY )?(%[\w.\-]+) \(.*\{$")
_INSTRUCTION = re.compile(r"  (ROOT )?(%[\w.\-]+) = (.*)")


def digest(text: str) -> str:
    """A number of a program: that of another is the same if the programs differ in names and order only.

    An instruction is told by its type, its operation, its attributes and its operands; a computation by its result and
    by all of its instructions, so that what is computed twice counts twice. Of long constants the text has the types.

    Args:
      text: an optimised program in the language of XLA, as ``Compiled.as_text`` returns it.

    Raises:
      ValueError: the text has no computation.
    """
    computations: dict[str, str] = {}
    known: dict[str, str] = {}
    of_computation: list[str] = []
    name = result = ""
    for line in map(_without_notes, text.splitlines()):
        if found := _COMPUTATION.match(line):
            name, known, of_computation, result = found[1], dict(computations), [], ""
        elif found := _INSTRUCTION.match(line):
            root, instruction, definition = found.groups()
            known[instruction] = _hash(_NAME.sub(lambda operand: known[operand[0]], definition))  # noqa: B023
            of_computation.append(known[instruction])
            result = known[instruction] if root else result
        elif line.startswith("}"):
            computations[name] = _hash(result, *sorted(of_computation))
    if not computations:
        raise ValueError(f"a program in the language of XLA is expected, but got {text[:40]!r}")
    return computations[name]


def _without_notes(line: str) -> str:
    return _COMMENT.sub("", _METADATA.sub("", line))


def _hash(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
