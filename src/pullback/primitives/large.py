"""Eager operations that XLA compiles for large operands, because it is faster than NumPy from some size on.

Each of them calls :func:`compiled_from`. The comments on these calls are measurements on two idle cores (NumPy 2.4,
jaxlib 0.10.2), in float32: the number of elements, then microseconds of NumPy / of the compiled operation with
transfers both ways. Compiling takes about 25 ms for each shape, so an operation is compiled only where it saves half a
millisecond or more. For all others NumPy is as fast or faster at every size tried (to a million elements; matrix
products to 2048 x 2048: 54 ms against 71).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pullback.core import traits
from pullback.core.array import ArrayImpl
from pullback.core.config import config
from pullback.core.errors import BackendError
from pullback.core.trace import Primitive, Rule


def compiled_from(
    primitive: Primitive, least: int, matrices: int = 0, unless: Callable[..., bool] | None = None
) -> None:
    """Replace the host rule of ``primitive``: if an operand is large, the new rule compiles and runs the operation.

    Args:
      primitive: the operation, whose host rule is registered already.
      least: the least number of elements of a large operand.
      matrices: the least number of matrices in a large operand, since compiled routines divide them among the cores.
      unless: of the operands and parameters, whether NumPy's rule is the faster one whatever their size is.
    """
    host = primitive.host_rule
    assert host is not None
    traits.compiled_from.declare(primitive, least)

    def rule(*values: Any, **params: Any) -> Any:
        for x in values:
            if getattr(x, "size", 0) >= least and config.compile_large_operations:
                if matrices and math.prod(x.shape[:-2]) < matrices:
                    continue
                if unless is not None and unless(*values, **params):
                    break
                return compiled(primitive, host, values, params)
        return host(*values, **params)

    if hasattr(host, "of_many"):
        rule.of_many = host.of_many  # type: ignore[attr-defined]
    primitive.host_rule = rule


def compiled(primitive: Primitive, host: Rule | None, values: Any, params: dict[str, Any]) -> Any:
    """Compile and run an operation on ``values``; if the compiler fails, evaluate it by the rule ``host``, if any."""
    from pullback.backends.compiler.one_operation import evaluate

    try:
        out = evaluate(primitive, [ArrayImpl(x) if hasattr(x, "dtype") else x for x in values], params)
    except BackendError:
        if host is None:
            raise
        return host(*values, **params)
    return [x._value for x in out] if primitive.multiple_results else out._value
