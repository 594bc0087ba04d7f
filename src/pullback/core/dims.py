# long: because the arithmetic of sizes, their bounds and their texts need each other
"""Symbolic sizes: polynomials with integer coefficients in names that stand for sizes, such as ``2*b + 1``.

A name stands for any size of at least 1. Functions of sizes that are no polynomials (``floordiv``, ``mod``, ``max``,
``min``) are factors like names. A comparison is decided by bounds: of the names, of such factors, and by the
constraints of the scope that the names belong to. One that is not decided raises
``InconclusiveDimensionOperation``.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pullback.core.array import as_array
from pullback.core.errors import ArgumentError, InconclusiveDimensionOperation
from pullback.core.naming import quoted
from pullback.core.runtime import runtime
from pullback.core.types import Shape

Size = Any
"""An int or a :class:`Dim`."""


class SymbolicScope:
    """A scope of symbolic sizes: their names, and the constraints on them.

    Sizes that occur together belong to one scope.

    Args:
      constraints_str: the constraints, such as ``"b >= 4"``, ``"a <= 2*b"`` or ``"mod(b, 8) == 0"``.

    Raises:
      ArgumentError: something that is no such constraint, or that never holds (a TypeError and ValueError).

    >>> from pullback import export
    >>> (b,) = export.symbolic_shape("b", scope=export.SymbolicScope(["b >= 4"]))
    >>> b - 1 >= 3, b >= 3
    (True, True)
    """

    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        if isinstance(constraints_str, str) or not all(isinstance(c, str) for c in constraints_str):
            raise ArgumentError(f"SymbolicScope: constraints must be a list of strings, got {constraints_str!r}")
        self.constraints: tuple[str, ...] = ()
        self.variables: dict[str, Variable] = {}
        self.at_least_zero: list[Dim] = []
        self.rewrites: dict[Factor, Size] = {}
        for text in constraints_str:
            self._add(text)
            self.constraints += (text,)

    def _add(self, text: str) -> None:
        for sign in ("==", ">=", "<="):
            left, found, right = text.partition(sign)
            if found:
                break
        else:
            raise ArgumentError(f"a constraint must have one of ==, >= and <=, got {text!r}")
        a, b = parse_size(left, self), parse_size(right, self)
        gap = a - b if sign != "<=" else b - a
        if not isinstance(gap, Dim):
            if gap < 0 or (gap and sign == "=="):
                raise ArgumentError(f"the constraint {text!r} never holds")
            return
        if sign == "==":
            self._rewrite(a, b)
            self.at_least_zero += [gap, -gap]
        else:
            self.at_least_zero.append(gap)

    def _rewrite(self, a: Size, b: Size) -> None:
        """Record that ``a`` equals ``b``: if ``a`` is a single variable or function, later sizes have ``b`` instead."""
        factor = a.single_factor() if isinstance(a, Dim) else None
        if factor is None:
            return
        self.rewrites[factor] = b
        if isinstance(factor, Function) and factor.name == "mod" and b == 0:
            x, d = factor.operands
            exact = Function("floordiv", (x, d))
            whole = Dim.of(self, {((exact, 1),): 1}) * d - x
            self.at_least_zero += [whole, -whole]

    def variable(self, name: str) -> Variable:
        """Return the variable of a name in this scope; the first call for a name makes it.

        Args:
          name: the name, such as ``"b"``.

        Returns:
          A symbolic size.
        """
        return self.variables.setdefault(name, Variable(name))

    def __repr__(self) -> str:
        return f"SymbolicScope({list(self.constraints)})"


class Variable:
    """A variable in symbolic sizes, such as ``b``; each name has one object in each scope."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


class Function:
    """A function of sizes that is no polynomial: ``mod``, ``floordiv``, ``max`` or ``min``."""

    __slots__ = ("_hash", "name", "operands")

    def __init__(self, name: str, operands: tuple[Size, ...]) -> None:
        self.name, self.operands = name, operands
        self._hash = hash((name, operands))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Function) or self._hash != other._hash or self.name != other.name:
            return False
        return all(same(x, y) for x, y in zip(self.operands, other.operands, strict=True))

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.operands))})"


Factor = Variable | Function
Monomial = tuple[tuple[Factor, int], ...]
"""Factors with their powers, in the order of their names."""


def same(x: Size, y: Size) -> bool:
    """Whether two sizes are equal ints, or symbolic sizes with the same terms; no constraints are used."""
    return x.terms == y.terms if isinstance(x, Dim) and isinstance(y, Dim) else type(x) is type(y) and bool(x == y)


def _integer(x: Any) -> int | None:
    try:
        return operator.index(x)
    except (TypeError, InconclusiveDimensionOperation):
        return None


def _binary(compute: Callable[[Dim, Size], Any], of_arrays: Callable[[Any, Any], Any], swapped: bool = False) -> Any:
    """Make a method of ``Dim`` for a binary operator.

    Args:
      compute: the operator on a symbolic size and another size.
      of_arrays: the operator on arrays: if the other operand is an array or a float, the size is converted to an array.
      swapped: whether the size is the second operand.
    """

    def method(self: Dim, other: Any) -> Any:
        if isinstance(other, Dim):
            if other.scope is not self.scope:
                raise ArgumentError(
                    f"the sizes {self} and {other} belong to different scopes: make them in one call of "
                    f"symbolic_shape, or pass scope="
                )
            return compute(self, other)
        number = None if hasattr(other, "shape") and other.shape else _integer(other)
        if number is not None:
            return compute(self, number)
        if isinstance(other, float | complex) or (hasattr(other, "dtype") and not hasattr(other, "aval")):
            array = as_array(self)
            return of_arrays(other, array) if swapped else of_arrays(array, other)
        return NotImplemented

    return method


class Dim:
    """A symbolic size: a polynomial in variables and functions, which ``as_array`` converts to an integer array.

    Attributes:
      scope: the scope of its variables.
      terms: a tuple of pairs (product, coefficient), where a product is a tuple of pairs (factor, power).
    """

    __slots__ = ("_hash", "scope", "terms")
    __array_priority__ = 100  # operators of NumPy's arrays leave it to this class: they would make arrays of objects

    def __init__(self, scope: SymbolicScope, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.scope, self.terms = scope, terms
        self._hash = hash(frozenset(terms))

    @staticmethod
    def of(scope: SymbolicScope, terms: Mapping[Monomial, int]) -> Size:
        """Return the sum of ``terms``, the coefficient of each product of factors; an int if it has no variables."""
        kept = {m: c for m, c in terms.items() if c}
        if not kept:
            return 0
        if len(kept) == 1 and () in kept:
            return kept[()]
        return Dim(scope, tuple(sorted(kept.items(), key=_order)))

    @staticmethod
    def factor(scope: SymbolicScope, factor: Factor) -> Size:
        """Convert a variable, or a function of sizes, to a size."""
        found = scope.rewrites.get(factor)
        return Dim.of(scope, {((factor, 1),): 1}) if found is None else found

    def single_factor(self) -> Factor | None:
        """The variable or function that the size consists of; None if it is a number, a sum, a product or a power."""
        if len(self.terms) == 1:
            monomial, coefficient = self.terms[0]
            if coefficient == 1 and len(monomial) == 1 and monomial[0][1] == 1:
                return monomial[0][0]
        return None

    # Arithmetic

    def _added(self, other: Size, scale: int = 1) -> Size:
        terms = dict(self.terms)
        for monomial, c in other.terms if isinstance(other, Dim) else (((), other),):
            terms[monomial] = terms.get(monomial, 0) + scale * c
        return Dim.of(self.scope, terms)

    def _times(self, other: Size) -> Size:
        terms: dict[Monomial, int] = {}
        for m, c in self.terms:
            for n, d in other.terms if isinstance(other, Dim) else (((), other),):
                product = _product(m, n)
                terms[product] = terms.get(product, 0) + c * d
        return Dim.of(self.scope, terms)

    def __neg__(self) -> Size:
        return self._times(-1)

    def __pos__(self) -> Dim:
        return self

    __add__ = _binary(lambda x, y: x._added(y), operator.add)
    __radd__ = _binary(lambda x, y: x._added(y), operator.add, True)
    __sub__ = _binary(lambda x, y: x._added(y, -1), operator.sub)
    __rsub__ = _binary(lambda x, y: (-x) + y, operator.sub, True)
    __mul__ = _binary(lambda x, y: x._times(y), operator.mul)
    __rmul__ = _binary(lambda x, y: x._times(y), operator.mul, True)
    __floordiv__ = _binary(lambda x, y: divided(x, y)[0], operator.floordiv)
    __rfloordiv__ = _binary(lambda x, y: divided(y, x)[0], operator.floordiv, True)
    __mod__ = _binary(lambda x, y: divided(x, y)[1], operator.mod)
    __rmod__ = _binary(lambda x, y: divided(y, x)[1], operator.mod, True)
    __divmod__ = _binary(lambda x, y: divided(x, y), divmod)
    __rdivmod__ = _binary(lambda x, y: divided(y, x), divmod, True)
    __truediv__ = _binary(lambda x, y: as_array(x) / as_array(y), operator.truediv)
    __rtruediv__ = _binary(lambda x, y: as_array(y) / as_array(x), operator.truediv, True)

    def __pow__(self, power: Any) -> Any:
        n = _integer(power)
        if n is None or n < 0:
            return as_array(self) ** power
        out: Size = 1
        for _ in range(n):
            out = self * out
        return out

    def __rpow__(self, base: Any) -> Any:
        return base ** as_array(self)

    # Comparison

    __ge__ = _binary(lambda x, y: _at_least(x, y, ">=", x, y), operator.ge)
    __le__ = _binary(lambda x, y: _at_least(y, x, "<=", x, y), operator.le)
    __gt__ = _binary(lambda x, y: _at_least(x, y + 1, ">", x, y), operator.gt)
    __lt__ = _binary(lambda x, y: _at_least(y, x + 1, "<", x, y), operator.lt)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, Dim):
            if other.scope is not self.scope:
                return False
        elif _integer(other) is None:
            return False
        if isinstance(other, Dim) and self.terms == other.terms:
            return True
        gap = self - other
        return bounds(gap) == (0, 0) if isinstance(gap, Dim) else gap == 0

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return self._hash

    def __bool__(self) -> bool:
        low, high = bounds(self)
        if low > 0 or high < 0:
            return True
        raise _inconclusive(f"whether {self} is zero", self.scope, f"{self} >= 1")

    # Conversion

    def __index__(self) -> int:
        raise _inconclusive(f"the symbolic size {self} where a number is needed", self.scope, None)

    __int__ = __index__

    def __jax_array__(self) -> Any:
        return runtime.size_value(self)

    def __str__(self) -> str:
        out = ""
        for monomial, c in self.terms:
            shown = "*".join(f"{f}^{p}" if p > 1 else str(f) for f, p in monomial)
            size = abs(c)
            part = str(size) if not shown else shown if size == 1 else f"{size}*{shown}"
            sign = ("- " if c < 0 else "") if not out else (" - " if c < 0 else " + ")
            out += sign + part
        return out

    __repr__ = __str__

    def evaluate(self, sizes: Mapping[Variable, Size]) -> Size:
        """The value of this size where the variables have the given ``sizes``."""
        out: Size = 0
        for monomial, c in self.terms:
            product: Size = c
            for f, p in monomial:
                if isinstance(f, Variable):
                    value = sizes[f]
                else:
                    value = _applied(f.name, [evaluate(x, sizes) for x in f.operands])
                for _ in range(p):
                    product = product * value
            out = out + product
        return out

    def names(self) -> set[Variable]:
        """The variables that occur in this size."""
        found: set[Variable] = set()
        for monomial, _ in self.terms:
            for f, _ in monomial:
                found |= {f} if isinstance(f, Variable) else set().union(*map(names_in, f.operands))
        return found


def _order(term: tuple[Monomial, int]) -> Any:
    return -sum(p for _, p in term[0]), str(term[0])


def _product(m: Monomial, n: Monomial) -> Monomial:
    powers = dict(m)
    for f, p in n:
        powers[f] = powers.get(f, 0) + p
    return tuple(sorted(powers.items(), key=lambda pair: str(pair[0])))


def is_symbolic(size: Any) -> bool:
    """Whether a size is symbolic."""
    return type(size) is Dim


def as_size(n: Any) -> Size:
    """Return ``n``, an int or a symbolic size from a user, as a size.

    Raises:
      TypeError: it is neither.
    """
    return n if type(n) is Dim else operator.index(n)


def any_symbolic(shape: Iterable[Any]) -> bool:
    """Whether any of some sizes is symbolic."""
    return Dim in map(type, shape)


def evaluate(size: Size, sizes: Mapping[Variable, Size]) -> Size:
    """The value of a size where the variables have the given ``sizes``."""
    return size.evaluate(sizes) if isinstance(size, Dim) else size


def names_in(size: Size) -> set[Variable]:
    """The variables that occur in a size."""
    return size.names() if isinstance(size, Dim) else set()


# Functions of sizes --------------------------------------------------------------------------------------------------


def _scope(*sizes: Size) -> SymbolicScope:
    return next(x.scope for x in sizes if isinstance(x, Dim))


def _applied(name: str, operands: Sequence[Size]) -> Size:
    x, y = operands
    if name in ("floordiv", "mod"):
        return divided(x, y)[name == "mod"]
    return largest(x, y) if name == "max" else smallest(x, y)


def _decided(x: Size, y: Size) -> bool:
    """Whether ``x >= y`` is known to hold for all values of the variables."""
    try:
        return bool(x >= y)
    except InconclusiveDimensionOperation:
        return False


def largest(x: Size, y: Size) -> Size:
    """The larger of two sizes; a symbolic ``max`` if that depends on the variables."""
    if _decided(x, y):
        return x
    return y if _decided(y, x) else Dim.factor(_scope(x, y), Function("max", (x, y)))


def smallest(x: Size, y: Size) -> Size:
    """The smaller of two sizes; a symbolic ``min`` if that depends on the variables."""
    if _decided(x, y):
        return y
    return x if _decided(y, x) else Dim.factor(_scope(x, y), Function("min", (x, y)))


def divided(x: Size, y: Size) -> tuple[Size, Size]:
    """Return the floor of ``x / y`` and the remainder.

    Terms of ``x`` that are multiples of ``y`` are divided exactly; for the rest, the results may contain a symbolic
    ``floordiv`` and ``mod``.
    """
    if not isinstance(x, Dim) and not isinstance(y, Dim):
        return x // y, x % y
    if not isinstance(y, Dim) and y == 0:
        raise ZeroDivisionError(f"{x} divided by 0")
    scope = _scope(x, y)
    whole, rest = _long_division(scope, x, y)
    if not isinstance(rest, Dim) and not isinstance(y, Dim):
        q, r = divmod(rest, y)
        return whole + q, r
    low, _ = bounds(rest)
    if low >= 0 and (same(rest, 0) or bounds(y - rest)[0] > 0):
        return whole, rest
    remainder = Dim.factor(scope, Function("mod", (rest, y)))
    if same(remainder, 0) and isinstance(rest, Dim):
        exact = Function("floordiv", (rest, y))
        return whole + Dim.factor(scope, exact), 0
    return whole + Dim.factor(scope, Function("floordiv", (rest, y))), remainder


def _long_division(scope: SymbolicScope, x: Size, y: Size) -> tuple[Size, Size]:
    """Divide polynomials by the leading term of ``y``; return a quotient and a rest: x = quotient * y + rest."""
    leading, c = y.terms[0] if isinstance(y, Dim) else ((), y)
    quotient: Size = 0
    rest = x
    for _ in range(32):
        for m, d in rest.terms if isinstance(rest, Dim) else (((), rest),):
            left = _without(m, leading)
            if left is not None and d // c and (not isinstance(y, Dim) or d % c == 0):
                part = Dim.of(scope, {left: d // c})
                quotient, rest = quotient + part, rest - part * y
                break
        else:
            break
    return quotient, rest


def _without(m: Monomial, n: Monomial) -> Monomial | None:
    """Return the product of powers ``m`` divided by the product ``n``; None if ``n`` does not divide ``m``."""
    powers = dict(m)
    for f, p in n:
        if powers.get(f, 0) < p:
            return None
        powers[f] -= p
    return tuple((f, p) for f, p in powers.items() if p)


# Bounds --------------------------------------------------------------------------------------------------------------

Bounds = tuple[float, float]
_DEPTH = 3
_MOST = 2.0**31 - 1
"""The largest size that a name stands for: programs compute with sizes in 32 bits."""


def bounds(size: Size, depth: int = _DEPTH) -> Bounds:
    """A lower and an upper bound of the values that a size can have; infinite if unknown.

    ``depth`` limits how many constraints are used in succession.
    """
    if not isinstance(size, Dim):
        return size, size
    low, high = _plain_bounds(size, depth)
    if depth and (low == -math.inf or high == math.inf or low < 0 < high or low <= 0):
        low = max(low, _by_constraints(size, depth))
        high = min(high, -_by_constraints(-size, depth))
    return low, high


def _by_constraints(size: Size, depth: int) -> float:
    """A lower bound of a size that follows from the constraints of its scope; -inf if none follows.

    A constraint says that some size ``c`` is at least zero. If ``size`` is ``rest`` plus a positive multiple of ``c``,
    a lower bound of ``rest`` is also a lower bound of ``size``. At most ``depth`` constraints are used in succession.
    """
    from fractions import Fraction  # for symbolic sizes only

    best = -math.inf
    if not isinstance(size, Dim):
        return float(size)
    terms = dict(size.terms)
    for known in [*size.scope.at_least_zero, *_implied(size)]:
        for m, c in known.terms:
            ratio = Fraction(terms.get(m, 0), c)
            if m and ratio > 0:
                scale = ratio.denominator
                rest = size * scale - known * ratio.numerator
                low = _low(rest, depth - 1)
                if low > -math.inf:
                    best = max(best, math.ceil(Fraction(low) / scale))
    return best


def _low(size: Size, depth: int) -> float:
    if not isinstance(size, Dim):
        return float(size)
    low = _plain_bounds(size, depth)[0]
    return max(low, _by_constraints(size, depth)) if depth > 0 else low


def _implied(size: Dim) -> list[Any]:
    """Sizes that are at least zero by the definitions of the functions in ``size``.

    For example ``max(a, b) - a``, if ``size`` contains ``max(a, b)``.
    """
    found: list[Any] = []
    for monomial, _ in size.terms:
        for f, _ in monomial:
            if isinstance(f, Variable):
                continue
            x, y = f.operands
            value = Dim.of(size.scope, {((f, 1),): 1})
            if f.name == "floordiv" and not isinstance(y, Dim) and y > 0:
                found += [x - value * y, value * y + (y - 1) - x]
            elif f.name == "max":
                found += [value - x, value - y]
            elif f.name == "min":
                found += [x - value, y - value]
            elif f.name == "mod" and bounds(x, 1)[0] >= 0 and bounds(y, 1)[0] > 0:
                found += [x - value, y - value - 1]
    return [k for k in found if isinstance(k, Dim)]


def _plain_bounds(size: Dim, depth: int) -> Bounds:
    low = high = 0.0
    for monomial, c in size.terms:
        part: Bounds = (c, c)
        for f, p in monomial:
            of_factor = _factor_bounds(size.scope, f, depth)
            for _ in range(p):
                part = _interval(part, of_factor)
        low, high = low + part[0], high + part[1]
    return low, high


def _interval(a: Bounds, b: Bounds) -> Bounds:
    products = [0.0 if 0 in (x, y) else x * y for x in a for y in b]
    return min(products), max(products)


def _factor_bounds(scope: SymbolicScope, factor: Factor, depth: int) -> Bounds:
    if isinstance(factor, Variable):
        low, high = 1.0, _MOST
        for known in scope.at_least_zero:
            terms = dict(known.terms)
            scale = terms.pop(((factor, 1),), 0)
            constant = terms.pop((), 0)
            if scale > 0 and not terms:
                low = max(low, -(constant // scale))
            elif scale < 0 and not terms:
                high = min(high, constant // -scale)
        return low, high
    (x, y), name = factor.operands, factor.name
    (a, b), (c, d) = bounds(x, max(depth - 1, 0)), bounds(y, max(depth - 1, 0))
    if name == "max":
        return max(a, c), max(b, d)
    if name == "min":
        return min(a, c), min(b, d)
    if name == "mod":
        return (0.0, d - 1) if c > 0 else (c + 1, 0.0) if d < 0 else (-math.inf, math.inf)
    if c > 0:
        quotients = [_floor(n, m) for n in (a, b) for m in (c, d)]
        return min(quotients), max(quotients)
    return -math.inf, math.inf


def _floor(n: float, m: float) -> float:
    if math.isinf(m):
        return 0.0 if n >= 0 else -1.0 if not math.isinf(n) else -math.inf
    return n if math.isinf(n) else float(n // m)


def _in_all_cases(size: Size, depth: int = 4) -> bool:
    """Whether a size is at least zero because a ``max`` or ``min`` in it is one of its operands.

    b - max(a, c) is at least zero if b - a and b - c are. At most ``depth`` of them are replaced in succession.
    """
    if not isinstance(size, Dim):
        return bool(size >= 0)
    if bounds(size)[0] >= 0:
        return True
    for monomial, c in size.terms if depth else ():
        f = monomial[0][0] if len(monomial) == 1 and monomial[0][1] == 1 else None
        if isinstance(f, Function) and f.name in ("max", "min"):
            value = Dim.of(size.scope, {monomial: 1})
            enough = all if (f.name == "max") == (c < 0) else any  # the least of the cases, or the largest
            if enough(_in_all_cases(size + (x - value) * c, depth - 1) for x in f.operands):
                return True
    return False


def _at_least(x: Size, y: Size, sign: str, left: Size, right: Size) -> bool:
    gap = x - y
    if not isinstance(gap, Dim):
        return bool(gap >= 0)
    low, high = bounds(gap)
    if low >= 0:
        return True
    if high < 0:
        return False
    if _in_all_cases(gap):
        return True
    if _in_all_cases(-gap - 1):
        return False
    strict = {">": f"{left} >= {right + 1}", "<": f"{right} >= {left + 1}"}
    add = strict.get(sign, f"{left} {sign} {right}")
    raise _inconclusive(f"{left} {sign} {right}", gap.scope, add)


def _inconclusive(what: str, scope: SymbolicScope, add: str | None) -> InconclusiveDimensionOperation:
    known = f" It is known that {', '.join(scope.constraints)}." if scope.constraints else ""
    todo = (
        f"If it always holds, add constraints=[{add!r}]; if it never holds, add the opposite; otherwise write the "
        f"function so that it does not depend on it."
        if add is not None
        else "Use a number for this size when you export the function, or write the function so that it does not "
        "depend on it."
    )
    return InconclusiveDimensionOperation(
        f"symbolic sizes do not decide this: {what}. A name stands for any size of at least 1.{known} {todo}"
    )


# Text ----------------------------------------------------------------------------------------------------------------


def parse_size(text: str, scope: SymbolicScope) -> Size:
    """Parse a size, such as ``2*b + max(a, 1)``.

    Raises:
      ArgumentError: the text is not a size (a TypeError and ValueError).
    """
    parser = _Parser(text, scope)
    out = parser.total()
    if parser.token:
        raise parser.expected("an operator, +, -, * or ^")
    return out


_MOST_TERMS, _MOST_BITS = 256, 64
"""The most terms of a size in a text, and the most bits of a number, which is the largest power too."""


class _Parser:
    """Reads a size from text, from left to right."""

    def __init__(self, text: str, scope: SymbolicScope) -> None:
        self.text, self.scope = text.strip(), scope
        self.tokens = _tokens(text)
        self.at = 0

    @property
    def token(self) -> str:
        """The next name, number or sign, which is not consumed; empty at the end."""
        return self.tokens[self.at]

    def expected(self, what: str) -> ArgumentError:
        return ArgumentError(f"symbolic size {self.text!r}: expected {what}, got {self.token or 'the end'!r}")

    def take(self, *wanted: str) -> str | None:
        """Consume the next token if it is one of ``wanted``, and return it; else None."""
        if self.token not in wanted:
            return None
        self.at += 1
        return self.tokens[self.at - 1]

    def need(self, wanted: str) -> None:
        if not self.take(wanted):
            raise self.expected(repr(wanted))

    def total(self) -> Size:
        out = self.product()
        while sign := self.take("+", "-"):
            part = self.product()
            out = out + part if sign == "+" else out - part
        return out

    def product(self) -> Size:
        if sign := self.take("-", "+"):
            return -self.product() if sign == "-" else self.product()
        out = self.power()
        while self.take("*"):
            out = self.bounded(out * self.power())
        return out

    def bounded(self, size: Size) -> Size:
        """Return ``size``, or raise ArgumentError if it is so long that the arithmetic with it would not end."""
        if len(size.terms) > _MOST_TERMS if isinstance(size, Dim) else size.bit_length() > _MOST_BITS:
            raise ArgumentError(f"symbolic size {quoted(self.text)}: it is too large")
        return size

    def power(self) -> Size:
        base = self.atom()
        if not self.take("^"):
            return base
        if not self.token.isdecimal() or len(self.token) > 2 or int(self.token) > _MOST_BITS:
            raise self.expected(f"a power from 0 to {_MOST_BITS}")
        self.at += 1
        out: Size = 1
        for _ in range(int(self.tokens[self.at - 1])):
            out = self.bounded(out * base)
        return out

    def atom(self) -> Size:
        token = self.token
        if self.take("("):
            inner = self.total()
            self.need(")")
            return inner
        if not token.isdecimal() and not token.isidentifier():
            raise self.expected("a number, a name, or a function")
        self.at += 1
        if token.isdecimal():
            return int(token)
        if not self.take("("):
            return Dim.factor(self.scope, self.scope.variable(token))
        if token not in ("floordiv", "mod", "max", "min"):
            raise ArgumentError(
                f"symbolic size {self.text!r}: the functions are floordiv, mod, max and min, got {token!r}"
            )
        x = self.total()
        self.need(",")
        y = self.total()
        self.need(")")
        return _applied(token, [x, y])


def _tokens(text: str) -> list[str]:
    """Split the text of a size into names, numbers and signs; an empty string marks the end."""
    found = re.findall(r"\s*(\d+|[A-Za-z]\w*|[-+*^(),]|\S)", text)
    return [*found, ""]


# Solving -------------------------------------------------------------------------------------------------------------


def solve(expected: Sequence[tuple[str, Size]], given: Sequence[Size], who: str) -> dict[Variable, Size]:
    """Solve for the variables, given the values of sizes that are expressions in these variables.

    Args:
      expected: for each size its description, for errors, and its expression in the variables.
      given: the values of the sizes: ints, or symbolic sizes in variables of another scope.
      who: the caller's name, for errors.

    Raises:
      ArgumentError: the values do not fit the expressions, or break a constraint (a TypeError and ValueError).
    """
    found, open_ = partial_solution(expected, given, who)
    if open_:
        raise ArgumentError(f"{who}: the sizes {_listed(open_)} cannot be computed from the sizes of the arguments")
    for (where, size), have in zip(expected, given, strict=True):
        if evaluate(size, found) != have:
            values = ", ".join(f"{name} = {value}" for name, value in found.items() if name in names_in(size))
            shown = f"{size}, which is {evaluate(size, found)} for {values}" if values else str(size)
            raise ArgumentError(f"{who}: {where} must be {shown}; got {have}")
    scopes = {id(size.scope): size.scope for _, size in expected if isinstance(size, Dim)}
    for scope in scopes.values():
        for name, value in found.items():
            if name in scope.variables.values() and not value >= 1:
                raise ArgumentError(f"{who}: the size {name} must be at least 1, got {value}")
        for text in scope.constraints:
            _check(text, scope, found, who)
    return found


def _check(text: str, scope: SymbolicScope, found: Mapping[Variable, Size], who: str) -> None:
    sign = next(s for s in ("==", ">=", "<=") if s in text)
    plain = SymbolicScope()
    plain.variables = scope.variables
    left, right = (parse_size(part, plain) for part in text.split(sign))
    if names_in(left) | names_in(right) <= found.keys():
        a, b = evaluate(left, found), evaluate(right, found)
        if not (a == b if sign == "==" else a >= b if sign == ">=" else a <= b):
            raise ArgumentError(f"{who}: the constraint {text} does not hold: {left} is {a}, and {right} is {b}")


def partial_solution(
    expected: Sequence[tuple[str, Size]], given: Sequence[Size], who: str, divide: Any = None
) -> tuple[dict[Variable, Any], set[Variable]]:
    """Solve equations between sizes for variables, one at a time, as long as an equation is linear in one unknown.

    Return the values of the variables found, and the set of the others.

    Args:
      expected: for each equation, a description of the size, for errors, and its expression in the variables.
      given: the value of each expression.
      who: the caller's name, for errors.
      divide: ``divide(value, constant, coefficient, found)`` solves ``constant + coefficient * x == value`` for ``x``,
        where ``found`` has the values of the variables in ``constant``; by default with numbers.
    """
    found: dict[Variable, Any] = {}
    left = [(where, size, have) for (where, size), have in zip(expected, given, strict=True) if isinstance(size, Dim)]
    open_ = set().union(*(size.names() for _, size, _ in left)) if left else set()
    progress = True
    while open_ and progress:
        progress = False
        for where, size, have in left:
            unknown = size.names() - found.keys()
            if len(unknown) != 1:
                continue
            (name,) = unknown
            coefficient = dict(size.terms).get(((name, 1),), 0)
            rest = size - coefficient * Dim.of(size.scope, {((name, 1),): 1})
            if not coefficient or name in names_in(rest):
                continue
            if divide is not None:
                found[name] = divide(have, rest, coefficient, found)
            else:
                value, remainder = divided(have - evaluate(rest, found), coefficient)
                if remainder != 0:
                    raise ArgumentError(f"{who}: {where} must be of the form {size}, got {have}")
                found[name] = value
            open_.discard(name)
            progress = True
    return found, open_


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(sorted(map(str, names)))


def evaluated_shape(shape: Shape, sizes: Mapping[Variable, Size]) -> Shape:
    """The value of a shape where the variables have the given ``sizes``."""
    return tuple(evaluate(n, sizes) for n in shape)
