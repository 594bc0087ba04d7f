"""The pages of the programs of ``examples/``, each with what it prints, its picture and its time.

A program runs as its users run it. What it printed is kept until the program or the library changes.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from . import finish

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
LIMIT = 300
"""After how many seconds a program is too slow."""
ACRONYMS = frozenset(("api", "arma", "cnn", "gan", "hmc", "mlp", "ode", "pde", "pinn", "rnn", "sde", "svi", "vae"))
SHOWN = 60
"""How many lines of what a program prints are shown."""


class Result(NamedTuple):
    """What a program printed, its picture's file name or an empty one, and how many seconds it took."""

    printed: str
    picture: str
    seconds: float


class ExampleError(RuntimeError):
    """A program of the gallery failed."""


def programs() -> list[Path]:
    """Return the programs, in alphabetical order."""
    return sorted(EXAMPLES.glob("*.py"))


def described(program: Path) -> tuple[str, str]:
    """Return the first sentence of a program's docstring, and the paragraphs after it."""
    doc = ast.get_docstring(ast.parse(program.read_text(encoding="utf-8"))) or program.stem
    title, _, rest = doc.partition("\n\n")
    return " ".join(title.split()), rest


def heading(program: Path) -> str:
    """Return the heading of a program's page: its name in words."""
    words = [word.upper() if word in ACRONYMS else word for word in program.stem.split("_")]
    text = " ".join(words)
    return text[0].upper() + text[1:]


def draws(program: Path) -> bool:
    """Return whether a program takes the file of a picture, as its usage says: ``[fit.png]``."""
    return re.search(r"python examples/\w+\.py \[\w+\.png\]", described(program)[1]) is not None


def source_digest() -> str:
    """Return a digest of the library's source and of the versions of what it needs."""
    digest = hashlib.sha256()
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.[ch]"), ROOT / "requirements" / "docs.txt"]
    for path in sorted(files):
        digest.update(path.relative_to(ROOT).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def run(program: Path, kept: Path, digest: str) -> Result:
    """Run a program, or return what is kept of its last run in the folder ``kept``."""
    key = hashlib.sha256(program.read_bytes() + digest.encode()).hexdigest()[:16]
    record, picture = kept / f"{program.stem}-{key}.json", kept / f"{program.stem}-{key}.png"
    if record.exists():
        return Result(**json.loads(record.read_text(encoding="utf-8")))
    kept.mkdir(parents=True, exist_ok=True)
    for old in [*kept.glob(f"{program.stem}-*.json"), *kept.glob(f"{program.stem}-*.png")]:
        old.unlink()
    command = [sys.executable, str(program), *[str(picture)] * draws(program)]
    start = time.perf_counter()
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | {"MPLBACKEND": "Agg"}, capture_output=True, text=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired as error:
        raise ExampleError(f"{program.name} ran for more than {LIMIT} seconds") from error
    if done.returncode:
        raise ExampleError(f"{program.name} ended with the status {done.returncode}:\n{done.stdout}{done.stderr}")
    name = picture.name if picture.exists() else ""
    result = Result(done.stdout, name, round(time.perf_counter() - start, 1))
    record.write_text(json.dumps(result._asdict()), encoding="utf-8")
    return result


def _printed(text: str) -> Iterator[str]:
    lines = [line.rstrip() for line in finish.without_paths(text).splitlines()]
    more = len(lines) - SHOWN
    yield from lines if more <= 0 else [*lines[: SHOWN // 2], f"... {more} more lines ...", *lines[-SHOWN // 2 :]]


def _prose(text: str) -> str:
    """Return the paragraphs of a docstring as Markdown; what is indented is code."""
    parts = []
    for part in text.split("\n\n"):
        plain = part.replace("``", "`").strip("\n")
        parts.append(f"```sh\n{plain.strip()}\n```" if part.startswith("    ") else plain)
    return "\n\n".join(parts)


def page(program: Path, result: Result) -> str:
    """Return the text of a program's page."""
    title, prose = described(program)
    picture = [f"![What {program.name} draws](_pictures/{program.stem}.png)", ""] * bool(result.picture)
    printed = ["## Output", "", "````text", *_printed(result.printed), "````", ""] * bool(result.printed.strip())
    code = ["## Program", "", f"```{{literalinclude}} ../../examples/{program.name}", ":language: python", "```", ""]
    taken = f"It took {result.seconds:.1f} seconds when this site was built, from the start of Python to its end."
    return "\n".join([f"# {heading(program)}", "", title, "", *picture, _prose(prose), "",
                      taken, "", *printed, *code])  # fmt: skip


def index(results: dict[Path, Result]) -> str:
    """Return the text of the first page: a card for each program."""
    lines = ["# Longer programs", "", "The scripts of `examples/`, which check their own results. Each page shows what "
             "the script prints and draws.", "", "::::{grid} 1 2 2 3", ":gutter: 3", ""]  # fmt: skip
    for program, result in results.items():
        title, _ = described(program)
        lines += [f":::{{grid-item-card}} {heading(program)}", f":link: {program.stem}",
                  ":link-type: doc", *[f":img-bottom: _pictures/{program.stem}.png"] * bool(result.picture), "",
                  title, "", f"*{result.seconds:.1f} seconds*", ":::", ""]  # fmt: skip
    stems = "\n".join(program.stem for program in results)
    return "\n".join([*lines, "::::", "", "```{toctree}", ":hidden:", "", stems, "```", ""])


def run_all(kept: Path, workers: int = 2) -> dict[Path, Result]:
    """Run all programs, ``workers`` at a time, and return their results in alphabetical order."""
    digest = source_digest()
    with ThreadPoolExecutor(workers) as pool:
        results = list(pool.map(lambda program: run(program, kept, digest), programs()))
    return dict(zip(programs(), results, strict=True))
