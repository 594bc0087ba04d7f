"""Compare a derivative rule with the expected derivative, and describe the components that are wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from pullback.testing.diagnosis import diagnose
from pullback.testing.differences import Point, Space, Tolerance, Vector
from pullback.testing.probes import Probes, paired
from pullback.testing.rule_maps import Rule
from pullback.transforms.autodiff.jvp import jvp

Flags = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
Push = Callable[[Vector], Vector]


def beyond(got: Vector, expected: Vector, allowed: Vector) -> Flags:
    """For each element, whether two arrays differ by more than ``allowed``."""
    with np.errstate(all="ignore"):
        return ~(np.abs(got - expected) <= allowed) & ~(got == expected)


def finite_and_beyond(got: Vector, expected: Vector, allowed: Vector) -> Flags:
    """For each element, whether ``expected`` is finite and differs from ``got`` by more than ``allowed``."""
    return np.isfinite(expected) & beyond(got, expected, allowed)


def stacked(rows: list[Vector], width: int) -> Vector:
    """Stack rows of ``width`` elements to a matrix; without rows, its shape is (0, ``width``)."""
    return np.stack(rows) if rows else np.zeros((0, width))


class Reference:
    """The expected derivative of a function at a point, as computed by a given map and by numerical differences.

    Where the two disagree, the function is not smooth, or its derivative is false on purpose; a rule may then match
    either. Where both are not finite, a rule is not compared.

    Args:
      point: the function at the point.
      push: maps a tangent of the arguments to a tangent of the result; unknown components may be NaN.
      named: the name of this map, for messages.
      differences: whether to compute the differences.
    """

    def __init__(self, point: Point, push: Push, named: str, differences: bool = True) -> None:
        self.point = point
        self.push = push
        self.named = named
        self.differences = differences
        self.tolerance = Tolerance(point, None, None)
        self.inputs = Probes(point.inputs, "argument")
        self.outputs = Probes(point.outputs, "out")
        along = [self._both(v) for v in self.inputs.vectors]
        self.pushed, self.slopes, self.errors = (
            stacked([row[i] for row in along], point.outputs.size) for i in (0, 1, 2)
        )

    def _both(self, vector: Vector) -> tuple[Vector, Vector, Vector]:
        pushed = self.push(vector)
        if self.differences:
            slope, error = self.point.slope(vector)
            trusted = error <= 0.1 * np.abs(slope) + self.tolerance.allowed(slope)  # at a pole they differ
            return pushed, slope, np.where(trusted, error, np.inf)
        return pushed, np.zeros(len(pushed)), np.full(len(pushed), np.inf)

    def along(self, vector: Vector) -> Vector:
        """Return the derivative along a vector; NaN where it is not known."""
        pushed, slope, error = self._both(vector)
        return np.where(np.isfinite(pushed), pushed, np.where(np.isfinite(error), slope, np.nan))

    def matrix(self, rule: Rule) -> Vector:
        """Return a matrix whose rows are the results of ``rule`` for each direction of the arguments or cotangents."""
        probes = self.inputs if rule.forward else self.outputs
        return stacked([rule(v) for v in probes.vectors], rule.to_space.size)


def differentiated(point: Point) -> Push:
    """Return the map from tangents of the arguments to tangents of the result at a point, by automatic differentiation.

    The map returns NaN if differentiation fails.
    """
    primals = point.inputs.displaced(np.zeros(point.inputs.size))

    def push(vector: Vector) -> Vector:
        try:
            tangent = jvp(point.f, primals, point.inputs.tangents(vector))[1]
        except Exception:
            return np.full(point.outputs.size, np.nan)
        return point.outputs.vector(tangent)

    return push


class Comparison:
    """The comparison of a rule with a reference.

    Attributes:
      got: the results of the rule, a row for each of its operands; for a backward rule, the products of its results
        with the directions of the arguments.
      expected: the same matrix of the reference.
      rows, columns: the directions of the rows and the columns.
    """

    def __init__(self, rule: Rule, reference: Reference, tolerance: Tolerance) -> None:
        self.rule = rule
        self.reference = reference
        self.tolerance = tolerance
        pushed, slopes, errors = reference.pushed, reference.slopes, reference.errors
        self.matrix = got = reference.matrix(rule)
        inputs, outputs = reference.inputs, reference.outputs
        self.rows, self.columns = inputs, Probes(outputs.space, "out", coordinates=True)
        if not rule.forward:
            self.rows, self.columns = outputs, inputs
            got = paired(got, inputs.vectors)
            pushed, slopes = (paired(x, outputs.vectors).T for x in (pushed, slopes))
            errors = paired(errors, np.abs(outputs.vectors)).T
        self.got = got
        self.by_push = np.isfinite(pushed)
        by_slope = np.isfinite(errors)
        allowed, rough = tolerance.allowed(pushed), tolerance.allowed(slopes, errors)
        far_from_push = beyond(got, pushed, allowed)
        far_from_slope = beyond(got, slopes, rough)
        smooth = ~beyond(pushed, slopes, tolerance.allowed(pushed, errors))
        self.wrong = np.where(
            self.by_push, far_from_push & (smooth | far_from_slope | ~by_slope), by_slope & far_from_slope
        )
        self.expected = np.where(self.by_push, pushed, np.where(by_slope, slopes, np.nan))

    def messages(self) -> Iterator[str]:
        """Yield a message for each block of the matrix with a wrong entry.

        A block holds the derivatives of one leaf of the results by one leaf of the arguments.
        """
        precision = max(1e-5, self.tolerance.rtol)
        for i, rows in enumerate(self.rows.spans):
            for k, columns in enumerate(self.columns.spans):
                wrong = self.wrong[np.ix_(rows, columns)]
                if not wrong.any():
                    continue
                row, column = self._worst(rows, columns, wrong)
                component, expected, got = self._component(row, column)
                source = self.reference.named if self.by_push[row, column] else "differences"
                found = diagnose(self.got, self.expected, self.rows, self.columns, (i, k), precision)
                compared = self.rows.coordinates and self.columns.coordinates
                yield (
                    f"returns {got:.9g} as the derivative of {component}, expected {expected:.9g} (by {source}); "
                    f"{wrong.sum()} of {wrong.size} {'components' if compared else 'random combinations'} differ."
                    f"{' ' * bool(found)}{found}"
                )

    def _worst(self, rows: Vector, columns: Vector, wrong: Flags) -> tuple[int, int]:
        with np.errstate(all="ignore"):
            off = np.abs(self.got - self.expected)[np.ix_(rows, columns)]
        off = np.where(wrong, np.nan_to_num(off, nan=np.inf), -1)
        i, k = np.unravel_index(np.argmax(off), off.shape)
        return int(rows[i]), int(columns[k])

    def _component(self, row: int, column: int) -> tuple[str, float, float]:
        """Find a wrong derivative, of one result element by one argument element, behind a wrong entry of the matrix.

        Args:
          row, column: the indices of the wrong entry, which may be for random combinations of elements.

        Returns:
          The name of the derivative, its expected value, and its value by the rule.
        """
        reference, rule = self.reference, self.rule
        inputs, outputs = reference.inputs, reference.outputs
        source, target = (row, column) if rule.forward else (column, row)
        if not inputs.coordinates:
            source = self._source(inputs.vectors[source], row, column)
        along = reference.along(_basis(inputs.space, source))
        if not (rule.forward or outputs.coordinates):
            target = _bisected(outputs.vectors[target], lambda v: rule(v)[source] - _product(along, v))
        from_index, to_index = (source, target) if rule.forward else (target, source)
        got = rule(_basis(rule.from_space, from_index))[to_index]
        name = f"{outputs.space.name(target, 'out')} by {inputs.space.name(source, 'argument')}"
        return name, float(along[target]), float(got)

    def _source(self, direction: Vector, row: int, column: int) -> int:
        """Return the index of the argument element that makes entry (row, column) of the matrix wrong.

        The entry is for ``direction``, a random combination of argument elements. Bisection finds the element.
        """
        along, rule = self.reference.along, self.rule
        if rule.forward:
            return _bisected(direction, lambda v: rule(v)[column] - along(v)[column])
        ct = self.matrix[row]
        u = self.reference.outputs.vectors[row]
        return _bisected(direction, lambda v: _product(ct, v) - _product(along(v), u))


def _basis(space: Space, k: int) -> Vector:
    e = np.zeros(space.size)
    e[k] = 1
    return e


def _product(x: Vector, v: Vector) -> float:
    return float(x[v != 0] @ v[v != 0])


def _bisected(direction: Vector, difference: Callable[[Vector], float]) -> int:
    """Return the index of the element of ``direction`` that contributes most to ``difference(direction)``.

    ``difference`` is a linear function. Only nonzero elements are considered; bisection finds the index.
    """
    where = np.flatnonzero(direction)
    while len(where) > 1:
        halves = where[: len(where) // 2], where[len(where) // 2 :]
        sizes = []
        for half in halves:
            masked = np.zeros_like(direction)
            masked[half] = direction[half]
            sizes.append(np.nan_to_num(abs(difference(masked)), nan=np.inf))
        where = halves[int(np.argmax(sizes))]
    return int(where[0])


def _eighths(size: int, seed: int) -> Vector:
    """Return a random vector whose components are multiples of 1/8, with absolute values from 1/4 to 1."""
    generator = np.random.default_rng([size, seed])
    return generator.choice([-1.0, 1.0], size) * generator.integers(2, 9, size) / 8


def nonlinearity(rule: Rule, scales: tuple[float, ...]) -> str:
    """Return a sentence on how a rule is not linear, or "" if it is.

    The rule is applied to zero, to a sum of two random vectors, and to multiples by ``scales``. The vectors are such
    that sums and multiples are exact.
    """
    space = rule.from_space
    kind = "tangent" if rule.forward else "cotangent"
    name = f"the {'tangent of' if rule.forward else 'cotangent of'}"
    first, second = (_eighths(space.size, seed) for seed in (3, 4))
    at_first, at_second = rule(first), rule(second)
    cases = [
        (f"a zero {kind}", rule(0 * first), 0 * at_first),
        (f"the sum of two {kind}s", rule(first + second), at_first + at_second),
    ]
    cases += [(f"{scale:g} times a {kind}", rule(scale * first), scale * at_first) for scale in scales]
    for case, got, expected in cases:
        terms = np.concatenate([expected, at_first, at_second])
        size = np.max(np.abs(terms), initial=0, where=np.isfinite(terms))
        wrong = finite_and_beyond(got, expected, 1e3 * rule.point.rounding * size)
        if wrong.any():
            k = int(np.argmax(wrong))
            root = "out" if rule.forward else "argument"
            return (
                f"for {case} it returns {got[k]:.9g} as {name} {rule.to_space.name(k, root)}, where a linear rule "
                f"returns {expected[k]:.9g}"
            )
    return ""
