"""How long compiling a program is expected to take, by what was measured, and by what this process has seen."""

from __future__ import annotations

import math
from collections.abc import Iterable

FIXED, EACH, REDUCTION = 0.03, 0.0006, 0.02
"""The seconds that any program takes, that each operation adds, and that each reduction adds, which ends a kernel.

Measured on two cores (jaxlib 0.10.2), and what these figures say, in seconds:

| program | operations | reductions | measured | said |
|---|---|---|---|---|
| gradient of a transformer of 1, 4 and 8 layers | 451, 1,402, 2,670 | 22, 67, 127 | 1.6, 2.5, 4.6 | 0.7, 2.2, 4.1 |
| its values | 208, 589, 1,097 | 12, 30, 54 | 0.6, 0.9, 1.0 | 0.4, 1.0, 1.8 |
| gradient of a chain of 300 sines | 2,099 | 0 | 1.4 | 1.3 |
| 20 standardisations | 530 | 41 | 1.7 | 1.2 |
| gradient of 40 layers of 32 | 323 | 1 | 0.1 | 0.2 |
| 30 draws of 10 normal numbers, each of its own key | 903 | 30 | 2.1 | 1.2 |
"""
ENOUGH = 0.2
"""A program that takes so many seconds says something about the machine; smaller ones differ too much."""

_ratio = 1.0
"""How many times as long programs take in this process as the figures above say."""


def by_table(lines: Iterable[str]) -> float:
    """The seconds that the figures above say for the lines of a program."""
    operations = reductions = 0
    for line in lines:
        operations += 1 + line.count("\n")  # of the body of a loop
        reductions += line.count('"stablehlo.reduce"')
    return FIXED + EACH * operations + REDUCTION * reductions


def expected(table: float) -> float:
    """The seconds that the compiler will take for a program for which the table says so many."""
    return _ratio * table


def observe(table: float, seconds: float) -> None:
    """Note that compiling a program took so many seconds, where the table says other ones."""
    global _ratio
    if table >= ENOUGH:
        _ratio = min(max(math.sqrt(_ratio * max(seconds, 1e-3) / table), 0.05), 20.0)
