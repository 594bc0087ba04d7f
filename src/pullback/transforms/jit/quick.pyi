from collections.abc import Callable
from typing import Any

class Function:
    _compiled: dict[Any, Any]
    _flatten: Callable[[Any], tuple[list[Any], Any]] | None
    _plain: bool
    _nested: bool

def configure(
    *,
    python_call: Callable[..., Any],
    state: object,
    eval_trace: object,
    config: object,
    numbers: dict[Any, Any],
    operand: Callable[[Any], Any],
    signature_of: Callable[[Any], Any],
    explained: Callable[[Exception], BaseException],
    array: type,
    committed: type,
    entry: type,
    numpy_scalar: type,
    signature_type: type,
    type_of_arrays: type,
) -> None: ...
