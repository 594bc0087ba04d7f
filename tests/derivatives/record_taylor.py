"""Records Taylor coefficients in mpmath's numbers: ``python -m tests.derivatives.record_taylor``, with mpmath.

The functions are those of the table of ``benchmarks/accuracy``, each at a point within the interval where most happens,
along a line by all operands that it is differentiated by.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

ORDER = 10
FILE = pathlib.Path(__file__).with_name("taylor_coefficients.json")
ALONG_THE_LAST = ("jv", "yv", "iv", "kv", "hyp1f1", "hyp2f1")
"""Functions whose derivatives by the order or the parameters are differences in mpmath."""


def point(operand: Any, share: float) -> float | int:
    """A number within the interval of an operand, of few digits."""
    low, high = operand.usual
    low, high = max(low, -4.0), min(high, 4.0 + max(low, 0.0))
    value = low + share * (high - low)
    return round(value) if operand.whole else round(value, 2)


def main() -> None:
    from mpmath import mp

    from benchmarks.accuracy.functions import FUNCTIONS
    from benchmarks.accuracy.table import Operand

    mp.dps = 60
    rows = {}
    for function in FUNCTIONS:
        moving = [slope is not None for slope in function.slopes]
        if not any(moving) or not all(isinstance(o, Operand) for o in function.operands):
            continue
        if function.name.rpartition(".")[2] in ALONG_THE_LAST:
            moving = [*[False] * (len(moving) - 1), True]
        xs = [point(o, share) for o, share in zip(function.operands, (0.63, 0.77, 0.69, 0.6), strict=False)]
        directions = [round(1 - 0.375 * i, 3) if m else 0.0 for i, m in enumerate(moving)]

        def along(t: Any, function: Any = function, xs: Any = xs, directions: Any = directions) -> Any:
            return function.exact(*[mp.mpf(x) + t * d if d else mp.mpf(x) for x, d in zip(xs, directions, strict=True)])

        coefficients = [float(mp.re(c)) for c in mp.taylor(along, 0, ORDER)]
        rows[function.label] = {
            "name": function.name,
            "arguments": function.arguments,
            "part": function.part,
            "operands": xs,
            "directions": directions,
            "coefficients": coefficients,
        }
    lines = [f"{json.dumps(label)}: {json.dumps(row)}" for label, row in rows.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
