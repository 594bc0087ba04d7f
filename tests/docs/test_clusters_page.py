"""The page that goes from a laptop to a cluster: its program, its scripts and its manifest."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import ROOT

TEXT = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
PROGRAMS = [block for kind, block in BLOCKS if kind == "python"]
COMMANDS = [block.strip() for kind, block in BLOCKS if kind == "sh"]


def parameters(command: str, folder: Path, **variables: str) -> list[float]:
    """The parameters that a command of the page ends with, in the folder of its program."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **variables}
    command = re.sub(r"\bpython\b", sys.executable, command)
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"after step 200 the parameters are \[(.*?)\]", done.stdout)
    assert found
    assert len(set(found)) == 1, "all processes have the same"
    return [float(x) for x in found[0].split()]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="the commands are for a shell of POSIX")
def test_the_program_on_one_device_on_several_and_in_several_processes(tmp_path: Path) -> None:
    program = PROGRAMS[0]
    (tmp_path / "train.py").write_text(program)
    run = [command for command in COMMANDS if re.search(r"^(PULLBACK_NUM_CPU_DEVICES=4 )?python ", command)]
    assert len(run) == 4
    alone, *others = [parameters(command, tmp_path) for command in run]
    for other in others:
        assert other == pytest.approx(alone, rel=1e-4)
    stop = "import os, sys\nstop = 5 + 100 * int(os.environ['PULLBACK_RESTART'])\n"
    interrupted = program.replace("    step += 1\n", "    step += 1\n    if step == stop: sys.exit(3)\n")
    interrupted = interrupted.replace("import sys\n", stop, 1)
    assert interrupted.count("stop") == 2
    (tmp_path / "train.py").write_text(interrupted)
    shutil.rmtree(tmp_path / "run-4")
    assert parameters(run[-1], tmp_path) == others[-1], "a run that fails twice ends with the same bits"


@pytest.mark.slow
@pytest.mark.parametrize(("library", "program", "said"), [("distributed", 1, "[200, 200]"), ("ray", 2, "[200, 200]")])
def test_the_programs_on_dask_and_ray(library: str, program: int, said: str, tmp_path: Path) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    (tmp_path / "train.py").write_text(PROGRAMS[0])
    (tmp_path / "program.py").write_text(PROGRAMS[program])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=500,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert said in done.stdout
    assert "[1] after step 200 the parameters are" in done.stdout + done.stderr, "what the processes print comes back"


@pytest.mark.skipif(shutil.which("sh") is None, reason="there is no shell here")
@pytest.mark.parametrize("command", COMMANDS, ids=range(len(COMMANDS)))
def test_the_commands_are_valid(command: str) -> None:
    done = subprocess.run(["sh", "-n"], input=command, capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_manifest_follows_the_schema_of_kubernetes() -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    yaml = pytest.importorskip("yaml")
    (manifest,) = [block for kind, block in BLOCKS if kind == "yaml"]
    parts = list(yaml.safe_load_all(manifest))
    assert [part["kind"] for part in parts] == ["Service", "ServiceAccount", "Role", "RoleBinding", "Job"]
    for part in parts:
        validate.validate(part, "1.30", strict=True)
    parts[-1]["spec"]["completionMod"] = "Indexed"
    with pytest.raises(validate.ValidationError):
        validate.validate(parts[-1], "1.30", strict=True)
