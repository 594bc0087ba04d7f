"""The measured time of compiled programs, by line."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import analysis, lax, profiler
from pullback.analysis.compiled_times import by_line, module_name
from pullback.core.errors import ProfilerError

TEXT = """\
HloModule jit_f, is_scheduled=true

FileNames
1 "/home/me/model.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=0 end_column=0}
2 {file_name_id=1 function_name_id=1 line=4 end_line=4 column=0 end_column=0}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}

%fused (p: f32[30]) -> f32[10] {
  %p = f32[30]{0} parameter(0)
  %a = f32[30]{0} add(%p, %p), metadata={op_name="add" stack_frame_id=1}
  ROOT %b = f32[10]{0} slice(%a), slice={[0:10]}, metadata={op_name="slice" stack_frame_id=2}
}

%body (q: f32[30]) -> f32[30] {
  %q = f32[30]{0} parameter(0)
  ROOT %c = f32[30]{0} tanh(%q), metadata={op_name="tanh" stack_frame_id=2}
}

%test (r: f32[30]) -> pred[] {
  ROOT %d = pred[] constant(true)
}

ENTRY %main (x: f32[30]) -> f32[10] {
  %x = f32[30]{0} parameter(0)
  %loop = f32[30]{0} while(%x), condition=%test, body=%body, metadata={op_name="while" stack_frame_id=1}
  ROOT %fusion = f32[10]{0} fusion(%loop), kind=kLoop, calls=%fused, metadata={op_name="slice" stack_frame_id=2}
}
"""


def test_fused_lines_share_the_time_and_loops_count_as_what_they_run() -> None:
    known = ["model.py:3 f", "model.py:4 f [scope]"]
    found = by_line(TEXT, {"loop": 5.0, "c": 4.0, "fusion": 8.0}, known)
    assert found == {"model.py:3 f": 6.0, "model.py:4 f": 6.0}
    assert by_line(TEXT, {"loop": 5.0}, known) == {"model.py:3 f": 5.0}
    assert by_line(TEXT, {"fusion": 8.0, "of another program": 1.0}, []) == {"model.py:3": 6.0, "model.py:4": 2.0}
    assert module_name(TEXT) == "jit_f"


def f(w: Any, x: Any) -> Any:
    x = jnp.tanh(x @ w)  # product
    x = lax.fori_loop(0, 5, lambda i, x: jnp.sin(x @ w), x)  # loop
    return jnp.sum(x)


def test_a_compiled_function_is_measured_by_its_profile() -> None:
    w, x = np.ones((200, 200), np.float32), np.ones((400, 200), np.float32)
    lines, start = inspect.getsourcelines(f)
    product, loop = (
        start + next(i for i, line in enumerate(lines) if mark in line) for mark in ("# product", "# loop")
    )
    found = analysis.cost(pullback.jit(f), measure=True)(w, x).lines
    here = {line.partition(" ")[0]: spent for line, spent in found.seconds.items()}
    assert here[f"test_compiled_times.py:{loop}"] > here[f"test_compiled_times.py:{product}"] > 0
    shown = found.by_line()[f"test_compiled_times.py:{loop} <lambda>"]  # which does most on this line
    assert sum(shown.seconds.values()) == here[f"test_compiled_times.py:{loop}"]


def test_a_profile_within_a_profile_is_refused(tmp_path: Any) -> None:
    with profiler.trace(str(tmp_path)), pytest.raises(ProfilerError, match="already being recorded"):
        analysis.cost(pullback.jit(jnp.sin), measure=True)(1.0)
