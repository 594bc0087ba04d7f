"""A user's functions on the host: compiled programs of NumPy's arrays, which equal functions of later calls share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.core.array import as_array, typeof
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr
from pullback.scipy.optimize.kkt import Model
from pullback.scipy.optimize.problems import dot
from pullback.transforms.autodiff.grad import grad, value_and_grad
from pullback.transforms.autodiff.jacobian import hessian, jacfwd, jacrev
from pullback.transforms.jit.jit import jit
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.equal_programs import deduplicated
from pullback.transforms.traces.stage import stage_flat


class Explicit(NamedTuple):
    """A function of vectors as a program, and the arrays that it closes over, which are further inputs of the program.

    So it can run on the host whatever it closes over, and compiled code serves other arrays too.
    """

    closed: ClosedJaxpr
    captured: list[Any]


def explicit(name: str, function: Callable[[Any], Any], x: Any) -> Explicit:
    """Trace a function of vectors like ``x`` to one array; ``name`` is the public function, for errors."""
    closed = stage_flat(function, lambda x: [function(x)], [typeof(x)], name, literals=False)
    jaxpr = closed.jaxpr
    inputs = Jaxpr([], [*jaxpr.invars, *jaxpr.constvars], jaxpr.eqns, jaxpr.outvars)
    return Explicit(deduplicated(ClosedJaxpr(inputs)), [as_array(c) for c in closed.consts])


@cached_by_jaxpr
def compiled(closed: ClosedJaxpr) -> dict[str, Callable[..., Any]]:
    """Return a function's value and derivatives as compiled functions of ``x`` and the captured arrays."""
    f = lambda x, captured: eval_jaxpr(closed.jaxpr, (), x, *captured)[0]
    n, m = (int(np.prod(v.aval.shape)) for v in (closed.jaxpr.invars[0], closed.jaxpr.outvars[0]))
    return {
        "value": jit(f),
        "gradient": jit(grad(f)),
        "both": jit(value_and_grad(f)),
        "hessian": jit(hessian(f)),
        "jacobian": jit((jacfwd if m >= n else jacrev)(f)),
        "curvature": jit(lambda x, captured, y: hessian(lambda x: dot(y, f(x, captured)))(x)),
    }


class Problem:
    """The functions of a minimisation, of NumPy's vectors in double precision, which remember their last values.

    Attributes:
      parts: the objective, the constraints, and the user's gradient and Hessian or None.
      arrays: what each of them closes over.
      m: the number of constraints.
      dtype: that of the programs.
      counts: how often each program ran.
    """

    def __init__(self, parts: Sequence[ClosedJaxpr | None], arrays: Sequence[Any], m: int, dtype: Any) -> None:
        self.parts, self.m, self.dtype = parts, m, dtype
        self.arrays = [[as_array(x) for x in group] for group in arrays]
        self.counts = {"value": 0, "gradient": 0}
        self.last: dict[tuple[int, str], tuple[Any, Any]] = {}

    def _at(self, part: int, which: str, *vectors: Any) -> Any:
        key = tuple(v.tobytes() for v in vectors)
        found = self.last.get((part, which))
        if found is not None and found[0] == key:
            return found[1]
        closed = self.parts[part]
        assert closed is not None
        x, *rest = (v.astype(self.dtype) for v in vectors)
        out = compiled(closed)[which](x, self.arrays[part], *rest)
        value = [np.asarray(v, np.float64) for v in out] if which == "both" else np.asarray(out, np.float64)
        self.last[part, which] = key, value
        return value

    def value(self, x: Any) -> float:
        self.counts["value"] += 1
        return float(self._at(0, "value", x))

    def gradient(self, x: Any) -> Any:
        self.counts["gradient"] += 1
        return self._at(0, "gradient", x) if self.parts[2] is None else self._at(2, "value", x)

    def both(self, x: Any) -> tuple[float, Any]:
        if self.parts[2] is not None:
            return self.value(x), self.gradient(x)
        self.counts["value"] += 1
        self.counts["gradient"] += 1
        value, slope = self._at(0, "both", x)
        return float(value), slope

    def hessian(self, x: Any) -> Any:
        return self._at(0, "hessian", x) if self.parts[3] is None else self._at(3, "value", x)

    def constraints(self, x: Any) -> Any:
        return self._at(1, "value", x) if self.m else np.zeros(0)

    def jacobian(self, x: Any) -> Any:
        return self._at(1, "jacobian", x) if self.m else np.zeros((0, len(x)))

    def curvature(self, x: Any, y: Any) -> Any:
        """Return the Hessian of the inner product of ``y`` and the constraints."""
        return self._at(1, "curvature", x, y) if self.m else np.zeros((len(x), len(x)))

    def model(self, x: Any, y: Any) -> Model:
        """Return the problem at a point."""
        curved = self.hessian(x) - self.curvature(x, y)
        return Model(self.gradient(x), curved, self.constraints(x), self.jacobian(x))
