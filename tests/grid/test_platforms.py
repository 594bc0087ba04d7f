"""Every row of the table of operations, its derivative and a batch of it have programs for GPUs and TPUs.

The compiler's parser verifies them; no call and no option of CPUs is in them; and what they call stands in the table of
``docs/gpus.md``. ``python -m tests.grid.platforms`` writes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import pytest

from tests.grid import platforms
from tests.grid.all_specs import ALL
from tests.grid.specs import Spec
from tests.helpers import EXHAUSTIVE
from tests.recorded.calls import TARGETS_FILE

WRITTEN = platforms.PAGE.read_text().split(platforms.BEGIN)[1].split(platforms.END)[0]
LINES = {re.sub(r"[|` ].*", "", line[3:]): line for line in WRITTEN.splitlines() if line.startswith("| `")}
PLAIN = set(re.findall(r"`([^`]+)`", WRITTEN.rpartition("call nothing")[2]))


def agrees(rows: Sequence[Spec]) -> None:
    """Check that the table says what the rows of whole operations call."""
    found = platforms.cells(rows)
    platforms.names_of_rocm(found)
    for operation, by_mode in found.items():
        if not set().union(*by_mode.values()):
            assert operation in PLAIN, f"{operation} calls nothing: python -m tests.grid.platforms"
        else:
            line = platforms.table({operation: by_mode}).splitlines()[2]
            assert LINES.get(operation) == line, "the table is old: python -m tests.grid.platforms"


def test_some_operations_call_what_the_table_says() -> None:
    agrees(ALL if EXHAUSTIVE else [next(s for s in ALL if s.operation == name) for name in ("cholesky", "eigh", "sin")])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_operations_call_what_the_table_says(part: int) -> None:
    """Those that call a library and some others; all of them in the exhaustive run."""
    plain = sorted(PLAIN)
    names = [*sorted(LINES), *(plain if EXHAUSTIVE else plain[::8])][part::4]
    agrees([s for s in ALL if s.operation in names])


def test_the_table_has_every_operation() -> None:
    assert set(LINES) | PLAIN == {s.operation for s in ALL}
    assert not set(LINES) & PLAIN


def test_the_plug_in_registers_what_the_table_names() -> None:
    registered = set(json.loads(TARGETS_FILE.read_text())["targets"])
    named = {x for line in LINES.values() for x in re.findall(r"`(cu\w+)`", line.rpartition("|")[0].rpartition("|")[0])}
    assert named
    assert named <= registered


def test_programs_of_the_page_run() -> None:
    programs = re.findall(r"```python\n(.*?)```", platforms.PAGE.read_text(), re.DOTALL)
    assert len(programs) == 4
    exec(compile("\n".join(programs), "gpus.md", "exec"), {})
