"""What backward rules log: values that leave a transposed program beside the cotangents.

A rule returns a dictionary, whose values are trees. If the pullback was asked for logs, the transposed program is
traced, and the operation ``backward_log`` stands in it for each such dictionary. Then the operands of these operations
become results of the program, and of the programs within it: of a loop's step they are stacked, of branches each has a
slot. Elsewhere dictionaries are dropped where they are returned, so that they cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pullback.core import tree
from pullback.core.arguments import quote
from pullback.core.array import Array, as_array, typeof
from pullback.core.config import config, exchange
from pullback.core.errors import CustomRuleError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Var, jaxpr_as_fun
from pullback.core.rule_kinds import RuleKind
from pullback.core.trace import Primitive
from pullback.core.user_types import is_user_value
from pullback.primitives.arrays.shapes import moveaxis
from pullback.transforms.traces.stage import stage_flat

Logs = dict[Any, Any]
"""The trees that rules logged, by key; or where their leaves are among further results of a program: integers."""

logs_within = RuleKind("logs_within", "what rules log within the programs of the operation is dropped")
"""``rule(eqn) -> (eqn, atoms, logs)`` for an operation with programs in which rules log: the equation with further
results, or None if it goes; the atoms of the logs; and the positions among these atoms of the leaves of each log."""

backward_log_p = Primitive("backward_log", multiple_results=True, keeps_weak_type=False, effect=True)
backward_log_p.abstract_eval(lambda *avals, tree: [])
backward_log_p.impl(lambda args, params: [])
backward_log_p.lowering(lambda hlo, *operands, tree: [])


@backward_log_p.jvp
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, tree: Any) -> Any:
    return backward_log_p.bind(*primals, tree=tree), []


@backward_log_p.batch
def _batch(axis: Any, args: Sequence[Any], dims: Sequence[Any], *, tree: Any) -> Any:
    first = [x if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    return backward_log_p.bind(*first, tree=tree), []


@logs_within(backward_log_p)
def _logged(eqn: Eqn) -> tuple[None, Sequence[Any], Logs]:
    return None, eqn.invars, tree.unflatten(eqn.params["tree"], range(len(eqn.invars)))


class CondSum:
    """What the branches of a ``cond`` logged under one key, of which one branch ran.

    Attributes:
      index: the index of the branch that ran.
      branches: an entry for each branch: what it logged, zeros if it did not run, or None if it does not log the key.

    >>> from pullback.transforms.traces.backward_logs import CondSum
    >>> CondSum(1, (None, 2.0)).branches[1]
    2.0
    """

    def __init__(self, index: Any, branches: tuple[Any, ...]) -> None:
        """Make the entry from the index, and what each branch logged."""
        self.index, self.branches = index, branches

    def __repr__(self) -> str:
        return f"CondSum(index={self.index!r}, branches={self.branches!r})"


tree.register_pytree_node(CondSum, lambda x: ((x.index, x.branches), None), lambda _, children: CondSum(*children))


@contextmanager
def logging(wanted: bool) -> Iterator[None]:
    """Transpose with logs, or without, within a ``with`` block."""
    before = exchange("backward_logs", wanted)
    try:
        yield
    finally:
        exchange("backward_logs", before)


def log(logs: Any, who: str) -> None:
    """Log what a backward rule returned.

    Args:
      logs: a dictionary of trees; None for nothing.
      who: the rule, for errors.

    Raises:
      CustomRuleError: it is neither (a TypeError).
    """
    if logs is None:
        return
    if not isinstance(logs, dict):
        raise CustomRuleError(f"the backward-pass log of {who} must be None or a dict, but is {quote(logs)}")
    if config.backward_logs and logs:
        leaves, treedef = tree.flatten(logs)
        values = [x if isinstance(x, Array) or is_user_value(x) else as_array(x) for x in leaves]
        backward_log_p.bind(*values, tree=treedef)


def paired(result: Any, who: str) -> tuple[Any, Any]:
    """Return the cotangents and the logs that a backward rule returned; raise unless it is a pair."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise CustomRuleError(f"{who} must produce a pair (cotangents, logs), but returned {quote(result)}")
    return result


def with_logs(function: Any, run: Callable[..., Sequence[Any]], operands: Sequence[Any]) -> tuple[list[Any], Logs]:
    """Run a transposition; return its results, and what the rules within it logged.

    If several rules log under one key, the last of them is kept.

    Args:
      function: the user's function, for errors.
      run: takes and returns flat sequences of arrays; it must not close over values of active traces.
      operands: its operands.
    """
    with logging(True):
        closed = stage_flat(function, run, [typeof(x) for x in operands], "vjp")
    logging_too, logs = with_logs_as_results(closed)
    results = jaxpr_as_fun(logging_too)(*operands)
    count = len(closed.jaxpr.outvars)
    extra = results[count:]
    return results[:count], tree.tree_map(lambda i: extra[i], logs)


def with_logs_as_results(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, Logs]:
    """Return the program with further results, the leaves of all logs, and which of these are the leaves of each."""
    jaxpr = closed.jaxpr
    if backward_log_p.name not in jaxpr.effects:
        return closed, {}
    eqns: list[Eqn] = []
    found: list[Any] = []
    logs: Logs = {}
    for eqn in jaxpr.eqns:
        rule = logs_within.of(eqn.primitive) if backward_log_p.name in eqn.effects else None
        kept, atoms, inner = (eqn, [], {}) if rule is None else rule(eqn)
        if kept is not None:
            eqns.append(kept)
        logs.update(moved(inner, len(found)))
        found += atoms
    return ClosedJaxpr(jaxpr.replace(eqns=eqns, outvars=[*jaxpr.outvars, *found]), closed.consts), logs


def moved(logs: Logs, by: int) -> Logs:
    """Return the positions of logs among further results that ``by`` others precede."""
    return tree.tree_map(lambda i: i + by, logs)  # type: ignore[no-any-return]


def of_one_program(eqn: Eqn, stacked: Callable[[Any], Any] = lambda aval: aval, **params: Any) -> tuple[Any, Any, Logs]:
    """Apply the rule ``logs_within`` for an operation whose parameter ``jaxpr`` is a program with the same results.

    Args:
      eqn: the equation.
      stacked: takes the type of a result of the program to that of a result of the operation.
      params: further parameters to replace.
    """
    inner, logs = with_logs_as_results(eqn.params["jaxpr"])
    results = [Var(stacked(a)) for a in inner.out_avals[len(eqn.outvars) :]]
    return eqn.like(eqn.invars, [*eqn.outvars, *results], jaxpr=inner, **params), results, logs
