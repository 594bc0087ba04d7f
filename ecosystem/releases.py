"""Releases of libraries: fetched from the package registry by pip, and read as archives, without installing them."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent / "build" / "releases"
"""Where archives are kept. A library whose archive is there is not fetched again."""

AT_ONCE = 8
"""How many archives are fetched at the same time: a registry answers slowly, and pip waits for it."""

NEWEST_PYTHON = "3.13"
"""Wheels are fetched for this version of Python, so that a release that needs it is found from an older one too."""


PIP = [str(Path(sys.base_prefix, "bin", "python3")), "-m", "pip", "--disable-pip-version-check"]
"""The pip of the interpreter that made this environment, which may have none."""


class ReleaseError(RuntimeError):
    """The registry has no archive of a library that pip can fetch."""


def libraries(path: Path = HERE / "libraries.txt") -> list[str]:
    """Return the distributions that a list has, one a line; lines that begin with ``#`` are comments."""
    return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip() and line[0] != "#"]


def fetched(library: str, *, source: bool = False, renew: bool = False, folder: Path = FOLDER) -> Path:
    """Return the archive of a library's newest release: its wheel, or its source distribution.

    Args:
      library: the name of the distribution; ``name==version`` for another release than the newest.
      source: whether the source distribution is wanted, even if there is a wheel.
      renew: whether the registry is asked again though an archive is in the folder.
      folder: where archives are kept.

    Raises:
      ReleaseError: pip fetched none.
    """
    here = folder / f"{library}{'-source' if source else ''}"
    kept = [] if renew else archives(here)
    if kept:
        return kept[-1]
    command = [*PIP, "download", "--quiet", "--no-deps", library]
    wheel = ["--only-binary", ":all:", "--python-version", NEWEST_PYTHON]
    # Of this library alone: pip would also build from source what is needed to read the metadata of the distribution.
    only_source = ["--no-binary", re.split(r"[=<>~!\[]", library)[0]]
    tries = [only_source] if source else [wheel, only_source]
    before = set(archives(here))
    for options in tries:
        ended = subprocess.run([*command, "--dest", str(here), *options], capture_output=True, text=True)
        if ended.returncode == 0:
            for old in before & set(archives(here)):
                if len(archives(here)) > 1:
                    old.unlink()
            return archives(here)[-1]
    raise ReleaseError(f"pip fetched no archive of {library}: {ended.stderr.strip().splitlines()[-1:]}")


def fetched_all(
    libraries: Sequence[str], *, renew: bool = False, folder: Path = FOLDER
) -> Iterator[tuple[str, Path | ReleaseError]]:
    """Yield each library with the archive of its newest release, or the error, in order; fetch ``AT_ONCE`` at a time.

    Args:
      libraries: the names of the distributions.
      renew: whether the registry is asked again though an archive is in the folder.
      folder: where archives are kept.
    """

    def tried(library: str) -> Path | ReleaseError:
        try:
            return fetched(library, renew=renew, folder=folder)
        except ReleaseError as error:
            return error

    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from zip(libraries, pool.map(tried, libraries), strict=True)


def archives(folder: Path) -> list[Path]:
    """Return the archives in a folder: wheels and source distributions."""
    return sorted(path for path in folder.glob("*") if path.name.endswith((".whl", ".tar.gz", ".zip")))


def version_of(archive: Path) -> str:
    """Return the version in the name of an archive.

    >>> version_of(Path("optax-0.2.8-py3-none-any.whl")), version_of(Path("mctx-0.0.71.tar.gz"))
    ('0.2.8', '0.0.71')
    """
    name = re.sub(r"\.(whl|zip|tar\.gz)$", "", archive.name)
    return name.split("-")[1] if archive.suffix == ".whl" else name.rpartition("-")[2]


def python_files(archive: Path) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each Python file in an archive; a source distribution's paths lose its folder."""
    if archive.name.endswith(".tar.gz"):
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.isfile() and member.name.endswith(".py"):
                    file = tar.extractfile(member)
                    assert file is not None
                    yield member.name.partition("/")[2], file.read().decode("utf-8", "replace")
    else:
        with zipfile.ZipFile(archive) as box:
            for name in box.namelist():
                if name.endswith(".py"):
                    yield name, box.read(name).decode("utf-8", "replace")
