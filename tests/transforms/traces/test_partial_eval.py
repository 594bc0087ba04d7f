"""Partial evaluation of jaxprs: run the known part, then the unknown one, and nothing is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback.core.array import as_array
from pullback.core.config import enable_x64
from pullback.core.errors import JaxprError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Var, eval_jaxpr
from pullback.core.jaxpr_check import check_jaxpr
from pullback.core.trace import Primitive
from pullback.primitives.elementwise import add, cos, mul, sin
from pullback.transforms.autodiff.tracing import make_jaxpr
from pullback.transforms.traces.dce import live_equations
from pullback.transforms.traces.partial_eval import PartialEvaluation, partial_eval_jaxpr
from tests.helpers import operations_of
from tests.random_programs import Program, programs


def run(closed: ClosedJaxpr, *args: Any) -> list[Any]:
    return eval_jaxpr(closed.jaxpr, closed.consts, *args)


def evaluate(parts: PartialEvaluation, unknown: list[bool], args: list[Any]) -> list[Any]:
    """The two parts, one after the other."""
    known_args = [x for x, u in zip(args, unknown, strict=True) if not u]
    unknown_args = [x for x, u in zip(args, unknown, strict=True) if u]
    known_results = run(parts.known, *known_args)
    unknown_results = run(parts.unknown, *parts.residuals(known_args, known_results), *unknown_args)
    count = parts.unknown_outputs.count(False)
    return parts.merge(known_results[:count], unknown_results)


def test_the_known_part_computes_the_residuals() -> None:
    closed = make_jaxpr(lambda x, y: mul(sin(cos(x)), y))(1.0, 2.0)
    parts = partial_eval_jaxpr(closed, [False, True])
    assert operations_of(parts.known) == ["cos", "sin"]
    assert operations_of(parts.unknown) == ["mul"]
    assert parts.unknown_outputs == [True]
    assert [str(a) for a in parts.residual_avals] == ["float32[]"]
    assert parts.residual_sources == [1]


def test_an_input_is_a_residual_without_being_returned() -> None:
    parts = partial_eval_jaxpr(make_jaxpr(lambda x, y: mul(x, y))(1.0, 2.0), [False, True])
    assert parts.known.jaxpr.outvars == []
    assert parts.residual_sources == [0]


def test_a_known_result_is_a_residual_without_being_returned_twice() -> None:
    def f(x: Any, y: Any) -> Any:
        s = sin(x)
        return s, mul(s, y), mul(y, s)

    parts = partial_eval_jaxpr(make_jaxpr(f)(1.0, 2.0), [False, True])
    assert len(parts.known.jaxpr.outvars) == 1
    assert parts.residual_sources == [1]
    assert parts.unknown_outputs == [False, True, True]


def test_dead_code_is_in_neither_part() -> None:
    def f(x: Any, y: Any) -> Any:
        add(mul(sin(x), y), 1.0)
        cos(x)
        return mul(x, y)

    parts = partial_eval_jaxpr(make_jaxpr(f)(1.0, 2.0), [False, True])
    assert operations_of(parts.known) == []
    assert operations_of(parts.unknown) == ["mul"]


def test_constants_go_where_they_are_read() -> None:
    a, b = as_array(np.ones(2, np.float32)), as_array(np.zeros(2, np.float32))
    parts = partial_eval_jaxpr(make_jaxpr(lambda x, y: (add(x, a), add(y, b)))(a, a), [False, True])
    assert parts.known.consts == [a]
    assert parts.unknown.consts == [b]
    assert parts.residual_avals == []


def test_results_can_be_given_by_the_unknown_part() -> None:
    closed = make_jaxpr(lambda x, y: (sin(x), x, 1.0, y))(1.0, 2.0)
    parts = partial_eval_jaxpr(closed, [False, True], instantiate=True)
    assert parts.unknown_outputs == [True] * 4
    got = evaluate(parts, [False, True], [as_array(1.0), as_array(2.0)])
    np.testing.assert_allclose([np.asarray(x) for x in got], [np.sin(1.0), 1, 1, 2], rtol=1e-6)


def test_everything_known_or_unknown() -> None:
    closed = make_jaxpr(lambda x: sin(x))(1.0)
    assert operations_of(partial_eval_jaxpr(closed, [False]).unknown) == []
    assert operations_of(partial_eval_jaxpr(closed, [True]).known) == []


def test_flags_must_fit() -> None:
    with pytest.raises(JaxprError, match="expected 1 flags, one for each of the inputs"):
        partial_eval_jaxpr(make_jaxpr(lambda x: sin(x))(1.0), [])


def test_a_primitive_with_a_rule_is_cut_in_two() -> None:
    both_p = Primitive("both", multiple_results=True)
    both_p.abstract_eval(lambda x, y: [x, y])

    def rule(unknown: list[bool], eqn: Eqn) -> tuple[list[Eqn], list[Eqn], list[bool]]:
        s = Var(eqn.invars[0].aval)
        known = Eqn(both_p, [eqn.invars[0]] * 2, {}, [eqn.outvars[0], s])
        rest = Eqn(both_p, [s, eqn.invars[1]], {}, [Var(s.aval), eqn.outvars[1]])
        return [known], [rest], [False, True]

    closed = make_jaxpr(lambda x, y: both_p.bind(x, y))(1.0, 2.0)
    both_p.partial_eval(rule)
    try:
        parts = partial_eval_jaxpr(closed, [False, True])
    finally:
        both_p.partial_eval_rule = None
    assert parts.unknown_outputs == [False, True]
    assert len(parts.known.jaxpr.outvars) == 2
    check_jaxpr(parts.known)
    check_jaxpr(parts.unknown)


@given(programs(), st.data())
def test_both_parts_together_are_the_whole(program: Program, data: Any) -> None:
    with enable_x64():
        args = program.arguments()
        closed = make_jaxpr(program)(*args)
        unknown = [data.draw(st.booleans()) for _ in args]
        forced = [data.draw(st.booleans()) for _ in program.outputs]
        parts = partial_eval_jaxpr(closed, unknown, forced)
        for part in parts.known, parts.unknown:
            check_jaxpr(part)
            assert len(live_equations(part.eqns, part.jaxpr.outvars)[0]) == len(part.eqns)
        computed = parts.known.jaxpr.outvars[parts.unknown_outputs.count(False) :]
        assert len(set(computed)) == len(computed)
        assert not set(computed) & set(parts.known.jaxpr.invars)
        assert all(u or not f for f, u in zip(forced, parts.unknown_outputs, strict=True))
        for got, expected in zip(evaluate(parts, unknown, args), program(*args), strict=True):
            np.testing.assert_array_equal(got, expected)
