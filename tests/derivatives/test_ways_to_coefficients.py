"""Every operation has a way to Taylor coefficients."""

from __future__ import annotations

from pullback.core.taylor_rules import taylor, taylor_program
from pullback.core.trace import Primitive
from pullback.extend.core import Primitive as NewPrimitive
from pullback.primitives.rules import ZeroTangents
from pullback.transforms.traces.lift import feed
from tests.primitives_of import all_primitives

WITHOUT = {
    "geqrf": "a factor of qr, which has derivatives itself",
    "hessenberg": "the form is not unique",
    "schur": "the form is not unique",
    "tridiagonal": "the form is not unique",
    "iota": "it has no operands",
    "size_value": "it has no operands",
    "newton_loop": "it stands within lowering rules only",
    "random_loop": "it stands within lowering rules only",
    "while_slice": "an eager loop consists of such slices, which no derivative sees",
    "window_extremes_and_positions": "the rule of extremes uses it for known arrays, which have no derivative",
    "call_exported": "`Exported.call` is a custom_vjp, whose rule is another exported function",
}
WHERE = (
    "Give it a derivative rule beside it (`jvp`, `tangent`, or `slopes` of its declaration), which serves Taylor mode "
    "too; or a rule of the kind `taylor` or `taylor_program` (core/taylor_rules.py), for a recurrence or a "
    "program; or an entry here that says why it has none."
)


def way(p: Primitive) -> str | None:
    """How Taylor mode has an operation's coefficients; None if it would be refused."""
    if taylor_program.of(p) is not None or feed.of(p) is not None:
        return "program"
    if type(p.jvp_rule) is ZeroTangents:
        return "constant"
    if taylor.of(p) is not None:
        return "own recurrence"
    if p.transpose_rule is not None and p.linear_in == "each":
        return "bilinear"
    if p.transpose_rule is not None and p.linear_in is None:
        return "linear"
    return None if p.jvp_rule is None and p.tangent_rule is None else "derivative rule"


def test_every_operation_has_a_way_to_its_coefficients() -> None:
    names = {p.name for p in all_primitives() if way(p) is None}
    assert names - set(WITHOUT) == set(), f"no Taylor coefficients of {sorted(names - set(WITHOUT))}. {WHERE}"
    assert set(WITHOUT) - names == set(), f"{sorted(set(WITHOUT) - names)} have coefficients now"


def test_the_ways_are_all_there() -> None:
    """An operation of each, and one of none."""
    ways = {p.name: way(p) for p in all_primitives()}
    assert {name: ways[name] for name in ("scan", "floor", "tanh", "dot_general", "reshape", "erf")} == {
        "scan": "program",
        "floor": "constant",
        "tanh": "own recurrence",
        "dot_general": "bilinear",
        "reshape": "linear",
        "erf": "derivative rule",
    }
    hidden = NewPrimitive("hidden")
    hidden.host(lambda x: x)
    assert way(hidden) is None


def test_operations_that_hold_programs_say_so() -> None:
    """Forward transformations, present and future, reach into these (``transforms/traces/lift.py``)."""
    feeding = {p.name for p in all_primitives() if feed.of(p) is not None}
    assert feeding == {"checkpoint", "cond", "jit", "scan", "shard_map", "sums_of_terms", "while", "xla_metadata_call"}
    assert {p.name for p in all_primitives() if taylor_program.of(p) is not None} == {"guard"}
