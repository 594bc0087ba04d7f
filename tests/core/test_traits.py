"""What operations say of themselves, and that what asks for it hears it from each."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import checkpoint_policies, hessian, jvp, lax, make_jaxpr, vmap
from pullback.core import traits
from pullback.core.errors import ArgumentError
from pullback.core.trace import Primitive
from pullback.core.types import ShapedArray
from pullback.derivatives import jacobian_pattern, laplacian
from pullback.experimental import checkify
from pullback.primitives import elementwise as ops
from pullback.primitives.checks import INEXACT
from pullback.primitives.declare import elementwise
from pullback.primitives.linalg.contraction import masked_dot_general_p
from pullback.scipy import special
from pullback.transforms.checkpoint.checkpoint_policies import dots_saveable
from pullback.transforms.jit.eager import expected_seconds
from tests.helpers import largest
from tests.primitives_of import all_primitives

PRIMITIVES = all_primitives()
HASHES = "threefry2x32", "philox_blocks", "threefry4x32", "philox2x32", "philox4x32"


def test_a_trait_that_there_is_not_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"primitive 'new' has no trait 'move'; the traits are elementwise, moves"):
        Primitive("new", move=True)
    with pytest.raises(ArgumentError, match="there already is a trait 'moves':"):
        traits.Trait("moves", "nothing", 0)


def test_few_ask_whether_an_operation_is_another() -> None:
    """They ask for a trait or a rule; those that cannot say why in a comment.

    Two equations may be compared. The table of known rewritings is about particular operations, and so is the model of
    what the compiler does with each.
    """
    asking = []
    about_some = {"rewritings.py", "compiled_form.py", "liveness.py"}
    for path in Path(pullback.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())) if path.name not in about_some else ():
            if isinstance(node, ast.Compare) and not isinstance(node.comparators[0], ast.Constant):
                name, other = (getattr(x, "attr", getattr(x, "id", "")) for x in (node.left, node.comparators[0]))
                if name == "primitive" != other and isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
                    asking.append(f"{path.name}:{node.lineno}")
    assert 0 < len(asking) <= 12, asking


def test_every_operation_that_is_evaluated_says_what_it_costs() -> None:
    assert len(PRIMITIVES) > 300
    silent = [place for p, place in PRIMITIVES.items() if p.host_rule is not None and "cost" not in p.traits]
    assert silent == []


def test_operations_whose_operands_broadcast_are_on_elements() -> None:
    """``random_gamma`` takes keys beside numbers; hashes have several results, which those that ask do not expect."""
    for p, place in PRIMITIVES.items():
        rule = getattr(p.batch_rule, "__qualname__", "")
        if rule.startswith(("batch_broadcasting", "batch_unary")) and p.name not in ("random_gamma", *HASHES):
            assert traits.elementwise.of(p), place


def test_what_is_compiled_if_large_can_be() -> None:
    sizes = {p: traits.compiled_from.of(p) for p in PRIMITIVES}
    large = {p: least for p, least in sizes.items() if least is not None}
    assert len(large) > 12
    assert all(p.lowering_rule is not None and least >= 1000 for p, least in large.items())


@pytest.mark.parametrize("p", [p for p in PRIMITIVES if traits.moves.of(p)], ids=str)
def test_what_moves_elements_says_so_once(p: Primitive) -> None:
    assert "passes_nan" not in p.traits


def test_a_new_operation_on_elements_costs_what_a_sine_does() -> None:
    versine_p = elementwise("versine", of=INEXACT, host=lambda x: 1 - np.cos(x))
    assert traits.cost.of(versine_p) is traits.cost.of(ops.sin_p) is traits.Cost.SIMPLE
    x = jnp.ones(100_000)
    price, sine = (expected_seconds(pullback.make_jaxpr(p.bind)(x).jaxpr) for p in (versine_p, ops.sin_p))
    assert price == sine < 1e-3


def test_a_masked_product_costs_what_a_product_does() -> None:
    """It did cost what an operation on each element of its operands does."""
    x = jnp.ones((500, 500))
    plain = pullback.make_jaxpr(lambda x: x @ x)(x).jaxpr
    with pullback.masked_zeros():
        masked = pullback.make_jaxpr(lambda x: jvp(lambda y: x @ y, (x,), (x,))[1])(x).jaxpr
    assert "masked_dot_general" in str(masked)
    assert expected_seconds(masked) >= expected_seconds(plain) > 0.01
    assert dots_saveable(masked_dot_general_p)


def test_a_trait_of_a_library() -> None:
    bounded: traits.Trait[bool] = traits.Trait("bounded", "a result is between -1 and 1", False)
    try:
        bounded.declare(ops.sin_p, True)
        assert [bounded.of(p) for p in (ops.sin_p, ops.exp_p)] == [True, False]
        assert bounded.of(Primitive("new", bounded=True))
    finally:
        del traits.TRAITS["bounded"], ops.sin_p.traits["bounded"]


@pytest.mark.parametrize(
    "g",
    [
        lambda x: special.owens_t(x, 0.5),
        lambda x: special.hyp1f1(0.5, 1.5, x),
        lambda x: special.log_ndtr(x),
        lambda x: lax.reduce_precision(x, 8, 10),
    ],
)
def test_laplacians_of_operations_on_elements_keep_their_blocks(g: Any) -> None:
    """Those whose formula has integrals, or derivatives of its own, had all 192 directions for each element."""
    x = jnp.linspace(0.1, 0.9, 192).reshape(64, 3)
    f = lambda x: (g(jnp.sin(x)) ** 2).sum()
    assert largest(pullback.make_jaxpr(laplacian(f))(x).jaxpr) == 3 * x.size
    np.testing.assert_allclose(laplacian(f)(x[:2]), jnp.trace(hessian(f)(x[:2]).reshape(6, 6)), rtol=1e-4)


def test_nothing_is_found_where_numbers_are_only_moved() -> None:
    x = jnp.array([[np.nan, 1.0], [2.0, 3.0]])
    f = lambda x: jnp.take_along_axis(vmap(lambda row: row[::-1])(x), jnp.zeros((2, 1), int), 1)
    assert checkify.checkify(f, errors=checkify.nan_checks)(x)[0].get() is None
    error, _ = checkify.checkify(lambda x: jnp.sin(x), errors=checkify.nan_checks)(x)
    assert "nan generated by primitive: sin" in error.get()


def test_what_moves_elements_by_positions_that_are_an_operand_has_no_pattern_of_its_own() -> None:
    """Where the elements go is not known from the traits alone."""
    chosen_p = Primitive("chosen", moves=True, cost=traits.Cost.SIMPLE)
    chosen_p.host(lambda x, i: x[i])
    chosen_p.abstract_eval(lambda x, i: ShapedArray(i.shape, x.dtype))
    chosen_p.jvp(lambda primals, tangents: (chosen_p.bind(*primals), chosen_p.bind(tangents[0], primals[1])))
    chosen_p.transpose(lambda ct, x, i: (jnp.zeros(x.shape).at[i].add(ct), None), linear_in=(0,))
    i = jnp.array([2, 0])
    assert jacobian_pattern(lambda x: chosen_p.bind(x, i))(jnp.ones(3)).nnz == 6
    turned_p = Primitive("turned", moves=True, cost=traits.Cost.SIMPLE)
    turned_p.host(lambda x: x[::-1])
    turned_p.abstract_eval(lambda x: ShapedArray(x.shape, x.dtype))
    turned_p.jvp(lambda primals, tangents: (turned_p.bind(*primals), turned_p.bind(*tangents)))
    turned_p.transpose(lambda ct, x: (turned_p.bind(ct),))
    np.testing.assert_array_equal(
        jacobian_pattern(turned_p.bind)(jnp.ones(3)).to_scipy().todense(), np.eye(3, dtype=bool)[::-1]
    )


def test_the_sign_of_an_infinite_number_is_found_to_be_none() -> None:
    check = checkify.checkify(jnp.sign, errors=checkify.nan_checks)
    assert "nan generated by primitive: sign" in check(jnp.array([complex(np.inf, 1.0)]))[0].get()
    assert check(jnp.array([np.inf, -0.0, 2.0]))[0].get() is None


def test_a_product_of_a_library_has_parameters_of_its_own() -> None:
    """Policies and prices read the dimension numbers of products that have some."""
    product_p = Primitive("own_product", cost=traits.Cost.PRODUCT)
    product_p.host(lambda x, y, scale: scale * (x @ y))
    product_p.abstract_eval(lambda x, y, scale: ShapedArray((x.shape[0], y.shape[1]), x.dtype))
    assert checkpoint_policies.dots_with_no_batch_dims_saveable(product_p, scale=2)
    closed = make_jaxpr(lambda x: product_p.bind(x, x, scale=2))(jnp.ones((3, 3)))
    assert 0 < expected_seconds(closed.jaxpr) < 1
