"""The page ``docs/conformance.md``: JAX's own tests on Pullback.

``python -m tests.project.conformance_page`` writes it. The counts are in ``docs/conformance.txt``, a line for each file
of tests; someone who runs the tests edits them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from tests.helpers import ROOT

PAGE = ROOT / "docs" / "conformance.md"
COUNTS = ROOT / "docs" / "conformance.txt"
COLUMNS = ("passed", "otherwise", "texts", "private", "skipped")
HEAD = """# JAX's own tests

<!-- Made by `python -m tests.project.conformance_page` from conformance.txt. -->

The files of JAX's folder `tests/` run on Pullback as they are, on CPUs, with `import jax` served as by
`python -m pullback run`. JAX's private test utilities, `jax._src.test_util` and a few helpers, are replaced by
stand-ins, which generate 3 cases of each family of cases. The tests are those of JAX's repository between 0.11 and
0.12 (commit cec06d1). {total} tests ran; **{percent} %** of the tests pass that need no private name and compare no
text.

Of the failures in the column "otherwise", 145 are those of `roofline_test`: JAX does not document the module
`jax.experimental.roofline`, and Pullback does not have it.

| column | tests |
|---|---|
| passed | pass |
| otherwise | fail although they need public names only: a value, type or error differs, or a name is missing |
| texts | compare the words of a message, the text of a program, or what `print` shows |
| private | need names of `jax._src` that have no counterpart in Pullback |
| skipped | skip themselves: they are for GPUs, TPUs or other versions |

The last column is passed / (passed + otherwise).

| file | passed | otherwise | texts | private | skipped | % |
|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Row:
    """The counts of a file of tests, in the order of ``COLUMNS``."""

    file: str
    counts: tuple[int, ...]

    @property
    def percent(self) -> str:
        return _percent(*self.counts[:2])


def _percent(passed: int, otherwise: int) -> str:
    return f"{100 * passed / (passed + otherwise):.1f}" if passed + otherwise else ""


def rows() -> list[Row]:
    """The rows of the file of counts; raise a ValueError if a line is no row, or a file has two."""
    found: dict[str, Row] = {}
    for line in COUNTS.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        file, *counts = line.split()
        if len(counts) != len(COLUMNS) or file in found:
            raise ValueError(
                f"{COUNTS.name}: expected a name that has no row yet and {len(COLUMNS)} numbers, got {line!r}"
            )
        found[file] = Row(file, tuple(map(int, counts)))
    return [found[file] for file in sorted(found)]


def page() -> str:
    """The text of the page."""
    lines = [f"| {row.file} | {' | '.join(map(str, row.counts))} | {row.percent} |" for row in rows()]
    sums = [sum(row.counts[i] for row in rows()) for i in range(len(COLUMNS))]
    lines.append(f"| **all** | {' | '.join(map(str, sums))} | {_percent(*sums[:2])} |")
    head = HEAD.format(total=f"{sum(sums):,}", percent=_percent(*sums[:2]))
    return head + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE} has {len(rows())} files\n")
