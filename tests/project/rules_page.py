"""The page ``docs/rules.md``: what each operation says of itself. ``make rules`` writes it."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys

import pullback
from pullback.core import traits
from pullback.core.trace import Primitive, RuleKind
from pullback.core.traits import Cost, Trait
from tests.helpers import ROOT
from tests.primitives_of import all_primitives

PAGE = ROOT / "docs" / "rules.md"
OTHERWISE = {
    "host": "`impl`; if it is missing too, the operation is compiled, or its `decomposition` runs",
    "impl": "it is compiled",
    "abstract_eval": "the rule of its `decomposition`, or an error that names the operation",
    "jvp": "the rule of its `decomposition`, or an error that names the operation",
    "directional": "`jvp`",
    "transpose": "an error that names the operation",
    "batch": "the rule of its `decomposition`, or an error that names the operation",
    "lowering": "the rule of its `decomposition`, or an error that names the operation",
    "decomposition": "the rules of the operation itself",
    "stage": "an equation with these operands and parameters",
    "record": "it is recorded as a whole",
    "dce": "it is removed if no result is used, otherwise kept unchanged",
    "partial_eval": "all results are unknown if an operand is unknown",
    "remat": "a policy of `checkpoint` decides about the operation as a whole",
    "axes": "the named axes of its inner programs",
}
"""What is done without a rule of a method's name."""
HEAD = """# Rules and traits of all operations

<!-- Made by `make rules` from the declarations. -->

A rule of an operation defines how one transformation treats it; a trait states a property of the operation. Rules and
traits are declared beside the operation, and all are optional. This page lists them, and what happens without one.
`ARCHITECTURE.md` has the signatures. [primitives.md](primitives.md) shows how to declare an operation, a kind of rule
and a trait.
"""


@functools.cache
def kinds() -> dict[str, RuleKind]:
    """The kinds of rules that modules of the library declare, by name."""
    found = {}
    for module in pkgutil.walk_packages(pullback.__path__, "pullback."):
        if not module.name.endswith("__main__"):
            values = vars(importlib.import_module(module.name)).values()
            found.update({x.name: x for x in values if isinstance(x, RuleKind)})
    return dict(sorted(found.items()))


TRAITS = {trait.name: trait for trait in vars(traits).values() if isinstance(trait, Trait)}
"""The traits of the library: examples and tests declare others."""


def _is(p: Primitive) -> str:
    words = [name for name, value in p.traits.items() if value is True and name in TRAITS]
    cost = p.traits.get("cost")
    words += [cost.value] if isinstance(cost, Cost) else []
    least = p.traits.get("compiled_from")
    words += [f"compiled from {least:,}"] if least else []
    signs = traits.signs.of(p)
    words += ["signs " + " ".join("+" if sign > 0 else "-" for sign in signs)] if signs else []
    words += ["effect"] if p.effect else []
    words += ["masked form"] if p.masked is not None else []
    if p.linear_in is not None or p.transpose_rule is not None:
        words.append("linear in each" if p.linear_in == "each" else f"linear in {p.linear_in or 'all'}")
    return ", ".join(words).replace("_", " ")


def _rules(p: Primitive) -> str:
    return " ".join(name for name in OTHERWISE if getattr(p, f"{name}_rule", None) is not None)


def page() -> str:
    """The text of the page."""
    lines = [HEAD, "## Traits\n", "| trait | meaning | default |", "|---|---|---|"]
    for trait in TRAITS.values():
        default = trait.default.value if isinstance(trait.default, Cost) else trait.default
        without = "no" if default is False else "never" if default is None else str(default or "no")
        lines.append(f"| `{trait.name}` | {trait.meaning} | {without} |")
    lines += ["\n## Rules\n", "| rule | without it |", "|---|---|"]
    lines += [f"| `{name}` | {otherwise} |" for name, otherwise in OTHERWISE.items()]
    lines += ["\nRules of further kinds, each for one transformation:\n", "| kind | without it |", "|---|---|"]
    lines += [f"| `{kind.name}` | {kind.otherwise.replace('``', '`')} |" for kind in kinds().values()]
    lines += ["\n## Operations\n", "| operation | traits | rules | further kinds |", "|---|---|---|---|"]
    for p in sorted(all_primitives(), key=lambda p: (p.name, str(p.effect))):
        own = " ".join(sorted(p.more_rules.keys() & kinds()))  # without those of users, as other tests are
        lines.append(f"| `{p.name}` | {_is(p)} | {_rules(p)} | {own} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE} has {len(all_primitives())} operations\n")
