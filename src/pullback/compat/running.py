"""``python -m pullback run``: run a program written for JAX, with ``jax`` served by Pullback."""

from __future__ import annotations

import builtins
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from types import ModuleType, TracebackType

from pullback.compat.serving import install, missing_names
from pullback.core.command_name import command_name
from pullback.core.errors import ArgumentError, CompatError

_USAGE = """\
usage: python -m pullback run [--report] PROGRAM [ARGUMENTS]
       python -m pullback run [--report] -m MODULE [ARGUMENTS]
       python -m pullback run [--report] -c CODE [ARGUMENTS]

Run a program written for JAX on Pullback: its `import jax` imports Pullback's modules.

  PROGRAM     the path of a Python file, or of a folder or archive with a __main__.py
  -           read the program from standard input
  -m MODULE   a module, such as pytest or IPython
  -c CODE     the program itself
  --report    print at the end the names of JAX that the program used and that Pullback does not have
"""


def _usage() -> str:
    """Return the help, in which the command has the name by which it was called."""
    return _USAGE.replace("python -m pullback", command_name())


def run(arguments: Sequence[str]) -> int:
    """Run a program as ``python`` would, with ``jax`` served by Pullback.

    Args:
      arguments: the options, the program, and its own arguments.

    Returns:
      The exit status: 0, or 1 if the program ended with an exception, which has been printed.

    Raises:
      ArgumentError: the program is missing, or an option is unknown (a ValueError).
      SystemExit: the program raised it.

    ``run(["-c", "import jax; print(jax.numpy.arange(3))"])`` prints ``[0 1 2]`` and returns 0.

    >>> from pullback.compat.running import run
    >>> run(["--help"])  # doctest: +ELLIPSIS
    usage: python -m pullback run ...
    0
    """
    given = list(arguments)
    if given[:1] in (["-h"], ["--help"]):
        sys.stdout.write(_usage())
        return 0
    report = given[:1] == ["--report"]
    start, own = _program(given[report:])
    install()
    before, sys.argv = sys.argv, own
    try:
        start()
    except Exception as error:
        error.__traceback__ = _of_the_program(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    finally:
        sys.argv = before
        if report:
            sys.stderr.write(report_text())
    return 0


def main(arguments: Sequence[str]) -> int:
    """Call :func:`run`; print an error about the command line and return status 2."""
    try:
        return run(arguments)
    except (ArgumentError, CompatError) as error:
        print(f"{command_name()} run: {error}", file=sys.stderr)
        return 2


def report_text() -> str:
    """Return a report of missing names of JAX, one per line, each with the location of its first use."""
    missing = missing_names()
    if not missing:
        return "Pullback has every name of JAX that the program used.\n"
    width = max(map(len, missing))
    lines = (f"  {name:{width}}  {modules}\n" for name, modules in sorted(missing.items()))
    return "Names of JAX that the program used and that Pullback does not have:\n" + "".join(lines)


def _program(given: Sequence[str]) -> tuple[Callable[[], object], list[str]]:
    """Return a function that runs the program named by the command line ``given``, and the program's ``sys.argv``."""
    option = given[0] if given else ""
    if option in ("-m", "-c"):
        if len(given) < 2:
            raise ArgumentError(f"{option} needs a {'module' if option == '-m' else 'program'} after it\n{_usage()}")
        sys.path[0] = os.getcwd() if option == "-m" else ""
        if option == "-m":
            return lambda: runpy.run_module(given[1], run_name="__main__", alter_sys=True), [given[1], *given[2:]]
        return lambda: _run_code(given[1], "<string>"), ["-c", *given[2:]]
    if option == "-":
        sys.path[0] = ""
        return lambda: _run_code(sys.stdin.buffer.read(), "<stdin>"), list(given)
    if not option or option.startswith("-"):
        raise ArgumentError(f"there is no program to run{', but ' + option if option else ''}\n{_usage()}")
    if not os.path.exists(option):
        raise ArgumentError(f"there is no program {option!r} here, in {os.getcwd()}")
    if os.path.isfile(option):
        sys.path[0] = os.path.dirname(os.path.abspath(option))
    return lambda: runpy.run_path(option, run_name="__main__"), list(given)


def _run_code(code: str | bytes, source: str) -> None:
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    before, sys.modules["__main__"] = sys.modules["__main__"], main
    try:
        exec(compile(code, source, "exec"), main.__dict__)
    finally:
        sys.modules["__main__"] = before


def _of_the_program(tb: TracebackType | None) -> TracebackType | None:
    """Drop the frames of a traceback that precede the first frame of the user's program."""
    while tb is not None and (tb.tb_frame.f_code.co_filename == __file__ or "runpy" in tb.tb_frame.f_code.co_filename):
        tb = tb.tb_next
    return tb
