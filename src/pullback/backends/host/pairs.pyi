from typing import Any

def kernel(name: str, /) -> int | None: ...
def apply(kernel: int, value: Any, zeros: bool, unit: float, /, *doubles: Any) -> tuple[Any, ...] | None: ...
def error(value: Any, zeros: bool, unit: float, hi: Any, lo: Any, /) -> float | None: ...
def total(hi: Any, lo: Any, /) -> tuple[Any, Any] | None: ...
def use_tables(numbers: Any, /) -> None: ...
def use_types(
    tracer: type, made: type, accuracy: type, two: type, array: type, nothing: dict[Any, float], /
) -> None: ...
def step(
    trace: Any,
    evaluate: Any,
    primitive: Any,
    kernel: int,
    flags: int,
    two: bool,
    args: tuple[Any, ...],
    params: dict[str, Any],
    location: Any,
    phase: str,
    deepest: int,
    few: float,
    /,
) -> Any: ...
def finish(
    trace: Any,
    primitive: Any,
    flags: int,
    tracers: list[Any],
    values: list[Any],
    params: dict[str, Any],
    out: Any,
    wide: Any,
    error: float,
    unit: float,
    location: Any,
    phase: str,
    deepest: int,
    few: float,
    /,
) -> Any: ...
