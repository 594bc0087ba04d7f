"""The module in C with the functions of Windows, and what Microsoft's compiler knows, played on Linux.

``windows/`` has the headers that play them. The tests of loops, of threads and of calls that wait then run with this
module, in a process without forks.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from tests.helpers import ROOT

HOST = ROOT / "src" / "pullback" / "backends" / "host"
PLAYED = Path(__file__).parent / "windows"
TESTS = ["tests/backends/host/test_native.py", "tests/backends/compiler/test_runners.py"]
PROGRAM = """
import importlib.util, os, sys
del os.fork, os.register_at_fork
name = "pullback.backends.host.loops"
spec = importlib.util.spec_from_file_location(name, sys.argv[1])
module = sys.modules[name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
import pytest
from pullback.backends.host import native
assert native.loops is module
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-m", "not slow", *sys.argv[2:]]))
"""


def test_only_the_header_names_what_a_system_or_a_compiler_has() -> None:
    words = ["pthread", "atomic_", "sched_", "madvise", "mmap", "sysconf", "posix_", "__attribute__", "__builtin"]
    files = [*HOST.glob("*.[ch]"), ROOT / "src/pullback/transforms/jit/quick.c"]
    assert len(files) > 6
    found = [(p.name, word) for p in files for word in words if word in p.read_text(encoding="utf-8")]
    assert {name for name, _ in found} == {"portable.h"}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or shutil.which("gcc") is None, reason="it is played on Linux, by gcc")
def test_the_module_with_the_functions_of_windows(tmp_path: Path) -> None:
    library = tmp_path / "loops.so"
    options = ["-std=gnu11", "-O1", "-Wall", "-Wno-unused-variable", "-Wno-unused-function", "-Werror"]
    folders = [f"-I{PLAYED}", f"-isystem{sysconfig.get_paths()['include']}", f"-isystem{np.get_include()}"]
    chosen = ["-DPULLBACK_WINDOWS=1", "-DPULLBACK_MICROSOFT=1", "-shared", "-fPIC", "-pthread"]
    command = ["gcc", *options, *chosen, *folders, str(HOST / "loops.c"), "-o", str(library)]
    subprocess.run(command, check=True)
    asked = [sys.executable, "-c", PROGRAM, str(library), *TESTS, "-k", "not division_of_integers"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=110, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    passed = [line for line in done.stdout.splitlines() if " passed" in line]
    assert passed, done.stdout
    assert int(passed[0].split()[0]) > 150
