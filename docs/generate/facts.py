"""Facts for the reference that come from the library and from measurements: rules of operations, and errors in ulps."""

from __future__ import annotations

import functools
import inspect
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pullback import make_jaxpr
from pullback.core.trace import Primitive

from . import names
from .docstrings import entries, section

DERIVATIVES = Path(__file__).with_name("derivatives.json")
OF_DERIVATIVES = {
    "more than once": "Differentiable in {}, in forward and reverse mode, more than once.",
    "once": "Differentiable in {}, in forward and reverse mode, once.",
    "forward": "Differentiable in {}, in forward mode.",
    "reverse": "Differentiable in {}, in reverse mode.",
    "zero": "The derivative in {} is zero everywhere.",
    "none": "Not differentiable in {}.",
}
"""What is said of parameters whose derivatives ``tests/docs/derivatives.py`` found to be like this."""
NO_EFFECT = re.compile(
    r"(?:accepted|(?:is )?ignored|not used|(?:checked, |promises, )?without effect)\b(?!.*only None)"
    r"|[^;]*; without effect|[^;]*, accepted:"
)
"""How the description of a parameter begins that is there for the sake of NumPy's, SciPy's or JAX's signature."""
ACCURACY = Path(__file__).parents[1] / "accuracy.md"
ROW = re.compile(r"\| (?:`([^`]+)`)? *\| ([\w ]+) \| (\w+) \| ([^|]*) \| ([^|]*) \|")


class Measured(NamedTuple):
    """A row of the table of errors: what was measured, for which dtype, and the largest errors in ulps."""

    variant: str
    what: str
    dtype: str
    eager: str
    compiled: str


@functools.cache
def accuracy() -> dict[str, list[Measured]]:
    """Return the rows of ``docs/accuracy.md``, by the full name under which the function is described."""
    found: dict[str, list[Measured]] = {}
    function = variant = ""
    for line in ACCURACY.read_text(encoding="utf-8").splitlines():
        row = ROW.match(line)
        if row is None or row[3] == "dtype":
            continue
        if row[1]:
            function, _, variant = row[1].partition(" (")
        name = names.public_names().get(f"pullback.{function}")
        if name is not None:
            measured = Measured(variant.rstrip(")"), row[2], row[3], _largest(row[4]), _largest(row[5]))
            found.setdefault(name.main, []).append(measured)
    return found


def _largest(cell: str) -> str:
    """Return the largest error in a cell, which has the 99th percentile in parentheses."""
    return cell.split(" (")[0].strip(" †")


def operands(function: Any) -> int:
    """Return how many positional parameters without a default a function has."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 0
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is p.empty for p in parameters)


def _traced(function: Any) -> Primitive | None:
    """Return the operation that a function of scalars is, if its program has one equation."""
    scalars = [np.float32(0.5)] * operands(function)
    try:
        equations = make_jaxpr(function)(*scalars).jaxpr.eqns
    except Exception:  # it takes other operands, or none
        return None
    return equations[0].primitive if len(equations) == 1 and scalars else None


@functools.cache
def operations() -> dict[str, Primitive]:
    """Return the operation of each public function that is one, by the full name of the function."""
    there = names.public_names()
    found: dict[str, Primitive] = {}
    for full, name in there.items():
        if name.kind != "function" or name.second:
            continue
        declared = there.get(f"{full}_p")
        measured = full in accuracy() and name.module in ("pullback.numpy", "pullback.lax", "pullback.scipy.special")
        operation = getattr(declared, "value", None)
        if not isinstance(operation, Primitive):  # SciPy has functions whose names end with _p, too
            operation = _traced(name.value) if measured else None
        if operation is not None:
            found[full] = operation
    return found


def _rule(operation: Primitive, *kinds: str) -> str:
    if any(getattr(operation, f"{kind}_rule", None) is not None for kind in kinds):
        return "a rule of its own"
    return "the rules of its decomposition" if operation.decomposition_rule is not None else "none"


def rules(operation: Primitive) -> list[tuple[str, str]]:
    """Return what transforms an operation: pairs of a transformation and the kind of rule."""
    found = [("Derivative", _rule(operation, "jvp", "tangent", "directional"))]
    if operation.linear_in is not None or operation.transpose_rule is not None:
        found.append(("Transpose", _rule(operation, "transpose")))
    return [*found, ("Batching", _rule(operation, "batch"))]


def measured(full: str) -> list[Measured]:
    """Return the measured errors of a function, or those of another function that is the same operation."""
    if full in accuracy():
        return accuracy()[full]
    operation = operations().get(full)
    same = [other for other, o in operations().items() if o is operation and other in accuracy()]
    return accuracy()[same[0]] if operation is not None and same else []


# Parameters ----------------------------------------------------------------------------------------------------------


@functools.cache
def _measured_derivatives() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(DERIVATIVES.read_text(encoding="utf-8"))
    return found


def derivatives(full: str) -> list[str]:
    """Return sentences about the derivatives of a function in its parameters; none if they were not measured."""
    found = _measured_derivatives().get(full, {})
    sentences = []
    for kind, sentence in OF_DERIVATIVES.items():
        parameters = [f"``{parameter}``" for parameter, its in found.items() if its == kind]
        if parameters:
            *first, last = parameters
            sentences.append(sentence.format(f"{', '.join(first)} and {last}" if first else last))
    return sentences


def without_effect(doc: str) -> list[str]:
    """Return the parameters that are accepted without effect, as the section ``Args`` of a docstring says."""
    listed = entries(section(doc, "Args:")) or []
    said = [(names, " ".join(" ".join(text).split())) for names, text in listed]
    return [name for names, text in said if NO_EFFECT.match(text) for name in names.split(", ")]
