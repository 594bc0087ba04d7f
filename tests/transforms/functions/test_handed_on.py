"""What the functions that transformations return have of the functions that they are given."""

import inspect
import types
import typing

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback.core.errors import OperandError

TRANSFORMATIONS = [
    "jit", "grad", "value_and_grad", "vmap", "checkpoint", "jacfwd", "jacrev", "hessian", "custom_jvp", "custom_vjp",
    "pmap",
]  # fmt: skip


def function(x: int, y: "float" = 2.0) -> float:
    """The product."""
    return x * y


function.kept = 5


class Callable:
    def __init__(self):
        self.kept = 4

    def __call__(self, x: int) -> float:
        return x


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_annotations_and_attributes_are_those_of_the_function(name):
    made = getattr(pullback, name)(function)
    assert typing.get_type_hints(made) == typing.get_type_hints(function)
    assert made.__annotations__ == function.__annotations__
    assert (made.__name__, made.__doc__, inspect.unwrap(made)) == ("function", "The product.", function)
    assert made.kept == 5
    assert inspect.signature(made) == inspect.signature(function)
    assert not typing.get_type_hints(getattr(pullback, name)(lambda x: x))


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_attributes_of_callable_objects_are_handed_on(name):
    made = getattr(pullback, name)(Callable())
    assert made.kept == 4
    assert pullback.vmap(made).kept == 4
    assert pullback.grad(pullback.jit(made)).kept == 4
    made.kept = 7
    assert Callable().kept == 4


def test_attributes_do_not_take_the_place_of_our_own():
    def f(x):
        return 2.0 * x

    f._call = f._again = f.__wrapped__ = None
    assert pullback.grad(f)(1.0) == 2
    assert pullback.vmap(pullback.jit(f))(pnp.ones(3)).sum() == 6


class Dual:
    """As the arrays of the package jax: of its module, with an attribute that is None where it is traced."""

    __jax_array__ = None

    def __init__(self, value):
        self.value = value

    def __array__(self, dtype=None, copy=None):
        if self.value is None:
            raise TypeError("traced")
        return np.asarray(self.value, dtype)

    def __mul__(self, other):
        return NotImplemented

    __rmul__ = __add__ = __radd__ = __mul__


FOREIGN = types.new_class("ArrayImpl", (Dual,), exec_body=lambda names: names.update(__module__="jaxlib._jax"))
FOREIGN_TRACER = types.new_class("JVPTracer", (Dual,), exec_body=lambda names: names.update(__module__="jax._src.ad"))


def test_arrays_of_the_package_jax_are_operands():
    x, theirs = pnp.arange(3.0), FOREIGN([1.0, 2.0, 3.0])
    for product in (x * theirs, theirs * x, pnp.multiply(x, theirs), pullback.jit(lambda y: x * y)(theirs)):
        np.testing.assert_array_equal(product, [0.0, 2.0, 6.0])
        assert isinstance(product, pullback.Array)
    np.testing.assert_array_equal(pullback.grad(lambda x: (x * theirs).sum())(x), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(pullback.grad(lambda x: (theirs * x).sum())(x), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(x[FOREIGN([2, 0])], [2.0, 0.0])


def test_traced_values_of_the_package_jax_are_refused():
    x, traced = pnp.arange(3.0), FOREIGN_TRACER(None)
    for call in (lambda: pnp.sin(traced), lambda: x * traced, lambda: x[traced], lambda: pnp.sum(traced)):
        with pytest.raises(OperandError, match=r"a value traced by the package jax, of type JVPTracer"):
            call()
