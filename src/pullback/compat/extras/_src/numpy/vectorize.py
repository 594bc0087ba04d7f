"""``jax._src.numpy.vectorize``: how ``jax.numpy.vectorize`` reads signatures, for DESC."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from pullback.numpy import mapping as _mapping
from pullback.numpy.manipulation import broadcast_shapes as _broadcast_shapes
from pullback.numpy.mapping import vectorize as vectorize

CoreDims = tuple[str, ...]


def _parse_gufunc_signature(signature: str) -> tuple[list[CoreDims], list[CoreDims]]:
    """Return the names of the axes of each operand, and of each result.

    >>> from pullback.compat.extras._src.numpy.vectorize import _parse_gufunc_signature
    >>> _parse_gufunc_signature("(m,n),(n)->(m)")
    ([('m', 'n'), ('n',)], [('m',)])
    """
    return _mapping._parse(signature)


def _apply_excluded(
    func: Callable[..., Any], excluded: Collection[int | str], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], Sequence[Any], dict[str, Any]]:
    """Hand the excluded arguments to a function; return it with the remaining ones.

    >>> from pullback.compat.extras._src.numpy.vectorize import _apply_excluded
    >>> f, args, kwargs = _apply_excluded(lambda *xs, **named: (xs, named), {0, "b"}, (1, 2), {"a": 3, "b": 4})
    >>> args, kwargs, f(5, a=6)
    ([2], {'a': 3}, ((1, 5), {'b': 4, 'a': 6}))
    """
    if not excluded:
        return func, args, kwargs
    dynamic = [i for i in range(len(args)) if i not in excluded]
    kept = {name: x for name, x in kwargs.items() if name in excluded}

    def called(*values: Any, **named: Any) -> Any:
        full = list(args)
        for i, value in zip(dynamic, values, strict=True):
            full[i] = value
        return func(*full, **kept, **named)

    return called, [args[i] for i in dynamic], {name: x for name, x in kwargs.items() if name not in excluded}


def _parse_input_dimensions(
    args: Sequence[Any], input_core_dims: list[CoreDims], error_context: str = ""
) -> tuple[tuple[int, ...], dict[str, int]]:
    """Return the shape of the axes to map over, and the sizes of the named ones.

    >>> import numpy as np
    >>> from pullback.compat.extras._src.numpy.vectorize import _parse_input_dimensions
    >>> _parse_input_dimensions((np.ones((5, 2, 3)), np.ones(3)), [("m", "n"), ("n",)])
    ((5,), {'m': 2, 'n': 3})
    """
    sizes = _mapping._core_sizes(input_core_dims, args, error_context)
    loops = [x.shape[: len(x.shape) - len(core)] for x, core in zip(args, input_core_dims, strict=True)]
    return _broadcast_shapes(*loops), sizes


def _check_output_dims(
    func: Callable[..., Any],
    dim_sizes: dict[str, int],
    expected_output_core_dims: list[CoreDims],
    error_context: str = "",
) -> Callable[..., Any]:
    """Return a function that raises a ShapeError if the results of ``func`` lack the axes of the signature."""

    def checked(*args: Any) -> Any:
        out = func(*args)
        _mapping._check_results(expected_output_core_dims, out, dim_sizes, error_context)
        return out

    return checked
