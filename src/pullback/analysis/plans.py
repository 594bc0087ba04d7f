"""``plan_memory``: what reverse mode may keep and what it may compute again, as a curve of time against memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.analysis.lines import line_of
from pullback.control.memory_budgets import bytes_of, inputs_only
from pullback.control.memory_plans import Plan, Planner, planner
from pullback.core import dtypes, tree
from pullback.core.arguments import require_function
from pullback.core.array import typeof
from pullback.core.errors import MemoryBudgetError
from pullback.core.jaxpr import Var
from pullback.display.pages import amount, bold, line, page, table
from pullback.display.pictures import points
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.checkpoint.checkpoint import checkpoint
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import abstractify, argument_name, name_of
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.jit.jit import jit
from pullback.transforms.traces.stage import stage_flat

Budget = int | float | str
_SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)


class Choice:
    """What a function keeps for its backward pass, within a budget. ``print(choice)`` shows it by line.

    Attributes:
      budget: the budget in bytes, for the option ``memory`` of ``grad`` and others.
      peak: the predicted peak of the whole step in bytes, beside arguments and results.
      extra: the predicted time of the recomputation, as a share of the time of the step without it.
      lines: for each line of the user's, ``(line, kept, again)``: the bytes of the results of its operations that are
        kept for the backward pass, and the bytes that are computed again.

    >>> import pullback.numpy as jnp
    >>> from pullback import analysis
    >>> plan = analysis.plan_memory(lambda x: jnp.sum(jnp.sin(jnp.sin(x))), jnp.ones(1000))
    >>> plan.at(1.0).extra
    0.0
    """

    def __init__(self, budget: int, plan: Plan) -> None:
        self.budget, self.peak, self.extra, self.plan = budget, plan.peak, max(plan.extra, 0.0), plan
        self.lines = _by_line(plan)

    def __str__(self) -> str:
        head = f"peak {amount(self.peak)}, {100 * self.extra:.0f} % more time"
        rows = [f"  {amount(kept):>10} kept  {amount(again):>10} again  {where}" for where, kept, again in self.lines]
        return "\n".join([head, *rows])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [(where, amount(kept), amount(again)) for where, kept, again in self.lines]
        head = line(bold(f"peak {amount(self.peak)}"), f", {100 * self.extra:.0f} % more time")
        return page(head, table(["line", "kept", "computed again"], rows))


def _by_line(plan: Plan) -> list[tuple[str, int, int]]:
    """Return, for each line, the bytes that it keeps and those that are computed again, the largest first."""
    kept: dict[str, int] = {}
    again: dict[str, int] = {}
    for segment in plan.segments:
        for i in range(segment.start, segment.end):
            eqn = plan.program.jaxpr.eqns[i]
            size = sum(v.aval.size * v.aval.dtype.itemsize for v in eqn.outvars if isinstance(v, Var))
            into = kept if segment.kept is None or i in segment.kept else again
            into[line_of(eqn)] = into.get(line_of(eqn), 0) + size
    found = [(where, kept.get(where, 0), again.get(where, 0)) for where in {**kept, **again}]
    return sorted(found, key=lambda row: -row[1] - row[2])


class MemoryPlan:
    """The time of a gradient against its memory. ``print(plan)`` shows it as a table, and a notebook as a picture.

    Attributes:
      usual: the predicted peak without recomputation, in bytes, beside arguments and results.
      least: the least peak that was found.
      curve: choices for shares of the usual peak, from the largest to the least.

    >>> import pullback.numpy as jnp
    >>> from pullback import analysis
    >>> plan = analysis.plan_memory(lambda x: jnp.sum(jnp.sin(jnp.sin(x))), jnp.ones(1000))
    >>> plan.curve[0].peak == plan.usual >= plan.least
    True
    """

    def __init__(self, plans: Planner, name: str, compiled: Callable[[Any], Any]) -> None:
        self._plans, self._name, self._compiled = plans, name, compiled
        self.usual = plans.usual.peak
        self.least = plans.least().peak
        self.curve: list[Choice] = []
        for share in _SHARES:
            if share * self.usual >= self.least:
                self._add(self.at(share))
        self._add(self.at(max(self.least, 1)))
        first, *others = self.curve  # the first computes nothing again, even if others are predicted to be as fast
        self.curve = [first, *[c for i, c in enumerate(others) if all(c.extra < d.extra for d in others[i + 1 :])]]

    def _add(self, choice: Choice) -> None:
        """Add a choice, unless it is shown with the memory of the one before, which takes less time."""
        before = self.curve[-1].peak if self.curve else None
        if before is None or (choice.peak < before and amount(choice.peak) != amount(before)):
            self.curve.append(choice)

    def at(self, memory: Budget) -> Choice:
        """Return the choice of least time within a budget.

        Args:
          memory: bytes, a text such as ``"2GB"`` or ``"50%"``, or a float, the share of the usual peak.

        Raises:
          MemoryBudgetError: no choice is within the budget (a ValueError and MemoryError).
        """
        budget = bytes_of("plan_memory", memory, self.usual)
        return Choice(budget, self._plans.within(budget, f"plan_memory of {self._name}"))

    def measured(self, memory: Budget | None = None) -> int:
        """Return the bytes of temporaries in the compiler's own count, for the gradient within a budget.

        Args:
          memory: the budget; None for the gradient without recomputation.
        """
        return int(self._compiled(memory).memory_analysis().temp_size_in_bytes)

    def fitted(self, memory: Budget, rounds: int = 5) -> Choice:
        """Return a choice whose compiled gradient is within the budget in the compiler's own count.

        The gradient is compiled for each attempt, and the budget of the next is corrected by the difference.

        Args:
          memory: the budget; a share is one of the compiler's count without recomputation.
          rounds: the largest number of attempts.

        Raises:
          MemoryBudgetError: no attempt was within the budget (a ValueError and MemoryError).
        """
        usual = self.measured() if isinstance(memory, float) or "%" in str(memory) else self.usual
        target = bytes_of("plan_memory", memory, usual)
        budget, seen, tried = target, 0, 0
        for _ in range(rounds):
            try:
                choice = self.at(min(budget, self.usual))
            except MemoryBudgetError as error:  # the compiler may count less than is predicted
                if error.least == tried:
                    break
                choice = self.at(error.least)
            tried = choice.peak
            seen = self.measured(choice.budget)
            if seen <= target:
                return choice
            budget = int(min(choice.peak * 0.98, budget * target / seen))
        raise MemoryBudgetError(
            f"plan_memory of {self._name}: no plan was found whose compiled gradient needs at most {target:,} bytes of "
            f"temporaries; the last needs {seen:,}"
        )

    def __str__(self) -> str:
        rows = [
            f"{amount(c.peak):>10}  {100 * c.peak / max(self.usual, 1):5.0f} %  +{100 * c.extra:5.1f} %"
            for c in self.curve
        ]
        return "\n".join([f"{'peak':>10}  {'share':>7}  time", *rows])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            (amount(c.peak), f"{100 * c.peak / max(self.usual, 1):.0f} %", f"+{100 * c.extra:.1f} %")
            for c in self.curve
        ]
        xs, ys = [float(c.peak) for c in self.curve], [1 + c.extra for c in self.curve]
        sides = f"peak {amount(min(xs))}", amount(max(xs)), f"{min(ys):.2f} of the time", f"{max(ys):.2f}"
        picture = points(xs, ys, f"time against memory of {self._name}", sides)
        return page(line(bold(self._name)), picture, table(["peak", "share", "time"], rows))


@api_boundary
def plan_memory(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> MemoryPlan:
    """Plan what the gradient of a function keeps and what it computes again, for any budget of memory.

    The function is traced, not run. The memory is that of the forward and the backward pass together, beside the
    arguments and results, as predicted from the program: compilers fuse operations and reuse memory, and their own
    count, ``plan.measured(budget)``, can differ.

    Args:
      fun: takes and returns trees of arrays.
      args, kwargs: its arguments: arrays, or ``ShapeDtypeStruct`` for their types.

    Returns:
      A :class:`MemoryPlan`.

    Raises:
      ArgumentError: ``fun`` is no function (a TypeError and ValueError).

    Sources: A. Griewank and A. Walther, Algorithm 799: revolve, ACM TOMS 26 (2000); T. Chen et al., Training deep nets
    with sublinear memory cost, 2016; P. Jain et al., Checkmate: breaking the memory wall with optimal tensor
    rematerialization, MLSys 2020; R. Kumar et al., Efficient rematerialization for deep networks, NeurIPS 2019.

    >>> import pullback.numpy as jnp
    >>> from pullback import analysis
    >>> def loss(w, x):
    ...     for _ in range(12):
    ...         x = jnp.tanh(x @ w)
    ...     return jnp.sum(x)
    >>> plan = analysis.plan_memory(loss, jnp.ones((64, 64)), jnp.ones((1000, 64)))
    >>> plan.at("70%").peak <= 0.7 * plan.usual
    True
    """
    require_function("plan_memory", "fun", fun)
    leaves, in_tree = tree.flatten_call(args, kwargs)
    flat = FlatFunction(fun, in_tree, keywords=True)
    avals = [abstractify(x) for x in leaves]

    def name_input(i: int) -> str:
        return argument_name(i, fun=fun, args=args, kwargs=kwargs)

    closed = stage_flat(fun, flat, avals, "plan_memory", name_input)
    program, consts = inputs_only(closed)
    active = [*[False] * len(consts), *[dtypes.is_inexact(a.dtype) for a in avals]]
    types = [ShapeDtypeStruct(a.shape, a.dtype) for a in avals]

    def compiled(memory: Any) -> Any:
        limited = flat if memory is None else checkpoint(flat, memory=memory)
        return jit(_step(limited)).lower(*types).compile()

    return MemoryPlan(planner(program, tuple(active)), name_of(fun), compiled)


def _step(run: Callable[..., Sequence[Any]]) -> Callable[..., Any]:
    """Return the function of the whole step of a flat function: its results, and its cotangents for ones."""
    from pullback.primitives.arrays.shapes import full
    from pullback.transforms.autodiff.grad import vjp

    def step(*arrays: Any) -> Any:
        outs, pull = vjp(lambda *xs: list(run(*xs)), *arrays)
        return outs, pull([full(x.shape, 1, typeof(x).to_tangent_aval().dtype) for x in outs])

    return step
