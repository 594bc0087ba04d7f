"""Check the users' programs of ``tests/typed`` by the type checkers ty and pyrefly: each finds the mistakes alone.

``make typecheck`` runs this in an environment of its own, which has the two. The programs say by comments for mypy and
pyright in which lines their mistakes are. Here they are checked without these comments, and a checker has to find
errors in these lines and in no others.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "tests" / "typed"
IGNORED = re.compile(r"  # (?:type|pyright): ignore\[.*")
FOUND = re.compile(r"^(?:ERROR )?(\S+\.py):(\d+):[\d:-]+:? (?:error\b)?(.*)$", re.MULTILINE)
"""A line of a report: a file, a line, columns, and a message."""
Place = tuple[str, int]


def copied(folder: Path) -> dict[str, set[Place]]:
    """Copy the programs without comments for checkers; return the lines that each checker has to find mistakes in.

    A mistake with a comment for pyright alone is one that mypy cannot see, and pyrefly, which treats
    ``functools.partial`` as mypy does, cannot either.
    """
    expected: dict[str, set[Place]] = {"ty": set(), "pyrefly": set()}
    for path in sorted(PROGRAMS.glob("*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            if IGNORED.search(line):
                expected["ty"].add((path.name, number))
                if "# type: ignore[" in line:
                    expected["pyrefly"].add((path.name, number))
        text = "\n".join(IGNORED.sub("", line) for line in lines)
        (folder / path.name).write_text(f"{text}\n", encoding="utf-8")
    return expected


def command(checker: str, python: Path, folder: Path) -> list[str]:
    """Return the command that checks the programs in ``folder`` with the libraries of the interpreter ``python``."""
    program = str(Path(sys.executable).with_name(checker))
    source = str(ROOT / "src")
    if checker == "ty":
        options = ["--python", str(python), "--extra-search-path", source, "--output-format", "concise"]
        return [program, "check", *options, str(folder)]
    options = ["--preset", "default", "--python-interpreter-path", str(python), "--search-path", source]
    return [program, "check", *options, "--output-format", "min-text", str(folder)]


def errors(report: str) -> dict[Place, str]:
    """Return the errors of a checker's report by file and line."""
    return {(Path(file).name, int(line)): message.strip() for file, line, message in FOUND.findall(report)}


def compared(checker: str, expected: set[Place], found: dict[Place, str]) -> list[str]:
    """Return a line for each mistake that was not found, and for each error where there is none."""
    missed = [f"{checker} finds no mistake in {file}:{line}" for file, line in sorted(expected - found.keys())]
    others = sorted((place, message) for place, message in found.items() if place not in expected)
    return missed + [f"{checker}: {file}:{line}: {message}" for (file, line), message in others]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, default=ROOT / ".venv/bin/python", help="has the libraries")
    python = parser.parse_args(arguments).python.absolute()
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for checker, expected in copied(Path(folder)).items():
            done = subprocess.run(
                command(checker, python, Path(folder)), capture_output=True, text=True, cwd=folder, check=False
            )
            found = errors(done.stdout)
            if not found:
                print(done.stdout, done.stderr, file=sys.stderr)
            wrong += compared(checker, expected, found)
            print(f"{checker}: {len(expected)} mistakes, {len(expected & found.keys())} of them found")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
