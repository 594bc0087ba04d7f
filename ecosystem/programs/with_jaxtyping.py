"""jaxtyping: functions that check the shapes and dtypes of their arguments and results, traced ones too."""

import json

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree, Shaped, jaxtyped


def check(value, annotation):
    if not isinstance(value, annotation):
        raise TypeError(f"{value} is no {annotation}")
    return value


@jaxtyped(typechecker=None)
def attention(q, k, v):
    check(q, Float[Array, "queries features"])
    check(k, Float[Array, "keys features"])
    check(v, Float[Array, "keys values"])
    weights = check(jax.nn.softmax(q @ k.T / jnp.sqrt(q.shape[-1])), Float[Array, "queries keys"])
    return check(weights @ v, Float[Array, "queries values"])


def refused(function, *args):
    try:
        function(*args)
    except TypeError:
        return 1
    return 0


keys = jax.random.split(jax.random.key(0), 3)
q, k, v = (jax.random.normal(key, shape) for key, shape in zip(keys, [(3, 4), (5, 4), (5, 2)], strict=True))
value, grads = jax.jit(jax.value_and_grad(lambda *qkv: attention(*qkv).sum(), argnums=(0, 1, 2)))(q, k, v)
parameters = {"w": q, "b": (k, v)}

figures = {
    "value": float(value),
    "gradient": grads[2].sum(0).tolist(),
    "mapped": jax.vmap(attention, in_axes=(None, 0, 0))(q, k[None], v[None]).sum((0, 1)).tolist(),
    "accepted": [
        isinstance(keys[0], Key[Array, ""]),
        isinstance(jnp.arange(3), Int[Array, "3"]),
        isinstance(q > 0, Bool[Array, "a b"]),
        isinstance(keys, Shaped[Array, "..."]),
        isinstance(parameters, PyTree[Float[Array, "_ _"]]),
        isinstance(parameters, PyTree[Int[Array, "..."]]),
        isinstance(q, Int[Array, "3 4"]),
        isinstance(jax.ShapeDtypeStruct((3,), jnp.float32), Float[jax.ShapeDtypeStruct, "3"]),
    ],
    "refused": [
        refused(attention, q, k, v[:3]),
        refused(attention, q[:, :2], k, v),
        refused(jax.jit(attention), q, k[0], v),
        refused(jax.vmap(attention), q[None], k[None], v.astype(int)[None]),
        refused(attention, q, k, v),
    ],
}
print(json.dumps(figures))
