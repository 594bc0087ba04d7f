"""An operation on elements is added by its declaration, a line that makes it public, and a row of the grid."""

from __future__ import annotations

import doctest
import inspect
import math
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import lax
from pullback.core.trace import Primitive
from pullback.lax import elementwise as functions
from pullback.numpy import declare as numpy_declare
from pullback.primitives import elementwise as ops
from pullback.primitives.checks import FLOAT
from pullback.primitives.declare import PUBLIC, elementwise
from tests.helpers import ROOT


@pytest.fixture
def versine_p() -> Iterator[Primitive]:
    """The first edit: an operation is declared."""
    p = elementwise(
        "versine", doc=("``1 - cos(x)``.", "0.0", "0.0"),
        of=FLOAT, host=lambda x: 1 - np.cos(x), hlo=lambda hlo, x: hlo.inline(lambda x: ops.sub(1, ops.cos(x)), x),
        jvp=lambda t, x, ans: ops.mul(t, ops.sin(x)),
    )  # fmt: skip
    yield p
    del PUBLIC[p]


def test_a_declared_operation_is_public_by_one_line(versine_p: Primitive) -> None:
    versine = numpy_declare.inexact_unary("versine", versine_p, "pullback.numpy.ufuncs")  # the second edit
    of_lax = functions.checked(versine_p, PUBLIC[versine_p])
    x = pnp.array([0.0, 0.5, 2.0])
    for f in (versine, of_lax, pullback.jit(versine), pullback.vmap(of_lax)):
        np.testing.assert_allclose(f(x), 1 - np.cos(np.array(x)), rtol=1e-6)
    for f in (versine, of_lax):
        assert float(pullback.grad(f)(2.0)) == pytest.approx(math.sin(2.0))
    assert versine(0) == 0.0  # numpy's function converts, that of lax refuses
    with pytest.raises(TypeError, match="versine takes floats, got i32"):
        of_lax(pnp.array(0))
    assert str(pullback.make_jaxpr(versine)(2.0)).count("versine") == 1
    for f, name in ((versine, "jnp.versine(0.0)"), (of_lax, "lax.versine(0.0)")):
        assert f.__name__ == "versine"
        assert inspect.getdoc(f).startswith("``1 - cos(x)``.")  # type: ignore[union-attr]
        assert name in f.__doc__


@pytest.mark.parametrize("primitive", PUBLIC, ids=str)
def test_a_public_operation_is_in_lax_with_an_example(primitive: Primitive) -> None:
    name = PUBLIC[primitive].name
    function: Any = getattr(lax, name)
    assert function is getattr(functions, name)
    assert function.__name__ == name
    assert getattr(lax, f"{primitive.name}_p") is primitive
    assert [e.want for e in doctest.DocTestParser().get_examples(function.__doc__)][1:]


def test_the_names_of_a_face_are_those_of_its_functions() -> None:
    """So a line ``exp = _unary("exp", ops.exp_p)`` makes ``exp`` public."""
    from pullback.numpy import logic, ufuncs
    from pullback.scipy import special

    for module in (logic, ufuncs):
        assert set(module.__all__) <= set(pnp.__all__)
    assert {"exp", "arcsin", "asin", "abs", "absolute"} <= set(ufuncs.__all__)
    assert {"exprel", "logsumexp"} <= set(special.__all__)
    assert not {"operand", "partial", "Any", "ops"} & {*ufuncs.__all__, *logic.__all__, *special.__all__}


# The recipe of CONTRIBUTING ------------------------------------------------------------------------------------------

USED = """
import doctest, importlib
import numpy as np
import pullback
from pullback import grad, jit, lax, vmap

face = importlib.import_module("{face}")
assert "cosm1" in face.__all__ and "cosm1" in dir(face) and {{"cosm1", "cosm1_p"}} <= set(dir(lax))
x = np.float32([1e-3, 0.5, 2.0])
expected = -2 * np.sin(x.astype(float) / 2) ** 2
for f in (face.cosm1, lax.cosm1, jit(face.cosm1), vmap(jit(lax.cosm1)), jit(vmap(face.cosm1))):
    np.testing.assert_allclose(f(x), expected, rtol=1e-6)
for f in (grad(face.cosm1), jit(grad(lax.cosm1)), grad(jit(face.cosm1))):
    np.testing.assert_allclose(vmap(f)(x), -np.sin(x), rtol=1e-6)
assert face.cosm1(0) == 0
assert str(pullback.make_jaxpr(face.cosm1)(1.0)).count("cosm1") == 1
for f in (face.cosm1, lax.cosm1):
    assert f.__doc__.startswith("``cos(x) - 1``, whose digits near zero are right.")
    examples = doctest.DocTestFinder().find(f, "cosm1", globs={{}})
    assert examples and not any(doctest.DocTestRunner().run(example).failed for example in examples)
"""


def recipe() -> tuple[str, ...]:
    """The blocks of code of the section: a declaration; two lines, and two rows, for NumPy and for SciPy."""
    section = (ROOT / "CONTRIBUTING.md").read_text().split("### An elementwise operation")[1].split("\n## ")[0]
    blocks = re.findall(r"^ *```python\n(.*?)^ *```", section, re.DOTALL | re.MULTILINE)
    return tuple(map(textwrap.dedent, blocks))


def insert(path: Path, text: str, anchor: str, after: bool = False) -> None:
    """Write a text in front of the line that begins with an anchor, or after it."""
    lines = path.read_text().splitlines(keepends=True)
    (at,) = (i for i, line in enumerate(lines) if line.startswith(anchor))
    lines.insert(at + after, text)
    path.write_text("".join(lines))


@pytest.fixture(params=["numpy", "scipy.special"])
def copied(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """The name of a public module, and a copy of the source and the tests after the two edits and the row."""
    for folder in ("src", "tests", "docs"):
        # with byte code, which stays valid for all files but those that are changed
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.svg"))
    for file in ("pyproject.toml", "CONTRIBUTING.md"):
        shutil.copy(ROOT / file, tmp_path)
    declaration, numpy_line, scipy_line, numpy_row, scipy_row = recipe()
    source = tmp_path / "src" / "pullback"
    with (source / "primitives" / "elementwise.py").open("a") as file:
        file.write("\n" + declaration)
    if request.param == "numpy":
        insert(source / "numpy" / "ufuncs.py", numpy_line, "__all__ = ")
        insert(tmp_path / "tests" / "grid" / "numpy_specs.py", numpy_row.rstrip() + ",\n", "UNARY = [", after=True)
    else:
        insert(source / "scipy" / "special" / "logistic.py", scipy_line, "__all__ = ")
        insert(tmp_path / "tests" / "grid" / "nn_specs.py", scipy_row.rstrip() + ",\n", "SPECIAL = [", after=True)
    return request.param, tmp_path


def run(place: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(place / "src")}
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_example_of_the_recipe_is_not_there_yet() -> None:
    assert not hasattr(lax, "cosm1"), "another example is needed, one that is not there"


@pytest.mark.slow
def test_the_recipe_works_as_printed(copied: tuple[str, Path]) -> None:
    name, place = copied
    run(place, "-c", USED.format(face=f"pullback.{name}"))
    run(place, "-m", "tests.public.stubs")
    for face in (name, "lax"):
        assert " cosm1" in (place / "src" / "pullback" / face.replace(".", "/") / "__init__.pyi").read_text()


@pytest.mark.slow
def test_the_row_of_the_recipe_makes_its_tests(copied: tuple[str, Path]) -> None:
    name, place = copied
    run(place, "-m", "tests.public.stubs")
    run(place, "-m", "tests.project.rules_page")
    files = ("tests/grid/test_grid.py", "tests/public/test_faces.py", "tests/project/test_rules_page.py")
    of_row, others = f"{name}.cosm1", "has_a_row or row_or_a_reason or type_checkers or page"
    found = run(place, "-m", "pytest", "-v", "-p", "no:cacheprovider", *files, "-k", f"{of_row} or {others}")
    assert len(re.findall(rf"test_grid.py::\w+\[{of_row}.* PASSED", found)) > 6
    assert all(f"{file}::" in found for file in files)
