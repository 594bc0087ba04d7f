"""The script that reads libraries for private names of JAX, on small sources of its own; and refused names."""

from __future__ import annotations

import importlib
import io
import subprocess
import sys
import tarfile
import threading
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pullback.compat import refusals
from tests.helpers import ROOT

FOLDER = ROOT / "ecosystem"


@pytest.fixture(scope="module")
def scan() -> Any:
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module("private_names")
    sys.path.remove(str(FOLDER))


LIBRARY = """
from __future__ import annotations
import typing
import jax
import jax.extend as jex
from jax import core
from jax._src import config as switches, core as inner
from jax._src.util import safe_map as walk
from . import core as own
if typing.TYPE_CHECKING:
    from jax._src.core import NeverImported
else:
    from jax.core import Tracer

def f(x: jax.core.Jaxpr):
    return inner.Primitive.bind(x), jax.numpy.sin(x), jex.core.jaxpr_as_fun(x), switches.enable_x64.value

def g(inner):
    return inner.no_name_of_jax, own.also_none
"""

JAX = {
    "jax/__init__.py": "from jax._src.api import jit as jit",
    "jax/core.py": "from jax._src.core import Tracer as Tracer\n_gone = {'Jaxpr': 1}\nif Tracer:\n    import x as y",
    "jax/_src/__init__.py": "",
    "jax/_src/core.py": "class Tracer[T]: pass\nPrimitive: type = object\nfrom jax._src.config import *",
    "jax/_src/config.py": "a, (b, enable_x64) = 1, 2\ndef update(): pass",
    "jax/_src/lax/__init__.py": "from jax._src import config as config_lib",
    "jax/extend/core/__init__.py": "def jaxpr_as_fun(): pass",
}


def test_names_in_a_library(scan: Any) -> None:
    found = {
        use.name: (use.file, use.line) for use in scan.uses_in([("lib/a.py", LIBRARY), ("lib/b.py", "import jax(")])
    }
    assert set(found) == {
        "jax.core", "jax.extend", "jax._src.config", "jax._src.core", "jax._src.util.safe_map", "jax.core.Tracer",
        "jax.core.Jaxpr", "jax._src.core.Primitive.bind", "jax.extend.core.jaxpr_as_fun",
        "jax._src.config.enable_x64.value",
    }  # fmt: skip
    assert found["jax.core.Jaxpr"] == ("lib/a.py", 15)


@pytest.mark.parametrize("path", ["lib/tests/a.py", "lib/a_test.py", "lib/test_a.py", "conftest.py", "examples/a.py"])
def test_tests_are_not_read(scan: Any, path: str) -> None:
    assert scan.TESTS.search(path)
    assert not scan.TESTS.search("lib/testing_of_things/latest.py")
    assert not scan.uses_in([(path, LIBRARY)])


@pytest.mark.parametrize("room", ["jax._src", "jax.core", "jax.interpreters", "jax.extend"])
def test_only_files_with_the_words_of_a_room_are_parsed(scan: Any, room: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed, parse = [], scan.ast.parse
    monkeypatch.setattr(
        scan.ast, "parse", lambda text, *more, **named: parsed.append(text) or parse(text, *more, **named)
    )
    word = room.removeprefix("jax.")
    used, other = f"from jax import {word} as own\nown.name", f"import jax\njax.numpy.sin.{word}_of_others"
    assert room in scan.ROOMS
    assert {use.name for use in scan.uses_in([("a.py", used), ("b.py", other)])} == {room, f"{room}.name"}
    assert parsed == [used]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="JAX's sources have the syntax of Python 3.12")
def test_names_of_jax(scan: Any) -> None:
    sources = scan.Sources(JAX.items())
    has = ["jax.core.Tracer", "jax.core.Jaxpr", "jax._src.core.b", "jax._src.core.update", "jax._src.lax"]
    assert all(map(sources.has, [*has, "jax._src.lax.config_lib.enable_x64", "jax.core.y"]))
    assert not any(
        map(sources.has, ["jax.core.nothing", "jax._src.nothing", "jax._src.nothing.at_all", "jax.core.Tracer.x"])
    )
    assert sources.shortened("jax._src.core.Primitive.bind") == "jax._src.core.Primitive"
    assert sources.shortened("jax._src.lax.config_lib.enable_x64.value") == "jax._src.lax.config_lib.enable_x64"


def test_archives(scan: Any, tmp_path: Path) -> None:
    wheel, source = tmp_path / "a_b-1.2-py3-none-any.whl", tmp_path / "a-b-1.3.tar.gz"
    with zipfile.ZipFile(wheel, "w") as box:
        box.writestr("a/b.py", "x = 1")
        box.writestr("a/b.txt", "no")
    with tarfile.open(source, "w:gz") as tar:
        member = tarfile.TarInfo("a-b-1.3/a/b.py")
        member.size = 5
        tar.addfile(member, io.BytesIO(b"x = 2"))
    releases = scan.releases
    assert list(releases.python_files(wheel)) == [("a/b.py", "x = 1")]
    assert list(releases.python_files(source)) == [("a/b.py", "x = 2")]
    assert [releases.version_of(path) for path in releases.archives(tmp_path)] == ["1.3", "1.2"]
    (tmp_path / "a-b").mkdir()
    kept = wheel.rename(tmp_path / "a-b" / wheel.name)
    assert releases.fetched("a-b", folder=tmp_path) == kept


def test_archives_are_fetched_together_and_come_in_order(scan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    releases, all_have_begun = scan.releases, threading.Barrier(3, timeout=30)

    def fetched(library: str, **options: Any) -> Path:
        all_have_begun.wait()
        if library == "b":
            raise releases.ReleaseError("none of b")
        return Path(library)

    monkeypatch.setattr(releases, "fetched", fetched)
    found = dict(releases.fetched_all(["c", "b", "a"]))
    assert list(found) == ["c", "b", "a"]
    assert (found["c"], found["a"], str(found["b"])) == (Path("c"), Path("a"), "none of b")


@pytest.mark.parametrize("source", [False, True])
def test_only_the_library_itself_is_fetched_as_source(
    scan: Any, source: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ``--no-binary :all:`` pip compiles the tools as well that a source distribution is built with."""
    commands: list[list[str]] = []

    def run(command: list[str], **options: Any) -> Any:
        commands.append(command)
        return subprocess.CompletedProcess(command, 1, "", "no such release")

    monkeypatch.setattr(scan.releases.subprocess, "run", run)
    with pytest.raises(scan.releases.ReleaseError, match="no such release"):
        scan.releases.fetched("few==1.0", source=source, folder=tmp_path)
    assert commands[-1][-2:] == ["--no-binary", "few"]
    assert len(commands) == 2 - source
    assert all("few==1.0" in command for command in commands)


def test_the_list_of_libraries(scan: Any) -> None:
    listed = scan.releases.libraries()
    assert listed == sorted(set(listed), key=listed.index)
    assert {"optax", "tensorflow-probability", "distrax", "dynamax", "quax", "jax-md", "s2fft", "brax"} <= set(listed)


def test_the_page(scan: Any) -> None:
    use = scan.Use("jax.core.a", "f.py", 3)
    used = {"jax.core.a": {"optax": use, "quax": use}, "jax.core.b": {"quax": use}}
    verdicts = {"jax.core.a": ("served", ""), "jax.core.b": ("refused", "jax.jit")}
    text = scan.page(used, verdicts, {"optax": "0.2.8", "quax": "0.5"}, "0.12.0.1")
    assert "**2 names: 1 served, 1 refused, 0 not in JAX, 0 open.**" in text
    assert "| `jax.core.a` | optax, quax |\n" in text
    assert "| `jax.core.b` | quax | jax.jit |\n" in text
    assert "optax 0.2.8, quax 0.5" in text


def test_the_page_of_the_newest_releases() -> None:
    """`make private-names PRIVATE_NAMES_ARGS=--page` writes it; here what it says of Pullback is looked at again."""
    rows: dict[str, list[str]] = {}
    for line in (ROOT / "docs" / "private_names.md").read_text().splitlines():
        if line.startswith("## "):
            rows[line[3:]] = []
        elif line.startswith("| `"):
            rows[list(rows)[-1]].append(line.split("`")[1])
    code = "import sys; sys.path.insert(0, 'ecosystem'); import private_names, pullback.compat\n"
    code += "pullback.compat.install(); print([n for n in sys.argv[1:] if not private_names.is_served(n)])"
    done = subprocess.run([sys.executable, "-c", code, *rows["Served"]], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "[]\n", done.stderr
    assert all(map(refusals.advice, rows["Refused"]))


def test_refused_names_say_what_to_use() -> None:
    for name, advice in refusals._ADVICE.items():
        assert name.startswith("jax.")
        assert advice.strip() == advice
        assert len(advice) > 10
    code = "import pullback.compat; pullback.compat.install()\n"
    code += "try: from jax._src.clusters import SlurmCluster\nexcept ImportError as error: print(error)\n"
    code += "import jax._src.lax.lax as lax\n"
    code += "try: lax.standard_primitive\nexcept AttributeError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    first, second = done.stdout.splitlines()
    assert first.endswith(
        "'clusters': Pullback replaces jax here, and refuses it; use " + refusals.advice("jax._src.clusters")
    )
    assert "'standard_primitive': " in second
    assert "use jax.lax.dot_general and" in second


def test_what_is_added_to_a_module_hides_none_of_its_names() -> None:
    """A module is served from `compat/extras` first: what a file there imports must not stand before public names."""
    hidden = []
    for path in sorted((ROOT / "src" / "pullback" / "compat" / "extras").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
        ours = name.replace("pullback.compat.extras", "pullback", 1)
        extra = importlib.import_module(name)
        try:
            public = None if "._src" in name else importlib.import_module(ours)
        except ModuleNotFoundError:
            continue
        for shared in sorted(set(vars(extra)) & {n for n in dir(public) if n[0] != "_"}):
            found = vars(extra)[shared]
            if found is not getattr(public, shared) and not isinstance(found, ModuleType):
                hidden.append(f"{name}.{shared}")
    assert not hidden
