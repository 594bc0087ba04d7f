"""Checks that survive compilation, callbacks, and switches."""

import numpy as np

import pullback
import pullback.numpy as jnp
from pullback import Array
from pullback.experimental import checkify


def safe_log(x: Array, name: str = "x") -> Array:
    checkify.check(jnp.all(x > 0), name + " must be positive, its minimum is {}", x.min())
    return jnp.log(x)


checked = checkify.checkify(pullback.jit(safe_log))
everything = checkify.checkify(lambda x, i: x[i] / x[0], errors=checkify.all_checks)


def on_the_host(x: np.ndarray) -> np.ndarray:
    return np.sort(x)


def ordered(x: Array) -> Array:
    found: Array = pullback.pure_callback(on_the_host, pullback.ShapeDtypeStruct(x.shape, x.dtype), x)
    pullback.debug.print("{} elements", x.size)
    return found


def main() -> None:
    error, value = checked(jnp.array([1.0, 2.0]))
    error.throw()
    failed, _ = checked(jnp.array([-1.0]))
    message = failed.get()
    assert message is not None
    other, _ = everything(jnp.zeros(2), 7)
    print(value.shape, message.splitlines()[0][:16], other.get() is not None)
    with pullback.debug_nans(True), pullback.default_device(pullback.devices()[0]), pullback.named_scope("sorting"):
        print(pullback.jit(ordered)(jnp.array([2.0, 1.0]))[0])
    pullback.block_until_ready(value).mean()


def mistaken(x: Array) -> Array:
    return checked(x)  # type: ignore[return-value]  # pyright: ignore[reportReturnType]
