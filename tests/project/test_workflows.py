"""What GitHub runs: pinned actions, the least permissions, no text of strangers in scripts, targets of the Makefile."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.helpers import ROOT

FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))
pytestmark = pytest.mark.skipif(not WORKFLOWS, reason="the source distribution is without the files of GitHub")
every = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def scripts(text: str) -> list[str]:
    """The scripts of a workflow: what follows each ``run:``, in its line or indented below it."""
    found = re.findall(r"^( *)(?:- )?run: (.*)\n((?:\1 +.*\n|\n)*)", text, re.MULTILINE)
    return [rest if first == "|" else first for _, first, rest in found]


def targets() -> set[str]:
    """The targets of the Makefile; ``%`` stands for a name."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return {name for line in re.findall(r"^([\w%. -]+):(?!=)", text, re.MULTILINE) for name in line.split()}


@every
def test_permissions_are_the_least(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "\npermissions:\n  contents: read\n\n" in text
    granted = re.findall(r"^ +([a-z-]+): write\b", text, re.MULTILINE)
    assert granted == (["id-token", "attestations"] if path.stem == "release" else [])
    assert "pull_request_target" not in text
    assert "secrets." not in text
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")


@every
def test_actions_are_pinned_by_hashes(path: Path) -> None:
    used = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    assert used
    assert not [line for line in used if not re.fullmatch(r"[\w./-]+@[\da-f]{40} # v\d+\.\d+\.\d+", line)]


def test_an_action_has_one_version() -> None:
    used = {line for path in WORKFLOWS for line in re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))}
    names = [line.partition("@")[0] for line in used]
    assert len(set(names)) == len(names)


@every
def test_scripts_have_no_expressions(path: Path) -> None:
    """They get values by the environment: an expression would be a part of the program."""
    found = scripts(path.read_text(encoding="utf-8"))
    assert found
    assert not [script for script in found if "${{" in script]


def test_scripts_are_found() -> None:
    text = "  - run: a\n  - name: b\n    run: |\n      c\n\n      d\n    env:\n      e: f\n"
    assert scripts(text) == ["a", "      c\n\n      d\n"]


@every
def test_jobs_end(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("runs-on:") == text.count("timeout-minutes:") > 0


@every
def test_targets_of_the_makefile(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = {name for script in scripts(text) for name in re.findall(r"\bmake ([a-z][\w-]*)", script)}
    for line in re.findall(r"^ +target: \[(.*)\]", text, re.MULTILINE):
        named |= set(line.split(", "))
    known = [re.escape(target).replace("%", r"[\w.]+") for target in targets()]
    assert not {name for name in named if not any(re.fullmatch(pattern, name) for pattern in known)}


def test_the_matrix_has_the_pythons_of_the_project() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (line,) = re.findall(r"^ +python: \[(.*)\]", (FOLDER / "tests.yml").read_text(encoding="utf-8"), re.MULTILINE)
    claimed = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    assert re.findall(r"[\d.]+", line) == [*claimed, "3.14"]


def test_hooks_are_those_of_make_lint() -> None:
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert lint is not None
    hooks = re.findall(r"entry: (.*)", (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert len(hooks) == 3
    for hook in hooks:
        assert hook.replace(" --force-exclude", "") in lint[1]


def test_the_container_of_development() -> None:
    described = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    command, target = described["postCreateCommand"].split()
    assert command == "make"
    assert re.fullmatch(r"\.venv/dev\.stamp", target)
    assert "\n%/dev.stamp:" in (ROOT / "Makefile").read_text(encoding="utf-8")
