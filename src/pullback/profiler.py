"""Profiles of compiled programs and of what is around them."""

from typing import TYPE_CHECKING, Any

from pullback.backends.profiling import (
    StepTraceAnnotation,
    TraceAnnotation,
    annotate_function,
    start_trace,
    stop_trace,
    trace,
)

if TYPE_CHECKING:
    ProfileOptions: Any

__all__ = [
    "ProfileOptions",
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "start_trace",
    "stop_trace",
    "trace",
]


def __getattr__(name: str) -> Any:
    if name == "ProfileOptions":
        from pullback.backends.client import profiler

        return profiler().ProfileOptions
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
