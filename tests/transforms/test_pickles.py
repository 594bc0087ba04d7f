"""Pickles and copies of transformed functions, and of what ``vjp`` and ``linearize`` return."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import (
    checkpoint,
    custom_jvp,
    custom_vjp,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jit,
    lax,
    linear_transpose,
    linearize,
    make_jaxpr,
    tree,
    value_and_grad,
    vjp,
    vmap,
)
from pullback.custom_derivatives import custom_transpose
from pullback.extend import Primitive


def f(x: Any, n: int = 2) -> Any:
    """A function."""
    return jnp.sum(jnp.sin(x) ** n)


def g(x: Any) -> Any:
    return {"a": jnp.exp(x) * x, "b": x @ x}


@jit
def decorated(x: Any) -> Any:
    return 2 * x


@grad
def decorated_gradient(x: Any) -> Any:
    return x**3


@functools.partial(vmap, in_axes=1)
def mapped(x: Any) -> Any:
    return x.sum()


@custom_jvp
def with_jvp(x: Any) -> Any:
    return x**2


@with_jvp.defjvp
def with_jvp_rule(primals: Any, tangents: Any) -> Any:
    return with_jvp(*primals), 3 * primals[0] * tangents[0]


@custom_vjp
def with_vjp(x: Any) -> Any:
    return x**2


def with_vjp_fwd(x: Any) -> Any:
    return with_vjp(x), x


def with_vjp_bwd(x: Any, ct: Any) -> Any:
    return (5 * x * ct,)


with_vjp.defvjp(with_vjp_fwd, with_vjp_bwd)


@custom_transpose
def with_transpose(r: Any, x: Any) -> Any:
    return x / r


class Model:
    scale = 3.0

    @jit
    def step(self) -> Any:
        return self

    @grad
    def slope(self) -> Any:
        return self**2


X = jnp.arange(1.0, 4.0)
FUNCTIONS: dict[str, Any] = {
    "jit": jit(f),
    "jit, static": jit(f, static_argnums=1),
    "grad": grad(f),
    "value_and_grad": value_and_grad(f),
    "grad of grad": grad(grad(with_jvp)),
    "jit of grad": jit(grad(f)),
    "grad of jit": grad(jit(f)),
    "hessian": hessian(f),
    "jacfwd": jacfwd(g),
    "jacrev": jacrev(g),
    "vmap": vmap(jnp.sin),
    "vmap of grad": vmap(grad(jnp.sin)),
    "checkpoint": checkpoint(f),
    "checkpoint, kept": checkpoint(f, policy=None, prevent_cse=False),
    "make_jaxpr": make_jaxpr(f),
    "custom rules": grad(functools.partial(jit(with_jvp))),
    "decorated": decorated,
    "decorated gradient": decorated_gradient,
    "mapped": mapped,
    "jvp rule": with_jvp,
    "vjp rule": with_vjp,
    "gradient of a vjp rule": grad(with_vjp),
}
SCALAR = {"grad of grad", "custom rules", "decorated gradient", "gradient of a vjp rule"}


def _same(a: Any, b: Any) -> None:
    for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True):
        if isinstance(x, str) or not hasattr(x, "shape"):
            assert str(x) == str(y)
        else:
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("again", [lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy])
def test_functions(name: str, again: Callable[[Any], Any]) -> None:
    function = FUNCTIONS[name]
    x = jnp.asarray(2.0) if name in SCALAR else X.reshape(1, 3) if name == "mapped" else X
    for known in (function, again(function)):
        _same(again(known)(x), function(x))
    _same(again({"f": [function]})["f"][0](x), function(x))


def test_decorated_functions_are_themselves() -> None:
    for x in (decorated, decorated_gradient, mapped, with_jvp, with_vjp):
        assert pickle.loads(pickle.dumps(x)) is x
        assert copy.deepcopy(x) is x


def test_options_are_kept() -> None:
    h = pickle.loads(pickle.dumps(grad(_pair, argnums=1, has_aux=True)))
    _same(h(2.0, 3.0), grad(_pair, argnums=1, has_aux=True)(2.0, 3.0))
    v = pickle.loads(pickle.dumps(vmap(_pair, in_axes=(None, 0), out_axes=0)))
    assert v(2.0, X)[0].shape == (3,)
    s = pickle.loads(pickle.dumps(jit(f, static_argnames="n")))
    _same(s(X, n=3), jit(f, static_argnames="n")(X, n=3))


def _pair(x: Any, y: Any) -> Any:
    return x * y, x * y


DERIVATIVES: dict[str, Callable[[], Any]] = {
    "sum": lambda: vjp(f, X)[1],
    "jit": lambda: vjp(jit(f), X)[1],
    "product": lambda: vjp(lambda x: jnp.sum(x @ x.T), jnp.ones((2, 2)))[1],
    "scan": lambda: vjp(lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=5)[0].sum(), X)[1],
    "while_loop": lambda: vjp(lambda x: lax.fori_loop(0, 3, lambda i, c: c * x, x).sum(), X)[1],
    "cond": lambda: vjp(jit(lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x).sum()), X)[1],
    "jvp rule": lambda: vjp(with_jvp, 2.0)[1],
    "index": lambda: vjp(lambda x: x[jnp.array([0, 2])].sum(), X)[1],
    "long": lambda: vjp(_long, 1.0)[1],
}


def _long(x: Any) -> Any:
    for _ in range(3000):
        x = jnp.sin(x)
    return x


@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize("again", [lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy])
def test_what_vjp_returns(name: str, again: Callable[[Any], Any]) -> None:
    pull = DERIVATIVES[name]()
    ct = jnp.asarray(1.5)
    _same(again(pull)(ct), pull(ct))
    _same(again(again(pull))(ct), pull(ct))
    assert repr(again(pull)) == repr(pull)


def test_what_linearize_and_linear_transpose_return() -> None:
    derivative = linearize(g, X)[1]
    for again in (lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy):
        _same(again(derivative)(X), derivative(X))
        back = linear_transpose(lambda x: 3.0 * x, X)
        _same(again(back)(X), back(X))


def test_lambdas_give_the_error_of_pickle() -> None:
    for function in (grad(lambda x: x), jit(lambda x: x), vmap(lambda x: x)):
        with pytest.raises((pickle.PicklingError, AttributeError), match=r"[Cc]an't (pickle|get local object)"):
            pickle.dumps(function)
        copy.deepcopy(function)


def test_a_primitive_is_pickled_by_reference() -> None:
    from pullback.primitives.elementwise import sin_p

    assert pickle.loads(pickle.dumps(sin_p)) is sin_p
    assert copy.deepcopy(sin_p) is sin_p
    with pytest.raises(TypeError, match="the primitive 'nowhere' cannot be pickled, because it is not an attribute"):
        pickle.dumps(Primitive("nowhere"))


def test_in_another_process(tmp_path: Path) -> None:
    module = tmp_path / "model_of_pickles.py"
    module.write_text("import pullback.numpy as jnp\ndef loss(w):\n    return jnp.sum(jnp.sin(w) ** 2)\n")
    write = """
import pickle, sys, pullback, pullback.numpy as jnp
from model_of_pickles import loss
x = jnp.arange(3.0)
pull = pullback.vjp(pullback.jit(loss), x)[1]
pickle.dump((pullback.jit(pullback.grad(loss)), pullback.hessian(loss), pull, x), open("functions", "wb"))
"""
    read = """
import pickle
gradient, hessian, pull, x = pickle.load(open("functions", "rb"))
assert (abs(gradient(x) - pull(gradient(x).sum() * 0 + 1.0)[0]) < 1e-6).all()
print(hessian(x).shape, gradient(x).shape)
"""
    for program in (write, read):
        done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "(3, 3) (3,)"


def test_a_transformed_function_is_like_a_function() -> None:
    h = grad(f)
    assert (h.__name__, h.__doc__, h.__wrapped__) == ("f", "A function.", f)
    assert inspect.signature(h) == inspect.signature(f)
    assert repr(h).startswith("<transformed f")
    assert callable(h)
    assert float(Model.slope(3.0)) == 6.0
    assert isinstance(Model().step, type(Model().slope))
    assert {h: 1}[h] == 1


def test_arrays_of_every_dtype_in_another_process(tmp_path: Path) -> None:
    names = ("float32", "bfloat16", "int32", "bool", "complex64", "int4", "float8_e4m3fn")
    write = f"""
import pickle, pullback, pullback.numpy as jnp
arrays = [jnp.ones(2, d) for d in {names}]
pickle.dump([*arrays, pullback.random.key(0), jnp.asarray(2.0)], open("arrays", "wb"))
"""
    read = """
import pickle, pullback, pullback.numpy as jnp
arrays = pickle.load(open("arrays", "rb"))
for x in arrays[:-2]:
    other = jnp.ones(2, x.dtype.name)
    assert x.dtype is other.dtype
    assert (x == other).all()
print(pullback.grad(lambda x: x.sum())(arrays[0]), pullback.random.uniform(arrays[-2]).shape, arrays[-1].weak_type)
"""
    for program in (write, read):
        done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[1. 1.] () True"


def test_a_function_with_a_transpose_rule_is_found_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(with_transpose)) is with_transpose
