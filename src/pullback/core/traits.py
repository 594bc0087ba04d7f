"""Traits: properties that are declared with an operation and read by analyses and transformations.

A rule implements one transformation of one operation. A trait states a fact about an operation, and several analyses
use it: the sparsity pattern of a derivative, the form of a Laplacian, the cost of a program.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from pullback.core.errors import ArgumentError

T = TypeVar("T")


class Trait(Generic[T]):
    """A property of operations.

    A keyword of ``Primitive`` declares its value: ``Primitive("rev", moves=True)``. A library may define a trait of its
    own, and declare its values for existing operations with :meth:`declare`.

    Args:
      name: the keyword.
      meaning: a description, for the reference page of rules.
      default: the value for operations that do not declare it.

    Raises:
      ArgumentError: there is another trait of this name (a ValueError).

    >>> from pullback.primitives.elementwise import neg_p, sin_p
    >>> odd = Trait("odd", "f(-x) is -f(x)", False)
    >>> odd.declare(sin_p, True)
    >>> odd.of(sin_p), odd.of(neg_p)
    (True, False)
    """

    __slots__ = ("default", "meaning", "name")
    default: T
    meaning: str

    def __init__(self, name: str, meaning: str, default: T) -> None:
        other = TRAITS.get(name)
        if other is not None and (other.meaning, other.default) != (meaning, default):
            raise ArgumentError(f"there is another trait {name!r} already: {other.meaning}")
        self.name, self.meaning, self.default = name, meaning, default
        TRAITS[name] = self

    def of(self, primitive: Any) -> T:
        """Return the value for an operation."""
        return primitive.traits.get(self.name, self.default)  # type: ignore[no-any-return]

    def declare(self, primitive: Any, value: T) -> None:
        """Declare the value for an existing operation."""
        primitive.traits[self.name] = value

    def __repr__(self) -> str:
        return f"Trait({self.name!r})"


TRAITS: dict[str, Trait[Any]] = {}
"""All traits, by their names."""


def checked(name: str, traits: Mapping[str, Any]) -> dict[str, Any]:
    """Check that the keywords of a new operation ``name`` are known traits, and return them as a dictionary.

    Raises:
      ArgumentError: a keyword is no trait (a ValueError).
    """
    for trait in traits:
        if trait not in TRAITS:
            raise ArgumentError(f"the primitive {name!r} has no trait {trait!r}; there are {', '.join(TRAITS)}")
    return dict(traits)


class Cost(enum.Enum):
    """The cost of an operation for each element of its largest operand or result, in classes of increasing cost.

    The host's figures were measured on an AMD EPYC, for 20,000 elements of float32.

    Attributes:
      LIGHT: a sum: 0.1 ns in a compiled loop, 0.3 to 10 ns on the host.
      SIMPLE: a sine or a quotient: 2.5 ns in a compiled loop, 0.3 to 40 ns on the host.
      SPECIAL: a function that iterates: 40 to 1,000 ns on the host.
      PRODUCT: a product of matrices: 0.05 to 0.3 ns on the host for each product of two elements.
      MATRIX: a decomposition: 1 to 20 ns on the host, times the rows of the matrix.
      CALL: a call of a Python function, whatever the number of elements.
    """

    LIGHT = "light"
    SIMPLE = "simple"
    SPECIAL = "special"
    PRODUCT = "product"
    MATRIX = "matrix"
    CALL = "call"


elementwise = Trait("elementwise", "an element of the result depends on that element of each operand alone", False)
moves = Trait("moves", "the elements of the results are elements of the operands, whatever these are", False)
signs: Trait[tuple[int, ...]] = Trait(
    "signs", "the result is the sum of the operands with these signs; only the sign of a zero may be another", ()
)
multiplicative = Trait("multiplicative", "with one operand negated the result is negated", False)
passes_nan = Trait("passes_nan", "a result is NaN only where an operand is, or where NaN is asked for", False)
cost: Trait[Cost] = Trait("cost", "what it costs for each element", Cost.SPECIAL)
compiled_from: Trait[int | None] = Trait(
    "compiled_from", "from how many elements of an operand on it is compiled where it is evaluated", None
)
