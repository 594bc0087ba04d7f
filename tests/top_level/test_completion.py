"""The scripts by which shells complete the command line."""

from __future__ import annotations

import builtins
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pullback import commands

SHELLS = ("bash", "zsh", "fish")


def script(shell: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The file of a shell's script; the test is skipped without the shell, or the library that writes the script."""
    pytest.importorskip("shtab")
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert commands.main(["completion", shell]) == 0
    path = folder / "_pullback"
    path.write_text(capsys.readouterr().out, encoding="utf-8")
    return path


def run(shell: str, program: str) -> list[str]:
    done = subprocess.run([shell, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(sys.platform == "win32", reason="the bash of Windows has paths of its own")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("pullback ca", "cache"),
        ("pullback show --tr", "--transform"),
        ("pullback show model:loss --as h", "hlo"),
        ("pullback bench --", "--help --only --json --no-progress"),
        ("pullback completion ", "bash zsh fish"),
        ("pullback launch --processes 2 prog", "program.py"),
        ("pullback run prog", "program.py"),
    ],
)
def test_bash(words: str, completed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = script("bash", tmp_path, capsys)
    (tmp_path / "program.py").touch()
    given = words.split(" ")
    array = " ".join(f"'{word}'" for word in given)
    program = f"cd '{tmp_path}'; source '{path}'; COMP_WORDS=({array}); COMP_CWORD={len(given) - 1}; "
    found = run("bash", f'{program} _shtab_pullback; printf "%s\\n" "${{COMPREPLY[@]}}"')
    assert set(completed.split()) <= set(found)
    assert all(word.startswith(given[-1]) for word in found)


def test_fish(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = script("fish", tmp_path, capsys)
    assert run("fish", f"source '{path}'; complete -C 'pullback ca'")[0] == "cache"
    assert run("fish", f"source '{path}'; complete -C 'pullback bench --js'")[0] == "--json"


def test_zsh(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The script is sound, and is the function of the command."""
    path = script("zsh", tmp_path, capsys)
    assert path.read_text(encoding="utf-8").startswith("#compdef pullback\n")
    assert run("zsh", f"zsh -n '{path}'") == []


def test_without_the_library(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    imported: Any = builtins.__import__

    def refuse(name: str, *arguments: Any, **more: Any) -> Any:
        if name == "shtab":
            raise ImportError(name)
        return imported(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert commands.main(["completion", "bash"]) == 2
    assert "`pip install 'pullback[completion]'` brings it" in capsys.readouterr().err
