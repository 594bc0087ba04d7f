"""Programs written for JAX, started by ``python -m pullback run``, each in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import pullback

SEEN = "import jax, sys; print(sys.argv, __name__, jax.__version__, jax.numpy.arange(2).sum())"


def run(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pullback", "run", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=100)


def test_the_code_of_an_argument() -> None:
    done = run("-c", SEEN, "one", "--two")
    assert (done.stdout, done.stderr, done.returncode) == ("['-c', 'one', '--two'] __main__ 0.10.2 1\n", "", 0)


def test_a_file_with_neighbours_and_arguments(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("import jax.numpy as jnp\nX = jnp.ones(3)\n")
    (tmp_path / "program.py").write_text(f"import neighbour\n{SEEN}\nprint(neighbour.X)\nclass A: pass\n"
                                         "import pickle; print(type(pickle.loads(pickle.dumps(A()))))\n")  # fmt: skip
    done = run(str(tmp_path / "program.py"), "-c", "--report")
    assert done.stderr == ""
    path = str(tmp_path / "program.py")
    assert done.stdout.splitlines() == [f"[{path!r}, '-c', '--report'] __main__ 0.10.2 1", "[1. 1. 1.]",
                                        "<class '__main__.A'>"]  # fmt: skip


def test_a_module_and_its_arguments(tmp_path: Path) -> None:
    (tmp_path / "some_module.py").write_text(SEEN)
    done = run("-m", "some_module", "x", folder=tmp_path)
    assert done.stdout.endswith("some_module.py', 'x'] __main__ 0.10.2 1\n"), done.stderr


@pytest.mark.slow
def test_the_tests_of_a_project(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text("import jax\ndef test_x():\n    assert jax.numpy.cos(0.0) == 1\n"
                                        "def test_y():\n    assert not hasattr(jax, 'no_such')\n")  # fmt: skip
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", folder=tmp_path)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    command = [sys.executable, "-m", "pytest", "-p", "pullback.compat.pytest", "-p", "no:cacheprovider"]
    plugged = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert "2 passed" in plugged.stdout
    assert "served by Pullback" in plugged.stdout
    assert "jax.no_such" in plugged.stdout


def test_an_exception_is_shown_from_the_first_line_of_the_program_on(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import jax\ndef f(x):\n    raise KeyError(x)\njax.jit(f)(1.0)\n")
    done = run(str(program))
    assert done.returncode == 1
    assert done.stderr.splitlines()[:2] == [
        "Traceback (most recent call last):",
        f'  File "{program}", line 4, in <module>',
    ]
    assert "runpy" not in done.stderr
    assert "KeyError" in done.stderr


@pytest.mark.parametrize(
    ("code", "status"), [("exit(7)", 7), ("import sys; sys.exit()", 0), ("raise SystemExit('no')", 1)]
)
def test_the_status_that_a_program_asks_for(code: str, status: int) -> None:
    assert run("-c", code).returncode == status


def test_the_report_names_what_is_missing_and_where() -> None:
    done = run(
        "--report", "-c", "import jax\nhasattr(jax, 'rotate')\ntry:\n    import jax.turn\nexcept ImportError: pass"
    )
    assert done.returncode == 0
    lines = [line.split() for line in done.stderr.splitlines()[1:]]
    assert lines == [["jax.rotate", "<string>:2"], ["jax.turn", "<string>:4"]]
    assert run("--report", "-c", "import jax").stderr.startswith("Pullback has every name")


@pytest.mark.parametrize("arguments", [(), ("-m",), ("-c",), ("--no-such", "x.py")])
def test_what_makes_no_sense(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert "usage: python -m pullback run" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_program_that_there_is_not(tmp_path: Path) -> None:
    done = run(str(tmp_path / "nothing.py"))
    assert done.returncode == 2
    assert re.search(r"there is no program '.*nothing\.py' here, in ", done.stderr)
    assert "Traceback" not in done.stderr


def test_attributes_that_tools_look_for_are_not_reported() -> None:
    done = run("--report", "-c", "import jax\nhasattr(jax, '_mock_name')")
    assert done.stderr.startswith("Pullback has every name")


@pytest.mark.parametrize("name", ["map", "leaves", "flatten"])
def test_the_older_names_of_trees_say_the_newer_ones(name: str) -> None:
    done = run("-c", f"import jax\njax.tree_{name}")
    assert done.stderr.splitlines()[-1].endswith(f"; use jax.tree.{name}")
    with pytest.raises(AttributeError, match=rf"; use pullback\.tree\.{name}$"):
        getattr(pullback, f"tree_{name}")


def test_the_version_and_no_command() -> None:
    for options in (["--version"], []):
        done = subprocess.run([sys.executable, "-m", "pullback", *options], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        assert (done.stdout == f"pullback {pullback.__version__}\n") is bool(options)
        assert ("show the program of a function" in done.stdout) is not bool(options)


def test_help() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: python -m pullback run")


def test_a_star_brings_the_names_that_are_imported_late_too() -> None:
    names = "lax.__name__, nn.__name__, tree.__name__, random.__name__, custom_vjp.__name__"
    program = f"from jax import *\nprint({names}, grad(numpy.sin)(0.0))"
    done = subprocess.run(
        [sys.executable, "-m", "pullback", "run", "-c", program], capture_output=True, text=True, timeout=60
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("jax.lax jax.nn jax.tree jax.random custom_vjp 1.0\n", "")


def test_variables_of_jax_are_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is told by its surroundings to compute in 64 bits does so, or says why not."""
    code = (
        "import jax; print(jax.numpy.ones(2).dtype, jax.config.jax_debug_nans, jax.config.jax_threefry_partitionable)"
    )
    monkeypatch.setenv("JAX_ENABLE_X64", "True")
    monkeypatch.setenv("JAX_DEBUG_NANS", "1")
    assert run("-c", code).stdout == "float64 True True\n"
    monkeypatch.setenv("PULLBACK_ENABLE_X64", "0")  # outweighs it
    monkeypatch.setenv("JAX_THREEFRY_PARTITIONABLE", "0")
    assert run("-c", code).stdout == "float32 True False\n"
    monkeypatch.setenv("JAX_NUMPY_RANK_PROMOTION", "no such")
    done = run("-c", code)
    assert done.returncode == 2
    assert "JAX_NUMPY_RANK_PROMOTION must be one of" in done.stderr


def test_the_switches_that_variables_set_are_as_before_afterwards() -> None:
    code = (
        "import os, pullback.compat as c; os.environ['JAX_ENABLE_X64'] = '1'; s = pullback.config; c.install(); "
        "a = s.enable_x64, s.threefry_partitionable; c.uninstall(); print(a, s.enable_x64, s.threefry_partitionable)"
    )
    done = subprocess.run(
        [sys.executable, "-c", "import pullback; " + code], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "(True, True) False False\n"
