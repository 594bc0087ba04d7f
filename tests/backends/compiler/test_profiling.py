"""Profiles: what is written, and that compiled operations have their names there."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import pullback
import pullback.numpy as jnp
from pullback import errors, grad, jit, named_scope, profiler
from pullback.backends.compiler import perfetto_link
from pullback.backends.compiler.profiling import _instructions


@jit
@grad
def step(w: Any, x: Any) -> Any:
    with named_scope("encoder"):
        h = jnp.tanh(w * x)
    with named_scope("head"):
        return (h * h).sum()


def quiet() -> Any:
    """Options without Python's calls."""
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0
    return options


def perfetto_events(directory: Path) -> list[Any]:
    (path,) = directory.rglob("perfetto_trace.json.gz")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        content = json.load(file)
    assert set(content) == {"displayTimeUnit", "traceEvents"}
    return content["traceEvents"]  # type: ignore[no-any-return]


def test_a_trace_opens_in_perfetto_and_names_operations(tmp_path: Path) -> None:
    w = jnp.ones((300, 300))
    step(w, w)
    with profiler.trace(tmp_path), profiler.StepTraceAnnotation("train", step_num=3):
        pullback.block_until_ready(step(w, w))
    events = perfetto_events(tmp_path)
    assert all("ph" in e for e in events if e)
    (annotation,) = [e for e in events if e.get("name") == "train"]
    assert annotation["ph"] == "X"
    assert annotation["args"]["step_num"] == "3"
    operations = [e for e in events if e.get("args", {}).get("hlo_module") == "jit_step" and "hlo_op" in e["args"]]
    assert operations
    assert all(e["dur"] >= 0 for e in operations)
    told = " ".join(e["args"].get("op_names", e["args"].get("op_name", "")) for e in operations)
    assert "encoder/tanh" in told
    assert "transpose(encoder)/mul" in told
    assert any(e.get("name", "").startswith("$") for e in events)  # Python's calls
    assert list(tmp_path.rglob("*.xplane.pb"))


def test_the_profile_is_read_by_the_profilers_own_reader(tmp_path: Path) -> None:
    profile_data = pytest.importorskip("jaxlib._profile_data")
    w = jnp.ones((10, 10))
    with profiler.trace(str(tmp_path), create_perfetto_trace=False, profiler_options=quiet()):
        pullback.block_until_ready(step(w, w))
    (path,) = tmp_path.rglob("*.xplane.pb")
    planes = {plane.name for plane in profile_data.ProfileData.from_file(str(path)).planes}
    assert "/host:CPU" in planes
    assert not list(tmp_path.rglob("perfetto*"))


def test_annotations(tmp_path: Path) -> None:
    @profiler.annotate_function
    def plain(x: Any) -> Any:
        """Adds."""
        return x + 1

    @profiler.annotate_function(name="other", batch=2)
    def named(x: Any) -> Any:
        return x + 2

    assert not profiler.TraceAnnotation.is_enabled()
    with profiler.trace(tmp_path, profiler_options=quiet()):
        assert profiler.TraceAnnotation.is_enabled()
        assert (plain(1), named(1)) == (2, 3)
        with profiler.TraceAnnotation("block", size=5) as annotation:
            annotation.set_metadata(more=7)
    assert plain.__doc__ == "Adds."
    events = {e["name"]: e for e in perfetto_events(tmp_path) if e.get("ph") == "X"}
    assert any(name.endswith("plain") for name in events)
    assert events["other"]["args"]["batch"] == "2"
    assert events["block"]["args"] == {"size": "5", "more": "7"}


def test_start_and_stop(tmp_path: Path) -> None:
    with pytest.raises(errors.ProfilerError, match="no profile is being recorded") as info:
        profiler.stop_trace()
    assert isinstance(info.value, RuntimeError)
    profiler.start_trace(tmp_path / "new" / "directory", profiler_options=quiet())
    with pytest.raises(errors.ProfilerError, match=r"already being recorded, to .*directory; call stop_trace first"):
        profiler.start_trace(tmp_path)
    profiler.stop_trace()
    assert perfetto_events(tmp_path / "new")
    with pytest.raises(KeyError), profiler.trace(tmp_path / "error", profiler_options=quiet()):
        raise KeyError
    assert perfetto_events(tmp_path / "error")


def test_a_link_is_served_until_a_browser_has_loaded_the_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(perfetto_link, "PORT", port)
        profiler.start_trace(tmp_path / "taken", create_perfetto_link=True, profiler_options=quiet())
        with pytest.raises(errors.ProfilerError, match=rf"the port {port}, .* is not free"):
            profiler.stop_trace()
    assert perfetto_events(tmp_path / "taken")
    loaded = []

    def browser() -> None:
        for path in ("other.gz", "perfetto_trace.json.gz"):
            for _ in range(1000):
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=60) as answer:
                        loaded.append((answer.headers["Access-Control-Allow-Origin"], gzip.decompress(answer.read())))
                    break
                except urllib.error.HTTPError as error:
                    loaded.append((error.code, b""))
                    error.close()
                    break
                except urllib.error.URLError:
                    time.sleep(0.05)

    thread = threading.Thread(target=browser)
    thread.start()
    with profiler.trace(tmp_path / "link", True, create_perfetto_trace=False, profiler_options=quiet()):
        pass
    thread.join()
    (refused, _), (origin, content) = loaded
    assert (refused, origin) == (404, "https://ui.perfetto.dev")
    assert json.loads(content)["traceEvents"] == perfetto_events(tmp_path / "link")
    assert f"https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{port}/perfetto_trace.json.gz" in capfd.readouterr().out


def test_names_of_instructions() -> None:
    text = """HloModule jit_f

%fused (p: f32[3]) -> f32[3] {
  %p = f32[3]{0} parameter(0)
  %a = f32[3]{0} tanh(%p), metadata={op_type="x" op_name="s/tanh" stack_frame_id=1}
  ROOT %b = f32[3]{0} sine(%a), metadata={op_name="sin"}
}

ENTRY %main (x: f32[3]) -> f32[3] {
  %x = f32[3]{0} parameter(0)
  ROOT %fusion.1 = f32[3]{0} fusion(%x), kind=kLoop, calls=%fused, metadata={op_name="sin"}
}
"""
    assert _instructions(text)["fusion.1"] == {"op_name": "sin", "op_names": "s/tanh, sin"}
    assert _instructions(text)["a"] == {"op_name": "s/tanh"}


def test_servers_begun_twice_or_not_at_all_are_errors_of_values() -> None:
    """JAX raises a ValueError there, and a RuntimeError for profiles."""
    for kind in (ValueError, RuntimeError):
        with pytest.raises(kind, match="no profiler server is running"):
            profiler.stop_server()
