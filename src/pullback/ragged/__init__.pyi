# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.ragged.arrays import Ragged as Ragged
from pullback.ragged.arrays import elementwise as elementwise
from pullback.ragged.rows import concatenate as concatenate
from pullback.ragged.rows import contract as contract
from pullback.ragged.rows import dot_product_attention as dot_product_attention
from pullback.ragged.rows import vmap as vmap

__all__ = [
    "Ragged", "concatenate", "contract", "dot_product_attention", "elementwise", "vmap",
]
