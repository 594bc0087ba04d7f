"""What the texts of programs say besides the public API: a printed program has the sources of those that it uses."""

# ruff: noqa: F821
# The names of dtypes are those of the precision in which a program is evaluated: ``namespace``.

from __future__ import annotations

import math
from importlib import import_module
from pkgutil import walk_packages

import numpy as np

import pullback.numpy as jnp
import pullback.primitives
from pullback import custom_jvp, custom_vjp, grad, jvp, lax, masked_zeros, new_ref, tree, vjp, vmap
from pullback.custom_batching import custom_vmap


def array(values, dtype):
    """An array of numbers, or of pairs where the dtype is complex."""
    if dtype == complex64:
        pairs = np.asarray(values, np.float64)
        values = pairs[..., 0] + 1j * pairs[..., 1]
    return jnp.array(values, dtype)


def real(x):
    """A real float of whatever x is."""
    kind = x.dtype.kind
    return x if kind in "fV" else x.real if kind == "c" else x.astype(float32)


def shifts(shape):
    """Other numbers for all elements, so that matrices of functions of one number have full rank."""
    k = np.arange(math.prod(shape), dtype=np.float64)
    return (0.7 * k + 0.13 * k**2).reshape(shape)


def fitted(x, shape):
    """The elements of x, as often as it takes."""
    size, times = math.prod(shape), -(-math.prod(shape) // x.size)
    if x.shape == shape:
        return x
    flat = x if x.ndim == 1 else lax.reshape(x, (x.size,))
    flat = flat if times == 1 else lax.reshape(lax.broadcast_in_dim(flat, (times, x.size), (1,)), (times * x.size,))
    return lax.reshape(flat if flat.size == size else lax.slice(flat, (0,), (size,)), shape)


def spread(x, shape, low, high, dtype):
    """Numbers between two, of a shape and a float dtype: a smooth function of x, another one for each element."""
    x = x % 61 if x.dtype.kind in "iu" else x  # beside large ones the shifts have too few digits
    y = jnp.sin(fitted(real(x), shape) + shifts(shape))
    return ((low + high) / 2 + (high - low) / 2.02 * y).astype(dtype)


def spread_complex(x, shape, low, high, dtype):
    """The same for complex numbers, whose parts are between the two."""
    x = x % 61 if x.dtype.kind in "iu" else x
    other = x.imag if x.dtype.kind == "c" else 1 - real(x)
    part = np.zeros((), dtype).real.dtype
    return lax.complex(spread(x, shape, low, high, part), spread(other, shape, low, high, part))


def spread_int(x, shape, low, high, dtype):
    """The same for integers, between three times the numbers; not negative if the dtype is unsigned."""
    low = max(low, 0) if np.dtype(dtype).kind == "u" else low
    return jnp.floor(spread(x, shape, 3 * low, 3 * high + 1, float32)).astype(dtype)


def spread_bool(x, shape):
    return jnp.sin(3 * (fitted(real(x), shape) + shifts(shape))) > 0


def like(y, x):
    """A value of the shape and dtype of x, that is made of y."""
    y = fitted(y, x.shape)
    kind, of_y = x.dtype.kind, y.dtype.kind
    if kind == "c":
        return (y / (1 + abs(y)) if of_y == "c" else jnp.sin(real(y))).astype(x.dtype)
    if kind in "fV":
        return jnp.sin(real(y)).astype(x.dtype)
    if of_y in "fVc":
        y = jnp.floor(3 * jnp.sin(real(y))).astype(jnp.int32)
    return (y != 0) if kind == "b" else (y if of_y == "b" else y % 5).astype(x.dtype)


def total(y):
    """A real number that depends on all of y, and on no part of it linearly."""
    return jnp.sum(jnp.sin(y.real + y.imag * y.real if y.dtype.kind == "c" else real(y)))


def strong(x):
    """The same value, of no weak type."""
    return lax.convert_element_type(x, x.dtype)


def truth(x):
    """A condition."""
    return jnp.sum(jnp.cos(2 * real(x).astype(float32))) > 0


def choice(x, count):
    """An index below a number."""
    return jnp.floor(7 * abs(jnp.sum(real(x).astype(float32)))).astype(jnp.int32) % count


# Functions with rules of their own, which are those that they have anyway ----------------------------------------


def with_jvp(f):
    g = custom_jvp(f)
    g.defjvp(lambda primals, tangents: jvp(f, primals, tangents))
    return g


def with_vjp(f):
    g = custom_vjp(f)
    g.defvjp(lambda *xs: (f(*xs), xs), lambda xs, ct: vjp(f, *xs)[1](ct))
    return g


def with_vmap(f):
    g = custom_vmap(f)
    g.def_vmap(lambda n, mapped, *xs: (vmap(f, in_axes=[0 if m else None for m in mapped], axis_size=n)(*xs), True))
    return g


def by_reference(f, x, c):
    """Two steps of x = like(f(x, c), x), in a reference."""
    r = new_ref(x)

    def step(i, n):
        r[...] = like(f(r[...], c), x)
        return n + 1

    lax.fori_loop(0, 2, step, 0)
    return r[...]


def masked_gradient(f, x):
    with masked_zeros():
        return grad(f)(x)


def solved(a, b):
    """The solution of a x = b, by a function that is told how a and its transpose are inverted."""
    inverse = lambda transposed: lambda product, b: jnp.linalg.solve(a.T if transposed else a, b)
    return lax.custom_linear_solve(lambda x: a @ x, b, inverse(False), inverse(True))


# Plain means --------------------------------------------------------------------------------------------------------


def repeated(f, x, times):
    for k in range(times):
        x = f(k, x)
    return x


def scanned(f, carry, xs, reverse, which):
    """What scan returns: the carry for 0, the stacked results for 1."""
    rows = []
    for k in range(len(xs))[:: -1 if reverse else 1]:
        carry, y = f(carry, xs[k])
        rows.append(y)
    return jnp.stack(rows[::-1] if reverse else rows) if which else carry


def mapped(f, axes, out_axis, *xs):
    """What vmap returns."""
    (size,) = {x.shape[a] for x, a in zip(xs, axes) if a is not None}
    pick = lambda x, a, k: x if a is None else x[(slice(None),) * a + (k,)]
    return jnp.stack([f(*(pick(x, a, k) for x, a in zip(xs, axes))) for k in range(size)], out_axis)


def accumulated(f, xs, axis, reverse):
    rows = [xs[(slice(None),) * axis + (k,)] for k in range(xs.shape[axis])]
    rows = rows[::-1] if reverse else rows
    for k in range(1, len(rows)):
        rows[k] = f(rows[k - 1], rows[k])
    return jnp.stack(rows[::-1] if reverse else rows, axis)


def basis(x):
    return list(jnp.eye(x.size, dtype=x.dtype).reshape(x.size, *x.shape))


def gradient(f, x):
    """The gradient by forward mode."""
    return jnp.stack([jvp(f, (x,), (e,))[1] for e in basis(x)]).reshape(x.shape)


def jacobian_rows(f, x):
    """The Jacobian by reverse mode, without vmap."""
    y, pull = vjp(f, x)
    return jnp.stack([pull(e)[0] for e in basis(y)]).reshape(y.shape + x.shape)


def jacobian_columns(f, x):
    """The Jacobian by forward mode, without vmap."""
    columns = jnp.stack([jvp(f, (x,), (e,))[1] for e in basis(x)], -1)
    return columns.reshape(columns.shape[:-1] + x.shape)


def second_derivatives(f, x):
    """The Hessian by forward mode twice."""
    return gradient_of_each(lambda x: gradient(f, x), x)


def gradient_of_each(f, x):
    return jacobian_columns(f, x)


def diagonal_sum(h, n):
    """The trace of a Hessian of a function of n numbers."""
    return jnp.sum(jnp.diagonal(h.reshape(n, n)))


def derivative_along(f, x, v, order):
    """The derivative of an order along a line, by forward mode again and again."""
    g = lambda t: f(x + t * v)
    for _ in range(order):
        g = (lambda f: lambda t: jvp(f, (t,), (jnp.ones_like(t),))[1])(g)
    return g(jnp.zeros((), x.dtype))


def product_by_rows(f, x, v):
    """J v of the rows of J."""
    return jnp.tensordot(jacobian_rows(f, x), v, x.ndim)


def product_by_columns(f, x, u):
    """u J of the columns of J."""
    return jnp.tensordot(u, jacobian_columns(f, x), u.ndim)


def added(y):
    """The sum along the first axis, as a collective has it: in the dtype of y, and of booleans in int32."""
    return jnp.sum(y, 0, dtype=jnp.int32 if y.dtype.kind == "b" else y.dtype)


def together(f, collective, g, x):
    """g(collective(f(x)), x) for all indices of a named axis; the collective takes the stacked values."""
    ys = collective(jnp.stack([f(part) for part in x]))
    return jnp.stack([g(y, part) for y, part in zip(ys, x)])


def positive_definite(x):
    return x @ jnp.conj(jnp.swapaxes(x, -1, -2)) + jnp.eye(x.shape[-1], dtype=x.dtype)


def leaf(results, k):
    """One of the arrays of a tree."""
    return tree.leaves(results)[k]


def primitive(name):
    """A primitive by its name."""
    modules = [import_module(m.name) for m in walk_packages(pullback.primitives.__path__, "pullback.primitives.")]
    return next(x for m in modules for x in vars(m).values() if getattr(x, "name", None) == name and hasattr(x, "bind"))
