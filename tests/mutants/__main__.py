"""Plants each fault of ``mutants.py`` in a copy of the source, and runs the tests that have to find it.

``make mutants`` runs all; ``python -m tests.mutants NAME ...`` runs some. The unmutated copy has to pass the same tests
first. The exit status is 1 if it does not, or if more than two mutants survive.

``python -m tests.mutants --random 60 --seed 0`` plants faults that are drawn at random (``random_faults.py``), runs
what should notice each (``tests/which.py``), and prints those that survive; ``--first K`` begins with number K of the
seed. Whether a survivor changes anything is for the reader to say: many do not, or change only how long it takes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.mutants import MUTANTS, ROOT, Mutant
from tests.mutants.random_faults import Fault, drawn
from tests.which import noticing

PROCESSES = 2
SECONDS = 180
"""A mutant that takes longer than this is killed too: it hangs."""
SECONDS_OF_A_ROOM = 1500
"""The same for the tests of a room; a test that hangs fails before (``tests/helpers.py``)."""
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
    with tempfile.TemporaryDirectory(prefix="pullback-mutants-", ignore_cleanup_errors=True) as name:
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
    with tempfile.TemporaryDirectory(prefix="pullback-mutants-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        _copied(directory)
        mutant.apply(directory)
        status, output = _run(_pytest(mutant.tests), directory, SECONDS)
    if status is None:
        return True, f"killed: over the limit of {SECONDS} seconds"
    if status == 0:
        return False, "SURVIVED"
    return True, f"killed by {_failed(output) or f'exit status {status}'}"


def _failed(output: str) -> str | None:
    """The first test that an output of pytest names as failed."""
    lines = [line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return lines[0].split(" ", 1)[1].split(" - ")[0] or None if lines else None  # spaces are within the names of cases


def _verdict_of_random(fault: Fault) -> tuple[bool, str]:
    """Whether a random fault is killed, and by what; a test that fails without it as well kills nothing."""
    with tempfile.TemporaryDirectory(prefix="pullback-mutants-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        _copied(directory)
        path = directory / "src" / "pullback" / fault.file
        text = path.read_text()
        path.write_text(fault.applied(text))
        # The examples in docstrings are those of the copy: elsewhere they would be another module of the same name.
        tests = [str(directory / t) if t.startswith("src/") else t for t in noticing(fault.file)]
        options = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)]
        status, output = _run([*_pytest(tests), *options], directory, SECONDS_OF_A_ROOM)
        if status in (0, None):
            return False, "SURVIVED" if status == 0 else f"no verdict in {SECONDS_OF_A_ROOM} seconds"
        failed = _failed(output)
        if failed is None:  # nothing could be imported
            return True, f"killed by exit status {status}"
        path.write_text(text)
        again = 0 if failed.startswith("::") else _run([*_pytest([failed]), *options], directory, SECONDS)[0]
    return (True, f"killed by {failed}") if again == 0 else (False, f"{failed} fails without the fault too")


def _random(count: int, seed: int, first: int) -> int:
    """Run faults that are drawn at random, and show those that survive."""
    faults = drawn(first + count, seed)[first:]
    survivors = []
    with ThreadPoolExecutor(PROCESSES) as pool:
        for k, (fault, (killed, verdict)) in enumerate(zip(faults, pool.map(_verdict_of_random, faults), strict=True)):
            print(f"{first + k:3} {str(fault)[:100]:100} {verdict}", flush=True)
            if not killed:
                survivors.append(fault)
    print(f"{len(faults) - len(survivors)} of {len(faults)} faults of seed {seed} are killed")
    for fault in survivors:
        line = (ROOT / "src" / "pullback" / fault.file).read_text().splitlines()[fault.line - 1]
        print(f"\n{fault}\n  {line.strip()}")
    return 0


def _planted(names: Sequence[str]) -> int:
    """Run the faults of the table, or some of them."""
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


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="of faults of the table; all by default")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="draw N faults at random instead")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, metavar="K", help="begin with number K of the random ones")
    chosen = parser.parse_args(arguments)
    return _random(chosen.random, chosen.seed, chosen.first) if chosen.random else _planted(chosen.names)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
