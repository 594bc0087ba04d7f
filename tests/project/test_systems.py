"""What Linux, macOS or Windows lacks is named in one module of the source, ``core/systems.py``.

The stubs of the standard library that mypy brings say which names each system has.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.helpers import ROOT

SOURCE = ROOT / "src" / "pullback"
SYSTEMS = ("linux", "darwin", "win32")
ANSWERS = SOURCE / "core" / "systems.py"


def stub_of(module: str) -> Path | None:
    spec = importlib.util.find_spec("mypy")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / "typeshed" / "stdlib" / module.replace(".", "/")
    return next((p for p in (path.with_suffix(".pyi"), path / "__init__.pyi") if p.exists()), None)


def may_hold(test: ast.expr, system: str) -> bool:
    """Whether a condition of a stub may hold on a system, in some version of Python."""
    if isinstance(test, ast.BoolOp):
        combine = all if isinstance(test.op, ast.And) else any
        return combine(may_hold(part, system) for part in test.values)
    if isinstance(test, ast.Compare) and ast.unparse(test.left) == "sys.platform":
        assert isinstance(test.comparators[0], ast.Constant)
        return (test.comparators[0].value == system) == isinstance(test.ops[0], ast.Eq)
    return True


def declared(body: list[ast.stmt], system: str) -> Iterator[str]:
    """The names that the statements of a stub declare on a system."""
    for statement in body:
        match statement:
            case ast.If():
                if may_hold(statement.test, system):
                    yield from declared(statement.body, system)
                mentions = "sys.platform" in ast.unparse(statement.test)
                if not mentions or not may_hold(statement.test, system):
                    yield from declared(statement.orelse, system)
            case ast.FunctionDef() | ast.ClassDef():
                yield statement.name
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Assign():
                yield from (target.id for target in statement.targets if isinstance(target, ast.Name))
            case ast.ImportFrom():
                yield from (name.asname for name in statement.names if name.asname is not None)


@cache
def lacking(module: str) -> frozenset[str] | None:
    """The names of a module that one of the systems lacks; None if one lacks the module."""
    stub = stub_of(module)
    if stub is None:
        return frozenset()
    body = ast.parse(stub.read_text(encoding="utf-8")).body
    names = [{name for name in declared(body, system) if name != "__all__"} for system in SYSTEMS]
    if any(names) and not all(names):
        return None
    return frozenset(set.union(*names) - set.intersection(*names))


OPTIONS = {"creationflags", "pass_fds", "preexec_fn", "process_group", "start_new_session", "startupinfo", "umask"}
"""Options of ``subprocess`` that one of the systems ignores or refuses."""
PLACES = re.compile(r"/(?:dev|etc|proc|sys|tmp|usr|var)(?:/|$)|.*\.(?:so(?:\.\d+)?|dylib|dll)$")
"""Files of one system."""
ASKS_FOR_A_NAME = {("sys", "platform"), ("os", "name"), ("platform", "system")}


def imported(nodes: list[ast.AST]) -> dict[str, str]:
    """The modules that a file imports, by the names that it has for them."""
    found = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for name in node.names:
                found[name.asname or name.name.partition(".")[0]] = name.name
    return found


def docstrings(nodes: list[ast.AST]) -> set[ast.AST]:
    return {node.value for node in nodes if isinstance(node, ast.Expr)}


def called(call: ast.Call) -> tuple[str, str]:
    """The module or object whose function is called, if it has a name, and the name of the function."""
    match call.func:
        case ast.Name(id=name):
            return "", name
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            return owner, name
        case ast.Attribute(attr=name):
            return "an object", name
    return "an object", ""


def reads_text(call: ast.Call) -> bool:
    """Whether a call opens a file, or a program's output, as text in the encoding that the system prefers."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if "encoding" in given:
        return False
    owner, name = called(call)
    if name in ("read_text", "write_text"):
        return owner != "systems"  # which writes to a stream
    if owner in ("gzip", "bz2", "lzma"):
        mode = given.get("mode", call.args[1] if len(call.args) > 1 else None)
        return isinstance(mode, ast.Constant) and "t" in str(mode.value)
    if owner == "subprocess":
        return "text" in given or "universal_newlines" in given
    if name in ("TextIOWrapper", "fdopen") or (name == "open" and owner in ("", "io")):
        mode = given.get("mode", call.args[1] if len(call.args) > 1 else None)
        return not (isinstance(mode, ast.Constant) and "b" in str(mode.value))
    return False


def assumptions(text: str) -> Iterator[tuple[int, str]]:
    """What a file of Python assumes of the system: lines, and words."""
    nodes = list(ast.walk(ast.parse(text)))
    modules, prose = imported(nodes), docstrings(nodes)
    for node in nodes:
        if not isinstance(node, ast.Import | ast.ImportFrom | ast.Attribute | ast.Call | ast.Constant):
            continue  # most nodes are of other kinds
        match node:
            case ast.Import():
                yield from ((node.lineno, name.name) for name in node.names if lacking(name.name) is None)
            case ast.ImportFrom(module=str(module), level=0):
                names = lacking(module)
                if names is None:
                    yield node.lineno, module
                else:
                    yield from ((node.lineno, f"{module}.{x.name}") for x in node.names if x.name in names)
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in modules:
                if name in (lacking(modules[owner]) or ()) or (modules[owner], name) in ASKS_FOR_A_NAME:
                    yield node.lineno, f"{owner}.{name}"
            case ast.Call(
                func=ast.Name(id="hasattr" | "getattr"), args=[ast.Name(id=owner), ast.Constant(value=name), *_]
            ):
                if name in (lacking(modules.get(owner, "")) or ()):
                    yield node.lineno, f"{owner}.{name}"
            case ast.Call(func=ast.Attribute(attr="CDLL" | "PyDLL"), args=[ast.Constant(value=None)]):
                yield node.lineno, "the library of the whole process"
            case ast.Constant(value=str(value)) if node not in prose and PLACES.match(value):
                yield node.lineno, value
            case ast.Call() if reads_text(node):
                yield node.lineno, f"{ast.unparse(node.func)} without an encoding"
        if isinstance(node, ast.Call) and called(node)[0] == "subprocess":
            yield from ((node.lineno, x.arg) for x in node.keywords if x.arg in OPTIONS)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("import fcntl", "fcntl"),
        ("import resource", "resource"),
        ("import msvcrt", "msvcrt"),
        ("from os import fork", "os.fork"),
        ("import os\nos.register_at_fork()", "os.register_at_fork"),
        ("import os\nhasattr(os, 'sched_getaffinity')", "os.sched_getaffinity"),
        ("import os\ngetattr(os, 'O_NOFOLLOW', 0)", "os.O_NOFOLLOW"),
        ("import os as system\nsystem.geteuid()", "system.geteuid"),
        ("import os\nos.name", "os.name"),
        ("import sys\nsys.platform", "sys.platform"),
        ("import signal\nsignal.SIGKILL", "signal.SIGKILL"),
        ("import signal\nsignal.CTRL_C_EVENT", "signal.CTRL_C_EVENT"),
        ("import time\ntime.clock_gettime(1)", "time.clock_gettime"),
        ("import socket\nsocket.AF_UNIX", "socket.AF_UNIX"),
        ("import mmap\nmmap.MAP_ANONYMOUS", "mmap.MAP_ANONYMOUS"),
        ("import ctypes\nctypes.windll", "ctypes.windll"),
        ("import ctypes\nctypes.CDLL(None)", "the library of the whole process"),
        ("import subprocess\nsubprocess.run([], pass_fds=())", "pass_fds"),
        ("x = open('/proc/self/stat', 'rb')", "/proc/self/stat"),
        ("x = 'xla_cuda_plugin.so'", "xla_cuda_plugin.so"),
        ("open(path)", "open without an encoding"),
        ("open(path, mode='w')", "open without an encoding"),
        ("import gzip\ngzip.open(path, 'rt')", "gzip.open without an encoding"),
        ("path.read_text()", "path.read_text without an encoding"),
        ("import subprocess\nsubprocess.run([], text=True)", "subprocess.run without an encoding"),
    ],
)
def test_assumptions_are_found(text: str, word: str) -> None:
    assert [found for _, found in assumptions(text)] == [word]


@pytest.mark.parametrize(
    "text",
    [
        '"""Reads /proc."""\nimport os\nos.getpid(), os.replace, os.urandom, os.O_RDONLY',
        "import signal\nsignal.SIGINT, signal.SIGTERM",
        "open(path, 'rb'), open(path, 'w', encoding='utf-8'), gzip.open(path)",
        "import ctypes\nctypes.CDLL('library'), ctypes.pythonapi",
    ],
)
def test_what_every_system_has_may_be_used(text: str) -> None:
    assert list(assumptions(text)) == []


def test_one_module_assumes_anything_of_the_system() -> None:
    assert len(list(assumptions(ANSWERS.read_text(encoding="utf-8")))) > 20
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {word}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path != ANSWERS
        for line, word in assumptions(path.read_text(encoding="utf-8"))
    ]
    assert found == []
