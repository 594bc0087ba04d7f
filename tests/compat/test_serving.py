"""What ``import jax`` gives once Pullback serves it; each program in a process of its own."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib.util import find_spec

import pytest

import pullback.compat

INSTALL = "import pullback.compat\npullback.compat.install()\n"


def output(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "statement",
    [
        "import jax.numpy as jnp; print(jnp.sin is pullback.numpy.sin)",
        "from jax import numpy as jnp; print(jnp.sin is pullback.numpy.sin)",
        "import jax; print(jax.numpy.linalg.norm is pullback.numpy.linalg.norm)",
        "import jax.scipy.stats.norm as norm; print(norm.pdf is pullback.scipy.stats.norm.pdf)",
        "from jax.scipy.special import gammaln as g; print(g is pullback.scipy.special.gammaln)",
        "import jax; print(isinstance(jax.numpy.ones(2), jax.Array))",
        "import jax, sys; print(jax.numpy is sys.modules['jax.numpy'])",
        "import jax.experimental.ode, jax; print(jax.experimental.ode.odeint is pullback.experimental.ode.odeint)",
        "from importlib.metadata import version; print(version('jax') == '0.10.2')",
        "import jax; print(jax.__version_info__ == (0, 10, 2))",
        "import jax; print(set(dir(jax.numpy)) >= set(pullback.numpy.__all__))",
        "import jax; print(jax.config is pullback.config and jax.config.jax_threefry_partitionable)",
        "import jax; print(not any(hasattr(jax, n) for n in ['backends', 'primitives', 'transforms', 'compat']))",
    ],
)
def test_names_are_ours(statement: str) -> None:
    assert output(INSTALL + statement) == "True"


def test_random_numbers_are_laid_out_as_jax_lays_them_out() -> None:
    """Figures of JAX 0.10.2."""
    code = "import jax; print(jax.random.key_data(jax.random.split(jax.random.key(0)))[0])"
    assert output(INSTALL + code) == "[1797259609 2579123966]"
    assert output(code.replace("jax", "pullback")) == "[4146024105  967050713]"


def test_a_missing_name_is_an_attribute_error_that_says_who_lacks_it() -> None:
    code = "import jax\ntry: jax.numpy.arctann\nexcept AttributeError as error: print(error)"
    said = output(INSTALL + code)
    assert "'jax.numpy' has no attribute 'arctann'" in said
    assert "Pullback" in said
    assert "arctan" in said.split("near it:")[1]


def test_a_missing_module_is_an_import_error_that_says_who_lacks_it() -> None:
    code = "try: import jax.nunpy\nexcept ModuleNotFoundError as error: print(error, error.name)"
    said = output(INSTALL + code)
    assert "'jax' has no module 'nunpy'" in said
    assert "Pullback" in said
    assert "numpy" in said
    assert said.endswith("jax.nunpy")
    code = "try: from jax.numpy import no_such\nexcept ImportError as error: print(error)"
    assert "no_such" in output(INSTALL + code)
    assert "pullback" in output(INSTALL + code)


def test_private_names_of_python_are_no_missing_names() -> None:
    code = (
        "import jax, inspect\ninspect.unwrap(jax)\nhasattr(jax, '__wrapped__')\nprint(pullback.compat.missing_names())"
    )
    assert output(INSTALL + code) == "{}"


def test_nothing_is_served_unless_asked_for() -> None:
    assert output(
        "import sys, pullback, pullback.numpy; print('pullback.compat' in sys.modules, 'jax' in sys.modules)"
    ) == ("False False")


@pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed")
def test_not_beside_the_real_one() -> None:
    code = "import jax, pullback.compat\ntry: pullback.compat.install()\nexcept ImportError as error: print(error)"
    assert "the package jax is already imported" in output(code)


def test_not_beside_another_one() -> None:
    code = "import sys, types; sys.modules['jax'] = types.ModuleType('jax')\nimport pullback.compat\n"
    said = output(
        code + "try: pullback.compat.install()\nexcept ImportError as error: print(type(error).__name__, error)"
    )
    assert "CompatError pullback.compat.install: the package jax is already imported, from an unknown place" in said


def test_uninstalling_undoes_it() -> None:
    code = """
import jax  # ours
import sys

assert jax.grad is pullback.grad
assert pullback.config.threefry_partitionable
pullback.compat.uninstall()
assert "jax" not in sys.modules
assert not pullback.config.threefry_partitionable
pullback.compat.uninstall()
print("undone")
"""
    assert output(INSTALL + code) == "undone"


def test_the_example_of_install_runs_in_a_process_of_its_own() -> None:
    """Where the tests run, the real JAX may be imported already, so that the example is left out there."""
    example = (inspect.getdoc(pullback.compat.install) or "").replace("  # doctest: +SKIP", "")
    code = f"import doctest\ncase = doctest.DocTestParser().get_doctest({example!r}, {{}}, 'install', None, 0)\n"
    assert output(code + "print(doctest.DocTestRunner().run(case))") == "TestResults(failed=0, attempted=4)"


def test_arrays_belong_to_jax_by_the_module_of_their_class() -> None:
    """Autoray, and PennyLane by it, look for `cos` in the package that has the class of an array."""
    code = """
import jax, pickle
from pullback.compat.serving import uninstall
package = lambda x: type(x).__module__.partition(".")[0]
seen = lambda x: print(package(x)) or x * 2.0
x = jax.device_put(jax.numpy.ones(2), jax.devices()[0])
jax.jit(seen)(x), jax.vmap(seen)(x), jax.grad(lambda x: jax.checkpoint(seen)(x).sum())(x)
print(package(x), pickle.loads(pickle.dumps(type(x))) is type(x), x[x > 5].shape, x + x)
kind = type("Mine", (jax.core.Tracer,), {})
print(kind.__module__)
uninstall()
print(package(x), type("Late", (type(x),), {"__module__": "pullback.late"}).__module__)
"""
    lines = output(INSTALL + code).splitlines()
    assert set(lines[:-3]) == {"jax"}
    assert lines[-3:] == ["jax True (0,) [2. 2.]", "__main__", "pullback pullback.late"]
