# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.core.tree import all as all
from pullback.core.tree import broadcast as broadcast
from pullback.core.tree import flatten as flatten
from pullback.core.tree import flatten_with_path as flatten_with_path
from pullback.core.tree import leaves as leaves
from pullback.core.tree import leaves_with_path as leaves_with_path
from pullback.core.tree import map_with_path as map_with_path
from pullback.core.tree import reduce as reduce
from pullback.core.tree import reduce_associative as reduce_associative
from pullback.core.tree import static as static
from pullback.core.tree import structure as structure
from pullback.core.tree import transpose as transpose
from pullback.core.tree import tree_map as map
from pullback.core.tree import unflatten as unflatten

__all__ = [
    "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map", "map_with_path",
    "reduce", "reduce_associative", "static", "structure", "transpose", "unflatten",
]
