"""How functions with rules are defined: methods, ``partial``, pickling, documentation."""

from __future__ import annotations

import copy
import doctest
import functools
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pullback import custom_jvp, custom_vjp, grad, jit, tree_util, vmap
from tests.transforms.custom.custom_functions import (
    COMPILED,
    along,
    close,
    doubled,
    sine_times_jvp,
    sine_times_jvps,
    sine_times_vjp,
    x3,
)

Function = Callable[..., Any]


@tree_util.register_pytree_node_class
class Model:
    """Methods with rules: of an object that is a tree, of one that is not differentiated, and of none."""

    def __init__(self, weight: Any) -> None:
        self.weight = weight

    def tree_flatten(self) -> Any:
        return (self.weight,), None

    @classmethod
    def tree_unflatten(cls, _: None, children: Any) -> Model:
        return cls(*children)

    @custom_jvp
    def of_a_tree(self, x: Any) -> Any:
        """What it does."""
        return self.weight * x

    @of_a_tree.defjvp
    def _of_a_tree_jvp(primals: Any, tangents: Any) -> Any:
        (self, x), (self_dot, x_dot) = primals, tangents
        return self.of_a_tree(x), 10.0 * self_dot.weight + 3.0 * self.weight * x_dot

    @functools.partial(custom_vjp, nondiff_argnums=(0,))
    def fixed(self, x: Any) -> Any:
        return self.weight * x

    def _fixed_fwd(self, x: Any) -> Any:
        return self.fixed(x), None

    def _fixed_bwd(self, _: None, ct: Any) -> Any:
        return (3.0 * self.weight * ct,)

    fixed.defvjp(_fixed_fwd, _fixed_bwd)

    @staticmethod
    @custom_jvp
    def of_nothing(x: Any) -> Any:
        return x


Model.of_nothing.defjvps(lambda t, ans, x: 3.0 * t)


@COMPILED
def test_methods(compiled: Function) -> None:
    model = Model(5.0)
    close(compiled(grad(model.of_a_tree))(2.0), 15.0)
    close(compiled(lambda w: grad(lambda model: model.of_a_tree(2.0))(Model(w)).weight)(5.0), 10.0)
    close(compiled(grad(model.fixed))(2.0), 15.0)
    close(compiled(vmap(grad(model.fixed)))(x3), [15.0] * 3)
    close(compiled(grad(Model.of_nothing))(2.0), 3.0)
    close(compiled(grad(model.of_nothing))(2.0), 3.0)
    assert model.of_a_tree.__doc__ == "What it does."


@COMPILED
def test_partial_application(compiled: Function) -> None:
    close(compiled(grad(functools.partial(sine_times_jvp, 2.0)))(3.0), np.sin(2.0))
    close(compiled(grad(functools.partial(sine_times_vjp, y=3.0)))(2.0), -1.2484405)
    f = custom_jvp(functools.partial(lambda y, x: x * y, 5.0))
    f.defjvp(lambda primals, tangents: (f(*primals), 3.0 * tangents[0]))
    close(compiled(grad(f))(2.0), 3.0)


class Callable_:
    """An object that can be called, without a name."""

    def __call__(self, x: Any) -> Any:
        return x


def test_what_has_no_name_and_what_has_no_signature() -> None:
    f = custom_jvp(Callable_())
    f.defjvps(lambda t, ans, x: 3.0 * t)
    close(jit(grad(f))(1.0), 3.0)
    g: Any = custom_vjp(max)
    g.defvjp(lambda x, y: (x, None), lambda _, ct: (3.0 * ct, None))
    close(jit(grad(lambda x: g(x, 2.0)))(5.0), 3.0)
    with pytest.raises(TypeError, match="by keyword"):
        g(1.0, key=abs)


def documented(x: float, y: float = 2.0) -> float:
    """A product.

    >>> from tests.transforms.custom.test_custom_definitions import documented_jvp
    >>> print(documented_jvp(3.0, 4.0))
    12.0
    """
    return x * y


documented_jvp = custom_jvp(documented)
documented_jvp.defjvps(lambda t, ans, x, y: 3.0 * t, None)


@pytest.mark.parametrize("kind", [custom_jvp, custom_vjp])
def test_name_documentation_and_signature(kind: Any) -> None:
    f = kind(documented)
    for transformed in (f, grad(f), jit(f), vmap(f)):
        assert transformed.__name__ == "documented"
        assert inspect.signature(transformed) == inspect.signature(documented)
        assert transformed.__doc__ == documented.__doc__
        assert inspect.unwrap(transformed) is documented
    assert (f.__module__, f.__qualname__) == (documented.__module__, "documented")
    assert kind.__name__ in repr(f)
    assert "documented" in repr(f)


def test_doctest_finds_the_examples_of_a_decorated_function() -> None:
    examples = [e for found in doctest.DocTestFinder().find(documented_jvp, "documented_jvp") for e in found.examples]
    assert [e.source for e in examples][1:] == ["print(documented_jvp(3.0, 4.0))\n"]


def module_function(x: Any, n: Any) -> Any:
    return x * n


def module_jvp(n: Any, primals: Any, tangents: Any) -> Any:
    return primals[0] * n, 3.0 * tangents[0]


def module_fwd(x: Any, n: Any) -> Any:
    return x * n, None


def module_bwd(n: Any, residuals: Any, ct: Any) -> Any:
    return (5.0 * ct,)


def test_pickling() -> None:
    for f in (sine_times_jvp, sine_times_jvps, sine_times_vjp, Model.fixed):
        assert pickle.loads(pickle.dumps(f)) is f
        assert copy.copy(f) is f
        assert copy.deepcopy(f) is f
    made = custom_vjp(module_function, nondiff_argnums=1)  # not to be found by the name of its function
    made.defvjp(module_fwd, module_bwd)
    made.defjvp(module_jvp)
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is custom_vjp
    close(again(2.0, 7.0), 14.0)
    close(grad(again)(2.0, 7.0), 5.0)
    close(along(lambda x: again(x, 7.0))(2.0), 3.0)
    close(pickle.loads(pickle.dumps(functools.partial(made, n=7.0)))(2.0), 14.0)


def test_functions_are_leaves_of_trees_and_static_arguments() -> None:
    run = jit(lambda f, x: f(x), static_argnums=0)
    f = doubled("custom_vjp")
    close(run(f, 1.0), 2.0)
    close(grad(run, 1)(f, 1.0), 3.0)
    assert tree_util.tree_leaves([f]) == [f]


def test_rules_are_replaced_in_compiled_functions_too() -> None:
    f, g = custom_vjp(lambda x: x), custom_jvp(lambda x: x)
    compiled_f, compiled_g = (jit(grad(lambda x, h=h: h(x) * 1.0)) for h in (f, g))
    f.defvjp(lambda x: (x, None), lambda _, ct: (2 * ct,))
    g.defjvps(lambda t, ans, x: 2 * t)
    close(compiled_f(1.0), 2.0)
    close(compiled_g(1.0), 2.0)
    f.defvjp(lambda x: (x, None), lambda _, ct: (3 * ct,))
    g.defjvps(lambda t, ans, x: 3 * t)
    close(compiled_f(1.0), 3.0)
    close(compiled_g(1.0), 3.0)
