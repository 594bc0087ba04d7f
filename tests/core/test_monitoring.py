"""What is recorded while programs are compiled, and who is told."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

import pullback.numpy as jnp
from pullback import config, errors, grad, jit, monitoring, vmap

COMPILE = ["jaxpr_trace_duration", "jaxpr_to_mlir_module_duration", "backend_compile_duration"]


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    yield
    monitoring.clear_event_listeners()


def test_each_kind_of_record_reaches_its_own_listeners() -> None:
    seen: list[Any] = []
    monitoring.register_event_listener(lambda event, **more: seen.append((event, more)))
    monitoring.register_event_duration_secs_listener(lambda event, secs, **more: seen.append((event, secs, more)))
    monitoring.register_event_time_span_listener(lambda event, a, b, **more: seen.append((event, a, b, more)))
    monitoring.register_scalar_listener(lambda event, value, **more: seen.append((event, value, more)))
    monitoring.record_event("/a", x=1)
    monitoring.record_event_duration_secs("/b", 1.5)
    monitoring.record_event_time_span("/c", 1.0, 2.0, q="a")
    monitoring.record_scalar("/d", 3)
    assert seen == [("/a", {"x": 1}), ("/b", 1.5, {}), ("/c", 1.0, 2.0, {"q": "a"}), ("/d", 3, {})]
    monitoring.clear_event_listeners()
    monitoring.record_event("/a")
    monitoring.record_scalar("/d", 3)
    assert len(seen) == 4


@pytest.mark.parametrize(
    ("register", "unregister", "record"),
    [
        ("register_event_listener", "unregister_event_listener", lambda: monitoring.record_event("/e")),
        (
            "register_event_duration_secs_listener",
            "unregister_event_duration_listener",
            lambda: monitoring.record_event_duration_secs("/e", 1.0),
        ),
        (
            "register_event_time_span_listener",
            "unregister_event_time_span_listener",
            lambda: monitoring.record_event_time_span("/e", 1.0, 2.0),
        ),
        ("register_scalar_listener", "unregister_scalar_listener", lambda: monitoring.record_scalar("/e", 1)),
    ],
)
def test_a_listener_is_taken_away(register: str, unregister: str, record: Any) -> None:
    seen: list[Any] = []

    def listener(*args: Any) -> None:
        seen.append(args)

    getattr(monitoring, register)(listener)
    record()
    getattr(monitoring, unregister)(listener)
    record()
    assert len(seen) == 1
    with pytest.raises(AssertionError, match="is not registered") as info:
        getattr(monitoring, unregister)(listener)
    assert isinstance(info.value, errors.ListenerError)
    with pytest.raises(TypeError, match="a listener must be a function, got 3"):
        getattr(monitoring, register)(3)


def test_compilation_is_recorded_once_for_a_function() -> None:
    durations: list[Any] = []
    spans: list[Any] = []
    monitoring.register_event_duration_secs_listener(lambda event, secs, **more: durations.append((event, secs, more)))
    monitoring.register_event_time_span_listener(lambda event, start, end, **more: spans.append((event, start, end)))

    def cubed(x: Any) -> Any:
        return x**3

    f = jit(vmap(grad(cubed)))
    before = time.time()
    f(jnp.ones(3))
    assert [event for event, _, _ in durations] == [f"/jax/core/compile/{name}" for name in COMPILE]
    assert all(secs >= 0 for _, secs, _ in durations)
    assert [more["fun_name"] for _, _, more in durations] == ["cubed", "jit(cubed)", "jit(cubed)"]
    assert len(spans) == 3
    assert all(before <= start <= end <= time.time() for _, start, end in spans)
    f(jnp.ones(3))
    assert len(durations) == 3
    f(jnp.ones(4))
    assert len(durations) == 6


def test_a_function_that_fails_to_trace_is_not_said_to_be_traced() -> None:
    seen: list[Any] = []
    monitoring.register_event_duration_secs_listener(lambda event, secs, **more: seen.append(event))
    with pytest.raises(errors.TracerBoolConversionError):
        jit(lambda x: x if x > 0 else -x)(1.0)
    assert seen == []


def test_the_cache_on_disk_is_recorded(tmp_path: Any) -> None:
    before = config.compilation_cache_dir, config.enable_compilation_cache
    seen: list[str] = []
    monitoring.register_event_listener(lambda event, **more: seen.append(event.rpartition("/")[2]))
    try:
        config.update("compilation_cache_dir", str(tmp_path))
        config.update("enable_compilation_cache", True)
        jit(lambda x: x * 4711.25)(1.0)
    finally:
        config.update("compilation_cache_dir", before[0])
        config.update("enable_compilation_cache", before[1])
    assert seen == ["compile_requests_use_cache", "cache_misses"]
