"""What the rows of the table of operations call on GPUs and TPUs: ``python -m tests.grid.platforms`` writes the table.

The table stands in ``docs/gpus.md``. Each program is lowered for a platform that is not there, and verified by the
compiler's parser. None of them runs.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pullback.numpy as jnp
from pullback import make_jaxpr, vjp, vmap
from pullback.backends.compiler import portable
from pullback.backends.compiler.client import to_portable
from pullback.core import dtypes, tree
from pullback.core.array import as_array
from pullback.core.errors import MissingRuleError, UnsupportedExportError
from tests.grid.all_specs import ALL
from tests.grid.specs import Spec
from tests.recorded import calls

PAGE = Path(__file__).parents[2] / "docs" / "gpus.md"
MODES = calls.MODES
PLATFORMS = calls.PLATFORMS
ONLY_CPUS = re.compile(r"lapack_|pullback_|python_cpu_callback|LayoutConstraint|xla_cpu|small_call")
"""What no program for another platform may have in it."""
BEGIN, END = "<!-- begin of the table -->\n", "<!-- end of the table -->\n"


def programs(spec: Spec) -> Iterator[tuple[str, Callable[..., Any], Sequence[Any]]]:
    """The mode, the function and the operands of each program of a row, in single precision if the row has that."""
    letter = next((d for d in "fF" if d in spec.dtypes), spec.dtypes[0])
    operands = [as_array(x) for x in spec.point(letter)]
    yield "forward", spec.function, operands
    moving = [i for i, x in enumerate(operands) if dtypes.is_inexact(x.dtype)]
    if spec.differentiable is not None:
        moving = [i for i in moving if i in spec.differentiable]
    if spec.derivative and moving:

        def pulled(*args: Any) -> Any:
            def inexact(*xs: Any) -> list[Any]:
                given = list(args)
                for i, x in zip(moving, xs, strict=True):
                    given[i] = x
                return [y for y in tree.leaves(spec.function(*given)) if dtypes.is_inexact(y.dtype)]

            outs, pull = vjp(inexact, *[args[i] for i in moving])
            return pull(outs)

        yield "derivative", pulled, operands
    if spec.samples:
        yield "batch", vmap(spec.function), [jnp.stack([x, x]) for x in operands]


def outcome(f: Callable[..., Any], operands: Sequence[Any], platform: str) -> list[str] | str:
    """The targets of what a program calls, sorted; or the operation that the platform lacks."""
    try:
        text = portable.portable(make_jaxpr(f)(*operands), "f", [platform]).text
    except MissingRuleError as error:
        return str(error).partition(":")[0].partition(" at ")[0].partition(",")[0]
    except UnsupportedExportError:  # it calls a function of SciPy's
        return "export"
    to_portable(text)
    found = ONLY_CPUS.search(text)
    assert found is None, f"a program for {platform!r} has {found} in it"
    return sorted(set(re.findall(r'call_target_name = "([^"]+)"', text)))


Cells = dict[str, dict[tuple[str, str], set[str]]]
"""By the operation, and by mode and platform, what its rows call, and what is refused, with ``no`` in front."""


def cells(rows: Sequence[Spec], platforms: Sequence[str] = PLATFORMS) -> Cells:
    found: Cells = defaultdict(lambda: defaultdict(set))
    for spec in rows:
        for mode, f, operands in programs(spec):
            for platform in platforms:
                got = outcome(f, operands, platform)
                found[spec.operation][mode, platform] |= {f"no {got}"} if isinstance(got, str) else set(got)
    return found


# Compared with JAX --------------------------------------------------------------------------------------------------


def of_jax(operation: str) -> str:
    """The recorded operation of JAX that computes the same as a row's; empty if there is none."""
    names = {calls.stem(case).split(" ")[0] for _, case in calls.selected()}
    short = operation.rpartition(".")[2]
    for name in (operation, f"lax.{operation}", f"numpy.{short}", f"lax.{short}", f"scipy.linalg.{short}", short):
        if name in names:
            return name
    return ""


def recorded_targets(name: str, platform: str) -> set[str]:
    """What JAX's programs of a recorded operation call, in all modes."""
    known = calls.known()
    found: set[str] = set()
    for key, value in known.items():
        case = re.sub(r"[\d.]+$|\(.*|\[.*", "", key.split("/")[1]).strip()
        if key.endswith(f"/{platform}") and case.split(" ")[0] == name and not isinstance(value, str):
            found |= {calls.target_of(x) for x in value}
    return found


# The table ----------------------------------------------------------------------------------------------------------


def shown(found: set[str]) -> str:
    return ", ".join(f"`{x}`" if not x.startswith("no ") else f"**{x}**" for x in sorted(found)) or "none"


def table(found: Cells) -> str:
    """The text of the table: the operations that call something or are refused, then the names of the others."""
    lines = ["| operation | CUDA: forward | derivative | batch | TPU | JAX on CUDA |", "|---|---|---|---|---|---|"]
    plain = []
    for operation, by_mode in sorted(found.items()):
        everything = set().union(*by_mode.values())
        if not everything:
            plain.append(operation)
            continue
        on_cuda = [shown(by_mode[mode, "cuda"]) if (mode, "cuda") in by_mode else "" for mode in MODES]
        on_tpu = shown(set().union(*[by_mode[mode, "tpu"] for mode in MODES if (mode, "tpu") in by_mode]))
        on_tpu = ", ".join(sorted(x for x in on_tpu.split(", ")))
        lines.append(f"| `{operation}` | {' | '.join(on_cuda)} | {on_tpu} | {compared(operation, by_mode)} |")
    names = ", ".join(f"`{name}`" for name in plain)
    rest = f"The other {len(plain)} operations call nothing, in no mode and on no platform: {names}."
    return "\n".join([*lines, "", rest, ""])


def compared(operation: str, by_mode: dict[tuple[str, str], set[str]]) -> str:
    """What JAX calls for the same operation, beside what Pullback calls."""
    name = of_jax(operation)
    if not name:
        return "not recorded"
    ours = {x for (_, platform), called in by_mode.items() if platform == "cuda" for x in called}
    theirs = recorded_targets(name, "cuda")
    ours = {x for x in ours if not x.startswith("no ")}
    more, less = ours - theirs, theirs - ours
    if not more and not less:
        return "the same" if ours else "refuses"
    parts = [f"without {shown(more)}"] * bool(more) + [f"also {shown(less)}"] * bool(less)
    return "; ".join(parts)


def names_of_rocm(found: Cells) -> None:
    """Check that programs for ROCm call what those for CUDA do, of the libraries of ROCm."""
    for operation, by_mode in found.items():
        for mode in MODES:
            on_cuda, on_rocm = (by_mode.get((mode, platform), set()) for platform in ("cuda", "rocm"))
            assert {re.sub(r"^cu(?=[a-z_])", "hip", x) for x in on_cuda} == on_rocm, (operation, mode)


def write() -> None:
    found = cells(ALL)
    names_of_rocm(found)
    page = PAGE.read_text()
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}{table(found)}{END}{after}")


if __name__ == "__main__":
    write()
