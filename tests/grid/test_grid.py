"""For every row of the table of operations: everything that holds of an operation, checked.

The value, dtype and shape agree with NumPy's; derivatives of both modes and orders agree with differences and
with each other; mapping over any axes is a loop; staging changes nothing, of the operation or its derivatives. The
usual run checks derivatives of primitives in each row and dtype. Functions, which are made of them, are checked in one
dtype, and in one row for second derivatives and for derivatives that are mapped.
"""

from __future__ import annotations

import importlib
import itertools
import math
import pkgutil
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
import pullback.primitives
from pullback import jacfwd, jacrev, jvp, make_jaxpr, nn, test_util, vjp, vmap
from pullback.core import dtypes, tree
from pullback.core.array import as_array, host_value, typeof
from pullback.core.config import enable_x64
from pullback.core.jaxpr import jaxpr_as_fun
from pullback.core.jaxpr_check import check_jaxpr
from pullback.core.trace import Primitive
from pullback.derivatives import taylor
from pullback.primitives.declare import PUBLIC
from pullback.primitives.elementwise import add, mul, real, sin
from pullback.primitives.reductions import reduce_sum
from pullback.scipy import ndimage, signal, special
from tests.grid.all_specs import ALL, OF_FUNCTIONS, OF_PRIMITIVES
from tests.grid.numpy_specs import NOT_IN_THE_TABLE
from tests.grid.scipy_signal_specs import MODULES as OF_SIGNALS
from tests.grid.specs import LETTERS, Spec, numbered
from tests.helpers import EXHAUSTIVE, ROOT, chosen, spread

Record = Callable[[str, object], None]
ROWS_OF_TABLE = numbered(ALL)
ROWS_OF_PRIMITIVES = {id(s) for s in OF_PRIMITIVES}

RTOL = {"h": 4e-3, "b": 3e-2, "f": 1e-5, "F": 1e-5, "d": 1e-12, "D": 1e-12}
UGLY_FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-38, 3e38, math.inf, -math.inf, math.nan]
UGLY_COMPLEX = [0, 1, -1, 1j, -1j, 1 + 1j, -2.5 + 0.5j]


def ids(specs: Sequence[Spec]) -> list[str]:
    return [s.name for s in specs]


def table(keep: Callable[[Spec], bool] = lambda s: True) -> Any:
    """Parametrise a check by the rows for which it makes sense."""
    kept = [s for s in ROWS_OF_TABLE if keep(s)]
    return pytest.mark.parametrize("spec", kept, ids=ids(kept))


@contextmanager
def checking(letter: str) -> Iterator[None]:
    """One dtype of several that a test checks, which a failure names."""
    try:
        yield
    except Exception as error:
        error.add_note(f"dtype {LETTERS[letter]} ({letter})")
        raise


NUMBER_OF = {id(s): i for i, s in enumerate(ROWS_OF_TABLE)}


FIRST_OF_FUNCTIONS = {id(s) for s in {s.operation: s for s in reversed(OF_FUNCTIONS)}.values()}


def of_primitives(spec: Spec) -> bool:
    """All rows of primitives, and the first of each function, which is made of them; in the exhaustive run all."""
    return EXHAUSTIVE or id(spec) in ROWS_OF_PRIMITIVES or id(spec) in FIRST_OF_FUNCTIONS


def in_each_dtype(spec: Spec) -> str:
    """All dtypes of a primitive's derivatives; of a function, which is made of primitives, one, in turn."""
    return spec.derivative if id(spec) in ROWS_OF_PRIMITIVES else in_one_dtype(spec)


def in_one_dtype(spec: Spec) -> str:
    """One dtype of a row's derivatives, in turn: they are the same program in each; all in the exhaustive run."""
    return "".join(spread(spec.derivative, NUMBER_OF[id(spec)], 1))


def for_derivatives(
    keep: Callable[[Spec], bool] = lambda s: True, letters: Callable[[Spec], str] = in_each_dtype
) -> Any:
    """Check a law of derivatives for the rows that have some, in 64 bits, in dtypes of theirs."""

    def decorate(law: Callable[[Spec, str], None]) -> Any:
        def test(spec: Spec, record_property: Record) -> None:
            chosen_letters = letters(spec)
            record_property("checks", len(chosen_letters))
            for letter in chosen_letters:
                with checking(letter), enable_x64():
                    law(spec, letter)

        test.__name__, test.__doc__ = law.__name__, law.__doc__
        return table(lambda s: bool(s.derivative and s.samples) and keep(s))(test)

    return decorate


def arrays(values: Sequence[Any]) -> list[Any]:
    return [as_array(x) for x in values]


def leaves(out: Any) -> list[Any]:
    return list(tree.leaves(out))


def assert_same(got: Any, expected: Any, tolerance: float = 0) -> None:
    """Equal leaves: shapes, dtypes and values."""
    got, expected = leaves(got), leaves(expected)
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        a, b = host_value(a), host_value(b)
        if a.dtype.kind == "V" and a.dtype != LETTERS["b"]:
            assert a.tobytes() == b.tobytes()
        elif tolerance == 0:
            np.testing.assert_array_equal(a, b)
        else:
            scale = np.abs(b[np.isfinite(b)]).max(initial=0)
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


def tolerance_of(out: Any) -> float:
    """A few roundings of the narrowest inexact dtype."""
    return max((64 * float(dtypes.finfo(x.dtype).eps) for x in leaves(out) if dtypes.is_inexact(x.dtype)), default=0)


# The table is complete ---------------------------------------------------------------------------------------------


def primitives() -> set[str]:
    """The names of all primitives that the modules of ``pullback.primitives`` hold, but for those along named axes."""
    found = set()
    for module in pkgutil.walk_packages(pullback.primitives.__path__, "pullback.primitives."):
        held = [x for x in vars(importlib.import_module(module.name)).values() if isinstance(x, Primitive)]
        found |= {x.name for x in held if x.axes_rule is None}  # for the others see ``test_collectives.py``
    return found


def test_every_primitive_has_a_row() -> None:
    """Of a public one on elements the row of its function, under the same name, serves as well.

    ``random_loop`` and ``newton_loop`` stand within lowering rules only, and ``size_value`` is that of a symbolic size.
    ``mesh_cast`` and ``reshard`` are of types with shardings, in ``tests/spmd``. Derivatives of QR and of eigenvalues
    are in ``test_qr.py`` and ``test_eigen.py``, and extremes of windows with their positions in
    ``test_window_reductions.py``.
    """
    elsewhere = {"random_loop", "newton_loop", "size_value", "mesh_cast", "reshard", "window_extremes_and_positions"}
    elsewhere |= {"qr_differential", "qr_pull", "qr_pull_of_r", "eigenvalues_differential", "eigenvalues_pull"}
    of_functions = {s.operation.rpartition(".")[2] for s in OF_FUNCTIONS} & {p.name for p in PUBLIC}
    assert primitives() - elsewhere - {s.operation for s in OF_PRIMITIVES} - of_functions == set()


SQUARE = """
    adapted cholesky cholesky_update cofactors cofactors_along det eig eigenbasis eigh expm expm_frechet hessenberg
    linear_solve logm logm_frechet lyapunov masked_linear_solve masked_triangular_solve matrix_equation matrix_function
    matrix_function_along matrix_function_cotangent matrix_function_cotangent_along numpy.linalg.cholesky
    numpy.linalg.det numpy.linalg.eig numpy.linalg.eigh numpy.linalg.eigvalsh numpy.linalg.inv
    numpy.linalg.matrix_power numpy.linalg.slogdet numpy.linalg.solve numpy.linalg.tensorinv numpy.linalg.tensorsolve
    schur scipy.linalg.eigh scipy.linalg.funm scipy.linalg.logm scipy.linalg.signm
    scipy.linalg.solve_continuous_lyapunov scipy.linalg.solve_discrete_lyapunov scipy.linalg.sqrtm singular_basis
    slogdet sqrtm symmetric_product triangular_solve tridiagonal undetermined
"""
"""Operations of which an operand is a square matrix, or a stack of them."""
ALSO_SQUARE = """
    geqrf householder_product lu nuclear_norm numpy.einsum numpy.linalg.cond numpy.linalg.matrix_rank numpy.linalg.svd
    ormqr pinv polar qdwh qr scipy.linalg.polar svd vectors_of_zeros
"""
"""Operations for which square matrices are a case of their own, beside oblong ones in other rows."""


def has_equal_sizes(spec: Spec) -> bool:
    """Whether all axes of an operand, of which there are several, have one size."""
    return any(len(x.shape) > 1 and x.shape[0] > 1 and len(set(x.shape)) == 1 for x in spec.samples)


def test_sizes_differ() -> None:
    """Where sizes are equal, an operation may take one axis for another, and nobody notices."""
    also = set(ALSO_SQUARE.split())
    matrices = also.union(SQUARE.split())
    equal = [spec for spec in ALL if has_equal_sizes(spec)]
    assert [spec.name for spec in equal if spec.operation not in matrices] == []
    assert [spec.name for spec in equal if any(len(x.shape) > 2 and len(set(x.shape)) == 1 for x in spec.samples)] == []
    assert {spec.operation for spec in equal} == matrices
    assert also - {spec.operation for spec in ALL if not has_equal_sizes(spec)} == set()


def test_every_function_of_numpy_has_a_row_or_a_reason() -> None:
    rows = {s.operation.removeprefix("numpy.") for s in OF_FUNCTIONS}
    covered = {id(getattr(jnp, name)) for name in rows if hasattr(jnp, name)}
    missing = {
        name
        for name in jnp.__all__
        if name not in NOT_IN_THE_TABLE and name not in rows and id(getattr(jnp, name)) not in covered
    }
    assert missing == set()


def test_every_function_of_nn_and_scipy_special_has_a_row() -> None:
    rows = {s.operation for s in OF_FUNCTIONS}
    for module, name in ((nn, "nn"), (special, "scipy.special")):
        functions = {getattr(module, f).__name__ for f in module.__all__ if callable(getattr(module, f))}
        assert {f"{name}.{f}" for f in functions} - rows - {"nn.get_scaled_dot_general_config"} == set()


OF_INTERPOLATION = {
    f"scipy.interpolate.{name}"
    for name in (
        "Akima1DInterpolator", "BSpline", "CubicHermiteSpline", "LinearNDInterpolator", "NearestNDInterpolator",
        "PchipInterpolator", "RBFInterpolator", "griddata", "interpn", "make_interp_spline", "make_lsq_spline",
        "make_smoothing_spline",
    )
}  # fmt: skip
"""Functions of structures that are found on the host: ``tests/scipy/interpolate`` has their laws."""

OF_EQUATIONS = {
    f"scipy.integrate.{name}"
    for name in (
        "BVPResult", "BrownianPath", "CubatureRegion", "CubatureResult", "OdeResult", "OdeSolution", "PhaseTrajectory",
        "Trajectory", "cubature", "dblquad", "nquad", "solve_bvp", "solve_dde", "solve_hamiltonian", "solve_ivp",
        "solve_sde", "solve_symplectic", "tplquad",
    )
}  # fmt: skip
"""Functions of other functions, and their results: ``tests/scipy/integrate`` has their laws."""

OF_IMAGES = {f"scipy.ndimage.{name}" for name in ndimage.__all__} - {"scipy.ndimage.map_coordinates"}
"""Functions of windows and labels: ``tests/scipy/ndimage`` has their laws."""


_TESTS_OF_SIGNALS = "".join([path.read_text() for path in (ROOT / "tests" / "scipy" / "signal").glob("*.py")])
OF_SCIPY_SIGNAL = {f"scipy.signal.{name}" for name in signal.__all__ if re.search(rf"\b{name}\b", _TESTS_OF_SIGNALS)}
"""Functions of filters, waves and systems: ``tests/scipy/signal`` has their laws, and names each."""
IN_OWN_TESTS = OF_INTERPOLATION | OF_IMAGES | OF_SCIPY_SIGNAL
"""Functions whose laws are in ``tests/scipy``: their options have tables there, or results are positions."""


def test_every_function_of_the_signal_modules_has_a_row() -> None:
    rows = {s.operation for s in OF_FUNCTIONS}
    for module in OF_SIGNALS:
        name = module.__name__.removeprefix("pullback.")
        elsewhere = IN_OWN_TESTS | OF_EQUATIONS
        assert {f"{name}.{f}" for f in module.__all__} - rows - elsewhere == set()


# Value, dtype and shape --------------------------------------------------------------------------------------------


def agree_with_numpy(spec: Spec, letter: str, point: list[Any]) -> None:
    given = [x.astype(np.float32) if x.dtype in (LETTERS["b"], LETTERS["h"]) else x for x in point]
    assert spec.reference is not None
    with np.errstate(all="ignore"):
        expected = leaves(spec.reference(*given))
        got = leaves(spec.function(*arrays(point)))
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        b = np.asarray(b)
        assert a.shape == b.shape
        wanted = dtypes.canonicalize_dtype(b.dtype)
        if letter in "hb" and wanted == np.float32:
            wanted = LETTERS[letter]
        assert a.dtype == wanted or not spec.exact_dtype
        a = np.asarray(a)
        if not dtypes.is_inexact(a.dtype):
            np.testing.assert_array_equal(a, b.astype(a.dtype))
            continue
        wide = np.complex128 if b.dtype.kind == "c" else np.float64
        with np.errstate(all="ignore"):
            b = b.astype(a.dtype).astype(wide)
        rtol = RTOL[letter if letter in "hb" else "F" if a.dtype.itemsize == 4 or a.dtype == np.complex64 else "D"]
        rtol *= spec.tolerance
        np.testing.assert_allclose(a.astype(wide), b, rtol=rtol, atol=rtol * 1e-2)


@table(lambda s: s.reference is not None)
def test_host_is_the_reference(spec: Spec, record_property: Record) -> None:
    record_property("checks", len(spec.dtypes))
    for letter in spec.dtypes:
        with checking(letter), enable_x64(letter in "dD"):
            agree_with_numpy(spec, letter, spec.point(letter))


def ugly_values(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([0, 1, 2, 7, info.max, info.max - 1, info.min, info.min // 2], dtype)
    if dtype.kind == "c":
        return np.array(UGLY_COMPLEX, dtype)
    return np.array(UGLY_FLOATS, dtype)


@table(lambda s: s.ugly and s.samples[0].shape == ())
def test_ugly_values(spec: Spec, record_property: Record) -> None:
    letters = [d for d in spec.dtypes if d not in "hb"]
    record_property("checks", len(letters))
    for letter in letters:
        values = ugly_values(LETTERS[letter])
        count = len(spec.samples)
        grid = np.meshgrid(*[values] * count, indexing="ij") if count > 1 else [values]
        with checking(letter):
            agree_with_numpy(spec, letter, [np.ascontiguousarray(x) for x in grid])


# Derivatives -------------------------------------------------------------------------------------------------------


def active(spec: Spec, letter: str) -> tuple[Callable[..., Any], list[Any], list[int]]:
    """A function of the operands with respect to which a row is differentiated, these operands, and which they are."""
    point = arrays(spec.point(letter))
    where = [
        i
        for i, x in enumerate(point)
        if dtypes.is_inexact(x.dtype) and (spec.differentiable is None or i in spec.differentiable)
    ]

    def f(*xs: Any) -> Any:
        full = list(point)
        for i, x in zip(where, xs, strict=True):
            full[i] = x
        return spec.function(*full)

    return f, [point[i] for i in where], where


def inexact(out: Any) -> list[Any]:
    return [x for x in leaves(out) if dtypes.is_inexact(x.dtype)]


def random_like(x: Any, seed: int) -> Any:
    rng = np.random.default_rng([seed, *x.shape])
    value = rng.uniform(-1, 1, x.shape)
    if dtypes.is_complex(x.dtype):
        value = value + 1j * rng.uniform(-1, 1, x.shape)
    return as_array(np.asarray(value).astype(x.dtype))


def inner(us: Sequence[Any], vs: Sequence[Any]) -> float:
    """The pairing Re(u v) of cotangents with tangents."""
    return sum(float(np.sum(np.asarray(u) * np.asarray(v)).real) for u, v in zip(us, vs, strict=True))


@pytest.fixture
def along_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Differences along random directions, where there are more than three components; all in the exhaustive run."""
    monkeypatch.setattr(test_util, "COMPONENTS", chosen(3, test_util.COMPONENTS))
    monkeypatch.setattr(test_util, "DIRECTIONS", chosen(2, test_util.DIRECTIONS))


@pytest.mark.usefixtures("along_directions")
@for_derivatives()
def test_derivatives_agree_with_differences(spec: Spec, letter: str) -> None:
    """Forward mode to second order in the first dtype, and both modes to first order in the other.

    Reverse mode in the first is compared with forward mode below; with differences in the exhaustive run. Functions
    that are made of primitives, whose second derivatives these are, are differentiated once.
    """
    f, point, _ = active(spec, letter)
    if not point:
        return
    if EXHAUSTIVE or not spec.second:
        test_util.check_grads(f, point, order=2 if spec.second else 1)
    elif letter == spec.derivative[0]:
        test_util.check_grads(f, point, order=2 if id(spec) in ROWS_OF_PRIMITIVES else 1, modes=("fwd",))
    else:
        test_util.check_grads(f, point, order=1)


@for_derivatives()
def test_vjp_is_the_transpose_of_jvp(spec: Spec, letter: str) -> None:
    f, point, _ = active(spec, letter)
    g = lambda *xs: inexact(f(*xs))
    v = [random_like(x, i) for i, x in enumerate(point)]
    out, jv = jvp(g, point, v)
    u = [random_like(x, 10 + i) for i, x in enumerate(out)]
    left, right = inner(u, jv), inner(vjp(g, *point)[1](u), v)
    assert abs(left - right) <= 1e-10 * (1 + abs(left))


def smooth_total(out: Any) -> Any:
    """A real scalar with second derivatives, of inexact results."""
    total: Any = 0.0
    for x in inexact(out):
        x = real(mul(x, x)) if dtypes.is_complex(x.dtype) else mul(x, sin(x))
        total = add(total, reduce_sum(x, range(len(x.shape))))
    return total


@for_derivatives(lambda s: s.second and of_primitives(s), lambda s: s.derivative.replace("D", ""))
def test_second_order_both_ways(spec: Spec, letter: str) -> None:
    f, point, _ = active(spec, letter)
    if not point or not inexact(f(*point)):
        return
    argnums = tuple(range(len(point)))
    g = lambda *xs: smooth_total(f(*xs))
    forward_over_reverse = jacfwd(jacrev(g, argnums), argnums)(*point)
    reverse_over_forward = jacrev(jacfwd(g, argnums), argnums)(*point)
    assert_same(reverse_over_forward, forward_over_reverse, 1e-9)
    for i, x in enumerate(point):
        h = np.asarray(forward_over_reverse[i][i]).reshape(x.size, x.size)
        np.testing.assert_allclose(h, h.T, rtol=1e-9, atol=1e-9 * np.abs(h).max(initial=1))


@for_derivatives(of_primitives, in_one_dtype)
def test_derivatives_are_mapped_and_staged(spec: Spec, letter: str) -> None:
    """vmap of jvp and of vjp is a loop; both, staged, give the same."""
    f, point, where = active(spec, letter)
    g = lambda *xs: inexact(f(*xs))
    if not point or not g(*point):
        return
    other = arrays([spec.point(letter, 1)[i] for i in where])
    batch = [as_array(np.stack([host_value(a), host_value(b)])) for a, b in zip(point, other, strict=True)]
    v = [random_like(x, i) for i, x in enumerate(point)]
    u = [random_like(x, i) for i, x in enumerate(g(*point))]
    for derivative in (lambda *xs: jvp(g, xs, v), lambda *xs: vjp(g, *xs)[1](u)):
        mapped = vmap(derivative)(*batch)
        loop = [leaves(derivative(*xs)) for xs in (point, other)]
        rows = [as_array(np.stack([host_value(a) for a in column])) for column in zip(*loop, strict=True)]
        assert_same(mapped, rows, 1e-9)
        closed = make_jaxpr(derivative)(*point)
        check_jaxpr(closed)
        staged = jaxpr_as_fun(closed)(*point)
        assert_same(staged, derivative(*point), 1e-12)
        assert [typeof(x) for x in staged] == closed.out_avals


SOME_ROWS = {id(s) for s in ROWS_OF_TABLE[:: chosen(20, 1)]}


@for_derivatives(lambda s: s.second and id(s) in SOME_ROWS, lambda s: s.derivative)
def test_taylor_coefficients_are_those_of_nested_jvp(spec: Spec, letter: str) -> None:
    """To order 3, along a line; of one row in twenty, and of all in the exhaustive run."""
    f, point, _ = active(spec, letter)
    directions = [random_like(x, i) for i, x in enumerate(point)]
    along = lambda t: inexact(f(*[x + t.astype(x.dtype) * v for x, v in zip(point, directions, strict=True)]))
    zero = as_array(np.zeros(()))
    if not point or not along(zero):
        return
    coefficients = taylor(along, zero, 3)
    expected = []
    for k in range(4):
        expected.append([np.asarray(x) / math.factorial(k) for x in along(zero)])
        along = lambda t, f=along: jvp(f, (t,), (jnp.ones(()),))[1]
    for got, wanted in zip(zip(*coefficients, strict=True), zip(*expected, strict=True), strict=True):
        scale = max(np.abs(b[np.isfinite(b)]).max(initial=0) for b in wanted)
        for a, b in zip(got, wanted, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10 * scale)


# Mapping -----------------------------------------------------------------------------------------------------------


def axes_to_try(spec: Spec) -> list[tuple[int | None, ...]]:
    """Every combination of the first axis, the last one and none, for each operand; some of them if there are many."""
    ranks = [len(s.shape) for s in spec.samples]
    choices: list[list[int | None]] = [[0, None] if r == 0 else [0, r, None] for r in ranks]
    if len(ranks) > 3:
        choices = [[0, None] if i else c for i, c in enumerate(choices)]
    return [axes for axes in itertools.product(*choices) if any(a is not None for a in axes)]


@table(lambda s: bool(s.samples) and s.loops)
def test_vmap_is_a_loop(spec: Spec, record_property: Record) -> None:
    letter = spec.dtypes[0] if spec.dtypes[0] not in "hb" else "f" if "f" in spec.dtypes else spec.dtypes[0]
    first, second = arrays(spec.point(letter)), arrays(spec.point(letter, 1))
    combinations = axes_to_try(spec)
    record_property("checks", len(combinations))
    for axes in combinations:
        batch = [
            a if axis is None else as_array(np.stack([host_value(a), host_value(b)], axis))
            for a, b, axis in zip(first, second, axes, strict=True)
        ]
        mapped = leaves(vmap(spec.function, in_axes=axes)(*batch))
        examples = [first, [a if axis is None else b for a, b, axis in zip(first, second, axes, strict=True)]]
        rows = [leaves(spec.function(*xs)) for xs in examples]
        expected = [np.stack([host_value(a) for a in column]) for column in zip(*rows, strict=True)]
        assert_same(mapped, expected, tolerance_of(mapped))


# Staging -----------------------------------------------------------------------------------------------------------


def agree_with_staged(f: Callable[..., Any], args: list[Any], tolerance: float = 0) -> None:
    closed = make_jaxpr(f)(*args)
    check_jaxpr(closed)
    eager = leaves(f(*args))
    staged = jaxpr_as_fun(closed)(*args)
    assert closed.out_avals == [typeof(x) for x in eager]
    assert [typeof(x) for x in staged] == closed.out_avals
    assert_same(staged, eager, tolerance)


OWN_WAYS = {
    *(f"nn.{name}" for name in ("log_softmax", "logmeanexp", "logsumexp", "softmax")),
    *(f"nn.{name}" for name in ("gelu", "log_sigmoid", "mish", "softplus")),
    "numpy.sinc",
    *(f"scipy.special.{name}" for name in ("log_softmax", "logsumexp", "softmax")),
    *(f"scipy.interpolate.{name}" for name in ("CubicSpline", "PPoly", "RegularGridInterpolator", "interp1d")),
    "scipy.stats.logistic",
    "scipy.ndimage.map_coordinates",
    "scipy.signal.lfilter",
    "scipy.signal.sosfilt",
}
"""Functions that eager code computes at once (decisions 919, 961, 976, 978, 995): their operations round otherwise."""


@table()
def test_staging_changes_nothing(spec: Spec, record_property: Record) -> None:
    record_property("checks", len(spec.dtypes))
    for letter in spec.dtypes:
        most = 32 if spec.operation.endswith("map_coordinates") else 4  # a spline's equations are solved
        tolerance = most * float(jnp.finfo(LETTERS[letter]).eps) if spec.operation in OWN_WAYS else 0
        with checking(letter), enable_x64(letter in "dD"):
            agree_with_staged(spec.function, arrays(spec.point(letter)), tolerance)


@table(lambda s: bool(s.samples) and all(x.shape == () for x in s.samples))
def test_staging_keeps_weak_types(spec: Spec, record_property: Record) -> None:
    kinds = [kind for kind, d in ((float, "f"), (int, "i"), (complex, "F"), (bool, "?")) if d in spec.dtypes]
    record_property("checks", len(kinds))
    for kind in kinds:
        weak = [as_array(kind(1)) for _ in spec.samples]
        agree_with_staged(spec.function, weak)
        agree_with_staged(spec.function, [*weak[:-1], as_array(np.asarray(weak[-1]))])


@table(lambda s: bool(s.samples))
def test_a_mapped_program_is_staged(spec: Spec) -> None:
    first, second = (arrays(spec.point(spec.dtypes[0], k)) for k in (0, 1))
    batch = [as_array(np.stack([host_value(a), host_value(b)])) for a, b in zip(first, second, strict=True)]
    with enable_x64(spec.dtypes[0] in "dD"):
        agree_with_staged(vmap(spec.function), batch)
