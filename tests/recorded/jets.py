"""Cases of Taylor mode: derivatives along a curve, of what JAX's ``jet`` can differentiate."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from tests.recorded.cases import Case, real

Function = Callable[[Any, Any], Any]
ORDER = 4


def along(name: str, f: Function, *, lo: float = -1, hi: float = 1, x64: bool = True, scaled: bool = True) -> Case:
    def run(lib: Any, x: Any, *terms: Any) -> Any:
        jet = import_module(f"{lib.__name__}.experimental.jet").jet
        out, series = jet(lambda x: f(lib, x), (x,), (list(terms),), factorial_scaled=scaled)
        return [out, *series]

    operands = [real(3, lo=lo, hi=hi), *[real(3, seed=k) for k in range(1, ORDER + 1)]]
    dtype = np.float64 if x64 else np.float32
    return Case(f"jet of {name}", run, tuple(x.astype(dtype) for x in operands), x64=x64, derivatives=False)


CASES = [
    along("sin", lambda lib, x: lib.numpy.sin(x)),
    along("cos in single precision", lambda lib, x: lib.numpy.cos(x), x64=False),
    along("exp, coefficients", lambda lib, x: lib.numpy.exp(x), scaled=False),
    along("log", lambda lib, x: lib.numpy.log(x), lo=0.5, hi=2),
    along("sqrt", lambda lib, x: lib.numpy.sqrt(x), lo=0.5, hi=2),
    along("tanh", lambda lib, x: lib.numpy.tanh(x)),
    along("logistic", lambda lib, x: lib.nn.sigmoid(x)),
    along("a quotient", lambda lib, x: x / (1 + x * x)),
    along("powers", lambda lib, x: x**3 + x**2.5 + 2.0**x, lo=0.5, hi=2),
    along("erf", lambda lib, x: lib.lax.erf(x)),
    along("arctan2", lambda lib, x: lib.numpy.arctan2(x, 2 + x)),
    along("a network", lambda lib, x: lib.numpy.tanh(lib.numpy.outer(x, x) @ x).sum()),
    along("sums and extremes", lambda lib, x: lib.numpy.max(x) * x.sum() + lib.numpy.abs(x).sum()),
    along("indexing", lambda lib, x: lib.numpy.concatenate([x[::-1], x[np.array([0, 2])] * x[1]])),
    along("where", lambda lib, x: lib.numpy.where(x > 0, x * x, -x)),
    along("cumulative sums", lambda lib, x: lib.numpy.cumsum(x) * x),
    along("a compiled function", lambda lib, x: lib.jit(lambda x: lib.numpy.sin(x) * x)(x)),
    along("log1p and expm1", lambda lib, x: lib.numpy.log1p(lib.numpy.expm1(x)), lo=0.2),
]
