"""A module offers its public names and nothing else, and finds those that are imported when they are first used."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pullback
from pullback.core.faces import face
from tests.public import stubs
from tests.public.documented_parameters import documented


def public_modules() -> list[str]:
    """The modules whose names are documented, the packages that they are in, and the public modules of all of these."""
    todo = [module.replace("jax", "pullback", 1) for module, _ in documented()]
    found: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += [name.rpartition(".")[0] or name, *(f"{name}.{n}" for n in modules_of(name))]
    return sorted(found)


def modules_of(name: str) -> set[str]:
    """The modules within one that completion offers."""
    module = importlib.import_module(name)
    values = {n: getattr(module, n) for n in dir(module)}
    return {n for n, v in values.items() if isinstance(v, ModuleType) and v.__name__ == f"{name}.{n}"}


MODULES = public_modules()


def test_there_are_many_modules() -> None:
    assert len(MODULES) > 100
    assert {"pullback", "pullback.lax.linalg", "pullback.experimental.ode", "pullback.scipy.stats.t"} <= {*MODULES}


@pytest.mark.parametrize("name", MODULES)
def test_completion_offers_what_is_public_and_nothing_else(name: str) -> None:
    module: Any = importlib.import_module(name)
    offered = {n for n in dir(module) if n[:2] != "__"}
    assert offered == {n for n in module.__all__ if n[:2] != "__"} | modules_of(name)
    assert all(hasattr(module, n) for n in {*offered, *module.__all__})
    assert not {n for n in offered if n[0] == "_"} | {"Any", "TYPE_CHECKING", "annotations", "face", "np"} & offered


@pytest.mark.parametrize("name", ["pullback", "pullback.lax", "pullback.numpy", "pullback.scipy.stats"])
def test_rooms_are_not_offered(name: str) -> None:
    module = importlib.import_module(name)
    rooms = {n for n, v in vars(module).items() if isinstance(v, ModuleType)} - modules_of(name)
    assert len(rooms) > 3
    assert not rooms & {*dir(module), *module.__all__}


def test_modules_are_listed_before_they_are_imported() -> None:
    program = f"""
import importlib, sys
for name in {MODULES}:
    there = importlib.import_module(name)
    known = {{*sys.modules}}
    listed = dir(there)
    assert {{*sys.modules}} == known, name
    for module in {MODULES}:
        parent, _, last = module.rpartition(".")
        assert parent != name or last in listed, module
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", MODULES)
def test_a_name_that_is_not_there(name: str) -> None:
    module = importlib.import_module(name)
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'no_such_name'"):
        _ = module.no_such_name


def test_the_error_says_names_near_it() -> None:
    program = "import pullback.numpy as jnp; jnp.linspcae"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "Did you mean: 'linspace'?" in done.stderr


@pytest.mark.parametrize(
    ("module", "name", "hint"),
    [
        ("pullback.numpy", "relu", "; pullback.nn has it"),
        ("pullback.numpy", "sigmiod", "; pullback.nn has sigmoid"),
        ("pullback.nn", "no_such_name", ""),
        ("pullback.nn", "sigmiod", ""),
        ("pullback.numpy", "grad", "; pullback has it"),
        ("pullback", "sin", "; pullback.numpy and pullback.lax have it"),
        ("pullback.random", "inv", "; pullback.numpy.linalg and pullback.scipy.linalg have it"),
        ("pullback", "tree_mapp", ""),
        ("pullback", "tree_map", "; use pullback.tree.map"),
        ("pullback.numpy", "_sin", ""),
    ],
)
def test_the_error_says_which_module_has_the_name(module: str, name: str, hint: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(importlib.import_module(module), name)
    assert str(caught.value) == f"module {module!r} has no attribute {name!r}{hint}"
    assert caught.value.name == name
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_name_of_another_module_is_found_without_its_contents() -> None:
    program = """
import sys
import pullback.numpy as jnp
before = {*sys.modules}
assert not hasattr(jnp, "relu")
assert before == {*sys.modules}
try:
    jnp.relu
except AttributeError as error:
    assert "pullback.nn has it" in str(error)
assert not {"scipy", "jaxlib", "pullback.nn.activations"} & {*sys.modules}
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def made(**names: Any) -> dict[str, Any]:
    return {"__name__": "pullback.some", "__package__": "pullback", "f": len, "_g": len, "sys": sys, **names}


def test_a_face_without_late_names() -> None:
    module = made()
    face(module)
    assert module["__all__"] == module["__dir__"]() == ["f"]
    assert "__getattr__" not in module


def test_a_module_that_writes_its_names() -> None:
    module = made(__all__=["g", "f"])
    face(module, modules="lax")
    assert module["__all__"] == ["g", "f"]
    assert module["__dir__"]() == ["f", "g", "lax"]


def test_where_names_are_found() -> None:
    asked: list[str] = []
    module = made()
    face(
        module,
        {"math": "tau turn=tau", ".core.naming": ["quoted"]},
        made={"new": object},
        otherwise=lambda name: asked.append(name) or len(name),
    )
    find = module["__getattr__"]
    assert module["__all__"] == ["f", "new", "quoted", "tau", "turn"]
    assert find("turn") == module["turn"] == find("tau") > 6
    assert find("quoted") is pullback.core.naming.quoted
    assert find("new") is not find("new")
    assert "new" not in module
    assert find("abc") == 3
    with pytest.raises(AttributeError, match="has no attribute '__path__'"):
        find("__path__")
    assert asked == ["abc"]


def test_a_module_that_has_the_names_of_others() -> None:
    module = made()
    face(module, others=("pullback.tree", "pullback.ref"))
    assert {"f", "flatten", "new_ref"} <= {*module["__dir__"]()}
    assert module["__getattr__"]("new_ref") is pullback.new_ref
    with pytest.raises(AttributeError, match="no attribute 'g'"):
        module["__getattr__"]("g")


@pytest.mark.parametrize("name", stubs.FACES)
def test_no_late_name_is_that_of_a_module_within(name: str) -> None:
    """Whoever imports that module would give the package the module in the place of what the name means."""
    module: Any = importlib.import_module(name)
    late = module.__dir__.__self__.late
    within = {path.stem for path in Path(module.__file__).parent.iterdir()} if hasattr(module, "__path__") else set()
    assert not within & late.keys()


@pytest.mark.parametrize("name", stubs.FACES)
def test_type_checkers_know_the_names_that_there_are(name: str) -> None:
    module = importlib.import_module(name)
    assert stubs.path_of(module).read_text() == stubs.stub(module), "make stubs writes it"


def test_a_stub_says_where_names_are() -> None:
    text = stubs.stub(pullback.lax)
    assert "\ndef nextafter(x1: ArrayLike, x2: ArrayLike) -> Array: ...\n" in text
    assert "\ndef sin(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array: ...\n" in text
    assert "\nsin_p: Primitive\n" in text
    assert "\nfrom pullback.lax import linalg as linalg\n" in text
    assert "\nfrom pullback.control.scan import scan as scan\n" in text
    text = stubs.stub(pullback)
    assert "\nfrom pullback.transforms.checkpoint.checkpoint import checkpoint as remat\n" in text
    assert "\n__version__: str\n" in text
    assert "\nfrom pullback.scipy.special.bessel import jv as jv\n" in stubs.stub(pullback.scipy.special)
