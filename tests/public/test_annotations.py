"""What type checkers are told agrees with what there is when a program runs."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback.core import array as array_module
from pullback.core.trace import Tracer

X = np.array([1.0, 2.0, 4.0], "float32")


def declared(name: str) -> dict[str, ast.FunctionDef | None]:
    """The attributes that a class of ``core/array`` declares for type checkers; None stands for another name of one."""
    tree = ast.parse(Path(inspect.getfile(array_module)).read_text(encoding="utf-8"))
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    found: dict[str, ast.FunctionDef | None] = {}
    for node in ast.walk(classes[name]):
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            found |= {target.id: None for target in node.targets if isinstance(target, ast.Name)}
    return found


def public(value: Any) -> set[str]:
    return {name for name in dir(value) if name[0] != "_"}


def test_every_attribute_of_arrays_is_declared() -> None:
    assert public(jnp.ones(2)) - {"flat"} == {name for name in declared("Array") if name[0] != "_"}  # flat is refused
    update = jnp.ones(2).at[0]
    assert public(update) - {"array", "index"} == {name for name in declared("IndexUpdateRef") if name[0] != "_"}


@pytest.mark.parametrize("owner", ["Array", "IndexUpdateRef"])
def test_declared_methods_take_what_the_real_ones_take(owner: str) -> None:
    real: Any = jnp.ones((2, 2)) if owner == "Array" else jnp.ones(2).at[0]
    for name, node in declared(owner).items():
        if node is None or name[0] == "_" or any(ast.unparse(d) == "property" for d in node.decorator_list):
            continue
        arguments = node.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)][1:]
        parameters = list(inspect.signature(getattr(type(real), name)).parameters.values())
        if parameters[-1].kind is inspect.Parameter.VAR_KEYWORD:  # a function of pullback.numpy
            parameters = list(inspect.signature(getattr(jnp, name)).parameters.values())
        theirs = [p.name for p in parameters[1:] if p.kind is not inspect.Parameter.VAR_POSITIONAL]
        assert names == theirs, name


def tracers(kind: type) -> Iterator[type]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from tracers(subclass)


def test_tracers_hide_no_method_of_arrays() -> None:
    allowed = {"aval", "dtype", "ndim", "shape", "size", "weak_type"}
    methods = public(jnp.ones(2)) - allowed
    kinds = set(tracers(Tracer))
    assert len(kinds) > 4
    hidden = {(kind.__name__, name) for kind in kinds for name in methods & set(vars(kind))}
    assert hidden == set()


def test_variance_as_a_method_of_traced_arrays() -> None:
    def variance(x: Any) -> Any:
        return x.var() + x.std()

    expected = X.var() + X.std()
    np.testing.assert_allclose(pullback.jit(variance)(X), expected, rtol=1e-6)
    np.testing.assert_allclose(pullback.vmap(variance)(np.stack([X, X])), [expected, expected], rtol=1e-6)
    np.testing.assert_allclose(pullback.grad(pullback.jit(variance))(X), pullback.grad(variance)(X), rtol=1e-5)
    assert pullback.make_jaxpr(variance)(X).out_avals[0].shape == ()
