"""The stubs of the faces: what type checkers and editors know of names that are found or made when a program runs.

``make stubs`` writes them, a ``.pyi`` beside each ``.py`` file; ``test_faces`` compares.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from pullback.core.faces import Face

FACES = (
    "pullback",
    "pullback.ad_checkpoint",
    "pullback.api_util",
    "pullback.custom_derivatives",
    "pullback.debug",
    "pullback.derivatives",
    "pullback.experimental.checkify",
    "pullback.experimental.serialize_executable",
    "pullback.experimental.sparse",
    "pullback.export",
    "pullback.extend.core.primitives",
    "pullback.extend.linear_util",
    "pullback.lax",
    "pullback.lax.linalg",
    "pullback.monitoring",
    "pullback.nn",
    "pullback.numpy",
    "pullback.ragged",
    "pullback.random",
    "pullback.ref",
    "pullback.scipy",
    "pullback.scipy.linalg",
    "pullback.scipy.special",
    "pullback.scipy.stats",
    "pullback.scipy.stats.arcsine",
    "pullback.scipy.stats.bernoulli",
    "pullback.scipy.stats.beta",
    "pullback.scipy.stats.betabinom",
    "pullback.scipy.stats.betaprime",
    "pullback.scipy.stats.binom",
    "pullback.scipy.stats.burr",
    "pullback.scipy.stats.burr12",
    "pullback.scipy.stats.cauchy",
    "pullback.scipy.stats.chi",
    "pullback.scipy.stats.chi2",
    "pullback.scipy.stats.expon",
    "pullback.scipy.stats.exponweib",
    "pullback.scipy.stats.f",
    "pullback.scipy.stats.fatiguelife",
    "pullback.scipy.stats.fisk",
    "pullback.scipy.stats.gamma",
    "pullback.scipy.stats.genextreme",
    "pullback.scipy.stats.genlogistic",
    "pullback.scipy.stats.gennorm",
    "pullback.scipy.stats.genpareto",
    "pullback.scipy.stats.geom",
    "pullback.scipy.stats.gompertz",
    "pullback.scipy.stats.gumbel_l",
    "pullback.scipy.stats.gumbel_r",
    "pullback.scipy.stats.halfcauchy",
    "pullback.scipy.stats.halflogistic",
    "pullback.scipy.stats.halfnorm",
    "pullback.scipy.stats.hypsecant",
    "pullback.scipy.stats.invgamma",
    "pullback.scipy.stats.invweibull",
    "pullback.scipy.stats.johnsonsb",
    "pullback.scipy.stats.johnsonsu",
    "pullback.scipy.stats.laplace",
    "pullback.scipy.stats.levy",
    "pullback.scipy.stats.logistic",
    "pullback.scipy.stats.lognorm",
    "pullback.scipy.stats.loguniform",
    "pullback.scipy.stats.lomax",
    "pullback.scipy.stats.maxwell",
    "pullback.scipy.stats.moyal",
    "pullback.scipy.stats.nakagami",
    "pullback.scipy.stats.nbinom",
    "pullback.scipy.stats.norm",
    "pullback.scipy.stats.pareto",
    "pullback.scipy.stats.poisson",
    "pullback.scipy.stats.powerlaw",
    "pullback.scipy.stats.rayleigh",
    "pullback.scipy.stats.t",
    "pullback.scipy.stats.triang",
    "pullback.scipy.stats.truncexpon",
    "pullback.scipy.stats.truncnorm",
    "pullback.scipy.stats.truncpareto",
    "pullback.scipy.stats.truncweibull_min",
    "pullback.scipy.stats.uniform",
    "pullback.scipy.stats.vonmises",
    "pullback.scipy.stats.weibull_max",
    "pullback.scipy.stats.weibull_min",
    "pullback.scipy.stats.wrapcauchy",
    "pullback.sharding",
    "pullback.tree",
    "pullback.tree_util",
)
HEAD = "# Made by `make stubs` from the module itself, for type checkers and editors.\n"
NOT_OFFERED = {
    "pullback": ["__version__", "core"],
    "pullback.scipy.stats.gamma": ["DISTRIBUTION", "inside", "outside"],
    "pullback.scipy.stats.norm": ["DISTRIBUTION"],
}
"""What a module has besides its public names, for other modules: completion does not offer ``core``, a room that JAX
has too."""
WHERE = {
    "Array": "core.array", "ArrayLike": "core.array", "Continuous": "scipy.stats.distributions",
    "DTypeLike": "core.annotations", "Primitive": "core.trace",
}  # fmt: skip
"""Where the types are that signatures name."""


def path_of(module: ModuleType) -> Path:
    return Path(str(module.__file__)).with_suffix(".pyi")


def imported(module: ModuleType) -> Iterator[tuple[str, str, str]]:
    """Each name that a module imports as it starts, the module that has it, and its name there."""
    for node in ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            place = str(node.module)
            for alias in node.names:
                names = importlib.import_module(place).__all__ if alias.name == "*" else [alias.name]
                yield from ((alias.asname or name, place, name) for name in names)


def places(module: Any) -> dict[str, tuple[str, str]]:
    """Where each public name is that the module finds elsewhere: the module that has it, and its name there."""
    face: Face = module.__dir__.__self__
    found = {name: (place, there) for name, place, there in imported(module)}
    for name, (place, there) in face.late.items():
        found[name] = importlib.util.resolve_name(place, module.__package__), there
    return found | {name: (module.__name__, name) for name in (*face.modules, "core")}


def declaration(name: str, value: Any) -> str:
    """What a stub says of a value that the module makes."""
    if not inspect.isfunction(value):
        return f"{name}: {type(value).__name__}"
    signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(value)))
    return f"def {name}{signature}: ..."


def stub(module: Any) -> str:
    """The text of a module's stub."""
    found = places(module)
    names = sorted({*module.__all__, *NOT_OFFERED.get(module.__name__, ())})
    imports = sorted(f"from {found[n][0]} import {found[n][1]} as {n}" for n in names if n in found)
    made = [declaration(n, getattr(module, n)) for n in names if n not in found]
    types = {word for word in re.findall(r"\w+", "\n".join(made)) if word in WHERE}
    lines = [HEAD, *(f"from pullback.{WHERE[name]} import {name}" for name in sorted(types)), *imports, ""]
    if made:
        lines += [*made, ""]
    listed = textwrap.wrap(", ".join(f'"{name}"' for name in module.__all__) + ",", 110)
    return "\n".join([*lines, "__all__ = [", *(f"    {line}" for line in listed), "]", ""])


if __name__ == "__main__":
    for face in map(importlib.import_module, FACES):
        path_of(face).write_text(stub(face), encoding="utf-8")
