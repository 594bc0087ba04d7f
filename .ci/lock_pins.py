"""Write the files of pins ``requirements/*.txt`` and ``ecosystem/*.txt``, with hashes, from the lists ``*.in`` there.

``make pins`` runs this in an environment of its own, which has uv. A list has what is wanted, and the file of pins also
what that brings in, on every platform and every Python of the project; each pin has the hashes of all files of that
version in the registry. Versions that were brought in before stay, unless ``--upgrade`` is given.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
OLDEST_PYTHON = "3.11"
TORCH = re.compile(r"torch$|cuda-|nvidia-|triton$")


class Pin(NamedTuple):
    """A package at a version.

    ``pinned`` is ``name==version``, ``marker`` says where it is installed, and ``comment`` what brings it in.
    """

    name: str
    pinned: str
    marker: str
    hashes: tuple[str, ...]
    comment: str = ""

    def lines(self) -> str:
        """Return the pin as it stands in a file."""
        head = f"{self.pinned} ; {self.marker}" if self.marker else self.pinned
        text = " \\\n    --hash=sha256:".join([head, *self.hashes])
        return f"{text}\n    {self.comment}\n" if self.comment else f"{text}\n"


class Lock(NamedTuple):
    """A file of pins.

    ``path`` is its path, and that of the list, both without suffix. ``on_runtime`` leaves the pins of the runtime to
    their own file, ``without_jax`` leaves out JAX and heeds no library's bounds on its compiler, ``torch_apart`` puts
    PyTorch with its libraries for GPUs into ``torch.txt``, and ``alone`` leaves out what the packages bring in.
    """

    path: str
    on_runtime: bool = True
    without_jax: bool = False
    torch_apart: bool = False
    alone: bool = False


RUNTIME, TORCH_PATH = "requirements/runtime", "requirements/torch"
LOCKS = [
    Lock(RUNTIME, on_runtime=False),
    Lock("requirements/dev"),
    Lock("requirements/bench", torch_apart=True),
    Lock("requirements/array-api"),
    Lock("requirements/docs"),
    Lock("requirements/pins", on_runtime=False),
    Lock("requirements/typecheck", on_runtime=False),
    Lock("requirements/release", on_runtime=False),
    Lock("ecosystem/requirements", without_jax=True),
    Lock("ecosystem/requirements-quick", without_jax=True),
    Lock("ecosystem/requirements-jax", on_runtime=False, alone=True),
]


def pins_of(text: str) -> list[Pin]:
    """Return the pins in the text of a file of pins."""
    pins = []
    for block in re.split(r"\n(?=[a-z\d])", "\n" + text):
        head = re.match(r"([a-z\d-]+)==[^\s;]+", block.lstrip())
        if head is not None:
            marker = re.search(r" ; ([^\\\n]+)", block)
            comment = re.search(r"# via .*", block)
            hashes = tuple(re.findall(r"--hash=sha256:(\w+)", block))
            pins.append(
                Pin(head[1], head[0], marker[1].strip() if marker else "", hashes, comment[0] if comment else "")
            )
    return pins


def resolved(lock: Lock, preferred: list[Pin]) -> list[Pin]:
    """Return what the list of ``lock`` wants and brings in; where versions are free, those of ``preferred``."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "pins.txt"
        out.write_text("".join(pin._replace(hashes=(), comment="").lines() for pin in preferred), encoding="utf-8")
        command = ["uv", "pip", "compile", f"{lock.path}.in", "--output-file", str(out), "--quiet", "--no-header"]
        command += ["--universal", "--python-version", OLDEST_PYTHON, "--generate-hashes", "--annotation-style=line"]
        command += ["--no-config", "--no-emit-index-url", "--no-emit-find-links", *["--no-deps"] * lock.alone]
        if lock.without_jax:  # a library's bounds on jaxlib are those of the JAX that it was tested with
            bounds = Path(folder) / "jaxlib.in"
            listed = (ROOT / f"{RUNTIME}.in").read_text(encoding="utf-8").splitlines()
            bounds.write_text("\n".join(line for line in listed if line.startswith("jaxlib")), encoding="utf-8")
            command += ["--override", str(bounds)]
        subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return pins_of(out.read_text(encoding="utf-8"))


def by_name(pins: list[Pin]) -> dict[str, list[Pin]]:
    """Return the pins of each name: more than one, with markers, if it has several versions."""
    named: dict[str, list[Pin]] = {}
    for pin in pins:
        named.setdefault(pin.name, []).append(pin)
    return named


def earlier(lock: Lock) -> list[Pin]:
    """Return the pins of ``lock`` as they are on disk."""
    paths = [ROOT / f"{lock.path}.txt", *[ROOT / f"{TORCH_PATH}.txt"] * lock.torch_apart]
    return [pin for path in paths if path.exists() for pin in pins_of(path.read_text(encoding="utf-8"))]


def write(path: str, source: str, pins: list[Pin], first: str = "") -> None:
    """Write the file of pins ``path``, made from the list ``source``; the lines ``first`` stand before the pins."""
    text = f"# Written by `make pins` from {Path(source).name}.in: change that, not this.\n{first}"
    (ROOT / f"{path}.txt").write_text(text + "".join(pin.lines() for pin in pins), encoding="utf-8")
    print(f"{path}.txt: {len(pins)} pins")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions of what is brought in")
    upgrade = parser.parse_args().upgrade
    known: dict[str, list[Pin]] = {}  # what the files that are written pin; the next ones take the same
    for lock in LOCKS:
        preferred = ({} if upgrade else by_name(earlier(lock))) | known
        pins = resolved(lock, [pin for same in preferred.values() for pin in same])
        if lock.path == RUNTIME:
            runtime = {pin.name for pin in pins}
        if not lock.alone:
            known = by_name(pins) | known
        left_out = (runtime if lock.on_runtime else set()) | ({"jax", "jaxlib"} if lock.without_jax else set())
        pins = [pin for pin in pins if pin.name not in left_out]
        if lock.torch_apart:
            write(TORCH_PATH, lock.path, [pin for pin in pins if TORCH.match(pin.name)])
            pins = [pin for pin in pins if not TORCH.match(pin.name)]
        beside = lock.on_runtime and Path(lock.path).parent == Path(RUNTIME).parent
        write(lock.path, lock.path, pins, f"-r {Path(RUNTIME).name}.txt\n" if beside else "")


if __name__ == "__main__":
    main()
