"""The commands ``info`` and ``cache``, programs from standard input, aliases, and the console script ``pullback``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import pullback
from pullback import commands, launch
from pullback.__main__ import main, script
from pullback.core.command_name import command_name
from pullback.core.config import override
from pullback.errors import BackendError
from tests.helpers import ROOT

MODEL = """\
import beside_random
import pullback.numpy as jnp


def loss(w):
    return jnp.sum(w * beside_random.SCALE)
"""


def script_of(*arguments: str, folder: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run the console script in a process of its own, in ``folder``; ``text`` is its standard input."""
    program = folder / "bin" / "pullback"
    program.parent.mkdir(exist_ok=True)
    program.write_text("import sys\nfrom pullback.__main__ import script\nsys.exit(script())\n")
    command = [sys.executable, str(program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100, cwd=folder, input=text)


def installed() -> metadata.Distribution:
    """The installed distribution; the test is skipped where there is none, or that of another source tree."""
    try:
        found = metadata.distribution("pullback")
    except metadata.PackageNotFoundError:
        pytest.skip("the package is not installed")
    origin = json.loads(found.read_text("direct_url.json") or "{}").get("url")
    if origin not in (None, ROOT.as_uri()):
        pytest.skip(f"what is installed comes from {origin}")
    return found


def test_the_console_script_is_the_one_of_the_distribution() -> None:
    (entry,) = installed().entry_points.select(group="console_scripts", name="pullback")
    assert entry.load() is script


def test_the_version_of_the_distribution_is_that_of_the_package() -> None:
    assert installed().version == pullback.__version__


def test_the_console_script_finds_modules_here_and_has_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def loss(w):\n    return w * 2\n")
    done = script_of("show", "model:loss", "--args", "f32[]", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "mul" in done.stdout
    done = script_of("show", "loss", folder=tmp_path)
    assert (done.returncode, done.stderr[:14]) == (2, "pullback show:")
    done = script_of("run", "--help", folder=tmp_path)
    assert done.stdout.startswith("usage: pullback run [--report] PROGRAM [ARGUMENTS]\n       pullback run ")


def test_a_program_from_standard_input(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("SCALE = 2\n")
    text = "import sys, jax, beside\nprint(sys.argv, __name__, jax.numpy.ones(2) * beside.SCALE)\n1 / 0\n"
    done = script_of("run", "-", "one", "--two", folder=tmp_path, text=text)
    assert done.stdout == "['-', 'one', '--two'] __main__ [2. 2.]\n"
    assert done.returncode == 1
    assert done.stderr.splitlines()[:2] == [
        "Traceback (most recent call last):",
        '  File "<stdin>", line 3, in <module>',
    ]


def test_a_program_that_is_missing_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "nosuch.py"]) == 2
    message = f"python -m pullback run: there is no program 'nosuch.py' here, in {os.getcwd()}\n"
    assert capsys.readouterr() == ("", message)


def test_the_name_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    for argv, name in (
        (["/usr/bin/pullback"], "pullback"),
        (["pullback.exe"], "pullback"),
        (["/lib/pullback/__main__.py"], "python -m pullback"),
        ([], "python -m pullback"),
    ):
        monkeypatch.setattr(sys, "argv", argv)
        assert command_name() == name


def test_a_misspelt_command(capsys: pytest.CaptureFixture[str]) -> None:
    for given, end in (
        ("expalin", "there is no command 'expalin'. Did you mean explain?\n"),
        ("zzz", "'completion')\n"),
    ):
        with pytest.raises(SystemExit):
            commands.main([given])
        assert capsys.readouterr().err.endswith(end)


def test_no_command_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("usage: python -m pullback")
    assert all(f"\n    {name} " in out for name in ("show", "launch", "run", "info", "cache"))


def test_info(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["info"]) == 0
    assert capsys.readouterr().out == f"{pullback.print_environment_info(return_string=True)}\n"

    def fail(*_: object) -> None:
        raise BackendError("no compiler here")

    monkeypatch.setattr("pullback.environment.devices", fail)
    assert main(["info"]) == 0
    assert "\ndevices: none: no compiler here\n" in capsys.readouterr().out


def test_the_cache_is_described_and_emptied(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "programs"
    with override("compilation_cache_dir", str(folder)):
        assert main(["cache"]) == 0
        assert capsys.readouterr().out == f"directory: {folder}\nprograms: 0\nsize: 0 bytes\n"
        folder.mkdir(0o700)
        (folder / f"{1:064x}").write_bytes(b"abc")
        (folder / f"{2:064x}").write_bytes(b"de")
        (folder / f"{2:064x}.{3:016x}.tmp").write_bytes(b"fghi")
        (folder / "other").write_bytes(b"jklmn")
        assert main(["cache"]) == 0
        assert capsys.readouterr().out == f"directory: {folder}\nprograms: 2\nsize: 5 bytes\n"
        assert main(["cache", "--clear"]) == 0
        assert capsys.readouterr().out == f"directory: {folder}\nremoved: 2\nprograms: 0\nsize: 0 bytes\n"
        assert [path.name for path in folder.iterdir()] == ["other"]
    with override("enable_compilation_cache", False):
        assert main(["cache"]) == 0
        assert capsys.readouterr().out.startswith("directory: none, because the cache is off")


def test_a_function_of_a_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])
    (tmp_path / "beside_random.py").write_text("SCALE = 3.0\n")
    path = tmp_path / "random.py"  # and the module random stays
    path.write_text(MODEL)
    assert main(["show", f"{path}:loss", "--args", "f32[3]"]) == 0
    assert "3.0" in capsys.readouterr().out
    assert not hasattr(__import__("random"), "loss")
    assert main(["show", f"{path}:los", "--args", "f32[3]"]) == 2
    assert capsys.readouterr().err.endswith("is it 'loss'?\n")
    assert main(["show", f"{tmp_path / 'nothing.py'}:loss"]) == 2
    assert "show: the file " in capsys.readouterr().err
    path.write_text("x = 1\ny = x / 0\n")
    assert main(["show", f"{path}:loss"]) == 2
    assert capsys.readouterr().err.endswith(f"ZeroDivisionError: division by zero (line 2 of {path})\n")


@pytest.mark.parametrize("options", [["-n", "2"], ["-n2"], ["--processes", "2"], ["--processes=2"], ["-n=2"]])
def test_the_number_of_processes(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[object, ...]] = []
    monkeypatch.setattr(launch, "launch", lambda *given: called.append(given) or 7)
    assert commands.main(["launch", *options, "--grace", "1", "program.py", "-n", "3"]) == 7
    assert called == [(["program.py", "-n", "3"], 2, None, None, 1.0, 0)]


def test_the_memory_of_a_function_by_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("import pullback.numpy as jnp\n\ndef loss(w, x):\n    return jnp.sum(jnp.tanh(x @ w))\n")
    asked = ["profile", "--memory", f"{path}:loss", "--args", "f32[64,64], f32[1000,64]", "--transform", "grad"]
    assert main([*asked, "--compiled"]) == 0
    out = capsys.readouterr().out
    assert "predicted peak 256 kB, at model.py:4 loss" in out
    assert "measured (compiled): peak " in out
    path.write_text(
        "import sys\nimport pullback.numpy as jnp\nfrom pullback import jit\nx = jnp.ones((1000, 64))\n"
        "y = jnp.sin(x)\n\n@jit\ndef f(x):\n    return jnp.sum(jnp.exp(x) @ jnp.ones((64, 64)))\n\n"
        "assert __name__ == '__main__'\nz = f(y)\n"
    )
    assert main(["profile", "--memory", str(path)]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert "at model.py:12" in rows[0]
    assert {row.split("  ")[-1].strip() for row in rows[1:]} >= {"model.py:5 <module>"}
    assert any("within model.py:12" in row for row in rows)
    assert any("512 kB" in row for row in rows)  # x, which no operation makes, and its sine
    assert main(["profile", "--memory", str(path), "--transform", "grad"]) == 2
    assert main(["profile", "--memory", f"{path}:los"]) == 2
    assert capsys.readouterr().err.startswith("python -m pullback profile: ")
