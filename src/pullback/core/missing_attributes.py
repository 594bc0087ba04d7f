"""Advice for attributes that arrays lack: methods of PyTorch's tensors, of NumPy's mutable arrays, and functions.

Arrays have no ``__getattr__`` that could say this, for it would slow down every attribute that is asked for in vain.
The hook that prints uncaught errors asks here.
"""

from __future__ import annotations

import importlib

from pullback.core.array import Array

_INSTEAD = {
    "backward": "pullback.grad(loss)(params) returns the gradient",
    "cpu": "np.asarray(x) is a NumPy array",
    "cuda": "pullback.device_put(x, device) moves an array",
    "detach": "pullback.lax.stop_gradient(x) has no derivative, and np.asarray(x) is a NumPy array",
    "dim": "write x.ndim",
    "fill": "arrays do not change: jnp.full_like(x, value) is a new one",
    "grad": "pullback.grad(loss)(params) returns the gradient",
    "itemset": "arrays do not change: x.at[index].set(value) is a new one",
    "numpy": "np.asarray(x) is a NumPy array",
    "permute": "write x.transpose(axes)",
    "put": "arrays do not change: x.at[index].set(values) is a new one",
    "requires_grad": "pullback.grad(f, argnums) says which arguments are differentiated",
    "requires_grad_": "pullback.grad(f, argnums) says which arguments are differentiated",
    "resize": "arrays do not change: jnp.resize(x, shape) is a new one",
    "to": "x.astype(dtype) converts, and pullback.device_put(x, device) moves an array",
    "unsqueeze": "write jnp.expand_dims(x, axis), or x[:, None]",
}


def advice(error: BaseException) -> str:
    """Return a line that says what to write instead of an attribute that an array lacks; empty for other errors.

    >>> import pullback.numpy as jnp
    >>> from pullback.core.missing_attributes import advice
    >>> try:
    ...     jnp.ones(2).exp()
    ... except AttributeError as error:
    ...     print(advice(error))
    pullback.numpy.exp is a function: write exp(x).
    """
    if not isinstance(error, AttributeError) or not isinstance(error.obj, Array) or not isinstance(error.name, str):
        return ""
    if error.name in _INSTEAD:
        return f"Arrays of Pullback do not have {error.name}: {_INSTEAD[error.name]}."
    for module in ("pullback.numpy", "pullback.nn"):
        names = importlib.import_module(module)
        if error.name in names.__all__ and callable(getattr(names, error.name)):
            return f"{module}.{error.name} is a function: write {error.name}(x)."
    return ""
