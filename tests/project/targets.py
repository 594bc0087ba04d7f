"""Compile the modules in C for other systems and processors: ``PYTHON -m tests.project.targets``.

PYTHON has the package ``ziglang``, a compiler with the headers of Linux, macOS and Windows. Python's and NumPy's
headers are those of this machine; for Windows their settings are written anew. What is compiled is not run.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
HOST = ROOT / "src" / "pullback" / "backends" / "host"
MODULES = [HOST / "loops.c", HOST / "pairs.c", ROOT / "src" / "pullback" / "transforms" / "jit" / "quick.c"]
TARGETS = [
    "x86_64-linux-gnu", "x86_64-linux-musl", "aarch64-linux-gnu",
    "x86_64-macos", "aarch64-macos",
    "x86_64-windows-gnu", "aarch64-windows-gnu",
]  # fmt: skip
OPTIONS = [
    "-std=gnu11", "-O3", "-g0", "-fno-math-errno", "-ffp-contract=off", "-Wall", "-Werror", "-Wno-unused-variable",
    "-Wno-unused-function",
]  # fmt: skip
"""Those of ``setup.py``; a warning is an error."""

WINDOWS = """
#define MS_WIN32
#define MS_WIN64
#define MS_WINDOWS
#define NT_THREADS
#define WITH_THREAD 1
#define PLATFORM "win32"
#define HAVE_STDDEF_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_WCHAR_H 1
#define HAVE_UINTPTR_T 1
#define SIZEOF_DOUBLE 8
#define SIZEOF_FLOAT 4
#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_OFF_T 4
#define SIZEOF_PID_T 4
#define SIZEOF_SHORT 2
#define SIZEOF_SIZE_T 8
#define SIZEOF_TIME_T 8
#define SIZEOF_UINTPTR_T 8
#define SIZEOF_VOID_P 8
#define SIZEOF_WCHAR_T 2
#define ALIGNOF_SIZE_T 8
typedef long long Py_ssize_t;
#define HAVE_PY_SSIZE_T 1
#define PY_SSIZE_T_MAX 0x7fffffffffffffff
"""
"""The settings of Python on Windows that its headers ask for."""
NUMPY_OF_WINDOWS = {
    "NPY_SIZEOF_LONG": 4, "NPY_SIZEOF_LONGDOUBLE": 8, "NPY_SIZEOF_COMPLEX_LONGDOUBLE": 16, "NPY_SIZEOF_WCHAR_T": 2
}  # fmt: skip


def headers(folder: Path, target: str) -> list[Path]:
    """Copy Python's and NumPy's headers, with the settings of a system."""
    python, numpy = folder / "python", folder / "numpy"
    shutil.copytree(sysconfig.get_paths()["include"], python)
    shutil.copytree(np.get_include(), numpy)
    settings = numpy / "numpy" / "_numpyconfig.h"
    text = settings.read_text(encoding="utf-8")
    if "linux" not in target:
        text = text.replace("#define NPY_HAVE_ENDIAN_H 1", "")
    if "windows" in target:
        (python / "pyconfig.h").write_text(WINDOWS, encoding="utf-8")
        for name, size in NUMPY_OF_WINDOWS.items():
            text, count = re.subn(rf"#define {name} \d+", f"#define {name} {size}", text)
            assert count == 1, name
    settings.write_text(text, encoding="utf-8")
    return [python, numpy]


def compile_for(target: str, options: Sequence[str] = OPTIONS) -> str:
    """Compile both modules to object files; return what the compiler said, which is nothing if all is well."""
    said = []
    with tempfile.TemporaryDirectory() as name:
        folders = headers(Path(name), target)
        for module in MODULES:
            out = Path(name) / f"{module.stem}.o"
            included = [f"-isystem{folder}" for folder in folders]
            command = [sys.executable, "-m", "ziglang", "cc", "-target", target, *options, *included, "-c", str(module)]
            done = subprocess.run([*command, "-o", str(out)], capture_output=True, encoding="utf-8", check=False)
            said.append(done.stderr if done.returncode == 0 else f"status {done.returncode}\n{done.stderr}")
            if done.returncode == 0 and not out.stat().st_size:
                said.append(f"{out.name} is empty")
    return "".join(said)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compile the modules in C for other systems and processors.")
    parser.add_argument("targets", nargs="*", default=TARGETS, help=f"by default {', '.join(TARGETS)}")
    failed = 0
    for target in parser.parse_args().targets:
        said = compile_for(target)
        failed += bool(said)
        print(f"{target}: {said or 'compiled'}", flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
