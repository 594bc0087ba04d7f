"""An estimate of the time that compiling a program takes, from measurements that this process corrects."""

from __future__ import annotations

import math
from collections.abc import Iterable

FIXED, EACH, REDUCTION = 0.03, 0.0006, 0.02
"""The seconds of any program, of each operation, and of each reduction, which ends a kernel.

Measured on two cores (jaxlib 0.10.2) and estimated by these figures, in seconds:

| program | operations | reductions | measured | estimated |
|---|---|---|---|---|
| gradient of a transformer of 1, 4 and 8 layers | 451, 1,402, 2,670 | 22, 67, 127 | 1.6, 2.5, 4.6 | 0.7, 2.2, 4.1 |
| its values | 208, 589, 1,097 | 12, 30, 54 | 0.6, 0.9, 1.0 | 0.4, 1.0, 1.8 |
| gradient of a chain of 300 sines | 2,099 | 0 | 1.4 | 1.3 |
| 20 standardisations | 530 | 41 | 1.7 | 1.2 |
| gradient of 40 layers of 32 | 323 | 1 | 0.1 | 0.2 |
| 30 draws of 10 normal numbers, each of its own key | 903 | 30 | 2.1 | 1.2 |
"""
ENOUGH = 0.2
"""The least estimate, in seconds, whose error corrects later estimates; times of smaller programs vary too much."""

_ratio = 1.0
"""The time of compilations in this process, as a multiple of the figures above."""


def by_table(lines: Iterable[str]) -> float:
    """Estimate the seconds that compiling a program takes, from its lines of StableHLO and this module's constants."""
    operations = reductions = 0
    for line in lines:
        operations += 1 + line.count("\n")  # of the body of a loop
        reductions += line.count('"stablehlo.reduce"')
    return FIXED + EACH * operations + REDUCTION * reductions


def expected(table: float) -> float:
    """Correct an estimate of :func:`by_table` by the times that earlier compilations of this process took."""
    return _ratio * table


def observe(table: float, seconds: float) -> None:
    """Record that compiling took ``seconds`` where :func:`by_table` estimated ``table``, to correct later estimates."""
    global _ratio
    if table >= ENOUGH:
        _ratio = min(max(math.sqrt(_ratio * max(seconds, 1e-3) / table), 0.05), 20.0)
