"""What type checkers know of the public names: all of them are there, and ``Any`` says nowhere what documentation says.

``PyTree`` stands for a tree of arrays of any type, and is not counted as ``Any``; nor are the arguments that are handed
on to a function of the user's.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.public.documented_parameters import documented

ALIASES = {"ArrayLike", "DTypeLike", "Index", "KeyEntry", "Placement", "PyTree"}
"""Names for what may be anything, or nearly: each says what is meant."""

INTERNAL = {
    "api_util": "how transformations see functions, for authors of transformations",
    "errors": "raised by the library, not made by users",
    "extend.backend": "objects of jaxlib's, which has no annotations",
    "extend.lowering": "see extend.backend",
    "extend.mlir": "see extend.backend",
    "extend.random": "random generators, for authors of generators",
    "extend.core": "programs, whose parameters and constants are of any type",
    "extend.linear_util": "how transformations see functions, for authors of transformations",
    "ffi": "capsules and attributes of foreign functions",
    "experimental.serialize_executable": "trees of any structure",
    "stages": "results of jit's stages: trees, and objects of the compiler's",
}
"""Modules whose names are for authors of transformations, with the reason."""

ANYTHING = {
    "Array.item": "a Python number of the array's dtype",
    "Array.tolist": "a number, or nested lists",
    "Array.to_device": "the stream is of another library",
    "numpy.dtype": "NumPy's own",
    "numpy.object_": "NumPy's own",
    "numpy.einsum_path": "the description is an object of opt_einsum's, which has no annotations",
    "numpy.load": "an array, or a dictionary of arrays, as the file has it",
    "dtypes.bfloat16": "the type of ml_dtypes, which is imported when it is first used",
    "experimental.sparse.bcoo_dot_general": "sparse if both operands are, and otherwise dense",
    "export.symbolic_shape": "integers, or symbolic sizes, which compute as integers do",
    "example_libraries.optimizers.OptimizerState.packed_state": "a tree; so for the next two",
    "example_libraries.optimizers.OptimizerState.subtree_defs": "see packed_state",
    "example_libraries.optimizers.OptimizerState.tree_def": "see packed_state",
    "profiler.start_server": "a server of jaxlib's, which has no annotations",
    "scipy.optimize.OptimizeResults": "the gradient and the inverse Hessian are None of methods that have none",
    "scipy.optimize.OptimizeResults.jac": "see OptimizeResults",
    "scipy.optimize.OptimizeResults.hess_inv": "see OptimizeResults",
    "scipy.optimize.minimize": "see OptimizeResults",
    "tree_util.KeyEntry": "a class of keys of the user's",
    "tree.static": "stands for the value of a field of any type",
}
"""Names whose parameters or results really may be anything, with the reason."""


def public_names() -> Iterator[tuple[str, Any]]:
    """The documented names that are there, and the documented members of classes among them, with their values."""
    seen: set[type] = set()
    for module, words in documented():
        module = module.replace("jax", "pullback", 1)
        there = importlib.import_module(module)
        for name in words:
            if hasattr(there, name):
                value = getattr(there, name)
                yield f"{module}.{name}", value
                if inspect.isclass(value) and value.__module__.startswith("pullback") and value not in seen:
                    seen.add(value)
                    yield from ((f"{module}.{name}.{member}", None) for member in members(value))


def members(kind: type) -> list[str]:
    """The methods of a class that have a docstring, and the fields that its own names."""
    fields = [f.name for f in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    fields += getattr(kind, "_fields", ())
    for name in dir(kind):
        getattr(kind, name, None)  # methods of arrays are made when they are first asked for
    methods = [
        name
        for name, value in inspect.getmembers_static(kind)
        if inspect.isfunction(getattr(value, "__func__", value)) and value.__doc__ and _is_ours(kind, name)
    ]
    return sorted(name for name in {*fields, *methods} if name[0] != "_")


def _is_ours(kind: type, name: str) -> bool:
    return any(name in vars(base) and base.__module__.startswith("pullback") for base in kind.__mro__)


class Annotations:
    """What mypy, by its strict checks, knows of names that a program mentions."""

    def __init__(self, names: list[str], directory: Path) -> None:
        build = pytest.importorskip("mypy.build")
        options = importlib.import_module("mypy.main").process_options
        program = directory / "public_names.py"
        imports = sorted({f"import {module.replace('jax', 'pullback', 1)}" for module, _ in documented()})
        program.write_text("\n".join([*imports, *names]))
        cache = str(directory / "cache")
        sources, settings = options(["--strict", "--config-file=", "--cache-dir", cache, str(program)])
        settings.export_types = settings.preserve_asts = True
        found = build.build(sources, settings)
        self.errors = found.errors
        statements = found.files["public_names"].defs[len(imports) :]
        self.of = {
            name: (statement.expr, found.types.get(statement.expr)) for name, statement in zip(names, statements)
        }


def is_any(kind: Any) -> bool:
    """Whether a type, or one of a union, is ``Any``."""
    types = importlib.import_module("mypy.types")
    if isinstance(kind, types.TypeAliasType) and kind.alias is not None and kind.alias.name in ALIASES:
        return False
    kind = types.get_proper_type(kind)
    if isinstance(kind, types.UnionType):
        return any(map(is_any, kind.items))
    return isinstance(kind, types.AnyType)


def has_any(kind: Any) -> bool:
    """Whether ``Any`` is a type, or an element of one, or what it returns."""
    types = importlib.import_module("mypy.types")
    proper = types.get_proper_type(kind)
    if is_any(kind):
        return True
    if isinstance(proper, types.AnyType):
        return False
    if isinstance(proper, types.TupleType):
        return any(map(has_any, proper.items))
    if isinstance(proper, types.CallableType):
        return has_any(proper.ret_type)
    elements = ("builtins.list", "builtins.tuple", "builtins.dict", "typing.")
    return (
        isinstance(proper, types.Instance)
        and proper.type.fullname.startswith(elements)
        and any(map(has_any, proper.args))
    )


def signatures(expression: Any, kind: Any) -> list[Any]:
    """The signatures of a function as they are written: those of decorated ones have lost the names of their types."""
    nodes, types = importlib.import_module("mypy.nodes"), importlib.import_module("mypy.types")
    node = getattr(expression, "node", None)
    parts = node.items if isinstance(node, nodes.OverloadedFuncDef) else [node]
    written = [part.func if isinstance(part, nodes.Decorator) else part for part in parts]
    if all(isinstance(part, nodes.FuncDef) for part in written):
        return [part.type for part in written]
    kind = types.get_proper_type(kind)
    return (
        list(kind.items)
        if isinstance(kind, types.Overloaded)
        else [kind]
        if isinstance(kind, types.CallableType)
        else []
    )


def complaints(expression: Any, kind: Any) -> list[str]:
    """The parameters and results of a name that are ``Any``.

    The last of several overloads may return it: there an argument that chooses the type of the result is not known.
    """
    types, nodes = importlib.import_module("mypy.types"), importlib.import_module("mypy.nodes")
    if isinstance(types.get_proper_type(kind), types.AnyType):
        return ["all of it"]
    found = []
    all_signatures = signatures(expression, kind)
    for i, signature in enumerate(all_signatures):
        stars = (nodes.ARG_STAR, nodes.ARG_STAR2)
        if not signature.is_ellipsis_args:  # as those of functions that declarations make
            parameters = zip(signature.arg_names, signature.arg_types, signature.arg_kinds, strict=True)
            found += [name or "?" for name, a, how in parameters if how not in stars and name != "self" and is_any(a)]
        if has_any(signature.ret_type) and (i == 0 or i < len(all_signatures) - 1):
            found.append("the result")
    return sorted(set(found))


@pytest.fixture
def annotations(tmp_path: Path) -> Annotations:
    """What mypy knows: on a slow machine it takes as long as a whole test may."""
    return Annotations([*dict(public_names()), "pullback.numpy.sine"], tmp_path)


@pytest.mark.slow
def test_type_checkers_know_every_documented_name_and_none_is_any(annotations: Annotations) -> None:
    """One test, since mypy takes a minute of CPU time, which two processes would take twice."""
    assert len(annotations.of) > 1000
    unknown = [error for error in annotations.errors if "has no attribute" in error]
    assert len(unknown) == 1, unknown
    assert 'has no attribute "sine"' in unknown[0]
    found, excused = {}, set()
    for name, (expression, kind) in annotations.of.items():
        short = name.removeprefix("pullback.")
        if name == "pullback.numpy.sine" or any(short.startswith(f"{module}.") for module in INTERNAL):
            continue
        vague = complaints(expression, kind)
        if vague and short in ANYTHING:
            excused.add(short)
        elif vague:
            found[short] = vague
    assert found == {}, "\n".join(f"{name}: {', '.join(vague)}" for name, vague in found.items())
    assert excused == set(ANYTHING), "these need no excuse"
