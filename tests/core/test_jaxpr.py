"""Jaxprs: how they print, what the checker finds, and how they run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from pullback.core.array import ArrayImpl, as_array
from pullback.core.errors import JaxprError, MissingRuleError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var, eval_jaxpr, jaxpr_as_fun, subjaxprs
from pullback.core.jaxpr_check import check_jaxpr
from pullback.core.trace import Primitive
from pullback.core.types import ShapedArray
from pullback.primitives.arrays.shapes import broadcast_in_dim
from pullback.primitives.elementwise import add, add_p, convert_element_type, mul, sin, sin_p
from pullback.primitives.reductions import reduce_sum
from pullback.transforms.autodiff.tracing import make_jaxpr

F32 = ShapedArray((), np.dtype(np.float32))
VECTOR = ShapedArray((3,), np.dtype(np.float32))
I32 = ShapedArray((), np.dtype(np.int32))


def call_with(inner: Any) -> Eqn:
    """An equation that holds a jaxpr."""
    call_p = Primitive("call")
    call_p.abstract_eval(lambda x, *, name, jaxpr: x)
    return Eqn(call_p, [Var(F32)], {"name": "f", "jaxpr": inner}, [Var(F32)])


class TestPrinting:
    def test_one_line_where_it_fits(self) -> None:
        assert str(make_jaxpr(sin)(1.0)) == "{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }"
        two = make_jaxpr(lambda x: sin(sin(x)))(1.0)
        assert str(two) == "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = sin b in (c,) }"

    def test_several_lines_where_it_does_not(self) -> None:
        closed = make_jaxpr(lambda x, y: mul(add(sin(x), y), 2.0))(1.0, 2.0)
        assert str(closed).splitlines() == [
            "{ lambda ; a:f32[] b:f32[]. let",
            "    c:f32[] = sin a",
            "    d:f32[] = add c b",
            "    e:f32[] = mul d 2.0:f32[]",
            "  in (e,) }",
        ]

    def test_without_equations(self) -> None:
        assert str(make_jaxpr(lambda x: x)(1.0)) == "{ lambda ; a:f32[]. let  in (a,) }"
        assert str(make_jaxpr(lambda: 1.0)()) == "{ lambda ; . let  in (1.0:f32[],) }"
        assert str(make_jaxpr(lambda x: (x, x))(1.0)) == "{ lambda ; a:f32[]. let  in (a, a) }"
        assert str(make_jaxpr(lambda x: ())(1.0)) == "{ lambda ; a:f32[]. let  in () }"

    def test_parameters(self) -> None:
        closed = make_jaxpr(lambda x: reduce_sum(x, (0, 1)))(np.ones((2, 3), np.float32))
        assert str(closed) == "{ lambda ; a:f32[2,3]. let b:f32[] = reduce_sum[axes=(0, 1)] a in (b,) }"
        wide = make_jaxpr(lambda x: broadcast_in_dim(x, (2, 3), (1,)))(np.ones(3, np.float32))
        assert str(wide).splitlines()[1] == (
            "    b:f32[2,3] = broadcast_in_dim[broadcast_dimensions=(1,) shape=(2, 3)] a"
        )
        cast = make_jaxpr(lambda x: convert_element_type(x, np.dtype(np.int32)))(1.0)
        assert "convert_element_type[new_dtype=int32 weak_type=False]" in str(cast)

    def test_constants_and_unused_results(self) -> None:
        constant = as_array(np.arange(3, dtype=np.int32))

        def f(x: Any) -> Any:
            sin(x)
            return add(constant, 1)

        assert str(make_jaxpr(f)(1.0)).splitlines() == [
            "{ lambda a:i32[3]; b:f32[]. let",
            "    _:f32[] = sin b",
            "    c:i32[3] = add a 1:i32[]",
            "  in (c,) }",
        ]

    def test_literals_have_the_type_that_they_take(self) -> None:
        assert "mul a 2.0:f32[]" in str(make_jaxpr(lambda x: mul(x, 2))(1.0))
        assert "add a 1:i32[]" in str(make_jaxpr(lambda x: add(x, 1))(1))

    def test_nested_programs_are_indented(self) -> None:
        inner = make_jaxpr(lambda x: mul(sin(x), x))(1.0)
        eqn = call_with(inner)
        outer = Jaxpr([], eqn.invars, [eqn], eqn.outvars)  # type: ignore[arg-type]
        assert str(outer).splitlines() == [
            "{ lambda ; a:f32[]. let",
            "    b:f32[] = call[",
            "      jaxpr={ lambda ; c:f32[]. let d:f32[] = sin c; e:f32[] = mul d c in (e,) }",
            "      name=f",
            "    ] a",
            "  in (b,) }",
        ]

    def test_names_go_on_after_z(self) -> None:
        def f(x: Any) -> Any:
            for _ in range(27):
                x = sin(x)
            return x

        assert str(make_jaxpr(f)(1.0)).splitlines()[-2] == "    bb:f32[] = sin ba"

    def test_an_equation_by_itself(self) -> None:
        assert repr(make_jaxpr(sin)(1.0).eqns[0]) == "sin a"


class TestChecking:
    def test_well_typed(self) -> None:
        check_jaxpr(make_jaxpr(lambda x: (sin(x), 1.0, x))(1.0))

    def test_unbound_operand(self) -> None:
        with pytest.raises(JaxprError, match=r"equation `sin a` .* uses a variable that is not bound"):
            check_jaxpr(Jaxpr([], [], [Eqn(sin_p, [Var(F32)], {}, [Var(F32)])], []))

    def test_operand_bound_later(self) -> None:
        a, b, c = Var(F32), Var(F32), Var(F32)
        with pytest.raises(JaxprError, match="not bound"):
            check_jaxpr(Jaxpr([], [a], [Eqn(sin_p, [b], {}, [c]), Eqn(sin_p, [a], {}, [b])], [c]))

    def test_unbound_result(self) -> None:
        with pytest.raises(JaxprError, match="list of results uses a variable that is not bound"):
            check_jaxpr(Jaxpr([], [], [], [Var(F32)]))

    def test_inputs_bound_twice(self) -> None:
        a = Var(F32)
        with pytest.raises(JaxprError, match="list of inputs binds a variable twice"):
            check_jaxpr(Jaxpr([], [a, a], [], []))
        with pytest.raises(JaxprError, match="list of inputs binds a variable twice"):
            check_jaxpr(Jaxpr([a], [a], [], []))

    def test_result_bound_twice(self) -> None:
        a, b = Var(F32), Var(F32)
        with pytest.raises(JaxprError, match=r"equation `sin a` .* a variable twice"):
            check_jaxpr(Jaxpr([], [a], [Eqn(sin_p, [a], {}, [b]), Eqn(sin_p, [a], {}, [b])], []))

    @pytest.mark.parametrize("wrong", [VECTOR, I32])
    def test_wrong_type_of_a_result(self, wrong: ShapedArray) -> None:
        a = Var(F32)
        with pytest.raises(JaxprError, match=r"to a result of type f32\[\]"):
            check_jaxpr(Jaxpr([], [a], [Eqn(sin_p, [a], {}, [Var(wrong)])], []))

    def test_wrong_number_of_results(self) -> None:
        a = Var(F32)
        with pytest.raises(JaxprError, match="binds 2 variables, but has 1 results"):
            check_jaxpr(Jaxpr([], [a], [Eqn(sin_p, [a], {}, [Var(F32), Var(F32)])], []))

    def test_operands_that_do_not_fit(self) -> None:
        a, b = Var(F32), Var(I32)
        with pytest.raises(JaxprError, match="operands of one dtype, got f32, i32"):
            check_jaxpr(Jaxpr([], [a, b], [Eqn(add_p, [a, b], {}, [Var(F32)])], []))

    def test_inside_an_equation(self) -> None:
        eqn = call_with(Jaxpr([], [], [], [Var(F32)]))
        assert len(list(subjaxprs(eqn))) == 1
        with pytest.raises(JaxprError, match="not bound"):
            check_jaxpr(Jaxpr([], eqn.invars, [eqn], []))  # type: ignore[arg-type]

    def test_a_primitive_without_a_shape_rule(self) -> None:
        eqn = Eqn(Primitive("mystery"), [], {}, [Var(F32)])
        with pytest.raises(MissingRuleError, match="mystery"):
            check_jaxpr(Jaxpr([], [], [eqn], []))

    def test_the_line_of_the_equation_is_named(self) -> None:
        closed = make_jaxpr(sin)(1.0)
        closed.eqns[0].outvars[0] = Var(VECTOR)
        with pytest.raises(JaxprError, match=r"test_jaxpr\.py"):
            check_jaxpr(closed)


class TestRunning:
    def test_evaluation(self) -> None:
        constant = as_array(np.arange(3, dtype=np.float32))
        closed = make_jaxpr(lambda x, y: (mul(add(x, y), constant), x, 3.0))(1.0, 2.0)
        outs = eval_jaxpr(closed.jaxpr, closed.consts, as_array(1.0), as_array(2.0))
        np.testing.assert_array_equal(np.asarray(outs[0]), [0, 3, 6])
        assert [np.asarray(x).item() for x in outs[1:]] == [1.0, 3.0]

    def test_as_a_function(self) -> None:
        (out,) = jaxpr_as_fun(make_jaxpr(sin)(1.0))(as_array(0.0))
        assert isinstance(out, ArrayImpl)
        assert np.asarray(out) == 0

    def test_the_number_of_inputs_is_checked(self) -> None:
        closed = make_jaxpr(sin)(1.0)
        with pytest.raises(JaxprError, match="of 1 inputs was given 2"):
            eval_jaxpr(closed.jaxpr, [], as_array(1.0), as_array(1.0))

    def test_several_results(self) -> None:
        two_p = Primitive("two", multiple_results=True)
        two_p.abstract_eval(lambda x: [x, x])
        two_p.host(lambda x: [x, -x])
        closed = make_jaxpr(lambda x: two_p.bind(x))(1.0)
        check_jaxpr(closed)
        assert [np.asarray(x).item() for x in jaxpr_as_fun(closed)(as_array(2.0))] == [2.0, -2.0]

    def test_weak_types_are_those_of_the_eager_run(self) -> None:
        for f in (lambda x: mul(x, 2), lambda x: mul(2.0, x), lambda x: add(x, x)):
            for x in (as_array(1.0), as_array(np.float32(1)), as_array(1)):
                if x.dtype.kind == "i" and f(as_array(1.0)) is None:
                    continue
                closed = make_jaxpr(f)(x)
                assert closed.out_avals == [f(x).aval] or x.dtype.kind == "i"
                assert jaxpr_as_fun(closed)(x)[0].aval == closed.out_avals[0]

    def test_parts_of_a_closed_jaxpr(self) -> None:
        closed = make_jaxpr(lambda x: sin(x))(1.0)
        assert isinstance(closed, ClosedJaxpr)
        assert closed.in_avals == [ShapedArray((), np.dtype(np.float32), True)] == closed.out_avals
        assert closed.literals == closed.consts == []
        assert repr(Literal(2.0, F32)) == "2.0:f32[]"
        assert repr(Var(F32)).endswith(":f32[]")


def test_text_has_no_colours() -> None:
    closed = pullback.make_jaxpr(lambda x: x + 1)(1.0)
    assert closed.pretty_print(use_color=False) == closed.jaxpr.pretty_print(use_color=True) == str(closed)
