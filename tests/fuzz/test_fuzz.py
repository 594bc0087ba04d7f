"""The fuzzer itself: the same programs in each run, faults are found and made small, what is printed runs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import lax
from pullback.primitives import elementwise
from tests.fuzz import draw, laws, program, rows, show
from tests.fuzz.compiler import without_compiler
from tests.fuzz.program import Case, Input, Instruction, Program, Type
from tests.fuzz.reduce import reduced
from tests.fuzz.session import Session

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("x64")]


def drawn(number: int) -> Case:
    with without_compiler():
        return draw.case(0, number, draw.Options(), draw.Record())


def test_a_program_is_the_same_in_each_run() -> None:
    assert [drawn(k) for k in range(12)] == [drawn(k) for k in range(12)]
    assert drawn(3) != drawn(4)


def test_programs_without_faults_pass() -> None:
    session = Session(0)
    for k in range(12):
        session.eager_program(k)
    session.compiled_program(0)
    assert session.found == []
    assert (session.eager, session.compiled) == (12, 1)
    assert "12 eager and 1 compiled programs, 0 failures" in session.summary()


def step(text: str, *operands: int, shape: tuple[int, ...] = (3,), **more: Any) -> Instruction:
    return Instruction("step", text, operands, type=Type(shape, "f"), **more)


def case_of(*steps: Instruction, inputs: int = 1) -> Case:
    given = tuple(Input([0.31, -0.72, 1.13], "float32") for _ in range(inputs))
    return Case(Program(inputs, steps, (inputs + len(steps) - 1,)), given)


TAN = case_of(
    step("jnp.sin(_0)", 0), step("1.5 * _0", 1), step("jnp.tanh(_0)", 2), step("jnp.flip(_0)", 3), step("_0 + _1", 4, 1)
)


@pytest.fixture
def _wrong_tanh(monkeypatch: pytest.MonkeyPatch) -> None:
    """The derivative of tanh has the wrong sign."""
    right = elementwise.tanh_p.jvp_rule
    assert right is not None

    def wrong(*args: Any, **params: Any) -> Any:
        out, tangent = right(*args, **params)
        return out, elementwise.neg(tangent)

    monkeypatch.setattr(elementwise.tanh_p, "jvp_rule", wrong)
    for name in ("tangent_rule", "record_rule", "directional_rule"):
        monkeypatch.setattr(elementwise.tanh_p, name, None)


@pytest.mark.usefixtures("_wrong_tanh")
def test_a_wrong_derivative_is_found_and_made_small() -> None:
    failure = laws.broken(laws.differences, TAN)
    assert failure is not None
    assert failure.how == "value"
    assert laws.persists(laws.differences, TAN, "value")
    small = reduced(TAN, lambda case: laws.broken(laws.differences, case) is not None)
    assert [s.text for s in small.program.instructions] == ["jnp.tanh(_0)"]
    assert np.size(small.inputs[0].values) == 1
    assert "a1 = jnp.tanh(a0)" in show.test(small, failure)


def test_without_the_fault_all_laws_hold() -> None:
    for law in (laws.plain, laws.single, laws.differences, laws.transposed, laws.staged, laws.compiled):
        assert laws.broken(law, TAN) is None


def test_what_is_printed_runs_and_fails() -> None:
    body = Program(2, (step("_0 * _0", 0),), (2,))
    wrong = Instruction("call", "f0(_0, _0) + 0.125", (0,), (body,), "f0(_0, _0)", Type((3,), "f"))
    case = case_of(step("jnp.cos(_0)", 0), Instruction("call", wrong.text, (1,), (body,), wrong.plain, wrong.type))
    failure = laws.broken(laws.plain, case)
    assert failure is not None
    text = show.test(case, failure)
    space: dict[str, Any] = {}
    exec(compile(text, "printed", "exec"), space)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        space["test_program"]()


def test_ill_conditioned_and_discontinuous_programs_are_not_reported() -> None:
    cancelled = case_of(step("_0 + 1e6", 0), step("_0 - 1e6", 1), step("jnp.sin(_0)", 2))
    chaotic = case_of(*(step("3.9 * _0 * (1 - _0)", k) for k in range(25)))
    jumps = case_of(step("_0 * 3 / 3", 0), step("jnp.floor((_0 - _1) * 1e8)", 1, 0))
    for case in (cancelled, chaotic, jumps):
        for law in (laws.single, laws.compiled):
            assert laws.broken(law, case) is None
    kink = Case(case_of(step("abs(_0)", 0)).program, (Input([0.0, 0.0, 0.0], "float32"),))
    assert laws.broken(laws.differences, kink) is None


def test_an_error_of_one_form_alone_is_a_fault() -> None:
    case = case_of(Instruction("call", "jnp.nothing(_0)", (0,), (), "_0", Type((3,), "f")))
    failure = laws.broken(laws.of_refusal, case)
    assert failure is not None
    assert (failure.law, failure.how) == ("refused", "AttributeError")


def test_every_row_of_the_table_has_a_text() -> None:
    assert len(rows.ROWS) > 1700
    printed = [row for row in rows.ROWS if not row.call.startswith("row(")]
    assert len(printed) > 1300
    for row in printed[::40]:
        eval(row.call.removesuffix(".bind"), {**program.namespace.names(True)})


def test_disturbances_are_as_large_as_they_are_told() -> None:
    case = case_of(step("jnp.sin(_0)", 0))
    exact = laws.at(case, laws.values, program.Way(double=True))
    (moved,) = laws.movement(case, laws.values, 1e-6, exact)
    assert 1e-7 < moved < 1e-5


def test_the_words_make_what_they_say() -> None:
    words = program.namespace.names(True)
    x = jnp.array([0.3, -0.4])
    assert words["spread"](x, (2, 3), -1, 1, jnp.float64).shape == (2, 3)
    assert np.abs(words["spread"](x, (5, 5), -1, 1, jnp.float64)).max() <= 1
    assert np.linalg.matrix_rank(words["spread"](x[:1], (4, 4), -1, 1, jnp.float64)) == 4
    assert words["spread_int"](x, (3,), -2, 2, jnp.uint8).dtype == jnp.uint8
    assert words["like"](lax.complex(x, x), jnp.arange(3)).dtype == jnp.arange(3).dtype


def test_the_operations_of_all_rows_are_found() -> None:
    named = {name for row in rows.ROWS for name in re.findall(r"primitive\('(\w+)'\)", row.call)}
    assert len(named) > 200
    assert named - set(rows.primitives()) == set()
