"""In which arguments public functions are differentiable, in which modes and how often: measured on operands.

The operands are those of the table of operation specs in ``tests/grid``. A row calls a function, and the call is
recorded, so that it is known which parameter got which operand. ``make facts`` measures all of them and writes the file
``derivatives.json`` of ``docs/generate``, which the reference shows. A test measures a part again and compares.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from docs.generate import facts, names
from pullback import Array, jvp, tree, vjp
from pullback.core import dtypes
from pullback.core.array import as_array
from pullback.core.config import enable_x64
from pullback.derivatives import jacobian_pattern
from pullback.errors import NotDifferentiableError, PullbackError
from pullback.numpy import ones_like
from tests.grid.all_specs import OF_FUNCTIONS, OF_PRIMITIVES
from tests.grid.specs import Spec

FILE = facts.DERIVATIVES
ROWS = 2
"""How many rows of a function are measured."""
MORE, FIRST, FORWARD, REVERSE, ZERO, NONE = "more than once", "once", "forward", "reverse", "zero", "none"
"""What the derivatives of a function are like in a parameter.

They exist in both modes, and so do derivatives of them, or not; they exist in one mode alone; they are zero everywhere,
as of comparisons; or there are none.
"""
REFUSALS = (NotImplementedError, NotDifferentiableError)
"""What an operation without a derivative raises; a MissingRuleError and a NotLinearError are of the first."""


def rows() -> dict[str, list[Spec]]:
    """Return rows with floats among their operands, by the full name of the function that they call."""
    there, found = names.public_names(), dict[str, list[Spec]]()
    for spec in OF_FUNCTIONS:
        full = f"pullback.{spec.operation}"
        if full in there and there[full].kind == "function":
            found.setdefault(there[full].main, []).append(spec)
    of_primitive = dict[str, list[Spec]]()
    for spec in OF_PRIMITIVES:
        if isinstance(spec.function, functools.partial) and not spec.function.keywords:
            of_primitive.setdefault(spec.operation, []).append(spec)
    for full, operation in facts.operations().items():
        if full not in found and full.startswith("pullback.lax."):
            count = facts.operands(there[full].value)
            found[full] = [spec for spec in of_primitive.get(operation.name, []) if len(spec.samples) == count]
    chosen = {full: [spec for spec in specs if letters(spec)][:ROWS] for full, specs in sorted(found.items())}
    return {full: specs for full, specs in chosen.items() if specs}


def letters(spec: Spec) -> str:
    """Return the dtypes with which a row is measured: ``"d"`` if it takes floats, and ``"D"`` if complex numbers."""
    return "d" * bool({*spec.dtypes} & {*"hbfd"}) + "D" * bool({*spec.dtypes} & {*"FD"})


# Calls ---------------------------------------------------------------------------------------------------------------


class _RecordedError(Exception):
    """Ends a row when its call is recorded."""


@contextlib.contextmanager
def _replaced(value: Any, by: Any, more: dict[str, Any]) -> Iterator[None]:
    """Replace a function in all public modules, and in the globals of a row, for the time of the block."""
    with contextlib.ExitStack() as stack:
        for name in names.public_names().values():
            module: ModuleType = names.public_modules()[name.module]
            if name.value is value and vars(module).get(name.name) is value:
                stack.enter_context(mock.patch.dict(vars(module), {name.name: by}))
        stack.enter_context(mock.patch.dict(more, {name: by for name, v in more.items() if v is value}))
        yield


def call_of(full: str, spec: Spec, letter: str) -> tuple[inspect.BoundArguments, list[Any]] | None:
    """Return the arguments with which a row calls a function, and the operands of the row; None if it does not."""
    function = names.public_names()[full].value
    operands = [as_array(np.asarray(x)) for x in spec.point(letter)]
    recorded: list[inspect.BoundArguments] = []
    if any(spec is one for one in OF_PRIMITIVES):
        with contextlib.suppress(PullbackError):  # the function may take less than the operation
            function(*operands)
            return inspect.signature(function).bind(*operands), operands
        return None

    def record(*args: Any, **kwargs: Any) -> None:
        recorded.append(inspect.signature(function).bind(*args, **kwargs))
        raise _RecordedError

    call, args, kwargs = spec.function, tuple(operands), dict[str, Any]()
    if isinstance(call, functools.partial):
        args, kwargs, call = (*call.args, *args), dict(call.keywords), call.func
    if call is function:
        return inspect.signature(function).bind(*args, **kwargs), operands
    expected = (
        _RecordedError,
        AttributeError,
        TypeError,
    )  # of a row that calls a method of the function, or indexes it
    with _replaced(function, record, getattr(call, "__globals__", {})), contextlib.suppress(*expected):
        call(*args, **kwargs)
    return (recorded[0], operands) if recorded else None


# Measurements --------------------------------------------------------------------------------------------------------


class Call(NamedTuple):
    """A call of a function, as a function of some of its operands.

    Attributes:
      function: the public function.
      bound: its arguments.
      moving: for each of these operands, the parameter that has it and its position among the leaves there.
    """

    function: Callable[..., Any]
    bound: inspect.BoundArguments
    moving: tuple[tuple[str, int], ...]

    def __call__(self, *values: Any) -> list[Any]:
        """Return the results that are floats or complex numbers."""
        arguments = dict(self.bound.arguments)
        for (parameter, i), value in zip(self.moving, values, strict=True):
            leaves, treedef = tree.flatten(arguments[parameter])
            arguments[parameter] = treedef.unflatten([*leaves[:i], value, *leaves[i + 1 :]])
        again = inspect.BoundArguments(self.bound.signature, arguments)
        return [x for x in tree.leaves(self.function(*again.args, **again.kwargs)) if dtypes.is_inexact(x.dtype)]

    @property
    def point(self) -> list[Any]:
        """The values of the operands in the call."""
        return [tree.leaves(self.bound.arguments[parameter])[i] for parameter, i in self.moving]

    def of(self, parameter: str) -> Call:
        """Return the call as a function of the operands of one parameter."""
        return self._replace(moving=tuple(one for one in self.moving if one[0] == parameter))


def recorded_call(full: str, spec: Spec, letter: str) -> Call | None:
    """Return the call of a function in a row, as a function of its operands of floats; None if there are none.

    They are those of the row, or where it makes others of them, such as symmetric matrices, all arrays.
    """
    recorded = call_of(full, spec, letter)
    if recorded is None:
        return None
    bound, operands = recorded
    arrays = [
        (parameter, i, any(x is y for y in operands))
        for parameter, value in bound.arguments.items()
        for i, x in enumerate(tree.leaves(value))
        if isinstance(x, Array) and dtypes.is_inexact(x.dtype)
    ]
    moving = [(parameter, i) for parameter, i, its in arrays if its or not any(its for *_, its in arrays)]
    return Call(names.public_names()[full].value, bound, tuple(moving)) if moving else None


def constant_in(call: Call) -> frozenset[str]:
    """Return the parameters that the results do not depend on, whatever the values, or in steps only."""
    count = len(call.moving)
    if not call(*call.point):
        return frozenset(parameter for parameter, _ in call.moving)

    def of_parts(*parts: Any) -> list[Any]:
        """The real and imaginary parts of the results, as a function of those of the operands."""
        values = [re + 1j * im if dtypes.is_complex(x.dtype) else re
                  for x, re, im in zip(call.point, parts[:count], parts[count:], strict=True)]  # fmt: skip
        return [part for out in call(*values) for part in (out.real, out.imag)]

    parts = [x.real for x in call.point] + [x.imag for x in call.point]
    try:
        pattern = jacobian_pattern(of_parts, tuple(range(2 * count)))(*parts).to_scipy().tocsc()
    except (PullbackError, NotImplementedError):  # it has no pattern
        return frozenset()
    ends = np.cumsum([0, *(part.size for part in parts)])
    moves = {call.moving[k % count][0] for k in range(2 * count) if pattern[:, ends[k] : ends[k + 1]].nnz}
    return frozenset(parameter for parameter, _ in call.moving) - moves


def _works(call: Callable[[], Any]) -> bool:
    try:
        call()
    except REFUSALS:
        return False
    return True


def _pushed(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: jvp(function, xs, tuple(map(ones_like, xs)))[1]


def _pulled(function: Callable[..., Any]) -> Callable[..., Any]:
    def pulled(*xs: Any) -> Any:
        out, pull = vjp(function, *xs)
        return pull(tree.map(ones_like, out))

    return pulled


def measured(call: Call) -> str:
    """Return what the derivatives of a call are like: a constant of this module."""
    orders = []
    for derivative in (_pushed, _pulled):
        once, twice = derivative(call), derivative(derivative(call))
        orders.append(sum(_works(functools.partial(derived, *call.point)) for derived in (once, twice)))
    forward, reverse = orders
    if not forward or not reverse:
        return FORWARD if forward else REVERSE if reverse else NONE
    return FIRST if min(orders) == 1 else MORE


def of_function(full: str, specs: Sequence[Spec]) -> dict[str, str]:
    """Return what the derivatives of a function are like in each parameter that gets floats from one of the rows.

    Where rows and dtypes differ, the best of them counts: the others pass something besides that has no derivative.
    """
    found: dict[str, str] = {}
    best = [ZERO, NONE, REVERSE, FORWARD, FIRST, MORE]
    with enable_x64():
        for spec, letter in [(one, letter) for one in specs for letter in letters(one)]:
            call = recorded_call(full, spec, letter)
            if call is not None:
                constant = constant_in(call)
                for parameter in dict.fromkeys(parameter for parameter, _ in call.moving):
                    here = ZERO if parameter in constant else measured(call.of(parameter))
                    found[parameter] = max(found.get(parameter, ZERO), here, key=best.index)
    return found


def main() -> None:
    """Measure all functions, and write the file, a line for each function."""
    found = {full: of_function(full, specs) for full, specs in rows().items()}
    lines = [f"{json.dumps(full)}: {json.dumps(one)}" for full, one in found.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
