"""Tracebacks: a user sees frames of their own, unless the switch ``traceback_filtering`` says otherwise."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pullback.numpy as jnp
from pullback import (
    checkpoint,
    debug,
    eval_shape,
    extend,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jit,
    jvp,
    lax,
    linear_transpose,
    linearize,
    make_jaxpr,
    pure_callback,
    tree,
    value_and_grad,
    vjp,
    vmap,
)
from pullback.core import source
from pullback.core.config import override
from pullback.core.errors import ShapeError
from pullback.core.trace import EVAL, state

x3 = jnp.asarray([1.0, 2.0, 3.0])


def fails(x: Any) -> Any:
    return deeper(x)


def deeper(x: Any) -> Any:
    raise ValueError("on purpose")


RUNS: dict[str, Callable[[Callable[..., Any]], Any]] = {
    "grad": lambda f: grad(f)(1.0),
    "value_and_grad": lambda f: value_and_grad(f)(1.0),
    "jvp": lambda f: jvp(f, (1.0,), (1.0,)),
    "vjp": lambda f: vjp(f, 1.0),
    "linearize": lambda f: linearize(f, 1.0),
    "linear_transpose": lambda f: linear_transpose(f, 1.0),
    "vmap": lambda f: vmap(f)(x3),
    "vmap in chunks": lambda f: vmap(f, chunk_size=2)(x3),
    "jacfwd": lambda f: jacfwd(f)(1.0),
    "jacrev": lambda f: jacrev(f)(x3),
    "hessian": lambda f: hessian(f)(1.0),
    "make_jaxpr": lambda f: make_jaxpr(f)(1.0),
    "eval_shape": lambda f: eval_shape(f, 1.0),
    "grad of vmap": lambda f: grad(lambda x: jnp.sum(vmap(f)(x)))(x3),
    "grad of grad of grad": lambda f: grad(grad(grad(f)))(1.0),
    "make_jaxpr of vmap of grad": lambda f: make_jaxpr(vmap(grad(f)))(x3),
}


def frames(error: BaseException) -> list[traceback.FrameSummary]:
    return traceback.extract_tb(error.__traceback__)


def own(error: BaseException) -> list[str]:
    """The functions of this file in a traceback."""
    return [f.name for f in frames(error) if f.filename == __file__]


def internal(error: BaseException) -> list[str]:
    return [f.name for f in frames(error) if source.is_internal(f.filename)]


@pytest.mark.parametrize("switch", ["auto", "on", "remove_frames"])
@pytest.mark.parametrize("run", RUNS)
def test_an_error_of_the_users(run: str, switch: str) -> None:
    with override("traceback_filtering", switch), pytest.raises(ValueError, match=r"^on purpose$") as caught:
        RUNS[run](fails)
    assert own(caught.value)[-2:] == ["fails", "deeper"]
    assert internal(caught.value) == []
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert state.trace is EVAL


def test_all_frames_on_request() -> None:
    with override("traceback_filtering", "off"), pytest.raises(ValueError, match="on purpose") as caught:
        RUNS["grad of vmap"](fails)
    assert own(caught.value)[-2:] == ["fails", "deeper"]
    assert {"linearize_flat", "batch_flat"} <= set(internal(caught.value))


@pytest.mark.parametrize("run", RUNS)
def test_an_error_of_pullback_ends_at_the_users_line(run: str) -> None:
    def adds(x: Any) -> Any:
        return jnp.add(x, "a")

    with pytest.raises(TypeError, match="'a' of type str") as caught:
        RUNS[run](adds)
    assert frames(caught.value)[-1].name == "adds"
    assert internal(caught.value) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda: grad(jnp.sin)(x3),
        lambda: vmap(jnp.sin)(1.0),
        lambda: vjp(jnp.sin, 1.0)[1](x3),
        lambda: linearize(jnp.sin, 1.0)[1](x3),
        lambda: jvp(jnp.sin, 1.0, 1.0),
    ],
)
def test_an_error_in_what_is_given_ends_at_the_call(call: Callable[[], Any]) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert frames(caught.value)[-1].name == "<lambda>"


def test_causes_and_contexts_are_kept() -> None:
    def wraps_an_error(x: Any) -> Any:
        try:
            return {}[x.shape]
        except KeyError as error:
            raise RuntimeError("no such shape") from error

    with pytest.raises(RuntimeError) as caught:
        grad(lambda x: jnp.sum(vmap(wraps_an_error)(x)))(x3)
    assert type(caught.value.__cause__) is KeyError
    assert caught.value.__context__ is caught.value.__cause__
    assert [f.name for f in frames(caught.value.__cause__)] == ["wraps_an_error"]


def test_a_mistake_within_pullback_keeps_the_frame_that_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pullback.transforms.autodiff.grad.linearize_flat", None)
    with pytest.raises(TypeError, match="NoneType") as caught:
        grad(jnp.sin)(1.0)
    assert internal(caught.value) == ["_value_and_grad"]


def test_post_mortem_finds_the_users_variables() -> None:
    def divides(x: Any) -> Any:
        divisor = 0
        return x / (1 // divisor)

    with pytest.raises(ZeroDivisionError) as caught:
        vmap(grad(divides))(x3)
    tb = caught.value.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    assert tb is not None
    assert tb.tb_frame.f_locals["divisor"] == 0


def test_an_error_caught_within_a_transformed_function() -> None:
    def recovers(x: Any) -> Any:
        try:
            grad(fails)(x)
        except ValueError:
            return x * x
        return x

    assert float(grad(recovers)(3.0)) == 6.0


def test_an_error_in_a_users_rule() -> None:
    p = extend.Primitive("fragile")

    @p.host
    def evaluate(x: Any) -> Any:
        raise ArithmeticError("in the rule")

    with pytest.raises(ArithmeticError, match="in the rule") as caught:
        vmap(lambda x: p.bind(3.0))(x3)
    assert frames(caught.value)[-1].name == "evaluate"
    assert internal(caught.value) == []


def test_names_and_signatures_are_those_of_the_function() -> None:
    def named(x: float, *, y: float = 2.0) -> float:
        """What it does."""
        return x

    for transformation in (grad, value_and_grad, vmap, jacfwd, jacrev, hessian, make_jaxpr):
        function = transformation(named)
        assert (function.__name__, function.__doc__) == ("named", "What it does.")
        assert inspect.signature(function) == inspect.signature(named)
    assert (vjp.__name__, vjp.__module__) == ("vjp", "pullback.transforms.autodiff.grad")
    assert vjp.__globals__["__name__"] == "pullback.transforms.autodiff.grad"


# Of operations, which have no boundary -------------------------------------------------------------------------------

MISTAKES = {
    "jnp.ones(3) @ jnp.ones(4)": "ShapeError: matmul requires contracting dimensions to have the same shape",
    "jnp.ones(3).reshape(2, 2)": "ShapeError: cannot reshape an array of shape (3,)",
    "jnp.einsum('ij,jk', jnp.ones((2, 3)), jnp.ones((2, 3)))": "ShapeError: einsum: the sizes of the index 'j'",
    "jnp.ones(3) + jnp.ones(4)": "ShapeError: add got incompatible shapes",
    "pullback.tree.map(lambda x: 1 / 0, [1])": "ZeroDivisionError: division by zero",
    "[1, 2] @ jnp.ones(2)": "OperandError: unsupported operand for @",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_what_ends_a_program_is_shown_without_our_frames(text: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"import pullback, pullback.numpy as jnp\n\ndef main():\n    {text}\n\nmain()\n")
    for switch, hidden in (("auto", True), ("off", False)):
        environment = {**os.environ, "PULLBACK_TRACEBACK_FILTERING": switch}
        done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60, env=environment)
        assert done.returncode == 1
        kind, ours = MISTAKES[text].partition(":")[0], not MISTAKES[text].startswith("ZeroDivision")
        lines = done.stderr.splitlines()
        assert MISTAKES[text] in lines[-2 if ours else -1]
        assert not ours or lines[-1] == f"For more: python -m pullback explain {kind}"
        assert (f"{os.sep}pullback{os.sep}" not in done.stderr.replace(str(tmp_path), "")) is hidden
        if hidden:
            assert "During handling of the above exception" not in done.stderr
            assert done.stderr.count("File ") <= 3  # the module, main, and a function within it


def test_an_error_of_the_users_is_still_told_of_as_the_context() -> None:
    def f() -> None:
        try:
            raise KeyError("the user's")
        except KeyError:
            jnp.ones(3) + jnp.ones(4)

    with pytest.raises(ShapeError) as caught:
        f()
    assert isinstance(caught.value.__context__, KeyError)
    with pytest.raises(ShapeError) as caught:
        jnp.ones(3) + jnp.ones(4)
    assert caught.value.__context__ is None


def test_another_hook_is_called_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(sys, "excepthook", lambda *args: seen.append(args))
    source.hide_when_uncaught()
    with pytest.raises(ShapeError) as caught:
        jnp.reshape(jnp.ones(3), (2, 2))
    error = caught.value
    assert len(list(traceback.walk_tb(error.__traceback__))) > 1
    sys.excepthook(type(error), error, error.__traceback__)
    ((kind, value, tb),) = seen
    assert (kind, value, len(list(traceback.walk_tb(tb)))) == (ShapeError, error, 1)
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert seen[1][0] is KeyboardInterrupt


def test_ipython_shows_errors_without_our_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks the error for its lines, and hides nothing by itself."""

    class Shell:
        class InteractiveTB:
            @staticmethod
            def structured_traceback(kind: Any, error: Any, tb: Any) -> list[str]:
                return [kind.__name__, *[frame.f_code.co_name for frame, _ in traceback.walk_tb(tb)]]

    monkeypatch.setitem(sys.modules, "IPython", type("IPython", (), {"get_ipython": staticmethod(lambda: Shell)}))
    with pytest.raises(ShapeError) as caught:
        jnp.reshape(jnp.ones(3), (2, 2))
    here = "test_ipython_shows_errors_without_our_frames"
    assert caught.value._render_traceback_() == [
        "ShapeError",
        here,
        "For more: python -m pullback explain ShapeError",
    ]


def test_a_product_in_a_program_is_called_what_the_user_wrote() -> None:
    for f, name in ((lambda a, b: a @ b, "matmul"), (jnp.dot, "dot"), (jnp.matmul, "matmul")):
        for g in (f, jit(f), grad(lambda a, b, f=f: f(a, b).sum())):
            with pytest.raises(ShapeError, match=f"^{name} requires"):
                g(jnp.ones(3), jnp.ones(4))


@pytest.mark.parametrize(
    "call",
    [
        lambda f: tree.map(f, [x3]), lambda f: lax.map(f, x3), lambda f: lax.scan(lambda c, x: f(x), 0.0, x3),
        lambda f: checkpoint(f)(x3), lambda f: pure_callback(f, x3, x3), lambda f: debug.callback(f, x3),
        lambda f: lax.cond(True, f, f, x3),
    ],
)  # fmt: skip
def test_an_error_of_the_users_passes_without_our_frames(call: Callable[..., Any]) -> None:
    """Where it is caught too, as IPython and pytest do."""
    with pytest.raises(ValueError, match="on purpose") as caught:
        call(fails)
    assert own(caught.value)[-2:] == ["fails", "deeper"]
    assert internal(caught.value) == []


def test_the_cause_of_an_error_is_shown_in_the_same_way() -> None:
    def host(x: Any) -> Any:
        raise ArithmeticError("on the host")

    with pytest.raises(ArithmeticError) as caught:
        jit(lambda x: pure_callback(host, x, x))(x3)
    cause = caught.value.__cause__
    assert cause is not None
    assert [f.name for f in frames(cause)] == ["host"]


# Frequent mistakes ---------------------------------------------------------------------------------------------------

FREQUENT = {
    "x @ y": "matmul requires contracting dimensions",
    "jnp.matmul(x, y)": "matmul requires contracting dimensions",
    "jnp.dot(x, y)": "dot requires contracting dimensions",
    "x + y": "add got incompatible shapes",
    "x < y": "less got incompatible shapes",
    "x + 'a'": "unsupported operand for +",
    "jnp.where(x > 0, x, y)": "where got incompatible shapes",
    "x.reshape(2, 2)": "cannot reshape an array of shape (3,)",
    "jnp.concatenate([x, m])": "concatenate: shapes must agree",
    "jnp.stack([x, y])": "stack: all arrays must have the same shape",
    "x.sum(axis=3)": "sum: axis 3 is out of bounds",
    "m.transpose(0, 0)": "transpose: (0, 0) is not a permutation",
    "m[0, 0, 0]": "too many indices",
    "x[1.5]": "an index must be an int",
    "x[0] = 1.0": "arrays are immutable",
    "jnp.einsum('ij,jk', m, m)": "einsum: the sizes of the index 'j'",
    "jnp.sin('a')": "sin: expected an array or a number",
    "jnp.array([[1, 2], [3]])": "array: the nested lists",
    "jnp.zeros(3, 'flot')": "unknown dtype 'flot'",
    "jnp.linalg.inv(m)": "linalg.inv takes square matrices",
    "float(x)": "float() takes a scalar array",
    "1 if x > 0 else 2": "the truth value of an array",
    "jnp.angle(x, 'no')": "angle: deg must be True or False",
    "lax.cumsum(x, 'a')": "lax.cumsum: an axis must be an int",
    "random.normal(0.5, (3,))": "normal: expected a random key",
    "nn.softmax(x, axis=2)": "softmax: axis 2 is out of bounds",
    "grad(lambda v: v)(x)": "gradients need scalar outputs",
    "grad(lambda v: (v @ y).sum())(x)": "matmul requires contracting dimensions",
    "jit(lambda v: v @ y)(x)": "matmul requires contracting dimensions",
    "vmap(jnp.add)(x, y)": "has size 4 along axis 0",
    "pullback.tree.map(lambda a: a @ y, [x])": "matmul requires contracting dimensions",
    "pullback.tree.map(lambda a, b: a, [1, 2], [1])": "the trees disagree: at the root",
    "pullback.checkpoint(lambda a: a @ y)(x)": "matmul requires contracting dimensions",
    "pullback.pure_callback(lambda a: 1 / 0, x, x)": "division by zero",
    "pullback.debug.callback(lambda a: 1 / 0, x)": "division by zero",
    "jit(lambda v: pullback.pure_callback(lambda a: 1 / 0, v, v))(x)": "pure_callback of <lambda> raised an error",
    "lax.scan(lambda c, a: (c @ y, a), x, x)": "matmul requires contracting dimensions",
    "lax.cond(True, lambda v: v, lambda v: v @ y, x)": "matmul requires contracting dimensions",
    "jnp.apply_along_axis(lambda a: a @ y, 0, m)": "matmul requires contracting dimensions",
}
"""What people write, and what the last line of the traceback says."""

FRAME = 3
"""The lines of a frame: the file, the line, and the marks under its part."""


def test_frequent_mistakes_show_the_users_lines_and_the_message(tmp_path: Path) -> None:
    """They run in one process, each in a file of its own, as a program that it ends."""
    driver = tmp_path / "driver.py"
    driver.write_text(
        "import contextlib, io, json, sys\n"
        "said = []\n"
        "for path in json.loads(sys.argv[1]):\n"
        "    text = io.StringIO()\n"
        "    try:\n"
        "        exec(compile(open(path).read(), path, 'exec'), {})\n"
        "    except Exception as error:\n"
        "        error.__traceback__ = error.__traceback__.tb_next\n"
        "        with contextlib.redirect_stderr(text):\n"
        "            sys.excepthook(type(error), error, error.__traceback__)\n"
        "    said.append(text.getvalue())\n"
        "print(json.dumps(said))\n"
    )
    programs = [tmp_path / f"program{i}.py" for i in range(len(FREQUENT))]
    for program, text in zip(programs, FREQUENT, strict=True):
        program.write_text(
            "import pullback, pullback.numpy as jnp\n"
            "from pullback import grad, jit, lax, nn, random, vmap\n\n"
            "x, y, m = jnp.ones(3), jnp.ones(4), jnp.ones((2, 3))\n\n"
            f"def main():\n    {text}\n\nmain()\n"
        )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", driver, json.dumps(list(map(str, programs)))],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    long = []
    for (text, words), shown in zip(FREQUENT.items(), json.loads(done.stdout), strict=True):
        lines = [line for line in shown.splitlines() if not line.startswith("For more: ")]
        users = shown.count(f'File "{tmp_path}')
        own_functions = text.count("lambda")
        assert words in shown, shown
        assert f"{os.sep}src{os.sep}pullback{os.sep}" not in shown, shown
        if len(lines) > 5 + FRAME * users + 2 * own_functions or users > 2 + 2 * own_functions:
            long.append(f"{text}: {len(lines)} lines\n{shown}")
        if not own_functions:
            assert len(lines) <= 8, shown
    assert not long, "\n".join(long)
