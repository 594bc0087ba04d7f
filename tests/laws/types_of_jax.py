"""Compare the types of all functions' results with those of JAX, which is installed in an environment of its own.

``python -m tests.laws.types_of_jax PYTHON`` traces each call of ``ways.py`` here and, by that Python, in JAX 0.10.2.
It prints what differs in shape, dtype or weak type without a reason in ``ON_PURPOSE``; nothing does.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

ON_PURPOSE: dict[str, str] = {
    "booleans": "they are never weak: a weak one is promoted as any other",
    "weak arrays": "results are weak if all operands are; JAX's also by the constants that are within its formulas",
    "lax.dot lax.dot_general lax.batch_matmul": "of two dtypes the common one, not the wider or the first",
    "lax.linalg.qdwh": "the number of steps is strong, as other counts are",
    "numpy.cumulative_prod": "integers are widened as by cumulative_sum and the array API; JAX widens those only",
    "numpy.gradient": "the dtype of the values, as in NumPy, also beside weak distances or distances of another dtype",
    "numpy.pow numpy.power": "of two weak integers weak, as other operations are",
    "numpy.heaviside numpy.linalg.tensorsolve scipy.linalg.toeplitz scipy.special.kl_div scipy.special.rel_entr": (
        "an integer array beside a weak float is a weak float, in each of the operands' places"
    ),
    "scipy.fft.dctn scipy.fft.idctn": "floats, also of an array without axes, which JAX returns as it is",
    "scipy.signal.detrend": "computed in single precision at least, and returned so, as by SciPy",
    "scipy.special.owens_t": "the dtype of the operands, as of other functions; JAX widens 16 bits",
}
"""Where types differ from JAX's, and why."""


def _packed(x: Any) -> tuple[Any, ...]:
    """An argument without classes of this package; others are refused."""
    from pullback.core import dtypes
    from pullback.core.array import Array

    if isinstance(x, Array):
        if dtypes.is_key(x.dtype):
            return ("key",)
        plain = np.asarray(x, np.float64) if x.dtype.isbuiltin != 1 else np.asarray(x)
        return ("array", plain, x.dtype.name, x.weak_type)
    if isinstance(x, (list, tuple)):
        return (type(x).__name__, [_packed(y) for y in x])
    if x is not None and type(x) not in (int, float, bool, str):
        raise TypeError(f"an argument of another kind: {x!r}")
    return ("number", x)


def _ours() -> list[tuple[Any, ...]]:
    import pullback
    from pullback import tree
    from tests.laws.ways import MODULES, calls

    rows = []
    for call in (call for module in MODULES for call in calls(module)):
        try:
            arguments = [_packed(x) for x in call.arguments]
            out = pullback.eval_shape(call, call.operands)
        except Exception:  # an argument of another kind, or a call that is refused
            continue
        types = [(x.shape, str(x.dtype), x.weak_type) for x in tree.leaves(out)]
        rows.append((call.name, call.row, arguments, call.places, types))
    return rows


def _theirs(rows: list[tuple[Any, ...]]) -> None:
    """Print the differences; this runs where JAX is."""
    import importlib

    import jax
    from jax._src.lax.lax import _convert_element_type

    def unpacked(x: Any) -> Any:
        kind, *rest = x
        if kind == "array":
            values, dtype, weak = rest
            return _convert_element_type(jax.numpy.asarray(values).astype(dtype), weak_type=weak)
        if kind == "key":
            return jax.random.key(0)
        return rest[0] if kind == "number" else {"list": list, "tuple": tuple}[kind](map(unpacked, rest[0]))

    exempt = {name for names in ON_PURPOSE for name in names.split()}
    count = 0
    for name, row, packed, places, ours in rows:
        module, _, function = f"jax.{name}".rpartition(".")
        try:
            f, arguments = getattr(importlib.import_module(module), function), [unpacked(x) for x in packed]

            def call(operands: Any, f: Any = f, arguments: Any = arguments, places: Any = places) -> Any:
                return f(*(operands[places.index(i)] if i in places else x for i, x in enumerate(arguments)))

            out = jax.eval_shape(call, [arguments[i] for i in places])
        except Exception:  # no such function, or a call that JAX refuses
            continue
        count += 1
        theirs = [(x.shape, str(x.dtype), x.weak_type and x.dtype != bool) for x in jax.tree.leaves(out)]
        if row.startswith("weak"):
            theirs, ours = ([t[:2] for t in types] for types in (theirs, ours))
        if theirs != ours and name not in exempt:
            print(f"{name} of {row}: {ours}, in JAX {theirs}")
    print(f"{count} calls compared")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "--rows":
        _theirs(pickle.loads(Path(sys.argv[2]).read_bytes()))
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "rows")
            path.write_bytes(pickle.dumps(_ours()))
            subprocess.run([sys.argv[1], __file__, "--rows", str(path)], check=True, cwd=folder, env={})
