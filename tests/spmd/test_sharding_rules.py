"""Sharding rules of ``custom_partitioning`` as attributes of programs; what it does over devices is in the cases."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import jit, make_jaxpr
from pullback.backends.compiler import client
from pullback.core.errors import PartitioningError
from pullback.experimental.custom_partitioning import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)
from pullback.spmd.sharding_rules import parsed_rule

TEXTS: list[tuple[str, dict[str, Any], list[tuple[int, ...]], str]] = [
    ("i j -> i j", {}, [(2, 3)], "([i, j])->([i, j]) {i=2, j=3}"),
    ("row,row->", {}, [(2,), (2,)], "([i], [i])->([]) {i=2}"),
    ("->", {}, [()], "([])->([])"),
    ("... i, ...0 i -> ... i", {}, [(5, 4, 3), (7, 3)], "([i, j, k], [l, k])->([i, j, k]) {i=5, j=4, k=3, l=7}"),
    ("…i->…i", {}, [(5, 3)], "([i, j])->([i, j]) {i=5, j=3}"),
    ("i (h d) -> i h d", {}, [(5, 6)], "([i, jk])->([i, j, k]) {i=5, j=2, k=3}"),
    ("i (h d) -> i (h d)", {"h": 2, "d": 3}, [(5, 6)], "([i, jk])->([i, jk]) {i=5, j=2, k=3}"),
    (
        "i k, k j -> i j",
        {"reduction_factors": ("k",), "permutation_factors": ["i"], "need_replication_factors": ("j",)},
        [(2, 3), (3, 4)],
        "([i, j], [j, k])->([i, k]) {i=2, j=3, k=4} reduction={j} need_replication={k} permutation={i}",
    ),
]
RESULTS = {0: (2, 3), 1: (), 2: (), 3: (5, 4, 3), 4: (5, 3), 5: (5, 2, 3), 6: (5, 6), 7: (2, 4)}


@pytest.mark.parametrize("case", range(len(TEXTS)))
def test_rules_as_text(case: int) -> None:
    rule, options, operands, text = TEXTS[case]
    attribute = parsed_rule(rule, **options).text(operands, [RESULTS[case]])
    assert attribute == f"#sdy.op_sharding_rule<{text}, custom>"
    ir = client.mlir("ir")
    with client.mlir_context():
        assert str(ir.Attribute.parse(attribute)) == attribute


def test_many_factors() -> None:
    names = " ".join(f"n{i}" for i in range(20))
    text = parsed_rule(f"{names} -> {names}").text([(1,) * 20], [(1,) * 20])
    assert "y, z, z_1, z_2]" in text
    with client.mlir_context():
        assert str(client.mlir("ir").Attribute.parse(text)) == text


def test_factors_of_a_kind_are_in_the_order_of_their_numbers() -> None:
    names = [f"n{i}" for i in range(30)]
    text = parsed_rule(f"{' '.join(names)} ->", reduction_factors=names[::-1]).text([(1,) * 30], [()])
    assert "reduction={i, j, k, " in text
    assert "z, z_1, z_2, z_3, z_4, z_5, z_6, z_7, z_8, z_9, z_10, z_11, z_12}" in text
    with client.mlir_context():
        assert str(client.mlir("ir").Attribute.parse(text)) == text


def test_rules_as_objects() -> None:
    rule = SdyShardingRule((ArrayMapping(BATCHING, CompoundFactor("h", "d")),), ((BATCHING, "h", "d"),))
    assert rule.text([(4, 6)], [(4, 2, 3)]) == parsed_rule("... (h d) -> ... h d").text([(4, 6)], [(4, 2, 3)])
    assert repr(rule).startswith("SdyShardingRule((ArrayMapping('…', CompoundFactor('h', 'd')),)")


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: parsed_rule("i j"), "expected one -> between operands and results, got 'i j'"),
    (lambda: parsed_rule("i -> j -> k"), "expected one ->"),
    (lambda: parsed_rule("i + j -> i"), r"'\+ j' is not a factor, in 'i \+ j -> i'"),
    (lambda: parsed_rule("i ... -> i"), "BATCHING, with or without a number after it, must come first"),
    (lambda: parsed_rule("(i) -> i"), "expected two or more factors"),
    (lambda: parsed_rule("i i -> i"), "a factor occurs twice in one array"),
    (lambda: parsed_rule("2 -> 2"), "a factor must be a name such as 'i', or a CompoundFactor, got '2'"),
    (lambda: parsed_rule("(i j) -> (i j)", i=2), "the factors j occur only within compound axes .* pass j=..."),
    (lambda: parsed_rule("i -> i", j=2), "j=2 is not a valid size of a factor"),
    (lambda: parsed_rule("i -> i", reduction_factors=("q",)), "the factor 'q' in reduction_factors does not occur"),
    (
        lambda: parsed_rule("i -> i", reduction_factors=("i",), permutation_factors=("i",)),
        "'i' is in reduction_factors and permutation_factors",
    ),
    (
        lambda: parsed_rule(3),
        "expected text such as 'i j -> i j', an SdyShardingRule or a function .* got 3 of type int",
    ),  # type: ignore[arg-type]
    (lambda: parsed_rule("i -> i").text([(2,), (2,)], [(2,)]), "for 1 operands, but there are 2"),
    (lambda: parsed_rule("i -> i").text([(2,)], [(2, 3)]), r"result 0, of shape \(2, 3\), has the rank 2"),
    (lambda: parsed_rule("i -> i").text([(2,)], [(3,)]), "has an axis of size 2, but other axes of the same factor"),
    (lambda: parsed_rule("(i j) -> i j").text([(7,)], [(2, 3)]), "of size 7, .* i = 2, j = 3"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_rules_that_are_none(case: int) -> None:
    make, message = REFUSED[case]
    with pytest.raises(PartitioningError, match=message) as caught:
        make()
    assert isinstance(caught.value, (ValueError, TypeError))


def test_on_one_device_it_is_the_function() -> None:
    @custom_partitioning
    def f(x: Any, n: Any = 2) -> Any:
        """Multiplied."""
        return n * x

    assert (f.__name__, f.__doc__) == ("f", "Multiplied.")
    with pytest.raises(PartitioningError, match=r"of \S*f at .*: call def_partition first"):
        f(1.0)
    f.def_partition(lambda *_: None, sharding_rule="..., -> ...")
    x = np.ones(3, "float32")
    for call in (f, jit(f), jit(lambda x: f(x, 2)), jit(lambda x: f(n=2, x=x))):
        np.testing.assert_array_equal(call(x), 2 * x)
    assert "custom_partitioning[" in str(make_jaxpr(f)(x))
    options = custom_partitioning(lambda x, *, k: x)
    options.def_partition(lambda *_: None)
    with pytest.raises(PartitioningError, match="pass all arguments by position, got by keyword: k"):
        jit(lambda x: options(x, k=jnp.ones(2)))(x)


def test_static_arguments_are_counted_from_the_end_too() -> None:
    @partial(custom_partitioning, static_argnums=-1)
    def f(x: Any, n: int) -> Any:
        return x if n == 1 else n * x

    f.def_partition(lambda *_: None)
    np.testing.assert_array_equal(jit(f, static_argnums=1)(np.ones(2, np.float32), 3), [3, 3])
