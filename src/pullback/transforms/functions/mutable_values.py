"""Mutable values of users' types as arguments: a compiled function takes their arrays, and returns the new ones.

The type of such a value is no ``HiType``, since its structure may change; ``cur_qdd`` of the value describes it. The
type has methods that return the arrays of a value (``read_loval``), make a value of arrays (``new_from_loval``), and
replace the arrays of a value (``update_from_loval``); each takes the structure first. Inside the function, a new value
of traced arrays stands for each argument. Afterwards the argument gets the arrays and the structure of that value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from pullback.core import tree
from pullback.core.array import as_array
from pullback.core.errors import OperandError
from pullback.core.trace import Trace, state
from pullback.core.user_types import mutable_type
from pullback.transforms.functions.arguments import name_of

_made: WeakKeyDictionary[Trace, list[Any]] = WeakKeyDictionary()
"""For each trace the mutable values that were made under it."""


def made(value: Any) -> Any:
    """Note that a mutable value was made under the current trace; return it. Other objects are returned as they are."""
    if not state.trace.is_bottom and mutable_type(value) is not None:
        _made.setdefault(state.trace, []).append(value)
    return value


def made_under(trace: Trace, value: Any) -> bool:
    """Return whether a mutable value was made under a trace."""
    return any(value is x for x in _made.get(trace, ()))


@tree.register_pytree_node_class
class State:
    """The arrays of a mutable value, as a node of trees, with its type and its structure.

    Args:
      arrays: the arrays.
      described: the type and the structure.
    """

    __slots__ = ("arrays", "described")

    def __init__(self, arrays: Any, described: tuple[Any, Any]) -> None:
        self.arrays, self.described = arrays, described

    @classmethod
    def of(cls, value: Any) -> State:
        """Return the state of a value."""
        aval, structure = mutable_type(value), value.cur_qdd()
        return cls(list(map(as_array, aval.read_loval(structure, value))), (aval, structure))

    def value(self) -> Any:
        """Return a new value in this state."""
        aval, structure = self.described
        return made(aval.new_from_loval(structure, *self.arrays))

    def assign(self, value: Any) -> None:
        """Change a value to this state."""
        aval, structure = self.described
        aval.update_from_loval(structure, value, *self.arrays)

    def tree_flatten(self) -> tuple[list[Any], tuple[Any, Any]]:
        """Return the arrays, and the type and the structure."""
        return list(self.arrays), self.described

    @classmethod
    def tree_unflatten(cls, described: tuple[Any, Any], arrays: Any) -> State:
        """Return the state of these arrays."""
        return cls(list(arrays), described)


@tree.register_pytree_node_class
class Again:
    """A node without children, for a mutable value that is passed a second time.

    Args:
      number: the number of the value among those that are passed.
    """

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def tree_flatten(self) -> tuple[tuple[()], int]:
        """Return no children, and the number."""
        return (), self.number

    @classmethod
    def tree_unflatten(cls, number: int, children: Any) -> Again:
        """Return the node of this number."""
        return cls(number)


def with_states(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, list[Any]]:
    """Replace mutable values among arguments by their states.

    Returns:
      The positional and the keyword arguments, and the values.
    """
    leaves, treedef = tree.flatten((args, kwargs))
    values: list[Any] = []
    for i, x in enumerate(leaves):
        if mutable_type(x) is not None:
            known = [k for k, value in enumerate(values) if value is x]
            leaves[i] = Again(known[0]) if known else State.of(x)
            if not known:
                values.append(x)
    return *tree.unflatten(treedef, leaves), values


class OnStates:
    """A function that takes states instead of mutable values, and returns its result and the new states.

    Args:
      fun: the user's function.
    """

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = self.__wrapped__ = fun
        self.__name__ = getattr(fun, "__name__", type(fun).__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, list[State]]:
        leaves, treedef = tree.flatten((args, kwargs), is_leaf=lambda x: isinstance(x, (State, Again)))
        values: list[Any] = []
        for i, x in enumerate(leaves):
            if isinstance(x, State):
                leaves[i] = x.value()
                values.append(leaves[i])
            elif isinstance(x, Again):
                leaves[i] = values[x.number]
        args, kwargs = tree.unflatten(treedef, leaves)
        out = self.fun(*args, **kwargs)
        if any(mutable_type(x) is not None for x in tree.leaves(out)):
            raise OperandError(
                f"{name_of(self.fun)} returned a mutable value of a user's type: the caller has the values that it "
                "passed; return arrays, or values that are immutable"
            )
        return out, list(map(State.of, values))
