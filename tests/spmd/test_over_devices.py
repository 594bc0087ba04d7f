"""Arrays over several devices. The cases run in processes of their own, in which the processor is several devices."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import ROOT

HERE = Path(__file__).parent
PARTS = {
    "cases_eager.py": 1,
    "cases_explicit.py": 1,
    "cases_explicit_laws.py": 1,
    "cases_export.py": 1,
    "cases_jit.py": 1,
    "cases_partitioning.py": 1,
    "cases_shard_map.py": 2,
    "cases_states.py": 1,
    "cases_unreduced.py": 1,
}
"""In how many processes the cases of a file run: so that each ends well within a test's time."""


def run(command: list[str], **environment: str) -> None:
    known = {**os.environ, **environment}
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"):
        known.pop(name, None)
    done = subprocess.run([sys.executable, *command], env=known, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize(("cases", "part"), [(cases, part) for cases, count in PARTS.items() for part in range(count)])
def test_over_eight_devices(cases: str, part: int) -> None:
    options = ["-q", "-p", "no:cacheprovider", "-o", "python_files=cases_*.py"]
    run(
        ["-m", "pytest", *options, str(HERE / cases)],
        PULLBACK_NUM_CPU_DEVICES="8",
        PULLBACK_TEST_PART=f"{part}/{PARTS[cases]}",
    )


@pytest.mark.slow
def test_the_page_runs() -> None:
    page = (ROOT / "docs" / "meshes.md").read_text()
    run(["-c", "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))])


def test_devices_by_a_flag() -> None:
    program = """
import pullback
assert pullback.device_count() == pullback.local_device_count() == 3
x = pullback.device_put(1.0, pullback.devices()[2])
assert (x + 1).device is pullback.devices()[2]
"""
    run(["-c", program], XLA_FLAGS="--xla_force_host_platform_device_count=3")


CALLS = """
import sys
import numpy as np
import pullback
pullback.config.update("num_cpu_devices", 2)
mesh = pullback.make_mesh((2,), ("i",))
x = pullback.device_put(np.ones(8), pullback.NamedSharding(mesh, pullback.P("i")))
f = pullback.jit(lambda x: x * 0.5 + x.sum() / 16)
outs = [f(x) for _ in range(int(sys.argv[1]))]
assert all((np.asarray(y) == 1).all() for y in outs)
"""


@pytest.mark.parametrize("count", [2000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many_calls_that_nobody_waits_for(count: int) -> None:
    run(["-c", CALLS, str(count)])


def test_what_a_child_of_a_fork_can_read() -> None:
    program = """
import os
import numpy as np
import pullback
mesh = pullback.make_mesh((2,), ("i",))
x = pullback.device_put(np.arange(8.0), pullback.NamedSharding(mesh, pullback.P("i")))
pullback.block_until_ready(x)
child = os.fork()
if child == 0:
    assert np.asarray(x).sum() == 28
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    run(["-W", "ignore", "-c", program], PULLBACK_NUM_CPU_DEVICES="2")


FIRST_USE = """
import numpy as np, pullback
mesh = pullback.make_mesh((4,), ("x",))
x = {}
assert x.is_fully_replicated
assert [s.device.id for s in x.addressable_shards] == [0, 1, 2, 3]
np.testing.assert_array_equal(x + 1, np.ones((4, 2)))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "made",
    [
        "pullback.make_array_from_callback((4, 2), pullback.NamedSharding(mesh, pullback.P(None)), "
        "lambda index: np.zeros((4, 2), 'float32')[index])",
        "pullback.device_put(pullback.jit(lambda: pullback.numpy.zeros((4, 2)))(), "
        "pullback.NamedSharding(mesh, pullback.P()))",
    ],
    ids=["callback", "of the first device"],
)
def test_copies_on_several_devices_as_the_first_use_of_them(made: str) -> None:
    run(["-c", FIRST_USE.format(made)], PULLBACK_NUM_CPU_DEVICES="4")
