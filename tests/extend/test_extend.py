"""Primitives by the public interface: the page about them, what the interface promises, and rules that are wrong.

How such a primitive behaves under transformations is tested in ``test_user_primitive.py``.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import (
    config,
    core,
    errors,
    extend,
    grad,
    jit,
    jvp,
    lax,
    linear_transpose,
    linearize,
    make_jaxpr,
    vjp,
    vmap,
)
from pullback.core import taylor_rules
from pullback.primitives import elementwise
from tests.helpers import ROOT

PAGE = ROOT / "docs" / "primitives.md"
W = np.float32([0.3, -1.2, 0.7])


# The page ------------------------------------------------------------------------------------------------------------


def blocks(page: Path) -> Iterator[tuple[int, str]]:
    """The programs of a page, and the line on which each begins."""
    text = page.read_text()
    for found in re.finditer(r"```python\n(.*?)```", text, re.DOTALL):
        yield text.count("\n", 0, found.start(1)), found[1]


@pytest.mark.parametrize(
    "page",
    [PAGE.with_stem(name) for name in ("primitives", "named_axes", "references", "second_order", "data_types")],
    ids=lambda page: page.stem,
)
def test_every_program_of_a_page_prints_what_it_says(page: Path) -> None:
    namespace: dict[str, Any] = {}
    count = 0
    for line, program in blocks(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + program, str(page), "exec"), namespace)
        expected = re.findall(r"^ *print\(.*\)  # (.*)$", program, re.MULTILINE)
        assert len(expected) == program.count("print("), f"line {line}: a print without what it prints"
        assert printed.getvalue().splitlines() == expected
        count += len(expected)
    assert count >= 2


def test_the_page_shows_every_rule_and_every_transformation() -> None:
    text = PAGE.read_text()
    for name in ("host", "abstract_eval", "jvp", "transpose", "batch", "lowering"):
        assert f"@multiply_add_p.{name}\n" in text
        assert f"| `@p.{name}` |" in text
    for call in ("grad(", "jvp(", "vmap(", "jit(grad(", "vmap(grad(", "jit(vmap(", "make_jaxpr(", "pure_callback("):
        assert call in text


def test_the_builder_has_what_the_page_lists() -> None:
    table = PAGE.read_text().split("| method | writes |")[1].split("\n\n")[0]
    names = re.findall(r"hlo\.(\w+)\(", table)
    assert len(names) > 20
    assert [name for name in names if not callable(getattr(extend.Builder, name, None))] == []
    for name in ("shape", "dtype"):
        assert hasattr(extend.Value, name)


# The interface -------------------------------------------------------------------------------------------------------


def test_the_names() -> None:
    assert extend.Primitive is extend.core.Primitive is core.Primitive
    assert extend.core.ClosedJaxpr is core.ClosedJaxpr
    assert extend.core.jaxpr_as_fun is core.jaxpr_as_fun
    assert core.get_aval(1.0).weak_type
    assert all(hasattr(extend, name) for name in extend.__all__)
    assert all(hasattr(extend.core, name) for name in extend.core.__all__)
    assert {"extend", "interpreters"} <= set(dir(pullback))
    assert repr(extend.Primitive("p")) == "p"


def test_scalars_of_every_size_are_arrays() -> None:
    sizes = (np.float16, np.float32, np.float64, np.complex64, np.complex128, np.int8, np.uint64, np.bool_)
    assert extend.core.array_types.issuperset({np.ndarray, *sizes})


def test_decorators_give_the_function_back() -> None:
    p = extend.Primitive("p")
    for name in (
        "host",
        "abstract_eval",
        "jvp",
        "tangent",
        "transpose",
        "batch",
        "lowering",
        "def_impl",
        "def_abstract_eval",
    ):
        rule = lambda *args: None
        assert getattr(p, name)(rule) is rule


def test_the_last_rule_holds() -> None:
    p = extend.Primitive("p")
    p.host(lambda x: x)
    p.def_impl(lambda x: x + 1)
    assert p.bind(1.0) == 2.0
    p.host(lambda x: np.add(x, 2))
    assert p.bind(1.0) == 3.0
    p.tangent(lambda ans, xs, ts: 2 * ts[0])
    p.jvp(lambda xs, ts: (p.bind(*xs), 3 * ts[0]))
    assert grad(p.bind)(1.0) == 3.0
    p.tangent(lambda ans, xs, ts: 2 * ts[0])
    assert grad(p.bind)(1.0) == 2.0


def test_operands_that_are_linear_one_at_a_time() -> None:
    p = extend.Primitive("times")
    p.host(np.multiply)
    p.abstract_eval(lambda x, y: x)
    p.transpose(lambda ct, x, y: (ct * y, None) if extend.is_linear(x) else (None, ct * x), linear_in="each")
    assert linear_transpose(lambda x: p.bind(x, 3.0), 1.0)(2.0) == (6.0,)
    with pytest.raises(errors.NotLinearError, match="times"):
        linear_transpose(lambda x: p.bind(x, x), 1.0)


def test_shape_rules_may_give_anything_with_a_shape_and_a_dtype() -> None:
    p = extend.Primitive("p")
    for dtype in (np.float64, "float32", jnp.float32, np.dtype("float32"), float):
        p.abstract_eval(lambda x, dtype=dtype: extend.ShapedArray([np.int64(2), 3], dtype))
        (aval,) = make_jaxpr(p.bind)(W).out_avals
        assert aval == extend.ShapedArray((2, 3), np.dtype("float32"))
        assert hash(aval) == hash(extend.ShapedArray((2, 3), np.dtype("float32")))
    p.abstract_eval(lambda x: pullback.ShapeDtypeStruct((), "int8"))
    assert str(make_jaxpr(p.bind)(W).out_avals[0]) == "int8[]"


def test_results_of_evaluation_are_of_dtypes_in_use() -> None:
    p = extend.Primitive("p")
    for value in (1.5, np.float64(1.5), jnp.float32(1.5), np.array(1.5), np.array(1.5, ">f8"), jit(lambda: 1.5)()):
        p.host(lambda x, value=value: value)
        out = p.bind(W)
        assert out == 1.5
        assert out.dtype == np.float32
        assert isinstance(out, pullback.Array)
    with pullback.enable_x64(True):
        p.host(lambda x: np.float64(1.5))
        assert p.bind(W).dtype == np.float64


def test_numbers_beside_arrays_are_arrays_in_rules() -> None:
    p = extend.Primitive("fma")
    seen: list[Any] = []
    p.host(lambda x, y: x * y)
    p.abstract_eval(lambda x, y: extend.ShapedArray(np.broadcast_shapes(x.shape, y.shape), x.dtype))

    @p.jvp
    def rule(primals: Any, tangents: Any) -> Any:
        seen.extend(primals)
        x, y = primals
        tx, ty = map(extend.instantiate, tangents, primals)
        return p.bind(x, y), tx * y + x * ty

    @p.batch
    def batch(axis: Any, args: Any, dims: Any) -> Any:
        seen.extend(args)
        return p.bind(*args), 0

    half = jnp.asarray(W).astype("bfloat16")
    assert jvp(lambda x: p.bind(x, 2.0), (half,), (half,))[1].dtype == jnp.bfloat16
    assert vmap(lambda x: p.bind(x, 2.0))(half).dtype == jnp.bfloat16
    assert jvp(lambda x: p.bind(np.ones(3), x), (half,), (half,))[1].dtype == np.float32
    assert all(isinstance(x, pullback.Array) for x in seen)
    assert [str(x.dtype) for x in seen[:2]] == ["bfloat16"] * 2


def test_results_that_are_the_same_for_all_examples() -> None:
    p = extend.Primitive("size", multiple_results=True)
    p.host(lambda x: [x, np.float32(x.size)])
    p.batch(lambda axis, args, dims: ([args[0], args[0].size / axis.size], [dims[0], None]))
    values, size = vmap(p.bind, in_axes=1)(np.ones((4, 2)))
    assert values.shape == (2, 4)
    np.testing.assert_array_equal(size, [4, 4])


def test_random_keys_and_integers_are_operands_too() -> None:
    p = extend.Primitive("add_noise")
    p.def_impl(lambda key, x, scale: x + scale * pullback.random.normal(key, x.shape))
    p.tangent(lambda ans, primals, tangents: extend.instantiate(tangents[1], primals[1]))
    key = pullback.random.key(0)
    expected = W + 2 * pullback.random.normal(key, (3,))
    np.testing.assert_allclose(p.bind(key, W, 2), expected, rtol=1e-6)
    np.testing.assert_array_equal(grad(lambda x: p.bind(key, x, 2).sum())(W), np.ones(3))
    counts = extend.Primitive("count")
    counts.host(lambda x: np.sum(x > 0, dtype=np.int32))
    counts.jvp(lambda xs, ts: (counts.bind(*xs), np.zeros((), pullback.float0)))
    assert grad(lambda x: counts.bind(x) * x[0])(W)[0] == 2


def test_evaluation_by_compiling() -> None:
    p = extend.Primitive("sort_of_add")
    p.abstract_eval(lambda x, y: extend.ShapedArray(x.shape, x.dtype))
    p.lowering(lambda hlo, x, y: hlo.elementwise("stablehlo.add", x, hlo.broadcast(y, x.shape)))
    np.testing.assert_array_equal(p.bind(W, 1.0), W + 1)
    assert p.bind(jnp.ones(2, "bfloat16"), 1.0).dtype == jnp.bfloat16


def test_rules_may_call_the_builder_by_its_former_names() -> None:
    p = extend.Primitive("sort_of_add_too")
    p.abstract_eval(lambda x, y: extend.ShapedArray(x.shape, x.dtype))
    p.lowering(lambda hlo, x, y: hlo.same("stablehlo.add", x, hlo.spread(y, x.shape)))
    np.testing.assert_array_equal(p.bind(W, 1.0), W + 1)


def test_a_rule_of_a_builder_with_regions() -> None:
    p = extend.Primitive("argmin_by_hand", multiple_results=True)
    p.abstract_eval(lambda x: [extend.ShapedArray((), x.dtype), extend.ShapedArray((), np.dtype("int32"))])

    @p.lowering
    def rule(hlo: extend.Builder, x: extend.Value) -> Any:
        types = [((), x.dtype), ((), np.dtype("int32"))]

        def body(a: Any, i: Any, b: Any, j: Any) -> Any:
            first = hlo.compare(a, b, "LE")
            return [hlo.select(first, a, b), hlo.select(first, i, j)]

        positions = hlo.iota(x.shape, 0, types[1][1])
        starts = [hlo.number(np.inf, x.dtype), hlo.number(0, types[1][1])]
        region = hlo.region(types * 2, body)
        attributes = f"dimensions = {hlo.integers([0])}"
        return hlo.multi_result("stablehlo.reduce", [x, positions, *starts], types, attributes, [region])

    smallest, place = jit(p.bind)(W)
    assert (smallest, place) == (W[1], 1)


def test_what_is_slow_is_not_imported_for_the_interface() -> None:
    import subprocess
    import sys

    program = "import sys, pullback.extend, pullback.interpreters.mlir; print('jaxlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


# Rules that give something else than they must -----------------------------------------------------------------------


def defined(multiple_results: bool = False, **rules: Callable[..., Any]) -> Any:
    p = extend.Primitive("bad", multiple_results=multiple_results)
    kept: dict[str, Callable[..., Any]] = {
        "host": (lambda *xs: [xs[0]] * 2) if multiple_results else lambda *xs: xs[0],
        "abstract_eval": (lambda *avals: [avals[0]] * 2) if multiple_results else lambda *avals: avals[0],
    }
    for name, rule in {**kept, **rules}.items():
        getattr(p, name)(rule)
    return p.bind


def backwards(transpose: Callable[..., Any], multiple_results: bool = False) -> Any:
    """The backward pass of an operation whose transpose rule this is."""
    linear = defined(multiple_results, transpose=transpose)
    out = vjp(defined(multiple_results, jvp=lambda xs, ts: (linear(*xs), linear(*ts))), W)[1]
    return out([W, W] if multiple_results else W)


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a list in the place of a result": (
        lambda: defined(host=lambda x: [x, x])(W),
        r"evaluation rule .* must return an array as its result, but returned \[an np\.ndarray of shape \(3,\) and "
        r"dtype float32, .*\] \(a primitive with multiple_results=True returns lists\)",
    ),
    "text": (
        lambda: defined(host=lambda x: "x" * 99)(W),
        r"array as its result, but returned 'x{56}\.\.\. of type str",
    ),
    "one in the place of a list": (
        lambda: defined(True, host=lambda x: x)(W),
        "a list of results, but returned an np.nda",
    ),
    "None for one of several": (lambda: defined(True, host=lambda x: [x, None])(W), "as result 1, but returned None"),
    "a shape in the place of a type": (
        lambda: make_jaxpr(defined(abstract_eval=lambda x: x.shape))(W),
        r"abstract_eval rule .* must return a ShapedArray as the type of its result, but returned \(3 of type int\)",
    ),
    "a class in the place of a type": (
        lambda: make_jaxpr(defined(abstract_eval=lambda x: extend.ShapedArray))(W),
        "a ShapedArray as the type of its result, but returned <class",
    ),
    "one type in the place of a list": (
        lambda: jit(defined(True, abstract_eval=lambda x: x))(W),
        r"must return a list of ShapedArray, one for each result, but returned ShapedArray\(float32\[3\]\)",
    ),
    "no pair": (
        lambda: jvp(defined(jvp=lambda xs, ts: ts[0]), (W,), (W,)),
        r"jvp rule .* a pair \(out, tangent\), but returned f32\[3\]",
    ),
    "three": (
        lambda: grad(defined(jvp=lambda xs, ts: (*xs, *ts, 1)))(1.0),
        r"a pair .* returned \(f32\[\], f32\[\], 1",
    ),
    "no tangent": (
        lambda: jvp(defined(jvp=lambda xs, ts: (xs[0], None)), (W,), (W,)),
        "as an array or ZERO, but returned N",
    ),
    "a tangent of another shape": (
        lambda: jvp(defined(jvp=lambda xs, ts: (xs[0], ts[0].sum())), (W,), (W,)),
        r"must return a tangent of type f32\[3\], but returned f32\[\]",
    ),
    "a tangent of another dtype": (
        lambda: jvp(defined(jvp=lambda xs, ts: (xs[0], ts[0].astype("float16"))), (W,), (W,)),
        r"must return a tangent of type f32\[3\], but returned f16\[3\]",
    ),
    "a tangent of another shape, by the short form": (
        lambda: jvp(defined(tangent=lambda ans, xs, ts: ts[0].sum()), (W,), (W,)),
        r"tangent rule .* must return a tangent of type f32\[3\], but returned f32\[\]",
    ),
    "a linear tangent of another shape": (
        lambda: linearize(defined(jvp=lambda xs, ts: (xs[0], ts[0].sum())), W),
        r"must return a tangent of type f32\[3\], but returned f32\[\]",
    ),
    "a linear tangent of another dtype, by the short form": (
        lambda: vjp(defined(tangent=lambda ans, xs, ts: ts[0].astype("float16")), W),
        r"tangent rule .* must return a tangent of type f32\[3\], but returned f16\[3\]",
    ),
    "too few tangents": (
        lambda: jvp(defined(True, jvp=lambda xs, ts: ([W, W], ts)), (W,), (W,)),
        r"a list of 2 tangents, one for each result, but returned 1 of them: \(f32\[3\]\)",
    ),
    "one tangent for several": (
        lambda: jvp(defined(True, jvp=lambda xs, ts: ([W, W], ts[0])), (W,), (W,)),
        r"a list of 2 tangents, one for each result, but returned f32\[3\]",
    ),
    "one of several of another shape": (
        lambda: jvp(defined(True, jvp=lambda xs, ts: ([W, W[0]], [ts[0], ts[0]])), (W,), (W,)),
        r"must return tangent 1 of type f32\[\], but returned f32\[3\]",
    ),
    "a cotangent that is no tuple": (
        lambda: backwards(lambda ct, x: ct),
        r"transpose rule .* a tuple of 1 cotangents, one for each operand \(None for those that are not linear\)",
    ),
    "too many cotangents": (
        lambda: backwards(lambda ct, x: (ct, None)),
        r"a tuple of 1 .* returned 2 of them: \(f32\[3\], N",
    ),
    "a cotangent of another shape": (
        lambda: backwards(lambda ct, x: [ct[0]]),
        r"must return cotangent 0 of type f32\[3\], but returned f32\[\]",
    ),
    "a cotangent of another dtype": (
        lambda: backwards(lambda ct, x: [ct.astype("bfloat16")]),
        r"must return cotangent 0 of type f32\[3\], but returned bf16\[3\]",
    ),
    "no array as the cotangent of an operand whose type is not known": (
        lambda: linear_transpose(lambda x: defined(transpose=lambda ct, x: [{}])(lax.neg(x)), W)(W),
        "must return an array as cotangent 0, but returned {} of type dict",
    ),
    "a cotangent that is no array": (
        lambda: backwards(lambda ct, x: [{}]),
        "an array as cotangent 0, but returned {} of ty",
    ),
    "no pair of a batch": (
        lambda: vmap(defined(batch=lambda a, xs, ds: xs[0]))(W),
        r"batch rule .* a pair \(out, dim\)",
    ),
    "no position": (
        lambda: vmap(defined(batch=lambda a, xs, ds: (xs[0], "first")))(W),
        "must return the position of the mapped axis in a result, or None, but returned 'first' of type str",
    ),
    "a position that is not there": (
        lambda: vmap(defined(batch=lambda a, xs, ds: (xs[0], 1)))(W),
        r"result with the mapped axis, of size 3, at the position that it says, but returned f32\[3\] and "
        r"the position 1",
    ),
    "a negative position": (lambda: vmap(defined(batch=lambda a, xs, ds: (xs[0], -1)))(W), "and the position -1"),
    "another size": (lambda: vmap(defined(batch=lambda a, xs, ds: (xs[0][1:], 0)))(W), r"f32\[2\] and the position 0"),
    "another size of one of two": (
        lambda: vmap(defined(True, batch=lambda a, xs, ds: ([xs[0], xs[0][:1]], [0, 0])))(W),
        r"must return result 1 with the mapped axis, of size 3, .* f32\[1\] and the position 0",
    ),
    "positions that are too few": (
        lambda: vmap(defined(True, batch=lambda a, xs, ds: ([xs[0]] * 2, ds)))(W),
        "a list of 2 positions, one for each result, but returned 1 of them: ",
    ),
    "no value": (
        lambda: jit(defined(lowering=lambda hlo, x: None))(W),
        "lowering rule .* a value of the builder, but returned None",
    ),
    "a value of NumPy's": (
        lambda: jit(defined(lowering=lambda hlo, x: W))(W),
        "as a value of the builder, but returned an np.nd",
    ),
    "a value of another type": (
        lambda: jit(defined(lowering=lambda hlo, x: hlo.reshape(x, (3, 1))))(W),
        r"must return its result of type f32\[3\], as its abstract .* says, but returned f32\[3,1\]",
    ),
    "one value for two": (
        lambda: jit(defined(True, lowering=lambda hlo, x: x))(W),
        "a list of 2 values, one for each result, but returned <pullback",
    ),
    "a value of another dtype for one of two": (
        lambda: jit(defined(True, lowering=lambda hlo, x: [x, hlo.convert(x, np.dtype("int8"))]))(W),
        r"must return result 1 of type f32\[3\], as its abstract evaluation rule says, but returned i8\[3\]",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_rule_that_gives_something_else_is_named(case: str) -> None:
    use, message = WRONG[case]
    with pytest.raises(errors.CustomRuleError, match=message) as caught:
        use()
    assert re.search(
        r"rule of the primitive 'bad', .*<lambda> at .*test_extend\.py:\d+, must return", str(caught.value)
    )
    assert isinstance(caught.value, TypeError)


def test_evaluation_is_compared_with_the_shape_rule_where_checks_are_on(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = defined(host=lambda x: x[:2]), defined(True, host=lambda x: [x, x > 0])
    assert config.enable_checks
    with pytest.raises(
        errors.CustomRuleError, match=r"must return f32\[3\], as its abstract .* says, but returned f32\[2\]"
    ):
        one(W)
    with pytest.raises(errors.CustomRuleError, match=r"f32\[3\], f32\[3\], as its .* but returned f32\[3\], bool\[3\]"):
        two(W)
    assert defined(host=np.add)(2.0, jnp.ones((), "bfloat16")).dtype == jnp.bfloat16
    monkeypatch.setattr(config, "enable_checks", False)
    assert one(W).shape == (2,)


def test_errors_of_rules_are_the_users_own() -> None:
    def fails(*args: Any, **params: Any) -> Any:
        raise LookupError("not here")

    uses: dict[str, Callable[[Any], Any]] = {
        "host": lambda f: f(W),
        "abstract_eval": lambda f: make_jaxpr(f)(W),
        "jvp": lambda f: jvp(f, (W,), (W,)),
        "batch": lambda f: vmap(f)(W),
        "lowering": lambda f: jit(f)(W),
    }
    for name, use in uses.items():
        with pytest.raises(LookupError, match="not here") as caught:
            use(defined(**{name: fails}))
        assert caught.traceback[-1].name == "fails"
    with pytest.raises(LookupError, match="not here"):
        backwards(fails)


def test_a_leaked_tracer_in_an_evaluation_rule() -> None:
    kept: list[Any] = []
    make_jaxpr(lambda x: kept.append(x) or x)(W)
    with pytest.raises(errors.UnexpectedTracerError, match="leaked"):
        defined(host=lambda x: kept[0])(W)


def test_tangents_know_their_types_however_much_led_to_them() -> None:
    def f(x: Any) -> Any:
        for _ in range(3000):
            x = lax.sin(x)
        return defined(jvp=lambda xs, ts: (xs[0], 2 * ts[0]))(x)

    (slope,) = vjp(f, 1.0)[1](1.0)
    np.testing.assert_allclose(slope, jvp(f, (1.0,), (1.0,))[1], rtol=1e-5)
    np.testing.assert_allclose(slope, linearize(f, 1.0)[1](1.0), rtol=1e-5)


# Rules of new kinds --------------------------------------------------------------------------------------------------


def degrees(f: Callable[..., Any]) -> Callable[..., int]:
    """A transformation: the degree of a polynomial, from those of its arguments."""
    degree = extend.RuleKind("degree")
    of_derivatives = {
        e.primitive.name: e.primitive for e in make_jaxpr(grad(lambda x: jnp.sin(x) * jnp.exp(x)))(1.0).eqns
    }
    for p in (lax.add_p, lax.sub_p, of_derivatives["add_any"]):
        degree(p)(lambda x, y: max(x, y))
    degree(lax.mul_p)(lambda x, y: x + y)
    degree(lax.integer_pow_p)(lambda x, *, y: x * y)
    degree(lax.neg_p)(lambda x: x)
    inner = make_jaxpr(jit(jnp.negative))(1.0).eqns[0].primitive

    def run(closed: Any, *args: int) -> list[int]:
        known = dict(zip(closed.jaxpr.invars, args, strict=True)) | dict.fromkeys(closed.jaxpr.constvars, 0)
        read = lambda v: 0 if isinstance(v, extend.core.Literal) else known[v]
        for eqn in closed.eqns:
            out = degree.needed(eqn.primitive, "degrees")(*map(read, eqn.invars), **eqn.params)
            known.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True))
        return [read(v) for v in closed.jaxpr.outvars]

    degree(inner)(lambda *args, jaxpr, name: run(jaxpr, *args))
    return lambda *args: run(make_jaxpr(f)(*[1.0] * len(args)), *args)[0]


def test_rules_of_a_new_kind_at_existing_operations() -> None:
    def f(x: Any, y: Any) -> Any:
        return (x * y - 3.0) ** 2 + jit(lambda x: -x * x * x)(x)

    assert degrees(f)(1, 1) == 4
    assert degrees(f)(2, 0) == 6
    assert degrees(grad(f))(1, 1) == 3  # of a derivative, whose operations are the same
    with pytest.raises(errors.MissingRuleError, match="the primitive 'sin' has no degree rule, which degrees needs"):
        degrees(jnp.sin)(1)


def test_kinds_of_rules_by_name() -> None:
    kind = extend.RuleKind("cost")
    p = extend.Primitive("of_some_cost")
    assert kind.of(p) is None
    assert kind(p)(len) is len
    assert kind.of(p) is len is kind.needed(p, "counting")
    assert repr(kind) == "RuleKind('cost')"
    for name in ("two words", 3, ""):
        with pytest.raises(errors.ArgumentError, match="must be an identifier"):
            extend.RuleKind(name)  # type: ignore[arg-type]


def test_to_front_repeats_an_operand_that_is_not_mapped() -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    axis = extend.MappedAxis(None, 4)
    np.testing.assert_array_equal(extend.to_front(x, None, axis), np.broadcast_to(x, (4, 2, 3)))
    np.testing.assert_array_equal(extend.to_front(x, 1, extend.MappedAxis(None, 3)), np.transpose(x))


# Backward rules ------------------------------------------------------------------------------------------------------


def power_of_product() -> tuple[extend.Primitive, Any]:
    """``(x y)^n`` with a backward rule, and the same of operations."""
    p = extend.Primitive("power_of_product")
    p.host(lambda x, y, n: (x * y) ** n)
    p.abstract_eval(lambda x, y, n: extend.ShapedArray(x.shape, x.dtype))
    p.lowering(lambda hlo, x, y, n: hlo.inline(lambda x, y: (x * y) ** n, x, y))
    p.batch(lambda axis, args, dims, n: (p.bind(*map(extend.to_front, args, dims, [axis] * 2), n=n), 0))

    @extend.vjp_rule(p)
    def backward(ct: Any, ans: Any, x: Any, y: Any, n: int) -> Any:
        slope = n * (x * y) ** (n - 1) * ct
        return slope * y, slope * x

    return p, lambda x, y: (x * y) ** 3


@pytest.mark.parametrize(
    "transformed",
    [
        lambda f: grad(f, (0, 1)),
        lambda f: jit(grad(f)),
        pullback.hessian,
        lambda f: pullback.jacrev(pullback.jacfwd(f, 1)),
        lambda f: grad(grad(grad(f)), 1),
        lambda f: jit(lambda x, y: jvp(f, (x, y), (1.0, 2.0))),
        lambda f: lambda x, y: jit(vmap(grad(f), (0, None)))(jnp.stack([x, y]), y),
        lambda f: lambda x, y: vmap(lambda x: jvp(f, (x, y), (1.0, 2.0)))(jnp.stack([x, y])),
        lambda f: lambda x, y: linearize(f, x, y)[1](1.0, 2.0),
        lambda f: lambda x, y: grad(lambda x: f(x, x) * f(x, 1.0))(y),
    ],
)
def test_a_backward_rule_serves_every_transformation(transformed: Any) -> None:
    p, plain = power_of_product()
    x, y = np.float32(1.5), np.float32(-0.75)
    found, expected = (transformed(f)(x, y) for f in (lambda x, y: p.bind(x, y, n=3), plain))
    for a, b in zip(pullback.tree.leaves(found), pullback.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5)


def test_a_backward_rule_of_several_results() -> None:
    p = extend.Primitive("both", multiple_results=True)
    p.host(lambda x, k: [x * k, x**2])

    @extend.vjp_rule(p)
    def backward(cts: Any, ans: Any, x: Any, k: Any) -> Any:
        return cts[0] * k + 2 * x * cts[1], None

    assert float(grad(lambda x: sum(p.bind(x, 3)))(2.0)) == 7
    assert [float(t) for t in jvp(lambda x: p.bind(x, 3), (2.0,), (1.0,))[1]] == [3, 4]


def test_what_is_wrong_with_a_backward_rule_is_said() -> None:
    p = extend.Primitive("opposite")
    p.host(lambda x: -x)
    extend.vjp_rule(p)(lambda ct, ans, x: -ct)
    with pytest.raises(errors.CustomRuleError, match=r"of opposite must return a tuple of 1 cotangents"):
        grad(p.bind)(1.0)
    extend.vjp_rule(p)(lambda ct, ans, x: (jnp.stack([ct, ct]),))
    with pytest.raises(TypeError, match=r"of opposite must return cotangents of the shapes"):
        grad(p.bind)(1.0)
    extend.vjp_rule(p)(lambda ct, ans, x: (jnp.sin(ct),))
    with pytest.raises(TypeError, match=r"opposite transposes its backward rule, which must be\s+linear"):
        jvp(p.bind, (1.0,), (1.0,))


def test_reverse_mode_without_transposes_is_pointed_to() -> None:
    scale_p, p = extend.Primitive("scale"), extend.Primitive("scaled_square")
    scale_p.host(lambda t, x: t * x)
    p.host(lambda x: x * x)
    for each in (scale_p, p):
        each.abstract_eval(lambda x, *_: extend.ShapedArray(x.shape, x.dtype))
        each.lowering(lambda hlo, x, y=None: hlo.elementwise("stablehlo.multiply", x, x if y is None else y))
    p.jvp(lambda primals, tangents: (p.bind(*primals), scale_p.bind(*tangents, 2 * primals[0])))
    with pytest.raises(NotImplementedError, match=r"'scale' has no transpose rule.*vjp_from_jvp\(f, \"basis\"\)"):
        grad(p.bind)(3.0)
    assert float(grad(pullback.derivatives.vjp_from_jvp(p.bind, "basis", chunk_size=1))(3.0)) == 6


def test_rules_of_new_kinds_are_no_attributes() -> None:
    """All primitives together have at most 30 attributes, for which Python shares one table: see ``more_rules``."""
    names: set[str] = set()
    for p in vars(elementwise).values():
        if isinstance(p, core.Primitive):
            names |= set(vars(p))
    assert len(names) <= 30
    assert elementwise.mul_p.more_rules["taylor"] is taylor_rules.taylor.of(elementwise.mul_p)
