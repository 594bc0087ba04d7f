"""Operations of ``lax`` and ``numpy.fft`` agree with what JAX has recorded, and compiled with eager."""

import json

import numpy as np
import pytest

import pullback
import pullback.lax
import pullback.numpy
from tests.lax.lax_cases import CASES, RECORDED, encoded, flat, gradients

JAX = json.loads(RECORDED.read_text())["cases"]


def near(found, expected):
    for a, b in zip(found, expected, strict=True):
        b = np.array(b)
        scale = np.abs(b[np.isfinite(b)]).max(initial=1e-30)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5 * scale)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_values_and_gradients_are_those_of_jax(case):
    out = case.run(pullback, *case.operands)
    known = JAX[case.name]
    assert [f"{x.dtype}{list(x.shape)}" for x in flat(out)] == known["types"]
    near(encoded(out), known["values"])
    if "gradients" in known:
        near(encoded(gradients(pullback, case)), known["gradients"])


def test_compiled_is_eager():
    """Those that the grid of operations does not have, in one program, with their gradients."""
    cases = [c for c in CASES if c.name.startswith(("ragged", "rng", "platform", "mul ", "exp "))]

    def everything(operands):
        outs = [case.run(pullback, *xs) for case, xs in zip(cases, operands, strict=True)]
        return outs, [gradients(pullback, case) for case in cases if "gradients" in JAX[case.name]]

    operands = [case.operands for case in cases]
    got, expected = pullback.jit(everything)(operands), everything(operands)
    for a, b in zip(pullback.tree.leaves(got), pullback.tree.leaves(expected), strict=True):
        near(encoded(a), encoded(b))
