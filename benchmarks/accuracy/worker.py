"""A process that computes with one library, Pullback or JAX, what a file of points asks for.

``python -m benchmarks.accuracy.worker LIBRARY POINTS RESULTS``: both files are NumPy's, of which the first names arrays
``number/dtype/operand``, and the second ``number/dtype/output/mode``. What a library lacks is left out.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.accuracy.functions import FUNCTIONS
from benchmarks.accuracy.table import Function

_ENDLESS = ("scipy.special.exp1", "scipy.special.expi")
"""What JAX never returns of some points: its loops do not end at 1e-10 and at -1e-10."""


def _found(package: str, function: Function) -> Callable[..., Any] | None:
    module, _, name = function.name.rpartition(".")
    found = getattr(importlib.import_module(f"{package}.{module}"), name, None)
    if found is None:
        return None
    call = functools.partial(found, **function.arguments) if function.arguments else found
    return call if function.part is None else lambda *xs: call(*xs)[function.part]


def _output(library: Any, call: Callable[..., Any], function: Function, by: int | None) -> Callable[..., Any]:
    """The value, or the derivative by one operand: integers stay out of what is differentiated."""
    if by is None:
        return call

    def slope(*xs: Any) -> Any:
        of_one = lambda x: call(*xs[:by], x, *xs[by + 1 :])
        return library.jvp(of_one, (xs[by],), (library.numpy.ones_like(xs[by]),))[1]

    return slope


def main(package: str, source: str, target: str) -> None:
    """Compute everything."""
    library: Any = importlib.import_module(package)
    importlib.import_module(f"{package}.numpy")
    results: dict[str, Any] = {}
    with np.load(source) as points:
        keys = sorted({key.rpartition("/")[0] for key in points.files})
        for key in keys:
            function = FUNCTIONS[int(key.partition("/")[0])]
            operands = [points[f"{key}/{i}"] for i in range(len(function.operands))]
            whole = [o.whole for o in function.operands]
            arrays = [library.numpy.asarray(x.astype(np.int32) if w else x) for x, w in zip(operands, whole)]
            call = _found(package, function)
            if call is None or (package == "jax" and function.name in _ENDLESS):
                continue
            print(f"{package} computes {function.label} {key.split('/')[1]} ...", file=sys.stderr, flush=True)
            for output, by, _, _ in function.outputs():
                task = _output(library, call, function, by)
                modes = {"compiled": library.jit(task)}
                if package == "pullback":
                    modes["eager"] = task
                for mode, run in modes.items():
                    try:
                        results[f"{key}/{output}/{mode}"] = np.asarray(run(*arrays))
                    except Exception as e:  # a library may lack a derivative, which the table shows by a gap
                        print(f"{package} {function.label} {output} {mode}: {str(e)[:150]}", file=sys.stderr)
    np.savez(target, **results)


if __name__ == "__main__":
    main(*sys.argv[1:])
