"""Functions of lists, switches and rules under JAX's private names."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pullback import config, core, export, interpreters, jit
from pullback.compat.extras import core as served_core
from pullback.compat.extras._src import config as switches
from pullback.compat.extras._src import util
from pullback.compat.extras._src.interpreters import ad, batching, mlir, partial_eval, xla
from pullback.errors import ArgumentError, UnsupportedExportError


def test_functions_of_lists() -> None:
    assert util.safe_map(lambda x, y: x + y, [1, 2], (3, 4)) == [4, 6]
    assert util.safe_zip(range(2), "ab") == [(0, "a"), (1, "b")]
    assert util.unzip3([(1, 2, 3)]) == ((1,), (2,), (3,))
    assert util.split_list("abcd", [1, 2]) == [["a"], ["b", "c"], ["d"]]
    flags = [True, False, True]
    assert util.merge_lists(flags, *util.partition_list(flags, [1, 2, 3])) == [1, 2, 3]
    assert util.concatenate(iter([[1], [], [2, 3]])) == [1, 2, 3]
    seen: list[int] = []
    util.foreach(lambda x, y: seen.append(x * y), [1, 2], [3, 4])
    assert seen == [3, 8]
    for call in (
        lambda: util.safe_zip([1], []),
        lambda: util.safe_map(abs, [1], [2, 3]),
        util.safe_zip,
        lambda: util.split_list([1], [2]),
        lambda: util.merge_lists([True], [1], []),
        lambda: util.foreach(print, [1], []),
    ):
        with pytest.raises(ArgumentError):
            call()
    with pytest.raises(ValueError, match=r"longer|shorter"):
        util.partition_list([True], [1, 2])


def test_switches_as_objects() -> None:
    assert switches.enable_x64.value is False
    with switches.enable_x64(True):
        assert switches.enable_x64.value is config.enable_x64 is True
    assert config.enable_x64 is False
    assert switches.jax_export_calling_convention_version.value == 10
    with pytest.raises(AttributeError, match="no_such_switch"):
        _ = switches.no_such_switch
    with pytest.raises(TypeError, match="no truth value"):
        bool(switches.enable_x64)


def test_modules_of_rules_are_the_public_ones() -> None:
    for module in (ad, batching, mlir, partial_eval, xla):
        public = getattr(interpreters, module.__name__.rpartition(".")[2])
        names = [name for name in dir(module) if not name.startswith("_")]
        assert len(names) > 1
        shared = [name for name in names if hasattr(public, name)]
        assert len(shared) > 1
        assert all(getattr(module, name) is getattr(public, name) for name in shared)
    code = "from jax._src.interpreters import ad; import jax._src.interpreters.mlir as m; print(ad.defjvp, m.lower_fun)"
    done = subprocess.run([sys.executable, "-m", "pullback", "run", "-c", code], capture_output=True, text=True)
    assert "defjvp" in done.stdout, done.stderr


def test_a_rule_calls_a_function_of_the_runtime_by_name() -> None:
    distant_p = core.Primitive("distant")
    distant_p.def_abstract_eval(lambda x: x)

    def rule(ctx: object, x: object) -> object:
        call = mlir.custom_call("distant_function", result_types=[x.type], operands=[x], backend_config="how")
        return call.results

    mlir.register_lowering(distant_p, rule)
    text = jit(distant_p.bind).lower(1.0).as_text()
    assert "@distant_function(%arg0)" in text
    assert 'backend_config = "how"' in text
    with pytest.raises(UnsupportedExportError, match="distant_function"):
        export.export(jit(distant_p.bind))(1.0)
    check = export.DisabledSafetyCheck.custom_call("distant_function")
    assert export.export(jit(distant_p.bind), disabled_checks=[check])(1.0).disabled_safety_checks == (check,)


def test_the_larger_and_the_smaller_of_symbolic_sizes() -> None:
    a, b = export.symbolic_shape("a, b", constraints=["b >= 4"])
    assert str(served_core.max_dim(a, 3)) == "max(a, 3)"
    assert str(served_core.min_dim(a, b)) == "min(a, b)"
    assert served_core.max_dim(b, 3) == b
    assert served_core.min_dim(2, 5) == 2
