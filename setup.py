"""The part of the build that pyproject.toml cannot say: modules in C, one of which needs NumPy's headers.

Without a compiler the package is installed without them: large arrays, and calls of compiled functions, take longer.
"""

import sys

import numpy
from setuptools import Extension, setup

LOOPS = "src/pullback/backends/host/loops"
PAIRS = "src/pullback/backends/host/pairs"
NAMES = (
    "portable", "reduce", "reduced", "fused", "special", "elementary", "rows", "planes", "products", "batches",
    "moves", "windows", "convolve", "picks", "each_row", "fourier", "foreign", "runner", "expressions", "choice",
)  # fmt: skip
HEADERS = [f"src/pullback/backends/host/{name}.h" for name in NAMES]
OF_PAIRS = [f"src/pullback/backends/host/{name}.h" for name in ("portable", "doubles", "pair_formulas")]
QUICK = "src/pullback/transforms/jit/quick"
# The bits may not depend on the processor, so no product and sum become one instruction where it has one.
# Without debugging information, whose paths would make wheels differ that are built in different folders. Microsoft's
# compiler rounds as is written by itself, and needs no library for threads.
if sys.platform == "win32":
    OPTIONS, OF_LOOPS, LINKED = ["/std:c11", "/O2"], [], []
else:
    OPTIONS, LINKED = ["-std=gnu11", "-O3", "-g0"], ["-pthread"]
    OF_LOOPS = ["-fno-math-errno", "-ffp-contract=off", "-pthread"]

quick = Extension("pullback.transforms.jit.quick", [f"{QUICK}.c"], optional=True, extra_compile_args=OPTIONS)
loops = Extension(
    "pullback.backends.host.loops", [f"{LOOPS}.c"], optional=True, include_dirs=[numpy.get_include()], depends=HEADERS,
    extra_compile_args=[*OPTIONS, *OF_LOOPS], extra_link_args=LINKED,
)  # fmt: skip
pairs = Extension(
    "pullback.backends.host.pairs", [f"{PAIRS}.c"], optional=True, include_dirs=[numpy.get_include()],
    depends=OF_PAIRS, extra_compile_args=[*OPTIONS, *OF_LOOPS], extra_link_args=LINKED,
)  # fmt: skip
setup(ext_modules=[quick, loops, pairs])
