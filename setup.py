"""The part of the build that pyproject.toml cannot say: modules in C, one of which needs NumPy's headers.

Without a compiler the package is installed without them: large arrays, and calls of compiled functions, take longer.
"""

import sys

import numpy
from setuptools import Extension, setup

LOOPS = "src/pullback/backends/host/loops"
HEADERS = [f"src/pullback/backends/host/{name}.h" for name in ("special", "rows", "products", "foreign", "runner")]
QUICK = "src/pullback/transforms/jit/quick"
# Without debugging information, whose paths would make wheels differ that are built in different folders.
OPTIONS = [] if sys.platform == "win32" else ["-std=gnu11", "-O3", "-g0"]

modules = [Extension("pullback.transforms.jit.quick", [f"{QUICK}.c"], optional=True, extra_compile_args=OPTIONS)]
if sys.platform != "win32":  # the loops need the threads of POSIX
    modules.append(
        Extension(
            "pullback.backends.host.loops", [f"{LOOPS}.c"], optional=True, include_dirs=[numpy.get_include()],
            depends=HEADERS,
            extra_compile_args=[*OPTIONS, "-fno-math-errno", "-pthread"], extra_link_args=["-pthread"],
        )
    )  # fmt: skip
setup(ext_modules=modules)
