"""Plants each fault of ``mutants.py`` in a copy of the source, and runs the tests that have to find it.

``make mutants`` runs all; ``python tests/mutants NAME ...`` runs some. The unmutated copy has to pass the same tests
first. The exit status is 1 if it does not, or if more than two mutants survive.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutants import MUTANTS, ROOT, Mutant

PROCESSES = 2
SECONDS = 180
"""A mutant that takes longer than this is killed too: it hangs."""
ALLOWED = 2
"""How many mutants may survive."""


def _run(command: Sequence[str], directory: Path, seconds: float | None) -> tuple[int | None, str]:
    """The exit status of a command that imports the copy in a directory, None if it took too long; and its output."""
    scratch = directory / "scratch"
    scratch.mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": str(directory / "src"),
        "PULLBACK_TEST_CACHE": str(scratch / "programs"),
        "XDG_CACHE_HOME": str(scratch),
        "TMPDIR": str(scratch),
    }
    try:
        done = subprocess.run(
            [sys.executable, *command], cwd=ROOT, env=environment, timeout=seconds, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        return None, str(error)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return done.returncode, done.stdout


def _copied(directory: Path) -> None:
    """Copy the source, with its byte code, which stays valid for all files but the one that is changed."""
    shutil.copytree(ROOT / "src", directory / "src")


def _pytest(tests: Sequence[str]) -> list[str]:
    return ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", *tests]


def _check_unmutated(mutants: Sequence[Mutant]) -> str | None:
    """What is wrong with the copy or the selections themselves, or None."""
    with tempfile.TemporaryDirectory(prefix="pullback-mutants-") as name:
        directory = Path(name)
        _copied(directory)
        status, output = _run(["-c", "import pullback; print(pullback.__file__)"], directory, None)
        if status or not Path(output.strip()).is_relative_to(directory):
            return f"the copy of the source is not what is imported, but {output}"
        tests = sorted({test for mutant in mutants for test in mutant.tests})
        status, output = _run(_pytest(tests), directory, None)
        return f"the tests fail without a mutant:\n{output}" if status else None


def _verdict(mutant: Mutant) -> tuple[bool, str]:
    """Whether a mutant is killed, and by what."""
    with tempfile.TemporaryDirectory(prefix="pullback-mutants-") as name:
        directory = Path(name)
        _copied(directory)
        mutant.apply(directory)
        status, output = _run(_pytest(mutant.tests), directory, SECONDS)
    if status is None:
        return True, f"killed: over the limit of {SECONDS} seconds"
    if status == 0:
        return False, "SURVIVED"
    failed = [line.split()[1] for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return True, f"killed by {failed[0] if failed else f'exit status {status}'}"


def main(names: Sequence[str]) -> int:
    unknown = set(names) - {mutant.name for mutant in MUTANTS}
    if unknown:
        print(f"there are no mutants {', '.join(sorted(unknown))}")
        return 1
    mutants = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    wrong = _check_unmutated(mutants)
    if wrong:
        print(wrong)
        return 1
    survivors = []
    with ThreadPoolExecutor(PROCESSES) as pool:
        for mutant, (killed, verdict) in zip(mutants, pool.map(_verdict, mutants), strict=True):
            print(f"{mutant.name:44} {verdict}", flush=True)
            if not killed:
                survivors.append(mutant)
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} mutants are killed")
    for mutant in survivors:
        print(f"\n{mutant.name} survived, in {mutant.file}:\n- {mutant.old}\n+ {mutant.new}")
    return int(len(survivors) > ALLOWED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
