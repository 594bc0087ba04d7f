"""Transformations of jaxprs to jaxprs agree with the transformations of functions."""

from __future__ import annotations

import gc
import weakref
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback.core.array import as_array
from pullback.core.config import enable_x64
from pullback.core.errors import NotLinearError
from pullback.core.jaxpr import ClosedJaxpr, eval_jaxpr
from pullback.core.jaxpr_check import check_jaxpr
from pullback.core.types import MappedAxis
from pullback.primitives.elementwise import mul, sin
from pullback.transforms.autodiff.grad import vjp
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.autodiff.tracing import make_jaxpr
from pullback.transforms.autodiff.vmap import vmap
from pullback.transforms.traces.jaxprs import batch_jaxpr, jvp_jaxpr, linearize_jaxpr, transpose_jaxpr
from tests.helpers import assert_elements_close
from tests.random_programs import Program, programs, random_like


def run(closed: ClosedJaxpr, *args: Any) -> list[Any]:
    check_jaxpr(closed)
    return eval_jaxpr(closed.jaxpr, closed.consts, *args)


close = partial(assert_elements_close, rtol=1e-9, dtypes=False)


def test_results_are_kept_as_long_as_the_jaxpr_lives() -> None:
    closed = make_jaxpr(sin)(1.0)
    assert jvp_jaxpr(closed, [True]) is jvp_jaxpr(closed, (True,))
    assert jvp_jaxpr(closed, [True]) is not jvp_jaxpr(closed, [False])
    assert batch_jaxpr(closed, MappedAxis(None, 3), [0]) is not batch_jaxpr(closed, MappedAxis(None, 4), [0])
    assert linearize_jaxpr(closed, [True]) is linearize_jaxpr(closed, [True])
    ref = weakref.ref(closed)
    del closed
    gc.collect()
    assert ref() is None


def test_a_result_without_a_tangent() -> None:
    closed = make_jaxpr(lambda x, y: (sin(x), y))(1.0, 2.0)
    both, nonzero = jvp_jaxpr(closed, [True, False])
    assert nonzero == [True, False]
    assert len(both.out_avals) == 3
    both, nonzero = jvp_jaxpr(closed, [True, False], instantiate=True)
    assert nonzero == [True, True]
    close(run(both, as_array(0.0), as_array(2.0), as_array(3.0)), [0.0, 2.0, 3.0, 0.0])


def test_a_result_without_the_mapped_axis() -> None:
    closed = make_jaxpr(lambda x, y: (sin(x), y))(1.0, np.zeros(2, np.float32))
    batched, dims = batch_jaxpr(closed, MappedAxis(None, 3), [0, None])
    assert dims == [0, None]
    batched, dims = batch_jaxpr(closed, MappedAxis(None, 3), [0, None], True)
    assert dims == [0, 0]
    assert [a.shape for a in batched.out_avals] == [(3,), (3, 2)]


def test_an_equation_that_is_not_linear_is_named() -> None:
    with pytest.raises(NotLinearError, match="sin is not linear"):
        transpose_jaxpr(make_jaxpr(sin)(1.0), [True])


def test_a_cotangent_that_nothing_reaches_is_dense_zero() -> None:
    closed = make_jaxpr(lambda x, y: mul(x, 2.0))(1.0, np.zeros(3, np.float32))
    close(run(transpose_jaxpr(closed, [True, True]), as_array(3.0)), [6.0, np.zeros(3)])


@given(programs(), st.data())
def test_jvp_of_a_jaxpr(program: Program, data: Any) -> None:
    with enable_x64():
        args, ts = program.arguments(), program.directions(1)
        nonzero = [data.draw(st.booleans()) for _ in args]
        both, has_tangent = jvp_jaxpr(make_jaxpr(program)(*args), nonzero)
        got = run(both, *args, *[t for t, n in zip(ts, nonzero, strict=True) if n])
        zeroed = [t if n else as_array(np.zeros(t.shape)) for t, n in zip(ts, nonzero, strict=True)]
        outs, out_ts = jvp(program, args, zeroed)
        close(got, outs + [t for t, h in zip(out_ts, has_tangent, strict=True) if h])
        for t, h in zip(out_ts, has_tangent, strict=True):
            assert h or not np.any(np.asarray(t))


@given(programs(), st.data())
def test_batch_of_a_jaxpr(program: Program, data: Any) -> None:
    with enable_x64():
        args = program.arguments()
        dims = [data.draw(st.sampled_from([None, *range(x.ndim + 1)])) for x in args]
        if all(d is None for d in dims):
            dims[0] = 0
        shapes = [x.shape if d is None else (*x.shape[:d], 2, *x.shape[d:]) for x, d in zip(args, dims, strict=True)]
        values = random_like([np.zeros(shape) for shape in shapes], 2)
        batched, out_dims = batch_jaxpr(make_jaxpr(program)(*args), MappedAxis(None, 2), dims)
        expected = vmap(program, tuple(dims), list(out_dims))(*values)
        close(run(batched, *values), expected)


@given(programs())
def test_linearize_of_a_jaxpr_and_transpose(program: Program) -> None:
    with enable_x64():
        args, ts = program.arguments(), program.directions(1)
        lin = linearize_jaxpr(make_jaxpr(program)(*args), [True] * len(args), instantiate=True)
        results = run(lin.primal, *args)
        residuals = [[*args, *results][i] for i in lin.residual_sources]
        outs, out_ts = jvp(program, args, ts)
        close(results[: len(outs)], outs)
        close(run(lin.linear, *residuals, *ts), out_ts)

        linear = [False] * len(residuals) + [True] * len(ts)
        cts = random_like(outs, 3)
        back = run(transpose_jaxpr(lin.linear, linear), *residuals, *cts)
        close(back, list(vjp(program, *args)[1](cts)))
