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

    ``Primitive("rev", moves=True)`` declares the value of the trait ``moves`` for a new operation, and :meth:`declare`
    does so for an existing operation. Libraries may define traits of their own.

    Args:
      name: the keyword of ``Primitive``.
      meaning: a description, for the reference page of rules.
      default: the value for operations that do not declare it.

    Raises:
      ArgumentError: there is another trait of this name (a ValueError).

    >>> from pullback import lax
    >>> from pullback.extend import Trait
    >>> odd = Trait("odd", "f(-x) is -f(x)", False)
    >>> odd.declare(lax.sin_p, True)
    >>> odd.of(lax.sin_p), odd.of(lax.neg_p)
    (True, False)
    """

    __slots__ = ("default", "meaning", "name")
    default: T
    meaning: str

    def __init__(self, name: str, meaning: str, default: T) -> None:
        other = TRAITS.get(name)
        if other is not None and (other.meaning, other.default) != (meaning, default):
            raise ArgumentError(f"there already is a trait {name!r}: {other.meaning}")
        self.name, self.meaning, self.default = name, meaning, default
        TRAITS[name] = self

    def of(self, primitive: Any) -> T:
        """Return the value of the trait for an operation; the default if it is not declared."""
        return primitive.traits.get(self.name, self.default)  # type: ignore[no-any-return]

    def declare(self, primitive: Any, value: T) -> None:
        """Set the value of the trait for an existing operation."""
        primitive.traits[self.name] = value

    def __repr__(self) -> str:
        return f"Trait({self.name!r})"


TRAITS: dict[str, Trait[Any]] = {}
"""All traits, by their names."""


def checked(name: str, traits: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``traits`` as a dictionary if all its keys are names of traits; otherwise raise an error.

    Args:
      name: the name of the new operation, for the error.
      traits: the values that were passed to ``Primitive``, by their keywords.

    Raises:
      ArgumentError: a keyword is no trait (a ValueError).
    """
    for trait in traits:
        if trait not in TRAITS:
            raise ArgumentError(f"the primitive {name!r} has no trait {trait!r}; the traits are {', '.join(TRAITS)}")
    return dict(traits)


class Cost(enum.Enum):
    """The cost of an operation for each element of its largest operand or result, in classes of increasing cost.

    The times on the host were measured on an AMD EPYC, for 20,000 elements of float32.

    Attributes:
      LIGHT: such as a sum: 0.1 ns for each element in a compiled loop, 0.3 to 10 ns on the host.
      SIMPLE: such as a sine or a quotient: 2.5 ns in a compiled loop, 0.3 to 40 ns on the host.
      SPECIAL: such as a special function, computed by iteration: 40 to 1,000 ns on the host.
      PRODUCT: a product of matrices: 0.05 to 0.3 ns on the host for each product of two elements.
      MATRIX: a decomposition of a matrix: 1 to 20 ns on the host, times the number of rows.
      CALL: a call of a Python function, whose cost does not depend on the number of elements.
    """

    LIGHT = "light"
    SIMPLE = "simple"
    SPECIAL = "special"
    PRODUCT = "product"
    MATRIX = "matrix"
    CALL = "call"


elementwise = Trait("elementwise", "an element of the result depends only on the same element of each operand", False)
moves = Trait("moves", "the results consist of elements of the operands, whatever their values", False)
keeps_elements = Trait("keeps_elements", "the result is the operand, element by element: nothing is computed", False)
signs: Trait[tuple[int, ...]] = Trait(
    "signs", "the result is the sum of the operands with these signs; only the sign of a zero may differ", ()
)
multiplicative = Trait("multiplicative", "negating one operand negates the result", False)
passes_nan = Trait("passes_nan", "a result is NaN only if an operand or a parameter is", False)
cost: Trait[Cost] = Trait("cost", "its cost for each element", Cost.SPECIAL)
compiled_from: Trait[int | None] = Trait(
    "compiled_from", "the number of elements of an operand from which on eager code compiles it", None
)
