"""Sums of products that the compiler's library gets wrong, found in the text of a program.

Where reductions are left to the library (``xla_cpu_experimental_ynn_fusion_type`` REDUCE, which is the compiler's
default), jaxlib 0.10.2 sums products whose one factor is repeated along the rows over the wrong rows:
``jit(lambda v, x: x - (v * x).sum(1, keepdims=True))`` of 300 rows has the sums of other rows in two thirds of them,
in JAX too. Which order of factors is wrong depends on how the compiler has rewritten them.
"""

from __future__ import annotations

import re

_OPERATION = re.compile(r"\s*(%\w+)(?::\d+)? = \"?(?:stablehlo|chlo|func)\.?(\w+)?\"?(.*)")
_NAME = re.compile(r"%\w+")
_OWN_LOOPS = frozenset(
    ("dot_general", "convolution", "custom_call", "while", "sort", "gather", "scatter", "case", "if")
)
"""Operations that are not fused with those that compute their operands."""


def are_in(text: str) -> bool:
    """Whether a program may reduce products of which a factor is what was broadcast, or a function of that alone.

    >>> product = "%2 = stablehlo.multiply %1, %arg1 : tensor<3x2xf32>"
    >>> line = '%1 = "stablehlo.broadcast_in_dim"(%arg0) {broadcast_dimensions = array<i64: 1>} : ...'
    >>> total = '%4 = "stablehlo.reduce"(%2, %3) ({'
    >>> are_in("\\n".join((line, product, total))), are_in("\\n".join((line, total)))
    (True, False)
    """
    if "stablehlo.reduce" not in text or "broadcast_in_dim" not in text:
        return False
    constant: set[str] = set()
    repeated: set[str] = set()
    products: set[str] = set()
    for line in text.splitlines():
        if "func.func" in line:  # whose names are its own
            constant, repeated, products = set(), set(), set()
        found = _OPERATION.match(line)
        if found is None:
            continue
        name, operation, rest = found.groups()
        operands = _NAME.findall(rest)
        if operation in ("reduce", "reduce_window", "call") and not products.isdisjoint(operands):
            return True
        if operation == "call":  # which becomes a part of the caller: either may have the product that the other sums
            if not repeated.isdisjoint(operands):
                return True
            products.add(name)
            continue
        if operation in _OWN_LOOPS:
            continue
        moving = [x for x in operands if x not in constant]
        of_a_number = operation == "broadcast_in_dim" and ("array<i64>" in rest or "dims = []" in rest)
        if operation == "constant" or of_a_number:
            constant.add(name)
        elif operation == "broadcast_in_dim" or (moving and repeated.issuperset(moving)):
            repeated.add(name)
        elif operands and not moving:
            constant.add(name)
        weighted = operation in ("multiply", "divide") and not repeated.isdisjoint(operands)
        if weighted or not products.isdisjoint(operands):
            products.add(name)
    return False
