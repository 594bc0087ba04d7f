"""What the core asks of the floors above is provided, once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pullback
import pullback.export.exported
from pullback.core import dtypes
from pullback.core import runtime as module
from pullback.core.runtime import Event, Runtime, provides, runtime

SOURCE = Path(pullback.__file__).parent


def test_every_function_is_provided() -> None:
    pullback.numpy.ones(2).block_until_ready()
    pullback.jit(lambda x: x)(1.0)
    names = {name for name in vars(Runtime) if not name.startswith("_")}
    assert names - vars(runtime).keys() == set()
    assert all(vars(Runtime)[name].__doc__ for name in names)


def test_what_is_not_asked_for_or_there_already_is_refused() -> None:
    def no_such_function() -> None: ...

    def zeros() -> None: ...

    for function in (no_such_function, zeros):
        with pytest.raises(TypeError, match=f"lacks the function '{function.__name__}', or it is already registered"):
            provides(function)
    assert runtime.zeros is not zeros


def test_nothing_is_assigned_into_imported_modules_and_classes() -> None:
    """``name.attribute = ...`` at the top of a module, of a name that it imports; rules of operations are their own."""
    found = []
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        imported = set(re.findall(r"^from [\w.]+ import (?:\w+ as )?(\w+)$", text, re.MULTILINE))
        for name, attribute in re.findall(r"^(\w+)\.(\w+) = ", text, re.MULTILINE):
            if name in imported and not name.endswith("_p") and "compat" not in path.parts:
                found.append(f"{path.relative_to(SOURCE)}: {name}.{attribute}")
    assert found == []
    assert module.runtime is runtime


def test_an_event_calls_its_listeners_in_order() -> None:
    heard: list[tuple[str, int]] = []
    event = Event()
    event.append(lambda x: heard.append(("first", x)))
    event.append(lambda x: heard.append(("second", x)))
    event(3)
    assert heard == [("first", 3), ("second", 3)]


def test_a_listener_of_small_integers_is_called_once_and_may_request_one() -> None:
    calls: list[str] = []

    def prepare() -> None:
        calls.append("prepared")
        dtypes.canonicalize_dtype("int4")

    runtime.small_integers_requested.append(prepare)
    dtypes.canonicalize_dtype("int4")
    dtypes.canonicalize_dtype("uint2")
    assert calls == ["prepared"]
