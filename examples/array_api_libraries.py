"""Libraries that are written to the Python array API standard, on Pullback's arrays.

``array-api-extra``, SciPy and scikit-learn take the functions that they need from ``x.__array_namespace__()``. SciPy
does so if ``SCIPY_ARRAY_API`` is set before it is imported, scikit-learn with ``array_api_dispatch``. What is not
installed is left out. What calls functions of the standard alone has derivatives, too; what writes into arrays refuses
ours, which are immutable.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"

import pullback
import pullback.numpy as jnp


def extra() -> None:
    try:
        import array_api_extra as xpx
    except ImportError:
        print("array-api-extra is not installed")
        return
    x = jnp.array([[1.0, 2.0, 4.0], [3.0, 5.0, 1.0]])
    print("array_api_extra.cov:", xpx.cov(x).tolist())
    print("  its gradient:", pullback.grad(lambda x: xpx.cov(x)[0, 1])(x).tolist())
    print("array_api_extra.kron:", xpx.kron(x[:1], jnp.ones((1, 2))).tolist())


def scipy_functions() -> None:
    from scipy import integrate, special, stats

    x = jnp.array([0.5, 1.0, 2.5])
    print("scipy.stats.gmean:", stats.gmean(x), type(stats.gmean(x)).__name__)
    print("  its gradient:", pullback.grad(stats.gmean)(x).tolist())
    print("scipy.special.softmax:", special.softmax(x).tolist())
    print("  the gradient of its first element:", pullback.grad(lambda x: special.softmax(x)[0])(x).tolist())
    print("scipy.integrate.trapezoid, gradient:", pullback.grad(integrate.trapezoid)(x).tolist())


def scikit_learn() -> None:
    try:
        import sklearn
        from sklearn import decomposition, metrics
    except ImportError:
        print("scikit-learn is not installed")
        return
    x = jnp.array([[1.0, -1.0], [2.0, 3.0], [0.0, 7.0]])
    with sklearn.config_context(array_api_dispatch=True):
        found = decomposition.PCA(1, svd_solver="full").fit(x)
        print("sklearn PCA:", type(found.components_).__name__, found.explained_variance_.tolist())
        print("sklearn mean_squared_error:", metrics.mean_squared_error(x[:, 0], x[:, 1]))


if __name__ == "__main__":
    extra()
    scipy_functions()
    scikit_learn()
