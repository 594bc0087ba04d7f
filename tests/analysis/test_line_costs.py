"""Operations and bytes by line: against formulas, against the compiler's counts, and what the pictures show."""

from __future__ import annotations

import math
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import analysis, lax, named_scope
from pullback.analysis.line_costs import LineCosts
from pullback.analysis.work import Work, work_of
from pullback.core.errors import ArgumentError
from tests.grid.all_specs import OF_PRIMITIVES
from tests.helpers import chosen

N = 8


def square(*shape: int) -> Any:
    return jnp.asarray(np.random.default_rng(0).uniform(1, 2, shape), jnp.float32)


def spd(n: int) -> Any:
    x = square(n, n)
    return x @ x.T + n * jnp.eye(n)


FORMULAS: dict[str, tuple[Any, tuple[Any, ...], float, float]] = {
    "sum of arrays": (lambda x: x + x, (square(3, N),), 3 * N, 0),
    "outer product": (lambda x: x[:, None] * x, (square(N),), N * N, 0),
    "quotient": (lambda x: x / 3, (square(N),), N, 0),
    "power": (lambda x: x**7, (square(N),), 4 * N, 0),
    "sine": (jnp.sin, (square(N),), 0, N),
    "reduction": (jnp.sum, (square(N, N),), N * N - 1, 0),
    "reduction along an axis": (lambda x: jnp.max(x, 0), (square(3, N),), 2 * N, 0),
    "transposition": (lambda x: x.T[::2], (square(N, N),), 0, 0),
    "gathering": (lambda x: x[jnp.array([1, 0])], (square(N, N),), 0, 0),
    "product of matrices": (lambda x, y: x @ y, (square(3, 4), square(4, 5)), 2 * 3 * 4 * 5, 0),
    "batch of products": (lambda x: x @ x, (square(7, N, N),), 7 * 2 * N**3, 0),
    "convolution": (
        lambda x, k: lax.conv(x, k, (1, 1), "VALID"), (square(2, 3, 10, 10), square(4, 3, 3, 3)),
        2 * (2 * 4 * 8 * 8) * (3 * 3 * 3), 0,
    ),
    "scan": (lambda x: lax.scan(lambda c, _: (c * 2 + 1, None), x, None, length=5)[0], (square(N),), 5 * 2 * N, 0),
    "branch that does most": (
        lambda x: lax.cond(x[0] > 0, lambda x: jnp.sin(x) * 2 + 1, lambda x: -x, x), (square(N),), 2 * N + 1, N,
    ),
    "integers": (lambda x: x * 2 + 1, (jnp.arange(N),), 0, 0),
    "Cholesky": (lambda x: lax.linalg.cholesky(x, symmetrize_input=False), (spd(6),), 6**3 / 3, 0),
    "triangular solution": (
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True), (spd(6), square(6, 2)),
        6 * 6 * 2, 0,
    ),
    "Fourier transform": (jnp.fft.fft, (square(16).astype(jnp.complex64),), 5 * 16 * 4, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
def test_counts_are_those_of_formulas(name: str) -> None:
    function, args, flops, functions = FORMULAS[name]
    found = work_of(pullback.make_jaxpr(function)(*args))
    assert sum(w.flops for w in found) == flops
    assert sum(w.transcendentals for w in found) == functions


@pytest.mark.parametrize(
    "name",
    ["sum of arrays", "quotient", "sine", "reduction", "product of matrices", "batch of products", "convolution"],
)
def test_counts_are_those_of_the_compiler(name: str) -> None:
    function, args, _, _ = FORMULAS[name]
    lines = analysis.cost(function)(*args).lines
    found = pullback.jit(function).lower(*args).compile().cost_analysis()
    assert lines.flops == found.get("flops", 0)
    assert lines.transcendentals == found.get("transcendentals", 0)


ONE_EACH = chosen(list({s.operation: s for s in OF_PRIMITIVES}.values()), OF_PRIMITIVES)


@pytest.mark.parametrize("spec", [s for s in ONE_EACH if set("fF") & set(s.dtypes)], ids=str)
def test_all_operations_have_a_count(spec: Any) -> None:
    point = map(jnp.asarray, spec.point("f" if "f" in spec.dtypes else "F"))
    found = work_of(pullback.make_jaxpr(spec.function)(*point))
    assert all(math.isfinite(n) and n >= 0 for w in found for n in (w.flops, w.transcendentals, w.read, w.written))


def loss(w: Any, x: Any) -> Any:
    h = jnp.tanh(x @ w)  # first
    with named_scope("head"):
        return jnp.sum((h @ w) ** 2)  # second


def test_gradients_are_put_down_to_the_lines_of_the_function() -> None:
    args = square(32, 32), square(16, 32)
    own, slope = (analysis.cost(f)(*args).lines for f in (loss, pullback.grad(loss)))
    first, second = slope.by_line().values() if len(slope.by_line()) == 2 else list(slope.by_line().values())[:2]
    assert {first.name.split(":")[0], second.name.split(":")[0]} == {"test_line_costs.py"}
    assert any("[head]" in where for where in slope.by_line())
    assert (first.operations + second.operations) / slope.operations > 0.95
    text = slope.compared(own)
    assert text.startswith(f"{slope.operations / own.operations:.1f} times the operations of the function, within")
    assert 2 < slope.operations / own.operations < 3
    assert "above the bound" in slope.compared(analysis.cost(lambda w, x: jnp.sum(x))(*args).lines)
    with pytest.raises(ArgumentError, match="has no floating-point operations"):
        slope.compared(analysis.cost(lambda x: x)(1.0).lines)


def test_compiled_functions_and_loops_of_unknown_length() -> None:
    f = pullback.jit(lambda x: lax.while_loop(lambda x: x < 100, lambda x: x * 2, x))
    lines = analysis.cost(f)(1.0).lines
    assert [w.times for w in lines.work if w.operation == "mul"] == [None]
    static = pullback.jit(lambda x, n: jnp.sin(x) * n, static_argnums=1)
    assert analysis.cost(static)(1.0, 3).lines.transcendentals == 1


def test_times_are_measured_line_by_line() -> None:
    args = square(200, 200), square(500, 200)
    lines = analysis.cost(pullback.grad(loss), measure=True)(*args).lines
    assert sum(lines.seconds.values()) > 0
    assert "ms" in str(lines)
    assert {where.partition(" [")[0] for where in lines.by_line()} >= set(lines.seconds)


def test_pictures_are_whole_and_named() -> None:
    lines = analysis.cost(pullback.grad(loss))(square(32, 32), square(16, 32)).lines
    flames = ElementTree.fromstring(lines.flame_graph())
    texts = [x.text or "" for x in flames.iter() if x.tag.endswith("title")]
    assert any(text.startswith("head: ") for text in texts)
    assert any("dot_general" in text for text in texts)
    roof = ElementTree.fromstring(lines.roofline(1e11, 1e10))
    assert sum(x.tag.endswith("circle") for x in roof.iter()) == len(
        [v for v in lines.by_line().values() if v.operations]
    )
    assert "<svg" in lines._repr_html_()
    with pytest.raises(ArgumentError, match="rates must be positive, got 0"):
        lines.roofline(0, 1)


def measured(places: list[str], seconds: dict[str, float]) -> LineCosts:
    """Return costs of operations at some places, as if they were measured."""
    work = tuple([Work(place, "add", "", 10.0 * (i + 1), 0.0, 0.0, 0.0, 1) for i, place in enumerate(places)])
    return LineCosts("f", work, seconds)


def test_times_of_lines_add_up_to_that_of_the_whole() -> None:
    lines = measured(["a.py:1 f [one]", "a.py:1 f [two]", "a.py:2 f"], {"a.py:1 f": 3.0, "a.py:2 f": 1.0, "c": 0.5})
    times = {where: sum(each.seconds.values()) for where, each in lines.by_line().items()}
    assert times == pytest.approx({"a.py:1 f [two]": 2.0, "a.py:1 f [one]": 1.0, "a.py:2 f": 1.0, "c": 0.5})
    assert "4.5 s" in str(lines).splitlines()[0]
    assert "c: 11.1 %" in lines.flame_graph()


def test_lines_that_are_not_shown_have_a_row_together() -> None:
    places = [f"a.py:{i} f" for i in range(20)]
    lines = measured(places, dict.fromkeys(places, 0.25))
    last = str(lines).splitlines()[-1].split()
    assert last[-3:] == ["8", "other", "lines"]
    assert last[:2] == ["40", "%"]
    assert "2 s" in " ".join(last)
    assert len(str(lines).splitlines()) == 2 + 12 + 1


def test_a_roofline_says_which_line_a_point_is() -> None:
    lines = analysis.cost(loss)(square(32, 32), square(16, 32)).lines
    texts = [x.text or "" for x in ElementTree.fromstring(lines.roofline(1e11, 1e10)).iter() if x.tag.endswith("text")]
    assert {"1", "operations for each byte", "100 G operations a second"} <= set(texts)
    assert any(text.startswith("1  test_line_costs.py:") for text in texts)
