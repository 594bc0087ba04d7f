"""A function is lowered, compiled ahead, exported with symbolic sizes, and called again."""

import pullback
import pullback.numpy as jnp
from pullback import Array, export


@pullback.jit
def features(x: Array, weight: Array) -> dict[str, Array]:
    return {"linear": x @ weight, "norm": jnp.linalg.norm(x, axis=1)}


def stored() -> bytes:
    rows, columns = export.symbolic_shape("n, 3")
    x = pullback.ShapeDtypeStruct((rows, columns), jnp.float32)
    weight = pullback.ShapeDtypeStruct((3, 2), "float32")
    return bytes(export.export(features)(x, weight).serialize())


def mistaken() -> str:
    return stored()  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def main() -> None:
    x, weight = jnp.ones((4, 3)), jnp.ones((3, 2))
    lowered = features.lower(x, weight)
    compiled = lowered.compile()
    types = pullback.eval_shape(features, x, weight)
    again = export.deserialize(bytearray(stored()))
    out = again.call(x, weight)
    assert jnp.allclose(out["linear"], compiled(x, weight)["linear"])
    jaxpr, shapes = pullback.make_jaxpr(features, return_shape=True)(x, weight)
    print(types["norm"].shape, len(again.in_avals), again.fun_name, len(jaxpr.jaxpr.invars), shapes["linear"].dtype)
    linear, transposed = pullback.linearize(lambda v: features(v, weight)["norm"].sum(), x)
    print(linear.shape, transposed(x).shape, pullback.linear_transpose(lambda v: 2 * v, x)(x)[0].shape)
