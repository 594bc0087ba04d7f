# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.export.executables import deserialize_and_load as deserialize_and_load
from pullback.export.executables import serialize as serialize

__all__ = [
    "deserialize_and_load", "serialize",
]
