"""Detection of sums of products that the compiler's library computes wrongly, in the text of a program.

Where the library computes reductions (``xla_cpu_experimental_ynn_fusion_type`` REDUCE, the compiler's default), jaxlib
0.10.2 computes wrongly a kernel that sums products with a factor that is repeated along the rows, and repeats the sums
along these rows: ``jit(lambda v, x: x - (v * x).sum(1, keepdims=True))`` of 300 rows has the sums of other rows in two
thirds of them, in JAX too. The order of factors that fails depends on how the compiler has rewritten them. Sums that
are not repeated are right, and so are sums whose factors are repeated only along the axes that are summed, a factor for
each row: these are in the gradients of variances and layer norms.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

_OPERATION = re.compile(r"\s*(%\w+)(?::\d+)? = \"?(?:stablehlo|chlo|func)\.?(\w+)?\"?(.*)")
_NAME = re.compile(r"%\w+")
_FUNCTION = re.compile(r"@(\w+)")
_SIZES = re.compile(r"tensor<((?:[\d?]+x)*)")
_OWN_LOOPS = frozenset(
    ("dot_general", "convolution", "custom_call", "while", "sort", "gather", "scatter", "case", "if")
)
"""Operations that are not fused with those that compute their operands."""

_CONSTANT, _REPEATED, _PRODUCT, _SUM, _RIGHT_SUM, _AXIS = 1, 2, 4, 8, 16, 32
"""Flags of a value: constant; repeated along an axis; computed from a product with a repeated factor; from a sum of
these products; from a sum of them that the library gets right, if it is not summed again; ``_AXIS << k``, if it is or
has a factor that is repeated along axis k."""
_DERIVED = _PRODUCT | _SUM | _RIGHT_SUM
_MOST_AXES = 16
_AXES = ((1 << _MOST_AXES) - 1) * _AXIS
_DIMENSIONS = re.compile(r"\bdimensions = array<i64(?:: ([\d, ]*))?>")
_BROADCAST_DIMENSIONS = re.compile(r"broadcast_dimensions = array<i64(?:: ([\d, ]*))?>")


class _Operation(NamedTuple):
    result: str
    kind: str
    operands: list[str]
    callee: str
    makes: int  # the flags of the result by the kind of the operation
    moves: bool  # whether the axes of the result are others than those of the operands
    summed: int = 0  # the flags of the axes over which it sums


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
    opened: list[int | None] = []  # of the regions that are open: the operation, if it is a reduction
    for line in text.splitlines():
        if "func.func" in line:  # its value names are local to it
            name = _FUNCTION.search(line)
            current = _Function(name[1] if name else "", _NAME.findall(line))
            functions[current.name] = current
        elif "func.return" in line:
            current.returned += _NAME.findall(line)
        elif line.startswith("})") and opened:
            k, summed = opened.pop(), _DIMENSIONS.search(line)
            if k is not None and summed is not None and _SIZES.findall(line)[-1]:  # not to a single number
                current.operations[k] = current.operations[k]._replace(summed=_axes(_numbers(summed)))
        else:
            found = _OPERATION.match(line)
            if found is not None:
                result, kind, rest = found.groups()
                callee = _FUNCTION.search(rest) if kind == "call" else None
                makes, names = _flags_by_kind(kind, rest), _NAME.findall(rest)
                moves = kind == "transpose" or len({sizes for sizes in _SIZES.findall(rest) if sizes}) > 1
                current.operations.append(
                    _Operation(result, kind or "", names, callee[1] if callee else "", makes, moves)
                )
                if rest.endswith("({"):
                    opened.append(len(current.operations) - 1 if kind == "reduce" else None)
    return functions


def _numbers(found: re.Match[str]) -> list[int]:
    return [int(k) for k in (found[1] or "").split(",") if k.strip()]


def _axes(axes: Iterable[int]) -> int:
    """The flags of axes; of all, if there are more than there are flags for."""
    flags = 0
    for k in axes:
        flags |= _AXIS << k
    return flags if flags & ~_AXES < _AXIS << _MOST_AXES else _AXES


def _flags_by_kind(kind: str, rest: str) -> int:
    """The flags of a result that follow from the operation's name ``kind``: constant, or repeated along some axes.

    ``rest`` is the text of the operation's line after the name, with the types. Returns 0 if no flag follows.
    """
    if kind == "constant":
        return _CONSTANT
    if kind == "iota":
        return _REPEATED | _AXES if _SIZES.findall(rest)[-1].count("x") > 1 else 0
    if kind != "broadcast_in_dim":
        return 0
    before, *_, after = ([n for n in sizes.split("x") if n] for sizes in _SIZES.findall(rest))
    operand, result = ([n for n in sizes if n != "1"] for sizes in (before, after))
    if "?" not in operand and "?" not in result and math.prod(map(int, result)) == math.prod(map(int, operand)):
        return 0
    if not operand:
        return _CONSTANT
    found = _BROADCAST_DIMENSIONS.search(rest)
    if found is None or "?" in before or "?" in after:
        return _REPEATED | _AXES
    varies = {k for k, size in zip(_numbers(found), before, strict=True) if size != "1"}
    return _REPEATED | _axes(k for k, size in enumerate(after) if size != "1" and k not in varies)


def _analyse(function: _Function, functions: dict[str, _Function]) -> tuple[bool, bool]:
    """Compute the flags (constant, repeated, ...) of the values of a function, from the flags of its parameters.

    Operands of calls pass their flags on to the parameters of the functions called.

    Returns:
      Whether the function broadcasts a sum of products that have a factor repeated along an axis, and whether a
      parameter of a called function got a new flag.
    """
    extended = False
    known = dict(zip(function.parameters, function.parameter_flags, strict=True))
    for result, kind, operands, callee, makes, moves, summed in function.operations:
        flags = [known.get(x, 0) for x in operands]
        either = 0
        for flag in flags:
            either |= flag
        if kind == "broadcast_in_dim" and makes and either & _SUM:
            return True, extended
        if makes:
            known[result] = either & (_PRODUCT | _SUM) | makes | (_AXES if either & _AXES else 0)
        elif kind == "call" and callee in functions:
            called = functions[callee]
            for i, flag in enumerate(flags[: len(called.parameter_flags)]):
                extended = extended or bool(flag & ~called.parameter_flags[i])
                called.parameter_flags[i] |= flag
            known[result] = called.returns
        elif kind in _OWN_LOOPS:
            known[result] = 0
        elif kind in ("reduce", "reduce_window"):
            right = not either & (_SUM | _RIGHT_SUM) and either & _AXES == summed
            known[result] = (_RIGHT_SUM if right else _SUM) if either & _DERIVED else 0
        else:
            constant = bool(flags) and all(flag & _CONSTANT for flag in flags)
            repeated = either & _REPEATED and all(flag & (_CONSTANT | _REPEATED) for flag in flags)
            derived = either & _DERIVED
            if kind in ("multiply", "divide") and either & _REPEATED:
                derived |= _PRODUCT
            axes = _AXES if moves and either & _AXES else either & _AXES
            known[result] = derived | axes | (_REPEATED if repeated else 0) | (_CONSTANT if constant else 0)
    function.returns = 0
    for name in function.returned:
        function.returns |= known.get(name, 0)
    return False, extended
