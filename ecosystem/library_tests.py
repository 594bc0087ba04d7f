"""Run the tests of a library that was written for JAX, by Pullback, in an environment without JAX.

python ecosystem/library_tests.py [--count N] [--seed N] [--seconds N] [--fresh] [--checkout FOLDER] LIBRARY
    [PYTEST ARGUMENTS ...]
python ecosystem/library_tests.py --page

The source with the tests is the newest release's source distribution, or a checkout of the library's repository. The
library is installed from it, with what it needs and what its tests need, in ``build/library-tests/LIBRARY``.
``library_tests.json`` has the counts, and ``docs/library_tests.md`` shows them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import types
from collections.abc import Mapping
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

import releases

ROOT = releases.HERE.parent
FOLDER = ROOT / "build" / "library-tests"
RECORDED = releases.HERE / "library_tests.json"
PAGE = ROOT / "docs" / "library_tests.md"
UV = ROOT / ".venv-pins" / "bin" / "python"
"""A Python that has uv, which `make library-tests` installs."""

OF_TESTS = ("test", "tests", "testing", "dev", "develop")
"""The names of extras and groups of requirements for tests: the first that a library has is taken."""

NEEDS = {
    "chex": ["dm-tree"],
    "optax": ["dm-haiku", "flax", "dm-tree"],
    "distrax": ["dm-haiku", "mock"],
    "dm-haiku": ["dill", "mock", "dm-tree", "optax", "chex", "flax"],
    "equinox": ["optax", "beartype"],
    "rlax": ["dm-haiku", "dm-env", "optax"],
    "keras": ["tensorflow", "grain", "pandas", "scikit-learn", "pillow"],
    "tinygp": ["numpyro"],
    "numpyro": ["graphviz", "optax", "dm-haiku", "flax", "funsor"],
}
"""What tests import beyond what a library says."""

VARIABLES = {"keras": {"KERAS_BACKEND": "jax"}}
"""Variables of the environment by which a library computes with JAX."""

MARKED = re.compile(r"(^|/)(test_(?!utils?\.py)[^/]*|[^/]*_test)\.py$")
BESIDE = re.compile(r"(examples?|docs?(_[^/]*)?|benchmarks?|build)/")
"""Folders beside a library: their tests need packages that the library does not ask for, and often have equal names. In
a checkout, an installation leaves copies in ``build``."""


def tests_in(source: Path) -> list[str]:
    """Return the files of tests in a source distribution, as pytest names them, by their paths."""
    found = [path.relative_to(source).as_posix() for path in source.rglob("*.py")]
    return sorted(path for path in found if MARKED.search(path) and ".venv" not in path and not BESIDE.match(path))


def requirements_of(source: Path) -> tuple[str, list[str]]:
    """Return the extra that a source distribution has for its tests, or "", and its groups and files of such packages.

    Args:
      source: the unpacked source distribution, or a checkout.
    """
    metadata, project = source / "PKG-INFO", source / "pyproject.toml"
    said = tomllib.loads(project.read_text(encoding="utf-8")) if project.exists() else {}
    if metadata.exists():
        extras = HeaderParser().parsestr(metadata.read_text(encoding="utf-8")).get_all("Provides-Extra") or []
    else:
        extras = [*said.get("project", {}).get("optional-dependencies", {})]
    extra = next((name for name in OF_TESTS if name in extras), "")
    groups = said.get("dependency-groups", {})
    group = next((name for name in OF_TESTS if name in groups), "")
    packages = members(groups, group) if group and not extra else []
    for path in sorted(source.rglob("*requirements*.txt")):
        if re.search(r"test", path.relative_to(source).as_posix()):
            lines = [line.split(" #")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
            packages += [line for line in lines if re.match(r"[A-Za-z0-9]", line) and "://" not in line]
    return extra, packages


def members(groups: dict[str, list[Any]], name: str) -> list[str]:
    """Return the packages of a group of requirements, with those of the groups that it includes."""
    found: list[str] = []
    for item in groups[name]:
        found += members(groups, item["include-group"]) if isinstance(item, dict) else [item]
    return found


def unpacked(archive: Path, folder: Path) -> Path:
    """Unpack a source distribution in a folder; return where it is."""
    source = folder / "source"
    shutil.rmtree(source, ignore_errors=True)
    with tarfile.open(archive) as tar:
        tar.extractall(source, filter="data")
    (inner,) = source.iterdir()
    return inner


def environment(library: str, archive: Path, source: Path, folder: Path) -> Path:
    """Make an environment with a library, what it needs and what its tests need, and Pullback instead of JAX.

    Args:
      library: the name of the library.
      archive: its source distribution, or a checkout. A build in the unpacked one would leave copies of tests there.
      source: the same, unpacked.
      folder: where the environment is made.

    Returns:
      Its Python.
    """
    python = folder / "venv" / "bin" / "python"
    print(f"{library}: installing it and what its tests need in {folder / 'venv'}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", folder / "venv"], check=True)
    never = folder / "never.txt"  # uv takes these requirements for all that name the packages: none holds
    never.write_text("jax ; sys_platform == 'never'\njaxlib ; sys_platform == 'never'\n", encoding="utf-8")
    extra, packages = requirements_of(source)
    wanted = [f"{library}{f'[{extra}]' if extra else ''} @ {archive.as_uri()}", *packages, *NEEDS.get(library, [])]
    install = [UV, "-m", "uv", "pip", "install", "--no-progress", "--python", python]
    pins = ROOT / "requirements"
    subprocess.run([*install, "--no-deps", "-r", pins / "runtime.txt"], check=True)
    subprocess.run([*install, "--no-deps", "--no-build-isolation", "--editable", ROOT], check=True)
    plain = [name for name in wanted if not re.match(r"(jax|jaxlib|pullback)\b(?!-)", name)]
    bounds = ["--constraint", pins / "runtime.txt", "--constraint", pins / "dev.txt", "--override", never]
    subprocess.run([*install, *bounds, "pytest", "absl-py", *plain], check=True)
    return python


def counted(report: dict[str, Any]) -> dict[str, int]:
    """Return how many tests were collected, and how many passed, failed, were skipped, or could not be collected.

    >>> counted({"collected": 9, "outcomes": {"a": ["passed", ""], "b": ["failed", "no"], "c": ["passed", ""]}})
    {'collected': 9, 'passed': 2, 'failed': 1, 'skipped': 0, 'error': 0}
    """
    outcomes = [outcome for outcome, _ in report["outcomes"].values()]
    names = ("passed", "failed", "skipped", "error")
    return {"collected": report["collected"], **{name: outcomes.count(name) for name in names}}


def run(
    python: Path,
    source: Path,
    folder: Path,
    options: dict[str, Any],
    arguments: list[str],
    variables: Mapping[str, str] = types.MappingProxyType({}),
) -> dict[str, Any]:
    """Run tests of a library by Pullback, and return the plugin's report of them.

    Args:
      python: the Python of the library's environment.
      source: the library's source, in which the tests run.
      folder: where the report and pytest's output are written.
      options: those of the plugin ``sampling``.
      arguments: for pytest: files, and options of the library's.
      variables: variables of the environment that the library's tests need.
    """
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    (folder / "pytest.ini").touch()  # for a library without options for pytest, which would take those of Pullback
    paths = os.pathsep.join([str(releases.HERE), os.environ.get("PYTHONPATH", "")])
    variables = {
        **os.environ, **variables, "JAX_PLATFORMS": "cpu", "PYTHONPATH": paths,
        "LIBRARY_TESTS": json.dumps({**options, "report": str(report)}),
    }  # fmt: skip
    command = [
        python, "-m", "pullback", "run", "-m", "pytest", "-q", "-p", "sampling", "-p", "no:cacheprovider",
        "-o", "addopts=", "--continue-on-collection-errors", *(arguments or tests_in(source)),
    ]  # fmt: skip
    print(f"the tests run, for at most {options['seconds']:.0f} seconds; see {folder / 'output.txt'}", flush=True)
    with (folder / "output.txt").open("w", encoding="utf-8") as output:
        limit = options["seconds"] + 600
        try:
            subprocess.run(command, cwd=source, env=variables, stdout=output, stderr=output, timeout=limit)
        except subprocess.TimeoutExpired:
            output.write(f"\nended after {limit:.0f} seconds\n")
    if not report.exists():
        raise SystemExit(f"pytest wrote no report; see {folder / 'output.txt'}")
    found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return found


HEAD = """\
# Tests of JAX's libraries

`make library-tests LIBRARY=optax` runs the tests of a library by Pullback: it fetches the source distribution of the
newest release, installs the library with what its tests need in an environment without JAX, and runs pytest by
`python -m pullback run -m pytest`. By default it runs a sample of 40 tests, with `LIBRARY_TESTS_ARGS="--count 0"` all
of them.

An error is a file that could not be imported. The last column says why tests fail that should pass. Examples and
documentation beside a library are left out: their tests need packages that the library does not ask for.

| library | version | tests | run | passed | failed | errors | skipped | why |
|---|---|---|---|---|---|---|---|---|
"""
REPOSITORIES = """
## Tests of repositories

The source distributions of these libraries have no tests: {bare}. A checkout of a library's repository has them.
`make library-tests LIBRARY=equinox LIBRARY_TESTS_ARGS="--checkout ../equinox"` runs the tests of the checkout, and
installs the library from it. The version is the checkout's.

| library | version | tests | run | passed | failed | errors | skipped | why |
|---|---|---|---|---|---|---|---|---|
"""


def page(recorded: dict[str, Any]) -> str:
    """Return the text of the page: a row for each library, and the sums, of source distributions and of checkouts."""
    runs = {library: entry for library, entry in recorded.items() if "counts" in entry}
    bare = ", ".join(f"{library} {entry['no tests']}" for library, entry in recorded.items() if "no tests" in entry)
    checkouts = {library: entry for library, entry in runs.items() if entry.get("checkout")}
    said = HEAD + _rows({library: entry for library, entry in runs.items() if library not in checkouts})
    return said + REPOSITORIES.format(bare=bare) + _rows(checkouts) if bare else said


def _rows(entries: dict[str, Any]) -> str:
    """Return the rows of a table of libraries, and a sentence with the sums."""
    said, total = "", [0, 0]
    for library, entry in entries.items():
        collected, passed, failed, skipped, error = entry["counts"].values()
        total = [total[0] + passed + failed, total[1] + passed]
        cells = [library, entry["version"], collected, passed + failed, passed, failed, error, skipped]
        said += f"| {' | '.join(map(str, cells))} | {entry.get('why', '')} |\n"
    return said + f"\n{total[1]} of {total[0]} tests of {len(entries)} libraries pass.\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="run the tests of a library by Pullback")
    parser.add_argument("library", nargs="?", help="the library, as the package registry names it")
    parser.add_argument("--count", type=int, default=40, help="how many tests are run, chosen at random; 0 for all")
    parser.add_argument("--seed", type=int, default=0, help="of the choice")
    parser.add_argument("--seconds", type=float, default=600, help="after which no further test begins")
    parser.add_argument("--record", type=Path, default=RECORDED, help="the file of counts")
    parser.add_argument("--checkout", type=Path, help="a checkout of the library's repository, whose tests run")
    parser.add_argument("--fresh", action="store_true", help="make the environment anew")
    parser.add_argument("--page", action="store_true", help="write docs/library_tests.md from what is recorded")
    given, arguments = parser.parse_known_args()
    recorded: dict[str, Any] = json.loads(given.record.read_text(encoding="utf-8")) if given.record.exists() else {}
    if given.page:
        PAGE.write_text(page(recorded), encoding="utf-8")
        return 0
    if given.library is None:
        parser.error("name a library")
    folder = FOLDER / given.library
    folder.mkdir(parents=True, exist_ok=True)
    entry = recorded.get(given.library, {})
    if given.checkout:
        archive = source = given.checkout.resolve()
        version = subprocess.run(
            ["git", "describe", "--tags", "--always"], cwd=source, capture_output=True, text=True, check=True
        ).stdout.strip()
    else:
        print(f"{given.library}: fetching the source distribution", flush=True)
        archive = releases.fetched(given.library, source=True).resolve()
        source, version = unpacked(archive, folder), releases.version_of(archive)
        if not tests_in(source):
            recorded[given.library] = {**entry, "no tests": version}
            _write(recorded, given.record)
            raise SystemExit(f"the source distribution of {given.library} {version} has no tests: name a --checkout")
    python = folder / "venv" / "bin" / "python"
    done = folder / "installed"
    if given.fresh or not done.exists() or done.read_text(encoding="utf-8") != version:
        python = environment(given.library, archive, source, folder)
        done.write_text(version, encoding="utf-8")
    options = {"count": given.count, "seed": given.seed, "seconds": given.seconds}
    report = run(python, source, folder, options, arguments, VARIABLES.get(given.library, {}))
    counts = counted(report)
    for test, (outcome, why) in report["outcomes"].items():
        if outcome in ("failed", "error"):
            print(f"{outcome}: {test}\n    {why}")
    print(f"{given.library} {version}: " + ", ".join(f"{n} {what}" for what, n in counts.items()))
    if not arguments:  # a sample of all tests
        said = {**entry, "version": version, "counts": counts}
        recorded[given.library] = {**said, "checkout": True} if given.checkout else said
        _write(recorded, given.record)
    return 0


def _write(recorded: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(dict(sorted(recorded.items())), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
