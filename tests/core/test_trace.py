"""Traces: how many kinds there are, and those that only hand operations on."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import pullback
import pullback.numpy as jnp
from pullback import grad, jit, jvp, vmap
from pullback.core.trace import RelayTrace, state

MOST = 17
"""How many classes of traces there are at most: a mode is data of a trace, and no class (decision 018)."""


def classes_of_traces() -> dict[str, list[str]]:
    """The classes of traces in the source, and their bases."""
    found: dict[str, list[str]] = {"Trace": []}
    definitions = [
        node
        for path in Path(pullback.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    before = 0
    while len(found) > before:
        before = len(found)
        for node in definitions:
            bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
            if not found.keys().isdisjoint(bases):
                found[node.name] = bases
    return found


def test_modes_are_no_classes() -> None:
    found = classes_of_traces()
    assert {"JVPTrace", "StageTrace", "EvalTrace"} <= found.keys()
    assert len(found) <= MOST, sorted(found)


def doubled(trace: RelayTrace, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    if primitive.name == "sin":
        args = (2 * args[0],)
    return trace.parent.process(primitive, args, params)


def f(x: Any) -> Any:
    return jnp.sin(x) + jnp.cos(x)


def relayed(x: Any) -> Any:
    trace = RelayTrace(state.trace, doubled)
    trace.quick = False
    return trace.run(f, x)


def expected(x: Any) -> Any:
    return jnp.sin(2 * x) + jnp.cos(x)


def test_a_relay_changes_operations_under_every_transformation() -> None:
    x = jnp.arange(3.0)
    assert (relayed(x) == expected(x)).all()
    for transformed in (vmap, lambda g: vmap(grad(g)), lambda g: vmap(grad(grad(g))), jit):
        assert jnp.allclose(transformed(relayed)(x), transformed(expected)(x))
    assert all(jnp.allclose(a, b) for a, b in zip(jvp(relayed, (x,), (x,)), jvp(expected, (x,), (x,)), strict=True))


def test_a_relay_ends() -> None:
    outer = state.trace
    trace = RelayTrace(outer, doubled)
    with pytest.raises(ZeroDivisionError):
        trace.run(lambda: 1 / 0)
    assert state.trace is outer
    assert not trace.live
