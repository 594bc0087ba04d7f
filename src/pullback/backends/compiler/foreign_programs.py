"""What programs that others wrote may have in them: the operations, the functions of the runtime, sizes and depth.

A program that was read is compiled with the rights of this process. So it is checked before anything is made of it:
some operations and functions of the runtime would wait for ever, or take numbers of the program for addresses; and the
compiler ends the process for a function that calls itself, for regions too deep in each other, or for an array too
large for its numbers.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from pullback.backends.compiler import lapack_calls
from pullback.core import systems
from pullback.core.errors import ExportError

_OTHER_TARGETS = """
cu_lu_pivots_to_permutation cu_threefry2x32_ffi cusolver_gesvd_ffi cusolver_gesvdj_ffi cusolver_geqrf_ffi
cusolver_getrf_ffi cusolver_orgqr_ffi cusolver_potrf_ffi cusolver_syevd_ffi cusolver_sytrd_ffi cusparse_gtsv2_ffi
hip_lu_pivots_to_permutation hip_threefry2x32_ffi hipsolver_gesdd_ffi hipsolver_gesvd_ffi hipsolver_gesvdj_ffi
hipsolver_geqrf_ffi hipsolver_getrf_ffi hipsolver_orgqr_ffi hipsolver_potrf_ffi hipsolver_syevd_ffi
hipsolver_sytrd_ffi Eigh LuDecomposition ProductOfElementaryHouseholderReflectors Qr
ApproxTopK LayoutConstraint SPMDFullToShardShape SPMDShardToFullShape Sharding annotate_device_placement
shape_assertion stablehlo.dynamic_approx_top_k stablehlo.dynamic_reduce_window
stablehlo.dynamic_rng_bit_generator stablehlo.dynamic_top_k
"""
TARGETS = frozenset([*lapack_calls.TARGETS, *_OTHER_TARGETS.split()])
"""The targets of custom calls that stay the same between releases: functions of the runtime, and marks for the
compiler. Programs with these are written and read, those with others only if a user says so."""

_OF_THE_PROCESS = re.compile(r"xla_\w*python\w*|InspectSharding|CustomSPMDPartitioning|PullbackPartitioned")
"""Targets that take a number or an address in the program for an object of this process."""
_DIALECTS = ("chlo.", "sdy.")
"""The dialects of which every operation is allowed: mathematical functions, and divisions among devices."""
_OF_STABLEHLO = """
abs add after_all all_gather all_reduce all_to_all and atan2 batch_norm_grad batch_norm_inference
batch_norm_training bitcast_convert broadcast broadcast_in_dim case cbrt ceil cholesky clamp collective_broadcast
collective_permute compare complex composite concatenate constant convert convolution cosine count_leading_zeros
create_token cross-replica-sum custom_call divide dot dot_general dynamic_broadcast_in_dim dynamic_conv
dynamic_gather dynamic_iota dynamic_pad dynamic_reshape dynamic_slice dynamic_update_slice einsum exponential
exponential_minus_one fft floor gather get_dimension_size get_tuple_element if imag iota is_finite log
log_plus_one logistic map maximum minimum multiply negate not optimization_barrier or pad partition_id popcnt power
real real_dynamic_slice reduce reduce_precision reduce_scatter reduce_window remainder replica_id reshape return
reverse rng rng_bit_generator round_nearest_afz round_nearest_even rsqrt scatter select select_and_scatter
set_dimension_size shift_left shift_right_arithmetic shift_right_logical sign sine slice sort sqrt subtract tan
tanh torch_index_select transpose triangular_solve tuple unary_einsum uniform_dequantize uniform_quantize while xor
"""
OPERATIONS = frozenset(
    ["func.func", "func.call", "func.return", *(f"stablehlo.{name}" for name in _OF_STABLEHLO.split())]
)
"""The other operations that are allowed: all but those that exchange data with the host or with other programs
(``infeed``, ``outfeed``, ``send``, ``recv``), which nobody here would answer."""

MOST_AXES = 1_000
_LARGER = 16
"""How many times the memory of this machine an array may take: the compiler does not store each array of a program."""
_ARRAY = re.compile(r"<((?:[\d?]+x)+)(complex<)?([a-z!]\w*)?")


class ForeignCall(NamedTuple):
    """A call of a function of the runtime.

    Attributes:
      target: the name of the function.
      operands: the types of the operands.
      options: the options that the function gets, as text.
    """

    target: str
    operands: tuple[str, ...]
    options: dict[str, str]


class Operation(NamedTuple):
    """An operation of a program.

    Attributes:
      name: its name, such as ``stablehlo.add``.
      depth: how many regions of other operations it is in, within its function.
      types: the types of its results, and of the arguments of its regions.
      callees: the functions of the program that it calls.
      foreign: the function of the runtime that it calls, if it does.
    """

    name: str
    depth: int
    types: tuple[str, ...]
    callees: tuple[str, ...] = ()
    foreign: ForeignCall | None = None


def _check_foreign(call: ForeignCall, results: Sequence[str], who: str, allowed: Collection[str]) -> None:
    """Raise unless a call is of a function in the table or among ``allowed``, and LAPACK's with shapes that fit."""
    name = call.target
    if _OF_THE_PROCESS.fullmatch(name):
        raise ExportError(
            f"{who}: its program calls {name!r}, which interprets a number in the program as a Python function of "
            f"this process. Exported functions have no such calls: the bytes are damaged or forged"
        )
    if name not in TARGETS and name not in allowed:
        raise ExportError(
            f"{who}: its program calls {name!r}, which exported programs do not call. If it is your own function, "
            f"register it first with ffi.register_ffi_target({name!r}, ...); otherwise do not trust these bytes"
        )
    known = not any("?" in kind for kind in (*call.operands, *results))  # else it is checked when the sizes are known
    if name.startswith("lapack_") and known:
        taken, returned = (list(map(_shape, kinds)) for kinds in (call.operands, results))
        if not lapack_calls.fits(name, taken, returned, call.options):
            raise ExportError(
                f"{who}: its program calls {name} with ({', '.join(call.operands)}) -> ({', '.join(results)}), "
                f"types that do not match: the routine would access memory outside of its arrays. The bytes are "
                f"damaged or forged"
            )


def _shape(kind: str) -> tuple[int, ...]:
    found = _ARRAY.search(kind)
    return tuple(map(int, found[1].split("x")[:-1])) if found else ()


def check(functions: Mapping[str, Sequence[Operation]], who: str, allowed: Collection[str]) -> None:
    """Raise unless a program has only what the programs that others wrote may have.

    Args:
      functions: the operations of each function; those outside functions have the name ``""``.
      who: the name of the exported function, for errors.
      allowed: further targets of custom calls.

    Raises:
      ExportError: it has an operation or a call that is not allowed, functions that call themselves, or is too large.
    """
    for operation in itertools.chain.from_iterable(functions.values()):
        if operation.name not in OPERATIONS and not operation.name.startswith(_DIALECTS):
            raise ExportError(
                f"{who}: its program has the operation {operation.name}, which exchanges data with the host. "
                f"Exported functions do not have it: the bytes are damaged, forged, or of a newer release"
            )
        for kind in operation.types:
            _check_size(kind, who, memory())
        if operation.foreign is not None:
            _check_foreign(operation.foreign, operation.types, who, allowed)
    _check_calls(functions, who)


@functools.cache
def memory() -> int:
    """The bytes of memory of this machine; if the system does not say, what 47 bits of address can reach."""
    return systems.memory()


@functools.lru_cache(maxsize=65536)
def _check_size(kind: str, who: str, bytes_here: int) -> None:
    """Raise if an array of the type ``kind`` is far too large for ``bytes_here``, or has too many axes."""
    for sizes, complex_, element in _ARRAY.findall(kind):
        axes = sizes.split("x")[:-1]
        bits = re.search(r"\d+", element or "")
        width = max(1, int(bits[0]) // 8 if bits else 1) * (2 if complex_ else 1)
        count = math.prod(max(1, int(n)) for n in axes if n != "?") if len(axes) <= MOST_AXES else 0
        if len(axes) > MOST_AXES or count * width > _LARGER * bytes_here:
            shown = kind if len(kind) < 80 else f"{kind[:80]}..."
            raise ExportError(
                f"{who}: its program has an array of the type {shown}, but this machine has {bytes_here:.3g} bytes of "
                f"memory, and an array may have {_LARGER} times as many and {MOST_AXES} axes"
            )


class _Extent(NamedTuple):
    """How much a function is once its calls are expanded: operations, regions within each other, and calls."""

    operations: int
    regions: int
    calls: int

    def __str__(self) -> str:
        return f"{self.operations:,} operations, {self.regions} regions and {self.calls} nested calls"


_MOST = _Extent(1_000_000, 200, 1_000)
"""The most of a function. The compiler's recursion ends the process at about 300 regions or 20,000 calls."""


def _check_calls(functions: Mapping[str, Sequence[Operation]], who: str) -> None:
    """Raise if a function calls itself, or is more than ``_MOST`` once its calls are expanded."""
    extents: dict[str, _Extent] = {}
    entered: set[str] = set()
    waiting = list(functions)
    while waiting:
        name = waiting[-1]
        if name in extents:
            waiting.pop()
            continue
        calls = [(callee, x.depth) for x in functions[name] for callee in x.callees if callee in functions]
        missing = [callee for callee in dict(calls) if callee not in extents]
        recursive = next((callee for callee in missing if callee in entered or callee == name), None)
        if recursive is not None:
            raise ExportError(
                f"{who}: the function {recursive!r} of its program calls itself, which the compiler does not support"
            )
        if missing:
            entered.add(name)
            waiting += missing
            continue
        waiting.pop()
        extents[name] = found = _Extent(
            len(functions[name]) + sum(extents[callee].operations for callee, _ in calls),
            max(
                [*(x.depth for x in functions[name]), *(at + extents[callee].regions for callee, at in calls)],
                default=0,
            ),
            max((1 + extents[callee].calls for callee, _ in calls), default=0),
        )
        if any(n > most for n, most in zip(found, _MOST, strict=True)):
            raise ExportError(
                f"{who}: the function {name!r} of its program is too large or too deep for the compiler: with its "
                f"calls expanded it has {found}; at most {_MOST} are allowed"
            )
