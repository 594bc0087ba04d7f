"""Bad rules and bad calls of ``custom_jvp`` and ``custom_vjp``: what the errors say, and where they point."""

from __future__ import annotations

import functools
import re
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import custom_jvp, custom_vjp, float0, grad, jacrev, jit, jvp, linearize, make_jaxpr, typeof, vjp, vmap
from pullback.core import source, tree
from pullback.core.config import override
from pullback.core.trace import EVAL, state
from pullback.errors import (
    ArgumentError,
    CustomRuleError,
    MissingCustomRuleError,
    NotLinearError,
    OperandError,
    TangentMismatchError,
    UnexpectedTracerError,
)
from pullback.transforms.custom.rule_adapter import SymbolicZero
from tests.transforms.custom.custom_functions import along

Function = Callable[..., Any]

x3 = jnp.asarray([0.0, 1.0, 2.0])
params = {"w": x3, "n": 2}
params_dot = {"w": x3, "n": np.zeros((), float0)}


def place(f: Function) -> str:
    """How a message names a function: by its name and line."""
    return f"{f.__qualname__} at {__file__}:{f.__code__.co_firstlineno}"


def function(x: Any, params: Any) -> Any:
    """The function of most examples, of a number, an array and an integer."""
    return {"y": x * params["w"], "n": params["n"]}


def pulled(f: Function) -> Function:
    """The cotangents for a result of zeros."""

    def run(*args: Any) -> Any:
        out, pull = vjp(f, *args)
        return pull(tree.tree_map(lambda y: jnp.zeros_like(y) if y.dtype != int else np.zeros(y.shape, float0), out))

    return run


MODES: dict[str, Callable[[Function], Any]] = {
    "jvp": lambda f: jvp(f, (2.0, params), (1.0, params_dot)),
    "vjp": lambda f: pulled(f)(2.0, params),
    "jvp of jit": lambda f: jvp(jit(f), (2.0, params), (1.0, params_dot)),
    "vjp of jit": lambda f: pulled(jit(f))(2.0, params),
    "jit of vjp": lambda f: jit(pulled(lambda x: f(x, params)))(2.0),
    "vmap of jvp": lambda f: vmap(along(lambda x: f(x, params)["y"]))(x3),
    "vmap of vjp": lambda f: vmap(pulled(lambda x: f(x, params)["y"]))(x3),
    "vjp of vmap": lambda f: pulled(lambda x: vmap(lambda x: f(x, params)["y"])(x))(x3),
    "linearize": lambda f: linearize(f, 2.0, params)[1](1.0, params_dot),
    "make_jaxpr of vjp": lambda f: make_jaxpr(pulled(lambda x: f(x, params)))(2.0),
}
MODE = pytest.mark.parametrize("mode", MODES)


def message_of(error: type[Exception], run: Callable[[], Any]) -> str:
    """The message of an error that is raised, and that leaves nothing behind and shows no frames of Pullback's."""
    with pytest.raises(error) as caught:
        run()
    assert state.trace is EVAL
    assert internal(caught.value) == []
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return str(caught.value)


def frames(error: BaseException) -> list[str]:
    """The functions of this file in a traceback."""
    return [f.name for f in traceback.extract_tb(error.__traceback__) if f.filename == __file__]


def internal(error: BaseException) -> list[str]:
    found = traceback.extract_tb(error.__traceback__)
    return [f"{f.name}:{f.lineno}" for f in found if source.is_internal(f.filename)]


def with_jvp(rule: Function, symbolic_zeros: bool = False) -> Any:
    f = custom_jvp(function)
    f.defjvp(rule, symbolic_zeros)
    return f


def with_vjp(fwd: Function, bwd: Function) -> Any:
    f = custom_vjp(function)
    f.defvjp(fwd, bwd)
    return f


# Rules for forward mode --------------------------------------------------------------------------------------------


def good_tangent(primals: Any, tangents: Any) -> Any:
    _, params = primals
    return {"y": tangents[0] * params["w"], "n": np.zeros((), float0)}


NOT_A_PAIR: dict[str, tuple[Function, str]] = {
    "nothing": (lambda primals, tangents: None, "but it returned None of type NoneType"),
    "one array": (lambda primals, tangents: primals[0], r"but it returned (Array|Traced).* of type \w+"),
    "one": (lambda primals, tangents: (function(*primals),), r"but it returned a tuple of 1, \(\{"),
    "three": (lambda primals, tangents: [1, 2, 3], r"but it returned a list of 3, \[1, 2, 3\]"),
    "a dict": (
        lambda primals, tangents: {"out": 1, "tangent": 2},
        r"but it returned \{'out': 1, 'tangent': 2\} of type dict",
    ),
}


@MODE
@pytest.mark.parametrize("what", NOT_A_PAIR)
def test_a_jvp_rule_that_gives_no_pair(what: str, mode: str) -> None:
    rule, came = NOT_A_PAIR[what]
    message = message_of(CustomRuleError, lambda: MODES[mode](with_jvp(rule)))
    assert f"the jvp rule {place(rule)} of {place(function)} must return a pair (out, tangent_out)" in message
    assert re.search(came, message)


TREES: dict[str, tuple[Function, str]] = {
    "no tangent": (lambda primals, tangents: (function(*primals), None), "the tangent PyTreeDef(None)"),
    "a tangent alone": (lambda primals, tangents: (function(*primals), tangents[0]), "the tangent that of one array"),
    "a missing key": (
        lambda primals, tangents: (function(*primals), {"y": good_tangent(primals, tangents)["y"]}),
        "the tangent PyTreeDef({'y': *})",
    ),
    "None within": (
        lambda primals, tangents: (function(*primals), {**good_tangent(primals, tangents), "n": None}),
        "the tangent PyTreeDef({'n': None, 'y': *})",
    ),
    "a tuple for a dict": (
        lambda primals, tangents: (function(*primals), tuple(good_tangent(primals, tangents).values())),
        "the tangent PyTreeDef((*, *))",
    ),
}


@MODE
@pytest.mark.parametrize("what", TREES)
def test_a_jvp_rule_whose_results_differ_in_their_trees(what: str, mode: str) -> None:
    rule, came = TREES[what]
    message = message_of(CustomRuleError, lambda: MODES[mode](with_jvp(rule)))
    assert (
        f"the jvp rule {place(rule)} of {place(function)} must return a result and a tangent of the same tree"
        in message
    )
    assert "the result has PyTreeDef({'n': *, 'y': *})" in message
    assert came in message


@MODE
def test_a_jvp_rule_whose_tangents_are_of_other_types_lists_them_all(mode: str) -> None:
    def rule(primals: Any, tangents: Any) -> Any:
        return function(*primals), {"y": tangents[0], "n": jnp.ones((2, 1))}

    message = message_of(TangentMismatchError, lambda: MODES[mode](with_jvp(rule)))
    assert f"the jvp rule {place(rule)} of {place(function)} must return tangents of the shapes and dtypes" in message
    assert "out['y'] is f32[3], so its tangent must be f32[3], but it is f32[]" in message
    assert "out['n'] is i32[], so its tangent must be float0[], but it is f32[2,1]" in message


WRONG_TANGENTS: dict[str, tuple[Function, str]] = {
    "an axis of size one": (lambda t: t["y"][:1], "f32[1]"),
    "another rank": (lambda t: t["y"][None], "f32[1,3]"),
    "complex": (lambda t: t["y"] * 1j, "c64[3]"),
    "half precision": (lambda t: t["y"].astype(jnp.float16), "f16[3]"),
    "integers": (lambda t: jnp.zeros(3, int), "i32[3]"),
    "booleans": (lambda t: np.zeros(3, bool), "bool[3]"),
    "float0": (lambda t: np.zeros(3, float0), "float0[3]"),
    "a number": (lambda t: 0.0, "f32[]"),
    "a symbolic zero": (lambda t: SymbolicZero(typeof(jnp.zeros(2))), "f32[2]"),
}


@MODE
@pytest.mark.parametrize("what", WRONG_TANGENTS)
def test_a_tangent_is_never_broadcast_or_converted(what: str, mode: str) -> None:
    change, came = WRONG_TANGENTS[what]

    def rule(primals: Any, tangents: Any) -> Any:
        t = good_tangent(primals, tangents)
        return function(*primals), {"y": change(t), "n": t["n"]}

    message = message_of(TangentMismatchError, lambda: MODES[mode](with_jvp(rule)))
    assert f"out['y'] is f32[3], so its tangent must be f32[3], but it is {came}" in message
    assert "out['n']" not in message


@pytest.mark.parametrize("mode", ["jvp of jit", "vjp of jit"])
def test_a_jvp_rule_that_gives_another_result_than_the_function_where_that_is_known(mode: str) -> None:
    def other_tree(primals: Any, tangents: Any) -> Any:
        return primals[0], tangents[0]

    message = message_of(CustomRuleError, lambda: MODES[mode](with_jvp(other_tree)))
    assert f"the jvp rule {place(other_tree)} of {place(function)} must return a result of the same tree" in message
    assert "PyTreeDef({'n': *, 'y': *}), but returned that of one array" in message

    def other_shape(primals: Any, tangents: Any) -> Any:
        return {"y": primals[0], "n": 2}, {"y": tangents[0], "n": np.zeros((), float0)}

    message = message_of(CustomRuleError, lambda: MODES[mode](with_jvp(other_shape)))
    assert place(function) in message
    assert "returned f32[] as result 1, where the function itself returns f32[3]" in message


@MODE
def test_a_tangent_that_is_not_an_array(mode: str) -> None:
    def rule(primals: Any, tangents: Any) -> Any:
        return function(*primals), {"y": "tangent", "n": np.zeros((), float0)}

    message = message_of(OperandError, lambda: MODES[mode](with_jvp(rule)))
    assert place(rule) in message
    assert "'tangent' of type str" in message


NOT_LINEAR: dict[str, Function] = {
    "a square": lambda t: t**2,
    "an absolute value": jnp.abs,
    "a product of tangents": lambda t: t * t,
    "a choice": lambda t: jnp.where(t > 0, t, 2.0 * t),
    "a branch": lambda t: t if t.sum() > 0 else 2.0 * t,
    "a number of its own": lambda t: jnp.ones(3),
}


@pytest.mark.parametrize("mode", ["vjp", "vmap of vjp", "vjp of vmap", "linearize"])
@pytest.mark.parametrize("what", NOT_LINEAR)
def test_a_jvp_rule_that_is_not_linear_in_reverse_mode(what: str, mode: str) -> None:
    change = NOT_LINEAR[what]

    def rule(primals: Any, tangents: Any) -> Any:
        t = good_tangent(primals, tangents)
        return function(*primals), {"y": change(t["y"]), "n": t["n"]}

    message = message_of(NotLinearError, lambda: MODES[mode](with_jvp(rule)))
    assert place(function) in message
    assert "linear in" in message
    if what != "a number of its own":
        assert f"the jvp rule {place(rule)}" in message


@pytest.mark.parametrize("what", [name for name in NOT_LINEAR if name not in ("a number of its own", "a branch")])
def test_a_jvp_rule_that_is_not_linear_in_a_program(what: str) -> None:
    """What is not linear is named by its line, since the rule has been left by then."""
    change = NOT_LINEAR[what]

    def rule(primals: Any, tangents: Any) -> Any:
        return primals[0], change(tangents[0])

    f = custom_jvp(lambda x: x)
    f.defjvp(rule)
    with pytest.raises(NotLinearError, match=rf"(?s)not linear.* at {re.escape(__file__)}:\d+ \((rule|<lambda>)\)"):
        grad(jit(f))(2.0)


# Rules for reverse mode --------------------------------------------------------------------------------------------


def forward(x: Any, params: Any) -> Any:
    return function(x, params), (x, params["w"])


@MODE
@pytest.mark.parametrize("what", NOT_A_PAIR)
def test_a_forward_rule_that_gives_no_pair(what: str, mode: str) -> None:
    wrong, came = NOT_A_PAIR[what]

    def fwd(x: Any, params: Any) -> Any:
        return wrong((x, params), None)

    message = message_of(CustomRuleError, lambda: MODES[mode](with_vjp(fwd, lambda _, ct: (None, None))))
    assert f"the forward rule {place(fwd)} of {place(function)} must return a pair (out, residuals)" in message
    assert re.search(came, message)


@pytest.mark.parametrize("mode", ["jvp of jit", "vjp of jit"])
@pytest.mark.parametrize(("out", "came"), [(None, "PyTreeDef(None)"), ((1.0, 2), "PyTreeDef((*, *))")])
def test_a_forward_rule_that_gives_another_result_than_the_function_where_that_is_known(
    out: Any, came: str, mode: str
) -> None:
    def fwd(x: Any, params: Any) -> Any:
        return out, None

    message = message_of(CustomRuleError, lambda: MODES[mode](with_vjp(fwd, lambda _, ct: (None, None))))
    assert f"the forward rule {place(fwd)} of {place(function)} must return a result of the same tree" in message
    assert f"but returned {came}" in message


def test_a_result_that_is_not_an_array() -> None:
    def fwd(x: Any, params: Any) -> Any:
        return {"y": "result", "n": 2}, None

    message = message_of(OperandError, lambda: MODES["vjp"](with_vjp(fwd, lambda _, ct: (None, None))))
    assert place(fwd) in message
    assert "'result' of type str" in message


NOT_A_TUPLE: dict[str, tuple[Function, str]] = {
    "a short list": (lambda residuals, ct: [None], r"it returned 1: \(None,\)"),
    "nothing": (lambda residuals, ct: None, "it returned None of type NoneType"),
    "an array": (lambda residuals, ct: ct["y"], r"it returned (Array|Traced).* of type \w+; write \(\.\.\., \.\.\.\)"),
    "a dict": (lambda residuals, ct: {"x": None}, r"it returned \{'x': None\} of type dict"),
    "too few": (lambda residuals, ct: (None,), r"it returned 1: \(None,\)"),
    "too many": (lambda residuals, ct: (None, None, 3), r"it returned 3: \(None, None, 3\)"),
}


@MODE
@pytest.mark.parametrize("what", NOT_A_TUPLE)
def test_a_backward_rule_that_gives_no_tuple_of_cotangents(what: str, mode: str) -> None:
    bwd, came = NOT_A_TUPLE[what]
    message = message_of(CustomRuleError, lambda: MODES[mode](with_vjp(forward, bwd)))
    assert f"the backward rule {place(bwd)} of {place(function)} must return a tuple of 2 cotangents" in message
    assert re.search(came, message)


def test_a_hint_for_one_argument() -> None:
    f = custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, ct: ct)
    assert message_of(TypeError, lambda: grad(f)(1.0)).endswith("of type ArrayImpl; write (...,)")


COTANGENT_TREES: dict[str, tuple[Function, list[str]]] = {
    "a tree for a leaf": (
        lambda residuals, ct: ((5,), None),
        ["it returned PyTreeDef(((*,), None))", r"5 is at \[0\]\[0\], where the arguments have no array"],
    ),
    "another key": (
        lambda residuals, ct: (None, {"w": ct["y"], "m": 7}),
        ["it returned PyTreeDef((None, {'m': *, 'w': *}))", r"7 is at \[1\]\['m'\]", r"nothing is at \[1\]\['n'\]"],
    ),
    "a missing key": (lambda residuals, ct: (None, {"w": ct["y"]}), [r"nothing is at \[1\]\['n'\]"]),
    "a list for a dict": (lambda residuals, ct: (None, [ct["y"], None]), ["it returned PyTreeDef((None, [*, None]))"]),
}


@MODE
@pytest.mark.parametrize("what", COTANGENT_TREES)
def test_a_backward_rule_whose_cotangents_have_another_tree(what: str, mode: str) -> None:
    bwd, came = COTANGENT_TREES[what]
    message = message_of(CustomRuleError, lambda: MODES[mode](with_vjp(forward, bwd)))
    assert f"the backward rule {place(bwd)} of {place(function)} must return cotangents with the trees" in message
    assert "PyTreeDef((*, {'n': *, 'w': *}))" in message
    for part in came:
        assert part in message or re.search(part, message)


@MODE
def test_a_backward_rule_whose_cotangents_are_of_other_types_lists_them_all(mode: str) -> None:
    def bwd(residuals: Any, ct: Any) -> Any:
        return ct["y"], {"w": jnp.sum(ct["y"]), "n": None}

    message = message_of(TangentMismatchError, lambda: MODES[mode](with_vjp(forward, bwd)))
    assert (
        f"the backward rule {place(bwd)} of {place(function)} must return cotangents of the shapes and dtypes"
        in message
    )
    assert "argument 0 is f32[], so its cotangent must be f32[], but it is f32[3]" in message
    assert "argument 1['w'] is f32[3], so its cotangent must be f32[3], but it is f32[]" in message
    assert "['n']" not in message


WRONG_COTANGENTS: dict[str, tuple[Function, str]] = {
    "an axis of size one": (lambda ct: jnp.sum(ct)[None], "f32[1]"),
    "another rank": (lambda ct: jnp.sum(ct)[None, None], "f32[1,1]"),
    "complex": (lambda ct: jnp.sum(ct) * 1j, "c64[]"),
    "float0": (lambda ct: np.zeros((), float0), "float0[]"),
    "a symbolic zero": (lambda ct: SymbolicZero(typeof(x3)), "f32[3]"),
}


@MODE
@pytest.mark.parametrize("what", WRONG_COTANGENTS)
def test_a_cotangent_is_never_broadcast_or_made_real(what: str, mode: str) -> None:
    change, came = WRONG_COTANGENTS[what]

    def bwd(residuals: Any, ct: Any) -> Any:
        return change(ct["y"]), None

    message = message_of(TangentMismatchError, lambda: MODES[mode](with_vjp(forward, bwd)))
    assert f"argument 0 is f32[], so its cotangent must be f32[], but it is {came}" in message


def test_positions_count_the_arguments_that_are_not_differentiated() -> None:
    f = custom_vjp(lambda how, x, n, y: x * y, nondiff_argnums=(0, 2))
    f.defvjp(lambda how, x, n, y: (x * y, None), lambda how, n, _, ct: (ct, jnp.ones(2)))
    message = message_of(TangentMismatchError, lambda: grad(f, 1)("a", 1.0, "b", 2.0))
    assert "argument 3 is f32[], so its cotangent must be f32[], but it is f32[2]" in message


@pytest.mark.parametrize("way", [lambda f: f, jit, vmap], ids=["eager", "jit", "vmap"])
def test_without_checks_a_cotangent_of_another_shape_is_handed_on(way: Function) -> None:
    f = custom_vjp(lambda x, y: x)
    f.defvjp(lambda x, y: (x, None), lambda _, ct: (ct, jnp.arange(3.0)))
    gradient = way(grad(lambda x, y: jnp.sum(f(x, y)), 1))
    with override("disable_bwd_checks", True):
        assert gradient(jnp.ones((2, 3)), jnp.ones((2, 4))).shape[-1] == 3
    with pytest.raises(TangentMismatchError, match=r"f32\[4\]|f32\[2,4\]"):
        gradient(jnp.ones((2, 3)), jnp.ones((2, 4)))


# Calls and definitions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "missing"), [(custom_jvp, "defjvp"), (custom_vjp, "defvjp")])
def test_a_call_without_rules(kind: Any, missing: str) -> None:
    f = kind(function)
    for run in (
        lambda: f(2.0, params),
        lambda: jit(f)(2.0, params),
        lambda: MODES["vjp"](f),
        lambda: MODES["vmap of jvp"](f),
    ):
        message = message_of(AttributeError, run)
        assert place(function) in message
        assert f"a {kind.__name__} function without a rule" in message
        assert message.endswith(f"set one with {missing}")
    assert issubclass(MissingCustomRuleError, AttributeError)


def test_a_custom_vjp_with_a_jvp_rule_alone() -> None:
    f = custom_vjp(function)
    f.defjvp(lambda primals, tangents: (f(*primals), good_tangent(primals, tangents)))
    assert "set one with defvjp" in message_of(AttributeError, lambda: f(2.0, params))


def product(x: Any, y: Any) -> Any:
    return x * y


def keyword_only(x: Any, *, y: Any = 1.0) -> Any:
    return x * y


DEFINITIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "defjvps with nondiff_argnums": (
        lambda: custom_jvp(product, nondiff_argnums=(1,)).defjvps(None),
        r"defjvps of product at .* does not go with nondiff_argnums=\(1,\); use defjvp",
    ),
    "a number for a function": (lambda: custom_jvp(3), "custom_jvp: fun must be a function, got 3 of type int"),
    "a number for a custom_vjp": (lambda: custom_vjp("f"), "custom_vjp: fun must be a function, got 'f' of type str"),
    "a number for a jvp rule": (
        lambda: custom_jvp(product).defjvp(3),
        "defjvp of product at .*: jvp must be a function, got 3 of type int",
    ),
    "a number for one of the rules": (
        lambda: custom_jvp(product).defjvps(None, 3),
        "defjvps of product at .*: a rule must be a function, got 3 of type int",
    ),
    "a number for a forward rule": (
        lambda: custom_vjp(product).defvjp(3, product),
        "defvjp of product at .*: fwd must be a function, got 3 of type int",
    ),
    "a number for a backward rule": (
        lambda: custom_vjp(product).defvjp(product, None),
        "defvjp of product at .*: bwd must be a function, got None of type NoneType",
    ),
    "a name for a number": (
        lambda: custom_jvp(product, nondiff_argnums="x"),
        "custom_jvp of product at .*: nondiff_argnums must be ints, got 'x'",
    ),
    "a float for a number": (
        lambda: custom_vjp(product, nondiff_argnums=1.0),
        "custom_vjp of product at .*: nondiff_argnums must be ints, got 1.0",
    ),
    "no such argument": (
        lambda: custom_vjp(product, nondiff_argnums=(0, 2)),
        r"custom_vjp of product at .*, which takes 2 arguments: nondiff_argnums is \(0, 2\)",
    ),
    "no such name": (
        lambda: custom_vjp(product, nondiff_argnames="z"),
        "custom_vjp: product at .* has no argument 'z', which occurs in nondiff_argnames",
    ),
}


@pytest.mark.parametrize("what", DEFINITIONS)
def test_bad_definitions(what: str) -> None:
    run, expected = DEFINITIONS[what]
    with pytest.raises(ArgumentError, match=expected) as caught:
        run()
    assert isinstance(caught.value, TypeError)
    assert __file__ in str(caught.value) or "must be a function" in str(caught.value)


CALLS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "too few arguments": (lambda f: f(1.0), r"product at .*: missing a required argument: 'y'"),
    "too many arguments": (lambda f: f(1.0, 2.0, 3.0), r"product at .*: too many positional arguments"),
    "an unknown keyword": (lambda f: f(1.0, z=2.0), r"product at .*: (missing a required|got an unexpected).*"),
    "twice the same": (lambda f: f(1.0, x=2.0), r"product at .*: multiple values for argument 'x'"),
    "a string": (lambda f: f(1.0, "a"), r"custom_jvp of product at .*, argument 1 \(y\): .*'a' of type str"),
    "a set": (lambda f: f({1}, 2.0), r"custom_jvp of product at .*, argument 0 \(x\): .*\{1\} of type set"),
}


@pytest.mark.parametrize("what", CALLS)
def test_bad_calls(what: str) -> None:
    run, expected = CALLS[what]
    f = custom_jvp(product)
    f.defjvps(None, None)
    for call in (lambda: run(f), lambda: jit(lambda: run(f))(), lambda: grad(lambda x: x * run(f))(1.0)):
        with pytest.raises(TypeError, match=expected) as caught:
            call()
        assert internal(caught.value) == []


def test_arguments_that_can_be_given_by_keyword_only() -> None:
    f = custom_jvp(keyword_only)
    f.defjvps(lambda t, ans, x: t)
    with pytest.raises(ArgumentError, match=r"keyword_only at .*: the arguments y are keyword-only.*positional"):
        f(1.0, y=2.0)


def test_too_few_rules_for_the_arguments() -> None:
    f = custom_jvp(product)
    f.defjvps(lambda t, ans, x, y: t)
    with pytest.raises(
        CustomRuleError, match=r"defjvps of product at .* was given 1 rules, .* called with 2 arguments"
    ):
        grad(f)(1.0, 2.0)


def test_a_traced_array_for_an_argument_that_is_not_differentiated() -> None:
    f = custom_vjp(function, nondiff_argnums=(1,))
    f.defvjp(lambda x, params: (function(x, params), None), lambda params, _, ct: (ct["y"].sum(),))
    for run, traced_by in (
        (lambda: jit(f)(2.0, params), "jit"),
        (lambda: vmap(lambda w: f(2.0, {"w": w, "n": 2}))(x3), "vmap"),
        (lambda: jacrev(lambda w: f(2.0, {"w": w, "n": 2})["y"])(x3), "differentiation"),
        (lambda: jvp(lambda w: f(2.0, {"w": w, "n": 2}), (x3,), (x3,)), "forward differentiation"),
    ):
        message = message_of(UnexpectedTracerError, run)
        assert f"argument 1 of {place(function)} is one of nondiff_argnums" in message
        kind = "f32[]" if traced_by == "vmap" else "f32[3]"
        assert re.search(rf"Traced<{re.escape(kind)}(: .*)?> by {traced_by}", message) or "Traced<i32[]>" in message
        assert "Pass arrays as ordinary arguments" in message


# Rules that raise --------------------------------------------------------------------------------------------------


def complains(*_: Any) -> Any:
    raise ValueError("on purpose")


def adds_a_string(*_: Any) -> Any:
    return jnp.add(1.0, "a")


RAISING: dict[str, tuple[type[Exception], Function, list[str]]] = {
    "an error of the user's": (ValueError, complains, ["complains"]),
    "an error of Pullback's": (TypeError, adds_a_string, ["adds_a_string"]),
}


@pytest.mark.parametrize("switch", ["auto", "off"])
@pytest.mark.parametrize("rule", ["jvp", "fwd", "bwd", "function"])
@pytest.mark.parametrize("what", RAISING)
@MODE
def test_an_error_in_a_rule_keeps_the_users_traceback(what: str, mode: str, rule: str, switch: str) -> None:
    error, raises, last = RAISING[what]

    def calls(*args: Any) -> Any:
        return raises(*args)

    f: Any
    if rule == "jvp":
        f = with_jvp(calls)
    elif rule == "function":
        f = custom_vjp(calls)
        f.defvjp(lambda *args: (f(*args), None), lambda _, ct: (None, None))
    else:
        f = with_vjp(*((calls, calls) if rule == "fwd" else (forward, calls)))
    with override("traceback_filtering", switch), pytest.raises(error) as caught:
        MODES[mode](f)
    assert frames(caught.value)[-2:] == ["calls", *last]
    assert (internal(caught.value) == []) == (switch == "auto")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    assert state.trace is EVAL


def test_an_error_in_a_backward_rule_that_runs_later() -> None:
    f = with_vjp(forward, complains)
    _, pull = vjp(f, 2.0, params)
    with pytest.raises(ValueError, match=r"^on purpose$") as caught:
        pull({"y": x3, "n": np.zeros((), float0)})
    assert frames(caught.value)[-1] == "complains"
    assert internal(caught.value) == []


def test_an_error_in_a_rule_can_be_caught() -> None:
    f = custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), complains)

    def recovers(x: Any) -> Any:
        try:
            return grad(f)(x)
        except ValueError:
            return x * x

    assert float(grad(recovers)(3.0)) == 6.0


def test_rules_with_other_parameters() -> None:
    def no_residuals(ct: Any) -> Any:
        return (ct,)

    f = custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), no_residuals)
    with pytest.raises(TypeError, match=r"no_residuals\(\) takes 1 positional argument but 2 were given"):
        grad(f)(1.0)


def test_pullback_names_no_function_without_code() -> None:
    f = custom_jvp(functools.partial(max, 3.0))
    f.defjvp(lambda primals, tangents: None)
    message = message_of(CustomRuleError, lambda: along(f)(1.0))
    assert "of max must return a pair" in message
