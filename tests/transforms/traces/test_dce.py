"""Dead-code elimination of jaxprs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback.core.array import as_array
from pullback.core.config import enable_x64
from pullback.core.errors import JaxprError
from pullback.core.jaxpr import Eqn, eval_jaxpr
from pullback.core.jaxpr_check import check_jaxpr
from pullback.core.trace import Primitive
from pullback.primitives.elementwise import add, cos, mul, sin
from pullback.transforms.autodiff.tracing import make_jaxpr
from pullback.transforms.traces.dce import dce_closed_jaxpr, dce_jaxpr
from tests.random_programs import Program, programs

CONSTANT = as_array(np.arange(3.0, dtype=np.float32))


def names(eqns: list[Eqn]) -> list[str]:
    return [e.primitive.name for e in eqns]


def test_equations_and_inputs_that_nothing_needs_are_dropped() -> None:
    closed = make_jaxpr(lambda x, y, z: (sin(x), cos(mul(y, z))))(1.0, 2.0, 3.0)
    first, used = dce_jaxpr(closed.jaxpr, [True, False])
    assert names(first.eqns) == ["sin"]
    assert used == [True, False, False]
    second, used = dce_jaxpr(closed.jaxpr, [False, True])
    assert names(second.eqns) == ["mul", "cos"]
    assert used == [False, True, True]


def test_dead_code_inside_a_function_is_dropped() -> None:
    closed = make_jaxpr(lambda x: (add(sin(x), cos(x)), sin(x))[1])(1.0)
    smaller, _ = dce_jaxpr(closed.jaxpr, [True])
    assert names(smaller.eqns) == ["sin"]


def test_constants_that_nothing_needs_are_dropped() -> None:
    other = as_array(np.ones(3, np.float32))
    closed = make_jaxpr(lambda x: (mul(x, CONSTANT), mul(x, other)))(CONSTANT)
    assert len(closed.consts) == 2
    smaller, _ = dce_closed_jaxpr(closed, [False, True])
    assert smaller.consts == [other]
    assert len(smaller.jaxpr.constvars) == 1


def test_inputs_can_be_kept() -> None:
    closed = make_jaxpr(lambda x, y: sin(x))(1.0, 2.0)
    smaller, used = dce_jaxpr(closed.jaxpr, [True], instantiate=True)
    assert used == [True, True]
    assert len(smaller.invars) == 2
    assert dce_jaxpr(closed.jaxpr, [False], instantiate=[False, True])[1] == [False, True]


def test_the_original_is_left_as_it_was() -> None:
    closed = make_jaxpr(lambda x: (sin(x), cos(x)))(1.0)
    before = str(closed)
    dce_jaxpr(closed.jaxpr, [False, True])
    assert str(closed) == before


def test_flags_must_fit() -> None:
    closed = make_jaxpr(lambda x: sin(x))(1.0)
    with pytest.raises(JaxprError, match="expected 1 flags, one for each of the results"):
        dce_jaxpr(closed.jaxpr, [True, False])


def test_a_primitive_with_a_rule_shrinks_its_equation() -> None:
    pair_p = Primitive("pair", multiple_results=True)
    pair_p.abstract_eval(lambda x, y: [x, y])

    def rule(used: list[bool], eqn: Eqn) -> Eqn | None:
        keep = [i for i, u in enumerate(used) if u]
        return None if keep == [0] else Eqn(pair_p, eqn.invars[1:], {}, eqn.outvars[1:])

    closed = make_jaxpr(lambda x, y: pair_p.bind(x, y))(1.0, 2.0)
    pair_p.dce(rule)
    try:
        assert dce_jaxpr(closed.jaxpr, [False, True])[1] == [False, True]
        assert dce_jaxpr(closed.jaxpr, [True, False])[0].eqns == []
    finally:
        pair_p.dce_rule = None


@given(programs(), st.data())
def test_the_used_results_keep_their_values(program: Program, data: Any) -> None:
    with enable_x64():
        args = program.arguments()
        closed = make_jaxpr(program)(*args)
        used = [data.draw(st.booleans()) for _ in program.outputs]
        smaller, used_inputs = dce_closed_jaxpr(closed, used)
        check_jaxpr(smaller)
        read = [a for eqn in smaller.eqns for a in eqn.invars] + smaller.jaxpr.outvars
        assert all(v in read for v in smaller.jaxpr.invars)
        some = [x for x, u in zip(args, used_inputs, strict=True) if u]
        got = eval_jaxpr(smaller.jaxpr, smaller.consts, *some)
        expected = [x for x, u in zip(program(*args), used, strict=True) if u]
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_array_equal(a, b)
