from collections.abc import Callable
from typing import Any

class Function:
    _compiled: dict[Any, Any]
    _flatten: Callable[[Any], tuple[list[Any], Any]] | None
    _plain: bool
    _nested: bool

def as_subclass(x: object, cls: type, /) -> bool: ...
def configure(
    *,
    python_call: Callable[..., Any],
    state: object,
    eval_trace: object,
    config: object,
    numbers: dict[Any, Any],
    copiers: dict[Any, tuple[Any, Callable[[Any], Any]]],
    operand: Callable[[Any], Any],
    signature_of: Callable[[Any], Any],
    fresh: Callable[[Any], Any],
    explained: Callable[[Exception], Exception],
    array_type: type,
    committed_type: type,
    signature_type: type,
    aval_type: type,
    entry_type: type,
    deleted_type: type,
    numpy_array: type,
    numpy_scalar: type,
) -> None: ...
