"""Symbolic sizes: their algebra, and functions exported for shapes that have them."""

from __future__ import annotations

import operator
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import ShapeDtypeStruct, export, grad, jit, lax, nn, vjp, vmap
from pullback.core.dims import SymbolicScope, evaluate, evaluated_shape, largest, parse_size, smallest
from pullback.core.errors import (
    ArgumentError,
    ExportError,
    InconclusiveDimensionOperation,
    ShapeError,
    UnsupportedExportError,
)

F = "float32"
A, B = export.symbolic_shape("a, b")


# Algebra --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "like", "expected"),
    [
        ("a, 2*b, _", (3, 4, 5), "(a, 2*b, 5)"),
        ("b, ...", (3, 4, 5), "(b, 4, 5)"),
        (None, (3, 4), "(3, 4)"),
        ("(a,)", None, "(a,)"),
        ("(a + 1)*b, (a)", None, "(a*b + b, a)"),
        ("floordiv(a, 2), mod(a, 3), max(a, b), min(a, 3)", None, "(floordiv(a, 2), mod(a, 3), max(a, b), min(a, 3))"),
        ("-a + b, a^2, a - 1 - a", None, "(- a + b, a^2, -1)"),
        ("2*a + -3*b, a - -b, + -(-a)*2", None, "(2*a - 3*b, a + b, 2*a)"),
        ("", None, "()"),
    ],
)
def test_shapes_from_text(text: Any, like: Any, expected: str) -> None:
    found = export.symbolic_shape(text, like=like)
    assert str(found) == expected
    again = export.symbolic_shape(str(found), scope=SymbolicScope())
    assert str(again) == expected  # what is printed can be read


@pytest.mark.parametrize(
    ("text", "like", "message"),
    [
        ("a b", None, "expected an operator"),
        ("2a", None, "expected an operator"),
        ("a//2", None, "expected an operator"),
        ("f(a)", None, "the functions are floordiv, mod, max and min, got 'f'"),
        ("a +", None, "expected a number, a name, or a function, got 'the end'"),
        ("max(a)", None, "expected ','"),
        ("a^b", None, "a power from 0 to 64"),
        ("a, 3", (2, 4), "size 1 of 'a, 3' is 3, but 4 in like"),
        ("a, ..., ...", (2, 4), "must come last"),
        ("a, _", None, "leaves sizes open"),
        ("a", (2, 3), "has 1 sizes, but like"),
        ("a, 3", (2,), "has 2 sizes, but like"),
        (3, None, "a shape must be a string"),
    ],
)
def test_texts_that_are_no_shapes(text: Any, like: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message) as caught:
        export.symbolic_shape(text, like=like)
    assert isinstance(caught.value, ValueError)


def test_arithmetic_is_that_of_numbers() -> None:
    rng = np.random.default_rng(0)
    scope = SymbolicScope()
    sizes: list[Any] = [
        parse_size(t, scope) for t in ("a", "b", "2*a + 3", "a*b - b", "floordiv(a, 3)", "1 + mod(b, 4)")
    ]
    operations: list[Callable[[Any, Any], Any]] = [
        lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x // y, lambda x, y: x % y,
        lambda x, y: divmod(x, y)[0], largest, smallest, lambda x, y: x**2 - y,
    ]  # fmt: skip
    for _ in range(200):
        env = {scope.variable("a"): int(rng.integers(1, 30)), scope.variable("b"): int(rng.integers(1, 30))}
        x, y = (sizes[i] for i in rng.integers(0, len(sizes), 2))
        y = int(rng.integers(1, 6)) if rng.random() < 0.4 else y
        x, y = (y, x) if rng.random() < 0.3 else (x, y)
        if evaluate(y, env) == 0:
            continue
        operation = operations[rng.integers(len(operations))]
        exact = operation(*[evaluate(z, env) for z in (x, y)])
        assert evaluate(operation(x, y), env) == exact
        with suppress(InconclusiveDimensionOperation):  # what is decided is right
            assert (x >= y) == (evaluate(x, env) >= evaluate(y, env))


def test_what_is_decided_and_what_is_not() -> None:
    decided = [
        A >= 1, A + B >= 2, (2 * A) // 2 == A, (2 * A + 3) // 2 == A + 1, (4 * A) % 2 == 0, A - A == 0, A * B // A == B,
        A % A == 0, 2 * (A // 2) <= A, A % 3 < 3, A % B < B, largest(A, B) >= B, smallest(1, A) == 1, A != A + 1,
        (A + 1) // 2 >= 1, hash(A) == hash(A + 0), A != B, A != 3, not A < 0, bool(A), A < 2**31,
        (A + B) * (A + B) // (A + B) == A + B, 3 * A > 2 * A,
    ]  # fmt: skip
    assert all(decided)
    questions: list[Callable[[], Any]] = [
        lambda: A >= 2, lambda: A > B, lambda: A // 2 >= 1, lambda: A <= 10, lambda: bool(A - 1), lambda: int(A),
        lambda: range(A), lambda: [0][A],
    ]  # fmt: skip
    for question in questions:
        with pytest.raises(InconclusiveDimensionOperation):
            question()
    with pytest.raises(InconclusiveDimensionOperation, match=r"a > b.*constraints=\['a >= b \+ 1'\]"):
        assert A > B
    assert issubclass(InconclusiveDimensionOperation, ValueError)
    with pytest.raises(ZeroDivisionError):
        A // 0


def test_constraints_decide_more() -> None:
    scope = SymbolicScope(["a >= 8", "b <= 16", "mod(a, 2) == 0", "a - b >= 0", "c == 3*b"])
    a, b, c = export.symbolic_shape("a, b, c", scope=scope)
    assert a >= 8
    assert b <= 16
    assert a >= b
    assert not a < b
    assert a % 2 == 0
    assert (a // 2) * 2 == a
    assert a // 2 >= 4
    assert 2 * a >= b + 8
    assert str(c) == "3*b"
    with pytest.raises(InconclusiveDimensionOperation, match="It is known that a >= 8, b <= 16"):
        assert a >= 9
    with pytest.raises(ArgumentError, match="belong to different scopes"):
        a + A
    for bad, message in (("a", "must have one of"), ("3 >= 4", "never holds"), ("1 == 2", "never holds")):
        with pytest.raises(ArgumentError, match=message):
            SymbolicScope([bad])
    with pytest.raises(ArgumentError, match="constraints or a scope"):
        export.symbolic_shape("a", constraints=["a >= 2"], scope=scope)


def test_specifications_of_arguments() -> None:
    args = (np.ones((3, 4), F), {"k": np.ones(4, "int32")})
    first, rest = export.symbolic_args_specs(args, ("b, ...", None))
    assert str(first.shape) == "(b, 4)"
    assert first.dtype == F
    assert rest["k"].shape == (4,)
    first, rest = export.symbolic_args_specs(args, "b, ...", constraints=["b >= 2"])
    assert first.shape[0] == rest["k"].shape[0] >= 2
    assert export.is_symbolic_dim(first.shape[0])
    assert not export.is_symbolic_dim(first.shape[1])


# Exported functions ---------------------------------------------------------------------------------------------------


def exported(f: Any, *shapes: str, constraints: Any = (), vjp_order: int = 0, dtype: str = F) -> Any:
    """A function that was exported for shapes, written and read."""
    scope = SymbolicScope(constraints)
    structs = [ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), dtype) for s in shapes]
    return export.deserialize(export.export(jit(f))(*structs).serialize(vjp_order))


def arrays(found: Any, **sizes: int) -> list[Any]:
    """Random arguments for some sizes of the names."""
    rng = np.random.default_rng(1)
    env = {}
    for aval in found.in_avals:
        for n in aval.shape:
            if export.is_symbolic_dim(n):
                env.update({v: sizes[v.name] for v in n.names()})
    return [rng.normal(size=evaluated_shape(a.shape, env)).astype(a.dtype) for a in found.in_avals]


def mean_of_squares(w: Any, x: Any) -> Any:
    return jnp.mean(jnp.tanh(x @ w) ** 2)


FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "elementwise": (lambda x: jnp.sin(x) + x * 2, "a, b"),
    "broadcasting": (lambda x, y, z: x + y * z, "a, b", "b", "a, 1"),
    "reductions": (lambda x: (x.sum(0), x.max(), x.argmax(1), (x > 0).any(0), jnp.prod(x, 1)), "a, b"),
    "moments": (lambda x: (x.mean(), x.var(0), x.std()), "a, b"),
    "sizes": (lambda x: (x.sum() / x.shape[0], x * x.size - x.shape[1] ** 2, jnp.asarray(x.shape[0] // 2)), "a, b"),
    "floats": (lambda x: x * (1.5 * x.shape[0]) + 1 / x.shape[0] + x.shape[0] / 2, "a"),
    "functions of sizes": (
        lambda x: (
            [jnp.asarray(f(1 - x.shape[0])) for f in (lambda n: n // 2, lambda n: n % 3)]
            + [jnp.asarray(largest(x.shape[0], 4) + smallest(x.shape[0], 4) * 10 + 7 // x.shape[0])]
        ),
        "a",
    ),
    "reshape": (lambda x: (x.reshape(-1), x.ravel(), x.reshape(-1, 2), x.reshape(x.shape[0], -1, 1)), "a, 4"),
    "axes": (lambda x: (x.T, x[:, None], jnp.stack([x, x], 1), jnp.swapaxes(x, 0, 1)), "a, b"),
    "products": (
        lambda x, y: (x @ y, x @ x.T, jnp.einsum("ij,jk->ki", x, y), jnp.dot(y[:, 0], y[:, 0])),
        "a, 4",
        "4, b",
    ),
    "batched products": (lambda x, y: jnp.einsum("bqd,bkd->bqk", x, y), "a, b, 4", "a, c, 4"),
    "concatenate": (lambda x, y: jnp.concatenate([x, y, jnp.ones((2, 4))]), "a, 4", "b, 4"),
    "slices": (lambda x: (x[1:], x[:3], x[::2], x[:-1], x[::-1], x[:, 1], x[0], x[-1], x[..., :2]), "a, 4"),
    "creation": (lambda x: (jnp.zeros((x.shape[0], 3)), jnp.ones_like(x), jnp.full(x.shape, 2.0)), "a, b"),
    "ranges": (
        lambda x: (jnp.arange(x.shape[0]) * x, jnp.arange(1, 2 * x.shape[0], 2), lax.iota("int32", x.size)),
        "a",
    ),
    "softmax": (lambda x: (nn.softmax(x), nn.logsumexp(x, axis=0), nn.gelu(x), jnp.where(x > 0, x, 0.0)), "a, b"),
    "triangles": (lambda x: (jnp.tril(x), jnp.triu(x, 1)), "a, b"),
    "sort": (lambda x: (jnp.sort(x, 0), jnp.argsort(x, 1)), "a, b"),
    "gradient": (grad(mean_of_squares), "4, 2", "b, 4"),
    "gradient of a slice": (grad(lambda x: (x[1:] ** 2).sum() + x.max()), "a"),
    "vmap": (lambda w, x: vmap(grad(lambda w, r: jnp.tanh(w @ r).sum()), (None, 0))(w, x), "3, 4", "b, 4"),
    "scan": (lambda x: lax.scan(lambda c, _: (c * 1.5 + jnp.ones(c.shape), c.sum()), x, None, length=3), "a"),
    "loops": (lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + i, x), "a"),
    "branches": (lambda x: lax.cond(x.sum() > 0, lambda x: x * 2, lambda x: jnp.zeros(x.shape), x), "a"),
    "programs within": (lambda x: jit(lambda y: y * x.shape[0] + jnp.ones(x.shape[0]))(3.0), "a"),
    "linear sizes": (lambda x, y: x.reshape(2, -1).sum(0) + y[:-1], "2*a", "a + 1"),
    "pad": (lambda x: (jnp.pad(x, ((1, 2), (0, 0))), jnp.tile(x, (2, 1)), jnp.roll(x, 1, 0)), "a, 4"),
    "convolution": (lambda x, w: lax.conv(x, w, (1, 1), "SAME"), "a, 1, 5, 5", "2, 1, 3, 3"),
    "convolution in groups": (
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=2),
        "a, 4, b, 5",
        "4, 2, 3, 3",
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_symbolic_shapes(name: str) -> None:
    f, *shapes = FUNCTIONS[name]
    found = exported(f, *shapes)
    assert found.uses_global_constants
    for a, b, c in ((3, 4, 2), (5, 1, 3)):
        args = arrays(found, a=a, b=b, c=c)
        expected = pullback.tree.leaves(jit(f)(*args))
        outs = pullback.tree.leaves(found.call(*args))
        for out, wanted in zip(outs, expected, strict=True):
            assert out.dtype == wanted.dtype
            assert out.shape == wanted.shape
            np.testing.assert_allclose(out, wanted, rtol=3e-5, atol=1e-5)


def test_a_program_has_the_sizes_of_its_arguments() -> None:
    text = exported(lambda x: jnp.ones(x.shape) + x.reshape(-1, 1).sum(), "b, 4").mlir_module()
    for part in ("tensor<?x4xf32>", "get_dimension_size", "dynamic_broadcast_in_dim", "dynamic_reshape"):
        assert part in text


def test_types_of_results() -> None:
    found = exported(lambda x: (x.reshape(-1), x[1:], jnp.concatenate([x, x])), "a, 2*b")
    assert [str(v) for v in found.out_avals] == ["float32[2*a*b]", "float32[a - 1,2*b]", "float32[2*a,2*b]"]


def test_derivatives_and_other_transformations() -> None:
    found = exported(mean_of_squares, "3, 2", "b, 3", vjp_order=2)
    f = found.call
    for size in (1, 4):
        w, x = arrays(found, b=size)
        np.testing.assert_allclose(jit(f)(w, x), mean_of_squares(w, x), rtol=1e-5)
        np.testing.assert_allclose(grad(f)(w, x), grad(mean_of_squares)(w, x), rtol=1e-4, atol=1e-6)
        both = [grad(lambda w, h=h, x=x: (grad(h)(w, x) ** 2).sum())(w) for h in (f, mean_of_squares)]
        np.testing.assert_allclose(*both, rtol=1e-4, atol=1e-6)
        rows = np.stack([x, 2 * x])
        np.testing.assert_allclose(vmap(f, (None, 0))(w, rows), vmap(mean_of_squares, (None, 0))(w, rows), rtol=1e-5)


def test_an_exported_function_within_another() -> None:
    inner = exported(lambda x: x.sum() / x.shape[0] + x[::2], "b", constraints=["b >= 2"])
    outer = exported(lambda x: inner.call(jnp.concatenate([x, x])), "c")
    assert str(outer.out_avals[0]) == "float32[c]"
    for size in (1, 5):
        x = np.arange(size, dtype=F)
        both = np.concatenate([x, x])
        np.testing.assert_allclose(outer.call(x), both.mean() + both[::2], rtol=1e-6)
    with pytest.raises(InconclusiveDimensionOperation, match=r"constraints=\['c >= 2'\]"):
        exported(inner.call, "c")


def test_sizes_are_checked_where_a_function_is_called() -> None:
    found = exported(lambda x, y: (x.sum(), y), "2*b, b", "c, 3", constraints=["b >= 2", "mod(c, 2) == 0"])
    good = np.ones((4, 2), F), np.ones((2, 3), F)
    assert float(found.call(*good)[0]) == 8
    cases = [
        ((5, 2), (2, 3), r"args\[0\].shape\[0\] must be of the form 2\*b, got 5"),
        ((6, 2), (2, 3), r"args\[0\].shape\[1\] must be b, which is 3 for b = 3; got 2"),
        ((2, 1), (2, 3), r"the constraint b >= 2 does not hold: b is 1, and 2 is 2"),
        ((0, 0), (2, 3), r"the size b must be at least 1, got 0"),
        ((4, 2), (3, 3), r"the constraint mod\(c, 2\) == 0 does not hold"),
        ((4, 2), (2, 4), r"args\[1\].shape\[1\] must be 3; got 4"),
        ((4, 2), (6,), r"args\[1\] must be f32\[c,3\], but is f32\[6\]"),
    ]
    for first, second, message in cases:
        for call in (found.call, jit(found.call)):
            with pytest.raises(ValueError, match=message):
                call(np.ones(first, F), np.ones(second, F))


def test_what_symbolic_shapes_do_not_allow() -> None:
    with pytest.raises(ExportError, match="the sizes b cannot be computed from the shapes of the arguments"):
        exported(lambda x: x, "b*b")
    with pytest.raises(ShapeError, match="incompatible shapes for broadcasting"):
        exported(lambda x, y: x + y, "a", "b")
    with pytest.raises(InconclusiveDimensionOperation, match=r"constraints=\['a >= 4'\]"):
        exported(lambda x: x if x.shape[0] > 3 else -x, "a")
    with pytest.raises(UnsupportedExportError, match="cumulative operations cannot be exported"):
        exported(lambda x: jnp.cumsum(x), "a")
    with pytest.raises((ArgumentError, ShapeError, InconclusiveDimensionOperation)):
        exported(lambda x: x.reshape(2, -1), "b")
    with pytest.raises(InconclusiveDimensionOperation, match="only while a function is exported"):
        jnp.asarray(A)


def test_another_process_chooses_the_sizes(tmp_path: Any) -> None:
    found = exported(lambda x: x.mean(0) * x.shape[0], "b, 2", constraints=["b >= 2"])
    (tmp_path / "f").write_bytes(found.serialize())
    program = f"""
import numpy as np
from pullback import export
f = export.deserialize(open({str(tmp_path / "f")!r}, "rb").read())
print(f.in_avals[0], [f.call(np.ones((n, 2), "float32")).tolist() for n in (2, 7)])
try:
    f.call(np.ones((1, 2), "float32"))
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=100)
    first, second = done.stdout.splitlines()
    assert first == "float32[b,2] [[2.0, 2.0], [7.0, 7.0]]"
    assert "the constraint b >= 2 does not hold" in second


def test_traced_arrays_have_the_method_var() -> None:
    x = np.arange(6.0, dtype=F).reshape(2, 3)
    np.testing.assert_allclose(jit(lambda x: x.var(0))(x), x.var(0))


def test_the_largest_elements_as_many_as_a_symbolic_size_says() -> None:
    x = np.random.default_rng(0).normal(size=(3, 10)).astype(F)
    (k,) = export.symbolic_shape("k", constraints=["k <= 10"])
    rows = ShapeDtypeStruct((0, k), F)
    found = export.export(jit(lambda rows, x: lax.top_k(x, rows.shape[1])))(rows, x)
    assert found.out_avals[0].shape == (3, k)
    for n in (1, 4, 10):
        values, positions = found.call(np.zeros((0, n), F), x)
        np.testing.assert_array_equal(values, -np.sort(-x, 1)[:, :n])
        np.testing.assert_array_equal(positions, np.argsort(-x, 1)[:, :n])
    (k,) = export.symbolic_shape("k")
    with pytest.raises(InconclusiveDimensionOperation, match="k"):
        export.export(jit(lambda rows, x: lax.top_k(x, rows.shape[1])))(ShapeDtypeStruct((0, k), F), x)


@pytest.mark.parametrize("f", [lambda x, k: lax.top_k(x, k)[0], lambda x, k: x[:k].sum(), lambda x, k: x + k])
def test_a_size_that_no_argument_has_is_refused(f: Callable[..., Any]) -> None:
    (k,) = export.symbolic_shape("k", constraints=["k <= 10"])
    exported = export.export(jit(f, static_argnums=1))
    with pytest.raises(ExportError, match="sizes k cannot be computed"):
        exported(np.ones(10, F), k)
    assert exported(np.ones(10, F), 3).in_avals[0].shape == (10,)


def test_functions_of_the_library_are_exported_as_they_are() -> None:
    np.testing.assert_allclose(export.export(jnp.cos)(1.0).call(1.0), np.cos(1.0), rtol=1e-6)
    assert export.export(nn.relu)(np.ones(3, F)).in_avals[0].shape == (3,)
    with pytest.raises(ExportError, match="write export"):
        export.export(lambda x: x)


def test_a_symbolic_size_in_an_index_of_an_array_that_has_none() -> None:
    x = np.arange(12.0, dtype=F).reshape(2, 6)
    (k,) = export.symbolic_shape("k", constraints=["k <= 5"])

    def f(rows: Any, x: Any) -> Any:
        n = rows.shape[0]
        return x[:, 1:n], x[1, n], jnp.arange(6)[n:], x.at[0].get()[:-n]

    found = export.export(jit(f))(ShapeDtypeStruct((k,), F), x)
    for n in (1, 3, 5):
        for got, expected in zip(found.call(np.zeros(n, F), x), f(np.zeros(n), jnp.asarray(x)), strict=True):
            np.testing.assert_array_equal(got, expected)


def test_an_exported_function_is_called_with_sizes_of_which_one_is_known() -> None:
    inner = export.export(jit(lambda x: jnp.reshape(x, (-1, x.shape[1]))))(
        ShapeDtypeStruct(export.symbolic_shape("3, a, b"), F)
    )
    x = np.arange(144.0, dtype=F).reshape(3, 4, 12)
    for text, more in (("3, 4, c", 0.0), ("3, c + 2, 12", 1.0)):
        struct = ShapeDtypeStruct(export.symbolic_shape(text), F)
        outer = export.export(jit(lambda x, more=more: inner.call(x) + more))(struct)
        np.testing.assert_array_equal(outer.call(x), x.reshape(-1, 4) + more)


def test_derivatives_of_exported_functions_of_integers_with_symbolic_sizes() -> None:
    def f(n: Any, x: Any) -> Any:
        return 2 * n.T, x * x

    n, x = np.ones((2, 3), np.int32), np.arange(6.0, dtype=F).reshape(2, 3)
    exported = export.export(jit(f))(*export.symbolic_args_specs((n, x), "2, a"))
    assert exported.vjp().vjp().in_avals[0].shape == (2, exported.in_avals[0].shape[1])
    (doubled, squares), pull = vjp(exported.call, n, x)
    of_n, of_x = pull((np.zeros(doubled.shape, pullback.float0), np.ones(squares.shape, F)))
    assert (of_n.shape, of_n.dtype) == ((2, 3), pullback.float0)
    np.testing.assert_array_equal(of_x, 2 * x)


@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod])
@pytest.mark.parametrize("other", [np.arange(1, 5, dtype=np.int32), np.array([1.0, 2.0], F)], ids=["int32", "float32"])
def test_operators_of_sizes_and_arrays_of_numpy(op: Callable[..., Any], other: Any) -> None:
    exported = export.export(jit(lambda x: (op(2 * x.shape[0], other), op(other, 2 * x.shape[0]))))(
        ShapeDtypeStruct((A,), F)
    )
    got = exported.call(np.zeros(3, F))
    np.testing.assert_array_equal(got[0], op(np.int32(6), other))
    np.testing.assert_array_equal(got[1], op(other, np.int32(6)))


INDEXINGS: dict[str, Callable[[Any, Any], Any]] = {
    "first": lambda x, i: x[i],
    "second": lambda x, i: x[:, i],
    "apart": lambda x, i: x[i, :, i],
    "new axes": lambda x, i: x[None, i, ..., 1],
    "slices": lambda x, i: x[i[0], 1:, ::2],
    "set": lambda x, i: x.at[i].set(0.0),
    "add": lambda x, i: x.at[:, i, :].add(1.0),
    "take": lambda x, i: jnp.take(x, i, axis=1),
    "fill": lambda x, i: jnp.take(x, i, axis=2, mode="fill"),
    "along": lambda x, i: jnp.take_along_axis(x, jnp.argsort(x, 1), 1),
    "slice": lambda x, i: lax.dynamic_slice(x, (i[1, 0], 0, 0), (1, *x.shape[1:])),
    "gradient": lambda x, i: grad(lambda x: (x[:, i] ** 2).sum())(x),
}


@pytest.mark.parametrize("name", INDEXINGS)
@pytest.mark.parametrize("known", [True, False], ids=["known", "traced"])
def test_arrays_index_axes_of_symbolic_sizes(name: str, known: bool) -> None:
    index = jnp.array([[0, 2], [1, -1]], "int8")
    f = (lambda x, i: INDEXINGS[name](x, index)) if known else INDEXINGS[name]
    exported = export.export(jit(f))(ShapeDtypeStruct(export.symbolic_shape("3, b, n"), F), index)
    for shape in ((3, 4, 5), (3, 3, 3)):
        x = np.random.default_rng(0).normal(size=shape).astype(F)
        np.testing.assert_array_equal(exported.call(x, index), f(jnp.asarray(x), index))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: jnp.linalg.eigh(x)[0],
        lambda x: jnp.sort(jnp.abs(jnp.linalg.eigvals(x))),
        jnp.linalg.cholesky,
        lambda x: jnp.linalg.svd(x)[1],
        lambda x: jnp.abs(jnp.linalg.qr(x)[1]),
        lambda x: jnp.linalg.solve(x, x[..., :1]),
        jnp.linalg.det,
    ],
    ids=["eigh", "eigvals", "cholesky", "svd", "qr", "solve", "det"],
)
def test_decompositions_of_matrices_of_symbolic_sizes(f: Callable[..., Any]) -> None:
    exported = export.export(jit(f))(ShapeDtypeStruct(export.symbolic_shape("b, n, n"), F))
    for b, n in ((1, 1), (2, 3)):
        x = np.random.default_rng(0).normal(size=(b, n, n)).astype(F)
        x = x @ x.transpose(0, 2, 1) + np.eye(n, dtype=F)
        np.testing.assert_allclose(exported.call(x), f(jnp.asarray(x)), rtol=1e-4, atol=1e-5)


def test_a_decomposition_that_needs_a_number() -> None:
    with pytest.raises(UnsupportedExportError, match="a decomposition needs the size n as a number"):
        export.export(jit(lambda x: lax.linalg.hessenberg(x)[0]))(ShapeDtypeStruct(export.symbolic_shape("n, n"), F))


@pytest.mark.parametrize(
    "part",
    [
        slice(2, -4),
        slice(2, "2*b + 2"),
        slice("b", -1),
        slice(-3, None),
        slice(0, "-b", 2),
        slice(2, 0, -1),
        slice(-2, None, -2),
        slice("b", -9, -1),
        slice(None, "2*b + 2", -1),
        slice("-b", 1, -2),
    ],
)
def test_slices_between_sizes(part: slice) -> None:
    def f(x: Any, y: Any) -> Any:
        names = {"b": y.shape[0], "2*b + 2": 2 * y.shape[0] + 2, "-b": -y.shape[0]}
        return x[slice(names.get(part.start, part.start), names.get(part.stop, part.stop), part.step)]

    b, c = export.symbolic_shape("b, c")
    exported = export.export(jit(f))(ShapeDtypeStruct((c,), F), ShapeDtypeStruct((b,), F))
    for n, m in ((9, 1), (9, 3), (3, 2), (1, 4)):
        x = np.arange(n, dtype=F)
        np.testing.assert_array_equal(exported.call(x, np.zeros(m, F)), f(x, np.zeros(m)))


def test_comparisons_with_the_largest_and_smallest_of_sizes() -> None:
    assert smallest(2, A) <= A
    assert largest(smallest(2, A), largest(A - 4, 0)) <= A
    assert largest(smallest(A, B), A - B) < A + 1
    assert not smallest(A, B) > A
    with pytest.raises(InconclusiveDimensionOperation):
        bool(largest(A, B) <= A)
