"""All rows of the grid: those of primitives, and those of functions."""

from __future__ import annotations

from tests.grid.convolution_specs import IN_SPACE, POOLING
from tests.grid.decomposition_specs import DECOMPOSITION_FUNCTIONS, DECOMPOSITIONS
from tests.grid.lax_specs import LAX, OF_LAX
from tests.grid.masked_specs import MASKED
from tests.grid.mode_specs import MODES
from tests.grid.nn_specs import NN
from tests.grid.numpy_specs import NUMPY
from tests.grid.scipy_linalg_specs import MATRIX_FUNCTIONS, MATRIX_FUNCTIONS_OF_SCIPY
from tests.grid.scipy_signal_specs import OF_SCIPY, SCIPY_PRIMITIVES
from tests.grid.sparse_specs import SPARSE
from tests.grid.special_specs import SPECIAL, SPECIAL_PRIMITIVES
from tests.grid.specs import PRIMITIVES, ROLLS, Spec
from tests.grid.stats_specs import DISTRIBUTIONS, OPERATIONS

OF_PRIMITIVES: list[Spec] = [
    *PRIMITIVES, *IN_SPACE, *LAX, *DECOMPOSITIONS, *SPARSE, *SCIPY_PRIMITIVES, *SPECIAL_PRIMITIVES, *OPERATIONS,
    *MATRIX_FUNCTIONS, *MASKED, *MODES, *ROLLS,
]  # fmt: skip
FUNCTIONS_OF_SCIPY: list[Spec] = [*OF_SCIPY, *SPECIAL, *DISTRIBUTIONS, *MATRIX_FUNCTIONS_OF_SCIPY]
"""Compositions of operations that have rows of their own; the recorded cases compile them."""
OF_FUNCTIONS: list[Spec] = [*DECOMPOSITION_FUNCTIONS, *NUMPY, *NN, *POOLING, *OF_LAX, *FUNCTIONS_OF_SCIPY]
ALL: list[Spec] = [*OF_PRIMITIVES, *OF_FUNCTIONS]
