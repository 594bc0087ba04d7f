"""What is measured: each function takes a ``Library`` and returns the call to time.

Inputs are made outside the call, by NumPy from a fixed seed, so that all libraries compute the same numbers.
"""

import importlib
import math
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy

from benchmarks import shared
from benchmarks.libraries import Library
from benchmarks.shared import network as _mlp
from benchmarks.shared import normal as _normal

Call = Callable[[], Any]


def add(library: Library) -> Call:
    """One operation, the smallest there is: what dispatch costs."""
    x, plus = _normal(library, 3), library.add
    return lambda: plus(x, x)


def fourier(library: Library, *shape: int) -> Call:
    """The discrete Fourier transform of complex numbers over all axes."""
    parts = [numpy.random.default_rng(seed).normal(size=shape) for seed in (0, 1)]
    x, transform = library.array((parts[0] + 1j * parts[1]).astype(numpy.complex64)), library.np.fft.fftn
    return lambda: transform(x)


def gamma_samples(library: Library, count: int) -> Call:
    """Samples of the gamma distribution, by rejection, from keys in the layout that is JAX's default."""
    library.transforms.config.update("jax_threefry_partitionable", True)
    key, a = library.transforms.random.key(0), library.array(numpy.linspace(0.5, 5, count).astype("float32"))
    return lambda: library.transforms.random.gamma(key, a)


def fitted_polynomial(library: Library, count: int) -> Call:
    """The cubic that fits points best."""
    x, y = _normal(library, count), _normal(library, count, seed=1)
    return lambda: library.np.polyfit(x, y, 3)


def differences(library: Library, count: int) -> Call:
    """The derivatives of equally spaced values, by differences."""
    x = _normal(library, count)
    return lambda: library.np.gradient(x)


def histogram_of_two(library: Library, count: int) -> Call:
    """How many points lie in each of 10 by 10 bins."""
    x, y = _normal(library, count), _normal(library, count, seed=1)
    return lambda: library.np.histogram2d(x, y)[0]


def sums_by_segment(library: Library, count: int) -> Call:
    """Sums of the elements that have the same of a thousand numbers."""
    x = _normal(library, count)
    segments = library.array(numpy.random.default_rng(1).integers(0, 1000, count).astype(numpy.int32))
    segment_sum = importlib.import_module(f"{library.transforms.__name__}.ops").segment_sum
    return lambda: segment_sum(x, segments, 1000)


def resized_image(library: Library) -> Call:
    """An image of 256 by 256 with three colours, twice as large."""
    x = _normal(library, 256, 256, 3)
    image = importlib.import_module(f"{library.transforms.__name__}.image")
    return lambda: image.resize(x, (512, 512, 3), "bilinear")


def sparse_matrix(library: Library) -> tuple[Any, Any]:
    """A matrix of 10,000 by 10,000, of whose elements one in a thousand is stored, and a vector."""
    numbers = numpy.random.default_rng(0)
    places = numpy.unique(numbers.integers(0, 10_000**2, 10_000**2 // 1000))
    rows, columns = (x.astype(numpy.int32) for x in numpy.divmod(places, 10_000))
    elements = numbers.normal(size=len(places)).astype(numpy.float32)
    assert library.sparse is not None
    return library.sparse(elements, rows, columns, (10_000, 10_000)), _normal(library, 10_000, seed=1)


def sparse_product(library: Library) -> Call:
    """The product of a sparse matrix with a vector."""
    matrix, vector = sparse_matrix(library)
    return lambda: matrix @ vector


def derivatives_along_a_curve(library: Library, order: int) -> tuple[Callable[..., Any], Any, Any]:
    """What computes the derivatives of a network's outputs up to an order, the inputs, and a curve's derivatives."""
    np, jet = library.np, importlib.import_module(f"{library.transforms.__name__}.experimental.jet").jet
    weights = [_normal(library, 32, 32, scale=1 / math.sqrt(32), seed=seed) for seed in range(3)]

    def network(x: Any) -> Any:
        return np.tanh(np.tanh(x @ weights[0]) @ weights[1]) @ weights[2]

    terms = tuple([_normal(library, 16, 32, seed=3 + k) for k in range(order)])
    return lambda x, terms: jet(network, (x,), (terms,)), _normal(library, 16, 32, seed=2), terms


def jet_of_network(library: Library, order: int) -> Call:
    """The derivatives of a small network along a curve."""
    along, x, terms = derivatives_along_a_curve(library, order)
    return lambda: along(x, terms)


# Names of special functions, with the interval of each operand.
SPECIAL: Mapping[str, tuple[tuple[float, float], ...]] = {
    "gammaln": ((0.1, 20),),
    "gammainc": ((0.5, 20), (0.1, 30)),
    "betainc": ((0.5, 10), (0.5, 10), (0.01, 0.99)),
    "i0e": ((-30, 30),),
    "zeta": ((1.5, 20), (0.5, 10)),
    "ndtri": ((0.001, 0.999),),
}


def special_function(library: Library, name: str) -> tuple[Any, list[Any]]:
    """A special function, and 10,000 numbers for each of its operands."""
    rng = numpy.random.default_rng(0)
    operands = [library.array(rng.uniform(*ends, 10_000).astype(numpy.float32)) for ends in SPECIAL[name]]
    return getattr(library.special, name), operands


def special_values(library: Library, name: str) -> Call:
    """A special function of 10,000 numbers."""
    function, operands = special_function(library, name)
    return lambda: function(*operands)


def decomposition(library: Library, name: str, shape: tuple[int, ...]) -> Call:
    """``svd``, ``eigh`` or ``qr`` of symmetric matrices; of the results the one that has no choice of signs."""
    x = numpy.random.default_rng(0).normal(size=shape)
    a = library.array((x + x.swapaxes(-1, -2)).astype("float32"))
    decompose = getattr(library.np.linalg, name)
    determined = {"svd": 1, "eigh": 0, "qr": 1}[name]
    return lambda: decompose(a)[determined]


def tanh_derivative(library: Library, order: int) -> Call:
    """The derivative of tanh at 2, to any order."""
    function, x = library.np.tanh, library.scalar(2.0)
    for _ in range(order):
        function = library.transforms.grad(function)
    return lambda: function(x)


def mlp_gradient(library: Library, width: int, batch: int, layers: int = 10) -> Call:
    """The gradient of the network's loss with respect to all its parameters."""
    loss, parameters, x = _mlp(library, width, batch, layers)
    grad = library.transforms.grad
    return lambda: grad(loss)(parameters, x)


def mlp_gradient_staged(library: Library, layers: int) -> Call:
    """The same gradient, recorded as a jaxpr instead of computed."""
    loss, parameters, x = _mlp(library, width=10, batch=4, layers=layers)
    transforms = library.transforms
    return lambda: transforms.make_jaxpr(transforms.grad(loss))(parameters, x)


def _sum_of_tanh_squared(library: Library) -> tuple[Callable[[Any], Any], Any, Any]:
    """The function of the Hessian-vector products, a point and a direction."""
    return shared.sum_of_tanh_squared(library), _normal(library, 30, 40), _normal(library, 30, 40, seed=1)


def hvp_forward_over_reverse(library: Library) -> Call:
    """Hessian-vector product as the derivative of the gradient along the direction."""
    f, x, v = _sum_of_tanh_squared(library)
    grad, jvp = library.transforms.grad, library.transforms.jvp
    return lambda: jvp(grad(f), (x,), (v,))[1]


def hvp_reverse_over_forward(library: Library) -> Call:
    """Hessian-vector product as the gradient of the derivative along the direction."""
    f, x, v = _sum_of_tanh_squared(library)
    grad, jvp = library.transforms.grad, library.transforms.jvp
    return lambda: grad(lambda x: jvp(f, (x,), (v,))[1])(x)


def hvp_reverse_over_reverse(library: Library) -> Call:
    """Hessian-vector product as the gradient of the gradient's inner product with the direction."""
    f, x, v = _sum_of_tanh_squared(library)
    np, grad = library.np, library.transforms.grad
    return lambda: grad(lambda x: np.sum(grad(f)(x) * v))(x)


def hvp_dense(library: Library) -> Call:
    """Hessian-vector product by the whole Hessian, contracted with the direction."""
    f, x, v = _sum_of_tanh_squared(library)
    np, hessian = library.np, library.transforms.hessian
    return lambda: np.tensordot(hessian(f)(x), v, 2)


def _logistic_regression(library: Library) -> tuple[Callable[[Any], Any], Any]:
    """The prediction for four inputs as a function of three weights, and the weights."""
    np = library.np
    rows = [[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]]
    inputs = library.array(numpy.array(rows, numpy.float32))
    bias = _normal(library, seed=1)

    def predict(weights: Any) -> Any:
        return 0.5 * (np.tanh((inputs @ weights + bias) / 2) + 1)

    return predict, _normal(library, 3)


def matrix_jacobian_loop(library: Library) -> Call:
    """128 rows times the Jacobian, one after another."""
    f, weights = _logistic_regression(library)
    matrix = _normal(library, 128, 4)
    np, vjp = library.np, library.transforms.vjp

    def call() -> Any:
        _, pullback = vjp(f, weights)
        return np.vstack([pullback(row)[0] for row in matrix])

    return call


def matrix_jacobian_vectorised(library: Library) -> Call:
    """128 rows times the Jacobian, at once."""
    f, weights = _logistic_regression(library)
    matrix = _normal(library, 128, 4)
    vjp, vmap = library.transforms.vjp, library.transforms.vmap

    def call() -> Any:
        _, pullback = vjp(f, weights)
        (products,) = vmap(pullback)(matrix)
        return products

    return call


def jacobian_matrix_loop(library: Library) -> Call:
    """The Jacobian times 128 columns, one after another."""
    f, weights = _logistic_regression(library)
    matrix = _normal(library, 128, 3)
    np, jvp = library.np, library.transforms.jvp
    return lambda: np.vstack([jvp(f, (weights,), (column,))[1] for column in matrix])


def jacobian_matrix_vectorised(library: Library) -> Call:
    """The Jacobian times 128 columns, at once."""
    f, weights = _logistic_regression(library)
    matrix = _normal(library, 128, 3)
    jvp, vmap = library.transforms.jvp, library.transforms.vmap
    return lambda: vmap(lambda column: jvp(f, (weights,), (column,))[1])(matrix)


def rosenbrock(library: Library, derivative: str) -> Call:
    """``jacrev`` or ``hessian`` of Rosenbrock's function of 100 variables."""
    f, x = shared.rosenbrock(library), _normal(library, 100)
    transform = getattr(library.transforms, derivative)
    return lambda: transform(f)(x)


def _with_rule(library: Library, kind: str) -> Callable[[Any, Any], Any]:
    """The function sin(x) y with a derivative rule of its own, ``custom_jvp`` or ``custom_vjp``."""
    np, transforms = library.np, library.transforms

    def f(x: Any, y: Any) -> Any:
        return np.sin(x) * y

    if kind == "custom_jvp":
        ruled = transforms.custom_jvp(f)

        def jvp(primals: Any, tangents: Any) -> Any:
            (x, y), (tx, ty) = primals, tangents
            return ruled(x, y), np.cos(x) * tx * y + np.sin(x) * ty

        ruled.defjvp(jvp)
    else:
        ruled = transforms.custom_vjp(f)
        ruled.defvjp(
            lambda x, y: (ruled(x, y), (np.cos(x), np.sin(x), y)),
            lambda residuals, ct: (residuals[0] * ct * residuals[2], residuals[1] * ct),
        )
    return ruled  # type: ignore[no-any-return]


def convolution_gradient(library: Library) -> Call:
    """The gradient of the sum of squares of a convolution: 8 images of 14 x 14, from 8 to 16 features."""
    np, grad = library.np, library.transforms.grad
    convolve = library.transforms.lax.conv_general_dilated
    x, kernel = _normal(library, 8, 14, 14, 8), _normal(library, 3, 3, 8, 16, scale=0.1, seed=1)

    def total(x: Any, kernel: Any) -> Any:
        return np.sum(convolve(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) ** 2)

    return lambda: grad(total, (0, 1))(x, kernel)


def custom_rule_gradient(library: Library, kind: str, mapped: bool = False) -> Call:
    """The gradient of a function with a rule of its own; mapped over 8 points too."""
    f, grad, vmap = _with_rule(library, kind), library.transforms.grad, library.transforms.vmap
    if not mapped:
        return lambda: grad(f)(2.0, 3.0)
    xs = _normal(library, 8)
    return lambda: vmap(grad(f), in_axes=(0, None))(xs, 3.0)


def custom_rules_staged(library: Library, kind: str) -> Call:
    """A program with 100 calls of a function with a rule, recorded as a jaxpr."""
    f, make_jaxpr = _with_rule(library, kind), library.transforms.make_jaxpr

    def calls(x: Any) -> Any:
        for _ in range(100):
            x = f(x, 3.0)
        return x

    return lambda: make_jaxpr(lambda x: calls(x))(2.0)  # a new function, since JAX keeps what it traced of an old one


def cold_process(library: Library) -> Call:
    """A whole process that imports the library and evaluates one gradient."""
    command = [sys.executable, "-c", library.cold_start]
    return lambda: float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
