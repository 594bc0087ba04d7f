"""Checks of derivatives against finite differences, for tests of derivative rules.

Differences are computed in float64 if the function allows it, whatever the dtype of its arguments, so that their error
is far smaller than any mistake's. Derivatives are compared by components; a report names the argument, the leaf and
the component that is wrong, and by how much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pullback.core import dtypes, tree
from pullback.core.arguments import is_listed, quote
from pullback.core.array import as_array
from pullback.core.errors import ArgumentError
from pullback.core.faces import face
from pullback.core.source import describe_function
from pullback.testing.differences import (
    Point,
    Space,
    Tolerance,
    Vector,
    double_precision,
    precise_point,
    random_vector,
)
from pullback.testing.rules import check_rule
from pullback.transforms.autodiff.grad import vjp
from pullback.transforms.autodiff.jvp import jvp

__all__ = ["check_grads", "check_jvp", "check_rule", "check_vjp"]
face(globals())

COMPONENTS = 1024
"""The largest number of components that are differenced one by one; more, along random directions."""
DIRECTIONS = 4
REPORTED = 5
MATRIX = 20_000_000


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: str | Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Check the derivatives of a function, up to an order, against differences.

    Args:
      f: takes and returns trees of arrays; real or complex leaves are differentiated, others are constants.
      args: the point, a sequence of arguments. Away from it by ``eps`` the function should be smooth.
      order: the highest derivative to check, at least 1.
      modes: "fwd", "rev" or both; for higher orders, every sequence of them is checked.
      atol, rtol: the tolerances of a component, absolute and relative to the expected value; by default from the
        function's rounding errors, which are measured at the point. The estimated error of the differences is always
        added.
      eps: the step of the differences; by default selected by their estimated error.

    Raises:
      AssertionError: a derivative is wrong; the message says which argument, leaf and component.
      ArgumentError: ``order`` or ``modes`` is invalid (a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.test_util import check_grads
    >>> check_grads(lambda x: jnp.sin(x) * jnp.exp(x), (1.0,), order=2)
    """
    selected = tuple(modes) if isinstance(modes, (list, tuple)) else (modes,)
    if not selected or not all(is_listed(mode, ("fwd", "rev")) for mode in selected):
        raise ArgumentError(f'check_grads: modes must be "fwd", "rev" or both, got {modes!r}')
    if not isinstance(order, int) or order < 1:
        raise ArgumentError(f"check_grads: order must be an int of at least 1, got {order!r}")
    _check_orders(f, args, order, selected, (atol, rtol, eps), f"{describe_function(f)}")


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[[Sequence[Any], Sequence[Any]], tuple[Any, Any]],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Check a function that returns values and tangents against differences. See :func:`check_grads` for the rest.

    Args:
      f: a function of trees of arrays, which returns a tree of arrays.
      f_jvp: ``f_jvp(primals, tangents)`` returns the value of ``f`` and its tangent.
      args: the point, a sequence of arguments of ``f``.
      atol, rtol, eps: as for :func:`check_grads`.
      err_msg: a text to put before the report.

    Raises:
      AssertionError: the value or the tangent is wrong.

    >>> import pullback.numpy as jnp
    >>> from pullback.test_util import check_jvp
    >>> check_jvp(jnp.sin, lambda xs, ts: (jnp.sin(xs[0]), ts[0] * jnp.cos(xs[0])), (1.0,))
    """
    _check_mode(f, f_jvp, args, True, (atol, rtol, eps), str(err_msg) or f"jvp of {describe_function(f)}")


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., tuple[Any, Callable[[Any], Sequence[Any]]]],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Check a function that returns values and pullbacks against differences. See :func:`check_grads` for the rest.

    Args:
      f: a function of trees of arrays, which returns a tree of arrays.
      f_vjp: ``f_vjp(*args)`` returns the value of ``f``, and a function from a cotangent of it to a cotangent for each
        argument.
      args: the point, a sequence of arguments of ``f``.
      atol, rtol, eps: as for :func:`check_grads`.
      err_msg: a text to put before the report.

    Raises:
      AssertionError: the value or a cotangent is wrong.

    >>> import pullback.numpy as jnp
    >>> from pullback.test_util import check_vjp
    >>> check_vjp(jnp.sin, lambda x: (jnp.sin(x), lambda ct: (ct * jnp.cos(x),)), (1.0,))
    """
    _check_mode(f, f_vjp, args, False, (atol, rtol, eps), str(err_msg) or f"vjp of {describe_function(f)}")


# Orders and modes --------------------------------------------------------------------------------------------------

_Settings = tuple[float | None, float | None, float | None]


def _check_orders(
    f: Any, args: Sequence[Any], order: int, modes: Sequence[Any], settings: _Settings, name: str
) -> None:
    for mode in modes:
        if mode == "fwd":
            _check_mode(f, partial(jvp, f), args, True, settings, f"jvp of {name}")
        else:
            _check_mode(f, partial(vjp, f), args, False, settings, f"vjp of {name}")
        if order > 1:
            args = tuple(args)
            derivative, what = (_tangent_of, "jvp") if mode == "fwd" else (_cotangent_of, "vjp")
            _check_orders(derivative(f, args), args, order - 1, modes, settings, f"{what} of {name}")


def _tangent_of(f: Any, args: tuple[Any, ...]) -> Callable[..., Any]:
    """Return a function that takes the arguments of ``f`` and returns the tangent of its result.

    The tangent is along one direction, which is drawn at random here and fixed; ``args`` set its size.
    """
    space = Space(args)
    direction = random_vector(space.size, 1)
    return lambda *xs: jvp(f, xs, Space(xs).tangents(direction))[1]


def _cotangent_of(f: Any, args: tuple[Any, ...]) -> Callable[..., Any]:
    """Return a function that takes the arguments of ``f`` and returns the cotangents of the inexact ones, as a list.

    The cotangent of the result is drawn at random here and fixed; ``f(*args)`` sets its size.
    """
    direction = random_vector(Space(f(*args)).size, 2)

    def cotangents(*xs: Any) -> Any:
        out, pull = vjp(f, *xs)
        cts = tree.leaves(tuple(pull(Space(out).tangents(direction))))
        return [ct for ct in cts if ct.dtype != dtypes.float0]

    return cotangents


# Comparison --------------------------------------------------------------------------------------------------------


class _Mismatch(NamedTuple):
    input: int | None
    output: int | None
    expected: float
    got: float
    allowed: float


class _Comparer:
    """Compares a derivative with the expected derivative, and collects the mismatches.

    Args:
      point: the function at a point.
      atol, rtol: the absolute and the relative tolerance; None to derive them from rounding errors.
    """

    def __init__(self, point: Point, atol: float | None, rtol: float | None) -> None:
        self.tolerance = Tolerance(point, atol, rtol)
        self.point = point
        self.found: list[_Mismatch] = []
        self.compared = 0

    def compare(self, expected: Vector, error: Vector, got: Vector, index: int | None, by_input: bool) -> None:
        """Compare a row or a column of the Jacobian with its expected value, and record the components that are wrong.

        Args:
          expected: the expected row or column.
          error: the estimated error of each component of ``expected``.
          got: the row or column by the derivative that is tested.
          index: the index of the row or column; None for a random combination of several.
          by_input: True for a row, with a component for each input; False for a column, with a component for each
            output.
        """
        self.compared += len(expected)
        allowed = self.tolerance.allowed(expected, error)
        with np.errstate(all="ignore"):
            wrong = ~(np.abs(got - expected) <= allowed) & ~(np.isnan(got) & np.isnan(expected))
        wrong &= ~((got == expected) & np.isinf(got))
        for k in np.flatnonzero(wrong):
            i, o = (int(k), index) if by_input else (index, int(k))
            self.found.append(_Mismatch(i, o, float(expected[k]), float(got[k]), float(allowed[k])))

    def report(self, what: str, reference: str) -> None:
        """Raise an AssertionError that lists the recorded mismatches; do nothing if there are none.

        In the message, ``what`` names the derivative, and ``reference`` the source of the expected values.
        """
        if not self.found:
            return
        self.found.sort(key=lambda m: -_badness(m))
        inputs, outputs = self.point.inputs, self.point.outputs
        lines = [f"{what} is wrong in {len(self.found)} of the {self.compared} components that were compared:"]
        for m in self.found[:REPORTED]:
            by = f" by {inputs.name(m.input, 'argument')}" if m.input is not None else " along a random direction"
            of = outputs.name(m.output, "output") if m.output is not None else "a random combination of outputs"
            off = abs(m.got - m.expected)
            relative = f", relative {off / abs(m.expected):.2g}" if m.expected else ""
            lines.append(
                f"  derivative of {of}{by}: expected {m.expected:.9g} ({reference}), got {m.got:.9g}: "
                f"off by {off:.3g}{relative}; allowed {m.allowed:.2g}"
            )
        if len(self.found) > REPORTED:
            lines.append(f"  ... and {len(self.found) - REPORTED} more")
        raise AssertionError("\n".join(lines))


def _badness(m: _Mismatch) -> float:
    off = abs(m.got - m.expected)
    return off / m.allowed if m.allowed and np.isfinite(off) else np.inf


def _check_mode(f: Any, derivative: Any, args: Sequence[Any], forward: bool, settings: _Settings, what: str) -> None:
    """Check a ``jvp`` or ``vjp`` of a function.

    First compare the derivative in float64 with numerical differences. Then compare the derivative in the dtype of the
    arguments with the derivative in float64. If ``f`` does not run in float64, use only the dtype of the arguments, and
    numerical differences.

    Args:
      f: the function.
      derivative: its ``jvp`` or ``vjp``.
      args: the arguments.
      forward: whether ``derivative`` is a ``jvp``.
      settings: the absolute and the relative tolerance, and the step of the differences.
      what: the name of the check, for errors.
    """
    atol, rtol, eps = settings
    if not callable(f) or not callable(derivative):
        raise ArgumentError(f"the check of {what} takes functions, got {quote(f)} and {quote(derivative)}")
    if not isinstance(args, (list, tuple)):
        raise ArgumentError(f"the check of {what} takes a tuple of arguments, got {quote(args)}")
    if eps is not None and not isinstance(eps, (int, float)):
        raise ArgumentError(f"the check of {what}: eps must be a number, got {quote(eps)}")
    args = tuple(args)
    with double_precision():
        precise = precise_point(f, args, eps)
        if precise is not None:
            _check_point(precise, derivative, forward, atol, rtol, what)
    given = Point(f, args, eps)
    if precise is None:
        _check_point(given, derivative, forward, atol, rtol, what)
        return
    if given.rounding < 1e-10:
        return
    comparer = _Comparer(given, atol, rtol)
    for direction in _directions((given.inputs if forward else given.outputs).size):
        apply = _pushed if forward else _pulled
        got = apply(given, derivative, direction, what)
        with double_precision():
            expected = apply(precise, derivative, direction, what)
        comparer.compare(expected, np.zeros(len(expected)), got, None, not forward)
    comparer.report(f"{what}, in the dtype of the arguments,", "derivative in float64")


def _directions(size: int) -> Iterator[Vector]:
    return (random_vector(size, 10 + k) for k in range(DIRECTIONS))


def _pushed(point: Point, f_jvp: Any, direction: Vector, what: str) -> Vector:
    """Return the coordinates of the output tangent by ``f_jvp`` along a direction.

    Raise if ``f_jvp`` returns another value than the function, or a tangent of the wrong type. ``what`` names the
    derivative in errors.
    """
    out, tangent = f_jvp(point.inputs.displaced(0 * direction), point.inputs.tangents(direction))
    _check_value(point, out, what)
    return _checked_vector(point.outputs, tangent, False, f"{what}: the tangent of the output")


def _pulled(point: Point, f_vjp: Any, direction: Vector, what: str) -> Vector:
    """Return the coordinates of the input cotangents by ``f_vjp`` for the output cotangent ``direction``.

    Raise if ``f_vjp`` returns another value than the function, or cotangents of the wrong type. ``what`` names the
    derivative in errors.
    """
    out, pull = f_vjp(*point.inputs.displaced(np.zeros(point.inputs.size)))
    _check_value(point, out, what)
    cts = tuple(pull(point.outputs.tangents(direction, dual=True)))
    return _checked_vector(point.inputs, cts, True, f"{what}: the cotangents of the arguments")


def _checked_vector(space: Space, value: Any, dual: bool, what: str) -> Vector:
    treedef = tree.structure(value)
    if treedef != space.treedef:
        raise AssertionError(f"{what} must have the tree {space.treedef}, got {treedef}")
    for x, t, path in zip(space.leaves, tree.leaves(value), space.paths, strict=True):
        expected = (x.shape, dtypes.tangent_dtype(x.dtype))
        got = (np.shape(t), t.dtype if hasattr(t, "dtype") else as_array(t).dtype)
        if got != expected:
            shown = [f"shape {shape} and dtype {dtypes.dtype_name(dtype)}" for shape, dtype in (expected, got)]
            raise AssertionError(f"{what} must have {shown[0]} at {tree.keystr(path) or 'its root'}, got {shown[1]}")
    return space.vector(value, dual)


def _check_value(point: Point, out: Any, what: str) -> None:
    """Raise unless ``out``, the value that a ``jvp`` or ``vjp`` returned, equals the value of the function.

    ``what`` names the derivative in errors.
    """
    space = Space(out)
    if space.treedef != point.outputs.treedef or [x.shape for x in space.leaves] != [
        x.shape for x in point.outputs.leaves
    ]:
        raise AssertionError(f"{what}: the value returned with it is {out!r}, but the function returns {point.out!r}")
    value = space.vector(out)
    size = np.abs(point.value) + np.max(np.abs(point.value), initial=0)
    allowed = 1e3 * point.rounding * size + 8 * point.smallest
    with np.errstate(all="ignore"):
        wrong = ~((np.abs(value - point.value) <= allowed) | (value == point.value) | np.isnan(point.value))
    for k in np.flatnonzero(wrong)[:1]:
        raise AssertionError(
            f"{what}: the value returned with it is wrong: {space.name(int(k), 'output')} is {value[k]:.9g}, "
            f"but the function returns {point.value[k]:.9g}"
        )


def _check_point(
    point: Point, derivative: Any, forward: bool, atol: float | None, rtol: float | None, what: str
) -> None:
    comparer = _Comparer(point, atol, rtol)
    if point.inputs.size == 0:
        return
    compare = _compare_forward if forward else _compare_reverse
    compare(point, derivative, comparer, what)
    comparer.report(what, "differences")


def _basis(size: int, k: int) -> Vector:
    e = np.zeros(size)
    e[k] = 1
    return e


def _compare_forward(point: Point, f_jvp: Any, comparer: _Comparer, what: str) -> None:
    """Compare the Jacobian by ``f_jvp`` with numerical differences, by columns; record mismatches in ``comparer``.

    For more than 1024 inputs, compare a few random combinations of columns instead. ``what`` names the derivative in
    errors.
    """
    size = point.inputs.size
    if size <= COMPONENTS:
        for k in range(size):
            e = _basis(size, k)
            comparer.compare(*point.slope(e), _pushed(point, f_jvp, e, what), k, False)
        return
    for direction in _directions(size):
        expected, error = point.slope(direction)
        got = _pushed(point, f_jvp, direction, what)
        before = len(comparer.found)
        comparer.compare(expected, error, got, None, False)
        if len(comparer.found) > before:
            position = _locate(point, direction, lambda v: _pushed(point, f_jvp, v, what), comparer.found[-1].output)
            e = _basis(size, position)
            comparer.compare(*point.slope(e), _pushed(point, f_jvp, e, what), position, False)
            return


def _compare_reverse(point: Point, f_vjp: Any, comparer: _Comparer, what: str) -> None:
    """Compare the Jacobian by ``f_vjp`` with numerical differences, by rows; record mismatches in ``comparer``.

    For more than 1024 outputs, compare a few random combinations of rows instead. ``what`` names the derivative in
    errors.
    """
    n, m = point.inputs.size, point.outputs.size
    cotangents = [_basis(m, k) for k in range(m)] if m <= COMPONENTS else list(_directions(m))
    names: list[int | None] = list(range(m)) if m <= COMPONENTS else [None] * len(cotangents)
    if n <= COMPONENTS and n * m <= MATRIX:
        columns = [point.slope(_basis(n, k)) for k in range(n)]
        jacobian, errors = (np.stack([c[i] for c in columns], axis=1) for i in (0, 1))
        for u, name in zip(cotangents, names, strict=True):
            expected, error = (jacobian[name], errors[name]) if name is not None else (u @ jacobian, np.abs(u) @ errors)
            comparer.compare(expected, error, _pulled(point, f_vjp, u, what), name, True)
        return
    rows = [_pulled(point, f_vjp, u, what) for u in cotangents[:DIRECTIONS]]
    for direction in _directions(n):
        along, error = point.slope(direction)
        for u, row, name in zip(cotangents, rows, names, strict=False):
            expected, got = np.array([u @ along]), np.array([row @ direction])
            before = len(comparer.found)
            comparer.compare(expected, np.array([np.abs(u) @ error]), got, name, True)
            if len(comparer.found) > before:
                comparer.found.pop()
                position = _locate(point, direction, lambda v, row=row: np.array([row @ v]), 0, u)
                slope, doubt = point.slope(_basis(n, position))
                found = (float(u @ slope), float(row[position]), 4 * float(np.abs(u) @ doubt))
                comparer.found.append(_Mismatch(position, name, *found))
                return


def _locate(point: Point, direction: Vector, push: Any, output: int | None, u: Vector | None = None) -> int:
    """Return the index of an input component that causes a mismatch along a direction; find it by bisection.

    Args:
      point: the function at a point.
      direction: the direction of the mismatch, a vector of input components.
      push: the derivative to test: maps a direction to the derivative along it.
      output: the component of the derivative in which the mismatch is; None for component 0.
      u: the weights of the outputs, if ``push`` returns their weighted sum; None if it returns all outputs.
    """
    where = np.flatnonzero(direction)
    while len(where) > 1:
        parts = []
        for half in (where[: len(where) // 2], where[len(where) // 2 :]):
            part = np.zeros_like(direction)
            part[half] = direction[half]
            slope, _ = point.slope(part)
            expected = slope if u is None else np.array([u @ slope])
            parts.append((float(np.abs(push(part) - expected)[output or 0]), half))
        where = max(parts, key=lambda p: p[0])[1]
    return int(where[0])
