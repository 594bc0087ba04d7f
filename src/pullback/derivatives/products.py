"""Matrix-free products with matrices of second derivatives: Hessian, Gauss-Newton and Fisher."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pullback.numpy as pnp
from pullback.core import dtypes, tree
from pullback.core.arguments import flag, require_function
from pullback.core.array import typeof
from pullback.core.errors import ArgumentError, NotDifferentiableError, ShapeError
from pullback.core.naming import quoted
from pullback.core.types import ShapedArray
from pullback.nn import logsumexp, softplus
from pullback.scipy.vectors import Vectors
from pullback.transforms.autodiff.grad import grad, linearize
from pullback.transforms.autodiff.jvp import jvp
from pullback.transforms.autodiff.vjp_functions import LinearFunction, VJPFunction
from pullback.transforms.autodiff.vmap import vmap
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import (
    argument_name,
    check_differentiable,
    name_of,
    positions,
    to_arrays,
)


@api_boundary
def hvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """Return the product of a function's Hessian with a vector, by forward mode over the gradient.

    Args:
      f: takes trees of arrays, and returns a real scalar.
      primals: a tuple or list of the arguments: the point.
      tangents: the vector, as a tuple or list of one tangent for each argument: of the same trees, shapes and dtypes.

    Returns:
      A tree like the argument, or a tuple of trees for several arguments. It costs a small multiple of the time and
      memory of the gradient.

    Raises:
      TangentMismatchError: a tangent of another tree, shape or dtype; the message names the argument (a TypeError).
      NotDifferentiableError: the result of ``f`` is not a real scalar (a TypeError).

    Source: B. A. Pearlmutter, Fast exact multiplication by the Hessian, Neural Computation 6 (1994).

    >>> import pullback.numpy as jnp
    >>> from pullback.derivatives import hvp
    >>> print(hvp(lambda x: jnp.sum(x**3), (jnp.array([1.0, 2.0]),), (jnp.array([1.0, 0.0]),)))
    [6. 0.]
    """
    require_function("hvp", "f", f)
    if not isinstance(primals, (tuple, list)) or not primals:
        raise ArgumentError(
            f"hvp takes primals as a tuple or list, one entry for each argument of {name_of(f)}, and at least one, got "
            f"{quoted(primals)} of type {type(primals).__name__}"
        )
    gradient = grad(f, 0 if len(primals) == 1 else tuple(range(len(primals))))
    return jvp(gradient, primals, tangents)[1]


class CurvatureOperator:
    """A symmetric matrix of second derivatives at a point, as a linear operator.

    The function is linearised once, when the operator is made. ``operator @ v`` takes a tree like the point, or
    coordinates: a vector of ``shape[0]`` elements, or a matrix of such columns. The operator can also be called on
    trees, so that the solvers of ``pullback.scipy.sparse.linalg`` and of SciPy accept it. It is a pytree: transformed
    functions take and return it. :func:`hessian_operator` and others make it; the matrix is J^T C J.

    Args:
      jacobian: J, which maps tangents of the point to tangents of an output; None for the identity.
      curvature: C, which maps tangents of this output to cotangents of the output; if J is the identity, of the point.
      name: the name of the matrix, for messages.

    Attributes:
      shape: ``(n, n)``, for points of ``n`` numbers.
      dtype: the dtype of the coordinates, to which the dtypes of the point promote.

    >>> import pullback.numpy as jnp
    >>> from pullback.derivatives import hessian_operator
    >>> from pullback.scipy.sparse.linalg import cg
    >>> a = hessian_operator(lambda x: jnp.sum(x**4) / 12)(jnp.array([1.0, 2.0]))
    >>> print(a.shape, a @ jnp.ones(2), cg(a, jnp.ones(2))[0])
    (2, 2) [1. 4.] [1.   0.25]
    """

    __slots__ = ("curvature", "jacobian", "name", "treedef", "types")

    def __init__(self, jacobian: LinearFunction | None, curvature: LinearFunction, name: str) -> None:
        self.jacobian, self.curvature, self.name = jacobian, curvature, name
        whole = curvature if jacobian is None else jacobian
        (self.treedef,) = tree.treedef_children(whole.in_tree)
        self.types = tuple(whole.in_avals)

    @property
    def vectors(self) -> Vectors:
        """The conversions between trees like the point and vectors of coordinates."""
        return Vectors(tree.unflatten(self.treedef, self.types))

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns of the matrix."""
        size = self.vectors.size
        return size, size

    @property
    def dtype(self) -> Any:
        """The dtype of a vector of coordinates."""
        return self.vectors.dtype

    @api_boundary
    def __call__(self, v: Any) -> Any:
        """Multiply the matrix by a vector that is a tree like the point; return a tree like the point."""
        if self.jacobian is None:
            return self.curvature(v)
        j = self.jacobian
        pull = VJPFunction(j.program, j.in_tree, j.out_tree, j.in_avals, j.out_avals, j.name)
        return pull(self.curvature(j(v)))[0]

    def __matmul__(self, v: Any) -> Any:
        if self._is_like_point(v):
            return self(v)
        x = pnp.asarray(v)
        if x.ndim == 2 and x.shape[0] == self.shape[0]:
            return self.matmat(x)
        return self.matvec(x)

    def matvec(self, v: Any) -> Any:
        """Return the product of the matrix with a vector of coordinates.

        Args:
          v: a vector of n real numbers, for a point of n numbers.

        Returns:
          A vector of n numbers.

        Raises:
          ShapeError: ``v`` is not a vector with as many elements as the point (a TypeError and ValueError).
        """
        x = pnp.asarray(v)
        vectors = self.vectors
        n = vectors.size
        if x.shape not in ((n,), (n, 1)):
            raise ShapeError(
                f"{self!r} is multiplied by trees like the point, {self.treedef} with leaves of shapes "
                f"{[a.shape for a in self.types]}, or by coordinates of shape ({n},) or ({n}, k), got {quoted(v)} of "
                f"shape {x.shape}"
            )
        product = self(vectors.tree(x.reshape(-1).astype(vectors.dtype)))
        return vectors.ravel(product).reshape(x.shape)

    def matmat(self, columns: Any) -> Any:
        """Return the product of the matrix with a matrix whose columns are vectors of coordinates.

        Args:
          columns: an array (n, k) of real numbers, for a point of n numbers.

        Returns:
          An array (n, k).
        """
        return vmap(self.matvec, in_axes=1, out_axes=1)(pnp.asarray(columns))

    # Names of SciPy's: the matrix is symmetric.
    rmatvec, rmatmat = matvec, matmat

    def _is_like_point(self, v: Any) -> bool:
        leaves, treedef = tree.flatten(v)
        fits = zip(leaves, self.types, strict=False)
        return bool(treedef == self.treedef and all(getattr(x, "shape", ()) == a.shape for x, a in fits))

    def __repr__(self) -> str:
        return f"<{self.name}: {self.shape[0]} by {self.shape[1]}, {dtypes.dtype_name(self.dtype)}>"


def _unflatten(aux: Any, parts: Any) -> CurvatureOperator:
    operator = CurvatureOperator.__new__(CurvatureOperator)  # without checks: trees may be built with any leaves
    operator.jacobian, operator.curvature = parts
    operator.name, operator.treedef, operator.types = aux
    return operator


tree.register_pytree_node(
    CurvatureOperator, lambda a: ((a.jacobian, a.curvature), (a.name, a.treedef, a.types)), _unflatten
)


def _at_point(f: Any, transformation: str, argnum: int, args: tuple[Any, ...]) -> tuple[Callable[[Any], Any], Any]:
    """Check the arguments of ``f``, and fix all of them except the argument to differentiate by.

    Args:
      f: the function.
      transformation: the name of the caller, for errors.
      argnum: the position of the argument to differentiate by.
      args: all arguments.

    Returns:
      ``f`` as a function of this argument alone, and the argument as a tree of arrays.
    """
    (where,) = positions(argnum, len(args), transformation, f)
    leaves, treedef = tree.flatten(args[where])
    arrays = to_arrays(leaves, transformation, f, args, (where,))
    if not arrays:
        raise ArgumentError(
            f"{transformation} of {name_of(f)}: argument {where} has no arrays, got {quoted(args[where])}"
        )
    for i, x in enumerate(arrays):
        position = partial(argument_name, i, f, args, (where,))
        _check_real(typeof(x), transformation, f, position)

    def of_point(x: Any) -> Any:
        return f(*args[:where], x, *args[where + 1 :])

    return of_point, tree.unflatten(treedef, arrays)


def _check_real(aval: ShapedArray, transformation: str, f: Any, position: Callable[[], str]) -> None:
    check_differentiable(aval, transformation, f, False, False, position)
    if dtypes.is_complex(aval.dtype):
        raise NotDifferentiableError(
            f"{transformation} needs real inputs, but {position()} of {name_of(f)} is {aval}: products with second "
            "derivatives are not complex-linear. Pass real and imaginary parts as two real arrays, or use hvp."
        )


def _check_argnum(argnums: Any, transformation: str) -> int:
    if type(argnums) is not int:
        raise ArgumentError(
            f"{transformation}: argnums must be an int, the position of one argument, got {argnums!r}; to use "
            f"several arrays, pass a tuple as this argument"
        )
    return argnums


def hessian_operator(f: Callable[..., Any], argnums: int = 0) -> Callable[..., CurvatureOperator]:
    """Return the Hessian of a function as an operator, linearised once for many products.

    Args:
      f: takes trees of arrays, and returns a real scalar.
      argnums: the position of the argument to differentiate by, twice.

    Returns:
      A function of the same arguments that returns a :class:`CurvatureOperator`.

    Raises:
      NotDifferentiableError: the result of ``f`` is not a real scalar, or the point is not real (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.derivatives import hessian_operator
    >>> a = hessian_operator(lambda x: x["a"] * jnp.sum(x["b"] ** 2))({"a": 1.0, "b": jnp.array([2.0, 3.0])})
    >>> print(a @ jnp.array([1.0, 0.0, 0.0]))
    [0. 4. 6.]
    """
    require_function("hessian_operator", "f", f)
    argnum = _check_argnum(argnums, "hessian_operator")

    @api_boundary
    def operator(*args: Any) -> CurvatureOperator:
        of_point, x = _at_point(f, "hessian_operator", argnum, args)
        derivative: Any = linearize(grad(of_point), x)[1]
        return CurvatureOperator(None, derivative, f"Hessian of {name_of(f)}")

    return operator


def gauss_newton(
    f: Callable[..., Any], loss: Callable[[Any], Any], argnums: int = 0
) -> Callable[..., CurvatureOperator]:
    """Return the generalised Gauss-Newton matrix of ``loss(f(x))`` as an operator, linearised once for many products.

    It is the Hessian without the curvature of ``f``: J^T C J, with the Jacobian J of ``f``, and the Hessian C of
    ``loss`` at the output. Where ``loss`` is convex it has no negative eigenvalue.

    Args:
      f: takes and returns trees of real arrays: a model.
      loss: takes the output of ``f``, and returns a real scalar.
      argnums: the position of the argument of ``f`` to differentiate by.

    Returns:
      A function of the arguments of ``f`` that returns a :class:`CurvatureOperator`. A product costs one product with
      J, one with C and one with the transpose of J.

    Raises:
      NotDifferentiableError: the result of ``loss`` is not a real scalar, or the point is not real (a TypeError).

    Source: N. N. Schraudolph, Fast curvature matrix-vector products for second-order gradient descent, Neural
    Computation 14 (2002).

    >>> import pullback.numpy as jnp
    >>> from pullback.derivatives import gauss_newton
    >>> a = gauss_newton(jnp.sin, lambda y: jnp.sum(y**2) / 2)(jnp.array([0.0, 3.0]))
    >>> print((a @ jnp.ones(2))[0])
    1.0
    """
    require_function("gauss_newton", "f", f)
    require_function("gauss_newton", "loss", loss)
    return _of_outputs(f, loss, _check_argnum(argnums, "gauss_newton"), "gauss_newton", "Gauss-Newton matrix")


def _of_outputs(
    f: Callable[..., Any], loss: Callable[[Any], Any], argnum: int, transformation: str, name: str
) -> Callable[..., CurvatureOperator]:
    @api_boundary
    def operator(*args: Any) -> CurvatureOperator:
        of_point, x = _at_point(f, transformation, argnum, args)
        jacobian: Any
        out, jacobian = linearize(of_point, x)
        curvature: Any = linearize(grad(loss), out)[1]
        return CurvatureOperator(jacobian, curvature, f"{name} of {name_of(f)}")

    return operator


# A family is represented by its log-normaliser, whose Hessian is the Fisher matrix of the natural parameters.
_FAMILIES: dict[str, Callable[[Any], Any]] = {
    "normal": lambda z: pnp.sum(z**2) / 2,
    "bernoulli": lambda z: pnp.sum(softplus(z)),
    "categorical": lambda z: pnp.sum(logsumexp(z, axis=-1)),
    "poisson": lambda z: pnp.sum(pnp.exp(z)),
}


def fisher(
    f: Callable[..., Any], family: str | Callable[[Any], Any], argnums: int = 0
) -> Callable[..., CurvatureOperator]:
    """Return the Fisher information matrix of a model as an operator, linearised once for many products.

    The outputs of ``f`` are natural parameters of an exponential family; expectations over its distributions are exact,
    without samples. Outputs are independent, and their information is summed.

    Args:
      f: takes trees of real arrays, and returns an array, or any tree if ``family`` is a function.
      family: ``"normal"`` (means, of variance 1), ``"bernoulli"`` (logits), ``"categorical"`` (logits along the last
        axis), ``"poisson"`` (logarithms of rates); or the family's log-normaliser, from the output of ``f`` to a
        scalar.
      argnums: the position of the argument of ``f`` to differentiate by.

    Returns:
      A function of the arguments of ``f`` that returns a :class:`CurvatureOperator`.

    Raises:
      ArgumentError: ``family`` is not a function or one of these names (a TypeError and ValueError).

    Source: J. Martens, New insights and perspectives on the natural gradient method, JMLR 21 (2020), section 9.

    >>> import pullback.numpy as jnp
    >>> from pullback.derivatives import fisher
    >>> x = jnp.array([[1.0], [2.0]])
    >>> print(fisher(lambda w: x @ w, "bernoulli")(jnp.zeros(1)) @ jnp.ones(1))
    [1.25]
    """
    require_function("fisher", "f", f)
    normaliser = family if callable(family) else _FAMILIES.get(family) if isinstance(family, str) else None
    if normaliser is None:
        raise ArgumentError(
            f"fisher: family must be one of {sorted(_FAMILIES)}, or a function from natural parameters to the "
            f"logarithm of the normaliser, got {quoted(family)}"
        )
    return _of_outputs(f, normaliser, _check_argnum(argnums, "fisher"), "fisher", "Fisher's matrix")


def empirical_fisher(log_likelihood: Callable[..., Any], centred: bool = False) -> Callable[..., CurvatureOperator]:
    """Return the empirical Fisher matrix, the mean of the outer products of scores over examples, as an operator.

    It estimates the Fisher matrix if the examples are drawn from the model, as in variational Monte Carlo.

    Args:
      log_likelihood: takes parameters, a tree of real arrays, and one example; returns a real scalar.
      centred: whether to subtract the mean score from each score, as in stochastic reconfiguration.

    Returns:
      A function of the parameters and of the examples, along the first axes of all other arguments, that returns a
      :class:`CurvatureOperator`.

    Raises:
      ArgumentError: ``log_likelihood`` is no function, or ``centred`` is no bool (a TypeError and a ValueError).
      NotDifferentiableError: from the returned function: the likelihood of an example is no scalar, or is complex (a
        TypeError).
      BatchAxisError: from the returned function: an array of examples has no first axis (a TypeError and a
        ValueError).

    Source: S. Sorella, Green function Monte Carlo with stochastic reconfiguration, Physical Review Letters 80 (1998).

    >>> import pullback.numpy as jnp
    >>> from pullback.derivatives import empirical_fisher
    >>> a = empirical_fisher(lambda mean, x: -((x - mean) ** 2) / 2)(0.0, jnp.array([1.0, -3.0]))
    >>> print(a @ jnp.ones(1))
    [5.]
    """
    require_function("empirical_fisher", "log_likelihood", log_likelihood)
    centred = flag("empirical_fisher", "centred", centred)

    def mapped(params: Any, *examples: Any) -> Any:
        return vmap(log_likelihood, in_axes=(None, *[0] * len(examples)))(params, *examples)

    def mean_square(values: Any) -> Any:
        if values.ndim != 1:
            raise NotDifferentiableError(
                f"empirical_fisher needs one scalar for each example, but {name_of(log_likelihood)} returned an output "
                f"of shape {values.shape[1:]}"
            )
        return pnp.mean((values - pnp.mean(values) if centred else values) ** 2) / 2

    return _of_outputs(mapped, mean_square, 0, "empirical_fisher", "empirical Fisher matrix")
