"""The functions that are measured."""

from benchmarks.accuracy import complex, elementary, special

FUNCTIONS = (
    *elementary.EXACT_ONES,
    *elementary.ELEMENTARY,
    *elementary.TRIGONOMETRIC,
    *elementary.SPECIAL,
    *special.SPECIAL,
    *complex.COMPLEX,
)
