"""Subtle faults, one line each, that some test has to find.

Each of them changes what a user sees: a number, a dtype, an error, memory, a side effect. Most are a condition that
looks as if it could be left out. ``make mutants`` plants them one at a time; see ``CONTRIBUTING.md``.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Mutant(NamedTuple):
    """A fault.

    Attributes:
      name: what is wrong with it.
      file: where it is planted, from ``src/pullback``.
      old: a text that occurs in the file once.
      new: what takes its place.
      tests: what pytest is told to run; at least one of these has to fail.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def occurrences(self, directory: Path = ROOT) -> int:
        """How often the text that is replaced occurs in its file."""
        return self._path(directory).read_text().count(self.old)

    def apply(self, directory: Path) -> None:
        """Plant it in a copy of the source."""
        path = self._path(directory)
        path.write_text(path.read_text().replace(self.old, self.new))

    def _path(self, directory: Path) -> Path:
        return directory / "src" / "pullback" / self.file


MUTANTS = (
    Mutant("donate forwarded", "transforms/dispatch.py", "if not flags[leaf] or leaf in forwarded:", "if not flags[leaf]:", ("tests/transforms/test_jit.py::test_a_donated_array_that_is_handed_through_stays", )),
    Mutant("numpy alias", "core/array.py", "if x.flags.writeable or x.base is not None or x.dtype", "if x.flags.writeable or x.dtype", ("tests/numpy/test_interop.py::test_a_read_only_view_of_memory_that_may_change_is_copied", )),
    Mutant("scan invariant effect", "control/scan_primitive.py", "operands <= fixed and not grows and not eqn.effect:", "operands <= fixed and not grows:", ("tests/control/test_scan.py::test_effects_that_all_steps_share_happen_in_each", )),
    Mutant("jvp integer tangents", "transforms/forward.py", "        if not dtypes.is_inexact(x.dtype):\n            break", "        if dtypes.is_bool(x.dtype):\n            break", ("tests/transforms/test_bad_input.py::test_tangents_and_cotangents", )),
    Mutant("weak bool eager", "core/trace.py", 'if weak and not x.weak_type and x._value.dtype.kind != "b":', "if weak and not x.weak_type:", ("tests/test_lax.py::test_booleans_have_no_say_in_whether_a_result_is_weakly_typed", )),
    Mutant("weak bool staged", "core/jaxpr.py", 'elif a.dtype.kind != "b":  # booleans', "else:  # booleans", ("tests/test_lax.py::test_booleans_have_no_say_in_whether_a_result_is_weakly_typed", )),
    Mutant("weak operators", "numpy/operators.py", "result.weak_type = self.weak_type and other.weak_type", "result.weak_type = self.weak_type", ("tests/numpy/test_operators.py::test_results_are_weakly_typed_where_both_operands_are", )),
    Mutant("callback writes", "transforms/callbacks.py", "    value.flags.writeable = False", "    pass", ("tests/transforms/test_callbacks.py::test_operands_are_read_only_and_stay",)),
    Mutant("interning -0.0", "control/common.py", "repr(value) if type(value) in SCALARS", "value if type(value) in SCALARS", ("tests/control/test_scan.py", "tests/control/test_conditional.py")),
    Mutant("one op device", "backends/one_operation.py", "tuple(avals), device)", "tuple(avals))", ("tests/backends/test_client.py",)),
    Mutant("dtype promotion key", "core/config.py", '"numpy_rank_promotion", "numpy_dtype_promotion", "default_device",', '"numpy_rank_promotion", "default_device",', ("tests/transforms/test_jit.py", "tests/core", "tests/numpy/test_edge_cases.py")),
    Mutant("repeating all threads", "transforms/callbacks.py", "class _Repeating(threading.local):", "class _Repeating:", ("tests/transforms/test_callbacks.py", "tests/transforms/test_debugging.py")),
    Mutant("fori lower bound", "control/loops.py", "bool(limits.min <= least and most <= limits.max)", "bool(most <= limits.max)", ("tests/control/test_loops.py",)),
    Mutant("guard transpose", "control/guard.py", "where(_beside(needed, ct) if m else some, ct, 0) if is_linear(x)", "where(_beside(needed, ct), ct, 0) if m and is_linear(x)", ("tests/control/test_conditional.py", "tests/control/test_control_laws.py", )),
    Mutant("guard primal", "control/guard.py", "if m and dtypes.is_inexact(x.dtype):", "if m and dtypes.is_complex(x.dtype):", ("tests/control/test_conditional.py",)),
    Mutant("remat merged", "transforms/checkpoint_primitive.py", "options._replace(differentiated=options.differentiated or parts.recomputes)", "options._replace(differentiated=options.differentiated)", ("tests/transforms/test_checkpoint.py",)),
    Mutant("remat policy in jit", "transforms/checkpoint_primitive.py", 'tuple(unknown), False, eqn.params["policy"])', "tuple(unknown), False, None)", ("tests/transforms/test_checkpoint.py::test_policies_reach_into_compiled_functions_and_loops", "tests/transforms/test_checkpoint.py::test_the_program_of_a_gradient", )),
    Mutant("disk options", "backends/disk_cache.py", "settings = (processors, client.options_as_bytes(overrides))", "settings = (client.options_as_bytes(overrides),)", ("tests/backends/test_disk_cache.py::test_the_key_changes_with", )),
    Mutant("disk lru", "backends/disk_cache.py", "for _, length, path in sorted(programs):", "for _, length, path in programs:", ("tests/backends/test_disk_cache.py::test_what_has_not_been_used_for_longest_goes_first", )),
    Mutant("executable options", "backends/programs.py", "key = (hashlib.sha256(text.encode()).digest(), tuple(chosen), device)", "key = (hashlib.sha256(text.encode()).digest(), device)", ("tests/backends/test_disk_cache.py::test_the_key_changes_with_options_and_devices", "tests/backends/test_small_loops.py", "tests/transforms/test_jit.py::test_stages", )),
    Mutant("snapshot", "backends/programs.py", "client.put(x, kind.aval, default_device(), copy=True)", "client.put(x, kind.aval, default_device())", ("tests/backends/test_client.py::test_put_takes_a_snapshot", "tests/transforms/test_jit.py::test_a_result_that_is_an_argument_is_handed_through", )),
    Mutant("random odd", "primitives/random_bits.py", "upper = ops.where(ops.eq(upper, count), 0, upper) if count % 2 else upper", "upper = ops.where(ops.eq(upper, count), 0, upper) if count < 2 else upper", ("tests/random/test_random.py::test_figures", "tests/random/test_random.py::test_large_and_small_draws_have_the_same_layout", )),
    Mutant("random seed", "random/keys.py", "high = number >> 32 if dtypes.default_int().itemsize == 8 else 0", "high = number >> 32", ("tests/random/test_random.py::test_seeds", )),
    Mutant("truncated normal", "random/continuous.py", "return ops.min_p.bind(inside, ops.nextafter_p.bind(high, -math.inf))", "return inside", ("tests/random/test_random.py", )),
    Mutant("weak gradient", "transforms/grad.py", "return ArrayImpl(elements.dtype.type(1), value.weak_type)", "return ArrayImpl(elements.dtype.type(1))", ("tests/transforms/test_grad.py", )),
    Mutant("vmap chunks out_axes", "transforms/vmap.py", "concatenate(parts, e % len(parts[0].shape))", "concatenate(parts, max(e, 0))", ("tests/transforms/test_vmap.py::test_chunks", )),
    Mutant("while effects twice", "control/loops.py", "{name: without_effects(params[name]) for name in", "{name: params[name] for name in", ("tests/control/test_loops.py", "tests/transforms/test_callbacks.py::test_a_call_for_its_effects_happens_once", )),
    Mutant("cond effects lost", "control/conditional.py", "return [made] if outs or made.effect else []", "return [made] if outs else []", ("tests/control/test_conditional.py::test_effects_of_the_branch_that_is_taken", "tests/transforms/test_callbacks.py::test_a_call_for_its_effects_happens_once", )),
    Mutant("static type", "transforms/jit_arguments.py", "tuple((k, type(v), v) for k, v in self.static.items())", "tuple((k, v) for k, v in self.static.items())", ("tests/transforms/test_jit.py::test_static_arguments_by_position_name_and_default", )),
    Mutant("donate kwargs order", "transforms/jit_arguments.py", "for name in sorted(self.kwargs):", "for name in self.kwargs:", ("tests/transforms/test_jit.py::test_memory_that_somebody_looks_at_is_not_overwritten", "tests/transforms/test_jit.py::test_a_donated_array_is_gone", "tests/transforms/test_jit.py::test_donation_that_cannot_be_used_warns", )),
    Mutant("check_grads narrow", "test_util.py", "if given.rounding < 1e-10:", "if given.rounding < 1:", ("tests/test_test_util.py",)),
    Mutant("take_back clip", "primitives/scatter.py", "mode=GatherScatterMode.CLIP if clip else GatherScatterMode.FILL_OR_DROP", "mode=GatherScatterMode.FILL_OR_DROP", ("tests/primitives/test_gather_scatter.py", "tests/numpy/test_indexing.py")),
    Mutant("rules replaced", "transforms/custom_rules.py", "            self._staged = False", "            pass", ("tests/transforms/test_custom_definitions.py", "tests/transforms/test_custom_rules.py")),
    Mutant("rules replaced cached", "transforms/custom_rules.py", "        if self._staged:", "        if self._staged and not self.bwd:", ("tests/transforms/test_custom_definitions.py", "tests/transforms/test_custom_rules.py")),
    Mutant("nondiff key", "transforms/custom_rules.py", "call.key = (self, nondiff, in_tree)", "call.key = (self, in_tree)", ("tests/transforms/test_custom_rules.py", "tests/control")),
    Mutant("closed over tangents", "transforms/custom_calls.py", "if any(t is not ZERO for t in tangents[len(tangents) - self.captured :]):", "if False:", ("tests/transforms/test_custom_composition.py::test_closures_that_cannot_work_say_what_to_do", )),
    Mutant("recomputed scan effects", "control/checkpointed_scan.py", "= _adjoint(without_effects(scan.jaxpr),", "= _adjoint(scan.jaxpr,", ("tests/control/test_checkpointing.py", )),
    Mutant("isclose", "numpy/logic.py", "ops.mul(_like(x, rtol), ops.abs(y))", "ops.mul(_like(x, rtol), ops.abs(x))", ("tests/numpy/test_ufuncs.py",)),
)
