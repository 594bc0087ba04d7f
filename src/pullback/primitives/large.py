"""Operations that are compiled where they are evaluated: those on which XLA beats NumPy, from some size on.

Each says so itself, by :func:`compiled_from`. What stands beside the numbers was measured on two quiet cores (NumPy
2.4, jaxlib 0.10.2): float32, elements and microseconds of NumPy / of the compiled operation with the transfers both
ways. Compiling takes about 25 ms for each shape, so an operation is compiled only where it saves half a millisecond or
more. For all others NumPy is as fast or faster at every size that was tried (to a million elements; matrix products to
2048 x 2048: 54 ms against 71).
"""

from __future__ import annotations

import math
from typing import Any

from pullback.core import traits
from pullback.core.array import ArrayImpl
from pullback.core.config import config
from pullback.core.errors import BackendError
from pullback.core.trace import Primitive, Rule


def compiled_from(primitive: Primitive, least: int, matrices: int = 0) -> None:
    """Have an operation compiled where an operand is large; its host rule is there already.

    Args:
      primitive: the operation.
      least: the number of elements of an operand from which on it is compiled.
      matrices: how many matrices these have to be at least: the compiler's routines divide them among the processors.
    """
    host = primitive.host_rule
    assert host is not None
    traits.compiled_from.declare(primitive, least)

    def rule(*values: Any, **params: Any) -> Any:
        for x in values:
            if getattr(x, "size", 0) >= least and config.compile_large_operations:
                if matrices and math.prod(x.shape[:-2]) < matrices:
                    continue
                return compiled(primitive, host, values, params)
        return host(*values, **params)

    primitive.host_rule = rule


def compiled(primitive: Primitive, host: Rule, values: Any, params: dict[str, Any]) -> Any:
    """What an operation returns for some values, compiled if there is a compiler."""
    from pullback.backends.compiler.one_operation import evaluate

    try:
        out = evaluate(primitive, [ArrayImpl(x) if hasattr(x, "dtype") else x for x in values], params)
    except BackendError:
        return host(*values, **params)
    return [x._value for x in out] if primitive.multiple_results else out._value
