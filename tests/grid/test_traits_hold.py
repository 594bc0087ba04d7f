"""Traits and rules hold in every row of the table of operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pullback import make_jaxpr
from pullback import numpy as jnp
from pullback.core import dtypes, traits
from pullback.core.config import enable_x64
from pullback.core.errors import DtypeError
from pullback.core.trace import Primitive
from pullback.primitives.declare import PUBLIC
from tests.grid.all_specs import OF_PRIMITIVES
from tests.primitives_of import all_primitives

PRIMITIVES = {p.name: p for p in all_primitives()}
EDGES = [0.0, -0.0, np.inf, -np.inf, 1.0, -1.0, 0.5, -3.0]


def rows(trait: traits.Trait[bool]) -> list[Any]:
    """The rows of operations that have a trait, whose function is the operation alone."""
    return [s for s in OF_PRIMITIVES if s.samples and s.operation in PRIMITIVES and trait.of(PRIMITIVES[s.operation])]


def is_alone(spec: Any, args: list[Any]) -> bool:
    return len(make_jaxpr(spec.function)(*args).eqns) == 1


def results(spec: Any, args: list[Any]) -> list[Any]:
    out = spec.function(*map(jnp.asarray, args))
    return [np.asarray(x) for x in (out if isinstance(out, (list, tuple)) else [out])]


def letter_of(spec: Any) -> str:
    return spec.derivative[:1] or spec.dtypes[0]


def equal_or_nan(a: Any, b: Any) -> Any:
    return (a == b) | ((a != a) & (b != b))


def check_elements(run: Callable[..., Any], args: list[Any]) -> None:
    """Change one element of each operand in turn: only the elements that it is broadcast to are others."""
    before = np.asarray(run(*args))
    for i, x in enumerate(args):
        for at in [(0,) * x.ndim, tuple(n - 1 for n in x.shape)] if x.size else []:
            other = x.copy()
            other[at] = x.ravel()[x.size // 2] if x.ndim else x
            after = np.asarray(run(*args[:i], other, *args[i + 1 :]))
            mark = np.zeros(x.shape, bool)
            mark[at] = True
            assert equal_or_nan(before, after)[~np.broadcast_to(mark, before.shape)].all(), (i, at)


@pytest.mark.parametrize("spec", rows(traits.elementwise), ids=str)
def test_an_element_depends_on_that_element_of_each_operand_alone(spec: Any) -> None:
    with enable_x64():
        args = spec.point(letter_of(spec))
        if is_alone(spec, args):
            check_elements(lambda *xs: spec.function(*map(jnp.asarray, xs)), args)


@pytest.mark.parametrize("p", PUBLIC, ids=str)
def test_an_element_of_a_public_operation_depends_on_that_element_alone(p: Primitive) -> None:
    """Those whose rows are of their functions, on operands of different shapes."""
    rng = np.random.default_rng(0)
    shapes = [(2, 3), (3,), (2, 1)][: PUBLIC[p].arity]
    for dtype in ("float32", "complex64", "int32", "bool"):
        args = [(rng.uniform(0.2, 0.8, s) * (1 if dtype[0] in "fc" else 9)).astype(dtype) for s in shapes]
        try:
            p.bind(*map(jnp.asarray, args))
        except DtypeError:
            continue
        check_elements(lambda *xs: p.bind(*map(jnp.asarray, xs)), args)
        return
    pytest.fail(f"{p} takes none of these dtypes")


@pytest.mark.parametrize("spec", rows(traits.moves), ids=str)
def test_what_moves_elements_makes_none(spec: Any) -> None:
    """But for those that are asked for where there is none: NaN or zero."""
    args = spec.point(letter_of(spec))
    with enable_x64():
        found = results(spec, args)
    for out in found:
        given = [x.ravel() for x in args if x.dtype == out.dtype]
        made = out.ravel()[~np.isin(out.ravel(), np.concatenate(given))]
        fill = spec.function.keywords.get("fill_value")
        assert all(np.isnan(x) or x in (0, fill) for x in made), made


def at_edges(spec: Any, letter: str, seed: int) -> list[Any]:
    """The operands of a row, the floats of which are among infinities, zeros and small numbers."""
    rng = np.random.default_rng(seed)
    out = []
    for x in spec.point(letter):
        if dtypes.is_float(x.dtype):
            x = rng.choice(EDGES, x.shape).astype(x.dtype)
        elif dtypes.is_complex(x.dtype):
            x = (rng.choice(EDGES, x.shape) + 0j + 1j * rng.choice([0.0, 1.0, -2.0], x.shape)).astype(x.dtype)
        out.append(np.asarray(x))
    return out


PASSING = [s for s in rows(traits.passes_nan) + rows(traits.moves) if set(s.dtypes) & set("fdFD")]
ASKED_FOR = {"gather", "bitcast_convert_type", "random_use"}
"""Operations that return NaN where they are asked to, outside of what is there or of bits that are one; or keys."""


@pytest.mark.parametrize("spec", [s for s in PASSING if s.operation not in ASKED_FOR], ids=str)
def test_what_passes_nan_makes_none(spec: Any) -> None:
    for letter in sorted(set(spec.dtypes) & set("fdFD")):
        for seed in range(20):
            args = at_edges(spec, letter, seed)
            if any(dtypes.is_inexact(x.dtype) and np.isnan(x).any() for x in args):
                continue
            with enable_x64():
                found = results(spec, args)
            for out in found:
                if out.dtype.kind in "fc":
                    assert not np.isnan(out).any(), (letter, args, out)


@pytest.mark.parametrize("p", [p for p in PUBLIC if traits.passes_nan.of(p)], ids=str)
def test_what_is_public_and_passes_nan_makes_none(p: Primitive) -> None:
    real = np.array(EDGES, np.float32)
    made = 0
    for numbers in (real, (real[:, None] + 1j * np.array([0.0, 1.0, -2.0])).astype(np.complex64).ravel()):
        numbers = numbers[~np.isnan(numbers)]
        args = map(jnp.asarray, np.meshgrid(*[numbers] * PUBLIC[p].arity, indexing="ij"))
        try:
            out = np.asarray(p.bind(*args))
        except DtypeError:
            continue
        made += 1
        assert not np.isnan(out).any()
    assert made


FINITE = np.array([1.5, -2.25, 3e-40, 7e30, -1e-30, 0.1, 0.0, -0.0], np.float32)


@pytest.mark.parametrize("p", [p for p in all_primitives() if traits.signs.of(p)], ids=str)
def test_sums_are_those_of_their_terms_with_the_signs(p: Primitive) -> None:
    signs = traits.signs.of(p)
    terms = np.meshgrid(*[FINITE] * len(signs))
    expected = sum(sign * x for sign, x in zip(signs, terms, strict=True))
    np.testing.assert_array_equal(p.bind(*map(jnp.asarray, terms)), expected)
    np.testing.assert_array_equal(p.bind(*[-jnp.asarray(x) for x in terms]), -expected)


@pytest.mark.parametrize("p", [p for p in all_primitives() if traits.multiplicative.of(p)], ids=str)
def test_products_are_negated_with_one_factor(p: Primitive) -> None:
    x, y = map(jnp.asarray, np.meshgrid(FINITE, FINITE))
    for got in (p.bind(-x, y), p.bind(x, -y)):
        expected = np.asarray(-p.bind(x, y))
        np.testing.assert_array_equal(got, expected)
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(expected)[number])


@pytest.mark.parametrize("trait", [traits.elementwise, traits.moves, traits.passes_nan], ids=lambda t: t.name)
def test_operations_with_a_trait_have_rows(trait: traits.Trait[bool]) -> None:
    """All but those of programs, callbacks, devices and named axes, which have tests of their own."""
    without = {p.name for p in all_primitives() if trait.of(p)} - {s.operation for s in OF_PRIMITIVES}
    for name in without:
        p = PRIMITIVES[name]
        assert p.host_rule is None or p.jvp_rule is None or name in KNOWN_BY_FUNCTIONS or name in ELSEWHERE, name


ELSEWHERE = {"guard", "name", "sparse_todense", "random_use", "xla_metadata_value"}
KNOWN_BY_FUNCTIONS = {p.name for p in all_primitives() if traits.elementwise.of(p)}
"""Operations on elements have rows of their functions: ``test_grid.py`` asks for these."""
