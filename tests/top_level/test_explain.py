"""Each error has an explanation, whose first program raises it and whose second one runs."""

from __future__ import annotations

import builtins
import contextlib
import doctest
import io
import pickle
import re
import socket
import subprocess
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from setuptools import Distribution
from setuptools.command.build_py import build_py

import pullback.compat
import pullback.numpy as jnp
from pullback import commands, errors, explain
from pullback.core import errors as core
from pullback.core.config import config
from pullback.core.source import hide_when_uncaught
from tests.helpers import ROOT

WITHOUT_A_PROGRAM = {
    "PullbackError": "only its subclasses are raised",
    "JAXTypeError": "only its subclasses are raised",
    "JAXIndexError": "only its subclasses are raised",
    "CheckError": "only its subclasses are raised",
    "JaxRuntimeError": "the runtime fails in a way that Pullback does not know",
    "ExecutionError": "a device or a foreign function fails",
    "ProcessLostError": "it takes several processes",
    "ProcessMismatchError": "it takes several processes",
    "MissingLibraryError": "it depends on what is installed",
    "RendererError": "it depends on what is installed",
    "CompatError": "it depends on what is installed",
    "CompilationCacheWarning": "it depends on the file system",
    "ForkWarning": "a forked process issues it",
    "LeftRunningWarning": "it takes Ctrl-C",
}
"""The errors that no short program of one process raises everywhere."""
OF_A_PROCESS = ("num_cpu_devices", "distributed.initialize")
"""What a program says that has to be the first in its process."""
NAMES = [name for name in errors.__all__ if name not in WITHOUT_A_PROGRAM]
ALONE = [name for name in NAMES if any(text in explain.explanation(name).failing for text in OF_A_PROCESS)]


def run(program: str) -> None:
    """Run a program as Python runs a file; a warning is an error."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(program, "<program>", "exec", dont_inherit=True), {"__name__": "__main__"})


@contextlib.contextmanager
def same_switches() -> Iterator[None]:
    """Undo what a program changes in the configuration."""
    before = config.values
    try:
        yield
    finally:
        for name, value in config.values.items():
            if value != before[name]:
                config.update(name, before[name])


def test_each_error_has_an_explanation() -> None:
    written = {path.stem for path in (ROOT / "src" / "pullback" / "explanations").iterdir()}
    assert written == set(errors.__all__)
    assert len(written) > 95
    without = {name for name in written if not explain.explanation(name).failing}
    assert without == set(WITHOUT_A_PROGRAM)
    for name in written:
        found = explain.explanation(name)
        assert found.cause
        assert found.cure
        assert bool(found.failing) == bool(found.mended)
        assert found.failing != found.mended or not found.failing


def test_explanations_name_what_there_is() -> None:
    for name in errors.__all__:
        prose = explain.FENCED.sub("", explain.text_of(name))
        for found in re.findall(r"`((?:jnp|lax|pullback|random|tree_util)\.[\w.]+)(?:\([^`]*\))?`", prose):
            module, *attributes = found.split(".")
            value = {"pullback": pullback, "jnp": jnp}.get(module) or getattr(pullback, module)
            for attribute in attributes:
                value = getattr(value, attribute)
        for found in re.findall(r"`([A-Z]\w+(?:Error|Warning))`", prose):
            assert found in errors.__all__ or hasattr(builtins, found)


def test_each_error_is_in_the_tree_and_has_a_docstring() -> None:
    for name in errors.__all__:
        assert f" {name} " in (core.__doc__ or "") or f"\n{name}\n" in (core.__doc__ or "")
        assert vars(getattr(errors, name))["__doc__"]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ALONE])
def test_the_first_program_fails_and_the_second_one_runs(name: str) -> None:
    kind = getattr(errors, name)
    with same_switches():
        with pytest.raises(kind) as caught:
            run(explain.explanation(name).failing)
        assert core.where_explained(caught.value).endswith(f" {name}"), "it raises a subclass"
        run(explain.explanation(name).mended)


def by_itself(program: str) -> str:
    """Run a program in a process of its own, and return what it writes as errors."""
    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]
    program = program.replace("localhost:1234", f"localhost:{port}")
    command = [sys.executable, "-W", "error", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False).stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ALONE)
def test_programs_of_several_devices_or_processes(name: str) -> None:
    found = explain.explanation(name)
    failed = by_itself(found.failing).splitlines()
    assert f"pullback.core.errors.{name}: " in "\n".join(failed)
    assert failed[-1] == f"For more: python -m pullback explain {name}"
    assert by_itself(found.mended) == ""


# The command ---------------------------------------------------------------------------------------------------------


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("ShapeError", "shapeerror", "pullback.errors.ShapeError"):
        assert commands.main(["explain", name]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith("pullback.errors.ShapeError\nA kind of TypeError and ValueError.\n\nShapes or ")
        assert "\n    points * weights[:, None]\n" in shown
        assert "```" not in shown
    assert commands.main(["explain", "ShapError"]) == 2
    assert capsys.readouterr().err.endswith(": there is no error 'ShapError'. Did you mean ShapeError?\n")
    assert commands.main(["explain", "keyerror"]) == 2
    assert capsys.readouterr().err.endswith(" explain: KeyError is an error of Python.\n")
    assert commands.main(["explain", "AttributeError"]) == 2
    names = "MissingCustomRuleError, MissingMethodError, UnsupportedAttributeError"
    of_this_kind = f"Errors of Pullback that are of this kind: {names}.\n"
    assert capsys.readouterr().err.endswith(f": AttributeError is an error of Python. {of_this_kind}")
    assert commands.main(["explain", "zzz"]) == 2
    assert capsys.readouterr().err.endswith("Without a name, this command lists them.\n")
    assert commands.main(["explain"]) == 0
    shown = capsys.readouterr().out
    assert "├── ShapeError (TypeError, ValueError)" in shown
    assert shown.count("ShapeError, this command explains it") == 1
    assert "``" not in shown


@pytest.mark.parametrize("name", errors.__all__)
def test_explanations_fit_a_terminal(name: str) -> None:
    assert max(map(len, explain.of_command_line(name).splitlines())) <= 120


def test_explanations_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    distribution = Distribution({"packages": ["pullback"], "package_dir": {"": "src"}})
    distribution.parse_config_files(["pyproject.toml"])
    build = build_py(distribution)
    build.finalize_options()
    files = {package: found for package, _, _, found in build.get_data_files_without_manifest()}
    assert {str(Path("explanations", f"{name}.md")) for name in errors.__all__} <= {*files["pullback"]}


# What messages say of it ---------------------------------------------------------------------------------------------


def shape_error() -> errors.ShapeError:
    with pytest.raises(errors.ShapeError) as caught:
        jnp.ones(3) + jnp.ones(4)
    return caught.value


def test_errors_that_are_caught_say_nothing_more() -> None:
    error = shape_error()
    shown = "".join(traceback.format_exception(error))
    assert "For more" not in str(error) + shown
    assert not hasattr(error, "__notes__")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    text = f">>> raise error\nTraceback (most recent call last):\n    ...\npullback.core.errors.ShapeError: {error}\n"
    example = doctest.DocTestParser().get_doctest(text, {"error": error}, "example", None, None)
    assert not doctest.DocTestRunner().run(example).failed


def test_errors_that_nothing_catches_name_their_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", lambda *args: traceback.print_exception(*args, file=shown))
    hide_when_uncaught()
    error = shape_error()
    error.add_note("a note of the user's")
    for _ in range(2):
        shown = io.StringIO()
        sys.excepthook(type(error), error, error.__traceback__)
        assert shown.getvalue().endswith("\na note of the user's\nFor more: python -m pullback explain ShapeError\n")
    for other in (ValueError("1"), pullback.errors.PullbackError("1")):
        shown = io.StringIO()
        sys.excepthook(type(other), other, None)
        assert "explain" not in shown.getvalue()


@pytest.mark.parametrize(
    ("program", "advice"),
    [
        ("x.detach()", "Arrays of Pullback do not have detach: pullback.lax.stop_gradient(x) has no derivative, and "),
        ("jit(lambda x: x.numpy())(x)", "Arrays of Pullback do not have numpy: np.asarray(x) is a NumPy array."),
        (
            "x.fill(3)",
            "Arrays of Pullback do not have fill: arrays do not change: jnp.full_like(x, value) is a new one.",
        ),
        ("x.exp()", "pullback.numpy.exp is a function: write exp(x)."),
        ("grad(lambda x: x.relu().sum())(x)", "pullback.nn.relu is a function: write relu(x)."),
        ("x.no_such_name", "AttributeError: 'ArrayImpl' object has no attribute 'no_such_name'"),
        ("from pullback.numpy import relu", "relu; pullback.nn has it."),
        (
            "from pullback.numpy import no_such_name",
            "ImportError: cannot import name 'no_such_name' from 'pullback.numpy'",
        ),
        ("from math import softmax", "ImportError: cannot import name 'softmax' from 'math'"),
        ("().exp", "AttributeError: 'tuple' object has no attribute 'exp'"),
    ],
)
def test_attributes_that_arrays_lack(program: str, advice: str) -> None:
    said = by_itself(f"from pullback import grad, jit, numpy as jnp\nx = jnp.ones(3)\n{program}\n").splitlines()
    assert said[-1].startswith(advice)


def test_the_address_of_the_site_is_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "SITE", "https://example.org/")
    assert core.where_explained(errors.AxisError("1")) == (
        "For more: python -m pullback explain AxisError, "
        "or https://example.org/reference/pullback.errors.AxisError.html"
    )


class Special(errors.ShapeError):
    """A subclass of a user's."""


def test_a_subclass_is_explained_by_its_base() -> None:
    assert core.where_explained(Special("1")).endswith(" ShapeError")
    error = core.of_host_function("pure_callback", "f", KeyError("a"))
    assert core.where_explained(error).endswith(" HostFunctionError")
