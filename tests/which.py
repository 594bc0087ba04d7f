"""Prints the tests that concern files of the source, the nearest first.

``python tests/which.py src/pullback/numpy/sorting.py`` prints the file if it has examples, the tests of its name, those
that import it, and those of its room that use rare names which it defines; or else the folder of its room.
``pytest $(python tests/which.py FILE)`` runs them. With ``--all`` follows whatever should notice a fault in the file,
as ``python -m tests.mutants --random`` runs it.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "pullback"

ROOMS: dict[str, list[str]] = {
    "core": [
        "tests/core", "tests/transforms/traces/test_jaxprs.py", "tests/numpy/test_promotion_modes.py", "tests/numpy",
        "tests/transforms",
    ],
    "backends": [
        "tests/backends", "tests/grid/test_compiled.py", "tests/transforms/jit/test_jit.py",
        "tests/primitives/test_compiled_arrays.py", "tests/spmd",
    ],
    "primitives": ["tests/primitives", "tests/scipy/special", "tests/grid/test_grid.py"],
    "transforms/traces": ["tests/transforms", "tests/control/test_control_laws.py"],
    "transforms/jit": ["tests/transforms/jit/test_jit.py", "tests/transforms/jit/test_tiers.py", "tests/transforms"],
    "transforms": ["tests/transforms"],
    "control": ["tests/control", "tests/transforms/checkpoint/test_checkpoint.py"],
    "spmd": ["tests/spmd", "tests/primitives/test_collectives.py"],
    "numpy": ["tests/numpy", "tests/grid/test_grid.py", "tests/recorded"],
    "lax": ["tests/lax", "tests/grid/test_grid.py"],
    "scipy": ["tests/scipy", "tests/recorded", "tests/grid/test_grid.py"],
    "derivatives": ["tests/derivatives"],
    "export": ["tests/export"],
    "distributed": ["tests/distributed", "tests/backends/processes"],
    "checkpointing": ["tests/checkpointing", "tests/docs/test_clusters_page.py"],
    "compat": ["tests/compat", "tests/public/test_documented_names.py"],
    "experimental": ["tests/experimental", "tests/transforms/checks"],
    "random": ["tests/random", "tests/recorded"],
    "nn": ["tests/nn", "tests/grid/test_grid.py"],
    "ragged": ["tests/ragged"],
    "testing": ["tests/testing", "tests/top_level/test_test_util.py"],
    "extend": ["tests/extend"],
    "analysis": ["tests/analysis"],
    "bench": ["tests/bench"],
    "interpreters": ["tests/interpreters"],
    "display": ["tests/display", "tests/top_level/test_drawing.py"],
    "example_libraries": ["tests/example_libraries"],
    "": ["tests/top_level", "tests/public"],
}  # fmt: skip
"""For each room of the house, the tests that should notice; the longest prefix of a file's path counts."""
MOST_IMPORTS = 8
"""A file that more tests import is a tool for most of them."""
LEAST_WEIGHT = 0.25
"""A test is near that uses a name which at most four files of tests use, or several names that are not as rare."""
MOST_BY_NAMES = 4


def room_of(file: str) -> str:
    """The room that a file of the source is in."""
    return max((room for room in ROOMS if not room or file.startswith(room + "/")), key=len)


def folder_of(file: str) -> str:
    """The folder of tests that is nearest to a file of the source."""
    rooms = [room.as_posix() for room in Path(file).parents if room.name] or ["top_level"]
    return next(f"tests/{room}" for room in rooms if (ROOT / "tests" / room).is_dir())


@cache
def _nodes() -> dict[str, list[ast.AST]]:
    """The syntax of each file of tests, by its path; the cases over devices are with the test that starts them."""
    folder = ROOT / "tests"
    texts = {path.relative_to(ROOT).as_posix(): path.read_text() for path in sorted(folder.rglob("test_*.py"))}
    texts["tests/spmd/test_over_devices.py"] += "".join(path.read_text() for path in folder.glob("spmd/cases_*.py"))
    return {test: list(ast.walk(ast.parse(text))) for test, text in texts.items()}


@cache
def _imported() -> dict[str, set[str]]:
    """The modules that each file of tests imports, and what it imports from them, by their whole names."""
    found: dict[str, set[str]] = {}
    for test, nodes in _nodes().items():
        imported = found[test] = set()
        for node in nodes:
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@cache
def _used() -> dict[str, set[str]]:
    """The names that each file of tests uses of others: it imports them, or they are attributes, or strings."""
    found: dict[str, set[str]] = {}
    for test, nodes in _nodes().items():
        used = found[test] = {name.rpartition(".")[2] for name in _imported()[test]}
        for node in nodes:
            if isinstance(node, ast.Attribute):
                used.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                used.add(node.value)
    return found


@cache
def _frequencies() -> Counter[str]:
    """How many files of tests use each name."""
    return Counter(name for names in _used().values() for name in names)


def _of_its_name(file: str) -> list[str]:
    """Tests in the folder of a file's room whose names begin with that of the file, and elsewhere those of its name."""
    path = Path(file)
    own = f"{folder_of(file)}/test_{path.stem}"
    here = [test for test in _nodes() if re.fullmatch(rf"{own}(_\w+)?s?\.py", test)]
    return [*here, *(test for test in _nodes() if Path(test).stem == f"test_{path.stem}" and test not in here)]


def _importing(file: str) -> list[str]:
    """Tests that import a file, or something from it, if these are few."""
    module = ".".join(Path("pullback", file).with_suffix("").parts).removesuffix(".__init__")
    found = [test for test, imported in _imported().items() if module in imported]
    return found if len(found) <= MOST_IMPORTS else []


def _defined(file: str) -> set[str]:
    """The names that a file defines for others."""
    found = set()
    for node in ast.parse((SOURCE / file).read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return {name for name in found if not name.startswith("_")}


def _using(file: str) -> list[str]:
    """The tests for its room that use most of the names that a file defines, of which a rare one counts more."""
    names = _defined(file) & _frequencies().keys()
    weights = {test: sum(1 / _frequencies()[name] for name in names & used) for test, used in _used().items()}
    of_room = tuple(ROOMS[room_of(file)])
    found = [test for test, weight in weights.items() if weight >= LEAST_WEIGHT and test.startswith(of_room)]
    return sorted(found, key=lambda test: -weights[test])[:MOST_BY_NAMES]


def near(file: str) -> list[str]:
    """The examples of a file, whose path is from ``src/pullback``, and the tests that are nearest to it."""
    examples = [f"src/pullback/{file}"] if ">>> " in (SOURCE / file).read_text() else []
    tests = [*_of_its_name(file), *_importing(file), *_using(file)]
    return list(dict.fromkeys([*examples, *(tests or [folder_of(file)])]))


def noticing(file: str) -> list[str]:
    """Whatever should notice a fault in a file: what is near, then the tests of its room."""
    return list(dict.fromkeys([*near(file), *ROOMS[room_of(file)]]))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python tests/which.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, help="files of src/pullback")
    parser.add_argument("--all", action="store_true", help="the tests of their rooms too")
    chosen = parser.parse_args(arguments)
    found: list[str] = []
    for path in map(Path.resolve, chosen.files):
        if not (path.is_relative_to(SOURCE) and path.suffix == ".py" and path.is_file()):
            parser.error(f"{path} is no Python file of {SOURCE}")
        file = path.relative_to(SOURCE).as_posix()
        found += noticing(file) if chosen.all else near(file)
    print(*dict.fromkeys(found), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
