"""Programs that fail while they run: every way of asking for the results raises, and none ends the process."""

import subprocess
import sys

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback.backends.compiler import client
from pullback.core.errors import AllocationError, ExecutionError

CODE = """
import numpy as np
import pullback as pb, pullback.numpy as jnp
from pullback.core.errors import AllocationError

large = lambda x: x[:, None] * x[None, :]  # 16 TiB
x = jnp.ones(1 << 21)
programs = {
    "a large result": pb.jit(large),
    "one of two results": pb.jit(lambda x: (x + 1, large(x))[0]),
    "two results": pb.jit(lambda x: (x + 1, large(x))),
    "large values within": pb.jit(lambda x: jnp.sort(large(x), axis=0)[3]),
    "a number": pb.jit(lambda x: jnp.sort(large(x), axis=0)[3, 4]),
    "stored otherwise": pb.jit(lambda x: large(x).astype(jnp.bfloat16)),
    "donated": pb.jit(lambda x: (x + 1, large(x)), donate_argnums=0),
}
reads = {
    "NumPy": np.asarray,
    "wait": pb.block_until_ready,
    "method": lambda y: y.block_until_ready(),
    "get": pb.device_get,
    "print": repr,
    "eager": lambda y: y + 1,
    "next program": lambda y: np.asarray(pb.jit(lambda y: jnp.max(y) + 1)(y)),
    "callback": lambda y: np.asarray(pb.jit(lambda y: pb.pure_callback(lambda z: z, y[..., :1], y[..., :1]))(y))
    if y.ndim else np.asarray(y),
    "again": np.asarray,
}
for name, f in programs.items():
    out = f(x + 0)
    for y in out if isinstance(out, tuple) else (out,):
        if name == "one of two results":
            assert float(y[0]) == 2.0  # what is not needed is not computed
            continue
        for way, read in reads.items():
            try:
                read(y)
            except AllocationError as error:
                assert isinstance(error, MemoryError) and isinstance(error, RuntimeError)
                assert "a compiled program ran out of memory" in str(error) and "batch_size" in str(error), str(error)
            else:
                raise AssertionError((name, way))
assert pb.jit(lambda x: x + 1)(1.0) == 2.0
print("done")
"""


def test_a_program_that_runs_out_of_memory_raises_where_its_results_are_asked_for():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=200)
    assert done.stdout == "done\n", done.stderr[-3000:]


def test_what_else_the_runtime_says_of_a_program_is_quoted():
    error = client.failure(RuntimeError("INTERNAL: something"))
    assert type(error) is ExecutionError
    assert isinstance(error, RuntimeError)
    assert str(error) == "a compiled program failed and has no results; the runtime says: INTERNAL: something"
    assert type(client.failure(RuntimeError("RESOURCE_EXHAUSTED: ..."))) is AllocationError


def test_arrays_on_a_device_have_no_other_attributes():
    x = pb.jit(lambda x: x + 1)(jnp.ones(2))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        x.nothing  # noqa: B018
    assert np.asarray(x).tolist() == [2.0, 2.0]
