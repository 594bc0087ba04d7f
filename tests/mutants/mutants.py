"""Subtle faults, one line each, that some test has to find.

Each of them changes what a user sees: a number, a dtype, an error, memory, a side effect. Most are a condition that
looks as if it could be left out. ``make mutants`` plants them one at a time; see ``docs/testing.md``.
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
    tests: list[str]

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
    # A compiled function deletes what it returns.
    Mutant(
        "donated results are deleted",
        "transforms/jit/stages.py",
        "if not flags[leaf] or leaf in forwarded:",
        "if not flags[leaf]:",
        ["tests/transforms/jit/test_jit.py::test_a_donated_array_that_is_handed_through_stays"],
    ),
    # The wrong array is deleted.
    Mutant(
        "donated keywords in the order of the call",
        "transforms/jit/jit_arguments.py",
        "for name in sorted(self.kwargs):",
        "for name in self.kwargs:",
        ["tests/transforms/jit/test_jit.py::test_donated_keywords_in_any_order"],
    ),
    # Immutable arrays change with the user's.
    Mutant(
        "arrays share NumPy's memory",
        "core/array.py",
        'np.array(x, dtype=dtype, order="C", subok=False)',
        'np.asarray(x, dtype=dtype, order="C")',
        ["tests/numpy/test_interop.py::test_a_read_only_view_of_memory_that_may_change_is_copied"],
    ),
    # A callback prints once instead of once a step.
    Mutant(
        "effects that all steps share happen once",
        "control/invariants.py",
        "stays = eqn.effect or eqn.primitive",
        "stays = eqn.primitive",
        ["tests/control/test_scan.py::test_effects_that_all_steps_share_happen_in_each"],
    ),
    # A callback prints twice.
    Mutant(
        "effects of divided loops happen twice",
        "control/while_primitive.py",
        '{"cond_jaxpr": without_effects(loop.cond_jaxpr), "body_jaxpr": without_effects(loop.body_jaxpr)}',
        '{"cond_jaxpr": loop.cond_jaxpr, "body_jaxpr": loop.body_jaxpr}',
        ["tests/control/test_loops.py::test_effects_of_a_loop_of_which_only_a_part_is_differentiated_happen_once"],
    ),
    # A callback of a branch is lost.
    Mutant(
        "effects of branches without results are lost",
        "transforms/programs/program_primitive.py",
        "return [eqn] if eqn.outvars or eqn.effect else []",
        "return [eqn] if eqn.outvars else []",
        ["tests/control/test_conditional.py::test_effects_of_branches_without_results"],
    ),
    # A callback prints once more for each step that is computed again.
    Mutant(
        "effects of recomputed steps happen again",
        "control/checkpointed_scan.py",
        "= linearize_jaxpr(quiet,",
        "= linearize_jaxpr(scan.jaxpr,",
        ["tests/control/test_checkpointing.py::test_effects_of_steps_that_are_computed_again_happen_once"],
    ),
    # Callbacks of other threads are lost.
    Mutant(
        "effects are left out in all threads",
        "transforms/programs/callbacks.py",
        "class _EagerMode(threading.local):",
        "class _EagerMode:",
        ["tests/transforms/programs/test_callbacks.py::test_effects_that_are_left_out_in_one_thread_happen_in_another"],
    ),
    # A callback writes in vain, without an error.
    Mutant(
        "callbacks may write to their operands",
        "transforms/programs/callbacks.py",
        "return read_only(value)",
        "return value",
        ["tests/transforms/programs/test_callbacks.py::test_operands_are_read_only_and_stay"],
    ),
    # A tangent of integers is taken, and a number comes out.
    Mutant(
        "jvp takes integers as tangents",
        "transforms/autodiff/jvp.py",
        "        if not dtypes.is_inexact(x.dtype):\n            break",
        "        if dtypes.is_bool(x.dtype):\n            break",
        ["tests/transforms/test_bad_input.py::test_tangents_and_cotangents"],
    ),
    # After `where` float16 becomes float32.
    Mutant(
        "a condition makes results strong, eager",
        "core/host_operands.py",
        'if weak and not x.weak_type and held.dtype.kind != "b":',
        "if weak and not x.weak_type:",
        ["tests/lax/test_lax.py::test_booleans_have_no_say_in_whether_a_result_is_weakly_typed"],
    ),
    # The same, compiled.
    Mutant(
        "a condition makes results strong, staged",
        "core/jaxpr.py",
        'elif a.dtype.kind != "b":  # booleans',
        "else:  # booleans",
        ["tests/lax/test_lax.py::test_booleans_have_no_say_in_whether_a_result_is_weakly_typed"],
    ),
    # In the next operation float32 becomes float16.
    Mutant(
        "operators ask the first operand alone",
        "numpy/operators.py",
        "result.weak_type = self.weak_type and other.weak_type\n                return result\n        elif",
        "result.weak_type = self.weak_type\n                return result\n        elif",
        ["tests/numpy/test_operators.py::test_results_are_weakly_typed_where_both_operands_are"],
    ),
    # The gradient by a Python number turns float16 into float32.
    Mutant(
        "gradients have the weak type of the result",
        "transforms/autodiff/grad.py",
        "if ct is ZERO or (types_of_values and is_user_value(x)) or ct.weak_type != x.weak_type:",
        "if ct is ZERO or (types_of_values and is_user_value(x)):",
        ["tests/transforms/autodiff/test_grad.py::test_gradients_have_the_dtype_and_shape_of_their_arguments"],
    ),
    # A loop runs with a zero of the other sign.
    Mutant(
        "programs with 0.0 and -0.0 are equal",
        "core/jaxpr_text.py",
        "repr(value) if type(value) in SCALARS",
        "value if type(value) in SCALARS",
        ["tests/control/test_scan.py::test_bodies_of_one_line_that_differ_in_the_sign_of_a_zero"],
    ),
    # A loop is differentiated by another call's rule.
    Mutant(
        "rules are equal whatever their fixed arguments",
        "transforms/custom/custom_rules.py",
        "call.rules = (self, nondiff, in_tree)",
        "call.rules = (self, in_tree)",
        ["tests/control/test_scan.py::test_bodies_of_one_line_whose_rules_differ_in_a_fixed_argument"],
    ),
    # Compiled functions keep the old rule.
    Mutant(
        "rules that are replaced stay",
        "transforms/custom/custom_rules.py",
        "        if self._staged:",
        "        if False:",
        ["tests/transforms/custom/test_custom_definitions.py::test_rules_are_replaced_in_compiled_functions_too"],
    ),
    # Calls with 2 and with 2.0 share a program.
    Mutant(
        "static arguments are equal across types",
        "transforms/jit/jit_arguments.py",
        "tuple((k, type(v), v) for k, v in self.static.items())",
        "tuple((k, v) for k, v in self.static.items())",
        ["tests/transforms/jit/test_jit.py::test_static_arguments_by_position_name_and_default"],
    ),
    # Strict promotion is not heeded by what was compiled before.
    Mutant(
        "promotion is not part of the key",
        "core/config.py",
        '"threefry_partitionable", "numpy_rank_promotion", "numpy_dtype_promotion",',
        '"threefry_partitionable", "numpy_rank_promotion",',
        ["tests/transforms/jit/test_jit.py::test_configuration_is_part_of_the_key"],
    ),
    # The same for operands of different ranks.
    Mutant(
        "promotion of ranks is not part of the key",
        "core/config.py",
        '"threefry_partitionable", "numpy_rank_promotion",',
        '"threefry_partitionable",',
        ["tests/transforms/jit/test_jit.py::test_configuration_is_part_of_the_key"],
    ),
    # A loop runs on the device that was the default before.
    Mutant(
        "the device is not part of the key",
        "backends/compiler/one_operation.py",
        "tuple(avals), device, placements)",
        "tuple(avals), placements)",
        [
            "tests/backends/compiler/test_client.py::test_loops_that_are_compiled_by_themselves_run_on_the_default_device"
        ],
    ),
    # A full cache drops what is in use.
    Mutant(
        "the cache drops any program",
        "backends/compiler/disk_cache.py",
        "for _, length, path in sorted(programs):",
        "for _, length, path in programs:",
        ["tests/backends/compiler/test_disk_cache.py::test_what_has_not_been_used_for_longest_goes_first"],
    ),
    # Compiled, everything is computed again.
    Mutant(
        "policies are forgotten within jit",
        "transforms/checkpoint/checkpoint_primitive.py",
        "None if policy is nothing_saveable else policy",
        "None",
        ["tests/transforms/checkpoint/test_checkpoint.py::test_policies_reach_into_compiled_functions_and_loops"],
    ),
    # Zero times infinity: gradients are NaN where another branch was taken.
    Mutant(
        "branches run on what they cannot take",
        "control/guard.py",
        "if m and dtypes.is_inexact(x.dtype):",
        "if m and dtypes.is_complex(x.dtype):",
        ["tests/control/test_conditional.py::test_gradients_stay_finite_where_a_branch_that_is_not_taken_is_singular"],
    ),
    # Chunks are joined along the wrong axis.
    Mutant(
        "out_axes=-1 of chunks is 0",
        "transforms/autodiff/vmap.py",
        "concatenate(xs, e % len(xs[0].shape))",
        "concatenate(xs, max(e, 0))",
        ["tests/transforms/autodiff/test_vmap.py::test_chunks"],
    ),
    # Gradients of updates that were moved inside are zero.
    Mutant(
        "updates that are moved inside have no derivative",
        "primitives/arrays/scatter.py",
        "mode=GatherScatterMode.CLIP if clip else GatherScatterMode.FILL_OR_DROP",
        "mode=GatherScatterMode.FILL_OR_DROP",
        ["tests/numpy/test_indexing.py::test_derivatives_by_updates_that_are_moved_inside"],
    ),
    # A bound is drawn, where log(high - x) is -inf.
    Mutant(
        "truncated normals reach their bound",
        "random/continuous.py",
        "ops.min_p.bind(inside, ops.nextafter_p.bind(high, -math.inf)), out_sharding",
        "inside, out_sharding",
        ["tests/random/test_random.py::test_truncated_normals_never_are_their_bounds"],
    ),
    # A sample depends on whether it is traced.
    Mutant(
        "an odd number of words ends otherwise",
        "primitives/random/bits.py",
        "upper = ops.where(ops.eq(upper, count), 0, upper) if count % 2 else upper",
        "upper = ops.where(ops.eq(upper, count), 0, upper) if count < 2 else upper",
        ["tests/random/test_random.py::test_large_and_small_draws_have_the_same_layout"],
    ),
    # Overflow in float32 is not found.
    Mutant(
        "check_grads looks in float64 alone",
        "test_util.py",
        "if given.rounding < 1e-10:",
        "if given.rounding < 1:",
        ["tests/top_level/test_test_util.py::TestWhatIsWrong::test_only_in_the_dtype_of_the_arguments"],
    ),
    # A result is written into the memory of a view of an operand.
    Mutant(
        "views do not keep their memory",
        "transforms/preaccumulation/on_host.py",
        "own.pop(a, None)",
        "own.get(a)",
        ["tests/transforms/preaccumulation/test_economical_programs.py::test_memory_that_a_view_has_is_not_written_to"],
    ),
    # NaN where a recurrence that runs backwards starts with zeros.
    Mutant(
        "masked recurrences run forwards",
        "primitives/reductions.py",
        "before = shift(cumsum(some, axis, reverse), axis, 0, reverse)",
        "before = shift(cumsum(some, axis), axis, 0)",
        ["tests/transforms/test_masked_zeros.py::test_states_stay_zero_until_there_is_something"],
    ),
    # Standard errors of few samples are too small.
    Mutant(
        "the variance of estimates is that of all samples",
        "derivatives/estimates.py",
        "(count * (count - 1))",
        "(count * count)",
        ["tests/derivatives/test_estimates.py::test_the_standard_error_is_that_of_a_mean_of_few_samples"],
    ),
    # Coefficients of products with broadcasting are those of other elements.
    Mutant(
        "rows of coefficients are multiplied whatever their shapes",
        "primitives/power_series.py",
        "if shape != y.known[0].shape:",
        "if x.known[0].size != y.known[0].size:",
        ["tests/derivatives/test_jets.py::test_small_arrays_and_large_ones"],
    ),
    # Where the base is zero, coefficients by half a number are finite.
    Mutant(
        "powers by any exponents are products",
        "primitives/elementwise.py",
        "eq(exponent, convert_element_type(floor_p.bind(exponent_re), exponent.dtype)))",
        "eq(exponent, exponent))",
        ["tests/derivatives/test_jets.py::test_powers_at_zero"],
    ),
    # Of a composition some products are left out, which a line does not have.
    Mutant(
        "compositions begin a coefficient later",
        "primitives/power_series.py",
        "_terms(powers[-1], rest[0], k, len(powers))",
        "_terms(powers[-1], rest[0], k, len(powers) + 1)",
        ["tests/derivatives/test_jets.py::test_hypergeometric_functions_along_curves"],
    ),
    # Coefficients of polynomials are not a number.
    Mutant(
        "sums that end are multiplied by infinity",
        "scipy/special/hypergeometric_series.py",
        "point = ops.where(ended, 0, shapes.broadcast_to(x, factor.shape))",
        "point = shapes.broadcast_to(x, factor.shape)",
        [
            "tests/derivatives/test_jets.py::"
            "test_polynomials_have_coefficients_where_other_hypergeometric_functions_are_infinite"
        ],
    ),
    # Of coefficients by the parameters some digits are left out.
    Mutant(
        "sums of series end where those of values do",
        "scipy/special/hypergeometric.py",
        "_SMALL_IN_SERIES = 1e-30",
        "_SMALL_IN_SERIES = 1e-19",
        ["tests/derivatives/test_taylor_coefficients.py::test_coefficients_are_those_of_mpmath"],
    ),
    # Coefficients along a curve of the order are those along a line.
    Mutant(
        "orders of Bessel functions move along a line",
        "scipy/special/bessel_series.py",
        "return composition(Series([ans[0]], of_formula), nu)",
        "return of_formula",
        ["tests/derivatives/test_jets.py::test_bessel_functions_along_curves_of_the_order"],
    ),
    # Of second derivatives by a parameter, where x is above the mean, some coefficients are wrong.
    Mutant(
        "a product's derivative of any order counts once",
        "primitives/special/incomplete.py",
        "factor, more = where(above, a, 1), where(above, _all(order, x), 0)",
        "factor, more = where(above, a, 1), where(above, _all(1, x), 0)",
        ["tests/derivatives/test_jets.py::test_derivatives_by_parameters_have_coefficients"],
    ),
    # Derivatives of an integrand fall more slowly than it does.
    Mutant(
        "integrands of series are cut off where values are",
        "primitives/special/incomplete.py",
        "_SERIES_BELOW, _SPLIT = 72.0, 1 / 6",
        "_SERIES_BELOW, _SPLIT = 38.0, 1 / 6",
        ["tests/derivatives/test_taylor_coefficients.py::test_coefficients_are_those_of_mpmath"],
    ),
    # The memory of coefficients waits for a collection.
    Mutant(
        "series that refer to each other stay",
        "transforms/traces/taylor.py",
        "                        x.series.next = None\n",
        "                        pass\n",
        ["tests/derivatives/test_jets.py::test_series_are_freed_at_once"],
    ),
    # Second derivatives by two operands count half.
    Mutant(
        "mixed derivatives count once in a Laplacian",
        "transforms/traces/laplacian.py",
        "rows[b] if a == b else mul(2, rows[b])",
        "rows[b]",
        ["tests/derivatives/test_laplacians.py::test_laplacian_is_the_trace_of_the_hessian"],
    ),
    # Elements of a sparse Jacobian with the wrong sign.
    Mutant(
        "what a difference takes away is not negated where the rest is zero",
        "derivatives/patterns/reading.py",
        "if traits.signs.of(eqn.primitive)[which] < 0:",
        "if False:",
        ["tests/derivatives/patterns/test_reading.py::test_elements_are_those_of_the_whole"],
    ),
    # Elements of a sparse Jacobian that are sums of two.
    Mutant(
        "a column whose element is not read shares a colour",
        "derivatives/patterns/bidirectional.py",
        "taken |= seen[members[e]] if read[e] else seen_read[members[e]]",
        "taken |= seen_read[members[e]]",
        [
            "tests/derivatives/patterns/test_sparse_colourings.py::test_elements_that_are_read_from_either_side_are_apart"
        ],
    ),
    # A pattern without some elements.
    Mutant(
        "a loop step takes the elements of the first",
        "derivatives/patterns/programs.py",
        "theirs = boolean.select(rows, np.arange(start * sizes[i], stop * sizes[i]))",
        "theirs = boolean.select(rows, np.arange((stop - start) * sizes[i]))",
        ["tests/derivatives/patterns/test_sparse_patterns.py::test_loops_with_constants_carries_and_elements"],
    ),
    # A derivative of zero, without a word.
    Mutant(
        "Python takes the value of a number that is being differentiated",
        "transforms/traces/forward.py",
        "    def differentiated(self) -> Tracer | None:\n        return self\n",
        "    def differentiated(self) -> Tracer | None:\n        return None\n",
        ["tests/transforms/test_values_taken.py::test_the_error_is_of_the_kind_of_jax"],
    ),
    # The same, of a compiled program that does not need what the function returns.
    Mutant(
        "a callback that closes over a traced value is left out",
        "transforms/programs/callbacks.py",
        "if state.trace.eager or not _closes_over_traced(callback)",
        "if True",
        ["tests/transforms/test_values_taken.py::test_a_derivative_is_right_or_refused"],
    ),
    Mutant(
        "a mapped value hides that it is being differentiated",
        "transforms/traces/batch.py",
        "return self.value.differentiated() if isinstance(self.value, Tracer) else None",
        "return None",
        [
            "tests/transforms/custom/test_custom_rules.py::test_a_traced_array_as_argument_that_is_not_differentiated_of_a_custom_jvp"
        ],
    ),
    Mutant(
        "a fill that is traced fills nothing",
        "primitives/arrays/gather.py",
        "np.dtype(bool)), indices, fill_value=False, **params)",
        "np.dtype(bool)), indices, fill_value=True, **params)",
        ["tests/laws/test_numeric_parameters.py::test_a_fill_has_its_derivative"],
    ),
    # A number of another dtype.
    Mutant(
        "NumPy is given a Python number beside a type that it does not know",
        "core/trace.py",
        "elif type(y) in SCALARS and a.dtype.isbuiltin == 1:",
        'elif type(y) in SCALARS and a.dtype.kind != "V":',
        ["tests/numpy/test_python_numbers.py::test_a_python_number_gives_way"],
    ),
    # Types that are not those of the file.
    Mutant(
        "a type of a damaged file may have a number that is not there",
        "export/jax_format.py",
        "if any(i >= len(table) for i in numbers):",
        "if False:",
        ["tests/export/test_jax_exports.py::test_damaged_files_are_refused_or_say_the_same"],
    ),
    # What only a law over all operations found, and faults that no test had found.
    Mutant(
        "axes of a derivative tensor swapped",
        "derivatives/mixed.py",
        "tensor = pnp.moveaxis(partial[positions], [*range(order)], [*range(-order, 0)])",
        "tensor = pnp.moveaxis(partial[positions], [*range(-order, 0)], [*range(order)])",
        ["tests/derivatives/test_mixed.py::test_of_sizes_that_differ"],
    ),
    Mutant(
        "an integer type of 65 bits",
        "core/dtypes.py",
        "for bits in (8, 16, 32, 64)[: 3 + x64]:",
        "for bits in (8, 16, 32, 65)[: 3 + x64]:",
        [
            "tests/core/test_dtypes.py::test_the_integers_that_hold_two_others",
            "tests/numpy/test_ufuncs.py::test_signed_and_unsigned_integers_of_64_bits_are_compared_by_value",
        ],
    ),
    Mutant(
        "chunks of rows that do not divide",
        "derivatives/estimates.py",
        "whole = size - size % chunk_size",
        "whole = size",
        ["tests/derivatives/test_estimates.py::test_chunks_change_nothing_but_memory"],
    ),
    Mutant(
        "any kind of check with a target",
        "export/checks.py",
        'if text != "platform" and not (kind == "custom_call" and target):',
        'if text != "platform" and not (kind == "custom_call" or target):',
        ["tests/export/test_export.py::test_checks_that_there_are_not"],
    ),
    Mutant(
        "every constant divisor is hidden",
        "backends/hlo/builder.py",
        "return not 0 < size < np.inf or float(info",
        "return not 0 < size < np.inf and float(info",
        [
            "tests/backends/compiler/test_constant_programs.py::test_a_divisor_is_hidden_if_its_reciprocal_is_no_ordinary_number"
        ],
    ),
    Mutant(
        "programs that do not look at devices",
        "transforms/jit/stages.py",
        "if isinstance(entry, Compiled) and not entry.fits_shardings:",
        "if isinstance(entry, Compiled) and entry.fits_shardings:",
        ["tests/backends/devices/test_devices.py::test_programs_look_at_devices_once_a_second_one_is_in_use"],
    ),
    Mutant(
        "status of a small step",
        "scipy/optimize/least_squares.py",
        "(status < -1) & finite & small, 3, status)",
        "(status < -1) & finite & small, 4, status)",
        ["tests/scipy/optimize/test_optimize.py::test_the_status_of_least_squares_says_what_ended_it"],
    ),
    Mutant(
        "indices beyond 52 letters collide",
        "numpy/einstein.py",
        "else 71 + i if i < 52 else 140 + i)",
        "else 71 + i if i < 52 else 71 + i % 52)",
        ["tests/numpy/test_contraction.py::test_indices_of_many_letters"],
    ),
    Mutant(
        "keys of branches taken for the first one's",
        "random/key_reuse.py",
        "same = first.exact is not None and all(",
        "same = first.exact is None or all(",
        ["tests/random/test_key_reuse.py::test_a_use_is_counted_once"],
    ),
    Mutant(
        "rows of a Jacobian through a scatter with its constants",
        "transforms/traces/laplacian.py",
        "    if len(part.joint) > 1:  # the derivative rule",
        "    if len(active) > 1:  # the derivative rule",
        ["tests/derivatives/test_laplacians.py::test_of_what_is_affine"],
    ),
    Mutant(
        "a Jacobian of integers",
        "transforms/traces/laplacian.py",
        "    if not dtypes.is_inexact(out.dtype):\n        return LaplacianTriple(out)\n",
        "",
        ["tests/derivatives/test_laplacians.py::test_of_what_is_affine"],
    ),
    Mutant(
        "a fill value in coefficients",
        "core/linearity.py",
        "LinearPart(joint, params if without is None else without(**params))",
        "LinearPart(joint, params)",
        ["tests/derivatives/test_jets.py::test_a_fill_value_is_in_no_coefficient"],
    ),
    Mutant(
        "sums of products linear in both factors",
        "primitives/power_series.py",
        "return None if any(len(varying) > 1 for varying in factors) else [i for (i,) in factors]",
        "return [i for varying in factors for i in varying]",
        ["tests/derivatives/test_laplacians.py::test_of_a_product_within_a_coefficient"],
    ),
    Mutant(
        "a basis of no numbers",
        "derivatives/modes.py",
        "    if not arrays:\n        return []\n",
        "",
        ["tests/derivatives/test_modes.py::test_of_results_without_numbers"],
    ),
    # A function that is differentiated when its surroundings are gone.
    Mutant(
        "a recorded function is called again in the backward pass",
        "transforms/checkpoint/recording.py",
        "        if self._again is not None:",
        "        if False:",
        [
            "tests/transforms/checkpoint/test_checkpoint.py::test_a_function_whose_surroundings_are_gone_in_the_backward_pass"
        ],
    ),
    Mutant(
        "a checkpointed function within another keeps what it computes until the other is done",
        "transforms/checkpoint/recording.py",
        "            return trace.region(options, call)",
        "            return call()",
        ["tests/transforms/checkpoint/test_checkpoint.py::test_checkpoints_within_checkpoints_hold_less"],
    ),
    # Numbers, types and defaults.
    Mutant(
        "signs of permutations in cofactors",
        "primitives/linalg/determinants.py",
        "-1 if inversions % 2 else 1",
        "1",
        ["tests/primitives/linalg/test_lu.py::test_determinants_have_derivatives_of_every_order"],
    ),
    Mutant(
        "the rule of svd hands on other values",
        "primitives/linalg/svd.py",
        "return [values, u, vh], [values_tangent",
        "return [s, u, vh], [values_tangent",
        ["tests/primitives/linalg/test_degenerate.py::test_a_whole_hessian_where_singular_values_are_zero"],
    ),
    Mutant(
        "functions of a Hermitian matrix transposed without a transpose",
        "control/matrix_function.py",
        "matrix_transpose(matrix_function_along_p.bind(matrix_transpose(ct), a, *rest, **params))",
        "matrix_function_along_p.bind(ct, a, *rest, **params)",
        ["tests/control/test_matrix_function.py::test_complex_matrices"],
    ),
    Mutant(
        "integers wrap before they become floats",
        "numpy/promotion.py",
        "    dtype = dtypes.to_inexact(dtype)\n"
        "    return [x if x.dtype == dtype else convert_element_type(x, dtype, weak) for x in arrays]",
        "    arrays = [convert_element_type(x, dtype, weak) for x in arrays]\n"
        "    dtype = dtypes.to_inexact(dtype)\n"
        "    return [convert_element_type(x, dtype, weak) for x in arrays]",
        ["tests/numpy/test_mixed_integers.py::test_integers_without_sign_beside_signed_ones_keep_their_values"],
    ),
    Mutant(
        "weighted rows are summed by the library",
        "backends/hlo/weighted_sums.py",
        'if kind in ("multiply", "divide") and either & _REPEATED:',
        "if False:",
        ["tests/primitives/test_reductions.py::test_compiled_sums_of_products_beside_their_factors"],
    ),
    Mutant(
        "an identity that loses a NaN",
        "primitives/elementwise.py",
        "return select_n(x, zero, one)",
        "return convert_element_type(x, dtype)",
        ["tests/transforms/test_made_in_programs.py::test_a_product_with_the_identity_keeps_its_nan"],
    ),
    Mutant(
        "what a program makes is kept with it",
        "primitives/arrays/shapes.py",
        "not trace.quick and (not trace.eager or default_is_elsewhere())",
        "not trace.quick and default_is_elsewhere()",
        ["tests/transforms/test_made_in_programs.py::test_programs_keep_no_array_that_they_make"],
    ),
    Mutant(
        "the clock decides which call is compiled",
        "core/config.py",
        '    tiered: str = "off"',
        '    tiered: str = "auto"',
        ["tests/backends/compiler/test_compiling_processes.py::test_by_default_the_clock_decides_nothing"],
    ),
    Mutant(
        "an index that has a mode is an error",
        "primitives/arrays/windows.py",
        "mode is GatherScatterMode.FILL_OR_DROP)]",
        "False)]",
        ["tests/transforms/checks/test_indices.py::test_what_is_in_range_or_meant_is_none"],
    ),
    Mutant(
        "an insertion at traced positions",
        "numpy/editing.py",
        "ops.sub(slicing.iota(where.dtype, (n + count,), 0), reductions.cumsum(occupied))",
        "ops.sub(slicing.iota(where.dtype, (n + count,), 0), occupied)",
        ["tests/numpy/test_forms_of_arguments.py::test_insert_at_traced_positions"],
    ),
    Mutant(
        "pivots are compared without their rows",
        "lax/perturbed_tridiagonal.py",
        "exchange = (c != 0) & (_size(c) * scale > _size(a) * scale2)",
        "exchange = (c != 0) & (_size(c) > _size(a))",
        ["tests/lax/test_perturbed_tridiagonal.py::test_singular_matrices"],
    ),
    # The real part of a value is the value, whose buffer then receives another.
    Mutant(
        "the buffer of an operand is used again though the result is a view of it",
        "backends/host/pending.py",
        "                buffer_of.pop(id(x), None)",
        "                pass",
        ["tests/backends/host/test_pending.py::test_a_view_of_an_operand_outlives_it"],
    ),
    Mutant(
        "an expression keeps any number of arrays alive",
        "backends/host/pending.py",
        "(len(arrays) > 1 and sum(arrays.values()) > found.most_kept)",
        "False",
        ["tests/backends/host/test_pending.py::test_expressions_are_bounded_in_the_bytes_that_they_keep"],
    ),
    Mutant(
        "results of arrays in another order are in row-major order",
        "backends/host/pending.py",
        "out._value.transpose(inverse)",
        "np.ascontiguousarray(out._value.transpose(inverse))",
        ["tests/backends/host/test_pending.py::test_operations_on_arrays_in_another_order"],
    ),
    Mutant(
        "softmax along any axis takes rows",
        "backends/host/native.py",
        "    is_last = bool(axes) and axes == tuple(range(first, len(shape)))",
        "    is_last = bool(axes)",
        ["tests/nn/test_nn.py::test_softmax_of_large_arrays"],
    ),
    Mutant(
        "a choice by the module in C is the other one",
        "backends/host/rules.py",
        'own.apply(f"select {dtype.itemsize}", dtype, which, x, y)',
        'own.apply(f"select {dtype.itemsize}", dtype, which, y, x)',
        ["tests/backends/host/test_own.py::test_choices"],
    ),
    Mutant(
        "results of transposed arrays are in row-major order if they are pending",
        "backends/host/pending.py",
        "            if type(x) is np.ndarray and not _is_row_major(x):",
        "            if type(x) is np.ndarray and False:",
        ["tests/backends/host/test_pending.py::test_results_have_the_order_of_their_operands"],
    ),
    Mutant(
        "memory that a program has read stays until the next call of one",
        "backends/host/aligned.py",
        "        runtime.memory_needed()",
        "        pass",
        ["tests/backends/host/test_aligned.py::test_memory_that_a_program_has_read_is_free_when_the_next_is_needed"],
    ),
    Mutant(
        "a buffer of a block is used again while its elements are needed",
        "backends/host/native.py",
        "                if last[x] == k and self.sources[x] is None and x not in written:",
        "                if self.sources[x] is None and x not in written:",
        ["tests/backends/host/test_pending.py::test_functions_have_the_same_bits"],
    ),
    Mutant(
        "a result that is an operand is written over it",
        "backends/host/native.py",
        "        if self.sources[x] is None and x not in taken:",
        "        if x not in taken:",
        ["tests/backends/host/test_pending.py::test_functions_have_the_same_bits"],
    ),
    Mutant(
        "rows are reduced as if there were one piece",
        "backends/host/native.py",
        "    if out.shape[1] == 1:\n        return out[:, 0]",
        "    if True:\n        return out[:, 0]",
        ["tests/backends/host/test_native.py::test_rows_are_reduced"],
    ),
    Mutant(
        "a choice without branches takes the wrong one",
        "backends/host/rules.py",
        "    out = np.bitwise_and(a ^ b, mask)",
        "    out = np.bitwise_and(a | b, mask)",
        ["tests/backends/host/test_rules.py::test_choices_among_many_elements"],
    ),
    Mutant(
        "equal numbers of two types are one operand",
        "transforms/jit/call_operands.py",
        "key = (config.trace_context, type(x), x)",
        "key = (config.trace_context, x)",
        ["tests/transforms/jit/test_call_operands.py::test_equal_numbers_of_different_types_are_different_operands"],
    ),
    Mutant(
        "complex numbers are pending",
        "backends/host/pending.py",
        'dtype.isbuiltin == 1 and dtype.kind in "fiub" and',
        'dtype.isbuiltin == 1 and dtype.kind in "fiubc" and',
        ["tests/backends/host/test_pending.py::test_programs_have_the_same_bits"],
    ),
    Mutant(
        "the sign of -0.0 is 0.0",
        "backends/host/rules.py",
        "return np.where(x == 0, x, np.sign(x)).astype(x.dtype, copy=False)",
        "return np.sign(x)",
        ["tests/numpy/test_ufuncs.py::test_the_sign_of_a_zero_is_that_zero_in_lax_alone"],
    ),
    Mutant(
        "NaN counts as an infinity",
        "compat/extras/_src/dtypes.py",
        "return bool(np.isinf(np.asarray(np.inf, np.float32)",
        "return bool(not np.isfinite(np.asarray(np.inf, np.float32)",
        ["tests/compat/test_inner_names.py::test_dtypes"],
    ),
    Mutant(
        "sums of weak literals are weak",
        "compat/extras/_src/literals.py",
        "        self.weak_type = False  # results",
        "        self.weak_type = getattr(other, 'weak_type', False)  # results",
        ["tests/compat/test_inner_names.py::test_arrays_that_know_whether_they_are_weak"],
    ),
    Mutant(
        "lists are merged by flags of the other sense",
        "compat/extras/_src/util.py",
        "(len(bs) - sum(bs), sum(bs)):",
        "(sum(bs), len(bs) - sum(bs)):",
        ["tests/compat/test_inner_functions.py::test_functions_of_lists"],
    ),
    Mutant(
        "tracebacks begin in the runner",
        "compat/running.py",
        "error.__traceback__ = _of_the_program(error.__traceback__)",
        "pass",
        ["tests/compat/test_running.py::test_an_exception_is_shown_from_the_first_line_of_the_program_on"],
    ),
    Mutant(
        "probing for private attributes is reported",
        "compat/serving.py",
        'if asker is not None and name[:1] != "_":',
        "if asker is not None:",
        ["tests/compat/test_running.py::test_attributes_that_tools_look_for_are_not_reported"],
    ),
    Mutant(
        "a parameter without a gradient becomes NaN",
        "example_libraries/optimizers.py",
        "    return pnp.where(positive, 1 / pnp.sqrt(pnp.where(positive, x, 1)), 0.0)",
        "    return 1 / pnp.sqrt(x)",
        ["tests/example_libraries/test_example_libraries.py::test_parameters_whose_gradients_have_all_been_zero_stay"],
    ),
    Mutant(
        "a polynomial decay goes on after its last step",
        "example_libraries/optimizers.py",
        "(1 - pnp.minimum(i, decay_steps) / decay_steps)",
        "(1 - i / decay_steps)",
        ["tests/example_libraries/test_example_libraries.py::test_sizes_of_steps"],
    ),
    Mutant(
        "gradients are clipped where they are small",
        "example_libraries/optimizers.py",
        "pnp.where(norm < max_norm, g,",
        "pnp.where(norm > max_norm, g,",
        ["tests/example_libraries/test_example_libraries.py::test_gradients_are_clipped"],
    ),
    Mutant(
        "a step size changes at the boundary, not after it",
        "example_libraries/optimizers.py",
        "return lambda i: sizes[pnp.sum(i > limits)]",
        "return lambda i: sizes[pnp.sum(i >= limits)]",
        ["tests/example_libraries/test_example_libraries.py::test_sizes_of_steps"],
    ),
    Mutant(
        "Nesterov's step looks a step less ahead",
        "example_libraries/optimizers.py",
        "return x - size(i) * (mass * velocity + g), velocity",
        "return x - size(i) * (velocity + g), velocity",
        ["tests/example_libraries/test_example_libraries.py::test_four_steps"],
    ),
    Mutant(
        "the mean of squares is corrected by the other rate",
        "example_libraries/optimizers.py",
        "root = pnp.sqrt(squares / (1 - pnp.asarray(b2, mean.dtype) ** (i + 1)))",
        "root = pnp.sqrt(squares / (1 - pnp.asarray(b1, mean.dtype) ** (i + 1)))",
        ["tests/example_libraries/test_example_libraries.py::test_four_steps"],
    ),
    Mutant(
        "one tolerance of zero is refused",
        "experimental/ode.py",
        "numbers[:2] == [0, 0]",
        "0 in numbers[:2]",
        ["tests/experimental/test_ode.py::test_one_of_the_tolerances_may_be_zero"],
    ),
    Mutant(
        "equal times are refused",
        "experimental/ode.py",
        "~(values[1:] >= values[:-1])",
        "~(values[1:] > values[:-1])",
        ["tests/experimental/test_ode.py::test_times"],
    ),
    Mutant(
        "the backward direction stays reversed",
        "experimental/rnn.py",
        "_reordered(out, order) if direction else out",
        "out",
        ["tests/experimental/test_rnn.py::test_values"],
    ),
    Mutant(
        "cells go on after the end of a sequence",
        "experimental/rnn.py",
        "carry = pnp.where(alive, new_h, h), pnp.where(alive, new_c, c)",
        "carry = pnp.where(alive, new_h, h), new_c",
        ["tests/experimental/test_rnn.py::test_values"],
    ),
    Mutant(
        "the second layer takes one direction",
        "experimental/rnn.py",
        "if i < directions else directions * hidden_size)",
        "if i < directions else hidden_size)",
        ["tests/experimental/test_rnn.py::test_weights"],
    ),
    Mutant(
        "padding divided by zero",
        "experimental/sparse/arithmetic.py",
        "return pnp.where(known, data, 0) / pnp.where(known, bcoo_multiply_dense(ones, y), 1)",
        "return data / bcoo_multiply_dense(ones, y)",
        ["tests/experimental/sparse/test_sparse.py::test_padding_is_not_divided_by_zero"],
    ),
    Mutant(
        "exported functions are differentiated once",
        "export/call.py",
        "return function(*arrays), arrays  # the",
        "return flat(*arrays), arrays  # the",
        ["tests/export/test_export.py::test_derivatives_are_those_that_were_written"],
    ),
    Mutant(
        "unused arguments shift the others",
        "export/call.py",
        "used = [operands[i] for i in exported.module_kept_var_idx]",
        "used = list(operands)[-len(exported.module_kept_var_idx):]",
        ["tests/export/test_export.py::test_another_process_calls_what_was_written"],
    ),
    Mutant(
        "a platform twice",
        "export/exported.py",
        "if unknown or len(set(found)) < len(found):",
        "if unknown:",
        ["tests/export/test_export.py::test_platforms_are_checked"],
    ),
    Mutant(
        "an operand that is not mapped is not repeated",
        "extend/__init__.py",
        "return front(x, dim, axis)",
        "return front(x, dim or 0, axis)",
        ["tests/extend/test_extend.py::test_every_program_of_a_page_prints_what_it_says"],
    ),
    Mutant(
        "scalars of float16 are no arrays",
        "extend/core/__init__.py",
        '"?bhilBHILefdFD"',
        '"?bhilBHILfdFD"',
        ["tests/extend/test_extend.py::test_scalars_of_every_size_are_arrays"],
    ),
    Mutant(
        "integers have integer tangents",
        "extend/core/__init__.py",
        "_dtypes.tangent_dtype(np.dtype(primal_dtype))",
        "np.dtype(primal_dtype)",
        ["tests/interpreters/test_own_interpreters.py::test_values"],
    ),
    Mutant(
        "a mapped axis without a name is one in scope",
        "extend/core/__init__.py",
        "return bool(_inspection.named_axes())",
        "return _inspection.within(_BatchTrace)",
        ["tests/interpreters/test_own_interpreters.py::test_what_is_at_work"],
    ),
    Mutant(
        "locations lack their named scopes",
        "extend/source_info_util.py",
        "_source.here(), _state.scope)",
        "_source.here(), type(_state.scope)())",
        ["tests/compat/test_inner_names.py::test_operations_are_written_where_the_user_calls_a_library"],
    ),
    Mutant(
        "a vector of another dtype is refused",
        "flatten_util.py",
        "if mixed and dtype != self.dtype:",
        "if dtype != self.dtype:",
        ["tests/top_level/test_flatten_util.py::test_leaves_of_one_dtype_take_that_of_the_vector"],
    ),
    Mutant(
        "norms of complex gradients lose their digits",
        "gradient_helpers.py",
        "dtypes.is_complex(dtype) or dtype.itemsize > 2 else pnp.float32",
        "True else pnp.float32",
        ["tests/top_level/test_gradient_helpers.py::test_clipping_the_norm_of_complex_and_narrow_gradients"],
    ),
    Mutant(
        "a factor of a gradient has a derivative",
        "gradient_helpers.py",
        "factor = stop_gradient(primals[1])",
        "factor = primals[1]",
        ["tests/top_level/test_gradient_helpers.py::test_a_learned_factor_is_a_constant"],
    ),
    Mutant(
        "a sum of zero and a tangent is zero",
        "interpreters/ad.py",
        "        return y\n    return x if type(y) is Zero",
        "        return x\n    return x if type(y) is Zero",
        ["tests/interpreters/test_interpreters.py::test_an_implementation_by_other_operations"],
    ),
    Mutant(
        "zero tangents of integers are integers",
        "core/zeros.py",
        "return Zero(typeof(x).to_tangent_aval())",
        "return Zero(typeof(x))",
        ["tests/interpreters/test_interpreters.py::test_sums_of_tangents_and_zeros"],
    ),
    Mutant(
        "rules of users are called with zeros",
        "interpreters/ad.py",
        "if rule is not None and type(t) is not Zero\n",
        "if rule is not None\n",
        ["tests/interpreters/test_interpreters.py::test_defjvp_and_its_second_form"],
    ),
    Mutant(
        "operands that are not mapped have an axis less",
        "interpreters/batching.py",
        "max(len(shape_of(x)) - (d is not None) for",
        "max(len(shape_of(x)) - 1 for",
        [
            "tests/interpreters/test_interpreters.py::test_an_operand_that_is_not_mapped_may_have_more_axes_than_the_others"
        ],
    ),
    Mutant(
        "axes that count from the end are not moved",
        "interpreters/batching.py",
        "shapes.moveaxis(x, src % ndim, dst % ndim)",
        "shapes.moveaxis(x, src, dst)",
        ["tests/interpreters/test_interpreters.py::test_axes_are_moved_from_the_end_too"],
    ),
    Mutant(
        "an input that is needed is dropped",
        "interpreters/partial_eval.py",
        "        if used != kept:",
        "        if False:",
        ["tests/interpreters/test_own_interpreters.py::test_programs_of_flat_functions"],
    ),
    Mutant(
        "a recall of zero",
        "lax/reductions.py",
        "or not 0 < recall_target <= 1:",
        "or not 0 <= recall_target <= 1:",
        ["tests/lax/test_operations.py::test_what_does_not_fit_is_refused"],
    ),
    Mutant(
        "an index one behind the end",
        "lax/shapes.py",
        "if not -n <= index < n:",
        "if not -n <= index <= n:",
        ["tests/lax/test_lax.py::test_refuses_computed_and_traced"],
    ),
    Mutant(
        "a split may leave a rest",
        "lax/shapes.py",
        "if sum(sizes) != x.shape[axis] or any(n < 0 for n in sizes):",
        "if sum(sizes) > x.shape[axis] or any(n < 0 for n in sizes):",
        ["tests/lax/test_lax.py::test_refuses_computed_and_traced"],
    ),
    Mutant(
        "axes behind collapsed ones are lost",
        "lax/shapes.py",
        "math.prod(x.shape[start:stop]), *x.shape[stop:]",
        "math.prod(x.shape[start:stop]), *x.shape[stop + 1 :]",
        ["tests/lax/test_lax.py::test_shapes"],
    ),
    Mutant(
        "negative starts of a slice",
        "lax/shapes.py",
        "starts[axis] = start + n if start < 0 else start",
        "starts[axis] = start",
        ["tests/lax/test_lax.py::test_shapes"],
    ),
    Mutant(
        "a square overflows where it is not taken",
        "nn/activations.py",
        "inside = ops.where(ops.or_p.bind(low, high), 0, x)",
        "inside = x",
        ["tests/nn/test_nn.py::test_a_slope_where_the_square_overflows"],
    ),
    Mutant(
        "exponentials overflow where they are not taken",
        "nn/activations.py",
        "pnp.expm1(pnp.where(positive, 0.0, x))))",
        "pnp.expm1(x)))",
        ["tests/nn/test_nn.py::test_values_and_derivatives_are_those_of_jax"],
    ),
    Mutant(
        "the slope of leaky_relu at zero",
        "nn/activations.py",
        "pnp.where(pnp.greater_equal(x, 0), x, pnp.multiply",
        "pnp.where(pnp.greater(x, 0), x, pnp.multiply",
        ["tests/nn/test_nn.py::test_values_and_derivatives_are_those_of_jax"],
    ),
    Mutant(
        "log1mexp has one formula for all numbers",
        "nn/activations.py",
        "small = ops.lt(x, math.log(2))",
        "small = ops.lt(x, 0)",
        ["tests/nn/test_nn.py::test_log1mexp"],
    ),
    Mutant(
        "a key behind the end counts, by blocks",
        "nn/blockwise.py",
        "masks.append(ops.lt(j, length))",
        "masks.append(ops.le_p.bind(j, length))",
        ["tests/nn/test_attention.py::test_eager_by_blocks"],
    ),
    Mutant(
        "equal elements in reverse order",
        "numpy/sorting.py",
        "backwards = prims.argsort([rev(x, (axis,))], axis",
        "backwards = prims.argsort([x], axis",
        ["tests/numpy/test_sorting.py::test_sort_agrees_with_numpy"],
    ),
    Mutant(
        "the first key is the most significant",
        "numpy/sorting.py",
        "return prims.argsort(columns[::-1], axis, index_dtype)[-1]",
        "return prims.argsort(columns, axis, index_dtype)[-1]",
        ["tests/numpy/test_sorting.py::test_argsort_dtypes_and_lexsort"],
    ),
    Mutant(
        "the last bucket is left out",
        "ops.py",
        "    if complete < x.shape[0]:",
        "    if complete < x.shape[0] - 10:",
        ["tests/top_level/test_ops_image_dlpack.py::test_buckets_lose_no_small_terms"],
    ),
    Mutant(
        "complex normals have variance 2",
        "random/continuous.py",
        "ops.mul(ops.complex(real, imag), math.sqrt(0.5))",
        "ops.complex(real, imag)",
        ["tests/random/test_random.py::test_figures"],
    ),
    Mutant(
        "bounds in the wrong order",
        "random/continuous.py",
        "return ops.max_p.bind(low, ops.add(ops.mul(u, width), low))",
        "return ops.add(ops.mul(u, width), low)",
        ["tests/random/test_random.py::test_figures"],
    ),
    Mutant(
        "more elements than there are, without replacement",
        "random/discrete.py",
        "    if not replace and draws > population:\n",
        "    if False:\n",
        ["tests/random/test_random.py::test_errors"],
    ),
    Mutant(
        "the largest integer is never drawn",
        "random/discrete.py",
        "high + 1 if beyond and high > low else high)",
        "high)",
        ["tests/random/test_random.py::test_figures"],
    ),
    Mutant(
        "only one side of a filter is normalised",
        "scipy/signal/filters.py",
        "    return ops.div(b, first), ops.div(a, first)",
        "    return b, ops.div(a, first)",
        ["tests/scipy/test_signal_values.py::test_filters_of_all_orders_and_states"],
    ),
    Mutant(
        "the results are spread instead of the arguments",
        "spmd/axis_modes.py",
        "out = f(*_resharded(args, wanted), **kwargs)\n",
        "out = _resharded(f(*args, **kwargs), wanted)\n",
        ["tests/spmd/test_layouts.py::test_functions_that_spread_what_leaves_or_enters"],
    ),
    Mutant(
        "static arguments that count from the end",
        "spmd/custom_partitioning.py",
        "i % len(positional): positional[i] for i in",
        "i: positional[i] for i in",
        ["tests/spmd/test_sharding_rules.py::test_static_arguments_are_counted_from_the_end_too"],
    ),
    Mutant(
        "a factor twice in one array",
        "spmd/sharding_rules.py",
        "if len(set(flat)) < len(flat):",
        "if False:",
        ["tests/spmd/test_sharding_rules.py::test_rules_that_are_none"],
    ),
    Mutant(
        "sizes of factors that are too large",
        "spmd/sharding_rules.py",
        "math.prod(sizes[f] for f in factors) != n",
        "math.prod(sizes[f] for f in factors) < n",
        ["tests/spmd/test_sharding_rules.py::test_rules_that_are_none"],
    ),
    Mutant(
        "two factors share a letter",
        "spmd/sharding_rules.py",
        'number < len(letters) else f"z_{number - len(letters) + 1}"',
        'number < len(letters) else f"z_{number - len(letters)}"',
        ["tests/spmd/test_sharding_rules.py::test_many_factors"],
    ),
    Mutant(
        "an axis less is left open",
        "spmd/sharding_rules.py",
        "range(len(shape) - len(entries) + 1)]",
        "range(len(shape) - len(entries))]",
        ["tests/spmd/test_sharding_rules.py::test_rules_as_text"],
    ),
    Mutant(
        "the first component is blamed",
        "testing/comparison.py",
        "target = _bisected(outputs.vectors[target], lambda v: rule(v)[source] - _product(along, v))",
        "target = 0",
        ["tests/testing/test_check_rule.py::test_one_component_of_many_is_found"],
    ),
    Mutant(
        "what should be zero is not told",
        "testing/diagnosis.py",
        "    if scale == 0:",
        "    if scale < 0:",
        ["tests/testing/test_check_rule.py::test_what_should_be_zero"],
    ),
    Mutant(
        "any wrong derivative differs by a factor",
        "testing/diagnosis.py",
        "if same(factor * wanted) and abs(factor - 1) > 10 * precision:",
        "if abs(factor - 1) > 10 * precision:",
        ["tests/testing/test_check_rule.py::test_a_transposed_cotangent"],
    ),
    Mutant(
        "cotangents are not conjugated in checks",
        "testing/differences.py",
        "-flat.imag if dual else flat.imag",
        "flat.imag",
        ["tests/testing/test_check_rule.py::test_a_complex_conjugate"],
    ),
    Mutant(
        "the first imaginary part is called a real one",
        "testing/differences.py",
        "position >= x.size else",
        "position > x.size else",
        ["tests/testing/test_check_rule.py::test_components_of_complex_arrays_have_names"],
    ),
    Mutant(
        "a zero of a probe times infinity",
        "testing/probes.py",
        "columns = [values[:, p != 0] @ p[p != 0] for p in probes]",
        "columns = [values @ p for p in probes]",
        ["tests/testing/test_check_rule.py::test_usual_mistakes_in_the_cotangent_of_one_argument"],
    ),
    Mutant(
        "a program is stopped while another could be",
        "backends/compiler/beside.py",
        "if self.running != 1 or self.stopping:",
        "if self.stopping:",
        ["tests/backends/compiler/test_beside.py::test_a_program_is_not_stopped_while_another_could_be"],
    ),
    Mutant(
        "a loop that ran its first slice is taken for ended",
        "control/while_primitive.py",
        'return [hlo.compare(carry[0], carry[1], "EQ")]',
        'return [hlo.compare(carry[0], carry[1], "GT")]',
        ["tests/backends/compiler/test_beside.py::test_loops_that_ask_compute_the_same"],
    ),
    Mutant(
        "chains of gathers that double the code with each are compiled so",
        "backends/compiler/options.py",
        "CHAIN = 12",
        "CHAIN = 1000",
        ["tests/backends/compiler/test_options.py::test_long_chains_of_gathers_keep_the_emitters"],
    ),
    Mutant(
        "functions of an interrupted program are called",
        "backends/host/calls.py",
        "    _refused.update(functions)",
        "    pass",
        ["tests/backends/compiler/test_beside.py::test_small_loops_that_call_python_stop_when_they_are_interrupted"],
    ),
    Mutant(
        "memory that an expression reads is handed over",
        "backends/devices/buffers.py",
        "if sys.getrefcount(held) > unshared or sys.getrefcount(pending) > unshared:",
        "if sys.getrefcount(held) > unshared:",
        ["tests/backends/host/test_aligned.py::test_memory_that_others_can_read_is_not_handed_over"],
    ),
    Mutant(
        "memory that NumPy reads is handed over",
        "backends/devices/buffers.py",
        "        sys.getrefcount(value) <= unshared\n        and type",
        "        type",
        ["tests/backends/host/test_aligned.py::test_memory_that_others_can_read_is_not_handed_over"],
    ),
    Mutant(
        "a gathering moves what one device has",
        "analysis/collectives.py",
        "return float(others * self.nbytes)",
        "return float(self.nbytes)",
        ["tests/analysis/test_collectives.py::test_bytes_of_all_kinds"],
    ),
    Mutant(
        "the order of counted devices does not matter",
        "analysis/collectives.py",
        "devices.transpose(_integers(order)) if order else devices",
        "devices",
        ["tests/analysis/test_collectives.py::test_groups_in_all_forms"],
    ),
    Mutant(
        "a loop within a loop runs as often as the outer one",
        "analysis/collectives.py",
        "None if times is None or trips is None else times * trips",
        "times",
        ["tests/analysis/test_collectives.py::test_loops_multiply"],
    ),
    Mutant(
        "all branches of a conditional run",
        "analysis/collectives.py",
        "        yield from max(runs, key=lambda run:",
        "        yield from min(runs, key=lambda run:",
        ["tests/analysis/test_collectives.py::test_the_branch_that_moves_most_counts"],
    ),
    Mutant(
        "donated memory counts twice",
        "analysis/costs.py",
        " - memory.alias_size_in_bytes",
        "",
        ["tests/analysis/test_costs.py::test_donated_memory_counts_once"],
    ),
    Mutant(
        "the cotangent of a moved value stays in its memory",
        "transforms/programs/placement.py",
        "other = Space.Device if placement is Space.Host else Space.Host",
        "other = placement",
        ["tests/backends/devices/test_memories.py::test_cotangents_move_to_the_other_memory"],
    ),
    Mutant(
        "contracted axes are merged although they are divided",
        "backends/hlo/module.py",
        "        whole = self.size == 1\n",
        "        whole = True\n",
        ["tests/analysis/test_costs.py::test_over_eight_devices"],
    ),
    Mutant(
        "a process that missed another is the one that failed",
        "distributed/jobs.py",
        "if outcome.error is None or not isinstance(",
        "if outcome.error is None or isinstance(",
        ["tests/distributed/test_jobs.py::test_the_failure_that_others_followed_from_is_raised"],
    ),
    Mutant(
        "a job starts again once more than asked for",
        "distributed/jobs.py",
        "for attempt in range(restarts + 1):",
        "for attempt in range(restarts + 2):",
        ["tests/distributed/test_jobs.py::test_a_process_that_is_killed_or_leaves"],
    ),
    Mutant(
        "each attempt of a job is the first",
        "distributed/jobs.py",
        '"PULLBACK_RESTART": str(attempt)',
        '"PULLBACK_RESTART": "0"',
        ["tests/distributed/test_jobs.py::test_restarts"],
    ),
    Mutant(
        "the others go on after a failure",
        "distributed/jobs.py",
        "deadline = deadline or time.monotonic() + grace",
        "deadline = deadline or time.monotonic() + 1000",
        ["tests/distributed/test_jobs.py::test_others_are_ended_after_a_failure"],
    ),
    Mutant(
        "an exception comes without its traceback",
        "distributed/jobs.py",
        'error.add_note(f"raised in process {number} of the job:\\n{text}")',
        'error.add_note("")',
        ["tests/distributed/test_jobs.py::test_what_the_function_raises_is_raised_with_its_traceback"],
    ),
    Mutant(
        "what is saved changes after the call",
        "checkpointing/checkpoints.py",
        'elements = np.array(leaf, leaf.dtype.newbyteorder("="))',
        'elements = np.asarray(leaf, leaf.dtype.newbyteorder("="))',
        ["tests/checkpointing/test_checkpoints.py::test_values_are_those_at_the_call"],
    ),
    Mutant(
        "one step more than asked for is kept",
        "checkpointing/checkpoints.py",
        "self.steps()[: -self.keep]",
        "self.steps()[: -self.keep - 1]",
        ["tests/checkpointing/test_checkpoints.py::test_the_newest_steps_are_kept"],
    ),
    Mutant(
        "a damaged file is read",
        "checkpointing/files.py",
        "        if not good or (bits.dtype",
        "        if (bits.dtype",
        ["tests/checkpointing/test_checkpoints.py::test_damaged_files_are_refused"],
    ),
    Mutant(
        "a piece lands at its own place rather than at that in what is wanted",
        "checkpointing/files.py",
        "target = tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(shared, wanted, strict=True))",
        "target = tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(shared, piece['where'], strict=True))",
        ["tests/checkpointing/test_checkpoints.py::test_pieces_are_joined_and_cut"],
    ),
    Mutant(
        "what is restored is not weak",
        "checkpointing/checkpoints.py",
        'as_weak(made, getattr(like, "weak_type", False))',
        "made",
        ["tests/checkpointing/test_checkpoints.py::test_every_kind_of_leaf_keeps_its_bits"],
    ),
    Mutant(
        "a failure in the background is kept to oneself",
        "checkpointing/checkpoints.py",
        "            self._failed = error",
        "            del error",
        ["tests/checkpointing/test_checkpoints.py::test_a_failure_in_the_background_is_raised"],
    ),
    Mutant(
        "the first host of a list is its last",
        "backends/processes/clusters.py",
        're.split("[,-]", found[1])[0]',
        're.split("[,-]", found[1])[-1]',
        ["tests/backends/processes/test_clusters.py::test_the_first_host_of_a_list"],
    ),
    Mutant(
        "what a job is called does not matter for its port",
        "backends/processes/clusters.py",
        "zlib.crc32(job.encode())",
        "zlib.crc32(b'')",
        ["tests/backends/processes/test_clusters.py::test_ports_of_jobs_and_steps_differ"],
    ),
    Mutant(
        "a display computes pending elements",
        "display/arrays.py",
        "    if _is_pending(x):\n",
        "    if _is_pending(x) and np.asarray(x) is None:\n",
        ["tests/display/test_shown.py::test_pending_elements_stay_pending"],
    ),
    Mutant(
        "elements that are not finite widen the scale",
        "display/pictures.py",
        "finite = values[np.isfinite(values)]",
        "finite = values[~np.isnan(values)]",
        ["tests/display/test_shown.py::test_arrays_of_every_kind"],
    ),
    Mutant(
        "a line joins what is on both sides of a gap",
        "display/pictures.py",
        "        drawing = bool(np.isfinite(y))",
        "        drawing = drawing or bool(np.isfinite(y))",
        ["tests/display/test_shown.py::test_a_line_has_gaps_where_elements_are_not_finite"],
    ),
    Mutant(
        "text in a display is read as HTML",
        "display/pages.py",
        "    return escape(str(text))",
        "    return str(text)",
        ["tests/display/test_shown.py::test_any_text_is_escaped"],
    ),
    Mutant(
        "copies of a shard have numbers of their own",
        "display/devices.py",
        "tuple(position[axis] for axis in axes)",
        "position",
        ["tests/display/test_shown.py::test_devices_with_the_same_shard_have_one_colour"],
    ),
    Mutant(
        "a ratio is that of the other one",
        "bench/report.py",
        "return theirs.median / ours.median",
        "return ours.median / theirs.median",
        ["tests/bench/test_bench.py::test_the_table"],
    ),
    Mutant(
        "times just below a second are a thousand milliseconds",
        "bench/report.py",
        "if seconds >= 0.9995 * size:",
        "if seconds >= size:",
        ["tests/bench/test_bench.py::test_durations"],
    ),
    Mutant(
        "wrong results are timed",
        "bench/measure.py",
        "if size != our_size or not all(",
        "if size != our_size and not all(",
        ["tests/bench/test_bench.py::test_results_are_compared"],
    ),
    Mutant(
        "a workload is any one that has the text",
        "bench/measure.py",
        'if name.startswith(tuple(prefixes or [""]))]',
        'if any(p in name for p in prefixes or [""])]',
        ["tests/bench/test_bench.py::test_workloads_are_chosen_by_the_beginnings_of_their_names"],
    ),
    Mutant(
        "slow calls are timed in all rounds",
        "bench/measure.py",
        "if not measurement.failed and sum(measurement.seconds) < ENOUGH_SECONDS:",
        "if not measurement.failed:",
        ["tests/bench/test_bench.py::test_slow_calls_get_few_blocks"],
    ),
    # A sum over a mesh is taken for the elements.
    Mutant(
        "cotangents of reduced arrays are not summed",
        "primitives/explicit_shardings.py",
        "wanted = aval.explicit.of_cotangents()",
        "wanted = aval.explicit",
        ["tests/primitives/test_explicit_shardings.py::test_cotangents_of_reduced_arrays_are_unreduced"],
    ),
    # A result is sharded in one of two ways, silently.
    Mutant(
        "the first operand decides how a result is sharded",
        "primitives/explicit_shardings.py",
        "if entries[axis] is not None and entries[axis] != entry:",
        "if entries[axis] is not None and entries[axis] is entry is None:",
        ["tests/primitives/test_explicit_shardings.py::test_what_the_shardings_do_not_say_is_refused"],
    ),
    # The terms of two sums are mixed up.
    Mutant(
        "sums over different axes are added",
        "primitives/explicit_shardings.py",
        "if specs[i].unreduced != unreduced:",
        "if not specs[i].unreduced:",
        ["tests/primitives/test_explicit_shardings.py::test_what_is_no_sum_of_terms_is_refused"],
    ),
    # A constant is added once for each device.
    Mutant(
        "each term has the fill value",
        "primitives/explicit_shardings.py",
        "part is None or _adds_constant(params, part.params) or",
        "part is None or",
        ["tests/primitives/test_explicit_shardings.py::test_what_is_no_sum_of_terms_is_refused"],
    ),
    # The compiler takes the terms for the elements.
    Mutant(
        "terms are elements where the compiler decides",
        "primitives/explicit_shardings.py",
        "if explicit.has_reductions:  # the compiler",
        "if explicit.spec.reduced:  # the compiler",
        ["tests/primitives/test_explicit_shardings.py::test_values_without_a_sharding_are_summed_before"],
    ),
    # A sum over the devices is taken, and the gradients of reduced weights are n times too large.
    Mutant(
        "cotangents of reduced values are summed at once",
        "primitives/varying.py",
        "(as_terms, (wanted.unreduced - have.unreduced)),",
        "(as_terms, frozenset()),",
        ["tests/primitives/test_varying.py::test_cotangents_of_reduced_values_are_unreduced_without_communication"],
    ),
    # Terms of one operand meet values of another that differ between the devices.
    Mutant(
        "terms are multiplied with values that vary",
        "primitives/explicit_shardings.py",
        "terms = varying & _NO_AXES.union(*[spec.unreduced for spec in specs])",
        "terms = _NO_AXES",
        ["tests/primitives/test_varying.py::test_refused"],
    ),
    # The terms of a sum are gathered, permuted or compared.
    Mutant(
        "collectives take terms for values",
        "primitives/explicit_shardings.py",
        "if primitive.axes_rule is not None:\n        names",
        "if False:\n        names",
        ["tests/primitives/test_varying.py::test_refused"],
    ),
    # A product with a reduced array is refused.
    Mutant(
        "what is unreduced is not joined with what is reduced",
        "primitives/explicit_shardings.py",
        "names = reduced - spec.reduced - spec.unreduced",
        "names = reduced - spec.reduced",
        ["tests/primitives/test_explicit_shardings.py::test_axes_over_which_results_are_unreduced"],
    ),
    # A program traced again is refused.
    Mutant(
        "products forget that they stay unreduced",
        "transforms/programs/program_primitive.py",
        "scope=None if scope is _everywhere else lambda: scope(**options)",
        "scope=None",
        ["tests/primitives/test_explicit_shardings.py::test_products_stay_unreduced_within_a_program"],
    ),
    # A sum is as many times too large as there are devices.
    Mutant(
        "a value whose sharding the compiler chooses is a term on each device",
        "backends/devices/shardings.py",
        "if source is None or source.spec.unreduced or not",
        "if source is not None and source.spec.unreduced or not",
        ["tests/primitives/test_explicit_shardings.py::test_values_without_a_sharding_are_summed_before"],
    ),
    # Terms of wrong rows are summed.
    Mutant(
        "several unreduced axes divide one axis",
        "backends/devices/shardings.py",
        "unreduced.intersection(names_in(entry))) > 1",
        "unreduced.intersection(names_in(entry))) > 2",
        ["tests/primitives/test_explicit_shardings.py::test_values_without_a_sharding_are_summed_before"],
    ),
    # A program does not know which of its values are sums.
    Mutant(
        "the text of a sharding leaves out its sums",
        "backends/hlo/module.py",
        "if n in sharding.spec.unreduced]",
        "if n in sharding.spec.reduced]",
        ["tests/primitives/test_explicit_shardings.py::test_a_program_says_which_values_are_unreduced"],
    ),
    # Arrays of a mesh have no shardings in their types.
    Mutant(
        "axes of make_mesh are left to the compiler",
        "backends/devices/meshes.py",
        "AxisType.Explicit if axis_types is None else",
        "AxisType.Auto if axis_types is None else",
        ["tests/primitives/test_explicit_shardings.py::test_axes_of_make_mesh_are_explicit"],
    ),
    # Weights from which padding was made have NaN for a gradient.
    Mutant(
        "padding is left as it is, and has derivatives",
        "ragged/arrays.py",
        "return values if unused is None else pnp.where(layout.spread(unused, values), values[:1], values)",
        "return values",
        ["tests/ragged/test_ragged.py::test_padding_makes_no_nan_of_gradients"],
    ),
    # The elements beyond the bound are lost.
    Mutant(
        "rows that are too long are cut",
        "ragged/arrays.py",
        "return pnp.where(layout.spread(self.lengths > longest, out), segments.unknown(self.dtype), out)",
        "return out",
        ["tests/ragged/test_ragged.py::test_traced_lengths_need_a_bound_and_what_exceeds_it_is_unknown"],
    ),
    # Sums have numbers of nobody.
    Mutant(
        "padding counts in reductions of all elements",
        "ragged/segments.py",
        "return x if self.padding is None else pnp.where(self.padding, pnp.asarray(neutral, x.dtype), x)",
        "return x",
        ["tests/ragged/test_ragged.py::test_reductions_of_all_elements_and_of_an_axis_of_elements"],
    ),
    # A pair for each row is taken for a row of two.
    Mutant(
        "results of the length of one row are ragged",
        "ragged/rows.py",
        "bool(a.shape[:1] == (2,) and b.shape[:1] == (3,))",
        "a.shape[:1] == (2,)",
        ["tests/ragged/test_ragged.py::test_vmap_over_rows_gets_each_row_as_it_is"],
    ),
    # Results belong to other rows.
    Mutant(
        "mapped rows stay in the order of their lengths",
        "ragged/rows.py",
        "max_length=like.max_length).take(back)",
        "max_length=like.max_length)",
        ["tests/ragged/test_ragged.py::test_vmap_over_rows_gets_each_row_as_it_is"],
    ),
    # Cotangents of what an image repeats at its borders are lost.
    Mutant(
        "margins of images are dropped when a filter is transposed",
        "scipy/ndimage/correlations.py",
        "core = core.at[index].add(slicing.slice_in_dim(x, start, stop, axis))",
        "core = core.at[index].add(0.0)",
        ["tests/scipy/ndimage/test_filters.py::test_transposed_correlations"],
    ),
    # Compiled sums of large integers are rounded.
    Mutant(
        "integers of images are summed in single precision",
        "scipy/ndimage/arguments.py",
        "return np.dtype(np.complex128 if dtypes.is_complex(wide) else np.float64)",
        "return dtypes.default_float()",
        ["tests/scipy/ndimage/test_filters.py::test_large_integers_are_exact_without_64_bits"],
    ),
    # Windows of an even size read one element too far on one side.
    Mutant(
        "the margins of windows are exchanged",
        "scipy/ndimage/windows.py",
        "return size // 2 + origin, size - size // 2 - 1 - origin",
        "return size - size // 2 - 1 - origin, size // 2 + origin",
        ["tests/scipy/ndimage/test_filters.py::test_linear_filters_of_all_modes"],
    ),
    # Derivatives of Gaussians have the other sign.
    Mutant(
        "weights of Gaussians are not reversed",
        "scipy/ndimage/smoothing.py",
        "return weights[::-1]",
        "return weights",
        ["tests/scipy/ndimage/test_filters.py::test_linear_filters_of_all_modes"],
    ),
    # Convolutions of windows of an even size are off by one.
    Mutant(
        "reversed windows have the origin of others",
        "scipy/ndimage/correlations.py",
        "return -origin if size % 2 else -origin - 1",
        "return -origin",
        ["tests/scipy/ndimage/test_filters.py::test_linear_filters_of_all_modes"],
    ),
)
