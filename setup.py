"""The part of the build that pyproject.toml cannot say: a module in C, which needs NumPy's headers.

Without a compiler the package is installed without the module, and large arrays take longer.
"""

import sys

import numpy
from setuptools import Extension, setup

LOOPS = "src/pullback/backends/host/loops"
OPTIONS = ["-std=gnu11", "-O3", "-fno-math-errno", "-pthread"]

# The module needs the threads of POSIX.
modules = [] if sys.platform == "win32" else [
    Extension(
        "pullback.backends.host.loops", [f"{LOOPS}.c"], optional=True, include_dirs=[numpy.get_include()],
        depends=["src/pullback/backends/host/special.h"],
        extra_compile_args=OPTIONS, extra_link_args=["-pthread"],
    )
]  # fmt: skip
setup(ext_modules=modules)
