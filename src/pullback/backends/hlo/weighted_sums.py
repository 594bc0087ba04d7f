"""Detection of sums of products that the compiler's library computes wrongly, in the text of a program.

Where the library computes reductions (``xla_cpu_experimental_ynn_fusion_type`` REDUCE, the compiler's default), jaxlib
0.10.2 computes wrongly a kernel that sums products with a factor that is repeated along the rows, and repeats the sums
along these rows: ``jit(lambda v, x: x - (v * x).sum(1, keepdims=True))`` of 300 rows has the sums of other rows in two
thirds of them, in JAX too. The order of factors that fails depends on how the compiler has rewritten them. Sums that
are not repeated are right.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

_OPERATION = re.compile(r"\s*(%\w+)(?::\d+)? = \"?(?:stablehlo|chlo|func)\.?(\w+)?\"?(.*)")
_NAME = re.compile(r"%\w+")
_FUNCTION = re.compile(r"@(\w+)")
_SIZES = re.compile(r"tensor<((?:[\d?]+x)*)")
_OWN_LOOPS = frozenset(
    ("dot_general", "convolution", "custom_call", "while", "sort", "gather", "scatter", "case", "if")
)
"""Operations that are not fused with those that compute their operands."""

_CONSTANT, _REPEATED, _PRODUCT, _SUM = 1, 2, 4, 8
"""Flags of a value: constant; repeated along an axis; computed from a product with a repeated factor; from a sum of
these products."""


class _Operation(NamedTuple):
    result: str
    kind: str
    operands: list[str]
    callee: str
    makes: int  # the flags of the result by the kind of the operation


class _Function:
    """A function of a program in text form: its operations, and flags of its values (constant, repeated, ...)."""

    def __init__(self, name: str, parameters: list[str]) -> None:
        self.name = name
        self.parameters = parameters
        self.parameter_flags = [0] * len(parameters)
        self.operations: list[_Operation] = []
        self.returned: list[str] = []
        self.returns = 0


def are_in(text: str) -> bool:
    """Whether a program may broadcast a sum of products in which a factor is computed from a broadcast value.

    >>> from pullback.backends.hlo.weighted_sums import are_in
    >>> product = "%2 = stablehlo.multiply %1, %arg1 : tensor<3x2xf32>"
    >>> line = '%1 = "stablehlo.broadcast_in_dim"(%arg0) {} : (tensor<2xf32>) -> tensor<3x2xf32>'
    >>> total = '%4 = "stablehlo.reduce"(%2, %3) ({'
    >>> again = '%5 = "stablehlo.broadcast_in_dim"(%4) {} : (tensor<3xf32>) -> tensor<3x2xf32>'
    >>> are_in("\\n".join((line, product, total, again))), are_in("\\n".join((line, product, total)))
    (True, False)
    """
    if "stablehlo.reduce" not in text or "broadcast_in_dim" not in text:
        return False
    functions = _functions(text)
    changed = True
    while changed:  # a fixed point: the flags of parameters and results of functions depend on each other
        changed = False
        for function in functions.values():
            before = function.returns
            found, extended = _analyse(function, functions)
            if found:
                return True
            changed = changed or extended or function.returns != before
    return False


def _functions(text: str) -> dict[str, _Function]:
    """Parse the functions of a program, by name; operations outside of functions belong to the function ''."""
    current = _Function("", [])
    functions = {"": current}
    for line in text.splitlines():
        if "func.func" in line:  # its value names are local to it
            name = _FUNCTION.search(line)
            current = _Function(name[1] if name else "", _NAME.findall(line))
            functions[current.name] = current
        elif "func.return" in line:
            current.returned += _NAME.findall(line)
        else:
            found = _OPERATION.match(line)
            if found is not None:
                result, kind, rest = found.groups()
                callee = _FUNCTION.search(rest) if kind == "call" else None
                makes, names = _flags_by_kind(kind, rest), _NAME.findall(rest)
                current.operations.append(_Operation(result, kind or "", names, callee[1] if callee else "", makes))
    return functions


def _flags_by_kind(kind: str, rest: str) -> int:
    """The flags of a result that follow from the operation's name ``kind``: constant, or repeated along an axis.

    ``rest`` is the text of the operation's line after the name, with the types. Returns 0 if no flag follows.
    """
    if kind == "constant":
        return _CONSTANT
    if kind == "iota":
        return _REPEATED if _SIZES.findall(rest)[-1].count("x") > 1 else 0
    if kind != "broadcast_in_dim":
        return 0
    operand, *_, result = ([n for n in size.split("x") if n not in ("", "1")] for size in _SIZES.findall(rest))
    if "?" not in operand and "?" not in result and math.prod(map(int, result)) == math.prod(map(int, operand)):
        return 0
    return _REPEATED if operand else _CONSTANT


def _analyse(function: _Function, functions: dict[str, _Function]) -> tuple[bool, bool]:
    """Compute the flags (constant, repeated, ...) of the values of a function, from the flags of its parameters.

    Operands of calls pass their flags on to the parameters of the functions called.

    Returns:
      Whether the function broadcasts a sum of products that have a factor repeated along an axis, and whether a
      parameter of a called function got a new flag.
    """
    extended = False
    known = dict(zip(function.parameters, function.parameter_flags, strict=True))
    for result, kind, operands, callee, makes in function.operations:
        flags = [known.get(x, 0) for x in operands]
        either = 0
        for flag in flags:
            either |= flag
        if kind == "broadcast_in_dim" and makes and either & _SUM:
            return True, extended
        if makes:
            known[result] = either & (_PRODUCT | _SUM) | makes
        elif kind == "call" and callee in functions:
            called = functions[callee]
            for i, flag in enumerate(flags[: len(called.parameter_flags)]):
                extended = extended or bool(flag & ~called.parameter_flags[i])
                called.parameter_flags[i] |= flag
            known[result] = called.returns
        elif kind in _OWN_LOOPS:
            known[result] = 0
        elif kind in ("reduce", "reduce_window"):
            known[result] = _SUM if either & (_PRODUCT | _SUM) else 0
        else:
            constant = bool(flags) and all(flag & _CONSTANT for flag in flags)
            repeated = either & _REPEATED and all(flag & (_CONSTANT | _REPEATED) for flag in flags)
            derived = either & (_PRODUCT | _SUM)
            if kind in ("multiply", "divide") and either & _REPEATED:
                derived |= _PRODUCT
            known[result] = derived | (_REPEATED if repeated else 0) | (_CONSTANT if constant else 0)
    function.returns = 0
    for name in function.returned:
        function.returns |= known.get(name, 0)
    return False, extended
