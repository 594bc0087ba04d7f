"""Write what JAX returns: ``python -m tests.recorded``, with JAX installed, and the families to record if not all."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np

from tests.recorded.cases import FAMILIES, Case, encoded, file_of, quantities


def of(case: Case) -> dict[str, list[Any]]:
    """What JAX returns for a case; nothing where it has no derivative, and none that are not finite."""
    found: dict[str, list[Any]] = {}
    for name, compute in quantities(jax, case).items():
        try:
            outs = [np.asarray(x) for x in compute()]
        except Exception as error:
            print(f"{case.name}, {name}: {type(error).__name__}")
            continue
        if name == "value" or all(np.isfinite(x).all() for x in outs):
            found[name] = [encoded(x) for x in outs]
    return found


def record(family: str) -> None:
    cases: list[Case] = import_module(f"tests.recorded.{family}").CASES
    assert len({case.name for case in cases}) == len(cases), "two cases have one name"
    found = {}
    for case in cases:
        with jax.enable_x64(case.x64):
            found[case.name] = of(case)
    text = json.dumps({"jax": jax.__version__, "cases": found}, separators=(",", ":"))
    file_of(family).write_text(text.replace('},"', '},\n"') + "\n")


def record_degenerate() -> None:
    """What JAX makes of derivatives where eigenvalues or singular values are equal."""
    from tests.recorded.degenerate import RECORDED, recorded_statuses

    compiled = SimpleNamespace(
        jit=jax.jit,
        grad=lambda f, argnums=0: jax.jit(jax.grad(f, argnums)),
        jvp=lambda f, xs, ts: jax.jit(lambda xs, ts: jax.jvp(f, xs, ts))(xs, ts),
    )
    with jax.enable_x64(True):
        statuses = recorded_statuses(compiled, jax.numpy, jax.lax.linalg)
    RECORDED.write_text(json.dumps({"jax": jax.__version__, "statuses": statuses}, indent=1) + "\n")


def record_calls() -> None:
    """What programs of JAX for GPUs and TPUs call. The platforms other than CUDA are recorded for matrices only.

    Programs that the file has already are kept: remove it to record them again.
    """
    from tests.recorded import calls

    kept = calls.known() if calls.FILE.exists() else {}
    found: dict[str, list[str] | str] = {}
    for family, case in calls.selected():
        with jax.enable_x64(case.x64):
            for mode, (f, args) in calls.functions(jax, case).items():
                old = {k: v for k, v in kept.items() if k.startswith(f"{family}/{case.name}/{mode}/")}
                found |= old
                if old:
                    continue
                try:
                    traced = jax.jit(f).trace(*args)
                except Exception as error:  # of a function of concrete values
                    print(f"{case.name}, {mode}: {type(error).__name__}")
                    continue
                for platform in calls.PLATFORMS if family in calls.MATRICES else ("cuda",):
                    name = calls.name_of(family, case, mode, platform)
                    try:
                        module = traced.lower(lowering_platforms=(platform,)).compiler_ir()
                        found[name] = calls.calls(module)
                    except NotImplementedError as error:
                        found[name] = str(error)
    calls.FILE.write_text(calls.written(jax.__version__, found))


def record_memories() -> None:
    """Where programs of JAX for GPUs and TPUs move values between memories; it is the same on all of them."""
    from tests.recorded import memories
    from tests.recorded.calls import PLATFORMS

    found = {}
    for name in memories.NAMES:
        found[name], *others = [memories.memories(memories.exported(jax, name, p)) for p in PLATFORMS]
        assert all(other == found[name] for other in others), name
    memories.FILE.write_text(json.dumps({"jax": jax.__version__, "programs": found}, indent=1) + "\n")


def record_targets() -> None:
    """The functions that the plug-in for CUDA registers. It has to be installed; a GPU is not needed."""
    from jaxlib import gpu_linalg, gpu_prng, gpu_rnn, gpu_solver, gpu_sparse, version

    from tests.recorded.calls import TARGETS_FILE

    modules = gpu_linalg, gpu_prng, gpu_solver, gpu_sparse
    names = {name for module in modules for name, _, _ in module.registrations()["CUDA"]}
    names |= set(gpu_rnn._cuda_rnn.registrations())
    handlers = set(gpu_solver.import_from_plugin("cuda", "cuda_plugin_extension").ffi_handlers())
    found = {"jaxlib": version.__version__, "targets": sorted(names), "of_the_runtime": sorted(handlers)}
    TARGETS_FILE.write_text(json.dumps(found, indent=1) + "\n")


for name in sys.argv[1:] or [*FAMILIES, "degenerate", "calls", "memories"]:
    if name in ("calls", "memories", "targets"):
        {"calls": record_calls, "memories": record_memories, "targets": record_targets}[name]()
    else:
        record_degenerate() if name == "degenerate" else record(name)
