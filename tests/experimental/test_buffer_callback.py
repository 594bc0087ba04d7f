"""Python functions that write into buffers, and the advice for the compiler that has no effect."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import ShapeDtypeStruct, device_put, jit, memory, vmap
from pullback.errors import JaxRuntimeError
from pullback.experimental.buffer_callback import Buffer, ExecutionContext, ExecutionStage, buffer_callback
from pullback.experimental.compute_on import compute_on

LINE = ShapeDtypeStruct((3,), "float32")


def add_one(ctx: ExecutionContext, out: Buffer, x: Buffer) -> None:
    assert ctx.stage is ExecutionStage.EXECUTE
    assert out.writeable
    assert not x.writeable
    assert (out.shape, out.dtype, out.ndim) == (x.shape, x.dtype, x.ndim)
    np.add(np.from_dlpack(x) if x.ndim else x, 1, out=np.asarray(out))


@pytest.mark.parametrize("transform", [lambda f: f, jit])
def test_results_are_written_in_place(transform: Any) -> None:
    call = transform(buffer_callback(add_one, LINE))
    assert call(jnp.arange(3.0)).tolist() == [1, 2, 3]


def test_batches_aliases_and_trees() -> None:
    one = buffer_callback(add_one, ShapeDtypeStruct((), "float32"), vmap_method="sequential")
    assert jit(vmap(one))(jnp.arange(3.0)).tolist() == [1, 2, 3]

    def first(ctx: Any, out: Any, x: Any) -> None:
        np.asarray(out["y"])[0] = np.asarray(x["a"])[-1] + 5

    for method in ("expand_dims", "broadcast_all"):
        rows = buffer_callback(lambda ctx, out, x, y: np.add(x, y, out=np.asarray(out)), LINE, vmap_method=method)
        assert vmap(rows, (0, None))(jnp.arange(6.0).reshape(2, 3), jnp.ones(3)).tolist() == [[1, 2, 3], [4, 5, 6]]

    def same(ctx: Any, out: Any, x: Any) -> None:
        assert np.asarray(out).ctypes.data == np.asarray(x).ctypes.data

    assert buffer_callback(same, LINE, input_output_aliases={0: 0})(jnp.arange(3.0)).tolist() == [0, 1, 2]
    aliased = buffer_callback(first, {"y": LINE}, input_output_aliases={0: 0})
    assert aliased({"a": jnp.arange(3.0)})["y"].tolist() == [7, 1, 2]
    calls: list[int] = []
    counted = buffer_callback(lambda ctx, out: calls.append(1), (), has_side_effect=True)
    jit(lambda x: (counted(), x)[1])(1.0)
    assert calls == [1]


def test_aliases_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"has \{1: 0\}, for 1 arguments and 1 results"):
        buffer_callback(add_one, LINE, input_output_aliases={1: 0})(jnp.zeros(3))
    with pytest.raises(ValueError, match=r"joins argument 0, float32 of shape \(2,\), and result 0"):
        buffer_callback(add_one, LINE, input_output_aliases={0: 0})(jnp.zeros(2))
    with pytest.raises(JaxRuntimeError, match="a CPU has no streams"):
        ExecutionContext().stream  # noqa: B018


def test_where_functions_compute_has_no_effect() -> None:
    assert compute_on(compute_type="device_host")(jnp.square)(3.0) == 9
    with pytest.raises(ValueError, match="compute_type must be one of"):
        compute_on(jnp.square, compute_type="abacus")


@pytest.mark.parametrize("space", memory.Space)
def test_a_device_has_one_memory(space: memory.Space) -> None:
    tree = {"x": jnp.ones(2)}
    assert device_put(tree, space)["x"].tolist() == [1, 1]
    assert jit(lambda x: device_put(x, space) + 1)(1.0) == 2
