"""Every kind of derivative, of every operation, beside constants that are not zero.

All that ``derivatives`` offers, and all modes, give for every row of the table what nested forward mode gives: in all
operands together, in each alone, and in all but one. Sizes differ in every dimension; chunks do not divide. The usual
run takes rows that have every mode of an operation between them, and some kinds for each case, in turn; the exhaustive
one all kinds for all rows, those of functions too.
"""

from __future__ import annotations

import enum
import functools
import importlib
import math
import pkgutil
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import errors, hessian, jacfwd, jacrev, jvp, linearize, masked_zeros, vjp
from pullback.core.array import as_array, host_value
from pullback.core.config import enable_x64
from pullback.core.linearity import homogeneous
from pullback.core.trace import Primitive
from pullback.derivatives import (
    derivative_tensor,
    forward_laplacian,
    hessian_pattern,
    jacobian_pattern,
    jet,
    jvp_from_vjp,
    preaccumulate,
    vjp_from_jvp,
)
from pullback.primitives.declare import PUBLIC
from pullback.primitives.linalg.decompositions import undetermined_p
from pullback.transforms.traces.linearize import linearize_flat
from tests.grid.all_specs import ALL, OF_FUNCTIONS, OF_PRIMITIVES
from tests.grid.derivative_cases import Case, cases, vector
from tests.grid.program_cases import PROGRAMS, Program
from tests.grid.specs import Spec
from tests.helpers import EXHAUSTIVE, assert_close, chosen, spread

CHUNK = 2
MOST = chosen(16, 30)
"""Of so many numbers there are second derivatives, of which a case has the square."""


close = partial(assert_close, least=1e-3, dtypes=False)


def matrix(blocks: Any, case: Case) -> Any:
    """A Jacobian, as ``jacfwd`` returns it, as a matrix."""
    rows = [
        np.concatenate([host_value(b).reshape(y.size, x.size) for b, x in zip(row, case.point, strict=True)], 1)
        for row, y in zip(blocks, case.results, strict=True)
    ]
    return np.concatenate([np.zeros((0, case.size)), *rows])


# First derivatives ---------------------------------------------------------------------------------------------------


def differences(case: Case) -> None:
    """Of finite results the first two derivatives along a direction, by differences extrapolated to order 4."""
    v, x = [host_value(t) for t in case.directions(0)], [host_value(t) for t in case.point]
    at = lambda h: vector(case(*[as_array(np.asarray(a + h * t)) for a, t in zip(x, v, strict=True)]))
    here = vector(case.results)
    finite = np.isfinite(here)
    with np.errstate(invalid="ignore"):  # of results that are infinite
        first = [(at(h) - at(-h)) / (2 * h) for h in (1e-3, 5e-4)]
        second = [(at(h) - 2 * here + at(-h)) / h**2 for h in (2e-3, 1e-3)]
    flat, least = vector(v), 1e-3 * np.abs(here[finite]).max(initial=1)  # for rounding of the results
    close((case.jacobian @ flat)[finite], (4 * first[1] - first[0])[finite] / 3, 1e-6, least=least)
    if case.second and case.size <= MOST:
        close(
            (case.second_derivatives @ flat @ flat)[finite], (4 * second[1] - second[0])[finite] / 3, 1e-4, least=least
        )


def first_order(case: Case) -> None:
    v, u = case.directions(1), case.cotangents()
    out, pushed = jvp(case, case.point, v)
    expected = case.jacobian @ vector(v)
    close(vector(out), vector(case.results), 1e-13)  # singular values alone are found in another way
    close(vector(pushed), expected)
    _, linear = linearize(case, *case.point)
    close(vector(linear(*v)), expected)
    _, pull = vjp(case, *case.point)
    close(vector(pull(u)), vector(u) @ case.jacobian)


def in_chunks(case: Case) -> None:
    for jacobian in (jacfwd, jacrev):
        close(matrix(jacobian(case, case.argnums, chunk_size=CHUNK)(*case.point), case), case.jacobian)


def with_masked_zeros(case: Case) -> None:
    v, u = case.directions(1), case.cotangents()
    with masked_zeros():
        close(vector(jvp(case, case.point, v)[1]), case.jacobian @ vector(v))
        close(vector(vjp(case, *case.point)[1](u)), vector(u) @ case.jacobian)


def looks_at_cotangents(case: Case) -> bool:
    """Whether the backward pass is not linear: it looks whether vectors that are not determined are used."""
    _, tape = linearize_flat(case, case, case.point)
    return any(node.primitive is undetermined_p for node in tape.nodes)


def divides_by_cotangents(case: Case) -> bool:
    """Whether the backward pass takes their size out and puts it back: that of ``quad``, whose tolerance is for 1."""
    moving = case.name.rpartition(" in ")[2]
    return case.name.startswith("scipy.integrate.quad") and "2" in moving  # what the function is given


def other_modes(case: Case) -> None:
    v, u = case.directions(1), case.cotangents()
    if looks_at_cotangents(case):
        with pytest.raises(errors.NotLinearError, match="ne is not linear"):
            jvp(jvp_from_vjp(lambda *xs: case(*xs)), case.point, v)
        return
    for method in ("transpose", "basis"):
        chunk = CHUNK if method == "basis" else None
        reverse = vjp_from_jvp(lambda *xs: case(*xs), method, chunk)
        close(vector(vjp(reverse, *case.point)[1](u)), vector(u) @ case.jacobian)
        if method == "transpose" and divides_by_cotangents(case):
            with pytest.raises(errors.NotLinearError, match="abs is not linear"):
                jvp(jvp_from_vjp(lambda *xs: case(*xs)), case.point, v)
            continue
        forward = jvp_from_vjp(lambda *xs: case(*xs), method, chunk)
        close(vector(jvp(forward, case.point, v)[1]), case.jacobian @ vector(v))


def preaccumulated(case: Case) -> None:
    v, u = case.directions(1), case.cotangents()
    f = preaccumulate(lambda *xs: case(*xs))
    close(vector(jvp(f, case.point, v)[1]), case.jacobian @ vector(v))
    close(vector(vjp(f, *case.point)[1](u)), vector(u) @ case.jacobian)


# Patterns ------------------------------------------------------------------------------------------------------------


def contains(pattern: Any, dense: Any) -> None:
    """A pattern has all elements that are not zero."""
    there = pattern.to_scipy().toarray().astype(bool)
    assert there.shape == dense.shape
    assert not dense[~there].any()


def patterns(case: Case) -> None:
    for local in (False, True):
        contains(jacobian_pattern(case, case.argnums, local=local)(*case.point), case.jacobian)
        if case.second:
            contains(hessian_pattern(case.scalar, case.argnums, local=local)(*case.point), case.hessian)


# Second and third derivatives ----------------------------------------------------------------------------------------


def second_order(case: Case) -> None:
    whole = lambda blocks: np.block(
        [
            [host_value(b).reshape(x.size, y.size) for b, y in zip(row, case.point, strict=True)]
            for row, x in zip(blocks, case.point, strict=True)
        ]
    )
    n = case.argnums
    close(whole(hessian(case.scalar, n, chunk_size=CHUNK)(*case.point)), case.hessian)
    close(whole(jacrev(jacfwd(case.scalar, n), n)(*case.point)), case.hessian)
    close(whole(jacrev(jacrev(case.scalar, n), n)(*case.point)), case.hessian)


def laplacians(case: Case) -> None:
    """Of arguments that have second derivatives of their own, by weights: x + t + c t² / 2 for each element t."""
    curvature, scales = case.directions(1), case.directions(2)

    def bent(*ts: Any) -> Any:
        return case(*[x + t + c * t * t / 2 for x, t, c in zip(case.point, ts, curvature, strict=True)])

    start = [jnp.zeros(x.shape) for x in case.point]
    found = forward_laplacian(bent, case.argnums, tuple(scales))(*start)
    close(vector(found.value), vector(case.results), 1e-12)
    close(matrix(found.jacobian, case), case.jacobian)
    second = np.einsum("kii->ki", case.second_derivatives) + case.jacobian * vector(curvature)
    close(vector(found.laplacian), second @ vector(scales))


def taylor_mode(case: Case) -> None:
    """To order 3 along a curve, whose own derivatives are not zero."""
    series = [case.directions(k) for k in range(3)]

    def along(t: Any) -> Any:
        return case(*[x + t * (a + t * (b / 2 + t * (c / 6))) for x, a, b, c in zip(case.point, *series, strict=True)])

    _, found = jet(case, case.point, [list(terms) for terms in zip(*series, strict=True)])
    derivative = along
    for k in range(3):
        derivative = lambda t, f=derivative: jvp(f, (t,), (jnp.ones(()),))[1]
        close(vector([terms[k] for terms in found]), vector(derivative(jnp.zeros(()))), 1e-8)


def tensors(case: Case) -> None:
    if len(case.point) > 1:
        return
    for i in range(len(case.results)):
        y = case.results[i]
        found = derivative_tensor(lambda x, i=i: case(x)[i], case.point[0], 2, chunk_size=CHUNK)
        start = sum(z.size for z in case.results[:i])
        shape = (*y.shape, *case.point[0].shape * 2)
        close(host_value(found), case.second_derivatives[start : start + y.size].reshape(shape), 1e-8)


# All of them ---------------------------------------------------------------------------------------------------------

KINDS: dict[str, Callable[[Case], None]] = {
    "laplacians": laplacians,
    "first order": first_order,
    "differences": differences,
    "Taylor mode": taylor_mode,
    "patterns": patterns,
    "masked zeros": with_masked_zeros,
    "second order": second_order,
    "chunks": in_chunks,
    "pre-accumulation": preaccumulated,
    "tensors": tensors,
    "other modes": other_modes,
}
OF_SECOND_ORDER = {"laplacians", "Taylor mode", "second order", "tensors"}


def hold(case: Case, kinds: Sequence[str]) -> None:
    """Check laws, and name the case and the kind of the first that does not hold."""
    for name in kinds:
        if name in OF_SECOND_ORDER and not (case.second and case.size <= MOST):
            continue
        try:
            KINDS[name](case)
        except Exception as error:
            error.add_note(f"{name} of {case}")
            raise


@functools.cache
def operations_of_package() -> dict[str, Primitive]:
    """All primitives that modules of the package hold, by their names."""
    found: dict[str, Primitive] = {}
    for info in pkgutil.walk_packages(pullback.__path__, "pullback."):
        module = importlib.import_module(info.name)
        found |= {p.name: p for p in vars(module).values() if isinstance(p, Primitive)}
    return found


def binds(spec: Spec) -> tuple[Primitive | None, dict[str, Any]]:
    """The primitive that a row binds with given parameters, and these."""
    primitive = getattr(getattr(spec.function, "func", None), "__self__", None)
    return (primitive, spec.function.keywords) if isinstance(primitive, Primitive) else (None, {})  # type: ignore[attr-defined]


def modes_of(spec: Spec) -> set[tuple[str, Any]]:
    """What a row chooses of an operation: flags, members of enumerations, numbers, whether there is a constant."""
    primitive, params = binds(spec)
    found = {(k, v) for k, v in params.items() if v is None or isinstance(v, (bool, float, enum.Enum))}
    without = None if primitive is None else homogeneous.of(primitive)
    return found if without is None else found | {("a constant", without(**params) != params)}


def covering(rows: Sequence[Spec]) -> list[Spec]:
    """The first row, and those that have a mode that none before has."""
    kept: list[Spec] = []
    seen: set[tuple[str, Any]] = set()
    for spec in rows:
        new = modes_of(spec) - seen
        if new or not kept:
            kept.append(spec)
            seen |= new
    return kept


NAMES_OF_FUNCTIONS = {
    **{f"gennorm_{kind}": "scipy.stats.gennorm" for kind in ("cdf", "log_cdf", "quantile")},
    **{f"student_{kind}": "scipy.stats.t" for kind in ("cdf", "log_cdf", "quantile")},
    **{f"von_mises_{kind}": "scipy.stats.vonmises" for kind in ("cdf", "log_cdf")},
    **{name: f"scipy.special.{name}" for name in ("hyp1f1", "hyp2f1", "iv", "jv", "kv", "yv", "loggamma")},
    **{name: f"scipy.special.{name}" for name in ("ive", "kve", "stdtr", "stdtrit")},
}
"""Of operations that stand beside a function, the function in whose row they are."""


def rows_of_operations() -> dict[str, list[Spec]]:
    """The rows with derivatives, of each operation; of the functions those that are one, or all of them."""
    functions, public = set(NAMES_OF_FUNCTIONS.values()), {p.name for p in PUBLIC}
    own = [s for s in OF_FUNCTIONS if s.operation in functions or s.operation.rpartition(".")[2] in public]
    found: dict[str, list[Spec]] = {}
    for spec in ALL if EXHAUSTIVE else [*OF_PRIMITIVES, *own]:
        if spec.derivative and spec.samples:
            found.setdefault(spec.operation, []).append(spec)
    return found


ROWS = rows_of_operations()
TABLE = ROWS if EXHAUSTIVE else {name: covering(rows) for name, rows in ROWS.items()}


LINEAR = {p.name for p in operations_of_package().values() if p.transpose_rule is not None}
COSTLY = ["pre-accumulation", "other modes", "tensors", "first order", "chunks"]
"""Kinds that stage programs, or take as many passes as there are elements."""


def kinds_of(operation: str, number: int, count: int) -> list[str]:
    """Two kinds for each of ``count`` cases, in turn.

    Linear operations, which each kind treats in its own way, get as many as their cases need to have each kind twice
    between them, and a costly one more.
    """
    if operation in LINEAR:
        cheap = [name for name in KINDS if name not in COSTLY]
        each = max(2, math.ceil(2 * len(cheap) / count))
        return [*spread(cheap, number, each), *spread(COSTLY, number, 1)]
    return spread(list(KINDS), number, 2)


@pytest.mark.parametrize("operation", TABLE)
def test_all_kinds_agree(operation: str) -> None:
    first = list(TABLE).index(operation)
    letters = lambda spec: chosen(spread(spec.derivative, first, 1), spec.derivative)
    with enable_x64():
        found = [case for spec in TABLE[operation] for letter in letters(spec) for case in cases(spec, letter)]
        for number, case in enumerate(found, first):
            hold(case, kinds_of(operation, number, len(found)))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_all_kinds_agree_for_programs(program: Program) -> None:
    number = PROGRAMS.index(program)
    with enable_x64():
        for case in program.cases():
            hold(case, spread(list(KINDS), number, 1))
            number += 1


# The table is complete -----------------------------------------------------------------------------------------------

ELSEWHERE = {
    **dict.fromkeys(("shard_map", "sharding_constraint", "custom_partitioning", "inspect_sharding"), "tests/spmd"),
    **dict.fromkeys(("debug_callback", "io_callback", "pure_callback", "check"), "hands no derivative on"),
    **dict.fromkeys(("ffi_call", "ffi_call_with_effect", "backward_log", "dce_sink"), "hands no derivative on"),
    **dict.fromkeys(("xla_metadata_call", "xla_metadata_value"), "tests/control/test_metadata.py"),
    **dict.fromkeys(("mesh_cast", "reshard", "all_gather_invariant", "shard_alike", "sums_of_terms"), "tests/spmd"),
    **dict.fromkeys(("unreduced_psum", "unreduced_reduce_scatter", "preduced"), "tests/primitives/test_varying.py"),
    **dict.fromkeys(
        ("all_gather_reduced", "reduced_vary_cast", "vary_unreduced_cast"), "tests/primitives/test_varying.py"
    ),
    **dict.fromkeys(("softmax_slope", "log_softmax_slope", "log_softmax_pull"), "tests/nn/test_nn.py"),
    **dict.fromkeys(("qr_differential", "qr_pull", "qr_pull_of_r"), "tests/primitives/linalg/test_qr.py"),
    **dict.fromkeys(("eigenvalues_differential", "eigenvalues_pull"), "tests/primitives/linalg/test_eigen.py"),
    **dict.fromkeys(
        (
            "struve_excess",
            "struve_by_order",
            "modstruve_by_order",
            *(f"pb{name}_by_order" for name in ("dv", "dv_slope", "vv", "vv_slope", "wa", "wa_slope")),
        ),
        "tests/scipy/special/test_orders.py",
    ),
    **dict.fromkeys(
        ("hyp0f1_by_parameter", "wright_bessel_by_parameters", "log_wright_bessel_by_parameters"),
        "tests/scipy/special/test_parameters.py",
    ),
    "call_hi_primitive": "tests/transforms/custom/test_hi_primitive.py",
    "custom_call": "the other primitive of calls with rules, in programs",
    "platform_index": "an integer",
    "sparse_todense": "within sparsify",
}
"""Operations with a derivative rule that have no row here, and why."""


def test_every_operation_has_a_row() -> None:
    found = operations_of_package().items()
    differentiated = {name for name, p in found if p.jvp_rule is not None or p.transpose_rule is not None}
    without = {s.operation for s in OF_PRIMITIVES if not s.derivative}
    rows = {name.rpartition(".")[2] for name in ROWS} | {name for p in PROGRAMS for name in p.operations}
    rows |= {name for name, function in NAMES_OF_FUNCTIONS.items() if function in ROWS}
    assert differentiated - rows - without - set(ELSEWHERE) == set()


OF_VECTORS = "vectors are not unique: a row has what is unique of them, their products"
WITHOUT_ROWS = {
    ("convert_element_type", "weak_type"): "says the type of the result alone",
    **{("svd", flag): OF_VECTORS for flag in ("vectors", "full_matrices", "by_qr")},
    ("eigh", "vectors"): OF_VECTORS,
}
"""Modes that no row with derivatives has by itself, and why."""


def test_every_mode_has_a_row() -> None:
    """Each flag is on in one row and off in another; each member of an enumeration, and a constant, is in one."""
    missing = set()
    for operation, rows in ROWS.items():
        if operation.startswith("masked_"):  # whose rules are those of the base
            continue
        seen: set[tuple[str, Any]] = set().union(*map(modes_of, rows))
        for name in {name for name, _ in seen}:
            values = [v for k, v in seen if k == name]
            kinds = {type(v) for v in values if isinstance(v, (bool, enum.Enum))}
            every = [v for kind in kinds for v in ([False, True] if kind is bool else kind)]
            missing |= {(operation, name, v) for v in every if v not in values}
    assert {m for m in missing if m[:2] not in WITHOUT_ROWS} == set()
