# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.core.refs import AbstractRef as AbstractRef
from pullback.transforms.traces.refs import Ref as Ref
from pullback.transforms.traces.refs import addupdate as addupdate
from pullback.transforms.traces.refs import empty_ref as empty_ref
from pullback.transforms.traces.refs import free_ref as free_ref
from pullback.transforms.traces.refs import freeze as freeze
from pullback.transforms.traces.refs import get as get
from pullback.transforms.traces.refs import new_ref as new_ref
from pullback.transforms.traces.refs import set as set
from pullback.transforms.traces.refs import swap as swap

__all__ = [
    "AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap",
]
