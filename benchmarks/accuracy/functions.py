"""The functions that are measured."""

from benchmarks.accuracy import complex, elementary, special, special_kinds

FUNCTIONS = (
    *elementary.EXACT_ONES,
    *elementary.ELEMENTARY,
    *elementary.TRIGONOMETRIC,
    *elementary.SPECIAL,
    *special.SPECIAL,
    *special_kinds.KINDS,
    *complex.COMPLEX,
)
