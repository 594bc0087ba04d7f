"""NumPy and SciPy on concrete arrays give what they give for NumPy's arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy
import scipy.cluster.vq
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.sparse
import scipy.spatial
import scipy.special
import scipy.stats

import pullback.numpy as jnp
from pullback import grad, hessian, jacfwd, jit, random, value_and_grad
from pullback.core.array import Array
from pullback.core.errors import ImmutableArrayError, KeyConversionError, UnsupportedFunctionError

_rng = np.random.default_rng(0)
_positive = _rng.uniform(0.1, 1.0, (4, 4)).astype("f")
VALUES: dict[str, np.ndarray[Any, Any]] = {
    "m": _rng.normal(size=(4, 3)).astype("f"),
    "s": (_positive @ _positive.T + 4 * np.eye(4)).astype("f"),
    "v": _rng.normal(size=12).astype("f"),
    "p": np.sort(_rng.uniform(0.1, 0.9, 12)).astype("f"),
    "i": _rng.integers(0, 5, 12).astype("i4"),
    "b": _rng.normal(size=12) > 0,
    "z": (_rng.normal(size=4) + 1j * _rng.normal(size=4)).astype("F"),
}
OURS = {name: jnp.asarray(value) for name, value in VALUES.items()}

# Each is an expression in the arrays above.
NUMPY = """
np.sin(m)|np.exp(v)|np.log1p(p)|np.hypot(v, p)|np.arctan2(v, p)|np.maximum(v, 0)|np.power(p, v)|np.sqrt(z)
np.isnan(v)|np.sign(v)|np.floor(v)|np.modf(v)|np.frexp(v)|np.ldexp(v, i)|np.divmod(v, p)|np.gcd(i, 3)|np.invert(b)
np.logaddexp(v, p)|np.spacing(v)|np.nextafter(v, p)|np.copysign(v, p)|np.heaviside(v, 0.5)|np.cbrt(v)|np.conj(z)
np.add(v, p)|np.matmul(m.T, m)|np.equal(v, p)|np.add(v, [1] * 12)|np.multiply(v, np.float64(2))|np.vecdot(v, p)
np.add(v, 1, where=b, out=np.zeros(12, "f"))|np.add(v, 1, dtype="f8")|np.float_power(p, 2)|np.sin(v, order="C")
np.add.reduce(m)|np.add.reduce(m, axis=1, keepdims=True)|np.multiply.accumulate(m, axis=1)|np.hypot.reduce(m)
np.add.reduceat(v, [0, 4, 8])|np.subtract.outer(v, p)|np.maximum.reduce(v, initial=3)|np.add.at(np.zeros(12), i, v)
np.sum(m)|np.sum(m, axis=0)|np.mean(m, axis=1)|np.std(m, ddof=1)|np.var(m, axis=0)|np.prod(p)|np.max(m)|np.min(m, 1)
np.argmax(m, axis=1)|np.argmin(v)|np.argsort(v)|np.sort(v, kind="stable")|np.sort(m, axis=0)|np.median(m, axis=0)
np.percentile(v, [5, 50])|np.quantile(v, p[:3])|np.average(v, weights=p)|np.ptp(v)|np.cumsum(m, axis=0)|np.cumprod(p)
np.diff(v, n=2)|np.gradient(v)|np.gradient(m, axis=0)|np.trapezoid(v, p)|np.interp(p, p, v)|np.convolve(v, p[:3])
np.correlate(v, p, "full")|np.cov(m)|np.corrcoef(m)|np.histogram(v, bins=4)|np.histogram2d(v, p)|np.bincount(i)
np.digitize(v, p)|np.searchsorted(p, v)|np.unique(i)|np.unique(i, return_counts=True)|np.intersect1d(i, i[:4])
np.isin(i, [1, 2])|np.union1d(i, [7])|np.setdiff1d(i, [1])|np.nonzero(b)|np.where(b, v, 0.0)|np.where(b)|np.argwhere(b)
np.flatnonzero(b)|np.count_nonzero(b)|np.any(b)|np.all(b, keepdims=True)|np.extract(b, v)|np.compress(b, v)
np.select([b, ~b], [v, p])|np.piecewise(v, [v < 0], [0, 1])|np.choose(i % 2, [v, p])|np.clip(v, -1, 1)|np.round(v, 1)
np.reshape(m, (2, 6))|np.ravel(m)|np.transpose(m)|np.swapaxes(m, 0, 1)|np.moveaxis(m, 0, 1)|np.squeeze(m[:, :1])
np.expand_dims(v, 0)|np.broadcast_to(v, (2, 12))|np.broadcast_arrays(v, 1)|np.atleast_2d(v)|np.concatenate([v, p])
np.stack([v, p], axis=1)|np.vstack([v, p])|np.hstack((v, p))|np.dstack([v, p])|np.column_stack([v, p])
np.block([[m, m]])
np.split(v, 3)|np.array_split(v, 5)|np.tile(v, 2)|np.repeat(v, 2)|np.roll(v, 1)|np.flip(m, 0)|np.rot90(m)|np.pad(v, 1)
np.append(v, 1)|np.insert(v, 0, 1)|np.delete(v, [0, 1])|np.take(v, i)|np.take_along_axis(m, m.argsort(1), 1)
np.diag(v)|np.diagonal(m)|np.trace(m)|np.triu(m)|np.tril(m)|np.tri(3)|np.vander(v[:3])|np.outer(v, p)|np.inner(v, p)
np.dot(m, m.T)|np.vdot(v, p)|np.tensordot(m, m, axes=2)|np.einsum("ij,kj->ik", m, m)|np.kron(m, m)|np.cross(m, m[::-1])
np.zeros_like(m)|np.ones_like(v)|np.full_like(v, 2)|np.empty_like(v).shape|np.copy(v)|np.array(v)|np.asarray(v, "f8")
np.array([v, p])|np.ascontiguousarray(m.T)|np.asfortranarray(m)|np.nan_to_num(v)|np.real(z)|np.imag(z)|np.angle(z)
np.isclose(v, p)|np.allclose(v, v)|np.array_equal(v, v)|np.shape(m)|np.ndim(m)|np.size(m)|np.iscomplexobj(z)
np.polyfit(p, v, 2)|np.polyval(v[:3], p)|np.poly(v[:3])|np.roots(v[:4])|np.polynomial.chebyshev.chebfit(p, v, 2)
np.apply_along_axis(np.sum, 1, m)|np.vectorize(lambda a: a + 1)(v)|np.meshgrid(v[:2], p[:3])|np.ix_(i[:2], i[:3])
np.linspace(v[0], v[1], 5)|np.array2string(v)|np.array_str(v)|np.result_type(v, i)|np.can_cast(v.dtype, "f8")
np.fft.fft(v)|np.fft.rfft2(m)|np.fft.ifft(z)|np.fft.fftshift(v)|np.linalg.svd(m)|np.linalg.inv(s)|np.linalg.det(s)
np.linalg.eigh(s)|np.linalg.eigvals(s)|np.linalg.solve(s, m)|np.linalg.lstsq(m, m[:, 0])|np.linalg.qr(m)
np.linalg.cholesky(s)|np.linalg.pinv(m)|np.linalg.norm(m)|np.linalg.norm(v, 1)|np.linalg.matrix_rank(m)
np.linalg.slogdet(s)|np.linalg.matrix_power(s, 3)|np.linalg.cond(s)|np.linalg.multi_dot([m, m.T, m])
np.linalg.norm(m, "nuc")
np.lexsort((v, i))|np.partition(v, 3)|np.ediff1d(v)|np.fmax(v, p)|np.i0(v)|np.sinc(v)|np.unwrap(v)|np.packbits(b)
np.ma.masked_array(v, b).filled(0)|np.random.default_rng(0).normal(v)|np.nanmean(v)
sum(memoryview(np.asarray(v)))|float(v[0])|v.tolist()|list(v)|max(v)|sorted(v)|f"{v[0]:.3f}"|complex(z[0])
""".strip()
SCIPY = """
special.expit(v)|special.gammaln(p)|special.erf(v)|special.logsumexp(m, axis=0)|special.softmax(m, axis=1)
special.jv(0, v)
special.xlogy(p, p)|special.betainc(p, p, p)|special.digamma(p)|special.comb(5, i)
special.expit(v, out=np.zeros(12, "f"))
special.log_softmax(v)|special.ndtri(p)|special.binom(5, p)|special.rel_entr(p, p[::-1])|special.logit(p)
linalg.solve(s, m)|linalg.cholesky(s)|linalg.cho_solve(linalg.cho_factor(s), m)|linalg.expm(s / 8)|linalg.lu(s)
linalg.qr(m)|linalg.svd(m)|linalg.eigh(s)|linalg.inv(s)|linalg.det(s)|linalg.sqrtm(s)|linalg.toeplitz(v[:3])
linalg.block_diag(m, s)|linalg.null_space(m.T)|linalg.solve_triangular(s, m)|linalg.norm(m)|linalg.pinv(m)
fft.fft(v)|fft.dct(v)|fft.rfftn(m)|ndimage.gaussian_filter(m, 1)|ndimage.convolve1d(v, p[:3])|ndimage.label(b)
signal.convolve(v, p)|signal.lfilter(p[:2], [1.0], v)|signal.find_peaks(v)|signal.savgol_filter(v, 5, 2)
signal.detrend(v)
signal.welch(v, nperseg=8)|signal.resample(v, 6)|interpolate.interp1d(p, v)(p)|interpolate.CubicSpline(p, v)(p)
interpolate.griddata(m[:, :2], m[:, 2], m[:2, :2], "nearest")|interpolate.PchipInterpolator(p, v)(p[:3])
integrate.trapezoid(v, p)|integrate.simpson(v, x=p)|integrate.cumulative_trapezoid(v, p)
stats.kstest(v, "norm")|stats.pearsonr(v, p)|stats.ttest_ind(v, p)|stats.norm.pdf(v)|stats.norm.cdf(v, p, p)
stats.zscore(v)
stats.describe(v)|stats.gaussian_kde(v)(p)|stats.linregress(p, v)|stats.spearmanr(v, p)|stats.rankdata(v)
stats.entropy(p)
stats.norm.fit(v)|stats.mode(i)|stats.skew(v)|stats.multivariate_normal(m[0]).logpdf(m)
stats.chi2_contingency(i[:4] + 1)
spatial.distance.pdist(m)|spatial.distance.cdist(m, m)|spatial.cKDTree(m).query(m[0])|spatial.ConvexHull(m[:, :2]).area
sparse.csr_array(m).toarray()|sparse.csr_array(m) @ v[:3]|sparse.coo_array((v, (i, i)), shape=(5, 5)).toarray()
sparse.diags_array([v], offsets=[0]).toarray()|cluster.vq.whiten(m)|sparse.csr_array(s).dot(m)
""".strip()


def _expressions(text: str) -> list[str]:
    return [part for line in text.splitlines() for part in line.split("|")]


def _leaves(x: Any) -> list[Any]:
    """The parts of a result: tuples, lists and records of SciPy's taken apart."""
    if isinstance(x, (tuple, list)):
        return [leaf for part in x for leaf in _leaves(part)]
    if isinstance(x, dict):
        return [leaf for key in sorted(x) for leaf in _leaves(x[key])]
    return [x]


def _check(expression: str, names: dict[str, Any]) -> None:
    got = _leaves(eval(expression, {**names, **OURS}))
    expected = _leaves(eval(expression, {**names, **VALUES}))
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected, strict=True):
        if isinstance(theirs, (np.ndarray, np.generic)) and not isinstance(ours, (bool, int, float, complex)):
            assert not isinstance(ours, Array) or expression[0] == "v" or "(v)" in expression, expression
            if not isinstance(ours, Array):
                assert type(ours) is type(theirs), f"{expression}: {type(ours)} {type(theirs)}"
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-6)
        elif type(theirs) in (bool, int, float, complex, str):
            assert ours == theirs


@pytest.mark.parametrize("expression", _expressions(NUMPY))
def test_numpy(expression: str) -> None:
    _check(expression, {"np": np})


@pytest.mark.parametrize("expression", _expressions(SCIPY))
def test_scipy(expression: str) -> None:
    _check(f"scipy.{expression}", {"np": np, "scipy": scipy, **vars(scipy)})


def test_there_are_enough() -> None:
    assert len(_expressions(NUMPY)) + len(_expressions(SCIPY)) > 270


# Functions of ours that SciPy calls ------------------------------------------------------------------------------


def _rosenbrock(x: Any) -> Any:
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
@pytest.mark.parametrize("start", [np.zeros(3), jnp.zeros(3)])
@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "Newton-CG", "trust-exact"])
def test_minimize(method: str, start: Any, wrap: Any) -> None:
    given = {"hess": wrap(hessian(_rosenbrock))} if method in ("Newton-CG", "trust-exact") else {}
    found = scipy.optimize.minimize(wrap(_rosenbrock), start, method=method, jac=wrap(grad(_rosenbrock)), **given)
    np.testing.assert_allclose(found.x, 1.0, atol=0.05)
    assert type(found.x) is np.ndarray


def test_other_solvers() -> None:
    f = lambda x: x**2 - jnp.array([2.0, 3.0])
    root = np.sqrt([2.0, 3.0])
    found = scipy.optimize.least_squares(f, jnp.ones(2), jac=jacfwd(f))
    np.testing.assert_allclose(found.x, root, rtol=1e-4)
    np.testing.assert_allclose(scipy.optimize.root(f, np.ones(2), jac=jacfwd(f)).x, root, rtol=1e-4)
    np.testing.assert_allclose(scipy.optimize.fsolve(f, jnp.ones(2), fprime=jacfwd(f)), root, rtol=1e-4)
    both = scipy.optimize.minimize(value_and_grad(lambda x: jnp.sum(f(x) ** 2)), np.ones(2), jac=True)
    np.testing.assert_allclose(both.x, root, rtol=1e-3)
    g = lambda x: x**3 - 2.0
    assert scipy.optimize.newton(g, 1.0, fprime=grad(g)) == pytest.approx(2 ** (1 / 3), rel=1e-5)
    assert scipy.optimize.brentq(g, 0.0, 2.0) == pytest.approx(2 ** (1 / 3), rel=1e-5)
    fit, _ = scipy.optimize.curve_fit(lambda x, a, b: a * jnp.exp(b * x), OURS["p"], 2.0 * jnp.exp(OURS["p"]))
    np.testing.assert_allclose(fit, [2.0, 1.0], rtol=1e-3)
    solved = scipy.integrate.solve_ivp(lambda t, y: -jnp.asarray(y), (0, 1), jnp.ones(2))
    np.testing.assert_allclose(solved.y[:, -1], np.exp(-1), rtol=1e-2)
    assert scipy.integrate.quad(lambda x: jnp.exp(-x), 0, 1)[0] == pytest.approx(1 - np.exp(-1), rel=1e-5)


# What else the rule says -----------------------------------------------------------------------------------------


def test_results_can_be_written_to() -> None:
    x = jnp.ones((2, 3))
    for y in (np.zeros_like(x), np.sin(x), np.copy(x), np.array(x), np.sort(x), np.concatenate([x, x]), np.add(x, 1)):
        y[0] = 7
        assert (y[0] == 7).all()
    assert (np.asarray(x) == 1).all()


OPERATORS = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow, divmod,
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
)  # fmt: skip


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
def test_operators_beside_numpys_values_are_ours(op: Any) -> None:
    x, y = jnp.asarray([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0], np.float32)
    for pair in ((y, x), (x, y), (np.float32(2), x), (x, np.float32(2)), (y, x[0]), (np.float64(2), x[0])):
        got = op(*pair)
        expected = op(*(np.asarray(v) for v in pair))
        for ours, theirs in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, expected)), strict=True):
            assert isinstance(ours, Array)
            np.testing.assert_array_equal(ours, theirs)


def test_integer_operators_and_products_beside_numpys_values_are_ours() -> None:
    x, y = jnp.asarray([6, 5]), np.array([3, 2], np.int32)
    for op in (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.matmul):
        got = op(y, x)
        assert isinstance(got, Array)
        np.testing.assert_array_equal(got, op(y, np.asarray(x)))


IN_PLACE = ("+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>")


@pytest.mark.parametrize("symbol", IN_PLACE)
def test_operators_in_place_make_the_name_one_of_our_array(symbol: str) -> None:
    dtype = np.int32 if symbol in ("&", "|", "^", "<<", ">>") else np.float32
    old = np.full((2, 2), 5, dtype)
    x = jnp.full((2, 2), 2, dtype)
    for traced in (False, True):
        names: dict[str, Any] = {}

        def run(x: Any, names: dict[str, Any] = names) -> Any:
            names.update(a=old, x=x)
            exec(f"a {symbol}= x", names)
            return names["a"]

        new = jit(run)(x) if traced else run(x)
        assert isinstance(new, Array)
        assert isinstance(names["a"], Array)
        np.testing.assert_array_equal(new, eval(f"old {symbol} x", {"old": old, "x": np.asarray(x)}))
        np.testing.assert_array_equal(old, 5)


def test_operators_in_place_on_parts_of_numpys_arrays_write_into_them() -> None:
    total = np.asarray([2.0, 4.0, 6.0])
    total[1:] -= jnp.ones(2)
    np.testing.assert_array_equal(total, [2, 3, 5])
    total[0] += jnp.ones(())
    np.testing.assert_array_equal(total, [3, 3, 5])
    same = total
    total += jnp.ones((2, 1))  # which is larger
    assert total.shape == (2, 3)
    assert operator.iadd(same, jnp.ones(3)) is same  # no instruction of the caller's tells it from np.add
    np.testing.assert_array_equal(same, [4, 4, 6])


def test_gradients_flow_through_operators_in_place() -> None:
    def f(x: Any) -> Any:
        total = np.ones(2)
        total /= x
        return total.sum()

    np.testing.assert_allclose(grad(f)(jnp.asarray([1.0, 2.0])), [-1, -0.25])


WRITES: list[Callable[[Any], Any]] = [
    lambda x: np.add(np.ones(3), 1.0, out=x),
    lambda x: np.add(x, 1.0, out=(x,)),
    lambda x: np.modf(np.ones(3), out=(None, x)),
    lambda x: np.add.reduce(np.ones((2, 3)), out=x),
    lambda x: np.sum(np.ones((2, 3)), axis=0, out=x),
    lambda x: np.sum(np.ones((2, 3)), 0, None, x),
    lambda x: np.copyto(x, 1.0),
    lambda x: np.put(x, [0], 1.0),
    lambda x: np.place(x, [True, False, True], 1.0),
    lambda x: np.putmask(x, [True, False, True], 1.0),
    lambda x: np.put_along_axis(x, np.array([0]), 1.0, 0),
    lambda x: np.fill_diagonal(x[None, :1], 1.0),
    lambda x: scipy.special.expit(np.ones(3), out=x),
]


@pytest.mark.parametrize("index", range(len(WRITES)))
def test_nothing_is_written_into_our_arrays(index: int) -> None:
    x = jnp.zeros(3)
    with pytest.raises(ImmutableArrayError, match=r"cannot write into a Pullback array, .* x.at\[index\]"):
        WRITES[index](x)
    assert (np.asarray(x) == 0).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn", "int4", "uint8", "complex64", "bool"])
def test_every_dtype(dtype: str) -> None:
    x = jnp.asarray([1, 0, 1], dtype)
    for got in (np.add(x, x), np.concatenate([x, x]), np.zeros_like(x), np.where(True, x, x), np.reshape(x, (3, 1))):
        assert type(got) is np.ndarray
        assert got.dtype == x.dtype
    np.testing.assert_array_equal(np.add(x, x), np.asarray(x) + np.asarray(x))


def test_weak_types_and_numbers() -> None:
    x = jnp.asarray(2.0)
    assert x.weak_type
    assert np.multiply(x, np.ones(2, np.float16)).dtype == np.float32  # NumPy knows no weak arrays
    assert (np.ones(2, np.float16) * x).dtype == np.float16
    assert type(np.sin(x)) is np.float32


def test_keys() -> None:
    keys = random.split(random.key(0))
    assert np.shape(keys) == (2,)
    for call in (np.asarray, np.stack, np.sort, lambda k: np.add(k, 1)):
        with pytest.raises(KeyConversionError, match=r"random keys .*key_data\(keys\)"):
            call(keys)


def test_traced_operands_win() -> None:
    c = jnp.asarray([1.0, 2.0])
    calls: list[Callable[[Any], Any]] = [
        lambda x: np.multiply(c, x),
        lambda x: np.concatenate([c, x]),
        lambda x: c * np.sin(x),
        lambda x: np.dot(c, x),
    ]
    for call in calls:
        seen: list[Any] = []

        def f(x: Any, call: Any = call, seen: list[Any] = seen) -> Any:
            seen.append(call(x))
            return jnp.sum(seen[0])

        grad(f)(c)
        assert isinstance(seen[0], Array)
    np.testing.assert_array_equal(grad(lambda x: np.sum(np.multiply(np.square(c), x)))(c), [1.0, 4.0])
    np.testing.assert_allclose(grad(lambda x: np.sum(np.sin(c) * np.cos(x)))(c), -np.sin(c) * np.sin(c), rtol=1e-6)
    with pytest.raises(UnsupportedFunctionError, match=r"np\.real_if_close was called with traced arrays"):
        grad(lambda x: np.real_if_close(x).sum())(jnp.ones(3))


def test_special_functions_of_scipy_are_differentiated() -> None:
    assert float(grad(scipy.special.expit)(0.0)) == 0.25
    assert float(jit(grad(scipy.special.gammaln))(1.0)) == pytest.approx(-np.euler_gamma, rel=1e-5)
    with pytest.raises(UnsupportedFunctionError, match=r"scipy\.special\.hyperu was called with traced arrays"):
        grad(lambda x: scipy.special.hyperu(0.5, 0.5, x))(1.0)
