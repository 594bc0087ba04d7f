"""Programs as users write them run, and editors complete the public names.

``make lint`` checks the programs by mypy's ``--strict`` and by pyright. Each has one mistake, with a comment for each
of the two that must be needed.
"""

from __future__ import annotations

import importlib.util
import inspect
import pydoc
import re
import rlcompleter
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pullback
import pullback.numpy as jnp
from tests.helpers import ROOT
from tests.public import stubs

PROGRAMS = sorted((ROOT / "tests" / "typed").glob("*.py"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_run_and_have_one_mistake(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location(f"typed_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    if path.stem != "typed_program":  # whose mistake is in its main
        program.main()
        assert capsys.readouterr().out
    text = path.read_text()
    assert len(re.findall(r"# type: ignore\[[a-z-]+\]  # pyright: ignore\[\w+\]", text)) == 1
    assert text.count("ignore[") == 2 + (path.stem == "partial_decorators")  # where one checker of the two sees more


def test_lint_is_strict_with_each_program() -> None:
    assert len(PROGRAMS) >= 24
    settings = (ROOT / "pyproject.toml").read_text()
    assert all(f'"{path.stem}"' in settings for path in PROGRAMS)


def completed(text: str) -> set[str]:
    completer = rlcompleter.Completer({"pullback": pullback, "jnp": jnp})
    found: set[str] = set()
    while (name := completer.complete(text, len(found))) is not None and name not in found:
        found.add(name)
    return {name.rstrip("()") for name in found}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pullback.numpy.li", {"linalg", "linspace"}),
        ("pullback.custom_j", {"custom_jvp"}),
        ("pullback.ra", {"random"}),
        ("pullback.rema", {"remat"}),
        ("pullback.scipy.sp", {"sparse", "spatial", "special"}),
        ("pullback.nn.ini", {"initializers"}),
        ("pullback.tree_util.PyTreeD", {"PyTreeDef"}),
        ("pullback.lax.fori", {"fori_loop"}),
        ("pullback.numpy.linalg.vec", {"vecdot", "vector_norm"}),
        ("pullback.scipy.special.log_n", {"log_ndtr"}),
        ("pullback.scipy.stats.no", {"norm"}),
        ("pullback.experimental.sparse.bcoo_to", {"bcoo_todense"}),
    ],
)
def test_completion_of_a_running_interpreter(text: str, expected: set[str]) -> None:
    assert {name.rpartition(".")[2] for name in completed(text)} == expected


def test_listing_names_imports_nothing() -> None:
    program = """
import sys, pullback
before = set(sys.modules)
names = {m: dir(getattr(pullback, m)) for m in ("numpy",)} | {"": dir(pullback)}
assert {"lax", "random", "custom_vjp", "checkpoint", "visualize"} <= set(names[""])
assert {"linalg", "fft", "histogram", "polyfit"} <= set(names["numpy"])
assert not {"Any", "TYPE_CHECKING", "importlib"} & (set(names[""]) | set(names["numpy"]))
print(sorted(set(sys.modules) - before))
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_every_documented_name_is_listed_before_it_is_used() -> None:
    program = """
import importlib
from tests.public.documented_parameters import documented
listed = {}
for module, names in documented():
    there = importlib.import_module(module.replace("jax", "pullback", 1))
    listed[module] = set(dir(there))
for module, names in documented():
    there = importlib.import_module(module.replace("jax", "pullback", 1))
    left = [n for n in names if n not in listed[module] and hasattr(there, n)]
    print(*[f"{module}.{n}" for n in left if n != "JaxprTypeError"], end="")  # a second name of JaxprError
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert found.stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ("pullback.numpy.linsp", "linspace"),
        ("pullback.custom_v", "custom_vjp"),
        ("jnp.ones(3).resh", "reshape"),
        ("jnp.ones(3).at[0].se", "set"),
        ("jnp.sin(1.0).ma", "max"),
        ("pullback.lax.sinh", "sinh"),
    ],
)
def test_completion_of_an_editor(last: str, expected: str) -> None:
    jedi: Any = pytest.importorskip("jedi")
    script = jedi.Script(f"import pullback\nimport pullback.numpy as jnp\n{last}", project=jedi.Project(ROOT / "src"))
    assert expected in {name.name for name in script.complete()}


def offered_by_an_editor(module: str, text: str) -> set[str]:
    jedi: Any = pytest.importorskip("jedi")
    script = jedi.Script(f"import {module}\nimport pullback.numpy as jnp\n{text}.", project=jedi.Project(ROOT / "src"))
    return {name.name for name in script.complete() if name.name[0] != "_"}


@pytest.mark.slow
def test_an_editor_offers_what_an_interpreter_offers() -> None:
    """Nothing is missing. What is more are the modules in the folder of a package, which jedi lists by itself."""
    wrong = {}
    for module in stubs.FACES:
        there = importlib.import_module(module)
        public = {name for name in dir(there) if name[0] != "_"}
        offered = offered_by_an_editor(module, module)
        folders = [Path(folder) for folder in getattr(there, "__path__", ())]
        more = offered - public - {path.stem for folder in folders for path in folder.iterdir()}
        if module.startswith(("pullback.scipy.special", "pullback.scipy.stats.")):  # jedi reads their sources too
            more = set()
        if public - offered or more - {"annotations", "pullback"}:
            wrong[module] = (public - offered, more)
    assert wrong == {}


@pytest.mark.slow
@pytest.mark.parametrize("module", ["pullback.numpy.linalg", "pullback.scipy.special", "pullback.experimental.ode"])
def test_an_editor_knows_the_names_of_modules_without_stubs(module: str) -> None:
    there = importlib.import_module(module)
    assert {name for name in dir(there) if name[0] != "_"} - offered_by_an_editor(module, module) == set()


@pytest.mark.slow
def test_an_editor_offers_the_methods_of_arrays() -> None:
    public = {name for name in dir(jnp.ones(3)) if name[0] != "_"} - {"flat"}  # which is not supported
    assert offered_by_an_editor("pullback", "jnp.ones(3)") == public


def test_help_says_what_each_method_of_arrays_takes_and_does() -> None:
    x = jnp.ones(3)
    for name in dir(x):
        attribute = inspect.getattr_static(type(x), name)
        if name[0] != "_" and name != "weak_type":  # a slot, whose description is that of the class
            assert inspect.getdoc(attribute), name
            if callable(attribute):
                assert "self" not in inspect.signature(getattr(x, name)).parameters, name
    signature = inspect.signature(x.sum)
    assert [*signature.parameters][:4] == ["axis", "dtype", "out", "keepdims"]
    text = pydoc.render_doc(x.sum, renderer=pydoc.plaintext)
    assert "sum(axis: 'Axes' = None" in " ".join(text.split()).replace("( ", "(")  # Python 3.13 breaks the line
    assert "The sum of the elements along some axes." in text


def test_type_hints_of_functions_resolve() -> None:
    import typing

    from pullback import Array

    for function in (jnp.sum, jnp.linalg.norm, pullback.random.normal, pullback.nn.relu, pullback.lax.reduce_sum):
        hints = typing.get_type_hints(function)
        assert hints["return"] is Array
