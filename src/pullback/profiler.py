"""Profiles of compiled programs and of the Python code around them."""

from typing import TYPE_CHECKING, Any

from pullback.backends.compiler import client
from pullback.backends.compiler.profiling import (
    StepTraceAnnotation,
    TraceAnnotation,
    annotate_function,
    device_memory_profile,
    register_subprocess,
    save_device_memory_profile,
    start_server,
    start_trace,
    stop_server,
    stop_trace,
    trace,
)
from pullback.core.faces import face

if TYPE_CHECKING:
    ProfileOptions: Any

__all__ = [
    "ProfileOptions",
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "device_memory_profile",
    "register_subprocess",
    "save_device_memory_profile",
    "start_server",
    "start_trace",
    "stop_server",
    "stop_trace",
    "trace",
]

face(globals(), made={"ProfileOptions": lambda: client.profiler().ProfileOptions})
