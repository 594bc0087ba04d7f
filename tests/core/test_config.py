"""The switches of JAX's configuration: those with an effect, those without, and those that are refused."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback import config, enable_x64, errors, jit, random
from pullback.core import absl_flags
from pullback.core import config as switches
from pullback.core.switches import REFUSED, WITHOUT_EFFECT
from tests.helpers import ROOT

PAGE = ROOT / "docs" / "switches.md"
ROWS = [row for row in PAGE.read_text().splitlines() if row.startswith("|")]
NAMES = """
accurate_erf_inv allow_f16_reductions array_garbage_collection_guard auto_pcast backend_target bcoo_cusparse_lowering
captured_constants_report_frames captured_constants_warn_bytes check_proxy_envs check_static_indices
check_tracer_leaks check_vma compilation_cache_check_contents compilation_cache_dir compilation_cache_expect_pgle
compilation_cache_include_metadata_in_key compilation_cache_max_size compiler_detailed_logging_min_ops
compiler_enable_remat_pass cpu_collectives_implementation cpu_enable_async_dispatch
cpu_get_global_topology_timeout_minutes cpu_get_local_topology_timeout_minutes cross_host_transfer_socket_address
cross_host_transfer_timeout_seconds cross_host_transfer_transfer_size cross_host_transport_addresses
cuda_visible_devices custom_jvp3 custom_vjp3 debug_infs debug_key_reuse debug_leaked_clients_on_clear_backends
debug_log_modules debug_nans default_device default_matmul_precision default_prng_impl disable_bwd_checks disable_jit
disable_most_optimizations disable_vmap_shmap_error disallow_mesh_context_manager distributed_debug
distributed_verify_secure_credentials dump_ir_modes dump_ir_to eager_constant_folding embedded_constants_max_bytes
enable_checks enable_compilation_cache enable_custom_prng enable_pgle enable_preemption_service enable_recoverability
enable_x64 error_checking_behavior_divide error_checking_behavior_nan error_checking_behavior_oob
exec_time_optimization_effort experimental_unsafe_xla_runtime_errors explain_cache_misses explicit_x64_dtypes
export_calling_convention_version export_deserialize_expired_versions export_ignore_forward_compatibility
force_dcn_cross_host_transfers high_dynamic_range_gumbel hlo_source_file_canonicalization_regex
include_debug_info_in_dumps include_full_tracebacks_in_locations jax2tf_associative_scan_reductions
jax2tf_default_native_serialization legacy_prng_key log_checkpoint_residuals log_compiles logging_level
memory_fitting_effort memory_fitting_level mock_gpu_topology mock_num_gpu_processes mosaic_allow_hlo
mosaic_unzip_debug_locations mtls_ca_file mtls_cert_file mtls_key_file mtls_peer_uri_prefix mutable_array_checks
no_execution no_tracing num_cpu_devices numpy_dtype_promotion numpy_rank_promotion oneapi_visible_devices
optimization_level pallas_auto_assign_collective_ids pallas_auto_assign_collective_ids_limit
pallas_enable_debug_checks pallas_poison_buffers pallas_use_mosaic_gpu pallas_verbose_errors
persistent_cache_enable_xla_caches persistent_cache_min_compile_time_secs persistent_cache_min_entry_size_bytes
pgle_aggregation_percentile pgle_profiling_runs pjrt_client_create_options platforms pprint_use_color
ragged_dot_use_gpu_pallas_triton_lowering ragged_dot_use_ragged_dot_instruction raise_on_ppermute_sort_diff
raise_persistent_cache_errors random_seed_offset refs_to_pins remat3 remat_barrier_no_cotangents
remove_custom_partitioning_ptr_from_cache_key remove_size_one_mesh_axis_from_type rocm_visible_devices scan3
send_traceback_to_runtime serialization_version share_binary_between_hosts share_binary_between_hosts_timeout_ms
softmax_custom_jvp sort_devices_by_process_index source_url_schema thread_guard threefry_gpu_kernel_lowering
threefry_partitionable traceback_filtering traceback_in_locations_limit tracer_error_num_traceback_frames
transfer_guard_device_to_device transfer_guard_device_to_host transfer_guard_host_to_device use_cpp_shard_args
use_direct_linearize use_emit_pipeline_primitive use_hlo_logistic_lowering use_magma use_rgv3 use_shardy_partitioner
use_simplified_jaxpr_constants xla_backend xla_profile_version
"""
"""The switches of JAX 0.10.2, without their prefix; and its last five have none."""
OF_JAX = NAMES.split()


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = config.values
    yield
    for name, value in before.items():
        if config.read(name) != value:
            config.update(name, value)


def test_every_switch_of_jax_can_be_read_and_set_to_what_it_is() -> None:
    for name in OF_JAX:
        value = getattr(config, f"jax_{name}")
        assert getattr(config, name) == value
        config.update(f"jax_{name}", value)
        assert config.read(f"jax_{name}") == value
        assert config.values[name] == value


def test_the_page_lists_those_without_effect_and_those_that_are_refused() -> None:
    listed = {name.removeprefix("jax_") for row in ROWS for name in _names(row)}
    assert listed == {*WITHOUT_EFFECT, *REFUSED}
    assert set(OF_JAX) >= listed


def _names(row: str) -> list[str]:
    return re.findall(
        r"`(jax_\w+|jax2tf_\w+|check_vma|eager_constant_folding|mock_num_gpu_processes)`", row.split(" | ")[0]
    )


def test_switches_without_effect_keep_what_they_are_set_to() -> None:
    config.update("jax_use_shardy_partitioner", False)
    assert config.jax_use_shardy_partitioner is False
    assert config.values["use_shardy_partitioner"] is False


@pytest.mark.parametrize("name", REFUSED)
def test_switches_that_would_change_programs_are_refused(name: str) -> None:
    with pytest.raises(
        ValueError, match=f"jax_{name} would .*: it can only be {REFUSED[name][0]!r}, got 'raise'"
    ) as info:
        config.update(f"jax_{name}", "raise")
    assert isinstance(info.value, NotImplementedError)


def test_other_names_are_errors() -> None:
    with pytest.raises(
        AttributeError, match=r"no configuration switch 'jax_enable_x46'; the switches are: enable_x64, .*"
    ) as info:
        config.update("jax_enable_x46", True)
    assert "scan3" not in str(info.value)
    with pytest.raises(AttributeError):
        _ = config.jax_enable_x46


def test_names_that_stand_for_others() -> None:
    assert config.x64_enabled is False
    with enable_x64():
        assert config.x64_enabled is True
    config.update("jax_platform_name", "cpu")
    assert config.jax_platform_name == config.platforms == "cpu"
    assert config.jax_transfer_guard is None
    with pullback.transfer_guard("log"):
        assert config.jax_transfer_guard == "log"
    with switches.transfer_guard_host_to_device("log"):
        assert config.jax_transfer_guard is None


def test_seeds_are_offset() -> None:
    wanted = random.key_data(random.key(8)), random.key_data(random.key(3))
    traced = jit(random.PRNGKey)
    before = traced(3)
    config.update("jax_random_seed_offset", 5)
    assert (random.key_data(random.key(3)) == wanted[0]).all()
    assert (traced(3) == wanted[0]).all()  # compiled anew
    assert (random.PRNGKey(-2) == wanted[1]).all()
    assert (before == wanted[1]).all()


def test_a_switch_counts_where_another_one_was_set_for_the_thread() -> None:
    traced = jit(random.PRNGKey)
    mesh = pullback.make_mesh((1,), ("i",))
    with pullback.set_mesh(mesh):
        assert traced(3)[1] == 3
        config.update("jax_random_seed_offset", 5)
        assert traced(3)[1] == 8
    config.update("jax_random_seed_offset", 6)
    assert traced(3)[1] == 9
    with enable_x64():
        config.update("jax_random_seed_offset", 7)
    assert traced(3)[1] == 10


def test_the_level_of_the_log() -> None:
    config.update("jax_logging_level", "ERROR")
    assert logging.getLogger("pullback").level == logging.ERROR
    config.update("jax_logging_level", "NOTSET")
    assert logging.getLogger("pullback").level == logging.NOTSET
    with pytest.raises(ValueError, match="logging_level must be one of"):
        config.update("jax_logging_level", "loud")


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("persistent_cache_min_compile_time_secs", 1000.0, 0),
        ("persistent_cache_min_entry_size_bytes", 1 << 30, 0),
        ("persistent_cache_min_entry_size_bytes", 10, 1),
    ],
)
def test_what_is_kept_on_disk(name: str, value: float, kept: int, tmp_path: Path) -> None:
    config.update("compilation_cache_dir", str(tmp_path))
    config.update("enable_compilation_cache", True)
    config.update(name, value)
    jit(lambda x: x * (0.71 + value + len(name)))(1.0)
    assert len([path for path in tmp_path.rglob("*") if len(path.name) == 64]) == kept


# Flags of absl -------------------------------------------------------------------------------------------------------


class _Flag:
    def __init__(self, value: Any) -> None:
        self.value = value
        self.present = 0


class _Flags(dict[str, _Flag]):
    """As much of ``absl.flags.FLAGS`` as is asked for."""

    def __call__(self, argv: list[str], known_only: bool = False) -> None:
        for word in argv[1:]:
            name, _, text = word.removeprefix("--").partition("=")
            if name in self:
                self[name].present += 1
                self[name].value = {"": True, "true": True, "false": False}.get(text, text)


@pytest.fixture
def absl(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """A stand-in for ``absl``, which the tests cannot count on."""
    found = _Flags()

    def define(name: str, default: Any, help: str) -> None:
        assert name not in found
        found[name] = _Flag(default)

    flags, app, package = types.ModuleType("absl.flags"), types.ModuleType("absl.app"), types.ModuleType("absl")
    later: list[Any] = []
    for kind in ("bool", "integer", "float", "string"):
        setattr(flags, f"DEFINE_{kind}", define)
    flags.FLAGS = found  # type: ignore[attr-defined]
    app.call_after_init = later.append  # type: ignore[attr-defined]
    for name, module in (("absl", package), ("absl.flags", flags), ("absl.app", app)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(absl_flags, "_defined", [])
    return types.SimpleNamespace(flags=found, later=later)


def test_flags_of_the_command_line(absl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["prog", "--other=1", "--jax_debug_infs", "--jax_numpy_rank_promotion=warn", "--", "--jax_debug_nans"]
    monkeypatch.setattr(sys, "argv", words)
    config.parse_flags_with_absl()
    assert (config.debug_infs, config.numpy_rank_promotion, config.debug_nans) == (True, "warn", False)


def test_flags_that_absl_reads_later(absl: Any) -> None:
    config.config_with_absl()
    config.config_with_absl()
    assert absl.flags["jax_enable_x64"].value is False
    absl.flags(["prog", "--jax_debug_infs=true"])
    assert not config.debug_infs
    (complete,) = absl.later
    complete()
    assert config.debug_infs


def test_without_absl(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("absl", "absl.flags", "absl.app"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="absl-py") as info:
        config.config_with_absl()
    assert isinstance(info.value, errors.MissingLibraryError)


def test_switches_in_the_environment() -> None:
    code = (
        "from pullback import config; print(config.random_seed_offset, config.persistent_cache_min_compile_time_secs)"
    )
    environment = {"PULLBACK_RANDOM_SEED_OFFSET": "7", "PULLBACK_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "2.5"}
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["7", "2.5"]
