"""Checks of what files say of exported functions: each part by itself, and that the parts fit together."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, TypeVar

from pullback.core import dtypes
from pullback.core.dims import is_symbolic
from pullback.core.errors import ExportError
from pullback.core.naming import quoted
from pullback.core.types import ShapedArray

_T = TypeVar("_T")
CALLING_CONVENTIONS = (9, 10)
"""The oldest and the newest calling convention of ``main`` that is known: the index of the platform first, if there are
several, then the leaves that the program uses."""
_MOST = 2**63 - 1
"""The largest size of an axis."""


def damaged(what: str) -> ExportError:
    """The error that bytes are no exported function, or damaged; ``what`` says why."""
    return ExportError(f"deserialize: {what}: the bytes are damaged")


def of_type(kind: type[_T], value: object, what: str) -> _T:
    """Return ``value``, or raise ExportError unless it has exactly the type ``kind``; ``what`` is its name."""
    if type(value) is not kind:
        raise damaged(f"{what} must be of type {kind.__name__}, but is {quoted(value)}")
    return value


def list_of(kind: type[_T], value: object, what: str) -> list[_T]:
    """Return ``value``, or raise ExportError unless it is a list of objects that have exactly the type ``kind``."""
    return [of_type(kind, x, f"an element of {what}") for x in of_type(list, value, what)]


def number(value: object, what: str, least: int = 0, most: int = _MOST) -> int:
    """Return ``value``, or raise ExportError unless it is an int from ``least`` to ``most``."""
    found = of_type(int, value, what)
    if not least <= found <= most:
        raise damaged(f"{what} is {quoted(found)}, not from {least} to {most}")
    return found


def calling_convention(value: object, name: str) -> int:
    """Return ``value``, or raise ExportError unless it is a known calling convention of the function ``name``."""
    version = of_type(int, value, f"the calling convention of {name}")
    if not CALLING_CONVENTIONS[0] <= version <= CALLING_CONVENTIONS[1]:
        raise ExportError(
            f"deserialize: {name} is called by version {version} of the calling convention, but this release knows "
            f"versions {CALLING_CONVENTIONS[0]} to {CALLING_CONVENTIONS[1]}: export it again"
        )
    return version


def check_function(attributes: dict[str, Any]) -> None:
    """Raise ExportError unless the attributes of an exported function fit together."""
    name = attributes["fun_name"]
    for side in ("in", "out"):
        avals, shardings = attributes[f"{side}_avals"], attributes[f"{side}_shardings"]
        if attributes[f"{side}_tree"].num_leaves != len(avals) or len(shardings) != len(avals):
            raise damaged(f"the trees of {name}, their types and their shardings do not fit together")
        for aval, sharding in zip(avals, shardings, strict=True):
            _check_aval(aval, sharding, attributes)
    kinds = [child.node_data() for child in (attributes["in_tree"], *attributes["in_tree"].children())]
    if len(kinds) != 3 or None in kinds or [kind[0] for kind in kinds] != [tuple, tuple, dict]:
        raise damaged(f"{name} takes no arguments and keywords")
    platforms, used = attributes["platforms"], attributes["module_kept_var_idx"]
    if not platforms or len(set(platforms)) < len(platforms) or len(attributes["entries"]) != len(platforms):
        raise damaged(f"the platforms of {name} and their functions do not fit together")
    if any(not 0 <= i < len(attributes["in_avals"]) for i in used) or list(used) != sorted(set(used)):
        raise damaged(f"the arguments that {name} uses are none of its arguments, or not in order")
    number(attributes["nr_devices"], f"the number of devices of {name}", 1, 2**31)


def _check_aval(aval: ShapedArray, sharding: Any, attributes: dict[str, Any]) -> None:
    name = attributes["fun_name"]
    for n in aval.shape:
        if not is_symbolic(n):
            number(n, f"a size of {name}")
    if sharding is not None and (
        len(sharding.spec.partitions) > aval.ndim or sharding.mesh.size > attributes["nr_devices"]
    ):
        raise damaged(f"a sharding of {name} does not fit its array, or its devices")


def check_chain(chain: Sequence[dict[str, Any]]) -> None:
    """Raise ExportError unless each function of a chain is the derivative of the one before it, by its types."""
    for primal, derivative in itertools.pairwise(chain):
        takes, returns = primal["in_avals"], primal["out_avals"]
        if [_cotangent(a) for a in takes] != [_plain(a) for a in derivative["out_avals"]] or [
            *map(_plain, takes),
            *map(_cotangent, returns),
        ] != [_plain(a) for a in derivative["in_avals"]]:
            raise damaged(f"the derivative of {primal['fun_name']} is not of its types")


def _plain(aval: ShapedArray) -> tuple[str, str]:
    return dtypes.dtype_name(aval.dtype), str(aval.shape)


def _cotangent(aval: ShapedArray) -> tuple[str, str]:
    return dtypes.dtype_name(dtypes.tangent_dtype(aval.dtype)), str(aval.shape)
