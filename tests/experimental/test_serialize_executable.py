"""Compiled functions as bytes: in another process they are loaded, and damaged bytes are refused."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import jit, pure_callback
from pullback.backends.compiler import disk_cache
from pullback.core.errors import ExportError
from pullback.experimental.serialize_executable import deserialize_and_load, serialize

READER = """
import logging, pickle, sys
import pullback, pullback.numpy as jnp
from pullback import tree
from pullback.experimental.serialize_executable import deserialize_and_load
logging.basicConfig(stream=sys.stdout, format="%(message)s")
pullback.config.update("enable_compilation_cache", False)
pullback.config.update("log_compiles", True)
args, outs = tree.structure((({"w": 0}, 0), {"k": 0})), tree.structure({"y": 0, "c": 0})
f = deserialize_and_load(open(sys.argv[1], "rb").read(), args, outs)
print(f({"w": 2 * jnp.eye(3)}, jnp.ones(3), k=2.0)["c"].tolist())
"""


def function(p, x, k=None):
    return {"y": jnp.tanh(x @ p["w"]) + k, "c": jnp.linalg.solve(p["w"], x)}


def compiled():
    return jit(function).lower({"w": jnp.eye(3)}, jnp.ones(3), k=2.0).compile()


@pytest.mark.slow
def test_another_process_loads_it_without_compiling(tmp_path: Path) -> None:
    serialize(compiled())  # a second one must not be of an executable that was read from the cache
    data, in_tree, out_tree = serialize(compiled())
    assert in_tree.num_leaves == 3
    assert out_tree.num_leaves == 2
    (tmp_path / "program").write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-c", READER, str(tmp_path / "program")], capture_output=True, text=True, check=True
    )
    assert "[0.5, 0.5, 0.5]" in done.stdout
    assert "lowered" in done.stdout
    assert "compiled" not in done.stdout


def test_elsewhere_it_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    data, in_tree, out_tree = serialize(jit(jnp.sin).lower(1.0).compile())
    monkeypatch.setattr(disk_cache, "environment", lambda device: b"another".ljust(32))
    assert deserialize_and_load(data, in_tree, out_tree)(2.0) == pytest.approx(np.sin(2.0))


def test_what_is_refused() -> None:
    data, in_tree, out_tree = serialize(jit(jnp.sin).lower(1.0).compile())
    for damaged in (b"", data[:30], data[:-1], data[:-1] + bytes([data[-1] ^ 1]), b"x" + data):
        with pytest.raises(ExportError):
            deserialize_and_load(damaged, in_tree, out_tree)
    with pytest.raises(ValueError, match="1 arguments and 1 results, but the trees have 2 and 1 leaves"):
        deserialize_and_load(data, pickle.loads(pickle.dumps(jit(jnp.add).lower(1.0, 1.0).in_tree)), out_tree)
    with pytest.raises(ValueError, match="one device, got 0"):
        deserialize_and_load(data, in_tree, out_tree, execution_devices=[])
    with pytest.raises(TypeError, match="serialize takes a compiled function"):
        serialize(jnp.sin)
    with pytest.raises(NotImplementedError, match="it calls Python functions"):
        serialize(jit(lambda x: pure_callback(np.sin, x, x)).lower(1.0).compile())
