# long: because there are many switches, each with its docstring
"""Switches that change what a program means, and how they are set for the process or for one thread.

A switch is read with ``config.enable_x64``, set for the process with ``config.update("enable_x64", True)``
and for the current thread, within a block, with ``with enable_x64(True): ...``. The names of JAX's
configuration (``jax_enable_x64``) are understood too; ``docs/switches.md`` lists those without effect.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from operator import attrgetter
from typing import Any

from pullback.core.arguments import flag, is_listed
from pullback.core.errors import ArgumentError, UnsupportedSwitchError
from pullback.core.switches import REFUSED, WITHOUT_EFFECT

_MEANING = (
    "enable_x64", "explicit_x64_dtypes", "threefry_partitionable", "numpy_rank_promotion", "numpy_dtype_promotion",
    "default_device", "platforms", "disable_jit", "debug_nans", "debug_infs", "default_matmul_precision",
    "check_indices", "check_static_indices", "error_checking_behavior_oob", "enable_custom_prng", "context_mesh",
    "default_prng_impl", "debug_key_reuse", "random_seed_offset", "masked_zeros", "backward_logs",
    "disable_bwd_checks", "xla_metadata", "user_contexts", "user_defaults",
)  # fmt: skip
"""The switches that a compiled program depends on."""
_GUARDS = ("transfer_guard_host_to_device", "transfer_guard_device_to_host", "transfer_guard_device_to_device")
_LEVELS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
TIERS = ("off", "on", "auto")
"""Whether calls of compiled functions are answered eagerly until they are compiled."""
AT_EXIT = ("leave", "wait")
"""How the end of the process treats programs that other threads compile for later calls."""
PRECISIONS = {
    "default": "DEFAULT", "bfloat16": "DEFAULT", "high": "HIGH", "bfloat16_3x": "HIGH", "tensorfloat32": "HIGH",
    "highest": "HIGHEST", "float32": "HIGHEST",
}  # fmt: skip
"""How exactly matrices are multiplied, by the names of the switch, as the compiler calls it."""
_CHOICES: dict[str, tuple[Any, ...]] = {
    "explicit_x64_dtypes": ("warn", "error", "allow"),
    "error_checking_behavior_oob": ("ignore", "raise"),
    "default_matmul_precision": tuple(PRECISIONS),
    "default_prng_impl": ("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32"),
    **dict.fromkeys(_GUARDS, _LEVELS),
    "traceback_filtering": ("auto", "off", "on", "tracebackhide", "remove_frames", "quiet_remove_frames"),
    "numpy_rank_promotion": ("allow", "warn", "raise"),
    "numpy_dtype_promotion": ("standard", "strict"),
    "tiered": TIERS,
    "compile_at_exit": AT_EXIT,
    "logging_level": ("NOTSET", "DEBUG", "INFO", "WARNING", "WARN", "ERROR", "FATAL", "CRITICAL"),
}


def _from_environment(name: str, default: Any, prefix: str = "PULLBACK_") -> Any:
    text = os.environ.get(prefix + name.upper())
    if text is None:
        return default
    if isinstance(default, bool):
        return text.strip().lower() in ("1", "true", "on", "yes", "t", "y")
    if name in _CHOICES and not text:  # a variable that is set to the empty string
        return default
    if name in _CHOICES and text not in _CHOICES[name]:
        raise ArgumentError(f"{prefix}{name.upper()} must be one of {_CHOICES[name]}, got {text!r}")
    return type(default)(text) if isinstance(default, (int, float)) else text


class TraceContext:
    """The values of the switches that programs depend on; equal contexts are one object, so they compare quickly."""

    __slots__ = ("values",)

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values

    def __repr__(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in zip(_MEANING, self.values, strict=True))


_trace_contexts: dict[tuple[Any, ...], TraceContext] = {}


def _trace_context(switches: Any) -> TraceContext:
    values = tuple(switches[name] for name in _MEANING)
    return _trace_contexts.setdefault(values, TraceContext(values))


class Config(threading.local):
    """The switches; reading one is an attribute look-up. See :meth:`update`.

    Attributes:
      trace_context: the values of the switches that programs depend on, as a cache key.
      context_mesh: the mesh that this thread has set, by ``set_mesh`` for example.
      backward_logs: whether this thread transposes for the sake of what backward rules log.
      xla_metadata: names and values that this thread adds to the operations of programs, for the compiler.
      user_contexts, user_defaults: pairs of users' contexts and their values, in this thread and in all.
    """

    enable_x64: bool = False
    explicit_x64_dtypes: str = "warn"
    threefry_partitionable: bool = False
    enable_checks: bool = False
    traceback_filtering: str = "auto"
    numpy_rank_promotion: str = "allow"
    numpy_dtype_promotion: str = "standard"
    default_device: Any = None
    platforms: str = ""
    eager_on_host: bool = False
    num_cpu_devices: int = -1
    cuda_visible_devices: str = "all"
    mock_gpu_topology: str = ""
    mock_num_gpu_processes: int = 0
    pjrt_client_create_options: Any = None
    disable_jit: bool = False
    compile_large_operations: bool = True
    eager_fusion: bool = True
    equal_parts: bool = True
    tiered: str = "off"
    compile_at_exit: str = "leave"
    debug_nans: bool = False
    debug_infs: bool = False
    check_indices: bool = False
    check_static_indices: bool = False
    error_checking_behavior_oob: str = "ignore"
    check_custom_rules: bool = False
    disable_bwd_checks: bool = False
    check_tracer_leaks: bool = False
    debug_key_reuse: bool = False
    masked_zeros: bool = False
    no_tracing: bool = False
    default_matmul_precision: str | None = None
    default_prng_impl: str = "threefry2x32"
    enable_custom_prng: bool = False
    transfer_guard_host_to_device: str | None = None
    transfer_guard_device_to_host: str | None = None
    transfer_guard_device_to_device: str | None = None
    explain_cache_misses: bool = False
    log_compiles: bool = False
    compile_progress: bool = True
    enable_compilation_cache: bool = True
    compilation_cache_dir: str | None = None
    compilation_cache_max_size: int = 1 << 30
    persistent_cache_min_compile_time_secs: float = 0.0
    persistent_cache_min_entry_size_bytes: int = 0
    progress: bool = True
    rich_arrays: bool = False
    random_seed_offset: int = 0
    logging_level: str = "NOTSET"
    trace_context: TraceContext
    context_mesh = None
    backward_logs = False
    xla_metadata = ()
    user_contexts = ()
    user_defaults = ()

    def update(self, name: str, value: Any) -> None:
        """Set a switch for the whole process, in every thread that has not overridden it.

        Args:
          name: the switch, with or without JAX's prefix ``jax_``; ``"transfer_guard"`` sets all three of its kind.
          value: its new value.

        Raises:
          AttributeError: no such switch.
          ArgumentError: the switch does not take this value (a ValueError).

        >>> from pullback import config
        >>> config.update("enable_x64", False)
        """
        if name.removeprefix("jax_") == "transfer_guard":
            for guard in _GUARDS:
                self.update(guard, value)
            return
        if name == "jax_platform_name":  # JAX's older name
            name = "jax_platforms"
        key = _checked(name, value)
        setattr(Config, key, value)
        Config.trace_context = _trace_context(vars(Config))
        _update_trace_context(vars(self))
        _tell([key], True)

    def read(self, name: str) -> Any:
        """The value of the switch ``name``."""
        return getattr(self, _checked(name))

    @property
    def values(self) -> dict[str, Any]:
        """All switches with their values in this thread."""
        return {name: getattr(self, name) for name in _DEFAULTS}

    @property
    def indices_are_checked(self) -> bool:
        """Whether an index that is out of range is an error: see :func:`check_indices`."""
        return self.check_indices or self.error_checking_behavior_oob == "raise"

    @property
    def x64_enabled(self) -> bool:
        """Whether there are 64-bit types, as ``enable_x64`` says."""
        return self.enable_x64

    @property
    def jax_platform_name(self) -> str:
        """The value of the switch ``platforms``, under its older name in JAX."""
        return self.platforms

    @property
    def jax_transfer_guard(self) -> str | None:
        """The common level of the three transfer guards, None if they differ; see :func:`transfer_guard`."""
        levels = {getattr(self, guard) for guard in _GUARDS}
        return levels.pop() if len(levels) == 1 else None

    def config_with_absl(self) -> None:
        """Let ``absl`` set switches: each is a flag of its name in JAX, such as ``--jax_enable_x64``.

        The flags count once ``absl`` has read the command line, as ``absl.app.run`` does.

        Raises:
          MissingLibraryError: ``absl`` is not installed (an ImportError).
        """
        from pullback.core.absl_flags import define

        define(self)

    def complete_absl_config(self, absl_flags: Any) -> None:
        """Set the switches whose flags ``absl`` has read from the command line.

        Args:
          absl_flags: the module ``absl.flags``.
        """
        from pullback.core.absl_flags import complete

        complete(self, absl_flags)

    def parse_flags_with_absl(self) -> None:
        """Parse the command line's flags ``--jax_...`` that come before ``--``, and set the switches that they name.

        Raises:
          MissingLibraryError: ``absl`` is not installed (an ImportError).
        """
        from pullback.core.absl_flags import parse

        parse(self)


_checks: dict[str, Callable[[Any], None]] = {}


def check_value(name: str, check: Callable[[Any], None]) -> None:
    """Register a function to call with each new value of the switch ``name``; it raises an error to refuse a value."""
    _checks[name] = check


def exchange(name: str, value: Any) -> Any:
    """Set the switch ``name``, on which compiled programs depend, for this thread; return its former value."""
    local = vars(config)
    before = getattr(config, name)
    local[name] = value
    if value is getattr(Config, name):
        del local[name]
    _update_trace_context(local)
    return before


def exchange_for_all(name: str, value: Any) -> Any:
    """Set the switch ``name``, on which compiled programs depend, for all threads; return its former value."""
    before = getattr(Config, name)
    setattr(Config, name, value)
    Config.trace_context = _trace_context(vars(Config))
    _update_trace_context(vars(config))
    return before


def _update_trace_context(local: dict[str, Any]) -> None:
    """Recompute this thread's ``trace_context`` from its own switches, the dictionary ``local``, and the process's.

    A thread without switches of its own uses the context of the process.
    """
    local.pop("trace_context", None)
    if local:
        local["trace_context"] = _trace_context({**vars(Config), **local})


def _checked(name: str, value: Any = None) -> str:
    key = name.removeprefix("jax_")
    if key not in _DEFAULTS:
        effective = ", ".join(x for x in _DEFAULTS if x not in WITHOUT_EFFECT and x not in REFUSED)
        raise AttributeError(f"pullback has no configuration switch {name!r}; the switches are: {effective}")
    if key in REFUSED and value not in (None, REFUSED[key][0]):
        raise UnsupportedSwitchError(f"{name} {REFUSED[key][1]}: it can only be {REFUSED[key][0]!r}, got {value!r}")
    if value is not None and key in _CHOICES and not is_listed(value, _CHOICES[key]):
        raise ArgumentError(f"{name} must be one of {_CHOICES[key]}, got {value!r}")
    if value is not None and key in _checks:
        _checks[key](value)
    return key


_DEFAULTS = {name: value for name, value in vars(Config).items() if name in Config.__annotations__}
_DEFAULTS |= {name: default for name, (default, _) in {**WITHOUT_EFFECT, **REFUSED}.items()}
for _name, _default in _DEFAULTS.items():
    setattr(Config, _name, _from_environment(_name, _default))
    setattr(Config, f"jax_{_name}", property(attrgetter(_name)))

Config.trace_context = _trace_context(vars(Config))
config = Config()
_observers: dict[str, Callable[[bool], None]] = {}


def obey_jax_environment() -> dict[str, Any]:
    """Set the switches that JAX's variables of the environment name, such as ``JAX_ENABLE_X64``.

    Variables of Pullback's own outweigh them.

    Returns:
      The switches that were set, with the values that they had.

    Raises:
      ArgumentError: a value that the switch does not take (a ValueError).
    """
    before = {}
    for name, default in _DEFAULTS.items():
        if os.environ.get(f"JAX_{name.upper()}") and f"PULLBACK_{name.upper()}" not in os.environ:
            before[name] = getattr(config, name)
            config.update(name, _from_environment(name, default, "JAX_"))
    return before


def observe(name: str, observer: Callable[[bool], None]) -> None:
    """Call ``observer`` now, with True, and whenever the switch ``name`` is set.

    The argument is True if the switch is set for all threads, and False for one thread.
    """
    _observers[name] = observer
    observer(True)


def _tell(names: Iterable[str], everywhere: bool) -> None:
    for name in names:
        if name in _observers:
            _observers[name](everywhere)


def _set_logging_level(everywhere: bool) -> None:
    if everywhere and (config.logging_level != "NOTSET" or "logging" in sys.modules):
        import logging

        logging.getLogger("pullback").setLevel(config.logging_level)


observe("logging_level", _set_logging_level)


def override(name: str, value: Any) -> AbstractContextManager[None]:
    """Set a switch within a block, for the current thread only."""
    return _overridden({_checked(name, value): value})


def _switched(name: str, what: str, value: Any) -> AbstractContextManager[None]:
    """Turn a switch on or off within a block; ``what`` is the name of the argument ``value``, for errors."""
    return override(name, flag(name, what, value))


@contextmanager
def _overridden(switches: dict[str, Any]) -> Iterator[None]:
    local = vars(config)
    before = dict(local)
    try:  # an interrupt may come after any call
        local.update(switches)
        local["trace_context"] = _trace_context({**vars(Config), **local})
        _tell(switches, False)
        yield
    finally:
        for changed in switches:
            if changed in before:
                local[changed] = before[changed]
            elif changed in local:
                del local[changed]
        _update_trace_context(local)
        _tell(switches, False)


def enable_x64(new_val: bool = True) -> AbstractContextManager[None]:
    """A context in which 64-bit types are kept (or, with False, narrowed to 32 bits).

    Args:
      new_val: whether to keep 64-bit types.

    Returns:
      A context manager.

    Raises:
      ArgumentError: ``new_val`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import enable_x64
    >>> with enable_x64():
    ...     jnp.ones(2).dtype
    dtype('float64')
    """
    return _switched("enable_x64", "new_val", new_val)


def explicit_x64_dtypes(new_val: str) -> AbstractContextManager[None]:
    """A context that sets the meaning of requests for 64-bit types while ``enable_x64`` is off.

    Args:
      new_val: ``"warn"``, the default: 32 bits, and a ``DtypeTruncationWarning``; ``"error"``: a ``DtypeError``;
        ``"allow"``: 64 bits, while arrays made without a dtype, from Python's numbers and from NumPy's arrays keep 32.
        Results of operations on a 64-bit array have 64 bits.

    Returns:
      A context manager.

    Raises:
      ArgumentError: another value (a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import explicit_x64_dtypes
    >>> with explicit_x64_dtypes("allow"):
    ...     print(jnp.zeros(2, "float64").dtype, jnp.zeros(2).dtype, (jnp.zeros(2, "float64") + jnp.ones(2)).dtype)
    float64 float32 float64
    """
    return override("explicit_x64_dtypes", new_val)


def disable_x64() -> AbstractContextManager[None]:
    """A context in which 64-bit types are narrowed to 32 bits.

    Returns:
      A context manager.

    >>> import pullback.numpy as jnp
    >>> from pullback import disable_x64
    >>> with disable_x64():
    ...     jnp.arange(2).dtype
    dtype('int32')
    """
    return override("enable_x64", False)


def numpy_rank_promotion(new_val: str) -> AbstractContextManager[None]:
    """A context in which functions of arrays with different numbers of axes broadcast silently, warn, or raise.

    Scalars broadcast in any case. It concerns the functions of elements of ``pullback.numpy``, and operators.

    Args:
      new_val: ``"allow"``, ``"warn"`` or ``"raise"``.

    Returns:
      A context manager.

    Raises:
      ArgumentError: another value (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import numpy_rank_promotion
    >>> with numpy_rank_promotion("raise"):
    ...     jnp.ones(2) + jnp.ones((3, 2))
    Traceback (most recent call last):
        ...
    pullback.core.errors.ShapeError: add: operands of shapes (2,) and (3, 2) have different numbers of axes, ...
    """
    return override("numpy_rank_promotion", new_val)


def numpy_dtype_promotion(new_val: str) -> AbstractContextManager[None]:
    """A context in which arrays of different dtypes are promoted to a common one, or refused.

    Args:
      new_val: ``"standard"``; or ``"strict"``: only Python's numbers and other weakly typed values are converted, to
        the dtype of the array, and only if this dtype has such numbers: an integer array refuses a float.

    Returns:
      A context manager.

    Raises:
      ArgumentError: another value (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import numpy_dtype_promotion
    >>> with numpy_dtype_promotion("strict"):
    ...     jnp.ones(2) + 1
    Array([2., 2.], dtype=float32)
    """
    return override("numpy_dtype_promotion", new_val)


def threefry_partitionable(new_val: bool = True) -> AbstractContextManager[None]:
    """A context in which random bits are laid out so that each can be computed independently.

    Args:
      new_val: whether bits are laid out so; without it, the numbers of a key are others.

    Returns:
      A context manager.

    Raises:
      ArgumentError: ``new_val`` is not a boolean (a TypeError and a ValueError).

    >>> from pullback import random, threefry_partitionable
    >>> with threefry_partitionable():
    ...     a = random.bits(random.key(0), (2,))
    >>> with threefry_partitionable(False):
    ...     b = random.bits(random.key(0), (2,))
    >>> print(a, b)
    [4070199207 4202968722] [ 928981903 3453687069]
    """
    return _switched("threefry_partitionable", "new_val", new_val)


def disable_jit(disable: bool = True) -> AbstractContextManager[None]:
    """A context in which functions under ``jit`` run as ordinary Python, operation by operation.

    Args:
      disable: whether ``jit`` is without effect.

    Returns:
      A context manager.

    Raises:
      ArgumentError: ``disable`` is not a boolean (a TypeError and a ValueError).

    >>> from pullback import disable_jit, jit
    >>> with disable_jit():
    ...     print(jit(lambda x: x + 1 if x > 0 else x)(1.0))
    2.0
    """
    return _switched("disable_jit", "disable", disable)


def default_device(new_val: object) -> AbstractContextManager[None]:
    """A context in which programs run on ``new_val``, a device or a platform's name, if no operand is on a device.

    Args:
      new_val: a device, the name of a platform, or None for the first device of the default platform.

    Returns:
      A context manager.

    >>> from pullback import default_device, devices, jit
    >>> with default_device(devices()[0]):
    ...     print(jit(lambda x: x + 1)(1.0))
    2.0
    """
    return override("default_device", new_val)


def debug_nans(new_val: bool = True) -> AbstractContextManager[None]:
    """A context in which an operation that returns NaN raises ``FloatingPointError``, naming it and the user's line.

    Args:
      new_val: whether to raise.

    Returns:
      A context manager.

    Raises:
      NonFiniteError: within the block, for an operation that returns NaN (a FloatingPointError).
      ArgumentError: ``new_val`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import debug_nans
    >>> with debug_nans():
    ...     jnp.log(-1.0)
    Traceback (most recent call last):
        ...
    pullback.core.errors.NonFiniteError: log returned NaN in its result of type f32[] ...
    """
    return _switched("debug_nans", "new_val", new_val)


def debug_infs(new_val: bool = True) -> AbstractContextManager[None]:
    """A context in which an operation that returns an infinity raises ``FloatingPointError`` with its name and line.

    Args:
      new_val: whether to raise.

    Returns:
      A context manager.

    Raises:
      NonFiniteError: within the block, for an operation that returns an infinity (a FloatingPointError).
      ArgumentError: ``new_val`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import debug_infs
    >>> with debug_infs():
    ...     jnp.exp(1000.0)
    Traceback (most recent call last):
        ...
    pullback.core.errors.NonFiniteError: exp returned an infinity in its result of type f32[] ...
    """
    return _switched("debug_infs", "new_val", new_val)


def check_indices(new_val: bool = True) -> AbstractContextManager[None]:
    """A context in which an index out of range raises an error with the index and the size of the axis.

    It concerns reading and changing by index (``x[i]``, ``x.at[i]``, ``take``, ``take_along_axis``, ...) without a
    ``mode``, which would choose the behaviour. It also concerns slices at computed offsets, as of
    ``lax.dynamic_slice``, which otherwise are moved inside. Slices in Python's notation end at the end of the axis.

    Indices are checked in eager and in compiled code, also in loops, derivatives and mapped functions, but not in
    programs that were compiled ahead of time. With the switch, ``jit`` compiles a program that also returns whether an
    index was out of range, and each call waits for it. In JAX the switch is ``jax_error_checking_behavior_oob`` of
    ``"raise"``.

    Args:
      new_val: whether to check indices.

    Returns:
      A context manager.

    Raises:
      OutOfBoundsError: within the block, for an index that is out of range (an IndexError and a ValueError).
      ArgumentError: ``new_val`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import check_indices
    >>> with check_indices():
    ...     jnp.arange(4)[7]
    Traceback (most recent call last):
        ...
    pullback.core.errors.OutOfBoundsError: index 7 is out of bounds for axis 0 with size 4, in x[7] ...
    """
    return _switched("check_indices", "new_val", new_val)


def check_static_indices(new_val: bool = True) -> AbstractContextManager[None]:
    """A context in which an index out of range is an error if it is a Python constant; see :func:`check_indices`.

    Args:
      new_val: whether to check indices.

    Returns:
      A context manager.

    Raises:
      ArgumentError: ``new_val`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import check_static_indices
    >>> with check_static_indices():
    ...     jnp.arange(4)[7]
    Traceback (most recent call last):
        ...
    pullback.core.errors.OutOfBoundsError: index 7 is out of bounds for axis 0 with size 4, in x[7] ...
    """
    return _switched("check_static_indices", "new_val", new_val)


def masked_zeros(new_val: bool = True) -> Any:
    """A context in which a tangent or cotangent of exactly zero stays zero, whatever derivative it is multiplied by.

    Without it, zero times an infinite or undefined derivative is NaN, also of a branch that was not taken.
    ``docs/masked_zeros.md`` says what changes, and what it costs.

    Args:
      new_val: whether zeros stay zero.

    Returns:
      A context manager.

    Raises:
      ArgumentError: ``new_val`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import grad, masked_zeros
    >>> f = lambda x: jnp.where(x > 0, jnp.log(x), 0.0)
    >>> print(grad(f)(0.0))
    nan
    >>> with masked_zeros():
    ...     print(grad(f)(0.0))
    0.0
    """
    return _switched("masked_zeros", "new_val", new_val)


def check_custom_rules(new_val: bool = True) -> AbstractContextManager[None]:
    """A context in which calls of functions with custom derivative rules check these rules.

    ``test_util.check_rule`` is run for each eager call whose arguments have known values, once for each function
    and types of arguments; errors are raised as a ``RuleCheckError``.

    Args:
      new_val: whether to check.

    Returns:
      A context manager.

    Raises:
      ArgumentError: ``new_val`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import check_custom_rules, custom_jvp
    >>> f = custom_jvp(jnp.sin)
    >>> f.defjvps(lambda t, ans, x: jnp.cos(x) * t)
    >>> with check_custom_rules():
    ...     print(f(0.0))
    0.0
    """
    return _switched("check_custom_rules", "new_val", new_val)


def enable_checks(new_val: bool = True) -> AbstractContextManager[None]:
    """A context in which each program that is traced is checked: its variables, and the types of its equations.

    Operations that users declare have the shapes and dtypes of their results checked, too.

    Args:
      new_val: whether to check programs.

    Returns:
      A context manager.

    Raises:
      ArgumentError: ``new_val`` is not a boolean (a TypeError and a ValueError).

    >>> from pullback import enable_checks, jit
    >>> with enable_checks():
    ...     print(jit(lambda x: x + 1)(1.0))
    2.0
    """
    return _switched("enable_checks", "new_val", new_val)


def check_tracer_leaks(new_val: bool = True) -> AbstractContextManager[None]:
    """A context in which a traced value that outlives its transformation raises ``UnexpectedTracerError``.

    Each outermost call of a transformed function looks, when it returns, through all objects of the process for values
    of transformations that have ended; so it is slow, and for one thread.

    Args:
      new_val: whether to look for leaked values.

    Returns:
      A context manager.

    Raises:
      UnexpectedTracerError: within the block, for a function that leaks a traced value (a TypeError).
      ArgumentError: ``new_val`` is not a boolean (a TypeError and a ValueError).

    >>> from pullback import check_tracer_leaks, grad
    >>> kept = []
    >>> with check_tracer_leaks():
    ...     grad(lambda x: (kept.append(x), x)[1])(1.0)
    Traceback (most recent call last):
        ...
    pullback.core.errors.UnexpectedTracerError: Leaked tracer: ...
    """
    return _switched("check_tracer_leaks", "new_val", new_val)


def checking_leaks() -> AbstractContextManager[None]:
    """A block in which traced values that outlive their transformation raise an error: see ``check_tracer_leaks``.

    Returns:
      A context manager.

    >>> from pullback import checking_leaks, jit
    >>> with checking_leaks():
    ...     print(jit(lambda x: x + 1)(1.0))
    2.0
    """
    return check_tracer_leaks()


def debug_key_reuse(new_val: bool = True) -> AbstractContextManager[None]:
    """A context in which a random function that is given a key that was used before raises ``KeyReuseError``.

    See :mod:`pullback.experimental.key_reuse` for what counts as a use.

    Args:
      new_val: whether to raise.

    Returns:
      A context manager.

    Raises:
      KeyReuseError: within the block, for a key that is used again (a TypeError).
      ArgumentError: ``new_val`` is not a boolean (a TypeError and a ValueError).

    >>> from pullback import debug_key_reuse, random
    >>> with debug_key_reuse():
    ...     key = random.key(0)
    ...     a, b = random.normal(key), random.uniform(key)
    Traceback (most recent call last):
        ...
    pullback.core.errors.KeyReuseError: random.uniform takes a key that random.normal has already used, at
    ...
    """
    return _switched("debug_key_reuse", "new_val", new_val)


def default_matmul_precision(new_val: str | None) -> AbstractContextManager[None]:
    """A context in which products of matrices in compiled programs ask the compiler for a precision.

    Args:
      new_val: "default" or "bfloat16", "high", "bfloat16_3x" or "tensorfloat32", "highest" or "float32"; None for the
        compiler's own choice. It matters for devices that multiply in less than the precision of the dtype; CPUs always
        multiply in full precision.

    Returns:
      A context manager.

    Raises:
      ArgumentError: another name (a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import default_matmul_precision, jit
    >>> with default_matmul_precision("float32"):
    ...     text = jit(jnp.dot).lower(jnp.ones(2), jnp.ones(2)).as_text()
    >>> "precision HIGHEST" in text
    True
    """
    return override("default_matmul_precision", new_val)


def enable_custom_prng(new_val: bool = True) -> AbstractContextManager[None]:
    """A context in which ``random.PRNGKey`` returns keys of their own dtype, as ``random.key`` does, and not words.

    Args:
      new_val: whether keys have their own dtype.

    Returns:
      A context manager.

    Raises:
      ArgumentError: ``new_val`` is not a boolean (a TypeError and a ValueError).

    >>> from pullback import dtypes, enable_custom_prng, random
    >>> with enable_custom_prng():
    ...     dtypes.issubdtype(random.PRNGKey(0).dtype, dtypes.prng_key)
    True
    """
    return _switched("enable_custom_prng", "new_val", new_val)


def default_prng_impl(new_val: str) -> AbstractContextManager[None]:
    """A context that chooses the generator of new random keys, and of keys given by their words.

    Args:
      new_val: the name of a generator: ``"threefry2x32"``, ``"threefry4x32"``, ``"philox2x32"`` or ``"philox4x32"``; or
        ``"rbg"`` or ``"unsafe_rbg"``, which draw XLA's own bits.

    Returns:
      A context manager.

    >>> from pullback import default_prng_impl, random
    >>> with default_prng_impl("rbg"):
    ...     print(random.PRNGKey(3))
    [0 3 0 3]

    Raises:
      ArgumentError: another name (a ValueError).
      ArgumentError: another name (a TypeError and a ValueError).
    """
    return override("default_prng_impl", new_val)


def transfer_guard(new_val: str) -> AbstractContextManager[None]:
    """A context in which arrays that move between host and device, or between devices, are logged or refused.

    Args:
      new_val: "allow"; "log" or "disallow" for implicit transfers; "log_explicit" or "disallow_explicit" also for
        ``device_put`` and ``device_get``.

    Returns:
      A context manager.

    Implicit transfers: a compiled function receives a NumPy array or a Python number; a GPU receives an array of the
    host, or the host needs the elements of an array on a GPU; an array moves from one device to another. Eager
    operations run on the host, and transfer no arrays.

    Raises:
      ArgumentError: another level (a ValueError).
      TransferGuardError: within the block, for a transfer that is refused (a RuntimeError).

    >>> from pullback import jit, transfer_guard
    >>> with transfer_guard("disallow"):
    ...     jit(lambda x: x + 1)(1.0)
    Traceback (most recent call last):
        ...
    pullback.core.errors.TransferGuardError: a host-to-device transfer of f32[] is refused, ...
    """
    return _overridden({_checked(guard, new_val): new_val for guard in _GUARDS})


def transfer_guard_host_to_device(new_val: str) -> AbstractContextManager[None]:
    """A context of :func:`transfer_guard` for transfers from the host to a device.

    Args:
      new_val: ``"allow"``, ``"log"``, ``"disallow"``, ``"log_explicit"`` or ``"disallow_explicit"``, as for
        :func:`transfer_guard`.

    Returns:
      A context manager.

    Raises:
      ArgumentError: another level (a TypeError and a ValueError).
      TransferGuardError: within the block, for a transfer that is refused (a RuntimeError).

    >>> import numpy as np
    >>> from pullback import jit, transfer_guard_host_to_device
    >>> with transfer_guard_host_to_device("disallow"):
    ...     jit(lambda x: x + 1)(np.ones(2))
    Traceback (most recent call last):
        ...
    pullback.core.errors.TransferGuardError: a host-to-device transfer of f32[2] is refused, ...
    """
    return override("transfer_guard_host_to_device", new_val)


def transfer_guard_device_to_host(new_val: str) -> AbstractContextManager[None]:
    """A context of :func:`transfer_guard` for transfers from a device to the host.

    Args:
      new_val: ``"allow"``, ``"log"``, ``"disallow"``, ``"log_explicit"`` or ``"disallow_explicit"``, as for
        :func:`transfer_guard`.

    Returns:
      A context manager.

    Raises:
      ArgumentError: another level (a TypeError and a ValueError).
      TransferGuardError: within the block, for a transfer that is refused (a RuntimeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import jit, transfer_guard_device_to_host
    >>> with transfer_guard_device_to_host("disallow"):  # on a CPU the elements are on the host
    ...     print(jit(lambda x: x + 1)(jnp.zeros(2)))
    [1. 1.]
    """
    return override("transfer_guard_device_to_host", new_val)


def transfer_guard_device_to_device(new_val: str) -> AbstractContextManager[None]:
    """A context of :func:`transfer_guard` for transfers from one device to another.

    Args:
      new_val: ``"allow"``, ``"log"``, ``"disallow"``, ``"log_explicit"`` or ``"disallow_explicit"``, as for
        :func:`transfer_guard`.

    Returns:
      A context manager.

    Raises:
      ArgumentError: another level (a TypeError and a ValueError).
      TransferGuardError: within the block, for a transfer that is refused (a RuntimeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import jit, transfer_guard_device_to_device
    >>> with transfer_guard_device_to_device("disallow"):  # one device
    ...     print(jit(lambda x: x + 1)(jnp.zeros(2)))
    [1. 1.]
    """
    return override("transfer_guard_device_to_device", new_val)


def explain_cache_misses(new_val: bool = True) -> AbstractContextManager[None]:
    """A context in which each tracing of a function under ``jit`` is explained in the log: what changed, and how.

    Args:
      new_val: whether to explain.

    Returns:
      A context manager.

    Raises:
      ArgumentError: ``new_val`` is not a boolean (a TypeError and a ValueError).

    >>> from pullback import explain_cache_misses, jit
    >>> with explain_cache_misses():  # the log says: jit traces <lambda> ... for the first time
    ...     print(jit(lambda x: x + 1)(1.0))
    2.0
    """
    return _switched("explain_cache_misses", "new_val", new_val)


def no_tracing(new_val: bool = True) -> AbstractContextManager[None]:
    """A context in which ``jit`` raises ``TracingForbiddenError`` instead of tracing: compile everything before.

    Args:
      new_val: whether tracing is forbidden.

    Returns:
      A context manager.

    Raises:
      TracingForbiddenError: within the block, for a function that would be traced (a RuntimeError).
      ArgumentError: ``new_val`` is not a boolean (a TypeError and a ValueError).

    >>> from pullback import jit, no_tracing
    >>> with no_tracing():
    ...     jit(lambda x: x + 1)(1.0)
    Traceback (most recent call last):
        ...
    pullback.core.errors.TracingForbiddenError: jit of <lambda> at ... would be traced ...
    """
    return _switched("no_tracing", "new_val", new_val)


def log_compiles(new_val: bool = True) -> AbstractContextManager[None]:
    """A context in which each compilation is logged: how long its phases took, and why the cache had no program.

    Args:
      new_val: whether to log.

    Returns:
      A context manager.

    Raises:
      ArgumentError: ``new_val`` is not a boolean (a TypeError and a ValueError).

    >>> from pullback import jit, log_compiles
    >>> with log_compiles():  # the log says how long tracing, lowering and compiling took
    ...     print(jit(lambda x: x + 1)(1.0))
    2.0
    """
    return _switched("log_compiles", "new_val", new_val)


def tiered(new_val: str) -> AbstractContextManager[None]:
    """A context in which first calls of compiled functions are answered eagerly, or wait for the compiler.

    Args:
      new_val: ``"off"``, the default: all calls wait for the compiler. ``"auto"``: calls run eagerly while another
        thread compiles, if compiling is expected to take more than a second and an eager call less. ``"on"``: calls run
        eagerly, while another thread compiles, wherever this is possible. Eager and compiled results agree to rounding.
        Which calls are eager depends on the clock, so that two runs of a program may differ by rounding unless this is
        ``"off"`` (``docs/compile_time.md``).

    Returns:
      A context manager.

    Raises:
      ArgumentError: another value (a ValueError).

    >>> from pullback import jit, tiered
    >>> with tiered("on"):
    ...     print(jit(lambda x: x + 1)(1.0))
    2.0
    """
    return override("tiered", new_val)


def compile_progress(new_val: bool = True) -> AbstractContextManager[None]:
    """A context in which a compilation of more than two seconds is reported in a terminal or notebook; not if False.

    Args:
      new_val: whether to report long compilations.

    Returns:
      A context manager.

    Raises:
      ArgumentError: ``new_val`` is not a boolean (a TypeError and a ValueError).

    >>> from pullback import compile_progress, config
    >>> with compile_progress(False):
    ...     config.compile_progress
    False
    """
    return _switched("compile_progress", "new_val", new_val)
