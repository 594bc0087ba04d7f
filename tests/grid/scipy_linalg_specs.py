"""The rows for functions of matrices and equations for matrices: primitives, and functions of ``scipy.linalg``."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from pullback.primitives.linalg import matrix_functions as functions
from pullback.primitives.linalg.matrix_equations import matrix_equation_p, stein, sylvester
from pullback.scipy import linalg
from tests.grid.decomposition_specs import Apart, Hermitian, NumpyArray, Positive, each_matrix, made
from tests.grid.specs import R, Spec, row

# Samples -----------------------------------------------------------------------------------------------------------


class HalfPlane(R):
    """A sample of matrices with eigenvalues near the numbers from 2 on."""

    def draw(self, dtype: np.dtype[Any], seed: int) -> NumpyArray:
        x = super().draw(dtype, seed) / 8
        n = self.shape[-1]
        return (x + np.diag(2 + np.arange(n))).astype(dtype)


class BothHalves(R):
    """A sample of matrices with eigenvalues in both half planes."""

    def draw(self, dtype: np.dtype[Any], seed: int) -> NumpyArray:
        x = super().draw(dtype, seed) / 4
        n = self.shape[-1]
        return (x + np.diag((2 + np.arange(n)) * (-1) ** np.arange(n))).astype(dtype)


# References --------------------------------------------------------------------------------------------------------


def of_dtype(function: Any) -> Any:
    """A function of matrices, whose result has the dtype of the first."""
    return each_matrix(lambda x, *others: np.asarray(function(x, *others)).astype(x.dtype))


def complex_result(function: Any) -> Any:
    wide = lambda x: np.result_type(x.dtype, np.complex64)
    return each_matrix(lambda x: np.asarray(function(x)).astype(wide(x)))


expm = of_dtype(scipy.linalg.expm)
expm_frechet = of_dtype(lambda a, e: scipy.linalg.expm_frechet(a, e)[1])


def logm(x: Any) -> Any:
    return scipy.linalg.logm(x.astype(complex))  # in single precision SciPy warns of the error


def logm_frechet(a: Any, e: Any) -> Any:
    n = a.shape[0]
    return scipy.linalg.logm(np.block([[a, e], [0 * a, a]]).astype(complex))[:n, n:]


def kronecker(a: Any, b: Any, c: Any, is_stein: bool) -> Any:
    """The solution by a matrix of all coefficients."""
    m, n = c.shape
    eye = np.eye
    matrix = np.kron(a, b.T) - eye(m * n) if is_stein else np.kron(a, eye(n)) + np.kron(eye(m), b.T)
    return np.linalg.solve(matrix, c.ravel()).reshape(m, n)


def sylvester_reference(a: Any, b: Any, c: Any) -> Any:
    return kronecker(a, b, c, False)


def stein_reference(a: Any, b: Any, c: Any) -> Any:
    return kronecker(a, b, c, True)


# Rows --------------------------------------------------------------------------------------------------------------

# Most of the time of these rows is compiling, so that few dtypes and few derivatives are checked of each, and others of
# the next. Of a function with its Fréchet derivative, the first derivative of the latter is the second of the former.

FIRST = {"tolerance": 64, "second": False}
BATCH = {"tolerance": 64, "derivative": "", "second": False}
COMPLEX = {"dtypes": "D", "tolerance": 64, "derivative": "D"}


def of_module(
    name: str, *samples: Any, call: Any = None, reference: Any = None, label: str = "", **options: Any
) -> Spec:
    """A row for a function of ``scipy.linalg``, which SciPy has too."""
    theirs = reference or of_dtype(getattr(scipy.linalg, name))
    options = {"tolerance": 64, "second": False, **options}
    return made(f"scipy.linalg.{name}", call or getattr(linalg, name), theirs, *samples, label=label, **options)


MATRIX_FUNCTIONS: list[Spec] = [
    row(functions.expm_p, expm, R(3, 3), dtypes="F", derivative="D", **FIRST),
    row(functions.expm_p, expm, R(3, 2, 2), dtypes="f", **BATCH),
    row(functions.expm_p, expm, R(2, 2, lo=-9, hi=9), label="squared", dtypes="d", tolerance=512),
    row(functions.expm_p, expm, R(0, 0), dtypes="D", **BATCH),
    row(functions.expm_frechet_p, expm_frechet, R(2, 2), R(2, 2), dtypes="D", derivative="D", **FIRST),
    row(functions.expm_frechet_p, expm_frechet, R(3, 2, 2), R(3, 2, 2), dtypes="f", **BATCH),
    row(functions.sqrtm_p, of_dtype(scipy.linalg.sqrtm), HalfPlane(3, 3), **COMPLEX),
    row(functions.sqrtm_p, of_dtype(scipy.linalg.sqrtm), HalfPlane(3, 2, 2), dtypes="F", **BATCH),
    row(functions.logm_p, of_dtype(logm), HalfPlane(3, 3), **{**COMPLEX, "second": False}),
    row(functions.logm_p, of_dtype(logm), HalfPlane(3, 2, 2), dtypes="F", **BATCH),
    row(functions.logm_frechet_p, of_dtype(logm_frechet), HalfPlane(2, 2), R(2, 2), dtypes="D", derivative="D",
        tolerance=256, second=False),
    *(
        made("matrix_equation", function, of_dtype(reference), HalfPlane(*a), HalfPlane(*b), R(*c), tolerance=64,
             dtypes=dtypes, derivative="dD" if len(c) == 2 else "d", second=len(c) == 2)
        for function, reference in ((sylvester, sylvester_reference), (stein, stein_reference))
        for a, b, c, dtypes in (((3, 3), (2, 2), (3, 2), "dF"), ((3, 2, 2), (3, 1, 1), (3, 2, 1), "fD"))
    ),
]  # fmt: skip

MATRIX_FUNCTIONS_OF_SCIPY: list[Spec] = [
    of_module("signm", BothHalves(3, 3), dtypes="d", derivative="d"),
    of_module("signm", BothHalves(3, 2, 2), dtypes="F", derivative=""),
    of_module("sqrtm", HalfPlane(3, 3), reference=complex_result(scipy.linalg.sqrtm), dtypes="f",
              derivative="d"),
    of_module("logm", HalfPlane(3, 3), reference=complex_result(logm), dtypes="d", derivative=""),
    of_module("funm", HalfPlane(3, 3), call=lambda x: linalg.funm(x, lambda w: w**2 + 1 / w), dtypes="d",
              derivative="d", reference=complex_result(lambda x: x @ x + np.linalg.inv(x)), tolerance=512),
    of_module("polar", Apart(3, 2), call=lambda x: linalg.polar(x),
              reference=each_matrix(lambda x: [y.astype(x.dtype) for y in scipy.linalg.polar(x)])),
    of_module("polar", Apart(3, 3), call=lambda x: linalg.polar(x, "left")[1], label="left",
              reference=of_dtype(lambda x: scipy.linalg.polar(x, "left")[1])),
    of_module("solve_continuous_lyapunov", HalfPlane(3, 3), R(3, 3), dtypes="fD", derivative="D"),
    of_module("solve_discrete_lyapunov", HalfPlane(2, 2), R(2, 2), dtypes="dF", derivative="D"),
    of_module("toeplitz", R(3), R(2), reference=scipy.linalg.toeplitz),
    of_module("hankel", R(3), R(2), reference=scipy.linalg.hankel),
    of_module("circulant", R(3), reference=scipy.linalg.circulant),
    of_module("companion", R(4, lo=1, hi=2), reference=scipy.linalg.companion),
    of_module("fiedler_companion", R(5, lo=1, hi=2), reference=scipy.linalg.fiedler_companion),
    of_module("convolution_matrix", R(3), call=lambda x: linalg.convolution_matrix(x, 4, "same"),
              reference=lambda x: scipy.linalg.convolution_matrix(x, 4, "same")),
    of_module("leslie", R(3), R(2), reference=scipy.linalg.leslie),
    of_module("block_diag", R(2, 1), R(3), reference=scipy.linalg.block_diag),
    of_module("qr_multiply", Apart(3, 2), R(2, 3), call=lambda a, c: linalg.qr_multiply(a, c),
              reference=lambda a, c: list(scipy.linalg.qr_multiply(a, c))),
    of_module("eigh", Hermitian(3, 3), Positive(3, 3), label="generalised",
              call=lambda a, b: linalg.eigh((a + a.conj().T) / 2, (b + b.conj().T) / 2, eigvals_only=True),
              reference=lambda a, b: scipy.linalg.eigvalsh(a, b).astype(a.real.dtype)),
    of_module("eigh_tridiagonal", R(4), R(3), call=lambda d, e: linalg.eigh_tridiagonal(d, e, eigvals_only=True),
              reference=scipy.linalg.eigvalsh_tridiagonal, dtypes="fd", derivative="d"),
]  # fmt: skip
assert matrix_equation_p.name == "matrix_equation"
